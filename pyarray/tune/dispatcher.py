"""What the call of a tuned kernel looks its choice up by, for C (`csrc/core/dispatcher.c`): the types of the arguments,
the layouts of arrays, and the sizes and values in the tuner's key.

Many such keys are one key of the tuner: addresses are taken modulo 16, strides as they are. A call without an entry
takes the slow path, which makes the tuner's key.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from .._core import TreeDef
from ..annotations import ArrayAnnotation
from ..array import ndarray
from ..jit.argument_errors import Binder
from ..jit.binding import check_scalars
from ..jit.pytree import CONSTANT, LAYOUT, NUMBER, SHAPE, TYPED, UNREAD, number_code
from ..jit.signature import Parameter
from ..lang.ir import static_key
from ..lang.markers import constexpr

# Each call compares the text of these settings: a change in the environment is seen at once. The dictionary below
# os.environ takes a tenth of the time.
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


def setting_guards(texts: tuple[Any, ...]) -> tuple[tuple[Any, Any, Any], ...]:
    """The settings as C compares them with these texts: (owner, name, value), NotImplemented for one that isn't set."""
    return tuple(
        (_environment, name, NotImplemented if text is None else text) for name, text in zip(_READ, texts, strict=True)
    )


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

    def leaves(self, args: Mapping[str, Any]) -> tuple[Any, ...] | None:
        """How each argument is part of the key, in the order of `ordered`, as `TreeDef` takes it. None for arguments
        that take the slow path: structures, and what is no array or number."""
        found = tuple(self._leaf(q, args) for q in self.ordered)
        return None if None in found else found

    def _leaf(self, q: Parameter, args: Mapping[str, Any]) -> tuple[Any, ...] | None:
        if q.name in self.tuned:
            return Chosen, UNREAD, 0  # one that the caller sets is for the slow path
        value, named = args[q.name], q.name in self.named
        if isinstance(value, ndarray):
            return None, SHAPE if named else LAYOUT, 0
        if q.structure or isinstance(q.annotation, ArrayAnnotation):
            return None
        if q.annotation is constexpr or (named and (q.scalar or _is_number(value))):
            return None, CONSTANT, 0
        if q.scalar:
            return None, NUMBER, number_code(q)
        return (None, TYPED, 0) if _is_number(value) else None


def _is_number(value: Any) -> bool:
    return type(value) in (bool, int, float, complex)


def treedef_of(leaves: tuple[Any, ...]) -> TreeDef:
    return TreeDef(leaves, static_key, False)


def long_axes(shape: tuple[int, ...]) -> tuple[bool, ...]:
    """Which axes have steps: all but those of size 1 and 0, as `tuning_key.layout_class` has it."""
    return tuple([n > 1 for n in shape])


def zeroing(spec: DispatcherSpec, launcher: Callable[..., Any], zero: Callable[[Any], None]) -> Callable[..., Any]:
    """`launcher`, which sets the arrays of `spec.zeroed` to zero before. An argument that the launch refuses mustn't be
    found out when results are gone."""
    numbers = [k for k, q in enumerate(spec.ordered) if q.name in spec.zeroed]
    free = [k for k, q in enumerate(spec.ordered) if q.name not in spec.tuned]

    def launch(*leaves: Any) -> Any:
        check_scalars(spec.bind.name, ((spec.ordered[k], leaves[k]) for k in free))
        for k in numbers:
            zero(leaves[k])
        return launcher(*leaves)

    return launch


def with_constants(launcher: Callable[..., Any], constants: Iterable[tuple[int, Any]]) -> Callable[..., Any]:
    """`launcher` with values in the place of some arguments."""
    pairs = tuple(constants)

    def launch(*leaves: Any) -> Any:
        arguments = list(leaves)
        for k, value in pairs:
            arguments[k] = value
        return launcher(*arguments)

    return launch
