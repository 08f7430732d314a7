"""Bits of integers: counted, packed into bytes, and unpacked."""

from __future__ import annotations

import operator
from typing import Any

from .. import shapes
from ..array import ndarray
from ..array_convert import asarray
from ..dtypes import uint8
from ..jit.kernel import func
from ..kernels.map import MapOp
from ..lang.markers import known as k
from .creation import arange, zeros
from .elementwise import bitwise_and, bitwise_right_shift, multiply, not_equal
from .manipulation import concat, moveaxis
from .statistical import as_operand
from .statistical import sum as sum_of
from .ufunc import compute

__all__ = ["bitwise_count", "packbits", "unpackbits"]


def _ones(x: Any) -> Any:
    rest, count = k.abs(x), 0
    while rest != 0:
        rest, count = rest & (rest - 1), count + 1
    return count


_COUNT = MapOp("bitwise_count", func(_ones))


def bitwise_count(x: Any, /, *, out: ndarray | None = None) -> ndarray:
    """How many bits of |x| are 1, elementwise, as uint8. Raises `TypeError` for other than bools and
    integers.

    >>> import pyarray as pa
    >>> pa.bitwise_count(pa.asarray([0, 1, 255, -3])).tolist()
    [0, 1, 8, 2]
    """
    x = as_operand("bitwise_count", x, "biu")
    x = x.astype(uint8) if x.dtype.kind == "b" else x
    return compute(_COUNT, x.dtype, uint8, (x,), out)


def _weights(name: str, bitorder: str, x: ndarray) -> ndarray:
    if bitorder not in ("big", "little"):
        raise ValueError(f"{name}(): bitorder is 'big' or 'little', got {bitorder!r}")
    places = arange(8, dtype=uint8, device=x.device)
    view: ndarray = places[::-1] if bitorder == "big" else places
    return view


def packbits(x: Any, /, axis: int | None = None, bitorder: str = "big") -> ndarray:
    """Eight elements along `axis` (None: of the flattened `x`) as the bits of one byte, 1 for what is not 0;
    the last byte is filled with 0. The first element is the highest bit, or with `bitorder="little"` the
    lowest.

    Raises `TypeError` for other than bools and integers.

    >>> import pyarray as pa
    >>> pa.packbits(pa.asarray([1, 0, 1, 0, 0, 0, 0, 1, 1])).tolist()
    [161, 128]
    """
    x = as_operand("packbits", x, "biu")
    places: Any = _weights("packbits", bitorder, x)
    x = x.reshape(x.size) if axis is None else x
    along = shapes.normalize_axis(0 if axis is None else axis, x.ndim)
    bits = not_equal(moveaxis(x, along, -1), 0).astype(uint8)
    missing = -bits.shape[-1] % 8
    if missing:
        bits = concat([bits, zeros((*bits.shape[:-1], missing), uint8, device=x.device)], axis=-1)
    groups = bits.reshape(*bits.shape[:-1], bits.shape[-1] // 8, 8)
    packed = sum_of(multiply(groups, uint8(1) << places), axis=-1, dtype=uint8)
    return moveaxis(packed, -1, along)


def unpackbits(
    x: Any, /, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> ndarray:
    """The bits of uint8 along `axis` (None: of the flattened `x`), eight elements of 0 or 1 for each. `count`
    is how many there are in the end: fewer, or more by 0; a negative one leaves out so many.

    Raises `TypeError` for other than uint8, `ValueError` for a negative `count` beyond all of them.

    >>> import pyarray as pa
    >>> pa.unpackbits(pa.asarray([161], dtype="uint8")).tolist()
    [1, 0, 1, 0, 0, 0, 0, 1]
    """
    x = asarray(x)
    if x.dtype is not uint8:
        raise TypeError(f"unpackbits() takes uint8, got {x.dtype}; cast it with astype")
    places: Any = _weights("unpackbits", bitorder, x)
    x = x.reshape(x.size) if axis is None else x
    along = shapes.normalize_axis(0 if axis is None else axis, x.ndim)
    lines: Any = moveaxis(x, along, -1)
    bits: Any = bitwise_and(bitwise_right_shift(lines[..., None], places), uint8(1))
    bits = bits.reshape(*lines.shape[:-1], lines.shape[-1] * 8)
    if count is not None:
        size, wanted = bits.shape[-1], operator.index(count)
        if wanted < -size:
            raise ValueError(f"unpackbits(): count leaves out {-wanted} of {size} bits")
        if wanted > size:
            more = zeros((*bits.shape[:-1], wanted - size), uint8, device=x.device)
            bits = concat([bits, more], axis=-1)
        else:
            bits = bits[..., :wanted].copy()
    return moveaxis(bits, -1, along)
