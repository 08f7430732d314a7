"""Types of values in a kernel, and `Static`, a value known when the kernel is compiled."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, is_dataclass
from types import FunctionType
from typing import Any

import numpy as np

from ..dtypes import DType, bool_, int64, named_dtype
from .specializations import Specializations


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
    time. `specializations` are promises about a parameter's sizes; `lower` removes them, no type in the tree has
    any. `reshape_of`: it is a view of a reshape of an array of that type. If its strides don't fit, elements are
    found by their flat index there. `sizes` are those that are constant, None for others; () if none is."""

    dtype: DType
    ndim: int
    strided: bool
    specializations: Specializations = ()
    reshape_of: ArrayType | None = None
    sizes: tuple[int | None, ...] = ()

    def __str__(self) -> str:
        layout = "reshaped" if self.reshape_of else "strided" if self.strided else "contiguous"
        return f"{self.ndim}-D {layout} array of {self.dtype}"


SCRAP_BYTES = 256  # of the memory that failed accesses use: PA_SCRAP_LEN


def lasting_sizes(kind: ArrayType) -> tuple[int | None, ...]:
    """The constant sizes that a view has after a failed access, too, so that its own accesses needn't be tested: it is
    scrap memory, as large as it is, or with strides of 0. () if nothing is sure."""
    whole = bool(kind.sizes) and None not in kind.sizes
    if kind.reshape_of is not None or (
        whole and not kind.strided and math.prod(kind.sizes) * kind.dtype.itemsize > SCRAP_BYTES  # type: ignore[arg-type]
    ):
        return ()
    return kind.sizes


@dataclass(frozen=True, slots=True)
class LocalArrayType:
    """An array of constant shape that a kernel makes: a value of its thread, in registers or local memory."""

    dtype: DType
    shape: tuple[int, ...]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def __str__(self) -> str:
        return f"local array of {self.dtype} of shape {self.shape}"


@dataclass(frozen=True, slots=True)
class TileType(LocalArrayType):
    """A tile that is a variable: memory for a tile of full size. `axes` names the tile index of each axis, "" for an
    axis of size 1; only the elements at that index's values exist."""

    axes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"tile of {self.dtype} of ({', '.join(axis_label(axis) for axis in self.axes)})"


def axis_label(axis: str) -> str:
    """The tile index of an axis as the source names it."""
    return axis.partition(":")[2] or "1"


def is_axis_bound(name: str) -> bool:
    """Whether a variable is the start or the stop of a tile index (`tile_values`)."""
    return name[:2] in (".a", ".b")


@dataclass(frozen=True, slots=True)
class TupleType:
    """What a function returns that returns several values."""

    items: tuple[Any, ...]  # ScalarType | ArrayType | LocalArrayType

    def __str__(self) -> str:
        return f"tuple of {len(self.items)}"


Type = ScalarType | ArrayType | LocalArrayType | TupleType
TYPES = (ScalarType, ArrayType, LocalArrayType, TileType, TupleType)
INDEX = ScalarType(int64, weak=True)
BOOL = ScalarType(bool_)
_PLAIN = frozenset((bool, int, str, DType, FunctionType))  # keys are their class and value


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
    kind = type(value)
    if kind in _PLAIN:  # each launch comes here
        return kind, value
    if (row := named_dtype(value)) is not None:
        return (DType, row)  # by whichever of its names it goes
    if isinstance(value, (tuple, list)):
        return (kind, *map(static_key, value))
    if isinstance(value, dict):
        return (kind, *((static_key(k), static_key(x)) for k, x in value.items()))
    if isinstance(value, (float, complex)):
        return (kind, repr(value))
    if isinstance(value, np.generic):
        return (kind, value.dtype.str, value.tobytes())
    if is_dataclass(value) and not isinstance(value, type):
        return (kind, *(static_key(getattr(value, field.name, None)) for field in fields(value)))
    try:
        hash(value)
    except TypeError:
        return (kind, _IdentityKey(value))
    return (kind, value)


class _IdentityKey:
    """A key that is equal for one object only, which it keeps alive: for what can't be compared by value."""

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _IdentityKey) and self.value is other.value

    def __hash__(self) -> int:
        return hash(type(self.value))
