"""A block of device memory. Arrays share it; it goes back to its pool when the last of them is gone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..driver.base import Device
from .pool import FreeList, get_pool


class Buffer:
    """`nbytes` of memory of `device` at address `ptr`, which is never 0 for pyarray's own memory.

    Buffers come from `allocate` and `wrap`, never from a call of the class. `owner` is None for pyarray's own
    memory; otherwise it is the foreign object that the memory belongs to, kept alive. `earlier` is set only
    in buffers of arrays that grew: the one before, which a launch of another thread may still use. `written`
    is set only in buffers whose owner wants to know of writes: it is called before each.
    """

    __slots__ = ("__weakref__", "_home", "device", "earlier", "nbytes", "owner", "ptr", "written")

    device: Device
    ptr: int
    nbytes: int
    owner: Any
    earlier: Buffer
    written: Callable[[], None]
    _home: FreeList | None

    @staticmethod
    def allocate(device: Device, nbytes: int) -> Buffer:
        """A new block; its contents are indeterminate. Size 0 gives a valid address, too.

        Raises `ValueError` for a negative size, `TypeError` for what is no integer, and `OutOfMemoryError`.

        >>> from pyarray.driver.base import get_device
        >>> Buffer.allocate(get_device("cpu"), 1024).nbytes
        1024
        """
        # Each temporary array passes here, so the common case is a look-up, a pop and five stores. There is
        # no __init__: its call would cost as much as all of them.
        try:
            home = device.pool[nbytes]
            ptr = home.pop()
        except (AttributeError, IndexError):
            home = get_pool(device).classes[nbytes]
            ptr = home.pool.allocate(home)
        self = Buffer()
        self.device = device
        self.ptr = ptr
        self.nbytes = nbytes
        self.owner = None
        self._home = home
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
        self._home = None
        return self

    def __del__(self) -> None:
        home = self._home
        if home is not None:
            home.append(self.ptr)

    def __repr__(self) -> str:
        owned = "" if self.owner is None else f", owner={type(self.owner).__name__}"
        return f"Buffer({self.device}, {self.nbytes} bytes at {self.ptr:#x}{owned})"


class GivenOut(Buffer):
    """A buffer becomes one when its address goes to somebody who doesn't hold the buffer, and doesn't say
    when the address is no longer used: as `__array_interface__` works."""

    __slots__ = ()
