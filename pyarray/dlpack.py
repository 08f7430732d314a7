"""DLPack: arrays from and to other libraries without a copy. The protocol is https://dmlc.github.io/dlpack,
versions 0.x and 1.x.

>>> import numpy as np
>>> a = from_dlpack(np.arange(3.0))
>>> np.from_dlpack(a)
array([0., 1., 2.])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from pyarray import config, dtypes
from pyarray._core import (
    capsule_fields,
    export_capsule,
    foreign_array,
    from_capsule,
    register_dlpack,
    register_export,
    register_foreign,
)
from pyarray.array import MAX_NDIM, ndarray, operations
from pyarray.array_convert import as_base_class
from pyarray.array_host import before_use
from pyarray.driver.base import Device, get_device, scoped_default
from pyarray.memory.host_access import numpy_view, on_host
from pyarray.tensors import (
    check_values,
    counter,
    exchange_facts,
    gpu_stream,
    is_recorded,
    is_tensor,
    plain_export,
    refused,
)
from pyarray.typing import DeviceLike, SupportsDLPack

VERSION = (1, 1)

_KIND_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_OWN_CODES = {dtypes.bfloat16: 4, dtypes.float8_e4m3fn: 10, dtypes.float8_e5m2: 12}
_CODES = {row: (_OWN_CODES.get(row, _KIND_CODES[row.kind]), 8 * row.itemsize) for row in dtypes.ALL}


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

# out


def _numbers(device: Device) -> tuple[int, int]:
    return _DEVICES[device.kind].code, device.index


def to_capsule(a: ndarray, stream: Any, max_version: Any, dl_device: Any, copy: bool | None) -> Any:
    """`a.__dlpack__(...)`: a capsule that shares the memory of `a`, whose buffer it keeps alive, unless a
    copy is asked for or needed. `csrc/core/export.c` calls it for what it doesn't do itself.

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
    if source.device is a.device:
        _order(source, waiting)
    return export_capsule(source, versioned, source is not a)


def _before_export(a: ndarray, stream: Any) -> None:
    """Orders what the consumer's `stream` gets from now on behind what the current one got so far."""
    _order(a, consumer_stream(a.device, stream))


def _order(a: ndarray, waiting: int | None) -> None:
    if waiting is not None:
        before_use(a)
        if waiting != a.device.driver.stream():
            a.device.driver.stream_wait(waiting, a.device.driver.current_stream())


def _on_asked_device(a: ndarray, dl_device: Any, copy: bool | None) -> ndarray:
    if dl_device is None or tuple(map(int, dl_device)) == _numbers(a.device):
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
    if target is None and (shared := foreign_array(x)) is not None:
        return shared.copy() if copy else shared
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


def _import(capsule: Any, before_write: Callable[[], None] | None = None) -> ndarray:
    """The array of a capsule, which is marked as consumed once nothing can fail any more. `before_write` is to be
    called before the memory is written."""
    found: ndarray | None = from_capsule(capsule, before_write)
    if found is None:
        raise _not_to_be_read(capsule)
    return found


def _not_to_be_read(capsule: Any) -> BufferError:
    """Why `from_capsule` doesn't take it."""
    read = capsule_fields(capsule)
    if read is None:
        used = '"used_dltensor' in repr(capsule)
        what = "was consumed before; ask its producer for another" if used else "is none of DLPack's"
        return BufferError(f"the capsule {what}")
    ptr, fields = read
    if len(fields) == 2:
        return BufferError(
            f"the producer speaks DLPack {fields[0]}.{fields[1]}, this reads 1.x and before; ask for "
            f"max_version={VERSION}"
        )
    *_, code, bits, lanes, ndim, shape, _ = fields
    if lanes != 1:
        return BufferError(f"dtypes of {lanes} lanes are not supported; a vector's elements are a trailing axis")
    if (code, bits) not in _CODES.values():
        names = ", ".join(map(str, _CODES))
        return BufferError(f"DLPack dtype code {code} of {bits} bits is not supported; there are {names}")
    if not 0 <= ndim <= MAX_NDIM:
        return BufferError(f"an array has 0 to {MAX_NDIM} dimensions, the tensor has {ndim}; reshape it first")
    if shape is None:
        return BufferError(f"the tensor has {ndim} dimensions and no shape; its producer is broken")
    if min(shape, default=0) < 0:
        return BufferError(f"sizes of a shape are 0 or more, the tensor has {shape}")
    if ptr:
        return BufferError(f"an array has at most 2**63 - 1 elements, the tensor's shape is {shape}")
    what = f"the tensor of shape {shape} has no memory"
    return BufferError(f"{what}; only one without elements may have a NULL pointer")


def _aligned(a: ndarray) -> ndarray:
    if not on_host(a):
        raise BufferError(f"the tensor's address {a._ptr:#x} is not aligned for {a._dtype}; copy it first")
    return operations["array"](np.array(numpy_view(a)), device=a.device)


def _current_stream(device: Device) -> int:
    return device.driver.current_stream()


operations["from_dlpack"] = from_dlpack
register_dlpack(get_device("cpu"), _device, _aligned)
register_export(to_capsule, _before_export, _numbers)
register_foreign(get_device("cpu"), exchange_facts, _current_stream, scoped_default, config.overrides)
