"""Arguments that are other libraries' arrays: shared where the device can use their memory, else copied to the
device before the launch and back after it, as directions say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import shapes
from .._core import foreign_uses
from ..array import WATCHED, empty, ndarray
from ..array_convert import array_on_numpy, as_base_class, asnumpy, from_foreign
from ..array_hooks import is_foreign
from ..driver.base import Device, get_device
from ..dtypes import asdtype
from ..errors import with_article
from ..locks import new_lock
from ..memory.host_access import address, on_host
from ..memory.host_access import download as download_from
from ..memory.host_access import upload as upload_to
from ..tensors import is_recorded, is_tensor
from .signature import Parameter, Unread

_counts: Counter[str] = Counter()
_lock = new_lock()
_NAMES = ("uploads", "uploaded_bytes", "downloads", "downloaded_bytes")
_NUMBERS = frozenset((bool, int, float, complex))
_READS, _WRITES = ("IN", "INOUT"), ("OUT", "INOUT")


def transfer_info() -> dict[str, int]:
    """What was copied, in this process so far, for NumPy arrays and tensors that were passed to kernels:
    `uploads` and `downloads` with their `uploaded_bytes` and `downloaded_bytes`. Memory that is shared, as
    it is on the CPU mostly, counts nothing there: `read_in_place` is how many arguments of warm calls were used as they
    are, without an array of pyarray's for each.

    >>> transfer_info()["uploads"] >= 0
    True
    """
    with _lock:
        return {name: _counts[name] for name in _NAMES} | {"read_in_place": foreign_uses()}


@dataclass(frozen=True, eq=False)
class DeviceCopy:
    """A host array and its copy on the device for one launch."""

    name: str
    host: np.ndarray[Any, Any]
    array: ndarray
    before_write: Callable[[], None] | None = None  # called before the host array is written

    def upload(self) -> None:
        if self.array.size:
            packed = np.ascontiguousarray(self.host, dtype=self.array._dtype.numpy)
            upload_to(self.array.device, self.array._ptr, packed)
            _count("upload", packed.nbytes)

    def download(self) -> None:
        if self.array.size:
            packed = np.empty(self.host.shape, self.array._dtype.numpy)
            download_from(self.array.device, self.array._ptr, packed)
            if self.before_write is not None:
                self.before_write()
            self.host[...] = packed
            _count("download", packed.nbytes)


def import_arguments(
    kernel: str, leaves: Sequence[Parameter], values: Sequence[Any]
) -> tuple[tuple[Any, ...], tuple[DeviceCopy, ...]]:
    """The values with arrays in place of what other libraries made, and what is to be copied.

    Raises `TypeError` and `ValueError`, which name the parameter, for what can't be an array.
    """
    imported, hosts, device = list(values), [], None
    for k, value in enumerate(values):
        if type(value) in _NUMBERS:
            continue
        if not isinstance(value, ndarray):
            x = imported[k] = _imported(kernel, leaves[k], value)
            if isinstance(x, np.ndarray):
                if not leaves[k].constant:
                    hosts.append(k)
                continue
            if x is value:
                continue
            if on_host(x):
                hosts.append(k)
                continue
            value = x
        device = device or value.device
    if not hosts:
        return tuple(imported), ()
    device = device or get_device(None)
    copied: dict[Any, DeviceCopy] = {}
    for k in hosts:
        imported[k] = _to_device(kernel, leaves[k].name, imported[k], device, copied)
    return tuple(imported), tuple(copied.values())


def _imported(kernel: str, p: Parameter, value: Any) -> Any:
    """Tensors as arrays on the same memory; NumPy's arrays and everything else as they are."""
    if isinstance(value, (ndarray, np.generic)) or p.constant or isinstance(p.annotation, Unread):
        return value
    if isinstance(value, np.ndarray):
        try:
            return as_base_class(value)
        except TypeError as error:
            raise TypeError(f"{kernel}(): {p.name!r} can't be used: {error}") from None
    if not is_foreign(value) or isinstance(value, type):
        return value
    if getattr(value, "requires_grad", False) is True and (not is_tensor(value) or is_recorded(value)):
        what = f"{p.name!r} is a tensor that requires grad, and no gradient flows through a kernel"
        raise ValueError(f"{kernel}(): {what}; pass .detach() of it, or call it under torch.no_grad()")
    try:
        return from_foreign(value)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        what = f"{p.name!r} is {with_article(type(value).__name__)} that can't be used"
        raise kind(f"{kernel}(): {what}: {error}") from error


def _to_device(kernel: str, name: str, value: Any, device: Device, copied: dict[Any, DeviceCopy]) -> ndarray:
    """The array on `device` for a host array: shared if it can be, else a new one, for each memory once."""
    if device.code == 0 and isinstance(value, ndarray):
        return value
    host = value if isinstance(value, np.ndarray) else asnumpy(value)
    native = host.dtype if host.dtype.isnative else host.dtype.newbyteorder("=")
    try:
        kind = asdtype(native)
    except TypeError:
        what = f"{name!r} is an array of {host.dtype}, which kernels don't have"
        raise TypeError(f"{kernel}(): {what}; convert it with .astype(...)") from None
    if device.code == 0 and host.dtype.isnative and host.flags.aligned:
        return array_on_numpy(host, kind, device)
    key = (address(host), host.shape, host.strides, host.dtype.str)
    if key not in copied:
        array = empty(host.shape, kind, device)
        frozen = not host.flags.writeable or shapes.repeats(host.shape, host.strides)
        if frozen or (isinstance(value, ndarray) and not value.flags.writeable):
            array.setflags(write=False)
        before_write = value._buffer.before_write if isinstance(value, ndarray) and value._key & WATCHED else None
        copied[key] = DeviceCopy(name, host, array, before_write)
    return copied[key].array


def upload(kernel: str, copied: Sequence[DeviceCopy], named: Mapping[str, Any], directions: Mapping[str, str]) -> None:
    """Copy what the kernel reads. Raises `ValueError` where two host arrays overlap and one is written: on
    the device they don't."""
    for c in copied:
        directions_of = set(_directions_of(c, named, directions))
        for other in copied:
            if c is not other and directions_of & set(_WRITES) and _overlap(c.host, other.host):
                what = f"{c.name!r} is written and overlaps {other.name!r} in host memory"
                raise ValueError(f"{kernel}(): {what}; make one array of both with pa.asarray, or copy one")
        if directions_of & set(_READS):
            c.upload()


def download(copied: Sequence[DeviceCopy], named: Mapping[str, Any], directions: Mapping[str, str]) -> None:
    """Copy back what the kernel has written."""
    for c in copied:
        if set(_directions_of(c, named, directions)) & set(_WRITES):
            c.download()


def _directions_of(c: DeviceCopy, named: Mapping[str, Any], directions: Mapping[str, str]) -> Iterator[str]:
    return (directions.get(name, "UNUSED") for name, value in named.items() if value is c.array)


def _overlap(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    bounds = (shapes.byte_bounds(x.shape, x.strides, x.itemsize) for x in (a, b))
    (low, high), (first, last) = bounds
    address_a, address_b = address(a), address(b)
    return shapes.may_overlap((address_a + low, address_a + high), (address_b + first, address_b + last))


def _count(what: str, nbytes: int) -> None:
    with _lock:
        _counts[f"{what}s"] += 1
        _counts[f"{what}ed_bytes"] += nbytes
