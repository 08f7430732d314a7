"""Fused functions of rows: one kernel for reductions along the same rows and what follows, against NumPy."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import device_subset, examples

import pyarray as pa

EPS = 1e-3


def softmax(m, x):
    e = m.exp(x - m.max(x, axis=-1, keepdims=True))
    return e / m.sum(e, axis=-1, keepdims=True)


def layer_norm(m, x):
    d = x - m.mean(x, axis=-1, keepdims=True)
    return d / m.sqrt(m.mean(d * d, axis=-1, keepdims=True) + EPS)


def standardized(m, x):
    return (x - m.mean(x, axis=-1, keepdims=True)) / m.std(x, axis=-1, keepdims=True)


def logsumexp(m, x):
    top = m.max(x, axis=-1)
    return m.log(m.sum(m.exp(x - top[..., None]), axis=-1)) + top


def several(m, x):
    top, low = m.max(x, axis=-1), m.min(x, axis=-1)
    inside = (x > low[..., None]) & (x < top[..., None])
    return top - low, m.where(inside, x, 0), m.any(inside, axis=-1), m.var(x, axis=-1, keepdims=True), top


def of_all(m, x):
    """The mean over rows follows from another kernel's results."""
    loss = logsumexp(m, x) - x[..., 0]
    return m.mean(loss), loss


FUNCTIONS = (softmax, layer_norm, standardized, logsumexp, several, of_all)
LIMITS = {"float64": 1e-12, "float32": 3e-5, "float16": 2e-2, "bfloat16": 1e-1}
SHAPES = {
    "rows": (5, 7), "a row": (300,), "long rows": (2, 8200), "pieces": (2, 70_000), "batches": (3, 4, 33),
    "of one": (4, 1), "short": (70, 3), "filling a block": (3, 8192),
}  # fmt: skip


def assert_close(found, expected, dtype):
    found, expected = ((x if isinstance(x, tuple) else (x,)) for x in (found, expected))
    for ours, theirs in zip(found, expected, strict=True):
        ours = pa.asnumpy(ours)
        assert ours.shape == theirs.shape
        if theirs.dtype == bool:
            np.testing.assert_array_equal(ours, theirs)
            continue
        limit = LIMITS[str(np.dtype(dtype))]
        np.testing.assert_allclose(ours.astype("d"), theirs.astype("d"), rtol=limit, atol=limit)


def fused(function):
    return pa.fuse(lambda x: function(pa, x))


@pytest.mark.parametrize("case", SHAPES)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_as_numpy(device, function, case):
    turn = list(SHAPES).index(case) + FUNCTIONS.index(function)
    for dtype in device_subset(["float32", "float64", "float16"], turn, device):
        x = np.random.default_rng(turn).normal(0, 2, SHAPES[case]).astype(dtype)
        if case == "of one" and function is standardized:
            continue  # 0 / 0
        ours = fused(function)
        assert_close(ours(pa.asarray(x, device=device)), function(np, x.astype("d")), dtype)
        assert ours.cache_info()["unfused"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("function", [softmax, layer_norm, several], ids=lambda f: f.__name__)
@pytest.mark.parametrize("checked", [False, True], ids=["release", "debug"])
def test_views_and_special_values(device, function, checked):
    x = np.random.default_rng(1).normal(size=(6, 8)).astype("f")
    x[0, 3], x[2], x[5] = -np.inf, np.inf, -np.inf
    x[4, 1] = np.nan
    there, ours = pa.asarray(x, device=device), fused(function)
    with np.errstate(all="ignore"), pa.debug(checked):
        for found, given in ((there[::2, 1:], x[::2, 1:]), (there.T, x.T), (there[:, ::-1], x[:, ::-1])):
            assert_close(ours(found), function(np, given), "float32")


def test_bfloat16_rounds_each_result_as_the_function_does_by_itself(device):
    x = pa.asarray(np.random.default_rng(2).normal(size=(4, 65)).astype(ml_dtypes.bfloat16), device=device)
    for function in device_subset([softmax, layer_norm], 0, device):
        found, expected = (pa.asnumpy(y).astype("f") for y in (fused(function)(x), function(pa, x)))
        np.testing.assert_allclose(found, expected, rtol=1 / 64)


def test_integers_are_exact(device):
    x = np.random.default_rng(3).integers(-90, 90, (7, 130)).astype("int8")

    def function(m, x):
        total = m.sum(x, axis=-1, keepdims=True)
        return x * total // 3, total[..., 0] % 7, m.max(x, axis=-1) - m.min(x, axis=-1)

    for ours, theirs in zip(fused(function)(pa.asarray(x, device=device)), function(np, x), strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(pa.asnumpy(ours), theirs)


def test_out_may_be_the_operand(device):
    x = np.random.default_rng(4).normal(size=(5, 40)).astype("f")
    ours, a = fused(softmax), pa.asarray(x, device=device)
    for turn in range(6):  # calls with a plan among them
        wide = pa.zeros((6, 41), dtype="float32", device=device)
        wide[1:, 1:] = a
        for out, x in ((wide[1:, 1:], wide[1:, 1:]), (wide[:-1, :-1], wide[1:, 1:])):
            expected = softmax(np, pa.asnumpy(x).astype("d"))
            assert ours(x, out=out) is out, turn
            np.testing.assert_allclose(pa.asnumpy(out), expected, rtol=1e-4, atol=1e-6)


def test_empty_rows_are_the_functions_own(device):
    for shape in ((0, 5), (3, 0)):
        x = pa.zeros(shape, device=device)
        assert fused(layer_norm)(x).shape == shape
    with pytest.raises(ValueError, match="no elements"):
        fused(softmax)(pa.zeros((3, 0), device=device))


@pytest.mark.slow
def test_special_functions_are_fused(device):
    x = np.random.default_rng(6).normal(size=(4, 30)).astype("f")
    x[1], x[2, 3] = -np.inf, np.nan
    mask, a = pa.asarray(x > 0, device=device), pa.asarray(x, device=device)
    for name in ("softmax", "log_softmax", "logsumexp"):
        function = getattr(pa.special, name)
        ours = pa.fuse(lambda x, m, f=function: f(pa.where(m, x, -1.0), axis=-1))
        ours(a, mask)
        with pa.trace() as trace:
            found = ours(a, mask)
        assert len(trace.launches) == 1
        expected = pa.asnumpy(function(pa.where(mask, a, -1.0), axis=-1))
        np.testing.assert_allclose(pa.asnumpy(found), expected, rtol=1e-5, atol=1e-6)


def test_one_kernel_for_a_row(device):
    a = pa.ones((4, 40), device=device)
    for function, kernels in ((softmax, 1), (several, 1), (of_all, 2)):
        ours = fused(function)
        ours(a)
        with pa.trace() as trace:
            ours(a)
        assert len(trace.launches) == kernels, trace.launches


def test_what_goes_by_other_rows_has_kernels_of_its_own(device):
    """A transposed result stands in other rows, and rows of columns aren't neighbours."""
    x = np.random.default_rng(5).normal(size=(6, 6))

    def turned(m, x):
        top = m.max(x, axis=-1)
        return x - top, m.sum(x - top, axis=-1), m.sum(x - top[:, None], axis=-1)  # top of a column

    def columns(m, x):
        return x / m.sum(x * x, axis=0, keepdims=True) + m.max(x, axis=0)

    for function in (turned, columns):
        assert_close(fused(function)(pa.asarray(x, device=device)), function(np, x), "float64")


STEPS = {
    "row": lambda m, x, y, w: x - y[..., :1],
    "weight": lambda m, x, y, w: x * w + y,
    "less": lambda m, x, y, w: m.where(x < y, x, w),
    "sum": lambda m, x, y, w: x + m.sum(y, axis=-1, keepdims=True),
    "max": lambda m, x, y, w: x - m.max(y - w, axis=-1, keepdims=True),
    "least": lambda m, x, y, w: m.min(x, axis=-1, keepdims=True) + y,
    "kept": lambda m, x, y, w: y + m.sum(x * y, axis=-1)[..., None] % 5,
    "turned": lambda m, x, y, w: x[::-1] + m.max(y, axis=-1, keepdims=True)[::-1],
    "wrong rows": lambda m, x, y, w: x[::-1] + m.max(y, axis=-1, keepdims=True),
    "first": lambda m, x, y, w: x - m.sum(y, axis=0, keepdims=True),
    "exponential": lambda m, x, y, w: m.floor(m.exp(m.abs(x % 3)) + y / 64),
}
ENDS = {
    "itself": lambda m, x, y: x,
    "both": lambda m, x, y: (x, y, m.max(x, axis=-1)),
    "kept": lambda m, x, y: (m.sum(x, axis=-1, keepdims=True), m.sum(x, axis=-1) - m.max(y, axis=-1)),
    "bool": lambda m, x, y: (m.any(x > y, axis=-1), m.all(x > y, axis=-1, keepdims=True) & (x > 0)),
    "sum": lambda m, x, y: (m.sum(x), x * 2),
}


@pytest.mark.slow
@examples(15)
@given(st.data())
def test_drawn(data):
    """Small integers in floats: every order of a sum gives the same. Those of float32 may grow too large for it, and
    are rounded where the function by itself rounds them."""
    shape = data.draw(st.sampled_from(((4, 6), (5,), (2, 3, 5), (3, 1), (1, 9), (2, 300))))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    dtype = data.draw(st.sampled_from(("float64", "float64", "float32")))
    shapes = [shape, data.draw(st.sampled_from((shape, shape[-1:], (*shape[:-1], 1)))), shape[-1:]]
    arrays = [rng.integers(-3, 4, s).astype(dtype) for s in shapes]
    layout = data.draw(st.sampled_from(("C", "F", "reversed", "steps")))
    if layout == "reversed":
        arrays[0] = arrays[0][..., ::-1]
    elif layout == "steps":
        arrays[0] = np.repeat(arrays[0], 2, -1)[..., ::2]
    else:
        arrays[0] = np.asarray(arrays[0], order=layout)
    names = data.draw(st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=5))
    end = ENDS[data.draw(st.sampled_from(sorted(ENDS)))]

    def function(m, x, y, w):
        y = x - y
        for name in names:
            x, y = y, STEPS[name](m, x, y, w)
        return end(m, x, y)

    ours = pa.fuse(lambda x, y, w: function(pa, x, y, w))
    given = [pa.asarray(x, copy=layout == "C") for x in arrays]
    expected = function(np, *arrays) if dtype == "float64" else function(pa, *given)
    for _ in range(5):
        found = ours(*given)
        for a, b in zip(*((x if isinstance(x, tuple) else (x,)) for x in (found, expected)), strict=True):
            assert a.shape == b.shape
            np.testing.assert_array_equal(pa.asnumpy(a), pa.asnumpy(b) if dtype == "float32" else b)
