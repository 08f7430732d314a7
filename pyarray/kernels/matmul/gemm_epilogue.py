"""The last step of a matrix product, on a CPU in the same pass: sums times a number, arrays added, a
function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...array import ndarray
from ...dtypes import BY_NAME, DType, complex128, float32, float64, int64, uint64
from ...jit.bounded_cache import BoundedCache
from ...jit.kernel import Func, Kernel, from_text
from ...jit.variants import MOST
from ...lang.emit_statements import cname
from ...lang.emit_views import struct_fields
from ...lang.ir import ArrayType, ScalarType
from ...lang.markers import ndrange
from ...lang.pipeline import lower
from ..elementwise.elementwise import nest

Addends = Sequence[ndarray]


@dataclass(frozen=True)
class Last:
    """What becomes of the sums: `activation(alpha * sum + beta * d + e)`, each part where it is said, of type
    `out`. `captured` is what the function's globals and closures hold, which is compiled in."""

    out: str
    alpha: bool = False
    beta: bool = False  # and d with it
    bias: bool = False  # e
    activation: Func | None = None
    captured: tuple[Any, ...] = ()

    @property
    def computes(self) -> bool:
        """Whether there is more to do than to store the sums."""
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
        """The type of the sums, which is computed in."""
        out = BY_NAME[self.out]
        return float32 if out.kind == "f" and out.itemsize == 2 else out

    @property
    def includes(self) -> str:
        """The headers of a text with this."""
        return "" if BY_NAME[self.out].itemsize != 2 else "#include <pa_half.h>\n"

    def lines(self, place: str) -> list[str]:
        """In the kernel language, for the elements at `place`."""
        terms = f"acc[{place}]"
        terms = f"alpha * {terms}" if self.alpha else terms
        terms += f" + beta * d[{place}]" if self.beta else ""
        terms += f" + e[{place}]" if self.bias else ""
        return [f"out[{place}] = {f'activation({terms})' if self.activation is not None else terms}"]

    @property
    def scope(self) -> dict[str, Any]:
        """What the line names."""
        return {"activation": self.activation, "ndrange": ndrange, "sum_t": self.sum}


@dataclass(frozen=True)
class Steps(Last):
    """A last step of several statements `body`, which read `acc[{0}]` and, of `count` arrays, `d[{0}]` and
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

    def lines(self, place: str) -> list[str]:
        """The statements."""
        return [line.format(place) for line in self.body]

    @property
    def scope(self) -> dict[str, Any]:
        """What they name."""
        return super().scope | dict(self.names)


def slots_of(params: Sequence[tuple[str, Any]], debug: bool) -> str:
    """The fields of the arguments' struct."""
    text = ""
    for name, kind in params:
        if isinstance(kind, ArrayType):
            text += "".join(f"    {ctype}{name}_{field};\n" for ctype, field in struct_fields(kind, debug))
        elif kind.dtype.kind == "c":
            text += f"    double {name}_re, {name}_im;\n"
        else:
            text += f"    {kind.dtype.ctype} {name};\n"
    return text


def last_text(last: Last) -> str:
    """C text that defines PA_EPILOGUE; it is a kernel over runs of elements, called as a function."""
    if not last.computes:
        return ""
    names = ("out", "acc", *last.addends)
    head = f"def last({', '.join([*names, *last.numbers, 'size'])}):\n"
    text = f"{head}    if size > 0:\n        for i in range(size):\n"
    text += "".join(f"            {line}\n" for line in last.lines("i"))
    params: list[tuple[str, Any]] = [
        (n, ArrayType(last.sum if n == "acc" else BY_NAME[last.out], 1, strided=False)) for n in names
    ]
    params += [(n, ScalarType(last.sum)) for n in last.numbers] + [("size", ScalarType(int64))]
    program = lower(from_text("last", text, last.scope).source_text, params, "cpu")
    symbol = program.steps[0].symbol
    body = ""
    for name, kind in program.params:
        c = cname(name)
        if isinstance(kind, ArrayType):
            body += f"    t.data_{c} = ({kind.dtype.ctype} *){name}, t.n0_{c} = n;\n"
        elif name == "size":
            body += f"    t.{c} = n;\n"
        elif kind.dtype.kind == "c":
            body += f"    t.re_{c} = s->{name}_re, t.im_{c} = s->{name}_im;\n"
        else:
            body += f"    t.{c} = s->{name};\n"
    return f"""{program.text}
static void matmul_last(const matmul_slots *s, int64_t n, const void *acc, const void *d, const void *e,
                        void *out)
{{
    {symbol}_slots t;
    (void)s, (void)d, (void)e;
{body}    {symbol}(&t, 0);
}}
#define PA_EPILOGUE(args, n, acc, d, e, out) \\
    matmul_last((const matmul_slots *)(args)->more, n, acc, d, e, out)
"""


# By all that the text is made of: the rank, and the last step with its function and what that captures.
_last_steps: BoundedCache[tuple[Last, int], Kernel] = BoundedCache(MOST)


def apply(last: Last, out: ndarray, sums: ndarray, addends: Addends, numbers: Sequence[Any]) -> None:
    """The last step by itself, where the product has none: `addends` have the shape of `out`."""
    key = last, out.ndim
    step = _last_steps.get(key)
    if step is None:
        place = ", ".join(f"i{k}" for k in range(out.ndim))
        typed = (f"{n}: sum_t" for n in last.numbers)
        head = f"def gemm_last({', '.join(['out', 'acc', *last.addends, *typed])}):\n"
        text = head + nest(out.ndim, False, True, last.lines(place))
        step = _last_steps.add(key, from_text("gemm_last", text, last.scope))
    step(out, sums, *addends, *numbers)
