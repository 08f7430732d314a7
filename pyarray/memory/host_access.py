"""Host access: the one module that reads, writes or gives away the memory of arrays other than by launches.

A capture (`jit.graph`, `jit.replay`) repeats launches and nothing else. So each function here tells a capture in
progress, and what it tells stands in `host_access`, which captures alone look at. In C it is `pac_host_memory` of
csrc/core/core.h. tests/unit/test_host_access.py finds accesses elsewhere.

Arrays are passed, or a device and an address on it. Host memory is a NumPy array's without gaps.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from .._core import host_access_occurred, load_element, set_host_access
from ..dtypes import EXTENSIONS

_DEVICE_MASK = 0xFFF << 20  # of a key: the device, 0 for the CPU


class _HostAccess(threading.local):
    """What captures know of this thread. `occurred`: there was host access. `capture`: the capture that this thread is
    in, or None."""

    capture: Any = None  # jit.replay.Capture

    @property
    def occurred(self) -> bool:
        return host_access_occurred()

    @occurred.setter
    def occurred(self, value: bool) -> None:
        set_host_access(value)


host_access = _HostAccess()


def not_repeatable() -> None:
    """Tells a capture in progress that what happens now is more than launches, or comes out otherwise the next time:
    a search of the tuner, a draw of random numbers, launches that no observer sees."""
    set_host_access(True)


@contextmanager
def by_observer() -> Iterator[None]:
    """Access inside the block is an observer's, which looks at what others launch: captures aren't told."""
    before = host_access_occurred()
    try:
        yield
    finally:
        set_host_access(before)


# ---- in place


def on_host(a: Any) -> bool:
    """Whether the host can read the array's memory in place."""
    return a._key & _DEVICE_MASK == 0


class Exposed:
    """Holds a buffer for NumPy: the base of the NumPy array that was made on its memory."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, interface: dict[str, Any], owner: Any):
        self.__array_interface__, self.owner = interface, owner


def interface(a: Any) -> dict[str, Any]:
    """NumPy's array interface, version 3, of a CPU array; extension types of `ml_dtypes` go as unsigned integers."""
    set_host_access(True)
    return {
        "version": 3,
        "shape": a._shape,
        "strides": a._strides,
        "typestr": f"<u{a._dtype.itemsize}" if a._dtype in EXTENSIONS else a._dtype.numpy.str,
        "data": (a._ptr, not a._writeable),
    }


def numpy_view(a: Any) -> np.ndarray[Any, Any]:
    """A NumPy array on the memory of the CPU array `a`, whose buffer it keeps alive."""
    view = np.asarray(Exposed(interface(a), a._buffer))
    return view.view(a._dtype.numpy) if a._dtype in EXTENSIONS else view


def window(a: Any, shape: Sequence[int], words: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """As `numpy_view`, read-only: elements of the dtype `words` in another shape with the array's strides."""
    fields = {"shape": tuple(shape), "typestr": words.str, "data": (a._ptr, True)}
    return np.asarray(Exposed(interface(a) | fields, a._buffer))


def outline(a: Any) -> np.ndarray[Any, Any]:
    """A NumPy array with the address, shape and strides of `a`, for functions that read no element: captures aren't
    told."""
    fields = {"version": 3, "shape": a._shape, "strides": a._strides, "data": (a._ptr, True)}
    return np.asarray(Exposed(fields | {"typestr": f"|V{a._dtype.itemsize}"}, a._buffer))


# what reads elements at an address; half floats have none
_READERS: dict[str, Any] = {
    "bool": ctypes.c_bool,
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
    **{f"{kind}{bits}": getattr(ctypes, f"c_{kind}{bits}") for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
}


def reader(dtype: str, count: int) -> Callable[[int], Sequence[Any]]:
    """A function of an address on the CPU that gives the `count` elements there as Python numbers."""
    kind = _READERS[dtype] * count

    def read(ptr: int) -> Any:
        set_host_access(True)
        return kind.from_address(ptr)

    return read


def element(a: Any) -> Any:
    """The first element of `a` as a Python number, read from the device. None for half floats and complex numbers on
    another device than the CPU."""
    if on_host(a):
        return load_element(a)
    kind = _READERS.get(a._dtype.name)
    if kind is None:
        return None
    set_host_access(True)
    value = kind()
    a._buffer.device.driver.copy_out(ctypes.addressof(value), a._ptr, a._dtype.itemsize)
    return value.value


# ---- copies by the driver


def address(values: np.ndarray[Any, Any]) -> int:
    """Address of the first element of a NumPy array."""
    return int(values.__array_interface__["data"][0])


def upload(device: Any, ptr: int, values: np.ndarray[Any, Any]) -> None:
    """Copies host memory to the device, in order with launches."""
    set_host_access(True)
    device.driver.copy_in(ptr, address(values), values.nbytes)


def download(device: Any, ptr: int, values: np.ndarray[Any, Any]) -> None:
    """Fills host memory from the device, after all launches so far."""
    set_host_access(True)
    device.driver.copy_out(address(values), ptr, values.nbytes)


def download_later(a: Any) -> Callable[[], bytes]:
    """The bytes of `a`, contiguous on a GPU, as a function to call later: it waits for what was launched before this
    call, and for nothing after it."""
    set_host_access(True)
    read: Callable[[], bytes] = a._buffer.device.driver.read_async(a._ptr, a._size * a._dtype.itemsize)
    return read


def copy_between(target: Any, source: Any) -> bool:
    """Copies the elements of a contiguous array to one on another device. False, and nothing is done, where there is no
    direct path."""
    set_host_access(True)
    driver = target._buffer.device.driver
    return bool(driver.copy_peer(target._ptr, source._buffer.device.driver, source._ptr, source.nbytes))


def clear(device: Any, ptr: int, nbytes: int) -> None:
    """Sets bytes to 0, in order with launches."""
    set_host_access(True)
    device.driver.fill(ptr, 0, nbytes)


# ---- given away


def share(a: Any) -> None:
    """Others get the memory of `a`, with a reference to its buffer."""
    set_host_access(True)


def give_address(a: Any) -> None:
    """Others get the address of `a`: they neither keep its buffer alive nor say when they are done."""
    set_host_access(True)
    a._buffer.escaped = True
