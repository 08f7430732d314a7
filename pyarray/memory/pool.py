"""A memory pool per device: freed blocks are kept by size class and reused.

A size class has a free list (`csrc/core/memory.c`), which takes and returns blocks under the GIL, so that the common
path takes no other lock. Sizes go up in 64-byte granules to 512 bytes and in 8 steps per power of two above:
at most 12.5 % of a block is unused.
"""

from __future__ import annotations

from dataclasses import dataclass

from .. import config
from .._core import FreeList, FreeLists, register_pools
from ..driver.base import Device
from ..errors import OutOfMemoryError
from ..locks import new_lock

GRANULE = 64
# Blocks up to this size come back uncounted: counting would take longer than the rest. They are as many as were
# in use at one time, and the next allocation that finds its list empty counts them.
UNCOUNTED = 64 << 10
LARGEST = 1 << 62


@dataclass(frozen=True)
class Stats:
    """Bytes: `in_use` by arrays, `pooled` for reuse, their sum `reserved` from the device, and its `peak`."""

    in_use: int
    pooled: int
    reserved: int
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


class Pool:
    """Free lists of one device. `classes` maps a number of bytes to its free list.

    >>> from pyarray.driver.base import get_device
    >>> pool = get_pool(get_device("cpu"))
    >>> pool.trim()  # give everything unused back to the device
    """

    def __init__(self, device: Device, limit: int):
        self.device = device
        self.classes = FreeLists(self, self.find_free_list)
        self.classes.limit = min(limit, LARGEST)
        self.lists: dict[int, FreeList] = {}
        self.stream_ordered = False  # there are several streams
        self.freed_at: dict[int, int] = {}  # by block: the driver's `work_count` when it came back
        self.peak = 0
        self._lock = new_lock()

    @property
    def limit(self) -> int:
        """Bytes from which blocks go back to the device."""
        return self.classes.limit

    @property
    def reserved(self) -> int:
        """Bytes from the device."""
        return self.classes.reserved

    def find_free_list(self, nbytes: int) -> FreeList:
        """The free list that serves `nbytes`, made when there is none. Raises for what is no size."""
        if nbytes < 0:
            raise ValueError(f"a size can't be negative: {nbytes} bytes")
        if nbytes > LARGEST:
            raise OutOfMemoryError(f"{nbytes} bytes is more than any device has", nbytes)
        size = class_size(nbytes)
        with self._lock:
            if size not in self.lists:
                free_list = self.lists[size] = FreeList(self, size)
                free_list.zeroed = size >= self.device.driver.zeroed_from
                if self.stream_ordered:
                    self._order(free_list)
                elif size > UNCOUNTED or self.limit < UNCOUNTED:
                    # What is pooled is a part of what is reserved: below the limit nothing need be summed up.
                    free_list.returns, free_list.within = self.give_back, self.classes
            return self.lists[size]

    def _order(self, free_list: FreeList) -> None:
        """The next user of a block waits, on the device, for all work that was enqueued when the block came back."""
        free_list.within = None
        free_list.returns, free_list.takes = self._return_ordered, self._take_ordered

    def _return_ordered(self, free_list: FreeList, ptr: int) -> None:
        self.freed_at[ptr] = self.device.driver.work_count()
        if self.reserved <= self.limit:
            free_list.keep(ptr)
        else:
            self.give_back(free_list, ptr)

    def _take_ordered(self, free_list: FreeList) -> int:
        try:
            ptr = free_list.take()
        except IndexError:  # another thread took the last block
            return self.allocate(free_list)
        driver = self.device.driver
        work = self.freed_at.pop(ptr, None)  # None: freed before there were streams
        driver.wait_for(driver.work_count() if work is None else work)
        return ptr

    def allocate(self, free_list: FreeList) -> int:
        """Address of a new block for a free list that is empty. Raises `OutOfMemoryError`, after one trim."""
        size = free_list.size
        with self._lock:
            if self.reserved > self.limit and self.pooled() > self.limit:
                self.trim()
            ptr = self.device.driver.allocate(size)
            if not ptr and self.pooled():
                self.trim()
                ptr = self.device.driver.allocate(size)
            if not ptr:
                raise self._out_of_memory(size)
            self.classes.reserved += size
            self.peak = max(self.peak, self.reserved)
            return ptr

    def use_stream_order(self) -> None:
        """Switches to the order of several streams."""
        with self._lock:
            if not self.stream_ordered:
                self.stream_ordered = True
                for free_list in self.lists.values():
                    self._order(free_list)

    def give_back(self, free_list: FreeList, ptr: int) -> None:
        """Returns a block: it is pooled within the limit, else freed."""
        # A garbage collection may come here in a thread that has the driver's lock, for which another waits with this
        # one.
        if not self._lock.acquire(blocking=False):
            free_list.keep(ptr)
            return
        try:
            if self.pooled() + free_list.size <= self.limit:
                free_list.keep(ptr)
            else:
                self._free(free_list, ptr)
        finally:
            self._lock.release()

    def pooled(self) -> int:
        """Bytes kept for reuse."""
        return sum(len(free_list) * free_list.size for free_list in list(self.lists.values()))

    def trim(self) -> None:
        """Gives every unused block back to the device."""
        with self._lock:
            for free_list in list(self.lists.values()):
                # Other threads may take and return blocks meanwhile: so it is popped until it is empty.
                while free_list:
                    try:
                        ptr = free_list.pop()
                    except IndexError:
                        break
                    self._free(free_list, ptr)
            self.device.driver.trim()

    def stats(self) -> Stats:
        """The pool's statistics."""
        with self._lock:
            pooled = self.pooled()
            return Stats(in_use=self.reserved - pooled, pooled=pooled, reserved=self.reserved, peak=self.peak)

    def _free(self, free_list: FreeList, ptr: int) -> None:
        self.freed_at.pop(ptr, None)
        self.classes.reserved -= free_list.size
        self.device.driver.free(ptr, free_list.size)

    def _out_of_memory(self, size: int) -> OutOfMemoryError:
        free, total = self.device.driver.memory_info()
        pooled = self.pooled()
        return OutOfMemoryError(
            f"{self.device} has no memory for {size} bytes: {free} of {total} bytes are free,"
            f" {self.reserved - pooled} are in use by arrays and {pooled} are kept in the pool",
            size,
            free,
            pooled,
        )


_pools_lock = new_lock()


def get_pool(device: Device) -> Pool:
    """The pool of a device, made at its first use with the limit of PYARRAY_POOL_LIMIT."""
    with _pools_lock:
        if not hasattr(device, "pool"):
            pool = Pool(device, _limit(device))
            device.driver.on_streams.append(pool.use_stream_order)
            device.pool = pool.classes
        pool = device.pool.pool
    assert isinstance(pool, Pool)
    return pool


register_pools(get_pool)


def _limit(device: Device) -> int:
    setting = config.get("PYARRAY_POOL_LIMIT")
    return device.driver.memory_info()[1] // 2 if setting is None else int(setting)
