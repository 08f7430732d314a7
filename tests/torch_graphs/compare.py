"""Whether results agree as far as rounding lets them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import torch

from .draw import Graph, Step

ROUNDS = 8  # of the eager graph with noise
MORE_ROUNDS = 64  # where results still differ: of rare values such as 0 ** 0
POLE = 1e12  # numbers beyond that without a digit that is certain may as well be infinite
_CHOOSES = re.compile("min|max|clamp|relu|hardtanh")


# The shapes of signs: of elements, of rows, of columns, of all.
_ALIKE: tuple[Callable[[torch.Tensor], list[int]], ...] = (
    lambda x: list(x.shape),
    lambda x: [n if k == 0 else 1 for k, n in enumerate(x.shape)],
    lambda x: [n if k == x.dim() - 1 else 1 for k, n in enumerate(x.shape)],
    lambda x: [1] * x.dim(),
)


def _noise(seed: int) -> Any:
    """Rounds the results of operators up or down, as another order of the same sums would: each element for
    itself, or all those along some axes alike, as the error of a mean does. The last rounds make 0 of what
    is no further from it: differences of equal numbers."""
    made = torch.Generator().manual_seed(seed)
    alike, to_zero = _ALIKE[seed % len(_ALIKE)], seed % ROUNDS >= ROUNDS - 2

    def change(x: torch.Tensor, step: Step, operands: list[torch.Tensor]) -> torch.Tensor:
        if not x.dtype.is_floating_point:
            return x
        up = torch.randint(0, 2, alike(x), generator=made).to(x.device, torch.float64).expand(x.shape) * 2 - 1
        if not step.noisy:  # of 0 and -0, torch's vector loops take the one and its scalar loops the other
            return torch.where(x == 0, up * 0, x).to(x.dtype) if _CHOOSES.search(step.text) else x
        eps = torch.finfo(x.dtype).eps
        # Sums of n terms in another order: their errors grow with the root of n.
        terms = max((y.numel() for y in operands), default=1) / max(x.numel(), 1)
        if step.along:
            terms = max(terms, math.prod(operands[0].shape[k] for k in step.along))
        eps *= 1 + terms**0.5 / 8
        scale = torch.tensor(max(_scale(y) for y in (x, *operands)))
        if "alpha" in step.text:  # torch rounds a sum and its product once where it has an instruction for both
            for y in operands:
                scale = torch.maximum(scale, y.double().abs().nan_to_num(0.0, 0.0, 0.0))
        reach = eps * 2 * scale
        rounded = torch.where(x.isfinite(), x.double() + up * (2 * eps * x.double().abs() + reach), x.double())
        return torch.where(x.abs() <= reach, 0.0, rounded).to(x.dtype) if to_zero else rounded.to(x.dtype)

    return change


def _scale(x: torch.Tensor) -> float:
    finite = x[x.isfinite()].double()
    return float(finite.abs().mean()) if finite.numel() else 0.0


def difference(
    graph: Graph,
    sizes: dict[str, int],
    wanted: list[torch.Tensor],
    made: list[torch.Tensor],
    device: str,
) -> list[str]:
    """A line for each output that differs, with inputs of these sizes."""
    lines, noisy = [], list[list[torch.Tensor]]()

    def outside(k: int, want: torch.Tensor, got: torch.Tensor) -> torch.Tensor:
        for rounds in (ROUNDS, MORE_ROUNDS):
            while len(noisy) < rounds:
                n = len(noisy)
                turned = n // len(_ALIKE) % 2 == 1
                noisy.append(graph.run(graph.made(sizes, device), _noise(n), device, turned=turned))
            wrong = _outside(want, got, [run[k] for run in noisy])
            if not wrong.any():
                break
        return wrong

    for k, (want, got) in enumerate(zip(wanted, made, strict=True)):
        if got.dtype != want.dtype or got.shape != want.shape or got.device != want.device:
            lines.append(f"output {k}: {got.dtype} {tuple(got.shape)}, not {want.dtype} {tuple(want.shape)}")
            continue
        if _equal(want, got).all():
            continue
        wrong = outside(k, want, got)
        if wrong.any():
            at = tuple(int(n) for n in wrong.nonzero()[0])
            lines.append(
                f"output {k}: {int(wrong.sum())} of {wrong.numel()} elements differ, "
                f"at {at} {got[at].item()} instead of {want[at].item()}"
            )
    return lines


def changes(wanted: list[torch.Tensor], made: list[torch.Tensor]) -> list[str]:
    """A line for each input that isn't what it is in eager torch, afterwards."""
    pairs = zip(wanted, made, strict=True)
    return [f"input {k} isn't what it should be" for k, (a, b) in enumerate(pairs) if not _equal(a, b).all()]


def _equal(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    same = a == b
    return same | (a.isnan() & b.isnan()) if a.dtype.is_floating_point else same


def _outside(want: torch.Tensor, got: torch.Tensor, noisy: list[torch.Tensor]) -> torch.Tensor:
    """The elements that rounding doesn't explain."""
    if not want.dtype.is_floating_point:
        return want != got
    eps = torch.finfo(want.dtype).eps
    base, other = want.double(), got.double()
    spread = torch.zeros_like(base)
    unstable = torch.zeros_like(base, dtype=torch.bool)
    for run in noisy:
        value = run.double()
        unstable |= (value.isfinite() != base.isfinite()) | (value.isnan() != base.isnan())
        unstable |= value.isinf() & base.isinf() & (value != base)
        spread = torch.maximum(spread, (value - base).abs().nan_to_num(0.0, 0.0, 0.0))
    unstable |= (other.abs() > POLE) & (base.abs() > POLE) & (spread > base.abs() / 2)
    reach = float(spread[base.isfinite()].max()) if spread.numel() and base.isfinite().any() else 0.0
    close = (other - base).abs() <= 8 * spread + 0.5 * reach + 8 * eps * base.abs() + 1e-30
    return ~(close | _equal(want, got) | unstable)
