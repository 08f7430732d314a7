"""`Tuned`: a kernel whose constants are chosen by timing, as a callable."""

from __future__ import annotations

import functools
import inspect
import operator
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from .. import config as settings
from .._core import Dispatcher, TreeDef, VariantTable
from ..array import ndarray
from ..jit.ahead_of_time import compile_ahead, find_targets
from ..jit.functions import import_path
from ..jit.kernel import Kernel
from ..jit.launch import launcher_of
from ..jit.launch_cost import cost_of_call
from ..jit.launch_state import observed
from ..jit.saved import SavedKernel
from ..jit.variants import Variant
from ..locks import new_lock
from ..weak_set import ThreadSafeWeakSet
from . import cost, shipped
from .candidates import Candidates, is_size, refuse_gradient
from .choice import Choice, Chooser, offline, searching, with_default
from .config import Config, check_configs
from .cost import Fit
from .dispatcher import CHOSEN, DispatcherSpec, setting_guards, setting_texts, treedef_of, with_constants, zeroing
from .restore import zero
from .search import Options, Result, Task
from .tuned_call import CandidateCompiler, TunedCall
from .tuning_key import TextHashes, TuningKey, digest_of, key_of, merge_captures

_MAX_ENTRIES, _PATTERNS = 4096, 8  # tuples in a table, and of kinds of arguments that are quick


class Tuned(Dispatcher):
    """A kernel with a tuner in front; made by `autotune`. Call it like the kernel, without what is tuned.

    `kernel` is the plain kernel, for calls with constants of one's own.
    """

    def __init__(
        self,
        kernel: Kernel,
        configs: Any,
        key: tuple[str, ...],
        options: Options,
        prune: Any,
        default: Any,
        artifact_name: str | None,
        model: Any,
        cases: Any,
    ):
        self.kernel, self.key, self.options = kernel, key, options
        self.__name__, self.__doc__ = kernel.__name__, kernel.__doc__
        self.__module__, self.__qualname__ = kernel.__module__, kernel.__qualname__
        self.__wrapped__ = kernel.__wrapped__
        self.artifact_name, self.cases = artifact_name, cases
        self._all, self._model = Candidates(kernel, configs, prune, default), model
        name = f"{kernel.__module__}.{kernel.__qualname__}"
        self._chooser = Chooser(name, digest_of(name), options)
        self._compiler = CandidateCompiler(kernel, options.check)
        self._texts = TextHashes(kernel)
        self._table = VariantTable()
        # Both by the tuner's key, in whole: what the call depends on (`TunedCall.lookup_key`), what the choice does.
        self._remembered: dict[Any, Config] = {}
        self._memory: dict[Any, Choice] = {}
        self._treedefs: dict[tuple[Any, ...], TreeDef] = {}  # by `DispatcherSpec.leaves`
        self._settings: tuple[Any, ...] = ()  # that quick calls compare, with the captured values
        self._captures: tuple[Any, ...] = ()
        self._prepared = False
        self._lock = new_lock()
        _all.add(self)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __copy__(self) -> Tuned:
        return self

    def __deepcopy__(self, memo: Any) -> Tuned:
        return self

    def __reduce__(self) -> str:
        return import_path(self, "tuned kernel")

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self._spec.bind.function)

    def __repr__(self) -> str:
        return f"<tuned {self.kernel!r}>"

    # ---- the call

    @property
    def tuned(self) -> tuple[str, ...]:
        """The parameters that are chosen: those that candidates set; where the candidates come from a
        function, all `constexpr` ones that aren't in `key`."""
        return self._spec.tuned

    grad = property(refuse_gradient)

    def first(self) -> dict[str, Any]:
        """As `Candidates.first`, with the defaults of what it doesn't set."""
        defaults = {p.name: p.default for p in self.kernel.parameters if p.name in self.tuned}
        return defaults | self._all.first()

    @functools.cached_property
    def _spec(self) -> DispatcherSpec:
        parameters, tuned = self.kernel.parameters, self._all.tuned(self.key)
        sizes = [p.name for p in parameters if is_size(p)] if self._all.asks else self.key
        return DispatcherSpec(self.kernel, parameters, tuned, (*self.key, *sizes), self.options.zeroed)

    def _call(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> TunedCall:
        return TunedCall(self.kernel, self._spec, args, kwargs)

    def _prepare(self) -> None:
        with self._lock:
            if not self._prepared:
                self._set_parameters(*self._spec.bind.for_c(), self.kernel.debug)
                self._prepared = True
                self._publish(setting_texts(), ())

    def _publish(self, settings: tuple[Any, ...], captures: Sequence[Any]) -> None:
        """Makes C look calls up as long as these are the settings and captured values. Where they aren't what they
        were, what is there belongs to others."""
        same = len(settings) == len(self._settings) and all(map(operator.is_, settings, self._settings))
        if not same or any(c.current_value() is not c.value for c in self._captures):
            self._table.clear()
            self._captures = ()
        self._settings, self._captures = settings, merge_captures(self._captures, captures)
        guards = (*setting_guards(settings), *((c.owner, c.name, c.value) for c in self._captures))
        self._set_variants(self._table, tuple(reversed(self._treedefs.values())), guards)

    def _wrong(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NoReturn:
        """Raises the `TypeError` of a call that doesn't fit the signature."""
        self._spec.bind.wrong(args, kwargs)

    def _report(self, failure: Any, launch: Any) -> None:
        self.kernel._report(failure, launch)

    def _miss(self, args: tuple[Any, ...]) -> None:
        """Calls that C has no entry for: other libraries' arrays, structures, a tuned parameter that the caller sets,
        and new keys, for which the choice is looked up, or searched for."""
        settings_now = setting_texts()
        pairs = list(zip(self._spec.ordered, args, strict=True))
        call = self._call([a for q, a in pairs if not q.keyword_only], {q.name: a for q, a in pairs if q.keyword_only})
        call.check_zeroed(self.options.zeroed)
        lookup_key = call.lookup_key(self._texts.state())
        config = None if lookup_key is None else self._remembered.get(lookup_key)
        if config is None:
            self._chooser.counts["misses"] += 1
            choice, lasting = self._choose(call)
            config = choice.config
            if lasting:
                self._add_fast_path(call, config, settings_now)
                if len(self._remembered) >= _MAX_ENTRIES:
                    self._remembered.clear()
                self._remembered[call.lookup_key(self._texts.state())] = config  # captures may be known now
        else:
            self._table.hit()
            self._add_fast_path(call, config, settings_now)  # a setting or a captured value is another object now
        call.launch(self._compiler.kernel(config), config, self.options.zeroed)

    _refused = _miss

    def _add_fast_path(self, call: TunedCall, config: Config, settings_then: tuple[Any, ...]) -> None:
        """From now on, such a call is quick."""
        if call.overrides or observed() or (leaves := self._spec.leaves(call.args)) is None:
            return
        variant = self._compiler.variant(call, config)
        with self._lock:
            treedef = self._treedefs.get(leaves)
            if treedef is None:
                if len(self._treedefs) >= _PATTERNS:
                    self._treedefs.clear()
                treedef = self._treedefs[leaves] = treedef_of(leaves)
            if len(self._table) >= _MAX_ENTRIES:
                self._table.clear()
            self._publish(settings_then, merge_captures(self._texts.captures, variant.program.captures))
            try:
                key = treedef.key(call.checked, tuple(call.args.get(q.name, CHOSEN) for q in self._spec.ordered))
            except TypeError:  # an array of too many axes
                return
            self._table.put(key, self._launcher(call, config, variant))

    def _launcher(self, call: TunedCall, config: Config, variant: Variant) -> Any:
        """The variant's launcher for the tuned kernel's arguments."""
        spec, program = self._spec, variant.program
        names = tuple(q.name for q in spec.ordered)
        options = {"kernel": self.__name__, "extents": program.extents}
        launcher = launcher_of(program, variant.artifact.function, variant.device, names, variant.checked, **options)
        launcher.sites = program.sites
        live = dict(program.params)
        constants = [(k, call.value(n, config)) for k, n in enumerate(names) if n in spec.tuned and n in live]
        made: Any = with_constants(launcher, constants) if constants else launcher
        made = zeroing(spec, made, zero) if spec.zeroed else made
        made.sites = program.sites
        return made

    def forget(self) -> None:
        """Drop what is remembered in this process, of searches too; what is on disk stays."""
        with self._lock:
            self._forget_calls()
            self._memory.clear()
            self._chooser._results.clear()

    def _forget_calls(self) -> None:
        self._table.clear()
        self._remembered.clear()

    # ---- choosing

    def _choose(self, call: TunedCall) -> tuple[Choice, bool]:
        """What to launch with, and whether the same goes for such calls from now on."""
        how = settings.get("PYARRAY_AUTOTUNE")
        if how == "off" and (default := self._all.default_of(call, self.tuned)) is not None:
            return Choice(default, "default"), False
        q = _Question(self, call)
        plain = self._without_key(q, how)
        if plain is not None:
            return plain, not call.empty and q.default is None
        nested = searching.on
        choice = self._memory.get(self._choice_key(q))
        if choice is None:
            choice = self._find(q, "use" if nested else how)
            if nested:
                return choice, False
            if len(self._memory) >= _MAX_ENTRIES:
                self._memory.clear()
            self._memory[self._choice_key(q)] = choice  # with new captures
            if offline.on and self.artifact_name is not None:
                identity = shipped.identity_of(self.artifact_name, q.key)
                offline.decided.append((identity, choice.config, self._median(q, choice.config)))
        return choice, True

    def _choice_key(self, q: _Question) -> Any:
        how, folder = settings.get("PYARRAY_AUTOTUNE"), settings.get("PYARRAY_AUTOTUNE_CONFIG_DIR")
        return how, offline.on, folder, q.key.digest, q.candidates, q.default, self._texts.state()

    def _without_key(self, q: _Question, how: str) -> Choice | None:
        """Where nothing is to be chosen."""
        if how == "off" or q.call.empty:
            return Choice(q.default or q.candidates[0], "default" if q.default else "first")
        if len(q.candidates) == 1 and q.default is None and self.artifact_name is None:
            return Choice(q.candidates[0], "only")
        return None

    def _text(self, call: TunedCall) -> Callable[[Config], str]:
        def digest(config: Config) -> str:
            return self._texts.digest(self._compiler.kernel(config), call.with_config(config), call.checked)

        return digest

    def _median(self, q: _Question, config: Config) -> float | None:
        result = self._chooser.results(q.key, [config], self._text(q.call)).get(config)
        return None if result is None else result.median

    def _find(self, q: _Question, how: str) -> Choice:
        sources: dict[str, Callable[[], Choice | None]] = {
            "winner": functools.partial(self._stored, q),
            "artifact": lambda: self._artifact(q),
            "default": lambda: Choice(q.default, "default") if q.default else None,
            "model": lambda: self._predicted(q, how == "search"),
        }
        order = () if how == "force" else ("winner",) if offline.on else tuple(sources)
        for name in order:
            choice = sources[name]()
            if choice is not None:
                self._chooser.counts[name] += 1
                return choice
        if how == "use" or settings.get("PYARRAY_RUN_ONLY"):
            return Choice(q.candidates[0], "first")
        return self._search(q, how == "force")

    def _stored(self, q: _Question) -> Choice | None:
        """The winner on disk, if there is one."""

        def compiles(config: Config) -> None:
            self._compiler.variant(q.call, config)

        return self._chooser.winner(q.key, q.candidates, q.default, self._text(q.call), compiles)

    def _search(self, q: _Question, force: bool = False) -> Choice:
        q.call.check(q.candidates)
        task = self._task(q.call, q.every)
        work = self._work(q.call, q.every) if self._model is not None else None
        return self._chooser.search(
            q.key, task, q.default, force=force, stored=functools.partial(self._stored, q), work=work
        )

    def _task(self, call: TunedCall, candidates: tuple[Config, ...]) -> Task:
        return Task(
            self.__name__, call.bound.device(), candidates, lambda c: self._compiler.prepare(call, c),
            {n: a for n, a in call.bound.named.items() if isinstance(a, ndarray)}, call.uploaded(),
            self._text(call),
        )  # fmt: skip

    def _key(self, call: TunedCall, candidates: Sequence[Config]) -> TuningKey:
        bound, options = call.with_config(candidates[0]), self.options
        bound.types()  # raises what a launch raises for what is no argument of a kernel
        source = self._texts.function
        return key_of(self.kernel, bound, call.checked, source, self.key, options.bench, options.check)

    def _artifact(self, q: _Question) -> Choice | None:
        folder = settings.get("PYARRAY_AUTOTUNE_CONFIG_DIR")
        if folder is None or self.artifact_name is None:
            return None
        identity = shipped.identity_of(self.artifact_name, q.key)
        config = shipped.find(Path(folder), identity, self.tuned, q.every, q.call.overrides, missing=True)
        return None if config is None or not q.call.complete(config) else Choice(config, "artifact")

    # ---- the model

    def _work(self, call: TunedCall, candidates: Iterable[Config]) -> dict[Config, float]:
        def counted(c: Config) -> Any:
            return cost_of_call(self.kernel, call.with_config(c))

        return {c: cost.work(self._model, c, call.args, self.key, counted) for c in candidates}

    def _fits(self, q: _Question) -> dict[Config, Fit]:
        return cost.fits(self._chooser.results_of_group(q.key), q.candidates, self._text(q.call))

    def _costs(self, q: _Question) -> dict[Config, float] | None:
        work = self._work(q.call, q.candidates)
        return cost.predict(self._fits(q), work.__getitem__)

    def _predicted(self, q: _Question, verify: bool) -> Choice | None:
        """What the model says. To `verify`, it is timed here: None where the model was wrong."""
        if self._model is None or not (costs := self._costs(q)):
            return None
        config = min(costs, key=costs.__getitem__)
        if verify and not settings.get("PYARRAY_RUN_ONLY"):
            q.call.check((config,))
            if not cost.right(costs[config], self._chooser.timed(self._task(q.call, (config,))).median):
                return None
        return Choice(config, "model")

    def fits(self, /, *args: Any, **kwargs: Any) -> dict[Config, Fit]:
        """The cost model of each candidate, with its residual, for calls that differ from this one in the
        sizes in `key` only; empty before three sizes were searched. Raises `RuntimeError` without `model`."""
        if self._model is None:
            raise RuntimeError(f"{self.__name__} has no cost model; give autotune model=True or model=tiles")
        return self._fits(self._ask(args, kwargs))

    # ---- what is known

    def _ask(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> _Question:
        return _Question(self, self._call(args, kwargs))

    def search(self, /, *args: Any, **kwargs: Any) -> Config:
        """Search for these arguments' key now, unless it has a winner, in spite of `default` and artifacts.
        Doesn't launch; the arguments are as before. Raises `AutotuneError` when no candidate runs."""
        q = self._ask(args, kwargs)
        choice = self._stored(q) or self._search(q)
        self._forget_calls()
        self._memory.clear()
        return choice.config

    def results(self, /, *args: Any, **kwargs: Any) -> list[Result]:
        """What is known of each candidate for these arguments' key: milliseconds, or the reason why there are
        none. Where the cost model chose, they are predicted. Neither searches nor launches."""
        q = self._ask(args, kwargs)
        results = self._chooser.results(q.key, q.every, self._text(q.call))
        if not results and self._model is not None:
            costs = self._costs(q) or {}
            results = {c: Result(c, cost, source="predicted") for c, cost in costs.items()}
        unknown = {c: Result(c, reason="not tried") for c in q.candidates}
        return list((unknown | results).values())

    def choice(self, /, *args: Any, **kwargs: Any) -> Choice | None:
        """The `config` that a call with these arguments uses, and its `source`; None where it would search.
        Neither searches nor launches."""
        q, how = self._ask(args, kwargs), settings.get("PYARRAY_AUTOTUNE")
        plain = self._without_key(q, how)
        if plain is not None:
            return plain
        choice = self._memory.get(self._choice_key(q)) or self._find(q, "use")
        return None if choice.source == "first" and how != "use" else choice

    def cache_info(self) -> dict[str, int]:
        """`searches`; `timed`, the candidates timed in them; `hits`, quick calls; `misses`, slow ones;
        `disk_hits`, winners found on disk; `artifacts`, `defaults`, `predicted`: keys decided by these."""
        counts = self._chooser.counts
        named = {"artifacts": "artifact", "defaults": "default", "predicted": "model"}
        counters = {name: counts[name] for name in ("searches", "timed", "misses", "disk_hits")}
        return {**counters, "hits": self._table.hits, **{name: counts[count] for name, count in named.items()}}

    def compile(
        self, /, *types: Any, target: Any, config: Config | None = None, debug: bool | None = None, **named: Any
    ) -> SavedKernel:
        """As `Kernel.compile`, with the constants, flags and shape of `config` (default: the first candidate), which
        callers of the result leave out. Raises `ValueError` for a config that sets no parameter of the kernel."""
        name, parameters = self.__name__, self.kernel.parameters
        (config,) = check_configs(name, [config or self._all.first_config()], parameters)
        constants = {p.name: p.default for p in parameters if p.name in self.tuned} | config.values
        kernel = self._compiler.kernel(config)
        signatures = [(types, named)] if types or named else None
        return compile_ahead(kernel, signatures, find_targets(target), debug, constants)

    def emit(self, dir: Any, /, *args: Any, **kwargs: Any) -> Path:
        """Write the choice for these arguments' key into a file of the folder `dir`, to ship with an
        application: PYARRAY_AUTOTUNE_CONFIG_DIR is where it is looked for. Searches if nothing is known.

        Raises `ValueError` without `artifact_name`, for a config that JSON would change, and for a device
        that doesn't say its model; then nothing is written.
        """
        if self.artifact_name is None:
            raise ValueError(f"{self.__name__} has no artifact_name, under which its choices would be found")
        q = self._ask(args, kwargs)
        for config in q.every:
            config.to_dict()
        best = self.search(*args, **kwargs)
        identity = shipped.identity_of(self.artifact_name, q.key)
        return shipped.emit(dir, identity, best, self._median(q, best))


class _Question:
    """A call, its candidates and its default; its key, which is made where something is to be chosen."""

    def __init__(self, tuned: Tuned, call: TunedCall):
        self.call, self.candidates = call, tuned._all.of(call)
        self.default = tuned._all.default_of(call, tuned.tuned)
        self.every = with_default(self.candidates, self.default)
        self._key = tuned._key

    @functools.cached_property
    def key(self) -> TuningKey:
        return self._key(self.call, self.candidates)


_all = ThreadSafeWeakSet[Tuned]()


def all_tuned() -> list[Tuned]:
    """The tuned kernels of this process."""
    return sorted(_all, key=lambda t: (t.__module__, t.__qualname__))


def _forget(setting: str) -> None:
    for tuned in _all:
        tuned._forget_calls()


settings.watchers.append(_forget)
