"""A grid's loop over several axes that fills one array: a block takes tiles of its last two axes.

Places are computed once per tile. An array whose memory runs along the other axis of the tile (a transposed
operand, or result) is turned in shared memory, so that it is read and written in whole lines, too. Which
arrays those are, their strides say while the kernel runs; axes too short for tiles take the loop of threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import emit_views as views
from .emit_loop import bounds
from .emit_statements import Code, cname, iteration
from .emit_vectorized import body, own_loads, target
from .ir import For, Function, Store, walk

TILE = 32
ROWS = 4  # of a tile, per thread of a block of 256
_SHARED = 40960  # bytes of a block
_DOWN = TILE // ROWS  # rows between those of a thread
_OTHER = f"tile_y + k * {_DOWN}"


def in_tiles(loop: For) -> bool:
    """Whether a loop that fills an array is worth a text for tiles: inner loops have their own walk."""
    return len(loop.ranges) > 1 and not any(isinstance(n, For) for s in loop.body for n in walk(s))


@dataclass(frozen=True)
class _Walk:
    """A thread's walk over a tile of one array: its element k is `step` bytes from the one before. `turns`
    says when it goes along the other axis; None: never."""

    name: str
    place: tuple[str, ...]
    kind: Any
    number: int
    turns: str | None

    def start(self, i: str, j: str) -> str:
        turn = f"turn{self.number}"
        rows = "false" if self.turns is None else self.turns
        steps = [
            f"({views.stride(self.kind, cname(self.name), self.place.index(v))})" if v in self.place else "0"
            for v in (i, j)
        ]
        address = views.address(self.kind, cname(self.name), [cname(v) for v in self.place])
        x, y = (f"({turn} ? {a} : {b})" for a, b in (("tile_y", "tile_x"), ("tile_x", "tile_y")))
        return (
            f"            const bool {turn} = {rows};\n"
            f"            const int64_t step{self.number} = {_DOWN} * ({turn} ? {steps[1]} : {steps[0]});\n"
            f"            char *at{self.number};\n            {{\n"
            f"                const int64_t {cname(i)} = top + {y}, {cname(j)} = left + {x};\n"
            f"                at{self.number} = (char *)({address});\n            }}\n"
        )

    @property
    def inside(self) -> str:
        straight = f"{_OTHER} < high && tile_x < wide"
        if self.turns is None:
            return straight
        return f"(turn{self.number} ? tile_x < high && {_OTHER} < wide : {straight})"

    @property
    def element(self) -> str:
        return f"*({self.kind.dtype.ctype} *)(at{self.number} + k * step{self.number})"


def tile_loop(code: Code, kernel: Function, loop: For, store: Store, plain: str) -> str:
    """Text of the loop; `plain` is that of its loop of threads."""
    fields = [field for field, _ in bounds(loop)]
    names = [cname(v) for v in loop.variables]
    rows, columns = fields[-2:]
    split = "".join(
        f"            const int64_t {name} = pa_split(&rest, {field}, tiles);\n"
        for name, field in reversed(list(zip(names[1:-2], fields[1:-2], strict=True)))
    )
    if len(names) > 2:
        split += f"            const int64_t {names[0]} = rest;\n"
    outer = "".join(f"{field} * " for field in fields[:-2])
    walks = _walks(code, kernel, loop, store)
    starts = "".join(w.start(*loop.variables[-2:]) for w in walks)
    shared = "".join(
        f"        __shared__ {w.kind.dtype.ctype} tile{w.number}[{TILE}][{TILE + 1}];\n"
        for w in walks
        if w.turns is not None
    )
    return f"""\
    if (pa_in_tiles({rows}, {columns})) {{
        const int64_t down = ({rows} + {TILE - 1}) / {TILE}, across = ({columns} + {TILE - 1}) / {TILE};
        const int64_t tiles = {outer}down * across;
        const int tile_x = threadIdx.x % {TILE}, tile_y = threadIdx.x / {TILE};
{shared}        for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {{
            int64_t rest = tile;
            const int64_t left = pa_split(&rest, across, tiles) * {TILE};
            const int64_t top = pa_split(&rest, down, tiles) * {TILE};
            const int high = (int)pa_less({rows} - top, {TILE});
            const int wide = (int)pa_less({columns} - left, {TILE});
{split}{starts}{_tile(code, kernel, loop, walks)}        }}
    }} else {{
{plain}    }}
"""


def _walks(code: Code, kernel: Function, loop: For, store: Store) -> list[_Walk]:
    """The filled array's, and those of all elements that every iteration reads."""
    room, kinds, last = _SHARED, dict(kernel.params), loop.variables[-2:]
    filled = target(store)
    found = list[_Walk]()
    for name, place in dict.fromkeys([filled, *own_loads(code, kernel, loop)]):
        kind, test = kinds[name], None
        ordered = (name == filled[0] and bool(found)) or (not kind.strided and place[-1] == last[1])
        size = TILE * (TILE + 1) * kind.dtype.itemsize
        if not ordered and set(last) <= set(place) and size <= room:
            room -= size
            steps = [f"({views.stride(kind, cname(name), place.index(v))})" for v in last]
            test = f"pa_nearer({steps[0]}, {steps[1]})"
        found.append(_Walk(name, place, kind, len(found), test))
    return found


def _each(text: str) -> str:
    pad = "            "
    return f"{pad}#pragma unroll\n{pad}for (int k = 0; k < {ROWS}; ++k) {{\n{text}{pad}}}\n"


def _tile(code: Code, kernel: Function, loop: For, walks: list[_Walk]) -> str:
    """All loads, what is turned through shared memory, the elements, and where they go."""
    out, *read = walks
    filled = out.name, out.place
    if filled in own_loads(code, kernel, loop):
        read = [*read, out]
    pad = "                "
    text = "".join(f"            {w.kind.dtype.ctype} own{w.number}[{ROWS}];\n" for w in read)
    text += "".join(_each(f"{pad}if ({w.inside}) own{w.number}[k] = {w.element};\n") for w in read)
    for w in read:
        text += _turned(w, f"own{w.number}")
    i, j = (cname(v) for v in loop.variables[-2:])
    held = {(w.name, w.place): f"own{w.number}[k]" for w in read}
    inner = f"{pad}const int64_t {i} = top + {_OTHER}, {j} = left + tile_x;\n"
    inner += f"{pad}if ({_OTHER} < high && tile_x < wide) {{\n"
    inner += f"{pad}{iteration(_number(loop))}\n" if code.debug else ""
    inner += body(code, kernel, loop, None, held) + f"{pad}}}\n"
    text += f"            {out.kind.dtype.ctype} value[{ROWS}];\n{_each(inner)}{_turned(out, 'value')}"
    return text + _each(f"{pad}if ({out.inside}) {out.element} = value[k];\n")


def _turned(w: _Walk, values: str) -> str:
    """Where an array's tile is turned, each thread's `values` go to the thread across the diagonal, through
    shared memory."""
    if w.turns is None:
        return ""
    pad, wait = "                ", "            __syncthreads();\n"
    given = _each(f"{pad}tile{w.number}[{_OTHER}][tile_x] = {values}[k];\n")
    taken = _each(f"{pad}{values}[k] = tile{w.number}[tile_x][{_OTHER}];\n")
    return f"            if (turn{w.number}) {{\n{given}{wait}{taken}{wait}            }}\n"


def _number(loop: For) -> str:
    """The iteration, from the loop's variables."""
    fields, names = [field for field, _ in bounds(loop)], [cname(v) for v in loop.variables]
    number = names[0]
    for name, field in zip(names[1:], fields[1:], strict=True):
        number = f"({number}) * {field} + {name}"
    return number
