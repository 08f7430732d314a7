"""What NumPy calls its functions: `np.add(a, 1)` and `np.concatenate([a, b])` on arrays of ours come here."""

from __future__ import annotations

from typing import Any

from ..array_hooks import numpy_functions
from ..lang.builtins import ALIASES
from . import (
    creation,
    einsum,
    elementwise,
    histograms,
    linear_algebra,
    manipulation,
    moments,
    nan_functions,
    order_statistics,
    products,
    scans,
    searching,
    sets,
    sorting,
    statistical,
    utility,
)

# NumPy's name -> ours, where they differ; those of the kernel language (arcsin, power ...) are in its own
# table
_OTHER = {
    "invert": "bitwise_invert",
    "left_shift": "bitwise_left_shift",
    "right_shift": "bitwise_right_shift",
    "mod": "remainder",
    "true_divide": "divide",
    "absolute": "abs",
    "rint": "round",
    "amax": "max",
    "amin": "min",
    "concatenate": "concat",
    "around": "round",
}
_CHAPTERS = (
    creation,
    einsum,
    elementwise,
    histograms,
    linear_algebra,
    manipulation,
    moments,
    nan_functions,
    order_statistics,
    products,
    scans,
    searching,
    sets,
    sorting,
    statistical,
    utility,
)


def install(**extensions: Any) -> None:
    """Fill the table that `__array_ufunc__` and `__array_function__` read, also with the functions of
    modules that NumPy has under the same name."""
    ours: dict[str, Any] = {"trace": products.trace}
    for chapter in _CHAPTERS:
        ours |= {name: getattr(chapter, name) for name in chapter.__all__}
    numpy_functions.update(ours)
    for theirs, name in {**ALIASES, **_OTHER}.items():
        if name in ours and theirs not in ours:  # kernels call `maximum` max; here that is a reduction
            numpy_functions[theirs] = ours[name]
    for part, module in extensions.items():
        numpy_functions.update({f"{part}.{name}": getattr(module, name) for name in module.__all__})
