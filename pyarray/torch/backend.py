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

from .common_subexpressions import eliminate_common_subexpressions, partition
from .decompositions import decompositions
from .fusion import Fusion
from .graph_reuse import reuse_or_compile
from .product import start_product
from .program import Program
from .recompute import recompute
from .size_oblivious import Call, compile_size_oblivious, size_oblivious
from .sizes import hints_of, shape_env_of
from .zero_strides import replace_zero_strides

_log = logging.getLogger("pyarray.torch")
ProgramObserver = Callable[[Program], None]


def compile_graph(
    module: GraphModule,
    inputs: Sequence[Any],
    check: Sequence[str] = (),
    observer: ProgramObserver | None = None,
) -> Call:
    """A graph of ATen operators as a function of a list of its inputs, which it empties. Inputs whose names begin
    with one of `check` are copied if they don't have the traced strides. `observer` gets the program.
    """
    with size_oblivious(shape_env_of(inputs)):
        eliminate_common_subexpressions(module.graph)
        replace_zero_strides(module.graph)
        fusion = Fusion(module.graph, hints_of(inputs), start_product).run()
        recompute(fusion)
        program = Program(module, fusion, check)
    _log.debug("%s", program.text)
    if observer is not None:
        observer(program)
    return program.call


def observing_backend(observer: ProgramObserver | None) -> Call:
    """A backend that tells `observer` of each program that it makes."""
    trace = _aot_backend(observer)

    def compiled(module: GraphModule, inputs: Sequence[Any]) -> Call:
        return compile_size_oblivious(module, inputs, trace)[0]

    return compiled


def _aot_backend(observer: ProgramObserver | None) -> Call:
    """The backend that decomposes Dynamo's graphs into ATen operators, with gradients. It does what torch's
    `aot_autograd` does, which would import a part of Inductor."""

    def forward(gm: GraphModule, example_inputs: Sequence[Any]) -> Call:
        return compile_graph(gm, example_inputs, observer=observer)

    def backward(gm: GraphModule, example_inputs: Sequence[Any]) -> Call:
        return _hidden_from_dynamo(compile_graph(gm, example_inputs, ("tangents",), observer))

    def compiled(module: GraphModule, inputs: Sequence[Any]) -> Call:
        if any(isinstance(x, (list, tuple, dict)) for x in inputs):
            nested: Call = flatten_graph_inputs(module, inputs, compiled)
            return nested
        with _gc_paused():
            call = aot_module_simplified(
                module,
                inputs,
                fw_compiler=forward,
                bw_compiler=_hidden_from_dynamo(backward),
                inference_compiler=forward,
                decompositions=decompositions(),
                partition_fn=partition,
                keep_inference_input_mutations=True,
            )
        return _hidden_from_dynamo(call)

    return compiled


def _hidden_from_dynamo(call: Call) -> Call:
    """The same function, which Dynamo doesn't trace into."""
    hidden: Call = disable(call, reason="it is compiled")
    return hidden


@contextmanager
def _gc_paused() -> Iterator[None]:
    """Pauses Python's garbage collection while a graph is compiled, which makes many objects that stay: each
    collection would go through all of torch's modules. The outermost pause ends it."""
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
    return reuse_or_compile(module, inputs, _aot_backend(None))
