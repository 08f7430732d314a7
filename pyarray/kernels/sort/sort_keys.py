"""Unsigned keys that have the order of the elements: a float's bits with the sign flipped, NaN the largest,
complemented for descending order."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, NamedTuple

from ...dtypes import DType

if TYPE_CHECKING:
    from ...kernel_types import uint64
else:
    from ...dtypes import uint64


class KeyTransform(NamedTuple):
    """How bits v become a key: NaN and -0.0 are replaced, then the key is v ^ flip, and ^ sign_flip if v's top
    bit is set; so `flip` is the key of 0.0. Kernels take it as it is."""

    sign_flip: uint64
    flip: uint64
    limit: uint64  # bits without sign above this are NaN
    nan: uint64  # the bits of the canonical NaN: the largest key
    zero: uint64  # bits of -0.0, which compares as 0.0; 0 for integers


# A function of the type and the direction alone.
@functools.cache
def key_transform(dtype: DType, descending: bool) -> KeyTransform:
    """The order of a real type's elements, NaN last either way."""
    width = 8 * dtype.itemsize
    ones, top = (1 << width) - 1, 1 << width - 1
    turned = ones if descending else 0
    if dtype.kind != "f":
        return KeyTransform(0, turned ^ (top if dtype.kind == "i" else 0), ones, 0, 0)
    infinity = dtype.greatest_bits
    nan = ones if descending else ones ^ top
    return KeyTransform(ones ^ top, top ^ turned, infinity, nan, top)
