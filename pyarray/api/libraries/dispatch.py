"""Dispatches to NumPy on CPUs and to the vendor's library on GPUs: decompositions and Fourier transforms.

On the CPU they are NumPy's (LAPACK, pocketfft), on the arrays' own memory. On a GPU they are the vendor's
(docs/design/libraries.md), on the array's stream; nothing goes through the host.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...array import ndarray
from ...array_convert import asarray, asnumpy
from ...dtypes import float64
from ...jit.external_call import call_library
from ...jit.launch_state import unobserved
from .. import libraries
from ..core.ufunc import as_operands, common_device
from ..standard.statistical import as_operand


def promoted_for_library(name: str, *values: Any) -> list[ndarray]:
    """Arrays of types that the libraries compute in: bools and integers become float64, half floats float32.

    Raises `TypeError` for what is no array or number, `ValueError` for arrays on several devices.
    """
    arrays = [as_operand(name, x, "biufc") for x in as_operands(name, values)]
    common_device(name, arrays)
    return [_promote(x) for x in arrays]


def _promote(x: ndarray) -> ndarray:
    if x._dtype.kind in "biu":
        return x.astype(float64)
    return x.astype(x._dtype.arithmetic, copy=False)


def _values(x: ndarray) -> np.ndarray[Any, Any]:
    """The elements as a NumPy array. The null device computes nothing: its zeros, which are singular matrices, are
    replaced by identity matrices."""
    if x.device.driver.computes or x.ndim < 2:
        return asnumpy(x)
    return np.broadcast_to(np.eye(*x.shape[-2:], dtype=x._dtype.numpy), x.shape)


def library(part: str, name: str, *arrays: ndarray, **options: Any) -> Any:
    """Calls `part`.`name` of the device's library ("linalg", "fft") with one or two arrays; returns an array on
    their device, or a tuple of them. Raises what NumPy raises, and `DeviceError` where the library is
    missing."""
    device = common_device(name, arrays)
    foreign = device.kind in libraries.bindings.VENDORS
    owner, version = libraries.bindings.package(device.kind) if foreign else ("numpy", np.__version__)

    def compute() -> Any:
        if foreign:
            with unobserved():  # the library's own kernels, around the vendor's
                vendor = libraries.linalg if part == "linalg" else libraries.transforms
                result = vendor.compute(name, arrays, options)
        else:
            with np.errstate(all="ignore"):
                result = getattr(getattr(np, part), name)(*map(_values, arrays), **options)
        if isinstance(result, tuple):
            return tuple(asarray(each, device=device) for each in result)
        return asarray(result, device=device)

    args = dict(zip("ab", arrays, strict=False)) | options
    return call_library(f"{owner}.{part}.{name}", version, device, args, compute)
