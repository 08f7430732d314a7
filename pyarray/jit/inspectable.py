"""What kernels tell of themselves: signatures, cache keys, costs, texts."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from ..lang.markers import constexpr
from . import explain, save
from .cache_counters import counts_of
from .launch_cost import Cost, cost_of_call
from .signature import Signature, signature_of

if TYPE_CHECKING:
    from typing import Self

    from .variants import Variants


class Inspectable:
    """The part of `Kernel` that neither compiles nor launches."""

    __name__: str
    marked: frozenset[str]
    counts: Counter[str]
    _variants: Variants
    bind: Any

    def dump(self, *names: str) -> Self:
        """Mark parameters: `pa.dump(level=1)` records what is passed as them, from now on. Returns the kernel
        itself. Raises `ValueError` for a name that is no parameter's, `TypeError` for a number's."""
        parameters: tuple[Any, ...] = self.parameters  # type: ignore[attr-defined]
        for name in names:
            matching = [p for p in parameters if p.name == name]
            if not matching:
                names_of_kernel = ", ".join(repr(p.name) for p in parameters)
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
        return counts_of(self.counts, self._variants.table.hits) | {"variants": len(self._variants)}

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
        return save.manifest(self)

    def save(self, path: Any) -> None:
        """Write the variants compiled so far to a file that `pa.load_kernel` turns into a callable in any
        process, without this source. Raises what `manifest` does."""
        save.save(self, path)

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
