"""`TextKernel`: a kernel whose device text is hand-written, with the artifact cache, slots, launches and reports
of other kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from .. import jit, lang
from ..array import STRIDED, ndarray
from ..array_hooks import operation
from ..driver.base import Device
from ..locks import new_lock
from .bounded_cache import BoundedCache
from .cache_counters import COUNTED, retire_counts
from .kernel_registry import register
from .launch_state import Launch, launch_state, observe, observed
from .variants import MAX_VARIANTS, Variant


class Address(int):
    """An address as an argument: a number that means something in this process only."""


def contiguous_operands(program: lang.pipeline.Program, arrays: Sequence[ndarray]) -> list[ndarray]:
    """The operands of a program's array parameters, with contiguous copies of inputs where a parameter is
    contiguous. Raises `ValueError` for an output that would have to be copied."""
    operands = list(arrays)
    kinds = [(name, kind) for name, kind in program.params if isinstance(kind, lang.ir.ArrayType)]
    for k, (name, kind) in enumerate(kinds):
        if kind.strided or not operands[k]._key & STRIDED:
            continue
        if program.directions[name] != "IN":
            raise ValueError(f"{program.name}(): {name!r} must be contiguous, got strides {operands[k]._strides}")
        operands[k] = operation("contiguous")(operands[k])
    return operands


class TextKernel:
    """`program(key, target, debug)` returns the text and its parameters for a hashable `key`, which must say
    all that the text depends on. Arguments are given as the program's parameters ask. `flags` are for a CPU's
    compiler, `grid_flags` for those of GPUs; `cpu_only`: there is no text for GPUs."""

    def __init__(
        self,
        name: str,
        program: Callable[[Any, str, bool], lang.pipeline.Program],
        flags: tuple[str, ...] = (),
        grid_flags: tuple[str, ...] = (),
        cpu_only: bool = False,
    ):
        self.__name__, self.program, self.flags, self.grid_flags = name, program, flags, grid_flags
        self.cpu_only = cpu_only
        self.counts: Counter[str] = Counter()
        # By bounds checks, device and the program's `key`, which says all that the text depends on.
        self._variants: BoundedCache[Any, Variant] = BoundedCache(MAX_VARIANTS)
        # fast paths of its callers; small beside the variants, and dropped with them
        self.plans: BoundedCache[Any, Any] = BoundedCache(4 * MAX_VARIANTS)
        self._lock = new_lock()
        retire_counts(self, self.counts, int)
        register(self)

    def forget(self) -> None:
        """Drop all variants."""
        self._variants.clear()
        self.plans.clear()

    def cache_info(self) -> dict[str, int]:
        """As `Kernel.cache_info`; hits aren't counted."""
        counts = {name: self.counts[name] for name in COUNTED}
        return counts | {"hits": 0, "variants": len(self._variants)}

    def variant(self, key: Any, device: Device, checked: bool | None = None) -> Variant:
        """The variant for `key`, compiled if need be: with bounds checks, without, or as this thread's mode
        asks (None)."""
        if checked is None:
            checked = launch_state.debug
        variant_key = checked, device.code, key
        variant = self._variants.get(variant_key)
        if variant is None:
            with self._lock:
                variant = self._variants.get(variant_key) or self._variants.add(
                    variant_key, self._compile(key, device, checked)
                )
                self.counts["misses"] += 1
        return variant

    def _compile(self, key: Any, device: Device, checked: bool) -> Variant:
        program = self.program(key, device.kind, checked)
        flags = self.flags if lang.dialect.DIALECTS[device.kind].blocks else self.grid_flags
        artifact = jit.compile.load(self.__name__, program.text, program.steps, device, flags, self.counts)
        names = tuple(name for name, _ in program.params)
        launch = jit.launch.launcher_of(program, artifact.function, device, names, checked)
        return Variant(program, artifact, launch, device, flags, checked)

    def launch(self, key: Any, device: Device, *args: Any, checked: bool | None = None) -> None:
        """Run the variant for `key`. Raises `BoundsError` in debug mode. Who passes other arguments then says
        by `checked` for which mode they are."""
        variant = self.variant(key, device, checked)
        if not observed():
            jit.report.launch_checked(self.__name__, variant, args)
            return
        named = {name: a for (name, _), a in zip(variant.program.params, args, strict=True)}
        observe(Launch(self.__name__, variant, named, partial(jit.report.launch_checked, self.__name__, variant, args)))
