"""Texts in tiles on the CPU: products next to this library's own, softmax and layer norm next to torch's.

`python -m bench.tiles [--quick] [--json PATH]`: the kernels are those of docs/examples/tiles.py. The tuner chooses the
tiles of products.
"""

from __future__ import annotations

import importlib
import itertools
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import pyarray as pa

from . import peers
from .ports import EXAMPLES
from .timing import Figure, Row, race, table

ABOUT = """Kernels in tiles on the CPU (docs/examples/tiles.py): products next to this library's own, softmax and layer
norm of float32 next to PyTorch's own functions."""
SIDES = (512, 1024, 2048)
NARROW = (("float16", "float32"), ("bfloat16", "float32"), ("int8", "int32"))  # operands, and their product
ROWS = ((1000, 768), (512, 1024), (256, 4096), (2048, 2048))
# rows, columns and depth of a product's tiles: with AVX-512, and for blocks of 6 rows and of 16 columns
TILES = ((128, 192, 48), (120, 240, 40))
NARROW_TILES = ((128, 192, 96), (128, 240, 80))  # deeper: elements of fewer bytes, sums are read and written less often
PRODUCT, FUNCTION = 0.9, 1.0  # ratios to reach
EPS = 1e-5

Call = Callable[[], Any]


def examples() -> Any:
    if str(EXAMPLES) not in sys.path:
        sys.path.append(str(EXAMPLES))
    return importlib.import_module("tiles")


def drawn(*shape: int) -> Any:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


@pa.kernel
def narrow(c, a, b, sums: pa.constexpr, rows: pa.constexpr, columns: pa.constexpr, depth: pa.constexpr):
    for i, j in pa.tiles(c, (rows, columns)):
        total = pa.zeros((i, j), sums)
        for k in pa.tiles(a.shape[1], depth):
            total += a[i, k] @ b[k, j]
        c[i, j] = total


def in_tiles(kernel: Any, tiles: tuple[tuple[int, int, int], ...]) -> Any:
    """The kernel with those of the tiles that the tuner chooses, for each size and type."""
    configs = [pa.Config(rows=rows, columns=columns, depth=depth) for rows, columns, depth in tiles]
    return pa.autotune(configs=configs, key=["c", "a", "b"])(kernel)


def product(ex: Any, n: int, transposed: bool = False) -> tuple[Call, Call]:
    """By tiles, and by the library itself; of operands whose rows lie across memory with `transposed`."""
    a, b = (pa.asarray(drawn(n, n)) for _ in range(2))
    a, b = (a.T, b.T) if transposed else (a, b)
    c, d = pa.empty_like(a), pa.empty_like(a)
    gemm = in_tiles(ex.gemm, TILES)
    return lambda: gemm(c, a, b), lambda: pa.matmul(a, b, out=d)


def narrow_product(n: int, kind: str, result: str) -> tuple[Call, Call]:
    """The same of a narrow type, into a wider one."""
    a, b = (pa.asarray(drawn(n, n) * 3).astype(kind) for _ in range(2))
    c, d = (pa.empty((n, n), result) for _ in range(2))
    sums = getattr(pa, result)
    tuned = in_tiles(narrow, NARROW_TILES)
    return lambda: tuned(c, a, b, sums), lambda: pa.gemm(a, b, dtype=result, out=d)


def functions(ex: Any, torch: Any, shape: tuple[int, int]) -> Iterator[tuple[str, Call, Call]]:
    """(name, by tiles, by torch)."""
    f, columns = torch.nn.functional, shape[1]
    x, w, b = drawn(*shape), drawn(columns), drawn(columns)
    ours, theirs = [pa.asarray(v) for v in (x, w, b)], [torch.from_numpy(v) for v in (x, w, b)]
    y = pa.empty_like(ours[0])
    yield "softmax", lambda: ex.softmax(y, ours[0], columns), lambda: f.softmax(theirs[0], -1)
    yield (
        "layer norm",
        lambda: ex.layer_norm(y, *ours, EPS, columns),
        lambda: f.layer_norm(theirs[0], (columns,), *theirs[1:], EPS),
    )


def run(quick: bool = False) -> Iterator[Row | Figure]:
    """All of it, printed as it comes."""
    ex, torch, budget = examples(), peers.peer("torch"), 0.1 if quick else 0.5
    rows = list[Row]()
    for transposed, n in itertools.product((False, True), SIDES[:2] if quick else SIDES):
        tiles, own = product(ex, n, transposed)
        times = race({"pyarray": tiles, "matmul": own}, budget)
        name = f"float32 {n}³{' of transposed views' * transposed}"
        target = None if transposed else PRODUCT
        rows.append(Row("products in tiles", name, times, target, 2.0 * n**3, n, ("matmul",)))
    for (kind, result), n in itertools.product(NARROW, SIDES[:1] if quick else SIDES):
        tiles, own = narrow_product(n, kind, result)
        times = race({"pyarray": tiles, "matmul": own}, budget)
        rows.append(Row("products in tiles", f"{kind} {n}³ into {result}", times, PRODUCT, 2.0 * n**3, n, ("matmul",)))
    print(table(rows) + "\n", flush=True)
    yield from rows
    rows = []
    for shape in ROWS[:2] if quick else ROWS:
        for name, tiles, theirs in functions(ex, torch, shape) if torch else ():
            times = race({"pyarray": tiles, "torch": theirs}, budget)
            rows.append(Row("rows in tiles", f"{name} {shape[0]}x{shape[1]}", times, FUNCTION, against=("torch",)))
    print(table(rows) + "\n", flush=True)
    yield from rows


if __name__ == "__main__":
    from .part import alone

    alone("tiles")
