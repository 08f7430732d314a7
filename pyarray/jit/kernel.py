"""`@kernel`: compiles a Python function for devices, once per tuple of argument types, and launches it.

Variants are keyed by types alone: a temporary view finds the same one as a lasting view, and none is stale.
"""

from __future__ import annotations

import inspect
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, overload

import numpy as np

from .._core import Dispatcher
from ..buffer_view import BufferView
from ..dtypes import shown
from ..errors import CompileError
from ..lang import builtins
from ..lang.ir import static_key
from ..lang.launch_shape import UNSHAPED, LaunchShape, Numbers, launch_shape
from ..lang.parse import Capture, FunctionSource, attributes_read, function_from_text, source_of
from ..lang.pipeline import Program, lower
from ..locks import new_lock
from . import compile as compiler
from . import explain, foreign_arrays
from .ahead_of_time import Compilable, check_types
from .argument_errors import Binder
from .binding import BoundArguments
from .cache_counters import retire_counts
from .functions import Func, Importable, P, func
from .gradient import Adjoint, check_arrays
from .inspectable import Inspectable
from .kernel_registry import register
from .launch import launcher_of
from .launch_state import Launch, launch_state, observe, observed
from .pytree import Pytree, flatten
from .report import raise_failure, warn_of_changes
from .signature import Parameter, parameters_of
from .variants import Variant, Variants

if TYPE_CHECKING:
    from .typed_calls import TypedKernel

builtins.register(BufferView, "subview")
_DISPATCHED = 8  # pytrees with structures that dispatchers test for; `_miss` finds the others
WARNED_AT = 3  # of changes of one captured number
_MAX_PYTREES = 64  # each keeps the classes of its structures alive


class Kernel(Importable, Compilable, Inspectable, Dispatcher):
    """A compiled-on-demand kernel; made by `kernel`. Call it with arrays and numbers; it returns nothing."""

    __pyarray_kernel__ = True
    _what = "kernel"

    def __init__(
        self,
        source: FunctionSource,
        debug: bool | None,
        wraparound: bool,
        flags: tuple[str, ...],
        on_global_change: str | None,
        shape: LaunchShape = UNSHAPED,
        asserts: bool = False,
    ):
        self.__name__, self.__doc__ = source.name, source.function.__doc__
        self.__module__, self.__qualname__ = source.function.__module__, source.function.__qualname__
        self.__wrapped__ = source.function
        self.source_text = source
        self.debug, self.wraparound, self.flags = debug, wraparound, flags
        self.on_global_change, self.shape, self.asserts = on_global_change, shape, asserts
        self.counts: Counter[str] = Counter()
        self.marked: frozenset[str] = frozenset()
        self._variants = Variants()
        self._captures: tuple[Capture, ...] = ()
        self._lock = new_lock()
        self._changes: Counter[str] = Counter()  # of captured values, by name
        if on_global_change is None:
            retire_counts(self, self.counts, partial(getattr, self._variants.table, "hits"))
        self._parameters: tuple[Parameter, ...] | None = None
        self._prepared = False
        self._pytrees: dict[Any, Pytree] = {}  # by structure
        self._gradient: Gradient | None = None
        register(self)

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
            self._parameters = self._own_parameters()
        return self._parameters

    def _own_parameters(self) -> tuple[Parameter, ...]:
        return parameters_of(self.source_text)

    def call_signature(self) -> inspect.Signature:
        """The signature that calls are bound by."""
        return self.source_text.signature

    def attributes(self) -> dict[str, Any]:
        """What the kernel's text reads of objects."""
        return attributes_read(self.source_text)

    def _prepare(self) -> None:
        """At the first call: what C binds arguments by, and looks variants up in."""
        with self._lock:
            if not self._prepared:
                self._set_parameters(*Binder(self.__name__, self.parameters).for_c(), self.debug)
                self._prepared = True
                self._publish()

    def _publish(self) -> None:
        """Makes C look variants up as they are now: by the structures that were met last, the newest first."""
        structures = [pytree for pytree in self._pytrees.values() if not pytree.plain][-_DISPATCHED:]
        treedefs = (*(pytree.treedef for pytree in reversed(structures)), Pytree(self.parameters).treedef)
        captures = tuple((c.owner, c.name, c.value) for c in self._captures)
        self._set_variants(self._variants.table, treedefs, captures)

    def _wrong(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NoReturn:
        """Raises the `TypeError` of a call that doesn't fit the signature."""
        Binder(self.__name__, self.parameters).wrong(args, kwargs)

    def bind(self, args: tuple[Any, ...]) -> BoundArguments:
        """The call's arguments, flattened to leaves. Raises `TypeError`."""
        name, (pytree, values) = self.__name__, self._flatten(args)
        with self._lock:
            known = self._pytrees.setdefault(pytree.structure, pytree)
            if len(self._pytrees) > _MAX_PYTREES:
                del self._pytrees[next(iter(self._pytrees))]
        return BoundArguments(name, known, *foreign_arrays.import_arguments(name, known.leaves, values))

    def _flatten(self, args: tuple[Any, ...]) -> tuple[Pytree, list[Any]]:
        return flatten(self.__name__, self.parameters, args, self.attributes)

    def _miss(self, args: tuple[Any, ...]) -> None:
        """A call that the dispatcher has no variant for: new types, a changed captured value, arrays of other
        libraries, or observed launches."""
        bound = self.bind(args)
        misses = self.counts["misses"]
        variant = self._variant(bound, self._checked())
        if self.counts["misses"] == misses:
            self._variants.table.hit()
        bound.check_scalars()
        check_arrays(self.__name__, bound, variant.program)
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
            if not self._prepared:
                self._prepare()
            self._refresh()
            try:
                variant = self._variants.find(bound.key(checked))
            except TypeError:
                bound.types()  # says which argument is wrong
                raise
            return variant or self._new_variant(bound, checked)

    def _checked(self) -> bool:
        return launch_state.debug if self.debug is None else self.debug

    def _new_variant(self, bound: BoundArguments, checked: bool) -> Variant:
        made = self._compile(bound, checked)
        new = tuple(c for c in made.program.captures if not self._captured(c))
        if self.on_global_change is not None:
            self._captures += new
        if not bound.pytree.plain:  # the last compiled is the first looked for
            self._pytrees.pop(bound.pytree.structure, None)
            self._pytrees[bound.pytree.structure] = bound.pytree
        if new or not bound.pytree.plain:
            self._publish()
        self._variants.add(bound.key(checked), made)  # last: whoever finds it looks at what it captured
        self.counts["misses"] += 1
        return made

    def _captured(self, capture: Capture) -> bool:
        return any(capture.owner is c.owner and capture.name == c.name for c in self._captures)

    def _compile(self, bound: BoundArguments, checked: bool) -> Variant:
        device, program = bound.device(), self._lowered(bound, checked)
        bound.check_writeable(program)
        artifact = compiler.load(self.__name__, program.text, program.steps, device, self.flags, self.counts)
        names = tuple(p.name for p in bound.pytree.leaves)
        options = {"kernel": self.__name__, "extents": program.extents}
        launch = launcher_of(program, artifact.function, device, names, checked, **options)
        launch.sites = program.sites  # for reports: the variant may be dropped while it runs
        key = explain.key_of(self, bound, program, device, checked)
        pytree, types = bound.pytree, bound.leaf_types()
        return Variant(program, artifact, launch, device, self.flags, checked, key, pytree, types)

    def _lowered(self, bound: BoundArguments, checked: bool, kind: str | None = None) -> Program:
        """The program for these arguments, on their device or one of another `kind`."""
        types, kind = bound.types(), kind or bound.device().kind
        try:
            return self._lower(types, kind, checked, bound.declared())
        except CompileError as error:  # the message says where; the compiler's own frames don't help
            raise error.with_traceback(None) from None
        except RecursionError:
            what = f"kernel {self.__name__!r} has an expression that is nested too deeply"
            raise CompileError(f"{what}; split it with variables") from None

    def _lower(self, types: list[tuple[str, Any]], kind: str, checked: bool, declared: Mapping[str, str]) -> Program:
        options = self.wraparound, declared, self.shape, self.asserts
        return lower(self.source_text, types, kind, checked, *options)

    @property
    def grad(self) -> Gradient:
        """The kernel's adjoint: `k.grad(x, y, grad_x=gx, grad_y=gy)` makes gradients of what the arguments hold after
        `k(x, y)` those of what they held before. Gradients of elements that `k` reads are added to; those of elements
        that it stores are read, and set to 0.

        A call raises `CompileError` for a kernel whose gradient would be wrong, `TypeError` for what is no gradient,
        `ValueError` for a gradient of another shape and for arrays that share memory where they mustn't.

        >>> @pa.kernel
        ... def square(x, y):
        ...     for i in range(x.size):
        ...         y[i] = x[i] * x[i]
        >>> x, y, gx = pa.asarray([1.0, 2.0]), pa.zeros(2), pa.zeros(2)
        >>> square(x, y)
        >>> square.grad(x, y, grad_x=gx, grad_y=pa.ones(2))
        >>> gx.tolist()
        [2.0, 4.0]
        """
        with self._lock:
            if self._gradient is None:
                self._gradient = Gradient(self)
            return self._gradient

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
        self._publish()
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
            return same and self._variants.has(bound.key(self._checked()))

    # ---- failures

    def _refused(self, args: tuple[Any, ...]) -> None:
        """Packing refused a value: say which parameter, what was expected, what came."""
        bound = self.bind(args)
        bound.check_scalars()
        self._launch(self._variant(bound, self._checked()), bound)

    def _report(self, failure: Any, launch: Any) -> None:
        raise_failure(self.__name__, launch.sites, failure)


class Gradient(Adjoint, Kernel):
    """A kernel's adjoint, made by `kernel.grad`: a kernel of the same parameters, and by keyword their gradients,
    `grad_x` of `x`."""

    def __init__(self, of: Kernel, required: tuple[str, ...] = ()):
        self.of, self.required = of, required
        super().__init__(of.source_text, of.debug, of.wraparound, of.flags, of.on_global_change)
        self.__name__, self.__qualname__ = f"{of.__name__}.grad", f"{of.__qualname__}.grad"
        self.__doc__ = f"The adjoint of the kernel {of.__name__!r}."

    def __call__(self, /, *args: Any, **kwargs: Any) -> None:
        named = self.bound_call(args, kwargs)
        if self.is_quick(named):
            super().__call__(**named)
        else:
            self._miss(tuple(named.values()))

    def __reduce__(self) -> Any:
        return getattr, (self.of, "grad")

    @property
    def grad(self) -> Any:
        """Raises `TypeError`: an adjoint has no adjoint."""
        raise TypeError(f"{self.__name__} has no gradient: kernels have first derivatives alone")


@overload
def kernel(function: Callable[P, Any]) -> TypedKernel[Callable[P, None]]: ...
@overload
def kernel(
    *,
    debug: bool | None = None,
    wraparound: bool = False,
    flags: Iterable[str] = (),
    on_global_change: str = "recompile",
    threads: Numbers = None,
    per_thread: Numbers = None,
    types: Iterable[Any] = (),
    asserts: bool = False,
) -> Callable[[Callable[P, Any]], TypedKernel[Callable[P, None]]]: ...
def kernel(
    function: Any = None,
    *,
    debug: bool | None = None,
    wraparound: bool = False,
    flags: Iterable[str] = (),
    on_global_change: str = "recompile",
    threads: Numbers = None,
    per_thread: Numbers = None,
    types: Iterable[Any] = (),
    asserts: bool = False,
) -> Any:
    """Compile a Python function for devices: each top-level `for` is a parallel loop.

    `debug` fixes bounds checks on or off for this kernel, `wraparound` lets run-time negative indices count
    from the end. `flags` are further flags for the compiler, after pyarray's own, or one. Values that the
    function takes from globals or closures are compiled in; when one has changed the kernel is compiled
    again, or, with `on_global_change="raise"`, the launch is a `RuntimeError`. On GPUs, blocks have so many
    `threads` and a thread takes `per_thread` iterations: of all parallel loops, or of each by a tuple; no result
    depends on it. `types` are what `compile` compiles for, a tuple for each signature. `asserts` tests the kernel's
    assertions without debug mode, too.

    Raises `TypeError` for what is no Python function and for options of a wrong type, `ValueError` for numbers
    that a block can't have; what is outside the language is a `CompileError` at the first call.

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
    shape, declared_types = launch_shape("a kernel", threads, per_thread), check_types("a kernel", types)

    def make(f: Any) -> Kernel:
        plain = f.__wrapped__ if isinstance(f, (Kernel, Func)) else f
        made = Kernel(source_of(plain, scope), debug, wraparound, checked_flags, on_global_change, shape, asserts)
        made.declared_types = declared_types
        return made

    return make if function is None else make(function)


def from_text(name: str, text: str, scope: dict[str, Any], flags: tuple[str, ...] = ()) -> Kernel:
    """A kernel from the text of its `def`: the library's own kernels are written by rank. The text shows in
    error messages. What `scope` holds is compiled in for good."""
    return Kernel(source_of(function_from_text(name, text, scope)), None, False, flags, on_global_change=None)


__all__ = ["Func", "Kernel", "Variant", "from_text", "func", "kernel"]
