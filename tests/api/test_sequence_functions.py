"""Sequences, index tables and arrays from host memory, against NumPy's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, numpy_views

import pyarray as pa

FEW = examples(40)


def same(ours, theirs, rtol=0.0):
    if isinstance(theirs, tuple):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            same(a, b)
        return
    theirs = np.asarray(theirs)
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype
    np.testing.assert_allclose(pa.asnumpy(ours), theirs, rtol=rtol)


@FEW
@given(st.integers(-3, 3), st.integers(-3, 3), st.integers(0, 9), st.booleans())
def test_spaces(start, stop, num, endpoint):
    same(pa.logspace(start, stop, num, endpoint), np.logspace(start, stop, num, endpoint), 1e-13)
    same(
        pa.logspace(start, stop, num, base=2, dtype="float32"),
        np.logspace(start, stop, num, base=2, dtype="float32"),
        1e-6,
    )
    if start * stop > 0:
        same(pa.geomspace(start, stop, num, endpoint), np.geomspace(start, stop, num, endpoint), 1e-13)
    elif start and stop:
        with pytest.raises(ValueError, match="opposite"):
            pa.geomspace(start, stop)
    else:
        with pytest.raises(ValueError, match="no 0"):
            pa.geomspace(start, stop)


@FEW
@given(st.integers(0, 5), st.one_of(st.none(), st.integers(0, 5)), st.integers(-4, 4))
def test_triangles(n, m, k):
    same(pa.tri(n, m, k), np.tri(n, m, k))
    same(pa.tri(n, m, k, dtype="int8"), np.tri(n, m, k, dtype="int8"))
    same(pa.tril_indices(n, k, m), np.tril_indices(n, k, m))
    same(pa.triu_indices(n, k, m), np.triu_indices(n, k, m))
    x = np.zeros((n, m or n))
    same(pa.tril_indices_from(pa.asarray(x), k), np.tril_indices_from(x, k))
    same(pa.triu_indices_from(x, k), np.triu_indices_from(x, k))
    same(pa.diag_indices(n, 3), np.diag_indices(n, 3))
    same(pa.diagflat(np.arange(n), k), np.diagflat(np.arange(n), k))


@FEW
@given(st.lists(st.integers(-3, 3), max_size=5), st.one_of(st.none(), st.integers(0, 5)), st.booleans())
def test_vander(x, n, increasing):
    for dtype in ("int64", "float64", "int8"):
        y = np.array(x, dtype)
        same(pa.vander(pa.asarray(y), n, increasing), np.vander(y, n, increasing))


@FEW
@given(st.lists(st.integers(0, 4), max_size=3), st.booleans())
def test_indices(shape, sparse):
    same(pa.indices(tuple(shape), sparse=sparse), np.indices(tuple(shape), sparse=sparse))
    same(pa.indices(tuple(shape), dtype="float32"), np.indices(tuple(shape), dtype="float32"))


@FEW
@given(st.lists(st.integers(1, 5), min_size=1, max_size=3), st.data())
def test_flat_positions(shape, data):
    shape, total = tuple(shape), int(np.prod(shape))
    flat = np.array(data.draw(st.lists(st.integers(0, total - 1), max_size=6)), np.int64)
    same(pa.unravel_index(flat, shape), np.unravel_index(flat, shape))
    multi = np.unravel_index(flat, shape)
    same(pa.ravel_multi_index(multi, shape), np.ravel_multi_index(multi, shape))
    beyond = tuple(m + data.draw(st.integers(-9, 9)) for m in multi)
    for mode in ("wrap", "clip"):
        same(pa.ravel_multi_index(beyond, shape, mode), np.ravel_multi_index(beyond, shape, mode))
    modes = tuple(data.draw(st.sampled_from(["wrap", "clip"])) for _ in shape)
    ours, theirs = (m.ravel_multi_index(beyond, shape, modes, order="F") for m in (pa, np))
    same(ours, theirs)
    same(pa.unravel_index(flat, shape, "F"), np.unravel_index(flat, shape, "F"))
    with pytest.raises(ValueError, match="out of bounds"):
        pa.unravel_index(total, shape)
    with pytest.raises(ValueError, match="out of bounds"):
        pa.ravel_multi_index((-1,) * len(shape), shape)
    with pytest.raises(ValueError, match="order is 'C' or 'F', got 'K'"):
        pa.unravel_index(0, shape, "K")
    with pytest.raises(ValueError, match="one mode or as many, got 9"):
        pa.ravel_multi_index((0,) * len(shape), shape, ("wrap",) * 9)


def test_grids_of_indices(device):
    x = np.arange(20).reshape(4, 5)
    a = pa.asarray(x, device=device)
    rows, columns = (
        pa.asarray([3, 0], device=device),
        pa.asarray([True, False, False, True, True], device=device),
    )
    same(a[pa.ix_(rows, columns)], x[np.ix_([3, 0], [True, False, False, True, True])])
    assert [i.shape for i in pa.ix_([], [1])] == [(0, 1), (1, 1)]
    with pytest.raises(ValueError, match="1-D"):
        pa.ix_([[1]])
    same(
        pa.fromfunction(lambda i, j: i * 10 + j, (2, 3), dtype="int64"),
        np.fromfunction(lambda i, j: i * 10 + j, (2, 3), dtype="int64"),
    )
    with pytest.raises(ValueError, match="one size"):
        pa.diag_indices_from(a)
    with pytest.raises(ValueError, match="matrix"):
        pa.tril_indices_from(a[0])


@FEW
@given(numpy_views(dtype=pa.float32))
def test_copies(x):
    a = pa.asarray(x)
    same(pa.copy(a), x)
    assert not np.shares_memory(pa.asnumpy(pa.copy(a)), x) or not x.size
    same(pa.ascontiguousarray(a), np.ascontiguousarray(x))
    assert pa.asanyarray(a) is a


def test_memory_of_the_host():
    data = bytearray(np.arange(4.0).tobytes())
    a = pa.frombuffer(data)
    a[1] = 9.0
    assert np.frombuffer(data)[1] == 9.0
    assert pa.frombuffer(data, count=1, offset=8).tolist() == [9.0]
    with pytest.raises(ValueError, match="multiple"):
        pa.frombuffer(b"abc")
    assert pa.fromiter(range(5), pa.int32, count=3).tolist() == [0, 1, 2]
