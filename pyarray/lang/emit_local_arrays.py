"""C text of local arrays: structs that hold the elements in C order, passed and returned by value. Shapes are known
here: structs of one size and element type are one type of C."""

from __future__ import annotations

from collections.abc import Sequence

from . import ir
from .emit_views import WHERE
from .printer import conjunction, function_text


def local_name(kind: ir.LocalArrayType) -> str:
    return f"local_{kind.dtype.suffix}_{kind.size}"


def local_struct(kind: ir.LocalArrayType) -> str:
    return f"typedef struct {{ {kind.dtype.ctype} m[{max(kind.size, 1)}]; }} {local_name(kind)};\n"


def builder(kind: ir.LocalArrayType, function: str) -> tuple[str, str]:
    """(name, text) of the function that makes one of its elements."""
    name = f"make_{local_name(kind)}"
    params = ", ".join(f"{kind.dtype.ctype} m{k}" for k in range(kind.size))
    lines = [f"{local_name(kind)} r;", *(f"r.m[{k}] = m{k};" for k in range(kind.size)), "return r;"]
    if not kind.size:
        lines[0] = f"{local_name(kind)} r = {{{{0}}}};"
    return name, function_text(f"{function} {local_name(kind)} {name}({params or 'void'})", lines)


def filler(kind: ir.LocalArrayType, function: str) -> tuple[str, str]:
    """(name, text) of the function that makes one with equal elements."""
    name, count = f"fill_{local_name(kind)}", max(kind.size, 1)
    lines = [f"{local_name(kind)} r;", f"for (int k = 0; k < {count}; ++k) r.m[k] = x;", "return r;"]
    return name, function_text(f"{function} {local_name(kind)} {name}({kind.dtype.ctype} x)", lines)


def flat_position(shape: Sequence[int], index: Sequence[int]) -> int:
    """The number of an element in C order.

    >>> flat_position((2, 3), (1, 2))
    5
    """
    position = 0
    for size, i in zip(shape, index, strict=True):
        position = position * size + i
    return position


def position_text(shape: Sequence[int], index: Sequence[str]) -> str:
    """The same as C text."""
    text = ""
    for size, i in zip(shape, index, strict=True):
        text = f"({text}) * {size} + {i}" if text else i
    return text


def checked_position(shape: Sequence[int], function: str) -> tuple[str, str]:
    """(name, text) of the function that gives the position of an element that is inside, and 0 after a failure."""
    name = f"position_{'_'.join(map(str, shape))}"
    index = [f"i{axis}" for axis in range(len(shape))]
    size = flat_position(shape, [n - 1 for n in shape]) + 1 if all(shape) else 0
    where = "at->rt, up, site + {axis}, at->loop, at->tid"
    tests = [f"pa_check_index({where.format(axis=axis)}, i{axis}, {n}, 0, {size})" for axis, n in enumerate(shape)]
    start, end = ("(", ")") if len(shape) > 1 else ("", "")
    lines = conjunction(f"return inside || {start}", tests, end)
    head = f"{function} int64_t {name}({WHERE}, {', '.join(f'int64_t {i}' for i in index)})"
    return name, function_text(head, [*lines, f"    ? {position_text(shape, index)} : (at->failed = true, 0);"])
