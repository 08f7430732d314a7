"""Comparisons within a tolerance and of whole arrays, and the replacement of NaN and infinities."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import shapes
from ...array import ndarray
from ...array_convert import asarray
from ...dtypes import bool_, float64, result_type
from ...jit.functions import func
from ...jit.replay import replayable
from ...kernels.elementwise.elementwise import MapOp
from ...lang.markers import kernel_math as k
from ...typing import ArrayLike
from ..core.registry import FLOAT, precompiled
from ..core.ufunc import as_operands, compute, device_of
from ..standard import elementwise
from ..standard.creation import full
from ..standard.data_types import finfo
from ..standard.elementwise import equal
from ..standard.utility import all as all_of

__all__ = [
    "allclose", "array_equal", "array_equiv", "isclose", "iscomplex", "iscomplexobj", "isreal", "isrealobj",
    "nan_to_num", "real_if_close",
]  # fmt: skip


@func
def _near(x: Any, y: Any, rtol: Any, atol: Any) -> Any:
    within = k.abs(x - y) <= k.real(atol) + k.real(rtol) * k.abs(y)
    return x == y or (within and k.isfinite(y))


@func
def _near_or_nan(x: Any, y: Any, rtol: Any, atol: Any) -> Any:
    return _near(x, y, rtol, atol) or (x != x and y != y)


_NEAR = {False: MapOp("isclose", _near), True: MapOp("isclose_nan", _near_or_nan)}
_FINITE = MapOp(
    "nan_to_num",
    func(lambda x, nan, high, low: nan if x != x else high if x == math.inf else low if x == -math.inf else x),
)


@precompiled(FLOAT, "isclose(a, b)")
@replayable
def isclose(
    a: ArrayLike, b: ArrayLike, /, rtol: ArrayLike = 1e-5, atol: ArrayLike = 1e-8, equal_nan: bool = False
) -> ndarray:
    """Whether |a - b| <= atol + rtol * |b|, elementwise. Infinities are close to equal ones, NaN to nothing,
    or to NaN with `equal_nan`. `rtol` and `atol` may be arrays.

    >>> pa.isclose(pa.asarray([1.0, 2.0]), pa.asarray([1.0 + 1e-9, 2.1])).tolist()
    [True, False]
    """
    operands = as_operands("isclose", (a, b, rtol, atol))
    if not any(isinstance(x, ndarray) for x in operands[:2]):
        operands[0] = asarray(operands[0], device=device_of(operands))
    kind = result_type(*operands)
    kind = kind if kind.kind in "fc" else float64
    return compute(_NEAR[bool(equal_nan)], kind, bool_, operands, None, ("a", "b", "rtol", "atol"))


@precompiled(FLOAT, "allclose(a, b)")
def allclose(
    a: ArrayLike, b: ArrayLike, /, rtol: ArrayLike = 1e-5, atol: ArrayLike = 1e-8, equal_nan: bool = False
) -> bool:
    """Whether all elements are close as in `isclose`, a Python bool. Waits for the device.

    >>> pa.allclose(pa.asarray([1.0, 2.0]), 1.0)
    False
    """
    return bool(all_of(isclose(a, b, rtol, atol, equal_nan)))


@precompiled(FLOAT, "array_equal(a, b)")
def array_equal(a: ArrayLike, b: ArrayLike, /, equal_nan: bool = False) -> bool:
    """Whether both have one shape and equal elements (NaN to NaN with `equal_nan`), a Python bool. Waits for
    the device.

    >>> pa.array_equal(pa.asarray([1, 2]), pa.asarray([1.0, 2.0]))
    True
    """
    x, y = (asarray(v) for v in as_operands("array_equal", (a, b)))
    if x.shape != y.shape:
        return False
    if equal_nan and not {x._dtype.kind, y._dtype.kind}.isdisjoint("fc"):
        return bool(all_of(isclose(x, y, 0.0, 0.0, True)))
    return bool(all_of(equal(x, y)))


def array_equiv(a: ArrayLike, b: ArrayLike, /) -> bool:
    """Whether both broadcast together and are equal then, a Python bool. Waits for the device.

    >>> pa.array_equiv([1, 1], 1)
    True
    """
    x, y = (asarray(v) for v in as_operands("array_equiv", (a, b)))
    try:
        shapes.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        return False
    return bool(all_of(equal(x, y)))


@replayable
def nan_to_num(
    x: ArrayLike,
    /,
    copy: bool = True,
    nan: ArrayLike = 0.0,
    posinf: ArrayLike | None = None,
    neginf: ArrayLike | None = None,
) -> ndarray:
    """`x` with `nan` in the place of NaN, and of infinities `posinf` and `neginf`: the type's largest and
    smallest number unless given. Parts of complex numbers one by one; in place with `copy=False`.

    >>> pa.nan_to_num(pa.asarray([1.0, pa.nan, pa.inf]), posinf=9.0).tolist()
    [1.0, 0.0, 9.0]
    """
    a: Any = asarray(x)
    result = a.copy() if copy else a
    if a._dtype.kind == "c":
        for part in (result.real, result.imag):
            nan_to_num(part, False, nan, posinf, neginf)
    elif a._dtype.kind == "f":
        largest = float(finfo(a._dtype).max)
        high, low = largest if posinf is None else posinf, -largest if neginf is None else neginf
        compute(_FINITE, a._dtype, a._dtype, [a, nan, high, low], result, ("x", "nan", "posinf", "neginf"))
    return result


def iscomplexobj(x: ArrayLike, /) -> bool:
    """Whether the dtype of `x` is complex.

    >>> pa.iscomplexobj([1, 2j])
    True
    """
    return asarray(x)._dtype.kind == "c"


def isrealobj(x: ArrayLike, /) -> bool:
    """Whether the dtype of `x` is not complex.

    >>> pa.isrealobj([1, 2j])
    False
    """
    return not iscomplexobj(x)


def iscomplex(x: ArrayLike, /) -> ndarray:
    """Whether elements have an imaginary part other than 0.

    >>> pa.iscomplex([1, 2j]).tolist()
    [False, True]
    """
    a = asarray(x)
    if a._dtype.kind != "c":
        return full(a.shape, False, device=a.device)
    return elementwise.not_equal(elementwise.imag(a), 0)


def isreal(x: ArrayLike, /) -> ndarray:
    """Whether the imaginary part of elements is 0.

    >>> pa.isreal([1, 2j]).tolist()
    [True, False]
    """
    return elementwise.logical_not(iscomplex(x))


def real_if_close(x: ArrayLike, /, tol: float = 100) -> ndarray:
    """The real part where all imaginary parts are within `tol` times the type's precision (or within `tol`,
    where that is below 1), else `x`. Waits for the device.

    >>> pa.real_if_close([1 + 1e-15j]).tolist()
    [1.0]
    """
    a = asarray(x)
    if a._dtype.kind != "c":
        return a
    limit = tol * float(np.finfo(a.dtype).eps) if tol > 1 else tol
    near = elementwise.less(elementwise.abs(elementwise.imag(a)), limit)
    return elementwise.real(a) if bool(all_of(near)) else a
