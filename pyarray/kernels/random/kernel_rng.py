"""`pa.rng`: random numbers inside kernels, as functions of a seed, a sequence and a counter by Philox 4x32-10.

The counter's four words are the draw (two, low word first) and the sequence; the key is the seed. Every draw takes the
words of one block, as `pa.random` converts them, and so has the same bits on every device and for any launch."""

from __future__ import annotations

import math
import operator
import struct
from typing import Any

import numpy as np

from ...dtypes import asdtype, float32, float64, int64, uint32, uint64
from ...jit.functions import func
from .rng import philox, uniform_53
from .rng_math import LOG_TWO, normal_pair, normal_pair_64

__all__ = ["Rng", "rng"]
_WORD, _LONG = (1 << 32) - 1, (1 << 64) - 1


# ---- in kernels


@func
def block_of(seed: Any, sequence: Any, counter: Any) -> Any:
    """The four words of a draw."""
    k0, k1 = uint32(seed), uint32(seed >> uint64(32))
    s0, s1 = uint32(sequence), uint32(sequence >> uint64(32))
    return philox(uint32(counter), uint32(counter >> uint64(32)), s0, s1, k0, k1)


@func
def _bits(seed: Any, sequence: Any, counter: Any) -> Any:
    w0, w1, _, _ = block_of(seed, sequence, counter)
    return uint64(w0) << uint64(32) | uint64(w1)


@func
def _uniform(seed: Any, sequence: Any, counter: Any, low: Any = 0.0, high: Any = 1.0, dtype: Any = float64) -> Any:
    w0, w1, _, _ = block_of(seed, sequence, counter)
    if dtype == float32:
        shift, end = float32(low), float32(high)
        return shift + (end - shift) * (float32(w0 >> uint32(8)) * float32(2.0**-24))
    return float64(low) + (float64(high) - float64(low)) * uniform_53(w0, w1)


@func
def _normal(seed: Any, sequence: Any, counter: Any, loc: Any = 0.0, scale: Any = 1.0, dtype: Any = float64) -> Any:
    w0, w1, w2, w3 = block_of(seed, sequence, counter)
    if dtype == float32:
        x, _ = normal_pair(w0, w1)
        return float32(loc) + float32(scale) * x
    y, _ = normal_pair_64(w0, w1, w2, w3)
    return float64(loc) + float64(scale) * y


@func
def _below(seed: Any, sequence: Any, counter: Any, count: Any) -> Any:
    """An integer below `count`, 1 to 2**32, and the last counter that it took: D. Lemire, Fast random integer
    generation in an interval (2019)."""
    n = counter
    w0, w1, w2, w3 = block_of(seed, sequence, n)
    product = uint64(w0) * count
    if uint64(uint32(product)) < count:
        least = (uint64(1) << uint64(32)) % count
        k = 1
        while uint64(uint32(product)) < least:
            if k == 4:
                n += uint64(1)
                w0, w1, w2, w3 = block_of(seed, sequence, n)
            product = uint64(w1 if k == 1 else w2 if k == 2 else w3 if k == 3 else w0) * count
            k = 1 if k == 4 else k + 1
    return product >> uint64(32), n


@func
def _at_most(seed: Any, sequence: Any, counter: Any, limit: Any) -> Any:
    """An integer up to `limit`, and the last counter that it took: words, masked, until one is not above."""
    mask = limit | (limit >> uint64(1))
    mask |= mask >> uint64(2)
    mask |= mask >> uint64(4)
    mask |= mask >> uint64(8)
    mask |= mask >> uint64(16)
    mask |= mask >> uint64(32)
    n = counter
    x = _bits(seed, sequence, n) & mask
    while x > limit:
        n += uint64(1)
        x = _bits(seed, sequence, n) & mask
    return x, n


@func
def _integers(seed: Any, sequence: Any, counter: Any, low: Any, high: Any = None) -> Any:
    """An integer, and the last counter that it took; `low` where there is none."""
    if high is None:
        first, end = int64(0), int64(low)
    else:
        first, end = int64(low), int64(high)
    count = uint64(end) - uint64(first)
    if end <= first:
        return first, counter
    if count <= uint64(1 << 32):
        below, n = _below(seed, sequence, counter, count)
        return int64(uint64(first) + below), n
    above, m = _at_most(seed, sequence, counter, count - uint64(1))
    return int64(uint64(first) + above), m


# ---- in Python


def philox_words(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, int, int, int]:
    """Philox 4x32-10 by Python's integers.

    >>> [f"{w:08x}" for w in philox_words((0, 0, 0, 0), (0, 0))]
    ['6627e8d5', 'e169c58d', 'bc57ac4c', '9b00dbd8']
    """
    x0, x1, x2, x3 = counter
    k0, k1 = key
    for _ in range(10):
        a, b = x0 * 0xD2511F53, x2 * 0xCD9E8D57
        x0, x1, x2, x3 = (b >> 32) ^ x1 ^ k0, b & _WORD, (a >> 32) ^ x3 ^ k1, a & _WORD
        k0, k1 = (k0 + 0x9E3779B9) & _WORD, (k1 + 0xBB67AE85) & _WORD
    return x0, x1, x2, x3


def _float_of(bits: int) -> float:
    return float(struct.unpack("<d", struct.pack("<Q", bits))[0])


def _normal_of(w0: int, w1: int, w2: int, w3: int) -> float:
    """The first of `normal_pair_64`, in Python's floats, which are the same."""
    x = 2.0 - _float_of(w0 << 20 | w1 >> 12 | 0x3FF << 52)
    bits = struct.unpack("<Q", struct.pack("<d", x))[0]
    exponent = (bits + ((0x3FF00000 - 0x3FE6A09E) << 32)) & _LONG
    m = _float_of((bits - (exponent & 0xFFF << 52) + (0x3FF << 52)) & _LONG)
    n = float((exponent >> 52) - 1023)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    p = 0.4444442225144562 + z * (0.36365779572382084 + z * (0.30663399267087715 + z * 0.2923344235972363))
    p = 1.333333333333334 + z * (0.7999999999979877 + z * (0.5714285725206213 + z * p))
    r = math.sqrt(n * (-2.0 * LOG_TWO) - s * (4.0 + z * p))
    v = _float_of(w2 << 20 | w3 >> 12 | 0x3FF << 52) - 1.5
    z = v * v
    if w3 & 2:
        p = 0.00016044116661409423 + z * (-3.5987029509735105e-06 + z * 5.642225369163528e-08)
        p = -0.6459640975062462 + z * (0.07969262624614423 + z * (-0.004681754134254207 + z * p))
        return r * (v * (1.5707963267948966 + z * p))
    q = -2.5202039028029178e-05 + z * (4.710678405505227e-07 + z * -6.329396344967424e-09)
    q = -0.020863480763340773 + z * (0.0009192602745468447 + z * q)
    cosine = 1.0 + z * (-1.2337005501361697 + z * (0.2536695079010478 + z * q))
    return r * (-cosine if w3 & 1 else cosine)


def _normal_of_32(a: int, b: int) -> np.float32:
    """The first of `normal_pair`, in float32."""
    f = np.float32
    bits = int((f(a) + f(1.0)).view(np.int32))
    power = (bits + 0x800000 - 0x3504F4 - (159 << 23)) & -0x800000
    w = np.int32(bits - power - (31 << 23)).view(f) - f(2.0)
    p = f(-0.16577502 / 32) + w * (f(0.14791990 / 64) + w * (f(-0.14246150 / 128) + w * f(0.09018427 / 256)))
    p = f(0.33333540 / 4) + w * (f(-0.25001434 / 8) + w * (f(0.19975681 / 16) + w * p))
    r = np.sqrt(f(power) * f(-1.38629436 / 2**23) - (w + w * w * (w * p - f(0.25))))
    angle = b << 2 & _WORD
    t = f(angle - (1 << 32) if angle >> 31 else angle) * f(3.65729529e-10)
    s = t * t
    if b >> 31:
        return r * (t + t * s * (f(-0.16666651) + s * (f(0.0083320369) + s * f(-0.00019504021))))
    cosine = f(1.0) + s * (f(-0.49999857) + s * (f(0.041655027) + s * f(-0.0013585909)))
    return r * (-cosine if b >> 30 & 1 else cosine)


class Rng:
    """Random numbers of one sequence; made by `pa.rng`. Each draw takes the next block of the sequence."""

    __pyarray_generator__ = True

    def __init__(self, seed: int, sequence: int, counter: int):
        self.seed, self.sequence, self.counter = seed & _LONG, sequence & _LONG, counter & _LONG

    def _block(self) -> tuple[int, int, int, int]:
        n, s, k = self.counter, self.sequence, self.seed
        self.counter = (n + 1) & _LONG
        return philox_words((n & _WORD, n >> 32, s & _WORD, s >> 32), (k & _WORD, k >> 32))

    def bits(self) -> np.uint64:
        """64 random bits, a uint64."""
        w0, w1, _, _ = self._block()
        return np.uint64(w0 << 32 | w1)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, dtype: Any = float64) -> Any:
        """A number from `low` up to `high`, which rounding may reach: a float64, or with `dtype` a float32."""
        w0, w1, _, _ = self._block()
        if asdtype(dtype) is float32:
            shift, end = np.float32(low), np.float32(high)
            return shift + (end - shift) * (np.float32(w0 >> 8) * np.float32(2.0**-24))
        unit = ((w0 >> 5) * 67108864.0 + (w1 >> 6)) * 2.0**-53
        return np.float64(float(low) + (float(high) - float(low)) * unit)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, dtype: Any = float64) -> Any:
        """A normal variate of mean `loc` and standard deviation `scale`: a float64, or with `dtype` a float32."""
        w0, w1, w2, w3 = self._block()
        if asdtype(dtype) is float32:
            return np.float32(loc) + np.float32(scale) * _normal_of_32(w0, w1)
        return np.float64(float(loc) + float(scale) * _normal_of(w0, w1, w2, w3))

    def integers(self, low: Any, high: Any = None) -> np.int64:
        """An integer from `low` up to, but without, `high`; from 0 up to `low` where only that is given. `low` where
        there is none."""
        first, end = (0, _wrapped(low)) if high is None else (_wrapped(low), _wrapped(high))
        count = end - first
        if count <= 0:
            self._block()
            return np.int64(first)
        if count > 1 << 32:
            mask = (1 << (count - 1).bit_length()) - 1
            while (x := int(self.bits()) & mask) >= count:
                pass
            return np.int64(first + x)
        least = (1 << 32) % count
        while True:
            for word in self._block():
                product = word * count
                if product & _WORD >= least:
                    return np.int64(first + (product >> 32))


def _wrapped(bound: Any) -> int:
    """A bound as kernels have it: an int64, which a uint64 from 2**63 on wraps to."""
    return (int(bound) + (1 << 63) & _LONG) - (1 << 63)


def rng(seed: int, sequence: int = 0, offset: int = 0) -> Rng:
    """Random numbers in a kernel: `rng = pa.rng(seed, i)`, then `rng.uniform()`, `rng.normal()`, `rng.integers(a, b)`
    and `rng.bits()`. What they give is a function of seed, sequence, and how many blocks were drawn since `offset`.

    >>> bool(pa.rng(7, 3).integers(0, 100) == pa.rng(7, 3).integers(0, 100))
    True
    """
    return Rng(operator.index(seed), operator.index(sequence), operator.index(offset))


# how the language makes one, and what a method is there: a function of the state, and whether it gives the last
# counter that it took, too
rng.__pyarray_rng__ = Rng  # type: ignore[attr-defined]
for _method, _draw, _counts in (
    (Rng.bits, _bits, False), (Rng.uniform, _uniform, False), (Rng.normal, _normal, False),
    (Rng.integers, _integers, True),
):  # fmt: skip
    setattr(_method, "__pyarray_draw__", (_draw.__pyarray_func__, _counts))  # noqa: B010
