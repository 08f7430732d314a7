"""Views by shape and strides, and what tells NumPy's users about memory and types."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, numpy_views

import pyarray as pa
from pyarray.lib.stride_tricks import as_strided, sliding_window_view

numpys = np.lib.stride_tricks


@examples(60)
@given(numpy_views(dtype=pa.int32), st.data())
def test_windows_are_numpys(x, data):
    a = pa.asarray(x)
    window = tuple(data.draw(st.integers(1, max(n, 1))) for n in x.shape)
    if all(m <= n for m, n in zip(window, x.shape, strict=True)):
        found, expected = sliding_window_view(a, window), numpys.sliding_window_view(x, window)
        assert found.shape == expected.shape
        np.testing.assert_array_equal(found.get(), expected)
        assert not found.flags.writeable
    if x.ndim and x.shape[-1] >= 2:
        expected = numpys.sliding_window_view(x, 2, axis=-1)
        np.testing.assert_array_equal(sliding_window_view(a, 2, axis=-1).get(), expected)
        np.testing.assert_array_equal(numpys.sliding_window_view(a, 2, axis=-1).get(), expected)


def test_strides_within_the_memory(device):
    x = np.arange(24, dtype="int32")
    a = pa.asarray(x, device=device)
    for shape, strides, start in (
        ((3, 4), (4, 8), 0),
        ((2, 2, 2), (16, -4, 8), 5),
        ((0, 9), (4, 4), 3),
        ((), (), 2),
    ):
        found, expected = as_strided(a[start:], shape, strides), numpys.as_strided(x[start:], shape, strides)
        assert (found.shape, found.strides) == (expected.shape, expected.strides)
        np.testing.assert_array_equal(found.get(), expected)
    for shape, strides in (
        ((25,), (4,)),
        ((2,), (-4,)),
        ((2, 13), (48, 4)),
        ((1 << 40,), (4,)),
        ((3,), (1 << 60,)),
    ):
        with pytest.raises(ValueError, match="of memory of 96 bytes"):
            as_strided(a, shape, strides)
    with pytest.raises(ValueError, match="unaligned"):
        as_strided(a, (3,), (6,))
    with pytest.raises(ValueError, match=r"has \d+ elements, and an array at most 2\*\*63 - 1"):
        as_strided(a, (1 << 62, 2), (0, 0))
    with pytest.raises(ValueError, match="a stride for each axis"):
        as_strided(a, (3, 1), (4,))
    apart = as_strided(a, (6, 2), (16, 4))
    apart[...] = 7
    assert a.tolist()[:6] == [7, 7, 2, 3, 7, 7]
    for strides in ((4, 4), (0, 4), (8, 8)):
        assert not as_strided(a, (3, 3), strides).flags.writeable
    assert not as_strided(a, writeable=False).flags.writeable
    assert sliding_window_view(a, 1, writeable=True).flags.writeable
    with pytest.raises(ValueError, match="windows overlap"):
        sliding_window_view(a, 2, writeable=True)
    with pytest.raises(ValueError, match=r"a window of \(25,\) is larger than an array of shape \(24,\)"):
        sliding_window_view(a, 25)
    with pytest.raises(ValueError, match="a window's size for each axis"):
        sliding_window_view(a, (2, 2))


def test_memory_and_types(device):
    pool = pa.get_default_memory_pool(device)
    pool.free_all_blocks()
    before = pool.used_bytes()
    a = pa.ones(1 << 18, device=device)
    assert pool.used_bytes() >= before + (1 << 21)
    assert pool.total_bytes() == pool.used_bytes() + pool.free_bytes()
    assert pool.peak_bytes() >= pool.total_bytes()
    assert a[3:].data.ptr == a.data.ptr + 24
    assert (int(a.data), str(a.data.device)) == (a.data.ptr, device)
    del a
    assert pool.free_bytes() >= 1 << 21
    assert pool.n_free_blocks() >= 1
    pool.free_all_blocks()
    assert (pool.free_bytes(), pool.n_free_blocks()) == (0, 0)
    assert f"memory pool of {device}" in repr(pool)


def test_small_names():
    assert pa.get_array_module(1, pa.ones(2)) is pa
    assert pa.get_array_module(np.ones(2)) is np
    assert pa.True_ is np.True_
    assert not pa.False_
    assert pa.random.default_rng(1).normal(size=2, dtype="float32").dtype == pa.float32
