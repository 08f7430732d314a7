"""Comparisons for tests, on arrays of any device: NumPy's functions on the elements, read from the device.

bfloat16 and float8 are compared as float32, which holds their values. What isn't an array goes to NumPy as it is.

>>> import pyarray as pa
>>> pa.testing.assert_allclose(pa.asarray([1.0, 2.0]), [1.0, 2.0 + 1e-9])
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from . import docstrings
from .api.core import missing_names
from .array import ndarray
from .array_convert import asnumpy
from .dtypes import EXTENSIONS
from .typing import ArrayLike

__all__ = [
    "assert_allclose",
    "assert_almost_equal",
    "assert_array_almost_equal",
    "assert_array_equal",
    "assert_array_less",
    "assert_equal",
]


def _on_host(x: Any) -> Any:
    if isinstance(x, ndarray):
        values = asnumpy(x)
        return values.astype(np.float32) if x._dtype in EXTENSIONS else values
    if isinstance(x, dict):
        return {key: _on_host(value) for key, value in x.items()}
    if type(x) in (list, tuple):
        return type(x)(_on_host(item) for item in x)
    return x


def _compared(name: str) -> Callable[..., None]:
    numpy_function = getattr(np.testing, name)

    def function(actual: ArrayLike, desired: ArrayLike, *args: Any, **options: Any) -> None:
        __tracebackhide__ = True
        numpy_function(_on_host(actual), _on_host(desired), *args, **options)

    function.__name__ = function.__qualname__ = name
    function.__module__ = __name__
    function.__doc__ = f"""`numpy.testing.{name}` of arrays on any device, with the same further arguments.

    Raises `AssertionError` where NumPy's does, for shapes that differ too."""
    return function


assert_allclose = _compared("assert_allclose")
assert_almost_equal = _compared("assert_almost_equal")
assert_array_almost_equal = _compared("assert_array_almost_equal")
assert_array_equal = _compared("assert_array_equal")
assert_array_less = _compared("assert_array_less")
assert_equal = _compared("assert_equal")

docstrings.install(globals())
missing_names.list_public(sys.modules[__name__])
