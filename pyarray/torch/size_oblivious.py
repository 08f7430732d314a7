"""Size-oblivious tracing: graphs that hold for a size of 1, though Dynamo assumes sizes of at least 2.

Dynamo takes sizes of 0 and 1 for constants, and lets what it traces with any other size rely on 2 as the
least. What comes behind Dynamo, torch's decompositions and the kernels here, needn't: torch can take the
general case wherever the answer matters for broadcasting alone ("size oblivious"), and guard the answer
where it matters for more. So the guards say whether the graph holds for 1.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import sympy
import torch
from torch._dynamo.exc import TorchDynamoException
from torch._guards import TracingContext
from torch._prims_common import infer_size, is_contiguous_or_false
from torch._subclasses.fake_impls import _compute_stride
from torch._subclasses.fake_tensor import FakeTensor, disable_fake_tensor_cache
from torch.fx import GraphModule, Node
from torch.fx.experimental import _config
from torch.utils._sympy.value_ranges import ValueRanges

from .sizes import shape_env_of, values_of

_log = logging.getLogger("pyarray.torch")
_PARTS = (
    "var_to_range", "size_like", "guards", "fake_tensor_cache", "_version_counter", "_inner_evaluate_expr",
    "suppress_guards",
)  # fmt: skip
_settings: Any = _config
aten = torch.ops.aten
Call = Callable[..., Any]


def compile_size_oblivious(module: GraphModule, inputs: Sequence[Any], make: Call) -> tuple[Call, bool]:
    """What `make` makes of a graph of Dynamo's, and whether nothing but its guards and Dynamo's part relies
    on 2 as the least size."""
    env = shape_env_of(inputs)
    if not _can_relax(env):
        return make(module, inputs), False
    try:
        fakes = _faked(inputs)
        with size_oblivious(env), _remembering(module):
            return make(module, fakes), True
    except TorchDynamoException:
        raise
    except Exception as error:  # torch's way is an experiment: what it can't do is done as it always was
        _log.debug("a graph was traced again, for sizes from 2 on: %s", error)
        return make(module, inputs), False


@contextmanager
def _remembering(module: GraphModule) -> Iterator[None]:
    """Turns torch's cache of fake tensor results off, unless a graph repeats itself (many layers): a new entry
    takes about as long as the result."""
    mode: Any = TracingContext.get().fake_mode
    calls = [n for n in module.graph.nodes if n.op in ("call_function", "call_method")]
    kinds = {(n.target, tuple(_shape(x) for x in n.all_input_nodes)) for n in calls}
    if 2 * len(kinds) < len(calls):
        yield
    else:
        with disable_fake_tensor_cache(mode):
            yield


def _shape(node: Node) -> tuple[str, ...]:
    value = node.meta.get("example_value")
    return tuple(map(str, value.shape)) if isinstance(value, torch.Tensor) else ()


def _can_relax(env: Any) -> bool:
    context = TracingContext.try_get()
    return _has_parts(env) and context is not None and context.fake_mode is not None


def _has_parts(env: Any) -> bool:
    """Whether the graph has size symbols, and this version of torch has the private names that are changed here."""
    return hasattr(_settings, "backed_size_oblivious") and all(hasattr(env, name) for name in _PARTS)


def _faked(inputs: Sequence[Any]) -> list[Any]:
    """Fake tensors for the inputs, as torch makes them from Dynamo's records. They are made before the trace is
    relaxed, which would make a symbol of a size that is the constant 1."""
    context = TracingContext.get()
    mode: Any = context.fake_mode
    fakes = []
    for x in inputs:
        if isinstance(x, torch.Tensor) and not isinstance(x, FakeTensor):
            note: Any = context.tensor_to_context[x]
            x = mode.from_tensor(x, symbolic_context=note, source=note.tensor_source, trace=False)
        fakes.append(x)
    return fakes


@contextmanager
def size_oblivious(env: Any) -> Iterator[None]:
    """In the block, decisions hold for sizes of 1 as well, and torch's cached answers aren't used."""
    if not _has_parts(env):
        yield
        return
    symbols = [s for s in values_of(env) if s in env.var_to_range and env.var_to_range[s].lower == 2]
    like, cache = set(symbols) - env.size_like, env.fake_tensor_cache
    _from(env, symbols, 1)
    env.size_like |= like
    env.fake_tensor_cache = {}
    try:
        with _settings.patch(backed_size_oblivious=True), _reshaping(), _convolving(env):
            yield
    finally:
        _from(env, [s for s in symbols if env.var_to_range[s].lower == 1], 2)
        env.size_like -= like
        env.fake_tensor_cache = cache


@contextmanager
def _reshaping() -> Iterator[None]:
    """`reshape` decides without a guard whether it copies, which changes no element; torch's own adds a guard."""
    kernels, key = aten.reshape.default.py_kernels, torch._C.DispatchKey.CompositeImplicitAutograd
    before = kernels.get(key)
    kernels[key] = _reshape
    aten.reshape.default._dispatch_cache.clear()
    try:
        yield
    finally:
        del kernels[key]
        if before is not None:
            kernels[key] = before
        aten.reshape.default._dispatch_cache.clear()


def _reshape(x: torch.Tensor, shape: Sequence[Any]) -> torch.Tensor:
    sizes = infer_size(tuple(shape), x.numel())
    if is_contiguous_or_false(x) or _compute_stride(x.shape, x.stride(), sizes, size_oblivious=True):
        return x.view(sizes)
    made: torch.Tensor = aten._unsafe_view(x.clone(memory_format=torch.contiguous_format), sizes)
    return made


@contextmanager
def _convolving(env: Any) -> Iterator[None]:
    """How torch will compute a convolution decides the strides of its result alone, and those are looked at
    when it has run. Some versions of torch guard that the batch isn't 1."""
    torch_: Any = torch._C
    choose = torch_._select_conv_backend

    def chosen(*args: Any, **kwargs: Any) -> Any:
        with env.suppress_guards():
            return choose(*args, **kwargs)

    torch_._select_conv_backend = chosen
    try:
        yield
    finally:
        torch_._select_conv_backend = choose


def _from(env: Any, symbols: Iterable[sympy.Symbol], least: int) -> None:
    for symbol in symbols:
        env.var_to_range[symbol] = ValueRanges(least, env.var_to_range[symbol].upper)
    env._version_counter += 1  # answers that are kept are dropped
    env._inner_evaluate_expr.cache_clear()


def conditions(env: Any) -> list[Any]:
    """The conditions of a relaxed trace: its guards, and the ranges of its sizes, except Dynamo's lower bound of
    2. Symbols that were replaced by others are left out."""
    result = [guard.expr for guard in env.guards]
    for symbol in values_of(env):
        bounds = env.var_to_range.get(symbol)
        if bounds is not None and bounds.lower.is_Integer:
            result.append(sympy.Ge(symbol, 1 if bounds.lower == 2 else bounds.lower))
        if bounds is not None and bounds.upper.is_Integer:
            result.append(sympy.Le(symbol, bounds.upper))
    return [env.replace(x) for x in result]
