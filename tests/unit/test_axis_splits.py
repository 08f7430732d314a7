"""Digits of a loop's variable: which cut points divide each other, for numbers and for symbols."""

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyarray.fusion.axis_split import common_refinement
from pyarray.lang.delinearization import ONE, Product, Symbol, chain, cut_points

A, B, C, M, N, P = (Product(1, (Symbol(name),)) for name in "ABCMNP")
MORE = Product(1, (Symbol("(M * N + 1)"),))


def numbers(*values):
    return [Product(value) for value in values]


@pytest.mark.parametrize(
    ("extent", "points", "expected"),
    [
        (Product(12), numbers(3), "1 | 3 | 12"),
        (Product(24), numbers(4, 12), "1 | 4 | 12 | 24"),
        (Product(6), numbers(2, 3), None),
        (Product(7), numbers(2), None),
        (M.times(N), [N], "1 | N | M * N"),
        (A.times(B).times(C), [C, B.times(C)], "1 | C | B * C | A * B * C"),
        (MORE, [N], None),
        (N.times(P), [N, P], None),
        (Product(12).times(N), [N, Product(4).times(N)], "1 | N | N * 4 | N * 12"),
        (M.times(N), [M.times(N)], None),
    ],
)
def test_cut_points(extent, points, expected):
    cuts = cut_points(extent, points)
    assert expected == (None if cuts is None else " | ".join(map(str, cuts)))


@given(st.lists(st.integers(1, 6), min_size=2, max_size=4), st.sets(st.integers(2, 36), max_size=3))
def test_as_the_numeric_digits(factors, others):
    extent = math.prod(factors)
    inner = {p for p in others | {math.prod(factors[1:])} if extent % p == 0 and 1 < p < extent}
    cuts = cut_points(Product(extent), numbers(*inner, *others))
    sizes = common_refinement([(extent // p, p) for p in inner]) if inner else None
    if sizes is None:
        assert cuts is None
    else:
        assert cuts is not None
        assert sizes == tuple(b.number // a.number for a, b in reversed(list(itertools.pairwise(cuts))))


@given(st.lists(st.sampled_from([A, B, C, *numbers(2, 3, 5)]), max_size=6))
def test_products_form_a_chain(factors):
    points = [ONE]
    for factor in factors:
        points.append(points[-1].times(factor))
    assert chain(reversed(points)) == tuple(dict.fromkeys(points))
    for low, high in itertools.pairwise(points):
        assert high.divided_by(low).times(low) == high
