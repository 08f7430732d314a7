"""DLPack: arrays from and to other libraries without a copy. The protocol is https://dmlc.github.io/dlpack,
versions 0.x and 1.x.

>>> import numpy as np
>>> a = from_dlpack(np.arange(3.0))
>>> np.from_dlpack(a)
array([0., 1., 2.])
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from pyarray import array_host, dtypes, shapes
from pyarray._runtime import lib
from pyarray.array import MAX_NDIM, STRIDED, WATCHED, ndarray, operations, type_key, unchecked_array
from pyarray.array_convert import as_base_class
from pyarray.driver.base import Device, get_device
from pyarray.memory.buffer import Buffer
from pyarray.memory.host_access import numpy_view, on_host, share
from pyarray.tensors import check_values, counter, gpu_stream, is_recorded, is_tensor, plain_export, refused
from pyarray.typing import DeviceLike, SupportsDLPack

VERSION = (1, 1)
READ_ONLY, IS_COPIED = 1, 2

_KIND_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_CODES = {row: (4 if row is dtypes.bfloat16 else _KIND_CODES[row.kind], 8 * row.itemsize) for row in dtypes.ALL}
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

_export, _read, _claim = (
    ctypes.cast(lib.pa_dlpack_function(k), ctypes.py_object).value for k in range(3)
)  # csrc/runtime/dlpack.c


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
    if waiting is not None and source.device is a.device:
        array_host.before_use(source)
        if waiting != a.device.driver.stream():
            a.device.driver.stream_wait(waiting, a.device.driver.current_stream())
    if not source._writeable and not versioned:
        raise BufferError(
            "a read-only array is exported only to consumers that pass max_version=(1, 0); pass copy=True"
        )
    share(source)
    flags = (0 if source._writeable else READ_ONLY) | (IS_COPIED if source is not a else 0)
    ptr, steps = source._ptr if source._size else 0, _element_strides(source)
    device_and_type = *dlpack_device(source), *_CODES[source._dtype]
    return _export(source._buffer, ptr, versioned, flags, *device_and_type, source._shape, steps)


def _on_asked_device(a: ndarray, dl_device: Any, copy: bool | None) -> ndarray:
    if dl_device is None or tuple(map(int, dl_device)) == dlpack_device(a):
        return a
    if tuple(map(int, dl_device)) != (1, 0):
        raise BufferError(f"{a.device} exports to itself and to the CPU, (1, 0), not to DLPack device {dl_device}")
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


def _element_strides(a: ndarray) -> tuple[int, ...] | None:
    """Strides in elements, 0 for axes without a second one; None for those of a fresh array."""
    if not a._key & STRIDED:
        return None
    itemsize = a.itemsize
    steps = tuple([s if n > 1 else 0 for n, s in zip(a._shape, a._strides, strict=True)])
    if min(steps) < 0:
        raise BufferError(
            f"strides {a._strides} hold a negative one, which not every consumer survives; pass copy=True"
        )
    if any(step % itemsize for step in steps):
        raise BufferError(f"strides {a._strides} are no multiples of {a._dtype}'s {itemsize} bytes; pass copy=True")
    return tuple([step // itemsize for step in steps])


# in


def from_dlpack(x: SupportsDLPack, /, *, device: DeviceLike = None, copy: bool | None = None) -> ndarray:
    """An array on the memory of `x`, anything with `__dlpack__` (a NumPy array, a torch tensor) or a capsule
    of it.

    The memory stays alive as long as the array. `device` and `copy=True` copy where needed; `copy=False`
    raises `BufferError` instead. Read-only memory gives a read-only array. Raises `BufferError` for dtypes
    and devices that pyarray lacks, and for a capsule that was consumed before; `TypeError` for what has no
    `__dlpack__`.

    >>> from_dlpack(np.zeros((2, 2), np.float32)).dtype
    dtype('float32')
    """
    target = None if device is None else get_device(device)
    if type(x) is np.ndarray and target is None and not copy and (shared := shared_numpy(x)) is not None:
        return shared
    if type(x).__name__ == "PyCapsule":
        result, copied = _import(x), False
    elif is_tensor(x):
        result, copied = _from_tensor(x, target, copy)
    else:
        source, request = _negotiate(x, target)
        capsule, copied = _request(x, source, request, copy)
        result = _import(capsule)
    if target is not None and result.device is not target:
        if copy is False:
            raise BufferError(f"memory on {result.device} goes to {target} by a copy; pass copy=None or copy=True")
        return result.to_device(target)
    return result.copy() if copy and not copied else result


def _from_tensor(x: Any, target: Device | None, copy: bool | None) -> tuple[ndarray, bool]:
    """The array of a tensor of torch, and whether it is a copy already. Autograd is told of writes."""
    check_values(x)
    if x.requires_grad and not is_recorded(x):
        x = x.detach()  # which has its counter of writes, too
    copied, request, capsule = False, None, None
    try:
        if target is None and copy is None and _in_order(x):
            if (export := plain_export(x)) is not None:
                return _import(export(x), counter(x)), False
            try:
                capsule = x.__dlpack__(stream=-1, max_version=VERSION)
            except TypeError:  # a torch that knows no versions
                capsule = x.__dlpack__(stream=-1)
        if capsule is None:
            source, request = _negotiate(x, target)
            capsule, copied = _request(x, source, request, copy)
    except (BufferError, RuntimeError, ValueError) as error:
        raise refused(x, error) from None
    return _import(capsule, None if copied or request else counter(x)), copied


def _in_order(x: Any) -> bool:
    """Whether what the current stream gets comes after what torch did with its tensor so far, without a word:
    on the CPU, and where torch is in the same stream. Then torch need not be asked for the device, which
    takes as long as the rest."""
    if x.is_cpu:
        return True
    producer_stream = gpu_stream(x)
    return producer_stream is not None and _device(*producer_stream[0]).driver.current_stream() == producer_stream[1]


def _negotiate(x: Any, target: Device | None) -> tuple[Device, tuple[int, int] | None]:
    """The producer's device, and the device to ask it for: only the CPU, which all can reach, when it is
    elsewhere."""
    if not (hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__")):
        raise TypeError(f"from_dlpack takes an object with __dlpack__, got {type(x).__name__}; try pyarray.asarray")
    if isinstance(x, np.ma.MaskedArray):
        as_base_class(x)  # says what to do instead
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
        raise BufferError(f"DLPack device type {int(code)} is none of {', '.join(_DEVICES)}; copy to the CPU first")
    kind = _KIND_OF[code]
    device = _places[int(code), index] = get_device(kind if kind == "cpu" else f"{kind}:{index}")
    return device


_places: dict[tuple[int, int], Device] = {}  # a memo: get_device takes a text


def _request(x: Any, source: Device, request: tuple[int, int] | None, copy: bool | None) -> tuple[Any, bool]:
    """A capsule of `x`, and whether it holds a copy already. Producers before 1.0 know none of the newer
    arguments."""
    if source.code == 0 and request is None and copy is None:
        try:
            return x.__dlpack__(max_version=VERSION), False
        except TypeError:
            return x.__dlpack__(), False
    stream = {} if source.code == 0 else {"stream": source.driver.stream()}
    wishes: dict[str, Any] = {"max_version": VERSION}
    if request is not None:
        wishes["dl_device"] = request
    if copy is not None:
        wishes["copy"] = copy
    try:
        with source.driver.current():  # torch exports only from its current device
            return x.__dlpack__(**stream, **wishes), bool(copy)
    except TypeError:
        if request is not None:
            raise BufferError(
                f"{type(x).__name__} can't export to the CPU; move it there with its own functions"
            ) from None
        return x.__dlpack__(**stream), False


class _Layout(NamedTuple):
    """What an array on a tensor is, but for its address. From the first element to the lowest it is `low`
    bytes, which are no more than 0, and from there to the end of the last `nbytes`."""

    device: Device
    low: int
    nbytes: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    size: int
    dtype: dtypes.DType
    key: int
    writeable: bool
    alignment: int


_layouts: dict[Any, _Layout] = {}  # by what `_read` gives: a memo, since most tensors look like others before


def _import(capsule: Any, before_write: Callable[[], None] | None = None) -> ndarray:
    """The array of a capsule, which is marked as consumed once nothing can fail any more. `before_write` is to be
    called before the memory is written."""
    read = _read(capsule)
    if read is None:
        raise _not_to_be_read(capsule)
    ptr, fields = read
    layout = _layouts.get(fields) or _layout(fields)
    if not ptr and layout.size:
        what = f"the tensor of shape {layout.shape} has no memory"
        raise BufferError(f"{what}; only one without elements may have a NULL pointer")
    owner = _claim(capsule)
    if owner is None:  # another thread or a signal handler was faster
        raise _not_to_be_read(capsule)
    result = _on_memory(ptr, layout, owner)
    if before_write is not None and layout.writeable:
        result._buffer.before_write = before_write
        result._key |= WATCHED
    return result if ptr % layout.alignment == 0 or not layout.size else _aligned(result)


def _on_memory(ptr: int, layout: _Layout, owner: Any) -> ndarray:
    device, low, nbytes, shape, strides, size, dtype, key, _, _ = layout
    return unchecked_array(Buffer.wrap(device, ptr + low, nbytes, owner), shape, strides, size, dtype, key, ptr)


def shared_numpy(x: np.ndarray[Any, Any]) -> ndarray | None:
    """An array on the memory of a NumPy array of the exact class, on the CPU. None where that can't be, or
    where DLPack has no word for its type."""
    try:
        ptr, fields = _read(x.__dlpack__(max_version=VERSION))
        layout = _layouts.get(fields) or _layout(fields)
    except (BufferError, TypeError):  # TypeError: NumPy before 2.1
        return None
    return None if ptr % layout.alignment else _on_memory(ptr, layout, x)


def _not_to_be_read(capsule: Any) -> BufferError:
    used = '"used_dltensor' in repr(capsule)
    what = "was consumed before; ask its producer for another" if used else "is none of DLPack's"
    return BufferError(f"the capsule {what}")


def _layout(fields: Any) -> _Layout:
    """The layout that `_read` tells. Raises `BufferError` for what no array can be."""
    if len(fields) == 2:
        raise BufferError(
            f"the producer speaks DLPack {fields[0]}.{fields[1]}, this reads 1.x and before; ask for "
            f"max_version={VERSION}"
        )
    _, readonly, kind, index, code, bits, lanes, ndim, shape, steps = fields
    dtype, device = _dtype(code, bits, lanes), _device(kind, index)
    if not 0 <= ndim <= MAX_NDIM:
        raise BufferError(f"an array has 0 to {MAX_NDIM} dimensions, the tensor has {ndim}; reshape it first")
    if shape is None:
        raise BufferError(f"the tensor has {ndim} dimensions and no shape; its producer is broken")
    if min(shape, default=0) < 0:
        raise BufferError(f"sizes of a shape are 0 or more, the tensor has {shape}")
    itemsize = dtype.itemsize
    fresh_strides = shapes.contiguous_strides(shape, itemsize)
    strides = fresh_strides if steps is None else tuple([n * itemsize for n in steps])
    contiguous, size = shapes.contiguity_and_size(shape, strides, itemsize)
    if size >= 1 << 63:
        raise BufferError(f"an array has at most 2**63 - 1 elements, the tensor's shape is {shape}")
    low, high = (0, size * itemsize) if contiguous else shapes.byte_bounds(shape, strides, itemsize)
    writeable = not readonly and (contiguous or not shapes.repeats(shape, strides))
    key = type_key(dtype, ndim, not contiguous, writeable, device)
    if len(_layouts) >= 4096:
        _layouts.clear()
    layout = _layouts[fields] = _Layout(
        device, low, high - low, shape, strides, size, dtype, key, writeable, dtype.numpy.alignment
    )
    return layout


def _dtype(code: int, bits: int, lanes: int) -> dtypes.DType:
    if lanes != 1:
        raise BufferError(f"dtypes of {lanes} lanes are not supported; a vector's elements are a trailing axis")
    try:
        return _DTYPES[code, bits]
    except KeyError:
        names = ", ".join(map(str, _CODES))
        raise BufferError(f"DLPack dtype code {code} of {bits} bits is not supported; there are {names}") from None


def _aligned(a: ndarray) -> ndarray:
    if not on_host(a):
        raise BufferError(f"the tensor's address {a._ptr:#x} is not aligned for {a._dtype}; copy it first")
    return operations["array"](np.array(numpy_view(a)), device=a.device)


operations.update(dlpack=to_capsule, dlpack_device=dlpack_device, from_dlpack=from_dlpack, shared_numpy=shared_numpy)
