"""Reads array elements on the host: in place on the CPU, by a copy from any other device."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pyarray import shapes
from pyarray.array_hooks import operation
from pyarray.dtypes import EXTENSIONS
from pyarray.errors import DeviceError
from pyarray.keywords import quick
from pyarray.memory.host_access import download_later, element, give_address, interface, numpy_view, on_host

if TYPE_CHECKING:
    from pyarray.array import ndarray


_SIZE = "the size of the result"


def host(a: Any) -> np.ndarray[Any, Any]:
    """`a` as a NumPy array: its own memory on the CPU, a copy of any other device's."""
    return numpy_view(a) if on_host(a) else operation("asnumpy")(a)


def need_data(a: Any, what: str) -> None:
    """Raises `DeviceError` where nothing is computed, for `what` depends on the elements of `a`."""
    device = a._buffer.device
    if not device.driver.computes:
        raise DeviceError(
            f"{what} depends on the elements of an array on {device}, where nothing is computed: leave this "
            "call out, or make it on another device"
        )


def result_size(counts: Any) -> int:
    """The last of `counts`, which is the size of a result. Waits for the device. Raises `DeviceError` where
    nothing is computed."""
    need_data(counts, _SIZE)
    return int(host(counts[-1:])[0])


def result_size_later(counts: Any) -> Callable[[], int]:
    """`result_size` of int64 `counts` on a GPU, as a function to call later: it waits for the counts, and not for
    work enqueued after them."""
    need_data(counts, _SIZE)
    read = download_later(counts[-1:])
    return lambda: int(np.frombuffer(read(), np.int64)[0])


def before_use(a: Any) -> None:
    """Another library is to use the array's memory behind the current stream: that stream waits for what
    others do with it."""
    if not on_host(a):
        low, high = shapes.byte_bounds(a._shape, a._strides, a._dtype.itemsize)
        a._buffer.device.driver.before_access(a._ptr + low, high - low, True)


def array_interface(a: Any) -> dict[str, Any]:
    """`__array_interface__`, which only CPU arrays of NumPy's own dtypes have: for others NumPy is to ask
    `__array__`."""
    if not on_host(a) or a._dtype in EXTENSIONS:
        raise AttributeError("__array_interface__")
    give_address(a)
    return interface(a)


def cuda_interface(a: Any) -> dict[str, Any]:
    """`__cuda_array_interface__`, which only arrays on NVIDIA GPUs have."""
    found: dict[str, Any] = operation("cuda_interface")(a)
    give_address(a)
    return found


def as_array(a: Any, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
    """`__array__`: raises `TypeError` off the CPU, `ValueError` where `copy=False` can't be had."""
    if not on_host(a):
        raise TypeError(
            f"an array on {a.device} is not turned into a NumPy array silently; "
            "write pyarray.asnumpy(a) or a.get(), or a.item() for one element"
        )
    view = numpy_view(a)
    if dtype is not None and np.dtype(dtype) != view.dtype:
        if copy is False:
            target = np.dtype(dtype)
            raise ValueError(f"a conversion from {a._dtype} to {target} copies; pass copy=None or copy=True")
        return view.astype(dtype)
    return view.copy() if copy else view


def _only(a: Any) -> Any:
    """The element of an array that has one."""
    value = element(a)
    return host(a).item() if value is None else value


def scalar(a: Any) -> Any:
    """The one element of `a` as a Python scalar. Raises `ValueError` for any other number of elements."""
    if a._size != 1:
        raise ValueError(
            f"only an array of size 1 is turned into a Python scalar, got shape {a._shape}; index it first"
        )
    return _only(a)


def _number(a: Any, kinds: str, target: str) -> Any:
    if a._shape != ():
        raise TypeError(f"{target}() takes a 0-d array, got shape {a._shape}; index it, or write a.item()")
    if a._dtype.kind not in kinds:
        raise TypeError(f"{target}() does not take an array of {a._dtype}; cast it with astype first")
    return _only(a)


@quick("int")
def to_int(a: Any) -> int:
    """`int(a)` of a 0-d real array. Raises `TypeError` for another rank or complex numbers."""
    return int(_number(a, "biuf", "int"))


@quick("float")
def to_float(a: Any) -> float:
    """`float(a)` of a 0-d real array. Raises `TypeError` for another rank or complex numbers."""
    return float(_number(a, "biuf", "float"))


@quick("complex")
def to_complex(a: Any) -> complex:
    """`complex(a)` of a 0-d array. Raises `TypeError` for another rank."""
    return complex(_number(a, "biufc", "complex"))


@quick("index")
def to_index(a: Any) -> int:
    """The element of a 0-d integer array, as an index. Raises `TypeError` for another rank or dtype kind."""
    return int(_number(a, "iu", "index"))


def to_whole(a: Any, rounded: Callable[[Any], int]) -> int:
    """`math.trunc(a)` and the like, `rounded`, of a 0-d real array. Raises `TypeError` for another rank or
    complex numbers."""
    name = rounded.__name__
    if a._shape != ():
        raise TypeError(f"math.{name}() takes a 0-d array, got shape {a._shape}; pyarray.{name}(a) takes every element")
    return rounded(_number(a, "biuf", name))


def tobytes(a: ndarray) -> bytes:
    """The elements in C order, as bytes of the host."""
    return host(a).tobytes()


def formatted(a: Any, spec: str) -> str:
    """A 0-d array formats as its element: `f"{pa.sum(a):.2f}"`."""
    if spec and not a.ndim:
        return format(a.item(), spec)
    try:
        return format(str(a), spec)
    except ValueError:
        what = f"{spec!r} formats one number, and the array has shape {a.shape}"
        instead = "numpy.array2string(pyarray.asnumpy(a), precision=2)"
        raise TypeError(f"{what}; format an element, a[0], or write {instead}") from None


@quick("bool")
def truth(a: Any) -> bool:
    """`bool(a)`. Raises `ValueError` unless `a` has one element."""
    if a._size != 1:
        what = "no elements" if a._size == 0 else "more than one element"
        raise ValueError(f"the truth value of an array with {what} is ambiguous; use any(a), all(a) or a.size > 0")
    return bool(_only(a))


@quick("item", 1)
def item(a: ndarray, *index: Any) -> Any:
    """`a.item(*index)`: the only element, the element at a flat position, or at one integer per axis."""
    if not index and a._size == 1:
        return _only(a)
    if len(index) == 1 and isinstance(index[0], tuple):
        index = index[0]
    if not index:
        return scalar(a)
    if len(index) == 1 and len(a._shape) != 1:
        position = range(a._size)[index[0]]  # checks the range, and counts negative ones from the end
        index = tuple(position // math.prod(a._shape[axis + 1 :]) % n for axis, n in enumerate(a._shape))
    found = a[index]
    if found.ndim:
        raise IndexError(f"item() takes one integer per axis of shape {a._shape}, got {len(index)}")
    return scalar(found)


@quick("tolist", 1)
def tolist(a: ndarray) -> Any:
    """The elements as nested lists of Python scalars, read from the device."""
    return host(a).tolist()


def get(a: ndarray) -> np.ndarray[Any, Any]:
    """A fresh NumPy array with the elements, read from the device."""
    return host(a).copy() if on_host(a) else host(a)
