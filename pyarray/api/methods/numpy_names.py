"""Fills the table by which `np.add(a, 1)` and `np.concatenate([a, b])` dispatch to functions of pyarray."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...array import ndarray
from ...array_convert import asarray
from ...array_hooks import numpy_functions
from ...keywords import checked
from ..core import registry
from ..numpy import products


def _array_like(
    x: Any,
    dtype: Any = None,
    order: str = "K",
    *,
    copy: bool | None = None,
    device: Any = None,
    subok: bool = False,
    ndmin: int = 0,
) -> ndarray:
    """`numpy.asarray(x, like=a)` and its like, with the keywords that they have."""
    result = asarray(x, dtype, copy=copy, device=device)
    if order in ("C", "F") and not result.flags[f"{order}_CONTIGUOUS"]:
        result = result.copy(order)
    return result[(None,) * (ndmin - result.ndim)] if result.ndim < ndmin else result


_ON_HOST = "pyarray.api.numpy.files"  # NumPy writes and reads files of NumPy's arrays itself
# what has another name or other parameters in NumPy, and attributes that NumPy has functions for
_SINGLE: dict[str, Any] = {
    "trace": products.trace,
    "ndim": lambda a: a.ndim, "shape": lambda a: a.shape,
    "size": lambda a, axis=None: a.size if axis is None else a.shape[axis],
    "copy": lambda a, order="K", subok=False: a.copy(order),
    "asarray": _array_like, "asanyarray": _array_like,
    "ascontiguousarray": lambda x, dtype=None, **options: _array_like(x, dtype, "C", ndmin=1, **options),
    "asfortranarray": lambda x, dtype=None, **options: _array_like(x, dtype, "F", ndmin=1, **options),
    "array": lambda x, dtype=None, *, copy=True, **options: _array_like(x, dtype, copy=copy, **options),
}  # fmt: skip


def install(*named: Any, **extensions: Any) -> None:
    """Fill the table that `__array_ufunc__` and `__array_function__` read, also with the functions of modules
    that NumPy knows by the name alone (`named`) or by that of the module, too."""
    for module in named:
        numpy_functions.update({name: getattr(module, name) for name in module.__all__})
    for name, function in registry.functions().items():
        if callable(vars(np).get(name)) and function.__module__ != _ON_HOST:
            numpy_functions[name] = checked(function)
    numpy_functions.update(_SINGLE)
    for part, module in extensions.items():
        numpy_functions.update({f"{part}.{name}": getattr(module, name) for name in module.__all__})
