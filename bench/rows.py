"""Functions of rows, written with NumPy's operations and fused: softmax, normalizations, cross entropy, moments.

`python -m bench.rows [--json PATH]`: on the CPU next to torch; `bench.gpu` has the same on a GPU, next to
`torch.compile` and a copy, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarray as pa

from . import peers
from .timing import Figure, Row, race, table

ABOUT = """Softmax, layer norm, RMS norm, cross entropy and variances along rows: NumPy's operations under `pa.fuse`,
next to PyTorch's own functions."""
SIZES = ((256, 1024), (4096, 4096), (2048, 16384))
EPS = 1e-5


def wide(x):
    """As PyTorch's functions do it: halves are computed in float32."""
    return x.astype(pa.float32)


@pa.fuse
def softmax(x):
    t = wide(x)
    e = pa.exp(t - pa.max(t, axis=-1, keepdims=True))
    return (e / pa.sum(e, axis=-1, keepdims=True)).astype(x.dtype)


@pa.fuse
def layer_norm(x, weight, bias):
    t = wide(x)
    d = t - pa.mean(t, axis=-1, keepdims=True)
    result = d / pa.sqrt(pa.mean(d * d, axis=-1, keepdims=True) + EPS) * weight + bias
    return result.astype(x.dtype)


@pa.fuse
def rms_norm(x, weight):
    t = wide(x)
    return (t / pa.sqrt(pa.mean(t * t, axis=-1, keepdims=True) + EPS) * weight).astype(x.dtype)


@pa.fuse
def cross_entropy(x, labels, columns):
    t = wide(x)
    top = pa.max(t, axis=-1, keepdims=True)
    total = pa.log(pa.sum(pa.exp(t - top), axis=-1)) + top[:, 0]
    return (total - pa.sum(pa.where(columns == labels[:, None], t, 0), axis=-1)).astype(x.dtype)


Call = Callable[[], Any]


def cases(
    torch: Any, shape: tuple[int, int], device: str, dtype: str = "float32"
) -> Iterator[tuple[str, Call, Any, Any, tuple[Any, ...]]]:
    """(name, ours, the library's own function or None, torch's function, torch's arguments)."""
    f = torch.nn.functional
    columns = shape[1]
    kind = getattr(torch, dtype)
    x = torch.randn(shape, device=device).to(kind)
    w, b = (torch.rand(columns, device=device).to(kind) for _ in range(2))
    labels, places = torch.randint(columns, shape[:1], device=device), torch.arange(columns, device=device)
    ours = [pa.from_dlpack(t) for t in (x, w, b, labels.to(torch.int32), places.to(torch.int32))]
    a, weight, bias, picked, every = ours
    yield "softmax", lambda: softmax(a), lambda: pa.special.softmax(a, axis=-1), lambda x: f.softmax(x, -1), (x,)
    yield (
        "layer norm", lambda: layer_norm(a, weight, bias), None,
        lambda x, w, b: f.layer_norm(x, (columns,), w, b, EPS), (x, w, b),
    )  # fmt: skip
    yield "RMS norm", lambda: rms_norm(a, weight), None, lambda x, w: f.rms_norm(x, (columns,), w, EPS), (x, w)
    yield (
        "cross entropy", lambda: cross_entropy(a, picked, every), None,
        lambda x, labels: f.cross_entropy(x, labels, reduction="none"), (x, labels),
    )  # fmt: skip
    yield "variance", lambda: pa.var(a, axis=-1), None, lambda x: torch.var(x, -1, correction=0), (x,)


def run(quick: bool = False) -> Iterator[Row | Figure]:
    """All of it on the CPU, printed as it comes."""
    torch, rows = peers.peer("torch"), list[Row]()
    for shape in SIZES[:1] if quick else SIZES:
        if torch is None:
            break
        for name, ours, own, theirs, args in cases(torch, shape, "cpu"):
            calls = {"pyarray": ours, "special": own, "torch": lambda theirs=theirs, args=args: theirs(*args)}
            times = race({who: call for who, call in calls.items() if call is not None})
            rows.append(Row("rows of float32", f"{name} {shape[0]}x{shape[1]}", times, 1.0, against=("torch",)))
    print(table(rows) + "\n", flush=True)
    yield from rows


if __name__ == "__main__":
    from .part import alone

    alone("rows")
