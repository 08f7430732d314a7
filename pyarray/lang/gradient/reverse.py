"""The reverse pass: for each statement, last first, what takes the gradient of its result to those of its operands.

Each variable has one gradient. An assignment takes it and leaves 0, since what the variable held before isn't what was
read behind; a use adds to it. Elements of arrays are the same: a store takes, a load adds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ...errors import with_article
from .. import ir
from ..promotion import binary, cast, constant, unary
from .analysis import NO_RULE, is_float
from .derivatives import FUNCTIONS, OPERATORS, STEPS, Terms
from .flatten import Accumulate, Reduce, ends_with_break
from .forward import Done, DoneIf, DoneLoop, Env, Forward, indices, is_fresh, zero


def gradient_kind(kind: Any) -> Any:
    """The type of a gradient inside a kernel: narrow floats have one of float32."""
    dtype = kind.dtype.arithmetic
    return ir.LocalArrayType(dtype, kind.shape) if isinstance(kind, ir.LocalArrayType) else ir.ScalarType(dtype)


class Reverse:
    """`used`: variables whose gradients the pass reads or writes. `inner`: those that the parallel loop around assigns,
    None outside of one; `sums`: gradients of other variables that its iterations add to."""

    def __init__(self, forward: Forward):
        self.forward, self.analysis = forward, forward.analysis
        self.types = {**self.analysis.types, **self.analysis.params}
        self.gradients: dict[str, ir.Local] = {}
        self.used: dict[str, None] = {}
        self.inner: set[str] | None = None
        self.sums: dict[str, None] = {}
        self.out: list[Any] = []

    # ---- gradients of variables

    def gradient(self, loc: ir.Loc, name: str) -> ir.Local:
        if name not in self.gradients:
            self.gradients[name] = self.forward.local(loc, gradient_kind(self.types[name]))
        self.used[name] = None
        return replace(self.gradients[name], loc=loc)

    def start(self, loc: ir.Loc, names: Iterable[str]) -> list[Any]:
        """Statements that set gradients to 0."""
        return [self.cleared(loc, self.gradients[n]) for n in names]

    def cleared(self, loc: ir.Loc, g: ir.Local) -> ir.Assign:
        nothing: Any = zero(loc, ir.ScalarType(g.type.dtype))
        if isinstance(g.type, ir.LocalArrayType):
            nothing = ir.Fill(loc, g.type, nothing)
        return ir.Assign(loc, g.name, nothing)

    def take(self, loc: ir.Loc, name: str) -> ir.Local:
        g = self.gradient(loc, name)
        made = self.forward.local(loc, g.type)
        self.out += [ir.Assign(loc, made.name, g), self.cleared(loc, g)]
        return made

    def is_outer(self, name: str) -> bool:
        return self.inner is not None and name not in self.inner

    def add(self, operand: Any, value: Any) -> None:
        """Adds to the gradient of an operand; nothing for a constant, or what no gradient flows through."""
        if not isinstance(operand, ir.Local) or operand.name not in self.analysis.active:
            return
        loc, g = value.loc, self.gradient(value.loc, operand.name)
        if self.is_outer(operand.name):
            self.sums[operand.name] = None
        self.out.append(ir.Assign(loc, g.name, ir.Binary(loc, g.type, "add", g, cast(value, g.type.dtype))))

    def add_element(self, array: Any, index: tuple[Any, ...], value: Any) -> None:
        if array.name not in self.analysis.active:
            return
        if self.is_outer(array.name):
            what = f"iterations share the array {array.name!r}, which is made before the parallel loop"
            self.analysis.fail(array.loc, f"{what}, and its gradient is a sum over them", "make it in each iteration")
        loc, g = value.loc, self.gradient(value.loc, array.name)
        kind = ir.ScalarType(g.type.dtype)
        total = ir.Binary(loc, kind, "add", ir.Element(loc, kind, g, index), cast(value, kind.dtype))
        self.out.append(ir.SetElement(loc, g.name, g.type.shape, index, total))

    # ---- statements

    def block(self, records: Iterable[Any]) -> list[Any]:
        outer, self.out = self.out, []
        for r in reversed(list(records)):
            if isinstance(r, DoneIf):
                then, orelse = self.block(r.then), self.block(r.orelse)
                self.out.append(ir.If(r.loc, r.condition, tuple(then), tuple(orelse)))
            elif isinstance(r, DoneLoop):
                self.parallel(r) if r.is_parallel else self.loop(r)
            else:
                self.done(r)
        made, self.out = self.out, outer
        return made

    def done(self, r: Done) -> None:
        s = r.statement
        if isinstance(s, ir.Store):
            self.store(r, s)
        elif isinstance(s, ir.Evaluate):
            self.atomic(r, s.value)  # type: ignore[arg-type]
        elif s.name in self.analysis.active:
            if isinstance(s, Accumulate):
                g = self.gradient(s.loc, s.name)
                self.add(s.value, unary(s.loc, "neg", g) if s.negative else g)
            elif isinstance(s, Reduce):
                which = "this reduction" if s.name.startswith(".") else f"the reduction of {s.name!r}"
                what = f"{which} has no gradient: it keeps no note of whose value it is"
                self.analysis.fail(s.loc, what, "sums have one; or reduce in a loop inside one iteration")
            elif isinstance(s, ir.SetElement):
                self.set_element(r, s)
            elif isinstance(s.value.type, ir.LocalArrayType):
                self.array(r, s)
            else:
                self.value(r, s, self.take(s.loc, s.name))

    def values(self, r: Done, e: Any) -> Any:
        return ir.rewrite(e, lambda n: r.values.get(n.name, n) if isinstance(n, ir.Local) else n)

    def value(self, r: Done, s: ir.Assign, g: ir.Local) -> None:
        e: Any = s.value
        loc = s.loc
        active = [x for x in operands_of(e) if isinstance(x, ir.Local) and x.name in self.analysis.active]
        if e.type.dtype.kind == "c":
            if active:
                self.analysis.fail(loc, "complex numbers have no gradient here", "compute with their parts")
        elif isinstance(e, ir.Local):
            self.add(e, g)
        elif isinstance(e, ir.Load):
            self.load(r, e, g)
        elif isinstance(e, ir.Element):
            self.add_element(e.array, tuple(self.values(r, i) for i in e.index), g)
        elif isinstance(e, ir.Cast):
            self.cast(e, g)
        elif isinstance(e, ir.Unary):
            self.add(e.a, unary(loc, "neg", g))
        elif isinstance(e, (ir.Binary, ir.Builtin)):
            self.operation(r, e, g)
        elif active or (isinstance(e, ir.Atomic) and self.analysis.has_gradient(e.array)):
            self.analysis.fail(loc, "no gradient flows through the value before an atomic", NO_RULE)

    def cast(self, e: ir.Cast, g: ir.Local) -> None:
        if e.a.type.dtype.kind == "f":
            self.add(e.a, g)

    def operation(self, r: Done, e: Any, g: ir.Local) -> None:
        args = (e.a, e.b) if isinstance(e, ir.Binary) else e.args
        if isinstance(e, ir.Builtin) and e.name in STEPS:
            return
        active = [isinstance(x, ir.Local) and x.name in self.analysis.active for x in args]
        if not any(active):
            return
        name = e.op if isinstance(e, ir.Binary) else e.name
        rule = (OPERATORS if isinstance(e, ir.Binary) else FUNCTIONS).get(name)
        if rule is None or args[0].type.dtype.kind == "c":
            of = "of complex numbers" if args[0].type.dtype.kind == "c" else "here"
            self.analysis.fail(e.loc, f"{name}() has no derivative {of}", NO_RULE)
        terms = Terms(e.loc, g.type.dtype)
        numbers = [terms.of(self.values(r, x)) for x in args]
        factors = rule(terms, *numbers, terms.of(r.result))
        for x, flows, factor in zip(args, active, factors, strict=True):
            if flows and factor is not None:
                if isinstance(factor, float) and abs(factor) == 1.0:
                    self.add(x, g if factor > 0 else unary(e.loc, "neg", g))
                else:
                    self.add(x, terms.mul(g, factor))

    # ---- arrays of constant shape

    def set_element(self, r: Done, s: ir.SetElement) -> None:
        g, index = self.gradient(s.loc, s.name), tuple(self.values(r, i) for i in s.index)
        kind = ir.ScalarType(g.type.dtype)
        made = self.forward.local(s.loc, kind)
        self.out.append(ir.Assign(s.loc, made.name, ir.Element(s.loc, kind, g, index)))
        self.out.append(ir.SetElement(s.loc, g.name, g.type.shape, index, zero(s.loc, kind)))
        self.add(s.value, made)

    def array(self, r: Done, s: ir.Assign) -> None:
        e: Any = s.value
        loc = s.loc
        if isinstance(e, ir.Local) and e.name == s.name:
            return
        g = self.take(loc, s.name)
        element = ir.ScalarType(g.type.dtype)
        if isinstance(e, ir.Build):
            for at, item in zip(indices(loc, g.type.shape), e.items, strict=True):
                self.add(item, ir.Element(loc, element, g, at))
        elif isinstance(e, ir.Fill):
            for at in indices(loc, g.type.shape):
                self.add(e.value, ir.Element(loc, element, g, at))
        elif isinstance(e, ir.Convert) and e.how == "reshape" and isinstance(e.a, ir.Local):
            back = ir.LocalArrayType(g.type.dtype, e.a.type.shape)
            made = self.forward.local(loc, back)
            self.out.append(ir.Assign(loc, made.name, ir.Convert(loc, back, g, "reshape")))
            self.add_all(e.a, made)
        elif isinstance(e, ir.Local):
            self.add_all(e, g)
        elif any(isinstance(x, ir.Local) and x.name in self.analysis.active for x in operands_of(e)):
            self.analysis.fail(loc, f"no gradient flows through {with_article(type(e).__name__)} of an array", NO_RULE)

    def add_all(self, array: ir.Local, g: ir.Local) -> None:
        element = ir.ScalarType(g.type.dtype)
        for at in indices(g.loc, g.type.shape):
            self.add_element(array, at, ir.Element(g.loc, element, g, at))

    # ---- arrays

    def place(self, r: Done, array: Any, index: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
        """The gradient of an array, and the index; None where it has none."""
        if not is_float(array.type):
            return None, ()
        found = self.forward.gradient_of(array, r.gradients)
        return found, tuple(self.values(r, i) for i in index)

    def load(self, r: Done, e: ir.Load, g: ir.Local) -> None:
        array, index = self.place(r, e.array, e.index)
        if array is None:
            return
        kind = ir.ScalarType(array.type.dtype)
        bases = self.analysis.bases_of(e.array)
        unshared = len(bases) == 1 and (self.forward.phase, *bases) in self.analysis.unshared
        if unshared:
            total = binary(e.loc, "add", ir.Load(e.loc, kind, array, index), g)
            self.out.append(ir.Store(e.loc, array, index, cast(total, kind.dtype)))
        else:
            made = ir.Atomic(e.loc, kind, "add", array, index, cast(g, kind.dtype))
            self.out.append(ir.Evaluate(e.loc, made))

    def read(self, r: Done, s: Any, array: Any, index: tuple[Any, ...]) -> ir.Local:
        """The gradient of an element, in a variable."""
        kind = ir.ScalarType(array.type.dtype)
        made = self.forward.local(s.loc, gradient_kind(kind))
        self.out.append(ir.Assign(s.loc, made.name, cast(ir.Load(s.loc, kind, array, index), made.type.dtype)))
        return made

    def store(self, r: Done, s: ir.Store) -> None:
        array, index = self.place(r, s.array, s.index)
        if array is None:
            return
        g = self.read(r, s, array, index)
        self.out.append(ir.Store(s.loc, array, index, zero(s.loc, ir.ScalarType(array.type.dtype))))
        self.add(s.value, g)

    def atomic(self, r: Done, e: ir.Atomic) -> None:
        array, index = self.place(r, e.array, e.index)
        if array is None:
            return
        if e.op not in ("add", "sub"):
            what = f"atomic_{e.op}() has no gradient: it keeps no note of which iteration's value stays"
            self.analysis.fail(e.loc, what, "atomic_add and atomic_sub have one")
        g = self.read(r, e, array, index)
        self.add(e.value, unary(e.loc, "neg", g) if e.op == "sub" else g)

    # ---- loops

    def loop(self, r: DoneLoop) -> None:
        """The iterations of a loop, the last one first, each after its part of the forward pass."""
        s, forward = r.statement, self.forward
        loc, t = s.loc, forward.local(s.loc, ir.INDEX)
        env, out = r.entry.copy(), list[Any]()
        last = binary(loc, "sub", r.count, constant(loc, 1))
        index = forward.local(loc, ir.INDEX)
        out.append(ir.Assign(loc, index.name, binary(loc, "sub", last, t)))
        for name in forward.kept_names(s.body):
            kind = self.types[name]
            if isinstance(kind, ir.LocalArrayType) and is_fresh(s.body, name):
                env.values[name] = forward.local(loc, kind)
            elif not isinstance(kind, ir.ArrayType):
                out += self.restored(r, name, index, env)
        if isinstance(s, ir.For):
            (range_,) = forward.ranges(s, r.entry)
            at: Any = index if range_.step is None else binary(loc, "mul", index, range_.step)
            at = at if range_.start is None else binary(loc, "add", range_.start, at)
            env.values[s.variables[0]] = made = forward.local(loc, self.types[s.variables[0]])
            out.append(ir.Assign(loc, made.name, cast(at, made.type.dtype, made.type.weak)))
        body = s.body[:-1] if ends_with_break(s.body) else s.body
        passed, records = forward.block(body, env)
        out += [*passed, *self.block(records)]
        self.out.append(ir.For(loc, (t.name,), (ir.Range(None, r.count, None),), tuple(out)))

    def restored(self, r: DoneLoop, name: str, index: ir.Local, env: Env) -> list[Any]:
        """The value of a variable at the beginning of an iteration."""
        s, kind, loc = r.statement, self.types[name], r.statement.loc
        env.values[name] = made = self.forward.local(loc, kind)
        if name in r.steps:
            number, step = (cast(x, kind.dtype, kind.weak) for x in (index, r.steps[name]))
            before = self.forward.value_of(r.entry, ir.Local(loc, kind, name))
            total = binary(loc, "add", before, binary(loc, "mul", number, step))
            return [ir.Assign(loc, made.name, cast(total, kind.dtype, kind.weak))]
        if name in r.saved:
            array = r.saved[name]
            if isinstance(kind, ir.ScalarType):
                value = ir.Element(loc, ir.ScalarType(kind.dtype), array, (index,))
                return [ir.Assign(loc, made.name, value)]
            element = ir.ScalarType(kind.dtype)
            return [
                ir.SetElement(loc, made.name, kind.shape, at, ir.Element(loc, element, array, (index, *at)))
                for at in indices(loc, kind.shape)
            ]
        place = next((n.loc for n in ir.walk(*s.body) if getattr(n, "name", "") == name), loc)
        shown = "a variable" if name.startswith(".") else repr(name)
        what = f"the gradient needs {shown} as it was in each iteration of this loop, of which there may be any number"
        advice = (
            "run a constant number of iterations (pa.constexpr), with a test inside, or keep the values in an array"
        )
        self.forward.unsaved[made.name] = place, what, advice
        if isinstance(kind, ir.LocalArrayType):
            return [ir.Assign(loc, made.name, ir.Fill(loc, kind, zero(loc, ir.ScalarType(kind.dtype))))]
        return [ir.Assign(loc, made.name, zero(loc, kind))]

    def parallel(self, r: DoneLoop) -> None:
        s, forward = r.statement, self.forward
        env = r.entry.copy()
        self.inner = {
            n.name for n in ir.walk(*s.body) if hasattr(n, "name") and not isinstance(n, (ir.Local, ir.Builtin))
        }
        self.inner -= {name for name, _ in s.reductions}
        outer, self.used, self.sums = self.used, {}, {}
        for name, _ in s.reductions:
            forward.reduced[name] = env.values[name] = forward.local(s.loc, self.types[name])  # which nothing reads
        variables, ranges = forward.loop_variables(s, env), forward.ranges(s, r.entry)
        passed, records = forward.block(s.body, env)
        forward.reduced = {}
        made = self.block(records)
        own = [n for n in self.used if n in self.inner]
        body = (*passed, *self.start(s.loc, own), *made)
        sums = tuple((self.gradients[n].name, "add") for n in self.sums)
        if sums and any(x.step is not None and not isinstance(x.step, ir.Const) for x in s.ranges):
            what = "the gradient of a number is a sum over the parallel loop, whose step is then a constant"
            self.analysis.fail(s.loc, what, "write range(n), and compute the number from its variable")
        self.out.append(replace(s, variables=variables, ranges=ranges, body=body, reductions=sums))
        self.used = outer | dict.fromkeys(n for n in self.used if n not in self.inner)
        self.inner = None


def operands_of(e: Any) -> list[Any]:
    return [x for x in ir.children(e) if isinstance(x, (ir.Local, ir.Const))]
