"""Products of groups of rows, on every device, against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples
from test_tensor_cores import LAYOUTS, integers, laid, tiles_of

import pyarray as pa
from pyarray import config
from pyarray._core import clear_plans
from pyarray.kernels.matmul import gemm_bf16x6, gemm_key, gemm_mma, grouped, grouped_gradients, split_k
from pyarray.kernels.matmul.gemm_types import PRECISION

DTYPES = "float16", "bfloat16", "float32", "float64"


def reference(x, matrices, ends):
    out, begin = np.zeros((len(x), matrices.shape[2])), 0
    for matrix, end in zip(matrices, ends, strict=True):
        out[begin:end] = x[begin:end] @ matrix
        begin = end
    return out


def rounded(x, dtype):
    return pa.asnumpy(pa.asarray(np.asarray(x, np.float64)).astype(dtype).astype("float64"))


@examples(12)
@given(data=st.data())
def test_drawn(device, data):
    dtype, rows = data.draw(st.sampled_from(DTYPES)), data.draw(st.sampled_from((0, 1, 15, 16, 17, 70, 129, 200)))
    depth, columns = (data.draw(st.sampled_from((0, 1, 16, 33, 130))) for _ in range(2))
    groups = data.draw(st.integers(0, 9))
    ends = sorted(data.draw(st.lists(st.integers(0, rows), min_size=groups, max_size=groups)))
    x, matrices = integers((rows, depth), 1), integers((groups, depth, columns), 2)
    a, b = (laid(v, data.draw(st.sampled_from(LAYOUTS)), dtype, device) for v in (x, matrices))
    where = data.draw(st.sampled_from((list, np.array, "int32", "int64", "uint8")))
    given_ends = pa.asarray(np.array(ends, where), device=device) if isinstance(where, str) else where(ends)
    with pa.debug(data.draw(st.booleans())):
        got = pa.nn.grouped_matmul(a, b, given_ends)
    assert got.dtype == a.dtype
    assert got.shape == (rows, columns)
    np.testing.assert_array_equal(pa.asnumpy(got.astype("float64")), rounded(reference(x, matrices, ends), dtype))


def forms(device, dtype):
    """Of the kernel: a name, and a tile."""
    tensor_cores = [("tile", tile) for tile in tiles_of(device, dtype) if tile]
    others = [("plain", number) for number in (gemm_key.TALL, gemm_key.SMALL, gemm_key.WIDE, gemm_key.SQUARE)]
    if dtype == "float32" and pa.empty(0, device=device).device.driver.properties().get("tensor_cores") == "wgmma":
        others += [("bf16x6", tile) for tile, _ in gemm_bf16x6.TILES]
        others += [("tf32", tile) for tile, _ in gemm_mma.TILES["wgmma", 4]]
    return tensor_cores + others


@examples(12)
@given(data=st.data())
def test_tiles(device, data):
    """Groups smaller and larger than tiles, in each form of the kernel."""
    dtype = data.draw(st.sampled_from(DTYPES))
    sizes = data.draw(st.lists(st.sampled_from((0, 1, 30, 64, 127, 128, 129, 200, 260)), min_size=1, max_size=6))
    behind = data.draw(st.sampled_from((0, 0, 1, 150)))
    depth, columns = data.draw(st.sampled_from((8, 64, 100, 200))), data.draw(st.sampled_from((8, 65, 256, 300)))
    ends, rows = np.cumsum(sizes), sum(sizes) + behind
    x, matrices = integers((rows, depth), 1), integers((len(sizes), depth, columns), 2)
    a, b = (laid(v, data.draw(st.sampled_from(LAYOUTS)), dtype, device) for v in (x, matrices))
    stops = pa.asarray(ends, dtype=data.draw(st.sampled_from(("int32", "int64"))), device=device)
    form, tile = data.draw(st.sampled_from(forms(device, dtype)))
    chosen = {form: tile}
    with pytest.MonkeyPatch.context() as patch:
        if form == "tf32":
            patch.setitem(config.overrides, PRECISION, form)
        patch.setattr(grouped, "tile_for", lambda c, depth, tf32=False: chosen.get("tf32" if tf32 else "tile"))
        patch.setattr(gemm_bf16x6, "_faster_tile", lambda *sizes: chosen.get("bf16x6"))
        if form == "plain":
            patch.setattr(split_k, "schedule", lambda c, depth, whole: (tile, 1))
        clear_plans()
        got = pa.nn.grouped_matmul(a, b, stops)
    clear_plans()
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


def gradients(grad, x, matrices, ends):
    of_rows, of_matrices, begin = np.zeros(x.shape), np.zeros(matrices.shape), 0
    for group, end in enumerate(ends):
        of_rows[begin:end] = grad[begin:end] @ matrices[group].T
        of_matrices[group] = x[begin:end].T @ grad[begin:end]
        begin = end
    return of_rows, of_matrices


@examples(12)
@given(data=st.data())
def test_gradients(device, data):
    dtype = data.draw(st.sampled_from(DTYPES))
    sizes = data.draw(st.lists(st.sampled_from((0, 0, 1, 15, 64, 65, 200)), max_size=6))
    behind = data.draw(st.sampled_from((0, 0, 1, 70)))
    depth, columns = (data.draw(st.sampled_from((0, 1, 16, 33, 64, 130, 300))) for _ in range(2))
    ends, rows = np.cumsum(sizes, dtype=int), sum(sizes) + behind
    x, matrices, grad = (
        integers(s, k) for k, s in enumerate(((rows, depth), (len(sizes), depth, columns), (rows, columns)))
    )
    a, b, g = (laid(v, data.draw(st.sampled_from(LAYOUTS)), dtype, device) for v in (x, matrices, grad))
    where = data.draw(st.sampled_from((list, "int32", "int64", "uint16")))
    given_ends = pa.asarray(ends.astype(where), device=device) if isinstance(where, str) else where(ends)
    with pa.debug(data.draw(st.booleans())):
        got = pa.nn.grouped_matmul_backward(g, a, b, given_ends)
    for ours, want in zip(got, gradients(grad, x, matrices, ends), strict=True):
        assert ours.dtype == a.dtype
        np.testing.assert_array_equal(pa.asnumpy(ours.astype("float64")), rounded(want, dtype))


@examples(12)
@given(data=st.data())
def test_tiles_of_gradients(device, data):
    """Groups of less and more than a slice of the depth, in each form of the kernel. What is not in a group is NaN for
    some of its neighbours: it must not be multiplied, not even by zeros."""
    dtype = data.draw(st.sampled_from(DTYPES))
    sizes = data.draw(st.lists(st.sampled_from((0, 1, 15, 16, 63, 64, 65, 130, 500)), min_size=1, max_size=6))
    behind = data.draw(st.sampled_from((0, 0, 1, 70)))
    depth, columns = (data.draw(st.sampled_from((8, 64, 100, 129, 300))) for _ in range(2))
    ends, rows = np.cumsum(sizes), sum(sizes) + behind
    x, grad = integers((rows, depth), 1), integers((rows, columns), 2)
    wrong = data.draw(st.integers(0, len(sizes) - 1))
    x[ends[wrong] - sizes[wrong] : ends[wrong]] = np.nan
    x[ends[-1] :], grad[ends[-1] :] = np.nan, np.inf
    a, g = (laid(v, data.draw(st.sampled_from(LAYOUTS)), dtype, device) for v in (x, grad))
    stops = pa.asarray(ends, dtype=data.draw(st.sampled_from(("int32", "int64"))), device=device)
    out = pa.full((len(sizes), depth, columns), 7.0, device=device).astype(dtype)
    form, tile = data.draw(st.sampled_from([f for f in forms(device, dtype) if f[0] in ("tile", "plain")]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grouped_gradients, "tile_for", lambda c, depth: tile if form == "tile" else None)
        if form == "plain":
            patch.setattr(split_k, "schedule", lambda c, depth, whole: (tile, 1))
        clear_plans()
        grouped_gradients.multiply(out, a, g, stops)
    clear_plans()
    want = gradients(grad, x, np.zeros((len(sizes), depth, columns)), ends)[1]
    np.testing.assert_array_equal(pa.asnumpy(out.astype("float64")), rounded(want, dtype))


def test_gradients_of_ends_that_do_not_fit(device):
    """Nothing outside is read or written."""
    if device == "cpu":
        return
    x, grad = pa.ones((40, 8), device=device), pa.ones((40, 5), device=device)
    frame = pa.full((5, 8, 5), 9.0, device=device)
    with pa.debug():
        grouped_gradients.multiply(frame[1:4], x, grad, pa.asarray([30, -7, 999], device=device))
    np.testing.assert_array_equal(pa.asnumpy(frame), np.array([9, 30, 0, 40, 9.0])[:, None, None] + np.zeros((5, 8, 5)))


def test_errors_of_gradients(device):
    x, matrices, grad = (pa.ones(s, dtype="float32", device=device) for s in ((4, 3), (2, 3, 5), (4, 5)))
    for g, a, ends, error, text in (
        (grad, x.astype("float64"), [1, 4], TypeError, "grouped_matmul_backward\\(\\): a and b are of one"),
        (grad.T, x, [1, 4], ValueError, "grad is float32 of shape \\(4, 5\\)"),
        (grad.astype("float64"), x, [1, 4], ValueError, "got float64"),
        (grad, x, [1, 5], ValueError, "grouped_matmul_backward\\(\\): ends don't decrease"),
    ):
        with pytest.raises(error, match=text):
            pa.nn.grouped_matmul_backward(g, a, matrices, ends)
