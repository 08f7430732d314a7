"""One call of a tuned kernel: its bound arguments, and the compiler of candidates for them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..array import ndarray
from ..errors import CompileError, with_article
from ..jit.binding import BoundArguments
from ..jit.kernel import Kernel
from ..jit.launch_state import launch_state
from ..jit.report import raise_failure
from ..jit.signature import as_argument
from ..jit.variants import Variant
from ..lang.ir import static_key
from ..lang.launch_shape import LaunchShape
from ..locks import new_lock
from .choice import offline
from .config import Config
from .dispatcher import CHOSEN, DispatcherSpec, long_axes, setting_texts
from .restore import is_part_of, zero
from .search import CompiledCandidate

# A checked twin runs once: with arrays of few bytes, compiling it for speed takes longer than it saves.
QUICK_FLAGS, SMALL_BYTES = ("-O1",), 1 << 18


class TunedCall:
    """`args` are the arguments by parameter, defaults too, without the tuned ones; `overrides` are tuned ones
    that the caller has set. Raises `TypeError` for a call that the kernel doesn't take."""

    def __init__(self, kernel: Kernel, spec: DispatcherSpec, args: Sequence[Any], kwargs: Mapping[str, Any]):
        self.kernel, self._tuned, self._named = kernel, spec.tuned, spec.named
        bound = spec.bind(args, kwargs)
        self.overrides = {n: bound[n] for n in spec.tuned if bound[n] is not CHOSEN}
        self.args = {p.name: bound[p.name] for p in spec.free}
        self._parameters = spec.parameters
        in_debug = launch_state.debug  # of this thread; another may change it at any time
        self.checked: bool = in_debug if kernel.debug is None else kernel.debug

    @property
    def positional(self) -> list[Any]:
        return [self.args[p.name] for p in self._parameters if p.name in self.args and not p.keyword_only]

    @property
    def keywords(self) -> dict[str, Any]:
        return {p.name: self.args[p.name] for p in self._parameters if p.name in self.args and p.keyword_only}

    def is_compatible(self, config: Config) -> bool:
        """Whether a candidate sets nothing that the caller has set to something else."""
        values = config.values
        return all(type(values[n]) is type(v) and values[n] == v for n, v in self.overrides.items() if n in values)

    def complete(self, config: Config) -> bool:
        """Whether every tuned parameter has a value with it."""
        return all(
            p.name in config.values or p.name in self.overrides or p.default is not inspect.Parameter.empty
            for p in self._parameters
            if p.name in self._tuned
        )

    def value(self, name: str, config: Config) -> Any:
        """What a parameter gets: the caller's value, the candidate's, the default."""
        for source in (self.args, self.overrides, config.values):
            if name in source:
                return source[name]
        (p,) = (p for p in self._parameters if p.name == name)
        if p.default is inspect.Parameter.empty:
            raise TypeError(f"{self.kernel.__name__}(): {config!r} doesn't set {name!r}")
        return p.default

    def launch(self, kernel: Kernel, config: Config, zeroed: Iterable[str]) -> None:
        """The real call. The arrays `zeroed` are set to zero when nothing is left to be refused."""
        bound = self.with_config(config)
        variant = kernel._variant(bound, self.checked)
        bound.check_scalars()
        for name in zeroed:
            a = as_argument(self.args[name])
            if isinstance(a, ndarray):
                zero(a)
            else:
                a[...] = 0
        kernel._launch(variant, bound)

    @functools.cached_property
    def bound(self) -> BoundArguments:
        """The leaves, without the tuned constants. Other libraries' arrays are taken once, for all
        candidates."""
        values = self.args | self.overrides
        return self.kernel.bind(tuple(values.get(p.name) for p in self._parameters))

    def with_config(self, config: Config) -> BoundArguments:
        """The leaves, with a candidate's constants."""
        constants = {name: self.value(name, config) for name in self._tuned}
        pairs = zip(self.bound.pytree.leaves, self.bound.values, strict=True)
        return replace(self.bound, values=tuple(constants.get(p.name, v) for p, v in pairs))

    def lookup_key(self, captured: Any) -> Any:
        """What a choice is looked up by where a generated call doesn't do it; None where it can't be."""
        layouts = (
            (a._ptr & 15, a._strides, long_axes(a._shape), a._buffer.device.code)
            for a in self.bound.values
            if isinstance(a, ndarray)
        )
        parts = ((p.name, a) for p, a in self.bound.pairs if any(is_part_of(n, p.name) for n in self._named))
        values = ((path, *_size(value)) for path, value in parts)
        overrides = (static_key(value) for value in self.overrides.items())
        try:
            key = (
                *setting_texts(),
                offline.on,
                captured,
                self.bound.key(self.checked),
                *layouts,
                *values,
                *overrides,
            )
            hash(key)
        except (AttributeError, TypeError):
            return None
        return key

    @property
    def empty(self) -> bool:
        """Whether all arrays are: there is nothing to time."""
        sizes = [getattr(a, "size", None) for a in self.args.values() if hasattr(a, "shape")]
        return bool(sizes) and not any(sizes)

    def check_zeroed(self, names: Iterable[str]) -> None:
        """Raises `TypeError` for a structure or a number where an array is to be zeroed, `ValueError` for a
        read-only array."""
        for name in names:
            value = as_argument(self.args[name])
            if not hasattr(value, "shape"):
                what = f"reset_to_zero names {name!r}, which is no array here, but {with_article(type(value).__name__)}"
                raise TypeError(f"{self.kernel.__name__}(): {what}; arrays to zero are parameters of their own")
            if not value.flags.writeable:
                what = f"reset_to_zero names {name!r}, and this array is read-only"
                raise ValueError(f"{self.kernel.__name__}(): {what}; pass a copy")

    def check(self, candidates: Iterable[Config]) -> None:
        """Raises what a launch raises for wrong arguments, before anything is searched."""
        self.bound.check_scalars()
        for config in candidates:
            bound = self.with_config(config)
            try:
                program = self.kernel._lowered(bound, self.checked)
            except CompileError:  # which a search tells
                continue
            bound.check_writeable(program)
            return

    def uploaded(self) -> dict[str, Any]:
        """The arguments as candidates get them: host arrays as their copies on the device."""
        for copied in self.bound.copied:
            copied.upload()
        return {name: self.bound.named.get(name, value) for name, value in self.args.items()}


def _is_small(bound: BoundArguments) -> bool:
    """Whether a CPU has little to do."""
    arrays = [a for _, a in bound.pairs if isinstance(a, ndarray)]
    return sum(a.nbytes for a in arrays) <= SMALL_BYTES and not any(a.device.driver.grid for a in arrays)


def _size(value: Any) -> tuple[Any, ...]:
    shape = getattr(value, "shape", None)
    return (static_key(value),) if shape is None else (tuple(shape),)


class CandidateCompiler:
    """Compiles candidates, in any thread. Their artifacts are the kernel's own."""

    def __init__(self, kernel: Kernel, check: Any):
        self._kernel, self._check = kernel, bool(check)
        # By flags, the launch's shape and bounds checks: all else is the one kernel's.
        self._others: dict[tuple[tuple[str, ...], LaunchShape, bool | None], Kernel] = {}
        self._lock = new_lock()

    def kernel(self, config: Config, debug: bool | None = None, more_flags: tuple[str, ...] = ()) -> Kernel:
        """The kernel, or one of the same source with a candidate's flags and shape, or with bounds checks fixed."""
        base, flags = self._kernel, (*config.flags, *more_flags)
        shape = base.shape.overridden(config.shape)
        if not flags and debug is None and shape == base.shape:
            return base
        with self._lock:
            kernel = self._others.get((flags, shape, debug))
            if kernel is None:
                checked = base.debug if debug is None else debug
                change = base.on_global_change
                options = base.wraparound, (*base.flags, *flags), change, shape, base.asserts
                kernel = Kernel(base.source_text, checked, *options)
                kernel.counts = base.counts
                self._others[flags, shape, debug] = kernel
        return kernel

    def variant(self, call: TunedCall, config: Config) -> Variant:
        """The variant that a call with this candidate launches. Raises `CompileError`, `DeviceError`."""
        return self.kernel(config)._variant(call.with_config(config), call.checked)

    def prepare(self, call: TunedCall, config: Config) -> CompiledCandidate:
        """The candidate, twice where it is to be checked."""
        bound = call.with_config(config)
        debug = call.checked
        variant = self.kernel(config, debug)._compile(bound, debug)
        run, program = self._run(variant, bound), variant.program
        checked = run if self._check else None
        if self._check and not debug:
            quick = QUICK_FLAGS if _is_small(bound) else ()
            checked = self._run(self.kernel(config, True, quick)._compile(bound, True), bound)
        arrays = {p.name for p, a in bound.pairs if isinstance(a, ndarray)}
        directions = {n: how for n, how in program.directions.items() if n in arrays}
        return CompiledCandidate(run, checked, directions, program.write_only)

    def _run(self, variant: Variant, bound: BoundArguments) -> Callable[[], Any]:
        slots, launch, sites = tuple(bound.slots()), variant.launch, variant.program.sites
        name = self._kernel.__name__

        def run() -> None:
            failure = launch(*slots)
            if failure:
                raise_failure(name, sites, failure)

        return run
