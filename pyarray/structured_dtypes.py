"""Structured dtypes: the layout of an element that is a record of named fields, from NumPy's structured dtypes and from
dataclasses whose field types are declared (docs/design/structured_arrays.md).

>>> import pyarray as pa
>>> structured([("x", "f4"), ("v", "f4", (3,))]).dtype.itemsize
16
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pyarray.annotations import Annotation, ArrayAnnotation, field_annotations, field_names, is_structure
from pyarray.dtypes import BY_NAME, DType, asdtype, named_dtype
from pyarray.locks import new_lock

_ALIGN = "a field lies at a multiple of its alignment: make the dtype by numpy.dtype(..., align=True)"
_COPY = "and a copy of the array by numpy.lib.recfunctions.repack_fields(x, align=True)"


@dataclass(frozen=True, eq=False)
class Field:
    """A field of a record at byte `offset`: numbers of type `row`, in an array of `shape` where that isn't (), or a
    record within the record, `inner`."""

    offset: int
    row: DType | None
    shape: tuple[int, ...]
    inner: Layout | None


@dataclass(eq=False)
class Layout:
    """A structured dtype: one object for each dtype, and one for each class of records. `record` is the class that an
    element has in kernels, `declared` that it is the user's, `alignment` the largest of the fields' alignments."""

    dtype: np.dtype[Any]
    record: type
    declared: bool
    fields: dict[str, Field]
    alignment: int
    array_class: Any = None  # of the arrays of this layout, once there is one

    @property
    def word(self) -> DType:
        """An unsigned integer as wide as the alignment: what records are copied in."""
        return BY_NAME[f"uint{8 * self.alignment}"]

    @property
    def words(self) -> int:
        """Words of a record."""
        return self.dtype.itemsize // self.alignment

    @functools.cached_property
    def has_gaps(self) -> bool:
        """Whether a record has bytes that belong to no field."""
        sizes = (f.row.itemsize * math.prod(f.shape) for f in self.leaves() if f.row is not None)
        return sum(sizes) < self.dtype.itemsize

    def leaves(self) -> Iterator[Field]:
        """The fields of numbers, of inner records too."""
        for field in self.fields.values():
            yield from field.inner.leaves() if field.inner else (field,)

    def __repr__(self) -> str:
        return self.record.__name__ if self.declared else str(self.dtype)


@dataclass(frozen=True)
class StructuredAnnotation(Annotation):
    """A parameter that is a structured array, of any rank where `ndim` is None."""

    layout: Layout
    ndim: int | None
    direction: str | None = None

    def __repr__(self) -> str:
        return f"ndarray[{self.layout}]" if self.ndim is None else f"ndarray[{self.layout}, {self.ndim}]"


lock = new_lock()
_by_dtype: dict[np.dtype[Any], Layout] = {}  # by NumPy's dtype
_OF_CLASS = "__pyarray_record__"  # where a class of records has its layout, so that both end together


def structured(value: Any) -> Layout | None:
    """The layout that a structured dtype, what NumPy makes one of, or a dataclass or named tuple with declared field
    types names; None for what names no structured dtype. Raises `TypeError` for one that has no layout here."""
    if value is None or isinstance(value, DType):
        return None
    if isinstance(value, type):
        return of_class(value) if is_structure(value) else None
    if isinstance(value, (list, dict)) or (isinstance(value, str) and "," in value):
        try:
            value = np.dtype(value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            return None
    if not isinstance(value, np.dtype) or value.names is None:
        return None
    return of_dtype(value)


def of_dtype(dtype: np.dtype[Any]) -> Layout:
    """The layout of a structured dtype of NumPy."""
    found = _by_dtype.get(dtype)
    if found is None:
        fields = {name: _field(dtype, name, None) for name in dtype.names or ()}
        types = [(name, _field_type(field)) for name, field in fields.items()]
        record = dataclasses.make_dataclass("record", types)
        found = _layout(dtype, record, False, fields)
        with lock:
            found = _by_dtype.setdefault(dtype, found)
    return found


def of_class(kind: type) -> Layout:
    """The layout of a dataclass or named tuple, with C's alignment of its fields."""
    found: Layout | None = vars(kind).get(_OF_CLASS)
    if found is None:
        names, annotations = field_names(kind), field_annotations(kind)
        inner = {n: of_class(a) for n in names if isinstance(a := annotations.get(n), type) and is_structure(a)}
        spec = [(n, *([inner[n].dtype] if n in inner else _spec(kind, n, annotations.get(n)))) for n in names]
        if not spec:
            raise TypeError(f"{kind.__name__} has no fields, and a record has one at least")
        dtype = np.dtype(spec, align=True)
        found = _layout(dtype, kind, True, {n: _field(dtype, n, inner.get(n)) for n in names})
        with lock:
            found = vars(kind).get(_OF_CLASS, found)
            setattr(kind, _OF_CLASS, found)
    assert found is not None
    return found


def structured_annotation(item: Any) -> StructuredAnnotation | None:
    """The annotation `ndarray[Particle]` or `ndarray[Particle, ndim]`; None for arrays of numbers."""
    dtype, *rest = item if isinstance(item, tuple) else (item,)
    layout = structured(dtype)
    if layout is None or len(rest) > 1:
        return None
    if rest and (not isinstance(rest[0], int) or rest[0] < 0):
        raise TypeError(f"ndarray[{layout}, ndim] takes a rank of 0 or more, got {rest[0]!r}")
    return StructuredAnnotation(layout, rest[0] if rest else None)


def _spec(kind: type, name: str, annotation: Any) -> tuple[Any, ...]:
    """Dtype, and shape if it has one, of a field that is declared as numbers."""
    number = any(annotation is python for python in (bool, int, float, complex))
    row = annotation if isinstance(annotation, DType) else named_dtype(annotation)
    if number or row is not None:
        return (asdtype(annotation).numpy,)
    if isinstance(annotation, ArrayAnnotation) and annotation.dtype is not None:
        sizes = annotation.sizes
        if sizes is not None and None not in sizes:
            return annotation.dtype.numpy, sizes
    shown = "no type" if annotation is None else repr(annotation)
    raise TypeError(
        f"{name!r} of {kind.__name__} is declared {shown}; a field of a record is declared a dtype, bool, int, float, "
        "complex, pa.ndarray[pa.float32, (3,)] or a dataclass of such fields"
    )


def _field(dtype: np.dtype[Any], name: str, inner: Layout | None) -> Field:
    fields: Any = dtype.fields
    kind, offset = fields[name][:2]
    base, shape = kind.subdtype or (kind, ())
    if not name.isidentifier():
        raise TypeError(f"the field {name!r} is called by no identifier; rename it: numpy.dtype([('x', 'f4')])")
    if base.names is not None:
        if shape:
            raise TypeError(
                f"the field {name!r} is an array of records; make it several fields, or an array of its own"
            )
        return Field(offset, None, (), inner or of_dtype(base))
    if not base.isnative:
        raise TypeError(
            f"the field {name!r} has a foreign byte order; convert it with x.astype(x.dtype.newbyteorder('='))"
        )
    try:
        return Field(offset, asdtype(base), shape, None)
    except TypeError as error:
        raise TypeError(f"the field {name!r} of a structured dtype: {error}") from None


def _field_type(field: Field) -> Any:
    """The annotation of a field in the class that stands for a dtype of NumPy."""
    if field.inner is not None:
        return field.inner.record
    assert field.row is not None
    if field.shape:
        return ArrayAnnotation(False, field.row, len(field.shape), sizes=field.shape)
    return field.row.numpy.type


def _layout(dtype: np.dtype[Any], record: type, declared: bool, fields: dict[str, Field]) -> Layout:
    end, alignments = 0, [1]
    if not fields or not dtype.itemsize:
        raise TypeError(f"the structured dtype {dtype} has no bytes, and a record has one at least")
    for name, field in sorted(fields.items(), key=lambda item: item[1].offset):
        alignment = field.inner.alignment if field.inner else field.row.numpy.alignment  # type: ignore[union-attr]
        if field.offset % alignment:
            raise TypeError(f"the field {name!r} begins at byte {field.offset}, and {_ALIGN}, {_COPY}")
        if field.offset < end:
            raise TypeError(f"the field {name!r} overlaps another one; each byte of a record belongs to one field")
        size = dtype[name].itemsize
        end = field.offset + size
        alignments.append(alignment)
    if dtype.itemsize % max(alignments):
        raise TypeError(
            f"a record of {dtype.itemsize} bytes puts the next one's fields at odd bytes, and {_ALIGN}, {_COPY}"
        )
    return Layout(dtype, record, declared, fields, max(alignments))
