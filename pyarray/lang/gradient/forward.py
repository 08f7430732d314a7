"""The forward pass, written as often as the reverse pass needs its values: each time with variables of its own, which
are assigned once, so that they still hold their values when the reverse pass reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .. import ir
from ..infer_access import reshaped_type, slice_type
from ..promotion import binary, call, cast, constant
from .analysis import Analysis, operands
from .flatten import Accumulate, Reduce, ends_with_break, zero_of

MAX_SAVED = 16384  # bytes of a thread for values of iterations


@dataclass
class Env:
    """What stands for variables at a place of the pass: `values`, and of views `gradients`, views of the gradients."""

    values: dict[str, Any] = field(default_factory=dict)
    gradients: dict[str, Any] = field(default_factory=dict)

    def copy(self) -> Env:
        return Env(dict(self.values), dict(self.gradients))


@dataclass(frozen=True)
class Done:
    """A statement of the forward pass: with the values of what it reads, and of what it assigns."""

    statement: Any
    values: Mapping[str, Any]
    gradients: Mapping[str, Any]
    result: Any = None


@dataclass(frozen=True)
class DoneIf:
    condition: Any
    then: tuple[Any, ...]
    orelse: tuple[Any, ...]
    loc: ir.Loc


@dataclass(frozen=True)
class DoneLoop:
    """`entry`: values before the loop. `count`: of its iterations. `saved`: variable → the array of its values at the
    beginnings of iterations."""

    statement: Any
    entry: Env
    count: Any
    saved: Mapping[str, Any]
    steps: Mapping[str, Any]
    is_parallel: bool = False


Records = list[Any]


class Forward:
    """`kinds`: types of the variables of the result. `unsaved`: variables whose values aren't known, with the error of
    a pass that needs one. `loads`: variable → phase and load that it was assigned by."""

    def __init__(self, analysis: Analysis, types: Mapping[str, Any], temporary: set[str]):
        self.analysis, self.types, self.temporary = analysis, types, temporary
        self.kinds: dict[str, Any] = {}
        self.unsaved: dict[str, tuple[ir.Loc, str, str]] = {}
        self.loads: dict[str, tuple[int, ir.Load]] = {}
        self.saves: dict[str, ir.Loc] = {}
        self.reduced: dict[str, ir.Local] = {}  # by the parallel loop around: one variable for all of the loop
        self.phase = 0

    # ---- variables

    def variable(self, kind: Any) -> str:
        name = f".v{len(self.kinds)}"
        self.kinds[name] = kind
        return name

    def local(self, loc: ir.Loc, kind: Any) -> ir.Local:
        return ir.Local(loc, kind, self.variable(kind))

    def value_of(self, env: Env, node: ir.Local) -> Any:
        found = env.values.get(node.name)
        if found is not None:
            return replace(found, loc=node.loc)
        if node.name in self.analysis.params and self.analysis.params[node.name] == node.type:
            return node
        if isinstance(node.type, ir.ScalarType):
            return zero(node.loc, node.type)  # not assigned on this path, and so not read
        if isinstance(node.type, ir.LocalArrayType):
            env.values[node.name] = made = self.local(node.loc, node.type)
            return made
        raise AssertionError(f"{node.name} has no value")

    def with_values(self, e: Any, env: Env) -> Any:
        return ir.rewrite(e, lambda n: self.value_of(env, n) if isinstance(n, ir.Local) else n)

    # ---- statements

    def block(self, body: tuple[Any, ...], env: Env) -> tuple[list[Any], Records]:
        out: list[Any] = []
        records: Records = []
        for s in body:
            if isinstance(s, ir.If):
                self.branch(s, env, out, records)
            elif isinstance(s, ir.For) and s.loop is not None:
                self.parallel(s, env, out, records)
            elif isinstance(s, (ir.For, ir.While)):
                self.loop(s, env, out, records)
            else:
                self.simple(s, env, out, records)
        return out, records

    def simple(self, s: Any, env: Env, out: list[Any], records: Records) -> None:
        values = {n: self.value_of(env, ir.Local(s.loc, self.types[n], n)) for n in operands(s)}
        gradients = {n: env.gradients[n] for n in operands(s) if n in env.gradients}
        result = None
        if isinstance(s, ir.Assign):
            result = self.assign(s, env, out)
        elif isinstance(s, Accumulate):
            kind = self.types[s.name]
            old = self.value_of(env, ir.Local(s.loc, kind, s.name))
            value = ir.Binary(s.loc, kind, "sub" if s.negative else "add", old, self.with_values(s.value, env))
            if s.name in self.reduced:
                out.append(ir.Assign(s.loc, old.name, value))
            else:
                result = self.assigned(s.loc, s.name, value, env, out)
        elif isinstance(s, ir.SetElement):
            storage = self.value_of(env, ir.Local(s.loc, self.types[s.name], s.name))
            index = tuple(self.with_values(i, env) for i in s.index)
            out.append(replace(s, name=storage.name, index=index, value=self.with_values(s.value, env)))
        records.append(Done(s, values, gradients, result))

    def assigned(self, loc: ir.Loc, name: str, value: Any, env: Env, out: list[Any]) -> ir.Local:
        made = self.local(loc, self.types[name])
        out.append(ir.Assign(loc, made.name, value))
        env.values[name] = made
        return made

    def assign(self, s: ir.Assign, env: Env, out: list[Any]) -> ir.Local:
        value, kind = self.with_values(s.value, env), self.types[s.name]
        if isinstance(kind, ir.LocalArrayType):
            storage = self.value_of(env, ir.Local(s.loc, kind, s.name))
            out.append(ir.Assign(s.loc, storage.name, value))
            return storage
        made = self.assigned(s.loc, s.name, value, env, out)
        if isinstance(kind, ir.ArrayType):
            self.view_of_gradient(s, env, out)
        elif isinstance(s.value, ir.Load):
            self.loads[made.name] = self.phase, s.value
        elif isinstance(s.value, ir.Atomic):
            what = "the gradient needs the value that an atomic found, and a second run finds another"
            self.unsaved[made.name] = s.loc, what, "store it into an array in a kernel before, and read it here"
        return made

    def view_of_gradient(self, s: ir.Assign, env: Env, out: list[Any]) -> None:
        """The same view of the gradient's array."""
        env.gradients.pop(s.name, None)
        e: Any = s.value
        source = e if isinstance(e, ir.Local) else e.array
        array = self.gradient_of(source, env.gradients)
        if array is None:
            return
        if isinstance(e, ir.Slice) and e.transposed:
            kind: Any = ir.ArrayType(array.type.dtype, e.type.ndim, True, (), array.type.reshape_of)
        elif isinstance(e, ir.Slice):
            kind = slice_type(array.type, e.parts)
        elif isinstance(e, ir.SubView):
            kind = replace(array.type, sizes=())
        elif isinstance(e, ir.Reshape):
            kind = reshaped_type(array.type, len(e.shape))
        else:
            kind = array.type
        made = self.local(s.loc, kind)
        value = array if isinstance(e, ir.Local) else replace(self.with_values(e, env), type=kind, array=array)
        out.append(ir.Assign(s.loc, made.name, value))
        env.gradients[s.name] = made

    def gradient_of(self, array: ir.Local, gradients: Mapping[str, Any]) -> Any:
        """The gradient of an array variable; None where it has none. Refuses one that isn't known."""
        if array.name in gradients:
            return gradients[array.name]
        if array.name in self.analysis.params:
            name = self.analysis.gradients.get(array.name)
            return None if name is None else ir.Local(array.loc, self.kinds[name], name)
        if not self.analysis.has_gradient(array):
            return None
        what = "which array this is a view of depends on a condition, and so does its gradient"
        return self.analysis.fail(array.loc, what, "index the arrays themselves, in an if")

    # ---- conditions

    def branch(self, s: ir.If, env: Env, out: list[Any], records: Records) -> None:
        condition = self.with_values(s.condition, env)
        names = self.kept_names((*s.then, *s.orelse))
        for n in names:
            if isinstance(self.types[n], ir.LocalArrayType):
                self.value_of(env, ir.Local(s.loc, self.types[n], n))
        envs = env.copy(), env.copy()
        then, then_records = self.block(s.then, envs[0])
        orelse, else_records = self.block(s.orelse, envs[1])
        for n in names:
            self.merge(s.loc, n, env, envs, (then, orelse))
        out.append(ir.If(s.loc, condition, tuple(then), tuple(orelse)))
        records.append(DoneIf(condition, tuple(then_records), tuple(else_records), s.loc))

    def merge(self, loc: ir.Loc, name: str, env: Env, envs: tuple[Env, Env], outs: tuple[list[Any], list[Any]]) -> None:
        """One variable for what both branches assign."""
        kind = self.types[name]
        if isinstance(kind, ir.LocalArrayType):
            return
        if isinstance(kind, ir.ArrayType):
            found = [e for e in envs if name in e.values]
            if len(found) == 1:
                env.values[name] = found[0].values[name]
                if name in found[0].gradients:
                    env.gradients[name] = found[0].gradients[name]
                return
            env.gradients.pop(name, None)
        made = self.local(loc, kind)
        for e, out in zip(envs, outs, strict=True):
            out.append(ir.Assign(loc, made.name, self.value_of(e, ir.Local(loc, kind, name))))
        env.values[name] = made

    def kept_names(self, body: tuple[Any, ...]) -> list[str]:
        """Variables that statements assign and that may be read behind them."""
        kinds = (ir.Assign, ir.SetElement, Accumulate, Reduce)
        names = dict.fromkeys(n.name for n in ir.walk(*body) if isinstance(n, kinds))
        return [n for n in names if n not in self.temporary and n not in self.reduced]

    # ---- loops

    def loop(self, s: Any, env: Env, out: list[Any], records: Records) -> None:
        entry = self.fixed_arrays(s, env, out)
        names = [n for n in self.kept_names(s.body) if not isinstance(self.types[n], ir.ArrayType)]
        for n in names:
            before = self.value_of(env, ir.Local(s.loc, self.types[n], n))
            if isinstance(self.types[n], ir.ScalarType):
                env.values[n] = made = self.local(s.loc, self.types[n])
                out.append(ir.Assign(s.loc, made.name, before))
        carried = {n: env.values[n] for n in names}
        inner, counter = env.copy(), self.local(s.loc, ir.INDEX)
        out.append(ir.Assign(s.loc, counter.name, constant(s.loc, 0)))
        ranges = self.ranges(s, entry)
        saved, body = self.save(s, carried), list[Any]()
        for n, array in saved.items():
            body += copied(s.loc, array, counter, carried[n])
        leaves = ends_with_break(s.body)
        variables = self.loop_variables(s, inner)
        passed, _ = self.block(s.body[:-1] if leaves else s.body, inner)
        body += [*passed, ir.Assign(s.loc, counter.name, binary(s.loc, "add", counter, constant(s.loc, 1)))]
        body += [ir.Assign(s.loc, carried[n].name, inner.values[n]) for n in names if inner.values[n] != carried[n]]
        if leaves:
            flag = self.with_values(s.body[-1].condition, Env({**inner.values, **carried}))
            body.append(replace(s.body[-1], condition=flag))
        if isinstance(s, ir.For):
            out.append(ir.For(s.loc, variables, ranges, tuple(body)))
        else:
            out.append(ir.While(s.loc, s.condition, tuple(body)))
        count = counter if leaves else trip_count(s.loc, ranges[0])
        records.append(DoneLoop(s, entry, count, saved, self.steps(s, entry)))

    def fixed_arrays(self, s: Any, env: Env, out: list[Any]) -> Env:
        """The values before a loop, with copies of local arrays that it reads, and that may have changed when the
        reverse pass runs it again."""
        entry = env.copy()
        changed = {n.name for n in ir.walk(*s.body) if isinstance(n, (ir.Assign, ir.SetElement))}
        read = {n.name for n in ir.walk(*s.body) if isinstance(n, ir.Local) and isinstance(n.type, ir.LocalArrayType)}
        for name in sorted(read - changed):
            if name in env.values and self.analysis.assigned[name] > 1:
                entry.values[name] = made = self.local(s.loc, env.values[name].type)
                out.append(ir.Assign(s.loc, made.name, env.values[name]))
        return entry

    def loop_variables(self, s: Any, env: Env) -> tuple[str, ...]:
        made = []
        for v in s.variables if isinstance(s, ir.For) else ():
            env.values[v] = local = self.local(s.loc, self.types[v])
            made.append(local.name)
        return tuple(made)

    def ranges(self, s: Any, env: Env) -> tuple[ir.Range, ...]:
        def bound(x: Any) -> Any:
            return None if x is None else self.with_values(x, env)

        return tuple(ir.Range(bound(r.start), bound(r.stop), bound(r.step)) for r in getattr(s, "ranges", ()))

    def save(self, s: Any, carried: Mapping[str, Any]) -> dict[str, Any]:
        """Arrays for the values of variables at the beginnings of iterations, where their number is known."""
        n = constant_count(s)
        arrays: dict[str, Any] = {}
        for name, value in carried.items() if n else ():
            shape = getattr(value.type, "shape", ())
            kind = ir.LocalArrayType(value.type.dtype, (n, *shape))  # type: ignore[arg-type]
            if kind.size * kind.dtype.itemsize <= MAX_SAVED:
                arrays[name] = self.local(s.loc, kind)
                self.saves[arrays[name].name] = s.loc
        return arrays

    def steps(self, s: Any, entry: Env) -> dict[str, Any]:
        """Integers that each iteration adds the same number to."""
        changing = set(self.kept_names(s.body)) | {n.name for n in ir.walk(*s.body) if isinstance(n, ir.Assign)}
        loops = {v for n in ir.walk(*s.body, s) if isinstance(n, ir.For) for v in n.variables}
        found = {}
        body: list[Any] = list(s.body)
        if isinstance(s, ir.While):  # what each turn but the last does
            end: Any = s.body[-1]
            left = end.condition.name
            body += [x for n in s.body if isinstance(n, ir.If) and _sets(n.orelse, left) for x in n.then]
        for x in body:
            counted = isinstance(x, Accumulate) and self.types[x.name].dtype.kind in "iu"
            if counted and not set(operands(x)) & (changing | loops):
                assigned = sum(
                    getattr(n, "name", "") == x.name for n in ir.walk(*s.body) if not isinstance(n, ir.Local)
                )
                if assigned == 1:
                    value = self.with_values(x.value, entry)
                    found[x.name] = ir.Unary(x.loc, value.type, "neg", value) if x.negative else value
        return found

    def parallel(self, s: ir.For, env: Env, out: list[Any], records: Records) -> None:
        entry = self.fixed_arrays(s, env, out)
        inner, reduced = env.copy(), dict[str, ir.Local]()
        for name, op in s.reductions:
            kind = self.types[name]
            before = self.value_of(env, ir.Local(s.loc, kind, name))
            made = self.local(s.loc, kind)
            out.append(ir.Assign(s.loc, made.name, before))
            env.values[name] = inner.values[name] = reduced[name] = made
            if op != "add":
                what = f"the gradient needs the result of the reduction of {name!r}, and only sums are computed again"
                self.unsaved[made.name] = s.loc, what, "store it into an array, and read that in another kernel"
        variables, ranges = self.loop_variables(s, inner), self.ranges(s, env)
        self.reduced = reduced
        body, _ = self.block(s.body, inner)
        self.reduced = {}
        names = tuple((env.values[n].name, op) for n, op in s.reductions if op == "add")
        out.append(replace(s, variables=variables, ranges=ranges, body=tuple(body), reductions=names))
        records.append(DoneLoop(s, entry, None, {}, {}, True))


def is_fresh(body: tuple[Any, ...], name: str) -> bool:
    """Whether the statements assign the variable before they read it, so that it carries nothing into them."""
    return _first_use(body, name) is not False


def _first_use(body: tuple[Any, ...], name: str) -> bool | None:
    """True if the statements are sure to assign the variable before they read it, False if they may read it first, None
    if they may do neither."""
    for s in body:
        if isinstance(s, ir.If) and not _mentions(s.condition, name):
            uses = [_first_use(branch, name) for branch in (s.then, s.orelse)]
            if False in uses or all(uses):
                return False not in uses
        elif isinstance(s, (ir.For, ir.While)) and not _mentions((*getattr(s, "ranges", ()),), name):
            if _first_use(s.body, name) is False:
                return False
        elif _mentions(s, name):
            return isinstance(s, ir.Assign) and s.name == name and not _mentions(s.value, name)
    return None


def _mentions(node: Any, name: str) -> bool:
    return any(getattr(n, "name", "") == name for n in ir.walk(*(node if isinstance(node, tuple) else (node,))))


def _sets(body: tuple[Any, ...], name: str) -> bool:
    return len(body) == 1 and isinstance(body[0], ir.Assign) and body[0].name == name


def zero(loc: ir.Loc, kind: ir.ScalarType) -> ir.Const:
    return ir.Const(loc, kind, zero_of(kind.dtype))


def constant_count(s: Any) -> int | None:
    """The number of iterations, at most, where it is known when the kernel is compiled."""
    if not isinstance(s, ir.For):
        return None
    (r,) = s.ranges
    ends = [
        default if x is None else getattr(x, "value", None) for x, default in ((r.start, 0), (r.stop, 0), (r.step, 1))
    ]
    if any(type(x) is not int for x in ends) or ends[2] == 0:
        return None
    return len(range(*ends))  # type: ignore[arg-type]


def trip_count(loc: ir.Loc, r: ir.Range) -> Any:
    """How many iterations a loop over the range has."""
    start = constant(loc, 0) if r.start is None else r.start
    assert r.stop is not None
    if r.step is None:
        span = r.stop if r.start is None else binary(loc, "sub", r.stop, start)
    else:
        down = binary(loc, "floordiv", binary(loc, "sub", start, r.stop), r.step)
        span = binary(loc, "sub", constant(loc, 0), down)
    return cast(call(loc, "max", [span, constant(loc, 0)]), ir.INDEX.dtype, True)


def copied(loc: ir.Loc, array: ir.Local, lead: ir.Local, value: Any) -> list[Any]:
    """Statements that set the part of a local array at the index `lead` to a number or another array."""
    shape, element = array.type.shape[1:], ir.ScalarType(array.type.dtype)
    return [
        ir.SetElement(
            loc, array.name, array.type.shape, (lead, *at), ir.Element(loc, element, value, at) if shape else value
        )
        for at in indices(loc, shape)
    ]


def indices(loc: ir.Loc, shape: tuple[int, ...]) -> list[tuple[Any, ...]]:
    """The indices of all elements of a small array, in C order."""
    found: list[tuple[Any, ...]] = [()]
    for n in shape:
        found = [(*i, constant(loc, k)) for i in found for k in range(n)]
    return found
