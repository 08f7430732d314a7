"""Symbolic sizes: sizes, strides and offsets as SymPy expressions of a graph's size symbols."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import sympy
import torch
from torch.utils._sympy.functions import Max
from torch.utils._sympy.printers import PythonPrinter

ZERO, ONE = sympy.Integer(0), sympy.Integer(1)


def expression(size: Any) -> sympy.Expr:
    """The expression of an int or a `torch.SymInt`."""
    return size.node.expr if isinstance(size, torch.SymInt) else sympy.Integer(int(size))


def expressions(sizes: Iterable[Any]) -> tuple[sympy.Expr, ...]:
    """The expressions of a shape, or of strides."""
    return tuple(expression(n) for n in sizes)


def nonempty_strides(sizes: Iterable[Any], strides: Iterable[Any]) -> tuple[sympy.Expr, ...]:
    """The strides of an array that has elements. Torch's have `max(1, n)` in the place of a size that may be
    0, and loops over the axes behind it wouldn't merge."""
    size_expressions, stride_expressions = expressions(sizes), expressions(strides)
    by_size: dict[Any, Any] = {}
    for least in set[Any]().union(*(s.atoms(Max) for s in stride_expressions)):
        others = [x for x in least.args if x != 1]
        if len(others) == 1 and len(least.args) == 2:
            by_size |= {least: others[0]} if any(equal(others[0], n) for n in size_expressions) else {}
    return tuple(s.xreplace(by_size) for s in stride_expressions)


def product(sizes: Iterable[sympy.Expr]) -> sympy.Expr:
    """The number of elements of a shape."""
    total: sympy.Expr = ONE
    for n in sizes:
        total *= n
    return sympy.expand(total)


@cache  # an expression is a value, and the quotient depends on nothing else
def quotient(a: sympy.Expr, b: sympy.Expr) -> sympy.Expr | None:
    """`a / b` where b divides a for all values of the symbols; None where that isn't known.

    >>> n, m = sympy.symbols("n m", integer=True, positive=True)
    >>> quotient(6 * n * m, 2 * n), quotient(n + 1, n)
    (3*m, None)
    """
    if b == 1 or a == 0:
        return a
    if a.is_Integer and b.is_Integer:
        return sympy.Integer(int(a) // int(b)) if b != 0 and int(a) % int(b) == 0 else None
    if not b.free_symbols and not a.is_Integer and b == 0:
        return None
    ratio = sympy.cancel(a / b)
    if sympy.fraction(sympy.together(ratio))[1] != 1:
        return None
    terms = sympy.expand(ratio).as_coefficients_dict()
    return sympy.expand(ratio) if all(c.is_Integer for c in terms.values()) else None


def equal(a: sympy.Expr, b: sympy.Expr) -> bool:
    """Whether two sizes are equal for all values of the symbols, as far as expanding them shows."""
    return a == b or sympy.expand(a - b) == 0


def same_shape(a: Iterable[sympy.Expr], b: Iterable[sympy.Expr]) -> bool:
    """Whether two shapes are equal."""
    a, b = tuple(a), tuple(b)
    return len(a) == len(b) and all(equal(x, y) for x, y in zip(a, b, strict=True))


def hint(size: sympy.Expr, values: Mapping[sympy.Symbol, int]) -> int:
    """The size in the traced call; 1024 if it depends on data."""
    value = size.xreplace({s: sympy.Integer(values.get(s, 1024)) for s in size.free_symbols})
    return int(value) if value.is_number else 1024


def shape_env_of(values: Iterable[Any]) -> Any:
    """The `ShapeEnv` of the first symbol among the sizes of tensors, and sizes; None without one."""
    for x in values:
        for n in x.shape if isinstance(x, torch.Tensor) else (x,):
            if isinstance(n, torch.SymInt):
                return n.node.shape_env
    return None


def hints_of(inputs: Iterable[Any]) -> dict[sympy.Symbol, int]:
    """The sizes that were traced, by symbol."""
    env = shape_env_of(inputs)
    return {} if env is None else {s: int(v) for s, v in values_of(env).items() if v.is_Integer}


def values_of(env: Any) -> Any:
    """The traced values of a `ShapeEnv`'s symbols."""
    return getattr(env, "backed_var_to_val", None) or env.var_to_val


_printer = PythonPrinter()


def python(size: sympy.Expr) -> str:
    """As text of a Python expression of the symbols' names."""
    return str(_printer.doprint(size))
