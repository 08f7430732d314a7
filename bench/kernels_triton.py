"""A product of matrices in Triton, as its tutorial has it: tiles in strips of rows, loads ahead by its compiler."""

# no `from __future__ import annotations`: Triton evaluates annotations

from collections.abc import Callable
from typing import Any

import triton
import triton.language as tl

STRIP = 8
# tile, warps and stages, of which the fastest counts
CHOICES = (
    ((128, 256, 64), 8, 3), ((128, 256, 64), 8, 4), ((128, 128, 64), 4, 3), ((128, 128, 64), 8, 4),
    ((64, 256, 64), 4, 3), ((64, 128, 64), 4, 4),
)  # fmt: skip
FLOAT32_CHOICES = (((128, 128, 32), 8, 3), ((128, 64, 32), 8, 3), ((64, 64, 32), 4, 3), ((64, 64, 16), 4, 3))


@triton.jit
def _product(
    a, b, c, m, n, k, a_row, a_column, b_row, b_column, c_row, c_column,
    rows: tl.constexpr, columns: tl.constexpr, depth: tl.constexpr, strip: tl.constexpr,
    precision: tl.constexpr,
):  # fmt: skip
    down, across, number = tl.cdiv(m, rows), tl.cdiv(n, columns), tl.program_id(0)
    first = number // (strip * across) * strip
    high = min(down - first, strip)
    i = (first + number % (strip * across) % high) * rows + tl.arange(0, rows)
    j = number % (strip * across) // high * columns + tl.arange(0, columns)
    d = tl.arange(0, depth)
    left, right = a + i[:, None] * a_row + d[None, :] * a_column, b + d[:, None] * b_row + j[None, :] * b_column
    total = tl.zeros((rows, columns), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, depth)):
        x = tl.load(left, mask=d[None, :] < k - step * depth, other=0.0)
        y = tl.load(right, mask=d[:, None] < k - step * depth, other=0.0)
        total = tl.dot(x, y, total, input_precision=precision)
        left += depth * a_column
        right += depth * b_row
    inside = (i[:, None] < m) & (j[None, :] < n)
    tl.store(c + i[:, None] * c_row + j[None, :] * c_column, total.to(c.dtype.element_ty), mask=inside)


def products(c: Any, a: Any, b: Any) -> list[Callable[[], Any]]:
    """A call for each choice of tiles. Of float32 products have its precision."""
    (m, k), n, is_float32 = a.shape, b.shape[1], a.element_size() == 4

    def of(tile: tuple[int, int, int], warps: int, stages: int) -> Callable[[], Any]:
        grid = (triton.cdiv(m, tile[0]) * triton.cdiv(n, tile[1]),)
        sizes = (m, n, k, *a.stride(), *b.stride(), *c.stride(), *tile, STRIP, "ieee" if is_float32 else "tf32")
        return lambda: _product[grid](a, b, c, *sizes, num_warps=warps, num_stages=stages)

    return [of(*choice) for choice in (FLOAT32_CHOICES if is_float32 else CHOICES)]
