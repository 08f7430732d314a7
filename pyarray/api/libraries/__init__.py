"""What the math libraries of GPU vendors compute for `linalg` and `fft`: docs/design/libraries.md."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import bindings as bindings
    from . import linalg as linalg
    from . import transforms as transforms
else:
    from ...lazy import submodules

    __getattr__ = submodules(__name__)
