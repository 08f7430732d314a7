"""`pa.fuse` of views that cut an axis in ways that don't fit: divisions of the index, or copies."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_tools import on
from strategies import examples

import pyarray as pa
from pyarray.fusion import fused_launch

# what two operands are cut into, and their common shape
CUTS = [
    ((4, 6), (3, 8), (24,)),
    ((40, 60), (48, 50), (2400,)),
    ((5, 40, 60), (5, 48, 50), (5, 2400)),
    ((4, 6, 1, 6, 35), (3, 8, 1, 14, 15), (24, 1, 210)),
    ((2, 3, 5, 7), (5, 42), (210,)),
]


def drawn(shape, start=0):
    """Small integers: every order of a sum gives the same."""
    return (np.arange(start, start + np.prod(shape)) % 7).astype(np.float64).reshape(shape)


def turned(device, x, order=None):
    """The same values on the device, with the axes in memory in this order; the first one fastest."""
    order = range(x.ndim)[::-1] if order is None else order
    return on(device, np.ascontiguousarray(x.transpose(order))).transpose(*np.argsort(order))


@pytest.fixture(params=[True, False], ids=["divided", "copied"])
def chosen(request, monkeypatch):
    """What is chosen, whatever it costs."""
    monkeypatch.setattr(fused_launch, "divides_cheaply", lambda *given: request.param)
    monkeypatch.setattr(fused_launch, "divides_rarely", lambda s, axes, *rest: request.param and bool(axes))
    return request.param


@pytest.mark.parametrize("cuts", CUTS, ids=str)
def test_elementwise(device, chosen, cuts):
    *shapes, out = cuts
    x, y = (drawn(s, k) for k, s in enumerate(shapes))
    row = np.arange(out[-1]).astype(np.float32)
    fused = pa.fuse(lambda x, y, row: (x.reshape(out) * 2 - y.reshape(out), y.reshape(out) + row))
    want = x.reshape(out) * 2 - y.reshape(out), y.reshape(out) + row
    there = [turned(device, x), turned(device, y), on(device, row)]
    for _ in range(2):
        for got, expected in zip(fused(*there), want, strict=True):
            np.testing.assert_array_equal(pa.asnumpy(got), expected)
    text = fused.explain(*there)
    says = {True: "found by divisions of the index", False: "divisions of the index would take longer"}
    assert says[chosen] in text


@pytest.mark.parametrize("cuts", CUTS[2:4], ids=str)
def test_reductions(device, chosen, cuts):
    *shapes, out = cuts
    x, y = (drawn(s, k) for k, s in enumerate(shapes))
    there = [turned(device, x), turned(device, y)]
    both = x.reshape(out) * 2 - y.reshape(out)
    for axes in ((), (0,), (len(out) - 1,), tuple(range(len(out)))):
        fused = pa.fuse(lambda x, y, axes=axes: pa.sum(x.reshape(out) * 2 - y.reshape(out), axis=axes))
        np.testing.assert_array_equal(pa.asnumpy(fused(*there)), both.sum(axes))
        assert "not fused" not in fused.explain(*there)
    greatest = pa.fuse(lambda x, y: pa.max(x.reshape(out) * 2 - y.reshape(out), axis=0, keepdims=True))
    np.testing.assert_array_equal(pa.asnumpy(greatest(*there)), both.max(0, keepdims=True))


def factors(draw, n):
    """Sizes whose product is n."""
    sizes = []
    while n > 1 and draw(st.booleans()):
        divisors = [d for d in range(2, n + 1) if n % d == 0]
        sizes.append(draw(st.sampled_from(divisors)))
        n //= sizes[-1]
    return [*sizes, n] if n > 1 else sizes or [1]


@given(st.data())
@examples(3)
def test_drawn_cuts(device, chosen, data):
    n, m = data.draw(st.sampled_from([12, 24, 210, 360])), data.draw(st.sampled_from([1, 2, 5]))
    values, there, how = [], [], []
    for k in range(data.draw(st.integers(2, 3))):
        shape = [*factors(data.draw, n), m]
        step = data.draw(st.sampled_from([1, -1]))
        values.append(drawn(shape, k)[..., ::step])
        there.append(turned(device, drawn(shape, k), data.draw(st.permutations(range(len(shape)))))[..., ::step])
        how.append(data.draw(st.sampled_from(["flat", "matrix", "turned"])))

    def compute(*arrays):
        total = 0
        for k, (x, form) in enumerate(zip(arrays, how, strict=True)):
            seen = x.reshape(n * m) if form == "flat" else x.reshape(n, m)
            seen = seen.T.reshape(n * m) if form == "turned" else seen.reshape(n * m)
            total = seen * (k + 1) + total
        return total

    want = compute(*values)
    fused, summed = pa.fuse(compute), pa.fuse(lambda *arrays: pa.sum(compute(*arrays).reshape(m, n), axis=1))
    np.testing.assert_array_equal(pa.asnumpy(fused(*there)), want)
    np.testing.assert_array_equal(pa.asnumpy(summed(*there)), want.reshape(m, n).sum(1))


def test_the_choice():
    """Long rows of the innermost loop, and none of a reduction's innermost loop."""

    def explained(function, *shapes):
        return pa.fuse(function).explain(*(turned("cpu", drawn(s)) for s in shapes))

    def both(x, y):
        return x.reshape(-1) + y.reshape(-1)

    divided = "found by divisions of the index, since axes are cut in ways that don't fit: x, y"
    copied = "since axes are cut in ways that don't fit: divisions of the index would take longer: x, y"
    assert divided in explained(both, (100, 120), (75, 160))
    assert copied in explained(both, (4, 6), (3, 8))
    assert copied in explained(lambda x, y: pa.sum(both(x, y)), (100, 120), (75, 160))
    rows = pa.fuse(lambda x, y: pa.sum(x.reshape(24, 50) + y.reshape(24, 50), axis=1))
    text = rows.explain(pa.ones((6, 4, 50)).transpose(1, 0, 2), pa.ones((8, 3, 50)).transpose(1, 0, 2))
    assert divided in text
