"""Keywords of functions that are no reductions: `out` of other types, `order`, `mode`, `axis`, `n`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..draw import Draw
from .base import Arguments, drawn, function, row, rows, shaped
from .elementwise import scalar
from .totals import wider

_FLOATS = ("float32", "float64", "complex64", "complex128")
_REALS = ("float32", "float64")
_STORED = ("bool", "int8", "uint8", "int32", "int64", "float16", "float32", "float64", "complex128")

# ---- out=


def into(count: int, values: str, dtypes: tuple[str, ...] = _STORED) -> Callable[[Draw], Arguments]:
    """`count` operands and an `out` of any of `dtypes`, which may have axes more."""

    def draw(d: Draw) -> Arguments:
        shape = d.shape()
        operands = [d.array(shape if d.chance(0.6) else d.broadcastable(shape), values=values) for _ in range(count)]
        shape_of_out = np.broadcast_shapes(*(x.shape for x in operands))
        shape_of_out = shape if d.chance(0.3) else shape_of_out
        shape_of_out = (2, *shape_of_out) if d.chance(0.1) else shape_of_out
        kind = d.dtype if d.dtype == "bfloat16" else d.one_of(dtypes)
        return tuple(operands), {"out": d.array(shape_of_out, kind, "finite", write=True, ours=True)}

    return draw


rows("add multiply subtract", into(2, "0:9"), "iuf")
rows("maximum minimum fmax", into(2, "0:9"), "biuf", "equal")
rows("less equal logical_and", into(2, "few"), "biuf")
rows("bitwise_and bitwise_xor gcd", into(2, "0:9"), "iu")
rows("divide", into(2, "1:9", ("float64", "complex128", "int64")), "iuf", "ulp")
rows("positive square abs conj", into(1, "0:9"), "iuf")
rows("floor rint trunc sqrt reciprocal", into(1, "1:9"), "f")
rows("isnan isfinite logical_not", into(1, "specials"), "iuf")
rows("exp sin", into(1, "unit", ("float64", "complex128", "int8")), "f", "ulp")
rows("bitwise_count", into(1, "any"), "iu")
rows("sign", into(1, "specials"), "iuf")


@drawn("isposinf isneginf", "f")
def _infinite(d: Draw) -> Arguments:
    shape = d.shape()
    return (d.array(shape, values="specials"),), {"out": d.array(shape, "bool", write=True, ours=True)}


@drawn("round", "if", "ulp")
def _round(d: Draw) -> Arguments:
    shape = d.shape()
    out = d.array(shape, values="finite", write=True, ours=True)
    digits = 0 if d.dtype == "bfloat16" else d.integer(-1, 2)  # as of round without out=
    return (d.array(shape, values="finite", ours=True), digits), {"out": out}


@drawn("take ndarray.take")
def _take(d: Draw) -> Arguments:
    shape = d.shape(1, empty=False)
    axis = d.axis(shape) if d.chance(0.7) else None
    n = math.prod(shape) if axis is None else shape[axis]
    chosen, mode = d.shape(0, 2), d.one_of(("wrap", "clip"))
    options: dict[str, Any] = {"axis": axis, "mode": mode}
    if d.chance(0.4):
        shape_of_out = chosen if axis is None else (*shape[:axis], *chosen, *shape[axis % len(shape) + 1 :])
        options["out"] = d.array(shape_of_out, values="finite", write=True, ours=True)
    return (d.array(shape, ours=True), d.array(chosen, "int64", f"{-2 * n}:{2 * n}")), options


@drawn("put ndarray.put")
def _put(d: Draw) -> Arguments:
    shape = d.shape(1, empty=False)
    n = math.prod(shape)
    # one place: of those that come twice the last one counts, which differs between modes
    index = [d.integer(-2 * n, 2 * n)]
    return (d.array(shape, write=True, ours=True), index, d.array((1,))), {"mode": d.one_of(("wrap", "clip"))}


@drawn("choose")
def _choose(d: Draw) -> Arguments:
    shape = d.shape(1)
    choices = [d.array(d.broadcastable(shape)) for _ in range(3)]
    return (d.array(shape, "int64", "-4:7"), choices), {"mode": d.one_of(("wrap", "clip"))}


@drawn("ravel_multi_index", "i")
def _multi_index(d: Draw) -> Arguments:
    shape = d.shape(1, 2)
    rest = tuple(d.array(shape, "int64", "-5:9") for _ in range(2))
    mode = d.one_of(("wrap", "clip", ("wrap", "clip")))
    return (rest, (3, 4)), {"mode": mode} | d.options(order=("C", "F"))


row(
    "unravel_index",
    lambda d: ((d.array(d.shape(0, 2), "int64", "0:24"), (2, 3, 4)), {"order": d.one_of(("C", "F"))}),
    "i",
)

# ---- order=

ORDERS = ("C", "F", "A", "K")


def ordered(name: str, orders: tuple[str, ...] = ORDERS, most: int = 3) -> dict[str, Any]:
    """A call with an order, of whose result the strides are compared where they mean anything."""

    def called(library: Any) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            result = function(library, name)(*args, **options)
            steps = [step // result.itemsize for step in result.strides]
            return result, steps if result.size and 1 not in result.shape else []

        return call

    import pyarray as pa

    return {"ours": called(pa), "theirs": called(np)}


for _name in ("copy", "ndarray.copy", "ravel", "ndarray.ravel", "ndarray.flatten"):
    row(
        _name,
        lambda d: ((d.array(d.shape(), ours=True),), {"order": d.one_of(ORDERS)}),
        **(ordered(_name) if "copy" in _name else {}),
    )
for _name in ("zeros_like", "ones_like"):
    row(_name, lambda d: ((d.array(d.shape()),), {"order": d.one_of(ORDERS)}), **ordered(_name))


@drawn("reshape ndarray.reshape")
def _reshape(d: Draw) -> Arguments:
    shape = d.shape(empty=False)
    size = int(np.prod(shape))
    target = d.one_of([(-1,), (size,), (size, 1), *[(n, size // n) for n in (2, 3) if not size % n], shape[::-1]])
    return (d.array(shape, ours=True), target), {"order": d.one_of("CFA")}


@drawn("full_like", "iuf")
def _full_like(d: Draw) -> Arguments:
    return (d.array(d.shape()), 3), d.options(dtype=("float64", "int16"), shape=((2, 3), 4), order=("C",))


# ---- axis=, n= and their like

row("squeeze", shaped(lambda d, s: ((d.array((*s, 1)),), {"axis": d.one_of((-1, len(s), (-1,)))}), most=2))
row("transpose", shaped(lambda d, s: ((d.array(s), tuple(int(k) for k in d.rng.permutation(len(s)))), {})))
row(
    "rot90",
    lambda d: ((d.array(d.shape(3)),), {"k": d.integer(-1, 3), "axes": d.one_of(((0, 1), (2, 0), (1, -1)))}),
)
row("rollaxis", shaped(lambda d, s: ((d.array(s), d.axis(s), d.integer(0, len(s))), {}), 1))
row("roll", shaped(lambda d, s: ((d.array(s), (2, -1)), {"axis": (d.axis(s), d.axis(s))}), 1))
row(
    "trim_zeros",
    lambda d: ((d.array(d.shape(1, 1), values="few"),), {"trim": d.one_of(("f", "b", "fb"))}),
    "iuf",
)
row(
    "nan_to_num",
    lambda d: ((d.array(d.shape(1), write=True, ours=True),), {"copy": False}),
    dtypes=("float16", "float32", "float64"),
)
row("array_equal", lambda d: ((d.array((2,), values="specials"), d.array((2,), values="specials")),
                              d.options(equal_nan=(True,))), "f")  # fmt: skip
row(
    "fill_diagonal",
    lambda d: ((d.array((d.integer(2, 9), 2), write=True, ours=True), scalar(d, "finite"), True), {}),
)
row("split", lambda d: ((d.array((2, 6)), d.one_of((2, 3, [1, 4], [2, 2, 9]))), {"axis": 1}))
row("array_split", shaped(lambda d, s: ((d.array(s), d.integer(1, 4)), {"axis": d.axis(s)}), 1))
row(
    "unwrap",
    shaped(
        lambda d, s: (
            (d.array(s, values="few" if d.dtype == "bfloat16" else "finite"),),
            {"axis": d.axis(s), "period": 2.0},
        ),
        1,
    ),
    "f",
    "sum",
)
row(
    "unpackbits",
    lambda d: ((d.array((d.integer(0, 9),)),), d.options(count=(0, 3, 5, -1), bitorder=("little",))),
    dtypes=("uint8",),
)
row("concat", lambda d: (([d.array((3,)), d.array((2,))],), {"dtype": wider(d)}), "iu")
row("select", shaped(lambda d, s: (([d.array(s, "bool")], [d.array(s)], scalar(d, "finite")), {}), 1))
row(
    "vecdot",
    lambda d: ((d.array((3, 4), values="finite"), d.array((3, 4), values="finite")), {"axis": 0}),
    "f",
    "square",
)


@drawn("insert")
def _insert(d: Draw) -> Arguments:
    shape = d.shape(1, 3, empty=False)
    axis = d.axis(shape)
    n = shape[axis]
    places = d.one_of((d.integer(-n, n), [d.integer(0, n), d.integer(0, n)], slice(0, n, 2)))
    return (d.array(shape), places, scalar(d, "finite")), {"axis": axis}


@drawn("delete")
def _delete(d: Draw) -> Arguments:
    shape = d.shape(1, 3, empty=False)
    axis = d.axis(shape)
    n = shape[axis]
    places = d.one_of((d.integer(-n, n - 1), [d.integer(0, n - 1), d.integer(-n, n - 1)], slice(None, None, -2)))
    return (d.array(shape), places), {"axis": axis}


@drawn("append")
def _append(d: Draw) -> Arguments:
    shape = d.shape(1)
    return (d.array(shape), d.array(shape)), {"axis": d.axis(shape)}


@drawn("diff", "iuf", "sum")
def _diff(d: Draw) -> Arguments:
    shape = d.shape(1)
    ends = {name: d.one_of((1, d.array(shape, values="finite"))) for name in ("prepend", "append") if d.chance(0.6)}
    return (d.array(shape, values="finite"),), {"axis": -1, "n": d.integer(0, 3)} | ends


@drawn("ediff1d", "if", "sum")
def _ediff1d(d: Draw) -> Arguments:
    ends = {name: d.array((2,), values="finite") for name in ("to_begin", "to_end") if d.chance(0.6)}
    return (d.array(d.shape(), values="finite"),), ends


@drawn("gradient", "f", "sum")
def _gradient(d: Draw) -> Arguments:
    n = d.integer(3, 9)
    spacing = d.one_of((0.5, d.array((n,), values="0:900", sort=True)))
    steps = spacing if isinstance(spacing, float) else 2.0
    return (d.array((n, 4), values="finite"), steps), {"axis": 0, "edge_order": d.one_of((1, 2))}


@drawn("trapezoid", "f", "square")
def _trapezoid(d: Draw) -> Arguments:
    n = d.integer(1, 9)
    return (d.array((2, n), values="finite"),), {"x": d.array((n,), values="finite")}


@drawn("interp", dtypes=("float64",), close="square")
def _interp(d: Draw) -> Arguments:
    n = d.integer(2, 9)
    options = d.options(left=(-1.0,), right=(7.0,))
    if d.chance(0.3):
        options = {"period": 10.0}
    xp = np.sort(d.rng.choice(100, n, replace=False) / 10).tolist()
    return (d.array(d.shape(), values="finite"), xp, d.array((n,), values="finite")), options


# ---- matrices, transforms


@drawn("trace linalg.trace", "iuf", "sum")
def _trace(d: Draw) -> Arguments:
    return (d.array(d.shape(2, 3), values="finite"),), d.options(offset=(-1, 1))


@drawn("trace diagonal", "iuf", "sum")
def _axes(d: Draw) -> Arguments:
    first, second = (int(k) for k in d.rng.permutation(3)[:2])
    return (d.array(d.shape(3), values="finite"), d.integer(-1, 1), first, second - 3), {}


@drawn("linalg.norm", "fc", "square")
def _norm(d: Draw) -> Arguments:
    shape = d.shape(2, 3, empty=False)
    axis = d.axis(shape)
    order = d.one_of((None, 1, 2, 3, math.inf, -math.inf, 0))
    return (d.array(shape, values="finite"),), {"ord": order, "axis": axis} | d.options(keepdims=(True,))


@drawn("linalg.norm", "f", "square")
def _matrix_norm(d: Draw) -> Arguments:
    shape = tuple(d.integer(1, 5) for _ in range(3))
    order = d.one_of((None, "fro", 1, -1, math.inf, -math.inf))
    axis = d.one_of(((0, 1), (2, 0), (-1, 1)))
    return (d.array(shape, values="finite"),), {"ord": order, "axis": axis} | d.options(keepdims=(True,))


@drawn("linalg.matrix_norm linalg.vector_norm", dtypes=_REALS, close="square")
def _kept_norm(d: Draw) -> Arguments:
    return (d.array((2, 3), values="finite"),), {"keepdims": True}


def _transform(least: int, inverse: bool) -> Callable[[Draw], Arguments]:
    def draw(d: Draw) -> Arguments:
        shape = d.shape(1, 2, empty=False)
        axis = d.axis(shape)
        options = {"n": d.integer(least, 12), "axis": axis} | d.options(norm=("ortho", "forward", "backward"))
        return (d.array(shape, values="finite"),), options

    return draw


rows("fft.fft fft.ifft", _transform(1, False), dtypes=_FLOATS, close="square")
rows("fft.rfft fft.ihfft", _transform(1, False), dtypes=_REALS, close="square")
rows("fft.irfft fft.hfft", _transform(1, True), dtypes=("complex64", "complex128"), close="square")


@drawn("fft.fft2 fft.ifft2 fft.fftn fft.ifftn", dtypes=_FLOATS, close="square")
def _several(d: Draw) -> Arguments:
    shape = tuple(d.integer(1, 6) for _ in range(3))
    options = {"axes": d.one_of(((0, 1), (-1, 0), (1, 2)))} | d.options(norm=("ortho",))
    if d.chance(0.5):
        options["s"] = (d.integer(1, 7), d.integer(1, 7))
    return (d.array(shape, values="finite"),), options


row("fft.fftshift", shaped(lambda d, s: ((d.array(s),), {"axes": d.axes(s)}), 1))
row("fft.ifftshift", shaped(lambda d, s: ((d.array(s),), {"axes": d.axes(s)}), 1))
row("polyder", lambda d: ((d.array((d.integer(1, 7),), values="finite"), d.integer(0, 3)), {}), "f", "ulp")
row("polyint", lambda d: ((d.array((d.integer(1, 7),), values="finite"), d.integer(0, 3)), {}), "f", "ulp")
