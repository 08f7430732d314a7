"""Expressions that may be evaluated where Python wouldn't: they are cheap, change nothing and can't fail.

`a and b` of such a b is `a & b` on CPUs: no branch, which would often be guessed wrong. Loads from arrays aren't among
them, since what stands before them may be the test of their index."""

from __future__ import annotations

from collections.abc import Mapping

from . import ir
from .summaries import changing_in

_MOST_NODES = 12  # more take longer than a wrong guess now and then
_OPERATIONS = {"add", "sub", "mul", "and", "or", "xor"}
_FUNCTIONS = {"abs", "min", "max", "isnan", "isinf", "isfinite"}
_SIMPLE = (ir.Const, ir.Local, ir.Compare, ir.Logic, ir.Unary, ir.Binary, ir.Cast, ir.Builtin, ir.Element)
Ranges = Mapping[str, range]  # what variables of loops of constant length can be


def constant_ranges(loop: ir.For) -> dict[str, range]:
    """The ranges of the loop's variables that are constant."""
    changed, found = changing_in(*loop.body), dict[str, range]()
    for name, r in zip(loop.variables, loop.ranges, strict=True):
        ends = [default if x is None else getattr(x, "value", None) for x, default in ((r.start, 0), (r.stop, None))]
        if all(isinstance(x, int) for x in ends) and r.step is None and name not in changed:
            found[name] = range(*ends)  # type: ignore[arg-type]
    return found


def may_speculate(e: ir.Expr, ranges: Ranges) -> bool:
    """Whether it may be evaluated whatever stands before it."""
    nodes = list(ir.walk(e))
    return len(nodes) <= _MOST_NODES and all(_is_cheap(node, ranges) for node in nodes)


def _is_cheap(e: ir.Expr, ranges: Ranges) -> bool:
    if not isinstance(e, _SIMPLE):
        return False
    if isinstance(e, ir.Element):
        return isinstance(e.array, ir.Local) and _is_inside(e, ranges)
    if isinstance(e.type, (ir.LocalArrayType, ir.ArrayType)):
        return isinstance(e, ir.Local)
    dtype = e.type.dtype
    if dtype.kind == "c" or dtype.is_narrow:
        return False
    if isinstance(e, ir.Binary):
        return e.op in _OPERATIONS or (e.op == "mod" and _range_of(e, ranges) is not None)
    if isinstance(e, ir.Cast):
        return not (dtype.kind in "iu" and e.a.type.dtype.kind in "fc")
    return not isinstance(e, ir.Builtin) or e.name in _FUNCTIONS


def _is_inside(e: ir.Element, ranges: Ranges) -> bool:
    if e.site is not None:
        return False
    found = [_range_of(i, ranges) for i in e.index]
    return all(
        r is not None and len(r) > 0 and r[0] >= 0 and r[-1] < size
        for r, size in zip(found, e.array.type.shape, strict=True)
    )


def _range_of(e: ir.Expr, ranges: Ranges) -> range | None:
    """What an integer can be, None where that isn't seen."""
    if isinstance(e, ir.Const):
        return range(e.value, e.value + 1)
    if isinstance(e, ir.Local):
        return ranges.get(e.name)
    if not isinstance(e, ir.Binary) or not isinstance(e.b, ir.Const):
        return None
    if e.op == "mod" and e.b.value > 0:
        return range(e.b.value) if _range_of(e.a, ranges) is not None else None
    a = _range_of(e.a, ranges)
    if a is None or e.op not in ("add", "sub"):
        return None
    shift = e.b.value if e.op == "add" else -e.b.value
    return range(a.start + shift, a.stop + shift)
