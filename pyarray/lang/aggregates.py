"""Aggregates: tuples, named tuples, dataclasses and objects as values and types of kernels.

Their leaves are numbers, arrays and `Static`s. Each leaf is a variable or a parameter of its own, named by
its path: `p.inner.v`, `t[0]`. The same structure holds the leaves of a value (expressions) or of a type."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from . import ir


@dataclass(frozen=True)
class RecordPlace:
    """Where a record of an array is: `parts` are the loads of its numbers, the views of its arrays, and records;
    `lets` evaluate the index, before any of them."""

    lets: tuple[tuple[str, ir.Expr], ...]
    parts: tuple[Any, ...]


@dataclass(frozen=True)
class Aggregate:
    """A named tuple, a dataclass or another object of class `kind`; plain tuples are Python tuples.
    `complete`: the names are all that it has, not just those that a kernel's text reads. `origins`: the paths of
    variables that hold this object, or may hold it; () of a new one. `place`: of the value of `a[i]`, a record of an
    array, where it is."""

    kind: type
    names: tuple[str, ...]
    items: tuple[Any, ...]
    complete: bool = True
    origins: tuple[str, ...] = field(default=(), compare=False)
    place: RecordPlace | None = field(default=None, compare=False)


@dataclass(frozen=True)
class UnreadableField:
    """Stands for a field that no kernel can read; an error when one does."""

    kind: type

    def __repr__(self) -> str:
        return f"of type {self.kind.__name__}"


def is_aggregate(value: Any) -> bool:
    """Whether it has parts."""
    return isinstance(value, (tuple, Aggregate))


def is_generator(value: Any) -> bool:
    """Whether it is a generator of random numbers, made by `pa.rng`."""
    return isinstance(value, Aggregate) and hasattr(value.kind, "__pyarray_generator__")


def counters_of(params: Iterable[tuple[str, Any]]) -> Iterator[str]:
    """The parameters that are the counters of generators."""
    return (f"{name}.counter" for name, kind in params if is_generator(kind))


def is_records(value: Any) -> bool:
    """Whether it is an array of records."""
    return isinstance(value, Aggregate) and hasattr(value.kind, "__pyarray_layout__")


def as_tuple(value: Any) -> tuple[Any, ...] | None:
    """The items of what Python would take as a tuple, else None."""
    if isinstance(value, Aggregate):
        return value.items if issubclass(value.kind, tuple) else None
    return value if isinstance(value, tuple) else None


def fields_of(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """(path, item) of a group, in order."""
    if isinstance(value, Aggregate):
        yield from ((f"{path}.{name}", item) for name, item in zip(value.names, value.items, strict=True))
    else:
        yield from ((f"{path}[{k}]", item) for k, item in enumerate(value))


def leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """(path, leaf) of a group, in order; of anything else, itself."""
    if not is_aggregate(value):
        yield path, value
        return
    for name, item in fields_of(path, value):
        yield from leaves(name, item)


def transform(path: str, value: Any, change: Callable[[str, Any], Any]) -> Any:
    """The same structure with `change(path, leaf)` in place of each leaf."""
    if not is_aggregate(value):
        return change(path, value)
    items = tuple(transform(name, item, change) for name, item in fields_of(path, value))
    return replace(value, items=items, place=None) if isinstance(value, Aggregate) else items


def with_origins(value: Any, origins: tuple[str, ...] = (), path: str | None = None) -> Any:
    """The same value, whose objects of all depths are those that `origins` hold, or that the variable `path`
    holds."""
    if not is_aggregate(value):
        return value
    parts = fields_of(path or "", value)
    items = tuple(with_origins(item, origins, None if path is None else name) for name, item in parts)
    own = origins if path is None else (path,)
    return replace(value, items=items, origins=own) if isinstance(value, Aggregate) else items


def root_of(path: str) -> str:
    """The variable that a path is of: `p` of `p.inner[0]`.

    >>> root_of("p.inner[0]"), root_of(".3")
    ('p', '.3')
    """
    return path[:1] + path[1:].partition(".")[0].partition("[")[0]


def skeleton(value: Any) -> Any:
    """The structure alone: None for each leaf that lives in a variable, `Static`s as they are."""
    plain = transform("", value, lambda _, leaf: leaf if isinstance(leaf, ir.Static) else None)
    return with_origins(plain)


def key(kind: Any) -> Any:
    """What distinguishes instances of a function for parameters of these types."""
    if isinstance(kind, Aggregate):
        return (kind.kind, kind.names, kind.complete, *map(key, kind.items))
    if isinstance(kind, tuple):
        return (tuple, *map(key, kind))
    return kind.key() if isinstance(kind, ir.Static) else kind
