"""Activations that `gemm` knows by name."""

from __future__ import annotations

import math
from typing import Any

from ..jit.functions import func
from ..lang.markers import kernel_math as k

_ROOT_HALF = math.sqrt(0.5)


def _relu(x: Any) -> Any:
    return max(x, 0)  # of a NaN it is one


def _gelu(x: Any) -> Any:
    return 0.5 * x * (1 + k.erf(x * _ROOT_HALF))


def _silu(x: Any) -> Any:
    return x / (1 + k.exp(-x))


# name -> the function, and the kinds of dtypes that have it; by torch's formulas, also of what gives NaN
ACTIVATIONS = {"relu": (func(_relu), "iuf"), "gelu": (func(_gelu), "f"), "silu": (func(_silu), "f")}
