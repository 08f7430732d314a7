"""Products of groups of rows, on every device, against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import pyarray as pa
from pyarray.kernels.matmul import grouped

DTYPES = "float16", "bfloat16", "float32", "float64"


def reference(x, matrices, ends):
    out, begin = np.zeros((len(x), matrices.shape[2])), 0
    for matrix, end in zip(matrices, ends, strict=True):
        out[begin:end] = x[begin:end] @ matrix
        begin = end
    return out


def rounded(x, dtype):
    return pa.asnumpy(pa.asarray(np.asarray(x, np.float64)).astype(dtype).astype("float64"))


def integers(shape, seed):
    return np.random.default_rng(seed).integers(-2, 4, shape).astype(np.float32)


def laid(x, how, dtype, device):
    """An array like `x` that lies so."""
    if how == "transposed":
        return pa.asarray(np.swapaxes(x, -1, -2), device=device).astype(dtype).mT
    if how == "steps":
        return pa.asarray(np.repeat(x, 2, -1), device=device).astype(dtype)[..., ::2]
    return pa.asarray(x, device=device).astype(dtype)


@examples(12)
@given(data=st.data())
def test_drawn(device, data):
    dtype, rows = data.draw(st.sampled_from(DTYPES)), data.draw(st.sampled_from((0, 1, 15, 16, 17, 70, 129, 200)))
    depth, columns = (data.draw(st.sampled_from((0, 1, 16, 33, 130))) for _ in range(2))
    groups = data.draw(st.integers(0, 9))
    ends = sorted(data.draw(st.lists(st.integers(0, rows), min_size=groups, max_size=groups)))
    x, matrices = integers((rows, depth), 1), integers((groups, depth, columns), 2)
    a, b = (laid(v, data.draw(st.sampled_from(("rows", "transposed", "steps"))), dtype, device) for v in (x, matrices))
    where = data.draw(st.sampled_from((list, np.array, "int32", "int64", "uint8")))
    given_ends = pa.asarray(np.array(ends, where), device=device) if isinstance(where, str) else where(ends)
    with pa.debug(data.draw(st.booleans())):
        got = pa.nn.grouped_matmul(a, b, given_ends)
    assert got.dtype == a.dtype
    assert got.shape == (rows, columns)
    np.testing.assert_array_equal(pa.asnumpy(got.astype("float64")), rounded(reference(x, matrices, ends), dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers(device, dtype):
    """Groups of many tiles, and one of a part of a tile."""
    rng = np.random.default_rng(0)
    x, matrices, ends = rng.normal(size=(300, 70)), rng.normal(size=(3, 70, 150)), [290, 290, 299]
    a, b = (pa.asarray(v, device=device).astype(dtype) for v in (x, matrices))
    want = reference(rounded(x, dtype), rounded(matrices, dtype), ends)
    limit = {"float16": 2e-3, "bfloat16": 1e-2, "float32": 1e-5, "float64": 1e-13}[dtype]
    got = pa.asnumpy(pa.nn.grouped_matmul(a, b, ends).astype("float64"))
    np.testing.assert_allclose(got, want, rtol=limit, atol=10 * limit)


def test_ends_of_a_device_are_its_own(device):
    """The host doesn't read them; and what doesn't fit writes nothing outside."""
    x, matrices = (pa.ones(s, dtype="float32", device=device) for s in ((40, 8), (3, 8, 8)))
    ends = pa.asarray([5, 5, 40], device=device)
    for values in ([5, 5, 40], [0, 20, 30]):
        ends[...] = pa.asarray(values, device=device)
        got = pa.asnumpy(pa.nn.grouped_matmul(x, matrices, ends))
        np.testing.assert_array_equal(got, reference(np.ones((40, 8)), np.ones((3, 8, 8)), values))
    if device == "cpu":
        return
    ends[...] = pa.asarray([30, -7, 999], device=device)
    frame = pa.full((60, 8), 9, dtype="float32", device=device)
    with pa.debug():
        grouped.multiply(frame[10:50], x, matrices, ends)
    assert pa.all(frame[:10] == 9)
    assert pa.all(frame[50:] == 9)


def test_errors(device):
    x, matrices = (pa.ones(s, dtype="float32", device=device) for s in ((4, 3), (2, 3, 5)))
    for a, b, ends, error, text in (
        (x.astype("int32"), matrices, [1, 4], TypeError, "of one floating type"),
        (x.astype("float64"), matrices, [1, 4], TypeError, "got float64 and float32"),
        (x[0], matrices, [1, 4], ValueError, "got \\(3,\\) and"),
        (x[:, :2], matrices, [1, 4], ValueError, "b \\(groups, depth, columns\\)"),
        (x, matrices, [4], ValueError, "each of the 2 groups"),
        (x, matrices, [1.0, 4.0], TypeError, "ends are integers"),
        (x, matrices, [3, 2], ValueError, "don't decrease"),
        (x, matrices, [-1, 2], ValueError, "from 0 to the number of rows, 4"),
        (x, matrices, [1, 5], ValueError, "got \\[1, 5\\]"),
    ):
        with pytest.raises(error, match=text):
            pa.nn.grouped_matmul(a, b, ends)
