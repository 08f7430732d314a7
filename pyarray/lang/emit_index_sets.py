"""Index set splitting: a loop that asks in each iteration whether it is at an end of its range, as periodic or clamped
neighbours do, becomes two. The iterations at the ends keep the questions. For those between, the answers are known: the
indices that are chosen by them then are the variable and a number, and compilers vectorise their accesses as contiguous
ones.

Questions are comparisons of the variable, or of its sum with a number, with an end of the range and a number: in
selects of integers, and in `min` and `max`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from . import ir
from .delinearization import unit_step
from .emit_delinearized import CountedLoop
from .emit_expressions import ExprEmitter, cname
from .loop_dependences import structural_key
from .summaries import assigned_in, has_any

MOST_NODES = 300  # of a body, which is written twice
FARTHEST = 16  # iterations from an end of the range: those at the ends aren't vectorised
FAR = "(INT64_C(1) << 62)"  # within which sums with such numbers don't overflow
_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
_INVARIANT = (ir.Const, ir.Local, ir.Size, ir.Binary, ir.Cast)  # where no variable changes; a loaded number may
_LOOPS = (ir.For, ir.While, ir.Break, ir.Continue, ir.Return, ir.BeginIteration)


class Between(NamedTuple):
    """The iterations from `low` on from the start of the range, and up to `high` before its stop (0 or less), in which
    expressions are known to be others, or truths. `sums`: of the variable and a number, which don't overflow there."""

    low: int
    high: int
    known: dict[ir.Expr, ir.Expr | bool]
    sums: dict[ir.Expr, int]


class _Question(NamedTuple):
    """`known` from so many iterations behind the start, or up to so many from the stop; None: of no matter."""

    low: int | None
    high: int | None
    known: ir.Expr | bool


def write_index_sets(
    code: ExprEmitter, loop: ir.For, span: CountedLoop, body: Callable[[], None], start: str = "", stop: str = ""
) -> bool:
    """Prints the loop over a span of the last variable in two parts. Its whole range has the ends `start` and `stop` as
    C text, or else those of the span. False, and nothing printed, where that gains nothing."""
    between = _between(loop) if code.dialect.blocks and (code.is_tested or not code.may_fail) else None
    if between is None:
        return False
    code.counters += 1
    k, out, declared = f"k{code.counters}", code.out, [span.declared] if span.declared else []
    with out.block():
        out.line(f"const int64_t {k}_first = {span.first}, {k}_past = {span.past};")
        out.line(f"int64_t {k}_low = {k}_past, {k}_high = {k}_past;")
        with out.block(f"if ({k}_first > -{FAR} && {k}_past < {FAR})"):
            out.line(f"{k}_low = pa_max_i64({k}_first, {start or f'{k}_first'} + {between.low});")
            out.line(f"{k}_high = pa_min_i64({k}_past, {stop or f'{k}_past'} - {-between.high});")
            out.line(f"if ({k}_low >= {k}_high) {k}_low = {k}_high = {k}_past;")
        with out.block(f"for (int {k}_last = 0; {k}_last < 2; ++{k}_last)"):
            ends = (f"{k}_last ? {k}_high : {k}_first", f"{k}_last ? {k}_past : {k}_low")
            bounds = f"int64_t {span.k} = {ends[0]}, {k}_end = {ends[1]}; {span.k} < {k}_end"
            with out.block(f"for ({bounds}{code.loop_guard}; ++{span.k})"):
                out.lines(["PA_NOVECTOR;", *declared])
                body()
            out.line(f"if ({k}_last) break;")
            sums = {e: f"({cname(loop.variables[-1])} + {plus})" for e, plus in between.sums.items()}
            outer, code.known = code.known, code.known | between.known | sums
            with out.block(f"for (int64_t {span.k} = {k}_low; {span.k} < {k}_high{code.loop_guard}; ++{span.k})"):
                out.lines(declared)
                body()
            code.known = outer
    return True


def _between(loop: ir.For) -> Between | None:
    range_, variable = loop.ranges[-1], loop.variables[-1]
    if not unit_step(range_) or has_any(loop.body, *_LOOPS) or len(list(ir.walk(*loop.body))) > MOST_NODES:
        return None
    changing = assigned_in(*loop.body) | {variable}
    found = dict(_questions(loop.body, range_, variable, changing))
    if not found:
        return None
    low = max([0, *(q.low for q in found.values() if q.low is not None)])
    high = min([0, *(q.high for q in found.values() if q.high is not None)])
    binary = [n for n in ir.walk(*loop.body) if isinstance(n, ir.Binary) and _is_integer(n)]
    sums: dict[ir.Expr, int] = {}
    sums |= {n: _sum(n)[1] for n in binary if _is_variable(_sum(n)[0], variable) and abs(_sum(n)[1]) < FARTHEST}
    return Between(low, high, {e: q.known for e, q in found.items()}, sums)


def _questions(body: Any, range_: ir.Range, variable: str, changing: set[str]) -> Iterator[tuple[ir.Expr, _Question]]:
    for node in ir.walk(*body):
        if isinstance(node, ir.Select) and _is_integer(node):
            for c in ir.walk(node.condition):
                if isinstance(c, ir.Compare) and (q := _of_comparison(c, range_, variable, changing)):
                    yield c, q
        elif isinstance(node, ir.Builtin) and node.name in ("min", "max") and _is_integer(node):
            for a, b in (node.args, node.args[::-1]):
                op = "ge" if node.name == "max" else "le"
                if q := _answer(op, a, b, range_, variable, changing):
                    yield node, q._replace(known=a)
                    break


def _is_variable(e: ir.Expr | None, variable: str) -> bool:
    return isinstance(e, ir.Local) and e.name == variable


def _is_integer(e: ir.Expr) -> bool:
    kind: Any = e.type
    return isinstance(kind, ir.ScalarType) and kind.dtype.name == "int64"


def _of_comparison(e: ir.Compare, range_: ir.Range, variable: str, changing: set[str]) -> _Question | None:
    return _answer(e.op, e.a, e.b, range_, variable, changing) or _answer(
        _MIRRORED[e.op], e.b, e.a, range_, variable, changing
    )


def _answer(op: str, a: ir.Expr, b: ir.Expr, range_: ir.Range, variable: str, changing: set[str]) -> _Question | None:
    """When `a op b` has one answer between the ends of the range, where `a` is the variable and a number, and `b` an
    end of the range and a number."""
    if not (_is_integer(a) and _is_integer(b)):
        return None
    root, plus = _sum(a)
    if not _is_variable(root, variable):
        return None
    end, more = _sum(b)
    nodes = list(ir.walk(end)) if end is not None else []
    if any(not isinstance(n, _INVARIANT) or (isinstance(n, ir.Local) and n.name in changing) for n in nodes):
        return None
    places = []
    for bound in (range_.start, range_.stop):
        other, least = _sum(bound) if bound is not None else (None, 0)
        same = _key(other) == _key(end)
        places.append(more - plus - least if same and abs(more - plus - least) < FARTHEST else None)
    behind, before = places  # where variable + plus == b, from each end
    if behind is not None and op in ("gt", "ge", "eq", "ne"):
        return _Question(behind + (op != "ge"), None, op != "eq")
    if before is not None and op in ("lt", "le", "eq", "ne"):
        return _Question(None, before + (op == "le"), op != "eq")
    return None


def _sum(e: ir.Expr | None) -> tuple[ir.Expr | None, int]:
    """An expression as one, None: 0, and a number."""
    while isinstance(e, ir.Cast) and _is_integer(e) and _is_integer(e.a):
        e = e.a
    if isinstance(e, ir.Const):
        return None, int(e.value)
    if isinstance(e, ir.Binary) and e.op in ("add", "sub") and isinstance(e.b, ir.Const):
        root, plus = _sum(e.a)
        return root, plus + (int(e.b.value) if e.op == "add" else -int(e.b.value))
    return e, 0


def _key(e: ir.Expr | None) -> Any:
    """Equal for expressions that are equal: a name of any type of integers."""
    return e.name if isinstance(e, ir.Local) else structural_key(e)
