"""The adjoint of a kernel: a kernel of the same parameters and the gradients of arrays and numbers.

Gradients of what the arguments hold after a launch become those of what they held before, in place: those of elements
that the kernel reads are added to, those of elements that it stores are read and set to 0. Arguments hold what the
launch left in them. So each value that the adjoint reads must be in them still, or be computed again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NoReturn

from ...errors import with_article
from .. import ir
from ..aggregates import fields_of, is_aggregate, is_records, leaves
from ..parse import FunctionSource
from ..promotion import binary, cast
from .analysis import Analysis, is_float
from .flatten import Flattener
from .forward import MAX_SAVED, Env, Forward
from .prune import prune
from .reverse import Reverse

PREFIX = "grad_"  # what names of gradients begin with


def adjoint(tree: ir.Tree, gradients: Iterable[tuple[str, Any]], sources: Mapping[str, FunctionSource]) -> ir.Tree:
    """The tree of the adjoint. `gradients`: further parameters with their types. Raises `CompileError` for a program
    whose gradient would be wrong, `TypeError` for a gradient that doesn't fit."""
    by_path = {source.path: source for source in sources.values()}

    def fail(loc: ir.Loc, what: str, instead: str = "") -> NoReturn:
        by_path[loc.path].fail(loc, what, instead)

    for n in ir.walk(*tree.kernel.body):
        if isinstance(n, ir.For) and n.capacity:
            fail(n.loc, "a loop over tiles has no gradient", "write the loop with range, or a kernel for the gradient")
    params = dict(tree.kernel.params)
    added = dict(_gradients(tree.kernel.name, params, gradients))
    flat = Flattener(tree, fail)
    analysis = Analysis(flat.body, params, flat.types, {name[len(PREFIX) :]: name for name in added}, fail)
    forward = Forward(analysis, flat.types, flat.temporary)
    forward.kinds.update(added)
    body = prune(_passes(tree.kernel, forward))
    _check(body, forward, fail)
    numbers = iter(range(len(body)))
    body = tuple(replace(s, loop=next(numbers)) if isinstance(s, ir.For) and s.loop is not None else s for s in body)
    names = {n.name for n in ir.walk(*body) if isinstance(n, (ir.Assign, ir.SetElement))}
    names |= {v for n in ir.walk(*body) if isinstance(n, ir.For) for v in n.variables}
    variables = tuple((n, kind) for n, kind in forward.kinds.items() if n in names)
    kernel = replace(
        tree.kernel, params=(*tree.kernel.params, *added.items()), variables=variables, body=body, result=None
    )
    return ir.Tree(kernel, ())


def _gradients(kernel: str, params: Mapping[str, Any], gradients: Iterable[tuple[str, Any]]) -> Any:
    """Names and types of the gradients that are given."""
    for name, group in gradients:
        in_records = set(_leaves_of_records(name, group))
        for path, kind in leaves(name, group):
            is_part = path != name
            if isinstance(kind, ir.Static) and (kind.value is None or is_part):
                continue
            if isinstance(kind, ir.ScalarType) and is_part:
                continue  # a field that needs a value
            of = path[len(PREFIX) :]
            own = params.get(of)
            dtype = getattr(own, "dtype", None)
            if path in in_records and isinstance(own, ir.ArrayType) and not is_float(own):
                continue  # a field that its dtype has, too
            if own is None or not is_float(own):
                what = f"{of!r} is of {dtype}" if dtype else f"{of!r} is no array or number"
                raise TypeError(f"{kernel}.grad(): {path!r} has no meaning: {what}, and floats alone have gradients")
            ndim = getattr(own, "ndim", 0)
            if not isinstance(kind, ir.ArrayType) or kind.ndim != ndim or kind.dtype is not own.dtype:
                what = f"a {ndim}-D array of {dtype}, as {of!r} is" if ndim else f"an array of {dtype} of shape ()"
                got = f"{with_article(kind)}" if not isinstance(kind, ir.Static) else f"{kind.value!r}"
                raise TypeError(f"{kernel}.grad(): {path!r} must be {what}, got {got}")
            yield path, kind


def _leaves_of_records(path: str, group: Any) -> Iterator[str]:
    """The leaves that are fields of arrays of records."""
    if is_records(group):
        yield from (leaf for leaf, _ in leaves(path, group))
    elif is_aggregate(group):
        for name, item in fields_of(path, group):
            yield from _leaves_of_records(name, item)


def _passes(kernel: ir.Function, forward: Forward) -> tuple[Any, ...]:
    """The forward pass, and the reverse one."""
    analysis, reverse, env = forward.analysis, Reverse(forward), Env()
    out: list[Any] = []
    done: list[tuple[int, Any]] = []
    for k, s in enumerate(analysis.body):
        forward.phase = k
        made, records = forward.block((s,), env)
        out += made
        done += [(k, r) for r in records]
    back: list[Any] = []
    for k, r in reversed(done):
        forward.phase = k
        back += reverse.block([r])
    for name, kind in kernel.params:
        if name in analysis.gradients and isinstance(kind, ir.ScalarType) and name in reverse.gradients:
            back.append(_stored_sum(kernel.loc, forward, analysis.gradients[name], reverse.gradients[name]))
    return (*out, *reverse.start(kernel.loc, reverse.used), *back)


def _stored_sum(loc: ir.Loc, forward: Forward, name: str, total: ir.Local) -> ir.Store:
    """Adds the gradient of a number to its array of one element."""
    kind = forward.kinds[name]
    array, element = ir.Local(loc, kind, name), ir.ScalarType(kind.dtype)
    value = binary(loc, "add", ir.Load(loc, element, array, ()), total)
    return ir.Store(loc, array, (), cast(value, kind.dtype))


def _check(body: tuple[Any, ...], forward: Forward, fail: Any) -> None:
    """Refuses what needs a value that isn't there any more."""
    saved = 0
    assigned = {n.name: None for n in ir.walk(*body) if isinstance(n, (ir.Assign, ir.SetElement))}
    for name in assigned:
        if name in forward.unsaved:
            fail(*forward.unsaved[name])
        if name in forward.loads:
            _check_load(*forward.loads[name], forward.analysis, fail)
        if name in forward.saves:
            kind = forward.kinds[name]
            saved += kind.size * kind.dtype.itemsize
            if saved > MAX_SAVED:
                what = f"the gradient would save {saved} bytes of values of this loop's iterations in each thread"
                fail(forward.saves[name], f"{what}, of at most {MAX_SAVED}", "run fewer iterations, or several kernels")


def _check_load(phase: int, load: ir.Load, analysis: Analysis, fail: Any) -> None:
    for name in sorted(analysis.bases_of(load.array)):
        stores = [a for k, a in analysis.stores_of(name) if k >= phase]
        if stores:
            what = f"the gradient needs this element of {name!r} as it is read here, and line {stores[0].loc.line}"
            advice = "store into another array; what the iteration itself has stored, keep in a variable"
            fail(load.loc, f"{what} overwrites it", advice)
