"""`FunctionSource` + parameter types → typed `Tree`: statements.

Types flow from the parameters through the assignments; a variable's type is the join of its assignments, found by inferring the
body again until nothing changes. It leaves to others: what is in range (`check`), who writes what (`directions`), text (`emit`).
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from ..dtypes import asdtype
from .infer_expr import Expressions, Static
from .ir import (
    INDEX,
    Assign,
    Binary,
    Break,
    Builtin,
    Cast,
    Const,
    Continue,
    Evaluate,
    Expr,
    For,
    Function,
    If,
    Invoke,
    Local,
    Range,
    Return,
    ScalarType,
    Size,
    Stmt,
    Store,
    Tree,
    Type,
    While,
    walk,
)
from .parse import FunctionSource
from .scalar import cast, join

_EFFECTS = ("Atomic", "Invoke")


def infer(source: FunctionSource, params: Sequence[tuple[str, Any]], wraparound: bool = False) -> Tree:
    """Typed tree of the kernel for these parameters: (name, type), or (name, `Static`) for a compile-time constant.

    Raises `CompileError` with the place in the source.
    """
    program = Program(wraparound)
    kernel = program.function(source, tuple(params), is_kernel=True)
    return Tree(kernel, _reachable(kernel, tuple(program.done.values())))


def _reachable(kernel: Function, functions: tuple[Function, ...]) -> tuple[Function, ...]:
    """What the kernel calls, callees first; earlier passes may have made instances for types that were then widened."""
    needed: set[str] = set()
    for function in (kernel, *reversed(functions)):
        if function is kernel or function.symbol in needed:
            needed |= {n.function for s in function.body for n in walk(s) if isinstance(n, Invoke)}
    return tuple(f for f in functions if f.symbol in needed)


class Program:
    """The functions met so far: one instance per function and argument types."""

    def __init__(self, wraparound: bool):
        self.wraparound = wraparound
        self.done: dict[Any, Function] = {}
        self.active: list[FunctionSource] = []
        self.symbols: set[str] = set()

    def function(
        self, source: FunctionSource, params: tuple[tuple[str, Any], ...], is_kernel: bool = False
    ) -> Function:
        key = (source, tuple((name, p.key() if isinstance(p, Static) else p) for name, p in params))
        if key in self.done:
            return self.done[key]
        self.active.append(source)
        symbol = base = source.name if source.name.isidentifier() else "function"
        while symbol in self.symbols:
            symbol = f"{base}_{len(self.symbols)}"
        self.symbols.add(symbol)
        types: dict[str, Type] = {}
        while True:
            body = FunctionBody(self, source, dict(params), types, is_kernel)
            statements = body.run()
            if not body.changed:
                break
        self.active.pop()
        live = tuple((n, p) for n, p in params if not isinstance(p, Static))
        variables = tuple((n, t) for n, t in types.items() if n not in dict(live) and n != "return")
        made = Function(
            source.name, symbol, source.loc(source.node), live, variables, statements, types.get("return")
        )
        if not is_kernel:
            self.done[key] = made
        return made


class FunctionBody(Expressions):
    """One pass over one function. `types` lives on between passes; `changed` says that another is needed."""

    def __init__(
        self,
        program: Program,
        source: FunctionSource,
        params: dict[str, Any],
        types: dict[str, Type],
        is_kernel: bool,
    ):
        super().__init__(program, source, params, types)
        self.is_kernel = is_kernel
        self.changed = False
        self.loops = 0
        self.depth = 0
        self.parallel: set[str] | None = None  # names assigned before the parallel loop we are in
        self.pending: list[Stmt] = []  # temporaries that the statement at hand needs before it

    def run(self) -> tuple[Stmt, ...]:
        node = self.source.node
        if isinstance(node, ast.Lambda):
            value = self.value(node.body)
            return (self.returned(node.body, value),)
        return self.block(node.body, top=True)

    def block(self, statements: list[ast.stmt], top: bool = False) -> tuple[Stmt, ...]:
        result: list[Stmt] = []
        for statement in statements:
            handler = getattr(self, f"do_{type(statement).__name__}")
            made = handler(statement, top) if isinstance(statement, ast.For) else handler(statement)
            result += self.pending
            self.pending = []
            result += made
        return tuple(result)

    # ---- assignment

    def set_type(self, where: ast.AST, name: str, new: Type) -> Type:
        """Join `new` into the variable's type."""
        old = self.types.get(name)
        if old is None or old == new:
            joined: Type = new
        elif isinstance(old, ScalarType) and isinstance(new, ScalarType):
            joined = self.typed(where, join, old, new)
        else:
            self.source.fail(where, f"{name!r} is a {old} and can't become a {new}", "use another name")
        if joined != old:
            self.types[name] = joined
            self.changed = True
        return joined

    def bind(self, where: ast.AST, name: str, value: Any) -> list[Stmt]:
        if isinstance(value, (Static, tuple)):
            self.source.fail(
                where,
                f"{name!r} can't hold {self.describe(value)}",
                "variables are numbers and views of arrays",
            )
        if self.parallel is not None and name in self.parallel:
            self.source.fail(
                where,
                f"{name!r} is assigned before the parallel loop and again in it: its iterations run at the same time",
                f"use another name inside the loop, or collect with pa.atomic_add(array, index, value) instead of {name!r}",
            )
        if name in self.params and not isinstance(self.params[name], ScalarType):
            self.source.fail(
                where,
                f"{name!r} is a parameter ({self.describe(self.params[name])}) and can't be assigned",
                "use another name",
            )
        if value.type is None:
            self.source.fail(where, "this call returns nothing that could be assigned")
        kind = self.set_type(where, name, value.type)
        self.assigned.add(name)
        if isinstance(kind, ScalarType):
            value = cast(value, kind.dtype, kind.weak)
        return [Assign(self.loc(where), name, value)]

    def assign(self, target: ast.expr, value: Any) -> list[Stmt]:
        if isinstance(target, ast.Name):
            return self.bind(target, target.id, value)
        if isinstance(target, ast.Subscript):
            return [self.store(target, value)]
        if isinstance(target, ast.Tuple):
            return self.assign_tuple(target, value)
        self.source.fail(target, "this can't be assigned", "assign to a name or to an element: v[i] = x")

    def assign_tuple(self, target: ast.Tuple, value: Any) -> list[Stmt]:
        """All right-hand sides are evaluated before the first name is set."""
        if not isinstance(value, tuple) or len(value) != len(target.elts):
            have = f"{len(value)} values" if isinstance(value, tuple) else self.describe(value)
            self.source.fail(target, f"{len(target.elts)} names can't be assigned from {have}")
        result: list[Stmt] = []
        held = [
            self.held(target, self.number(target, item) if not self.is_array(item) else item, result)
            for item in value
        ]
        for element, item in zip(target.elts, held, strict=True):
            result += self.assign(element, item)
        return result

    def held(self, where: ast.AST, value: Expr, into: list[Stmt]) -> Expr:
        """`value`, by way of a temporary unless it is a constant."""
        if isinstance(value, Const):
            return value
        name = f"tmp{self.temporaries}"
        self.temporaries += 1
        self.set_type(where, name, value.type)
        self.assigned.add(name)
        into.append(Assign(self.loc(where), name, value))
        return Local(self.loc(where), value.type, name)

    def store(self, target: ast.Subscript, value: Any) -> Stmt:
        array = self.array(target.value)
        parts = self.index_parts(target, array)
        if any(isinstance(p, Range) for p in parts):
            self.source.fail(
                target, "a slice can't be assigned as a whole", "write a for loop over its elements"
            )
        return self.store_element(target, array, parts, self.number(target, value))

    def store_element(self, where: ast.AST, array: Expr, index: tuple[Any, ...], value: Expr) -> Stmt:
        dtype = array.type.dtype
        if value.type.dtype.kind == "c" and dtype.kind != "c":
            self.source.fail(
                where,
                f"a {value.type} can't be stored in an array of {dtype}",
                "store its .real, .imag or abs()",
            )
        return Store(self.loc(where), array, index, cast(value, dtype))

    def do_Assign(self, node: ast.Assign) -> list[Stmt]:
        value = self.value(node.value)
        result: list[Stmt] = []
        if len(node.targets) > 1:
            value = self.held(node, value, result)
        for target in node.targets:
            result += self.assign(target, value)
        return result

    def do_AnnAssign(self, node: ast.AnnAssign) -> list[Stmt]:
        if node.value is None:
            self.source.fail(node, "a declaration needs a value", "write x: pa.float32 = 0")
        declared = self.value(node.annotation)
        try:
            dtype = asdtype(declared.value)
        except (TypeError, AttributeError):
            self.source.fail(
                node.annotation, "the annotation of a variable is an element type", "write x: pa.float32 = 0"
            )
        return self.assign(node.target, cast(self.number(node, self.value(node.value)), dtype))

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
        array = self.array(node.target.value)
        result: list[Stmt] = []
        parts = self.index_parts(node.target, array)
        if any(isinstance(p, Range) for p in parts):
            self.source.fail(
                node.target, "a slice can't be assigned as a whole", "write a for loop over its elements"
            )
        if any(type(n).__name__ in _EFFECTS for p in parts for n in walk(p)):
            parts = tuple(self.held(node, p, result) for p in parts)
        old = self.element(node.target, array, parts)
        value = self.number(node, self.operate(node, node.op, old, self.value(node.value)))
        return [*result, self.store_element(node, array, parts, value)]

    # ---- control flow

    def do_If(self, node: ast.If) -> list[Stmt]:
        condition = self.truth(node.test, self.value(node.test))
        if isinstance(condition, Const):  # what isn't compiled needn't fit: the way to write variants
            return list(self.block(node.body if condition.value else node.orelse))
        before, self.pending = self.pending, []
        entry = set(self.assigned)
        then = self.block(node.body)
        after_then, self.assigned = self.assigned, set(entry)
        orelse = self.block(node.orelse)
        if orelse and self.leaves(orelse):
            self.assigned = after_then
        elif not self.leaves(then):
            self.assigned &= after_then
        self.pending = before
        return [If(self.loc(node), condition, then, orelse)]

    @staticmethod
    def leaves(block: tuple[Stmt, ...]) -> bool:
        return bool(block) and isinstance(block[-1], (Return, Break, Continue))

    def do_While(self, node: ast.While) -> list[Stmt]:
        condition = self.truth(node.test, self.value(node.test))
        entry = set(self.assigned)
        self.depth += 1
        body = self.block(node.body)
        self.depth -= 1
        self.assigned = entry
        return [While(self.loc(node), condition, body)]

    def do_For(self, node: ast.For, top: bool) -> list[Stmt]:
        ranges, array, unordered = self.iteration(node.iter)
        parallel = top and self.is_kernel and self.depth == 0
        names = self.loop_names(node, len(ranges), array)
        entry = set(self.assigned)
        if parallel:
            self.parallel, number = entry | set(self.params), self.loops
            self.loops += 1
        for name in names:
            self.bind_index(node, name)
        prefix: list[Stmt] = []
        if array is not None:
            index = Local(self.loc(node.target), INDEX, names[0])
            prefix = self.assign(node.target, self.element(node.target, array, (index,)))
        before, self.pending = self.pending, []
        self.depth += 1
        body = (*prefix, *self.block(node.body))
        self.depth -= 1
        self.pending = before
        self.assigned = entry
        if parallel:
            self.parallel = None
        if len(ranges) > 1 and any(isinstance(n, Break) for s in body for n in walk(s)) and self.breaks(body):
            self.source.fail(
                node,
                "'break' in a loop over ndrange is not part of the kernel language",
                "write nested for loops",
            )
        reductions = self.reductions(node, body, entry) if unordered else ()
        return [For(self.loc(node), tuple(names), ranges, body, number if parallel else None, reductions)]

    def bind_index(self, node: ast.For, name: str) -> None:
        if name in self.assigned:
            self.source.fail(
                node.target,
                f"{name!r} already has a value here, which the loop would overwrite",
                "use another name",
            )
        self.set_type(node.target, name, INDEX)
        self.assigned.add(name)

    def loop_names(self, node: ast.For, count: int, array: Expr | None) -> list[str]:
        if array is not None:
            self.temporaries += 1
            return [f"at{self.temporaries - 1}"]
        targets = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
        if len(targets) != count or not all(isinstance(t, ast.Name) for t in targets):
            self.source.fail(node.target, f"this loop needs {count} name{'s' * (count > 1)}")
        return [t.id for t in targets if isinstance(t, ast.Name)]

    @staticmethod
    def breaks(body: tuple[Stmt, ...]) -> bool:
        """Whether a `break` leaves this very loop."""
        for statement in body:
            if isinstance(statement, Break):
                return True
            if isinstance(statement, If) and (
                FunctionBody.breaks(statement.then) or FunctionBody.breaks(statement.orelse)
            ):
                return True
        return False

    def do_Break(self, node: ast.Break) -> list[Stmt]:
        if self.parallel is not None and self.depth == 1:
            self.source.fail(
                node,
                "'break' can't leave a parallel loop: its iterations run at the same time",
                "skip with continue",
            )
        return [Break(self.loc(node))]

    def do_Continue(self, node: ast.Continue) -> list[Stmt]:
        return [Continue(self.loc(node))]

    def do_Pass(self, node: ast.Pass) -> list[Stmt]:
        return []

    def do_Expr(self, node: ast.Expr) -> list[Stmt]:
        if isinstance(node.value, ast.Constant):  # a docstring
            return []
        value = self.value(node.value)
        if type(value).__name__ not in _EFFECTS:
            self.source.fail(node, "this statement has no effect")
        return [Evaluate(self.loc(node), value)]

    def do_Return(self, node: ast.Return) -> list[Stmt]:
        if self.is_kernel:
            self.source.fail(
                node,
                "a kernel returns nothing",
                "store results into an array parameter; skip an iteration with continue",
            )
        return [self.returned(node, self.value(node.value) if node.value is not None else None)]

    def returned(self, node: ast.AST, value: Any) -> Stmt:
        if value is None:
            return Return(self.loc(node), None)
        if not self.is_array(value):
            value = self.number(node, value)
        kind = self.set_type(node, "return", value.type)
        if isinstance(kind, ScalarType):
            value = cast(value, kind.dtype, kind.weak)
        return Return(self.loc(node), value)

    def reductions(
        self, node: ast.For, body: tuple[Stmt, ...], outer: set[str]
    ) -> tuple[tuple[str, str], ...]:
        """Variables of an unordered loop that carry a value from one iteration to the next, with the operator that combines them."""
        found: dict[str, str] = {}
        for statement in body:
            if not isinstance(statement, Assign) or statement.name not in outer:
                continue
            value = statement.value.a if isinstance(statement.value, Cast) else statement.value
            operands = (
                (value.a, value.b)
                if isinstance(value, Binary)
                else value.args
                if isinstance(value, Builtin)
                else ()
            )
            op = getattr(value, "op", getattr(value, "name", ""))
            own = [n for s in body for n in walk(s) if isinstance(n, Local) and n.name == statement.name]
            first = operands[0] if operands else None
            if (
                op not in ("add", "mul", "and", "or", "xor", "min", "max")
                or len(own) != 1
                or own[0] is not first
            ):
                self.source.fail(
                    node,
                    f"{statement.name!r} is not a plain reduction, so the loop's order matters",
                    "use range alone",
                )
            found[statement.name] = op
        return tuple(found.items())

    # ---- what a loop runs over

    def iteration(self, node: ast.expr) -> tuple[tuple[Range, ...], Expr | None, bool]:
        """Ranges of a loop; the array of `for x in v`; whether the order is free."""
        if isinstance(node, ast.Call):
            callee = self.value(node.func)
            name = getattr(callee.value, "__name__", "") if isinstance(callee, Static) else ""
            marked = (
                getattr(callee.value, "__pyarray_builtin__", None) if isinstance(callee, Static) else None
            )
            if marked == "unordered":
                ranges, array, _ = self.iteration(node.args[0])
                return ranges, array, True
            if marked == "ndrange":
                return self.nd_ranges(node), None, False
            if isinstance(callee, Static) and callee.value is range and name == "range":
                return (self.range_of(node, node.args),), None, False
        elif self.is_array(value := self.value(node)):
            if value.type.ndim != 1:
                self.source.fail(
                    node,
                    f"a loop over a {value.type} is not part of the kernel language",
                    "loop over range(a.shape[0])",
                )
            loc = self.loc(node)
            return (Range(None, Size(loc, INDEX, value, 0), None),), value, False
        self.source.fail(node, "a loop runs over range(...), pa.ndrange(...) or a 1-D array")

    def range_of(self, node: ast.AST, args: list[ast.expr]) -> Range:
        values = [self.integer(a, self.value(a), "a range bound") for a in args]
        if len(values) not in (1, 2, 3):
            self.source.fail(node, f"range() takes 1 to 3 arguments, got {len(values)}")
        start, stop, step = (
            (None, values[0], None)
            if len(values) == 1
            else (values[0], values[1], values[2] if len(values) == 3 else None)
        )
        if isinstance(step, Const) and step.value == 0:
            self.source.fail(node, "the step of range() must not be 0")
        return Range(start, stop, step)

    def nd_ranges(self, node: ast.Call) -> tuple[Range, ...]:
        values: list[Any] = []
        for argument in node.args:
            value = self.value(argument)
            values += value if isinstance(value, tuple) else (value,)
        if not values:
            self.source.fail(
                node, "ndrange() takes one size per loop variable", "write pa.ndrange(a.shape[0], a.shape[1])"
            )
        return tuple(Range(None, self.integer(node, v, "a size of ndrange"), None) for v in values)
