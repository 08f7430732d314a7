"""Infers `print` and `assert`, and the f-strings in them."""

from __future__ import annotations

import ast
from typing import Any

from ..dtypes import complex128, float64, int64, uint64
from ..errors import with_article
from . import ir
from .aggregates import as_tuple
from .infer_conditions import infer_condition
from .infer_scope import Scope, rule
from .infer_values import describe, is_array
from .messages import Template, formatted, number, numbers_of, word_count
from .promotion import cast

MAX_WORDS = 4  # of an assertion's numbers, in the failure record
_WIDE = {"b": int64, "i": int64, "u": uint64, "f": float64, "c": complex128}


class _Message:
    """A text in the making, and the expressions of its numbers."""

    def __init__(self, scope: Scope):
        self.scope = scope
        self.parts: list[Any] = []
        self.values: list[ir.Expr] = []

    def add(self, node: ast.AST, value: Any, spec: str = "", conversion: str = "") -> None:
        """A value: what is known when the kernel is compiled is part of the text."""
        if isinstance(value, ir.Static) and isinstance(value.value, (str, bool, int, float, complex)):
            self.parts.append(formatted(value.value, spec, conversion))
            return
        items = as_tuple(value)
        if items is not None and not spec and not conversion:
            for k, item in enumerate(items):
                self.parts.append(", " if k else "(")
                self.add(node, item)
            self.parts.append(",)" if len(items) == 1 else ")")
            return
        if isinstance(value, ir.Static) or not isinstance(getattr(value, "type", None), ir.ScalarType):
            advice = "name its elements" if is_array(value) else "numbers and texts can be shown"
            self.scope.fail(node, f"{describe(value)} can't be shown by a kernel", advice)
        if isinstance(value, ir.Const):
            plain = value.type.weak or value.type.dtype.kind not in "fc"
            shown = value.value if plain else value.type.dtype.numpy.type(value.value)
            self.parts.append(formatted(shown, spec, conversion))
            return
        self._check_format(node, value.type, spec)
        self.parts.append(number(value.type, spec, conversion, ast.unparse(node)))
        self.values.append(value)

    def _check_format(self, node: ast.AST, kind: ir.ScalarType, spec: str) -> None:
        try:
            format({"b": True, "i": 1, "u": 1, "f": 1.0, "c": 1j}[kind.dtype.kind], spec)
        except ValueError as error:
            self.scope.fail(node, f"{with_article(kind)} has no format {spec!r}: {error}")

    def expression(self, node: ast.expr) -> None:
        """The text of an argument of `print`, or of the message of an `assert`."""
        if isinstance(node, ast.JoinedStr):
            for part in node.values:
                if isinstance(part, ast.Constant):
                    self.parts.append(str(part.value))
                elif isinstance(part, ast.FormattedValue):
                    self._formatted(part)
            return
        self.add(node, self.scope.infer(node))

    def _formatted(self, node: ast.FormattedValue) -> None:
        spec = ""
        for part in node.format_spec.values if isinstance(node.format_spec, ast.JoinedStr) else ():
            if not isinstance(part, ast.Constant):
                what = "a format that depends on a value is not part of the kernel language"
                self.scope.fail(node, what, "write the format out: f'{x:.3f}'")
            spec += str(part.value)
        conversion = chr(node.conversion) if node.conversion > 0 else ""
        self.add(node.value, self.scope.infer(node.value), spec, conversion)

    def template(self) -> Template:
        return tuple(self.parts)

    def words(self) -> tuple[ir.Expr, ...]:
        """The numbers as the widest type of their kind."""
        return tuple(cast(x, _WIDE[x.type.dtype.kind]) for x in self.values)


def print_call(scope: Scope, node: ast.Call) -> ir.Print:
    ends = {"sep": " ", "end": "\n"}
    for keyword in node.keywords:
        value = scope.infer(keyword.value)
        known = isinstance(value, ir.Static) and (value.value is None or isinstance(value.value, str))
        if keyword.arg not in ends or not known:
            scope.fail(keyword.value, "print() in a kernel takes values, and texts as sep and end", "leave it out")
        ends[keyword.arg] = ends[keyword.arg] if value.value is None else value.value
    message = _Message(scope)
    for k, argument in enumerate(node.args):
        if k:
            message.parts.append(ends["sep"])
        message.expression(argument)
    message.parts.append(ends["end"])
    return ir.Print(scope.loc(node), None, message.words(), message.template())


@rule(ast.JoinedStr)
def _joined_str(scope: Scope, node: ast.JoinedStr) -> Any:
    scope.fail(node, "a text with numbers in it is not part of the kernel language", "print it, or assert with it")


@rule(ast.Assert)
def _assert(scope: Scope, node: ast.Assert) -> list[ir.Stmt]:
    before = set(scope.assigned)
    condition = infer_condition(scope, node.test).value
    message, loc = _Message(scope), scope.loc(node)
    if node.msg is not None:
        if any(isinstance(n, ast.NamedExpr) for n in ast.walk(node.msg)):
            scope.fail(node.msg, "the message of an assertion assigns no variable", "assign it on a line before")
        message.expression(node.msg)
    else:
        _operands(message, node.test)
    scope.assigned = before  # it may not be evaluated
    count = sum(word_count(_WIDE[x.type.dtype.kind]) for x in message.values)
    if count > MAX_WORDS:
        scope.fail(node, f"an assertion shows {MAX_WORDS} numbers at most, this one has {count}", "print the others")
    if isinstance(condition, ir.Const) and condition.value:
        return []
    check = ir.Assert(loc, None, condition, message.words(), message.template())
    return [ir.Evaluate(loc, check)]


def _operands(message: _Message, test: ast.expr) -> None:
    """The condition's text and the numbers that its variables are, as far as they can be shown."""
    scope = message.scope
    message.parts.append(ast.unparse(test))
    names = dict.fromkeys(n.id for n in ast.walk(test) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
    for name in names:
        kind = scope.types.get(name)
        shown = isinstance(kind, ir.ScalarType) and name in scope.assigned and kind.dtype.kind != "c"
        if not shown or len(numbers_of(message.template())) == MAX_WORDS:
            continue
        variable = ast.copy_location(ast.Name(name, ast.Load()), test)
        message.parts.append(f", {name} = " if numbers_of(message.template()) else f": {name} = ")
        message.add(variable, scope.infer(variable))
