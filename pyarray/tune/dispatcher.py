"""The generated dispatcher of a tuned kernel: looks the config up by the live arguments and launches.

Many such tuples are one key of the tuner: addresses are taken modulo 16, strides as they are. A tuple
without an entry takes the slow path, which makes the key.
"""

from __future__ import annotations

import functools
import os
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ..annotations import ArrayAnnotation
from ..array import ndarray
from ..driver.base import KINDS
from ..jit.argument_errors import MISSING, Binder, compile_function, signature, unused_prefix
from ..jit.binding import check_scalars
from ..jit.signature import Parameter
from ..lang.markers import constexpr
from ..lang.parse import Capture

# The text of these settings is part of what is looked up: a change in the environment is seen at once. The
# dictionary below os.environ takes a tenth of the time.
_NAMES = ("PYARRAY_AUTOTUNE", "PYARRAY_AUTOTUNE_CONFIG_DIR", "PYARRAY_CC", "PYARRAY_CFLAGS")
_environment: Any = getattr(os.environ, "_data", os.environ)
_BYTES = any(isinstance(name, bytes) for name in _environment)
_READ: tuple[Any, ...] = tuple(map(os.fsencode, _NAMES)) if _BYTES else _NAMES


class Chosen:
    """The default of a tuned parameter: the tuner says it."""

    def __repr__(self) -> str:
        return "chosen by the tuner"


CHOSEN = Chosen()


def setting_texts() -> tuple[Any, ...]:
    """The text of the settings, as it is now."""
    return tuple(map(_environment.get, _READ))


ARRAY, NUMBERED, NUMBER, OTHER = "array", "array on one of several devices", "number", "other"


def argument_kinds(parameters: Sequence[Parameter], args: Mapping[str, Any]) -> tuple[str, ...]:
    """The kind of each argument, for which the generated call is written."""
    return tuple(_kind(p, args[p.name]) for p in parameters if p.name in args)


def _kind(p: Parameter, value: Any) -> str:
    if isinstance(value, ndarray):
        return NUMBERED if KINDS[value.device.kind].numbered else ARRAY
    if p.structure or isinstance(p.annotation, ArrayAnnotation):
        return OTHER
    if p.scalar or p.annotation is constexpr or type(value) in (bool, int, float, complex):
        return NUMBER
    return OTHER


@dataclass(frozen=True, eq=False)
class DispatcherSpec:
    """What the calls of one tuned kernel are written from: its parameters, and which of them are tuned, are
    looked up by size or value, and zeroed."""

    kernel: Any
    parameters: tuple[Parameter, ...]
    tuned: tuple[str, ...]
    named: tuple[str, ...]
    zeroed: tuple[str, ...]

    @functools.cached_property
    def bind(self) -> Binder:
        """What binds a call's arguments to the parameters."""
        return Binder(self.kernel.__name__, self.ordered)

    @property
    def free(self) -> list[Parameter]:
        return [q for q in self.parameters if q.name not in self.tuned]

    @functools.cached_property
    def ordered(self) -> tuple[Parameter, ...]:
        """The parameters in the tuned kernel's order: tuned ones last, by keyword only."""
        chosen = partial(replace, keyword_only=True, default=CHOSEN)
        params = (chosen(q) if q.name in self.tuned else q for q in self.parameters)
        return tuple(sorted(params, key=lambda q: q.keyword_only))

    def key(self, pattern: Sequence[str], p: str) -> str:
        """The tuple that a choice is looked up by: all that a variant depends on, and the tuner's key;
        `p` begins our own names. The kernel, the candidates and what times them belong to the table; captured
        values are compared at each call, and a change by `config.set` empties it."""
        parts = [f"{p}number", f"{p}launch_state.key", f"*{p}map({p}get, {p}read)"]
        for q, kind in zip(self.free, pattern, strict=True):
            if kind in (ARRAY, NUMBERED):
                parts += [f"{q.name}._key", f"{q.name}._ptr & 15"]
                parts += [] if getattr(q.annotation, "view", False) else [f"{q.name}._strides"]
                parts += [f"{q.name}._buffer.device.code"] if kind == NUMBERED else []
                parts.append(_sizes(q, p, q.name in self.named))
            elif q.annotation is constexpr:
                parts.append(f"{p}static_key({q.name})")
            else:
                exact = f"{q.name} if {q.name}.__class__ is {p}int else {p}static_key({q.name})"
                kind = f"{q.name}.__class__" if q.annotation is None else ""  # what its variant depends on
                parts.append(exact if q.name in self.named else kind)
        return "(" + "".join(f"{part}, " for part in parts if part) + ")"


def long_axes(shape: tuple[int, ...]) -> tuple[bool, ...]:
    """Which axes have steps: all but those of size 1 and 0, as `tuning_key.layout_class` has it."""
    return tuple([n > 1 for n in shape])


def _sizes(q: Parameter, p: str, named: bool) -> str:
    """Of the sizes of an array, what the tuner's key depends on."""
    shape = f"{q.name}._shape"
    if named or getattr(q.annotation, "view", False):
        return shape if named else ""
    return f"(1 in {shape} or 0 in {shape}) and {p}long_axes({shape})"


def make_dispatcher(
    spec: DispatcherSpec,
    pattern: Sequence[str],
    captures: Sequence[Any],
    scope: dict[str, Any],
    fallback: Callable[..., Any],
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The call for one pattern, and the function of the arguments that gives the tuple. `scope` provides
    table, mode, tick, zero, report, static_key, number. The table's values are a launcher and the constants.
    What isn't found, and a value that doesn't fit, is for `fallback`."""
    p = unused_prefix(tuple(q.name for q in spec.parameters))
    scope = scope | {"CHOSEN": CHOSEN, "map": map, "get": _environment.get, "read": _READ}
    scope |= dict[str, Any](fallback=fallback, long_axes=long_axes, int=int)
    args = ", ".join(f"{q.name}={q.name}" if q.keyword_only else q.name for q in spec.ordered)
    every = "(" + "".join(f"{q.name}, " for q in spec.ordered) + ")"
    tests = [f"{name} is {p}CHOSEN" for name in spec.tuned]
    tests += [f"not {capture_guard(capture, k, p, scope)}" for k, capture in enumerate(captures)]
    constants = {name: f"{p}c{k}" for k, name in enumerate(spec.tuned)}
    passed = ", ".join(constants.get(q.name, q.name) for q in spec.parameters)
    scope |= {"check": partial(_check, spec.bind), "wrong": spec.bind.wrong}
    # an argument that the launch refuses mustn't be found out when results are gone
    zero = [f"    {p}check({every})\n"] if spec.zeroed else []
    zero += [f"    {p}zero({name})\n" for name in spec.zeroed]
    expression = spec.key(pattern, p)
    text = (
        f"def {p}f({signature(spec.ordered, p, scope, f'{p}extra', missing=True)}, **{p}unknown):\n"
        f"    if {p}extra or {p}unknown:\n"
        f"        {p}wrong({every}, {p}extra, {p}unknown)\n"
        f"    {p}found = None\n"
        "    try:\n"
        f"        if {' and '.join(tests) or 'True'}:\n"
        f"            {p}found = {p}table[{expression}]\n"
        "    except (LookupError, AttributeError, TypeError, ValueError):\n"
        "        pass\n"  # and not the other call: its errors would drag this one along
        f"    if {p}found is None:\n"
        f"        return {p}fallback({args})\n"
        f"    {', '.join([f'{p}launch', *constants.values()])}, = {p}found\n"
        f"    {p}tick()\n" + "".join(zero) + "    try:\n"
        f"        {p}failure = {p}launch({passed})\n"
        f"    except (TypeError, OverflowError):\n"
        f"        return {p}fallback({args})\n"
        f"    if {p}failure:\n"
        f"        {p}report({p}failure, {p}launch)\n"
    )
    names = ", ".join(q.name for q in spec.free)
    key = f"def {p}f({names}):\n    return {expression}\n"
    return compile_function(text, p, dict(scope), spec.kernel.__name__), compile_function(key, p, dict(scope), "key")


def capture_guard(capture: Capture, number: int, p: str, scope: dict[str, Any]) -> str:
    """A condition: the captured value is no longer the one compiled in."""
    scope[f"owner{number}"], scope[f"value{number}"] = capture.owner, capture.value
    if isinstance(capture.owner, (dict, list)):
        now = f"[{capture.name!r}]"
    else:
        now = ".cell_contents" if isinstance(capture.owner, types.CellType) else f".{capture.name}"
    return f"{p}owner{number}{now} is not {p}value{number}"


def _check(bind: Binder, args: tuple[Any, ...]) -> None:
    """Raises what the launch would raise for one of the arguments, in the order of `bind`."""
    if any(a is MISSING for a in args):
        bind.wrong(args)
    check_scalars(bind.name, zip(bind.params, args, strict=True))
