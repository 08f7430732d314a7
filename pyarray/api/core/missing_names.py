"""Errors for names of NumPy and torch that pyarray lacks; they say what to write instead."""

from __future__ import annotations

import sys
import types
from typing import Any, NoReturn

import numpy as np

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
    "flatiter": "a.flat is one",
    "frompyfunc": "write a pyarray.func, or pyarray.vectorize, which calls Python for each element",
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


_NO_GRADIENTS = "arrays carry no gradients: leave it out"

# of an array, which torch's tensors have -> what to write
ATTRIBUTES = {
    "backward": "arrays carry no gradients",
    "bfloat16": "write a.astype('bfloat16')",
    "clone": "write a.copy()",
    "contiguous": "write pyarray.ascontiguousarray(a)",
    "cpu": "write a.to_device('cpu')",
    "cuda": "write a.to_device('cuda:0')",
    "data_ptr": "other libraries take the array itself, by DLPack",
    "detach": _NO_GRADIENTS,
    "dim": "write a.ndim",
    "double": "write a.astype('float64')",
    "element_size": "write a.itemsize",
    "expand": "write pyarray.broadcast_to(a, shape)",
    "float": "write a.astype('float32')",
    "half": "write a.astype('float16')",
    "int": "write a.astype('int32')",
    "long": "write a.astype('int64')",
    "numel": "write a.size",
    "numpy": "write pyarray.asnumpy(a), or a.get() for a copy",
    "permute": "write a.transpose(axes)",
    "requires_grad": _NO_GRADIENTS,
    "requires_grad_": _NO_GRADIENTS,
    "to": "a.to_device(device) moves, a.astype(dtype) converts",
    "type": "write a.dtype, or a.astype(dtype)",
    "unsqueeze": "write pyarray.expand_dims(a, axis=axis)",
}


def no_attribute(self: Any, name: str) -> NoReturn:
    """`ndarray.__getattr__`: raises the `AttributeError` of a name that arrays don't have."""
    if name.startswith("__"):
        object.__getattribute__(self, name)  # says why this array doesn't have it
    what = f"{type(self).__name__!r} object has no attribute {name!r}"
    if name in ATTRIBUTES:
        raise AttributeError(f"{what}: {ATTRIBUTES[name]}")  # without a name: Python would add another
    raise AttributeError(what, name=name, obj=self)


def no_name(package: str, name: str) -> AttributeError:
    """The `AttributeError` for a name that the package lacks."""
    what = f"module {package!r} has no attribute {name!r}"
    module = sys.modules.get(package)
    if name in NAMES:
        return AttributeError(f"{what}: {NAMES[name]}", name=name, obj=module)
    numpy_object = vars(np).get(name)  # asking NumPy's module itself may warn, or import
    if callable(numpy_object) and not isinstance(numpy_object, type) and not name.startswith("_"):
        instead = f"numpy.{name} takes what pyarray.asnumpy(a) gives"
        return AttributeError(f"{what}, which NumPy has: {instead}", name=name, obj=module)
    return AttributeError(what, name=name, obj=module)


def list_public(module: types.ModuleType) -> None:
    """Makes `dir` of a module list the names in its `__all__`, without its imports."""

    def names() -> list[str]:
        return sorted({*module.__all__, *(name for name in vars(module) if name.startswith("__"))})

    module.__dir__ = names  # type: ignore[method-assign]
