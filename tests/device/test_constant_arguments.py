"""None, strings, enums and functions as arguments are compiled in, one variant per value."""

import enum
import math

import numpy as np
import pytest
from kernel_tools import on

import pyarray as pa


class Way(enum.Enum):
    UP = 1
    DOWN = 2


@pa.kernel
def weighted(out, v, w=None, way="sum", f=None):
    for i in range(out.size):
        x = v[i]
        if w is not None:
            x *= w[i]
        if way == "twice" or way == Way.UP:
            x *= 2
        if f is not None:
            x = f(x)
        out[i] = x


@pa.kernel
def annotated(out: pa.BufferView[pa.float64], w: pa.BufferView[pa.float64] = None, n: pa.int64 = None):
    for i in range(out.size):
        if w is None:
            out[i] = -1
        else:
            out[i] = w[i] + (0 if n is None else n)


def test_constant_arguments(device):
    out, v, w = (on(device, np.array(x)) for x in ([0.0, 0.0], [1.0, 4.0], [2.0, 3.0]))
    calls = (
        ((), [1, 4]), ((w,), [2, 12]), ((None, "twice"), [2, 8]), ((w, "twice"), [4, 24]),
        ((w, Way.UP), [4, 24]), ((None, Way.DOWN), [1, 4]), ((None, "sum", math.sqrt), [1, 2]),
        ((w, "twice", math.sqrt), [2, 24**0.5]),
    )  # fmt: skip
    before = weighted.cache_info()["variants"]
    for _ in range(2):
        for given, expected in calls:
            weighted(out, v, *given)
            assert out.tolist() == expected
    assert weighted.cache_info()["variants"] - before == len(calls)
    weighted(out, v, w=w, f=None)
    assert out.tolist() == [2, 12]
    with pytest.raises(TypeError, match="'w' can't be a list"):
        weighted(out, v, [1.0, 2.0])


def test_annotated_ones_may_be_left_out(device):
    out, w = on(device, np.zeros(2)), on(device, np.array([2.0, 3.0]))
    for given, expected in (((), [-1, -1]), ((w,), [2, 3]), ((w, 5), [7, 8]), ((None,), [-1, -1])):
        annotated(out, *given)
        assert out.tolist() == expected
    with pytest.raises(TypeError, match="'w' must be a 1-D contiguous array of float64, got str"):
        annotated(out, "w")
