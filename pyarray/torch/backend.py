"""`torch.compile(f, backend="pyarray")`: found by the entry point `torch_dynamo_backends`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch.fx import GraphModule

from .decompositions import decompositions
from .fusion import Fusion
from .product import product_from
from .program import Program
from .recompute import recompute
from .relaxed import Call, compiled, relaxed
from .size_one import known_or_compiled
from .sizes import environment, hints_of
from .zero_strides import separate

_log = logging.getLogger("pyarray.torch")
Watch = Callable[[Program], None]


def compile_graph(
    module: GraphModule, inputs: Sequence[Any], check: Sequence[str] = (), watch: Watch | None = None
) -> Call:
    """A graph of ATen operators as a function of a list of its inputs, which it empties. The strides of
    inputs whose names begin with one of `check` are made those of the trace. `watch` is told of the program.
    """
    with relaxed(environment(inputs)):
        separate(module.graph)
        fusion = Fusion(module.graph, hints_of(inputs), product_from).run()
        recompute(fusion)
        program = Program(module, fusion, check)
    _log.debug("%s", program.text)
    if watch is not None:
        watch(program)
    return program.call


def watching(watch: Watch | None) -> Call:
    """A backend that tells `watch` of each program that it makes."""
    trace = _tracing(watch)

    def made(module: GraphModule, inputs: Sequence[Any]) -> Call:
        return compiled(module, inputs, trace)[0]

    return made


def _tracing(watch: Watch | None) -> Call:
    """Dynamo's graphs are taken apart into ATen operators, with gradients."""

    def forward(module: GraphModule, inputs: Sequence[Any]) -> Call:
        return compile_graph(module, inputs, watch=watch)

    def backward(module: GraphModule, inputs: Sequence[Any]) -> Call:
        return compile_graph(module, inputs, ("tangents",), watch)

    made: Call = aot_autograd(
        fw_compiler=forward,
        bw_compiler=backward,
        inference_compiler=forward,
        decompositions=decompositions(),
        partition_fn=min_cut_rematerialization_partition,
        keep_inference_input_mutations=True,
    )
    return made


def pyarray(
    module: GraphModule, inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None, mode: Any = None
) -> Call:
    """The backend: a graph of Dynamo's as a function of its inputs. Raises `TypeError` for options."""
    if options or mode:
        names = ", ".join(map(repr, options or (mode,)))
        raise TypeError(f"torch.compile(backend='pyarray') takes no options, got {names}; leave them out")
    return known_or_compiled(module, inputs, _tracing(None))
