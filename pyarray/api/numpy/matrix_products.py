"""Products of a matrix and vectors along axes, of many matrices, and equations of tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...array import ndarray
from ...array_convert import asarray
from ...typing import ArrayLike
from ..core.ufunc import as_array_like, as_operands
from ..standard.elementwise import conj
from ..standard.linear_algebra import matmul
from ..standard.manipulation import moveaxis
from ..standard.statistical import as_operand
from .decompositions import inv, solve

__all__ = ["matvec", "multi_dot", "tensorinv", "tensorsolve", "vecmat"]


def _operands(name: str, x1: Any, x2: Any, least: tuple[int, int]) -> list[ndarray]:
    operands = [as_operand(name, x, "biufc") for x in as_operands(name, (x1, x2))]
    for x, ndim in zip(operands, least, strict=True):
        if x.ndim < ndim:
            raise ValueError(
                f"{name}() needs {least[0]} and {least[1]} axes or more, got shapes {operands[0].shape} and "
                f"{operands[1].shape}"
            )
    if operands[0].shape[-1] != operands[1].shape[-least[1]]:
        raise ValueError(f"{name}(): shapes {operands[0].shape} and {operands[1].shape} don't fit")
    return operands


def matvec(x1: ArrayLike, x2: ArrayLike, /) -> ndarray:
    """Products of the matrices in the last two axes of `x1` with the vectors in the last one of `x2`; the
    other axes broadcast. Raises as `matmul`.

    >>> pa.matvec(pa.asarray([[1, 2], [3, 4]]), pa.asarray([[1, 0], [0, 1]])).tolist()
    [[1, 3], [2, 4]]
    """
    a, b = _operands("matvec", x1, x2, (2, 1))
    return matmul(a, b[..., None])[..., 0]


def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> ndarray:
    """Products of the conjugated vectors in the last axis of `x1` with the matrices in the last two of `x2`;
    the other axes broadcast. Raises as `matmul`.

    >>> pa.vecmat(pa.asarray([1, 1]), pa.asarray([[1, 2], [3, 4]])).tolist()
    [4, 6]
    """
    a, b = _operands("vecmat", x1, x2, (1, 2))
    left = conj(a) if a._dtype.kind == "c" else a
    return matmul(left[..., None, :], b)[..., 0, :]


def multi_dot(arrays: Sequence[Any], /, *, out: ndarray | None = None) -> ndarray:
    """The product of two or more matrices, in the order that takes the fewest multiplications; the first and
    the last may be 1-D. Raises `ValueError` for shapes that don't fit and fewer matrices.

    >>> pa.linalg.multi_dot([pa.ones((2, 9)), pa.ones((9, 9)), pa.ones(9)]).tolist()
    [81.0, 81.0]
    """
    matrices: list[Any] = [as_operand("multi_dot", x, "biufc") for x in as_operands("multi_dot", arrays)]
    if len(matrices) < 2:
        raise ValueError(f"multi_dot() takes two matrices or more, got {len(matrices)}")
    for k, x in enumerate(matrices):
        ends = (1, 2) if k in (0, len(matrices) - 1) else (2,)
        if x.ndim not in ends:
            raise ValueError(f"multi_dot(): array {k} has shape {x.shape}; it takes {ends[0]}-D or 2-D ones")
    row, column = matrices[0].ndim == 1, matrices[-1].ndim == 1
    matrices[0] = matrices[0][None, :] if row else matrices[0]
    matrices[-1] = matrices[-1][:, None] if column else matrices[-1]
    result: Any = _product(
        matrices, _cuts([x.shape[0] for x in matrices] + [matrices[-1].shape[1]]), 0, len(matrices) - 1
    )
    result = result[(0,) * row + (...,) + (0,) * column]
    if out is None:
        return result
    out[...] = result
    return out


def _cuts(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Behind which matrix a run of them is cut in two, for the fewest multiplications."""
    count = len(sizes) - 1
    cost = {(k, k): 0 for k in range(count)}
    cuts: dict[tuple[int, int], int] = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            costs = [(cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)]
            cost[i, j], cuts[i, j] = min(costs)
    return cuts


def _product(matrices: list[ndarray], cuts: dict[tuple[int, int], int], i: int, j: int) -> ndarray:
    if i == j:
        return matrices[i]
    k = cuts[i, j]
    return matmul(_product(matrices, cuts, i, k), _product(matrices, cuts, k + 1, j))


def tensorinv(a: ArrayLike, /, ind: int = 2) -> ndarray:
    """The inverse of `tensordot(a, ., ind)`: `a`'s first `ind` axes and the others have as many elements.

    Raises `LinAlgError` for others and singular ones, `ValueError` for `ind` of 0 or less.

    >>> pa.linalg.tensorinv(pa.eye(6).reshape(2, 3, 6)).shape
    (6, 2, 3)
    """
    x = asarray(a)
    if ind <= 0:
        raise ValueError(f"tensorinv(): ind is 1 or more, got {ind}")
    shape = x.shape[ind:] + x.shape[:ind]
    return inv(x.reshape(math.prod(x.shape[:ind]), -1)).reshape(shape)


def tensorsolve(a: ArrayLike, b: ArrayLike, /, axes: Sequence[int] | None = None) -> ndarray:
    """x with `tensordot(a, x, x.ndim) == b`; the axes `axes` of `a` are moved to its end first. Raises
    `LinAlgError` where `a` is not square in that sense, or singular.

    >>> pa.linalg.tensorsolve(pa.eye(6).reshape(2, 3, 6), pa.ones((2, 3))).shape
    (6,)
    """
    left, right = as_array_like(a, b)
    if axes is not None:
        left = moveaxis(left, tuple(axes), tuple(range(left.ndim - len(axes), left.ndim)))
    shape = left.shape[right.ndim :]
    matrix = left.reshape(-1, math.prod(shape))
    return solve(matrix, right.reshape(right.size)).reshape(shape)
