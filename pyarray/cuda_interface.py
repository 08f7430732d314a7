"""`__cuda_array_interface__`, version 3, in and out: memory of NVIDIA GPUs for libraries without DLPack, like
Numba's. https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

import numpy as np

from pyarray import shapes
from pyarray.array import STRIDED, ndarray
from pyarray.array_convert import array_on_memory
from pyarray.array_host import before_use
from pyarray.driver.base import Device, get_device
from pyarray.dtypes import EXTENSIONS, DType, asdtype

KIND, VERSION = "cuda", 3


def interface(a: ndarray) -> dict[str, Any]:
    """`a.__cuda_array_interface__`. Its `stream` is the one that is current here. Raises `AttributeError` on
    other devices, and for bfloat16 and float8, which have no name there: DLPack has one."""
    if a.device.kind != KIND or a._dtype in EXTENSIONS:
        raise AttributeError(
            f"no __cuda_array_interface__: it is for arrays of NumPy's dtypes on {KIND} devices, this is "
            f"{a._dtype} on {a.device}; other libraries take it by DLPack"
        )
    before_use(a)
    return {
        "version": VERSION,
        "shape": a._shape,
        "strides": a._strides if a._key & STRIDED else None,
        "typestr": a._dtype.numpy.str,
        "data": (a._ptr if a._size else 0, not a._writeable),
        "stream": a.device.driver.stream(),
    }


def from_interface(x: Any) -> ndarray:
    """An array on the memory of `x`, which stays alive as long. What the current stream gets from now on
    comes after what `x`'s stream got so far; the host doesn't wait.

    Raises `BufferError` for a mask, for a newer version, for streams, sizes and addresses that can't be, and
    for memory of no CUDA device; `TypeError` for a dtype that pyarray lacks; `DeviceError` without CUDA.
    """
    interface_dict = x.__cuda_array_interface__
    try:
        version, strides = interface_dict["version"], interface_dict.get("strides")
        shape = tuple(map(operator.index, interface_dict["shape"]))
        strides = strides if strides is None else tuple(map(operator.index, strides))
        ptr, readonly = operator.index(interface_dict["data"][0]), bool(interface_dict["data"][1])
        typestr = np.dtype(interface_dict["typestr"])
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise _refused(x, f"is not as version {VERSION} asks ({type(error).__name__}: {error})") from None
    if version > VERSION:
        raise _refused(x, f"has version {version}, this reads {VERSION} and before; use DLPack")
    if interface_dict.get("mask") is not None:
        raise _refused(x, "has a mask, and arrays have none; fill the masked elements, and export without it")
    dtype = _dtype(x, typestr)
    strides = shapes.contiguous_strides(shape, dtype.itemsize) if strides is None else strides
    if len(strides) != len(shape) or min(shape, default=0) < 0:
        raise _refused(x, f"has shape {shape} with strides {strides}")
    if ptr % dtype.numpy.alignment:
        raise _refused(x, f"has the address {ptr:#x}, which is not aligned for {dtype}; copy it first")
    device = _device(x, ptr, 0 not in shape)
    _wait(x, device, interface_dict)
    return array_on_memory(device, ptr, shape, strides, dtype, not readonly, x)


def _dtype(x: Any, typestr: np.dtype[Any]) -> DType:
    if not typestr.isnative:
        raise _refused(x, f"has the type {typestr.str} in the other byte order; swap its bytes first")
    return asdtype(typestr)


def _device(x: Any, ptr: int, used: bool) -> Device:
    first = get_device(f"{KIND}:0")
    if not used:
        return first
    index = first.driver.device_of_pointer(ptr) if ptr > 0 else None
    if index is None:
        raise _refused(x, f"has the address {ptr:#x}, which is no memory of a {KIND} device")
    return get_device(f"{KIND}:{index}")


def _wait(x: Any, device: Device, interface_dict: Mapping[str, Any]) -> None:
    stream = interface_dict.get("stream")
    if stream is None:  # the producer has seen to it
        return
    if isinstance(stream, bool) or not isinstance(stream, int) or stream <= 0:
        raise _refused(x, f"has stream {stream!r}; legal are None, 1 (default), 2 (per thread), an address")
    driver = device.driver
    if stream != driver.stream():
        driver.stream_wait(driver.current_stream(), stream)


def _refused(x: Any, what: str) -> BufferError:
    return BufferError(f"the __cuda_array_interface__ of {type(x).__name__} {what}")
