"""GPU text of a division by the same divisor for all elements of a row: those of a vector are divided at once.

A float32 division is ten instructions and a branch; by `csrc/device/pa_quotients_gpu.h` it is four, with the same bits.
So the body of a loop is written in two parts, for all elements of a vector what stands before the division, and then
what stands behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..dtypes import float32
from . import ir
from .emit_statements import Emitter, cname, ctype
from .summaries import assigned_in, names_in

# elements of a vector from which it pays: of halves memory brings so many that instructions are the limit; with wider
# types memory is, and registers are scarce
NARROW_WIDTH = 8
_QUOTIENT = ".quotient"  # the variable that stands for the division


@dataclass(frozen=True)
class RowQuotient:
    """`numerator / divisor` of each iteration, after the statements `before`; `after` are the others, with a
    variable in the place of the division. `shared`: the variables of `before` that `after` reads."""

    before: tuple[ir.Stmt, ...]
    numerator: ir.Expr
    divisor: ir.Expr
    after: tuple[ir.Stmt, ...]
    shared: dict[str, Any]


def dividing_functions(functions: Iterable[ir.Function]) -> dict[str, tuple[int, int]]:
    """Functions that do nothing but divide two of their parameters, with the numbers of these."""
    found = dict[str, tuple[int, int]]()
    for f in functions:
        value = f.body[0].value if len(f.body) == 1 and isinstance(f.body[0], ir.Return) else None
        if isinstance(value, ir.Binary) and _is_division(value):
            names = [name for name, _ in f.params]
            terms = [x.name for x in (value.a, value.b) if isinstance(x, ir.Local)]
            if len(terms) == 2:
                found[f.symbol] = names.index(terms[0]), names.index(terms[1])
    return found


def find_row_quotient(s: ir.For, dividing: Mapping[str, tuple[int, int]]) -> RowQuotient | None:
    """The first division by what is the same in all iterations of a loop without branches; None if there is none."""
    if not all(isinstance(x, (ir.Assign, ir.Store)) for x in s.body):
        return None
    changing = assigned_in(*s.body) | set(s.variables)
    for k, statement in enumerate(s.body):
        for node in _evaluated(statement):
            terms = _terms(node, dividing)
            if terms is not None and _is_invariant(terms[1], changing):
                return _divided(s, k, node, terms)
    return None


def _divided(s: ir.For, k: int, node: Any, terms: tuple[ir.Expr, ir.Expr]) -> RowQuotient:
    quotient = ir.Local(node.loc, node.type, _QUOTIENT)
    after = (ir.rewrite(s.body[k], lambda n: quotient if n is node else n), *s.body[k + 1 :])
    types = {n.name: n.type for n in ir.walk(*s.body) if isinstance(n, ir.Local)}
    sums = {name for name, _ in s.reductions}
    shared = (assigned_in(*s.body[:k]) & names_in(*after)) - sums
    return RowQuotient(s.body[:k], *terms, after, {name: types[name] for name in sorted(shared)})


def _evaluated(node: Any) -> Iterable[Any]:
    """Nodes of an expression that are evaluated always, outermost first."""
    yield node
    if isinstance(node, (ir.Select, ir.Logic)):
        yield from _evaluated(node.condition if isinstance(node, ir.Select) else node.a)
        return
    if isinstance(node, ir.Let):
        return
    for part in ir.children(node):
        yield from _evaluated(part)


def _is_division(node: Any) -> bool:
    return isinstance(node, ir.Binary) and node.op == "div" and node.type.dtype is float32


def _terms(node: Any, dividing: Mapping[str, tuple[int, int]]) -> tuple[ir.Expr, ir.Expr] | None:
    """Numerator and divisor of a division."""
    if isinstance(node, ir.Binary) and _is_division(node):
        return node.a, node.b
    if isinstance(node, ir.Invoke) and node.function in dividing:
        a, b = dividing[node.function]
        return node.args[a], node.args[b]
    return None


def _is_invariant(divisor: ir.Expr, changing: set[str]) -> bool:
    while isinstance(divisor, ir.Cast):
        divisor = divisor.a
    return isinstance(divisor, ir.Local) and divisor.name not in changing


def divisor_line(code: Emitter, quotient: RowQuotient) -> str:
    """What stands before the loop."""
    return f"const pa_divisor divisor = pa_divisor_of({code.expr(quotient.divisor)});"


def write_parts(
    code: Emitter, quotient: RowQuotient, width: int, each_element: Callable[[Callable[[], None]], None]
) -> None:
    """The iterations of a vector of so many elements; `each_element` prints a loop over them, of variable `j`."""
    out, saved = code.out, dict(code.renamed)
    names = {name: f"all_{cname(name)}" for name in quotient.shared}
    out.line(f"float numerators[{width}], quotients[{width}];")
    out.lines(f"{ctype(kind)} {names[name]}[{width}];" for name, kind in quotient.shared.items())
    code.renamed |= {name: f"{text}[j]" for name, text in names.items()} | {_QUOTIENT: "quotients[j]"}

    def before() -> None:
        code.write(quotient.before)
        out.line(f"numerators[j] = {code.expr(quotient.numerator)};")

    each_element(before)
    out.line(f"pa_quotients<{width}>(quotients, numerators, divisor);")
    each_element(lambda: code.write(quotient.after))
    code.renamed = saved
