"""Iteration counts of parallel loops over several ranges: those that a launch can test before it runs.

The count is a product, which may overflow 64 bits. A launch tests sizes that follow from arguments
(`jit/launch.py`). For sizes from memory the emitted text computes the product, and runs no iteration where
it overflows; debug mode reports that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from . import ir

_INT64_MAX = (1 << 63) - 1
_OPERATORS = {"add": "+", "sub": "-", "mul": "*"}


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
        for name in ir.assigned(s):
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


def overflow_test(loop_extents: LoopExtents, variables: Mapping[str, str]) -> tuple[str, str]:
    """(condition that there are too many iterations, tuple of the sizes), as Python text; `variables` hold
    the arguments."""
    sizes = [_text(size, variables) for size in loop_extents.sizes]
    natural = " and ".join(f"{size} > 0" for size in sizes)
    return f"{' * '.join(sizes)} > {_INT64_MAX} and {natural}", f"({', '.join(sizes)},)"


def _text(size: Any, variables: Mapping[str, str]) -> str:
    if isinstance(size, int):
        return f"{size:d}" if size >= 0 else f"({size:d})"
    if isinstance(size, str):
        return f"int({variables[size]})"
    if len(size) == 2:
        return f"{variables[size[0]]}._shape[{int(size[1])}]"
    return f"({_text(size[1], variables)} {_OPERATORS[size[0]]} {_text(size[2], variables)})"
