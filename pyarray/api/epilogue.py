"""`gemm`: a matrix product and what is done with it, in one pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import dtypes, shapes
from ..array import empty, ndarray
from ..dtypes import DType, asdtype
from ..jit.kernel import Func
from ..jit.repeat import repeatable
from ..kernels.gemm import gemm as product
from ..kernels.gemm import widens
from ..kernels.gemm_last import Last, apply
from ..kernels.map import apart
from .manipulation import broadcast_to
from .statistical import as_operand
from .ufunc import arrays_of, common_device, compute_out

__all__ = ["gemm"]


def gemm(
    a: Any,
    b: Any,
    /,
    *,
    alpha: Any = 1,
    beta: Any = 0,
    c: Any = None,
    bias: Any = None,
    activation: Any = None,
    dtype: Any = None,
    out: ndarray | None = None,
) -> ndarray:
    """`activation(alpha * (a @ b) + beta * c + bias)` of (..., M, K) and (..., K, N): (..., M, N), computed
    in one pass on a CPU. `c` and `bias` broadcast to the result; `out` may be `c` itself.

    `activation` is a `pa.func` of one number; what it names is compiled in at its first use. With `dtype`,
    integers are multiplied and summed in that wider type, halves give float32; others are cast first.
    Halves are rounded once, behind the activation (on GPUs also before).

    Raises `TypeError` for bools, `beta` without `c` and the like, `ValueError` for shapes that don't fit,
    `CompileError` for an activation that isn't in the language.

    >>> import pyarray as pa
    >>> @pa.func
    ... def relu(x):
    ...     return max(x, 0.0)
    >>> a = pa.asarray([[1.0, -2.0], [3.0, 4.0]])
    >>> pa.gemm(a, a, bias=pa.asarray([0.5, 0.0]), activation=relu).tolist()
    [[0.0, 0.0], [15.5, 10.0]]
    >>> x = pa.full((2, 4), 100, dtype=pa.int8)
    >>> pa.gemm(x, x.T, dtype=pa.int32).tolist()
    [[40000, 40000], [40000, 40000]]
    """
    if activation is not None and not isinstance(activation, Func):
        raise TypeError(
            f"gemm(): activation is a function of the kernel language, got {activation!r}; "
            "make it one with @pa.func"
        )
    if out is None:
        if activation not in _ways:
            _ways[activation] = _way(activation)
        return _ways[activation](a, b, alpha, beta, c, bias, dtype)
    return _gemm(a, b, alpha, beta, c, bias, activation, dtype, out)


_ways: dict[Func | None, Callable[..., ndarray]] = {}


def _way(activation: Func | None) -> Callable[..., ndarray]:
    """What repeats the calls with one activation."""

    @repeatable
    def gemm(a: Any, b: Any, alpha: Any, beta: Any, c: Any, bias: Any, dtype: Any) -> ndarray:
        return _gemm(a, b, alpha, beta, c, bias, activation, dtype, None)

    return gemm


def _gemm(
    a: Any, b: Any, alpha: Any, beta: Any, c: Any, bias: Any, activation: Func | None, dtype: Any, out: Any
) -> ndarray:
    if (c is None) != (type(beta) in (int, float) and beta == 0):
        what = "beta without c: give c" if c is None else "c without beta: give its factor, beta"
        raise TypeError(f"gemm(): expected beta and c together, got {what}")
    left, right, *more = (
        as_operand("gemm", x, "iufc")
        for x in arrays_of("gemm", *(x for x in (a, b, c, bias) if x is not None))
    )
    if left.ndim < 2 or right.ndim < 2 or left._shape[-1] != right._shape[-2]:
        raise ValueError(
            f"gemm(): expected shapes (..., M, K) and (..., K, N), got {left._shape} and {right._shape}"
        )
    kind = dtypes.result_type(left, right) if dtype is None else asdtype(dtype)
    if kind.kind not in "iufc":
        raise TypeError(f"gemm(): expected a numeric dtype, got {kind}")
    batch = shapes.broadcast_shapes(left._shape[:-2], right._shape[:-2])
    shape = (*batch, left._shape[-2], right._shape[-1])
    result = compute_out("gemm", out, shape, kind, common_device("gemm", [left, right, *more]))
    target = result if result._dtype is kind else empty(shape, kind, result.device)
    given = {"alpha": alpha} if not (type(alpha) in (int, float) and alpha == 1) else {}
    given |= {} if c is None else {"beta": beta}
    last = Last(kind.name, "alpha" in given, c is not None, bias is not None, activation)
    addends = [apart(broadcast_to(_cast(x, kind), shape), target) for x in more]
    _into(target, left, right, last, addends, [last.passed(x) for x in given.values()])
    if target is not result:
        result[...] = target
    return result


def _into(
    out: ndarray, a: ndarray, b: ndarray, last: Last, addends: list[ndarray], numbers: list[Any]
) -> None:
    """All of it, in one pass where the device's products have a last step."""
    source = dtypes.result_type(a, b)
    grid = out.device.driver.grid
    if grid or not widens(source, out._dtype):
        source = out._dtype
    a, b = _cast(a, source), _cast(b, source)
    if not last.computes and source is out._dtype:
        product(out, a, b)
    elif not grid:
        product(out, a, b, last, addends, numbers)
    else:
        product(sums := empty(out._shape, source, out.device), a, b)
        apply(last, out, sums, addends, numbers)


def _cast(x: ndarray, dtype: DType) -> ndarray:
    return x if x._dtype is dtype else x.astype(dtype)
