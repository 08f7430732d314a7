"""Values that are computed element by element: operators and functions of local arrays and of views of constant
shape, their conversion and broadcasting.

Few elements are written out, which keeps them in registers; of more, a loop in a function computes them."""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..dtypes import DType
from . import ir
from .infer_scope import Scope
from .infer_temporaries import has_side_effect, nest_lets, new_temporary
from .infer_values import constant_shape, describe, is_local_array
from .promotion import cast, constant

UNROLLED = 16  # elements, up to which the text has each
MOST_BYTES = 1 << 14  # of a local array: a thread of a pool has a stack of some hundred KiB

_SIMPLE = (ir.Local, ir.Const, ir.Size, ir.Cast, ir.Binary, ir.Unary)  # an index that may be evaluated again

Index = tuple[ir.Expr, ...]
Elements = Callable[[Index], ir.Expr]  # the element at an index


def is_elementwise(*values: Any) -> bool:
    """Whether one of them is an array of constant shape."""
    return any(constant_shape(x) is not None for x in values)


def element(scope: Scope, where: ast.AST | ir.Loc, array: ir.Expr, index: Index) -> ir.Expr:
    """The element of a local array or of a view; an array of indices through which it is sliced is indexed itself."""
    loc = scope.loc(where)
    if is_local_array(array):
        return ir.Element(loc, ir.ScalarType(array.type.dtype), array, index)
    if isinstance(array, ir.Slice) and not array.transposed:
        parts = iter(index)
        index = tuple(next(parts) if isinstance(p, ir.Range) else p for p in array.parts)
        return ir.Load(loc, ir.ScalarType(array.type.dtype), array.array, index)
    return ir.Load(loc, ir.ScalarType(array.type.dtype), array, index)


def bind(scope: Scope, values: list[Any], build: Callable[..., Any]) -> Any:
    """`build(*values)`, where `build` may use each value many times."""
    always = any(has_side_effect(x) for x in values)  # a variable may then be set behind its place
    lets: list[tuple[str, ir.Expr]] = []
    bound = list(values)
    for k, value in enumerate(values):
        plain = isinstance(value, ir.Const) or (not always and (isinstance(value, ir.Local) or is_whole_row(value)))
        if not plain:
            bound[k] = ir.Local(value.loc, value.type, new_temporary(scope, value.type))
            lets.append((bound[k].name, value))
    return nest_lets(build(*bound), lets)


def is_whole_row(value: Any) -> bool:
    """Whether it is `a[i]` of a variable by simple indices: its elements are those of `a`."""
    if not isinstance(value, ir.Slice) or value.transposed or not isinstance(value.array, ir.Local):
        return False
    indices = [p for p in value.parts if not isinstance(p, ir.Range)]
    whole = all(p == ir.WHOLE for p in value.parts if isinstance(p, ir.Range))
    return whole and all(isinstance(n, _SIMPLE) for p in indices for n in ir.walk(p))


def elementwise(
    scope: Scope, where: ast.AST, operands: list[Any], compute: Callable[..., ir.Expr], name: str = "elements"
) -> ir.Expr:
    """The local array of `compute(*elements)` over operands that broadcast to one shape; numbers are elements of
    all."""
    shape = broadcast(scope, where, operands)

    def build(*bound: ir.Expr) -> ir.Expr:
        def at(arrays: list[ir.Expr], index: Index) -> ir.Expr:
            elements = (broadcast_element(scope, where, x, index) for x in arrays)
            return scope.apply(where, compute, *elements)

        return generate(scope, where, shape, list(bound), at, name)

    return bind(scope, operands, build)


def broadcast(scope: Scope, where: ast.AST, operands: list[Any]) -> tuple[int, ...]:
    shapes = [s for s in map(constant_shape, operands) if s is not None]
    for value in operands:
        if constant_shape(value) is None:
            scope.number(where, value)
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        scope.fail(where, f"shapes {' and '.join(map(str, shapes))} don't broadcast to one")


def broadcast_element(scope: Scope, where: ast.AST, value: ir.Expr, index: Index) -> ir.Expr:
    """The element that stands at `index` of a shape that `value` is broadcast to; a number is itself."""
    shape = constant_shape(value)
    if shape is None:
        return value
    zero = constant(scope.loc(where), 0)
    own = index[len(index) - len(shape) :]
    return element(scope, where, value, tuple(zero if n == 1 else i for n, i in zip(shape, own, strict=True)))


def generate(
    scope: Scope,
    where: ast.AST,
    shape: tuple[int, ...],
    operands: list[ir.Expr],
    at: Callable[[list[ir.Expr], Index], ir.Expr],
    name: str = "elements",
) -> ir.Expr:
    """The local array of this shape whose element at an index is `at(operands, index)`. The operands are what `at`
    reads, and evaluated any number of times."""
    loc = scope.loc(where)
    if math.prod(shape) <= UNROLLED:
        items = tuple(at(operands, index) for index in indices(loc, shape))
        if not items:
            zero = tuple(constant(loc, 0) for _ in shape)
            return ir.Build(loc, ir.LocalArrayType(at(operands, zero).type.dtype, shape), ())
        return build(scope, where, shape, items)
    return _looped(scope, where, shape, operands, at, name)


def build(scope: Scope, where: ast.AST, shape: tuple[int, ...], items: tuple[ir.Expr, ...]) -> ir.Expr:
    """The local array of these elements, which have one type."""
    kind = local_type(scope, where, items[0].type.dtype, shape)
    return ir.Build(scope.loc(where), kind, tuple(cast(x, kind.dtype) for x in items))


def local_type(scope: Scope, where: ast.AST, dtype: DType, shape: tuple[int, ...]) -> ir.LocalArrayType:
    kind = ir.LocalArrayType(dtype, shape)
    if (size := kind.size * dtype.itemsize) > MOST_BYTES:
        what = f"a local array of shape {shape} has {size} bytes, and {MOST_BYTES} is the most"
        scope.fail(where, what, "pass an array for it")
    return kind


def indices(loc: ir.Loc, shape: tuple[int, ...]) -> Iterator[Index]:
    """All constant indices of a shape, in C order."""
    for index in itertools.product(*map(range, shape)):
        yield tuple(constant(loc, k) for k in index)


def _looped(
    scope: Scope,
    where: ast.AST,
    shape: tuple[int, ...],
    operands: list[ir.Expr],
    at: Callable[[list[ir.Expr], Index], ir.Expr],
    name: str,
) -> ir.Expr:
    """As `generate`, by a call of a function of the operands that loops over the elements."""
    loc = scope.loc(where)
    params, arguments, inside = list[tuple[str, Any]](), list[ir.Expr](), list[ir.Expr]()
    for k, x in enumerate(operands):
        if isinstance(x, ir.Const):
            inside.append(x)
            continue
        params.append((f"a{k}", x.type))
        arguments.append(x)
        inside.append(ir.Local(loc, x.type, f"a{k}"))
    index = tuple(ir.Local(loc, ir.INDEX, f"i{axis}") for axis in range(len(shape)))
    value = at(inside, index)
    kind = local_type(scope, where, value.type.dtype, shape)
    value = cast(value, kind.dtype)
    body: ir.Stmt = ir.SetElement(loc, "out", shape, index, value)
    for i, size in reversed(list(zip(index, shape, strict=True))):
        body = ir.For(loc, (i.name,), (ir.Range(None, constant(loc, size), None),), (body,))
    zero = cast(constant(loc, 0), kind.dtype)
    out = ir.Local(loc, kind, "out")
    statements = (ir.Assign(loc, "out", ir.Fill(loc, kind, zero)), body, ir.Return(loc, out))
    variables = (("out", kind), *((i.name, ir.INDEX) for i in index))
    symbol = scope.instances.add(scope.source, name, tuple(params), variables, statements, kind)
    return ir.Invoke(loc, kind, symbol, tuple(arguments))


def loaded(scope: Scope, where: ast.AST, value: ir.Expr) -> ir.Expr:
    """An array of constant shape as a local array: a view is read."""
    return value if is_local_array(value) else elementwise(scope, where, [value], lambda x: x, "load")


def unshared(value: ir.Expr) -> ir.Expr:
    """What is stored as a whole: as in NumPy it is read before the first element is stored, a copy of its own."""
    return ir.Shared(value.loc, value.type, value, ()) if is_local_array(value) else value


def convert(scope: Scope, where: ast.AST, value: ir.Expr, kind: Any) -> ir.Expr:
    """`value` as a variable of type `kind` holds it: as `Scope.coerce`, and of local arrays."""
    if not isinstance(kind, ir.LocalArrayType):
        return scope.coerce(where, value, kind)
    if constant_shape(value) != kind.shape:
        scope.fail(where, f"expected an array of shape {kind.shape}, got {describe(value)}")
    if value.type == kind:
        return value
    element_type = ir.ScalarType(kind.dtype)

    def converted(array: ir.Expr) -> ir.Expr:
        return elementwise(scope, where, [array], lambda x: scope.coerce(where, x, element_type), "convert")

    if is_local_array(value):  # of another dtype, which is a copy in Python, too
        return converted(value)
    if isinstance(value, ir.Local) or is_whole_row(value):
        copied = converted(value)
        return ir.Shared(copied.loc, copied.type, copied, memory_of(value))
    view = ir.Local(value.loc, value.type, new_temporary(scope, value.type))
    copied = converted(view)
    shared = ir.Shared(copied.loc, copied.type, copied, (view.name,))
    return nest_lets(shared, [(view.name, value)])


def memory_of(value: Any) -> tuple[str, ...]:
    """The variables whose memory a variable, or a part of one, has in Python."""
    if isinstance(value, ir.Local):
        return (value.name,)
    return memory_of(value.array) if isinstance(value, ir.Slice) else ()
