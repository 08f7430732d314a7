"""Products in tiles on a GPU: a kernel of six lines next to torch's library, Triton, and pyarray's own product.

`python -m bench.gpu_tiles [--quick] [--json PATH]`: the kernel is that of docs/examples/tiles.py, of halves and of
float32. The fastest of several tiles counts, of Triton's, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarray as pa

from . import peers
from .gpu_timing import timer
from .timing import Figure, Row, Times, aligned

ABOUT = """Products in tiles on a GPU, by a kernel of six lines, next to PyTorch's library, Triton and pyarray's own
product: time on the device, on arrays that the libraries share."""
SIZES = (2048, 4096, 8192)
# of bfloat16 and float32 of the second size: operands whose rows lie across memory, or which the kernel transposes, or
# which aren't aligned
TURNED = "a[k, i].T @ b[j, k].T"
LAYOUTS = ("a.T @ b", "a @ b.T", "a.T @ b.T", TURNED, "odd rows")
TILES = ((128, 256, 64), (128, 128, 64), (256, 128, 64), (64, 128, 64))
FLOAT32_TILES = ((128, 128, 32), (128, 128, 16), (128, 64, 32), (64, 128, 32))


@pa.kernel
def product(c, a, b, rows: pa.constexpr, columns: pa.constexpr, depth: pa.constexpr):
    for i, j in pa.tiles(c, (rows, columns)):
        total = pa.zeros((i, j), pa.float32)
        for k in pa.tiles(a.shape[1], depth):
            total += a[i, k] @ b[k, j]
        c[i, j] = total


@pa.kernel
def turned(c, a, b, rows: pa.constexpr, columns: pa.constexpr, depth: pa.constexpr):
    for i, j in pa.tiles(c, (rows, columns)):
        total = pa.zeros((i, j), pa.float32)
        for k in pa.tiles(a.shape[0], depth):
            total += a[k, i].T @ b[j, k].T
        c[i, j] = total


def run(quick: bool = False) -> Iterator[Row | Figure]:
    """All of it, printed as it comes; no rows without a GPU that torch and pyarray both see."""
    torch = peers.peer("torch")
    if torch is None or not torch.cuda.is_available():
        print("(no GPU that torch sees: nothing is measured)\n")
        yield Figure("device", "none: nothing was measured")
        return
    yield Figure("device", torch.cuda.get_device_name())
    measure, triton = timer(torch, quick, calls=5), peers.peer("triton")
    lines = [["product in tiles", "TFLOP/s", "torch", "triton", "own product", "of torch", "of triton"]]
    cases = [(dtype, n, "") for dtype in ("bfloat16", "float16", "float32") for n in SIZES]
    cases += [(dtype, SIZES[1], layout) for dtype in ("bfloat16", "float32") for layout in LAYOUTS]
    for dtype, n, layout in cases[:2] if quick else cases:
        times = _times(torch, triton, measure, dtype, n, layout)
        rates = ["-" if t is None else f"{2.0 * n**3 / t.median / 1e12:.0f}" for t in times.values()]
        of = [times[who].median / times["pyarray"].median if times[who] else None for who in ("torch", "triton")]
        name = f"{dtype} {n}^3 {layout}".strip()
        lines.append([name, *rates, *("-" if x is None else f"{x:.2f}" for x in of)])
        yield Row("products in tiles", name, times, None, 2.0 * n**3, None, ("torch", "triton"))
    print(aligned(lines) + "\n", flush=True)


def _times(torch: Any, triton: Any, measure: Any, dtype: str, n: int, layout: str) -> dict[str, Times | None]:
    """By who computes it; of several tiles the fastest."""
    wide = n + 1 if layout == "odd rows" else n
    x, y = (torch.randn(n, wide, device="cuda").to(getattr(torch, dtype))[:, wide - n :] for _ in "xy")
    x, y = x.T if "a.T" in layout else x, y.T if "b.T" in layout else y
    z = torch.empty(n, n, device="cuda", dtype=x.dtype)
    a, b, c = (pa.from_dlpack(t) for t in (x, y, z))
    tiles = FLOAT32_TILES if dtype == "float32" else TILES
    if layout == TURNED:
        own = [measure(lambda tile=tile: turned(c, a, b, *tile)) for tile in tiles]
        x, y, a, b = x.T, y.T, a.T, b.T
    else:
        own = [measure(lambda tile=tile: product(c, a, b, *tile)) for tile in tiles]
    theirs = []
    if triton is not None:
        from . import kernels_triton

        theirs = [measure(call) for call in kernels_triton.products(z, x, y)]
    return {
        "pyarray": min(own, key=lambda t: t.median),
        "torch": measure(lambda: torch.mm(x, y, out=z)),
        "triton": min(theirs, key=lambda t: t.median) if theirs else None,
        "own product": measure(lambda: pa.matmul(a, b, out=c)),
    }


if __name__ == "__main__":
    from .part import alone

    alone("gpu_tiles")
