"""The array API's extension `linalg`, and NumPy's names that go with it.

What is a product or a norm runs on the arrays' device. Decompositions are LAPACK's, as NumPy has it, on the
memory of CPU arrays, and cuSOLVER's and cuBLAS's or hipSOLVER's and hipBLAS's on GPUs, on the current stream;
what says whether a matrix is singular is read then, for which the host waits.

>>> import pyarray as pa
>>> pa.linalg.solve(pa.asarray([[2.0, 0.0], [0.0, 4.0]]), pa.asarray([2.0, 2.0])).tolist()
[1.0, 0.5]
"""

from __future__ import annotations

from .api.numpy import products
from .api.numpy.decompositions import *  # noqa: F403
from .api.numpy.decompositions import __all__ as _decompositions
from .api.numpy.einsum import tensordot as tensordot
from .api.numpy.einsum import vecdot as vecdot
from .api.numpy.matrix_products import multi_dot as multi_dot
from .api.numpy.matrix_products import tensorinv as tensorinv
from .api.numpy.matrix_products import tensorsolve as tensorsolve
from .api.numpy.norms import *  # noqa: F403
from .api.numpy.norms import __all__ as _norms
from .api.numpy.products import cross as cross
from .api.standard.linear_algebra import matmul as matmul
from .api.standard.linear_algebra import matrix_transpose as matrix_transpose
from .array import ndarray
from .typing import ArrayLike, DTypeLike

__all__ = [
    *_decompositions, *_norms, "cross", "diagonal", "matmul", "matrix_transpose", "multi_dot", "outer",
    "tensordot", "tensorinv", "tensorsolve", "trace", "vecdot",
]  # fmt: skip


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> ndarray:
    """The diagonal `offset` to the right of the main one of the matrices in the last two axes, as a read-only
    view. Raises `ValueError` for fewer than 2 dimensions.

    >>> pa.linalg.diagonal(pa.asarray([[1, 2], [3, 4]]), offset=1).tolist()
    [2]
    """
    return products.diagonal(x, offset, -2, -1)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike = None) -> ndarray:
    """The sum of `diagonal`; integers are summed in 64 bits unless a `dtype` is given.

    >>> pa.linalg.trace(pa.asarray([[1, 2], [3, 4]])).item()
    5
    """
    return products.trace(x, offset, -2, -1, dtype)


def outer(x1: ArrayLike, x2: ArrayLike, /) -> ndarray:
    """The products of each element of the vector `x1` with each of `x2`. Raises `ValueError` for other ranks.

    >>> pa.linalg.outer(pa.asarray([1, 2]), pa.asarray([3, 4])).tolist()
    [[3, 4], [6, 8]]
    """
    for x in (x1, x2):
        if isinstance(shape := getattr(x, "shape", None), tuple) and len(shape) != 1:
            raise ValueError(f"linalg.outer() takes vectors, got shape {shape}; pyarray.outer flattens")
    return products.outer(x1, x2)
