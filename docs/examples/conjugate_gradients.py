"""A sparse system solved by conjugate gradients (Hestenes and Stiefel, 1952): products of compressed rows with vectors.

The matrix-vector product is one iteration per row (Bell and Garland, "Implementing sparse matrix-vector multiplication
on throughput-oriented processors", SC 2009); inner products are reductions of parallel loops. Warp has a solver
like this one.

    python docs/examples/conjugate_gradients.py
"""

import argparse
from dataclasses import dataclass

import numpy as np

import pyarray as pa


@dataclass
class Matrix:
    """Row i has values[start[i]:start[i + 1]], in columns of the same places."""

    start: pa.BufferView[pa.int64]
    columns: pa.BufferView[pa.int32]
    values: pa.BufferView[pa.float64]


@pa.func
def row_times(matrix, i, x):
    total = 0.0
    for k in range(matrix.start[i], matrix.start[i + 1]):
        total += matrix.values[k] * x[matrix.columns[k]]
    return total


@pa.kernel
def multiply(out, matrix: Matrix, x, product):
    """`out` = A x, and its inner product with x."""
    total = 0.0
    for i in range(out.size):
        out[i] = row_times(matrix, i, x)
        total += x[i] * out[i]
    product[0] = total


@pa.kernel
def descend(x, residual, direction, along, square, product, new_square):
    """Go along the direction as far as the energy sinks."""
    alpha = square[0] / product[0]
    total = 0.0
    for i in range(x.size):
        x[i] += alpha * direction[i]
        residual[i] -= alpha * along[i]
        total += residual[i] ** 2
    new_square[0] = total


@pa.kernel
def turn(direction, residual, square, new_square):
    beta = new_square[0] / square[0]
    for i in range(direction.size):
        direction[i] = residual[i] + beta * direction[i]
    square[0] = new_square[0]


def solve(matrix, b, tolerance, device=None):
    """x with A x = b for a symmetric positive matrix, and the number of steps. Numbers stay on the device; the host
    looks at the residual now and then."""
    matrix = Matrix(*(pa.asarray(part, device=device) for part in (matrix.start, matrix.columns, matrix.values)))
    residual, direction = (pa.asarray(b, copy=True, device=device) for _ in range(2))
    x, along = pa.zeros_like(residual), pa.empty_like(residual)
    square, product, new_square = pa.sum(residual**2).reshape(1), pa.empty(1, device=device), pa.empty(1, device=device)
    limit, steps = tolerance**2 * float(square[0]), 0
    while float(square[0]) > limit:
        for _ in range(10):
            multiply(along, matrix, direction, product)
            descend(x, residual, direction, along, square, product, new_square)
            turn(direction, residual, square, new_square)
        steps += 10
    return pa.asnumpy(x), steps


def reference(matrix, b):
    dense = np.zeros((len(b), len(b)))
    rows = np.repeat(np.arange(len(b)), np.diff(matrix.start))
    dense[rows, matrix.columns] = matrix.values
    return np.linalg.solve(dense, b)


def laplacian(side):
    """Five-point differences on a square, with what keeps it positive."""
    i, j = np.divmod(np.arange(side * side), side)
    rows, columns, values = [i * side + j], [i * side + j], [np.full(side * side, 4.01)]
    for di, dj in ((0, 1), (1, 0), (0, -1), (-1, 0)):
        inside = (i + di >= 0) & (i + di < side) & (j + dj >= 0) & (j + dj < side)
        rows.append((i * side + j)[inside])
        columns.append(((i + di) * side + j + dj)[inside])
        values.append(np.full(inside.sum(), -1.0))
    row, column, value = map(np.concatenate, (rows, columns, values))
    order = np.lexsort((column, row))
    start = np.searchsorted(row[order], np.arange(side * side + 1))
    return Matrix(start.astype(np.int64), column[order].astype(np.int32), value[order])


def check(device=None):
    matrix, b = laplacian(16), np.random.default_rng(1).normal(size=256)
    x, steps = solve(matrix, b, 1e-10, device)
    np.testing.assert_allclose(x, reference(matrix, b), atol=1e-8)
    assert steps <= 200


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", help="cpu, cuda:0 …")
    parser.add_argument("--side", type=int, default=200)
    options = parser.parse_args()
    check(options.device)
    _, steps = solve(laplacian(options.side), np.ones(options.side**2), 1e-8, options.device)
    print(f"{options.side**2} unknowns took {steps} steps")


if __name__ == "__main__":
    main()
