"""What `BufferView[float32]`, `ndarray[float32, 2]`, `In[...]`, dataclasses mean in a kernel's signature."""

from __future__ import annotations

import dataclasses
import inspect
import operator
import sys
import types
import typing
from dataclasses import dataclass
from typing import Any

from pyarray.dtypes import DType, asdtype, shown


class Annotation:
    """`annotation | None`, as of a class: an argument that may be left out."""

    def __or__(self, other: Any) -> Any:
        return typing.Union[self, other]  # noqa: UP007

    __ror__ = __or__


@dataclass(frozen=True)
class ArrayAnnotation(Annotation):
    """An array parameter: `view` says a contiguous 1-D run, `dtype` and `ndim` are None where any will do. `sizes`:
    those that are declared, by axis, None for any; None if none is."""

    view: bool
    dtype: DType | None
    ndim: int | None
    direction: str | None = None  # IN, OUT or INOUT where it was declared
    sizes: tuple[int | None, ...] | None = None

    def __repr__(self) -> str:
        if self.direction is not None:
            return f"{DIRECTIONS[self.direction]}[{dataclasses.replace(self, direction=None)}]"
        if self.view:
            return f"BufferView[{self.dtype}]"
        if self.sizes is not None:
            return f"ndarray[{self.dtype}, {self.sizes}]"
        return f"ndarray[{self.dtype}]" if self.ndim is None else f"ndarray[{self.dtype}, {self.ndim}]"


def view_annotation(item: Any) -> ArrayAnnotation:
    """Annotation for `BufferView[item]`. Raises `TypeError` unless `item` names one dtype.

    >>> view_annotation("float32")
    BufferView[float32]
    """
    if isinstance(item, tuple):
        raise TypeError(f"BufferView[...] takes one dtype, got {len(item)} items; else write ndarray[dtype, ndim]")
    return ArrayAnnotation(True, asdtype(item), 1)


def array_annotation(item: Any) -> ArrayAnnotation:
    """Annotation for `ndarray[dtype]`, `ndarray[dtype, ndim]` or `ndarray[dtype, shape]`; a dtype of `...` is any,
    and so is a size of None.

    Raises `TypeError` for anything but a dtype and an integer rank or a shape, `ValueError` for a negative rank or
    size.

    >>> array_annotation(("float32", 2)), array_annotation(("float32", (None, 3)))
    (ndarray[float32, 2], ndarray[float32, (None, 3)])
    """
    dtype, *rest = item if isinstance(item, tuple) else (item,)
    rank: Any = rest[0] if rest else None
    sizes = rank if isinstance(rank, tuple) else tuple(rest)
    named = any(not (hasattr(n, "__index__") or (n is None and sizes is rank)) for n in sizes)
    if len(rest) > 1 or named:
        got = repr(rank) if named else f"{len(rest) + 1} items"
        raise TypeError(
            f"ndarray[...] takes a dtype and a rank or a shape, got {got}; "
            "write ndarray[float32, 2] or ndarray[float32, (None, 3)]"
        )
    if isinstance(rank, tuple):
        sizes = tuple(None if n is None else operator.index(n) for n in rank)
        if not sizes or any(n is not None and n < 0 for n in sizes):
            raise ValueError(f"a shape in ndarray[dtype, shape] has sizes of 0 or more, or None for any, got {sizes}")
        declared_sizes = None if all(n is None for n in sizes) else sizes
        return ArrayAnnotation(False, None if dtype is Ellipsis else asdtype(dtype), len(sizes), sizes=declared_sizes)
    ndim = operator.index(rank) if rest else None
    if ndim is not None and ndim < 0:
        raise ValueError(f"ndarray[dtype, ndim] takes a rank of 0 or more, got {ndim}")
    return ArrayAnnotation(False, None if dtype is Ellipsis else asdtype(dtype), ndim)


DIRECTIONS = {"IN": "In", "OUT": "Out", "INOUT": "InOut"}


@dataclass(frozen=True)
class Direction(Annotation):
    """`In[inner]`: what an array parameter is for; `inner` is its annotation, None for any array."""

    direction: str
    inner: Any

    def __repr__(self) -> str:
        return f"{DIRECTIONS[self.direction]}[{shown(self.inner)}]"


class In:
    """Annotation of an array that a kernel only reads: `In[BufferView[float32]]`, or `In` for any array. A
    store into it is a `CompileError`.

    >>> In[array_annotation("float32")]
    In[ndarray[float32]]
    """

    direction = "IN"

    def __class_getitem__(cls, item: Any) -> Direction:
        if isinstance(item, (tuple, Direction)):
            raise TypeError(f"{cls.__name__}[...] takes one annotation of an array, got {item!r}")
        return Direction(cls.direction, item)


class Out(In):
    """Annotation of an array that a kernel writes wholly and doesn't read before: `Out[BufferView[float32]]`,
    or `Out` for any array. What isn't written is reported in debug mode; the old contents of a host array are
    not uploaded.

    >>> Out[array_annotation(("float32", 2))]
    Out[ndarray[float32, 2]]
    """

    direction = "OUT"


class InOut(In):
    """Annotation of an array that a kernel reads and writes: `InOut[BufferView[float32]]`, or `InOut` for any
    array.

    >>> InOut[view_annotation("int8")]
    InOut[BufferView[int8]]
    """

    direction = "INOUT"


def declared(annotation: Any) -> Direction | None:
    """`In`, `Out[...]` and the like as a `Direction`, None for other annotations."""
    if isinstance(annotation, Direction):
        return annotation
    bare = isinstance(annotation, type) and issubclass(annotation, In)
    return Direction(annotation.direction, None) if bare else None


def without_none(annotation: Any) -> Any:
    """`X` of `X | None`; another annotation as it is.

    >>> without_none(array_annotation("float32") | None)
    ndarray[float32]
    """
    if typing.get_origin(annotation) not in (types.UnionType, typing.Union):
        return annotation
    others = [kind for kind in typing.get_args(annotation) if kind is not type(None)]
    return others[0] if len(others) == 1 else annotation


def is_structure(kind: Any) -> bool:
    """Whether a class is a dataclass or a named tuple."""
    return isinstance(kind, type) and (
        dataclasses.is_dataclass(kind) or (issubclass(kind, tuple) and hasattr(kind, "_fields"))
    )


def field_names(kind: type) -> tuple[str, ...]:
    """Fields of a dataclass or named tuple, in order."""
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    return tuple(kind._fields)  # type: ignore[attr-defined]


def field_annotations(kind: type) -> dict[str, Any]:
    """Annotations of a class's fields as objects; None for one that can't be evaluated."""
    evaluated: dict[str, Any] = {}
    for owner in reversed(kind.__mro__):
        space = vars(sys.modules.get(owner.__module__, typing))
        annotations = inspect.get_annotations(owner)
        evaluated |= {name: _evaluated(annotation, space, owner) for name, annotation in annotations.items()}
    return evaluated


def _evaluated(annotation: Any, space: dict[str, Any], owner: type) -> Any:
    text = getattr(annotation, "__forward_arg__", annotation)
    if not isinstance(text, str):
        return annotation
    try:
        return eval(text, dict(space), {owner.__name__: owner, **vars(owner)})
    except Exception:  # it was written for others, or names what is local to a function
        return None


def is_plain(kind: type) -> bool:
    """Whether the class of a dataclass or named tuple is made from its fields alone, by no code of its
    author."""
    constructor = kind.__init__ if dataclasses.is_dataclass(kind) else kind.__new__
    return getattr(getattr(constructor, "__code__", None), "co_filename", None) == "<string>"
