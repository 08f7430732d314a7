"""gemm: matrix products with a last step, against NumPy in a wider type."""

import math
from contextlib import nullcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import device_subset, examples

import pyarray as pa
from pyarray._core import clear_plans
from pyarray.fusion import fused_gemm
from pyarray.jit.bounded_cache import BoundedCache
from pyarray.kernels.matmul import gemm, gemm_blocks, gemm_epilogue, thresholds
from pyarray.tune import store as tune_store
from pyarray.tune.library import LibraryTuner

DTYPES = (
    "float32", "float64", "float16", "bfloat16", "int8", "uint8", "int16", "int32", "int64",
    "complex64", "complex128",
)  # fmt: skip
EPS = {"float32": 1e-5, "float64": 1e-13, "float16": 2e-3, "bfloat16": 2e-2, "complex64": 1e-5}
SIZES = st.one_of(st.integers(0, 20), st.sampled_from([31, 32, 33, 48, 65, 130]))


@pa.func
def relu(x):
    return max(x, 0)


@pa.func
def soft(x):
    return x / (1 + abs(x))


@pa.func
def costly(x):
    return pa.exp(x) * pa.sin(x) + pa.tanh(x)


def wide(dtype):
    kind = np.dtype(dtype if dtype != "bfloat16" else "float32").kind
    return {"f": np.float64, "c": np.complex128}.get(kind, np.dtype(dtype if kind in "iu" else "float64"))


def drawn_view(data, rng, shape, dtype, device):
    """The array and what it holds, of any strides."""
    layout = data.draw(st.sampled_from(["rows", "columns", "steps", "negative", "broadcast"]))
    values = rng.integers(0 if dtype == "uint8" else -4, 5, shape).astype(wide(dtype))
    x = pa.asarray(values, device=device).astype(dtype)
    if layout == "columns" and len(shape) > 1:
        x = x.mT.copy().mT
    elif layout == "steps":
        whole = pa.zeros((*shape[:-1], 3 * shape[-1]), dtype=dtype, device=device)
        whole[..., ::3] = x
        x = whole[..., ::3]
    elif layout == "negative":
        x, values = x[..., ::-1], values[..., ::-1]
    elif layout == "broadcast" and len(shape) > 1 and shape[-2]:
        x = pa.broadcast_to(x[..., :1, :], shape)
        values = np.broadcast_to(values[..., :1, :], shape)
    return x, values


def agree(got, want, dtype):
    found = pa.asnumpy(got.astype("float64") if dtype == "bfloat16" else got)
    tolerance = EPS.get(dtype, 1e-13) if np.dtype(wide(dtype)).kind in "fc" else 0
    assert found.shape == want.shape
    assert np.all(np.abs(found.astype(want.dtype) - want) <= tolerance * (np.abs(want) + 1))


@examples(5)
@given(data=st.data(), dtype=st.sampled_from(DTYPES), m=SIZES, n=SIZES, k=SIZES)
def test_all_parts(device, data, dtype, m, n, k):
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    batch = data.draw(st.sampled_from([(), (), (3,), (2, 2)]))
    a, x = drawn_view(data, rng, (*batch, m, k), dtype, device)
    b, y = drawn_view(data, rng, data.draw(st.sampled_from([(*batch, k, n), (k, n)])), dtype, device)
    options, want = {}, x @ y
    if data.draw(st.booleans()):
        options["alpha"], want = 2, 2 * want
    if data.draw(st.booleans()):
        options["c"], z = drawn_view(data, rng, data.draw(st.sampled_from([(*batch, m, n), (m, 1)])), dtype, device)
        options["beta"], want = 3, want + 3 * z
    if data.draw(st.booleans()):
        options["bias"], z = drawn_view(data, rng, data.draw(st.sampled_from([(n,), (m, n)])), dtype, device)
        want = want + z
    if np.dtype(wide(dtype)).kind != "c" and data.draw(st.booleans()):
        options["activation"], want = relu, np.maximum(want, 0)
    agree(pa.gemm(a, b, **options), want.astype(wide(dtype)), dtype)


@pytest.mark.all_variants
@pytest.mark.parametrize("columns", [False, True], ids=["rows", "columns"])
def test_arrays_of_a_batch(device, columns):
    """Each matrix has its own, however the result lies: by tensor cores where the device has them, too."""
    rng, outer = np.random.default_rng(3), (2, 3)
    for dtype in device_subset(("float32", "float16", "float64"), columns, device):
        x, y, z = (rng.integers(-2, 3, (*outer, *s)).astype(dtype) for s in ((70, 20), (20, 66), (70, 66)))
        bias = rng.integers(-2, 3, (2, 1, 1, 66)).astype(dtype)
        a, b, c, e = (pa.asarray(v, device=device) for v in (x, y, z, bias))
        out = pa.empty((*outer, 66, 70), dtype=dtype, device=device).mT if columns else None
        got = pa.gemm(a, b, beta=2, c=c, bias=e, activation=relu, out=out)
        np.testing.assert_array_equal(pa.asnumpy(got), np.maximum(x @ y + 2 * z + bias, 0))


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(1, 300, 200), (200, 700, 130), (2000, 3, 4), (5, 5000, 6), (300, 40, 1)])
@pytest.mark.parametrize("dtype", ["float32", "float16", "complex64", "int8"])
def test_every_way_of_the_product_has_the_step(device, shape, dtype):
    """Few rows, few columns, a long way, many tiles."""
    (m, k, n), rng = shape, np.random.default_rng(1)
    x, y, z = (rng.integers(-2, 3, s).astype(wide(dtype)) for s in ((m, k), (k, n), (n,)))
    a, b, bias = (pa.asarray(v, device=device).astype(dtype) for v in (x, y, z))
    agree(pa.gemm(a, b, alpha=-1, bias=bias), (z - x @ y).astype(wide(dtype)), dtype)


@pytest.mark.parametrize(
    ("source", "result"),
    [("int8", "int32"), ("uint8", "int32"), ("int8", "int64"), ("int16", "int32"), ("uint16", "uint64"),
     ("float16", "float32"), ("bfloat16", "float32"), ("float32", "float64"), ("int32", "float64")],
)  # fmt: skip
def test_wider_results(device, source, result):
    rng, low = np.random.default_rng(2), 0 if source[0] == "u" else -100
    for m, k, n in device_subset(((1, 90, 90), (30, 90, 40), (90, 90, 3)), len(source), device):
        x, y = rng.integers(low, 101, (m, k)), rng.integers(low, 101, (k, n))
        a, b = (pa.asarray(v, device=device).astype(source) for v in (x, y))
        got = pa.gemm(a, b, dtype=result)
        assert got.dtype == result
        np.testing.assert_array_equal(pa.asnumpy(got), (x @ y).astype(result))


@pytest.mark.slow
def test_out(device):
    """It may be c itself, a view of it, an operand, of a wider type."""
    x = np.arange(49.0).reshape(7, 7) % 5
    a, c = pa.asarray(x.copy(), device=device), pa.ones((7, 7), device=device)
    assert pa.gemm(a, a, beta=1, c=c, out=c) is c
    np.testing.assert_array_equal(pa.asnumpy(c), x @ x + 1)
    pa.gemm(a, a, beta=2, c=c.T, out=c)
    np.testing.assert_array_equal(pa.asnumpy(c), x @ x + 2 * (x @ x + 1).T)
    pa.gemm(a, a, bias=a[0], out=a)
    np.testing.assert_array_equal(pa.asnumpy(a), x @ x + x[0])
    small = pa.asarray(x, dtype="float32", device=device)
    np.testing.assert_array_equal(pa.asnumpy(pa.gemm(small, small, alpha=2, out=c)), 2 * (x @ x))


def test_activations_that_are_kept_are_bounded(device, monkeypatch):
    monkeypatch.setattr(fused_gemm, "_replayed", BoundedCache(2))
    monkeypatch.setattr(gemm_epilogue, "_kernels", BoundedCache(2))

    def shift(n):
        @pa.func
        def shifted(x):
            return x + n

        return shifted

    a = pa.ones((2, 2), device=device)
    for n in (1, 2, 3, 1):
        assert pa.gemm(a, a, activation=shift(n)).tolist() == [[2.0 + n] * 2] * 2
    assert len(fused_gemm._replayed) == 2
    assert len(gemm_epilogue._kernels) in (0, 2)


NAMED = {
    "relu": lambda x: np.maximum(x, 0),
    "gelu": lambda x: x / 2 * np.vectorize(lambda v: 1 + math.erf(v / math.sqrt(2)), otypes=[float])(x),
    "silu": lambda x: x / (1 + np.exp(-x)),
}


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_activations_by_name(device, name, dtype):
    """Of new results and of those that are given, and in calls that are repeated."""
    rng = np.random.default_rng(5)
    x, y, z = (rng.integers(-3, 4, s).astype(float) for s in ((37, 20), (20, 41), (41,)))
    a, b, bias = (pa.asarray(v, device=device).astype(dtype) for v in (x, y, z))
    want = NAMED[name]((x @ y) / 4 + z)
    out = pa.empty((37, 41), dtype=dtype, device=device)
    for _ in range(5):
        agree(pa.gemm(a, b, alpha=0.25, bias=bias, activation=name), want, dtype)
        pa.gemm(a, b, alpha=0.25, bias=bias, activation=name, out=out)
        agree(out, want, dtype)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gelu", "silu"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_activations_of_all_halves(device, name, dtype):
    """On GPUs within one place of the result; on CPUs 1 + erf(x) is off by that of 1 at most."""
    bits = np.arange(1 << 16, dtype=np.uint16).reshape(256, 256)
    kind = np.dtype(dtype)
    x = bits.view(kind)
    x = np.where(np.isfinite(x.astype(np.float32)), x, kind.type(1))
    got = pa.gemm(*(pa.asarray(v, device=device) for v in (x, np.eye(256, dtype=kind))), activation=name)
    wide = x.astype(np.float64)
    with np.errstate(over="ignore"):
        tail = np.vectorize(math.erfc, otypes=[float])(-wide / math.sqrt(2)) / 2
        wanted = wide * (tail if name == "gelu" else 1 / (1 + np.exp(-wide)))
    found = pa.asnumpy(got).astype(np.float64)
    with np.errstate(over="ignore"):  # the place of the largest
        place = np.abs(np.spacing(wanted.astype(kind)).astype(np.float64))
    if device == "cpu":
        place = np.maximum(place, np.abs(wide) * 2.0**-22)
    # bfloat16 has smaller ones, which may be 0: its products flush them, and e to the power 89 is infinite in float32
    allowed = np.maximum(place, 2.0**-116)
    assert np.all(np.abs(found - wanted) <= allowed)


@pytest.mark.slow
def test_named_activations_of_what_is_no_number(device):
    """As torch's: a NaN stays one."""
    a = pa.asarray([[np.nan, 0.0, 800.0, -800.0]], dtype="float32", device=device)
    for name in NAMED:
        got = pa.asnumpy(pa.gemm(pa.ones((1, 1), dtype="float32", device=device), a, activation=name))
        np.testing.assert_array_equal(got, [[np.nan, 0, 800, 0]])
    whole = pa.asarray([[-5, 5]], dtype="int16", device=device)
    assert pa.gemm(whole.T, whole, activation="relu").tolist() == [[25, 0], [0, 25]]


FACTORS = {"scale": 2.0}


@pa.func
def scaled(x):
    return x * FACTORS["scale"]


@pytest.mark.slow
def test_what_an_activation_captures_may_change(device, monkeypatch):
    """Also below another function, and after calls that are repeated."""
    offset = 1.0

    @pa.func
    def shifted(x):
        return scaled(x) + offset

    a, out = pa.ones((2, 2), device=device), pa.empty((2, 2), device=device)
    for scale, offset in ((2.0, 1.0), (3.0, 1.0), (3.0, 5.0), (2.0, 1.0)):
        monkeypatch.setitem(FACTORS, "scale", scale)
        for _ in range(6):
            assert pa.gemm(a, a, activation=shifted).tolist() == [[2 * scale + offset] * 2] * 2
            assert pa.gemm(a, a, activation=shifted, out=out).tolist() == [[2 * scale + offset] * 2] * 2


def test_halves_are_rounded_behind_the_activation(device):
    """4097 is no half; where the product has no last step, there are two roundings."""
    a = pa.ones((8, 4097), dtype="float16", device=device)
    got = pa.asnumpy(pa.gemm(a, a.T, activation=soft))
    np.testing.assert_allclose(got.astype(float), 4097 / 4098, rtol=1e-3)
    if device == "cpu":
        ones = pa.ones((8, 8), dtype="float16", device=device)
        assert pa.all(pa.gemm(a, a.T, beta=-4096, c=ones) == 1)


def test_what_is_refused():
    a = pa.ones((2, 3))
    with pytest.raises(ValueError, match=r"expected shapes \(\.\.\., M, K\) and \(\.\.\., K, N\), got \(2, 3\)"):
        pa.gemm(a, a)
    with pytest.raises(TypeError, match="beta without c: give c"):
        pa.gemm(a, a.T, beta=1)
    with pytest.raises(TypeError, match="expected alpha to be a real number, for products of float64, got None"):
        pa.gemm(a, a.T, alpha=None)
    with pytest.raises(TypeError, match="c without beta"):
        pa.gemm(a, a.T, c=a)
    with pytest.raises(TypeError, match=r"or one of 'relu', 'gelu', 'silu', got .*; make it one with @pa\.func"):
        pa.gemm(a, a.T, activation=abs)
    with pytest.raises(ValueError, match=r"one of 'relu', 'gelu', 'silu', got 'tanh'; others are functions with @pa"):
        pa.gemm(a, a.T, activation="tanh")
    with pytest.raises(TypeError, match="activation 'gelu' is not defined for int32; give another dtype="):
        pa.gemm(a, a.T, activation="gelu", dtype="int32")
    with pytest.raises(TypeError, match="activation 'relu' is not defined for complex128"):
        pa.gemm(a, a.T, activation="relu", dtype="complex128")
    with pytest.raises(TypeError, match="not defined for bool"):
        pa.gemm(a > 0, a.T)
    with pytest.raises(ValueError, match="broadcast"):
        pa.gemm(a, a.T, bias=pa.ones(5))


@pytest.mark.parametrize("zero", [0, 0.0, -0.0, False, np.float32(0), np.array(0), 0j, "0-d"])
def test_a_beta_of_zero_leaves_c_out(device, zero):
    """Also in calls that are repeated, and where c is cast, or is the result."""
    zero = pa.asarray(0.0, device=device) if isinstance(zero, str) else zero
    kind = "complex64" if isinstance(zero, complex) else "float32"
    a = pa.asarray([[1, 2], [3, 4]], dtype=kind, device=device)
    for c in [pa.full((2, 2), np.nan, dtype=kind, device=device)] * 6 + [pa.asarray(np.nan, device=device)]:
        assert pa.gemm(a, a, beta=zero, c=c).tolist() == [[7, 10], [15, 22]]
    out = pa.full((2, 2), np.nan, dtype=kind, device=device)
    pa.gemm(a, a, alpha=2, beta=zero, c=out, bias=a, out=out)
    assert out.tolist() == [[15, 22], [33, 48]]
    assert pa.gemm(a, a, beta=zero).tolist() == [[7, 10], [15, 22]]
    with pytest.raises(ValueError, match="broadcast"):
        pa.gemm(a, a, beta=zero, c=pa.ones(5, device=device))


@pytest.mark.parametrize(
    ("dtype", "number"),
    [("uint64", 2**63), ("uint64", 2**64 - 1), ("int64", -(2**63)), ("int64", 2**63 - 1), ("uint8", 255),
     ("int8", np.int64(-128)), ("int32", True), ("float32", np.array(2.5)), ("float64", Fraction(1, 4)),
     ("complex64", 1j), ("float16", 3)],
)  # fmt: skip
def test_factors_of_every_type_of_number(device, dtype, number):
    x = np.array([[1, 2], [3, 4]])
    a = pa.asarray(x, device=device).astype(dtype)
    plain = number.item() if hasattr(number, "item") else number
    want = (x @ x).astype(object) * plain + plain
    if a.dtype.kind in "iu":
        bits = 8 * a.dtype.itemsize
        want = (want % (1 << bits)).astype(f"uint{bits}")
    got = pa.gemm(a, a, alpha=number, beta=number, c=pa.ones_like(a))
    np.testing.assert_array_equal(pa.asnumpy(got), want.astype(np.dtype(dtype)))


@pytest.mark.parametrize("name", ["alpha", "beta"])
@pytest.mark.parametrize(
    ("dtype", "number", "error", "text"),
    [("uint64", 2**64, OverflowError, r"uint64, which holds 0 to 18446744073709551615, got 18446744"),
     ("int64", 2**63, OverflowError, r"int64, which holds -9223372036854775808 to 92.*, got 9"),
     ("uint8", -1, OverflowError, r"uint8, which holds 0 to 255, got -1; give one that it holds, or"),
     ("int8", pa.asarray(300), OverflowError, r"int8, which holds -128 to 127, got 300"),
     ("float32", 1 << 16609, OverflowError, r"float32, which holds -3.4\S+ to 3.4\S+, got a number of 16"),
     ("complex64", Fraction(10**400), OverflowError, r"complex64, which holds .* got a number of 1329 bits"),
     ("int32", 2.0, TypeError, r"an integer, for products of int32, got 2.0; give an integer, or anot"),
     ("int32", np.float64(3), TypeError, r"an integer, for products of int32, got "),
     ("float64", 1j, TypeError, r"a real number, for products of float64, got 1j; give a real number, or"),
     ("float64", "2", TypeError, r"a real number, for products of float64, got '2'; give a real number$"),
     ("complex64", "2", TypeError, r"a number, for products of complex64, got '2'"),
     ("float64", np.array([2.0]), TypeError, r"a real number, .* got array\(\[2\.\]\); give a real number"),
     ("float64", np.array("2"), TypeError, r"a real number, .* got array\('2'")],
    ids=lambda value: repr(value) if isinstance(value, str) else "",  # Python writes no number so long
)  # fmt: skip
def test_factors_that_are_refused(name, dtype, number, error, text):
    a = pa.ones((2, 2), dtype=dtype)
    with pytest.raises(error, match=rf"^gemm\(\): (expected )?{name} .*{text}"):
        pa.gemm(a, a, **{name: number}, c=a if name == "beta" else None)


def test_activations_that_are_refused():
    a = pa.ones((2, 2))
    for function, shown in (
        (pa.func(lambda: 1.0), r"<lambda>\(\)"),
        (pa.func(lambda x, y: x), r"<lambda>\(x, y\)"),
        (pa.func(lambda x, *, y: x), r"<lambda>\(x, \*, y\)"),
    ):
        for out in (None, pa.ones((2, 2))):
            with pytest.raises(TypeError, match=rf"one number, got {shown} \(.*test_epilogue\.py:\d+\); give"):
                pa.gemm(a, a, activation=function, out=out)
    assert pa.gemm(a, a, activation=pa.func(lambda x, y=2.0: x + y)).tolist() == [[4.0, 4.0], [4.0, 4.0]]


def test_the_tuner_may_choose_the_blocks(monkeypatch, tmp_path):
    """Large products ask it; whatever it says, the product is the same."""
    monkeypatch.setattr(tune_store, "folder", lambda: tmp_path)
    monkeypatch.setattr(thresholds, "TUNED_WORK", 1000)
    clear_plans()  # that were made with the other threshold
    odd = pa.Config(kc=20, mc=12, nc=32)
    tuner = LibraryTuner("matmul", [gemm_blocks.DEFAULT, odd], lambda: "text", warmup=0, rep=1)
    monkeypatch.setattr(gemm, "tuner", lambda: tuner)
    x, y = (np.random.default_rng(k).integers(-3, 4, (70, 70)).astype(np.float32) for k in range(2))
    with monkeypatch.context() as patch:
        patch.setenv("PYARRAY_AUTOTUNE", "force")
        a, b = pa.asarray(x, device="cpu"), pa.asarray(y, device="cpu")
        np.testing.assert_array_equal(pa.asnumpy(a @ b), x @ y)
    assert tuner.cache_info()["searches"] == 1
    monkeypatch.setattr(tuner, "choose", lambda *_: odd)
    for _ in range(2):  # the second time without what the first one looks into
        a, b = pa.asarray(x, device="cpu"), pa.asarray(y, device="cpu")
        np.testing.assert_array_equal(pa.asnumpy(a @ b), x @ y)
        np.testing.assert_array_equal(pa.asnumpy(pa.gemm(a, b, alpha=2, bias=a)), 2 * (x @ y) + x)
    clear_plans()


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((1, 640), (640, 10)), ((5, 6400), (6400, 1)), ((1, 640), (640, 1)), ((40, 640), (640, 50)),
        ((300, 1, 64), (300, 64, 24)), ((3, 2, 640), (640, 1)),
    ],
)  # fmt: skip
def test_halves_are_rounded_once(device, checked, dtype, left, right):
    """Sums beyond float16, and such as bfloat16 would round, before an epilogue in the same pass and in one of its
    own."""
    a, b = pa.full(left, 50, dtype=dtype, device=device), pa.full(right, 50, dtype=dtype, device=device)
    b[..., 0, :] = 1
    sums = 2500 * (left[-1] - 1) + 50
    with pa.debug() if checked else nullcontext():
        scaled = pa.asnumpy(pa.gemm(a, b, alpha=2**-9))
        apart = pa.asnumpy(pa.gemm(a, b, alpha=2**-23, activation=costly))
    np.testing.assert_array_equal(scaled, np.full(scaled.shape, sums / 512).astype(scaled.dtype))
    x = sums / 2**23
    want = np.exp(x) * np.sin(x) + np.tanh(x)
    rounding = 2.0**-8 if dtype == "bfloat16" else 2.0**-11
    np.testing.assert_allclose(apart.astype(float), np.full(apart.shape, want), rtol=1.01 * rounding)
