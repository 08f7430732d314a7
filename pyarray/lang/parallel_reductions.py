"""Reductions of parallel loops, as inference finds them: variables from before the loop that its iterations only
update, by one operator; and records, a best value with what belongs to it (`if x < best: best = x; where = i`).

An element with an index that the loop doesn't change is such a variable, too: it is read before the loop and stored
behind it. One behind a `continue` needn't exist, since no iteration may reach it: a second variable counts those that
do, and the element is read and stored behind the loop."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from ..dtypes import DType, above, int64
from . import ir
from .loop_dependences import structural_key
from .promotion import SWAPPED_COMPARISON, binary, cast, compare, constant, identity_of
from .summaries import assigned_in

_OPERATORS = frozenset(("add", "sub", "mul", "and", "or", "xor", "min", "max"))
_COUNT = ir.ScalarType(int64)
_BEST = {"lt": "min", "le": "min", "gt": "max", "ge": "max"}


@dataclass
class Found:
    """`operators` by variable; of each record the variables, the best one first."""

    operators: dict[str, str] = field(default_factory=dict)
    records: list[tuple[str, ...]] = field(default_factory=list)

    def entries(self) -> tuple[tuple[str, str], ...]:
        """As a loop has them: the operator of a record's variables is that it is one."""
        return (*self.operators.items(), *((name, "record") for record in self.records for name in record))


def uncast(e: Any) -> Any:
    while isinstance(e, ir.Cast):
        e = e.a
    return e


def find_reductions(body: tuple[ir.Stmt, ...], names: Iterable[str], any_cast: bool = False) -> Found | str:
    """How the body updates the variables; the name of one that it uses in another way. With `any_cast` updates may
    round, which no reduction may: it tells what is wrong."""
    nodes, names = list(ir.walk(*body)), set(names)
    found, updates, seen = Found(), dict.fromkeys(names, 0), set[int]()
    for n in nodes:
        record = list(_record(n, names, any_cast)) if isinstance(n, ir.If) else []
        if record:
            seen |= {id(s) for s in n.then}
            updates[record[0]] += 1
            if len(record) > 1:
                found.records.append(tuple(record))
            elif found.operators.setdefault(record[0], best := _BEST[_comparison(n)[1]]) != best:
                return record[0]
    for n in nodes:
        if isinstance(n, ir.Let) and n.name in names:
            return n.name
        if isinstance(n, ir.Assign) and n.name in names and id(n) not in seen:
            op = update_operator(n.value, n.name, any_cast=any_cast)
            if op is None or found.operators.setdefault(n.name, op) != op:
                return n.name
            updates[n.name] += 1
    in_records = [name for record in found.records for name in record]
    for name in sorted(names):
        reads = sum(isinstance(n, ir.Local) and n.name == name for n in nodes)
        twice = in_records.count(name) + (name in found.operators) > 1
        if twice or reads != updates[name]:
            return name
    return found


def _comparison(s: ir.If) -> tuple[str, str, Any]:
    """The variable of `x < best`, the comparison with x on the left, and x; "" for another condition."""
    c = s.condition
    if not isinstance(c, ir.Compare) or c.op not in _BEST:
        return "", "", None
    a, b = uncast(c.a), uncast(c.b)
    if isinstance(b, ir.Local):
        return b.name, c.op, a
    return (a.name, SWAPPED_COMPARISON[c.op], b) if isinstance(a, ir.Local) else ("", "", None)


def record_comparison(s: ir.If, names: Iterable[str]) -> tuple[str, str] | None:
    """The best variable of a record among `names`, and the comparison with the new value on the left."""
    c = s.condition
    if isinstance(c, ir.Compare) and c.op in _BEST:
        for x, op in ((uncast(c.b), c.op), (uncast(c.a), SWAPPED_COMPARISON[c.op])):
            if isinstance(x, ir.Local) and x.name in names:
                return x.name, op
    return None


def _record(s: ir.If, names: set[str], any_cast: bool) -> tuple[str, ...]:
    """The variables that a statement `if x < best: best = x; ...` sets, the best one first; none of another one."""
    c = s.condition
    if s.orelse or not isinstance(c, ir.Compare) or c.op not in _BEST:
        return ()
    found = record_comparison(s, names)
    if found is None:
        return ()
    best = found[0]
    own, other = (c.b, c.a) if getattr(uncast(c.b), "name", "") == best else (c.a, c.b)
    assigned = _without_temporaries(s.then)
    if assigned is None:
        return ()
    targets, values = [name for name, _ in assigned], [value for _, value in assigned]
    reads = {n.name for value in (other, *values) for n in ir.walk(value) if isinstance(n, ir.Local)}
    if len(targets) != len(set(targets)) or not set(targets) <= names or best not in targets or reads & names:
        return ()
    value = values[targets.index(best)]
    same = structural_key(uncast(value)) == structural_key(uncast(other))
    if not same or not (any_cast or _assigns_compared(other, own, value, rounded=len(targets) == 1)):
        return ()
    return (best, *(name for name in targets if name != best))


def _assigns_compared(compared: Any, best: Any, value: Any, rounded: bool) -> bool:
    """Whether a record's best becomes the number that is compared with it: what belongs to it would else be that of
    another iteration. A best alone may be `rounded`, which keeps the order."""
    if isinstance(_exact(best), ir.Cast):
        return False
    key, value = structural_key(_exact(compared)), _exact(value)
    while rounded and structural_key(value) != key and isinstance(value, ir.Cast):
        if not _keeps_order(value.a.type.dtype, value.type.dtype):
            return False
        value = _exact(value.a)
    return bool(structural_key(value) == key)


def _exact(e: Any) -> Any:
    """The expression without the casts around it that change no number."""
    while isinstance(e, ir.Cast) and e.type.dtype in above(e.a.type.dtype):
        e = e.a
    return e


def _without_temporaries(statements: tuple[ir.Stmt, ...]) -> list[tuple[str, Any]] | None:
    """Names and values of assignments, of which those to temporaries are put where these are read; None where there
    is another statement."""
    temporaries: dict[str, Any] = {}
    result: list[tuple[str, Any]] = []

    def change(node: Any) -> Any:
        return temporaries.get(node.name, node) if isinstance(node, ir.Local) else node

    for s in statements:
        if not isinstance(s, ir.Assign):
            return None
        value = ir.rewrite(s.value, change)
        if s.name.startswith("."):
            temporaries[s.name] = value
        else:
            result.append((s.name, value))
    return result


def _casts(e: Any) -> list[DType]:
    """The dtypes that a value has, from that of its operation to the last one that it is cast to."""
    return [*(_casts(e.a) if isinstance(e, ir.Cast) else ()), e.type.dtype]


def _keeps_order(a: DType, b: DType) -> bool:
    """Whether a cast makes no number less than one that was below it. Of integers that is so where none wraps; of a
    float as an integer that is undefined for NaN and large numbers."""
    return b in above(a) or (a.kind != "c" and b.kind == "f")


def _keeps_parts(op: str, read: list[DType], stored: list[DType]) -> bool:
    """Whether a variable may be reduced in parts if an update reads it as these dtypes, one by one, and casts the
    result to those: sums of rounded parts are another number than what is rounded at each step. Of an integer, high
    bits may be lost, since the others don't depend on them; not in a minimum or maximum."""
    if op in ("min", "max"):
        return all(b in above(a) for a, b in pairwise(read)) and all(_keeps_order(a, b) for a, b in pairwise(stored))
    dtypes = [*read, *stored]
    kind = dtypes[-1]
    if kind.kind in "iu" and any(d.kind in "iu" and d.itemsize < kind.itemsize for d in dtypes):
        return False
    return all(b.kind not in "biu" or a.kind in ("b" if b.kind == "b" else "biu") for a, b in pairwise(dtypes))


def update_operator(value: Any, name: str, stored: DType | None = None, any_cast: bool = False) -> str | None:
    """The operator of `name op x`, which reads the variable once; None of another value. `stored` is the dtype of
    the element that it is stored into."""
    results = [*_casts(value), *([] if stored is None else [stored])]
    value = uncast(value)
    operands, op = tuple[Any, ...](), ""
    if isinstance(value, (ir.Binary, ir.Logic)):
        operands, op = (value.a, value.b), value.op
    elif isinstance(value, ir.Builtin):
        operands, op = value.args, value.name
    if len(operands) != 2 or op not in _OPERATORS:
        return None
    sides = [isinstance(x := uncast(o), ir.Local) and x.name == name for o in operands]
    reads = sum(isinstance(n, ir.Local) and n.name == name for n in ir.walk(value))
    if sum(sides) != 1 or reads != 1 or (op == "sub" and not sides[0]):
        return None
    if isinstance(value, ir.Logic) and not sides[0]:
        return None  # the variable decides whether the other operand is evaluated
    if not any_cast and not _keeps_parts(op, _casts(operands[sides.index(True)]), results):
        return None
    return "add" if op == "sub" else op


# ---- elements with an index that the loop doesn't change


@dataclass(frozen=True)
class Element:
    """An element that is reduced into: its variable, and the store that it stands for. `reached` is the variable that
    counts the iterations that update it, none where each does; `op` how they do."""

    name: str
    store: ir.Store
    op: str
    reached: str = ""


def reduced_elements(
    body: tuple[ir.Stmt, ...], variables: tuple[str, ...], new_name: Any
) -> tuple[tuple[ir.Stmt, ...], list[Element]]:
    """The body with variables in the place of elements that its iterations update, and these."""
    changing = {*assigned_in(*body), *variables}
    leaves = next((k for k, s in enumerate(body) if _may_leave(s)), len(body))
    operators = {id(s): op for s in body if isinstance(s, ir.Store) and (op := _element_operator(s, changing))}
    operators = {id(s): operators[id(s)] for k, s in enumerate(body) if _is_reducible(s, operators, k > leaves)}
    stores: list[Any] = [s for s in body if id(s) in operators]
    elements: list[Element] = []
    result: list[ir.Stmt] = []
    for k, s in enumerate(body):
        if not any(s is x for x in stores) or not _are_apart(body, s.array.name, stores):  # type: ignore[union-attr]
            result.append(s)
            continue
        assert isinstance(s, ir.Store)
        kind = ir.ScalarType(s.array.type.dtype)
        name, reached = new_name(kind), new_name(_COUNT) if k > leaves else ""
        elements.append(Element(name, s, operators[id(s)], reached))
        if reached:
            more = binary(s.loc, "add", ir.Local(s.loc, _COUNT, reached), ir.Const(s.loc, _COUNT, 1))
            result.append(ir.Assign(s.loc, reached, more))

        def change(node: Any, s: Any = s, name: str = name, kind: Any = kind) -> Any:
            return ir.Local(node.loc, kind, name) if _is_element(node, s) else node

        result.append(ir.Assign(s.loc, name, ir.rewrite(s.value, change)))
    return tuple(result), elements


def _is_reducible(s: ir.Stmt, operators: dict[int, str], is_late: bool) -> bool:
    """Whether a statement is an update; a late one may only be by an operator with a number to start from."""
    if id(s) not in operators or not is_late:
        return id(s) in operators
    dtype = s.array.type.dtype  # type: ignore[union-attr]
    return dtype.kind != "b" and identity_of(operators[id(s)], dtype) is not None


def _may_leave(s: ir.Stmt) -> bool:
    """Whether the statement may end the iteration; what stands in an inner loop ends that one's."""
    inner = (*s.then, *s.orelse) if isinstance(s, ir.If) else ()
    return isinstance(s, (ir.Continue, ir.Break, ir.Return)) or any(map(_may_leave, inner))


def _is_element(node: Any, s: ir.Store) -> bool:
    return isinstance(node, ir.Load) and structural_key((node.array, node.index)) == structural_key((s.array, s.index))


def _are_apart(body: tuple[ir.Stmt, ...], name: str, stores: list[ir.Store]) -> bool:
    """Whether nothing else uses the array, and of several stores each is into an element of its own."""
    indices = [s.index for s in stores if s.array.name == name]  # type: ignore[union-attr]
    numbers = {tuple(getattr(i, "value", None) for i in index) for index in indices}
    known = all(isinstance(i, ir.Const) for index in indices for i in index)
    return _uses(body, name) == 2 * len(indices) and (len(indices) == 1 or (known and len(numbers) == len(indices)))


def _uses(body: tuple[ir.Stmt, ...], name: str) -> int:
    return sum(isinstance(n, ir.Local) and n.name == name for n in ir.walk(*body))


def _element_operator(s: ir.Store, changing: set[str]) -> str | None:
    plain = (ir.Local, ir.Const, ir.Size, ir.Cast, ir.Binary)
    fixed = [n for part in s.index for n in ir.walk(part)]
    if not isinstance(s.array, ir.Local) or s.array.name in changing:
        return None
    if any(not isinstance(n, plain) or (isinstance(n, ir.Local) and n.name in changing) for n in fixed):
        return None
    if any(isinstance(n, ir.Local) and n.name == s.array.name for n in fixed):
        return None
    name = "#element"

    def change(node: Any) -> Any:
        return ir.Local(node.loc, node.type, name) if _is_element(node, s) else node

    return update_operator(ir.rewrite(s.value, change), name, s.array.type.dtype)


def around(loop: ir.For, elements: list[Element], runs: ir.Expr) -> tuple[list[ir.Stmt], list[ir.Stmt]]:
    """What reads the elements before the loop, and stores them behind it, where the loop runs at all, or an iteration
    has updated them."""
    before: list[ir.Stmt] = []
    after: list[ir.Stmt] = []
    for e in elements:
        loc, dtype = e.store.loc, e.store.array.type.dtype
        kind = ir.ScalarType(dtype)
        load, own = ir.Load(loc, kind, e.store.array, e.store.index), ir.Local(loc, kind, e.name)
        if not e.reached:
            before.append(ir.If(loop.loc, runs, (ir.Assign(loc, e.name, load),), ()))
            after.append(ir.If(loop.loc, runs, (replace(e.store, value=own),), ()))
            continue
        start = cast(constant(loc, identity_of(e.op, dtype)), dtype)
        none = ir.Const(loc, _COUNT, 0)
        before += [ir.Assign(loc, e.name, start), ir.Assign(loc, e.reached, none)]
        both = cast(binary(loc, e.op, load, own), dtype)
        is_reached = compare(loc, "gt", ir.Local(loc, _COUNT, e.reached), none)
        after.append(ir.If(loop.loc, is_reached, (replace(e.store, value=both),), ()))
    return before, after
