"""pyarray inside torch. Importing this imports torch; `import pyarray` doesn't, and `pyarray.torch` is
imported when it is first asked for.
"""

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ModuleNotFoundError("pyarray.torch needs torch, which isn't installed: pip install torch") from None

from .attention import attention as attention
from .explain import Explanation as Explanation
from .explain import explain as explain
from .op import op as op
