"""Types of values in a kernel, and `Static`, which stands for values known when it is compiled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..dtypes import DType, bool_, int64
from .pins import Pins


@dataclass(frozen=True, slots=True)
class ScalarType:
    """A number. Weak ones (literals, captured numbers, loop indices) take the type of the strong operand they
    meet."""

    dtype: DType
    weak: bool = False

    def __str__(self) -> str:
        return f"{self.dtype} (weak)" if self.weak else str(self.dtype)


@dataclass(frozen=True, slots=True)
class ArrayType:
    """An array parameter or a view of one. `strided` is the layout class: its strides are read at run
    time. `pins` are promises about a parameter's sizes, which `lower` keeps apart: no type in the tree has
    any."""

    dtype: DType
    ndim: int
    strided: bool
    pins: Pins = ()

    def __str__(self) -> str:
        return f"{self.ndim}-D {'strided' if self.strided else 'contiguous'} array of {self.dtype}"


@dataclass(frozen=True, slots=True)
class TupleType:
    """What a function returns that returns several values."""

    items: tuple[Any, ...]  # ScalarType | ArrayType

    def __str__(self) -> str:
        return f"tuple of {len(self.items)}"


Type = ScalarType | ArrayType | TupleType
TYPES = (ScalarType, ArrayType, TupleType)
INDEX = ScalarType(int64, weak=True)
BOOL = ScalarType(bool_)


@dataclass(frozen=True)
class Static:
    """A value known at compile time that is no number: a module, an element type, a function, a string. As
    the type of a parameter: any value, compiled in."""

    value: Any

    def key(self) -> Any:
        """What distinguishes instances that were compiled with different values."""
        return static_key(self.value)


def static_key(value: Any) -> Any:
    """A hashable that is equal for two values only if they compile to the same: 1, 1.0, True differ, and 0.0
    and -0.0.

    >>> static_key(0.0) == static_key(-0.0), static_key((1, 2)) == static_key((1, 2))
    (False, True)
    """
    if isinstance(value, (tuple, list)):
        return (type(value), *map(static_key, value))
    if isinstance(value, (float, complex)):
        return (type(value), repr(value))
    try:
        hash(value)
    except TypeError:
        return (type(value), repr(value))
    return (type(value), value)
