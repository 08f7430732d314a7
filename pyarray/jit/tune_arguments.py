"""The arguments of one call of a tuned kernel, and what compiles candidates for them."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ..array import ndarray
from ..errors import CompileError
from .binding import Bound
from .kernel import Kernel
from .report import raise_bounds
from .tune_call import CHOSEN, Written
from .tune_config import Config
from .tune_search import Prepared
from .variants import Variant


class Call:
    """`args` are the arguments by parameter, defaults too, without the tuned ones; `given` are tuned ones
    that the caller has set. Raises `TypeError` for a call that the kernel doesn't take."""

    def __init__(self, kernel: Kernel, written: Written, args: tuple[Any, ...], kwargs: Mapping[str, Any]):
        self.kernel, self._tuned = kernel, written.tuned
        given = _signature(kernel, written).bind(*args, **kwargs)
        given.apply_defaults()
        self.given = {n: v for n, v in given.arguments.items() if n in written.tuned and v is not CHOSEN}
        self.args = {p.name: given.arguments[p.name] for p in written.free}
        self._parameters = written.parameters
        self._bound: Bound | None = None

    @property
    def positional(self) -> list[Any]:
        return [self.args[p.name] for p in self._parameters if p.name in self.args and not p.keyword_only]

    @property
    def keywords(self) -> dict[str, Any]:
        return {p.name: self.args[p.name] for p in self._parameters if p.name in self.args and p.keyword_only}

    def agrees(self, config: Config) -> bool:
        """Whether a candidate sets nothing that the caller has set to something else."""
        values = config.values
        return all(
            type(values[n]) is type(v) and values[n] == v for n, v in self.given.items() if n in values
        )

    def complete(self, config: Config) -> bool:
        """Whether every tuned parameter has a value with it."""
        return all(
            p.name in config.values or p.name in self.given or p.default is not inspect.Parameter.empty
            for p in self._parameters
            if p.name in self._tuned
        )

    def value(self, name: str, config: Config) -> Any:
        """What a parameter gets: the caller's value, the candidate's, the default."""
        for source in (self.args, self.given, config.values):
            if name in source:
                return source[name]
        (p,) = (p for p in self._parameters if p.name == name)
        if p.default is inspect.Parameter.empty:
            raise TypeError(f"{self.kernel.__name__}(): {config!r} doesn't set {name!r}")
        return p.default

    def _values(self, config: Config) -> Iterator[Any]:
        return (self.value(p.name, config) for p in self._parameters)

    def launch(self, kernel: Kernel, config: Config) -> Any:
        """The real call."""
        positional = [self.value(p.name, config) for p in self._parameters if not p.keyword_only]
        named = {p.name: self.value(p.name, config) for p in self._parameters if p.keyword_only}
        return kernel(*positional, **named)

    def with_config(self, config: Config) -> Bound:
        """The leaves of the arguments, with a candidate's constants. Other libraries' arrays are taken once,
        for all candidates."""
        if self._bound is None:
            self._bound = self.kernel.bind(tuple(self._values(config)))
        bound = self._bound
        constants = {name: self.value(name, config) for name in self._tuned}
        values = (constants.get(p.name, v) for p, v in zip(bound.form.leaves, bound.values, strict=True))
        return replace(bound, values=tuple(values))

    @property
    def bound(self) -> Bound:
        """The leaves, with whichever constants."""
        assert self._bound is not None
        return self._bound

    @property
    def empty(self) -> bool:
        """Whether all arrays are: there is nothing to time."""
        sizes = [getattr(a, "size", None) for a in self.args.values() if hasattr(a, "shape")]
        return bool(sizes) and not any(sizes)

    def check(self, candidates: Iterable[Config]) -> None:
        """Raises what a launch raises for wrong arguments, before anything is searched."""
        self.bound.check_scalars()
        for config in candidates:
            bound = self.with_config(config)
            try:
                program = self.kernel._lowered(bound)
            except CompileError:  # which a search tells
                continue
            bound.check_writeable(program)
            return

    def uploaded(self) -> dict[str, Any]:
        """The arguments as candidates get them: host arrays as their copies on the device."""
        for copied in self.bound.copied:
            copied.upload()
        return {name: self.bound.named.get(name, value) for name, value in self.args.items()}


def _signature(kernel: Kernel, written: Written) -> inspect.Signature:
    """The kernel's, with the tuned parameters last and by keyword. Like the kernel's own, it says the name of
    what is missing."""
    own = kernel.source_text.signature.parameters
    by_name = inspect.Parameter.KEYWORD_ONLY
    return inspect.Signature(
        [
            own[p.name].replace(kind=by_name, default=CHOSEN) if p.name in written.tuned else own[p.name]
            for p in written.ordered
        ]
    )


class Compiler:
    """Compiles candidates, in any thread. Their artifacts are the kernel's own."""

    def __init__(self, kernel: Kernel, check: Any):
        self._kernel, self._check = kernel, bool(check)
        self._others: dict[tuple[tuple[str, ...], bool | None], Kernel] = {}
        self._lock = threading.Lock()

    def kernel(self, flags: tuple[str, ...], debug: bool | None = None) -> Kernel:
        """The kernel, or one of the same source with further flags or with bounds checks fixed."""
        if not flags and debug is None:
            return self._kernel
        with self._lock:
            made = self._others.get((flags, debug))
            if made is None:
                own = self._kernel
                checked = own.debug if debug is None else debug
                change = own.on_global_change
                made = Kernel(own.source_text, checked, own.wraparound, (*own.flags, *flags), change)
                made.counts = own.counts
                self._others[flags, debug] = made
        return made

    def variant(self, call: Call, config: Config) -> Variant:
        """What a call with this candidate launches. Raises `CompileError`, `DeviceError`."""
        return self.kernel(config.flags)._variant(call.with_config(config))

    def prepare(self, call: Call, config: Config) -> Prepared:
        """The candidate, twice where it is to be checked."""
        bound = call.with_config(config)
        debug = self._kernel._checked()
        run, directions = self._run(self.kernel(config.flags, debug), bound)
        checked = (
            run if debug else self._run(self.kernel(config.flags, True), bound)[0] if self._check else None
        )
        return Prepared(run, checked if self._check else None, directions)

    def _run(self, kernel: Kernel, bound: Bound) -> tuple[Callable[[], Any], dict[str, str]]:
        variant = kernel._compile(bound)
        slots, launch, sites = tuple(bound.slots()), variant.launch, variant.program.sites

        def run() -> None:
            failure = launch(*slots)
            if failure:
                raise_bounds(kernel.__name__, sites, failure)

        arrays = {p.name for p, a in bound.pairs if isinstance(a, ndarray)}
        return run, {n: how for n, how in variant.program.directions.items() if n in arrays}
