"""Views of every kind."""

from __future__ import annotations

from typing import Any

import torch

from .draw import Drawing, Shape, Value, plain_sizes, size, times

aten = torch.ops.aten


def view(d: Drawing) -> bool:
    """A view, or a list of them."""
    x = d.pick(lambda v: v.rank > 0) if d.rng.random() < 0.9 else d.pick()
    if x is None:
        return False
    return bool(d.rng.choice(_VIEWS)(d, x))


def _reshape(d: Drawing, x: Value) -> bool:
    keys = list(x.shape)
    if d.rng.random() < 0.3:
        keys = [(f,) for key in keys for f in key]  # cut at every factor
    for _ in range(d.rng.randrange(3)):
        if len(keys) >= 2:
            k = d.rng.randrange(len(keys) - 1)
            keys[k : k + 2] = [times(keys[k], keys[k + 1])]
        if d.rng.random() < 0.3:
            keys.insert(d.rng.randrange(len(keys) + 1), ())
    flat = d.rng.random() < 0.1
    if flat:
        keys = [times(*keys)]
    method = d.rng.choice(("reshape", "view", "contiguous"))

    def apply(sizes: Any, x: torch.Tensor) -> torch.Tensor:
        shape = [size(n, sizes) for n in keys]
        if flat:
            return x.reshape(-1) if method == "reshape" else x.flatten()
        x = x.contiguous() if method == "contiguous" else x
        return x.view(shape) if method == "view" else x.reshape(shape)

    return d.add(f"{method} {keys}", [x], apply, [tuple(keys)])


def _regroup(d: Drawing, x: Value) -> bool:
    """The factors of all axes in the order of another shape: axes that are cut inside one another."""
    factors = [f for key in x.shape for f in key]
    if len(factors) < 2:
        return False
    d.rng.shuffle(factors)
    cut = d.rng.randrange(1, len(factors))
    keys = [times(tuple(factors[:cut])), times(tuple(factors[cut:]))]

    def apply(sizes: Any, x: torch.Tensor) -> torch.Tensor:
        return x.reshape([size(n, sizes) for n in keys])

    return d.add(f"reshape {keys}", [x], apply, [tuple(keys)])


def _permute(d: Drawing, x: Value) -> bool:
    order = list(range(x.rank))
    if d.rng.random() < 0.4 and x.rank >= 2:
        a, b = d.rng.sample(order, 2)
        order[a], order[b] = order[b], order[a]
        a = a - x.rank if d.rng.random() < 0.5 else a
        keys = [tuple(x.shape[k] for k in order)]
        return d.add(f"transpose {a, b}", [x], lambda s, x: x.transpose(a, b), keys)
    if x.rank == 2 and d.rng.random() < 0.3:
        return d.add("t", [x], lambda s, x: x.t(), [(x.shape[1], x.shape[0])])
    d.rng.shuffle(order)
    keys = [tuple(x.shape[k] for k in order)]
    return d.add(f"permute {order}", [x], lambda s, x: x.permute(order), keys)


def _expand(d: Drawing, x: Value) -> bool:
    keys = [d.rng.choice(plain_sizes(d)) if n == () and d.rng.random() < 0.7 else n for n in x.shape]
    if x.rank < 4 and d.rng.random() < 0.4:
        keys.insert(0, d.rng.choice(plain_sizes(d)))

    def apply(sizes: Any, x: torch.Tensor) -> torch.Tensor:
        return x.expand([size(n, sizes) for n in keys])

    return d.add(f"expand {keys}", [x], apply, [tuple(keys)])


def _unsqueeze(d: Drawing, x: Value) -> bool:
    k = d.rng.randrange(-x.rank - 1, x.rank + 1)
    keys = list(x.shape)
    keys.insert(k if k >= 0 else k + x.rank + 1, ())
    return d.add(f"unsqueeze {k}", [x], lambda s, x: x.unsqueeze(k), [tuple(keys)])


def _squeeze(d: Drawing, x: Value) -> bool:
    ones = [k for k, n in enumerate(x.shape) if n == ()]
    if not ones:
        return False
    dims = d.rng.sample(ones, d.rng.randint(1, len(ones)))
    keys = tuple(n for k, n in enumerate(x.shape) if k not in dims)
    if len(dims) == 1:
        return d.add(f"squeeze {dims}", [x], lambda s, x: x.squeeze(dims[0]), [keys])
    return d.add(f"squeeze {dims}", [x], lambda s, x: torch.squeeze(x, dims), [keys])


def _select(d: Drawing, x: Value) -> bool:
    if not x.rank:
        return False
    k, index = d.rng.randrange(x.rank), d.rng.choice((0, -1, 1, -2))
    keys = tuple(n for axis, n in enumerate(x.shape) if axis != k)
    return d.add(f"select {k, index}", [x], lambda s, x: x.select(k, index), [keys])


def _slice(d: Drawing, x: Value) -> bool:
    if not x.rank:
        return False
    k = d.rng.randrange(x.rank)
    start, stop, step = (
        d.rng.choice((None, 0, 1, 2, -1, -2, -3)), d.rng.choice((None, None, -1, -2, 3, 1 << 40)),
        d.rng.choice((1, 1, 2, 3)),
    )  # fmt: skip
    keys = tuple(None if axis == k else n for axis, n in enumerate(x.shape))

    def apply(sizes: Any, x: torch.Tensor) -> torch.Tensor:
        return aten.slice.Tensor(x, k, start, stop, step)  # type: ignore[no-any-return]

    if d.tensors[x.number].shape[k] < 4:
        return False
    return d.add(f"slice {k}: {start}:{stop}:{step}", [x], apply, [keys])


def _split(d: Drawing, x: Value) -> bool:
    if not x.rank:
        return False
    k, first = d.rng.randrange(x.rank), d.rng.choice((1, 2))

    def apply(sizes: Any, x: torch.Tensor) -> Any:
        return list(torch.split(x, [first, x.shape[k] - first], k))

    if d.tensors[x.number].shape[k] < 3:
        return False
    ends = (
        tuple(((first,) if first > 1 else ()) if axis == k else n for axis, n in enumerate(x.shape)),
        tuple(None if axis == k else n for axis, n in enumerate(x.shape)),
    )
    return d.add(f"split {k}: {first}", [x], apply, list(ends))


def _unbind(d: Drawing, x: Value) -> bool:
    axes = [k for k, n in enumerate(x.shape) if all(isinstance(f, int) for f in n)]
    if not axes:
        return False
    k = d.rng.choice(axes)
    keys = tuple(n for axis, n in enumerate(x.shape) if axis != k)
    count = d.tensors[x.number].shape[k]
    return d.add(f"unbind {k}", [x], lambda s, x: list(x.unbind(k)), [keys] * count)


def _flip(d: Drawing, x: Value) -> bool:
    axes = d.rng.sample(range(x.rank), d.rng.randint(0, x.rank))
    return d.add(f"flip {axes}", [x], lambda s, x: x.flip(axes), [x.shape])


def _as_strided(d: Drawing, x: Value) -> bool:
    if x.rank == 2:
        keys: Shape = (x.shape[1], x.shape[0])

        def turned(sizes: Any, x: torch.Tensor) -> torch.Tensor:
            return torch.as_strided(x.contiguous(), (x.shape[1], x.shape[0]), (1, x.shape[1]))

        return d.add("as_strided turned", [x], turned, [keys])

    def windows(sizes: Any, x: torch.Tensor) -> torch.Tensor:
        x = x.reshape(-1)
        return torch.as_strided(x, (x.shape[0] - 1, 2), (1, 1), 0)

    if d.tensors[x.number].numel() < 3:
        return False
    return d.add("as_strided windows", [x], windows, [(None, (2,))])  # type: ignore[list-item]


_VIEWS = (
    _reshape, _reshape, _regroup, _permute, _permute, _expand, _unsqueeze, _squeeze, _select, _slice, _slice,
    _split, _unbind, _flip, _as_strided,
)  # fmt: skip
