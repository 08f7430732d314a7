"""Functions that move elements: shapes, joins, copies, padding, creation like another array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import pyarray as pa

from ..draw import Draw
from .base import Arguments, drawn, row, rows, shaped
from .elementwise import scalar


def one(least: int = 0, most: int = 3, **choices: Any) -> Callable[[Draw], Arguments]:
    """One operand and options."""

    def draw(d: Draw) -> Arguments:
        return (d.array(d.shape(least, most)),), d.options(**choices)

    return draw


def with_axis(least: int = 1, **choices: Any) -> Callable[[Draw], Arguments]:
    """One operand and an axis."""

    def draw(d: Draw) -> Arguments:
        shape = d.shape(least)
        return (d.array(shape), d.axis(shape)), d.options(**choices)

    return draw


def _joined(d: Draw) -> Arguments:
    shape = d.shape(least=1)
    axis = d.axis(shape)
    shapes = []
    for _ in range(d.integer(1, 4)):
        sizes = list(shape)
        if d.chance(0.3):
            sizes[axis] = d.integer(0, 4)
        shapes.append(tuple(sizes))
    return ([d.array(s) for s in shapes],), {"axis": axis}


def _stacked(least: int = 0) -> Callable[[Draw], Arguments]:
    def draw(d: Draw) -> Arguments:
        shape = d.shape(least, 2)
        return ([d.array(shape) for _ in range(d.integer(1, 4))],), {}

    return draw


rows("concat concatenate", _joined)
row("stack", lambda d: (_stacked()(d)[0], {"axis": d.one_of((0, -1))}))
rows("vstack hstack dstack column_stack", _stacked(1))
row("block", lambda d: ((_stacked(1)(d)[0][0],), {}))
rows("copy ravel transpose positive", one(), "iuf")
rows("copy ravel transpose", one())
rows("ndarray.copy ndarray.ravel ndarray.flatten ndarray.transpose ndarray.tolist", one())
row("ndarray.tobytes", one(), "biuc")  # NumPy's side of bfloat16 is float32, whose bytes are others
rows("atleast_1d atleast_2d atleast_3d", one())
rows("flip", shaped(lambda d, x: ((d.array(x),), {"axis": d.axes(x)})))
rows("fliplr flipud", one(2))
row("matrix_transpose", one(2))
rows("squeeze ndarray.squeeze", lambda d: ((d.array(tuple(n for n in d.shape() if n < 3)),), {}))
row("expand_dims", lambda d: ((d.array(d.shape()), d.one_of((0, -1))), {}))
rows("swapaxes ndarray.swapaxes", shaped(lambda d, x: ((d.array(x), d.axis(x), d.axis(x)), {}), 1))
row("moveaxis", shaped(lambda d, x: ((d.array(x), d.axis(x), d.axis(x)), {}), 1))
row("rollaxis", shaped(lambda d, x: ((d.array(x), d.axis(x)), {}), 1))
row(
    "permute_dims",
    shaped(lambda d, x: ((d.array(x), tuple(int(k) for k in d.rng.permutation(len(x)))), {}), 1),
)
row("rot90", lambda d: ((d.array(d.shape(2)),), d.options(k=(0, 1, 2, 3, -1))))


def _reshaped(d: Draw) -> Arguments:
    shape = d.shape()
    size = int(np.prod(shape))
    target = d.one_of(
        [(-1,), (size,), (1, size), (size, 1), *[(n, size // n) for n in (2, 3) if size and not size % n]]
    )
    return (d.array(shape), target if size or -1 not in target else (0,)), {}


rows("reshape ndarray.reshape", _reshaped)
row("resize", lambda d: ((d.array(d.shape(empty=False)), d.shape(1, 2)), {}))
row("roll", shaped(lambda d, x: ((d.array(x), d.integer(-5, 5)), d.options(axis=(d.axis(x),))), 1))
row("repeat", shaped(lambda d, x: ((d.array(x), d.integer(0, 3)), d.options(axis=(d.axis(x),))), 1))
row("ndarray.repeat", lambda d: ((d.array(d.shape(1)), d.integer(0, 3)), {}))
row("tile", lambda d: ((d.array(d.shape()), d.one_of((2, (2, 1), (1, 3), (2, 2, 1)))), {}))


@drawn("repeat")
def _repeats(d: Draw) -> Arguments:
    n = d.integer(1, 9)
    return (d.array((n,)), d.array((n,), "int64", "0:4")), {}


@drawn("broadcast_to")
def _broadcast_to(d: Draw) -> Arguments:
    shape = d.shape()
    return (d.array(d.broadcastable(shape)), shape), {}


@drawn("broadcast_arrays")
def _broadcast_arrays(d: Draw) -> Arguments:
    shape = d.shape()
    return (d.array(shape), d.array(d.broadcastable(shape))), {}


row("meshgrid", lambda d: ((d.array(d.shape(1, 1)), d.array(d.shape(1, 1))), d.options(indexing=("xy", "ij"))))
row(
    "ix_",
    lambda d: (
        (d.array((d.integer(1, 5),), "int64", "0:9"), d.array((d.integer(1, 5),), "int64", "0:9")),
        {},
    ),
)
rows("split", lambda d: ((d.array((d.one_of((0, 2, 4, 8)), *d.shape(0, 1))), 2), {}))
rows("array_split", lambda d: ((d.array(d.shape(1)), d.integer(1, 4)), {}))
row("hsplit", lambda d: ((d.array((d.integer(1, 4), 4)), 2), {}))
row("vsplit", lambda d: ((d.array((4, d.integer(1, 4))), 2), {}))
row("dsplit", lambda d: ((d.array((2, 3, 4)), 2), {}))
row(
    "unstack",
    with_axis(),
    ours=lambda x, axis: pa.unstack(x, axis=axis),
    theirs=lambda x, axis: np.unstack(x, axis=axis),
)


@drawn("pad")
def _pad(d: Draw) -> Arguments:
    shape = d.shape(1, empty=False)
    mode = d.one_of(("constant", "edge", "wrap", "reflect", "symmetric"))
    return (d.array(shape), d.one_of((1, (1, 0), (0, 2)))), {"mode": mode}


rows("tril triu", one(2, k=(-1, 0, 1, 2)))
row("diag", lambda d: ((d.array(d.shape(1, 2)),), d.options(k=(-1, 0, 1))))
row("diagflat", lambda d: ((d.array((d.integer(1, 6),)),), d.options(k=(-1, 0, 1))))
rows("diagonal ndarray.diagonal linalg.diagonal", one(2, 2, offset=(-1, 0, 1)))
row("trim_zeros", lambda d: ((d.array(d.shape(1, 1), values="few"),), {}), "iuf")
row("append", lambda d: ((d.array(d.shape(1, 2)), d.array(d.shape(1, 2))), {}))
rows("zeros_like ones_like", one())
row("full_like", lambda d: ((d.array(d.shape()), scalar(d, "finite")), {}))
row(
    "vander",
    lambda d: ((d.array((d.integer(1, 6),), values="unit"),), d.options(N=(3,), increasing=(True,))),
    "f",
    "ulp",
)


def _cast(d: Draw) -> Arguments:
    return (
        d.array(d.shape(), values="0:100"),
        d.one_of(("float64", "float32", "int32", "uint8", "int64", "bool")),
    ), {}


rows("astype ndarray.astype", _cast, "iuf")
rows("astype", lambda d: ((d.array(d.shape()), "float64"), {}), "biuf")
rows("ndarray.astype", lambda d: ((d.array(d.shape()), "complex128"), {}))
rows("asarray array", one())
rows("ascontiguousarray asanyarray require", one(1))


@drawn("delete")
def _delete(d: Draw) -> Arguments:
    n = d.integer(1, 9)
    return (d.array((n,)), d.one_of((0, -1, [0, n - 1], slice(0, n, 2)))), {}


@drawn("insert")
def _insert(d: Draw) -> Arguments:
    n = d.integer(1, 9)
    return (d.array((n,)), d.integer(0, n), d.array((d.integer(1, 3),))), {}


row(
    "packbits",
    shaped(lambda d, x: ((d.array(x),), d.options(axis=(d.axis(x),), bitorder=("little",))), 1, 2),
    "b",
)
row(
    "unpackbits",
    shaped(lambda d, x: ((d.array(x),), d.options(axis=(d.axis(x),), bitorder=("little",))), 1, 2),
    dtypes=("uint8",),
)
