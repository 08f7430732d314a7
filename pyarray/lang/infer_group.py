"""Values of several parts in `infer`: tuples, named tuples, dataclasses, objects, results of functions."""

from __future__ import annotations

import ast
import functools
import inspect
import types as python_types
from dataclasses import dataclass
from typing import Any

from .infer_expr import Expressions
from .ir import Expr, Item, Local, Static, Stmt, TupleType
from .record import Opaque, Record, as_tuple, is_group, transform


@dataclass(frozen=True, eq=False)
class BoundFunction:
    """A `@pa.func` of a class, before its call on an object."""

    function: Any
    owner: Record


def _item(pack: Expr, number: int) -> Item:
    return Item(pack.loc, pack.type.items[number], pack, number)


class Groups(Expressions):
    """Adds groups to `Expressions`."""

    def eval_Name(self, node: ast.Name) -> Any:
        structure = self.params.get(node.id, self.groups.get(node.id))
        if is_group(structure) and (node.id in self.assigned or node.id in self.params):
            return self.gathered(node, node.id, structure)
        return super().eval_Name(node)

    def attribute(self, node: ast.Attribute, owner: Any) -> Any:
        if isinstance(owner, Record):
            return self.field(node, owner, node.attr)
        if isinstance(getattr(owner, "type", None), TupleType):
            return self.returned_item(node, owner, node.attr)
        return super().attribute(node, owner)

    def gathered(self, where: ast.AST, name: str, structure: Any) -> Any:
        """The group whose leaves are the variables of their paths."""

        def leaf(path: str, found: Any) -> Any:
            if isinstance(found, Static):
                return self.lift(where, found.value)
            return Local(self.loc(where), self.types[path], path)

        return transform(name, structure, leaf)

    def unpacked(self, value: Any, into: list[Stmt]) -> Any:
        """What a call returned: of several values, the group of them."""
        if not isinstance(getattr(value, "type", None), TupleType):
            return value
        held = self.held(value, into)
        items = iter([_item(held, k) for k in range(len(value.type.items))])
        return transform("", self.program.results[value.function], lambda _, fixed: fixed or next(items))

    def field(self, node: ast.AST, owner: Record, name: str) -> Any:
        """A field of a named tuple, dataclass or object; what its class holds is a captured value."""
        if name in owner.names:
            value = owner.items[owner.names.index(name)]
            if isinstance(value, Static) and isinstance(value.value, Opaque):
                what = f"{name!r} is {value.value.kind.__name__} and no value of the kernel language"
                advice = "fields are numbers, arrays, tuples, dataclasses, strings or None"
                self.source.fail(node, what, advice)
            return value
        found = inspect.getattr_static(owner.kind, name, Opaque)
        if hasattr(found, "__pyarray_func__"):
            return Static(BoundFunction(found, owner))
        if isinstance(found, python_types.FunctionType):
            what = f"{name!r} is a plain method of {owner.kind.__name__}"
            self.source.fail(node, what, "decorate it with @pa.func")
        if found is Opaque or not owner.whole:
            what = f"{self.describe(owner)} has no field {name!r} here"
            known = f"there are: {', '.join(owner.names)}" if owner.names else ""
            if not owner.whole:
                known = "the kernel itself reads attributes of objects, and passes those on"
            self.source.fail(node, what, known)
        if isinstance(found, (property, functools.cached_property)):
            advice = f"make it a field, or pass its value as a parameter: {name}=..."
            self.source.fail(node, f"{name!r} is computed by Python, which a kernel can't run", advice)
        value = getattr(owner.kind, name)
        self.program.capture(owner.kind, name, value)
        return self.lift(node, value)

    def returned_item(self, node: ast.AST, call: Expr, which: int | str) -> Any:
        """One of several values that a call returned, taken from the call itself."""
        structure = self.program.results[call.function]  # type: ignore[union-attr]
        items = as_tuple(structure)
        named = isinstance(structure, Record) and which in structure.names
        number = structure.names.index(which) if named else which
        if items is None or not isinstance(number, int) or any(x is not None for x in items):
            advice = "write t = f(x), then use t"
            self.source.fail(node, "what this call returns must be assigned first", advice)
        if not -len(items) <= number < len(items):
            self.source.fail(node, f"index {number} is out of range for a tuple of {len(items)}")
        return _item(call, number % len(items))
