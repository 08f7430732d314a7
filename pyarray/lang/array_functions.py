"""Functions of local arrays, in the kernel language. `infer_array_functions` calls them with shapes that fit and with
elements of one type; on the host they are functions of NumPy arrays.

Reductions take the elements as (outer, n, inner) and reduce n, by a function of NumPy that combines two. Short loops
are unrolled when they are inferred. Rows are swapped one pair at a time, by selection, so that every index is then a
constant: the elements stay in registers, and loops around vectorise."""

from __future__ import annotations

from typing import Any

import numpy as np


def reduce(a: Any, start: Any, combine: Any) -> Any:
    """`start` None: from the first element."""
    out = np.zeros((a.shape[0], a.shape[2]), dtype=a.dtype if start is None else start.dtype)
    for i in range(a.shape[0]):
        for j in range(a.shape[2]):
            total = a[i, 0, j] if start is None else start
            for k in range(1 if start is None else 0, a.shape[1]):
                total = combine(total, a[i, k, j])
            out[i, j] = total
    return out


def find(a: Any, is_before: Any) -> Any:
    """Where the first element in that order is; the first NaN, if there is one."""
    out = np.zeros((a.shape[0], a.shape[2]), dtype=np.int64)
    for i in range(a.shape[0]):
        for j in range(a.shape[2]):
            first, at = a[i, 0, j], 0
            for k in range(1, a.shape[1]):
                x = a[i, k, j]
                if is_before(x, first) or (x != x and first == first):
                    first, at = x, k
            out[i, j] = at
    return out


def matmul(a: Any, b: Any, zero: Any) -> Any:
    out = np.zeros((a.shape[0], b.shape[1]), dtype=zero.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            total = zero
            for k in range(a.shape[1]):
                total += a[i, k] * b[k, j]
            out[i, j] = total
    return out


def cross(a: Any, b: Any) -> Any:
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def norm(a: Any, zero: Any) -> Any:
    total = zero
    for k in range(a.shape[0]):
        total += a[k].real * a[k].real + a[k].imag * a[k].imag
    return np.sqrt(total)


def norm_of_reals(a: Any, zero: Any) -> Any:
    total = zero
    for k in range(a.shape[0]):
        total += a[k] * a[k]
    return np.sqrt(total)


def trace(a: Any, zero: Any) -> Any:
    total = zero
    for k in range(min(a.shape[0], a.shape[1])):
        total += a[k, k]
    return total


def det(a: Any, one: Any) -> Any:
    """By elimination with partial pivoting, as LAPACK does it."""
    m = a.copy()
    result = one
    for c in range(m.shape[0]):
        for r in range(c + 1, m.shape[0]):
            larger = abs(m[r, c]) > abs(m[c, c])
            for k in range(c, m.shape[0]):
                upper, lower = m[c, k], m[r, k]
                m[c, k], m[r, k] = lower if larger else upper, upper if larger else lower
            result = -result if larger else result
        result *= m[c, c]
        pivot = m[c, c] if m[c, c] != 0 else one  # a column of zeros stays as it is
        for r in range(c + 1, m.shape[0]):
            factor = m[r, c] / pivot
            for k in range(c + 1, m.shape[0]):
                m[r, k] -= factor * m[c, k]
    return result


def solve(a: Any, b: Any) -> Any:
    """The matrix x with a @ x = b; infinities and NaN where `a` is singular."""
    m = a.copy()
    x = b.copy()
    for c in range(m.shape[0]):
        for r in range(c + 1, m.shape[0]):
            larger = abs(m[r, c]) > abs(m[c, c])
            for k in range(c, m.shape[0]):
                upper, lower = m[c, k], m[r, k]
                m[c, k], m[r, k] = lower if larger else upper, upper if larger else lower
            for k in range(x.shape[1]):
                upper, lower = x[c, k], x[r, k]
                x[c, k], x[r, k] = lower if larger else upper, upper if larger else lower
        for r in range(c + 1, m.shape[0]):
            factor = m[r, c] / m[c, c]
            for k in range(c + 1, m.shape[0]):
                m[r, k] -= factor * m[c, k]
            for k in range(x.shape[1]):
                x[r, k] -= factor * x[c, k]
    for c in range(m.shape[0] - 1, -1, -1):
        for k in range(x.shape[1]):
            value = x[c, k]
            for r in range(c + 1, m.shape[0]):
                value -= m[c, r] * x[r, k]
            x[c, k] = value / m[c, c]
    return x
