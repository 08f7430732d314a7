"""Attention as loops over tiles: what runs on every device, for every float type and size of a head.

A running maximum and a running sum take the place of the matrix of scores (Dao et al., FlashAttention). Exponentials
are of base 2, so that a factor of the scores has the logarithm in it. In a backward pass the gradient of the queries is
a loop over keys for each tile of queries, and those of keys and values are a loop over queries for each tile of keys:
two products more than with atomics, and the same bits each time."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ... import jit
from ...dtypes import DType, float32
from ...lang.markers import kernel_math, tiles

MOST_SHARED = 57 << 10  # bytes of tiles that threads exchange, without those along one axis
_SIDES = ((64, 64), (64, 32), (32, 32), (16, 16), (8, 8), (4, 4), (2, 2), (1, 1))


class Problem(NamedTuple):
    """What the texts depend on. `mask`: "", "bool" or "add". `width` and `value_width`: the most elements of a head."""

    dtype: DType
    causal: bool
    mask: str
    width: int
    value_width: int

    @property
    def wide(self) -> DType:
        """The type of sums."""
        return float32 if self.dtype.itemsize < 8 else self.dtype


def head_width(size: int) -> int:
    """The size of a tile for a head of `size` elements.

    >>> head_width(65)
    80
    """
    return max(-(-size // 16), 1) * 16


def _sides(problem: Problem, bytes_of: Callable[[int, int], int]) -> tuple[int, int]:
    """Sizes of tiles along the axis of the parallel loop, and along the other one. Raises `ValueError` for a head that
    doesn't fit."""
    for sides in _SIDES:
        if bytes_of(*sides) * problem.dtype.itemsize <= MOST_SHARED:
            return sides
    what = f"a query, a key and a value of {problem.width} and {problem.value_width} elements"
    raise ValueError(f"attention(): {what} don't fit the memory of a block, {MOST_SHARED} bytes; split the head")


def _masked(problem: Problem, mask: str, test: str) -> str:
    """The statements that mask a tile of scores."""
    text = ""
    if problem.mask == "bool":
        text += f"            score = where({mask}, score, -inf)\n"
    if problem.mask == "add":
        text += f"            score = score + wide({mask}) * wide(log2e)\n"
    if problem.causal:
        text += f"            score = where({test}, score, -inf)\n"
    return text


def _kernel(problem: Problem, name: str, text: str) -> jit.kernel.Kernel:
    scope = {
        "tiles": tiles, "wide": problem.wide, "half": problem.dtype, "inf": math.inf, "log2e": math.log2(math.e),
        "ln2": math.log(2), "exp2": kernel_math.exp2, "log2": kernel_math.log2, "where": np.where, "full": np.full,
        "zeros": np.zeros, "matmul": np.matmul, "maximum": np.maximum,
    }  # fmt: skip
    return jit.kernel.from_text(name, text, scope)


# The text depends on the problem alone; dtypes are in its variants' keys, too.
@functools.cache
def forward(problem: Problem) -> jit.kernel.Kernel:
    """`(out, logsumexp, q, k, v, [mask,] scale)`, arrays of four axes; `logsumexp` has three."""
    width, value_width = problem.width, problem.value_width
    rows, columns = _sides(problem, lambda i, j: i * width + j * (width + value_width) + i * j)
    keys = "min(i.stop, k.shape[2])" if problem.causal else "k.shape[2]"
    text = f"""def attention(out, logsumexp, q, k, v, {"mask, " if problem.mask else ""}scale):
    for batch, head, i in tiles((out.shape[0], out.shape[1], out.shape[2]), (1, 1, {rows})):
        b = batch.start
        h = head.start
        (d,) = tiles(q.shape[3], {width})
        (e,) = tiles(v.shape[3], {value_width})
        query = q[b, h, i, d]
        top = full(i, -inf, wide)
        total = zeros(i, wide)
        mixed = zeros((i, e), wide)
        for j in tiles({keys}, {columns}):
            key = k[b, h, j, d]
            value = v[b, h, j, e]
            score = matmul(query, key.T, dtype=wide) * wide(scale * log2e)
{_masked(problem, "mask[b, h, i, j]", "i[:, None] >= j")}            best = maximum(top, score.max(axis=1))
            base = where(best == -inf, wide(0), best)
            weight = exp2(score - base[:, None])
            shrink = exp2(top - base)
            total = total * shrink + weight.sum(axis=1)
            mixed = mixed * shrink[:, None]
            mixed += half(weight) @ value
            top = best
        out[b, h, i, e] = mixed / where(total == 0, wide(1), total)[:, None]
        logsumexp[b, h, i] = (top + log2(total)) * wide(ln2)
"""
    return _kernel(problem, "attention", text)


# As above.
@functools.cache
def backward_queries(problem: Problem) -> jit.kernel.Kernel:
    """`(grad_q, delta, grad, out, logsumexp, q, k, v, [mask,] scale)`; `delta` is what the other one reads."""
    width, value_width = problem.width, problem.value_width
    rows, columns = _sides(problem, lambda i, j: (i + j) * (width + value_width) + i * j)
    keys = "min(i.stop, k.shape[2])" if problem.causal else "k.shape[2]"
    mask = "mask, " if problem.mask else ""
    text = f"""def attention_backward_queries(grad_q, delta, grad, out, logsumexp, q, k, v, {mask}scale):
    for batch, head, i in tiles((grad_q.shape[0], grad_q.shape[1], grad_q.shape[2]), (1, 1, {rows})):
        b = batch.start
        h = head.start
        (d,) = tiles(q.shape[3], {width})
        (e,) = tiles(v.shape[3], {value_width})
        query = q[b, h, i, d]
        g = grad[b, h, i, e]
        removed = (wide(g) * wide(out[b, h, i, e])).sum(axis=1)
        delta[b, h, i] = removed
        top = logsumexp[b, h, i] * wide(log2e)
        top = where(top == -inf, wide(0), top)
        total = zeros((i, d), wide)
        for j in tiles({keys}, {columns}):
            key = k[b, h, j, d]
            value = v[b, h, j, e]
            score = matmul(query, key.T, dtype=wide) * wide(scale * log2e)
{_masked(problem, "mask[b, h, i, j]", "i[:, None] >= j")}            weight = exp2(score - top[:, None])
            change = weight * (matmul(g, value.T, dtype=wide) - removed[:, None])
            total += half(change) @ key
        grad_q[b, h, i, d] = total * wide(scale)
"""
    return _kernel(problem, "attention_backward_queries", text)


# As above.
@functools.cache
def backward_keys(problem: Problem) -> jit.kernel.Kernel:
    """`(grad_k, grad_v, delta, grad, logsumexp, q, k, v, [mask,] scale)`."""
    width, value_width = problem.width, problem.value_width
    columns, rows = _sides(problem, lambda j, i: (i + j) * (width + value_width) + 2 * i * j)
    mask = "mask, " if problem.mask else ""
    test = "i.stop > j.start" if problem.causal else "True"
    masking = _masked(problem, "mask[b, h, i, j].T", "i >= j[:, None]").replace("            ", "                ")
    text = f"""def attention_backward_keys(grad_k, grad_v, delta, grad, logsumexp, q, k, v, {mask}scale):
    for batch, head, j in tiles((grad_k.shape[0], grad_k.shape[1], grad_k.shape[2]), (1, 1, {columns})):
        b = batch.start
        h = head.start
        (d,) = tiles(q.shape[3], {width})
        (e,) = tiles(v.shape[3], {value_width})
        key = k[b, h, j, d]
        value = v[b, h, j, e]
        total = zeros((j, d), wide)
        mixed = zeros((j, e), wide)
        for i in tiles(q.shape[2], {rows}):
            if {test}:
                query = q[b, h, i, d]
                g = grad[b, h, i, e]
                top = logsumexp[b, h, i] * wide(log2e)
                top = where(top == -inf, wide(0), top)
                score = matmul(key, query.T, dtype=wide) * wide(scale * log2e)
{masking}                weight = exp2(score - top)
                mixed += half(weight) @ g
                change = weight * (matmul(value, g.T, dtype=wide) - delta[b, h, i])
                total += half(change) @ query
        grad_k[b, h, j, d] = total * wide(scale)
        grad_v[b, h, j, e] = mixed
"""
    return _kernel(problem, "attention_backward_keys", text)
