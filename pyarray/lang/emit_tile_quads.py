"""GPU text of nests over fragments that store halves: the four lanes of a row exchange their elements, so that each
stores 16 bytes, and a row's sectors of memory are written as a whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from . import ir
from .element_layout import Fragments, Layout, Rows
from .emit_statements import cname
from .emit_tile_vectors import Vectors, load_vectors, vector_test
from .tile_nests import HALVES

LANES, TILE = 4, 8  # that have a row of fragments, and the columns of a fragment


def is_for_quads(layout: Layout, vectors: Vectors) -> bool:
    """Whether the elements that a nest stores are exchanged."""
    fragments = isinstance(layout, Fragments) and not isinstance(layout, Rows) and layout.column_steps % LANES == 0
    return fragments and vectors.store is not None and vectors.store.array.type.dtype.name in HALVES


def quad_test(code: Any, loops: list[ir.For], vectors: Vectors) -> str:
    """Whether a tile has whole fragments alone, whose rows are aligned."""
    return vector_test(code, loops, replace(vectors, count=TILE))


def write_quads(
    code: Any, layout: Layout, loops: list[ir.For], write: Callable[[], None], vectors: Vectors, last: str
) -> None:
    """The elements of a thread, and their stores; columns exist below `last`."""
    out, variable = code.out, loops[-1].variables[0]
    with code.row_loop(layout):
        tests = code.row_positions(layout, ((loops[0].variables[0], loops[0].capacity),), loops[:-1])
        with out.block(f"if ({' && '.join(tests)})"):
            code.unroll(layout)
            with out.block(f"for (int quad_step = 0; quad_step < {layout.column_steps // LANES}; ++quad_step)"):
                out.line(f"unsigned pairs[{LANES}];")
                out.line("#pragma unroll")
                with out.block(f"for (int tile = 0; tile < {LANES}; ++tile)"):
                    _write_pair(code, layout, loops, write, vectors, last)
                out.line("const uint4 line = pa_quad_exchange(15u << (rank % 32 & ~3), pairs);")
                out.line(f"const int first = (quad_step * {LANES} + rank % {LANES}) * {TILE};")
                with out.block(f"if (first < {last})"):
                    out.line(f"const int {_at(loops)} = first;")
                    code.offsets[variable] = _at(loops)
                    code.bind_variables(loops)
                    out.line(f"*(uint4 *)&{code.lvalue(vectors.store)} = line;")
    code.register, code.offsets = "", {}


def _write_pair(
    code: Any, layout: Layout, loops: list[ir.For], write: Callable[[], None], vectors: Vectors, last: str
) -> None:
    """Two neighbours, as a word."""
    out, variable = code.out, loops[-1].variables[0]
    out.line(f"const int column_step = quad_step * {LANES} + tile;")
    out.line(f"const int first = (rank % {LANES} + column_step * {LANES}) * 2;")
    out.line("pairs[tile] = 0;")
    code.register = f"(row_step * {layout.column_steps} + column_step) * 2 + v"
    with out.block(f"if (first < {last})"):
        code.offsets[variable] = _at(loops)
        load_vectors(code, loops, vectors, _at(loops))
        out.line("#pragma unroll")
        with out.block("for (int v = 0; v < 2; ++v)"):
            out.line(f"const int {_at(loops)} = first + v;")
            code.bind_variables(loops)
            code.registers, code.results = vectors.registers(), vectors.results()
            write()
            code.registers, code.results = {}, {}
        out.line("pairs[tile] = (unsigned)result.v[0].bits | (unsigned)result.v[1].bits << 16;")


def _at(loops: list[ir.For]) -> str:
    """C name of where an element is along the last axis."""
    return f"at_{cname(loops[-1].variables[0])}"
