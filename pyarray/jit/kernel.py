"""`@kernel`: compiles a Python function for devices, once per tuple of argument types, and launches it.

Variants are keyed by types alone: a temporary view finds the same one as a lasting view, and none is stale.
"""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from ..buffer_view import BufferView
from ..dtypes import shown
from ..errors import CompileError
from ..lang import builtins
from ..lang.ir import static_key
from ..lang.markers import constexpr
from ..lang.parse import Capture, FunctionSource, attributes_read, function_from_text, source_of
from ..lang.pipeline import Program, lower
from ..locks import new_lock
from . import compile as compiler
from . import explain, foreign_arrays, saved
from .argument_errors import MISSING, Binder
from .binding import BoundArguments
from .cache_counters import counts_of, retire_counts
from .functions import Func, Importable, P, func
from .kernel_registry import register
from .launch import launcher_of, make_dispatcher, make_key, written_by
from .launch_cost import Cost, cost_of_call
from .launch_state import OBSERVED, Launch, launch_state, observe, observed
from .pytree import Pytree, flatten
from .report import raise_failure, warn_of_changes
from .signature import Parameter, Signature, parameters_of, signature_of, type_key
from .variants import Variant, Variants

if TYPE_CHECKING:
    from .typed_calls import TypedKernel

builtins.register(BufferView, "subview")
_DISPATCHED = 8  # pytrees with structures that dispatchers test for; `_miss` finds the others
WARNED_AT = 3  # of changes of one captured number
_MAX_PYTREES = 64  # each keeps the classes of its structures alive


class Kernel(Importable):
    """A compiled-on-demand kernel; made by `kernel`. Call it with arrays and numbers; it returns nothing."""

    __pyarray_kernel__ = True
    _what = "kernel"

    def __new__(cls, *args: Any, **kwargs: Any) -> Kernel:
        # Each has a class of its own, so that a call is its dispatcher's, without another in between.
        return object.__new__(type(cls.__name__, (cls,), {"__doc__": cls.__doc__}))

    def __init__(
        self,
        source: FunctionSource,
        debug: bool | None,
        wraparound: bool,
        flags: tuple[str, ...],
        on_global_change: str | None,
        asserts: bool = False,
    ):
        self.__name__, self.__doc__ = source.name, source.function.__doc__
        self.__module__, self.__qualname__ = source.function.__module__, source.function.__qualname__
        self.__wrapped__ = source.function
        self.source_text = source
        self.debug, self.wraparound, self.flags = debug, wraparound, flags
        self.on_global_change, self.asserts = on_global_change, asserts
        self.counts: Counter[str] = Counter()
        self.marked: frozenset[str] = frozenset()
        self._variants = Variants()
        self._captures: tuple[Capture, ...] = ()
        self._lock = new_lock()
        self._ticks = itertools.count()
        self._changes: Counter[str] = Counter()  # of captured values, by name
        if on_global_change is None:
            retire_counts(self, self.counts, self._ticks)
        self._parameters: tuple[Parameter, ...] | None = None
        self._pytrees: dict[Any, tuple[Pytree, Callable[..., Any]]] = {}  # by structure, with key functions
        self._dispatch = self._first_call
        register(self)

    @property
    def _dispatch(self) -> Callable[..., None]:
        return vars(type(self))["__call__"].__func__

    @_dispatch.setter
    def _dispatch(self, made: Callable[..., None]) -> None:
        type(self).__call__ = staticmethod(made)  # type: ignore[method-assign]

    def __call__(self, /, *args: Any, **kwargs: Any) -> None:
        """Launch; the parameters are the function's."""
        self._dispatch(*args, **kwargs)

    def __getitem__(self, grid: Any) -> Any:
        what = f"kernel {self.__name__!r} takes no grid, got [{grid!r}]"
        name = self.__name__
        raise TypeError(f"{what}; call {name}(...): each iteration of its parallel loop is a thread")

    def __repr__(self) -> str:
        where = f"{self.source_text.path}:{self.source_text.first_line}"
        return f"<kernel {self.__name__} ({where}), {len(self._variants)} variants>"

    # ---- binding

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The function's parameters; annotations are read at the first use, so that they may name what is
        defined later."""
        if self._parameters is None:
            self._parameters = parameters_of(self.source_text)
        return self._parameters

    def _make_dispatcher(self) -> None:
        scope: dict[str, Any] = {
            "variants": self._variants.table, "launch_state": launch_state, "observed": OBSERVED,
            "tick": self._ticks.__next__, "miss": self._miss, "refused": self._packing_failed,
            "wrong": Binder(self.__name__, self.parameters).wrong, "report": self._report,
            "type_key": type_key, "static_key": static_key,
        }  # fmt: skip
        pytrees = [pytree for pytree, _ in self._pytrees.values() if not pytree.plain]
        made: Callable[..., Any] | None = None
        # the newest is looked at first
        for pytree in (Pytree(self.parameters), *pytrees[-_DISPATCHED:]):
            made = make_dispatcher(self.__name__, self.parameters, pytree, self.debug, self._captures, scope, made)
        assert made is not None
        self._dispatch = made

    def _first_call(self, /, *args: Any, **kwargs: Any) -> None:
        with self._lock:
            if self._dispatch == self._first_call:
                self._make_dispatcher()
        self._dispatch(*args, **kwargs)

    def bind(self, args: tuple[Any, ...]) -> BoundArguments:
        """The call's arguments, flattened to leaves. Raises `TypeError`."""
        if any(a is MISSING for a in args):
            Binder(self.__name__, self.parameters).wrong(args)
        name, source = self.__name__, self.source_text
        pytree, values = flatten(name, self.parameters, args, lambda: attributes_read(source))
        with self._lock:
            cached = self._pytrees.get(pytree.structure)
            if cached is None:
                if len(self._pytrees) >= _MAX_PYTREES:
                    del self._pytrees[next(iter(self._pytrees))]
                scope = {"type_key": type_key, "static_key": static_key}
                cached = self._pytrees[pytree.structure] = pytree, make_key(pytree, scope)
        imported = foreign_arrays.import_arguments(name, cached[0].leaves, values)
        return BoundArguments(self.__name__, cached[0], *imported, cached[1])

    def _miss(self, args: tuple[Any, ...]) -> None:
        """A call that the dispatcher has no variant for: new types, a changed captured value, arrays of other
        libraries, or observed launches."""
        if (shared := foreign_arrays.import_cpu_tensors(self.parameters, args)) is not None:
            return self._dispatch(*shared)
        bound = self.bind(args)
        misses = self.counts["misses"]
        variant = self._variant(bound, self._checked())
        if self.counts["misses"] == misses:
            next(self._ticks)
        bound.check_scalars()
        self._launch(variant, bound)

    def _launch(self, variant: Variant, bound: BoundArguments) -> None:
        def run() -> None:
            failure = variant.launch(*bound.slots())
            if failure:
                self._report(failure, variant.launch)

        directions, named = variant.program.directions, bound.named
        if bound.copied:
            foreign_arrays.upload(self.__name__, bound.copied, named, directions)
        if observed():
            observe(Launch(self.__name__, variant, named, run, self.marked))
        else:
            run()
        if bound.copied:
            foreign_arrays.download(bound.copied, named, directions)

    def variant(self, args: tuple[Any, ...], checked: bool | None = None) -> Variant:
        """The variant for arguments of these types, compiled if need be: with bounds checks, without, or as
        this thread's mode asks (None)."""
        return self._variant(self.bind(args), self._checked() if checked is None else checked)

    def _variant(self, bound: BoundArguments, checked: bool) -> Variant:
        # The mode is read once per call: another thread may change it at any time.
        with self._lock:
            if self._dispatch == self._first_call:
                self._make_dispatcher()
            self._refresh()
            try:
                variant = self._variants.find(bound.key(checked, *bound.values))
            except (AttributeError, TypeError):
                bound.types()  # says which argument is wrong
                raise
            return variant or self._new_variant(bound, checked)

    def _checked(self) -> bool:
        return launch_state.debug if self.debug is None else self.debug

    def _new_variant(self, bound: BoundArguments, checked: bool) -> Variant:
        made = self._compile(bound, checked)
        self._variants.add(bound.key(checked, *bound.values), made)
        self.counts["misses"] += 1
        new = tuple(c for c in made.program.captures if not self._captured(c))
        if self.on_global_change is not None:
            self._captures += new
        if not bound.pytree.plain:  # the last compiled is the first looked for
            self._pytrees.pop(bound.pytree.structure, None)
            self._pytrees[bound.pytree.structure] = bound.pytree, bound.key
        if new or not bound.pytree.plain:
            self._make_dispatcher()
        return made

    def _captured(self, capture: Capture) -> bool:
        return any(capture.owner is c.owner and capture.name == c.name for c in self._captures)

    def _compile(self, bound: BoundArguments, checked: bool) -> Variant:
        device, program = bound.device(), self._lowered(bound, checked)
        bound.check_writeable(program)
        artifact = compiler.load(self.__name__, program.text, program.steps, device, self.flags, self.counts)
        names = tuple(p.name for p in bound.pytree.leaves)
        options = {"kernel": self.__name__, "watched": bound.watched(written_by(program))}
        launch = launcher_of(program, artifact.function, device, names, checked, extents=program.extents, **options)
        vars(launch)["sites"] = program.sites  # for reports: the variant may be dropped while it runs
        key = explain.key_of(self, bound, program, device, checked)
        pytree, types = bound.pytree, bound.leaf_types()
        return Variant(program, artifact, launch, device, self.flags, program.checked, key, pytree, types)

    def _lowered(self, bound: BoundArguments, checked: bool) -> Program:
        types, device = bound.types(), bound.device()
        try:
            return lower(self.source_text, types, device.kind, checked, self.wraparound, bound.declared(), self.asserts)
        except CompileError as error:  # the message says where; the compiler's own frames don't help
            raise error.with_traceback(None) from None
        except RecursionError:
            what = f"kernel {self.__name__!r} has an expression that is nested too deeply"
            raise CompileError(f"{what}; split it with variables") from None

    # ---- captured values

    def _refresh(self) -> None:
        """Drop what was compiled with captured values that have changed since."""
        now = [(c, c.current_value()) for c in self._captures]
        if all(value is c.value for c, value in now):
            return
        changed = [(c, value) for c, value in now if static_key(value) != static_key(c.value)]
        if changed and self.on_global_change == "raise":
            capture, value = changed[0]
            was, is_now = shown(capture.value), "nothing" if value is Capture else shown(value)
            raise RuntimeError(
                f"kernel {self.__name__!r} was compiled with {capture.name_in(self.__module__)} = {was}, "
                f"which is now {is_now}; pass it as a parameter, or use on_global_change='recompile'"
            )
        if changed:
            self._variants.clear()
        self._captures = () if changed else tuple(Capture(c.owner, c.name, value) for c, value in now)
        self._make_dispatcher()
        for capture, value in changed:
            name = capture.name_in(self.__module__)
            self._changes[name] += 1
            if self._changes[name] == WARNED_AT and isinstance(value, (int, float, complex, np.generic)):
                warn_of_changes(self, name, capture.name, WARNED_AT)

    def forget(self) -> None:
        """Drop all variants."""
        with self._lock:
            self._variants.clear()

    def _would_hit(self, args: tuple[Any, ...]) -> bool:
        """Whether a launch finds its variant."""
        with self._lock:
            same = all(static_key(c.current_value()) == static_key(c.value) for c in self._captures)
            bound = self.bind(args)
            return same and self._variants.has(bound.key(self._checked(), *bound.values))

    # ---- failures

    def _packing_failed(self, args: tuple[Any, ...]) -> None:
        """Packing refused a value: say which parameter, what was expected, what came."""
        bound = self.bind(args)
        bound.check_scalars()
        self._launch(self._variant(bound, self._checked()), bound)

    def _report(self, failure: Any, launch: Callable[..., Any]) -> None:
        raise_failure(self.__name__, vars(launch)["sites"], failure)

    # ---- introspection

    def dump(self, *names: str) -> Kernel:
        """Mark parameters: `pa.dump(level=1)` records what is passed as them, from now on. Returns the kernel
        itself. Raises `ValueError` for a name that is no parameter's, `TypeError` for a number's."""
        for name in names:
            matching = [p for p in self.parameters if p.name == name]
            if not matching:
                names_of_kernel = ", ".join(repr(p.name) for p in self.parameters)
                raise ValueError(f"kernel {self.__name__!r} has no parameter {name!r}; it has {names_of_kernel}")
            if matching[0].scalar or matching[0].annotation is constexpr:
                what = f"parameter {name!r} of kernel {self.__name__!r} is no array"
                raise TypeError(f"{what}; numbers are recorded with every marked launch")
        self.marked |= frozenset(names)
        return self

    @property
    def signature(self) -> Signature:
        """Parameter → `Argument(direction, dtype, ndim)` of the variant compiled last. Raises `RuntimeError`
        before the first."""
        if not self._variants:
            what = f"kernel {self.__name__!r} has no signature before its first launch"
            raise RuntimeError(f"{what}: types come with the arguments")
        last = list(self._variants)[-1]
        return signature_of(last.program, last.leaf_types)

    def cache_info(self) -> dict[str, int]:
        """`compiles` (runs of the compiler), `disk_hits`, `hits` and `misses` of the variant table,
        `variants`."""
        with self._lock:
            counts = counts_of(self.counts, self._ticks)
        return counts | {"variants": len(self._variants)}

    def cache_key(self, /, *args: Any, **kwargs: Any) -> explain.CacheKey:
        """What a variant for these arguments is compiled for: a mapping from axis to value, hashable, equal
        for arguments that share an artifact. Neither compiles nor launches. Raises what a launch raises."""
        return explain.cache_key(self, explain.arguments(self, args, kwargs))

    def explain_miss(self, /, *args: Any, **kwargs: Any) -> str | None:
        """None if a launch with these arguments would find its variant; else a text with the axes in which
        they differ from the nearest one. Neither compiles nor launches."""
        return explain.explain_miss(self, explain.arguments(self, args, kwargs))

    def explain(self, /, *args: Any, **kwargs: Any) -> str:
        """How loops that divide their variable and reshaped views are compiled for these arguments, and why;
        debug mode divides. Neither compiles nor launches."""
        return explain.explain(self, explain.arguments(self, args, kwargs))

    def cost_analysis(self, /, *args: Any, **kwargs: Any) -> Cost:
        """What a launch with these arguments does, counted in the typed tree at their sizes. Neither compiles
        nor launches; arguments may be on any device, `null:0` too. Raises what a launch raises."""
        return cost_of_call(self, self.bind(explain.arguments(self, args, kwargs)))

    def manifest(self) -> dict[str, Any]:
        """What `save` writes, without texts and binaries: names, types, directions and slots of parameters,
        target, hashes. For JSON. Raises `RuntimeError` before the first launch, `TypeError` for a value
        compiled in that can't be written down."""
        return saved.manifest(self)

    def save(self, path: Any) -> None:
        """Write the variants compiled so far to a file that `pa.load_kernel` turns into a callable in any
        process, without this source. Raises what `manifest` does."""
        saved.save(self, path)

    def source(self, device: Any = None, *, args: tuple[Any, ...] | None = None, debug: bool | None = None) -> str:
        """Text that is compiled for a device.

        Parameters
        ----------
        device : device or str, optional
            A device of the kind asked for. Default: that of `args`, or any.
        args : tuple, optional
            Arguments of the types asked for; the front end runs for them, the compiler doesn't. Default: the
            types compiled last.
        debug : bool, optional
            With bounds checks or without. Default: as a launch of this thread has them.

        Raises
        ------
        RuntimeError
            Without `args`, if no such variant has been compiled.
        ValueError
            If `device` is not where the arrays in `args` are.
        """
        return explain.source(self, device, args, debug)


@overload
def kernel(function: Callable[P, Any]) -> TypedKernel[Callable[P, None]]: ...
@overload
def kernel(
    *,
    debug: bool | None = None,
    wraparound: bool = False,
    flags: Iterable[str] = (),
    on_global_change: str = "recompile",
    asserts: bool = False,
) -> Callable[[Callable[P, Any]], TypedKernel[Callable[P, None]]]: ...
def kernel(
    function: Any = None,
    *,
    debug: bool | None = None,
    wraparound: bool = False,
    flags: Iterable[str] = (),
    on_global_change: str = "recompile",
    asserts: bool = False,
) -> Any:
    """Compile a Python function for devices: each top-level `for` is a parallel loop.

    `debug` fixes bounds checks on or off for this kernel, `wraparound` lets run-time negative indices count
    from the end. `flags` are further flags for the compiler, after pyarray's own, or one. Values that the
    function takes from globals or closures are compiled in; when one has changed the kernel is compiled
    again, or, with `on_global_change="raise"`, the launch is a `RuntimeError`. `asserts` tests the kernel's
    assertions without debug mode, too. Raises `TypeError` for what is
    no Python function and for flags that are no texts; what is outside the language is a `CompileError` at
    the first call.

    >>> @pa.kernel
    ... def double(v):
    ...     for i in range(v.size):
    ...         v[i] = 2 * v[i]
    >>> a = pa.ones(3)
    >>> double(a)
    >>> a.tolist()
    [2.0, 2.0, 2.0]
    """
    if on_global_change not in ("recompile", "raise"):
        raise ValueError(f"on_global_change is 'recompile' or 'raise', got {on_global_change!r}")
    scope, checked_flags = sys._getframe(1).f_locals, compiler.checked_flags("a kernel", flags)

    def make(f: Any) -> Kernel:
        plain = f.__wrapped__ if isinstance(f, (Kernel, Func)) else f
        return Kernel(source_of(plain, scope), debug, wraparound, checked_flags, on_global_change, asserts)

    return make if function is None else make(function)


def from_text(name: str, text: str, scope: dict[str, Any], flags: tuple[str, ...] = ()) -> Kernel:
    """A kernel from the text of its `def`: the library's own kernels are written by rank. The text shows in
    error messages. What `scope` holds is compiled in for good."""
    return Kernel(source_of(function_from_text(name, text, scope)), None, False, flags, on_global_change=None)


__all__ = ["Func", "Kernel", "Variant", "from_text", "func", "kernel"]
