"""Temporary variables, for values that are evaluated once and in Python's order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from . import ir
from .aggregates import leaves, transform, with_origins
from .infer_scope import Scope


def new_temporary(scope: Scope, kind: Any) -> str:
    """A variable that is not in the source."""
    name = f".{scope.temporary_count}"
    scope.temporary_count += 1
    scope.types[name] = kind
    scope.assigned.add(name)
    return name


def assign_temporary(scope: Scope, value: ir.Expr, into: list[ir.Stmt]) -> ir.Expr:
    """Assign `value` to a temporary in a statement before; the temporary stands for it."""
    if isinstance(value, ir.Const):
        return value
    name = new_temporary(scope, value.type)
    into.append(ir.Assign(value.loc, name, value))
    return ir.Local(value.loc, value.type, name)


def let_bind(scope: Scope, value: ir.Expr) -> tuple[ir.Expr, ir.Expr]:
    """`value` bound to a temporary at its first use, and the temporary for later ones."""
    if isinstance(value, (ir.Const, ir.Local)):
        return value, value
    local = ir.Local(value.loc, value.type, new_temporary(scope, value.type))
    return ir.Let(value.loc, value.type, local.name, value, local), local


def expand_result(scope: Scope, value: Any) -> Any:
    """The results of a call as an aggregate; evaluating its first value evaluates the call."""
    if not isinstance(value, ir.Invoke) or not isinstance(value.type, ir.TupleType):
        return value
    first, again = let_bind(scope, value)
    parts = [result_item(again if k else first, k) for k in range(len(value.type.items))]
    return build_result(scope, value.function, value.args, parts)


def build_result(scope: Scope, function: str, args: Iterable[ir.Expr], parts: Iterable[ir.Expr]) -> Any:
    """The aggregate that a call of a function with these arguments returned, of its values."""
    remaining = iter(parts)
    result = transform("", scope.instances.results[function], lambda _, fixed: fixed or next(remaining))
    if function in scope.instances.returning_arguments:
        paths = (n.name for a in args for n in ir.walk(a) if isinstance(n, ir.Local))
        return with_origins(result, tuple(dict.fromkeys(paths)))
    return result


def result_item(call: ir.Expr, number: int) -> ir.Item:
    """One of the values that a call returned; `call` may be the variable that holds them."""
    return ir.Item(call.loc, call.type.items[number], call, number)


def with_let_bound(scope: Scope, values: list[Any], build: Callable[..., Any]) -> Any:
    """`build(*values)` where all values are evaluated once and in order, whatever `build` does with them. Those
    without a side effect stay where they are, unless they read what another one sets."""
    lets: list[tuple[str, ir.Expr]] = []
    operands = list(values)
    changed = names_of(ir.Let, values)
    for k, value in enumerate(values):
        if has_side_effect(value) or (changed and changed & names_of(ir.Local, [value])):
            operands[k] = ir.Local(value.loc, value.type, new_temporary(scope, value.type))
            lets.append((operands[k].name, value))
    return nest_lets(build(*operands), lets)


def names_of(kind: type[ir.Let] | type[ir.Local], values: Iterable[Any]) -> set[str]:
    """Variables that values set (`Let`) or read (`Local`)."""
    nodes = (n for x in values if isinstance(x, ir.Node) for n in ir.walk(x))
    return {n.name for n in nodes if isinstance(n, kind)}


def evaluate_in_order(scope: Scope, called: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Arguments by name, in the order of the call, for a callee that uses them in the order of `names`: the one
    that it uses first evaluates all."""
    rank = {name: k for k, name in enumerate(names)}
    changed = names_of(ir.Let, [x for name, v in called.items() for _, x in leaves(name, v)])

    def is_fixed(x: Any) -> bool:
        return isinstance(x, (ir.Static, ir.Const)) or (isinstance(x, ir.Local) and x.name not in changed)

    parts = {name: [x for _, x in leaves(name, v) if not is_fixed(x)] for name, v in called.items()}
    evaluated = [part for name in called for part in parts[name]]
    first = [part for name in sorted(called, key=rank.__getitem__) for part in parts[name]]
    if evaluated == first or any(isinstance(part.type, ir.TupleType | None) for part in evaluated):
        return called
    temporaries = {id(x): ir.Local(x.loc, x.type, new_temporary(scope, x.type)) for x in evaluated}
    replaced: dict[int, ir.Expr] = {**temporaries}
    lets = [(temporaries[id(x)].name, x) for x in evaluated]
    replaced[id(first[0])] = nest_lets(temporaries[id(first[0])], lets)
    return {name: transform(name, value, lambda _, x: replaced.get(id(x), x)) for name, value in called.items()}


def select_part(scope: Scope, loc: ir.Loc, aggregate: Any, chosen: Any) -> Any:
    """`chosen`, a part of an aggregate, after the side effects of the other parts: its first leaf evaluates them.
    None where no expression says that."""
    values = [x for _, x in leaves("", aggregate) if not isinstance(x, ir.Static)]
    part = [x for _, x in leaves("", chosen) if not isinstance(x, ir.Static)]
    taken = set(map(id, part))
    if not any(has_side_effect(x) and id(x) not in taken for x in values):
        return chosen
    if not part or not taken <= set(map(id, values)):
        return None
    results = {id(x): ir.Local(loc, x.type, new_temporary(scope, x.type)) for x in part}
    lets = [
        (results[id(x)].name if id(x) in taken else new_temporary(scope, x.type), x)
        for x in values
        if id(x) in taken or has_side_effect(x)
    ]
    replaced: dict[int, ir.Expr] = {**results}
    replaced[id(part[0])] = nest_lets(results[id(part[0])], lets)
    return transform("", chosen, lambda _, x: replaced.get(id(x), x))


def nest_lets(body: Any, lets: Sequence[tuple[str, ir.Expr]]) -> Any:
    """`body` in nested `Let`s."""
    for name, value in reversed(lets):
        body = ir.Let(body.loc, body.type, name, value, body)
    return body


def has_side_effect(value: Any) -> bool:
    """Whether evaluation may change something: it calls a function, is an atomic, or sets a variable."""
    effects = (ir.Atomic, ir.Invoke, ir.Let)
    return not isinstance(value, ir.Static) and any(isinstance(n, effects) for n in ir.walk(value))
