"""ElementwiseKernel and ReductionKernel: C++ text with CuPy's signatures, on every device."""

import gc
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import pyarray as pa
from pyarray.jit.kernel_registry import all_kernels

SQUARE = pa.ElementwiseKernel("T x, T y", "T z", "z = (x - y) * (x - y)", "square")
NORM = pa.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "norm")
REVERSE = pa.ElementwiseKernel("T x, raw T y", "T z", "z = x + y[_ind.size() - i - 1]", "add_reverse")


def up(x, device):
    return pa.asarray(np.array(x), device=device)


def count(shape, dtype=np.float32):
    return np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)


# ---- elementwise


def test_arrays_and_numbers_broadcast(device):
    x, y = count((2, 5)), count(5)
    assert np.array_equal(pa.asnumpy(SQUARE(up(x, device), up(y, device))), (x - y) ** 2)
    assert np.array_equal(pa.asnumpy(SQUARE(up(x, device), 5)), (x - 5) ** 2)
    assert np.array_equal(pa.asnumpy(SQUARE(np.float64(2), up(y, device))), (2 - y) ** 2)
    z = SQUARE(up(x[:, :1], device), up(y, device))
    assert z.shape == (2, 5)
    assert z.device == device


def test_views_of_every_layout(device):
    x = count((4, 6, 5))
    a = up(x, device)
    cases = [
        (a.T, x.T), (a[::2, ::-1], x[::2, ::-1]), (a[:, 1:4, 2], x[:, 1:4, 2]), (a[2:3, :, :], x[2:3, :, :]),
        (a[1, 2, 3:], x[1, 2, 3:]), (a[1, 1, 1], x[1, 1, 1]), (a[:0], x[:0]),
    ]  # fmt: skip
    for mine, theirs in cases:
        assert np.array_equal(pa.asnumpy(SQUARE(mine, 1)), (theirs - 1) ** 2)
    out = up(np.zeros((6, 4, 5), np.float32), device)
    SQUARE(a.transpose((1, 0, 2)), 2, out)
    SQUARE(a[0], 3, out[:, 0])
    expected = (x.transpose(1, 0, 2) - 2) ** 2
    expected[:, 0] = (x[0] - 3) ** 2
    assert np.array_equal(pa.asnumpy(out), expected)


@examples(25)
@given(data=st.data())
def test_drawn_shapes(data):
    device = "cpu"
    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    arrays = []
    for _ in range(2):
        own = tuple(1 if data.draw(st.booleans()) else n for n in shape[data.draw(st.integers(0, len(shape) - 1)) :])
        x = count(tuple(2 * n for n in own))
        cut = tuple(slice(None, None, 2 if data.draw(st.booleans()) else -2) for _ in own)
        arrays.append((up(x, device)[cut], x[cut]))
    (a, x), (b, y) = arrays
    assert np.array_equal(pa.asnumpy(SQUARE(a, b)), (x - y) ** 2)


def test_overlapping_arguments_read_what_was_there(device):
    x = count(100)
    a = up(x, device)
    SQUARE(a[:-1], 0, a[1:])
    assert np.array_equal(pa.asnumpy(a[1:]), x[:-1] ** 2)


def test_several_outputs_fixed_types_and_letters(device):
    both = pa.ElementwiseKernel(
        "float32 x, Y y", "Z s, bool big", "s = (Z)(x + y); big = x > y;", "both", return_tuple=True
    )
    x, y = count(7), np.full(7, 3, np.int16)
    s, big = up(np.zeros(7, np.int64), device), up(np.zeros(7, bool), device)
    got = both(up(x, device), up(y, device), s, big)
    assert got[0] is s
    assert got[1] is big
    assert np.array_equal(pa.asnumpy(s), (x + y).astype(np.int64))
    assert np.array_equal(pa.asnumpy(big), x > y)
    with pytest.raises(TypeError, match=r"no array says what the type 'Z' of 's' is; give the output array"):
        both(up(x, device), up(y, device))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "complex64", "complex128", "int8", "uint64", "float64"])
def test_element_types(device, dtype):
    kernel = pa.ElementwiseKernel("T x, T c", "T z", "T k = x * c; k += x; z = k - (T)1", "types")
    x = pa.asarray(np.arange(1, 9), device=device).astype(dtype)
    expected = pa.asnumpy(x) * np.asarray(3, pa.asnumpy(x).dtype) + pa.asnumpy(x) - np.asarray(1, pa.asnumpy(x).dtype)
    assert np.array_equal(pa.asnumpy(kernel(x, 3)).astype(complex), expected.astype(complex))


def test_complex_functions(device):
    rotate = pa.ElementwiseKernel(
        "complex64 z, float32 t", "complex64 w, float32 r",
        "w = z * exp(complex<float>(0, t)) / 2; r = abs(w) + w.real() + imag(w)", "rotate",
    )  # fmt: skip
    z = np.array([1 + 2j, -3j, 0.5], np.complex64)
    w, r = rotate(up(z, device), 0.25)
    expected = z * np.exp(0.25j).astype(np.complex64) / 2
    assert np.allclose(pa.asnumpy(w), expected, rtol=1e-6)
    assert np.allclose(pa.asnumpy(r), abs(expected) + expected.real + expected.imag, rtol=1e-6)


def test_raw_arguments(device):
    x = count(6)
    assert np.array_equal(pa.asnumpy(REVERSE(up(x, device), up(x, device))), x + x[::-1])
    m = count((3, 4))
    assert np.array_equal(pa.asnumpy(REVERSE(up(count(12), device), up(m, device).T)), count(12) + m.T.ravel()[::-1])
    corners = pa.ElementwiseKernel(
        "raw T m",
        "raw T out",
        "ptrdiff_t at[2] = {i / m.shape()[1], i % m.shape()[1]}; out[i] = m[at]",
        "corners",
    )
    out = up(np.zeros(12, np.float32), device)
    corners(up(m, device).T[::-1], out, size=12)
    assert np.array_equal(pa.asnumpy(out), m.T[::-1].ravel())


def test_preamble_loop_prep_after_loop_and_options(device):
    kernel = pa.ElementwiseKernel(
        "raw int32 x", "raw int32 total", "mine += twice(x[i]) * FACTOR", "total",
        preamble="template <typename T> __device__ T twice(T x) { return 2 * x; }",
        loop_prep="int mine = 0", after_loop="atomicAdd(&total[0], mine)", options=("-DFACTOR=3",),
        no_return=True,
    )  # fmt: skip
    total = up(np.zeros(1, np.int32), device)
    assert kernel(up(np.arange(1000, dtype=np.int32), device), total, size=1000) is None
    assert total.item() == 6 * sum(range(1000))


MATHS = """y = sqrt(x) * 2 + pow(x, 2) + fma(x, 3.0f, abs(x)) + fmax(x, 1) + (isnan(x) ? 1 : lround(x))
    + atan2(x, 1)"""
# the run-time compilers of GPUs have no roots of integers, these constants and that header
KINDS = """same = sizeof(sqrt(x)) == 4 && sizeof(pow(x, x)) == 4
#if !PA_GPU
    && sqrt(4) == 2 && sizeof(sqrt(4)) == 8 && NAN != NAN && M_PI > 3
#endif"""
INCLUDES = """#if !PA_GPU
#include <cmath>
using std::atan2;
#endif"""


@pytest.mark.parametrize("preamble", ["", INCLUDES])
def test_functions_of_math_h(preamble):
    """Of floats, integers and both; pa_math.h has them, or the system's header that a user includes."""
    x = np.array([0.25, 2, 30], np.float32)
    got = pa.ElementwiseKernel("float32 x", "float64 y", MATHS, "maths", preamble=preamble)(up(x, "cpu"))
    want = np.sqrt(x) * 2 + x**2 + (4 * x) + np.maximum(x, 1) + np.round(x) + np.arctan2(x, 1)
    assert np.allclose(pa.asnumpy(got), want, rtol=1e-6)
    kinds = pa.ElementwiseKernel("float32 x", "bool same", KINDS, "kinds", preamble=preamble)
    assert kinds(up(x, "cpu")).all()


def test_names_of_parameters_are_the_users(device):
    kernel = pa.ElementwiseKernel(
        "T first, T slots, raw T row, T end, float32 run",
        "T memory",
        "memory = first - slots + row[i] * end + run",
        "names",
    )
    x = count(5)
    got = kernel(up(x, device), 1, up(x, device), 2, 0.5)
    assert np.array_equal(pa.asnumpy(got), x - 1 + x * 2 + 0.5)


def test_a_raw_index_is_checked_in_debug_mode(device):
    kernel = pa.ElementwiseKernel("T x, raw T y", "T z", "z = x + y[i + 1]", "past")
    x = up(count(8), device)
    with pa.debug(), pytest.raises(pa.BoundsError) as caught:
        kernel(x, x[2:7])
    error = caught.value
    assert (error.kernel, error.argument, error.index, error.extent, error.tid) == ("past", "y", 5, 5, 4)
    assert error.offset == 2
    with pa.debug():
        assert kernel(x[:4], x[2:7]).tolist() == [3, 5, 7, 9]


def test_one_artifact_for_all_sizes_and_offsets(device):
    kernel = pa.ElementwiseKernel("T x", "T y", "y = x + 1", "sizes")
    x = up(count(100), device)
    for part in (x, x[3:], x[:0], x.reshape((10, 10)), x[7:8]):
        kernel(part)
    assert kernel._kernel.cache_info()["variants"] == 2  # the other one is for one element


def test_kernels_that_are_dropped_leave_nothing(device):
    kernel = pa.ElementwiseKernel("T x", "T y", "y = x + 2", "dropped")
    kernel(up(count(3), device))
    known = weakref.ref(kernel._kernel)
    del kernel
    gc.collect()
    assert known() is None
    assert all(k.__name__ != "dropped" for k in all_kernels())


def test_variants_are_bounded(device, monkeypatch):
    kernel = pa.ElementwiseKernel("T x", "T y", "y = x + 3", "bounded")
    monkeypatch.setattr(kernel._kernel._variants, "most", 2)
    kinds = ("int8", "int16", "int32", "int64")
    for kind in (*kinds, *kinds):
        assert kernel(up(count(3).astype(kind), device)).tolist() == [3, 4, 5]
    info = kernel._kernel.cache_info()
    assert (info["variants"], info["misses"]) == (2, 8)
    assert info["compiles"] + info["disk_hits"] <= 4  # their artifacts are kept longer


def test_compile_errors_say_the_users_line(device):
    kernel = pa.ElementwiseKernel("T x", "T y", "T a = x;\nT b = a + nothing;\ny = b", "wrong")
    with pytest.raises(pa.CompileError, match=r"wrong: operation[:(]2"):
        kernel(up(count(3), device))
    late = pa.ElementwiseKernel(
        "T x", "T y", "y = f(x)", "late", preamble="\n\n__device__ int f(int x) { return oops; }"
    )
    with pytest.raises(pa.CompileError, match=r"late: preamble[:(]3"):
        late(up(count(3), device))


def test_what_cant_be_a_kernel():
    for params, words in [
        ("float33 x", "no letter and no dtype"), ("x", "is no parameter"),
        ("raw x", "no letter and no dtype"),
        ("T i", "can't be called 'i'"), ("T _x", "can't be called '_x'"), ("cooked T x", "is no parameter"),
        ("T x, U x", "two parameters are called 'x'"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=words):
            pa.ElementwiseKernel(params, "T y", "y = x", "bad")
    with pytest.raises(ValueError, match="no name for a kernel"):
        pa.ElementwiseKernel("T x", "T y", "y = x", "two words")
    with pytest.raises(TypeError, match="options is a tuple"):
        pa.ElementwiseKernel("T x", "T y", "y = x", options="-DN=1")


def test_arguments_that_dont_fit(device):
    x = up(count((2, 5)), device)
    with pytest.raises(TypeError, match=r"takes 2 arguments, or 3 with the outputs, got 1"):
        SQUARE(x)
    with pytest.raises(ValueError, match=r"'x' of shape \(2, 5\), 'y' of shape \(3,\) don't broadcast"):
        SQUARE(x, x[0, :3])
    with pytest.raises(ValueError, match=r"'z' has shape \(5,\), the arguments \(2, 5\)"):
        SQUARE(x, x, x[0])
    with pytest.raises(
        TypeError, match=r"'y' must be an array of float32, since T is the type of 'x', got one of int32"
    ):
        SQUARE(x, x.astype("int32"))
    with pytest.raises(TypeError, match=r"since T is the type of 'z'"):
        SQUARE(x, 1, x.astype("float64"))
    with pytest.raises(TypeError, match=r"'y' must be an array or a number, got str"):
        SQUARE(x, "1")
    with pytest.raises(TypeError, match=r"'z' must be an array, got float"):
        SQUARE(x, x, 1.0)
    with pytest.raises(TypeError, match=r"no array says what the type 'T' of 'x' is"):
        pa.ElementwiseKernel("T x", "raw float32 y", "y[i] = x", "letter")(1.0, x, size=3)
    with pytest.raises(ValueError, match=r"no array says how many iterations there are; pass size="):
        SQUARE(1, 2)
    with pytest.raises(ValueError, match=r"'x' isn't raw and says how many"):
        SQUARE(x, 1, size=3)
    with pytest.raises(TypeError, match=r"'y' must be a number of type float32"):
        SQUARE(x, 1j)
    with pytest.raises(OverflowError, match=r"'y' = 300 is out of range for int8"):
        SQUARE(x.astype("int8"), 300)
    x.setflags(write=False)
    with pytest.raises(ValueError, match=r"the output 'z' is read-only"):
        SQUARE(x, 1, x)


def test_arrays_on_two_devices(device):
    if device == "cpu":
        pytest.skip("takes two devices")
    x = count(3)
    with pytest.raises(ValueError, match=rf"'x' on {device}, 'y' on cpu"):
        SQUARE(up(x, device), up(x, "cpu"))


def test_launches_are_observed_and_replayed(device, tmp_path):
    x = up(count(4), device)
    with pa.dump(tmp_path):
        SQUARE(x, 1)
    launch = next(one for one in pa.load_dump(tmp_path) if one.kernel == "square")
    assert launch.args["z"].after.tolist() == [1, 0, 1, 4]
    assert launch.replay(device)["z"].tolist() == [1, 0, 1, 4]


# ---- reductions


@pytest.mark.parametrize("shape", [(7,), (3, 50), (50, 3), (4, 5, 6), (2, 40000), (40000, 2), (300, 70)])
def test_reductions_over_every_axis(device, shape):
    x = np.random.default_rng(1).random(shape).astype(np.float32)
    a = up(x, device)
    axes = [None, *range(len(shape)), (0, len(shape) - 1) if len(shape) > 1 else (0,)]
    for axis in axes:
        expected = np.sqrt((x.astype(np.float64) ** 2).sum(axis=axis))
        assert np.allclose(pa.asnumpy(NORM(a, axis=axis)), expected, rtol=1e-4)
        kept = NORM(a, axis=axis, keepdims=True)
        assert kept.shape == x.sum(axis=axis, keepdims=True).shape
        turned = (
            axis if axis is None else tuple(len(shape) - 1 - k for k in (axis if isinstance(axis, tuple) else (axis,)))
        )
        assert np.allclose(pa.asnumpy(NORM(a.T, axis=turned)), expected.T, rtol=1e-4)


def test_reductions_of_several_arrays_views_and_numbers(device):
    dot = pa.ReductionKernel("T x, T y, S w", "T z", "x * y * w", "a + b", "z = a", "0", "dot")
    x, y = count((6, 8), np.float64), count(8, np.float64)
    got = dot(up(x, device)[::2, ::-1], up(y, device), up(np.array([2], np.int32), device), axis=1)
    assert np.array_equal(pa.asnumpy(got), (x[::2, ::-1] * y * 2).sum(axis=1))
    out = up(np.zeros((3, 1)), device)
    assert (
        dot(
            up(x, device)[::2],
            up(y, device),
            up(np.array([1], np.int32), device),
            axis=1,
            keepdims=True,
            out=out,
        )
        is out
    )
    assert np.array_equal(pa.asnumpy(out), (x[::2] * y).sum(axis=1, keepdims=True))


ARGMAX = pa.ReductionKernel(
    "T x", "int64 y", "best_t(x, _J)", "better(a, b)", "y = a.at", None, "argmax", reduce_type="best_t",
    preamble="""
struct best_t {
    double v;
    long long at;
    __device__ best_t() : v(-1), at(-1) {}
    __device__ best_t(double x, long long k) : v(x), at(k) {}
};
__device__ best_t better(const best_t &a, const best_t &b)
{
    return a.v > b.v || (a.v == b.v && a.at < b.at) ? a : b;
}
""",
)  # fmt: skip


def test_reductions_of_a_type_of_the_users(device):
    x = np.random.default_rng(2).random((30, 400)).astype(np.float32)
    for axis in (None, 0, 1):
        assert np.array_equal(pa.asnumpy(ARGMAX(up(x, device), axis=axis)), x.argmax(axis=axis))
    with pytest.raises(ValueError, match=r"argmax\(\) of no elements needs an identity: shape \(0, 3\)"):
        ARGMAX(up(np.zeros((0, 3), np.float32), device))


def test_sizes_and_numbers_in_expressions(device):
    mean = pa.ReductionKernel(
        "T x, raw T w", "float64 y, int32 k", "x * w[_J]", "a + b",
        "y = a / (_in_ind.size() / _out_ind.size()); k = (int)_i", 0, "mean",
    )  # fmt: skip
    x, w = count((3, 4), np.float64), count(4, np.float64)
    y, k = up(np.zeros(3), device), up(np.zeros(3, np.int32), device)
    mean(up(x, device), up(w, device), y, k, axis=1)
    assert np.array_equal(pa.asnumpy(y), (x * w).mean(axis=1))
    assert k.tolist() == [0, 1, 2]
    with pa.debug(), pytest.raises(pa.BoundsError) as caught:
        mean(up(x, device), up(w[:3], device), y, k, axis=1)
    assert (caught.value.kernel, caught.value.argument, caught.value.index) == ("mean", "w", 3)


def test_reductions_of_nothing_and_of_one(device):
    assert NORM(up(np.zeros((0, 3), np.float32), device), axis=0).tolist() == [0, 0, 0]
    assert NORM(up(np.zeros((0, 3), np.float32), device), axis=1).shape == (0,)
    assert NORM(up(np.float32(-3), device)).item() == 3
    assert np.array_equal(pa.asnumpy(NORM(up(count((2, 3)), device), axis=())), count((2, 3)))


def test_what_a_reduction_refuses(device):
    x = up(count((2, 3)), device)
    with pytest.raises(TypeError, match=r"norm\(\) takes 1 arguments, or 2 with the outputs, got 3"):
        NORM(x, x, x)
    with pytest.raises(TypeError, match="out= is for the only output"):
        NORM(x, x, out=x)
    with pytest.raises(ValueError, match=r"axis 2 is out of bounds"):
        NORM(x, axis=2)
    with pytest.raises(ValueError, match=r"the output 'y' has shape \(2, 3\), the result has \(2,\)"):
        NORM(x, axis=1, out=x)
    with pytest.raises(ValueError, match="no array that isn't raw"):
        pa.ReductionKernel("raw T x", "T y", "x[_J]", "a + b", "y = a", 0)(x)
    with pytest.raises(ValueError, match="at least one output, and none is raw"):
        pa.ReductionKernel("T x", "raw T y", "x", "a + b", "y[0] = a", 0)
    with pytest.raises(pa.CompileError, match=r"oops: reduce_expr[:(]1"):
        pa.ReductionKernel("T x", "T y", "x", "a + c", "y = a", 0, "oops")(x)
