"""Launches bound to arrays of known shapes and strides, which C packs and calls (`csrc/core/bound_launch.c`)."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .. import shapes
from .._core import BoundLaunch
from ..dtypes import ALL
from ..lang.ir import ScalarType
from .launch import native_launch, slot_format
from .variants import Variant

Layout = tuple[tuple[int, ...], tuple[int, ...]]  # shape and strides


def bind_launch(
    variant: Variant,
    layouts: Sequence[Layout | None],
    numbers: Sequence[Any] = (),
    offsets: Sequence[int] | None = None,
    order: Sequence[int] | None = None,
) -> BoundLaunch:
    """The launch of `variant`, which checks no bounds, for arrays of these shapes and strides: a function of their
    addresses, `offsets` bytes before them, and of the numbers, which have no layout. It takes arrays for addresses.
    `numbers` are the first of the numbers, which are part of it then. Its arguments come in the order of the
    parameters, or in this `order`."""
    assert not variant.returns_failures, "checked code has other slots"
    left = list(numbers)
    slots, arguments, size = b"", list[tuple[int, int, int]](), 1
    for k, ((_, kind), layout) in enumerate(zip(variant.program.params, layouts, strict=True)):
        if layout is not None:
            shape, strides = layout
            arguments.append((len(slots) // 8, -1, offsets[k] if offsets else 0))
            values = (0, *shape, *(strides if kind.strided else ()))
            slots += struct.pack(f"@{slot_format(kind, False)}", *values)
            size = max(size, shapes.size(shape))
        elif left:
            slots += pack_number(kind.dtype.code, left.pop(0))
        else:
            arguments.append((len(slots) // 8, kind.dtype.code, 0))
            slots += bytes(16 if kind.dtype.kind == "c" else 8)
    passed = tuple(arguments if order is None else (arguments[k] for k in order))
    return BoundLaunch(native_launch(variant), slots, passed, size, pack_number)


def first_slots(params: Sequence[tuple[str, Any]]) -> Iterator[int]:
    """The first argument slot of each parameter."""
    slot = 0
    for _, kind in params:
        yield slot
        slot += struct.calcsize(f"@{slot_format(kind, False)}") // 8


def pack_number(code: int, value: Any) -> bytes:
    """The slots of a number for the dtype with that code. Raises `struct.error`, `TypeError` or `OverflowError` for
    what it can't hold."""
    dtype = ALL[code]
    if dtype.kind == "c":
        if isinstance(value, (str, bytes)):
            raise TypeError("expected a number, got text")
        number = complex(value)
        return struct.pack("@dd", number.real, number.imag)
    if dtype.kind == "b" and not isinstance(value, (bool, np.bool_)):  # anything has a truth value
        raise TypeError(f"expected a bool, got {type(value).__name__}")
    return struct.pack(f"@{slot_format(ScalarType(dtype), False)}", value)
