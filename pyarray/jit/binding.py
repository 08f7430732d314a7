"""`BoundArguments`: the arguments of one call, flattened to leaves, with their types and checks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ..array import ndarray
from ..array_hooks import on_several_devices
from ..array_views import repetition
from ..driver.base import Device, get_device
from ..dtypes import DEFAULT
from ..lang.aggregates import leaves
from ..lang.pipeline import Program
from .foreign_arrays import DeviceCopy
from .pytree import Pytree, types_of
from .signature import Parameter, bind_type, check_number, is_readonly


@dataclass(frozen=True, eq=False)
class BoundArguments:
    """The leaves of a call's arguments, in the order of `pytree.leaves`, each read once; `copied` are those
    that stand for host arrays."""

    kernel: str
    pytree: Pytree
    values: tuple[Any, ...]
    copied: tuple[DeviceCopy, ...] = ()

    @property
    def pairs(self) -> Iterator[tuple[Parameter, Any]]:
        return zip(self.pytree.leaves, self.values, strict=True)

    @property
    def named(self) -> dict[str, Any]:
        """Leaves by path: `p.v`, `t[0]`, or the parameter's name."""
        return {p.name: value for p, value in self.pairs}

    def types(self) -> list[tuple[str, Any]]:
        """(name, type) of each parameter, as `lang.pipeline.lower` takes them. Raises `TypeError` that names
        what is wrong."""
        return types_of(self.kernel, self.pytree, self.values)

    def leaf_types(self) -> tuple[Any, ...]:
        """Type of each leaf, in the order of `pytree.leaves`."""
        return tuple(kind for name, group in self.types() for _, kind in leaves(name, group))

    def declared(self) -> dict[str, str]:
        """Directions that annotations say, by path."""
        annotations = ((p.name, getattr(p.annotation, "direction", None)) for p in self.pytree.leaves)
        return {name: direction for name, direction in annotations if direction is not None}

    def device(self) -> Device:
        """Where all the arrays are; the default device without any. Raises `ValueError` for two devices."""
        arrays = [(repr(p.name), a) for p, a in self.pairs if isinstance(a, ndarray)]
        devices = {a.device for _, a in arrays}
        if len(devices) > 1:
            raise on_several_devices(self.kernel, arrays)
        return next(iter(devices), None) or get_device(None)

    def check_writeable(self, program: Program) -> None:
        """Raises `ValueError` for a read-only array that the program writes."""
        for p, a in self.pairs:
            is_written = program.directions.get(p.name) in ("OUT", "INOUT")
            if is_written and isinstance(a, ndarray) and is_readonly(a._key):
                what = f"{p.name!r} is written by the kernel, and this array is read-only"
                why = repetition(a)
                raise ValueError(f"{self.kernel}(): {what}{why and ': '}{why}; pass a copy")

    def key(self, checked: bool) -> Any:
        """What a variant is looked up by. Raises `TypeError` for what is no argument of a kernel."""
        return self.pytree.treedef.key(checked, self.values)

    def check_scalars(self) -> None:
        """Raises `TypeError` or `OverflowError` for a number that its parameter can't hold."""
        check_scalars(self.kernel, self.pairs)

    def slots(self) -> Iterator[Any]:
        """The leaves as launchers take them: arrays of one element, where they are numbers, as Python's."""
        return (a.item() if p.scalar and hasattr(a, "item") else a for p, a in self.pairs)


def check_scalars(kernel: str, pairs: Iterable[tuple[Parameter, Any]]) -> None:
    """Raises `TypeError` or `OverflowError` for a number that its parameter can't hold."""
    for p, value in pairs:
        if p.annotation is float and type(value) is float:
            continue
        if p.scalar:
            bind_type(kernel, p, value)
        elif p.annotation is None and type(value) is int:
            check_number(kernel, p.name, int, DEFAULT["i"], value)
