"""Iteration counts of parallel loops over several ranges: those that a launch can test before it runs.

The count is a product, which may overflow 64 bits. A launch tests sizes that follow from arguments
(`csrc/core/extents.c`). For sizes from memory the emitted text computes the product, and runs no iteration where
it overflows; debug mode reports that."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from . import ir
from .summaries import assigned_in

_INT64_MAX = (1 << 63) - 1
_OPERATORS = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}
# of the programs that csrc/core/extents.c runs
_CONSTANT, _SIZE, _NUMBER, _OPERATIONS, _FACTOR, _END, _UNKNOWN = 0, 1, 2, {"add": 3, "sub": 4, "mul": 5}, 6, 7, 8


@dataclass(frozen=True)
class LoopExtents:
    """Sizes of the ranges of the parallel loop number `loop`, each an int, a parameter's name, (array
    parameter's name, axis), or (an operator, two of these)."""

    loc: ir.Loc
    loop: int
    sizes: tuple[Any, ...]


def extents(kernel: ir.Function) -> tuple[LoopExtents, ...]:
    """The extents of parallel loops whose sizes are all expressions of arguments."""
    values: dict[str, Any] = {
        n: n for n, kind in kernel.params if not isinstance(kind, ir.ScalarType) or kind.dtype.kind in "iu"
    }
    result = []
    for s in kernel.body:
        if isinstance(s, ir.For) and s.loop is not None and len(s.ranges) > 1:
            sizes = tuple(_size(r.stop, values) for r in s.ranges)
            if None not in sizes:
                result.append(LoopExtents(s.loc, s.loop, sizes))
        for name in assigned_in(s):
            values.pop(name, None)
        if isinstance(s, ir.Assign) and (value := _size(s.value, values)) is not None:
            values[s.name] = value
    return tuple(result)


def _size(e: Any, values: Mapping[str, Any]) -> Any:
    """As in `LoopExtents`; None for what follows from something else."""
    if isinstance(e, ir.Cast):
        return _size(e.a, values) if e.type.dtype.name == "int64" and e.a.type.dtype.kind in "iu" else None
    if isinstance(e, ir.Convert) and e.how == "saturate":
        return _size(e.a, values)
    if isinstance(e, ir.Const):
        return e.value if type(e.value) is int else None
    if isinstance(e, ir.Local):
        return values.get(e.name) if isinstance(e.type, ir.ScalarType) else None
    if isinstance(e, ir.Size):
        name = values.get(e.array.name) if isinstance(e.array, ir.Local) else None
        return None if name is None else (name, e.axis)
    if isinstance(e, ir.Binary) and e.op in _OPERATORS and e.type.dtype.name == "int64":
        a, b = _size(e.a, values), _size(e.b, values)
        return None if a is None or b is None else (e.op, a, b)
    return None


def are_sizes_of_output(loop_extents: LoopExtents, directions: Mapping[str, str]) -> bool:
    """Whether the sizes are those of different axes of an array that is written: it has all these
    elements."""
    axes = {size for size in loop_extents.sizes if isinstance(size, tuple) and len(size) == 2}
    names = {name for name, _ in axes}
    return len(axes) == len(loop_extents.sizes) and len(names) == 1 and directions.get(min(names)) in ("OUT", "INOUT")


def encoded(extents: Iterable[LoopExtents], slots: Mapping[str, tuple[int, int]]) -> tuple[int, ...]:
    """A program that tests the products in 64 bits before a launch. `slots` has, by parameter, the slot of an array's
    first size and -1, or a number's slot and its dtype's code."""
    program: list[int] = []
    for found in extents:
        for size in found.sizes:
            program += (*_encoded_size(size, slots), _FACTOR)
        program.append(_END)
    return tuple(program)


def _encoded_size(size: Any, slots: Mapping[str, tuple[int, int]]) -> Iterator[int]:
    if isinstance(size, int):
        yield from (_CONSTANT, size) if abs(size) <= _INT64_MAX else (_UNKNOWN,)
    elif isinstance(size, str):
        yield from (_NUMBER, *slots[size]) if size in slots else (_UNKNOWN,)
    elif len(size) == 2:
        yield from (_SIZE, slots[size[0]][0] + size[1]) if size[0] in slots else (_UNKNOWN,)
    else:
        yield from _encoded_size(size[1], slots)
        yield from _encoded_size(size[2], slots)
        yield _OPERATIONS[size[0]]


def sizes_of(found: LoopExtents, arguments: Mapping[str, Any]) -> tuple[int, ...]:
    """The sizes of the ranges for arguments of a launch."""
    return tuple(_value(size, arguments) for size in found.sizes)


def are_too_many(sizes: tuple[int, ...]) -> bool:
    """Whether ranges of these sizes have more iterations than an int64 counts."""
    return min(sizes) > 0 and math.prod(sizes) > _INT64_MAX


def _value(size: Any, arguments: Mapping[str, Any]) -> int:
    if isinstance(size, int):
        return size
    if isinstance(size, str):
        return int(arguments[size])
    if len(size) == 2:
        return int(arguments[size[0]]._shape[size[1]])
    return int(_OPERATORS[size[0]](_value(size[1], arguments), _value(size[2], arguments)))
