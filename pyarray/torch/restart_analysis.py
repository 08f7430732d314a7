"""Restarts Dynamo's trace where it specialized sizes that are equal by chance, or numbers.

With `dynamic=True`, Dynamo takes equal sizes of inputs for one symbol. A batch that is as large as the number
of channels, say, becomes the constant that the weights make of these, and kernels with that constant are of
no use for the next batch. Sizes that a program needs equal are found equal without that, by its operators.

It also takes numbers (the eps of a norm) for inputs. Where an operator has made one a constant, torch begins
again as well, but only when the whole graph has been taken apart, with its gradients.
"""

from __future__ import annotations

from typing import Any

import sympy
from torch._dynamo import exc, output_graph, symbolic_convert
from torch.utils._sympy.symbol import SymT, symbol_is_type

_dynamo: Any = output_graph
_tracing: Any = getattr(symbolic_convert, "tls", None)
_numbers: Any = getattr(symbolic_convert, "TensorifyState", None)  # which are constants in the next trace
_Restart: Any = getattr(exc, "TensorifyScalarRestartAnalysis", None)  # the one that passes through a backend


def restart_if_specialized() -> None:
    """Called by a backend: restarts Dynamo's analysis if the graph has one symbol for several sizes, or inputs
    that were specialized. Not if inputs share memory: torch has too few guards on their offsets, which equal sizes
    make up for."""
    tracer = getattr(_tracing, "current_tx", None)  # none where a graph was traced before
    if tracer is None or _Restart is None:
        return
    env: Any = tracer.output.shape_env
    duck = getattr(env, "duck_shape", False)
    equal = duck and any(len(x) > 1 for x in env.var_to_sources.values())
    numbers = _constants(env)
    for name in numbers:
        _numbers.specialize(name)
    if equal or numbers:
        if equal or not duck:
            _assign_distinct_symbols()
        raise _Restart(restart_reason="sizes of inputs had one symbol, or numbers were constants")


def _constants(env: Any) -> list[str]:
    """Symbols of numbers whose values are known, which torch hasn't specialized yet."""
    if _numbers is None:
        return []
    specialized = [s for s, x in env.replacements.items() if isinstance(x, sympy.Float)]
    names = [str(s) for s in specialized if symbol_is_type(s, SymT.FLOAT)]
    return [name for name in names if not _numbers.should_specialize(name)]


def _assign_distinct_symbols() -> None:
    """Dynamo's next graph has a symbol for each size. torch's setting for that is for all graphs, so it is passed
    to the next `ShapeEnv` only."""
    original = _dynamo.ShapeEnv

    def create(*args: Any, **kwargs: Any) -> Any:
        _dynamo.ShapeEnv = original
        return original(*args, **kwargs, duck_shape=False)

    _dynamo.ShapeEnv = create
