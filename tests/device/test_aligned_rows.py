"""Copies with aligned rows, of views of any strides."""

import hypothesis.strategies as st
import numpy as np
from hypothesis import given

import pyarray as pa
from pyarray.kernels.aligned_rows import VECTOR_BYTES, copied_rows


@given(st.data())
def check_copies(device, data):
    dtype = data.draw(st.sampled_from(("bool", "float16", "int8", "float64")))
    shape = data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=3)) + [data.draw(st.integers(1, 40))]
    kept = data.draw(st.integers(1, len(shape)))
    x = pa.asarray(np.random.default_rng(0).integers(0, 2, shape).astype(dtype), device=device)
    axis, step = data.draw(st.integers(0, len(shape) - 1)), data.draw(st.sampled_from((1, 2, -1)))
    x = x[(slice(None),) * axis + (slice(None, None, step),)]
    x = pa.broadcast_to(x[:, None], (x.shape[0], 3, *x.shape[1:]))
    copy = copied_rows(x, kept)
    np.testing.assert_array_equal(pa.asnumpy(copy), pa.asnumpy(x))
    assert copy.strides[-1] == copy.itemsize
    assert all(n % VECTOR_BYTES == 0 for n in copy.strides[:-1])
    if x.ndim - kept > 1:
        assert copy.strides[1] == 0


def test_copies_with_aligned_rows(device):
    check_copies(device)
