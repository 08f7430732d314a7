"""`torch.compile(f, backend="pyarray")`: found by the entry point `torch_dynamo_backends`."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from torch._dynamo import disable
from torch._dynamo.utils import flatten_graph_inputs
from torch._functorch.aot_autograd import aot_module_simplified
from torch.fx import GraphModule

from .common_subexpressions import merge_equal, partition
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
        merge_equal(module.graph)
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
    """Dynamo's graphs are taken apart into ATen operators, with gradients: as by torch's own `aot_autograd`,
    which loads a part of Inductor to look for a setting of its debugger."""

    def forward(gm: GraphModule, example_inputs: Sequence[Any]) -> Call:
        return compile_graph(gm, example_inputs, watch=watch)

    def backward(gm: GraphModule, example_inputs: Sequence[Any]) -> Call:
        return _untraced(compile_graph(gm, example_inputs, ("tangents",), watch))

    def made(module: GraphModule, inputs: Sequence[Any]) -> Call:
        if any(isinstance(x, (list, tuple, dict)) for x in inputs):
            nested: Call = flatten_graph_inputs(module, inputs, made)
            return nested
        with _uncollected():
            call = aot_module_simplified(
                module,
                inputs,
                fw_compiler=forward,
                bw_compiler=_untraced(backward),
                inference_compiler=forward,
                decompositions=decompositions(),
                partition_fn=partition,
                keep_inference_input_mutations=True,
            )
        return _untraced(call)

    return made


def _untraced(call: Call) -> Call:
    """The same function, into which Dynamo doesn't look."""
    found: Call = disable(call, reason="it is compiled")
    return found


@contextmanager
def _uncollected() -> Iterator[None]:
    """Python looks for garbage again and again while many objects are made that stay, and goes through all of
    torch's modules for it. Who stopped it lets it go on."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def pyarray(
    module: GraphModule, inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None, mode: Any = None
) -> Call:
    """The backend: a graph of Dynamo's as a function of its inputs. Raises `TypeError` for options."""
    if options or mode:
        names = ", ".join(map(repr, options or (mode,)))
        raise TypeError(f"torch.compile(backend='pyarray') takes no options, got {names}; leave them out")
    return known_or_compiled(module, inputs, _tracing(None))
