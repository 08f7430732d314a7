"""Matrix products: square, odd, skinny, transposed, batched; the types that BLAS has and those that it lacks.

`python -m bench.gemm [--json PATH]`
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import pyarray as pa

from . import peers
from .timing import Figure, Row, geometric_mean, race, table

ABOUT = """Matrix products `a @ b`, next to NumPy's and PyTorch's; of integers next to NumPy alone, whose
loops are the faster ones."""
SQUARES = tuple((n, n, n) for n in (64, 128, 256, 512, 1024, 2048))  # (m, k, n)
SKINNY = tuple(shape for n in (1, 4, 16) for shape in ((n, 1024, 1024), (1024, 1024, n)))
ODD = ((63, 65, 67), (127, 129, 131), (255, 257, 259), (511, 513, 509), (1023, 1025, 1027))
BATCHED = ((64, 32),)  # (batch, side)
TALL = ((10**6, 3, 3), (10**6, 16, 1), (10**5, 10, 4), (3, 10**6, 3), (10, 10**6, 1))
FURTHER = ((16, 16, 16), (32, 32, 32), (1024, 16, 1024), (16, 65536, 16), (4096, 64, 64), *TALL)
FURTHER_BATCHED = ((16, 128), (1000, 8))
VIEWS = 512  # side of transposed operands
FEW = ((64, 64, 64), (256, 256, 256), *SKINNY, (255, 257, 259))  # of types that no BLAS has
TARGETS = {"i": 10.0, "u": 10.0}  # by kind: of NumPy's own loops
# geometric mean and least ratio to reach
MEANS: dict[str, tuple[float, float | None]] = {
    **dict.fromkeys(("float32", "float64"), (1.0, 0.75)),
    **dict.fromkeys(("float16", "bfloat16"), (1.0, None)),
    **dict.fromkeys(("int8", "int16", "int32", "int64", "int64, large values"), (10.0, None)),
}


def operands(dtype: str, *shapes: tuple[int, ...], below: int = 100) -> list[Any]:
    """Random NumPy arrays; integers are from 0 to `below`."""
    rng = np.random.default_rng(0)
    made = []
    for shape in shapes:
        if np.dtype(dtype).kind in "iu":
            made.append(rng.integers(0, below, shape).astype(dtype))
            continue
        values = rng.standard_normal(shape)
        if np.dtype(dtype).kind == "c":
            values = values + 1j * rng.standard_normal(shape)
        made.append(values.astype(dtype))
    return made


def product(x: Any, y: Any, dtype: str | None = None) -> dict[str, Callable[[], Any] | None]:
    """`x @ y` by each library, of `dtype` where NumPy lacks it; views of NumPy arrays are views in the
    others, too. PyTorch's integers aren't raced: they are slower than NumPy's."""
    torch = peers.peer("torch")
    p, q = pa.asarray(x), pa.asarray(y)
    if dtype:
        p, q = p.astype(dtype), q.astype(dtype)
    calls: dict[str, Callable[[], Any] | None] = {"pyarray": lambda: p @ q}
    if not dtype and x.dtype != np.float16:  # which takes NumPy seconds
        calls["numpy"] = lambda: x @ y
    if torch and x.dtype.kind not in "iu":
        s, t = torch.from_numpy(x), torch.from_numpy(y)
        if dtype:
            s, t = s.to(getattr(torch, dtype)), t.to(getattr(torch, dtype))
        calls["torch"] = lambda: s @ t
    return calls


def _row(
    group: str, name: str, pair: Sequence[Any], budget: float, dtype: str | None = None, n: int | None = None
) -> Row:
    """`n` is the side of a square."""
    x, y = pair
    m, k = x.shape[-2:]
    work = 2.0 * m * k * y.shape[-1] * max(1, int(np.prod(x.shape[:-2]))) * (4 if x.dtype.kind == "c" else 1)
    target = TARGETS.get(x.dtype.kind, 1.0)
    kind = f"{dtype or x.dtype}"
    series = f"{kind}, square" if n else None
    return Row(group, f"{kind} {name}", race(product(x, y, dtype), budget), target, work, n, series=series)


def rows_of(
    group: str,
    dtype: str,
    budget: float,
    shapes: Sequence[tuple[int, int, int]],
    batches: Sequence[tuple[int, int]] = (),
    views: int = 0,
    below: int = 100,
) -> list[Row]:
    """One type: matrices, batches of squares, squares of transposed operands."""
    lacks = None if dtype != "bfloat16" else dtype
    kept = "float32" if lacks else dtype
    rows = []
    for m, k, n in shapes:
        name = f"{n}³" if m == k == n else f"{m}×{k}×{n}"
        side = n if (m, k, n) in SQUARES else None
        rows.append(_row(group, name, operands(kept, (m, k), (k, n), below=below), budget, lacks, side))
    for b, n in batches:
        pair = operands(kept, (b, n, n), (b, n, n), below=below)
        rows.append(_row(group, f"{b}×({n}³)", pair, budget, lacks))
    if views:
        x, y = operands(kept, (views, views), (views, views))
        pairs = {"a.T": (x.T, y), "b.T": (x, y.T), "both.T": (x.T, y.T)}
        rows += [_row(group, f"{views}³ {name}", pair, budget, lacks) for name, pair in pairs.items()]
    return rows


def summary(name: str, rows: Sequence[Row]) -> list[Figure]:
    """The geometric mean of the ratios and the smallest of them."""
    ratios = [ratio for row in rows if (ratio := row.ratio()) is not None]
    if not ratios:
        return []
    mean, least = MEANS.get(name, (None, None))
    return [
        Figure(f"{name}: geometric mean", geometric_mean(rows) or "-", at_least=mean),
        Figure(f"{name}: least", min(ratios), at_least=least),
    ]


def run(quick: bool = False) -> Iterator[Row | Figure]:
    """All of it, printed as it comes, with the geometric mean of each group."""
    budget = 0.1 if quick else 0.3
    squares = SQUARES[:-1] if quick else SQUARES
    groups: dict[str, tuple[str, dict[str, Any]]] = {}
    for dtype in ("float32", "float64"):
        groups[dtype] = dtype, {"shapes": (*squares, *SKINNY, *ODD), "batches": BATCHED}
        groups[f"{dtype}, further shapes"] = dtype, {
            "shapes": FURTHER, "batches": FURTHER_BATCHED, "views": VIEWS
        }  # fmt: skip
    for dtype in ("complex64", "complex128", "float16", "bfloat16", "int8", "int16", "int32", "int64"):
        groups[dtype] = dtype, {"shapes": FEW, "batches": BATCHED}
    groups["int64, large values"] = "int64", {"shapes": FEW, "batches": BATCHED, "below": 2**62}
    for name, (dtype, cases) in groups.items():
        group = rows_of(name, dtype, budget, **cases)
        figures = summary(name, group)
        print(f"Matrix product, {name}: minimum (median)\n{table(group)}")
        print("".join(f"  {figure}\n" for figure in figures), flush=True)
        yield from group
        yield from figures


if __name__ == "__main__":
    from .part import alone

    alone("gemm")
