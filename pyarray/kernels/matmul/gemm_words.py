"""Products of 8- and 16-bit integers into 32-bit ones on CPUs, by a text in tiles: instructions add two products of
16-bit words, in vectors (csrc/device/pa_products_words.h)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ... import jit, lang
from ...array import ndarray
from ...dtypes import BY_NAME, int8, int16, int32, uint8, uint32
from ...jit.text_kernel import TextKernel
from ...lang.markers import tiles
from . import thresholds as th
from .gemm_types import gemm_operations

if TYPE_CHECKING:
    from .gemm_epilogue import Epilogue

_LARGE, _SMALL = (128, 192), (64, 96)  # rows and columns; small ones where each thread would have few
_DEPTH = 96


class _Key(NamedTuple):
    """What the text depends on: the types of the operands and of the result, the axes of a stack, the tile."""

    dtype: str
    result: str
    axes: int
    tile: tuple[int, int]


def fits(views: Sequence[ndarray], epilogue: Epilogue | None) -> bool:
    """Whether `multiply` computes the product of `views`, a, b, c and an epilogue's arrays, and faster than the kernel
    of all types, which multiplies 32 bits each."""
    a, b, c = views[:3]
    return (
        a._dtype is b._dtype
        and a._dtype in (int8, uint8, int16)
        and c._dtype in (int32, uint32)
        and c.ndim <= 3
        and not (epilogue is not None and epilogue.computes)
        and min(*c._shape[-2:], a._shape[-1]) >= th.WORDS_MIN_SIDE
        and c._shape[-2] * c._shape[-1] * a._shape[-1] >= th.WORDS_MIN_WORK
    )


def multiply(views: Sequence[ndarray]) -> None:
    """`c[...] = a @ b` of matrices, or of stacks of as many, whose sums wrap around."""
    a, b, c = views[:3]
    device = c._buffer.device
    large = c._size >= 2 * device.driver.properties().get("threads", 1) * _LARGE[0] * _LARGE[1]
    key = _Key(a._dtype.name, c._dtype.name, c.ndim - 2, _LARGE if large else _SMALL)
    _KERNEL.launch(key, device, c, a, b, checked=False)


def _program(key: _Key, target: str, debug: bool) -> lang.pipeline.Program:
    """The text for `key` and its parameters. Sums of int32 have the bits of uint32."""
    rows, columns = key.tile
    matrix = "matrix.start, " * key.axes
    text = f"""def matmul(c, a, b):
    for {"matrix, " * key.axes}i, j in tiles(c, ({"1, " * key.axes}{rows}, {columns})):
        total = zeros((i, j), int32)
        for k in tiles(a.shape[{key.axes + 1}], {_DEPTH}):
            total += a[{matrix}i, k] @ b[{matrix}k, j]
        c[{matrix}i, j] = total
"""
    scope: dict[str, Any] = {"tiles": tiles, "zeros": np.zeros, "int32": int32}
    types = {"c": key.result, "a": key.dtype, "b": key.dtype}
    params = [(n, lang.ir.ArrayType(BY_NAME[name], key.axes + 2, strided=True)) for n, name in types.items()]
    program = lang.pipeline.lower(jit.kernel.from_text("matmul", text, scope).source_text, params, target, debug)
    return replace(program, count_operations=partial(gemm_operations, False))


_KERNEL = TextKernel("matmul", _program, cpu_only=True)
