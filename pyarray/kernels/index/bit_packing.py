"""Packs eight bools into the bits of a byte and back, in the 64 bits of a word.

A product with a constant whose bits are nine (seven) apart brings the lowest bits of eight bytes next to each
other, in the opposite (the same) order; no two of its terms have a bit in common.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...array import empty, ndarray
from ...dtypes import uint8, uint64
from ...lang.markers import ndrange
from ..library_kernel import library_kernel
from ..scan.nonzero import unsigned_view

_ONES = 0x0101010101010101
_GATHER = {True: 0x8040201008040201, False: 0x0102040810204080}  # by whether the first is the highest bit
_SCATTER = {True: 0x0102040810204080, False: 0x8040201008040201}


def pack_bytes(lines: ndarray, big: bool) -> ndarray:
    """The bools of each of the contiguous `lines` (2-D) as bytes, padded with 0. The first bit is the highest
    if `big`."""
    rows, size = lines._shape
    out = empty((rows, -(-size // 8)), uint8, lines.device)
    if not out._size:
        return out
    padded = lines
    if size % 8 or padded._ptr % 8:
        padded = empty((rows, 8 * out._shape[1]), uint8, lines.device)
        padded[:, :size] = unsigned_view(lines)
        padded[:, size:] = 0
    flat = out._view(0, (out._size,), (1,))
    pack_bits()(flat, padded._view(0, (out._size,), (8,), dtype=uint64), _GATHER[big])
    return out


def unpack_bytes(lines: ndarray, count: int, big: bool) -> ndarray:
    """The first `count` bits of each of the contiguous `lines` (2-D) of bytes, as uint8; 0 after the last."""
    words = empty((lines._shape[0], -(-count // 8)), uint64, lines.device)
    if words._size:
        unpack_bits()(words, lines, _SCATTER[big])
    bytes_view: ndarray = words.view(uint8)
    return bytes_view if count % 8 == 0 else bytes_view[:, :count].copy()


@library_kernel
def pack_bits(out: Any, x: Any, gather: np.uint64) -> None:
    for i in range(out.shape[0]):
        word = x[i]
        word = word | (word >> uint64(4))
        word = word | (word >> uint64(2))
        word = (word | (word >> uint64(1))) & uint64(_ONES)
        out[i] = uint8((word * gather) >> uint64(56))


@library_kernel
def unpack_bits(out: Any, x: Any, scatter: np.uint64) -> None:
    for k, i in ndrange(out.shape[0], out.shape[1]):
        byte = uint64(x[k, i]) if i < x.shape[1] else uint64(0)
        out[k, i] = ((((byte * uint64(_ONES)) & scatter) + uint64(_ONES * 127)) >> uint64(7)) & uint64(_ONES)
