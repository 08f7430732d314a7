"""Matrix products: square, odd, skinny, transposed, batched; the types that BLAS has and those that it lacks.

`python -m bench.gemm [--json PATH]`
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import pyarray as pa

from . import peers
from .timing import Row, race, table

SQUARES = (16, 32, 64, 128, 256, 512, 1024)
SHAPES = (  # (m, k, n)
    (255, 257, 259), (1023, 1025, 1027), (1, 1024, 1024), (1024, 1024, 1), (1024, 16, 1024), (16, 65536, 16),
    (4096, 64, 64),
)  # fmt: skip
FURTHER = (
    ("complex64", (32, 256, 512)), ("complex128", (32, 256, 512)),
    ("int32", (32, 256)), ("float16", (32, 256)),
)  # fmt: skip
BATCHES = ((64, 32), (16, 128), (1000, 8))  # (batch, side)


def operands(dtype: str, *shapes: tuple[int, ...]) -> list[Any]:
    """Random NumPy arrays; small integers for integer types."""
    rng = np.random.default_rng(0)
    made = []
    for shape in shapes:
        if np.dtype(dtype).kind in "iu":
            made.append(rng.integers(0, 100, shape).astype(dtype))
            continue
        values = rng.standard_normal(shape)
        if np.dtype(dtype).kind == "c":
            values = values + 1j * rng.standard_normal(shape)
        made.append(values.astype(dtype))
    return made


def product(x: Any, y: Any) -> dict[str, Callable[[], Any] | None]:
    """`x @ y` by each library; views of NumPy arrays are views in the others, too."""
    torch = peers.peer("torch")
    p, q = pa.asarray(x), pa.asarray(y)
    calls: dict[str, Callable[[], Any] | None] = {"pyarray": lambda: p @ q, "numpy": lambda: x @ y}
    if torch:
        s, t = torch.from_numpy(x), torch.from_numpy(y)
        calls["torch"] = lambda: s @ t
    return calls


def _row(name: str, pair: Sequence[Any], budget: float) -> Row:
    x, y = pair
    m, k = x.shape[-2:]
    work = 2.0 * m * k * y.shape[-1] * max(1, int(np.prod(x.shape[:-2]))) * (4 if x.dtype.kind == "c" else 1)
    return Row("gemm", f"{x.dtype} {name}", race(product(x, y), budget), 1.0, work)


def rows_of(
    dtype: str, budget: float, squares: tuple[int, ...], shapes: tuple[tuple[int, int, int], ...]
) -> list[Row]:
    """One type: squares, other shapes, transposed operands, batches."""
    rows = [_row(f"{n}³", operands(dtype, (n, n), (n, n)), budget) for n in squares]
    rows += [_row(f"{m}×{k}×{n}", operands(dtype, (m, k), (k, n)), budget) for m, k, n in shapes]
    if shapes:
        n = squares[-1] // 2
        x, y = operands(dtype, (n, n), (n, n))
        views = {"a.T": (x.T, y), "b.T": (x, y.T), "both.T": (x.T, y.T)}
        rows += [_row(f"{n}³ {name}", pair, budget) for name, pair in views.items()]
        rows += [_row(f"{b}×({n}³)", operands(dtype, (b, n, n), (b, n, n)), budget) for b, n in BATCHES]
    return rows


def run(quick: bool = False) -> tuple[list[Row], dict[str, Any]]:
    """All of it, printed as it comes. Types without a BLAS end at 256: NumPy's own loops are slow."""
    budget, rows = (0.1 if quick else 0.3), []
    squares = SQUARES[:-2] if quick else SQUARES
    for dtype in ("float32", "float64"):
        group = rows_of(dtype, budget, squares, SHAPES)
        print(f"Matrix product, {dtype}: minimum (median)\n{table(group)}\n", flush=True)
        rows += group
    for dtype, few in FURTHER:
        group = rows_of(dtype, budget, few, ())
        print(f"Matrix product, {dtype}: minimum (median)\n{table(group)}\n", flush=True)
        rows += group
    return rows, {}


if __name__ == "__main__":
    from .__main__ import alone

    alone("gemm")
