"""The kernel language, from Python functions to C text. Knows neither devices nor arrays. Its modules are imported by
the first compile."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import bounds_checks as bounds_checks
    from . import dialect as dialect
    from . import emit_statements as emit_statements
    from . import emit_views as emit_views
    from . import ir as ir
    from . import operation_counts as operation_counts
    from . import pipeline as pipeline
else:
    from ..lazy import submodules

    __getattr__ = submodules(__name__)
