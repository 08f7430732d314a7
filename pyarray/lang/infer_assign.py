"""Assignments of `infer`: to names, tuples of names, elements."""

from __future__ import annotations

import ast
from typing import Any, NoReturn

from ..dtypes import asdtype
from .aggregates import is_aggregate, leaves, skeleton, transform
from .infer_call import Calls
from .infer_names import advice_for_captured
from .infer_operators import DUNDER
from .infer_temporaries import has_effect
from .ir import (
    Assign,
    Binary,
    Cast,
    Const,
    Expr,
    Local,
    Range,
    ScalarType,
    Size,
    Static,
    Stmt,
    Store,
    Unary,
    walk,
)


class Assignments(Calls):
    """Adds assignments to `Calls`."""

    # names assigned before the parallel loop we are in; None outside of one
    parallel: set[str] | None = None

    def bind(self, where: ast.AST, name: str, value: Any) -> list[Stmt]:
        if isinstance(value, Static):
            advice = advice_for_captured(value) or "variables are numbers, views of arrays and tuples of them"
            self.source.fail(where, f"{name!r} can't hold {self.describe(value)}", advice)
        self.check_assignable(where, name)
        if is_aggregate(value):
            return self.bind_group(where, name, value)
        if value.type is None:
            self.source.fail(where, "this call returns nothing that could be assigned")
        self.set_group(where, name, value)
        kind = self.set_type(where, name, value.type)
        self.assigned.add(name)  # pyright: ignore[reportAttributeAccessIssue]
        return [Assign(self.loc(where), name, self.coerce(where, value, kind))]

    def bind_group(self, where: ast.AST, name: str, value: Any) -> list[Stmt]:
        """A variable per leaf; all are evaluated before the first is set, as `t = (t[1], t[0])` needs."""
        self.set_group(where, name, value)
        result: list[Stmt] = []
        held = list(leaves(name, self.hold_all(where, value, result)))
        self.assigned |= {name, *(path for path, _ in held)}
        for path, leaf in held:
            if not isinstance(leaf, Static):
                kind = self.set_type(where, path, leaf.type)
                result.append(Assign(self.loc(where), path, self.coerce(where, leaf, kind)))
        return result

    def set_group(self, where: ast.AST, name: str, value: Any) -> None:
        """Note the structure of a variable, which is the same at each assignment."""
        new = skeleton(value) if is_aggregate(value) else None
        known = name in self.groups or name in self.types
        if new != self.groups.get(name) and known:
            verb = "returns" if name == "return" else "is"
            what = "this function" if name == "return" else repr(name)
            was = f"a {self.types[name]}" if name in self.types else self.describe(self.groups[name])
            came = self.describe(value)
            self.source.fail(where, f"{what} {verb} {was} and here {came}", "use another name")
        if new is not None and not known:
            self.groups[name] = new
            self.changed = True

    def check_assignable(self, where: ast.AST, name: str) -> None:
        if self.parallel is not None and name in self.parallel:
            self.source.fail(
                where,
                f"{name!r} is assigned before the parallel loop and again in it: "
                "its iterations run at the same time",
                "use another name inside the loop, or collect with pa.atomic_add(array, index, value)",
            )
        if name in self.params and not isinstance(self.params[name], ScalarType):
            kind = self.params[name]
            what = self.describe(kind) if isinstance(kind, Static) or is_aggregate(kind) else kind
            self.source.fail(
                where, f"{name!r} is a parameter ({what}) and can't be assigned", "use another name"
            )

    def assign(self, target: ast.expr, value: Any) -> list[Stmt]:
        if isinstance(target, ast.Name):
            return self.bind(target, target.id, value)
        if isinstance(target, ast.Subscript):
            array = self.target(target)
            if has_effect(array):  # which comes after the value, and once
                before: list[Stmt] = []
                value = self.held(self.number(target, value), before)
                array = self.held(array, before)
                store = self.store(target, array, self.whole_index(target, array), value)
                return [*before, store]
            return [self.store(target, array, self.whole_index(target, array), self.number(target, value))]
        if isinstance(target, ast.Tuple):
            return self.assign_tuple(target, value)
        self.refuse_target(target)

    def refuse_target(self, target: ast.expr) -> NoReturn:
        if isinstance(target, (ast.Attribute, ast.Subscript)):
            owner = self.value(target.value)
            if is_aggregate(owner):
                item = isinstance(target, ast.Subscript)
                what = f"an item of {self.describe(owner)}" if item else f"the field {target.attr!r}"  # type: ignore[union-attr]
                advice = "its values are copies: use a variable, or store into an element of an array field"
                self.source.fail(target, f"{what} can't be assigned in a kernel", advice)
        self.source.fail(target, "this can't be assigned", "assign to a name or to an element: v[i] = x")

    def target(self, target: ast.Subscript) -> Expr:
        """The array whose element is assigned."""
        value = self.value(target.value)
        if is_aggregate(value):
            self.refuse_target(target)
        return value if self.is_array(value) else self.array(target.value)

    def assign_tuple(self, target: ast.Tuple, value: Any) -> list[Stmt]:
        """All right-hand sides are evaluated before the first name is set."""
        items = self.items(target, value)
        if items is None or len(items) != len(target.elts):
            have = f"{len(items)} values" if items is not None else self.describe(value)
            what = f"{len(target.elts)} names can't be assigned from {have}"
            self.source.fail(target, what, advice_for_captured(value))
        result: list[Stmt] = []
        held = [self.hold_all(target, item, result) for item in items]
        for element, item in zip(target.elts, held, strict=True):
            result += self.assign(element, item)
        return result

    def hold_all(self, where: ast.AST, value: Any, into: list[Stmt]) -> Any:
        if is_aggregate(value):
            return transform("", value, lambda _, item: self.hold_all(where, item, into))
        if isinstance(value, Static):
            return value
        return self.held(value if self.is_array(value) else self.number(where, value), into)

    def whole_index(self, target: ast.Subscript, array: Expr) -> tuple[Any, ...]:
        parts = self.index_parts(target, array)
        if any(isinstance(p, Range) for p in parts):
            advice = "write a for loop over its elements"
            self.source.fail(target, "a slice can't be assigned as a whole", advice)
        return parts

    def store(self, where: ast.AST, array: Expr, index: tuple[Any, ...], value: Expr) -> Stmt:
        dtype = array.type.dtype
        if value.type.dtype.kind == "c" and dtype.kind not in "cb":
            advice = "store its .real, .imag or abs()"
            self.source.fail(where, f"a {value.type} can't be stored in an array of {dtype}", advice)
        return Store(self.loc(where), array, index, self.coerce(where, value, ScalarType(dtype)))

    def do_Assign(self, node: ast.Assign) -> list[Stmt]:
        result: list[Stmt] = []
        value = self.unpacked(self.value(node.value), result)
        if len(node.targets) > 1:
            value = self.hold_all(node, value, result)
        for target in node.targets:
            result += self.assign(target, value)
        return result

    def do_AnnAssign(self, node: ast.AnnAssign) -> list[Stmt]:
        advice = "write x: pa.float32 = 0"
        if node.value is None or not isinstance(node.target, ast.Name):
            self.source.fail(node, "a declaration is of a name, with a value", advice)
        wanted = self.value(node.annotation)
        try:
            dtype = asdtype(wanted.value)
        except (TypeError, AttributeError):
            self.source.fail(node.annotation, "the annotation of a variable is an element type", advice)
        name, kind = node.target.id, ScalarType(dtype)
        if self.declared.get(name, kind) != kind:
            self.source.fail(
                node, f"{name!r} is declared {self.declared[name].dtype} elsewhere", "declare it once"
            )
        self.changed |= name not in self.declared
        self.declared[name] = kind
        return self.bind(node.target, name, self.number(node, self.value(node.value)))

    def do_AugAssign(self, node: ast.AugAssign) -> list[Stmt]:
        if isinstance(node.target, ast.Name):
            old = self.value(ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target))
            right = self.value(node.value)
            made = self.special(node, old, f"__i{DUNDER[type(node.op)]}__", right)
            if made is None:
                made = self.operator(node, node.op, old, right)
            before: list[Stmt] = []
            made = self.unpacked(made, before)
            return [*before, *self.bind(node.target, node.target.id, made)]
        if not isinstance(node.target, ast.Subscript):
            self.refuse_target(node.target)
        result: list[Stmt] = []
        array = self.target(node.target)
        array = array if isinstance(array, Local) else self.held(array, result)
        parts = self.whole_index(node.target, array)
        parts = tuple(p if _repeatable(p) else self.held(p, result) for p in parts)
        old = self.element(node.target, array, parts)
        value = self.operate(node, node.op, old, self.value(node.value))
        return [*result, self.store(node, array, parts, value)]


def _repeatable(index: Expr) -> bool:
    """Whether it may be evaluated twice: it has no effect, and nothing that the statement does changes it."""
    return all(isinstance(n, (Local, Const, Size, Cast, Binary, Unary)) for n in walk(index))
