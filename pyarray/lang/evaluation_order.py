"""Orders operands: Python evaluates them left to right, C in any order.

Where the order shows (an effect beside another effect or a load; in debug mode two accesses that may fail),
all but the last of these operands are evaluated into temporaries first."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from . import ir
from .summaries import Summary, called_in, has_any, names_in, rewrite_where

_ORDERED = (
    ir.Binary,
    ir.Compare,
    ir.Builtin,
    ir.Invoke,
    ir.Load,
    ir.Atomic,
    ir.Slice,
    ir.SubView,
    ir.Reshape,
    ir.Store,
    ir.Pack,
    ir.Build,
    ir.Element,
    ir.SetElement,
)


def order_operands(tree: ir.Tree) -> ir.Tree:
    """The tree with `Let` wherever the order of operands shows."""
    impure: set[str] = set()
    functions = []
    for function in tree.functions:  # callees first
        if has_any(function.body, ir.Atomic, ir.Store) or called_in(*function.body) & impure:
            impure.add(function.symbol)
        functions.append(_order_function(function, impure))
    return ir.Tree(_order_function(tree.kernel, impure), tuple(functions))


def _has_effect(node: Any, impure: set[str]) -> bool:
    return isinstance(node, ir.Atomic) or (isinstance(node, ir.Invoke) and node.function in impure)


def _order_function(function: ir.Function, impure: set[str]) -> ir.Function:
    added: list[tuple[str, Any]] = []
    evaluation = _Evaluation(impure)

    def change(node: Any) -> Any:
        if not isinstance(node, _ORDERED):
            return node
        operands = list(_operands(node))
        observed = [set(evaluation.observable(x)) for x in operands]
        _set_and_read(operands, observed, [evaluation.sets(x) for x in operands])
        is_checked = isinstance(node, ir.Atomic) and node.site is not None  # which is tested after its operands
        sites = sum("site" in s for s in observed) + is_checked
        effects = sum("effect" in s for s in observed)
        if sites < 2 and not (effects and sum(map(bool, observed)) > 1):
            return node
        last = max(k for k, s in enumerate(observed) if s)
        names: dict[int, ir.Expr] = {}  # by identity, of operands that `node` holds: equal ones differ in place
        lets = []
        for k, (operand, observable) in enumerate(zip(operands, observed, strict=True)):
            if observable and (k != last or is_checked or isinstance(node, (ir.Store, ir.SetElement))):
                name = f".s{len(added)}"
                added.append((name, operand.type))
                names[id(operand)] = ir.Local(operand.loc, operand.type, name)
                lets.append((name, operand))
        if isinstance(node, (ir.Store, ir.SetElement)):  # Python has the value before the place
            added.append((f".s{len(added)}", node.value.type))
            value = ir.Local(node.loc, node.value.type, added[-1][0])
            lets.insert(0, (value.name, node.value))
            return replace(_replaced(node, names), value=_wrapped(value, lets))
        return _wrapped(_replaced(node, names), lets)

    def may_change(found: Summary) -> bool:
        orders = len(found.sites) > 1 or ir.Atomic in found.kinds or ir.Let in found.kinds
        return orders or not found.called.isdisjoint(impure)

    body = tuple(rewrite_where(s, change, may_change) for s in function.body)
    return replace(function, body=body, variables=(*function.variables, *added))


def _set_and_read(operands: list[ir.Expr], observed: list[set[str]], sets: list[frozenset[str]]) -> None:
    """Note what one operand sets and another one reads."""
    if not any(sets):
        return
    for k, operand in enumerate(operands):
        reads = names_in(operand)
        for j, names in enumerate(sets):
            if j != k and names & reads:
                observed[j].add("effect")
                observed[k].add("load")


def _wrapped(node: Any, lets: list[tuple[str, ir.Expr]]) -> Any:
    """`node` after its temporaries."""
    for name, operand in reversed(lets):
        node = ir.Let(node.loc, node.type, name, operand, node)
    return node


def _operands(node: Any) -> Any:
    """Operands in Python's order; the bounds of a range stand for it."""
    if isinstance(node, ir.Store):
        yield from (node.array, *node.index)
        return
    if isinstance(node, ir.SetElement):
        yield from node.index
        return
    for item in fields(node):
        value = getattr(node, item.name)
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, ir.Range):
                yield from ir.children(part)
            elif isinstance(part, ir.Node):
                yield part


class _Evaluation:
    """What the evaluation of expressions does. It is asked from the leaves up, and looks at each node once."""

    def __init__(self, impure: set[str]):
        self.impure = impure
        # by identity, with the node, which therefore stays alive
        self.known: dict[int, tuple[Any, frozenset[str], frozenset[str]]] = {}

    def observable(self, expr: ir.Expr) -> frozenset[str]:
        """What of it can be noticed: an effect, a load that sees effects, an access that may fail."""
        return self.facts(expr)[1]

    def sets(self, expr: ir.Expr) -> frozenset[str]:
        """The variables that it sets."""
        return self.facts(expr)[2]

    def facts(self, node: Any) -> tuple[Any, frozenset[str], frozenset[str]]:
        if (known := self.known.get(id(node))) is not None:
            return known
        below = [self.facts(child) for child in ir.children(node)]
        observed = set[str]().union(*(facts[1] for facts in below))
        sets = set[str]().union(*(facts[2] for facts in below))
        if _has_effect(node, self.impure):
            observed.add("effect")
        if isinstance(node, (ir.Load, ir.Invoke)):
            observed.add("load")
        if getattr(node, "site", None) is not None:
            observed.add("site")
        if isinstance(node, ir.Let):
            sets.add(node.name)
        found = self.known[id(node)] = node, frozenset(observed), frozenset(sets)
        return found


def _replaced(node: Any, names: dict[int, ir.Expr]) -> Any:
    def visit(value: Any) -> Any:
        if id(value) in names:
            return names[id(value)]
        if isinstance(value, tuple):
            return tuple(visit(item) for item in value)
        if isinstance(value, ir.Range):
            return replace(value, start=visit(value.start), stop=visit(value.stop), step=visit(value.step))
        return value

    return replace(node, **{f.name: visit(getattr(node, f.name)) for f in fields(node) if f.name != "loc"})
