"""GPU text of a loop over several axes that fills one array: a block takes 32 x 32 tiles of the last two axes.

Addresses are computed once per tile. An array that is contiguous along the tile's other axis (a transposed
operand or result) is transposed in shared memory, so that it, too, is read and written in whole lines. The
strides decide that when the kernel runs; axes too short for tiles take the loop of threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import emit_views as views
from . import ir
from .emit_loop import bound_fields
from .emit_statements import Emitter, begin_iteration, cname
from .emit_vectorized import stored_element, unconditional_loads, write_body
from .printer import Printer
from .summaries import has_any

TILE = 32
_SHARED = 40960  # bytes of a block


def tile_rows(threads: int) -> int:
    """Rows of a tile that a thread of a block of so many takes; the last may be outside."""
    return -(-TILE * TILE // threads)


def is_tileable(loop: ir.For) -> bool:
    """Whether tiles are worth their text: not for bodies with loops, which have their own access order."""
    return len(loop.ranges) > 1 and not has_any(loop.body, ir.For)


@dataclass(frozen=True)
class _TileAccess:
    """A thread's accesses to a tile of one array: its element k is `step` bytes from the one before.
    `transpose_test` says when it goes along the other axis; None: never."""

    name: str
    ref: tuple[str, ...]
    kind: Any
    number: int
    transpose_test: str | None
    threads: int  # of a block

    @property
    def row_step(self) -> int:
        """Rows between those of a thread."""
        return self.threads // TILE

    @property
    def rows(self) -> int:
        return tile_rows(self.threads)

    @property
    def other_index(self) -> str:
        return f"tile_y + k * {self.row_step}"

    def start(self, i: str, j: str) -> list[str]:
        turn = f"turn{self.number}"
        rows = "false" if self.transpose_test is None else self.transpose_test
        steps = [
            f"({views.stride(self.kind, cname(self.name), self.ref.index(v))})" if v in self.ref else "0"
            for v in (i, j)
        ]
        address = views.address(self.kind, cname(self.name), [cname(v) for v in self.ref])
        x, y = (f"({turn} ? {a} : {b})" for a, b in (("tile_y", "tile_x"), ("tile_x", "tile_y")))
        return [
            f"const bool {turn} = {rows};",
            f"const int64_t step{self.number} = {self.row_step} * ({turn} ? {steps[1]} : {steps[0]});",
            f"char *at{self.number};",
            "{",
            f"    const int64_t {cname(i)} = top + {y}, {cname(j)} = left + {x};",
            f"    at{self.number} = (char *)({address});",
            "}",
        ]

    @property
    def inside(self) -> str:
        straight = f"{self.other_index} < high && tile_x < wide"
        if self.transpose_test is None:
            return straight
        return f"(turn{self.number} ? tile_x < high && {self.other_index} < wide : {straight})"

    @property
    def element(self) -> str:
        return f"*({self.kind.dtype.ctype} *)(at{self.number} + k * step{self.number})"


def tile_loop(
    code: Emitter, loop: ir.For, store: ir.Store, write_plain: Callable[[ir.For], None], threads: int
) -> None:
    """Prints the loop for blocks of so many `threads`; `write_plain` prints its loop of threads."""
    fields, out = [field for field, _ in bound_fields(loop)], code.out
    names = [cname(v) for v in loop.variables]
    rows, columns = fields[-2:]
    accesses = _tile_accesses(code, loop, store, threads)
    plain = code.printed(write_plain, loop)
    with out.block(f"if (pa_in_tiles({rows}, {columns}))"):
        down, across = (f"({n} + {TILE - 1}) / {TILE}" for n in (rows, columns))
        out.line(f"const int64_t down = {down}, across = {across};")
        out.line(f"const int64_t tiles = {' * '.join([*fields[:-2], 'down'])} * across;")
        out.line(f"const int tile_x = threadIdx.x % {TILE}, tile_y = threadIdx.x / {TILE};")
        for w in accesses:
            if w.transpose_test is not None:
                out.line(f"__shared__ {w.kind.dtype.ctype} tile{w.number}[{TILE}][{TILE + 1}];")
        with out.block("for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x)"):
            out.line("int64_t rest = tile;")
            out.line(f"const int64_t left = pa_split(&rest, across, tiles) * {TILE};")
            out.line(f"const int64_t top = pa_split(&rest, down, tiles) * {TILE};")
            out.line(f"const int high = (int)pa_less({rows} - top, {TILE});")
            out.line(f"const int wide = (int)pa_less({columns} - left, {TILE});")
            for name, field in reversed(list(zip(names[1:-2], fields[1:-2], strict=True))):
                out.line(f"const int64_t {name} = pa_split(&rest, {field}, tiles);")
            if len(names) > 2:
                out.line(f"const int64_t {names[0]} = rest;")
            for w in accesses:
                out.lines(w.start(*loop.variables[-2:]))
            _tile_body(code, loop, accesses)
    with out.orelse():
        out.text(plain)


def _tile_accesses(code: Emitter, loop: ir.For, store: ir.Store, threads: int) -> list[_TileAccess]:
    """The filled array's, and those of all elements that every iteration reads."""
    shared_bytes, kinds, last = _SHARED, dict(code.kernel.params), loop.variables[-2:]
    stored = stored_element(store)
    accesses = list[_TileAccess]()
    for name, ref in dict.fromkeys([stored, *unconditional_loads(code, loop)]):
        kind, test = kinds[name], None
        contiguous = (name == stored[0] and bool(accesses)) or (not kind.strided and ref[-1] == last[1])
        size = TILE * (TILE + 1) * kind.dtype.itemsize
        if not contiguous and set(last) <= set(ref) and size <= shared_bytes:
            shared_bytes -= size
            steps = [f"({views.stride(kind, cname(name), ref.index(v))})" for v in last]
            test = f"pa_nearer({steps[0]}, {steps[1]})"
        accesses.append(_TileAccess(name, ref, kind, len(accesses), test, threads))
    return accesses


def _unrolled(out: Printer, rows: int) -> Printer:
    out.line("#pragma unroll")
    return out.block(f"for (int k = 0; k < {rows}; ++k)")


def _tile_body(code: Emitter, loop: ir.For, accesses: list[_TileAccess]) -> None:
    """All loads, what is turned through shared memory, the elements, and where they go."""
    (stored, *read), out = accesses, code.out
    if (stored.name, stored.ref) in unconditional_loads(code, loop):
        read = [*read, stored]
    out.lines(f"{w.kind.dtype.ctype} own{w.number}[{stored.rows}];" for w in read)
    for w in read:
        with _unrolled(out, w.rows):
            out.line(f"if ({w.inside}) own{w.number}[k] = {w.element};")
    for w in read:
        _transposed_tile(out, w, f"own{w.number}")
    i, j = (cname(v) for v in loop.variables[-2:])
    registers = {(w.name, w.ref): f"own{w.number}[k]" for w in read}
    out.line(f"{stored.kind.dtype.ctype} value[{stored.rows}];")
    with _unrolled(out, stored.rows):
        out.line(f"const int64_t {i} = top + {stored.other_index}, {j} = left + tile_x;")
        with out.block(f"if ({stored.other_index} < high && tile_x < wide)"):
            if code.debug:
                out.line(begin_iteration(_iteration_number(loop)))
            write_body(code, loop, None, registers)
    _transposed_tile(out, stored, "value")
    with _unrolled(out, stored.rows):
        out.line(f"if ({stored.inside}) {stored.element} = value[k];")


def _transposed_tile(out: Printer, w: _TileAccess, values: str) -> None:
    """Where an array's tile is turned, each thread's `values` go to the thread across the diagonal, through
    shared memory."""
    if w.transpose_test is None:
        return
    row = w.other_index
    in_tile = f"if ({row} < {TILE}) " if TILE % w.row_step else ""
    with out.block(f"if (turn{w.number})"):
        with _unrolled(out, w.rows):
            out.line(f"{in_tile}tile{w.number}[{row}][tile_x] = {values}[k];")
        out.line("__syncthreads();")
        with _unrolled(out, w.rows):
            out.line(f"{in_tile}{values}[k] = tile{w.number}[tile_x][{row}];")
        out.line("__syncthreads();")


def _iteration_number(loop: ir.For) -> str:
    """The iteration, from the loop's variables."""
    fields, names = [field for field, _ in bound_fields(loop)], [cname(v) for v in loop.variables]
    number = names[0]
    for name, field in zip(names[1:], fields[1:], strict=True):
        number = f"({number}) * {field} + {name}"
    return number
