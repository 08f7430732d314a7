"""`pa.fuse`: what a fused function gives is what it gives by itself, in as few kernels as it says."""

import gc
import math
import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, numpy_views

import pyarray as pa
from pyarray import dtypes
from pyarray.fusion import axis_split
from pyarray.fusion.axis_split import split_layout

FEW = examples(20)
DTYPES = [
    row
    for row in dtypes.ALL
    if row.name not in ("int16", "int32", "uint16", "uint32", "complex64") and row not in dtypes.EXTENSIONS
]
EXACT = {
    "+": operator.add, "-": lambda x, y: x - y if pa.bool not in (x.dtype, y.dtype) else x + y,
    "*": operator.mul, "==": operator.eq, "where": lambda x, y: pa.where(x == y, x, y),
    "square": lambda x, y: (x + y) ** 2 if x.dtype != pa.bool else x * y,
    "weak": lambda x, y: x * 2 + y, "cast": lambda x, y: (x + y).astype(pa.complex128),
    "all": lambda x, y: pa.all(x == y, axis=-1, keepdims=True) & (x == x),
}  # fmt: skip
SEEN = {
    "no": lambda x: x, "flat": lambda x: x.reshape(-1), "T": lambda x: x.T, "new": lambda x: x[None],
    "row": lambda x: x.reshape(1, -1), "half": lambda x: x[..., ::-1], "thin": lambda x: x[..., :1],
    "split": lambda x: x.reshape(-1, 2) if x.size % 2 == 0 else x,
}  # fmt: skip


def same(ours, theirs):
    assert ours.dtype is theirs.dtype
    np.testing.assert_array_equal(pa.asnumpy(ours), pa.asnumpy(theirs))


def alike(fused, *args, **options):
    """The fused function's results, which are the plain one's to the bit, and were fused."""
    before = fused.cache_info()["unfused"]
    ours, theirs = fused(*args, **options), fused.__wrapped__(*args, **options)
    # Not the very types: what by itself is a view of a result (x[:1]) is fused into a result of its own.
    assert (type(ours) is tuple) == (type(theirs) is tuple)
    for x, y in zip(ours, theirs, strict=True) if type(ours) is tuple else [(ours, theirs)]:
        same(x, y)
    again = fused(*args, **options)
    same((again if type(again) is tuple else (again,))[0], (ours if type(ours) is tuple else (ours,))[0])
    assert fused.cache_info()["unfused"] == before
    return ours


@st.composite
def laid_out(draw, shape):
    """A NumPy array of any dtype and layout, but of this shape."""
    dtype, layout = draw(st.sampled_from(DTYPES)), draw(st.sampled_from("CFRS"))
    base = (np.arange(math.prod(shape)) % 50).reshape(shape).astype(dtype.numpy)
    if layout == "S":
        return np.repeat(base, 2, -1)[..., ::2] if shape else base
    return base[(slice(None, None, -1),) * len(shape)] if layout == "R" else np.array(base, order=layout)


@pytest.mark.slow
@examples(6)  # each example is some kernels
@given(st.data())
def test_what_is_drawn_is_what_the_function_gives_by_itself(data):
    shape = data.draw(st.sampled_from(((4, 6), (6,), (2, 3, 4), ())))
    shapes = [shape, shape[1:], tuple(1 if k == 0 else n for k, n in enumerate(shape))]
    arrays = [pa.asarray(data.draw(laid_out(s))) for s in shapes]
    ops = data.draw(st.lists(st.sampled_from(sorted(EXACT)), min_size=1, max_size=5))
    views = data.draw(
        st.lists(st.sampled_from(("no", "new", "thin", "half") if shape else ("no",)), min_size=5, max_size=5)
    )
    last = data.draw(st.sampled_from(("no", "flat", "T", "row", "half") if shape else ("no", "flat")))

    def function(x, y, z):
        result = x
        for name, view, other in zip(ops, views, (y, z, x, y, z), strict=False):
            result = EXACT[name](SEEN[view](result) if result.ndim else result, other)
        return SEEN[last](result) if result.ndim else result

    try:
        function(*arrays)
    except (TypeError, ValueError):  # no common type
        with pytest.raises((TypeError, ValueError)):
            pa.fuse(function)(*arrays)
        return
    alike(pa.fuse(function), *arrays)


REDUCTIONS = (pa.sum, pa.prod, pa.min, pa.max, pa.mean, pa.any, pa.all)


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=str)
def test_functions_that_round_by_strides_differ_in_the_last_places(dtype):
    x = pa.linspace(0.01, 3, 60 * 41, dtype=dtype).reshape(60, 41)
    fused = pa.fuse(lambda x: (pa.sin(x), pa.cos(x), pa.exp(x), pa.log(x), x**1.7, pa.sqrt(x) / (x + 1) - x))
    *near, exact = zip(fused(x[:, ::2]), fused.__wrapped__(x[:, ::2]), strict=True)
    same(*exact)
    for ours, theirs in near:
        np.testing.assert_array_max_ulp(pa.asnumpy(ours), pa.asnumpy(theirs), 8)


@pytest.mark.parametrize("reduction", REDUCTIONS, ids=lambda f: f.__name__)
def test_reductions_over_any_axes(reduction):
    rng = np.random.default_rng(0)
    x, y = (
        pa.asarray(rng.integers(1, 3, (3, 5, 4)).astype(np.float32)),
        pa.asarray(rng.integers(1, 3, (5, 1))),
    )
    axes = ((None, False), (0, True), (-1, False), ((0, 2), True))
    turn = REDUCTIONS.index(reduction)
    for axis, keepdims in axes if reduction is pa.sum else axes[turn % 2 :: 2]:
        alike(pa.fuse(lambda x, y, a=axis, k=keepdims: reduction(x * y, axis=a, keepdims=k)), x, y)
    if turn % 2 == 0:
        alike(pa.fuse(lambda x: reduction(x[:, ::2].T + 1, axis=1)), x)


def test_long_reductions_go_in_pieces():
    x = pa.asarray(np.random.default_rng(1).random(300_001))
    fused = pa.fuse(lambda x: pa.sum((x - 0.5) * x))
    assert math.isclose(fused(x).item(), fused.__wrapped__(x).item(), rel_tol=1e-13)
    m = x[:300_000].reshape(3000, 100)
    columns = pa.fuse(lambda m: pa.sum(m * 2 - 1, axis=0))
    np.testing.assert_allclose(pa.asnumpy(columns(m)), (pa.asnumpy(m) * 2 - 1).sum(0), rtol=1e-12)
    repeated = pa.fuse(lambda x: pa.sum(pa.broadcast_to(x + 1, (4, 3)), axis=1))
    assert repeated(pa.ones(1)).tolist() == [6.0] * 4


def test_a_reduction_inside_is_what_the_function_gives_by_itself():
    @pa.fuse
    def softmax(x):
        shifted = pa.exp(x - pa.max(x, axis=-1, keepdims=True))
        return shifted / pa.sum(shifted, axis=-1, keepdims=True)

    x = pa.asarray(np.random.default_rng(2).random((7, 11)))
    np.testing.assert_allclose(pa.asnumpy(softmax(x)), pa.asnumpy(softmax.__wrapped__(x)), rtol=1e-14)
    assert softmax.cache_info().items() >= {"traces": 1, "unfused": 0}.items()


def test_several_outputs_of_several_shapes():
    @pa.fuse
    def function(x, y):
        total = x + y
        return total, total > 2, y * 2, pa.sum(total), pa.sum(total, axis=0, keepdims=True), x.T

    alike(function, pa.asarray(np.arange(12.0).reshape(3, 4)), pa.asarray(np.arange(4, dtype=np.float32)))


def test_sizes_and_strides_are_in_no_key():
    gc.collect()  # variants of kernels that other tests have left
    fused = pa.fuse(lambda x, y: x * y + 1)
    variants = []
    for a in [pa.ones(n) for n in (2, 3, 1000, 1 << 17)]:  # large ones are filled by a kernel
        assert fused(a, a)[-1].item() == 2
        variants.append(pa.cache_info()["variants"])
    assert fused.cache_info()["traces"] == 1
    assert max(variants) == variants[0]
    alike(fused, pa.ones((4, 5)).T, pa.ones((5, 4))[:, ::-1])
    assert fused.cache_info()["traces"] == 2  # another rank


# ---- reshape: axes in digits


@pytest.mark.parametrize(
    ("cuts", "sizes"),
    [
        ([(12,), (4, 3)], (4, 3)),
        ([(24,), (6, 4), (2, 12)], (2, 3, 4)),
        ([(6,), (3, 2), (2, 3)], None),
        ([(4, 3), (2, 2, 3)], (2, 2, 3)),
        ([(2, 3, 5), (30,)], (2, 3, 5)),
        ([()], ()),
    ],
)
def test_cuts_of_an_axis(cuts, sizes):
    assert axis_split.common_refinement(cuts) == sizes


@FEW
@given(st.data())
def test_digits_are_where_numpy_finds_the_elements(data):
    x = data.draw(numpy_views(pa.int64, data.draw(st.sampled_from(((4, 6), (2, 2, 6), (24,), (1, 24))))))
    if x.size == 0:
        return
    target = data.draw(st.sampled_from(((4, 6), (24,), (2, 12), (3, 8), (2, 2, 6), (2, 3, 2, 2), (24, 1))))
    if math.prod(target) != x.size:
        return
    found = axis_split.reshape(split_layout(x.shape, x.strides), target)
    if found is None:
        return
    offsets = np.zeros((), np.int64)
    for axis in found.axes:
        for n, step in axis:
            offsets = np.add.outer(offsets, np.arange(n) * step)
    places = np.lib.stride_tricks.as_strided(np.zeros(1, np.int64), target, (0,) * len(target))
    expected = np.array([
        sum(int(i) * s for i, s in zip(np.unravel_index(k, x.shape), x.strides, strict=True))
        for k in range(x.size)
    ])  # fmt: skip
    np.testing.assert_array_equal(offsets.ravel(), expected)
    assert places.shape == target


def test_reshapes_inside_divide_nothing():
    wanted = [
        lambda x, b: (x + b).reshape(-1) * 2,
        lambda x, b: (x + b).reshape(3, 2, 4) + (x * b).reshape(3, 2, 4),
        lambda x, b: (x + b).reshape(-1, 2) + x.reshape(-1, 2).T[0].reshape(-1, 1),
    ]
    x, b = pa.asarray(np.arange(24.0).reshape(6, 4)), pa.asarray(np.arange(4.0))
    for function in wanted:
        fused = pa.fuse(function)
        fused(x, b)
        with pa.trace() as trace:
            fused(x, b)
        assert len(trace.launches) == 1, trace.launches
        alike(fused, x, b)


def test_where_axes_dont_fit_an_operand_is_copied():
    x, b = pa.asarray(np.arange(6.0).reshape(2, 3)), pa.asarray(np.arange(3.0))
    alike(pa.fuse(lambda x, b: (x + b).reshape(3, 2) * x.T), x, b)
    alike(pa.fuse(lambda x, b: (x + b).reshape(3, 2) + (x.T * 1).reshape(3, 2)), x, b)


# ---- numbers, captured values, static parameters


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.int8, dtypes.complex64, dtypes.bfloat16])
def test_numbers_are_weak_and_passed_at_the_launch(dtype):
    fused = pa.fuse(lambda x, t: x * t + (t + 1) * 2 - x**2)
    for t in (3, 5, 7):
        alike(fused, pa.ones(5, dtype=dtype), t)
    assert fused.cache_info()["traces"] == 1
    alike(pa.fuse(lambda x, t: pa.sqrt(t) + x / t), pa.ones(3, dtype=pa.float64), 2.5)
    alike(pa.fuse(lambda x: x / x.shape[0] + x.size), pa.ones((3, 2)))


def test_numbers_that_dont_fit_are_the_plain_functions_to_refuse():
    fused = pa.fuse(lambda x, t: x + t)
    x = pa.ones(3, dtype=pa.int8)
    assert fused(x, 100).tolist() == [101] * 3
    with pytest.raises(OverflowError, match="300 is out of range for int8"):
        fused(x, 300)
    assert pa.fuse(lambda x, t: x < t)(x, 1 << 70).tolist() == [True] * 3
    with pytest.raises(ValueError, match="negative integer power"):
        pa.fuse(lambda x, t: x**t)(x, -1)


def test_captured_values_are_compiled_in_until_they_change():
    factor, table = 2.0, pa.asarray([1.0, 2.0, 3.0])

    @pa.fuse
    def function(x):
        return x * factor + table

    x = pa.ones(3)
    assert function(x).tolist() == [3, 4, 5]
    factor = 3.0
    assert function(x).tolist() == [4, 5, 6]
    table[0] = 10
    assert function(x).tolist() == [13, 5, 6]
    table = pa.zeros(3)
    assert function(x).tolist() == [3, 3, 3]
    assert function.cache_info()["traces"] == 3


def test_fused_functions_call_others_with_options_and_static_parameters():
    @pa.fuse
    def inner(x, *, scale=2.0):
        return x * scale

    @pa.fuse(static=("n", "how"))
    def outer(x, n, how="twice", flip=False):
        for _ in range(n):
            x = inner(x, scale=1.5) + pa.sin(x)
        x = x + x if how == "twice" else x
        return x[::-1] if flip else x

    x = pa.asarray(np.arange(5.0))
    for options in ({"n": 2}, {"n": 3}, {"n": 2, "how": "once"}, {"n": 2, "flip": True}):
        np.testing.assert_allclose(
            pa.asnumpy(outer(x, **options)), pa.asnumpy(outer.__wrapped__(x, **options)), rtol=1e-14
        )
    assert outer.cache_info()["traces"] == 4
    with pytest.raises(ValueError, match="no parameter 'm'; it has x, n, how, flip"):
        pa.fuse(outer, static="m")


def test_numpys_functions_arrays_and_empty_ones():
    fused = pa.fuse(lambda x, y: np.sin(x) + np.float32(2) * y)
    x = np.arange(4, dtype=np.float32)
    np.testing.assert_allclose(pa.asnumpy(fused(pa.asarray(x), x)), np.sin(x) + 2 * x, rtol=1e-6)
    assert fused(pa.zeros((0, 3)), pa.zeros(3)).shape == (0, 3)


def test_debug_mode_checks_fused_kernels_too():
    fused = pa.fuse(lambda x: pa.sum(x.reshape(-1, 2) * 2, axis=0))
    with pa.debug():
        assert fused(pa.ones((2, 3))).tolist() == [6.0, 6.0]


# ---- what can't be


@pa.kernel
def double(v):
    for i in range(v.size):
        v[i] *= 2


@pa.autotune([pa.Config(threads=64)])
@pa.kernel
def tuned_double(v):
    for i in range(v.size):
        v[i] *= 2


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda x: x if x[0] > 0 else -x, r"can't decide by them; write pa.where"),
        (lambda x: x * float(x[0]), "elements are not known"),
        (lambda x: x @ x, r": @ can't be traced: products .* multiply outside and pass"),
        (lambda x: pa.ones(3) @ x, r" matmul\(\) can't be traced: products .*; pyarray.gemm adds a bias"),
        (lambda x: pa.dot(x, x), r" dot\(\) can't be traced: products of matrices"),
        (lambda x: pa.sort(x), r"sort\(\) can't be traced"),
        (
            lambda x: double(x),
            r": the kernel double can't be traced: it stores into arrays, .*; call it before or after",
        ),
        (lambda x: tuned_double(x), r": the kernel tuned_double can't be traced: it stores into arrays"),
        (lambda x: x[pa.asarray([0, 1])], "an index by ndarray can't be traced"),
        (lambda x: x * 2 if x.shape[0] > 2 else x, r"fuse\(static=...\)"),
        (lambda x: operator.iadd(x, 1), "changes no array; write x = x \\+ y"),
        (lambda x: pa.add(x, 1, out=x), "out= has no meaning"),
        (lambda x: "text", "a result is str"),
        (lambda x: sum(y for y in x), "loops over arrays outside"),
        (lambda x: x.squeeze(), "name the axes"),
        (lambda x: x * len(x), r"len\(\) has no value .* write .shape\[0\]"),
    ],
)
def test_what_cant_be_fused_is_an_error_with_its_line(function, says):
    with pytest.raises(pa.CompileError, match=says) as caught:
        pa.fuse(function)(pa.ones(3))
    assert caught.value.path == __file__
    if "text" not in says and "a result" not in says:
        assert caught.value.line == function.__code__.co_firstlineno


def test_shapes_that_dont_fit_raise_what_the_function_raises():
    fused = pa.fuse(lambda x, y: x + y)
    assert fused(pa.ones(3), pa.ones(3)).tolist() == [2.0] * 3
    with pytest.raises(ValueError, match=r"\(3,\) and \(4,\) don't broadcast"):
        fused(pa.ones(3), pa.ones(4))
    with pytest.raises(TypeError, match="neither array nor number"):
        fused(pa.ones(3), [1])
    with pytest.raises(TypeError, match="takes a Python function"):
        pa.fuse(3)


# ---- what it says about itself, and results in the caller's arrays


def test_explained():
    @pa.fuse
    def softmax(x, temperature):
        weights = pa.exp((x - pa.max(x, axis=-1, keepdims=True)) / temperature)
        return weights / pa.sum(weights, axis=-1, keepdims=True)

    x = pa.arange(12.0).reshape(3, 4)
    assert softmax.explain(x, 2.0).splitlines() == [
        "softmax: 1 kernel",
        "1. rows: max, sum over axes (1,) of (3, 4), and subtract, 2 x divide, exp; reads x",
    ]
    assert softmax.explain(x.T, 2.0).splitlines() == [
        "softmax: 3 kernels",
        "1. max over axes (1,) of (4, 3), of nothing more; reads x",
        "   ends here: what follows needs the whole result of the reduction",
        "2. sum over axes (1,) of (4, 3), of subtract, divide, exp; reads x, the result of 1",
        "   ends here: what follows needs the whole result of the reduction",
        "3. elementwise: subtract, 2 x divide, exp; reads x, the result of 1, the result of 2",
    ]
    assert softmax.explain(x[:0], 2.0) == "softmax: not fused, since an array is empty"
    assert softmax.explain(1.0, 2.0).endswith("there is no array among the arguments")
    assert "can't be fused, a call raises: " in pa.fuse(lambda x: pa.sort(x)).explain(x)
    assert softmax.cache_info()["unfused"] == 0


def test_explained_shapes_and_copies():
    captured = pa.ones(4)
    several = pa.fuse(lambda x, y: (x + captured, x.reshape(-1) * y))
    text = several.explain(pa.ones((3, 4)), y=pa.ones(12))
    assert "ends here: the results that follow have another shape" in text
    assert "reads x, a captured array" in text
    cut = pa.fuse(lambda x, y: x.reshape(-1) + y)
    assert cut.explain(pa.ones((2, 6)).T, pa.ones(12)).count("copied first") == 0
    both = pa.fuse(lambda x, y: x.reshape(-1) + y.reshape(-1))
    text = both.explain(pa.ones((4, 6)).T, pa.ones((4, 6), dtype=pa.float32).reshape(3, 8).T)
    assert "copied first, since axes are cut in ways that don't fit: " in text


@FEW
@given(numpy_views(pa.float64), st.sampled_from("CFR"))
def test_out(x, layout):
    fused = pa.fuse(lambda a, b: a * b + 1)
    a = pa.asarray(x)
    expected = a * 2.0 + 1
    out = pa.asarray(np.zeros(x.shape, order="F" if layout == "F" else "C"))
    out = out[(slice(None, None, -1),) * x.ndim] if layout == "R" else out
    for _ in range(3):
        out[...] = 7
        assert fused(a, 2.0, out=out) is out
        same(out, expected)


def test_out_is_written_by_the_kernel_itself_or_after_it():
    fused = pa.fuse(lambda a: a[::-1] * 2)
    a = pa.arange(1000.0)
    expected = a[::-1] * 2
    out = pa.zeros(1000)
    with pa.trace() as seen:
        fused(a, out=out)
    assert len(seen.launches) == 1
    same(out, expected)
    fused(a, out=a)  # what is read is not overwritten
    same(a, expected)
    wide = pa.zeros(1000, dtype=pa.complex128)
    assert fused(out, out=wide)[0].item() == 2 * out[-1].item()


def test_out_of_several_results_and_what_does_not_fit():
    both = pa.fuse(lambda a: (a + 1, pa.sum(a)))
    a, out = pa.arange(6.0), (pa.zeros(6), pa.zeros(()))
    assert both(a, out=out) is out
    same(out[0], a + 1)
    same(out[1], pa.sum(a))
    one = pa.fuse(lambda a: a + 1)
    for wrong, error, message in (
        (pa.zeros(5), ValueError, r"out= has shape \(5,\), the result has shape \(6,\)"),
        (pa.zeros(6, dtype=pa.int64), TypeError, "can't be stored in out= of int64"),
        (np.zeros(6), TypeError, "must be a pyarray array, got ndarray"),
        (pa.broadcast_to(pa.zeros(1), 6), ValueError, "read-only"),
    ):
        with pytest.raises(error, match=message):
            one(a, out=wrong)
    for out, got in ((pa.zeros(6), "an ndarray"), ((pa.zeros(6),), "a tuple of 1"), ([], "a list of 0")):
        with pytest.raises(ValueError, match=f"a tuple of 2 arrays, one for each result; got {got}"):
            both(a, out=out)
    with pytest.raises(ValueError, match=r"result 1 of .*\(\): out= has shape \(1,\), the result has shape \(\)"):
        both(a, out=(pa.zeros(6), pa.zeros(1)))
    own = pa.fuse(lambda a, out: a + out)  # a parameter of the function's own
    same(own(a, out=a), a + a)
    with pytest.raises(pa.CompileError, match="out= has no meaning"):
        pa.fuse(lambda a: one(a, out=a))(a)
