"""`gemm`: a matrix product and what is done with it, in one pass."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import dtypes, shapes
from ..api.core.ufunc import as_arrays, common_device, compute_out
from ..api.standard.data_types import finfo, iinfo
from ..api.standard.manipulation import broadcast_to
from ..api.standard.statistical import as_operand
from ..array import empty, ndarray
from ..dtypes import DType, asdtype
from ..jit.bounded_cache import BoundedCache
from ..jit.captures import Contents, captures
from ..jit.kernel import Func
from ..jit.replay import replayable
from ..jit.variants import MAX_VARIANTS
from ..kernels.elementwise.elementwise import copy_if_aliased
from ..kernels.matmul.gemm import gemm as product
from ..kernels.matmul.gemm import is_widening, is_widening_on_grid
from ..kernels.matmul.gemm_epilogue import Epilogue
from ..kernels.matmul.gemm_types import check_precision
from ..lang.ir import static_key
from ..lang.parse import Capture
from .activations import ACTIVATIONS

if TYPE_CHECKING:
    from ..typing import ArrayLike, DTypeLike

__all__ = ["gemm"]


def gemm(
    a: ArrayLike,
    b: ArrayLike,
    /,
    *,
    alpha: complex = 1,
    beta: complex | None = None,
    c: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    activation: Callable[..., Any] | str | None = None,
    dtype: DTypeLike = None,
    precision: str | None = None,
    out: ndarray | None = None,
) -> ndarray:
    """`activation(alpha * (a @ b) + beta * c + bias)` of (..., M, K) and (..., K, N): (..., M, N), computed
    in one pass on a CPU. `c` and `bias` broadcast to the result; `out` may be `c` itself. A `beta` of 0
    leaves `c` out, as in BLAS: its NaNs are not in the result. `alpha` multiplies, whatever it is.

    `activation` is "relu", "gelu" (by erf, as torch's default) or "silu", or a `pa.func` of one number; what
    that names is compiled in, and anew when it changes. With `dtype`, integers are multiplied and summed in
    that wider type, halves give float32, float8 any of float16, bfloat16 and float32; others are cast first.
    Narrow types are summed in float32 and rounded once, after the activation (on GPUs also before).
    `precision` is that of `matmul`.

    Raises `TypeError` for bools, `beta` without `c` and the like, `OverflowError` for a factor that the
    result's type can't hold, `ValueError` for shapes that don't fit and unknown names, `CompileError` for an
    activation that isn't in the language.

    >>> @pa.func
    ... def relu(x):
    ...     return max(x, 0.0)
    >>> a = pa.asarray([[1.0, -2.0], [3.0, 4.0]])
    >>> pa.gemm(a, a, bias=pa.asarray([0.5, 0.0]), activation=relu).tolist()
    [[0.0, 0.0], [15.5, 10.0]]
    >>> pa.gemm(a, a, activation="relu").tolist()
    [[0.0, 0.0], [15.0, 10.0]]
    >>> x = pa.full((2, 4), 100, dtype=pa.int8)
    >>> pa.gemm(x, x.T, dtype=pa.int32).tolist()
    [[40000, 40000], [40000, 40000]]
    """
    function = None if activation is None else _activation(activation)
    key = function, () if function is None else _captured(function)
    product = _replayed.get(key) or _replayed.add(key, _replayable_gemm(*key))
    if precision is not None:
        check_precision("gemm", precision)
    return product(a, b, alpha, beta, c, bias, dtype, precision, out)


def _activation(activation: Callable[..., Any] | str) -> Func:
    """The function that is given or named. Raises `ValueError` for another name, `TypeError` for what is neither."""
    if isinstance(activation, Func):
        return activation
    names = ", ".join(map(repr, ACTIVATIONS))
    if not isinstance(activation, str):
        raise TypeError(
            f"gemm(): activation is a function of the kernel language or one of {names}, got {activation!r}; make it "
            "one with @pa.func"
        )
    if activation not in ACTIVATIONS:
        raise ValueError(
            f"gemm(): expected activation to be one of {names}, got {activation!r}; others are functions with @pa.func"
        )
    return ACTIVATIONS[activation].function


# By the activation and what its captured values are: all else is an argument of the replayable call.
_replayed: BoundedCache[tuple[Func | None, tuple[Any, ...]], Callable[..., ndarray]] = BoundedCache(MAX_VARIANTS)
# By the function. Each value is compared at each call; a changed one, which may be a function, makes it anew.
_captures: BoundedCache[Func, tuple[Capture | Contents, ...]] = BoundedCache(MAX_VARIANTS)


def _captured(activation: Func) -> tuple[Any, ...]:
    """What the activation reads from globals and closures, as it is now."""
    captured = _captures.get(activation)
    if captured is None or any(c.current_value() is not c.value for c in captured):
        captured = _captures.add(activation, tuple(captures(activation.__wrapped__, (Func,))))
    return tuple([static_key(c.value) for c in captured])


def _replayable_gemm(activation: Func | None, captured: tuple[Any, ...]) -> Callable[..., ndarray]:
    """The replayable function for calls with one activation. Raises `TypeError` unless that takes one number."""
    if activation is not None:
        source = activation.__pyarray_func__
        try:
            source.signature.bind(None)
        except TypeError:
            shown = f"{source.name}{source.signature} ({source.path}:{source.first_line})"
            raise TypeError(
                f"gemm(): activation is a function of one number, got {shown}; give further numbers defaults"
            ) from None

    @replayable
    def gemm(a: Any, b: Any, alpha: Any, beta: Any, c: Any, bias: Any, dtype: Any, precision: Any, out: Any) -> ndarray:
        return _gemm(a, b, alpha, beta, c, bias, activation, captured, dtype, precision, out)

    return gemm


def _gemm(
    a: Any,
    b: Any,
    alpha: Any,
    beta: Any,
    c: Any,
    bias: Any,
    activation: Func | None,
    captured: tuple[Any, ...],
    dtype: Any,
    precision: Any,
    out: Any,
) -> ndarray:
    left, right, *more = (
        as_operand("gemm", x, "iufc") for x in as_arrays("gemm", *(x for x in (a, b, c, bias) if x is not None))
    )
    if left.ndim < 2 or right.ndim < 2 or left._shape[-1] != right._shape[-2]:
        raise ValueError(f"gemm(): expected shapes (..., M, K) and (..., K, N), got {left._shape} and {right._shape}")
    kind = dtypes.result_type(left, right) if dtype is None else asdtype(dtype)
    if kind.kind not in "iufc":
        raise TypeError(f"gemm(): expected a numeric dtype, got {kind}")
    named = next((name for name, row in ACTIVATIONS.items() if row.function is activation), None)
    if named is not None and kind.kind not in ACTIVATIONS[named].kinds:
        raise TypeError(f"gemm(): activation {named!r} is not defined for {kind}; give another dtype=")
    factor = _number("alpha", alpha, kind)
    scale = None if beta is None else _number("beta", beta, kind)
    if scale is None if c is not None else scale:
        what = "beta without c: give c" if c is None else "c without beta: give its factor, beta"
        raise TypeError(f"gemm(): expected beta and c together, got {what}")
    batch = shapes.broadcast_shapes(left._shape[:-2], right._shape[:-2])
    shape = (*batch, left._shape[-2], right._shape[-1])
    result = compute_out("gemm", out, shape, kind, common_device("gemm", [left, right, *more]))
    target = result if result._dtype is kind else empty(shape, kind, result.device)
    addends = [broadcast_to(_cast(x, kind), shape) for x in more]
    if c is not None and not scale:  # it may be memory that was never written
        del addends[0]
    if named is not None and kind.itemsize <= 2 and result.device.driver.grid:
        activation = ACTIVATIONS[named].narrow or activation
    epilogue = Epilogue(kind.name, factor != 1, bool(scale), bias is not None, activation, captured)
    numbers = [factor] * epilogue.alpha + [scale] * epilogue.beta
    addends = [copy_if_aliased(x, target) for x in addends]
    _multiply_into(target, left, right, epilogue, addends, numbers, precision)
    if target is not result:
        result[...] = target
    return result


def _multiply_into(
    out: ndarray,
    a: ndarray,
    b: ndarray,
    epilogue: Epilogue,
    addends: list[ndarray],
    numbers: list[Any],
    precision: str | None,
) -> None:
    """The product and its epilogue, in one pass if the device's products have epilogues."""
    source = dtypes.result_type(a, b)
    grid = out.device.driver.grid
    if not (is_widening_on_grid(source, out) if grid else is_widening(source, out._dtype)):
        source = out._dtype
    a, b = _cast(a, source), _cast(b, source)
    if not epilogue.computes and (grid or source is out._dtype):
        product(out, a, b, precision=precision)
    else:
        product(out, a, b, epilogue, addends, numbers, precision)


def _cast(x: ndarray, dtype: DType) -> ndarray:
    return x if x._dtype is dtype else x.astype(dtype)


def _number(name: str, x: Any, kind: DType) -> Any:
    """A factor, as Python's number for `kind`. Raises `TypeError` for what is none, `OverflowError` for one
    that `kind` can't hold."""
    what, convert, methods = _NUMBERS["i" if kind.kind == "u" else kind.kind]
    plain = x.item() if hasattr(x, "item") and getattr(x, "shape", None) == () else x
    if kind.kind in "iu" and type(plain) is float and plain in (0.0, 1.0):  # which change no type
        return int(plain)
    # by methods, for float() and complex() read texts, too
    if getattr(plain, "shape", ()) != () or not any(hasattr(type(plain), m) for m in methods):
        other = ", or another dtype=" if isinstance(plain, (float, complex)) else ""
        raise TypeError(
            f"gemm(): expected {name} to be {what}, for products of {kind}, got {x!r:.80}; give {what}{other}"
        )
    try:
        number = convert(plain)
        fits = kind.kind not in "iu" or iinfo(kind).min <= number <= iinfo(kind).max
    except OverflowError:  # of an integer, as a float
        number, fits = int(plain), False
    if fits:
        return number
    limits = iinfo(kind) if kind.kind in "iu" else finfo(kind)
    # Python refuses to write thousands of digits
    shown = number if number.bit_length() < 100 else f"a number of {number.bit_length()} bits"
    raise OverflowError(
        f"gemm(): {name} is out of range for {kind}, which holds {limits.min} to {limits.max}, got {shown}; "
        "give one that it holds, or another dtype="
    )


_NUMBERS: dict[str, tuple[str, Callable[[Any], Any], tuple[str, ...]]] = {
    "i": ("an integer", operator.index, ("__index__",)),
    "f": ("a real number", float, ("__float__", "__index__")),
    "c": ("a number", complex, ("__complex__", "__float__", "__index__")),
}
