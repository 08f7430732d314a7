"""Type inference: a `FunctionSource` and the types of its parameters become a typed `Tree`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import infer_call, infer_flow, infer_loops, infer_match, infer_names, infer_subscripts, ir  # noqa: F401  (rules)
from .infer_scope import Instances
from .parse import Capture, FunctionSource


def infer(
    source: FunctionSource, params: Sequence[tuple[str, Any]], wraparound: bool = False
) -> tuple[ir.Tree, tuple[Capture, ...], dict[str, FunctionSource]]:
    """Typed tree of the kernel for these parameters, (name, type), the Python values that were compiled in,
    and the source of each function by its symbol. A `Static` is a compile-time constant; a tuple or `Aggregate`
    of types becomes a parameter per leaf.

    Raises `CompileError` with the location in the source.
    """
    instances = Instances(wraparound)
    kernel = instances.function(source, tuple(params), is_kernel=True)
    tree = ir.Tree(kernel, _reachable(kernel, tuple(instances.done.values())))
    return tree, tuple(instances.captures.values()), instances.sources


def _reachable(kernel: ir.Function, functions: tuple[ir.Function, ...]) -> tuple[ir.Function, ...]:
    """What the kernel calls, callees first; earlier passes may have made instances for types that were then
    widened."""
    needed: set[str] = set()
    for function in (kernel, *reversed(functions)):
        if function is kernel or function.symbol in needed:
            needed |= {n.function for n in ir.walk(*function.body) if isinstance(n, ir.Invoke)}
    return tuple(f for f in functions if f.symbol in needed)
