"""Keeps Dynamo from tracing pyarray: under `torch.compile` a call of it is a graph break.

A mark on functions wouldn't do: Dynamo would still trace what they call. It has a table of files that it
doesn't trace, in a module that is loaded with the first compile.
"""

from __future__ import annotations

import functools
from contextlib import suppress
from typing import Any

from .._core import PlannedFunction
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
    # and it forgets the array of a method that isn't Python's own
    for name, method in list(vars(ndarray).items()):
        if isinstance(method, PlannedFunction):
            setattr(ndarray, name, _python_function(method))


def _python_function(method: PlannedFunction) -> Any:
    @functools.wraps(method)
    def call(*args: Any, **options: Any) -> Any:
        return method(*args, **options)

    return call
