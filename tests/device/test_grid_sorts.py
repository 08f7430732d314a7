"""Sorts by digits on a grid, against NumPy: all types, sizes around blocks and tiles, rows, equal elements,
NaN and -0.0. A CPU sorts otherwise and has to give the same."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import pyarray as pa
from pyarray.kernels.sort import sort_gpu

SMALL = (1, 2, 31, 255, 256, 257, 511, 513, 1025)
LONG = {1: 7168, 2: 7168, 4: 7168, 8: 4096}  # elements of a tile
DTYPES = [
    "bool", "int8", "uint8", "int16", "uint16", "float16", "int32", "uint32", "float32", "int64", "uint64",
    "float64",
]  # fmt: skip


def drawn(dtype, shape, seed, few):
    """`few`: most elements are equal to others."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind != "f":
        limits = np.iinfo(dtype)
        x = rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)
        return x % dtype.type(5) if few else x
    x = rng.standard_normal(shape).astype(dtype)
    special = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1, -1], dtype)
    return np.where(rng.random(shape) < (0.9 if few else 0.1), special[rng.integers(0, 7, shape)], x)


def expected_argsort(x, axis, descending):
    """NumPy's argsort."""
    if descending and x.dtype.kind == "f":
        return np.lexsort((np.where(np.isnan(x), 0, -x.astype("f8")), np.isnan(x)), axis=axis)
    return np.argsort(~x if descending else x, axis=axis, kind="stable")


# Whether positions are asked for, and whether the order is descending. Of a type the first is another text,
# the second other constants in it: every type takes each once, and its neighbours the other two pairs.
WAYS = ((True, False), (False, True)), ((True, True), (False, False))


def check(x, axis, device, ways=WAYS[0] + WAYS[1]):
    a = pa.asarray(x, device=device)
    for positions, descending in ways:
        at = expected_argsort(x, axis, descending)
        if positions:
            np.testing.assert_array_equal(pa.asnumpy(pa.argsort(a, axis=axis, descending=descending)), at)
            continue
        want = np.take_along_axis(x, at, axis)
        got = pa.asnumpy(pa.sort(a, axis=axis, descending=descending))
        np.testing.assert_array_equal(got, want)
        if x.dtype.kind == "f":
            numbers = ~np.isnan(want)  # which zeros are negative
            np.testing.assert_array_equal(np.signbit(got[numbers]), np.signbit(want[numbers]))
    assert pa.asnumpy(a).tobytes() == x.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_long_rows(device, dtype):
    tile, ways = LONG[np.dtype(dtype).itemsize], WAYS[DTYPES.index(dtype) % 2]
    for n, few in ((8193, False), (2 * tile, True), (4 * tile + 1, False)):
        check(drawn(dtype, n, n, few), -1, device, ways)
    check(drawn(dtype, (3, 9001), 3, True), -1, device, ways)


@examples(8)
@given(data=st.data())
def test_short_rows(device, data):
    dtype, few = data.draw(st.sampled_from(DTYPES)), data.draw(st.booleans())
    n = data.draw(st.one_of(st.sampled_from(SMALL), st.integers(1, 600)))
    rows = data.draw(st.integers(1, max(1, 3000 // n)))
    x, ways = drawn(dtype, (rows, n), data.draw(st.integers(0, 99)), few), data.draw(st.sampled_from(WAYS))
    if data.draw(st.booleans()):
        check(x, -1, device, ways)
    else:
        check(np.ascontiguousarray(x.T), 0, device, ways)


@pytest.mark.parametrize(("dtype", "ways"), [("uint8", WAYS[0]), ("float32", WAYS[1]), ("int64", WAYS[0])])
def test_checked(device, dtype, ways):
    with pa.debug(True):
        check(drawn(dtype, (40, 70), 1, False), -1, device, ways)
        check(drawn(dtype, (2, 8200), 2, False), -1, device, ways)


def test_digits_that_all_keys_share(device):
    """A row in which no digit, one digit, or only a middle one differs, beside one in which all do."""
    n = 8500
    x = np.zeros((4, n), "int64")
    x[1] = 77
    x[2] = np.arange(n)[::-1] // 40 << 24
    x[3] = drawn("int64", n, 5, False)
    check(x, -1, device)


def test_repeated(device):
    """The calls that come often are launched again as they were."""
    rng = np.random.default_rng(4)
    for _ in range(8):
        x = rng.standard_normal((2, 8300)).astype("float32")
        a = pa.asarray(x, device=device)
        np.testing.assert_array_equal(pa.asnumpy(pa.sort(a)), np.sort(x))
        np.testing.assert_array_equal(pa.asnumpy(pa.argsort(a)), np.argsort(x, kind="stable"))


@pytest.mark.parametrize("positions", [False, True])
def test_rows_on_a_grid_with_fewer_blocks_than_asked_for(device, positions, monkeypatch):
    """A grid has less than 2^32 threads."""
    if device.startswith("cpu"):
        pytest.skip("a grid's")
    launch = sort_gpu._KERNEL.launch
    monkeypatch.setattr(
        sort_gpu._KERNEL,
        "launch",
        lambda config, of, threads, *more: launch(config, of, min(threads, 2 * sort_gpu.THREADS), *more),
    )
    for rows, n in ((40, 700), (3000, 5), (1, 900)):
        x = np.random.default_rng(n).permuted(np.arange(rows * n, dtype=np.int32).reshape(rows, n), axis=1)
        got = (pa.argsort if positions else pa.sort)(pa.asarray(x, device=device), axis=1)
        np.testing.assert_array_equal(pa.asnumpy(got), (np.argsort if positions else np.sort)(x, axis=1))
