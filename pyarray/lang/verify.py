"""The rules of the typed tree, checked between passes. A broken rule is a fault of this library."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..dtypes import DType, int64, uint64
from . import ir


def _index_fits(node: Any) -> bool:
    return len(node.index) == node.array.type.ndim and all(i.type.dtype.name == "int64" for i in node.index)


def _convertible(node: Any) -> bool:
    if node.how == "reshape":
        return node.type.size == node.a.type.size and node.type.dtype is node.a.type.dtype
    same_size = node.type.dtype.itemsize == node.a.type.dtype.itemsize
    return same_size and (node.how == "bitcast" or (node.type.dtype is int64 and node.a.type.dtype is uint64))


def _bool(expr: Any) -> bool:
    return bool(expr.type.dtype.name == "bool")


def _comparable(a: DType, b: DType) -> bool:
    return a is b or {a, b} == {int64, uint64}


RULES: dict[type, Any] = {
    ir.Binary: lambda n: n.a.type.dtype is n.b.type.dtype is n.type.dtype,
    ir.Compare: lambda n: _bool(n) and _comparable(n.a.type.dtype, n.b.type.dtype),
    ir.Logic: lambda n: _bool(n) and _bool(n.a) and _bool(n.b),
    ir.Select: lambda n: _bool(n.condition) and n.a.type.dtype is n.b.type.dtype is n.type.dtype,
    ir.Cast: lambda n: isinstance(n.type, ir.ScalarType) and isinstance(n.a.type, ir.ScalarType),
    ir.Builtin: lambda n: all(a.type.dtype is n.domain for a in n.args),
    ir.Load: lambda n: _index_fits(n) and n.type.dtype is n.array.type.dtype,
    ir.Store: lambda n: _index_fits(n) and n.value.type.dtype is n.array.type.dtype,
    ir.Atomic: lambda n: (
        _index_fits(n)
        and n.value.type.dtype is n.array.type.dtype
        and (n.desired.type == n.value.type if n.op == "cas" else n.desired is None)
    ),
    ir.Slice: lambda n: (
        len(n.parts) == n.array.type.ndim and sum(isinstance(p, ir.Range) for p in n.parts) == n.type.ndim
    ),
    ir.Reshape: lambda n: n.array.type.dtype is n.type.dtype and len(n.shape) == n.type.ndim,
    ir.SubView: lambda n: n.array.type.ndim == 1 and n.type == replace(n.array.type, sizes=()),
    ir.Convert: lambda n: _convertible(n),
    ir.Build: lambda n: len(n.items) == n.type.size and all(x.type.dtype is n.type.dtype for x in n.items),
    ir.Fill: lambda n: n.value.type.dtype is n.type.dtype,
    ir.Element: lambda n: _index_fits(n) and n.type.dtype is n.array.type.dtype,
    ir.SetElement: lambda n: all(i.type.dtype.name == "int64" for i in n.index),
    ir.Let: lambda n: n.type == n.body.type,
    ir.Assert: lambda n: n.type is None and _bool(n.condition),
    ir.If: lambda n: _bool(n.condition),
    ir.While: lambda n: _bool(n.condition),
}


_NAMED = (ir.SetElement, ir.Assign, ir.Local, ir.Invoke)  # what refers to variables or functions


def verify(tree: ir.Tree) -> ir.Tree:
    """The tree itself. Raises `AssertionError` that names the node whose rule is broken."""
    symbols = {f.symbol: f for f in tree.functions}
    for function in (*tree.functions, tree.kernel):
        _verify_function(function, symbols)
    return tree


def _verify_function(function: ir.Function, symbols: dict[str, ir.Function]) -> None:
    names = dict(function.params) | dict(function.variables)
    for statement in function.body:
        for node in ir.walk(statement):
            node_kind = type(node)
            rule = RULES.get(node_kind)
            if rule is not None and not rule(node):
                raise AssertionError(
                    f"{function.name}: malformed {type(node).__name__} at line {node.loc.line}: {node}"
                )
            if node_kind not in _NAMED:
                continue
            kind = names.get(getattr(node, "name", ""))
            if isinstance(node, ir.SetElement) and not (
                isinstance(kind, ir.LocalArrayType)
                and kind.dtype is node.value.type.dtype
                and kind.ndim == len(node.index)
            ):
                raise AssertionError(f"{function.name}: {node.name} is {kind}, an element is set: {node}")
            if isinstance(node, ir.Assign) and isinstance(kind, ir.LocalArrayType) and node.value.type != kind:
                raise AssertionError(f"{function.name}: {node.name} is {kind}, assigned {node.value.type}")
            if isinstance(node, ir.Local) and kind is not node.type and kind != node.type:
                raise AssertionError(
                    f"{function.name}: {node.name} is {names.get(node.name)}, used as {node.type} "
                    f"at line {node.loc.line}"
                )
            if isinstance(node, ir.Invoke):
                expected = tuple(t for _, t in symbols[node.function].params)
                passed = tuple(a.type for a in node.args)
                if expected != passed or any(isinstance(a, ir.ArrayType) for a in passed if a is None):
                    raise AssertionError(f"{function.name}: {node.function} takes {expected}, given {passed}")
