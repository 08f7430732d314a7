"""Random words and variates by Philox 4x32-10, a function of a counter and a key (Salmon, Moraes, Dror, Shaw:
Parallel random numbers: as easy as 1, 2, 3, 2011). Every device gives the same bits.

The counter's four words are: the position (two, low word first), the attempt (for variates that are accepted or
tried again), the stream. A block of four words serves four elements of 32 bits or two of 53.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from ... import jit
from ...array import ndarray
from ...dtypes import DType, float32, float64, uint32, uint64
from ...jit.functions import func
from .rng_math import log_unit, normal_pair, normal_pair_64


class PhiloxState(NamedTuple):
    """Where a draw begins: key, first block, stream."""

    key: int
    start: int
    stream: int


@func
def philox_round(x0: Any, x1: Any, x2: Any, x3: Any, k0: Any, k1: Any) -> Any:
    """One round of Philox: the new words, and the keys of the next round."""
    a = uint64(x0) * uint64(0xD2511F53)
    b = uint64(x2) * uint64(0xCD9E8D57)
    y0 = uint32(b >> uint64(32)) ^ x1 ^ k0
    y2 = uint32(a >> uint64(32)) ^ x3 ^ k1
    return y0, uint32(b), y2, uint32(a), k0 + uint32(0x9E3779B9), k1 + uint32(0xBB67AE85)


@func
def philox(x0: Any, x1: Any, x2: Any, x3: Any, k0: Any, k1: Any) -> Any:
    """Four words. The rounds stand one by one: a loop over them keeps the loop around it from being
    vectorised."""
    x0, x1, x2, x3, k0, k1 = philox_round(x0, x1, x2, x3, k0, k1)
    x0, x1, x2, x3, k0, k1 = philox_round(x0, x1, x2, x3, k0, k1)
    x0, x1, x2, x3, k0, k1 = philox_round(x0, x1, x2, x3, k0, k1)
    x0, x1, x2, x3, k0, k1 = philox_round(x0, x1, x2, x3, k0, k1)
    x0, x1, x2, x3, k0, k1 = philox_round(x0, x1, x2, x3, k0, k1)
    x0, x1, x2, x3, k0, k1 = philox_round(x0, x1, x2, x3, k0, k1)
    x0, x1, x2, x3, k0, k1 = philox_round(x0, x1, x2, x3, k0, k1)
    x0, x1, x2, x3, k0, k1 = philox_round(x0, x1, x2, x3, k0, k1)
    x0, x1, x2, x3, k0, k1 = philox_round(x0, x1, x2, x3, k0, k1)
    x0, x1, x2, x3, k0, k1 = philox_round(x0, x1, x2, x3, k0, k1)
    return x0, x1, x2, x3


@func
def block(counter: Any, attempt: Any, stream: Any, key: Any) -> Any:
    """Philox: the block of four random words of a counter."""
    k0, k1 = uint32(key), uint32(key >> uint64(32))
    return philox(uint32(counter), uint32(counter >> uint64(32)), attempt, stream, k0, k1)


@func
def uniform_53(a: Any, b: Any) -> Any:
    """53 bits of two words as a float64 in [0, 1)."""
    return (float64(a >> uint32(5)) * 67108864.0 + float64(b >> uint32(6))) * 2.0**-53


@func
def open_uniform(a: Any, b: Any) -> Any:
    """52 bits of two words as a float64 in (0, 1), as far from 0 as from 1."""
    return (float64(a >> uint32(6)) * 67108864.0 + float64(b >> uint32(6)) + 0.5) * 2.0**-52


@func
def open_uniform_32(a: Any) -> Any:
    """A word as a float64 in (0, 1), as far from 0 as from 1."""
    return (float64(a) + 0.5) * 2.0**-32


class Conversion(NamedTuple):
    """How random words become elements: how many a block of four words makes, and the function of an element from
    its words; or from variates, which the statements `before` make of the words."""

    per_block: int
    text: str
    before: tuple[str, ...] = ()
    variates: tuple[str, ...] = ("w0", "w1", "w2", "w3")


# by what is drawn and the bits of the result
CONVERSIONS = {
    ("words", 32): Conversion(4, "{0}"),
    ("words", 64): Conversion(2, "uint64({0}) << uint64(32) | uint64({1})"),
    ("uniform", 32): Conversion(4, "shift + scale * (float32({0} >> uint32(8)) * float32(2.0**-24))"),
    ("uniform", 64): Conversion(2, "shift + scale * uniform_53({0}, {1})"),
    ("normal", 32): Conversion(
        4,
        "shift + scale * {0}",
        ("n0, n1 = normal_pair(w0, w1)", "n2, n3 = normal_pair(w2, w3)"),
        ("n0", "n1", "n2", "n3"),
    ),
    ("normal", 64): Conversion(
        2, "shift + scale * {0}", ("n0, n1 = normal_pair_64(w0, w1, w2, w3)",), ("n0", "n0", "n1", "n1")
    ),
    ("exponential", 32): Conversion(4, "shift - scale * log_unit(open_uniform_32({0}))"),
    ("exponential", 64): Conversion(2, "shift - scale * log_unit(open_uniform({0}, {1}))"),
}


def fill(kind: str, out: ndarray, state: PhiloxState, shift: float = 0.0, scale: float = 1.0) -> None:
    """Fills the contiguous 1-D `out`, whose size is a multiple of the elements of a block."""
    width = 8 * out._dtype.itemsize
    _fill_kernel(kind, width, kind == "normal" and shift == 0 and scale == 1)(out, *state, shift, scale)


SCOPE: dict[str, Any] = {
    "block": block, "uint32": uint32, "uint64": uint64, "float32": float32, "uniform_53": uniform_53,
    "open_uniform": open_uniform, "open_uniform_32": open_uniform_32, "normal_pair": normal_pair,
    "normal_pair_64": normal_pair_64, "log_unit": log_unit,
}  # fmt: skip
STATE_PARAMS = "key: uint64, start: uint64, stream: uint32"


# A row of `CONVERSIONS`, and whether it is shifted and scaled; the state is an argument.
@functools.cache
def _fill_kernel(kind: str, width: int, standard: bool) -> jit.kernel.Kernel:
    count, text, before, variates = CONVERSIONS[kind, width]
    name = f"random_{'standard_' if standard else ''}{kind}_{width}"
    text = text.removeprefix("shift + scale * ") if standard else text
    made = "".join(f"        {statement}\n" for statement in before)
    stores = [f"        out[{count} * i + {n}] = {text.format(*variates[n * 4 // count :])}\n" for n in range(count)]
    real: DType = float32 if kind in ("uniform", "normal") and width == 32 else float64
    text = f"""def {name}(out, {STATE_PARAMS}, shift: real, scale: real):
    for i in range(out.shape[0] // {count}):
        w0, w1, w2, w3 = block(start + uint64(i), uint32(0), stream, key)
{made}{"".join(stores)}"""
    return jit.kernel.from_text(name, text, {**SCOPE, "real": real})
