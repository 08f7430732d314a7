"""What kernels compute, against the same functions as plain Python."""

from __future__ import annotations

import linecache
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_tools import agree, launch, on
from strategies import device_subset, examples

from pyarray.array import ndarray
from pyarray.array_convert import asnumpy
from pyarray.buffer_view import BufferView
from pyarray.dtypes import ALL, float32, float64, int64
from pyarray.jit.kernel import func, kernel
from pyarray.jit.launch_state import debug
from pyarray.lang.builtins import FUNCTIONS
from pyarray.lang.markers import (
    atomic_add,
    atomic_and,
    atomic_exchange,
    atomic_max,
    atomic_min,
    atomic_or,
    atomic_sub,
    atomic_xor,
    constexpr,
    kernel_math,
    ndrange,
    unordered,
)

# ---- control flow


@kernel
def loops(out):
    for i in range(out.shape[0]):
        s = 0
        for j in range(5):
            s += j
            j = j * 2  # doesn't steer the loop
            s += j
        for j in range(3):
            for j in range(2):
                s += j
            s += 100 * j
        n = 3
        for _ in range(n):
            n = n + 1  # the bound was evaluated before
        out[i, 0] = s + n
        for j in range(10):
            if j == 3:
                continue
            if j > 6:
                break
            out[i, 1] += j
        c, n = 0, i + 1
        while n != 1 and c < 1000:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            c += 1
            if c == 50:
                break
        out[i, 2] = c


def test_loops(device):
    agree(loops, device, np.zeros((9, 3), np.int64))


@kernel
def stepped(out, a, b, c):
    for i in range(out.size):
        m = 0
        for j in range(a, b, c):
            m = m * 3 + j
        out[i] = m


@kernel
def stepped_outside(out, a, b, c):
    for i in range(a, b, c):
        out[i % out.size] += i


@given(st.integers(-9, 9), st.integers(-9, 9), st.integers(-4, 4).filter(bool))
@examples(40)
def test_ranges(a, b, c):
    agree(stepped, "cpu", np.zeros(2, np.int64), a, b, c)
    agree(stepped_outside, "cpu", np.zeros(5, np.int64), a, b, c)


@kernel
def bounds_once(out, lim):
    for i in range(lim[0], lim[1]):
        out[i] = i
        lim[0] = 0
        lim[1] = 0


def test_bounds_are_evaluated_before_the_first_iteration(device):
    agree(bounds_once, device, np.zeros(10, np.int64), np.array([2, 7]))


@kernel
def around_loops(v, out):
    s, j = 0.0, 0
    while j < 3:
        s += v[j]
        j += 1
    for i in range(out.size):
        out[i] = s + i
    s = s * 2
    w = v[1:]
    for i in range(out.size):
        out[i] += s + w[0]
    out[0] = -1


def test_statements_around_loops_run_once_in_order(device):
    agree(around_loops, device, np.arange(5.0), np.zeros(4))


@kernel
def no_loop(v, m: float32):
    v[0] = 7


@kernel
def nothing(v, n, m: float32):
    pass


def test_no_loop_and_unused_parameters(device):
    agree(no_loop, device, np.zeros(1), 4)
    agree(nothing, device, np.zeros(1), 3, 4)


@kernel
def index_as_float(out):
    for i in range(4):
        i = i * 0.5
        out[int(i * 2)] = i


def test_a_loop_variable_may_become_a_float(device):
    agree(index_as_float, device, np.zeros(4))


@kernel
def products(out, n, m):
    for i, j in ndrange(n, m):
        out[i, j] = 10 * i + j
    for k, i, j in ndrange(2, out.shape[0], (0, out.shape[1])):
        atomic_add(out, (i, j), k)
    for _i, _j in ndrange(-1, -1):
        out[0, 0] = 99


@pytest.mark.parametrize(("n", "m"), [(4, 7), (0, 3), (3, 0), (-2, -2), (1, 1)])
def test_ndrange(device, n, m):
    agree(products, device, np.zeros((4, 7), np.int64), n, m)


@kernel
def swaps(v):
    for i in range(v.size // 2):
        j = v.size - 1 - i
        v[i], v[j] = v[j], v[i]
        (a, b), c = (1, 2), 3
        a, b = b, a
        d = e = a
        v[i] += a * 100 + b * 10 + c + d - e


def test_tuple_assignment(device):
    agree(swaps, device, np.arange(11))


@kernel
def over_values(v, out):
    for x in v:
        atomic_add(out, 0, x)
    for _ in range(1):
        for x in v[2:]:
            out[1] += x


def test_for_over_values(device):
    agree(over_values, device, np.arange(10), np.zeros(2, np.int64))


# ---- views


@kernel
def slices(a, out, lo, hi, st):
    for _ in range(1):
        w = a[lo:hi:st]
        out[0] = w.size
        for j in range(w.size):
            out[1 + j] = w[j]
        x = a[-3:][::-1]
        out[20] = x[0] + x[-1]
        out[21] = len(a[5:2]) + a[1:].shape[0] + a[lo:].size + a[:hi].size


@given(st.integers(-25, 25), st.integers(-25, 25), st.integers(-12, 12).filter(bool), st.sampled_from([1, -1, 2]))
@examples(60)
def test_slices_clamp_as_python_does(lo, hi, step, layout):
    agree(slices, "cpu", np.arange(20.0)[::layout][:10], np.zeros(30), lo, hi, step)


@kernel
def planes(a, out, k):
    for i in range(a.shape[0]):
        row = a[i]
        part = a[i, :, 1:]
        col = a[:, -1, k]
        out[i, 0] = row[1, 0] + row[-1, -2] + col[i]
        out[i, 1] = part.shape[0] * 10 + part.shape[1] + part[-1, -1]
        out[i, 2] = a[..., 0][i, 0] + a[i, ...].shape[1] + a.ndim
        out[i, 3] = a[i, ::-1, ::2][0, 1] + len(a)


@pytest.mark.parametrize("axes", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_slices_of_several_axes(device, axes):
    a = np.arange(4 * 5 * 3.0).reshape(4, 5, 3).transpose(axes)
    agree(planes, device, a, np.zeros((a.shape[0], 4)), 1)


@kernel
def sub_views(v, out, n: int):
    for i in range(out.size):
        a = v.subview(n, 4)
        b = BufferView(a, 1, size=2)
        out[i] = a[i] * 100 + b[0] + b.size


def test_sub_views(device):
    (_, out) = launch(sub_views, device, np.arange(10.0), np.zeros(3), 3)
    assert out.tolist() == [306.0, 406.0, 506.0]


@func
def last(v):
    return v[v.size - 1]


@func
def tail(a, b, n):
    if n > 2:
        return b[n:]
    return a[::2]


@kernel
def several_views(a, b, out, n):
    for i in range(out.size):
        w = a
        if i > 1:
            w = b
        out[i] = w[i] + last(tail(a, b, n + i)) + (a if i == 0 else b)[2]


def test_a_variable_may_be_a_view_of_this_or_that(device):
    agree(several_views, device, np.arange(10.0), np.arange(10.0) * 10, np.zeros(4), 1)


@kernel
def zero_d(a, s, out):
    s[()] = s[()] + a[0]
    for i in range(out.size):
        out[i] = s[()] * i


def test_zero_dimensions(device):
    agree(zero_d, device, np.arange(3.0), np.array(2.0), np.zeros(3))


@kernel
def wrapping(v, out, k: int):
    for i in range(out.size):
        out[i] = v[i - 2] + v[k]


def test_wraparound(device):
    agree(kernel(wrapping, wraparound=True), device, np.arange(5.0), np.zeros(5), -1)


# ---- functions


@func
def find(v, x):
    for i in range(v.size):
        if v[i] == x:
            return i
    return -1


@func
def put(v, i, x=5):
    v[i] = x


@func
def bump(v: ndarray[int64, 1], i: int):
    v[i] += 1
    return v[i]


square_of = func(lambda x: x * x)


@kernel
def calls(a, out):
    for i in range(out.size):
        out[i] = find(a, i * 2) + square_of(i)
        put(out, i, x=out[i] + 1)
    for _ in range(1):
        put(out, 4)
        out[1] = bump(out, 0) * 10 + bump(out, 0)  # left to right
        out[2] = out[0] + bump(out, 0)
        out[3] = 1 if 0 < bump(out, 0) < 100 else 0
        out[bump(out, 0) - out[0] + 5] += 1  # the place is evaluated once


def test_functions(device):
    agree(calls, device, np.arange(10), np.zeros(6, np.int64))


@func
def narrow(x: float32, k: int):
    return x + k


@kernel
def annotated(out):
    for i in range(out.size):
        out[i] = narrow(1e-9 + 1, 0)


def test_annotations_of_functions_convert(device):
    assert launch(annotated, device, np.zeros(1))[0][0] == np.float32(1)


# ---- names


@kernel
def far(out, limits, first: int, step: int):
    for i in range(first, first + 4 * step, step):
        out[(i - first) // step] = i
    for _ in range(1):
        for j in range(limits[0]):
            if j == 5:
                break
            out[4] = j
        for j in range(limits[1]):
            out[5] = j + 1
        w = limits[1 :: step * 2]
        out[6] = w.size * 100 + int(w[0])


def test_ranges_near_the_limits(device):
    for first, step in ((-(2**63), 2**61), (2**62, -(2**60)), (3, 2**60)):
        args = np.zeros(7, np.int64), np.array([2**63 + 5, 3], np.uint64), first, step
        expected = [first + k * step for k in range(4)] + [4, 3, 103]
        for checked in (False, True):
            with debug(checked):
                assert launch(far, device, *args)[0].tolist() == expected


@kernel
def names(
    v,
    t,
    begin,
    env,
    I,  # noqa: E741
    bool_,
    value,
    at,
    k1,
    rest,
    row,
    first,
    unit,
    stop1,
    data,
    n0,
    v_x,
    lane,
    mode,
    launch,
    variants,
    é,
    out,
):
    for i in range(v.size):
        float_ = int_ = count = here = up = slots = memory = double = register = NULL = size = k = end = 1
        exp, len, EOF, pa_x, const, _I, _e9_, tmp0, at0, _pa_f, return_ = 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12
        a = float_ + int_ + count + here + up + slots + memory + double + register + NULL + size + k + end
        b = exp + len + EOF + pa_x + const + _I + é + _e9_ + data + n0 + v_x + lane + mode + launch + variants
        out[i] = a + b + tmp0 + at0 + t + begin + env + I + bool_ + value + at + k1 + rest + row + first + unit
        out[i] += stop1 + _pa_f + return_


def test_names_never_meet_ours(device):
    agree(names, device, np.zeros(3), *range(1, 22), np.zeros(3))


def _make(factor):
    kind = float32

    @kernel
    def scaled(v: ndarray[kind, 1], s: kind = 2.0):
        for i in range(v.size):
            v[i] = v[i] * factor + s

    return scaled


def test_closures_defaults_and_local_annotations(device):
    agree(_make(3), device, np.arange(4, dtype=np.float32))
    agree(_make(5), device, np.arange(4, dtype=np.float32), 7)


# ---- arithmetic

NUMBERS = [row for row in ALL if row.kind != "b"]


@kernel
def arithmetic(a, b, out):
    for i in range(a.size):
        x, y = a[i], b[i]
        out[0, i] = x + y
        out[1, i] = x - y
        out[2, i] = x * y
        out[3, i] = -x
        out[4, i] = x**2
        out[5, i] = x * 2 + 1
        out[6, i] = +y
        out[7, i] = x if x == y or x != x else y


@kernel
def ordered(a, b, out):
    for i in range(a.size):
        x, y = a[i], b[i]
        out[0, i] = x // y
        out[1, i] = x % y
        out[2, i] = np.minimum(x, y)
        out[3, i] = np.maximum(x, y)
        out[4, i] = abs(x)
        out[5, i] = x < y <= x + y
        out[6, i] = not x > y
        out[7, i] = (x and y) != 0 or x >= 3


@kernel
def integers(a, b, out):
    for i in range(a.size):
        x, y = a[i], b[i]
        out[0, i] = x & y
        out[1, i] = x | y
        out[2, i] = x ^ y
        out[3, i] = ~x
        out[4, i] = x << (y & 7)
        out[5, i] = x >> (y & 7)
        out[6, i] = x ** (y & 3)
        out[7, i] = x // 7 + x % 7


def _drawn(dtype, seed, size=37):
    random = np.random.default_rng(seed)
    if dtype.kind in "iu":
        info = np.iinfo(dtype.numpy)
        special = np.array([0, 1, info.max, info.min, 2, 7], dtype.numpy)
        return np.concatenate([special, random.integers(info.min, info.max, size, dtype.numpy, endpoint=True)])
    values = random.normal(size=size) * 50
    if dtype.kind == "c":
        values = values + 1j * random.normal(size=size)
        return values.astype(dtype.numpy)
    special = [0.0, -0.0, np.nan, np.inf, -np.inf, 3.5]
    return np.concatenate([special, values]).astype(dtype.numpy)


def _numpy(function, *args):
    """Element by element in NumPy's scalars, whose rules are the language's."""
    with np.errstate(all="ignore"):
        function.__wrapped__(*args)


def _compare(k, dtype, device, rows=8):
    a, b = _drawn(dtype, 1), np.random.default_rng(3).permutation(_drawn(dtype, 2))
    expected = np.zeros((rows, a.size), dtype.numpy)
    _numpy(k, a, b, expected)
    got = launch(k, device, a, b, np.zeros_like(expected))[2]
    wide = dtype.numpy if dtype.kind in "iu" else np.float64  # of bfloat16, NumPy doesn't know the NaNs
    np.testing.assert_array_equal(got.astype(wide), expected.astype(wide))


@pytest.mark.parametrize("dtype", NUMBERS, ids=str)
def test_arithmetic(device, dtype):
    if dtype.kind == "c":
        return _compare_complex(device, dtype)
    _compare(arithmetic, dtype, device)
    _compare(ordered, dtype, device)
    if dtype.kind in "iu":
        _compare(integers, dtype, device)


def _compare_complex(device, dtype):
    a, b = _drawn(dtype, 1), _drawn(dtype, 2)
    got = launch(arithmetic, device, a, b, np.zeros((8, a.size), dtype.numpy))[2]
    expected = [a + b, a - b, a * b, -a, a * a, a * 2 + 1, b, np.where(a == b, a, b)]
    np.testing.assert_allclose(got, expected, rtol=1e-5)


@kernel
def booleans(a, b, out, count):
    for i in range(a.size):
        x, y = a[i], b[i]
        out[0, i] = x + y
        out[1, i] = x * y
        out[2, i] = x & y
        out[3, i] = x ^ y
        out[4, i] = ~x
        out[5, i] = max(x, y)
        out[6, i] = not x
        out[7, i] = x == y
        count[i] = x + 1 + (y < x) * 3


def test_booleans(device):
    a, b = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    out, count = launch(booleans, device, a, b, np.zeros((8, 4), bool), np.zeros(4, np.int64))[2:]
    assert out.tolist() == [list(r) for r in (a | b, a & b, a & b, a ^ b, ~a, a | b, ~a, a == b)]
    assert count.tolist() == [1, 1, 5, 2]


@kernel
def by_value(a, b, c, out):
    for i, j in ndrange(a.size, b.size):
        out[i, j, 0] = a[i] < b[j]
        out[i, j, 1] = a[i] <= b[j]
        out[i, j, 2] = a[i] == b[j]
        out[i, j, 3] = b[j] < a[i]
        out[i, j, 4] = a[i] != b[j]
        out[i, j, 5] = b[j] >= a[i]
        out[i, j, 6] = i < b[j]
        out[i, j, 7] = a[i] < 300
        out[i, j, 8] = b[j] > -1
        out[i, j, 9] = b[j] < 2**64 - 1
        out[i, j, 10] = i + 250 < c[0] or c[0] > 300 or c[0] == -1


def test_comparisons_of_integers_are_by_value(device):
    a = np.array([-5, 0, 5, 2**63 - 1, -(2**63)])
    b = np.array([0, 5, 2**63, 2**64 - 1], np.uint64)
    agree(by_value, device, a, b, np.array([5], np.uint8), np.zeros((5, 4, 11), bool))


@kernel
def constants(out, u, x):
    out[0] = -(2**63)
    out[1] = 2**62
    out[2] = 7 // -2
    out[3] = -7 % 3
    out[4] = int(2.7) + int(-2.7)
    u[0] = 0xCBF29CE484222325
    u[1] = (u[0] ^ 5) * 0x100000001B3
    u[2] = 2**64 - 1
    x[0] = math.inf
    x[1] = -math.inf
    x[2] = math.nan
    x[3] = math.pi
    x[4] = 1e-300
    x[5] = 16777217.0000001


def test_constants(device):
    with np.errstate(all="ignore"):
        agree(constants, device, np.zeros(5, np.int64), np.zeros(3, np.uint64), np.zeros(6, np.float32))


@kernel
def functions(a, out):
    for i in range(a.size):
        x = a[i]
        out[0, i] = math.sin(x) + math.exp(-x * x) + math.sqrt(abs(x))
        out[1, i] = np.arctan2(x, 2.0) + np.hypot(x, 1.0)
        out[2, i] = math.floor(x) + math.ceil(x) + round(x)
        out[3, i] = x**0.5 if x > 0 else x**3
        out[4, i] = math.isnan(x) or math.isinf(x)
        out[5, i] = pow(abs(x), 1.5) + math.log1p(abs(x)) + math.copysign(1.0, x)


@pytest.mark.parametrize("layout", [1, 2, -1])
def test_math(device, layout):
    a = np.linspace(-3, 3, 22)[::layout]
    agree(functions, device, a, np.zeros((6, a.size)), rtol=1e-13)


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_every_function_of_the_table_links(device, dtype):
    """One kernel per type with all the functions that are defined for it; NumPy has the values of most."""
    kinds = {"b": "biuf", "i": "iuf", "u": "iuf", "f": "f", "c": "c"}[dtype.kind]
    rows = [row for row in FUNCTIONS.values() if set(row.kinds) & set(kinds)]
    lines = [f"        out[{n}, i] = k.{r.name}({', '.join(['x[i]'] * r.arity)})" for n, r in enumerate(rows)]
    text = "def all_functions(x, out):\n    for i in range(x.size):\n" + "\n".join(lines) + "\n"
    path = f"<functions of {dtype}>"
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    exec(compile(text, path, "exec"), space := {"k": kernel_math})
    x = np.array([0, 1, 1]).astype(dtype.numpy)
    result = np.complex128 if dtype.kind == "c" else np.float64
    out = launch(kernel(space["all_functions"]), device, x, np.zeros((len(rows), 3), result))[1]
    for n, row in enumerate(rows):
        if dtype.kind in "fc" and dtype.itemsize > 2:
            try:
                with np.errstate(all="ignore"):
                    expected = getattr(kernel_math, row.name)(*[x] * row.arity)
            except RuntimeError:  # NumPy has none
                continue
            np.testing.assert_allclose(out[n], expected, rtol=1e-5, err_msg=row.name)


@kernel
def cast_to(a, out, kind: constexpr):
    for i in range(a.size):
        out[i] = kind(a[i])


@pytest.mark.parametrize("source", ["bool", "int8", "uint64", "float16", "bfloat16", "float64"])
def test_casts(device, source):
    rows = {str(row): row for row in ALL}
    a = np.array([0, 1, 2, 100, 0, 1]).astype(rows[source].numpy)
    if rows[source].kind in "if":
        a[-1] = -3
    for target in device_subset(ALL, list(rows).index(source), device):
        if target.kind == "u" and rows[source].kind in "if":
            continue
        out = launch(cast_to, device, a, np.zeros(6, target.numpy), target)[1]
        np.testing.assert_array_equal(out, a.astype(target.numpy), err_msg=str(target))


@kernel
def weak(x, y, out):
    for i in range(out.size):
        s = 0  # takes float32 from what is added
        for j in range(3):
            s += x[j] * 0.1
        t: float64 = 0  # stays
        t += x[0] * y
        out[i] = s + i * 0.5 + t


def test_weak_numbers_do_not_widen(device):
    x = np.array([1, 2, 3], np.float32)
    out = launch(weak, device, x, 0.1, np.zeros(2))[2 - 1]
    f = np.float32
    s = f(f(f(x[0] * f(0.1)) + f(x[1] * f(0.1))) + f(x[2] * f(0.1)))
    assert out[0] == np.float64(f(s + f(0))) + np.float64(x[0] * f(0.1))


# ---- atomics and reductions


@kernel
def atomics(v, out):
    for i in range(v.size):
        atomic_add(out, 0, v[i])
        atomic_sub(out, 1, v[i])
        atomic_min(out, 2, v[i])
        atomic_max(out, 3, v[i])


@kernel
def bit_atomics(v, out):
    for i in range(v.size):
        atomic_and(out, 0, v[i])
        atomic_or(out, 1, v[i])
        atomic_xor(out, 2, v[i])
        old = atomic_exchange(out, 3, v[i])
        atomic_add(out, 4, old)
    out[4] += out[3]  # the last one stays, whichever it was
    out[3] = 0


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint64", "float32", "float64"])
def test_atomics(device, dtype):
    v = np.arange(1, 20000).astype(dtype) if dtype != "float32" else np.arange(1, 2000, dtype=np.float32)
    agree(atomics, device, v, np.zeros(4, dtype))
    if dtype[0] in "iu":
        agree(bit_atomics, device, v, np.full(5, 1, dtype))


@kernel
def reduces(v, m, out, n: int):
    for _ in range(1):
        s = 0
        p = 1.0
        lo, hi = v[0], v[0]
        for i in unordered(range(n)):
            x = v[i]
            s += x
            p = p * (1 + x * 0)
            lo = min(lo, x)
            hi = max(hi, x)
        a = ~(m[0] & 0)
        o = m[0] & 0
        e = m[0] & 0
        for i in unordered(range(1, n)):
            a &= m[i]
            o |= m[i]
            e ^= m[i]
        out[0] = s
        out[1] = p
        out[2] = lo
        out[3] = hi
        out[4] = a
        out[5] = o
        out[6] = e


@pytest.mark.parametrize("n", [0, 1, 2, 15, 16, 17, 31, 33, 1000])
def test_unordered_reductions(device, n):
    v = np.arange(-3, 1001.0)
    m = (np.arange(1004) * 7919 % 1009).astype(np.int32)
    agree(reduces, device, v, m, np.zeros(7), n)


# ---- every layout


@kernel
def combine(a, b, out):
    for i, j in ndrange(out.shape[0], out.shape[1]):
        out[i, j] = a[i, j] * 2 + b[j, i]


def _layouts(dtype):
    base = np.arange(240).astype(dtype)
    yield base[:12].reshape(3, 4)
    yield base[:12].reshape(4, 3).T
    yield base[:48].reshape(6, 8)[::-2, ::2]
    yield base[:120].reshape(2, 5, 12)[1, 1:4, 3:11:2][:, ::-1]
    yield np.broadcast_to(base[:4], (3, 4))


def test_one_artifact_for_every_layout_of_a_class(device):
    for a in _layouts(np.int32):
        for b in _layouts(np.int32):
            agree(combine, device, a, b.T.copy().T.reshape(3, 4).T, np.zeros((3, 4), np.int32))
    assert combine.cache_info()["variants"] <= 4


def test_empty_arrays_launch_nothing(device):
    agree(combine, device, np.zeros((0, 3)), np.zeros((3, 0)), np.zeros((0, 3)))
    agree(arithmetic, device, np.zeros(0), np.zeros(0), np.zeros((8, 0)))


@given(st.integers(0, 40), st.integers(0, 40), st.sampled_from([1, 2, 3, -1, -2]), st.sampled_from([1, 2, -1]))
@examples(50)
def test_any_stride_and_offset(start, size, step_a, step_b):
    a = np.arange(200.0)[start:][::step_a][:size]
    b = np.arange(200.0)[::-1][::step_b][: a.size]
    out = np.zeros((8, a.size))
    with np.errstate(all="ignore"):
        arithmetic.__wrapped__(a, b, expected := out.copy())
    np.testing.assert_array_equal(launch(arithmetic, "cpu", a, b, out)[2], expected)


def test_host_arrays_are_accepted(device):
    if device != "cpu":
        pytest.skip("host arrays go to the CPU")
    a = np.arange(4, dtype=np.float32)
    _make(2)(a)
    assert a.tolist() == [2, 4, 6, 8]


def test_arrays_may_overlap(device):
    @kernel
    def shift(a, b):
        for _ in range(1):
            for i in range(b.size):
                b[i] = a[i] + b[i]

    x = np.arange(20.0)
    there = on(device, x.copy())
    shift(there[:10], there[1:11])
    shift.__wrapped__(x[:10], x[1:11])
    np.testing.assert_array_equal(asnumpy(there), x)
