"""Functions of the bits of integers: counting, packing into bytes, unpacking."""

from __future__ import annotations

import operator
from typing import Any

from ...array import ndarray
from ...array_convert import asarray
from ...dtypes import bool_, uint8
from ...jit.functions import func
from ...kernels.elementwise.elementwise import MapOp
from ...kernels.index.bit_packing import pack_bytes, unpack_bytes
from ...lang.markers import kernel_math as k
from ...typing import ArrayLike
from ..core.ufunc import axis_or_flat, compute
from ..standard.elementwise import not_equal
from ..standard.sorting import from_lines, lines
from ..standard.statistical import as_operand

__all__ = ["bitwise_count", "packbits", "unpackbits"]


def _ones(x: Any) -> Any:
    remaining, count = k.abs(x), 0
    while remaining != 0:
        remaining, count = remaining & (remaining - 1), count + 1
    return count


_COUNT = MapOp("bitwise_count", func(_ones))


def bitwise_count(x: ArrayLike, /, *, out: ndarray | None = None) -> ndarray:
    """How many bits of |x| are 1, elementwise, as uint8. Raises `TypeError` for other than bools and
    integers.

    >>> pa.bitwise_count(pa.asarray([0, 1, 255, -3])).tolist()
    [0, 1, 8, 2]
    """
    x = as_operand("bitwise_count", x, "biu")
    x = x.astype(uint8) if x._dtype.kind == "b" else x
    return compute(_COUNT, x._dtype, uint8, (x,), out)


bitwise_count.__pyarray_func__ = _COUNT.function.__pyarray_func__  # type: ignore[attr-defined]


def _check_order(name: str, bitorder: str) -> bool:
    """Whether the first element is the highest bit."""
    if bitorder not in ("big", "little"):
        raise ValueError(f"{name}(): bitorder is 'big' or 'little', got {bitorder!r}")
    return bitorder == "big"


def packbits(x: ArrayLike, /, axis: int | None = None, bitorder: str = "big") -> ndarray:
    """Eight elements along `axis` (None: of the flattened `x`) as the bits of one byte, 1 for what is not 0;
    the last byte is filled with 0. The first element is the highest bit, or with `bitorder="little"` the
    lowest.

    Raises `TypeError` for other than bools and integers.

    >>> pa.packbits(pa.asarray([1, 0, 1, 0, 0, 0, 0, 1, 1])).tolist()
    [161, 128]
    """
    x = as_operand("packbits", x, "biu")
    big = _check_order("packbits", bitorder)
    x, along = axis_or_flat(x, axis)
    bits = not_equal(x, 0) if x._dtype is not bool_ else x
    return from_lines(pack_bytes(lines(bits, along), big), x._shape, along)


def unpackbits(x: ArrayLike, /, axis: int | None = None, count: int | None = None, bitorder: str = "big") -> ndarray:
    """The bits of uint8 along `axis` (None: of the flattened `x`), eight elements of 0 or 1 for each. `count`
    is the length of the result, which is cut or filled with 0; a negative one cuts off that many.

    Raises `TypeError` for other than uint8, `ValueError` for a negative `count` beyond all of them.

    >>> pa.unpackbits(pa.asarray([161], dtype="uint8")).tolist()
    [1, 0, 1, 0, 0, 0, 0, 1]
    """
    x = asarray(x)
    if x._dtype is not uint8:
        raise TypeError(f"unpackbits() takes uint8, got {x._dtype}; cast it with astype")
    big = _check_order("unpackbits", bitorder)
    x, along = axis_or_flat(x, axis)
    size = 8 * x.shape[along]
    bit_count = size if count is None else operator.index(count)
    if bit_count < -size:
        raise ValueError(f"unpackbits(): count leaves out {-bit_count} of {size} bits")
    bytes_bits = unpack_bytes(lines(x, along), bit_count if bit_count >= 0 else size + bit_count, big)
    return from_lines(bytes_bits, x._shape, along)
