"""Sorts against NumPy's: every dtype, axis and layout, ties, NaN, zeros, both forms, what is alike in its
upper bits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, few_dtypes, known_to_numpy, numpy_views

import pyarray as pa
from pyarray import dtypes
from pyarray.dtypes import ALL
from pyarray.kernels.sort import sort as kernels

FEW = examples(25)
FLOATS = [d for d in ALL if d.kind == "f"]


def sort_stably(x, axis=-1):
    """NumPy's, which for types of ml_dtypes goes by way of float32. Its unstable sort of float16 leaves a few numbers
    out of place where AVX-512 computes it and there are NaNs of many bits."""
    wide = known_to_numpy(x)
    return np.take_along_axis(x, np.argsort(wide, axis, kind="stable"), axis)


def equal_bits(ours, theirs):
    """The same numbers, -0.0 told from 0.0; one NaN is like another."""
    ours, theirs = pa.asnumpy(ours), np.asarray(theirs)
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    if theirs.dtype.kind == "c":
        for part in ("real", "imag"):
            np.testing.assert_array_equal(getattr(ours, part), getattr(theirs, part))
        return
    ours, theirs = known_to_numpy(ours), known_to_numpy(theirs)
    np.testing.assert_array_equal(ours, theirs)
    if theirs.dtype.kind == "f":
        number = ~np.isnan(theirs)
        np.testing.assert_array_equal(np.signbit(ours)[number], np.signbit(theirs)[number])


def values(dtype, n, seed=0):
    """Numbers with ties, both zeros, infinities and NaN where the type has them."""
    dtype = dtypes.asdtype(dtype)
    rng = np.random.default_rng(seed)
    if dtype.kind == "b":
        return rng.integers(0, 2, n).astype(bool)
    if dtype.kind in "iu":
        info = np.iinfo(dtype.numpy)
        x = rng.integers(info.min, info.max, n, dtype=dtype.numpy, endpoint=True)
        x[::3] = x[::3] % 7
        return x
    x = rng.standard_normal(n) * 10
    x[::5] = np.round(x[::5])
    for k, special in enumerate((0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan)):
        x[k::17] = special
    if dtype.kind == "c":
        z = x.astype(np.complex128)
        z.imag = np.roll(x, 3)
        return z.astype(dtype.numpy)
    return x.astype(dtype.numpy)


@pytest.fixture
def blocks(monkeypatch):
    """Short arrays are sorted in the form of long ones."""
    monkeypatch.setattr(kernels, "MIN_CUT", 1)
    monkeypatch.setattr(kernels, "MANY_ROWS", 1 << 30)
    monkeypatch.setattr(kernels, "MIN_BLOCK", 64)
    monkeypatch.setattr(kernels, "MAX_PACKED", 0)
    monkeypatch.setattr(kernels, "MAX_PACKED_NARROW", {})


def check(x):
    a = pa.asarray(x)
    wide = known_to_numpy(x)
    places = np.argsort(wide, kind="stable")
    np.testing.assert_array_equal(pa.asnumpy(pa.argsort(a)), places)
    equal_bits(pa.sort(a), x[places])
    found = pa.asnumpy(pa.argsort(a, descending=True))
    np.testing.assert_array_equal(found, np.argsort(falling(wide), kind="stable"))
    equal_bits(pa.sort(a, descending=True), x[found])


def falling(x):
    """Numbers that rise where those of x fall, NaN last."""
    if x.dtype.kind == "c":
        keys = np.lexsort((falling(x.imag), falling(x.real), half_nan(x)))
        ranks = np.empty(x.size, np.int64)
        new = np.ones(x.size, bool)
        s = x[keys]
        new[1:] = ~((s[1:].real == s[:-1].real) | np.isnan(s[1:].real) & np.isnan(s[:-1].real)) | ~(
            (s[1:].imag == s[:-1].imag) | np.isnan(s[1:].imag) & np.isnan(s[:-1].imag)
        )
        ranks[keys] = np.cumsum(new)
        return ranks
    return -x if x.dtype.kind == "f" else ~x


def half_nan(x):
    return np.isnan(x.real) * 2 + np.isnan(x.imag)


@pytest.mark.parametrize("n", [1, 2, 31, 33, 1000])
@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_every_dtype(dtype, n):
    check(values(dtype, n))


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_every_dtype_in_blocks(dtype, blocks):
    for n in (65, 1000):
        check(values(dtype, n))


@pytest.mark.parametrize("dtype", ["float64", "int64", "uint64"])
@pytest.mark.parametrize("kind", ["random", "alike", "two clusters", "few values", "sorted"])
def test_wide_keys(dtype, kind, blocks):
    rng = np.random.default_rng(5)
    n = 3000
    x = {
        "random": rng.standard_normal(n) * 1e18,
        "alike": 2.0**62 + rng.integers(0, 1 << 20, n) * 2.0**10,
        "two clusters": rng.choice([1.0, 2.0**62], n) + rng.integers(0, 200, n) * 1024.0,
        "few values": rng.choice(rng.standard_normal(7) * 1e18, n),
        "sorted": np.sort(rng.standard_normal(n) * 1e18),
    }[kind]
    check(np.abs(x).astype(dtype) if dtype == "uint64" else x.astype(dtype))
    check(np.tile(x.astype("float64"), 3))


@pytest.mark.parametrize("shape", [(3, 500), (40, 70), (2, 3, 40), (5, 1), (1, 5), (2000, 3)])
def test_axes(shape):
    x = np.random.default_rng(2).integers(-50, 50, shape)
    for dtype in ("int16", "float32", "int64"):
        y = x.astype(dtype)
        for axis in range(-len(shape), len(shape)):
            for z in (y, y[::-1], y.T, np.flip(y)):
                a = pa.asarray(z)
                equal_bits(pa.sort(a, axis=axis), np.sort(z, axis=axis))
                equal_bits(pa.argsort(a, axis=axis), np.argsort(z, axis=axis, kind="stable"))
        equal_bits(pa.sort(pa.asarray(y), axis=None), np.sort(y, axis=None))
        equal_bits(pa.argsort(pa.asarray(y.T), axis=None), np.argsort(y.T, axis=None, kind="stable"))


def test_few_long_rows(blocks):
    x = values(dtypes.float64, 3000).reshape(3, 1000)
    equal_bits(pa.sort(pa.asarray(x), axis=1), sort_stably(x, 1))
    equal_bits(pa.argsort(pa.asarray(x), axis=1), np.argsort(x, 1, kind="stable"))
    equal_bits(pa.sort(pa.asarray(x.T), axis=0), sort_stably(x.T, 0))


@pytest.mark.slow
@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "float8_e4m3fn", "bfloat16", "float16", "float32", "uint32", "int64"]
)
def test_many_rows(dtype, monkeypatch):
    """Rows that are sorted together with their positions, those of few elements in numbers of 32 bits."""
    monkeypatch.setattr(kernels, "MIN_BLOCK", 64)
    for shape in ((40, 7), (3, 256), (2, 257), (9, 100)):
        x = values(getattr(pa, dtype), shape[0] * shape[1]).reshape(shape)
        wide = known_to_numpy(x)
        a = pa.asarray(x)
        with pa.debug(shape[1] == 100):
            equal_bits(pa.sort(a), sort_stably(x))
            np.testing.assert_array_equal(pa.asnumpy(pa.argsort(a)), np.argsort(wide, kind="stable"))
            found = pa.asnumpy(pa.argsort(a, descending=True))
            for row, places in zip(wide, found, strict=True):
                np.testing.assert_array_equal(places, np.argsort(falling(row), kind="stable"))
            equal_bits(pa.sort(a, descending=True), np.take_along_axis(x, found, 1))


@pytest.mark.parametrize("dtype", ["uint8", "int32", "float32", "float64", "complex64"])
def test_large(dtype):
    check(values(pa.result_type(dtype), 300_001))


@examples(13)
@given(numpy_views(few_dtypes), st.data())
def test_layouts(x, data):
    a = pa.asarray(x)
    if not x.ndim:
        for name in ("sort", "argsort"):
            with pytest.raises(np.exceptions.AxisError):
                getattr(pa, name)(a)
        return
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    equal_bits(pa.sort(a, axis=axis), sort_stably(x, axis))
    equal_bits(pa.sort(a, axis=axis), pa.asnumpy(pa.take_along_axis(a, pa.argsort(a, axis=axis), axis=axis)))


@FEW
@given(st.lists(st.floats(width=32), max_size=40), st.booleans())
def test_order(given_values, descending):
    x = np.array(given_values, np.float32)
    found = pa.asnumpy(pa.sort(pa.asarray(x), descending=descending))
    numbers = found[~np.isnan(found)]
    assert np.isnan(found[numbers.size :]).all()
    rising = numbers[::-1] if descending else numbers
    assert (rising[:-1] <= rising[1:]).all()
    np.testing.assert_array_equal(np.sort(found), np.sort(x))


def test_methods():
    x = values(dtypes.float32, 60).reshape(6, 10)
    a = pa.array(x)
    assert a.sort(axis=0) is None
    equal_bits(a, sort_stably(x, 0))
    part = pa.array(x)
    part[::2, ::-1].sort()
    expected = x.copy()
    expected[::2, ::-1] = sort_stably(expected[::2, ::-1], -1)
    equal_bits(part, expected)
    equal_bits(pa.asarray(x).argsort(0), np.argsort(x, 0, kind="stable"))
    equal_bits(np.sort(pa.asarray(x), axis=0), sort_stably(x, 0))
    a.setflags(write=False)
    with pytest.raises(ValueError, match="read-only"):
        a.sort()
    equal_bits(pa.sort(a, axis=0), pa.asnumpy(a))


def test_partition():
    x = np.random.default_rng(0).integers(0, 50, (4, 30))
    for kth in (0, 5, -1, [3, 7]):
        found = pa.asnumpy(pa.partition(pa.asarray(x), kth, axis=1))
        np.testing.assert_array_equal(found[:, kth], np.partition(x, kth, axis=1)[:, kth])
        places = pa.asnumpy(pa.argpartition(pa.asarray(x), kth, axis=1))
        np.testing.assert_array_equal(np.take_along_axis(x, places, 1)[:, kth], found[:, kth])
    a = pa.array(x)
    a.partition(3)
    np.testing.assert_array_equal(pa.asnumpy(a)[:, 3], np.sort(x)[:, 3])
    for kth in (30, -31):
        with pytest.raises(ValueError, match="out of bounds"):
            pa.partition(pa.asarray(x), kth)
    with pytest.raises(TypeError, match="integers"):
        pa.argpartition(pa.asarray(x), 1.5)


def test_lexsort():
    rng = np.random.default_rng(3)
    keys = [rng.integers(0, 4, 200).astype(d) for d in ("int8", "float32", "complex64")]
    for k in (1, 2, 3):
        theirs = np.lexsort([key + 1j * key[::-1] if key.dtype.kind == "c" else key for key in keys[:k]])
        ours = pa.lexsort([pa.asarray(key + 1j * key[::-1] if key.dtype.kind == "c" else key) for key in keys[:k]])
        np.testing.assert_array_equal(pa.asnumpy(ours), theirs)
    both = rng.integers(0, 3, (2, 4, 5))
    np.testing.assert_array_equal(pa.asnumpy(pa.lexsort(pa.asarray(both), axis=0)), np.lexsort(both, axis=0))
    with pytest.raises(TypeError, match="one or more keys"):
        pa.lexsort(())
    with pytest.raises(ValueError, match="one shape"):
        pa.lexsort((pa.ones(3), pa.ones(4)))


def test_bad_input():
    a = pa.ones((2, 3))
    for name in ("sort", "argsort"):
        function = getattr(pa, name)
        for axis in (2, -3):
            with pytest.raises(np.exceptions.AxisError):
                function(a, axis=axis)
        with pytest.raises(ValueError, match="'stable'"):
            function(a, kind="bubble")
        with pytest.raises(ValueError, match="fields"):
            function(a, order="name")
        with pytest.raises(TypeError):
            function("text")


def test_empty():
    for shape in ((0,), (0, 3), (3, 0), (2, 0, 4)):
        for axis in range(len(shape)):
            x = np.ones(shape, np.float32)
            equal_bits(pa.sort(pa.asarray(x), axis=axis), np.sort(x, axis))
            equal_bits(pa.argsort(pa.asarray(x), axis=axis), np.argsort(x, axis))


def test_debug_gives_the_same(blocks):
    with pa.debug():
        check(values(dtypes.float64, 300))
        check(values(dtypes.uint8, 300))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["mixed", "not above", "not below", "zeros"])
def test_zeros_of_long_rows_stay_in_order(dtype, kind):
    rng = np.random.default_rng(1)
    x = rng.standard_normal(20_000).astype(dtype)
    x = {"mixed": x, "not above": -np.abs(x), "not below": np.abs(x), "zeros": x * 0}[kind]
    x[rng.random(x.size) < 0.3] = -0.0
    x[rng.random(x.size) < 0.01] = 0.0
    for descending in (False, True):
        places = pa.asnumpy(pa.argsort(pa.asarray(x), descending=descending))
        found = pa.asnumpy(pa.sort(pa.asarray(x), descending=descending))
        np.testing.assert_array_equal(found, x[places])
        np.testing.assert_array_equal(np.signbit(found), np.signbit(x[places]))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["int64", "uint64", "float64"])
@pytest.mark.parametrize("columns", [7, 8, 9, 64, 256, 512, 513])
def test_positions_in_short_rows_of_wide_elements(dtype, columns, device):
    """Positions take the place of the keys' last bits, which decide in some of these rows."""
    rng, shape = np.random.default_rng(columns), (5, columns)
    small = rng.integers(0, columns, shape)
    if dtype == "float64":
        far = np.where(rng.random(shape) < 0.1, -1e308, 1e308)
        kinds = [rng.standard_normal(shape), 1 + small * 2.0**-52, small * 5e-324]
        kinds.append(rng.choice([0.0, -0.0, np.nan, np.inf, -np.inf], shape))
    else:
        info = np.iinfo(dtype)
        far = rng.choice(np.array([info.min, info.max], dtype), shape)
        kinds = [small, rng.integers(info.min, info.max, shape, dtype), far, small % 3]
        kinds.append(info.max - small.astype(dtype) // 2)
    kinds.append(np.where(rng.random(shape) < 0.1, far, kinds[1]))
    for values in kinds:
        x = values.astype(dtype)
        a = pa.asarray(x, device=device)
        np.testing.assert_array_equal(pa.asnumpy(pa.argsort(a)), np.argsort(x, axis=1, kind="stable"))
        falling = pa.argsort(a, descending=True)
        expected = [np.argsort(-row if dtype == "float64" else ~row, kind="stable") for row in x]
        np.testing.assert_array_equal(pa.asnumpy(falling), expected)


@FEW
@given(st.data())
def test_sort_complex(data):
    dtype = data.draw(st.sampled_from([d for d in ALL if d not in dtypes.EXTENSIONS]))
    x = data.draw(numpy_views(dtype=dtype))
    x = x + 1j * x[::-1] if dtype.kind == "c" and x.ndim else x
    if not x.ndim:
        with pytest.raises(np.exceptions.AxisError):
            pa.sort_complex(pa.asarray(x))
        return
    equal_bits(pa.sort_complex(pa.asarray(x)), np.sort_complex(x))
    equal_bits(pa.sort_complex(x.tolist()), np.sort_complex(x.tolist()))


def test_sort_complex_of_special_values(device):
    for dtype in ("float32", "complex64", "complex128"):
        x = values(getattr(pa, dtype), 40).reshape(2, 20)
        ours = pa.sort_complex(pa.asarray(x, device=device))
        equal_bits(ours, np.sort(x).astype(ours.dtype))
    assert pa.sort_complex(pa.ones(2, dtype="bfloat16", device=device)).dtype == pa.complex128


def is_partitioned(found, ordered, kth):
    """Whether what a sort puts at `kth` is there, and the rest on the right sides of it; each NaN is one."""
    np.testing.assert_array_equal(sort_stably(found), ordered)
    np.testing.assert_array_equal(found[list(kth)], ordered[list(kth)])
    for k in kth:
        for part, whole in ((found[:k], ordered[:k]), (found[k + 1 :], ordered[k + 1 :])):
            np.testing.assert_array_equal(sort_stably(part), whole)


DTYPES = ["float32", "float64", "int32", "int64", "uint32", "uint64", "float16", "int16", "uint16"]
EDGES = [1, 2, 3, 7, 8, 9, 16, 17, 31, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 513, 2100, 32768, 40001]
PATTERNS = ["random", "few", "equal", "largest", "rising", "falling", "organ pipe", "special", "sawtooth"]


def pattern(dtype, n, kind):
    """Input that is hard on pivots, or on what stands for something else."""
    rng, dtype = np.random.default_rng(n), np.dtype(dtype)
    floating = dtype.kind == "f"
    info = np.finfo(dtype) if floating else np.iinfo(dtype)
    if kind == "special":
        some = [info.min, info.max, 0, 1]
        if floating:
            some += [-0.0, 0.0, -1, np.nan, -np.nan, np.inf, -np.inf, info.smallest_subnormal]
        x = rng.choice(np.array(some, dtype), n)
        if floating:  # NaNs of many bits
            bits = x.view(f"u{dtype.itemsize}")
            bits[np.isnan(x)] ^= rng.integers(0, 1000, np.isnan(x).sum()).astype(bits.dtype)
        return x
    if kind == "random":
        x = rng.bytes(n * dtype.itemsize)
        return np.frombuffer(x, dtype).copy()
    line = np.arange(n)
    return {
        "few": rng.integers(0, 5, n),
        "equal": np.full(n, 3),
        "largest": np.full(n, np.inf if floating else info.max, dtype),
        "rising": line,
        "falling": line[::-1],
        "organ pipe": np.minimum(line, line[::-1]),
        "sawtooth": line % 37,
    }[kind].astype(dtype)


@pytest.mark.slow
@examples(75)
@given(st.data())
def test_vectors(data):
    """Sorts, selections and their positions around the sizes of vectors, networks and shared rows."""
    dtype, n = data.draw(st.sampled_from(DTYPES)), data.draw(st.sampled_from(EDGES))
    x = pattern(dtype, n, data.draw(st.sampled_from(PATTERNS)))
    if data.draw(st.booleans()):
        x = np.repeat(x, 2)[::-2]
    checked, ordered = data.draw(st.booleans()) and n < 3000, sort_stably(x)
    kth = data.draw(st.lists(st.integers(-n, n - 1), min_size=1, max_size=4))
    places = [k % n for k in kth]
    with pa.debug(checked):
        a = pa.asarray(x)
        equal_bits(pa.sort(a), sort_stably(x))
        falling_places = pa.asnumpy(pa.argsort(a, descending=True))
        equal_bits(pa.sort(a, descending=True), x[falling_places])
        found = pa.asnumpy(pa.partition(a, kth))
        if x.dtype.kind == "f":
            assert np.signbit(found[found == 0]).sum() == np.signbit(x[x == 0]).sum()
        is_partitioned(found, ordered, places)
        at = pa.asnumpy(pa.argpartition(a, kth))
        np.testing.assert_array_equal(np.sort(at), np.arange(n))
        is_partitioned(x[at], ordered, places)


@pytest.mark.parametrize("dtype", ["float32", "int64", "complex64", "uint8", "float16", "bool"])
def test_partition_of_rows(dtype, device):
    x = values(getattr(pa, dtype), 3 * 70 * 5).reshape(3, 70, 5)
    for axis, kth in ((1, 3), (-1, [0, 4]), (0, 1), (None, [7, -1]), (1, list(range(0, 70, 5)))):
        a = pa.asarray(x, device=device)
        found, at = pa.asnumpy(pa.partition(a, kth, axis=axis)), pa.argpartition(a, kth, axis=axis)
        flat = x.reshape(-1) if axis is None else x
        places = np.atleast_1d(kth)
        wanted = np.take(sort_stably(flat, axis or 0), places, axis=axis or 0)
        np.testing.assert_array_equal(np.take(found, places, axis=axis or 0), wanted)
        taken = np.take_along_axis(flat, pa.asnumpy(at), axis=axis or 0)
        np.testing.assert_array_equal(np.take(taken, places, axis=axis or 0), wanted)
        np.testing.assert_array_equal(sort_stably(found, axis or 0), sort_stably(flat, axis or 0))
