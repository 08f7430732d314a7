"""The text around a user's C++: argument layouts, slots, and the declarations of parameters."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ... import shapes
from ...array import STRIDED, ndarray
from ...dtypes import BY_NAME, DType
from ...lang import emit_loop
from ...lang.bounds_checks import Site
from ...lang.emit_statements import cname
from ...lang.ir import ArrayType, Function, Loc, ScalarType
from .text_params import CTYPES, Param, aligned, as_number

_INCLUDE = re.compile(r"^\s*#\s*include\b", re.MULTILINE)

# ---- argument layouts


def flat(x: ndarray) -> ndarray:
    """A 0-d array as a 1-D array of one element."""
    view: ndarray = x if x._shape else x._view(0, (1,), (x.itemsize,))
    return view


@dataclass(frozen=True)
class Layout:
    """The layout of an argument, as far as the text depends on it. `axes`: the loop's axes that the array
    has (it is broadcast along the others), None for numbers and `raw` arrays; `unit`: its last axis is the
    loop's, with unit stride."""

    type: Any  # ArrayType or ScalarType
    axes: tuple[int, ...] | None = None
    unit: bool = False


Column = tuple[tuple[int, ...], int] | None  # strides along the loop's axes, itemsize


# A function of its arguments alone: shapes and strides, no array.
@functools.lru_cache(maxsize=4096)
def merged_axes(
    shape: tuple[int, ...], columns: tuple[Column, ...], merge: bool, order: int | None
) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    """The loop's axes, merged where all strides allow, and for each column its (axes, sizes, strides, unit).
    `order` is the column whose strides decide the order of the axes; None keeps it."""
    steps = [c[0] for c in columns if c is not None]
    if order is not None and columns[order] is not None:
        first = columns[order][0]  # type: ignore[index]
        axes = sorted(range(len(shape)), key=lambda k: -abs(first[k]))
        shape = tuple(shape[k] for k in axes)
        steps = [tuple(s[k] for k in axes) for s in steps]
    if merge:
        shape, merged = shapes.collapse(shape, *steps)
        steps = list(merged)
    if not shape:
        shape, steps = (1,), [(0,) for _ in steps]
    remaining = iter(steps)
    rows: list[Any] = []
    for column in columns:
        if column is None:
            rows.append(None)
            continue
        strides, last = next(remaining), len(shape) - 1
        used_axes = tuple(k for k, step in enumerate(strides) if step)
        unit = bool(used_axes) and used_axes[-1] == last and strides[last] == column[1]
        rows.append((used_axes, tuple(shape[k] for k in used_axes), tuple(strides[k] for k in used_axes), unit))
    return shape, tuple(rows)


def merged_view(x: ndarray, row: Any) -> tuple[ndarray, Layout]:
    """A view of the merged axes that the array has, and its layout."""
    axes, sizes, strides, unit = row
    view: ndarray = x._view(0, sizes, strides)
    strided = bool(view._key & STRIDED)
    return view, Layout(ArrayType(x._dtype, len(axes), strided), axes, unit)


def argument_layouts(
    kernel: str, params: Sequence[Param], values: Sequence[Any], rows: Sequence[Any], types: dict[str, DType]
) -> tuple[list[Layout], list[Any]]:
    """The layout of each argument, and the arguments to launch with."""
    layouts, passed = [], []
    for param, x, row in zip(params, values, rows, strict=True):
        dtype = param.kind(types)
        if not isinstance(x, ndarray):
            layouts.append(Layout(ScalarType(dtype)))
            passed.append(as_number(kernel, param.name, dtype, x))
            continue
        if not aligned(x):
            raise ValueError(
                f"{kernel}(): elements of {param.name!r} aren't at multiples of their size, {x.itemsize} "
                "bytes, which C++ asks for; pass a copy"
            )
        if row is None:
            x = flat(x)
            layouts.append(Layout(ArrayType(dtype, x.ndim, bool(x._key & STRIDED))))
            passed.append(x)
        else:
            view, layout = merged_view(x, row)
            layouts.append(layout)
            passed.append(view)
    return layouts, passed


def is_raw(param: Param, layout: Layout) -> bool:
    """Whether it is an array that the text indexes; a number may be given for it."""
    return param.raw and isinstance(layout.type, ArrayType)


def directions(rows: Sequence[tuple[Param, Layout]], sizes: Sequence[str]) -> dict[str, str]:
    """Direction by parameter. The text may read outputs, so they are INOUT."""
    modes = {p.name: "SCALAR" if not isinstance(x.type, ArrayType) else "INOUT" if p.out else "IN" for p, x in rows}
    return modes | dict.fromkeys(sizes, "SCALAR")


# ---- text


class TextBuilder:
    """Builds text in which compiler messages number the lines of each user's piece from 1."""

    def __init__(self, kernel: str):
        self.kernel = kernel
        self._text = ""

    def indices(self, count: int, source: str, pad: str, first: int = 0) -> None:
        """Declares loop indices from those of an indexer."""
        self._text += "".join(f"{pad}const int64_t _j{first + k} = {source}.index_[{k}];\n" for k in range(count))

    def add(self, text: str) -> None:
        self._text += text

    def user(self, text: str, what: str) -> None:
        """A piece of the user's, whose first line is line 1 of `what`."""
        if text.strip():
            self._text += f'\n#line 1 "{self.kernel}: {what}"\n{text}\n'
            self._text += f'#line {self._text.count(chr(10)) + 2} "frame of {self.kernel}"\n'

    @property
    def text(self) -> str:
        return self._text


def slots_struct(symbol: str, params: Sequence[tuple[str, Any]], debug: bool, grid: bool) -> str:
    """The struct of argument slots."""
    nowhere = Loc("", 1, 1, 0)
    return emit_loop.slots(Function(symbol, symbol, nowhere, tuple(params), (), (), None), symbol, debug, grid)


def slots_copy(symbol: str, slots: str) -> str:
    """A local copy of the slots: the compiler knows that stores through pointers don't change it."""
    return f"    const {symbol}_slots _copy = *{slots}, *const _slots = &_copy;\n"


def slot_indices(params: Sequence[tuple[str, Any]], debug: bool) -> dict[str, int]:
    """The number of each parameter's first slot."""
    indices, position = {}, 0
    for name, kind in params:
        indices[name] = position
        if isinstance(kind, ArrayType):
            position += 1 + debug + kind.ndim * (2 if kind.strided else 1)
        else:
            position += 2 if kind.dtype.kind == "c" else 1
    return indices


def head(debug: bool, preamble: str) -> str:
    """Macros and includes. With PA_SYSTEM_MATH, headers of the `preamble` may declare math.h's functions."""
    checks = "#define PA_DEBUG_CHECKS 1\n" if debug else ""
    math = "#define PA_SYSTEM_MATH 1\n" if _INCLUDE.search(preamble) else ""
    return f"{checks}{math}#include <pa_text.h>\n"


def types_of(named: Sequence[tuple[str, str]]) -> dict[str, DType]:
    """The dtypes of a key's type letters."""
    return {letter: BY_NAME[name] for letter, name in named}


def declarations(rows: Sequence[tuple[Param, Layout]], types: dict[str, DType], debug: bool, runtime: str) -> str:
    """Declares numbers and `raw` arrays; `runtime` receives failure records."""
    text, site = (f"    pa_text_at _at = {{{runtime}, 0}};\n" if debug else ""), 0
    for p, layout in rows:
        if not isinstance(layout.type, ArrayType):
            text += number_text(p.name, p.ctype(types), layout.type.dtype)
        elif layout.axes is None:
            text += raw_text(p, p.ctype(types), layout.type, site if debug else None)
            site += 1 + layout.type.ndim
    return text


def typedefs(types: dict[str, DType]) -> str:
    return "".join(f"typedef {CTYPES[kind.name]} {letter};\n" for letter, kind in sorted(types.items()))


def number_text(name: str, ctype: str, dtype: DType) -> str:
    """Declares a parameter that is a number."""
    field = cname(name)
    if dtype.kind == "c":
        return f"    const {ctype} {name}(_slots->re_{field}, _slots->im_{field});\n"
    return f"    const {ctype} {name} = ({ctype})_slots->{field};\n"


def raw_text(param: Param, ctype: str, kind: ArrayType, site: int | None) -> str:
    """Declares a `raw` array; with the number of its first site, one that checks."""
    field, axes = cname(param.name), range(kind.ndim)
    sizes = [f"_slots->n{k}_{field}" for k in axes]
    steps = [
        f"_slots->s{k}_{field}" if kind.strided else " * ".join([*sizes[k + 1 :], f"(int64_t)sizeof({ctype})"])
        for k in axes
    ]
    const, dense = ("" if param.out else "const "), str(not kind.strided).lower()
    values = f"({ctype} *)_slots->data_{field}, {' * '.join(sizes)}, "
    values += f"{{{', '.join(sizes)}}}, {{{', '.join(steps)}}}"
    checks = "" if site is None else f", _slots->offset_{field}, {site}, &_at"
    return f"    {const}pa_raw<{ctype}, {kind.ndim}, {dense}> {param.name} = {{{values}{checks}}};\n"


def array_text(param: Param, ctype: str, layout: Layout, pad: str) -> str:
    """Declares the element of this iteration, at the indices _j0, _j1 ... over _n0, _n1 ..."""
    field, kind, axes = cname(param.name), layout.type, layout.axes
    assert axes is not None
    data = f"(({ctype} *)_slots->data_{field})"
    if not axes:
        location = f"{data}[0]"
    elif not kind.strided:
        position = f"_j{axes[0]}"
        for k in axes[1:]:
            position = f"({position}) * _n{k} + _j{k}"
        location = f"{data}[{position}]"
    else:
        terms = [f"_j{k} * _slots->s{n}_{field}" for n, k in enumerate(axes)]
        inner = f"_j{axes[-1]}" if layout.unit else "0"
        offset = " + ".join(terms[:-1] if layout.unit else terms) or "0"
        location = f"(({ctype} *)((char *)_slots->data_{field} + ({offset})))[{inner}]"
    return f"{pad}{'' if param.out else 'const '}{ctype} &{param.name} = {location};\n"


def raw_sites(name: str, params: Sequence[tuple[Param, ArrayType]], path: str, line: int) -> tuple[Site, ...]:
    """Sites of checked accesses: for each `raw` array its linear index, then its axes."""
    loc, sites = Loc(path, line, 1, 0), []
    for param, kind in params:
        sites.append(Site("index", loc, name, (param.name,), 0, 1))
        sites += [Site("index", loc, name, (param.name,), axis, kind.ndim) for axis in range(kind.ndim)]
    return tuple(sites)
