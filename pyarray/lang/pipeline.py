"""The compiler's passes, in order: a Python function in, a `Program` with its text out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..driver.kernel_step import KernelStep
from . import ir
from .aggregates import transform
from .assertions import has_assertions, without_assertions
from .bounds_checks import Site, insert_checks
from .bounds_elimination import reject_constant_indices
from .dialect import DIALECTS
from .directions import accesses_of, check_declared, directions, write_only, written
from .emit import emit
from .emit_gpu import emit_gpu
from .evaluation_order import order_operands
from .gradient.adjoint import adjoint
from .host_tests import HostTest
from .infer import infer
from .launch_shape import UNSHAPED, LaunchShape
from .loop_dependences import refuse_dependent
from .loop_extents import LoopExtents, are_sizes_of_output, extents
from .operation_counts import CountOperations, OperationCounts, count
from .parse import Capture, FunctionSource, is_internal
from .print_lowering import Line, lower_prints
from .races import refuse_races
from .reduction_lowering import lower_reductions
from .reshape_indexing import Remarks, index_base_arrays
from .sharing import resolve_sharing
from .specializations import Specializations
from .summaries import assigned_in, names_in
from .tile_layout import check_tiles
from .tile_reuse import reuse_tiles
from .tile_stores import separate_stores
from .verify import verify
from .write_mask import mark_stores

Gradients = Sequence[tuple[str, Any]]  # parameters of an adjoint behind those of its kernel, with their types


@dataclass(frozen=True)
class Program:
    """A lowered kernel: `text`, the `steps` that launch it, live parameters in slot order with their types,
    `directions` by parameter, the `sites` that failure records point into (empty without debug), the Python
    values compiled in, and the specializations that the text relies on. `raw`: the caller chooses the grid.
    `write_only` parameters are written and never read. `extents` are those of loops that a launch tests.
    `count_operations` counts what a launch does, by numbers and shapes of parameters. `remarks` are pairs of a
    source line and what became of its divisions and reshapes. `checked`: its launches return failures. `lines` are what
    it prints. Of an adjoint, `overwritten` are the parameters that its kernel writes. `inside` tests
    argument slots: where it holds no access can fail. The launcher has seen to it that addresses of arrays are
    multiples of `alignment` bytes."""

    name: str
    text: str
    steps: tuple[KernelStep, ...]
    params: tuple[tuple[str, Any], ...]
    directions: dict[str, str]
    sites: tuple[Site, ...]
    captures: tuple[Capture, ...] = ()
    specializations: dict[str, Specializations] = field(default_factory=dict)
    raw: bool = False
    write_only: frozenset[str] = frozenset()
    extents: tuple[LoopExtents, ...] = ()
    count_operations: CountOperations | None = field(default=None, compare=False, repr=False)
    remarks: tuple[tuple[int, str], ...] = field(default=(), compare=False)
    checked: bool = False
    lines: tuple[Line, ...] = ()
    overwritten: frozenset[str] | None = None
    inside: HostTest | None = field(default=None, compare=False, repr=False)
    alignment: int = 1


@dataclass(frozen=True)
class Analysed:
    """A kernel that is found to be in the language, before a target is chosen: its typed tree, the promises
    about its parameters, the directions that were declared of them, the launch's shape, and what a `Program` has of
    it."""

    source: FunctionSource
    tree: ir.Tree
    specializations: dict[str, Specializations]
    declared: dict[str, str]
    captures: tuple[Capture, ...]
    directions: dict[str, str]
    write_only: frozenset[str]
    count_operations: CountOperations
    shape: LaunchShape = UNSHAPED
    overwritten: frozenset[str] | None = None


def lower(
    source: FunctionSource,
    params: Sequence[tuple[str, Any]],
    target: str,
    debug: bool = False,
    wraparound: bool = False,
    declared: Mapping[str, str] | None = None,
    shape: LaunchShape = UNSHAPED,
    asserts: bool = False,
    gradients: Gradients | None = None,
) -> Program:
    """Kernel + parameter types → text for `target`. `declared` are directions of array parameters, by path. `asserts`:
    assertions are tested without debug mode, too. `gradients`: the program is the kernel's adjoint, and these are its
    further parameters.
    Raises `CompileError` for what is outside the language, or does what a direction excludes."""
    return generate(analyse(source, params, wraparound, declared, shape, gradients), target, debug, asserts)


def analyse(
    source: FunctionSource,
    params: Sequence[tuple[str, Any]],
    wraparound: bool = False,
    declared: Mapping[str, str] | None = None,
    shape: LaunchShape = UNSHAPED,
    gradients: Gradients | None = None,
) -> Analysed:
    """The passes that know no target, once for all of them. Raises as `lower`."""
    plain, specs = _split_types(params)
    tree, captures, sources = infer(source, plain, wraparound)
    tree = resolve_sharing(tree, sources)
    reject_constant_indices(verify(tree), specs, sources)
    in_use = {name: how for name, how in (declared or {}).items() if name in dict(tree.kernel.params)}
    accesses = accesses_of(tree)
    check_declared(tree, in_use, sources, accesses)
    if not is_internal(source.path):  # a scatter of the library may run once, by an index of True
        refuse_races(tree, sources)
        refuse_dependent(tree, sources)
    overwritten: frozenset[str] | None = None
    if gradients is not None:
        of_gradients, more = _split_types(gradients)
        overwritten, in_use, specs = written(tree), {}, specs | more
        tree = verify(adjoint(tree, of_gradients, sources))
        accesses = accesses_of(tree)
    by_parameter, count_operations = directions(tree, in_use, accesses), operation_counter(source, plain, wraparound)
    shape.check_loops(source, tree.kernel)
    only_written = write_only(tree, accesses)
    return Analysed(
        source, tree, specs, in_use, captures, by_parameter, only_written, count_operations, shape, overwritten
    )


def generate(analysed: Analysed, target: str, debug: bool, asserts: bool = False) -> Program:
    """The passes of one target."""
    tree, sites = analysed.tree, tuple[Site, ...]()
    asserts = asserts and not debug and has_assertions(tree)
    if debug:
        outs = [name for name, how in analysed.declared.items() if how == "OUT"]
        tree, sites = insert_checks(mark_stores(tree, outs) if outs else tree)
    elif asserts:
        tree, sites = insert_checks(tree, asserts_only=True)
    else:
        tree = without_assertions(tree)
    debug |= asserts
    dialect, (tree, lines) = DIALECTS[target], lower_prints(tree)
    ignored = () if dialect.blocks else tuple(analysed.shape.ignored(tree.kernel))
    shape, tree = analysed.shape.split(tree.kernel), lower_reductions(tree, debug, dialect.blocks)
    tree, remarks = (tree, Remarks()) if debug else index_base_arrays(tree, dialect.blocks)
    tree = _without_unused(verify(order_operands(tree)))
    used = dict(tree.kernel.params)
    specs = {path: x for path, x in analysed.specializations.items() if path in used}
    check_tiles(tree, analysed.source)
    tree = separate_stores(tree, ask=dialect.blocks and not debug)
    tree = verify(reuse_tiles(tree) if dialect.blocks else tree)
    shaped = None if dialect.blocks else emit_gpu(tree, dialect, debug, specs, shape)
    text, steps, divided, inside = shaped or (*emit(tree, dialect, debug, specs), None)
    by_parameter = analysed.directions
    tested = tuple(x for x in extents(analysed.tree.kernel) if not are_sizes_of_output(x, by_parameter))
    return Program(
        analysed.source.name, text, steps, tree.kernel.params, by_parameter, sites, analysed.captures, specs, False,
        analysed.write_only, tested, analysed.count_operations, tuple(sorted({*remarks, *divided, *ignored})),
        debug, lines, analysed.overwritten, inside,
    )  # fmt: skip


def operation_counter(
    source: FunctionSource, params: Sequence[tuple[str, Any]], wraparound: bool = False
) -> CountOperations:
    """Counts a launch by numbers and shapes of its parameters. The tree is built at the first call, since
    variants are kept by the hundred."""
    trees: list[ir.Tree] = []

    def count_operations(values: Mapping[str, Any]) -> OperationCounts:
        if not trees:
            trees.append(infer(source, _split_types(params)[0], wraparound)[0])
        return count(trees[0], values)

    return count_operations


def _split_types(params: Sequence[tuple[str, Any]]) -> tuple[list[Any], dict[str, Specializations]]:
    """The types without their promises, and those by path."""
    specs: dict[str, Specializations] = {}

    def plain(path: str, kind: Any) -> Any:
        if not isinstance(kind, ir.ArrayType) or not kind.specializations:
            return kind
        specs[path] = kind.specializations
        sizes = {spec.axis: spec.size for spec in kind.specializations if spec.size is not None}
        known = tuple(sizes.get(axis) for axis in range(kind.ndim)) if sizes else ()
        return replace(kind, specializations=(), sizes=known)

    return [(name, transform(name, kind, plain)) for name, kind in params], specs


def _without_unused(tree: ir.Tree) -> ir.Tree:
    """Without the parameters that the kernel's body doesn't name: they get no slots, and their types don't
    change the text."""
    named = assigned_in(*tree.kernel.body) | names_in(*tree.kernel.body)
    live = tuple((name, kind) for name, kind in tree.kernel.params if name in named)
    return replace(tree, kernel=replace(tree.kernel, params=live))
