"""`Buffer`, a block of device memory that arrays share; the last of them returns it to its pool."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..driver.base import Device
from .pool import FreeList, get_pool


class Buffer:
    """`nbytes` of memory of `device` at address `ptr`, which is never 0 for pyarray's own memory.

    Buffers come from `allocate` and `wrap`, never from a call of the class. `owner` is None for pyarray's own
    memory; otherwise it is the foreign object that the memory belongs to, kept alive. `previous` is set only
    in buffers of arrays that grew: the old buffer, which a launch of another thread may still use.
    `before_write` is set only in buffers whose owner wants to know of writes: it is called before each.
    """

    __slots__ = ("__weakref__", "_free_list", "before_write", "device", "nbytes", "owner", "previous", "ptr")

    device: Device
    ptr: int
    nbytes: int
    owner: Any
    previous: Buffer
    before_write: Callable[[], None]
    _free_list: FreeList | None

    @staticmethod
    def allocate(device: Device, nbytes: int) -> Buffer:
        """A new block; its contents are indeterminate. Size 0 gives a valid address, too.

        Raises `ValueError` for a negative size, `TypeError` for what is no integer, and `OutOfMemoryError`.

        >>> from pyarray.driver.base import get_device
        >>> Buffer.allocate(get_device("cpu"), 1024).nbytes
        1024
        """
        # Each temporary array comes here: the common case is a look-up, a pop and five stores. There is no
        # __init__, whose call would take as long.
        try:
            free_list = device.pool[nbytes]
            ptr = free_list.pop()
        except (AttributeError, IndexError):
            free_list = get_pool(device).classes[nbytes]
            ptr = free_list.pool.allocate(free_list)
        self = Buffer()
        self.device = device
        self.ptr = ptr
        self.nbytes = nbytes
        self.owner = None
        self._free_list = free_list
        return self

    @staticmethod
    def wrap(device: Device, ptr: int, nbytes: int, owner: Any) -> Buffer:
        """Memory that belongs to `owner`, kept alive with the buffer. `ptr` may be 0 if `nbytes` is 0."""
        if nbytes < 0 or ptr < 0 or (ptr == 0 and nbytes):
            raise ValueError(f"no such memory: {nbytes} bytes at address {ptr:#x}")
        self = Buffer()
        self.device = device
        self.ptr = ptr
        self.nbytes = nbytes
        self.owner = owner
        self._free_list = None
        return self

    def __del__(self) -> None:
        free_list = self._free_list
        if free_list is not None:
            free_list.append(self.ptr)

    def __repr__(self) -> str:
        owned = "" if self.owner is None else f", owner={type(self.owner).__name__}"
        return f"Buffer({self.device}, {self.nbytes} bytes at {self.ptr:#x}{owned})"


class EscapedBuffer(Buffer):
    """A buffer whose address has escaped: its users neither keep the buffer alive nor say when they are done with
    the address, as with `__array_interface__`."""

    __slots__ = ()
