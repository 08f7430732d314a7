"""Keywords of reductions and scans: `where`, `initial`, `dtype`, `out`, `ddof`, `weights` and their like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import pyarray as pa

from ..draw import Draw
from .base import Arguments, drawn, row, rows

KEEP = {"keepdims": (True, False)}
_WIDER = {"b": ("int64", "float32"), "i": ("int64", "float64"), "u": ("uint64", "float64")}


def wider(d: Draw) -> str:
    """A dtype that totals of the case's may be asked for in, or that takes its results."""
    if d.dtype == "bfloat16":
        return d.dtype
    kind = "b" if d.dtype == "bool" else d.dtype[0]
    if kind in _WIDER:
        return str(d.one_of(_WIDER[kind]))
    return {"c": "complex128"}.get(kind, str(d.one_of(("float32", "float64"))))


def _left(shape: tuple[int, ...], axis: Any, keepdims: bool) -> tuple[int, ...]:
    """The shape of a reduction."""
    axes = range(len(shape)) if axis is None else [axis] if isinstance(axis, int) else axis
    gone = {k % len(shape) for k in axes} if shape else set()
    if keepdims:
        return tuple(1 if k in gone else n for k, n in enumerate(shape))
    return tuple(n for k, n in enumerate(shape) if k not in gone)


def total(
    values: str = "finite",
    takes: str = "",
    initial: tuple[Any, ...] = (),
    out: str = "",
    axes: bool = True,
    empty: bool = True,
    **choices: Any,
) -> Callable[[Draw], Arguments]:
    """A reduction with keywords. `takes` names those that are arrays or dtypes: where, dtype, out; `out` is
    the dtype of results where it isn't the operand's."""

    def draw(d: Draw) -> Arguments:
        shape = d.shape(empty=empty)
        axis = d.axes(shape) if axes else (d.axis(shape) if shape and d.chance(0.7) else None)
        options = {"axis": axis} | d.options(**KEEP, **choices)
        x = d.array(shape, values=values)
        if "where" in takes and d.chance(0.7):
            options["where"] = d.array(d.broadcastable(shape), "bool")
        if initial and ("where" in options or d.chance(0.5)):
            options["initial"] = d.one_of(initial)
        result = out or d.dtype
        if "dtype" in takes and d.chance(0.4):
            options["dtype"] = result = wider(d)
            if result == "bfloat16":
                del options["dtype"]
        if "out" in takes and d.chance(0.5):
            left = _left(shape, axis, options.get("keepdims", False))
            options["out"] = d.array(left, result, "finite", write=True, ours=True)
        return (x,), options

    return draw


_NUMBERS = (0, 1, 3)
rows("sum", total("finite", "where dtype out", _NUMBERS), "f", "sum")
rows("sum", total("finite", "where dtype", _NUMBERS), "biu", "sum")
rows("sum", total("finite", "where out", _NUMBERS, "int64"), "bi", "sum")
rows("sum mean", total("finite", "where"), "c", "sum")
rows("prod", total("unit", "where dtype out", _NUMBERS), "f", "sum")
rows("prod", total("1:4", "where", _NUMBERS), "iu")
rows("max min amax amin", total("specials", "where out", (0, 1)), "iuf", "equal")
rows("max min", total("any", "where out", (True, False)), "b", "equal")
rows("all any", total("few", "where"))
rows("all any", total("few", "out", out="bool"))
rows("mean", total("finite", "where dtype out"), "f", "sum")
rows("mean", total("finite", "where"), "biu", "sum")
rows("var std", total("finite", "where out", ddof=(0, 1), empty=False), "f", "square")
rows("var std", total("finite", correction=(0, 1)), "f", "square")
rows("var std", total("finite", ddof=(0, 1)), "biu", "square")
# NumPy writes the largest elements into `out` before it looks for the smallest ones
rows("ptp", total("finite", "out", empty=False), "iuf", "equal", shares=False)
rows("nansum", total("specials", "dtype out"), "f", "sum")
rows("nanprod", total("unit", "dtype out"), "f", "sum")
rows("nansum nanprod nanmax nanmin nanmean", total("finite", empty=False), "iu", "sum")
rows("nanmax nanmin", total("specials", "out", empty=False), "f", "equal")
rows("nanmean", total("specials", "out", empty=False), "f", "sum")
rows("nanvar nanstd", total("specials", "out", ddof=(0, 1), empty=False), "f", "square")
rows("nanargmax nanargmin", total("finite", axes=False, empty=False), "f")
rows("median nanmedian", total("finite", "out", empty=False), "f", "ulp")
rows("ndarray.sum", total("finite", "where dtype out", _NUMBERS), "f", "sum")
rows("ndarray.prod", total("unit", "where", _NUMBERS), "f", "sum")
rows("ndarray.max ndarray.min", total("specials", "where out", (0, 1)), "iuf", "equal")
rows("ndarray.all ndarray.any", total("few", "where"))
rows("ndarray.mean", total("finite", "where dtype"), "f", "sum")
rows("ndarray.var ndarray.std", total("finite", "where", ddof=(0, 1), empty=False), "f", "square")


def running(values: str, out: str = "", **choices: Any) -> Callable[[Draw], Arguments]:
    """A scan with `dtype=` and `out=`."""

    def draw(d: Draw) -> Arguments:
        shape = d.shape(least=1)
        x = d.array(shape, values=values)  # first, for the first operand of all is an array of ours
        options = {"axis": d.axis(shape)} | d.options(**choices)
        result = out or d.dtype
        if d.chance(0.5) and d.dtype != "bfloat16":
            options["dtype"] = result = wider(d)
        if d.chance(0.5):
            sizes = list(shape)
            sizes[options["axis"]] += bool(options.get("include_initial"))
            options["out"] = d.array(tuple(sizes), result, "finite", write=True, ours=True)
        return (x,), options

    return draw


rows("cumsum nancumsum ndarray.cumsum", running("finite"), "f", "sum")
rows("cumprod nancumprod ndarray.cumprod", running("unit"), "f", "sum")
rows("cumsum", running("finite", "int64"), "bi", "sum")
rows("cumulative_sum", running("finite", include_initial=(True,)), "f", "sum")
rows("cumulative_prod", running("unit", include_initial=(True,)), "f", "sum")


@drawn("quantile nanquantile", "f", "sum")
def _quantile_out(d: Draw) -> Arguments:
    shape = d.shape(least=1, empty=False)
    axis, keepdims = d.axes(shape), d.one_of((True, False))
    out = d.array(_left(shape, axis, keepdims), None, "finite", write=True, ours=True)
    x = d.array(shape, values="finite", ours=True)  # out= alone doesn't say where to compute
    return (x, 0.25), {"axis": axis, "keepdims": keepdims, "out": out}


_METHODS = (
    "inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf",
    "hazen", "weibull", "median_unbiased", "normal_unbiased",
)  # fmt: skip


@drawn("quantile percentile", "f", "sum")
def _quantile_methods(d: Draw) -> Arguments:
    method = d.one_of(_METHODS)
    shape = d.shape(least=1, empty=False)
    return (d.array(shape, values="finite"), d.one_of((0.0, 0.2, 0.75, 1.0))), {
        "axis": d.axes(shape),
        "method": method,
    }


@drawn("average", "f", "sum")
def _average(d: Draw) -> Arguments:
    shape = d.shape(least=1, empty=False)
    axis = d.one_of((None, d.axis(shape)))
    options = {"axis": axis} | d.options(returned=(True,), **KEEP)
    if d.chance(0.8):
        whole = axis is None or d.chance(0.5)
        weighed = shape if whole else (shape[axis],)
        options["weights"] = d.array(weighed, values="positive")
    return (d.array(shape, values="finite"),), options


@drawn("cov", "f", "loose")
def _cov(d: Draw) -> Arguments:
    shape = (d.integer(2, 4), d.integer(3, 9))  # NumPy's versions differ in columns of one row
    x = d.array(shape, values="finite")
    options = d.options(rowvar=(True, False), bias=(True, False), ddof=(0, 1))
    return ((x, d.array(shape, values="finite")) if d.chance(0.5) else (x,)), options


@drawn("corrcoef", "f", "loose")
def _corrcoef(d: Draw) -> Arguments:
    shape = (d.integer(1, 3), d.integer(3, 9))
    return (d.array(shape, values="finite"), d.array(shape, values="finite")), {}


@drawn("histogram", "iuf", "ulp")
def _histogram(d: Draw) -> Arguments:
    n = d.integer(1, 60)
    options = {"bins": d.integer(1, 7), "range": (-10, 10)} | d.options(density=(True, False))
    if d.chance(0.6):
        options["weights"] = d.array((n,), d.one_of(("float64", "int64")), "positive")
    return (d.array((n,), values="finite"),), options


@drawn("histogram2d", "f", "ulp")
def _histogram2d(d: Draw) -> Arguments:
    shape = (d.integer(1, 30),)
    options = {"bins": d.one_of((3, [2, 4])), "range": [[-9, 9], [-9, 9]]} | d.options(density=(True, False))
    if d.chance(0.6):
        options["weights"] = d.array(shape, "float64", "positive")
    return (d.array(shape, values="finite"), d.array(shape, values="finite")), options


row(
    "histogram_bin_edges",
    lambda d: (
        (d.array(d.shape(empty=False), values="finite"),),
        {"bins": d.integer(1, 7), "range": d.one_of(((-3, 3), (0, 0), (1, 5)))},
    ),
    "iuf",
    "ulp",
)


@drawn("unique", "iuf", "equal")
def _unique(d: Draw) -> Arguments:
    whole = (True, False)
    options = d.options(return_index=whole, return_inverse=whole, return_counts=whole, equal_nan=(False,))
    shape = d.shape(least=1)
    if d.chance(0.4):
        options["axis"] = d.axis(shape)
    return (d.array(shape, values="few"),), options


@drawn("lexsort", "iuf")
def _lexsort(d: Draw) -> Arguments:
    shape = d.shape(least=2, most=2)
    return (tuple(d.array(shape, values="few") for _ in range(2)),), {"axis": d.axis(shape)}


def _by_order(library: Any) -> Callable[..., Any]:
    """`searchsorted` in what isn't sorted, by the order of it."""
    return lambda x, v, side: library.searchsorted(x, v, side=side, sorter=library.argsort(x, kind="stable"))


@drawn("searchsorted", "iuf", ours=_by_order(pa), theirs=_by_order(np))
def _sorter(d: Draw) -> Arguments:
    x = d.array((d.integer(1, 20),), values="few")
    return (x, d.array(d.shape(), values="few"), d.one_of(("left", "right"))), {}


@drawn("intersect1d", "iuf", "equal")
def _intersect(d: Draw) -> Arguments:
    operands = tuple(d.array(d.shape(most=2), values="few") for _ in range(2))
    return operands, {"return_indices": True}


row(
    "isin",
    lambda d: (
        (d.array(d.shape(most=2), values="few"), d.array(d.shape(most=2), values="few")),
        d.options(kind=("sort", "table"), invert=(True,)),
    ),
    "biu",
)
row(
    "sort",
    lambda d: (
        (d.array(d.shape(least=1), values="few"),),
        {"axis": d.one_of((None, 0, -1))} | d.options(kind=("stable", "quicksort", "heapsort", "mergesort")),
    ),
    "biuf",
    "equal",
)
