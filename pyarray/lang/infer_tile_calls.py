"""Infers calls with tiles among their arguments: elementwise functions, conversions, `where`, atomics, masked stores,
and what `infer_tile_functions` has."""

from __future__ import annotations

import ast
import builtins as python
import inspect
import sys
import types as python_types
from collections.abc import Callable
from typing import Any

from ..dtypes import DType, bool_, named_dtype
from . import ir
from .aggregates import as_tuple
from .builtins import ATOMICS, FUNCTIONS, name_of, source_for
from .infer_access import ATOMIC_KINDS, wrap_index
from .infer_invoke import invoke, is_weak
from .infer_local_functions import lambda_source
from .infer_operators import binary_operator, select
from .infer_scope import Scope
from .infer_temporaries import assign_temporary, new_temporary
from .infer_tile_functions import FUNCTIONS as TILE_FUNCTIONS
from .infer_tile_functions import call_tile_function
from .infer_tile_inlining import inline, uses_tiles
from .infer_tile_loops import is_tiles, tile_space
from .infer_tiles import length, reads_array, store_tile
from .infer_values import Method, describe, is_array
from .promotion import call, cast
from .tile_values import (
    Done,
    as_tile,
    broadcast_axes,
    check_size,
    elementwise_tile,
    is_tile,
    materialized,
    over_tile,
    positions,
    tile_type,
)

_EMPTY = inspect.Parameter.empty
_LIBRARIES = {"pyarray", "numpy", *sys.stdlib_module_names}
_PYTHON = {python.sum: "sum", python.any: "any", python.all: "all"}


def call_with_tiles(scope: Scope, node: ast.Call, function: Any, args: list[Any], keywords: dict[str, Any]) -> Any:
    """The value of a call that has to do with tiles; None of others."""
    if is_tiles(function):
        return tile_space(scope, node, args)
    if isinstance(function, Method) and is_tile(function.owner):
        return call_tile_function(scope, node, function.name, [function.owner, *args], keywords)
    name = name_of(function)
    if name in ATOMICS and len(args) >= 2:
        index = as_tuple(args[1]) if as_tuple(args[1]) is not None else (args[1],)
        if any(map(is_tile, (*(index or ()), *args[2:]))):
            return _atomic(scope, node, ATOMICS[name], args, index or ())
        return None
    if not any(map(is_tile, (*args, *keywords.values()))):
        source = getattr(function, "__pyarray_func__", None)
        if source is not None and scope.before_parallel is not None and uses_tiles(source):
            return inline(scope, node, source, args, keywords)
        return None
    package = (getattr(function, "__module__", None) or "").partition(".")[0]
    found = getattr(function, "__name__", "") if package in ("pyarray", "numpy") else None
    found = _PYTHON.get(function, found) if isinstance(function, type(python.sum)) else found
    if function in (min, max) or function in _PYTHON:
        _check_python(scope, node, function, args)
    is_function = found in (*TILE_FUNCTIONS, "amin", "amax")
    if found == "clip" or (is_function and not hasattr(function, "__pyarray_func__")):
        return call_tile_function(scope, node, str(found), args, keywords)
    return _elementwise_call(scope, node, function, name, args, keywords)


def _elementwise_call(
    scope: Scope, node: ast.Call, function: Any, name: str | None, args: list[Any], keywords: dict[str, Any]
) -> Any:
    loc = scope.loc(node)
    package = (getattr(function, "__module__", None) or "").partition(".")[0]
    if function is divmod and len(args) == 2:
        return tuple(binary_operator(scope, node, op(), *args) for op in (ast.FloorDiv, ast.Mod))
    source = source_for(function) or lambda_source(scope, function)
    if source is not None and _takes_tiles(function, source, args, keywords):
        return inline(scope, node, source, args, keywords)
    if source is not None:
        return _call_for_elements(scope, node, source, args, keywords, package not in _LIBRARIES)
    if keywords:
        scope.fail(node.keywords[0].value, "keyword arguments are for @pa.func functions", "pass it by position")
    if name == "where" and len(args) == 3:
        choose = lambda c, a, b: select(scope, node, scope.truth(node, c), a, b)  # noqa: E731
        return elementwise_tile(scope, node, args, choose)
    if name == "pow" and len(args) == 2:
        return binary_operator(scope, node, ast.Pow(), args[0], args[1])
    if name in FUNCTIONS:
        return elementwise_tile(scope, node, args, lambda *xs: call(loc, str(name), list(xs)))
    if function is len and len(args) == 1:
        return length(scope, node, as_tile(scope, node, args[0]).type.axes[0])
    if len(args) == 1 and isinstance(function, (DType, type)) and named_dtype(function) is not None:
        kind = ir.ScalarType(named_dtype(function), is_weak(function))  # type: ignore[arg-type]
        return elementwise_tile(scope, node, args, lambda x: scope.coerce(node, x, kind))
    what = f"{getattr(function, '__name__', function)!r} takes no tiles"
    advice = f"there are functions of numbers, and {', '.join(TILE_FUNCTIONS)}"
    if function in (int, float, bool, complex):
        advice = f"it makes one number; write t.astype({function.__name__})"
    elif isinstance(function, python_types.FunctionType) and package not in _LIBRARIES:
        what, advice = f"{function.__name__!r} is a plain Python function", "decorate it with @pa.func"
    scope.fail(node, what, advice)


def _call_for_elements(
    scope: Scope, node: ast.Call, source: Any, args: list[Any], keywords: dict[str, Any], of_user: bool
) -> Any:
    """A call for each element. Arrays and objects are arguments of each; a function that has effects on them is called
    once for each element, however often the tile is used."""
    names, values = [*range(len(args)), *keywords], [*args, *keywords.values()]
    whole: dict[Any, Any] = {}
    if of_user:
        whole = {n: x for n, x in zip(names, values, strict=True) if not is_tile(x) and not _is_number(x)}
    for name, value in whole.items():
        if is_array(value) and not isinstance(value, ir.Local):
            whole[name] = assign_temporary(scope, value, scope.pending)
    of_elements = [n for n in names if n not in whole]

    def invoked(*xs: ir.Expr) -> Any:
        given = whole | dict(zip(of_elements, xs, strict=True))
        return invoke(scope, node, source, [given[k] for k in range(len(args))], {k: given[k] for k in keywords})

    elements = [x for n, x in zip(names, values, strict=True) if n not in whole]
    if node is scope.statement:
        return _call_statement(scope, node, elements, invoked)
    tile = elementwise_tile(scope, node, elements, invoked)
    if is_tile(tile) and any(map(is_array, whole.values())):
        return materialized(scope, node, tile)
    return tile


def _call_statement(scope: Scope, node: ast.Call, elements: list[Any], invoked: Callable[..., ir.Expr]) -> Done:
    """A call for each element, whose value nobody asks for."""
    tiles, loc = [as_tile(scope, node, x) for x in elements], scope.loc(node)
    axes, capacities = broadcast_axes(scope, node, [tile.type for tile in tiles])
    call_of_element = invoked(*(tile.element for tile in tiles))
    kind = tile_type(scope, node, bool_, axes, capacities)
    scope.pending += over_tile(loc, kind, [ir.Evaluate(loc, call_of_element)])
    return Done()


def _is_number(value: Any) -> bool:
    return isinstance(getattr(value, "type", None), ir.ScalarType)


def _check_python(scope: Scope, node: ast.Call, function: Any, args: list[Any]) -> None:
    """Python's functions compare and add what they get by iterating: rows, of a tile with more than one axis."""
    name = function.__name__
    if function in (min, max):
        advice = f"write pa.{name}imum(a, b) for their elements, or a.{name}(axis=1) of one tile"
        scope.fail(node, f"{name}() of Python doesn't compare tiles", advice)
    if len(args) == 1 and (tile := as_tile(scope, node, args[0])).type.ndim > 1:
        advice = f"write t.{name}(), or t.{name}(axis=0)"
        scope.fail(node, f"{name}() of Python takes one axis, got {describe(tile)}", advice)


def _takes_tiles(function: Any, source: Any, args: list[Any], keywords: dict[str, Any]) -> bool:
    """Whether a function gets tiles as a whole. A ufunc, and a function whose parameters are annotated as numbers,
    is called for each element."""
    if not hasattr(function, "__pyarray_func__") or not isinstance(source.node, ast.FunctionDef):
        return False
    try:
        bound = source.signature.bind(*args, **keywords).arguments
    except TypeError:
        return True
    return not any(is_tile(x) and source.signature.parameters[n].annotation is not _EMPTY for n, x in bound.items())


def _atomic(scope: Scope, node: ast.Call, op: str, args: list[Any], index: tuple[Any, ...]) -> Any:
    """An update for each element of the tiles. Its value, of a statement nothing, is what stood there before."""
    array, loc = args[0], scope.loc(node)
    if not is_array(array) or len(args) != 3 + (op == "cas"):
        scope.fail(node, f"atomic_{op}() takes an array, indices and a value", f"write pa.atomic_{op}(v, (i, j), x)")
    dtype = array.type.dtype
    if dtype.kind not in ATOMIC_KINDS.get(op, "biu"):
        scope.fail(node, f"atomic_{op}() is not defined for {dtype}")
    if len(index) != array.type.ndim:
        scope.fail(node, f"{len(index)} indices for a {array.type}")
    if not isinstance(array, ir.Local):
        array = assign_temporary(scope, array, scope.pending)
    axes, capacities, parts = list[str](), list[int](), list[ir.Expr]()
    tiles = [as_tile(scope, node, x) for x in (*index, *args[2:])]
    tiles = [materialized(scope, node, t) if reads_array(scope, t.element, array) else t for t in tiles]
    for tile in tiles:
        for axis, n in zip(tile.type.axes, tile.type.shape, strict=True):
            if axis and axis not in axes:
                axes.append(axis)
                capacities.append(n)
    for k, tile in enumerate(tiles[: len(index)]):
        element = scope.integer(node, tile.element, "an index")
        parts.append(wrap_index(scope, node, element, array, k))
    value, *more = (scope.coerce(node, tile.element, ir.ScalarType(dtype)) for tile in tiles[len(index) :])
    update = ir.Atomic(loc, ir.ScalarType(dtype), op, array, tuple(parts), value, desired=more[0] if more else None)
    kind = check_size(scope, node, tile_type(scope, node, dtype, axes, capacities))
    if node is scope.statement:
        scope.pending += over_tile(loc, kind, [ir.Evaluate(loc, update)])
        return Done()
    name = new_temporary(scope, kind)
    stored = ir.SetElement(loc, name, kind.shape, positions(loc, kind.axes), cast(update, dtype))
    scope.pending += over_tile(loc, kind, [stored])
    return as_tile(scope, node, ir.Local(loc, kind, name))


def masked_store(scope: Scope, node: ast.Call, function: Any) -> Done | None:
    """`pa.copyto(a[i, j], tile, where=mask)`; None of other calls."""
    package = (getattr(function, "__module__", None) or "").partition(".")[0]
    if package not in ("pyarray", "numpy") or getattr(function, "__name__", "") != "copyto":
        return None
    if len(node.args) != 2 or [k.arg for k in node.keywords] not in ([], ["where"]):
        scope.fail(node, "copyto() takes elements, a tile and where=", "write pa.copyto(a[i, j], x, where=mask)")
    target = node.args[0]
    array: Any = scope.infer(target.value) if isinstance(target, ast.Subscript) else None
    if not is_array(array) or not isinstance(target, ast.Subscript):
        scope.fail(target, f"copyto() stores into elements of an array, got {describe(scope.infer(target))}")
    condition = scope.infer(node.keywords[0].value) if node.keywords else None
    scope.pending += store_tile(scope, target, array, scope.infer(node.args[1]), condition, node)
    return Done()
