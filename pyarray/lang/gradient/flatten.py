"""A kernel as one body of simple statements, which is what reverse mode works on.

Called functions are part of the body, each operation on floats assigns a variable, what is evaluated under a condition
stands in an `if`, and `continue` and `break` are flags: a loop that may be left ends with `if flag: break`. Integer and
bool expressions without an access stay as they are. Prints and assertions are left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from ...dtypes import DType
from .. import ir
from ..loop_exits import ReturnLowering, has_return, set_flag
from ..parallel_reductions import uncast
from ..promotion import cast
from ..summaries import assigned_in
from .exits import expand_returns, has_exit, lower_exits


@dataclass(frozen=True, slots=True)
class Accumulate(ir.Node):
    """`name += value`, or `-=`: the variable's gradient is the value's, up to the sign."""

    name: str
    value: ir.Expr
    negative: bool = False


@dataclass(frozen=True, slots=True)
class Reduce(ir.Node):
    """A parallel loop's reduction of the variable by another operator than addition, from these values."""

    name: str
    op: str
    values: tuple[ir.Expr, ...]


_PLAIN = (
    ir.Const, ir.Local, ir.Unary, ir.Binary, ir.Compare, ir.Logic, ir.Select, ir.Cast, ir.Builtin, ir.Size, ir.Stride,
)  # fmt: skip


def is_plain(e: ir.Expr) -> bool:
    """Whether it is an integer or a bool computed without accesses, effects and floats."""
    stack: list[Any] = [e]
    while stack:
        n = stack.pop()
        if not isinstance(n, _PLAIN) or not isinstance(n.type, ir.ScalarType) or n.type.dtype.kind not in "biu":
            return False
        if isinstance(n, (ir.Size, ir.Stride)):
            if not isinstance(n.array, ir.Local):
                return False
            continue
        stack += ir.children(n)
    return True


class Flattener:
    """`types` are those of all variables of the result, `temporary` are variables that are assigned once, and read in
    the same block alone."""

    def __init__(self, tree: ir.Tree, fail: Any):
        self.functions, self.fail = {f.symbol: f for f in tree.functions}, fail
        kernel = tree.kernel
        self.types: dict[str, Any] = dict((*kernel.params, *kernel.variables))
        self.temporary: set[str] = set()
        self.out: list[Any] = []
        self.names: dict[str, Any] = {}  # of the function: variable → what stands for it
        self.reductions: Mapping[str, str] = {}
        self.count = 0
        for name, kind in kernel.variables:
            if isinstance(kind, ir.TupleType):
                self.declare(name, kind)
        self.body = self.block(kernel.body)

    def refuse(self, loc: ir.Loc, what: str, instead: str = "") -> NoReturn:
        self.fail(loc, what, instead)
        raise AssertionError(what)

    # ---- variables

    def variable(self, kind: Any) -> str:
        self.count += 1
        name = f".f{self.count}"
        self.types[name] = kind
        return name

    def declare(self, name: str, kind: Any) -> None:
        """Makes the variables that stand for one of the function's; of several values one each."""
        if isinstance(kind, ir.TupleType):
            self.names[name] = tuple(self.variable(item) for item in kind.items)
        else:
            self.names[name] = ir.Local(None, kind, self.variable(kind))  # type: ignore[arg-type]

    def target(self, name: str) -> str:
        found = self.names.get(name)
        return name if found is None else found.name

    def targets(self, name: str) -> tuple[str, ...]:
        """The variables that stand for one of the function's, which may be several values."""
        found = self.names.get(name)
        return found if isinstance(found, tuple) else (self.target(name),)

    def local(self, e: ir.Local) -> Any:
        found = self.names.get(e.name)
        if isinstance(found, tuple):
            return ir.Pack(e.loc, e.type, tuple(ir.Local(e.loc, self.types[n], n) for n in found))
        return e if found is None else replace(found, loc=e.loc)

    # ---- expressions

    def renamed(self, e: Any) -> Any:
        return ir.rewrite(e, lambda n: self.local(n) if isinstance(n, ir.Local) else n)

    def atom(self, e: Any) -> Any:
        """The value in a variable, or a constant."""
        v = self.value(e)
        if isinstance(v, (ir.Local, ir.Const, ir.Pack)):
            return v
        name = self.variable(v.type)
        self.temporary.add(name)
        self.out.append(ir.Assign(e.loc, name, v))
        return ir.Local(e.loc, v.type, name)

    def plain(self, e: Any) -> Any:
        return self.renamed(e) if is_plain(e) else self.atom(e)

    def atoms(self, operands: tuple[Any, ...]) -> tuple[Any, ...]:
        """Operands in order; a variable that a later one assigns is copied."""
        result = []
        for k, e in enumerate(operands):
            v = self.plain(e)
            assigned = assigned_in(*operands[k + 1 :])
            later = {t for n in assigned if n in self.types or n in self.names for t in self.targets(n)}
            if later and any(isinstance(n, ir.Local) and n.name in later for n in ir.walk(v)):
                name = self.variable(v.type)
                self.out.append(ir.Assign(e.loc, name, v))
                v = ir.Local(e.loc, v.type, name)
            result.append(v)
        return tuple(result)

    def value(self, e: Any) -> Any:
        if isinstance(e, ir.Local):
            return self.local(e)
        if isinstance(e, ir.Const):
            return e
        if is_plain(e):
            return self.renamed(e)
        if isinstance(e, (ir.Unary, ir.Cast, ir.Convert)):
            return replace(e, a=self.atoms((e.a,))[0])
        if isinstance(e, (ir.Binary, ir.Compare)):
            a, b = self.atoms((e.a, e.b))
            return replace(e, a=a, b=b)
        if isinstance(e, ir.Builtin):
            return replace(e, args=self.atoms(e.args))
        if isinstance(e, (ir.Load, ir.Element)):
            array, *index = self.atoms((e.array, *e.index))
            return replace(e, array=array, index=tuple(index))
        if isinstance(e, ir.Let):
            self.assign(e.loc, e.name, e.value)
            return self.value(e.body)
        if isinstance(e, (ir.Logic, ir.Select)):
            return self.conditional(e)
        if isinstance(e, ir.Invoke):
            return self.inlined(e)
        return self.composed(e)

    def composed(self, e: Any) -> Any:
        if isinstance(e, ir.Atomic):
            values = (e.value,) if e.desired is None else (e.value, e.desired)
            array, value, *rest = self.atoms((e.array, *values, *e.index))
            desired = None if e.desired is None else rest.pop(0)
            return replace(e, array=array, index=tuple(rest), value=value, desired=desired)
        if isinstance(e, (ir.Size, ir.Stride)):
            return replace(e, array=self.atom(e.array))
        if isinstance(e, ir.Slice):
            return replace(e, array=self.atom(e.array), parts=tuple(map(self.part, e.parts)))
        if isinstance(e, ir.SubView):
            array, offset, size = self.atoms((e.array, e.offset, e.size))
            return replace(e, array=array, offset=offset, size=size)
        if isinstance(e, ir.Reshape):
            array, *shape = self.atoms((e.array, *e.shape))
            return replace(e, array=array, shape=tuple(shape))
        if isinstance(e, (ir.Pack, ir.Build)):
            return replace(e, items=self.atoms(e.items))
        if isinstance(e, ir.Item):
            return self.value(e.pack).items[e.number]
        if isinstance(e, ir.Fill):
            return replace(e, value=self.atom(e.value))
        raise AssertionError(f"a {type(e).__name__} in a gradient")

    def part(self, part: Any) -> Any:
        if isinstance(part, ir.Range):
            bounds = (None if x is None else self.plain(x) for x in (part.start, part.stop, part.step))
            return ir.Range(*bounds)
        return self.plain(part)

    def conditional(self, e: Any) -> Any:
        """A value of which a part is evaluated under a condition."""
        name = self.variable(e.type)
        result = ir.Local(e.loc, e.type, name)
        if isinstance(e, ir.Logic):
            self.out.append(ir.Assign(e.loc, name, self.value(e.a)))
            test: Any = result if e.op == "and" else ir.Unary(e.loc, ir.BOOL, "invert", result)
            first, second = self.inside(lambda: self.set(e.loc, name, e.b)), []
        else:
            test = self.atom(e.condition)
            first = self.inside(lambda: self.set(e.loc, name, e.a))
            second = self.inside(lambda: self.set(e.loc, name, e.b))
        self.out.append(ir.If(e.loc, test, tuple(first), tuple(second)))
        return result

    def set(self, loc: ir.Loc, name: str, e: Any) -> None:
        self.out.append(ir.Assign(loc, name, self.value(e)))

    def inside(self, make: Any) -> list[Any]:
        """The statements that `make` writes."""
        outer, self.out = self.out, []
        make()
        made, self.out = self.out, outer
        return made

    # ---- calls

    def inlined(self, e: ir.Invoke) -> Any:
        function, args = self.functions[e.function], self.atoms(e.args)
        outer, names = self.names, dict[str, Any]()
        assigned = assigned_in(*function.body)
        self.names = names
        for name, kind in function.variables:
            self.declare(name, kind)
        for (name, kind), arg in zip(function.params, args, strict=True):
            if name not in assigned:
                names[name] = arg
                continue
            self.declare(name, kind)
            self.out.append(ir.Assign(e.loc, names[name].name, arg))
        body = function.body
        last = body[-1] if body and isinstance(body[-1], ir.Return) else None
        result: Any = None
        if not has_return(*body[: len(body) - (last is not None)]):
            self.statements(body[:-1] if last else body)
            if last is not None and last.value is not None:
                result = self.atom(last.value)
        else:
            result = self.returned(function, body)
        self.names = outer
        return result

    def returned(self, function: ir.Function, body: tuple[Any, ...]) -> Any:
        """The value of a function that returns in several places: a variable, and a flag."""
        kind = function.result
        if kind is not None:
            self.declare(".result", kind)
            self.clear(function.loc, self.names[".result"])
        self.declare(".returned", ir.BOOL)
        lowered = ReturnLowering(".returned").block(expand_returns(body, ".result"))
        self.statement(set_flag(function.loc, ".returned", False))
        self.statements(lowered)
        return None if kind is None else self.local(ir.Local(function.loc, kind, ".result"))

    def clear(self, loc: ir.Loc, target: Any) -> None:
        """Sets what a call returns to 0: without it, a path that returns later would seem to read an earlier value."""
        for name in target if isinstance(target, tuple) else (target.name,):
            kind = self.types[name]
            if isinstance(kind, ir.ArrayType):
                continue
            number = ir.Const(loc, ir.ScalarType(kind.dtype), zero_of(kind.dtype))
            value = ir.Fill(loc, kind, number) if isinstance(kind, ir.LocalArrayType) else replace(number, type=kind)
            self.out.append(ir.Assign(loc, name, value))

    # ---- statements

    def block(self, statements: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(self.inside(lambda: self.statements(statements)))

    def statements(self, statements: tuple[Any, ...]) -> None:
        for s in statements:
            self.statement(s)

    def statement(self, s: Any) -> None:
        if isinstance(s, ir.Assign):
            self.assign(s.loc, s.name, s.value)
        elif isinstance(s, ir.Store):
            value, array, *index = self.atoms((s.value, s.array, *s.index))
            self.out.append(replace(s, value=value, array=array, index=tuple(index)))
        elif isinstance(s, ir.SetElement):
            value, *index = self.atoms((s.value, *s.index))
            self.out.append(replace(s, name=self.target(s.name), value=value, index=tuple(index)))
        elif isinstance(s, ir.If):
            self.branch(s)
        elif isinstance(s, (ir.For, ir.While)):
            self.loop(s)
        elif isinstance(s, ir.Evaluate) and not isinstance(s.value, (ir.Print, ir.Assert)):
            value = self.value(s.value)
            if isinstance(value, ir.Atomic):
                self.out.append(ir.Evaluate(s.loc, value))

    def assign(self, loc: ir.Loc, name: str, e: Any) -> None:
        op = self.reductions.get(name) if name not in self.names else None
        if op is not None and op != "add":
            others = [n for n in ir.children(uncast(e)) if not _is_variable(n, name)]
            self.out.append(Reduce(loc, name, op, self.atoms(tuple(others))))
            return
        target = self.names.get(name)
        if isinstance(target, tuple):
            for part, v in zip(target, self.value(e).items, strict=True):
                self.out.append(ir.Assign(loc, part, v))
            return
        added = _added(e, name, op is not None)
        kind = self.types[self.target(name)]
        if added is not None and isinstance(kind, ir.ScalarType) and kind.dtype.kind in "iuf":
            value, negative = added
            (v,) = self.atoms((cast(value, kind.dtype, kind.weak),))
            self.out.append(Accumulate(loc, self.target(name), v, negative))
            return
        value = self.value(e)
        self.out.append(ir.Assign(loc, self.target(name), value))

    def branch(self, s: ir.If) -> None:
        names = {n.name for n in s.then if isinstance(n, ir.Assign)} - self.names.keys()
        if any(self.reductions.get(n) == "record" for n in names):
            for n in s.then:
                if isinstance(n, ir.Assign) and self.reductions.get(n.name) == "record":
                    self.out.append(Reduce(n.loc, n.name, "record", self.atoms((n.value,))))
            return
        condition = self.value(s.condition)
        if not isinstance(condition, (ir.Local, ir.Const)):
            name = self.variable(ir.BOOL)
            self.temporary.add(name)
            self.out.append(ir.Assign(s.loc, name, condition))
            condition = ir.Local(s.loc, ir.BOOL, name)
        self.out.append(ir.If(s.loc, condition, self.block(s.then), self.block(s.orelse)))

    def loop(self, s: Any) -> None:
        body, left = s.body, None
        if isinstance(s, ir.While) or has_exit(body):
            self.count += 1
            skip, left = f".skip{self.count}", f".left{self.count}"
            self.declare(skip, ir.BOOL)
            self.declare(left, ir.BOOL)
            body = lower_exits(body, skip, left)
            if isinstance(s, ir.While):
                body = (ir.If(s.loc, s.condition, body, (set_flag(s.loc, left, True),)),)
            body = (set_flag(s.loc, skip, False), *body)
        if isinstance(s, ir.While):
            self.leaving(s, body, left)
            return
        ranges = tuple(map(self.part, s.ranges))
        variables = tuple(map(self.target, s.variables))
        if s.loop is not None:
            self.reductions = dict(s.reductions)
            made = replace(s, variables=variables, ranges=ranges, body=self.block(body))
            self.reductions = {}
            self.out.append(made)
            return
        self.nested(s, list(zip(variables, ranges, strict=True)), body, left)

    def leaving(self, s: ir.While, body: tuple[Any, ...], left: Any) -> None:
        self.statement(set_flag(s.loc, left, False))
        made = self.block(body)
        flag = self.local(ir.Local(s.loc, ir.BOOL, left))
        end = ir.If(s.loc, flag, (ir.Break(s.loc),), ())
        self.out.append(ir.While(s.loc, ir.Const(s.loc, ir.BOOL, True), (*made, end)))

    def nested(self, s: ir.For, axes: list[tuple[str, ir.Range]], body: tuple[Any, ...], left: Any) -> None:
        """A loop over several variables as loops in each other."""
        (variable, range_), *rest = axes
        if left is not None:
            self.statement(set_flag(s.loc, left, False))
        made = self.block(body) if not rest else tuple(self.inside(lambda: self.nested(s, rest, body, left)))
        if left is not None:
            flag = self.local(ir.Local(s.loc, ir.BOOL, left))
            made = (*made, ir.If(s.loc, flag, (ir.Break(s.loc),), ()))
        self.out.append(ir.For(s.loc, (variable,), (range_,), made))


def zero_of(dtype: DType) -> Any:
    """0 as a constant of the dtype."""
    return {"b": False, "f": 0.0, "c": 0j}.get(dtype.kind, 0)


def _is_variable(e: Any, name: str) -> bool:
    e = uncast(e)
    return isinstance(e, ir.Local) and e.name == name


def _added(e: Any, name: str, through_casts: bool) -> tuple[ir.Expr, bool] | None:
    """What is added to the variable, and whether its negative is; None where the value isn't such a sum."""
    e = uncast(e) if through_casts else e
    if not isinstance(e, ir.Binary) or e.op not in ("add", "sub"):
        return None
    a, b = (uncast(x) if through_casts else x for x in (e.a, e.b))
    mine = [isinstance(x, ir.Local) and x.name == name for x in (a, b)]
    reads = sum(isinstance(n, ir.Local) and n.name == name for n in ir.walk(e))
    if reads != 1 or not any(mine) or (e.op == "sub" and mine[1]) or name in assigned_in(e):
        return None
    return (e.b, e.op == "sub") if mine[0] else (e.a, False)


def ends_with_break(body: tuple[Any, ...]) -> bool:
    """Whether a loop of the result may be left: by its last statement."""
    return bool(body) and isinstance(body[-1], ir.If) and any(isinstance(x, ir.Break) for x in body[-1].then)
