"""The array: a typed, strided window on a buffer. It indexes, views and describes; what computes is provided from above.

>>> import numpy as np, pyarray as pa
>>> m = pa.asarray(np.arange(6, dtype=np.float32).reshape(2, 3))
>>> m[:, ::2].strides, m[1].offset
((12, 8), 3)
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pyarray import array_format, array_hooks, array_host
from pyarray import shape as shapes
from pyarray.annotations import ArrayAnnotation, array_annotation
from pyarray.array_hooks import numpy_functions, operation, operations
from pyarray.driver.base import get_device
from pyarray.dtypes import DType, asdtype, float64
from pyarray.memory.buffer import Buffer

__all__ = ["empty", "fresh", "ndarray", "numpy_functions", "operations", "register_run", "type_key"]

MAX_NDIM = 64
READONLY = 1 << 17
_NDIM_STRIDED = 0x1FF00  # of a key: the rank, and whether strided
_RUN = 0x100  # a contiguous 1-D array
_SCALARS = (bool, int, float, complex)
_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")

_new: Any = object.__new__
_run_class: Any = None  # BufferView, once buffer_view has registered it


def register_run(kind: type) -> None:
    """Sets the class of basic indices that are contiguous and 1-D."""
    global _run_class
    _run_class = kind


def type_key(dtype: DType, ndim: int, strided: bool, writeable: bool, device: Any) -> int:
    """An array's type key: all that generated code may depend on."""
    return dtype.code | ndim << 8 | strided << 16 | (not writeable) << 17 | device.code << 20


def fresh(
    buffer: Any, shape: tuple[int, ...], strides: tuple[int, ...], size: int, dtype: DType, key: int
) -> ndarray:
    """A writeable C-contiguous array at the start of `buffer`; the caller answers for the facts agreeing. Checks nothing."""
    a = _new(ndarray)
    a._buffer = buffer
    a._ptr = buffer.ptr
    a._shape = shape
    a._strides = strides
    a._size = size
    a._dtype = dtype
    a._writeable = True
    a._base = None
    a._key = key
    return a


def root(
    buffer: Any, ptr: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: DType, writeable: bool
) -> ndarray:
    """An array without a base, at address `ptr` inside `buffer`. Checks the rank and derives size and key."""
    if len(shape) > MAX_NDIM:
        raise ValueError(f"an array has at most {MAX_NDIM} dimensions, got {len(shape)}")
    strided = not shapes.is_contiguous(shape, strides, dtype.itemsize)
    a = fresh(
        buffer,
        shape,
        strides,
        shapes.size(shape),
        dtype,
        type_key(dtype, len(shape), strided, writeable, buffer.device),
    )
    a._ptr, a._writeable = ptr, writeable
    return a


def empty(shape: Any, dtype: Any = None, device: Any = None) -> ndarray:
    """A new array of `shape` (an int or a sequence) with arbitrary contents; `dtype` is float64 and `device` the default unless given.

    Raises `ValueError` for a negative size, `TypeError` for what is no shape or dtype, `OutOfMemoryError`.

    >>> empty((2, 3), "float32").strides
    (12, 4)
    """
    sizes = shapes.resolve_shape(shape)
    kind = float64 if dtype is None else asdtype(dtype)
    count = shapes.size(sizes)
    buffer = Buffer.allocate(get_device(device), count * kind.itemsize)
    return root(buffer, buffer.ptr, sizes, shapes.contiguous_strides(sizes, kind.itemsize), kind, True)


def is_advanced(key: Any) -> bool:
    """Whether an index holds an index array, a list or a mask: the result is then a copy, not a view."""
    for item in key if type(key) is tuple else (key,):
        kind = type(item)
        if kind is slice or kind is int or item is None or item is Ellipsis:
            continue
        if kind is list or kind is bool or isinstance(item, np.bool_) or getattr(item, "ndim", 0):
            return True
        if isinstance(item, (ndarray, np.ndarray)) and item.dtype.kind == "b":
            return True
    return False


class ndarray:
    """An array of one dtype on one device. Made by `asarray`, `empty` and their like; indexing gives views, as in NumPy.

    Attributes can't be assigned. `shape`, `strides` and `byte_offset` (bytes), `size`, `dtype`, `device` and `flags` describe it;
    `base` is the array that this one is a view of, None when it is none.
    """

    __slots__ = (
        "__weakref__",
        "_base",
        "_buffer",
        "_dtype",
        "_key",
        "_ptr",
        "_shape",
        "_size",
        "_strides",
        "_writeable",
    )
    __hash__: Any = None
    __array_priority__ = 100.0

    _buffer: Any
    _ptr: int
    _shape: tuple[int, ...]
    _strides: tuple[int, ...]
    _size: int
    _dtype: DType
    _writeable: bool
    _base: ndarray | None
    _key: int

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(
            "an ndarray is not constructed directly; use pyarray.asarray, array, empty, zeros or from_dlpack"
        )

    def __class_getitem__(cls, item: Any) -> ArrayAnnotation:
        return array_annotation(item)

    # what it is

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return self._shape

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next along each axis."""
        return self._strides

    @property
    def size(self) -> int:
        """Number of elements."""
        return self._size

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self._shape)

    @property
    def dtype(self) -> DType:
        """Type of the elements."""
        return self._dtype

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self._dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements, gaps not counted."""
        return self._size * self._dtype.itemsize

    @property
    def device(self) -> Any:
        """Where the memory is."""
        return self._buffer.device

    @property
    def base(self) -> ndarray | None:
        """The array whose memory this view shows; never itself a view. None for an array of its own."""
        return self._base

    @property
    def byte_offset(self) -> int:
        """Bytes from the start of the buffer to the first element."""
        return self._ptr - self._buffer.ptr

    @property
    def flags(self) -> array_format.Flags:
        """Memory layout and writeability."""
        return array_format.Flags(self)

    def setflags(self, write: bool) -> None:
        """Make the array read-only, or writeable again: `ValueError` when neither base nor memory of its own allows it."""
        own = (
            self._base._writeable if self._base is not None else self._writeable or self._buffer.owner is None
        )
        if write and not own:
            raise ValueError(
                "cannot set writeable: the memory belongs to a read-only array; assign to a copy, a.copy()"
            )
        self._writeable = bool(write)
        self._key = self._key & ~READONLY | (not write) << 17

    # indices

    def __getitem__(self, key: Any) -> Any:
        code = self._key
        # the literals are those of _NDIM_STRIDED and _RUN: a global's lookup costs as much as the test
        if type(key) is slice and code & 0x1FF00 == 0x100 and ((step := key.step) is None or step == 1):
            start, stop, step = key.indices(self._size)
            count = stop - start if stop > start else 0
            view = _new(_run_class)
            dtype = self._dtype
            base = self._base
            view._ptr = self._ptr + start * dtype.itemsize
            view._dtype = dtype
            view._buffer = self._buffer
            view._shape = (count,)
            view._strides = self._strides
            view._size = count
            view._writeable = self._writeable
            view._base = self if base is None else base
            view._key = code
            return view
        if type(key) is int and (shape := self._shape):
            if not -shape[0] <= key < shape[0]:
                raise IndexError(f"index {key} is out of bounds for axis 0 with size {shape[0]}")
            offset = (key + shape[0] if key < 0 else key) * self._strides[0]
            return self._view(
                offset, shape[1:], self._strides[1:], _run_class, False if code & 0x10000 == 0 else None
            )
        if is_advanced(key):
            return operation("take")(self, key)
        return self._view(*shapes.basic_index(self._shape, self._strides, key), _run_class)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._check_writeable()
        if is_advanced(key):
            operation("put")(self, key, value)
        else:
            self[key]._assign(value)

    def _assign(self, value: Any) -> None:
        if not isinstance(value, ndarray):
            if type(value) not in _SCALARS:
                value = operation("asarray")(value, device=self.device)
        elif (
            value._ptr == self._ptr
            and value._shape == self._shape
            and value._strides == self._strides
            and value._dtype is self._dtype
        ):
            return  # `a[key] += x` ends in an assignment of the view to itself
        if (
            isinstance(value, ndarray)
            and 0 < self.ndim < value.ndim
            and set(value._shape[: value.ndim - self.ndim]) <= {1}
        ):
            value = value.reshape(value._shape[value.ndim - self.ndim :])
        operation("assign")(self, value)

    def _check_writeable(self) -> None:
        if not self._writeable:
            raise ValueError(
                "assignment destination is read-only; assign to a copy, a.copy(), or set a.flags.writeable = True"
            )

    def _view(
        self,
        offset: int,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        run: Any = None,
        strided: bool | None = None,
    ) -> Any:
        """The same memory, `offset` bytes on. A contiguous 1-D result is of the class `run` where one is given."""
        ndim = len(shape)
        if ndim > MAX_NDIM:
            raise IndexError(f"an array has at most {MAX_NDIM} dimensions, this index would give {ndim}")
        if strided is None:
            strided = not shapes.is_contiguous(shape, strides, self._dtype.itemsize)
        view = _new(ndarray if strided or ndim != 1 or run is None else run)
        view._buffer = self._buffer
        view._ptr = self._ptr + offset
        view._shape = shape
        view._strides = strides
        view._size = shapes.size(shape)
        view._dtype = self._dtype
        view._writeable = self._writeable
        view._base = self if self._base is None else self._base
        view._key = self._key & ~_NDIM_STRIDED | ndim << 8 | strided << 16
        return view

    def subview(self, offset: Any, size: Any) -> Any:
        """The `BufferView` of `size` elements from element `offset` on, counted from this array's first.

        Raises `ValueError` when it leaves this array, `TypeError` for offsets that are no integers and arrays that are not 1-D and contiguous.

        >>> empty(32).subview(offset=16, size=16).offset
        16
        """
        return _run_class(self, offset, size)

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("len() of a 0-d array; its one element is a.item()")
        return self._shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self._shape:
            raise TypeError("iteration over a 0-d array; its one element is a.item()")
        return map(self.__getitem__, range(self._shape[0]))

    def __contains__(self, value: Any) -> bool:
        return bool(operation("any")(self == value))

    # other shapes of the same elements

    @property
    def T(self) -> ndarray:
        """View with the axes reversed."""
        return self._view(0, self._shape[::-1], self._strides[::-1])

    @property
    def mT(self) -> ndarray:
        """View with the last two axes exchanged. Raises `ValueError` for fewer than two."""
        if len(self._shape) < 2:
            raise ValueError(f"mT needs an array of 2 or more dimensions, got shape {self._shape}")
        return self.swapaxes(-1, -2)

    def transpose(self, *axes: Any) -> ndarray:
        """View with the axes in the given order, reversed without one. Raises `ValueError` unless each axis comes once."""
        order = (
            axes[0] if len(axes) == 1 and (axes[0] is None or hasattr(axes[0], "__iter__")) else axes or None
        )
        return self._view(0, *shapes.permute(order, self._shape, self._strides))

    def swapaxes(self, axis1: int, axis2: int) -> ndarray:
        """View with two axes exchanged. Raises `AxisError` for an axis out of range."""
        order = list(range(len(self._shape)))
        first, second = (
            shapes.normalize_axes((axis1,), len(order))[0],
            shapes.normalize_axis(axis2, len(order)),
        )
        order[first], order[second] = second, first
        return self.transpose(order)

    def squeeze(self, axis: Any = None) -> ndarray:
        """View without the axes of size 1, or without those given: `ValueError` when one has another size."""
        sizes = self._shape
        drop = (
            [k for k, n in enumerate(sizes) if n == 1]
            if axis is None
            else shapes.normalize_axes(axis, len(sizes))
        )
        for k in drop:
            if sizes[k] != 1:
                raise ValueError(
                    f"squeeze needs axes of size 1, but axis {k} of shape {sizes} has {sizes[k]}"
                )
        kept = [k for k in range(len(sizes)) if k not in drop]
        return self._view(0, tuple(sizes[k] for k in kept), tuple(self._strides[k] for k in kept))

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> ndarray:
        """The same elements in another shape, one size of which may be -1; a view where strides allow, else a copy.

        Raises `ValueError` when the sizes don't fit, or when `copy=False` and only a copy can.

        >>> empty((4, 6)).reshape(3, -1).shape
        (3, 8)
        """
        if order not in ("C", "F"):
            raise ValueError(f"order is 'C' or 'F', got {order!r}")
        target = shapes.resolve_shape(shape[0] if len(shape) == 1 else shape, self._size)
        if order == "F":
            return self.T.reshape(target[::-1], copy=copy).T
        strides = (
            None if copy else shapes.reshape_strides(self._shape, self._strides, target, self._dtype.itemsize)
        )
        if strides is not None:
            return self._view(0, target, strides)
        if copy is False:
            raise ValueError(
                f"reshaping {self._shape} with strides {self._strides} to {target} needs a copy; pass copy=None"
            )
        return self.copy().reshape(target)

    def ravel(self) -> ndarray:
        """All elements in C order as a 1-D array; a view where strides allow."""
        return self.reshape(-1) if self._size else self.reshape(0)

    def flatten(self) -> ndarray:
        """All elements in C order as a fresh 1-D array."""
        return self.copy().ravel()

    def view(self, dtype: Any = None) -> ndarray:
        """The same bytes as another dtype; the last axis must be contiguous when the item size differs.

        Raises `ValueError` where the bytes don't divide, or the address is not aligned for the new dtype.

        >>> empty(4, "float32").view("int16").shape
        (8,)
        """
        kind = self._dtype if dtype is None else asdtype(dtype)
        shape, strides = self._shape, self._strides
        old, new = self._dtype.itemsize, kind.itemsize
        if old != new:
            if not shape or (strides[-1] != old and shape[-1] != 1):
                raise ValueError(
                    f"a view of {self._dtype} as {kind} needs a contiguous last axis, got strides {strides}; copy first"
                )
            if shape[-1] * old % new:
                raise ValueError(
                    f"the last axis of {shape[-1] * old} bytes does not divide into elements of {kind} ({new} bytes)"
                )
            shape, strides = shape[:-1] + (shape[-1] * old // new,), strides[:-1] + (new,)
        if self._ptr % kind.numpy.alignment or any(step % kind.numpy.alignment for step in strides):
            raise ValueError(f"the memory is not aligned for {kind}; view a copy, a.copy().view({kind})")
        result = root(self._buffer, self._ptr, shape, strides, kind, self._writeable)
        base = self if self._base is None else self._base
        # an offset is counted in elements, so what does not start on a whole one counts from itself
        result._base = None if (self._ptr - base._ptr) % new else base
        return result

    # copies

    def copy(self) -> ndarray:
        """A fresh, C-contiguous, writeable array with the same elements on the same device."""
        result = empty(self._shape, self._dtype, self.device)
        if self._size:
            operation("assign")(result, self)
        return result

    def astype(self, dtype: Any, *, copy: bool = True) -> ndarray:
        """The elements cast to `dtype`, fresh; with `copy=False` the array itself where it has that dtype already."""
        kind = asdtype(dtype)
        return self if kind is self._dtype and not copy else operation("astype")(self, kind)

    def fill(self, value: Any) -> None:
        """Set all elements to the scalar `value`. Raises `ValueError` for a read-only array."""
        self[...] = value

    def __copy__(self) -> ndarray:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> ndarray:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        values = array_host.host(self)  # of a view, its own elements and not its base's
        return _restore, (
            np.ascontiguousarray(values).reshape(self._shape),
            str(self.device),
            type(self) is _run_class,
        )

    def to_device(self, device: Any, /, *, stream: Any = None) -> ndarray:
        """The array on `device`: itself when it is there, else a copy. `stream` must be None. Raises `DeviceError`."""
        return operation("to_device")(self, device, stream=stream)

    # the host

    def item(self, *index: Any) -> Any:
        """One element as a Python scalar: the only one, that at a flat position, or that at one integer per axis."""
        return array_host.element(self, index)

    def tolist(self) -> Any:
        """The elements as nested lists of Python scalars, read from the device."""
        return array_host.host(self).tolist()

    def get(self) -> np.ndarray[Any, Any]:
        """A fresh NumPy array with the elements, read from the device."""
        return array_host.host(self).copy() if array_host.on_host(self) else array_host.host(self)

    def __bool__(self) -> bool:
        return array_host.truth(self)

    def __int__(self) -> int:
        return int(array_host.number(self, "biuf", "int"))

    def __float__(self) -> float:
        return float(array_host.number(self, "biuf", "float"))

    def __complex__(self) -> complex:
        return complex(array_host.number(self, "biufc", "complex"))

    def __index__(self) -> int:
        return operator.index(array_host.number(self, "iu", "index"))

    def __repr__(self) -> str:
        return array_format.representation(self)

    def __str__(self) -> str:
        return array_format.text(self)

    # other libraries

    @property
    def __array_interface__(self) -> dict[str, Any]:
        if not array_host.on_host(self) or self._dtype.name == "bfloat16":
            raise AttributeError("__array_interface__: NumPy is to ask __array__ for this array")
        return array_host.interface(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return array_host.as_array(self, dtype, copy)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        return array_hooks.call_ufunc(self, ufunc, method, inputs, kwargs)

    def __array_function__(self, function: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
        return array_hooks.call_function(self, function, types, args, kwargs)

    def __array_namespace__(self, /, *, api_version: str | None = None) -> Any:
        if api_version is not None and api_version not in _VERSIONS:
            raise ValueError(
                f"array API version {api_version!r} is unknown; there are {', '.join(_VERSIONS)}"
            )
        return sys.modules[__name__.partition(".")[0]]

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any:
        return operation("dlpack")(self, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return operation("dlpack_device")(self)


def _restore(values: Any, device: str, run: bool) -> ndarray:
    a = operation("array")(values, device=device)
    return a[:] if run else a
