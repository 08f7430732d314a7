"""Products, einsum, decompositions, transforms, polynomials."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

import pyarray as pa

from ..draw import Draw
from .base import Arguments, drawn, row, rows, shaped

_FLOATS = ("float32", "float64", "complex64", "complex128")
_REALS = ("float32", "float64")


def _matrices(d: Draw, batch: bool = True) -> tuple[tuple[int, ...], tuple[int, ...]]:
    m, k, n = (d.one_of((0, 1, 2, 3, 5, 8, 17, 33)) for _ in range(3))
    if d.chance(0.03):
        m, k, n = 65, 130, 70
    stack = d.shape(0, 1, empty=False) if batch and d.chance(0.4) else ()
    stack = stack if all(s < 20 for s in stack) else (2,)
    other = d.broadcastable(stack)
    if d.chance(0.3):
        stack, other = other, stack
    return (*stack, m, k), (*other, k, n)


def _sized(make: Callable[[Draw, int], Arguments]) -> Callable[[Draw], Arguments]:
    """What draws the size of an axis that operands share, and then what `make` makes of it."""
    return lambda d: make(d, d.integer(1, 17))


def _imatmul(d: Draw) -> Arguments:
    n = d.integer(1, 9)
    return (d.array((n, n), values="finite", write=True, ours=True), d.array((n, n), values="finite")), {}


def matmul(d: Draw) -> Arguments:
    """Matrices, stacks of them, vectors; now and then `out=`."""
    a, b = _matrices(d)
    if d.chance(0.15):
        a = a[-1:]
    if d.chance(0.15):
        b = b[:-2] + b[-2:-1] if len(b) == 2 else b
    x, y = d.array(a, values="finite"), d.array(b, values="finite")
    if d.chance(0.2) and len(a) > 1 and len(b) > 1:
        shape_of_out = (*np.broadcast_shapes(a[:-2], b[:-2]), a[-2], b[-1])
        return (x, y), {"out": d.array(shape_of_out, None, "finite", write=True, ours=True)}
    return (x, y), {}


row("matmul", matmul, "fc", "square")
row("linalg.matmul", lambda d: (matmul(d)[0], {}), "fc", "square")
rows("matmul", matmul, "iu")
row(
    "ndarray.__matmul__",
    lambda d: (matmul(d)[0], {}),
    "fc",
    "square",
    ours=operator.matmul,
    theirs=operator.matmul,
)
row(
    "ndarray.__rmatmul__",
    lambda d: (matmul(d)[0], {}),
    "f",
    "square",
    ours=lambda x, y: y.__rmatmul__(x),
    theirs=lambda x, y: y.__rmatmul__(x),
)
row(
    "ndarray.__imatmul__",
    _imatmul,
    "f",
    "square",
    ours=operator.imatmul,
    theirs=operator.imatmul,
)


def _dot(d: Draw) -> Arguments:
    a, b = _matrices(d, batch=False)
    if d.chance(0.4):
        a, b = a[-1:], b[:1]
    return (d.array(a, values="finite"), d.array(b, values="finite")), {}


rows("dot ndarray.dot", _dot, "fc", "square")
rows("dot", _dot, "iu")


def _vectors(d: Draw) -> Arguments:
    shape = d.shape(1, 3)
    return (d.array(shape, values="finite"), d.array(shape, values="finite")), {}


def _same_line(d: Draw) -> Arguments:
    n = d.one_of((0, 1, 3, 17, 100, 2000))
    return (d.array((n,), values="finite"), d.array((n,), values="finite")), {}


rows("vecdot linalg.vecdot", _vectors, "fc", "square")
rows("vdot inner", _same_line, "fc", "square")
rows("inner vecdot", _same_line, "iu")
row(
    "inner",
    _sized(
        lambda d, k: (
            (d.array((d.integer(1, 5), k), values="finite"), d.array((d.integer(1, 5), k), values="finite")),
            {},
        )
    ),
    "f",
    "square",
)
rows(
    "outer linalg.outer",
    lambda d: (
        (d.array((d.integer(0, 40),), values="finite"), d.array((d.integer(0, 40),), values="finite")),
        {},
    ),
    "iufc",
    "square",
)
row(
    "kron",
    lambda d: (
        (
            d.array((d.integer(1, 4), d.integer(1, 4)), values="finite"),
            d.array((d.integer(1, 4), d.integer(1, 4)), values="finite"),
        ),
        {},
    ),
    "iuf",
)
row(
    "matvec",
    _sized(lambda d, k: ((d.array((d.integer(1, 9), k), values="finite"), d.array((k,), values="finite")), {})),
    "f",
    "square",
)
row(
    "vecmat",
    _sized(lambda d, k: ((d.array((k,), values="finite"), d.array((k, d.integer(1, 9)), values="finite")), {})),
    "f",
    "square",
)
row(
    "cross",
    lambda d: (
        (d.array((d.integer(1, 5), 3), values="finite"), d.array((d.integer(1, 5), 3)[1:], values="finite")),
        {},
    ),
    "if",
    "square",
)
row(
    "linalg.cross",
    lambda d: ((d.array((3,), values="finite"), d.array((3,), values="finite")), {}),
    "if",
    "square",
)
rows(
    "tensordot linalg.tensordot",
    lambda d: (
        (d.array((2, 3, 4), values="finite"), d.array((3, 4, d.integer(1, 5)), values="finite")),
        {"axes": d.one_of((2, ((1, 2), (0, 1))))},
    ),
    "f",
    "square",
)

_SUMS = {
    "ij,jk->ik": ((3, 4), (4, 5)),
    "i,i->i": ((7,), (7,)),
    "ij,ij->": ((3, 4), (3, 4)),
    "i,j->ij": ((3,), (4,)),
    "ij->ji": ((3, 4),),
    "ii->i": ((4, 4),),
    "ij->j": ((3, 4),),
    "i,i,i->i": ((5,), (5,), (5,)),
    "bij,bjk->bik": ((2, 3, 4), (2, 4, 3)),
    "ij,ij,ij->i": ((3, 4), (3, 4), (3, 4)),
    "ii->": ((5, 5),),
}


@drawn("einsum", "fc", "square")
def _einsum(d: Draw) -> Arguments:
    text = d.one_of(list(_SUMS))
    return (text, *(d.array(s, values="finite") for s in _SUMS[text])), {}


rows(
    "linalg.trace trace ndarray.trace",
    lambda d: ((d.array((d.integer(1, 6), d.integer(1, 6)), values="finite"),), d.options(offset=(1, -1))),
    "f",
    "sum",
)
row("linalg.matrix_transpose", lambda d: ((d.array(d.shape(2)),), {}))

# ---- decompositions: of matrices that are well conditioned, and what doesn't depend on signs


def square(d: Draw) -> Arguments:
    """A matrix with a heavy diagonal, in the values' place: see `_heavy`."""
    n = d.integer(1, 6)
    return (d.array((n, n), values="unit"),), {}


def _heavy(x: Any) -> Any:
    n = x.shape[-1]
    eye = np.eye(n, dtype="float32") * 4
    if isinstance(x, np.ndarray):
        return x + eye.astype(x.dtype)
    return x + pa.asarray(eye, device=x.device).astype(x.dtype)


def _symmetric(x: Any) -> Any:
    x = _heavy(x)
    return x + x.conj().T


def on(name: str, prepare: Callable[[Any], Any], read: Callable[..., Any] = lambda found: found) -> dict[str, Any]:
    """Both sides of a function of a prepared matrix, of whose result `read` is compared."""
    get = operator.attrgetter(name)
    return {
        "ours": lambda x, *rest, **how: read(get(pa)(prepare(x), *rest, **how)),
        "theirs": lambda x, *rest, **how: read(get(np)(prepare(x), *rest, **how)),
    }


for _name in ("inv", "det", "slogdet", "pinv", "matrix_rank", "cond", "svdvals"):
    row(
        f"linalg.{_name}",
        square,
        dtypes=_FLOATS if _name != "cond" else _REALS,
        close="loose",
        **on(f"linalg.{_name}", _heavy),
    )
row("linalg.cholesky", square, dtypes=_FLOATS, close="loose", **on("linalg.cholesky", _symmetric))
row("linalg.eigvalsh", square, dtypes=_FLOATS, close="loose", **on("linalg.eigvalsh", _symmetric))
row(
    "linalg.eigh",
    square,
    dtypes=_REALS,
    close="loose",
    **on("linalg.eigh", _symmetric, lambda found: found[0]),
)
row("linalg.svd", square, dtypes=_FLOATS, close="loose", **on("linalg.svd", _heavy, lambda found: found[1]))
row("linalg.qr", square, dtypes=_REALS, close="loose", **on("linalg.qr", _heavy, lambda found: abs(found[1])))
row(
    "linalg.eigvals",
    square,
    dtypes=_REALS,
    close="loose",
    **on("linalg.eigvals", _symmetric, lambda found: np.sort(np.real(_host(found)))),
)
row(
    "linalg.eig",
    square,
    dtypes=_REALS,
    close="loose",
    **on("linalg.eig", _symmetric, lambda found: np.sort(np.real(_host(found[0])))),
)
row(
    "linalg.matrix_power",
    lambda d: (square(d)[0] + (d.integer(0, 3),), {}),
    dtypes=_FLOATS,
    close="loose",
    **on("linalg.matrix_power", lambda x: x),
)


def _host(x: Any) -> Any:
    return x.get() if hasattr(x, "get") else np.asarray(x)


def _systems(d: Draw) -> Arguments:
    (x,), _ = square(d)
    return (x, d.array((x.shape[0], d.integer(1, 3)), values="finite")), {}


row("linalg.solve", _systems, dtypes=_FLOATS, close="loose", **on("linalg.solve", _heavy))
row(
    "linalg.lstsq",
    _systems,
    dtypes=_REALS,
    close="loose",
    **on("linalg.lstsq", _heavy, lambda found: found[0]),
)
row(
    "linalg.multi_dot",
    lambda d: (
        ([d.array((3, 4), values="unit"), d.array((4, 2), values="unit"), d.array((2, 5), values="unit")],),
        {},
    ),
    "f",
    "square",
)
row(
    "linalg.tensorinv",
    lambda d: ((d.array((4, 4), values="unit"),), {}),
    dtypes=_REALS,
    close="loose",
    **on("linalg.tensorinv", lambda x: _heavy(x).reshape(2, 2, 2, 2)),
)
row(
    "linalg.tensorsolve",
    lambda d: ((d.array((4, 4), values="unit"), d.array((2, 2), values="finite")), {}),
    dtypes=_REALS,
    close="loose",
    **on("linalg.tensorsolve", lambda x: _heavy(x).reshape(2, 2, 2, 2)),
)


@drawn("linalg.norm", "fc", "square")
def _norm(d: Draw) -> Arguments:
    return (d.array(d.shape(1, 2, empty=False), values="finite"),), {}


row(
    "linalg.vector_norm",
    shaped(
        lambda d, x: (
            (d.array(x, values="finite"),),
            {"axis": d.axes(x), "ord": d.one_of((1, 2, float("inf"), 3))},
        ),
        1,
        empty=False,
    ),
    "fc",
    "square",
)
row(
    "linalg.matrix_norm",
    lambda d: (
        (d.array((d.integer(1, 5), d.integer(1, 5)), values="finite"),),
        {"ord": d.one_of(("fro", 1, float("inf")))},
    ),
    dtypes=_FLOATS,
    close="square",
)

# ---- transforms


def _line(d: Draw) -> Arguments:
    shape = d.shape(1, 2, empty=False)
    axis = d.axis(shape)
    return (d.array(shape, values="finite"),), {"axis": axis} | d.options(norm=("ortho", "forward"))


rows("fft.fft fft.ifft", _line, dtypes=_FLOATS, close="square")
rows("fft.rfft fft.ihfft", _line, dtypes=_REALS, close="square")
rows(
    "fft.irfft fft.hfft",
    lambda d: ((d.array((d.integer(2, 3), d.integer(2, 20)), values="finite"),), {}),
    dtypes=("complex64", "complex128"),
    close="square",
)
rows(
    "fft.fft2 fft.ifft2 fft.fftn fft.ifftn",
    lambda d: ((d.array((d.integer(1, 9), d.integer(1, 9)), values="finite"),), {}),
    dtypes=_FLOATS,
    close="square",
)
rows(
    "fft.rfft2 fft.rfftn",
    lambda d: ((d.array((d.integer(1, 9), d.integer(1, 9)), values="finite"),), {}),
    dtypes=_REALS,
    close="square",
)
rows(
    "fft.irfft2 fft.irfftn",
    lambda d: ((d.array((d.integer(2, 9), d.integer(2, 9)), values="finite"),), {}),
    dtypes=("complex64", "complex128"),
    close="square",
)
rows("fft.fftshift fft.ifftshift", lambda d: ((d.array(d.shape(1)),), {}))

# ---- polynomials, convolutions


def _pair(d: Draw) -> Arguments:
    return (
        (d.array((d.integer(1, 7),), values="finite"), d.array((d.integer(1, 9),), values="finite")),
        {},
    )


rows("convolve", lambda d: (_pair(d)[0], d.options(mode=("full", "same", "valid"))), "f", "square")
rows("correlate", lambda d: (_pair(d)[0], d.options(mode=("full", "same", "valid"))), "f", "square")
rows("convolve", _pair, "iu")
rows("polyadd polysub", _pair, "f")
row("polymul", _pair, "f", "square")
row(
    "polyval",
    lambda d: ((d.array((d.integer(1, 5),), values="unit"), d.array(d.shape(), values="unit")), {}),
    "f",
    "sum",
)
rows("polyder polyint", lambda d: ((d.array((d.integer(2, 7),), values="finite"),), {}), "f", "ulp")
