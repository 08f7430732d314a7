"""Activations that `gemm` knows by name."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ..jit.functions import func
from ..jit.kernel import Func
from ..lang.markers import kernel_math as k

_ROOT_HALF = math.sqrt(0.5)
_LOG2_E = math.log2(math.e)


def _relu(x: Any) -> Any:
    return max(x, 0)  # of a NaN it is one


def _gelu(x: Any) -> Any:
    return 0.5 * x * (1 + k.erf(x * _ROOT_HALF))


def _silu(x: Any) -> Any:
    return x / (1 + k.exp(-x))


def _narrow_gelu(x: Any) -> Any:
    # erfc(|x| / sqrt(2)) / 2 = p(t) exp(-x^2 / 2), t = 1 / (1 + c |x|): the form of Abramowitz and Stegun, Handbook of
    # Mathematical Functions, 7.1.26. Its numbers are for a small absolute error; these, by linear programming, for a
    # relative one: 3e-5 for |x| up to 13.
    t = k.approx_recip(k.fma(abs(x), 0.37618081, 1.0))
    p = k.fma(k.fma(k.fma(t, -0.09106369, 0.19883671), t, 0.08463402), t, 0.15803556)
    tail = k.fma(p, t, 0.14954346) * t * k.approx_exp2(x * x * (-0.5 * _LOG2_E))
    return x * (1 - tail if x > 0 else tail)


def _narrow_silu(x: Any) -> Any:
    return x * k.approx_recip(1 + k.approx_exp2(x * -_LOG2_E))


class Activation(NamedTuple):
    """`kinds`: of the dtypes that have it. `narrow`: for GPUs, where the result is rounded to 16 bits."""

    function: Func
    kinds: str
    narrow: Func | None = None


# By torch's formulas, also of what gives NaN.
ACTIVATIONS = {
    "relu": Activation(func(_relu), "iuf"),
    "gelu": Activation(func(_gelu), "f", func(_narrow_gelu)),
    "silu": Activation(func(_silu), "f", func(_narrow_silu)),
}
