"""What no kernel here computes with: complex numbers, other dtypes, sizes that depend on data, and views and
copies that stay torch's. Changes of memory are for torch.compile, which makes graphs without them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .draw import FLOATS, Drawing

_NARROW = (torch.uint16, torch.uint32, torch.uint64)
_EIGHT = (torch.float8_e4m3fn, torch.float8_e5m2)


def unusual(d: Drawing) -> bool:
    """One of them; its result is again a tensor that kernels compute with."""
    return bool(d.rng.choice((_complex, _dtype, _by_data, _moved, _bits))(d))


def _complex(d: Drawing) -> bool:
    x = d.pick(lambda v: v.dtype in FLOATS[:2])
    y = d.pick(lambda v: x is not None and (v.dtype, v.shape) == (x.dtype, x.shape))
    if x is None or y is None:
        return False
    forms: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "real": lambda z: (z * 2).real,
        "imag": lambda z: z.imag,
        "negative": lambda z: z.conj().imag,  # a view whose numbers are negated when they are read
        "negative sum": lambda z: z.conj().imag + z.real,
        "abs": lambda z: z.abs(),
        "pairs": lambda z: torch.view_as_real(z).select(-1, 1),
    }
    function = d.rng.choice(list(forms))

    def apply(sizes: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return forms[function](torch.complex(x, y))

    return d.add(f"complex {function}", [x, y], apply, [x.shape], noisy=function == "abs")


def _dtype(d: Drawing) -> bool:
    x = d.pick(lambda v: v.exact)
    if x is None:
        return False
    to = d.rng.choice(_EIGHT if x.dtype in FLOATS else _NARROW)

    def apply(sizes: Any, x: torch.Tensor) -> torch.Tensor:
        if to in _EIGHT:
            return torch.clamp(x, -100, 100).to(to).to(x.dtype)
        return torch.abs(x.to(torch.int32)).to(to).to(torch.int32)

    return d.add(f"through {to}", [x], apply, [x.shape])


def _by_data(d: Drawing) -> bool:
    x = d.pick(lambda v: v.exact and v.rank > 0)
    if x is None:
        return False
    kind = d.rng.choice(("nonzero", "masked", "count", "number"))

    def apply(sizes: Any, x: torch.Tensor) -> torch.Tensor:
        if kind == "nonzero":
            return (x.nonzero() * 2 + 1).sum(0)
        if kind == "masked":
            return (x[x > 0] * 2).sum()
        if kind == "count":
            return torch.arange((x > 0).nonzero().shape[0], device=x.device).sum()
        return x * (x > 0).sum().item()

    shapes = {"nonzero": ((x.rank,),), "number": x.shape}
    return d.add(
        f"by data: {kind}", [x], apply, [shapes.get(kind, ())],
        noisy=kind == "masked" and x.dtype.is_floating_point,
    )  # fmt: skip


def _moved(d: Drawing) -> bool:
    """Views and copies of torch's: neighbours of kernels that keep or reuse memory."""
    x = d.pick(lambda v: v.rank >= 2)
    if x is None:
        return False
    n = x.shape[1]
    kind = d.rng.choice(("diagonal", "unfold", "roll", "tril", "pad", "sort", "scatter"))
    rest = x.shape[2:]
    shapes: dict[str, Any] = {"diagonal": (*rest, None), "unfold": (None, n, *rest, (2,)),
                              "pad": (*x.shape[:-1], None)}  # fmt: skip

    def apply(sizes: Any, x: torch.Tensor) -> torch.Tensor:
        if kind == "diagonal":
            return x.diagonal()
        if kind == "unfold":
            return x.unfold(0, 2, 1)
        if kind == "roll":
            return x.roll(1, 0)
        if kind == "tril":
            return x.tril()
        if kind == "pad":
            return torch.nn.functional.pad(x, (1, 2))
        if kind == "sort":
            return torch.sort(x, 0)[0]
        return torch.slice_scatter(x, x[1:] * 2, 0, 1)

    return d.add(kind, [x], apply, [shapes.get(kind, x.shape)])


def _bits(d: Drawing) -> bool:
    """The bits of numbers that are 0 or not NaN: signs of those may differ."""
    x = d.pick(lambda v: v.exact and v.dtype == torch.float32)
    if x is None:
        return False

    def apply(sizes: Any, x: torch.Tensor) -> torch.Tensor:
        return torch.where((x == 0) | x.isnan(), 1, x).view(torch.int32)

    return d.add("bits", [x], apply, [x.shape])


def change(d: Drawing) -> bool:
    """An input, or a copy of a value, is changed in place."""
    own = [v for v, given in zip(d.values, d.inputs, strict=False) if given.layout in ("plain", "offset", "stepped")]
    x = d.rng.choice(own) if own and d.rng.random() < 0.6 else d.pick(lambda v: v.exact)
    if x is None:
        return False
    given = x.number < len(d.inputs)
    if given and d.inputs[x.number].layout == "expanded":  # some versions of torch let it copy itself alone
        return False
    y = d.pick(lambda v: v.exact and (v.dtype, v.shape) == (x.dtype, x.shape)) or x
    kind = d.rng.choice(("add", "mul", "copy", "zero", "rows"))

    def apply(sizes: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x = x if given else x.clone()
        if kind == "add":
            return x.add_(y)
        if kind == "mul":
            return x.mul_(2)
        if kind == "copy":
            return x.copy_(y)
        if kind == "zero" or x.dim() == 0:
            return x.zero_()
        x[1:] = x[:1] + y[:1]
        return x

    added = d.add(f"{kind}_{' of an input' if given else ''}", [x, y], apply, [x.shape])
    d.changed |= added and given
    return added
