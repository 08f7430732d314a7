"""Columns that threads of a grid reduce, a piece of one each."""

from __future__ import annotations

from ...array import ndarray

THREADS = 1 << 18  # of all columns: more pieces than that don't pay
LEAST = 32  # elements of a piece


def column_pieces(n: int, outputs: int) -> int:
    """Into how many pieces columns of `n` elements are cut."""
    return max(min(n // LEAST, THREADS // outputs), 1)


def cut_columns(
    x: ndarray, sizes: tuple[int, ...], x_lead: tuple[int, ...], column: tuple[int, int], pieces: int
) -> tuple[ndarray, ndarray]:
    """`x` as [k..., t, piece, c], and its last elements as [k..., piece, c], of which a few pieces have one.

    `sizes` and `x_lead` are of the kept axes k... and c, `column` has the elements of a column and the step between
    them. Of p pieces each has every p-th element, so that neighbouring threads read neighbouring rows, however few
    columns there are.
    """
    (n, step), lead, width = column, sizes[:-1], sizes[-1]
    count = n // pieces
    source = x._view(0, (*lead, count, pieces, width), (*x_lead[:-1], pieces * step, step, x_lead[-1]))
    done = count * pieces
    return source, x._view(done * step, (*lead, n - done, width), (*x_lead[:-1], step, x_lead[-1]))
