"""Freed blocks, kept by size class for the next who asks.

A class is a free list: a plain Python list of addresses, whose `pop` and `append` are atomic, so that the
common path takes no lock. Sizes go up in 64-byte granules to 512 bytes and in 8 steps per power of two above:
at most 12.5 % of a block is unused.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import SupportsIndex

from .. import config
from ..driver.base import Device
from ..errors import OutOfMemoryError
from ..locks import new_lock

GRANULE = 64
# Blocks up to this size return without being counted: the count would cost more than the return itself. They
# are bounded by what was alive at one time, and the next allocation that misses its list counts them.
UNCOUNTED = 64 << 10
LARGEST = 1 << 62


@dataclass(frozen=True)
class Stats:
    """Bytes: `in_use` by arrays, `pooled` for reuse, `held` from the device (the sum), and its `peak`."""

    in_use: int
    pooled: int
    held: int
    peak: int


def class_size(nbytes: int) -> int:
    """Size of the block that serves `nbytes`.

    >>> class_size(0), class_size(65), class_size(1025)
    (64, 128, 1152)
    """
    if nbytes <= 8 * GRANULE:
        return max(GRANULE, (nbytes + GRANULE - 1) & -GRANULE)
    shift = (nbytes - 1).bit_length() - 4
    return (((nbytes - 1) >> shift) + 1) << shift


class FreeList(list[int]):
    """Free blocks of one size class of one pool. `pop` raises `IndexError` when there is none."""

    __slots__ = ("pool", "size")

    def __init__(self, pool: Pool, size: int):
        super().__init__()
        self.pool, self.size = pool, size


class CountedFreeList(FreeList):
    """The free list of a larger class: what would take the pool above its limit goes back to the device."""

    __slots__ = ()

    def append(self, ptr: int) -> None:
        pool = self.pool
        # What is pooled is a part of what is held, so nothing need be summed up while that is below the
        # limit.
        if pool.held <= pool.limit:
            list.append(self, ptr)
        else:
            pool.keep_or_free(self, ptr)


class OrderedFreeList(FreeList):
    """The free list of a device that works on several streams: a block goes to the next who asks in the order
    of the work, after all that was enqueued when it came back."""

    __slots__ = ()

    def append(self, ptr: int) -> None:
        pool = self.pool
        pool.freed[ptr] = pool.device.driver.work_count()
        if pool.held <= pool.limit:
            list.append(self, ptr)
        else:
            pool.keep_or_free(self, ptr)

    def pop(self, index: SupportsIndex = -1) -> int:
        ptr = list.pop(self, index)
        driver = self.pool.device.driver
        work = self.pool.freed.pop(ptr, None)  # None: freed before there were streams
        driver.wait_for(driver.work_count() if work is None else work)
        return ptr


class Pool:
    """Free lists of one device. `classes` maps a number of bytes to its free list.

    >>> from pyarray.driver.base import get_device
    >>> pool = get_pool(get_device("cpu"))
    >>> pool.trim()  # give everything unused back to the device
    """

    def __init__(self, device: Device, limit: int):
        self.device = device
        self.limit = limit
        self.classes = Classes(self)
        self.lists: dict[int, FreeList] = {}
        self.ordered = False  # whether there are several streams
        self.freed: dict[int, int] = {}  # the work that was enqueued when a block came back
        self.held = 0
        self.peak = 0
        self._lock = new_lock()

    def free_list(self, nbytes: int) -> FreeList:
        """The free list that serves `nbytes`, made when there is none. Raises for what is no size."""
        try:
            nbytes = operator.index(nbytes)
        except TypeError:
            raise TypeError(f"a size is an integer number of bytes, not {type(nbytes).__name__}") from None
        if nbytes < 0:
            raise ValueError(f"a size can't be negative: {nbytes} bytes")
        if nbytes > LARGEST:
            raise OutOfMemoryError(f"{nbytes} bytes is more than any device has", nbytes)
        size = class_size(nbytes)
        with self._lock:
            if size not in self.lists:
                counted = size > UNCOUNTED or self.limit < UNCOUNTED
                plain = CountedFreeList if counted else FreeList
                self.lists[size] = (OrderedFreeList if self.ordered else plain)(self, size)
            return self.lists[size]

    def allocate(self, home: FreeList) -> int:
        """Address of a new block for a free list that is empty. Raises `OutOfMemoryError`, after one trim."""
        size = home.size
        with self._lock:
            if self.held > self.limit and self.pooled() > self.limit:
                self.trim()
            ptr = self.device.driver.allocate(size)
            if not ptr and self.pooled():
                self.trim()
                ptr = self.device.driver.allocate(size)
            if not ptr:
                raise self._out_of_memory(size)
            self.held += size
            self.peak = max(self.peak, self.held)
            return ptr

    def order(self) -> None:
        """From now on there are several streams. Blocks in use know their lists, so these stay and change
        their ways."""
        with self._lock:
            if not self.ordered:
                self.ordered = True
                for home in self.lists.values():
                    home.__class__ = OrderedFreeList

    def keep_or_free(self, home: FreeList, ptr: int) -> None:
        """Takes a block back, within the limit."""
        with self._lock:
            if self.pooled() + home.size <= self.limit:
                list.append(home, ptr)
            else:
                self._free(home, ptr)

    def pooled(self) -> int:
        """Bytes kept for reuse."""
        return sum(len(home) * home.size for home in list(self.lists.values()))

    def trim(self) -> None:
        """Gives every unused block back to the device."""
        with self._lock:
            for home in list(self.lists.values()):
                # Others may take and return blocks of this list meanwhile: emptied by popping, never by
                # count.
                while home:
                    try:
                        ptr = home.pop()
                    except IndexError:
                        break
                    self._free(home, ptr)
            self.device.driver.trim()

    def stats(self) -> Stats:
        """What the pool holds now."""
        with self._lock:
            pooled = self.pooled()
            return Stats(in_use=self.held - pooled, pooled=pooled, held=self.held, peak=self.peak)

    def _free(self, home: FreeList, ptr: int) -> None:
        self.freed.pop(ptr, None)
        self.held -= home.size
        self.device.driver.free(ptr, home.size)

    def _out_of_memory(self, size: int) -> OutOfMemoryError:
        free, total = self.device.driver.memory_info()
        pooled = self.pooled()
        return OutOfMemoryError(
            f"{self.device} has no memory for {size} bytes: {free} of {total} bytes are free,"
            f" {self.held - pooled} are in use by arrays and {pooled} are kept in the pool",
            size,
            free,
            pooled,
        )


class Classes(dict[int, FreeList]):
    """Number of bytes to free list: a memo, so that the size class is computed once per size."""

    __slots__ = ("pool",)

    def __init__(self, pool: Pool):
        super().__init__()
        self.pool = pool

    def __missing__(self, nbytes: int) -> FreeList:
        home = self.pool.free_list(nbytes)
        if len(self) >= 4096:
            self.clear()
        self[nbytes] = home
        return home


_make = new_lock()


def get_pool(device: Device) -> Pool:
    """The pool of a device, made at its first use with the limit of PYARRAY_POOL_LIMIT."""
    with _make:
        if not hasattr(device, "pool"):
            pool = Pool(device, _limit(device))
            device.driver.on_streams.append(pool.order)
            device.pool = pool.classes
        pool = device.pool.pool
    assert isinstance(pool, Pool)
    return pool


def _limit(device: Device) -> int:
    asked = config.get("PYARRAY_POOL_LIMIT")
    return device.driver.memory_info()[1] // 2 if asked is None else int(asked)
