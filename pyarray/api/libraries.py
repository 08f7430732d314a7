"""What well-kept libraries compute: decompositions and Fourier transforms.

On the CPU they are NumPy's (LAPACK, pocketfft), on the arrays' own memory. On a GPU they are CuPy's where it
is installed, whose arrays share memory with ours; else the arrays go to the host and the results come back,
which one warning says.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import warnings
from typing import Any

import numpy as np

from ..array import ndarray
from ..array_convert import asarray, asnumpy
from ..array_hooks import operation
from ..array_host import after_use
from ..dtypes import DType, asdtype, float32, float64
from ..jit.library_call import call_library
from .statistical import as_operand
from .ufunc import common_device, operands_of

ALIGNED = 16  # bytes; the largest element of the libraries


def lifted(name: str, *given: Any) -> list[ndarray]:
    """Arrays of types that the libraries compute in: bools and integers become float64, half floats float32.

    Raises `TypeError` for what is no array or number, `ValueError` for arrays on several devices.
    """
    arrays = [as_operand(name, x, "biufc") for x in operands_of(name, given)]
    common_device(name, arrays)
    return [_lift(x) for x in arrays]


def _lift(x: ndarray) -> ndarray:
    if x._dtype.kind in "biu":
        return x.astype(float64)
    return x.astype(float32) if x.itemsize == 2 else x


def real_of(dtype: DType) -> DType:
    """The type of a complex type's components; a real type itself."""
    return asdtype(np.empty(0, dtype.numpy).real.dtype)  # pyright: ignore[reportAttributeAccessIssue]


def complex_of(dtype: DType) -> DType:
    """The complex type whose components are of this type; a complex type itself."""
    return asdtype(np.result_type(dtype.numpy, np.complex64))


def library(part: str, name: str, *arrays: ndarray, **options: Any) -> Any:
    """What `part`.`name` of the device's library ("linalg", "fft") makes of one or two arrays: an array on
    their device, or a tuple of them. Raises what the library raises."""
    device = common_device(name, arrays)
    owner: Any = np
    given: list[ndarray] = []
    if device.kind == "cpu":
        native = [asnumpy(x) for x in arrays]
    elif hasattr(getattr(_cupy(), part, None), name):
        owner = _cupy()
        given = [_packed(x) for x in arrays]
        native = [owner.from_dlpack(x) for x in given]
    else:
        _say(device.kind, part)
        native = [asnumpy(x) for x in arrays]

    def compute() -> Any:
        with np.errstate(all="ignore"):
            found = getattr(getattr(owner, part), name)(*native, **options)
        if isinstance(found, tuple):
            results: Any = tuple(asarray(each, device=device) for each in found)
        else:
            results = asarray(found, device=device)
        for x in given:
            after_use(x)  # by the library's stream, behind which the results have put the current one
        return results

    args = dict(zip("ab", arrays, strict=False)) | options
    version = getattr(owner, "__version__", "")
    return call_library(f"{owner.__name__}.{part}.{name}", version, device, args, compute)


def _packed(x: ndarray) -> ndarray:
    """`x`, or a copy that every reader of DLPack takes and that lies as the vendor's libraries ask: cuFFT
    reads real numbers in pairs, and complex numbers are vectors to all of them."""
    return operation("contiguous")(x) if x._writeable and x._ptr % ALIGNED == 0 else x.copy()


@functools.cache
def _cupy() -> Any:
    """The module, or None where it isn't installed or doesn't work here."""
    if importlib.util.find_spec("cupy") is None:
        return None
    try:
        return importlib.import_module("cupy")
    except ImportError:
        return None


@functools.cache
def _say(kind: str, part: str) -> None:
    warnings.warn(
        f"pyarray.{part} on {kind} copies to the host and back, since CuPy isn't installed (or lacks the "
        f"function); install cupy, or compute on the CPU",
        RuntimeWarning,
        stacklevel=4,
    )
