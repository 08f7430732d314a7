"""Whether gradients agree as far as rounding lets them."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from .draw import Graph, Step

ROUNDS = 4, 32  # of the eager graph with noise in its backward pass; more where gradients still differ
_COARSE = {torch.float16: 3e-2, torch.bfloat16: 2e-1, torch.float64: 1e-9, torch.float32: 1e-4}
_CLIPS_NAN = re.compile(r"\b(hardtanh|relu6)")  # gradients of NaN: 0 in torch's vector loops, not in its scalar loops
Gradients = tuple[torch.Tensor | None, ...]


def gradients(
    graph: Graph, sizes: dict[str, int], module: Callable[..., Any], compiled: Callable[..., Any], device: str
) -> list[str]:
    """A line for each input whose gradient differs; `module` is the graph in eager torch."""
    wanted = _gradients(module, graph.made(sizes, device))
    if wanted is None:
        return []
    made = _gradients(compiled, graph.made(sizes, device), strict=True)
    if made is None:
        return []
    lines, noisy = [], list[Gradients | None]()

    def close(k: int, a: torch.Tensor, b: torch.Tensor) -> bool:
        for rounds in ROUNDS:
            while len(noisy) < rounds:
                changed = partial(_noisy_run, graph, _noise(len(noisy)), device)
                noisy.append(_gradients(changed, graph.made(sizes, device)))
            if _close(a, b, _spread(a, [run[k] for run in noisy if run is not None])):
                return True
        return False

    for k, (a, b) in enumerate(zip(wanted, made, strict=True)):
        if a is None or b is None:
            if (x := a if a is not None else b) is not None and bool((x != 0).any()):
                lines.append(f"gradient {k}: one is missing")
        elif not _close(a, b, 0.0) and not close(k, a, b):
            lines.append(f"gradient {k} differs")
    return lines


def _gradients(run: Callable[..., Any], tensors: list[torch.Tensor], strict: bool = False) -> Gradients | None:
    """Those of a weighted sum of the outputs; None where nothing has one, or, unless `strict`, where torch's
    own formula fails."""
    leaves = [x.detach().clone().requires_grad_() if x.dtype.is_floating_point else x for x in tensors]
    inputs = [x for x in leaves if x.requires_grad]
    outputs = [x for x in run(*leaves) if x.requires_grad]
    if not outputs or not inputs:
        return None
    total = sum((x.double() * _weights(x)).sum() for x in outputs)
    try:
        return torch.autograd.grad(total, inputs, allow_unused=True)
    except RuntimeError:
        if strict:
            raise
        return None


def _noisy_run(graph: Graph, noise: Callable[..., Any], device: str, *inputs: Any) -> list[Any]:
    return graph.run(list(inputs), noise, device)


def _weights(x: torch.Tensor) -> torch.Tensor:
    """Of a sum of outputs: equal ones would make the gradient of a softmax mere rounding."""
    return torch.arange(x.numel(), device=x.device).reshape(x.shape).double().cos()


def _noise(seed: int) -> Callable[[torch.Tensor, Step, list[torch.Tensor]], torch.Tensor]:
    """Rounds the gradients of values up or down, as another order of the same sums would. Where they cancel,
    as in the gradient of a norm of one element, noise is left in the place of 0."""
    made = torch.Generator().manual_seed(seed)

    def rounded(g: torch.Tensor) -> torch.Tensor:
        up = torch.randint(0, 2, g.shape, generator=made).to(g.device, g.dtype) * 2 - 1
        return g * (1 + 4 * torch.finfo(g.dtype).eps * up)

    def change(x: torch.Tensor, step: Step, operands: list[torch.Tensor]) -> torch.Tensor:
        if _CLIPS_NAN.search(step.text) and seed % 2:
            x = torch.where(operands[0].isnan(), operands[0], x)
        if x.requires_grad:
            x.register_hook(rounded)
        return x

    return change


def _spread(a: torch.Tensor, noisy: list[torch.Tensor | None]) -> float:
    """The largest change of a gradient by noise."""
    apart = [(a.double() - b.double()).abs() for b in noisy if b is not None]
    return max((float(x[x.isfinite()].max()) for x in apart if x.isfinite().any()), default=0.0)


def _close(a: torch.Tensor, b: torch.Tensor, spread: float) -> bool:
    coarse = _COARSE[a.dtype]
    finite = a.isfinite() & b.isfinite()
    if bool((a.isfinite() != b.isfinite()).any()):
        return False
    scale = float(a[finite].abs().max()) if finite.any() else 1.0
    return torch.allclose(b[finite].double(), a[finite].double(), rtol=coarse, atol=coarse * scale + 8 * spread)
