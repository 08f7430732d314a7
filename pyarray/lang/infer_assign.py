"""Assignments of `infer`: to names, tuples of names, elements."""

from __future__ import annotations

import ast
from typing import Any

from ..dtypes import asdtype
from .infer_call import Calls
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
        if isinstance(value, (Static, tuple)):
            advice = "variables are numbers and views of arrays"
            self.source.fail(where, f"{name!r} can't hold {self.describe(value)}", advice)
        if self.parallel is not None and name in self.parallel:
            self.source.fail(
                where,
                f"{name!r} is assigned before the parallel loop and again in it: "
                "its iterations run at the same time",
                "use another name inside the loop, or collect with pa.atomic_add(array, index, value)",
            )
        if name in self.params and not isinstance(self.params[name], ScalarType):
            what = (
                self.describe(self.params[name])
                if isinstance(self.params[name], Static)
                else self.params[name]
            )
            self.source.fail(
                where, f"{name!r} is a parameter ({what}) and can't be assigned", "use another name"
            )
        if value.type is None:
            self.source.fail(where, "this call returns nothing that could be assigned")
        kind = self.set_type(where, name, value.type)
        self.assigned.add(name)
        return [Assign(self.loc(where), name, self.coerce(where, value, kind))]

    def assign(self, target: ast.expr, value: Any) -> list[Stmt]:
        if isinstance(target, ast.Name):
            return self.bind(target, target.id, value)
        if isinstance(target, ast.Subscript):
            array = self.array(target.value)
            return [self.store(target, array, self.whole_index(target, array), self.number(target, value))]
        if isinstance(target, ast.Tuple):
            return self.assign_tuple(target, value)
        self.source.fail(target, "this can't be assigned", "assign to a name or to an element: v[i] = x")

    def assign_tuple(self, target: ast.Tuple, value: Any) -> list[Stmt]:
        """All right-hand sides are evaluated before the first name is set."""
        if not isinstance(value, tuple) or len(value) != len(target.elts):
            have = f"{len(value)} values" if isinstance(value, tuple) else self.describe(value)
            self.source.fail(target, f"{len(target.elts)} names can't be assigned from {have}")
        result: list[Stmt] = []
        held = [self.hold_all(target, item, result) for item in value]
        for element, item in zip(target.elts, held, strict=True):
            result += self.assign(element, item)
        return result

    def hold_all(self, where: ast.AST, value: Any, into: list[Stmt]) -> Any:
        if isinstance(value, tuple):
            return tuple(self.hold_all(where, item, into) for item in value)
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
        value = self.value(node.value)
        result: list[Stmt] = []
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
            return self.bind(
                node.target, node.target.id, self.operate(node, node.op, old, self.value(node.value))
            )
        if not isinstance(node.target, ast.Subscript):
            self.source.fail(
                node.target, "this can't be assigned", "assign to a name or to an element: v[i] += x"
            )
        result: list[Stmt] = []
        array = self.array(node.target.value)
        array = array if isinstance(array, Local) else self.held(array, result)
        parts = self.whole_index(node.target, array)
        parts = tuple(p if _repeatable(p) else self.held(p, result) for p in parts)
        old = self.element(node.target, array, parts)
        value = self.operate(node, node.op, old, self.value(node.value))
        return [*result, self.store(node, array, parts, value)]


def _repeatable(index: Expr) -> bool:
    """Whether it may be evaluated twice: it has no effect, and nothing that the statement does changes it."""
    return all(isinstance(n, (Local, Const, Size, Cast, Binary, Unary)) for n in walk(index))
