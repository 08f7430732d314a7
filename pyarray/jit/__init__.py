"""From a Python function and live arguments to a launch: binding, compiling, caching, the one launch path,
error reports. Modules that only a compile needs are imported by the first one."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import bound_launch as bound_launch
    from . import compile as compile
    from . import kernel as kernel
    from . import launch as launch
    from . import plan_explanations as plan_explanations
    from . import report as report
else:
    from ..lazy import submodules

    __getattr__ = submodules(__name__)
