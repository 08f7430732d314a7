"""Infers assignments to fields of dataclasses, and copies with other fields: `replace(p, x=1)`, `p._replace(x=1)`.

Variables hold objects leaf by leaf, so `q = p` copies what is one object in Python. A function that assigns fields of
an object by one name and knows it by another is refused, whatever the order."""

from __future__ import annotations

import ast
import dataclasses
from typing import Any

from ..annotations import field_annotations
from . import ir
from .aggregates import (
    Aggregate,
    fields_of,
    is_aggregate,
    is_records,
    leaves,
    root_of,
    skeleton,
    transform,
    with_origins,
)
from .infer_elements import convert
from .infer_invoke import coerce_to_annotation
from .infer_records import fixed_place
from .infer_scope import Scope
from .infer_temporaries import (
    assign_temporary,
    evaluate_in_order,
    expand_result,
    has_side_effect,
    nest_lets,
    new_temporary,
)  # fmt: skip
from .infer_values import describe, is_array, is_local_array


def is_mutable(value: Any) -> bool:
    """Whether fields of it may be assigned."""
    return (
        isinstance(value, Aggregate)
        and dataclasses.is_dataclass(value.kind)
        and not value.kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    )


def note_aliases(scope: Scope, where: ast.AST, name: str, value: Any) -> None:
    """Remember which variables the objects in `value` are known by, beside `name`."""
    for part in _objects(value):
        for path in part.origins:
            if root_of(path) != root_of(name):
                _note(scope, where, root_of(name), root_of(path))


def _note(scope: Scope, where: ast.AST, name: str, other: str) -> None:
    if (name, other) not in scope.aliases:
        scope.aliases[name, other] = scope.loc(where)
        scope.changed = True
    for one, another in ((name, other), (other, name)):
        if one in scope.fields_assigned:
            _refuse_alias(scope, scope.aliases[name, other], one, another)


def _refuse_alias(scope: Scope, where: ir.Loc, assigned: str, other: str) -> None:
    array = scope.params.get(other, scope.structures.get(other))
    if is_records(array):
        what = (
            f"{assigned!r} is a view of a record of {other!r} in NumPy, and a copy here, of which fields are assigned"
        )
        advice = (
            f"store into the array, {other}[i].x = ..., or say that a copy is meant: dataclasses.replace({other}[i])"
        )
        scope.fail(where, what, advice)
    what = f"{other!r} is the object {assigned!r} in Python, of which fields are assigned, and a copy here"
    scope.fail(where, what, "say that a copy is meant: dataclasses.replace(p)")


def _objects(value: Any) -> list[Aggregate]:
    """The objects with fields that may be assigned, of all depths."""
    if not is_aggregate(value):
        return []
    found = [value] if is_mutable(value) else []
    return found + [x for _, item in fields_of("", value) for x in _objects(item)]


def check_no_record(scope: Scope, path: str) -> None:
    """Refuses to change an array that is the field at `path` of the copy of a record."""
    root = root_of(path)
    for pair, loc in scope.aliases.items():
        other = pair[pair[0] == root]
        if root in pair and path != root and is_records(scope.params.get(other, scope.structures.get(other))):
            _refuse_alias(scope, loc, root, other)


def returns_argument(scope: Scope, value: Any) -> bool:
    """Whether a returned value may hold an object of the caller."""
    roots, size = {root_of(path) for part in _objects(value) for path in part.origins}, -1
    while size < len(roots):
        size = len(roots)
        for pair in scope.aliases:
            roots |= set(pair) if roots & set(pair) else set()
    return bool(roots & scope.params.keys())


# ---- assignment


def assign_field(scope: Scope, target: ast.Attribute, value: Any) -> list[ir.Stmt]:
    """`p.x = value` of a variable that is a dataclass."""
    path = _assignable(scope, target)
    owner = _owner(scope, target)
    old = owner.items[owner.names.index(target.attr)]
    annotation = field_annotations(owner.kind).get(target.attr)
    what = f"{target.attr!r} of {owner.kind.__name__}"
    value = coerce_to_annotation(scope, target, annotation, what, value)
    if isinstance(value, ir.Static) or isinstance(old, ir.Static) or skeleton(value) != skeleton(old):
        scope.fail(target, f"{what} is {describe(old)} and here {describe(value)}", "make a new object of the class")
    note_aliases(scope, target, path, value)
    before: list[ir.Stmt] = []
    assigned: list[ir.Stmt] = []
    for name, leaf in leaves(path, value):
        if not isinstance(leaf, ir.Static):
            is_value = is_array(leaf) or is_local_array(leaf)
            leaf = assign_temporary(scope, leaf if is_value else scope.number(target, leaf), before)
            kind = scope.set_type(target, name, leaf.type)
            assigned.append(ir.Assign(scope.loc(target), name, convert(scope, target, leaf, kind)))
    return [*before, *assigned]


def _owner(scope: Scope, target: ast.Attribute) -> Aggregate:
    owner = scope.infer(target.value)
    if isinstance(getattr(owner, "type", None), ir.TupleType):
        what = f"the field {target.attr!r} of what a call returns can't be assigned"
        scope.fail(target, what, "assign the object to a variable first")
    if not isinstance(owner, Aggregate):
        what = f"the field {target.attr!r} of {describe(owner)} can't be assigned"
        scope.fail(target, what, "assign to a name, to an element v[i], or to a field of a dataclass")
    return owner


def _assignable(scope: Scope, target: ast.Attribute) -> str:
    """The path of the field. Fails for objects that aren't this function's own."""
    owner, name = _owner(scope, target), target.attr
    what = f"the field {name!r} can't be assigned in a kernel"
    if not isinstance(target.value, (ast.Name, ast.Attribute)) or len(owner.origins) != 1:
        scope.fail(target, what, "its object is a copy: assign it to a variable first")
    path = owner.origins[0]
    root = root_of(path)
    if root in scope.params:
        advice = f"make a copy: p = dataclasses.replace({root}, {name}=...), and return it or use it from there"
        scope.fail(target, f"{what}: {root!r} is a parameter", advice)
    if not is_mutable(owner):
        advice = f"{owner.kind.__name__} is immutable: p = p._replace({name}=...)"
        if dataclasses.is_dataclass(owner.kind):
            advice = f"{owner.kind.__name__} is frozen: p = dataclasses.replace(p, {name}=...)"
        scope.fail(target, what, advice)
    if name not in owner.names:
        scope.fail(target, f"{describe(owner)} has no field {name!r}", f"there are: {', '.join(owner.names)}")
    if scope.before_parallel is not None and root in scope.before_parallel:
        what = f"{root!r} is assigned before the parallel loop and its field again in it"
        scope.fail(
            target,
            f"{what}: its iterations run at the same time",
            "make the object inside the loop; what is reduced is a variable: s += x",
        )
    if root not in scope.fields_assigned:
        scope.fields_assigned[root] = scope.loc(target)
        scope.changed = True
    for pair, loc in scope.aliases.items():
        if root in pair:
            _refuse_alias(scope, loc, root, pair[pair[0] == root])
    return f"{path}.{name}"


# ---- copies


def replaced(scope: Scope, node: ast.Call, args: list[Any], keywords: dict[str, Any], what: str) -> Aggregate:
    """A copy of the object with other values of some fields."""
    args = [expand_result(scope, value) for value in args]
    keywords = {name: expand_result(scope, value) for name, value in keywords.items()}
    if len(args) != 1 or not isinstance(args[0], Aggregate) or not args[0].complete:
        got = describe(args[0]) if args else "nothing"
        scope.fail(node, f"{what}() takes a dataclass or a named tuple, and fields by name, got {got}")
    lets: list[tuple[str, ir.Expr]] = []
    owner, is_changed = args[0], any(has_side_effect(x) for name, v in keywords.items() for _, x in leaves(name, v))
    is_record = owner.place is not None  # of an array, which is copied as a whole
    if is_record and is_changed:  # Python finds the record, evaluates the new values, and then reads the other fields
        before: list[ir.Stmt] = []
        owner = fixed_place(scope, owner, before, always=True)
        lets += [(s.name, s.value) for s in before if isinstance(s, ir.Assign)]
    owner = with_origins(owner) if is_record else owner
    unknown = [name for name in keywords if name not in owner.names]
    if unknown:
        there = f"there are: {', '.join(owner.names)}"
        scope.fail(node, f"{owner.kind.__name__} has no field {unknown[0]!r}", there)
    if any(has_side_effect(x) for name, item in fields_of("", owner) for _, x in leaves(name, item)):
        owner = transform("", owner, lambda _, x: _bound(scope, x, lets))  # also what is replaced is evaluated
    kept = {name: item for name, item in zip(owner.names, owner.items, strict=True) if name not in keywords}
    ordered = evaluate_in_order(scope, keywords | kept if is_record else kept | keywords, owner.names)
    if lets:
        ordered = _after(ordered, owner.names, lets)
    annotations = field_annotations(owner.kind)
    items = (
        coerce_to_annotation(scope, node, annotations.get(n), f"{n!r} of {owner.kind.__name__}", ordered[n])
        if n in keywords
        else ordered[n]
        for n in owner.names
    )
    return Aggregate(owner.kind, owner.names, tuple(items))


def _bound(scope: Scope, value: Any, lets: list[tuple[str, ir.Expr]]) -> Any:
    """A leaf in a temporary, which one of `lets` sets."""
    if isinstance(value, (ir.Static, ir.Const)):
        return value
    lets.append((new_temporary(scope, value.type), value))
    return ir.Local(value.loc, value.type, lets[-1][0])


def _after(values: dict[str, Any], names: tuple[str, ...], lets: list[tuple[str, ir.Expr]]) -> dict[str, Any]:
    """The values, which are evaluated in the order of `names`, after `lets`."""
    done = False

    def wrapped(_: str, leaf: Any) -> Any:
        nonlocal done
        if done or isinstance(leaf, ir.Static):
            return leaf
        done = True
        return nest_lets(leaf, lets)

    return {name: transform("", values[name], wrapped) for name in names}
