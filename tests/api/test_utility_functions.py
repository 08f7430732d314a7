"""any and all against NumPy's; what they share with other reductions is in test_statistical_functions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, numpy_views

import pyarray as pa


@examples(8)
@given(numpy_views(dtype=pa.bool_))
def test_any_view(x):
    a = pa.asarray(x)
    assert pa.any(a).item() == x.any()
    assert pa.all(a).item() == x.all()
    for axis in range(x.ndim):
        assert pa.any(a, axis=axis).tolist() == x.any(axis).tolist()
        assert pa.all(a, axis=axis, keepdims=True).tolist() == x.all(axis, keepdims=True).tolist()


@pytest.mark.parametrize("n", [1, 16, 17, 2049, 40000])
def test_one_element_decides(n):
    for place in (0, n // 2, n - 1):
        x = np.zeros(n, np.int8)
        x[place] = -3
        assert pa.any(pa.asarray(x)).item() is True
        assert pa.all(pa.asarray(x == 0)).item() is False


def test_out_and_types():
    a = pa.asarray(np.array([[0.0, np.nan], [0.0, 0.0]], np.float32))
    out = pa.zeros(2, dtype=pa.bool)
    assert pa.any(a, axis=1, out=out) is out
    assert out.tolist() == [True, False]
    assert pa.all(pa.asarray([1j, 2])).dtype == pa.bool
    with pytest.raises(ValueError, match="shape"):
        pa.all(a, out=out)


@examples(3)
@given(st.data())
def test_extremes_and_truth_of_integers(data):
    """any, all, argmin and argmax: what decides stands anywhere, several times or not at all, in lines around
    the chunks and pieces that are looked at, in any layout; the largest number of a type ends a search."""
    dtype = np.dtype(data.draw(st.sampled_from(["bool", "int8", "uint8", "int16", "int64", "uint64"])))
    shape = data.draw(st.sampled_from([(1,), (63,), (65, 3), (3, 257), (2, 1025), (5, 64, 7), (70_001,), (2, 40_000)]))
    limits = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    some = data.draw(st.lists(st.sampled_from([*limits, 0, 1]), min_size=2, max_size=3))
    rare = data.draw(st.sampled_from([0, 1e-4, 0.01, 0.5]))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    chosen = rng.choice(len(some) - 1, shape) + 1
    x = np.array(some, dtype)[np.where(rng.random(shape) < rare, chosen, 0)]
    if data.draw(st.booleans()):
        x = np.repeat(x, 2, axis=-1)[..., ::-2]
    a = pa.asarray(x)
    for axis in (None, *range(x.ndim)):
        for name in ("any", "all", "argmin", "argmax"):
            ours, theirs = getattr(pa, name)(a, axis=axis), getattr(np, name)(x, axis=axis)
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(pa.asnumpy(ours), theirs)
