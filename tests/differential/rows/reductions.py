"""Reductions, scans, statistics, histograms, sorting, searching, sets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import pyarray as pa

from ..draw import Draw
from .base import Arguments, drawn, row, rows


def reduction(
    values: str = "specials", empty: bool = True, axes: bool = True, **choices: Any
) -> Callable[[Draw], Arguments]:
    """Over one axis, several, or all."""

    def draw(d: Draw) -> Arguments:
        shape = d.shape(empty=empty)
        axis = d.axes(shape) if axes else (d.axis(shape) if shape and d.chance(0.7) else None)
        options = d.options(**choices)
        if axis is not None or d.chance(0.5):
            options["axis"] = axis
        return (d.array(shape, values=values),), options

    return draw


def scan(values: str = "specials", **choices: Any) -> Callable[[Draw], Arguments]:
    """Along one axis."""

    def draw(d: Draw) -> Arguments:
        shape = d.shape(least=1)
        options = {"axis": d.axis(shape)} if len(shape) > 1 or d.chance(0.5) else {}
        return (d.array(shape, values=values),), options | d.options(**choices)

    return draw


def line(values: str = "specials", empty: bool = True, **choices: Any) -> Callable[[Draw], Arguments]:
    """One operand of any shape, options only."""

    def draw(d: Draw) -> Arguments:
        return (d.array(d.shape(empty=empty), values=values),), d.options(**choices)

    return draw


KEEP = {"keepdims": (True, False)}
rows("sum nansum", reduction(**KEEP), "f", "sum")
rows("sum prod", reduction("finite", **KEEP), "biu")
rows("sum mean", reduction("finite", **KEEP), "c", "sum")
rows("prod nanprod", reduction("unit", **KEEP), "f", "sum")
rows("max min amax amin ptp", reduction(empty=False, **KEEP), "iuf", "equal")
rows("max ptp median", reduction("few", empty=False), "c")
row("argmax", reduction("few", empty=False, axes=False), "c")
rows("max min", reduction(empty=False, **KEEP), "b")
rows("nanmax nanmin", reduction(empty=False, **KEEP), "f", "equal")
rows("all any", reduction(**KEEP))
rows("count_nonzero", reduction(**KEEP))
rows("mean nanmean", reduction("specials", empty=False, **KEEP), "f", "sum")
rows("mean", reduction("finite", empty=False, **KEEP), "biu", "sum")
rows("var nanvar", reduction("finite", empty=False, ddof=(0,), **KEEP), "f", "square")
rows("std nanstd", reduction("finite", empty=False, **KEEP), "f", "square")
rows("argmax argmin", reduction(empty=False, axes=False, **KEEP), "biuf")
rows("nanargmax nanargmin", reduction("finite", empty=False, axes=False), "f")
rows("median nanmedian", reduction(empty=False, **KEEP), "f", "ulp")
row("median", reduction("finite", empty=False), "iu", "ulp")
rows("average", reduction("finite", empty=False, axes=False), "f", "sum")
rows("ndarray.sum ndarray.mean", reduction("finite", empty=False, **KEEP), "f", "sum")
rows("ndarray.prod", reduction("unit", **KEEP), "f", "sum")
rows("ndarray.max ndarray.min", reduction(empty=False, **KEEP), "iuf", "equal")
rows("ndarray.all ndarray.any", reduction(**KEEP))
rows("ndarray.argmax ndarray.argmin", reduction(empty=False, axes=False), "biuf")
rows("ndarray.var ndarray.std", reduction("finite", empty=False, **KEEP), "f", "square")


def _quantile(scale: float) -> Callable[[Draw], Arguments]:
    def draw(d: Draw) -> Arguments:
        shape = d.shape(least=1, empty=False)
        q = d.one_of((0.0, 0.5, 1.0, 0.3, [0.25, 0.75]))
        q = [v * scale for v in q] if isinstance(q, list) else q * scale
        options = d.options(method=("linear", "lower", "higher", "nearest", "midpoint"), keepdims=(True,))
        return (d.array(shape, values="finite"), q), options | {"axis": d.axes(shape)}

    return draw


rows("quantile nanquantile", _quantile(1), "f", "sum")
rows("percentile nanpercentile", _quantile(100), "f", "sum")
rows("cumsum cumulative_sum", scan("finite"), "f", "sum")
rows("cumsum cumulative_sum", scan("finite"), "iu")
rows("cumprod cumulative_prod", scan("unit"), "f", "sum")
rows("nancumsum", scan("finite"), "f", "sum")
rows("nancumprod", scan("unit"), "f", "sum")
row("diff", scan("finite", n=(1, 2)), "iuf", "sum")  # NumPy's side of bfloat16 rounds once
rows("ndarray.cumsum ndarray.cumprod", scan("unit"), "f", "sum")


@drawn("cumsum", "iuf", "sum")
def _cumsum_out(d: Draw) -> Arguments:
    shape = d.shape(least=1)
    x = d.array(shape, "int64" if d.dtype[0] in "iu" else None, values="finite")
    dtype = "int64" if d.dtype[0] in "iu" else None
    return (x,), {"axis": d.axis(shape), "out": d.array(shape, dtype, "finite", write=True, ours=True)}


@drawn("sum max", "f", "sum")
def _reduced_out(d: Draw) -> Arguments:
    shape = d.shape(least=2, empty=False)
    axis = d.axis(shape)
    rest = tuple(n for k, n in enumerate(shape) if k != axis % len(shape))
    return (d.array(shape, values="finite"),), {
        "axis": axis,
        "out": d.array(rest, None, "finite", write=True, ours=True),
    }


# ---- sorting and searching

rows("sort", scan(), "biuf", "equal")
rows("sort", scan("few"), "c")
rows(
    "argsort",
    scan("few", kind=("stable",)),
    "biuf",
    theirs=lambda x, **how: np.argsort(x, **how | {"kind": "stable"}),
)
row("unique", line("few"), "biuf", "equal")
rows("unique_values", line("few"), "biuf", "equal", theirs=lambda x: np.unique(x))
rows("unique_counts unique_inverse unique_all", line("few"), "iuf", "equal")
row("nonzero", lambda d: ((d.array(d.shape(least=1), values="few"),), {}))
rows("flatnonzero argwhere", lambda d: ((d.array(d.shape(least=1), values="few"),), {}))
row("ndarray.nonzero", lambda d: ((d.array(d.shape(least=1), values="few"),), {}))
row("sort_complex", line("few"), "fc")


def _sorted_in_place(d: Draw) -> Arguments:
    shape = d.shape(least=1)
    return (d.array(shape, values="specials", write=True, ours=True),), {"axis": d.axis(shape)}


row("ndarray.sort", _sorted_in_place, "biuf", "equal")
row("ndarray.argsort", lambda d: ((d.array(d.shape(least=1), values="few"),), {}), "iuf",
    ours=lambda x: x.argsort(), theirs=lambda x: x.argsort(kind="stable"))  # fmt: skip


@drawn("lexsort", "iuf")
def _lexsort(d: Draw) -> Arguments:
    shape = d.shape(least=1, most=1)
    return (tuple(d.array(shape, values="few") for _ in range(2)),), {}


@drawn("searchsorted digitize", "iuf")
def _searchsorted(d: Draw) -> Arguments:
    return (
        d.array(d.shape(least=1, most=1, empty=False), values="finite", sort=True),
        d.array(d.shape(), values="finite"),
    ), {}


def _digitize(d: Draw) -> Arguments:
    bins = d.array(d.shape(least=1, most=1, empty=False), values="finite", sort=True)
    return (d.array(d.shape(), values="finite"), bins), d.options(right=(True, False))


row("digitize", _digitize, "iuf")
row("searchsorted", lambda d: (_searchsorted(d)[0], d.options(side=("left", "right"))), "iuf")
row("ndarray.searchsorted", lambda d: (_searchsorted(d)[0], d.options(side=("left", "right"))), "iuf")


def _placed(library: Any) -> Callable[..., Any]:
    """What a partition promises: which elements are before `kth` and which are not, in any order."""

    def call(x: Any, kth: int, axis: int) -> Any:
        found = library.partition(x, kth, axis=axis)
        found = np.moveaxis(found.get() if isinstance(found, pa.ndarray) else found, axis, -1)
        return np.sort(found[..., :kth], axis=-1), np.sort(found[..., kth:], axis=-1), found[..., kth]

    return call


@drawn("partition", "iuf", "equal", ours=_placed(pa), theirs=_placed(np))
def _partition(d: Draw) -> Arguments:
    shape = d.shape(least=1, empty=False)
    axis = d.axis(shape)
    return (d.array(shape, values="finite"), d.integer(0, shape[axis] - 1), axis), {}


# ---- sets

_two = lambda d: ((d.array(d.shape(most=2), values="few"), d.array(d.shape(most=2), values="few")), {})  # noqa: E731
rows("intersect1d union1d setdiff1d setxor1d", _two, "biuf", "equal")
row("isin", lambda d: (_two(d)[0], d.options(invert=(True, False))), "biuf")

# ---- histograms


@drawn("histogram", "iuf")
def _histogram(d: Draw) -> Arguments:
    x = d.array(d.shape(empty=False), values="finite")
    if d.chance(0.5):
        edges = d.array((d.integer(2, 9),), d.one_of(("float64", "int64", "float32")), "finite", sort=True)
        return (x,), {"bins": edges}
    return (x,), {"bins": d.integer(1, 7), "range": (-10, 10)}


@drawn("histogram_bin_edges", "iuf", "ulp")
def _edges(d: Draw) -> Arguments:
    return (d.array(d.shape(empty=False), values="finite"),), {"bins": d.integer(1, 7)}


@drawn("histogram2d", "f", "ulp", shares=True)
def _histogram2d(d: Draw) -> Arguments:
    shape = (d.integer(1, 30),)
    options = {"bins": d.one_of((3, [2, 4])), "range": [[-5, 5], [-4, 6]]}
    return (d.array(shape, values="finite"), d.array(shape, values="finite")), options


@drawn("histogramdd", "f", "ulp")
def _histogramdd(d: Draw) -> Arguments:
    shape = (d.integer(1, 30), 2)
    return (d.array(shape, values="finite"),), {"bins": d.one_of((3, [2, 4])), "range": [[-5, 5], [-4, 6]]}


@drawn("bincount", dtypes=("int64", "uint8", "int32"))
def _bincount(d: Draw) -> Arguments:
    shape = (d.integer(1, 40),)
    return (d.array(shape, values="0:9"),), d.options(minlength=(0, 12))


@drawn("bincount", "f", "sum")
def _bincount_weights(d: Draw) -> Arguments:
    shape = (d.integer(1, 40),)
    return (d.array(shape, "int64", "0:9"), d.array(shape, values="finite")), {}


@drawn("cov corrcoef", "f", "loose")
def _cov(d: Draw) -> Arguments:
    shape = (d.integer(1, 4), d.integer(3, 9))
    return (d.array(shape, values="finite"),), d.options(rowvar=(True,))


row("ediff1d", line("finite"), "if")
# Of bfloat16, whole numbers: a rounded difference near half a period is on the other side of it.
row("unwrap", lambda d: scan("few" if d.dtype == "bfloat16" else "finite")(d), "f", "sum")
row(
    "gradient",
    lambda d: ((d.array((d.integer(2, 9), d.integer(2, 9)), values="finite"),), {"axis": d.integer(0, 1)}),
    "f",
    "sum",
)
row("gradient", lambda d: ((d.array((d.integer(2, 60),), values="finite"),), {}), "f", "sum")


@drawn("trapezoid", "f", "square")
def _trapezoid(d: Draw) -> Arguments:
    shape = d.shape(least=1, most=2, empty=False)
    return (d.array(shape, values="finite"),), d.options(dx=(0.5,)) | {"axis": d.axis(shape)}


@drawn("interp", "f", "square")
def _interp(d: Draw) -> Arguments:
    shape = (d.integer(1, 9),)
    xp = d.array(shape, values="0:900000" if d.dtype == "float64" else "0:900", sort=True)
    return (d.array(d.shape(), values="finite"), xp, d.array(shape, values="finite")), {}
