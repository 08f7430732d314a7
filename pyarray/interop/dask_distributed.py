"""Serialization of arrays for `distributed`, between processes and to disk, and their sizes.

The family "dask" takes them through host memory; "cuda", which transports between GPUs use, hands over the
memory of arrays on CUDA devices as it is.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..api.numpy.sequences import ascontiguousarray
from ..array import ndarray
from ..array_convert import asarray, asnumpy
from ..driver.stream import current_stream
from ..dtypes import uint8
from ..shapes import stored_shape


def register(protocol: Any) -> None:
    """`protocol` is `distributed.protocol`."""
    protocol.dask_serialize.register(ndarray, to_host_frames)
    protocol.dask_deserialize.register(ndarray, from_host_frames)
    protocol.cuda_serialize.register(ndarray, to_device_frames)
    protocol.cuda_deserialize.register(ndarray, from_device_frames)


def register_size(module: Any) -> None:
    """`module` is `dask.sizeof`, by which dask schedules and spills to disk."""
    module.sizeof.register(ndarray, size_of)


def size_of(a: ndarray) -> int:
    """Bytes of the elements of `a`; elements that share an address (stride 0) count once."""
    return a.itemsize * math.prod(stored_shape(a.shape, a.strides))


def to_host_frames(x: ndarray) -> tuple[dict[str, Any], list[memoryview]]:
    """What describes `x`, and its elements in C order: the memory itself of a contiguous CPU array."""
    values = np.ascontiguousarray(asnumpy(x))
    return _header(x), [values.reshape(-1).view(np.uint8).data]


def from_host_frames(header: dict[str, Any], frames: list[Any]) -> ndarray:
    """The array on the device where it was, in the memory of the frame where that is the CPU and may be
    written. Raises `DeviceError` in a process that lacks the device."""
    values = np.ndarray(header["shape"], header["dtype"], frames[0] if frames else None)
    if not values.flags.writeable:  # of what was decompressed to bytes
        values = values.copy()
    return asarray(values, device=header["device"])


def to_device_frames(x: ndarray) -> tuple[dict[str, Any], list[ndarray]]:
    """The same with the elements in device memory. Raises `NotImplementedError` for arrays of other devices,
    for which distributed takes the next family then."""
    if x.device.kind != "cuda":
        raise NotImplementedError(f"serializer 'cuda' takes arrays on CUDA devices, got one on {x.device}")
    packed = ascontiguousarray(x).reshape(-1).view(uint8)
    current_stream(x.device).synchronize()  # the transport knows no stream
    return _header(x), [packed]


def from_device_frames(header: dict[str, Any], frames: list[Any]) -> ndarray:
    """The array in the memory of the frame."""
    return asarray(frames[0]).view(header["dtype"]).reshape(header["shape"])


def _header(x: ndarray) -> dict[str, Any]:
    return {"shape": x.shape, "dtype": str(x.dtype), "device": str(x.device)}
