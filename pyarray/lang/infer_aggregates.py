"""Values of several parts in `infer`: tuples, named tuples, dataclasses, objects, results of functions."""

from __future__ import annotations

import ast
import functools
import inspect
import types as python_types
from dataclasses import dataclass
from typing import Any

from .aggregates import Aggregate, UnreadableField, as_tuple, is_aggregate, transform
from .infer_names import MIRRORED, Expressions
from .ir import Expr, Invoke, Item, Local, Static, Stmt, TupleType
from .promotion import unary


@dataclass(frozen=True, eq=False)
class BoundFunction:
    """A `@pa.func` of a class, before its call on an object."""

    function: Any
    owner: Aggregate


def _item(pack: Expr, number: int) -> Item:
    return Item(pack.loc, pack.type.items[number], pack, number)


class Groups(Expressions):
    """Adds groups to `Expressions`."""

    def eval_Name(self, node: ast.Name) -> Any:
        structure = self.params.get(node.id, self.groups.get(node.id))
        if is_aggregate(structure) and (node.id in self.assigned or node.id in self.params):
            return self.gathered(node, node.id, structure)
        return super().eval_Name(node)

    def attribute(self, node: ast.Attribute, owner: Any) -> Any:
        if isinstance(owner, Aggregate):
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

    def own_method(self, value: Any, name: str) -> Any:
        """What the class of a structure says by itself about `value.name()`, None where nothing: methods of
        tuples and those that Python writes for dataclasses do what the language does."""
        returned = isinstance(value, Invoke) and isinstance(value.type, TupleType)
        structure = self.program.results[value.function] if returned else value
        if not isinstance(structure, Aggregate):
            return None
        found = inspect.getattr_static(structure.kind, name, None)
        given = isinstance(found, python_types.WrapperDescriptorType)
        made = getattr(getattr(found, "__code__", None), "co_filename", None) == "<string>"
        return None if given or made else found

    def special(self, where: ast.AST, owner: Any, name: str, *args: Any) -> Any:
        """`owner.name(*args)` where the class has that method by itself, else None."""
        found, owner = self.own_method(owner, name), self.spread(owner)
        if found is None:
            return None
        if not hasattr(found, "__pyarray_func__"):
            what = f"{name!r} is a plain method of {owner.kind.__name__}"
            self.source.fail(where, what, "decorate it with @pa.func")
        return self.invoke(where, found.__pyarray_func__, [owner, *args], {})

    def reflected(self, where: ast.AST, name: str, mirrored: str, left: Any, right: Any) -> Any:
        """What the classes of two operands say about an operator, else None. As in Python the left one is
        asked first, unless the right one's class derives from it and has a method of its own."""
        left, right = self.spread(left), self.spread(right)
        ways = [(left, name, right), (right, mirrored, left)]
        if isinstance(left, Aggregate) and isinstance(right, Aggregate):
            derived = right.kind is not left.kind and issubclass(right.kind, left.kind)
            other = self.own_method(right, mirrored)
            if derived and other is not None and other is not self.own_method(left, mirrored):
                ways.reverse()
            elif right.kind is left.kind and mirrored.startswith("__r"):
                ways.pop()
        for owner, method, other in ways:
            if self.own_method(owner, method) is None:
                continue
            if owner is right:
                given = self.in_order({"left": left, "right": right}, ("right", "left"))
                owner, other = given["right"], given["left"]
            return self.special(where, owner, method, other)
        return None

    def compared(self, where: ast.AST, name: str, left: Any, right: Any) -> Any:
        """What the classes of two operands say about a comparison, else None."""
        left, mirrored = self.spread(left), MIRRORED.get(name, name)
        if isinstance(left, Aggregate) and self.own_method(left, f"__{name}__") is None:
            if name != "ne" or self.own_method(left, "__eq__") is None:
                return None
            equal = self.truth(where, self.special(where, left, "__eq__", right))
            return self.typed(where, unary, self.loc(where), "invert", equal)
        return self.reflected(where, f"__{name}__", f"__{mirrored}__", left, right)

    def spread(self, value: Any) -> Any:
        """What a call returned, as the group of its values; the first of them has the call in it."""
        if not isinstance(value, Invoke) or not isinstance(value.type, TupleType):
            return value
        first, again = self.kept(value)
        parts = [_item(again if k else first, k) for k in range(len(value.type.items))]
        return self.returned_group(value, parts)

    def returned_group(self, call: Any, parts: list[Item]) -> Any:
        rest = iter(parts)
        return transform("", self.program.results[call.function], lambda _, fixed: fixed or next(rest))

    def items(self, where: ast.AST, value: Any) -> tuple[Any, ...] | None:
        """What Python iterates over when it unpacks a value, None for what is no tuple."""
        if self.own_method(value, "__iter__") is not None:
            what = f"{value.kind.__name__} has an __iter__ of its own, which a kernel can't run"
            self.source.fail(where, what, "take its fields by name")
        return as_tuple(value)

    def invoke(self, node: ast.AST, source: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
        raise NotImplementedError  # of the layer above

    def part(self, where: ast.AST, group: Any, chosen: Any) -> Any:
        """An item or field of a group, which is evaluated as a whole."""
        found = self.picked(self.loc(where), group, chosen)
        if found is None:
            what = f"the other parts of {self.describe(group)} would not be evaluated here"
            self.source.fail(where, what, "assign it to a variable first, and take the part of that")
        return found

    def unpacked(self, value: Any, into: list[Stmt]) -> Any:
        """What a call returned: of several values, the group of them."""
        if not isinstance(getattr(value, "type", None), TupleType):
            return value
        held = self.held(value, into)
        return self.returned_group(value, [_item(held, k) for k in range(len(value.type.items))])

    def field(self, node: ast.AST, owner: Aggregate, name: str) -> Any:
        """A field of a named tuple, dataclass or object; what its class holds is a captured value."""
        hidden = isinstance(inspect.getattr_static(owner.kind, name, None), property)
        if self.own_method(owner, "__getattribute__") or (hidden and name in owner.names and owner.whole):
            what = f"{name!r} of a {owner.kind.__name__} is computed by Python, which a kernel can't run"
            self.source.fail(node, what, "make it a plain field")
        if name in owner.names:
            value = owner.items[owner.names.index(name)]
            if isinstance(value, Static) and isinstance(value.value, UnreadableField):
                what = f"{name!r} is {value.value.kind.__name__} and no value of the kernel language"
                advice = "fields are numbers, arrays, tuples, dataclasses, strings or None"
                self.source.fail(node, what, advice)
            return self.part(node, owner, value)
        found = inspect.getattr_static(owner.kind, name, UnreadableField)
        if hasattr(found, "__pyarray_func__"):
            return Static(BoundFunction(found, owner))
        if isinstance(found, python_types.FunctionType):
            what = f"{name!r} is a plain method of {owner.kind.__name__}"
            self.source.fail(node, what, "decorate it with @pa.func")
        if found is UnreadableField or not owner.whole:
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
        named = isinstance(structure, Aggregate) and which in structure.names
        number = structure.names.index(which) if named else which
        if items is None or not isinstance(number, int) or any(x is not None for x in items):
            advice = "write t = f(x), then use t"
            self.source.fail(node, "what this call returns must be assigned first", advice)
        if not -len(items) <= number < len(items):
            self.source.fail(node, f"index {number} is out of range for a tuple of {len(items)}")
        return _item(call, number % len(items))
