"""Sizes that are equal in the first call alone: Dynamo traces again, with a symbol for each.

With `dynamic=True`, Dynamo takes equal sizes of inputs for one symbol. A batch that is as large as the number
of channels, say, becomes the constant that the weights make of these, and kernels with that constant are of
no use for the next batch. Sizes that a program needs equal are found equal without that, by its operators.
"""

from __future__ import annotations

from typing import Any

from torch._dynamo import exc, output_graph, symbolic_convert

_dynamo: Any = output_graph
_tracing: Any = getattr(symbolic_convert, "tls", None)
_Restart: Any = getattr(exc, "TensorifyScalarRestartAnalysis", None)  # the one that passes through a backend


def trace_apart() -> None:
    """To be called by a backend: Dynamo begins again if its graph has one symbol for several sizes. Not for
    inputs that share memory: torch guards too little of where they begin, and equal sizes hide that."""
    tracer = getattr(_tracing, "current_tx", None)  # none where a graph was traced before
    if tracer is None or _Restart is None:
        return
    env: Any = tracer.output.shape_env
    if getattr(env, "duck_shape", False) and any(len(x) > 1 for x in env.var_to_sources.values()):
        _next_apart()
        raise _Restart(restart_reason="sizes of inputs had one symbol, being equal")


def _next_apart() -> None:
    """The next graph of Dynamo's has a symbol for each size. torch's setting for that is for all graphs, so
    it is given where Dynamo makes what keeps the symbols, once."""
    original = _dynamo.ShapeEnv

    def apart(*args: Any, **kwargs: Any) -> Any:
        _dynamo.ShapeEnv = original
        return original(*args, **kwargs, duck_shape=False)

    _dynamo.ShapeEnv = apart
