"""Fused functions on every device: maps, rows, columns, tiles, several results, copies, debug checks."""

import numpy as np
import pytest
from strategies import TIMES

import pyarray as pa

CASES = {
    "map": lambda x, t: x * t + pa.where(x > 3, x, -x),
    "rows": lambda x, t: pa.sum(x * t, axis=1),
    "columns": lambda x, t: pa.max(x * t, axis=0),
    "all": lambda x, t: pa.mean(x.T * t),
    "reshape": lambda x, t: (x + x[0]).reshape(-1, 2) * t,
    "copied": lambda x, t: (x + x[0]).reshape(5, 8) * x.T.reshape(5, 8),
    "several": lambda x, t: (x + t, x[:, ::-1] > t, pa.any(x > t, axis=1)),
    "stages": lambda x, t: x / pa.sum(x, axis=0, keepdims=True),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("checked", [False, True], ids=["plain", "debug"])
def test_fused_is_what_numpy_finds(device, name, checked):
    values = np.arange(1, 41, dtype=np.float32).reshape(8, 5)
    fused = pa.fuse(CASES[name])
    with pa.debug(checked):
        found = fused(pa.asarray(values, device=device), 2)
        again = fused(pa.asarray(values, device=device), 3)
    for ours, number in ((found, 2), (again, 3)):
        theirs = CASES[name](pa.asarray(values, device="cpu"), number)
        for x, y in zip(ours, theirs, strict=True) if name == "several" else [(ours, theirs)]:
            assert str(x.device) == str(pa.get_device(device))
            np.testing.assert_allclose(pa.asnumpy(x), pa.asnumpy(y), rtol=1e-6)
    assert fused.cache_info()["unfused"] == 0


def test_a_transpose_is_walked_in_tiles(device):
    values = np.arange(200 * 130, dtype=np.float32).reshape(200, 130)
    x = pa.asarray(values, device=device)
    fused = pa.fuse(lambda x, y: x.T * 2 + y)
    np.testing.assert_array_equal(pa.asnumpy(fused(x, x[0, 0])), values.T * 2)


# Calls with a plan: numbers are operands, computed ones too, and captured arrays.

WEIGHTS = pa.asarray([1.0, -2.0, 0.5])


def scaled(x, t, n=1):
    return x * t + n


def normalized(x, t, n=1):
    t = 2 * t
    e = pa.exp(x * t - pa.max(x * t, axis=-1, keepdims=True))
    return e / pa.sum(e * n, axis=-1, keepdims=True)


def of_a_size(x, t, n=1):
    return (x - pa.mean(x, axis=0)) * (2 * t + x.shape[0]), pa.sum(x * (n - 1), axis=0)


def with_weights(x, t, n=1):
    return pa.sum(x * WEIGHTS, axis=-1) * t + n


def of_integers(x, t, n=1):
    return pa.astype(x, pa.int8) * n + 1, x / t


PLANNED = (scaled, normalized, of_a_size, with_weights, of_integers)
NUMBERS = (2, 3.0, -0.0, float("nan"), 0, -7, 300, 2**40)
RARE = (1j, True, np.float64(0.5))


def outcome(function, *args, **options):
    try:
        with np.errstate(all="ignore"):
            found = function(*args, **options)
    except Exception as error:
        return type(error), str(error)
    return [(x.dtype, pa.asnumpy(x)) for x in (found if isinstance(found, tuple) else (found,))]


def assert_same(found, expected):
    assert type(found) is type(expected), (found, expected)
    if isinstance(found, tuple):
        assert found == expected
        return
    for (dtype, x), (other, y) in zip(found, expected, strict=True):
        assert dtype == other
        np.testing.assert_allclose(x, y, rtol=1e-13, equal_nan=True)


@pytest.mark.slow
@pytest.mark.parametrize("function", PLANNED, ids=lambda f: f.__name__)
@pytest.mark.parametrize("seed", range(2 * TIMES))
def test_plans_with_numbers_give_what_the_function_gives(device, function, seed, monkeypatch):
    rng = np.random.default_rng(seed)
    fused, kinds = pa.fuse(function), [(t, n) for t in (*NUMBERS, RARE[seed % 3]) for n in (2, 0.5 * seed)]
    for turn in range(100):
        x = pa.asarray(rng.random((int(rng.integers(1, 3)), 3)) * 4, device=device)
        x = x[::-1] if rng.random() < 0.3 else x
        numbers = kinds[0] if turn < 12 else kinds[rng.integers(len(kinds))]
        options = dict(zip(("t", "n"), numbers, strict=True))
        args = [options.pop(name) for name in ("t", "n")[: rng.choice([seed % 2, 2])]]
        if rng.random() < 0.2:
            options["out"] = pa.empty(x.shape, device=device)
        plain = {k: v for k, v in options.items() if k != "out"}
        with monkeypatch.context() as patch:  # arrays of several devices are for fused functions alone
            patch.setitem(globals(), "WEIGHTS", pa.asarray(WEIGHTS, device=device))
            expected = outcome(function, x, *args, **plain)
        found = outcome(fused, x, *args, **options)
        if "out" not in options:
            assert_same(found, expected)
        elif isinstance(found, list):
            assert found[0][0] == np.float64  # of `out`
            np.testing.assert_allclose(found[0][1], expected[0][1], rtol=1e-13, equal_nan=True)
    moved = function is with_weights and device != "cpu"
    assert moved or fused.cache_info()["hits"] > 5


def test_a_computed_number_that_several_kernels_use(device):
    def function(x, n, t):
        t = 2 * t + n
        return x * t, pa.sum(x * t, axis=0)

    fused, host = pa.fuse(function), np.arange(6.0).reshape(2, 3)
    x = pa.asarray(host, device=device)
    for turn in range(8):
        product, sums = fused(x, turn, 5 - turn)
        assert product.tolist() == (host * (10 - turn)).tolist()
        assert sums.tolist() == (host * (10 - turn)).sum(0).tolist()
    assert fused.cache_info()["hits"]


@pytest.mark.parametrize("number", [0, 1], ids=["no numbers", "numbers"])
def test_a_captured_array_that_is_resized_is_read_in_its_new_shape(device, number):
    weights = pa.ones(6, device=device)
    fused = pa.fuse(lambda x, *t: pa.sum(x * weights, axis=-1, keepdims=True) + (t[0] if t else 0))
    x = pa.ones((2, 6), device=device)
    for shape, answer in [((6,), 6.0), ((1,), 6.0), ((2, 6), 1.0), ((2,), None), ((2, 1), 6.0), ((6,), 1.0)]:
        weights.resize(shape)
        for _ in range(6):
            if answer is None:
                with pytest.raises(ValueError, match="don't broadcast"):
                    fused(x, *[1.0] * number)
            else:
                assert fused(x, *[1.0] * number).tolist()[0] == [answer + number]
    assert fused.cache_info()["hits"]


def test_a_captured_array_shares_memory_with_out(device):
    weights = pa.asarray([1.0, 2.0, 3.0], device=device)
    fused = pa.fuse(lambda x, t: pa.sum(x * weights) * t + weights)
    other = pa.zeros(3, device=device)
    for turn in range(12):
        out = weights if turn % 2 else other
        before = weights.tolist()
        fused(pa.ones(3, device=device), 0.5, out=out)
        assert out.tolist() == [sum(before) * 0.5 + w for w in before]


def test_a_captured_array_of_another_device_is_read_at_each_call(device):
    weights = pa.ones(3, device="cpu")
    fused = pa.fuse(lambda x, t: x * weights + t)
    for value in range(1, 9):
        weights[...] = value
        assert fused(pa.ones(3, device=device), 1.0).tolist() == [value + 1.0] * 3


def test_numbers_that_dont_fit_are_refused_by_plans_too(device):
    @pa.fuse
    def fused(x, n):
        m = 2 * n  # a number of both launches
        return x * m + pa.max(x * m) // m

    x = pa.asarray([1, 2, 3], dtype=pa.int8, device=device)
    for _ in range(6):
        assert fused(x, 3).tolist() == [9, 15, 21]
    before = fused.cache_info()["hits"]
    for n in (64, -65, 2**70):
        with pytest.raises(OverflowError):
            fused(x, n)
    assert fused(x, 4).tolist() == [11, 19, 27]
    assert fused.cache_info()["hits"] > before


def test_a_shape_that_a_number_decides_has_no_plan(device):
    fused = pa.fuse(lambda x, n: pa.sum(x.reshape(n, -1), axis=0))
    x = pa.arange(12, device=device)
    for n in (2, 3, 4, 6) * 3:
        assert fused(x, n).tolist() == pa.sum(x.reshape(n, -1), axis=0).tolist()
    assert not fused.cache_info()["hits"]


def test_static_numbers_are_compiled_in_by_position_and_keyword(device):
    fused = pa.fuse(lambda x, n, t: pa.sum(x**n, axis=0) * t, static="n")
    x = pa.asarray([1, 2, 3], device=device)
    for turn in range(48):
        n, t = 1 + turn % 2, turn
        found = fused(x, n, t) if turn % 3 == 0 else fused(x, n=n, t=t) if turn % 3 == 1 else fused(x, t=t, n=n)
        assert found.tolist() == (6 if n == 1 else 14) * t
    assert fused.cache_info()["hits"]
