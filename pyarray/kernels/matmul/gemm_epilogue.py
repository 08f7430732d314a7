"""Epilogues of matrix products: scaling, added arrays, an activation; in the same pass where the product's kernel has
them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ... import jit, lang
from ...array import ndarray
from ...dtypes import BY_NAME, DType, complex128, float64, int64, uint64
from ...jit.bounded_cache import BoundedCache
from ...jit.functions import Func, func
from ...jit.variants import MAX_VARIANTS
from ...lang.emit_loop import parallel_loops
from ...lang.iteration_cost import constant_trips, cost
from ...lang.markers import ndrange
from ...lang.parse import function_from_text
from ..elementwise.elementwise import loop_nest
from . import thresholds as th

Addends = Sequence[ndarray]


@dataclass(frozen=True)
class Epilogue:
    """`activation(alpha * sum + beta * d + e)`, each part optional, of type `out`. `captured`: the values of the
    activation's globals and closures, which are compiled in."""

    out: str
    alpha: bool = False
    beta: bool = False  # and d with it
    bias: bool = False  # e
    activation: Func | None = None
    captured: tuple[Any, ...] = ()

    @property
    def computes(self) -> bool:
        """Whether it does more than store the sums."""
        return self.alpha or self.beta or self.bias or self.activation is not None

    @property
    def addends(self) -> tuple[str, ...]:
        """Names of the arrays."""
        return (("d",) if self.beta else ()) + (("e",) if self.bias else ())

    @property
    def numbers(self) -> tuple[str, ...]:
        """Names of the numbers."""
        return (("alpha",) if self.alpha else ()) + (("beta",) if self.beta else ())

    @property
    def number(self) -> DType:
        """The type in which numbers are passed."""
        return {"f": float64, "c": complex128, "u": uint64}.get(BY_NAME[self.out].kind, int64)

    @property
    def sum(self) -> DType:
        """The type of the sums, in which it computes."""
        return BY_NAME[self.out].arithmetic

    def lines(self, index: str) -> list[str]:
        """In the kernel language, for the elements at an index."""
        terms = f"acc[{index}]"
        terms = f"alpha * {terms}" if self.alpha else terms
        terms += f" + beta * d[{index}]" if self.beta else ""
        terms += f" + e[{index}]" if self.bias else ""
        return [f"out[{index}] = {f'activation({terms})' if self.activation is not None else terms}"]

    @property
    def scope(self) -> dict[str, Any]:
        """The names in the lines."""
        return {"activation": self.activation, "ndrange": ndrange, "sum_t": self.sum}


@dataclass(frozen=True)
class StatementsEpilogue(Epilogue):
    """An epilogue of several statements `body`, which read `acc[{0}]` and, of `count` arrays, `d[{0}]` and
    `e[{0}]`, and write `out[{0}]`; `names` is what else they name."""

    body: tuple[str, ...] = ()
    count: int = 0
    names: tuple[tuple[str, Any], ...] = ()

    @property
    def computes(self) -> bool:
        """It does."""
        return True

    @property
    def addends(self) -> tuple[str, ...]:
        """Names of the arrays."""
        return ("d", "e")[: self.count]

    def lines(self, index: str) -> list[str]:
        """The statements."""
        return [line.format(index) for line in self.body]

    @property
    def scope(self) -> dict[str, Any]:
        """What they name."""
        return super().scope | dict(self.names)


def epilogue_text(epilogue: Epilogue) -> str:
    """C text that defines PA_EPILOGUE; it is a kernel over runs of elements, called as a function."""
    if not epilogue.computes:
        return ""
    names = ("out", "acc", *epilogue.addends)
    head = f"def epilogue({', '.join([*names, *epilogue.numbers, 'size'])}):\n"
    text = f"{head}    if size > 0:\n        for i in range(size):\n"
    text += "".join(f"            {line}\n" for line in epilogue.lines("i"))
    params: list[tuple[str, Any]] = [
        (n, lang.ir.ArrayType(epilogue.sum if n == "acc" else BY_NAME[epilogue.out], 1, strided=False)) for n in names
    ]
    params += [(n, lang.ir.ScalarType(epilogue.sum)) for n in epilogue.numbers] + [("size", lang.ir.ScalarType(int64))]
    program = lang.pipeline.lower(jit.kernel.from_text("epilogue", text, epilogue.scope).source_text, params, "cpu")
    symbol = program.steps[0].symbol
    body = ""
    for name, kind in program.params:
        c = lang.emit_statements.cname(name)
        if isinstance(kind, lang.ir.ArrayType):
            body += f"    t.data_{c} = ({kind.dtype.ctype} *){name}, t.n0_{c} = n;\n"
        elif name == "size":
            body += f"    t.{c} = n;\n"
        elif kind.dtype.kind == "c":
            body += f"    t.re_{c} = s->{name}_re, t.im_{c} = s->{name}_im;\n"
        else:
            body += f"    t.{c} = s->{name};\n"
    return f"""{program.text}
static void matmul_epilogue(const matmul_slots *s, int64_t n, const void *acc, const void *d, const void *e,
                        void *out)
{{
    {symbol}_slots t;
    (void)s, (void)d, (void)e;
{body}    {symbol}(&t, 0);
}}
#define PA_EPILOGUE(args, n, acc, d, e, out) \\
    matmul_epilogue((const matmul_slots *)(args)->more, n, acc, d, e, out)
"""


def _kinds(epilogue: Epilogue) -> dict[str, lang.ir.ArrayType]:
    """The types of the arrays of an epilogue of an element."""
    names = ("out", "acc", *epilogue.addends)
    return {n: lang.ir.ArrayType(epilogue.sum if n == "acc" else BY_NAME[epilogue.out], 1, False) for n in names}


# A function of the epilogue alone.
@functools.lru_cache(maxsize=MAX_VARIANTS)
def _of_elements(epilogue: Epilogue) -> lang.pipeline.Analysed:
    """A kernel that calls the function of an element, `epilogue_element`."""
    kinds = _kinds(epilogue)
    params = ", ".join([*kinds, *epilogue.numbers])
    head, call = f"def epilogue_element({params}, i):\n", f"epilogue_element({params}, i)"
    text = head + "".join(f"    {line}\n" for line in epilogue.lines("i"))
    element = func(function_from_text("epilogue_element", text, epilogue.scope))
    text = f"def epilogue({params}, size):\n    for i in range(size):\n        {call}\n"
    kernel = jit.kernel.from_text("epilogue", text, {"epilogue_element": element})
    numbers = [(n, lang.ir.ScalarType(epilogue.sum)) for n in epilogue.numbers]
    return lang.pipeline.analyse(kernel.source_text, [*kinds.items(), *numbers, ("size", lang.ir.ScalarType(int64))])


# A function of the epilogue alone.
@functools.lru_cache(maxsize=MAX_VARIANTS)
def is_cheap(epilogue: Epilogue) -> bool:
    """Whether a grid computes it in the product's kernel, in which few threads run: an exponential of each result takes
    longer there than a kernel of its own that reads and writes the results once more."""
    tree = _of_elements(epilogue).tree
    (loop,) = parallel_loops(tree.kernel)
    functions = {f.symbol: f for f in tree.functions}
    costs = [cost(s, functions, constant_trips) for s in loop.body]
    return all(text.isdigit() for text in costs) and sum(map(int, costs)) <= th.MAX_EPILOGUE_COST


def grid_epilogue_text(epilogue: Epilogue, target: str) -> str:
    """C text for a grid that defines PA_GEMM_EPILOGUE (csrc/device/pa_gemm_results.h): a function of an element. The
    kernel that comes with the function is never launched."""
    kinds = _kinds(epilogue)
    program = lang.pipeline.generate(_of_elements(epilogue), target, debug=False)
    out, acc = kinds["out"].dtype.ctype, kinds["acc"].dtype.ctype
    places = {"out": "&result", "acc": "&sum"} | {n: f"({out} *)&d[{k}]" for k, n in enumerate(epilogue.addends)}
    views = [f"{lang.emit_statements.ctype(kind)}{{{places[n]}, 1}}" for n, kind in kinds.items()]
    values = [f"({acc})s->{n}" for n in epilogue.numbers]
    if kinds["acc"].dtype.kind == "c":
        part = "float" if kinds["acc"].dtype.itemsize == 8 else "double"
        values = [f"{acc}{{({part})s->{n}_re, ({part})s->{n}_im}}" for n in epilogue.numbers]
    return f"""{program.text}
__device__ static __forceinline__ {out} matmul_result(const void *more, {acc} sum, const void *addends)
{{
    const matmul_slots *s = (const matmul_slots *)more;
    {out} result;
    const {out} *d = (const {out} *)addends;
    (void)s, (void)d;
    func_epilogue_element({", ".join([*views, *values, "0"])});
    return result;
}}
#define PA_GEMM_ADDENDS {len(epilogue.addends)}
#define PA_GEMM_EPILOGUE matmul_result
"""


# The text depends on the rank and the epilogue, with its function and captured values.
_kernels: BoundedCache[tuple[Epilogue, int], jit.kernel.Kernel] = BoundedCache(MAX_VARIANTS)


def apply_epilogue(epilogue: Epilogue, out: ndarray, sums: ndarray, addends: Addends, numbers: Sequence[Any]) -> None:
    """The epilogue in a kernel of its own, after the product; `addends` have the shape of `out`."""
    key = epilogue, out.ndim
    step = _kernels.get(key)
    if step is None:
        index = ", ".join(f"i{k}" for k in range(out.ndim))
        typed = (f"{n}: sum_t" for n in epilogue.numbers)
        head = f"def gemm_epilogue({', '.join(['out', 'acc', *epilogue.addends, *typed])}):\n"
        sum_at = f"acc[{index}]"  # stored in the type of the result
        lines = [line.replace(sum_at, f"sum_t({sum_at})") for line in epilogue.lines(index)]
        text = head + loop_nest(out.ndim, False, True, lines)
        step = _kernels.add(key, jit.kernel.from_text("gemm_epilogue", text, epilogue.scope))
    step(out, sums, *addends, *numbers)
