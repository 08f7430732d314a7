"""DLPack: arrays from and to other libraries without a copy. The protocol is https://dmlc.github.io/dlpack,
versions 0.x and 1.x.

>>> import numpy as np
>>> a = from_dlpack(np.arange(3.0))
>>> np.from_dlpack(a)
array([0., 1., 2.])
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np

from pyarray import array_host, dtypes, shapes
from pyarray._runtime import ffi, lib
from pyarray.array import MAX_NDIM, ndarray, operations
from pyarray.array_convert import window
from pyarray.driver.base import Device, get_device
from pyarray.memory.touch import touch

VERSION = (1, 1)
READ_ONLY, IS_COPIED = 1, 2

_KIND_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_CODES = {
    row: (4 if row is dtypes.bfloat16 else _KIND_CODES[row.kind], 8 * row.itemsize) for row in dtypes.ALL
}
_DTYPES = {code: row for row, code in _CODES.items()}


class _DeviceRow(NamedTuple):
    code: int  # DLPack's device type
    imports: tuple[int, ...]  # device types whose memory this kind can use in place; 3 and 11 are pinned
    legal: str  # streams a consumer may name, in words
    default: int | None  # what None means; None: this kind has no streams
    invalid: tuple[int, ...]


# PyTorch's and CuPy's ROCm builds call their device "cuda", but say 10 here, and count streams as ROCm does.
_DEVICES = {
    "cpu": _DeviceRow(1, (1, 3, 11), "None", None, ()),
    "cuda": _DeviceRow(2, (2, 13), "None, -1, 1 (default), 2 (per thread) or a stream's address", 1, (0,)),
    "hip": _DeviceRow(10, (10,), "None, -1, 0 (default) or a stream's address", 0, (1, 2)),
    "null": _DeviceRow(12, (12,), "None, -1, 0 or a stream's address", 0, ()),
}
_KIND_OF = {code: kind for kind, row in _DEVICES.items() for code in row.imports}

_api: Any = ctypes.pythonapi
_make_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
    ("PyCapsule_New", _api)
)
_is_capsule = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)(("PyCapsule_IsValid", _api))
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)(("PyCapsule_SetName", _api))


def _address(pointer: Any) -> int:
    return int(ffi.cast("uintptr_t", pointer))


_NAMES = tuple(_address(lib.pa_dlpack_names[k]) for k in range(4))  # by versioned + 2 * used
_FREE = _address(ffi.addressof(lib, "pa_dlpack_capsule_free"))


# out


def dlpack_device(a: ndarray) -> tuple[int, int]:
    """`a.__dlpack_device__()`: DLPack's device type and the device's index."""
    return _DEVICES[a.device.kind].code, a.device.index


def to_capsule(a: ndarray, stream: Any, max_version: Any, dl_device: Any, copy: bool | None) -> Any:
    """`a.__dlpack__(...)`: a capsule that shares the memory of `a`, whose buffer it keeps alive, unless a
    copy is asked for or needed.

    What the current stream got so far comes before what the consumer's `stream` gets from now on; the host
    doesn't wait. -1: the consumer sees to that itself. The capsule has the versioned layout when the
    consumer's `max_version` is (1, 0) or more. Raises `BufferError` for a device the array can't go to,
    `copy=False` where only a copy can, a negative stride, and a read-only array for a consumer before 1.0;
    `ValueError` for a stream that this kind of device doesn't have.
    """
    waiting = consumer_stream(a.device, stream)
    versioned = max_version is not None and max_version[0] >= 1
    source = _on_asked_device(a, dl_device, copy)
    if copy and source is a:
        source = a.copy()
    if waiting is not None and source.device is a.device and waiting != a.device.driver.stream():
        a.device.driver.stream_wait(waiting, a.device.driver.current_stream())
    if not source._writeable and not versioned:
        raise BufferError(
            "a read-only array is exported only to consumers that pass max_version=(1, 0); pass copy=True"
        )
    steps = _element_strides(source)
    make = lib.pa_dlpack_new_versioned if versioned else lib.pa_dlpack_new
    tensor = make(id(source._buffer), source.ndim)
    if tensor == ffi.NULL:
        raise MemoryError("no host memory for the description of a DLPack tensor")
    if versioned:
        tensor.version.major, tensor.version.minor = VERSION
        tensor.flags = (0 if source._writeable else READ_ONLY) | (IS_COPIED if source is not a else 0)
    _describe(tensor.dl_tensor, source, steps)
    return _make_capsule(_address(tensor), _NAMES[versioned], _FREE)


def _on_asked_device(a: ndarray, dl_device: Any, copy: bool | None) -> ndarray:
    if dl_device is None or tuple(map(int, dl_device)) == dlpack_device(a):
        return a
    if tuple(map(int, dl_device)) != (1, 0):
        raise BufferError(
            f"{a.device} exports to itself and to the CPU, (1, 0), not to DLPack device {dl_device}"
        )
    if copy is False:
        raise BufferError(f"an array on {a.device} goes to the CPU by a copy; pass copy=None or copy=True")
    return a.to_device("cpu")


def consumer_stream(device: Device, stream: Any) -> int | None:
    """The stream that is to wait for the current one, None where none is. Raises `ValueError` for what this
    kind of device doesn't have."""
    row = _DEVICES[device.kind]
    if stream is None:
        return row.default
    number = isinstance(stream, int) and not isinstance(stream, bool) and stream >= -1
    if not number or row.default is None or stream in row.invalid:
        raise ValueError(f"stream of a consumer on {device} is {row.legal}; got {stream!r}")
    return None if stream == -1 else int(stream)


def _element_strides(a: ndarray) -> tuple[int, ...]:
    """Strides in elements. Those of axes without a second element are free, so they get the tame value of a
    fresh array."""
    fresh = shapes.contiguous_strides(a._shape, 1)
    if a.flags.c_contiguous:
        return fresh
    itemsize = a.itemsize
    steps = tuple(s if n > 1 else f * itemsize for n, s, f in zip(a._shape, a._strides, fresh, strict=True))
    if min(steps) < 0:
        raise BufferError(
            f"strides {a._strides} hold a negative one, which not every consumer survives; pass copy=True"
        )
    if any(step % itemsize for step in steps):
        raise BufferError(
            f"strides {a._strides} are no multiples of {a.dtype}'s {itemsize} bytes; pass copy=True"
        )
    return tuple(step // itemsize for step in steps)


def _describe(tensor: Any, a: ndarray, steps: tuple[int, ...]) -> None:
    touch.seen = True
    tensor.data = ffi.cast("void *", a._ptr if a._size else 0)
    tensor.device.device_type, tensor.device.device_id = dlpack_device(a)
    tensor.dtype.code, tensor.dtype.bits = _CODES[a._dtype]
    tensor.dtype.lanes = 1
    for axis, (n, step) in enumerate(zip(a._shape, steps, strict=True)):
        tensor.shape[axis] = n
        tensor.strides[axis] = step


# in


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> ndarray:
    """An array on the memory of `x`, anything with `__dlpack__` (a NumPy array, a torch tensor) or a capsule
    of it.

    The memory stays alive as long as the array. `device` and `copy=True` copy where needed; `copy=False`
    raises `BufferError` instead. Read-only memory gives a read-only array. Raises `BufferError` for dtypes
    and devices that pyarray lacks, and for a capsule that was consumed before; `TypeError` for what has no
    `__dlpack__`.

    >>> from_dlpack(np.zeros((2, 2), np.float32)).dtype
    float32
    """
    target = None if device is None else get_device(device)
    if type(x).__name__ == "PyCapsule":
        result = _import(x)
        copied = False
    else:
        source, asked = _negotiate(x, target)
        capsule, copied = _request(x, source, asked, copy)
        result = _import(capsule)
    if target is not None and result.device is not target:
        if copy is False:
            raise BufferError(
                f"memory on {result.device} goes to {target} by a copy; pass copy=None or copy=True"
            )
        return result.to_device(target)
    return result.copy() if copy and not copied else result


def _negotiate(x: Any, target: Device | None) -> tuple[Device, tuple[int, int] | None]:
    """The producer's device, and the device to ask it for: only the CPU, which all can reach, when it is
    elsewhere."""
    if not (hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__")):
        raise TypeError(
            f"from_dlpack takes an object with __dlpack__, got {type(x).__name__}; try pyarray.asarray"
        )
    code, index = x.__dlpack_device__()
    away = target is not None and target.kind == "cpu" and int(code) not in _DEVICES["cpu"].imports
    if away:
        return get_device("cpu"), (1, 0)
    return _device(code, index), None


def _device(code: int, index: int) -> Device:
    try:
        return _places[code, index]
    except KeyError:
        pass
    if code not in _KIND_OF:
        raise BufferError(
            f"DLPack device type {int(code)} is none of {', '.join(_DEVICES)}; copy to the CPU first"
        )
    kind = _KIND_OF[code]
    place = _places[int(code), index] = get_device(kind if kind == "cpu" else f"{kind}:{index}")
    return place


_places: dict[tuple[int, int], Device] = {}  # a memo: get_device takes a text


def _request(x: Any, source: Device, asked: tuple[int, int] | None, copy: bool | None) -> tuple[Any, bool]:
    """A capsule of `x`, and whether it holds a copy already. Producers before 1.0 know none of the newer
    arguments."""
    stream = {} if source.kind == "cpu" else {"stream": source.driver.stream()}
    wishes: dict[str, Any] = {"max_version": VERSION}
    if asked is not None:
        wishes["dl_device"] = asked
    if copy is not None:
        wishes["copy"] = copy
    try:
        with source.driver.current():  # torch exports only from its current device
            return x.__dlpack__(**stream, **wishes), bool(copy)
    except TypeError:
        if asked is not None:
            raise BufferError(
                f"{type(x).__name__} can't export to the CPU; move it there with its own functions"
            ) from None
        return x.__dlpack__(**stream), False


def _import(capsule: Any) -> ndarray:
    """The array of a capsule, which is marked as consumed once nothing can fail any more."""
    read = lib.pa_dlpack_read(id(capsule))
    if read == ffi.NULL:
        used = any(_is_capsule(capsule, name) for name in _NAMES[2:])
        what = "was consumed before; ask its producer for another" if used else "is none of DLPack's"
        raise BufferError(f"the capsule {what}")
    facts = ffi.unpack(read, _FACTS + 16)
    managed, versioned, major, minor, flags, data, offset, kind, index, code, bits, lanes, ndim, strided = (
        facts[:_FACTS]
    )
    if versioned and major != VERSION[0]:
        raise BufferError(
            f"the producer speaks DLPack {major}.{minor}, this reads 1.x and before; ask for "
            f"max_version={VERSION}"
        )
    dtype, device = _dtype(code, bits, lanes), _device(kind, index)
    if not 0 <= ndim <= MAX_NDIM:
        raise BufferError(f"an array has 0 to {MAX_NDIM} dimensions, the tensor has {ndim}; reshape it first")
    if ndim > 8:
        facts = ffi.unpack(read, _FACTS + 2 * ndim)
    shape, itemsize = tuple(facts[_FACTS : _FACTS + ndim]), dtype.itemsize
    if min(shape, default=0) < 0:
        raise BufferError(f"sizes of a shape are 0 or more, the tensor has {shape}")
    if strided:
        strides = tuple([n * itemsize for n in facts[_FACTS + ndim : _FACTS + 2 * ndim]])
    else:
        strides = shapes.contiguous_strides(shape, itemsize)
    if not data and 0 not in shape:
        raise BufferError(
            f"the tensor of shape {shape} has no memory; only one without elements may have a NULL pointer"
        )
    ptr, writeable = data + offset, not (versioned and flags & READ_ONLY)
    free = lib.pa_dlpack_delete_versioned if versioned else lib.pa_dlpack_delete
    _rename(capsule, _NAMES[versioned + 2])
    owner = ffi.gc(ffi.cast(_TYPES[versioned], managed), free)
    result = window(device, ptr, shape, strides, dtype, writeable, owner)
    return result if ptr % dtype.numpy.alignment == 0 or 0 in shape else _aligned(result)


_FACTS = 14  # PA_DLPACK_FACTS
_TYPES = tuple(map(ffi.typeof, ("DLManagedTensor *", "DLManagedTensorVersioned *")))


def _dtype(code: int, bits: int, lanes: int) -> dtypes.DType:
    if lanes != 1:
        raise BufferError(
            f"dtypes of {lanes} lanes are not supported; a vector's elements are a trailing axis"
        )
    try:
        return _DTYPES[code, bits]
    except KeyError:
        names = ", ".join(map(str, _CODES))
        raise BufferError(
            f"DLPack dtype code {code} of {bits} bits is not supported; there are {names}"
        ) from None


def _aligned(a: ndarray) -> ndarray:
    if not array_host.on_host(a):
        raise BufferError(f"the tensor's address {a._ptr:#x} is not aligned for {a.dtype}; copy it first")
    return operations["array"](np.array(array_host.numpy_view(a)), device=a.device)


operations.update(dlpack=to_capsule, dlpack_device=dlpack_device, from_dlpack=from_dlpack)
