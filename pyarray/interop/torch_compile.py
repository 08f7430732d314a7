"""Keeps Dynamo from tracing pyarray: under `torch.compile` a call of it is a graph break.

A mark on functions wouldn't do: Dynamo would still trace what they call. It has a table of files that it
doesn't trace, in a module that is loaded with the first compile.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from .._core import PlannedFunction, QuickFunction
from ..api.methods.operators import in_place_operators
from ..array import ndarray

_GENERATED = "<pyarray "  # what file names of generated code begin with


def skip_tracing(rules: Any) -> None:
    """Dynamo doesn't trace the package, from its first compile on. `rules` is `torch._dynamo.trace_rules`."""
    with suppress(AttributeError):  # a torch whose table is elsewhere: it traces, as it does with others
        rules.SKIP_DIRS.append(_GENERATED)
        rules.add(__name__.partition(".")[0])
    # Dynamo calls the slots of in-place operators without end: functions of the package it doesn't trace
    for name, function in in_place_operators.items():
        setattr(ndarray, name, function)
    # and it takes other methods than functions for functions of no array
    for name, method in list(vars(ndarray).items()):
        if isinstance(method, (PlannedFunction, QuickFunction)):
            setattr(ndarray, name, _as_function(method))


def _as_function(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(*args: Any, **options: Any) -> Any:
        return method(*args, **options)

    return call
