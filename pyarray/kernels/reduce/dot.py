"""Batched inner products, and products of tall narrow matrices with vectors, for which the matrix product's
set-up takes too long."""

from __future__ import annotations

import functools

from ... import jit, shapes
from ...array import STRIDED, ndarray
from ...dtypes import DType, bool_
from ...lang.markers import ndrange, unordered
from ..matmul import thresholds as th
from .reduce import on_grid

CHUNK = 2048  # elements summed in parallel accumulators before they are combined


def prefers_dots(count: int, length: int) -> bool:
    """Whether `dots` is faster than `gemm` for `count` products of vectors of `length`."""
    return count >= th.MIN_DOTS or length < th.MAX_DOT_LENGTH


def dots(out: ndarray, a: ndarray, b: ndarray) -> None:
    """`out[k...]` = sum of a[k..., i] * b[k..., i] over i, for arrays of one type. Half floats are summed in
    float32, integers wrap, bools are or-ed."""
    shape, columns = shapes.collapse(out._shape, a._strides[:-1], b._strides[:-1], out._strides)
    left, right, target = columns
    length = a._shape[-1:]
    accumulator = a._dtype.arithmetic
    kernel = _kernel(len(shape), accumulator, a._shape[-1] < th.MIN_CHUNKED_LENGTH)
    kernel(
        out._view(0, shape, target),
        a._view(0, shape + length, left + a._strides[-1:]),
        b._view(0, shape + length, right + b._strides[-1:]),
    )


def is_narrow(a: ndarray) -> bool:
    """Whether `narrow_matvec` is faster than `gemm` for the product of the matrix `a` and a vector."""
    rows, length = a._shape
    small = a._dtype.kind in "iuf" and a._dtype.itemsize >= 4
    large = rows * length >= th.MIN_NARROW_SIZE
    return small and large and 1 < length <= th.MAX_NARROW_COLUMNS and not a._key & STRIDED and not on_grid(a)


def narrow_matvec(out: ndarray, a: ndarray, b: ndarray) -> None:
    """`out = a @ b` for a contiguous matrix of short rows and a vector; vectorised over the rows."""
    _thin_kernel(b._size)(out, a.reshape(a._size), b)


# The length is a constant of the text; dtypes are in its variants' keys.
@functools.cache
def _thin_kernel(length: int) -> jit.kernel.Kernel:
    numbers = range(length)
    text = f"""def thin_product(out, a, b):
{"".join(f"    b{n} = b[{n}]{chr(10)}" for n in numbers)}    for i in range(out.shape[0]):
        out[i] = {" + ".join(f"a[{length} * i + {n}] * b{n}" for n in numbers)}
"""
    return jit.kernel.from_text("thin_product", text, {})


# The text depends on the rank, the accumulator type and the loop; dtypes are in its variants' keys.
@functools.cache
def _kernel(rank: int, accumulator: DType, short: bool) -> jit.kernel.Kernel:
    ks = [f"k{n}" for n in range(rank)]
    sizes = ", ".join(f"out.shape[{n}]" for n in range(rank))
    index = ", ".join([*ks, "r"])
    product = f"acc_t(a[{index}]) {'&' if accumulator is bool_ else '*'} acc_t(b[{index}])"
    plus = "|" if accumulator is bool_ else "+"
    chunked = f"""
        for c in range(0, a.shape[{rank}], {CHUNK}):
            part = acc_t(0)
            for r in unordered(range(c, min(c + {CHUNK}, a.shape[{rank}]))):
                part = part {plus} ({product})
            acc = acc {plus} part"""
    serial = f"""
        for r in range(a.shape[{rank}]):
            acc = acc {plus} ({product})"""
    text = f"""def dots(out, a, b):
    for {", ".join(ks) or "_"} in {f"ndrange({sizes})" if rank else "range(1)"}:
        acc = acc_t(0){serial if short else chunked}
        out[{", ".join(ks) or "()"}] = acc
"""
    return jit.kernel.from_text("dots", text, {"acc_t": accumulator, "ndrange": ndrange, "unordered": unordered})
