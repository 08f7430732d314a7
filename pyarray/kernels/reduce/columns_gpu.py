"""Cuts the columns of an array into interleaved pieces, of which threads of a grid reduce one each."""

from __future__ import annotations

from ...array import ndarray

THREADS = 1 << 18  # of all columns: more pieces than that don't pay
LEAST = 32  # elements of a piece


def column_pieces(n: int, outputs: int) -> int:
    """Into how many pieces columns of `n` elements are cut."""
    return max(min(n // LEAST, THREADS // outputs), 1)


def cut_columns(
    x: ndarray,
    sizes: tuple[int, ...],
    x_lead: tuple[int, ...],
    inner: tuple[int, ...],
    steps: tuple[int, ...],
    pieces: int,
) -> tuple[ndarray, ndarray]:
    """`x` as [k..., t, r..., piece, c], and what is left as [k..., r..., piece, c], which a few pieces have.

    `sizes` and `x_lead` are of the kept axes k... and c, `inner` and `steps` of the reduced ones, t and r..., of which
    the first is cut. Of p pieces each has every p-th element, so that neighbouring threads read neighbouring rows,
    however few columns there are.
    """
    (n, *further), (step, *further_steps) = inner, steps
    count = n // pieces
    shape = (*sizes[:-1], count, *further, pieces, sizes[-1])
    source = x._view(0, shape, (*x_lead[:-1], pieces * step, *further_steps, step, x_lead[-1]))
    done = count * pieces
    shape = (*sizes[:-1], *further, n - done, sizes[-1])
    return source, x._view(done * step, shape, (*x_lead[:-1], *further_steps, step, x_lead[-1]))
