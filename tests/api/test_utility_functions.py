"""any and all against NumPy's; what they share with other reductions is in test_statistical_functions."""

import numpy as np
import pytest
from hypothesis import given, settings

import pyarray as pa
from tests.strategies import numpy_views


@settings(deadline=None, max_examples=15)
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
    assert pa.all(pa.asarray([1j, 2])).dtype is pa.bool
    with pytest.raises(ValueError, match="shape"):
        pa.all(a, out=out)
