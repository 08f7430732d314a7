"""The state of type inference: `Scope` for one function, `Instances` for the functions of one kernel, and the
table of rules. A rule infers one type of `ast` node; the modules `infer_*` register theirs with `@rule`."""

from __future__ import annotations

import ast
import enum
import types as python_types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar

import numpy as np

from ..dtypes import PYTHON_KIND, NoCommonType, bool_, int64, uint64
from ..errors import with_article
from . import ir
from .aggregates import Aggregate, counters_of, is_aggregate, leaves
from .aggregates import key as type_key
from .infer_values import advice_for_captured, describe, is_array, is_local_array, join_types
from .parse import Capture, FunctionSource
from .promotion import cast, constant

_T = TypeVar("_T")
_Rule = TypeVar("_Rule", bound=Callable[..., Any])

# type of `ast` node → rule(scope, node), which returns the value of an expression, or the typed statements of a
# statement or function
RULES: dict[type[ast.AST], Callable[[Scope, Any], Any]] = {}


def rule(kind: type[ast.AST]) -> Callable[[_Rule], _Rule]:
    """Register the decorated function as the rule for nodes of this type."""

    def register(function: _Rule) -> _Rule:
        RULES[kind] = function
        return function

    return register


class Instances:
    """Functions of one kernel, one instance per function and argument types, and the Python values that they
    captured."""

    def __init__(self, wraparound: bool):
        self.wraparound = wraparound
        self.done: dict[Any, ir.Function] = {}
        self.active: list[FunctionSource] = []
        self.symbols: set[str] = set()
        self.captures: dict[tuple[int, Any], Capture] = {}
        self.sources: dict[str, FunctionSource] = {}
        self.results: dict[str, Any] = {}  # symbol → structure of the aggregate that it returns
        self.counters: dict[str, frozenset[str]] = {}  # symbol → parameters that count draws, and are returned
        self.returning_arguments: set[str] = set()  # symbols of functions that may return an object of the caller
        # a function's node, or a lambda of Python's → what it is compiled from (`infer_local_functions`)
        self.local_functions: dict[Any, Any] = {}

    def capture(self, owner: Any, name: Any, value: Any) -> None:
        if _is_rebindable(value):
            self.captures[id(owner), name] = Capture(owner, name, value)  # the capture keeps its owner alive

    def function(
        self, source: FunctionSource, params: tuple[tuple[str, Any], ...], is_kernel: bool = False
    ) -> ir.Function:
        key = (source, tuple((name, type_key(p)) for name, p in params))
        if key in self.done:
            return self.done[key]
        self.active.append(source)
        symbol = self._symbol(source.name)
        self.sources[symbol] = source
        scope = Scope(self, source, dict(params), is_kernel)
        body: tuple[ir.Stmt, ...] = ()
        while scope.changed:
            body = scope.infer_again()
        self.active.pop()
        types, structure = scope.types, scope.structures.get("return")
        flattened = [n for name, p in params for n, leaf in leaves(name, p) if not isinstance(leaf, ir.Static)]
        # a parameter that is assigned may have been widened
        parameters = tuple((n, types[n]) for n in flattened)
        returned = list(leaves("return", structure))
        result = types.get("return")
        if structure is not None:
            self.results[symbol] = structure
            if scope.returns_argument:
                self.returning_arguments.add(symbol)
            result = ir.TupleType(tuple(types[n] for n, x in returned if x is None))
        counters = () if is_kernel else tuple(counters_of(params))
        if counters:
            values = result.items if isinstance(result, ir.TupleType) else () if result is None else (result,)
            result = ir.TupleType((*values, *(types[n] for n in counters)))
            self.counters[symbol] = frozenset(counters)
        not_local = {*flattened, "return", *(n for n, _ in returned)}
        variables = tuple((n, t) for n, t in types.items() if n not in not_local)
        function = ir.Function(source.name, symbol, source.loc(source.node), parameters, variables, body, result)
        if not is_kernel:
            self.done[key] = function
        return function

    def add(
        self,
        source: FunctionSource,
        name: str,
        params: tuple[tuple[str, Any], ...],
        variables: tuple[tuple[str, Any], ...],
        body: tuple[ir.Stmt, ...],
        result: Any,
    ) -> str:
        """The symbol of a function that stands in no source; the same one as before if an equal one was added."""
        key = (source, repr((name, params, variables, body, result)))  # -0.0 is equal to 0.0, and not the same
        if key not in self.done:
            symbol = self._symbol(name)
            self.sources[symbol] = source
            self.done[key] = ir.Function(name, symbol, body[0].loc, params, variables, body, result)
        return self.done[key].symbol

    def _symbol(self, name: str) -> str:
        symbol = base = name if name.isidentifier() else "function"
        while symbol in self.symbols:
            symbol = f"{base}_{len(self.symbols)}"
        self.symbols.add(symbol)
        return symbol


def _is_rebindable(value: Any) -> bool:
    """Whether launches check that the name still stands for this: not for modules and functions of the language."""
    return not isinstance(value, python_types.ModuleType) and not hasattr(value, "__pyarray_builtin__")


@dataclass(eq=False)
class Scope:
    """The state of inference for one function, whose body is inferred until no type changes."""

    instances: Instances
    source: FunctionSource
    params: dict[str, Any]
    is_kernel: bool
    types: dict[str, ir.Type] = field(default_factory=dict)
    declared: dict[str, ir.ScalarType] = field(default_factory=dict)
    structures: dict[str, Any] = field(default_factory=dict)  # of variables that are aggregates
    # pairs of variables that may be one object in Python, with the place where that is seen first
    aliases: dict[tuple[str, str], ir.Loc] = field(default_factory=dict)
    fields_assigned: dict[str, ir.Loc] = field(default_factory=dict)  # variables of which fields are assigned
    returns_argument: bool = False  # what it returns may be an object of the caller
    constants: dict[str, int] = field(default_factory=dict)  # variables of loops that are unrolled
    changed: bool = True  # another pass is needed
    assigned: set[str] = field(default_factory=set)  # names that have a value here
    temporary_count: int = 0
    parallel_loops: int = 0
    before_parallel: set[str] | None = None  # names assigned before the parallel loop, while in one
    loop_depth: int = 0
    branch_depth: int = 0
    loops: list[Any] = field(default_factory=list)  # those around, the innermost last (`loop_exits.Loop`)
    reduced: dict[str, Any] = field(default_factory=dict)  # names from before it that the parallel loop assigns: where
    functions: dict[str, Any] = field(default_factory=dict)  # that are defined here, by name
    tile_indices: dict[str, Any] = field(default_factory=dict)  # by the variable's name (`tile_values.TileIndex`)
    given_indices: dict[str, Any] = field(default_factory=dict)  # parameters that are tile indices
    inlined: str = ""  # of a function whose statements stand in the place of its call: where that is
    returned: Any = None  # what it returns
    statement: Any = None  # the call that is the statement at hand
    pending: list[ir.Stmt] = field(default_factory=list)  # what the tiles of the statement at hand need before it

    def infer_again(self) -> tuple[ir.Stmt, ...]:
        """The body by one pass, with the types from the pass before."""
        self.changed, self.temporary_count, self.parallel_loops, self.functions = False, 0, 0, {}
        self.tile_indices, self.pending = dict(self.given_indices), []
        self.assigned = {name for name, p in self.params.items() if not isinstance(p, ir.Static)}
        for name in [n for n in self.types if n.startswith(".")]:
            del self.types[name]  # temporaries are numbered anew
        self.assigned |= self.given_indices.keys()
        for name, p in self.params.items():
            for path, leaf in leaves(name, p):
                if not isinstance(leaf, ir.Static):
                    self.types.setdefault(path, leaf)
                    self.assigned.add(path)
        body: tuple[ir.Stmt, ...] = self.infer(self.source.node)
        return body

    def infer(self, node: ast.AST) -> Any:
        """The value of an expression, or the typed statements of a statement or function, by its rule."""
        if type(node) not in RULES:
            self.fail(node, f"{type(node).__name__} is not part of the kernel language")
        return RULES[type(node)](self, node)

    def refuse_pending(self, where: ast.AST, before: int) -> None:
        """Refuses tiles that were combined for a value that may not be evaluated, or more than once."""
        if len(self.pending) > before:
            what = "what combines the elements of a tile is evaluated once, and not under a condition"
            self.fail(where, what, "assign it to a variable first")

    def loc(self, node: ast.AST | ir.Loc) -> ir.Loc:
        return node if isinstance(node, ir.Loc) else self.source.loc(node)

    def fail(self, where: ast.AST | ir.Loc, what: str, instead: str = "") -> NoReturn:
        self.source.fail(where, what, instead)

    def apply(self, where: ast.AST | ir.Loc, function: Callable[..., _T], *args: Any) -> _T:
        """`function(*args)`, whose `TypeError` becomes a `CompileError` at this location."""
        try:
            return function(*args)
        except NoCommonType as error:
            self.fail(where, str(error).partition(";")[0], "convert one of them: pa.int64(x)")
        except TypeError as error:
            self.fail(where, str(error))

    # ---- conversions

    def number(self, where: ast.AST, value: Any) -> ir.Expr:
        if isinstance(getattr(value, "type", None), ir.ScalarType):
            return value
        indexed = is_array(value) or is_local_array(value)
        advice = "index it: v[i]" if indexed else advice_for_captured(value)
        if isinstance(getattr(value, "type", None), ir.TupleType):
            advice = "assign it first: a, b = ..."
        elif is_aggregate(value):
            advice = "take one of its items or fields"
        elif isinstance(value, ir.Static) and isinstance(value.value, str):
            advice = "a text is printed, compared with ==, or an argument"
        elif isinstance(value, ir.Static) and isinstance(value.value, enum.Enum):
            advice = "only members of an IntEnum are numbers"
        elif isinstance(getattr(value, "type", None), ir.TileType):
            advice = "combine its elements, t.sum() or (t > 0).any(), or choose among them by pa.where()"
            if value.type.dtype.kind == "b":  # pyright: ignore[reportAttributeAccessIssue]
                advice += "; of tiles, 'and', 'or' and 'not' are & | and ~"
        elif any(value is index for index in self.tile_indices.values()):
            advice = "its .start, .stop and .size are numbers"
        self.fail(where, f"expected a number, got {describe(value)}", advice)

    def integer(self, where: ast.AST, value: Any, what: str, saturating: bool = False) -> ir.Expr:
        """An int64. A uint64 from 2**63 on wraps, which makes a negative of it, or saturates."""
        value = self.number(where, value)
        if value.type.dtype.kind not in "iu":
            self.fail(where, f"{what} must be an integer, got {describe(value)}", "convert it with int(...)")
        if saturating and value.type.dtype is uint64 and not isinstance(value, ir.Const):
            return ir.Convert(value.loc, ir.INDEX, value, "saturate")
        return self.apply(where, cast, value, int64, True)

    def truth(self, where: ast.AST, value: Any) -> ir.Expr:
        return cast(self.number(where, value), bool_)

    def coerce(self, where: ast.AST, value: ir.Expr, kind: ir.Type) -> ir.Expr:
        """`value` as a variable of type `kind` holds it."""
        if isinstance(kind, ir.ScalarType):
            if value.type.dtype.kind == "c" and kind.dtype.kind not in "cb":
                what = f"{with_article(value.type)} can't become {with_article(kind)}"
                self.fail(where, what, "take its .real, .imag or abs()")
            return self.apply(where, cast, value, kind.dtype, kind.weak)
        assert not isinstance(kind, ir.TupleType)
        return value if value.type == kind else ir.Slice(value.loc, kind, value, (ir.WHOLE,) * kind.ndim)

    def from_python(self, node: ast.AST, value: Any) -> Any:
        """A Python object as a value of the language."""
        if isinstance(value, np.bool_):
            value = bool(value)
        elif isinstance(value, enum.Enum) and isinstance(value, (int, float)):
            value = value.value
        if type(value) in PYTHON_KIND or isinstance(value, np.generic):
            return self.apply(node, constant, self.loc(node), value)
        if type(value) is tuple:
            return tuple(self.from_python(node, item) for item in value)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            items = tuple(self.from_python(node, item) for item in value)
            return Aggregate(type(value), tuple(value._fields), items)  # pyright: ignore
        return ir.Static(value)

    # ---- variables

    def set_type(self, where: ast.AST, name: str, new: ir.Type) -> ir.Type:
        """Join `new` into the variable's type."""
        old = self.types.get(name)
        try:
            declared = self.declared.get(name)
            if declared is not None and not isinstance(new, ir.ScalarType):
                join_types(declared, new)
            joined = declared or (new if old is None else join_types(old, new))
        except TypeError as error:
            what = "this function" if name == "return" else repr(name)
            verb = "returns" if name == "return" else "is"
            detail = f": {error}" if isinstance(new, ir.ScalarType) and isinstance(old, ir.ScalarType) else ""
            if isinstance(new, ir.TileType) and str(old) == str(new):
                self.fail(where, f"{name!r} is {with_article(old)} in two loops over tiles", "use another name")
            what = f"{what} {verb} {with_article(old)} and here {with_article(new)}{detail}"
            self.fail(where, what, "use another name")
        if joined != old:
            self.types[name] = joined
            if old is not None:  # nothing was inferred from a variable before its first assignment
                self.changed = True
        return joined
