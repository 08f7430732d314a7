"""Cache keys, axis by axis, and why a launch would miss. Nothing here compiles or launches.

The key is read off the types that `lower` gets and what else decides the binary; sizes, offsets, addresses
and values of numbers are in none of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from ..array import WATCHED
from ..driver.base import Device, get_device
from ..dtypes import named_dtype, shown
from ..lang.aggregates import leaves
from ..lang.ir import ArrayType, Static, static_key
from ..lang.pipeline import Program
from . import compile as compiler
from .binding import BoundArguments
from .pytree import Struct, constant_class
from .signature import is_readonly

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
INDEX_BITS = 64  # of sizes, offsets and index arithmetic


class CacheKey(Mapping[str, Hashable]):
    """Axis → value, in order: hashable, and equal for arguments that share an artifact.

    Axes of an array parameter `v` are `v.dtype`, `v.ndim`, `v.layout`, `v.index`, `v.access`, `v.pins`; of a
    number without annotation `x.type`, of a constant `n.value`. `captured NAME` are Python values compiled
    in. `artifact` is the name of the entry on disk, and follows from the rest.
    """

    __slots__ = ("_axes",)

    def __init__(self, axes: Iterable[tuple[str, Hashable]]):
        self._axes = dict(axes)

    def __getitem__(self, axis: str) -> Hashable:
        return self._axes[axis]

    def __iter__(self) -> Iterator[str]:
        return iter(self._axes)

    def __len__(self) -> int:
        return len(self._axes)

    def __hash__(self) -> int:
        return hash(tuple(self._axes.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CacheKey) and self._axes == other._axes

    def __repr__(self) -> str:
        return "CacheKey(\n" + "".join(f"    {axis}: {value}\n" for axis, value in self.items()) + ")"

    def differences(self, other: CacheKey) -> list[str]:
        """Axes in which they differ, in words."""
        axes = [axis for axis in dict.fromkeys((*self, *other)) if self.get(axis, _NONE) != other.get(axis, _NONE)]
        axes_shown = [axis for axis in axes if axis != "artifact"] or axes
        return [f"{axis}: {self.get(axis, _NONE)}, there {other.get(axis, _NONE)}" for axis in axes_shown]


class _Nothing:
    def __repr__(self) -> str:
        return "nothing"


_NONE = _Nothing()


def key_of(kernel: Any, bound: BoundArguments, program: Program, device: Device, checked: bool) -> CacheKey:
    """The key of `program`, which is the kernel's for these arguments, with bounds checks or without."""
    others = _other_axes(kernel, program, device, checked)
    return CacheKey((*_parameter_axes(bound), *_captured_axes(program), *others))


def _parameter_axes(bound: BoundArguments) -> Iterator[tuple[str, Hashable]]:
    for item in bound.pytree.items:
        if isinstance(item, Struct):
            yield f"{item.name}.class", item.kind
        elif (kind := constant_class(item)) is not None and issubclass(kind, (type, np.dtype)):
            yield f"{item.name}.given", "a class" if issubclass(kind, type) else "a dtype"
    types = (pair for name, kind in bound.types() for pair in leaves(name, kind))
    for (parameter, argument), (path, leaf) in zip(bound.pairs, types, strict=True):
        if isinstance(leaf, ArrayType):
            yield f"{path}.dtype", str(leaf.dtype)
            yield f"{path}.ndim", leaf.ndim
            yield f"{path}.layout", "strided" if leaf.strided else "contiguous"
            yield f"{path}.index", INDEX_BITS
            watched = "writeable, and autograd is axes_shown" if argument._key & WATCHED else "writeable"
            yield f"{path}.access", "read-only" if is_readonly(argument._key) else watched
            yield f"{path}.pins", "; ".join(map(str, leaf.specializations)) or "none"
        elif isinstance(leaf, Static):
            yield f"{path}.value", _comparable_value(leaf.value)
        elif not parameter.scalar:
            yield f"{path}.type", str(leaf)


def _comparable_value(value: Any) -> Hashable:
    """A value compiled in: in words where they say all, so that 1, 1.0 and True differ."""
    plain = type(value) in _PLAIN or named_dtype(value) is not None
    return shown(value) if plain else static_key(value)


def _captured_axes(program: Program) -> Iterator[tuple[str, Hashable]]:
    count: dict[str, int] = {}
    for capture in program.captures:
        name = f"captured {capture.name}"
        count[name] = count.get(name, 0) + 1
        yield name if count[name] == 1 else f"{name} ({count[name]})", _comparable_value(capture.value)


def _other_axes(kernel: Any, program: Program, device: Device, checked: bool) -> Iterator[tuple[str, Hashable]]:
    yield "debug", checked
    yield "wraparound", kernel.wraparound
    yield "device", device.kind
    yield "target", device.driver.target()
    yield "toolchain", device.driver.compiler().fingerprint
    yield "headers", compiler.headers()[:16]
    yield "flags", kernel.flags
    yield from kernel.shape.given().items()
    yield from compiler.settings()
    yield "artifact", compiler.key_of(program.text, program.steps, device, kernel.flags)


def arguments(kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """All arguments of a call, defaults too."""
    bound = kernel.call_signature().bind(*args, **kwargs)
    bound.apply_defaults()
    return tuple(bound.arguments[p.name] for p in kernel.parameters)


def cache_key(kernel: Any, args: tuple[Any, ...]) -> CacheKey:
    """The cache key of a launch with these arguments. Runs the front end, not the compiler."""
    bound, checked = kernel.bind(args), kernel._checked()
    return key_of(kernel, bound, kernel._lowered(bound, checked), bound.device(), checked)


def explain_miss(kernel: Any, args: tuple[Any, ...]) -> str | None:
    """None where a launch would find its variant, else why it wouldn't, against the nearest one there is."""
    if not kernel._variants:
        return f"kernel {kernel.__name__!r} has no variants yet: its next launch makes the first"
    requested = cache_key(kernel, args)
    if kernel._would_hit(args):
        return None
    compiled = [v.key for v in kernel._variants]
    rows = min((requested.differences(key) for key in compiled), key=len)
    count = f"{len(compiled)} variant{'s' if len(compiled) > 1 else ''}"
    head = f"kernel {kernel.__name__!r} has no variant for these arguments; against the nearest of its {count}:"
    return "\n  ".join((head, *(rows or ["nothing differs: a captured value was replaced by an equal one"])))


def explain(kernel: Any, args: tuple[Any, ...]) -> str:
    """As `Kernel.explain`."""
    bound = kernel.bind(args)
    program, name = kernel._lowered(bound, False), f"kernel {kernel.__name__!r} on {bound.device()}"
    if not program.remarks:
        return f"{name}: there are no divisions of loop variables, and no reshapes of strided arrays"
    return "\n  ".join((f"{name}:", *(f"line {line}: {remark}" for line, remark in program.remarks)))


def source(kernel: Any, device: Any, args: tuple[Any, ...] | None, debug: bool | None) -> str:
    """As `Kernel.source`."""
    kind = None if device is None else get_device(device).kind
    checked = kernel._checked() if debug is None else debug
    if args is not None:
        if not isinstance(args, (tuple, list)):
            what = f"source(): args is a tuple of all arguments of a launch, got {type(args).__name__}"
            raise TypeError(f"{what}; write source(args=(a, 2.0))")
        bound = kernel.bind(arguments(kernel, args, {}))
        if kind not in (None, bound.device().kind):
            raise ValueError(f"source(): the arguments are on {bound.device()}, asked for {device}")
        return str(kernel._lowered(bound, checked).text)
    variants = [v for v in kernel._variants if kind in (None, v.device.kind)]
    for variant in reversed(variants):
        if variant.checked == checked:
            return str(variant.program.text)
    where = f" for {kind}" if kind else ""
    how = (" without bounds checks", " with bounds checks")[checked] if variants else ""
    what = f"kernel {kernel.__name__!r} has not been compiled{where}{how}"
    other = f", pass debug={not checked}" if variants else ""
    raise RuntimeError(f"{what}; launch it once{other}, or pass args=(...)")
