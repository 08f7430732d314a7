"""The passes, in order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .aggregates import transform
from .bounds_checks import Site, check
from .bounds_elimination import refute
from .dialect import DIALECTS
from .directions import accesses_of, directions, enforce, unread
from .emit import emit
from .emit_gpu import emit_gpu
from .evaluation_order import sequence
from .infer import infer
from .ir import ArrayType, Local, Tree, assigned, walk
from .loop_dependences import refuse_dependent
from .loop_extents import Extents, extents, in_memory
from .operation_counts import Count, count
from .parse import Capture, FunctionSource
from .races import refuse_races
from .reshape_indexing import Notes, by_indices
from .specializations import Pins
from .verify import verify
from .write_mask import track


@dataclass(frozen=True)
class Program:
    """A lowered kernel: `text`, the `entry` symbol in it, live parameters in slot order with their types,
    `directions` by parameter, the `sites` that failure records point into (empty without debug), the Python
    values compiled in, and the promises about parameters' sizes that the text relies on. `raw`: it is
    launched with a grid of the caller's. `unread` are known to be written and never read. `extents` are those
    of loops that a launch tests. `counted` says what a launch does, by numbers and shapes of parameters.
    `notes` are pairs of a line of the source and what became of its divisions and reshapes."""

    name: str
    text: str
    entry: str
    params: tuple[tuple[str, Any], ...]
    directions: dict[str, str]
    sites: tuple[Site, ...]
    captures: tuple[Capture, ...] = ()
    pins: dict[str, Pins] = field(default_factory=dict)
    raw: bool = False
    unread: frozenset[str] = frozenset()
    extents: tuple[Extents, ...] = ()
    counted: Callable[[Mapping[str, Any]], Count] | None = field(default=None, compare=False, repr=False)
    notes: tuple[tuple[int, str], ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class Analysed:
    """A kernel that is found to be in the language, before a target is chosen: its typed tree, the promises
    about its parameters, the directions that were declared of them, and what a `Program` has of it."""

    source: FunctionSource
    tree: Tree
    pins: dict[str, Pins]
    declared: dict[str, str]
    captures: tuple[Capture, ...]
    directions: dict[str, str]
    unread: frozenset[str]
    counted: Callable[[Mapping[str, Any]], Count]


def lower(
    source: FunctionSource,
    params: Sequence[tuple[str, Any]],
    target: str,
    debug: bool = False,
    wraparound: bool = False,
    declared: Mapping[str, str] | None = None,
) -> Program:
    """Kernel + parameter types → text for `target`. `declared` are directions of array parameters, by path.
    Raises `CompileError` for what is outside the language, or does what a direction excludes."""
    return generate(analyse(source, params, wraparound, declared), target, debug)


def analyse(
    source: FunctionSource,
    params: Sequence[tuple[str, Any]],
    wraparound: bool = False,
    declared: Mapping[str, str] | None = None,
) -> Analysed:
    """The passes that know no target, once for all of them. Raises as `lower`."""
    plain, pins = _apart(params)
    tree, captures, sources = infer(source, plain, wraparound)
    refute(verify(tree), pins, sources)
    said = {name: how for name, how in (declared or {}).items() if name in dict(tree.kernel.params)}
    known = accesses_of(tree)
    enforce(tree, said, sources, known)
    if not source.path.startswith("<pyarray"):  # a scatter of the library may run once, by an index of True
        refuse_races(tree, sources)
        refuse_dependent(tree, sources)
    facts, counted = directions(tree, said, known), counter(source, plain, wraparound)
    return Analysed(source, tree, pins, said, captures, facts, unread(tree, known), counted)


def generate(analysed: Analysed, target: str, debug: bool) -> Program:
    """The passes of one target."""
    tree, sites = analysed.tree, tuple[Site, ...]()
    if debug:
        outs = [name for name, how in analysed.declared.items() if how == "OUT"]
        tree, sites = check(track(tree, outs) if outs else tree)
    dialect = DIALECTS[target]
    tree, notes = (tree, Notes()) if debug else by_indices(tree, dialect.blocks)
    tree = _without_unused(verify(sequence(tree)))
    pins = {path: kind for path, kind in analysed.pins.items() if path in dict(tree.kernel.params)}
    text, entry, divided = (emit if dialect.blocks else emit_gpu)(tree, dialect, debug, pins)
    facts = analysed.directions
    tested = tuple(x for x in extents(tree.kernel) if not in_memory(x, facts))
    return Program(
        analysed.source.name, text, entry, tree.kernel.params, facts, sites, analysed.captures, pins, False,
        analysed.unread, tested, analysed.counted, tuple(sorted(notes | divided)),
    )  # fmt: skip


def counter(
    source: FunctionSource, params: Sequence[tuple[str, Any]], wraparound: bool = False
) -> Callable[[Mapping[str, Any]], Count]:
    """What counts a launch by numbers and shapes of its parameters. The tree is made when it is first asked
    for: variants outlive it."""
    made: list[Tree] = []

    def counted(values: Mapping[str, Any]) -> Count:
        if not made:
            made.append(infer(source, _apart(params)[0], wraparound)[0])
        return count(made[0], values)

    return counted


def _apart(params: Sequence[tuple[str, Any]]) -> tuple[list[tuple[str, Any]], dict[str, Pins]]:
    """The types without their promises, and those by path."""
    pins: dict[str, Pins] = {}

    def without_pins(path: str, kind: Any) -> Any:
        if not isinstance(kind, ArrayType) or not kind.pins:
            return kind
        pins[path] = kind.pins
        return replace(kind, pins=())

    return [(name, transform(name, kind, without_pins)) for name, kind in params], pins


def _without_unused(tree: Tree) -> Tree:
    """Without the parameters that the kernel's body doesn't name: they get no slots, and their types don't
    change the text."""
    named = assigned(*tree.kernel.body)
    named |= {node.name for part in tree.kernel.body for node in walk(part) if isinstance(node, Local)}
    kept = tuple((name, kind) for name, kind in tree.kernel.params if name in named)
    return replace(tree, kernel=replace(tree.kernel, params=kept))
