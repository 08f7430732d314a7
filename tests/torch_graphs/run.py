"""Draws graphs, runs them through the backend and compares them with eager torch."""

from __future__ import annotations

import random
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import sympy
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from pyarray.torch.backend import compile_graph, pyarray
from pyarray.torch.decompositions import decompositions
from pyarray.torch.sizes import expressions
from tests.drawn import set_status

from .compare import changes, difference
from .draw import SYMBOLS, Drawing, Graph, finish
from .gradients import gradients
from .operators import STEPS, WITH_CHANGES


@dataclass
class Report:
    """What ran, and the graphs whose results differ."""

    graphs: int = 0
    traces: int = 0
    calls: int = 0
    nodes: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)


def check(
    graphs: int, seed: int, device: str = "cpu", *,
    dynamo: float = 0.05, stop_after: int = 50, first: int = 0,
    found: Callable[[str], None] = lambda line: None,
) -> Report:  # fmt: skip
    """Run this many graphs; the differences are in the report."""
    report = Report()
    for number in range(first, first + graphs):
        rng = random.Random(f"{seed}/{number}")
        sizes, dynamo_too = _sizes(rng), rng.random() < dynamo
        set_status(f"graph {number}")
        graph = draw(rng, sizes, device, WITH_CHANGES if dynamo_too else STEPS)
        report.graphs += 1
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                through = _through_dynamo if dynamo_too else _through_fx
                lines = through(graph, sizes, rng, device, report)
        except Exception as reason:
            lines = [traceback.format_exc()]
            if "aot_autograd() does not yet handle" in str(reason):  # changes of inputs that share memory
                report.skipped["AOTAutograd refuses"] += 1
                lines = []
        if lines:
            report.differences.append(f"seed {seed}, graph {number}: {lines[0]}\n  {graph.text()}")
            found(report.differences[-1])
        if len(report.differences) >= stop_after:
            break
    return report


def _sizes(rng: random.Random) -> dict[str, int]:
    # Those that are traced differ, and from 2 and 3, else the graph holds for equal sizes only.
    drawn = rng.sample(range(4, 14), len(SYMBOLS))
    if rng.random() < 0.05:
        drawn[rng.randrange(len(drawn))] = rng.randrange(100, 3000)
        drawn[rng.randrange(len(drawn))] = 2
    return dict(zip(SYMBOLS, drawn, strict=True))


def draw(rng: random.Random, sizes: dict[str, int], device: str, kinds: Sequence[Any] = STEPS) -> Graph:
    """A graph of these kinds of steps that torch can run for these sizes."""
    d = Drawing(rng, sizes, device)
    for _ in range(rng.choice((1, 2, 2, 3, 4))):
        d.input()
    steps, tries = rng.choice((1, 2, 4, 6, 8, 12, 16, 24)), 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while len(d.steps) < steps and tries < 200:
            tries += 1
            rng.choice(kinds)(d)
    return finish(d)


def _through_fx(graph: Graph, sizes: dict[str, int], rng: random.Random, device: str, report: Report) -> list[str]:
    """Traced once, called with several sizes; traced again where a size is 1 or 0."""
    calls = [sizes, *({name: rng.randrange(2, 20) for name in SYMBOLS} for _ in range(2))]
    lines = _traced(graph, calls, device, report)
    for least, share in ((1, 0.25), (0, 0.08)):
        if not lines and rng.random() < share:
            few = {name: least if rng.random() < 0.4 else n for name, n in sizes.items()}
            lines = _traced(graph, [few], device, report)
    return lines


def _traced(graph: Graph, calls: list[dict[str, int]], device: str, report: Report) -> list[str]:
    tensors = graph.made(calls[0], device)
    try:
        graph.run(tensors, device=device)
    except (RuntimeError, IndexError, ValueError) as reason:
        report.skipped[f"eager torch refuses: {type(reason).__name__}"] += 1
        return []

    def function(*given: Any) -> Any:
        return graph.run(list(given), device=device)

    module = _module(function, tensors)
    if module is None:
        report.skipped["torch can't trace"] += 1
        return []
    placeholders = [n for n in module.graph.nodes if n.op == "placeholder"]
    fakes = [n.meta["val"] for n in placeholders]
    report.traces += 1
    compiled = compile_graph(module, fakes)
    for node in module.graph.nodes:
        report.nodes[str(node.target)] += node.op == "call_function"
    lines: list[str] = []
    for k, sizes in enumerate(calls):
        tensors = graph.made(sizes, device)
        values = _known(fakes, tensors)
        if k and (values is None or not _holds(fakes, values)):
            report.skipped["other sizes break a guard"] += 1
            continue
        try:
            graph.run(tensors, device=device)
        except (RuntimeError, IndexError, ValueError):
            continue
        report.calls += 1
        lines += [f"{line} at {sizes}" for line in _compared(graph, sizes, compiled, device)]
        lines += _strides(module, values or {}, compiled(graph.made(sizes, device)))
    return lines


def _module(function: Callable[..., Any], tensors: list[torch.Tensor]) -> Any:
    """A graph of a function; None where torch alone can't trace it, either: a view may be possible with the
    strides of the result that there is, and not with those that torch has written down."""
    trace = partial(make_fx, function, tracing_mode="symbolic")
    with torch.no_grad():
        try:
            return trace(decomposition_table=decompositions())(*tensors)
        except ValueError:
            try:
                trace()(*tensors)
            except ValueError:
                return None
            raise


def _known(fakes: list[Any], tensors: list[torch.Tensor]) -> dict[sympy.Symbol, int] | None:
    """The values of a graph's symbols for these inputs; None where it doesn't hold for them."""
    values: dict[sympy.Symbol, int] = {}
    pairs = [
        (x, n)
        for fake, real in zip(fakes, tensors, strict=True)
        for x, n in zip(expressions((*fake.shape, *fake.stride())), (*real.shape, *real.stride()), strict=True)
    ]
    for x, n in pairs:
        if x.is_Symbol and values.setdefault(x, n) != n:
            return None
    if any(int(x.xreplace(values)) != n for x, n in pairs if x.free_symbols <= values.keys()):
        return None
    return values


def _holds(fakes: list[Any], values: dict[sympy.Symbol, int]) -> bool:
    """Whether a traced graph's guards hold."""
    env = next((n.node.shape_env for f in fakes for n in f.shape if isinstance(n, torch.SymInt)), None)
    if env is None:
        return True
    for guard in env.guards:
        value = guard.expr.xreplace(values)
        if value != sympy.true and not (not value.free_symbols and bool(value.doit())):
            return False
    ranges = env.var_to_range
    return all(ranges[s].lower <= n <= ranges[s].upper for s, n in values.items() if s in ranges)


def _compared(graph: Graph, sizes: dict[str, int], compiled: Callable[..., Any], device: str) -> list[str]:
    """What differs in outputs and inputs; `compiled` takes a list."""
    theirs, ours = graph.made(sizes, device), graph.made(sizes, device)
    wanted, made = graph.run(theirs, device=device), compiled(list(ours))
    return difference(graph, sizes, wanted, made, device) + changes(theirs, ours)


def _strides(module: Any, values: dict[sympy.Symbol, int], made: list[torch.Tensor]) -> list[str]:
    """Outputs whose strides aren't those that were traced."""
    lines = []
    output = next(n for n in module.graph.nodes if n.op == "output")
    for k, (x, node) in enumerate(zip(made, output.args[0], strict=True)):
        traced = [int(s.xreplace(values)) for s in expressions(node.meta["val"].stride())]
        if x.numel() and any(n > 1 and s != t for n, s, t in zip(x.shape, x.stride(), traced, strict=True)):
            lines.append(f"output {k}: strides {x.stride()} instead of {traced}")
    return lines


def _through_dynamo(graph: Graph, sizes: dict[str, int], rng: random.Random, device: str, report: Report) -> list[str]:
    """As users call it; gradients of the inputs too."""
    torch._dynamo.reset()

    def function(*given: Any) -> Any:
        return graph.run(list(given), device=device)

    way = rng.choice(("trained", "trained", "plain", "inference"))
    lines: list[str] = []
    tensors = graph.made(sizes, device)
    with torch.no_grad():  # straight-line code, so that Dynamo has one graph
        module = make_fx(function, tracing_mode="symbolic")(*tensors)
    fakes = [n.meta["val"] for n in module.graph.nodes if n.op == "placeholder"]
    compiled = torch.compile(module, backend=pyarray, dynamic=True)
    for some in (sizes, {name: rng.randrange(2, 20) for name in SYMBOLS}):
        values = _known(fakes, graph.made(some, device))
        if some is not sizes and (values is None or not _holds(fakes, values)):
            continue
        report.calls += 1
        try:
            if way == "inference" and not graph.changed:
                lines += _inference(graph, some, compiled, device)
            else:
                lines += _compared(graph, some, lambda given: compiled(*given), device)
        except RuntimeError:
            if not _aot_refuses(module, graph, some, device):
                raise
            report.skipped["torch's aot_eager refuses, too"] += 1
            break
        if lines and graph.changed and _in_aot(module, graph, some, device):
            report.skipped["torch's aot_eager differs, too"] += 1
            lines = []
        if way == "trained" and not lines and not graph.changed:
            lines += gradients(graph, some, module, compiled, device)
            if lines and not gradients(graph, some, _aot(module), compiled, device):
                report.skipped["torch's aot_eager has these gradients, too"] += 1
                lines = []
    report.traces += 1
    return lines


def _aot(module: Any) -> Callable[..., Any]:
    """Through torch's own backend, which changes nothing about a graph."""
    torch._dynamo.reset()
    return torch.compile(module, backend="aot_eager", dynamic=True)


def _in_aot(module: Any, graph: Graph, sizes: dict[str, int], device: str) -> bool:
    """Whether torch's own backend differs as well."""
    compiled = _aot(module)
    return bool(_compared(graph, sizes, lambda given: compiled(*given), device))


def _aot_refuses(module: Any, graph: Graph, sizes: dict[str, int], device: str) -> bool:
    try:
        _in_aot(module, graph, sizes, device)
    except RuntimeError:
        return True
    return False


def _inference(graph: Graph, sizes: dict[str, int], compiled: Callable[..., Any], device: str) -> list[str]:
    """In inference mode, with inputs that need gradients."""
    wanted = graph.run(graph.made(sizes, device), device=device)
    given = [x.requires_grad_() if x.dtype.is_floating_point else x for x in graph.made(sizes, device)]
    with torch.inference_mode():
        made = [x.clone() for x in compiled(*given)]
    return difference(graph, sizes, wanted, made, device)
