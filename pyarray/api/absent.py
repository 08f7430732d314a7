"""Names that users of NumPy look for and that aren't here: the error says what to write."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from ..array_hooks import ACCUMULATIONS, REDUCTIONS

_NO_DATES = "dates and times are no elements of these arrays: keep them as int64"
_NO_TEXT = "text is no element of these arrays: keep it in NumPy's"
_ITERATE = "loop over pyarray.ndindex(a.shape), or write a pyarray.kernel, which is as quick as C"
_TWO_AXES = "a matrix is an array of two dimensions, and a @ b multiplies"

# of the package -> what to write
NAMES = {
    "asmatrix": _TWO_AXES,
    "bmat": "pyarray.block joins matrices",
    "broadcast": "write pyarray.broadcast_arrays or pyarray.broadcast_shapes",
    "bytes_": _NO_TEXT,
    "char": _NO_TEXT,
    "datetime64": _NO_DATES,
    "dtype": "pass the name, 'float32', or pyarray.float32; pyarray.DType is their class",
    "flatiter": "a.flat is one",
    "frompyfunc": "write a pyarray.func, or pyarray.vectorize, which calls Python for each element",
    "lib": "indices, transposes and broadcast_to give views, "
    "and a[pyarray.arange(n)[:, None] + pyarray.arange(k)] gathers windows",
    "ma": "there are no masked arrays: keep a mask beside, and write pyarray.where(mask, a, b)",
    "matrix": _TWO_AXES,
    "memmap": "pyarray.asarray(numpy.memmap(...)) shares its memory",
    "nditer": _ITERATE,
    "nested_iters": _ITERATE,
    "object_": "objects are no elements of these arrays",
    "poly1d": "write pyarray.polyval, polyfit, polyadd and their like",
    "polynomial": "write pyarray.polyval, polyfit, polyadd and their like",
    "rec": "keep one array per field",
    "recarray": "keep one array per field",
    "record": "keep one array per field",
    "str_": _NO_TEXT,
    "strings": _NO_TEXT,
    "timedelta64": _NO_DATES,
    "ufunc": "functions are plain functions here: pyarray.vectorize and pyarray.func make new ones",
    "void": "keep one array per field",
}


def no_name(package: str, name: str) -> AttributeError:
    """The error of a name that the package doesn't have."""
    what = f"module {package!r} has no attribute {name!r}"
    module = sys.modules.get(package)
    if name in NAMES:
        return AttributeError(f"{what}: {NAMES[name]}", name=name, obj=module)
    found = vars(np).get(name)  # asking NumPy's module itself may warn, or import
    if callable(found) and not isinstance(found, type) and not name.startswith("_"):
        instead = f"numpy.{name} takes what pyarray.asnumpy(a) gives"
        return AttributeError(f"{what}, which NumPy has: {instead}", name=name, obj=module)
    return AttributeError(what, name=name, obj=module)


def no_method(function: str, method: str) -> Callable[..., NoReturn]:
    """What stands for a method of NumPy's ufunc, as `add.reduce`: raises `AttributeError` when called."""
    table = {"reduce": REDUCTIONS, "accumulate": ACCUMULATIONS}.get(method, {})
    instead = f"numpy.{function}.{method}(pyarray.asnumpy(a), ...)"
    if function in table:
        instead = f"pyarray.{table[function]}(a, axis=0)"
    elif method == "outer":
        instead = f"pyarray.{function}(a[:, None], b) for 1-D arrays"

    def call(*_: Any, **__: Any) -> NoReturn:
        what = f"pyarray.{function} is a plain function, without the {method} of NumPy's ufuncs"
        raise AttributeError(f"{what}; write {instead}")

    return call


UFUNC_METHODS = ("reduce", "accumulate", "outer")
