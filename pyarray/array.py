"""The array: a typed, strided window on a buffer, with its attributes, indexing and views.

>>> import numpy as np, pyarray as pa
>>> m = pa.asarray(np.arange(6, dtype=np.float32).reshape(2, 3))
>>> m[:, ::2].strides, m[1].offset
((12, 8), 3)
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

import numpy as np

from pyarray import array_format, array_hooks, array_host, array_marks, array_views, shapes
from pyarray._core import Array, register_array, register_indexing, unchecked_array
from pyarray.annotations import ArrayAnnotation, array_annotation
from pyarray.array_hooks import numpy_functions, operation, operations
from pyarray.driver.base import get_device
from pyarray.dtypes import ALL, DType, asdtype, float64
from pyarray.keywords import quick
from pyarray.memory.buffer import Buffer
from pyarray.structured_dtypes import StructuredAnnotation, structured_annotation
from pyarray.typing import ArrayLike, DeviceLike, DTypeLike, ShapeLike

if TYPE_CHECKING:
    from pyarray.array_operators import Operators
    from pyarray.buffer_view import BufferView
else:
    Operators = object  # they are installed by `api`

__all__ = [
    "empty", "ndarray", "numpy_functions", "operations", "type_key", "unchecked_array",
]  # fmt: skip

MAX_NDIM = 64
STRIDED, READONLY = 1 << 16, 1 << 17  # of a key
_NDIM_STRIDED = 0x1FF00  # of a key: the rank, and whether strided
WATCHED = 1 << 19  # of a key: `_buffer.before_write()` is to be called before the memory is written
_INHERITED = READONLY | WATCHED | 0xFFF << 20  # what every view takes over; marks (array_marks) it doesn't
_CONTIGUOUS_1D = 0x100  # a contiguous 1-D array
_SCALARS = (bool, int, float, complex)
_SEQUENCES: frozenset[type] = frozenset((list, tuple, range, bool))  # a bool in an index is a mask
_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")


def type_key(dtype: DType, ndim: int, strided: bool, writeable: bool, device: Any) -> int:
    """An array's type key: all that generated code may depend on."""
    return dtype.code | ndim << 8 | strided << 16 | (not writeable) << 17 | device.code << 20


def array_at(
    buffer: Any, ptr: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: DType, writeable: bool
) -> ndarray:
    """An array without a base, at address `ptr` inside `buffer`. Checks the rank and derives size and key."""
    _check_ndim(len(shape), ValueError)
    strided = not shapes.is_contiguous(shape, strides, dtype.itemsize)
    key = type_key(dtype, len(shape), strided, writeable, buffer.device)
    return unchecked_array(buffer, shape, strides, shapes.size(shape), dtype, key, ptr)


@quick("new")
def empty(shape: ShapeLike, dtype: DTypeLike = None, device: DeviceLike = None) -> ndarray:
    """A new array of `shape` (an int or a sequence) with arbitrary contents; `dtype` is float64 and `device`
    the default unless given.

    Raises `ValueError` for a negative size, `TypeError` for what is no shape or dtype, `OutOfMemoryError`.

    >>> empty((2, 3), "float32").strides
    (12, 4)
    """
    sizes = shapes.resolve_shape(shape)
    kind = float64 if dtype is None else asdtype(dtype)
    target = get_device(device)
    count, ndim = shapes.size(sizes), len(sizes)
    _check_ndim(ndim, ValueError)
    buffer = Buffer.allocate(target, count * kind.itemsize)
    strides = shapes.contiguous_strides(sizes, kind.itemsize)
    return unchecked_array(buffer, sizes, strides, count, kind, type_key(kind, ndim, False, True, target))


def _check_ndim(ndim: int, error: type[Exception]) -> None:
    if ndim > MAX_NDIM:
        raise error(f"an array has at most {MAX_NDIM} dimensions, got {ndim}; reshape it to fewer")


def is_advanced(key: Any) -> bool:
    """Whether an index holds an index array, a list or a mask: the result is then a copy, not a view."""
    for item in key if type(key) is tuple else (key,):
        kind = type(item)
        if kind is slice or kind is int or item is None or item is Ellipsis:
            continue
        if kind in _SEQUENCES or isinstance(item, np.bool_) or getattr(item, "ndim", 0) != 0:
            return True
        if isinstance(item, (ndarray, np.ndarray)) and item.dtype.kind == "b":
            return True
    return False


class ndarray(Array, Operators):
    """An array of one dtype on one device. Made by `asarray`, `empty` and their like; indexing gives views,
    as in NumPy.

    Attributes can't be assigned. `shape`, `strides` and `byte_offset` (bytes), `size`, `dtype`, `device` and
    `flags` describe it; `base` is the array that this one is a view of, None when it is none.
    """

    __slots__ = ()
    __array_priority__ = 100.0

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(
            "an ndarray is not constructed directly; use pyarray.asarray, array, empty, zeros or from_dlpack"
        )

    def __class_getitem__(cls, item: Any) -> ArrayAnnotation | StructuredAnnotation:
        return structured_annotation(item) or array_annotation(item)

    # what it is

    @property
    def flags(self) -> array_format.Flags:
        """Memory layout and writeability."""
        return array_format.Flags(self)

    def setflags(self, write: bool) -> None:
        """Make the array read-only, or writeable again: `ValueError` when neither base nor memory of its own
        allows it, or elements repeat (an axis of stride 0)."""
        if write:
            array_views.check_may_write(self)
        self._key = self._key & ~READONLY | (not write) << 17

    # indices

    if TYPE_CHECKING:

        @overload
        def __getitem__(self, key: slice) -> BufferView: ...
        @overload
        def __getitem__(self, key: Any) -> ndarray: ...
        def __getitem__(self, key: Any) -> Any: ...

    def _assign(self, value: Any) -> None:
        if not isinstance(value, ndarray):
            if isinstance(value, np.generic) and self._dtype.kind == "i" and value.dtype.kind in "iuf":
                value = value.item()  # as in NumPy, it must fit a signed type: an unsigned one takes it modulo
            if type(value) not in _SCALARS:
                value = operation("assigned")(self, value)
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
            if why := array_views.repetition(self):
                raise ValueError(f"assignment destination is read-only: {why}; assign to a.copy()")
            raise ValueError("assignment destination is read-only; assign to a.copy(), or set a.flags.writeable = True")

    def subview(self, offset: SupportsIndex, size: SupportsIndex) -> BufferView:
        """The `BufferView` of `size` elements from element `offset` on, counted from this array's first.

        Raises `ValueError` when it leaves this array, `TypeError` for offsets that are no integers and
        arrays that are not 1-D and contiguous.

        >>> empty(32).subview(offset=16, size=16).offset
        16
        """
        return operation("buffer_view")(self, offset, size)

    @quick("iter")
    def __iter__(self) -> Iterator[Any]:
        if not self._shape:
            raise TypeError("iteration over a 0-d array; its one element is a.item()")
        return map(self.__getitem__, range(self._shape[0]))

    def __contains__(self, value: Any) -> bool:
        return bool(operation("any")(self == value))

    # other shapes of the same elements

    T: ndarray = property(array_views.reversed_axes)  # type: ignore[assignment]
    mT: ndarray = property(array_views.matrix_transpose)  # type: ignore[assignment]
    transpose = array_views.transpose
    swapaxes = array_views.swapaxes
    squeeze = array_views.squeeze
    reshape = array_views.reshape
    ravel = array_views.ravel
    flatten = array_views.flatten
    view = array_views.view

    # what kernels may rely on

    mark_static = array_marks.mark_static
    assume = array_marks.assume

    # gradients

    def attach_grad(self) -> None:
        """Give the array's memory gradients, zeros: `grad` then shows them, of this array and of all views of its
        memory. Gradients that were there are replaced. Raises `TypeError` unless elements are floats.

        >>> a = empty((4, 2))
        >>> a.attach_grad()
        >>> a[1:3].grad.shape
        (2, 2)
        """
        if self._dtype.kind != "f":
            raise TypeError(f"attach_grad(): elements are of {self._dtype}, and floats alone have gradients")
        gradients = empty(self._buffer.nbytes // self._dtype.itemsize, self._dtype, self.device)
        gradients.fill(0)
        self._buffer.gradient = gradients

    @property
    def grad(self) -> ndarray | None:
        """The gradients of the elements, a view of what `attach_grad` made; None without, and where the memory is seen
        as of another dtype. `kernel.grad` takes it for an array that is passed without a gradient."""
        gradients = self._buffer.gradient
        if gradients is None or gradients._dtype is not self._dtype:
            return None
        found = gradients._view(self._ptr - self._buffer.ptr, self._shape, self._strides)
        if shapes.repeats(self._shape, self._strides):
            found.setflags(write=False)
        return found

    # copies

    @quick("copy", 1)
    def copy(self, order: str = "C") -> ndarray:
        """A fresh, writeable array without gaps with the same elements on the same device, in the memory
        order "C", "F", "A" (as `a` where that is "F", else "C") or "K" (as `a`)."""
        result = array_views.lay_out(empty(self._shape, self._dtype, self.device), order, self)
        if self._size:
            operation("assign")(result, self)
        return result

    @quick("astype", 1)
    def astype(self, dtype: DTypeLike, *, copy: bool = True) -> ndarray:
        """The elements cast to `dtype`, fresh; with `copy=False` the array itself where it has that dtype
        already."""
        kind = asdtype(dtype)
        return self if kind is self._dtype and not copy else operation("astype")(self, kind)

    def fill(self, value: ArrayLike) -> None:
        """Set all elements to the scalar `value`. Raises `ValueError` for a read-only array."""
        self[...] = value

    def __copy__(self) -> ndarray:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> ndarray:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        values = array_host.host(self)  # of a view, its own elements and not its base's
        values = np.ascontiguousarray(values).reshape(self._shape)
        return _restore, (values, str(self.device), type(self) is not ndarray)

    def to_device(self, device: DeviceLike, /, *, stream: Any = None) -> ndarray:
        """The array on `device`: itself when it is there, else a copy. `stream` is None. Raises `DeviceError`."""
        return operation("to_device")(self, device, stream=stream)

    # the host

    item = array_host.item
    tolist = array_host.tolist
    get = array_host.get
    __bytes__ = tobytes = array_host.tobytes
    __format__ = array_host.formatted
    __bool__ = array_host.truth
    __int__ = array_host.to_int
    __float__ = array_host.to_float
    __complex__ = array_host.to_complex
    __index__ = array_host.to_index
    __repr__ = array_format.representation  # pyright: ignore[reportAssignmentType]
    __str__ = array_format.text  # pyright: ignore[reportAssignmentType]

    # other libraries

    __array_interface__ = property(array_host.array_interface)
    __cuda_array_interface__ = property(array_host.cuda_interface)
    __array__ = array_host.as_array
    __array_ufunc__ = array_hooks.call_ufunc
    __array_function__ = array_hooks.call_function

    def __array_namespace__(self, /, *, api_version: str | None = None) -> Any:
        """The `pyarray` module. Raises `ValueError` for a version of the standard that is not known."""
        if api_version is not None and api_version not in _VERSIONS:
            raise ValueError(f"array API version {api_version!r} is unknown; there are {', '.join(_VERSIONS)}")
        return sys.modules[__name__.partition(".")[0]]


def _held(a: ndarray) -> Any:
    """Another handle on the elements of `a`, for who reads a key: its `__index__` may resize `a`, but not this."""
    return a._handle(a._key)


def _general_index(a: ndarray, key: Any) -> Any:
    """`a[key]` for what `csrc/core/index.c` leaves: index arrays and masks, and what is wrong."""
    held = _held(a)
    if is_advanced(key):
        return operation("take")(held, key)
    return held._view(*shapes.basic_index(held._shape, held._strides, key), True)


def _general_assignment(a: ndarray, key: Any, value: Any) -> None:
    """`a[key] = value` by a launch."""
    a._check_writeable()
    if is_advanced(key):
        operation("put")(_held(a), key, value)
        return
    target = a[key]
    a._check_writeable()  # again: reading the key may run Python
    target._assign(value)


register_array(ndarray)
register_indexing(_general_index, _general_assignment, tuple(row.numpy.type for row in ALL if row.kind in "iu"))


def _restore(values: Any, device: str, run: bool) -> ndarray:
    a = operation("array")(values, device=device)
    return a[:] if run else a
