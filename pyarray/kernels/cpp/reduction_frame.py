"""Text of a `ReductionKernel`: loops and blocks around the user's expressions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ...driver.kernel_step import KernelStep
from ...dtypes import DType, int64
from ...lang.dialect import Dialect
from ...lang.emit_statements import cname
from ...lang.ir import ArrayType, ScalarType
from ...lang.pipeline import Program
from . import text_frame as tf
from .text_frame import Layout, TextBuilder
from .text_params import Param

BLOCK = 256  # threads
LANES = 16  # accumulators side by side on a CPU
GROUP = 512  # outputs that a CPU accumulates side by side where they are neighbours in memory
_STRIDE, _PIECES, _THREADS, _LAST, _PART = "_stride", "_pieces", "_threads", "_last", "_part"


class Expressions(NamedTuple):
    """The user's expressions."""

    map: str
    reduce: str
    post: str
    identity: str
    kind: str
    preamble: str


class ReductionLayout(NamedTuple):
    """Sizes of the kept and the reduced axes, and the arguments' layouts; `columns`: the first input has unit
    stride along the kept ones."""

    outer: tuple[int, ...]
    inner: tuple[int, ...]
    layouts: tuple[Layout, ...]
    columns: bool


def program(
    name: str,
    texts: Expressions,
    rows: Sequence[tuple[Param, Layout]],
    types: dict[str, DType],
    structure: tuple[int, int, bool, DType | None],
    dialect: Dialect,
    debug: bool,
    location: tuple[str, int],
) -> Program:
    """`structure`: the numbers of kept and of reduced axes, `columns`, and the dtype of partial results, None
    where there are none."""
    frame = _Frame(name, texts, rows, types, structure, dialect, debug)
    raws = [(p, layout.type) for p, layout in rows if tf.is_raw(p, layout)]
    sites = tf.raw_sites(name, raws, *location) if debug else ()
    directions = tf.directions(rows, frame.sizes) | ({_PART: "OUT"} if structure[3] else {})
    return Program(name, frame.text(), frame.steps, tuple(frame.params), directions, sites)


@dataclass
class _Frame:
    name: str
    texts: Expressions
    rows: Sequence[tuple[Param, Layout]]
    types: dict[str, DType]
    structure: tuple[int, int, bool, DType | None]
    dialect: Dialect
    debug: bool

    def __post_init__(self) -> None:
        self.outer, self.inner, self.columns, self.part = self.structure
        self.symbol = f"kernel_{self.name}"
        self.sizes = [f"_n{k}" for k in range(self.outer + self.inner)]
        self.sizes += [_STRIDE, _PIECES, _THREADS, _LAST]
        self.params: list[tuple[str, Any]] = [(p.name, layout.type) for p, layout in self.rows]
        self.params += [(name, ScalarType(int64)) for name in self.sizes]
        self.params += [(_PART, ArrayType(self.part, 1, False))] if self.part else []

    @property
    def steps(self) -> tuple[KernelStep, ...]:
        if self.dialect.blocks:
            return (KernelStep(self.symbol),)
        indices = tf.slot_indices(self.params, self.debug)
        first = KernelStep(self.symbol, (indices[_THREADS],))
        last = KernelStep(f"{self.symbol}_last", (indices[_LAST],))
        return (first, last) if self.part else (first,)

    def text(self) -> str:
        lines = TextBuilder(self.name)
        lines.add(tf.head(self.debug, self.texts.preamble))
        lines.add(tf.typedefs(self.types))
        lines.user(self.texts.preamble, "preamble")
        lines.add(f"typedef {self.texts.kind} _type_reduce;\n")
        lines.add("struct _pa_count { int64_t n; __device__ int64_t size() const { return n; } };\n")
        lines.add(self.dialect.prelude)
        lines.add(tf.slots_struct(self.symbol, self.params, self.debug, grid=not self.dialect.blocks))
        if self.dialect.blocks:
            self.blocks(lines)
        else:
            self.grid(lines)
        return lines.text

    def declare(self, lines: TextBuilder, runtime: str) -> None:
        """Sizes, numbers, `raw` arrays, and the three expressions as functions."""
        sizes = [f"_slots->{cname(name)}" for name in self.sizes[: self.outer + self.inner]]
        lines.add("".join(f"    const int64_t _n{k} = {n};\n" for k, n in enumerate(sizes)))
        for kind, first, count in (("outer", 0, self.outer), ("inner", self.outer, self.inner)):
            shape = ", ".join(f"_n{k}" for k in range(first, first + count))
            lines.add(f"    pa_indexer<{count}> _{kind} = {{1, {{{shape}}}}};\n    _{kind}.start();\n")
        lines.add("    const int64_t _outputs = _outer.size(), _length = _inner.size();\n")
        lines.add("    const _pa_count _out_ind = {_outputs}, _in_ind = {_outputs * _length};\n")
        lines.add(tf.declarations(self.rows, self.types, self.debug, runtime))
        lines.add("    (void)_out_ind;\n    (void)_in_ind;\n")
        self.functions(lines)

    def functions(self, lines: TextBuilder) -> None:
        """The element at the indices of `outer` and `inner`, two into one, and the outputs."""
        last = self.outer - 1 if self.columns else self.outer + self.inner - 1
        lines.add(
            f"    auto _element = [&](const int64_t _i, const int64_t _J, const int64_t _j{last}) -> _type_reduce {{\n"
        )
        for k in range(self.outer + self.inner):
            source = f"_outer.index_[{k}]" if k < self.outer else f"_inner.index_[{k - self.outer}]"
            lines.add(f"        const int64_t _j{k} = {source};\n" if k != last else "")
        lines.add("        const int64_t _j = _J * _outputs + _i;\n        (void)_j;\n")
        lines.add("        _at.tid = _i * _length + _J;\n" if self.debug else "")
        for p, layout in self.rows:
            if layout.axes is not None and not p.out:
                lines.add(tf.array_text(p, p.ctype(self.types), layout, "        "))
        lines.add("        return static_cast<_type_reduce>(")
        lines.user(self.texts.map, "map_expr")
        lines.add("        );\n    };\n    auto _reduce = [&](_type_reduce a, _type_reduce b) -> _type_reduce {\n")
        lines.add("        return (")
        lines.user(self.texts.reduce, "reduce_expr")
        lines.add("        );\n    };\n    auto _store = [&](const int64_t _i, _type_reduce a) {\n")
        lines.add(f"        pa_indexer<{self.outer}> _place = _outer;\n        _place.set(_i);\n")
        lines.indices(self.outer, "_place", "        ")
        for p, layout in self.rows:
            if p.out:
                lines.add(tf.array_text(p, p.ctype(self.types), layout, "        "))
        lines.user(self.texts.post + "\n;", "post_map_expr")
        lines.add("    };\n")
        first = f"(\n{self.texts.identity}\n)" if self.texts.identity else "()"
        lines.add("    auto _start = [&]() -> _type_reduce { return _type_reduce")
        lines.add(first + "; };\n")

    # ---- CPUs

    def blocks(self, lines: TextBuilder) -> None:
        symbol = self.symbol
        lines.add(f"struct {symbol}_env {{\n    const {symbol}_slots *_slots;\n    pa_runtime *rt;\n")
        lines.add("    _type_reduce *_part;\n    int64_t _pieces, _outputs, _length;\n};\n")
        head = f"const {symbol}_env *_env, int64_t _begin, int64_t _end, "
        head += "int64_t _low, int64_t _high, _type_reduce *_part"
        lines.add(
            "/* outputs _begin to _end from elements _low to _high, to _part if there is one */\n"
            f"static void _run({head})\n{{\n"
        )
        lines.add(tf.slots_copy(symbol, "_env->_slots"))
        self.declare(lines, "_env->rt")
        self.by_columns(lines) if self.columns else self.by_rows(lines)
        lines.add(f"}}\nstatic void _combine(const {symbol}_env *_env, int64_t _begin, int64_t _end)\n{{\n")
        lines.add(tf.slots_copy(symbol, "_env->_slots"))
        self.declare(lines, "_env->rt")
        lines.add("""\
    for (int64_t _o = _begin; _o < _end; ++_o) {
        _type_reduce _s = _env->_part[_o];
        for (int64_t _p = 1; _p < _env->_pieces; ++_p) _s = _reduce(_s, _env->_part[_p * _outputs + _o]);
        _store(_o, _s);
    }
}
""")
        lines.add(_LOOPS.format(symbol=symbol))
        count = " * ".join(f"slots->{cname(n)}" for n in self.sizes[: self.outer])
        length = " * ".join(f"slots->{cname(n)}" for n in self.sizes[self.outer : self.outer + self.inner])
        tasks = {"group": GROUP, "least": 8} if self.columns else {"group": 1, "least": 1}
        body = _START.format(symbol=symbol, count=count, length=length, **tasks)
        lines.add(self.dialect.entry.format(symbol=symbol, body=body))

    def by_rows(self, lines: TextBuilder) -> None:
        """Each output runs over its elements, with accumulators side by side."""
        last = self.inner - 1
        lines.add(f"""\
    for (int64_t _o = _begin; _o < _end; ++_o) {{
        _type_reduce _s[{LANES}];
        for (int _l = 0; _l < {LANES}; ++_l) _s[_l] = _start();
        _outer.set(_o);
        for (int64_t _first = _low; _first < _high;) {{
            _inner.set(_first);
            const int64_t _from = _inner.index_[{last}], _row = _inner.shape_[{last}] - _from;
            const int64_t _left = _high - _first, _count = _left < _row ? _left : _row;
            int64_t _k = 0;
            for (; _k + {LANES} <= _count; _k += {LANES}) {{
                {self.dialect.lanes}
                for (int _l = 0; _l < {LANES}; ++_l)
                    _s[_l] = _reduce(_s[_l], _element(_o, _first + _k + _l, _from + _k + _l));
            }}
            for (; _k < _count; ++_k) _s[0] = _reduce(_s[0], _element(_o, _first + _k, _from + _k));
            _first += _count;
        }}
        for (int _l = 1; _l < {LANES}; ++_l) _s[0] = _reduce(_s[0], _s[_l]);
        if (_part) _part[_o] = _s[0];
        else _store(_o, _s[0]);
    }}
""")

    def by_columns(self, lines: TextBuilder) -> None:
        """Text of reductions by columns: a group of outputs reads row after row."""
        last = self.outer - 1
        lines.add(f"""\
    for (int64_t _first = _begin; _first < _end;) {{
        _type_reduce _s[{GROUP}];
        _outer.set(_first);
        const int64_t _from = _outer.index_[{last}], _row = _outer.shape_[{last}] - _from;
        const int64_t _left = _end - _first;
        int64_t _count = _left < _row ? _left : _row;
        if (_count > {GROUP}) _count = {GROUP};
        for (int64_t _k = 0; _k < _count; ++_k) _s[_k] = _start();
        for (int64_t _e = _low; _e < _high; ++_e) {{
            _inner.set(_e);
            for (int64_t _k = 0; _k < _count; ++_k)
                _s[_k] = _reduce(_s[_k], _element(_first + _k, _e, _from + _k));
        }}
        for (int64_t _k = 0; _k < _count; ++_k) {{
            if (_part) _part[_first + _k] = _s[_k];
            else _store(_first + _k, _s[_k]);
        }}
        _first += _count;
    }}
""")

    # ---- grids

    def grid(self, lines: TextBuilder) -> None:
        self.open(lines, self.symbol)
        stride, pieces = f"_slots->{cname(_STRIDE)}", f"_slots->{cname(_PIECES)}"
        last = f"_outer.index_[{self.outer - 1}]" if self.columns else f"_inner.index_[{self.inner - 1}]"
        keep = f"_slots->data_{cname(_PART)}" if self.part else ""
        kept = (
            f"((_type_reduce *){keep})[_piece * _outputs + _o] = _shared[_thread]"
            if self.part
            else "_store(_o, _shared[_thread])"
        )
        lines.add(_GRID.format(stride=stride, pieces=pieces, last=last, kept=kept, block=BLOCK))
        lines.add("    }\n}\n")
        if self.part:
            self.open(lines, f"{self.symbol}_last")
            lines.add(_LAST_STEP.format(keep=keep, pieces=pieces, block=BLOCK))
            lines.add("    }\n}\n")

    def open(self, lines: TextBuilder, symbol: str) -> None:
        lines.add(self.dialect.entry.format(symbol=symbol, slots=f"{self.symbol}_slots"))
        lines.add("    pa_runtime _at_run = slots->run;\n" if self.debug else "")
        lines.add(f"    const {self.symbol}_slots *const _slots = slots;\n    {{\n")
        self.declare(lines, "&_at_run" if self.debug else "0")
        lines.add(f"    __shared__ double _room[({BLOCK} * sizeof(_type_reduce) + 7) / 8];\n")
        lines.add(
            "    _type_reduce *const _shared = (_type_reduce *)_room;\n    const int _thread = (int)threadIdx.x;\n"
        )


_LOOPS = """\
static void {symbol}_all(void *_context, int64_t _begin, int64_t _end)
{{
    const {symbol}_env *_env = (const {symbol}_env *)_context;
    _run(_env, _begin, _end, 0, _env->_length, 0);
}}
static void {symbol}_piece(void *_context, int64_t _begin, int64_t _end)
{{
    const {symbol}_env *_env = (const {symbol}_env *)_context;
    const int64_t _size = (_env->_length - 1) / _env->_pieces + 1;
    for (int64_t _p = _begin; _p < _end; ++_p) {{
        const int64_t _low = _p * _size < _env->_length ? _p * _size : _env->_length, _high = _low + _size;
        _run(_env, 0, _env->_outputs, _low, _high < _env->_length ? _high : _env->_length,
             _env->_part + _p * _env->_outputs);
    }}
}}
static void {symbol}_combine(void *_context, int64_t _begin, int64_t _end)
{{
    _combine((const {symbol}_env *)_context, _begin, _end);
}}
"""
_START = """\
    const int64_t _outputs = {count}, _length = {length};
    const int64_t _group = {group}, _most = _length / {least};
    int64_t _pieces = _outputs / _group < 64 ? _outputs * _length / 32768 : 1, _grain;
    _pieces = _pieces > 64 ? 64 : _pieces;
    _pieces = _pieces > _most ? _most : _pieces;
    env._slots = slots, env.rt = rt, env._outputs = _outputs, env._length = _length, env._pieces = _pieces;
    env._part = 0;
    if (_pieces > 1)
        env._part = (_type_reduce *)rt->scratch(rt, sizeof(_type_reduce) * (size_t)(_pieces * _outputs));
    if (env._part) {{
        rt->parallel_for(rt, {symbol}_piece, &env, _pieces, 1);
        rt->parallel_for(rt, {symbol}_combine, &env, _outputs, pa_grain(rt, _outputs, 64));
    }} else {{
        env._pieces = 1;
        _grain = pa_grain(rt, _outputs, 4.0 * (double)(_length + 1));
        rt->parallel_for(rt, {symbol}_all, &env, _outputs, _grain < _group ? _group : _grain);
    }}
"""
_GRID = """\
    const int _stride = (int){stride}, _lanes = {block} / _stride;
    const int64_t _pieces = {pieces}, _size = _length ? (_length - 1) / _pieces + 1 : 0;
    const int64_t _tasks = ((_outputs - 1) / _stride + 1) * _pieces;
    for (int64_t _task = (int64_t)blockIdx.x; _task < _tasks; _task += (int64_t)gridDim.x) {{
        const int64_t _piece = _task % _pieces, _o = _task / _pieces * _stride + _thread % _stride;
        const int64_t _end = (_piece + 1) * _size, _high = _end < _length ? _end : _length;
        _type_reduce _s = _start();
        if (_o < _outputs) {{
            _outer.set(_o);
            for (int64_t _e = _piece * _size + _thread / _stride; _e < _high; _e += _lanes) {{
                _inner.set(_e);
                _s = _reduce(_s, _element(_o, _e, {last}));
            }}
        }}
        _shared[_thread] = _s;
        __syncthreads();
        for (int _half = {block} / 2; _half >= _stride; _half /= 2) {{
            if (_thread < _half) _shared[_thread] = _reduce(_shared[_thread], _shared[_thread + _half]);
            __syncthreads();
        }}
        if (_thread < _stride && _o < _outputs) {kept};
        __syncthreads();
    }}
"""
_LAST_STEP = """\
    const _type_reduce *const _part = (const _type_reduce *){keep};
    const int64_t _pieces = {pieces};
    for (int64_t _o = (int64_t)blockIdx.x; _o < _outputs; _o += (int64_t)gridDim.x) {{
        _type_reduce _s = _start();
        for (int64_t _p = _thread; _p < _pieces; _p += {block}) _s = _reduce(_s, _part[_p * _outputs + _o]);
        _shared[_thread] = _s;
        __syncthreads();
        for (int _half = {block} / 2; _half >= 1; _half /= 2) {{
            if (_thread < _half) _shared[_thread] = _reduce(_shared[_thread], _shared[_thread + _half]);
            __syncthreads();
        }}
        if (_thread == 0) _store(_o, _shared[0]);
        __syncthreads();
    }}
"""
