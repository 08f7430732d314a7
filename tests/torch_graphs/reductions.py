"""Reductions, what is made of them, and operators that no kernel here computes."""

from __future__ import annotations

import math
from typing import Any

import torch

from .draw import FLOATS, Drawing, Shape, plain_sizes, size, times


def reduction(d: Drawing) -> bool:
    """Along any axes, with or without them in the result."""
    name = d.rng.choice(
        ("sum", "sum", "mean", "amax", "amin", "any", "all", "prod", "var", "std", "var_mean", "max", "min")
    )
    jumps = name in ("any", "all")
    x = d.pick(lambda v: v.exact or not jumps)
    if x is None:
        return False
    axes = sorted(d.rng.sample(range(x.rank), d.rng.randint(min(1, x.rank), x.rank)))
    if name in ("prod", "max", "min") or d.rng.random() < 0.1:
        axes = axes[:1] if name == "prod" and x.rank else []
    keep = bool(axes) and d.rng.random() < 0.4
    dims = [k - x.rank if d.rng.random() < 0.3 else k for k in axes]
    correction = d.rng.choice((0, 1, 1))
    over_all = not axes

    def apply(sizes: Any, x: torch.Tensor) -> Any:
        function = getattr(torch, name)
        x = x.flip(axes or list(range(x.dim()))) if sizes.get("turned") else x
        if name in ("var", "std", "var_mean"):
            # Numbers of a size that have squares; infinities stay.
            x = torch.where(x.abs() == math.inf, x, torch.clamp(x, -1e3, 1e3))
            made = function(x, dims or None, correction=correction, keepdim=keep)
            return list(made) if isinstance(made, tuple) else made
        if over_all:
            return function(x)
        if name == "prod":
            return function(torch.clamp(x, -1.5, 1.5) if x.dtype != torch.bool else x, dims[0], keep)
        return function(x, dims, keep)

    removed = set(axes) if axes else set(range(x.rank))
    keys = tuple(() if k in removed else n for k, n in enumerate(x.shape) if keep or k not in removed)
    noisy = x.dtype.is_floating_point and name not in ("amax", "amin", "max", "min", "any", "all")
    noisy = noisy or name in ("mean", "var", "std", "var_mean")
    shapes: list[Any] = [keys, keys] if name == "var_mean" else [keys]
    return d.add(f"{name} {dims if axes else 'all'} keep={keep} {correction}", [x], apply, shapes, noisy=noisy)


def norm(d: Drawing) -> bool:
    """Operators that are made of reductions."""
    name = d.rng.choice(("softmax", "log_softmax", "logsumexp", "layer_norm", "group_norm"))
    x = d.pick(lambda v: v.rank > 0 and v.dtype.is_floating_point)
    if x is None:
        return False
    k = d.rng.randrange(x.rank)
    keep = d.rng.random() < 0.5
    if name in ("softmax", "log_softmax"):
        function = getattr(torch, name)
        return d.add(f"{name} {k}", [x], lambda s, x: function(x, k), [x.shape], noisy=True, along=(k,))
    if name == "logsumexp":
        keys = tuple(() if axis == k else n for axis, n in enumerate(x.shape) if keep or axis != k)
        return d.add(f"{name} {k} {keep}", [x], lambda s, x: torch.logsumexp(x, k, keep), [keys], noisy=True)
    weights = d.pick(lambda v: v.dtype == x.dtype and v.shape == x.shape[-1:]) if name == "layer_norm" else None
    operands = [x, weights, weights] if weights is not None else [x]
    if name == "layer_norm":

        def layer(sizes: Any, x: torch.Tensor, *affine: torch.Tensor) -> torch.Tensor:
            # inf * y + inf is NaN or inf by the sign of a y that rounding makes
            affine = tuple(torch.nan_to_num(y, 1.0, 1.0, -1.0) for y in affine)
            return torch.nn.functional.layer_norm(x, x.shape[-1:], *affine, eps=0.1)

        return d.add(f"layer_norm {bool(weights)}", operands, layer, [x.shape], noisy=True, along=(-1,))
    if x.rank < 2:
        return False

    def group(sizes: Any, x: torch.Tensor) -> torch.Tensor:
        x = torch.cat([x, x], 1)
        return torch.nn.functional.group_norm(x, 2, eps=0.1)

    keys = tuple(times(n, (2,)) if axis == 1 else n for axis, n in enumerate(x.shape))
    return d.add("group_norm", [x], group, [keys], noisy=True, along=tuple(range(1, x.rank)))


# ---- operators that stay torch's, and constants


def between(d: Drawing) -> bool:
    """An operator that no kernel here computes."""
    return bool(d.rng.choice((_cat, _stack, _mm, _addmm, _bmm, _index, _gather, _cumsum, _argmax))(d))


def _cat(d: Drawing) -> bool:
    x = d.pick(lambda v: v.rank > 0)
    if x is None:
        return False
    k = d.rng.randrange(x.rank)
    y = d.pick(lambda v: v.rank == x.rank and all(
        axis == k or m == n for axis, (m, n) in enumerate(zip(v.shape, x.shape, strict=True))
    ))  # fmt: skip
    keys = tuple(None if axis == k else n for axis, n in enumerate(x.shape))
    return y is not None and d.add(f"cat {k}", [x, y], lambda s, x, y: torch.cat([x, y], k), [keys])


def _stack(d: Drawing) -> bool:
    x = d.pick(lambda v: v.rank < 4)
    y = d.pick(lambda v: x is not None and v.shape == x.shape)
    if x is None or y is None:
        return False
    k = d.rng.randrange(x.rank + 1)
    keys = (*x.shape[:k], (2,), *x.shape[k:])
    return d.add(f"stack {k}", [x, y], lambda s, x, y: torch.stack([x, y], k), [keys])


def _mm(d: Drawing) -> bool:
    x = d.pick(lambda v: v.rank == 2 and v.dtype in FLOATS[:2])
    y = d.pick(lambda v: x is not None and v.dtype == x.dtype and v.rank == 2 and v.shape[0] == x.shape[1])
    if x is None or y is None:
        return False
    return d.add("mm", [x, y], lambda s, x, y: torch.mm(x, y), [(x.shape[0], y.shape[1])], noisy=True, along=(1,))


def _addmm(d: Drawing) -> bool:
    x = d.pick(lambda v: v.rank == 2 and v.dtype in FLOATS[:2])
    if x is None:
        return False

    def apply(sizes: Any, x: torch.Tensor) -> torch.Tensor:
        return torch.addmm(x, x @ x.t(), x, alpha=0.5)

    return d.add("addmm", [x], apply, [x.shape], noisy=True, along=(0, 1))


def _bmm(d: Drawing) -> bool:
    x = d.pick(lambda v: v.rank == 3 and v.dtype in FLOATS[:2])
    if x is None:
        return False
    keys = (x.shape[0], x.shape[1], x.shape[1])
    return d.add("bmm", [x], lambda s, x: torch.bmm(x, x.transpose(1, 2)), [keys], noisy=True, along=(2,))


def _index(d: Drawing) -> bool:
    x, at = d.pick(lambda v: v.rank > 0), d.pick(lambda v: v.dtype == torch.int64 and v.rank == 1 and v.exact)
    if x is None or at is None:
        return False

    def apply(sizes: Any, x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        return x[torch.remainder(at, x.shape[0])]

    return d.add("index", [x, at], apply, [(at.shape[0], *x.shape[1:])])


def _gather(d: Drawing) -> bool:
    x = d.pick(lambda v: v.rank > 0)
    if x is None:
        return False
    k = d.rng.randrange(x.rank)
    at = d.pick(lambda v: v.dtype == torch.int64 and v.shape == x.shape and v.exact)
    if at is None:
        return False

    def apply(sizes: Any, x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        return torch.gather(x, k, torch.remainder(at, x.shape[k]))

    return d.add(f"gather {k}", [x, at], apply, [x.shape])


def _cumsum(d: Drawing) -> bool:
    x = d.pick(lambda v: v.rank > 0)
    if x is None:
        return False
    k = d.rng.randrange(x.rank)
    noisy = x.dtype.is_floating_point
    return d.add(f"cumsum {k}", [x], lambda s, x: torch.cumsum(x, k), [x.shape], noisy=noisy, along=(k,))


def _argmax(d: Drawing) -> bool:
    x = d.pick(lambda v: v.rank > 0 and v.dtype in FLOATS and v.exact)
    if x is None:
        return False
    keys = x.shape[:-1]
    return d.add("argmax", [x], lambda s, x: torch.argmax(x, -1), [keys])


def creation(d: Drawing) -> bool:
    """A constant, or one that an operator makes a tensor of."""
    kind, dtype = (
        d.rng.choice(("full", "arange", "zeros_like", "ones_like", "scalar", "full_like")),
        d.dtype(),
    )
    x = d.pick()
    if x is None:
        return False
    n = d.rng.choice(plain_sizes(d))
    value = d.rng.choice((0, 1, 2)) if dtype in (torch.bool, torch.uint8) else d.rng.choice((-2, 3, 0.5, 7))
    keys: Shape = x.shape
    if kind in ("full", "arange"):
        keys = (n,)
    elif kind == "scalar":
        keys = ()

    def apply(sizes: Any, x: torch.Tensor) -> torch.Tensor:
        device = sizes["device"]
        if kind == "full":
            return torch.full((size(n, sizes),), value, dtype=dtype, device=device)
        if kind == "arange":
            return torch.arange(size(n, sizes), device=device)
        if kind == "scalar":
            return torch.scalar_tensor(value, dtype=dtype, device=device)
        if kind == "full_like":
            return torch.full_like(x, math.inf if x.dtype.is_floating_point else 3)
        return torch.zeros_like(x) if kind == "zeros_like" else torch.ones_like(x)

    return d.add(f"{kind} {dtype} {n} {value}", [x], apply, [keys])
