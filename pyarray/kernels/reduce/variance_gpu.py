"""Variances and sums of squared deviations from the mean on grids, in one pass over memory."""

from __future__ import annotations

import functools
import math

from ... import jit, shapes
from ...array import ndarray
from ...dtypes import float32, float64
from ...lang.markers import kernel_math, ndrange, unordered
from ..workspace import unchecked_empty
from .columns_gpu import column_pieces, cut_columns
from .reduce import FEW_SLICES, on_grid, piece_count

PIECE = 1 << 12  # elements of a row that a block reads twice: the second time from the cache
AHEAD = 8  # loads of a column that a thread has in flight
KEPT = 1 << 16  # elements of a row whose sums are in float32, at most
SHORT, MANY = 1 << 12, 1 << 7  # rows that a block takes as a whole: so short, or so many
LEAST, MOST = 1e-30, 1e38  # of a sum of squares in float32

_SCOPE = {"ndrange": ndrange, "unordered": unordered, "float64": float64}


def supports_one_pass(x: ndarray, axes: tuple[int, ...]) -> bool:
    """Whether `one_pass_into` takes `x`: real numbers on a grid, dense along `axes` or, narrow floats only,
    along the other ones."""
    if not on_grid(x) or x._dtype.kind == "c" or not x._size or not axes:
        return False
    inner, steps, x_lead = _reduction_axes(x, axes)
    if len(inner) == 2:
        return _narrow(x) and steps[1] == x.itemsize
    return len(inner) == 1 and (steps[0] == x.itemsize or (_narrow(x) and x_lead[-1:] == (x.itemsize,)))


def supports_variances(x: ndarray, axes: tuple[int, ...]) -> bool:
    """Whether `variances_into` takes `x`: narrow floats on a grid, in so many rows along `axes`, or such short ones,
    that each has a block, or in so many columns that each has a thread."""
    if not supports_one_pass(x, axes) or not _narrow(x):
        return False
    inner, steps, _ = _reduction_axes(x, axes)
    if len(inner) != 1:
        return False
    n = inner[0]
    if steps[0] != x.itemsize:
        return column_pieces(n, x._size // n) == 1
    return n <= KEPT and (n <= SHORT or x._size // n >= MANY)


def variances_into(out: ndarray, x: ndarray, axes: tuple[int, ...], dof: float, root: bool) -> None:
    """`out`, of the type of `x` and without `axes`, becomes the sum of (x - mean)² over `dof`, or its `root`, if
    `supports_variances`."""
    (n,), (step,), _ = _reduction_axes(x, axes)
    if step == x.itemsize:
        _variances_of_rows(out, x, axes, dof, root)
        return
    target, x_lead = _kept_axes(out, x, axes)
    _whole_columns(target, x, n, step, x_lead, dof, root)


def _variances_of_rows(out: ndarray, x: ndarray, axes: tuple[int, ...], dof: float, root: bool) -> None:
    """A row is read once, and stays on the chip. Deviations and sums are in float32, as those of fused rows: a thread
    adds few elements, and the sum of deviations corrects what the mean is off by. Where their squares may be too large
    or too small for float32, they are added up in float64."""
    (n,), (step,), _ = _reduction_axes(x, axes)
    target, x_lead = _kept_axes(out, x, axes)
    _rows_kernel(target.ndim, root)(target, x._view(0, (*target._shape, n), (*x_lead, step)), dof)


def one_pass_into(out: ndarray, x: ndarray, axes: tuple[int, ...]) -> None:
    """`out` = sum of (x - mean)² over `axes`, if `supports_one_pass`; `out`, in float64, lacks them.

    Narrow floats are shifted by the first element, s: sum (x - s)² - (sum (x - s))² / n. The relative error is
    at most (mean - s)² / variance, and so n, times float64's epsilon, far below float32's. Of others, each
    piece has its own mean, and sums are combined by the means' distances from the mean of all (Chan et al.).
    """
    inner, steps, _ = _reduction_axes(x, axes)
    target, x_lead = _kept_axes(out, x, axes)
    sizes, n = target._shape, math.prod(inner)
    if steps[-1] != x.itemsize:
        _columns_into(target, x, n, steps[0], x_lead)
        return
    rows = x._view(0, (*sizes, *inner), (*x_lead, *steps))
    narrow, further = _narrow(x), inner[:-1]
    pieces = piece_count(inner[-1], math.prod((*sizes, *further)), x._size, True) if narrow else -(-n // PIECE)
    partial = unchecked_empty((2, *sizes, *further, pieces), float64, x.device)
    kernel = _shifted_kernel(len(sizes), len(further)) if narrow else _means_kernel(len(sizes))
    kernel(partial, rows)
    partial = partial.reshape(2, *sizes, math.prod((*further, pieces)))
    _combine_kernel(len(sizes), narrow)(target, partial, n)


def _columns_into(out: ndarray, x: ndarray, n: int, step: int, x_lead: tuple[int, ...]) -> None:
    """`one_pass_into` of columns of `n` elements."""
    sizes, pieces = out._shape, column_pieces(n, out._size)
    if pieces == 1:
        _whole_columns(out, x, n, step, x_lead, 1.0, False)
        return
    partial = unchecked_empty((2, *sizes, pieces), float64, x.device)
    _columns_kernel(len(sizes), False, False)(partial, *cut_columns(x, sizes, x_lead, (n,), (step,), pieces))
    _combine_kernel(len(sizes), True)(out, partial, n)


def _whole_columns(
    out: ndarray, x: ndarray, n: int, step: int, x_lead: tuple[int, ...], dof: float, root: bool
) -> None:
    """The sums of squares over `dof` of columns that a thread takes as a whole."""
    sizes = out._shape
    if n <= FEW_SLICES:
        slices = [x._view(k * step, sizes, x_lead) for k in range(n)]
        _slices_kernel(len(sizes), n, root)(out, *slices, dof)
        return
    _columns_kernel(len(sizes), True, root)(out, cut_columns(x, sizes, x_lead, (n,), (step,), 1)[0], dof)


def _narrow(x: ndarray) -> bool:
    return x._dtype.kind == "f" and x.itemsize <= 4


def _reduction_axes(x: ndarray, axes: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Sizes and strides of the reduced axes, merged, and strides of the kept ones."""
    keep = [k for k in range(x.ndim) if k not in axes]
    inner, (steps,) = shapes.collapse([x._shape[k] for k in axes], [x._strides[k] for k in axes])
    _, (x_lead,) = shapes.collapse([x._shape[k] for k in keep], [x._strides[k] for k in keep])
    return inner, steps, x_lead


def _kept_axes(out: ndarray, x: ndarray, axes: tuple[int, ...]) -> tuple[ndarray, tuple[int, ...]]:
    """`out` with its axes merged, as far as those of `x` can be, and the strides of `x` along them."""
    keep = [k for k in range(x.ndim) if k not in axes]
    sizes, (x_lead, out_lead) = shapes.collapse(
        [x._shape[k] for k in keep], [x._strides[k] for k in keep], out._strides
    )
    return out._view(0, sizes, out_lead), x_lead


def _loop_heads(rank: int) -> tuple[str, str, str]:
    """Of rows: the indices before the last, the loop over pieces, and the loop over rows."""
    ks = [f"k{n}" for n in range(rank)]
    sizes = [f"partial.shape[{n + 1}]" for n in range(rank + 1)]
    each = f"for {', '.join([*ks, 'piece'])} in ndrange({', '.join(sizes)}):"
    rows = f"for {', '.join(ks)} in ndrange({', '.join(sizes[:-1])}):" if rank else "for once in range(1):"
    return "".join(f"{k}, " for k in ks), each, rows


_BOUNDS = """        low = min(piece * step, x.shape[{axis}])
        high = min(low + step, x.shape[{axis}])"""
_STEP = "    step = (x.shape[{axis}] + partial.shape[{last}] - 1) // partial.shape[{last}]"


# The text depends on the rank and the root; dtypes are in its variants' keys.
@functools.cache
def _rows_kernel(rank: int, root: bool) -> jit.kernel.Kernel:
    ks = [f"k{n}" for n in range(rank)]
    sizes = ", ".join(f"out.shape[{n}]" for n in range(rank))
    before, head = "".join(f"{k}, " for k in ks), f"{', '.join(ks)} in ndrange({sizes})" if rank else "once in range(1)"
    text = f"""def row_variances(out, x, dof: float):
    for {head}:
        start = float32(x[{before}0])
        total = float32(0)
        for t in unordered(range(x.shape[{rank}])):
            total = total + (float32(x[{before}t]) - start)
        mean = start + total / float32(x.shape[{rank}])
        first, second = float32(0), float32(0)
        for t in unordered(range(x.shape[{rank}])):
            far = float32(x[{before}t]) - mean
            first = first + far
            second = second + far * far
        offset, squares = float64(first), float64(second)
        if not {LEAST} < second < {MOST}:
            offset, squares = float64(0), float64(0)
            for t in unordered(range(x.shape[{rank}])):
                distance = float64(x[{before}t]) - float64(start)
                offset = offset + distance
                squares = squares + distance * distance
        squares = squares - offset * offset / float64(x.shape[{rank}])
        variance = (float64(0) if squares < float64(0) else squares) / dof
        out[{before.rstrip(", ") or "()"}] = {"sqrt(variance)" if root else "variance"}
"""
    return jit.kernel.from_text("row_variances", text, {**_SCOPE, "float32": float32, "sqrt": kernel_math.sqrt})


# The text depends on the numbers of axes; dtypes are in its variants' keys.
@functools.cache
def _shifted_kernel(kept: int, further: int) -> jit.kernel.Kernel:
    """Sums of deviations from a row's first element, and of their squares. Rows with the same indices along the first
    `kept` axes have one first element; `further` axes follow these."""
    rank = kept + further
    before, each, _ = _loop_heads(rank)
    first = "".join(f"k{n}, " for n in range(kept)) + "0, " * further
    text = f"""def shifted_deviations(partial, x):
{_STEP.format(axis=rank, last=rank + 1)}
    {each}
{_BOUNDS.format(axis=rank)}
        start = float64(x[{first}0])
        first, second = float64(0), float64(0)
        for t in unordered(range(low, high)):
            far = float64(x[{before}t]) - start
            first = first + far
            second = second + far * far
        partial[0, {before}piece] = first
        partial[1, {before}piece] = second
"""
    return jit.kernel.from_text("shifted_deviations", text, dict(_SCOPE))


# The rank is all that differs in the text; dtypes are in its variants' keys.
@functools.cache
def _means_kernel(rank: int) -> jit.kernel.Kernel:
    """The kernel of the first pass: each piece's sum, and its squared deviations from its mean."""
    before, each, _ = _loop_heads(rank)
    text = f"""def deviations_from_means(partial, x):
{_STEP.format(axis=rank, last=rank + 1)}
    {each}
{_BOUNDS.format(axis=rank)}
        total, squares = float64(0), float64(0)
        for t in unordered(range(low, high)):
            total = total + float64(x[{before}t])
        mean = total / float64(max(high - low, 1))
        for t in unordered(range(low, high)):
            far = float64(x[{before}t]) - mean
            squares = squares + far * far
        partial[0, {before}piece] = total
        partial[1, {before}piece] = squares
"""
    return jit.kernel.from_text("deviations_from_means", text, dict(_SCOPE))


# The text depends on the rank and on the kind of partial sums; dtypes are in its variants' keys.
@functools.cache
def _combine_kernel(rank: int, shifted: bool) -> jit.kernel.Kernel:
    """Combines the partial sums of a row's pieces."""
    before, _, rows = _loop_heads(rank)
    pieces = f"unordered(range(partial.shape[{rank + 1}]))"
    if shifted:
        rest = "squares - total * total / float64(n)"
        more = "squares = squares + partial[1, {before}piece]"
    else:
        rest = "squares"
        more = """size = min(piece * step + step, n) - min(piece * step, n)
            far = partial[0, {before}piece] / float64(max(size, 1)) - total / float64(n)
            squares = squares + (partial[1, {before}piece] + far * far * float64(size))"""
    text = f"""def combine_deviations(out, partial, n: int):
    step = (n + partial.shape[{rank + 1}] - 1) // partial.shape[{rank + 1}]
    {rows}
        total, squares = float64(0), float64(0)
        for piece in {pieces}:
            total = total + partial[0, {before}piece]
        for piece in {pieces}:
            {more.format(before=before)}
        rest = {rest}
        out[{before.rstrip(", ") or "()"}] = float64(0) if rest < float64(0) else rest
"""
    return jit.kernel.from_text("combine_deviations", text, dict(_SCOPE))


# The text depends on the rank, on whether there is one piece, and on the root; dtypes are in its variants' keys.
@functools.cache
def _columns_kernel(rank: int, whole: bool, root: bool) -> jit.kernel.Kernel:
    """A piece of a column per thread, x[k..., :, piece, c], and an element of rest[k..., piece, c] where there is one;
    neighbouring threads have neighbouring columns."""
    before, last = "".join(f"k{n}, " for n in range(rank - 1)), rank - 1
    sizes = [*(f"x.shape[{n}]" for n in range(last)), f"x.shape[{rank}]", f"x.shape[{rank + 1}]"]
    element = f"float64(x[{before}{{}}, piece, c])"
    loads = "\n".join(f"            x{n} = {element.format(f't + {n}')} - start" for n in range(AHEAD))
    firsts = " + ".join(f"x{n}" for n in range(AHEAD))
    seconds = " + ".join(f"x{n} * x{n}" for n in range(AHEAD))
    if whole:
        params, stores = "dof: float", _variance_lines(f"{before}c", f"float64(x.shape[{last}])", root)
    else:
        params = "rest"
        stores = f"""        if piece < rest.shape[{last}]:
            far = float64(rest[{before}piece, c]) - start
            first = first + far
            second = second + far * far
        out[0, {before}c, piece] = first
        out[1, {before}c, piece] = second
"""
    text = f"""def column_deviations(out, x, {params}):
    main_end = x.shape[{last}] - x.shape[{last}] % {AHEAD}
    for {before}piece, c in ndrange({", ".join(sizes)}):
        start = float64(x[{before}0, 0, c])
        first, second = float64(0), float64(0)
        for t in range(0, main_end, {AHEAD}):
{loads}
            first = first + ({firsts})
            second = second + ({seconds})
        for t in range(main_end, x.shape[{last}]):
            far = {element.format("t")} - start
            first = first + far
            second = second + far * far
{stores}"""
    return jit.kernel.from_text("column_deviations", text, {**_SCOPE, "sqrt": kernel_math.sqrt})


def _variance_lines(index: str, count: str, root: bool) -> str:
    """Lines that store what the sums of shifted elements, `first`, and of their squares, `second`, make."""
    return f"""        squares = second - first * first / {count}
        variance = (float64(0) if squares < float64(0) else squares) / dof
        out[{index}] = {"sqrt(variance)" if root else "variance"}
"""


# The text depends on the rank, the slices' number and the root; dtypes are in its variants' keys.
@functools.cache
def _slices_kernel(rank: int, count: int, root: bool) -> jit.kernel.Kernel:
    """A thread takes neighbouring elements of a few slices along the reduced axis."""
    ks, names = ", ".join(f"k{n}" for n in range(rank)), [f"x{n}" for n in range(count)]
    deviations = "\n".join(f"        d{n} = float64({name}[{ks}]) - start" for n, name in enumerate(names))
    text = f"""def slice_deviations(out, {", ".join(names)}, dof: float):
    for {ks} in ndrange({", ".join(f"out.shape[{n}]" for n in range(rank))}):
        start = float64(x0[{ks}])
{deviations}
        first = {" + ".join(f"d{n}" for n in range(count))}
        second = {" + ".join(f"d{n} * d{n}" for n in range(count))}
{_variance_lines(ks, str(float(count)), root)}"""
    return jit.kernel.from_text("slice_deviations", text, {**_SCOPE, "sqrt": kernel_math.sqrt})
