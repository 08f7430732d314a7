"""`ElementwiseKernel`: CuPy's elementwise kernels from C++ text."""

from __future__ import annotations

import operator
import re
from textwrap import indent
from typing import Any

from ... import shapes
from ...array import empty, ndarray
from ...driver.base import Device
from ...driver.kernel_step import MOST_SIZES, KernelStep
from ...dtypes import DType, int64
from ...lang.dialect import DIALECTS, Dialect
from ...lang.emit_statements import cname
from ...lang.ir import ScalarType
from ...lang.pipeline import Program
from . import text_frame as tf
from . import text_params as tp
from .text_frame import Layout, TextBuilder

_SIZE = "_n"  # prefix of the parameters with the loop's sizes; users' names don't begin with _


class ElementwiseKernel(tp.CppKernel):
    """A kernel that computes the elements of its outputs one by one, from C++ text for the body of the loop.

    `in_params` and `out_params` are lists like `"float32 x, T y, raw T table"`: a dtype, or a letter that
    stands for the dtype of the arrays given; `raw` arrays aren't broadcast and are indexed by the text. In
    `operation`, names are the elements, `i` is the number of the iteration and `_ind.size()` how many there
    are. `preamble` stands before the kernel, `loop_prep` and `after_loop` around the loop. `options` go to
    the compilers of GPUs; of them `-D`, `-U` and `-I` count on CPUs. Raises `ValueError` for a list or a name
    that can't be.

    >>> import pyarray as pa
    >>> square = pa.ElementwiseKernel("T x, T y", "T z", "z = (x - y) * (x - y)", "square")
    >>> square(pa.asarray([1.0, 2.0, 5.0]), 2).tolist()
    [1.0, 0.0, 9.0]
    """

    def __init__(
        self,
        in_params: str,
        out_params: str,
        operation: str,
        name: str = "kernel",
        reduce_dims: bool = True,
        preamble: str = "",
        no_return: bool = False,
        return_tuple: bool = False,
        *,
        loop_prep: str = "",
        after_loop: str = "",
        options: tuple[str, ...] = (),
    ):
        self._declare(name, in_params, out_params, options)
        self.operation, self.preamble = operation, preamble
        self.loop_prep, self.after_loop = loop_prep, after_loop
        self.reduce_dims, self.no_return, self.return_tuple = reduce_dims, no_return, return_tuple
        texts = " ".join((operation, preamble, loop_prep, after_loop))
        self._ordered = bool(re.search(r"\b(i|_ind)\b", texts))  # whether the order of elements matters

    def __repr__(self) -> str:
        return f"<ElementwiseKernel {self.name!r}>"

    def __call__(self, *args: Any, size: int | None = None, block_size: int = 128) -> Any:
        """Run on arrays and numbers, inputs first; outputs that aren't given are new arrays of the shape that
        the inputs broadcast to.

        `size` is the number of iterations where all arrays are `raw`, and only there. `block_size` has no
        effect on results, and none on speed. Returns the output, a tuple of them if there are several or with
        `return_tuple`, None with `no_return`. Raises `TypeError` for a wrong number of arguments or dtype,
        `ValueError` for shapes that don't broadcast and arrays on two devices, `CompileError` with the
        compiler's words, and in debug mode `BoundsError` for an index of a `raw` array.
        """
        if len(args) not in (self.nin, self.nargs):
            raise TypeError(
                f"{self.name}() takes {self.nin} arguments, or {self.nargs} with the outputs, got {len(args)}"
            )
        if operator.index(block_size) <= 0:
            raise ValueError(f"{self.name}(): block_size is 1 or more, got {block_size}")
        params = self.params[: len(args)]
        values = tp.arguments_of(self.name, params, args)
        device = tp.device_of(self.name, params, values)
        shape = self._shape(values, size)
        types = tp.bind_letters(self.name, self.params, values)
        outs = values[self.nin :] or self._outputs(shape, types, size, device)
        if 0 not in shape:
            self._launch(values[: self.nin], outs, shape, types, device)
        if self.no_return:
            return None
        return outs[0] if self.nout == 1 and not self.return_tuple else tuple(outs)

    def _shape(self, values: list[Any], size: int | None) -> tuple[int, ...]:
        """The loop's shape: what all arrays that aren't `raw` broadcast to. Outputs must have it."""
        pairs = list(zip(self.params, values, strict=False))
        arrays = [(p, a._shape) for p, a in pairs if isinstance(a, ndarray) and not p.raw]
        if size is not None:
            if arrays:
                what = f"{arrays[0][0].name!r} isn't raw and says how many there are"
                raise ValueError(f"{self.name}(): size is for kernels whose arrays are all raw; {what}")
            if operator.index(size) < 0:
                raise ValueError(f"{self.name}(): size is 0 or more, got {size}")
            return (operator.index(size),)
        if not arrays:
            raise ValueError(f"{self.name}(): no array says how many iterations there are; pass size=")
        return tp.broadcast(self.name, arrays)

    def _outputs(self, shape: tuple[int, ...], types: dict[str, DType], size: int | None, device: Device) -> list[Any]:
        for p in self.out_params:
            if p.raw and size is None:
                raise ValueError(f"{self.name}(): nothing says the size of the raw output {p.name!r}; pass it")
        return [empty(shape, p.kind(types), device) for p in self.out_params]

    def _launch(
        self, ins: list[Any], outs: list[Any], shape: tuple[int, ...], types: dict[str, DType], device: Device
    ) -> None:
        ins = [tp.copy_if_unsafe(x, p, outs) for x, p in zip(ins, self.in_params, strict=True)]
        values = [*ins, *outs]
        columns = tuple(
            (shapes.broadcast_strides(a._shape, a._strides, shape), a.itemsize)
            if isinstance(a, ndarray) and not p.raw
            else None
            for p, a in zip(self.params, values, strict=True)
        )
        order = None if self._ordered or not self.nout or not self.reduce_dims else self.nin
        sizes, rows = tf.merged_axes(shape, columns, bool(self.reduce_dims), order)
        layouts, passed = tf.argument_layouts(self.name, self.params, values, rows, types)
        key = (tuple(sorted((letter, d.name) for letter, d in types.items())), tuple(layouts), len(sizes))
        self._kernel.launch(key, device, *passed, *sizes)

    # ---- the program

    def _program(self, key: Any, target: str, debug: bool) -> Program:
        named, layouts, ndim = key
        return _Frame(self, tf.types_of(named), layouts, ndim, DIALECTS[target], debug, self._location).program()


class _Frame:
    """The text around an operation, for arguments of given types and layouts."""

    def __init__(
        self,
        kernel: ElementwiseKernel,
        types: dict[str, DType],
        layouts: tuple[Layout, ...],
        ndim: int,
        dialect: Dialect,
        debug: bool,
        location: tuple[str, int],
    ):
        self.kernel, self.types, self.ndim, self.debug = kernel, types, ndim, debug
        self.dialect, self.location = dialect, location
        self.rows = list(zip(kernel.params, layouts, strict=True))
        self.sizes = [f"{_SIZE}{k}" for k in range(ndim)]
        self.params = [(p.name, layout.type) for p, layout in self.rows]
        self.params += [(name, ScalarType(int64)) for name in self.sizes]
        self.symbol = f"kernel_{kernel.name}"

    def program(self) -> Program:
        lines = TextBuilder(self.kernel.name)
        lines.add(tf.head(self.debug, self.kernel.preamble))
        lines.add(tf.typedefs(self.types))
        lines.user(self.kernel.preamble, "preamble")
        blocks = self.dialect.blocks
        lines.add(self.dialect.prelude)
        lines.add(tf.slots_struct(self.symbol, self.params, self.debug, grid=not blocks))
        (self.blocks if blocks else self.grid)(lines)
        raws = [(p, layout.type) for p, layout in self.rows if tf.is_raw(p, layout)]
        sites = tf.raw_sites(self.kernel.name, raws, *self.location) if self.debug else ()
        directions = tf.directions(self.rows, self.sizes)
        step = KernelStep(self.symbol, () if blocks else self.size_slots())
        return Program(self.kernel.name, lines.text, (step,), tuple(self.params), directions, sites)

    def size_slots(self) -> tuple[int, ...] | None:
        """The slots whose product is the number of iterations, None for more than a step can have."""
        indices = tf.slot_indices(self.params, self.debug)
        slots = tuple(indices[name] for name in self.sizes)
        return slots if len(slots) <= MOST_SIZES else None

    def blocks(self, lines: TextBuilder) -> None:
        """A block of iterations as a nest of loops, and what starts it."""
        symbol, last = self.symbol, self.ndim - 1
        lines.add(f"struct {symbol}_env {{ const {symbol}_slots *_slots; pa_runtime *rt; }};\n")
        lines.add(f"static void {symbol}_loop0(void *_context, int64_t _begin, int64_t _end)\n{{\n")
        lines.add(tf.slots_copy(symbol, f"((const {symbol}_env *)_context)->_slots"))
        self.declare(lines, f"((const {symbol}_env *)_context)->rt")
        lines.add(f"""\
    for (int64_t _first = _begin; _first < _end;) {{
        _ind.set(_first);
        const int64_t _from = _ind.index_[{last}], _left = _end - _first, _row = _n{last} - _from;
        const int64_t _stop = _from + (_left < _row ? _left : _row);
""")
        lines.indices(last, "_ind", "        ")
        lines.add(f"""\
        for (int64_t _j{last} = _from; _j{last} < _stop; ++_j{last}) {{
            const int64_t i = _first + (_j{last} - _from);
            _ind.index_[{last}] = _j{last};
""")
        self.body(lines)
        lines.add("        }\n        _first += _stop - _from;\n    }\n")
        lines.user(self.kernel.after_loop and self.kernel.after_loop + "\n;", "after_loop")
        lines.add("}\n")
        cost = max(4, len(self.kernel.operation) // 8)
        count = " * ".join(f"slots->{cname(name)}" for name in self.sizes)
        start = self.dialect.start.format(symbol=symbol, number=0, count=count, grain=f"pa_grain(rt, count, {cost})")
        body = indent(f"env._slots = slots;\nenv.rt = rt;\n{start}", "    ")
        lines.add(self.dialect.entry.format(symbol=symbol, body=body))

    def grid(self, lines: TextBuilder) -> None:
        """A loop that strides over the grid."""
        lines.add(self.dialect.entry.format(symbol=self.symbol, slots=f"{self.symbol}_slots"))
        if self.debug:
            lines.add("    pa_runtime _run = slots->run;\n")
        lines.add(f"    const {self.symbol}_slots *const _slots = slots;\n    {{\n")
        self.declare(lines, "&_run" if self.debug else "0")
        lines.add("    for (int64_t i = pa_thread(); i < _ind.size(); i += pa_threads()) {\n        _ind.set(i);\n")
        lines.indices(self.ndim, "_ind", "        ")
        self.body(lines)
        lines.add("    }\n")
        lines.user(self.kernel.after_loop and self.kernel.after_loop + "\n;", "after_loop")
        lines.add("    }\n}\n")

    def declare(self, lines: TextBuilder, runtime: str) -> None:
        """What stands before the loop."""
        shape = [f"_slots->{cname(name)}" for name in self.sizes]
        lines.add("".join(f"    const int64_t _n{k} = {n};\n" for k, n in enumerate(shape)))
        lines.add(f"    pa_indexer<{self.ndim}> _ind = {{1, {{{', '.join(shape)}}}}};\n    _ind.start();\n")
        lines.add(tf.declarations(self.rows, self.types, self.debug, runtime))
        lines.user(self.kernel.loop_prep and self.kernel.loop_prep + "\n;", "loop_prep")

    def body(self, lines: TextBuilder) -> None:
        if self.debug:
            lines.add("            _at.tid = i;\n")
        for p, layout in self.rows:
            if layout.axes is not None:
                lines.add(tf.array_text(p, p.ctype(self.types), layout, "            "))
        lines.user(self.kernel.operation + "\n;", "operation")
