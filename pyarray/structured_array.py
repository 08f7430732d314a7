"""Arrays whose elements are records of named fields: `StructuredArray`, as NumPy's structured arrays.

The memory is an array of words, unsigned integers as wide as the fields are aligned; its last axis is a record. So
indices, copies and transfers are those of arrays, and a field is a view of its own dtype with the record as its
stride. Kernels get the views of the fields (docs/design/structured_arrays.md).

>>> import pyarray as pa
>>> a = pa.zeros(2, dtype=[("x", "f4"), ("n", "i4")])
>>> a["x"][1] = 2.5
>>> a.tolist()
[(0.0, 0), (2.5, 0)]
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn, TypeAlias

import numpy as np

from pyarray import array_format, shapes
from pyarray.array import empty as _empty
from pyarray.array import ndarray
from pyarray.array_convert import array_on_memory, asnumpy
from pyarray.array_views import overlaps
from pyarray.driver.base import get_device
from pyarray.memory.host_access import address
from pyarray.structured_dtypes import Layout, lock, of_dtype, structured
from pyarray.structured_values import as_record, host_records, is_aligned, is_names, record_key, words_of
from pyarray.typing import DeviceLike

_ARITHMETIC = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "lshift", "rshift", "and", "or", "xor",
)  # fmt: skip
_REFUSED = (
    *(f"__{prefix}{name}__" for name in _ARITHMETIC for prefix in ("", "r", "i")),
    "__neg__", "__pos__", "__abs__", "__invert__", "__lt__", "__le__", "__gt__", "__ge__",
)  # fmt: skip
_NO_ARITHMETIC = "a structured array has no arithmetic and no order; compute with its fields: a['x'] + 1"
_NO_EXCHANGE = "a structured array can't be exchanged, since DLPack and CUDA's interface have no records; pass a['x']"


StructuredLike: TypeAlias = np.dtype[Any] | type[Any] | list[Any] | dict[str, Any] | str
RecordLike: TypeAlias = Any  # a record or records: of ours, of NumPy's, tuples, instances of dataclasses


class StructuredArray:
    """An array of records. Made by `zeros`, `empty`, `asarray` and their like with a structured dtype, or with a
    dataclass whose field types are declared.

    `a["x"]` is the view of a field, `a[i]` the view of one record, whose fields are attributes, too: `a[i].x`.
    `a[i].item()` is the record as a tuple, or as an instance of the dataclass. Attributes can't be assigned but for
    these. `shape`, `strides`, `size`, `ndim`, `dtype`, `itemsize`, `nbytes`, `device` and `flags` are those of arrays.
    """

    __slots__ = ("__weakref__", "_views", "_words")
    __pyarray_layout__: Layout
    __array_priority__ = 100.0
    __hash__ = None  # type: ignore[assignment]
    _words: ndarray
    _views: dict[str, Any]

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("a StructuredArray is not constructed directly; use pyarray.zeros, empty or asarray")

    # what it is

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's structured dtype of the records."""
        return self.__pyarray_layout__.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return self._words._shape[:-1]

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one record to the next along each axis."""
        return self._words._strides[:-1]

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self._words._shape) - 1

    @property
    def size(self) -> int:
        """Number of records."""
        return shapes.size(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of a record."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all records, gaps between them not counted."""
        return self.size * self.itemsize

    @property
    def device(self) -> Any:
        """Where the memory is."""
        return self._words.device

    @property
    def flags(self) -> array_format.Flags:
        """Memory layout and writeability."""
        return array_format.Flags(self)

    @property
    def _writeable(self) -> bool:
        return self._words._writeable

    @property
    def _key(self) -> int:
        return self._words._key

    @property
    def _base(self) -> Any:
        return self._words._base

    @property
    def _buffer(self) -> Any:
        return self._words._buffer

    def setflags(self, write: bool) -> None:
        """Make the array read-only, or writeable again, as `ndarray.setflags`."""
        self._words.setflags(write)
        self._views.clear()

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of a 0-d array; it has one record, a.item()")
        return self.shape[0]

    # fields and records

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            return self._field(key)
        if is_names(key):
            return _on(of_dtype(self.dtype[key]), self._words)
        return self._with(self._words[record_key(key, self.ndim)])

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(key, str) or is_names(key):
            self[key][...] = value
            return
        source = _as_records(value, self.__pyarray_layout__, self.device)
        if self.__pyarray_layout__.has_gaps or self._words._shape[-1] != source._words._shape[-1]:
            self._assign_fields(key, source.copy() if overlaps(self._words, source._words) else source)
        else:
            self._words[record_key(key, self.ndim)] = source._words

    def _assign_fields(self, key: Any, source: Any) -> None:
        """Assigns each field: bytes between them may be other fields', as in `a[["x", "z"]]`."""
        for name, field in self.__pyarray_layout__.fields.items():
            at = key if field.inner else record_key(key, self.ndim, len(field.shape))
            self._field(name)[at] = source._field(name)

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self)))

    def __getattr__(self, name: str) -> Any:
        fields = self.__pyarray_layout__.fields
        if name.startswith("."):  # how kernels read the views of fields
            return self._field(name[1:])
        if name in fields:
            if not self.ndim:
                return self._field(name)
            raise AttributeError(f"{name!r} is a field: write a[{name!r}], or a[i].{name} of one record")
        if name in ("__dlpack__", "__cuda_array_interface__"):
            raise AttributeError(f"{name}: {_NO_EXCHANGE}")
        raise AttributeError(f"a structured array has no attribute {name!r}; its fields are {', '.join(fields)}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__pyarray_layout__.fields and not self.ndim:
            self[name] = value
            return
        raise AttributeError(f"{name!r} can't be assigned; write a['x'] = ..., or a[i].x = ... of one record")

    def _field(self, name: str) -> Any:
        """The view of a field: an array, or of an inner record a structured array."""
        found = self._views.get(name)
        if found is None:
            found = self._views[name] = self._make_field(name)
        return found

    def _make_field(self, name: str) -> Any:
        words, layout = self._words, self.__pyarray_layout__
        if name not in layout.fields:
            raise KeyError(f"no field {name!r}; the fields are {', '.join(layout.fields)}")
        field = layout.fields[name]
        row = field.inner.word if field.inner else field.row
        assert row is not None
        inner = (field.inner.words,) if field.inner else field.shape
        steps = shapes.contiguous_strides(inner, row.itemsize)
        view = words._view(field.offset, self.shape + inner, self.strides + steps, dtype=row)
        if view._base is not None and (view._ptr - view._base._ptr) % row.itemsize:
            view._base = None  # offsets count elements: what starts inside one counts from itself
        return _on(field.inner, view) if field.inner else view

    def _with(self, words: Any) -> Any:
        return _on(self.__pyarray_layout__, words)

    # other shapes and types of the same records

    @property
    def T(self) -> Any:
        """View with the axes reversed."""
        return self.transpose()

    def transpose(self, *axes: Any) -> Any:
        """View with the axes in the given order, reversed without one."""
        order: Any = axes[0] if len(axes) == 1 and (axes[0] is None or hasattr(axes[0], "__iter__")) else axes or None
        shape, strides = shapes.permute(order, self.shape, self.strides)
        words = self._words
        return self._with(words._view(0, shape + words._shape[-1:], strides + words._strides[-1:]))

    def reshape(self, *shape: Any) -> Any:
        """The same records in another shape, one size of which may be -1; a view where strides allow, else a copy."""
        target = shapes.resolve_shape(shape[0] if len(shape) == 1 else shape, self.size)
        return self._with(self._words.reshape(target + self._words._shape[-1:]))

    def ravel(self) -> Any:
        """All records along one axis: a view where strides allow, else a copy."""
        return self.reshape(self.size)

    def view(self, dtype: StructuredLike) -> Any:
        """The same bytes as records of another structured dtype or dataclass of the same size. Raises `TypeError`
        for one of another size or alignment."""
        layout = structured(dtype)
        own = self.__pyarray_layout__
        if layout is None or layout.dtype.itemsize != self.itemsize or layout.alignment != own.alignment:
            raise TypeError(
                f"a view of {own} is of a structured dtype or dataclass of {self.itemsize} bytes that is aligned to "
                f"{own.alignment}, got {dtype!r}"
            )
        return _on(layout, self._words)

    def astype(self, dtype: StructuredLike, *, copy: bool = True) -> Any:
        """The records with fields of another structured dtype, cast one by one in their order."""
        layout = structured(dtype)
        if layout is None:
            raise TypeError(f"records become records of another structured dtype, got {dtype!r}; cast a field: a['x']")
        if layout.dtype == self.dtype:
            same = _on(layout, self._words)
            return same.copy() if copy else same
        return _on(layout, words_of(self._asnumpy().astype(layout.dtype), layout, self.device))

    # copies

    def copy(self) -> Any:
        """A fresh, writeable array without gaps with the same records on the same device."""
        return self._with(self._words.copy())

    def to_device(self, device: DeviceLike, /, *, stream: None = None) -> Any:
        """The array on `device`: itself when it is there, else a copy."""
        words = self._words.to_device(device, stream=stream)
        return self if words is self._words else self._with(words)

    def get(self) -> np.ndarray[Any, Any]:
        """A fresh NumPy array with the records, read from the device."""
        return self._asnumpy().copy()

    def fill(self, value: RecordLike) -> None:
        """Set all records to `value`."""
        self[...] = value

    def __copy__(self) -> Any:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy()

    def __reduce__(self) -> Any:
        layout = self.__pyarray_layout__
        kind = layout.record if layout.declared else layout.dtype
        return _restore, (np.ascontiguousarray(self.get()).reshape(self.shape), str(self.device), kind)

    # the host

    def item(self, *index: Any) -> Any:
        """The only record, or the one at `index`, as an instance of the dataclass that the array was made with, else
        as a tuple. Raises `ValueError` for an array of several without an index."""
        found = self[index[0] if len(index) == 1 and isinstance(index[0], tuple) else index] if index else self
        if found.size != 1:
            raise ValueError(f"item() takes one record, got shape {found.shape}; index it first")
        return as_record(self.__pyarray_layout__, found._asnumpy().reshape(())[()])

    def tolist(self) -> Any:
        """The records as nested lists of tuples, read from the device."""
        return self._asnumpy().tolist()

    def tobytes(self) -> bytes:
        """The records in C order, gaps within them too, as bytes of the host."""
        return self._asnumpy().tobytes()

    def _asnumpy(self) -> np.ndarray[Any, Any]:
        """What `asnumpy` returns: the records in the array's own memory on the CPU, a copy elsewhere."""
        values: np.ndarray[Any, Any] = asnumpy(self._words).view(self.dtype)[..., 0]
        return values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        self._words.__array__()  # says what to write off the CPU
        values = self._asnumpy()
        if dtype is not None and np.dtype(dtype) != values.dtype:
            if copy is False:
                raise ValueError(f"a conversion from {values.dtype} to {np.dtype(dtype)} copies; pass copy=None")
            return values.astype(dtype)
        return values.copy() if copy else values

    def __array_ufunc__(self, ufunc: Any, method: str, *operands: Any, **options: Any) -> Any:
        left, right = (*operands, None)[:2]
        if method == "__call__" and ufunc in (np.equal, np.not_equal) and not options:
            own, other = (left, right) if isinstance(left, StructuredArray) else (right, left)
            return own == other if ufunc is np.equal else own != other
        raise TypeError(f"{ufunc.__name__}(): {_NO_ARITHMETIC}")

    def __eq__(self, other: object) -> Any:
        try:
            records = _as_records(other, self.__pyarray_layout__, self.device)
        except (TypeError, ValueError):
            return NotImplemented
        shape = np.broadcast_shapes(self.shape, records.shape)
        return _equal(_broadcast(self, shape), _broadcast(records, shape))

    def __ne__(self, other: object) -> Any:
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else ~equal

    def __bool__(self) -> NoReturn:
        raise TypeError("a record has no truth value; compare it, or take a field: a[i].x")

    def __repr__(self) -> str:
        layout = self.__pyarray_layout__
        kind = layout.record.__name__ if layout.declared else str(layout.dtype)
        tail = f"dtype={kind}, device={str(self.device)!r})"
        if not self.size:
            return f"array([], shape={self.shape}, {tail}"
        body = np.array2string(self._asnumpy(), separator=", ", prefix="array(", suffix=",")
        return f"array({body},\n      {tail}"

    def __str__(self) -> str:
        return str(self._asnumpy())


def _refuse(name: str) -> Any:
    def method(self: StructuredArray, *other: Any) -> Any:
        raise TypeError(_NO_ARITHMETIC)

    method.__name__ = name
    return method


for _name in _REFUSED:
    setattr(StructuredArray, _name, _refuse(_name))


def _on(layout: Layout, words: Any) -> Any:
    """The structured array on an array of words."""
    a = object.__new__(array_class(layout))
    object.__setattr__(a, "_words", words)
    object.__setattr__(a, "_views", {})
    return a


def array_class(layout: Layout) -> type[StructuredArray]:
    """The class of the arrays of a layout, by which kernels know it."""
    if layout.array_class is None:
        kind = type("StructuredArray", (StructuredArray,), {"__slots__": (), "__pyarray_layout__": layout})
        kind.__module__ = __name__
        with lock:
            layout.array_class = layout.array_class or kind
    return layout.array_class


def _restore(values: np.ndarray[Any, Any], device: str, kind: Any) -> Any:
    layout = structured(kind)
    assert layout is not None
    return _on(layout, words_of(values, layout, get_device(device)))


def _broadcast(a: StructuredArray, shape: tuple[int, ...]) -> Any:
    words = a._words
    strides = shapes.broadcast_strides(a.shape, a.strides, shape)
    return _on(a.__pyarray_layout__, words._view(0, shape + words._shape[-1:], strides + words._strides[-1:]))


def _equal(a: StructuredArray, b: StructuredArray) -> Any:
    """Whether all fields are equal, for each record of arrays of one shape and layout."""
    result: Any = None
    for name in a.__pyarray_layout__.fields:
        x, y = a._field(name), b._field(name)
        equal = _equal(x, y) if isinstance(x, StructuredArray) else x == y
        if equal.ndim > a.ndim:
            equal = equal.all(axis=tuple(range(a.ndim, equal.ndim)))
        result = equal if result is None else result & equal
    return result


def _as_records(value: Any, layout: Layout, device: Any) -> StructuredArray:
    """What is assigned to records, or compared with them: an array of that layout on that device."""
    if isinstance(value, StructuredArray):
        moved = value.to_device(device)
        result: StructuredArray = moved.astype(layout.record if layout.declared else layout.dtype, copy=False)
        return result
    return _on(layout, words_of(host_records(value, layout), layout, device))


# ---- making


def empty(shape: Any, layout: Layout, device: Any = None, order: str = "C") -> Any:
    """A new structured array with arbitrary contents."""
    if order not in ("C", "F"):
        raise ValueError(f"order is 'C' or 'F', got {order!r}")
    sizes = shapes.resolve_shape(shape)
    words = _empty((sizes if order == "C" else sizes[::-1]) + (layout.words,), layout.word, device)
    made = _on(layout, words)
    return made if order == "C" else made.T


def as_structured(obj: Any, layout: Layout | None, copy: bool | None, device: Any) -> Any:
    """`asarray` of what has a structured dtype, or gets one."""
    if isinstance(obj, StructuredArray):
        layout = layout or obj.__pyarray_layout__
        target = obj.device if device is None else get_device(device)
        same = layout.dtype == obj.dtype and target == obj.device
        if copy is False and not same:
            raise ValueError(f"turning {obj!r} into {layout} on {target} copies; pass copy=None")
        moved = obj.to_device(target).astype(layout.record if layout.declared else layout.dtype, copy=False)
        return moved.copy() if copy and moved._words is obj._words else moved
    target = get_device(device)
    layout = layout or of_dtype(obj.dtype)
    values = host_records(obj, layout)
    shareable = values is obj and target.code == 0 and is_aligned(values, layout)
    if shareable and not copy:
        shape, strides = values.shape + (layout.words,), values.strides + (layout.alignment,)
        at = address(values)
        return _on(layout, array_on_memory(target, at, shape, strides, layout.word, values.flags.writeable, values))
    if copy is False:
        what = "aligned records of that dtype in a NumPy array can, on the CPU"
        raise ValueError(f"the {type(obj).__name__} can't be shared ({what}); pass copy=None or copy=True")
    return _on(layout, words_of(values, layout, target))
