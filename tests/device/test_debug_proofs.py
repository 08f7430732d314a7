"""What debug mode proves, what it tests once for many iterations, and that reports stay exact."""

import linecache
import random

import numpy as np
import pytest
from checked_reference import OutOfRange, random_kernel, run_checked
from kernel_tools import agree, launch, on

from pyarray.array_convert import asarray, asnumpy
from pyarray.driver.base import get_device
from pyarray.errors import BoundsError, CompileError
from pyarray.jit.kernel import func, kernel
from pyarray.jit.launch_state import debug
from pyarray.lang.markers import atomic_exchange, ndrange

# ---- proven by the text alone: no launch can fail, so nothing is tested


@kernel
def by_size(v):
    for i in range(v.size):
        v[i] = v[i] + 1


@kernel
def by_len(v):
    for i in range(len(v)):
        v[i] = v[i] + 1


@kernel
def stencil(v, out):
    for k in range(out.size):
        out[k] = 0
    for i in range(1, v.size - 1):
        if v[i - 1] + v[i + 1] < 0:  # never: another iteration may read it
            v[i] = 0


@kernel
def one_based(v):
    for i in range(1, v.size + 1):
        v[i - 1] = i


@kernel
def planes(m):
    for i, j in ndrange(m.shape[0], m.shape[1]):
        m[i, j] = m[i, j] + 1
    for i, j in ndrange(m.shape):
        m[i, j] = m[i, j] + 1


@func
def total(v):
    s = 0.0
    for i in range(v.size):
        s += v[i]
    return s


@kernel
def through_calls(v, out):
    for i in range(out.size):
        w = v[1:]
        s = 0.0
        for j in range(w.size):
            s += w[j]
        out[i] = s + total(w) + total(v[i:])


@kernel
def each_value(v, out):
    for i in range(out.size):
        for x in v:
            out[i] += x


PROVEN = [by_size, by_len, stencil, one_based, planes, through_calls, each_value]


@pytest.mark.parametrize("k", PROVEN, ids=lambda k: k.__name__)
def test_proven(device, k):
    count = len(k.parameters)
    for size in (0, 1, 2, 5):
        arrays = [np.ones((size, size) if k is planes else size) for _ in range(count)]
        with debug():
            agree(k, device, *arrays)
    assert "pa_check_index" not in k.source(debug=True)
    assert "bool inside =" not in k.source(debug=True)


# ---- tested once per block, and exact when that fails


@func
def weighted(a, b, i, f):
    return f * a[i] + b[i]


@kernel
def three(a, b, c, f, n: int):
    for i in range(n):
        c[i] = weighted(a, b, i, f)


@kernel
def neighbours(a, out):
    for i in range(out.size):
        if 0 < i < a.size - 1:
            out[i] = a[i - 1] + a[i + 1]


@kernel
def product(a, b, c):
    for i, j in ndrange(c.shape[0], c.shape[1]):
        s = 0.0
        for k in range(a.shape[1]):
            s += a[i, k] * b[k, j]
        c[i, j] = s


@kernel
def rotated(v, out, k: int):
    for i in range(out.size):
        out[i] = v[(i + k) % v.size]


@kernel
def guarded(v, index, out):
    for i in range(out.size):
        j = index[i]
        if 0 <= j < v.size:
            out[i] = v[j]
        out[i] += v[max(0, min(index[i], v.size - 1))]


@kernel
def half_guarded(v, index, out):
    for i in range(out.size):
        j = index[i]
        if j + 1 < v.size:
            out[i] = v[j + 1]


def _unchecked_way(k, device):
    """Whether the text has a way without tests beside the one with them, where iterations come in blocks."""
    grid = get_device(device).driver.grid
    return grid or ("bool inside = true" in k.source(debug=True) and "pa_check" in k.source(debug=True))


def test_a_block_is_tested_once(device):
    a, b, c = (on(device, np.ones(1000)) for _ in range(3))
    with debug():
        three(a, b, c, 2.0, 1000)
        neighbours(a, c)
        product(on(device, np.ones((3, 4))), on(device, np.ones((4, 5))), m := on(device, np.zeros((3, 5))))
        rotated(a, c, 5)
        rotated(a, on(device, np.zeros(0)), 5)
    assert all(_unchecked_way(k, device) for k in (three, neighbours, product, rotated))
    assert (asnumpy(m) == 4).all()
    assert (asnumpy(c)[1:-1] == 1).all()


@kernel
def run_of(v, out):
    for i in range(out.size):
        out[i] = v[i + 2] + v[i] + v[i + 5] + v[i + 1]


@pytest.mark.parametrize("missing", [0, 1, 4, 6])
def test_of_neighbours_the_highest_is_tested_alone(device, missing):
    """Whatever their order; the report names the first access that is outside."""
    v, out = on(device, np.arange(105.0 - missing)), on(device, np.zeros(100))
    with debug():
        if not missing:
            run_of(v, out)
        else:
            with pytest.raises(BoundsError, match=f"argument 'v' axis 0: got index {v.size}"):
                run_of(v, out)
    if not missing:
        assert (asnumpy(out) == 4 * np.arange(100.0) + 8).all()
    (tests,) = {line for line in run_of.source(debug=True).splitlines() if "inside = inside" in line}
    assert tests.count("v_v.n0") == 1


@kernel
def guarded_before(v, out):
    for k in range(out.size):
        i = k
        if 0 <= i < v.size and (i := i + 1000) > 0:
            out[k] = v[i]


@kernel
def guarded_value(v, out):
    for k in range(out.size):
        i = k
        out[k] = v[i] if not (i < 0 or i >= v.size or (i := -1) > 0) else 0


@pytest.mark.parametrize("made", [guarded_before, guarded_value])
def test_a_condition_that_sets_the_variable_later(device, made):
    with debug(), pytest.raises(BoundsError):
        launch(made, device, np.arange(10), np.zeros(6, np.int64))


def test_what_a_condition_says(device):
    v, out = np.arange(10.0), np.zeros(6)
    index = np.array([0, 9, 10, -1, 2**63 - 1, -(2**63)])
    with debug():
        assert launch(guarded, device, v, index, out)[2].tolist() == [0, 18, 9, 0, 9, 0]
        with pytest.raises(BoundsError, match="argument 'v' axis 0: got index 0"):
            guarded(on(device, v[:0]), on(device, index), on(device, out))
        half_guarded(on(device, v), on(device, index[:3]), on(device, out[:3]))
        with pytest.raises(BoundsError) as caught:
            half_guarded(on(device, v), on(device, index), on(device, out))
    assert (caught.value.index, caught.value.tid) == (-(2**63), 4)  # the sum wraps before it is compared
    assert _unchecked_way(guarded, device)


@pytest.mark.parametrize("step", [1, 2, -1])
@pytest.mark.parametrize("size", [1000, 200_000], ids=["one thread", "many threads"])
def test_the_report_is_that_of_one_iteration_after_the_other(device, step, size):
    a, b, c = np.zeros(2 * size)[::step][:size], np.ones(size), np.ones(size)
    for short, name in ((b[:-7], "b"), (b[:-8], "b")):
        with debug(), pytest.raises(BoundsError) as caught:
            three(on(device, a), on(device, short), on(device, c), 2.0, size)
        error = caught.value
        assert (error.argument, error.index, error.tid, error.extent) == (
            name,
            short.size,
            short.size,
            short.size,
        )
        assert [f.function for f in error.frames] == ["three", "weighted"]
    with debug(), pytest.raises(BoundsError) as caught:
        three(on(device, a), on(device, b), on(device, c[: size // 2]), 2.0, size)
    assert (caught.value.argument, caught.value.tid) == ("c", size // 2)


def test_rows_of_a_product(device):
    a, b = np.ones((3, 4)), np.ones((3, 5))
    with debug(), pytest.raises(BoundsError) as caught:
        product(on(device, a), on(device, b), on(device, np.zeros((3, 5))))
    assert (caught.value.argument, caught.value.axis, caught.value.index, caught.value.tid) == ("b", 0, 3, 0)


@kernel
def huge(v, k: int, s: int):
    for i in range(2):
        v[i + k - k] = 1
        v[i * s] = 2


@pytest.mark.parametrize("k", [0, 2**62, 2**63 - 1, -(2**63)])
def test_bounds_that_overflow_say_nothing(device, k):
    """The sum wraps there and back, as NumPy's does: iterations are inside, though their bounds are not."""
    memory = on(device, np.zeros(10))
    with debug():
        huge(memory[4:8], k, 1)
    assert memory.tolist() == [0] * 4 + [2, 2] + [0] * 4
    for far in (2**62, -(2**62), 2**63 - 1, -(2**63), 4, -1):
        with debug(), pytest.raises(BoundsError) as caught:
            huge(memory[4:8], k, far)
        assert (caught.value.index, caught.value.tid) == (far, 1)
    assert memory.tolist() == [0] * 4 + [2, 1] + [0] * 4


@kernel
def hashed(v, out):
    for i in range(out.size):
        h = (i * 6364136223846793005 + 1442695040888963407) ^ (i << 13)
        out[i] = v[i] + h % 7


def test_arithmetic_beside_indices_may_wrap(device):
    v, out = np.arange(100), np.zeros(100, np.int64)
    with debug():
        out = launch(hashed, device, v, out)[1]
    i = np.arange(100)
    with np.errstate(over="ignore"):
        h = (i * 6364136223846793005 + 1442695040888963407) ^ (i << 13)
    np.testing.assert_array_equal(out, v + h % 7)


# ---- drawn


@func
def get(v, i):
    return v[i]


@func
def ident(i, n):
    if i > n:
        return i - n
    return i


NAMES = {"ndrange": ndrange, "atomic_exchange": atomic_exchange}


@pytest.mark.parametrize("seed", range(5))
def test_drawn_kernels(seed):
    """Random loops, conditions, views and indices: the report of the first failure in Python's order, nothing
    touched outside, whichever way a block took."""
    draw = random.Random(seed)
    text = random_kernel(draw)
    path = f"<drawn {seed}>"
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    exec(compile(text, path, "exec"), space := {**NAMES, "get": get, "ident": ident})
    made = kernel(space["drawn"])
    for _ in range(12):
        sizes = [draw.choice([0, 1, 2, 5, 6, 7, 9]) for _ in range(4)]
        n, k = draw.choice([0, 1, 2, 3, 5, 6, 7]), draw.choice([1, 2, 3, -1])
        if draw.random() < 0.3:
            sizes, n = [6] * 4, 6
        memory = np.zeros(400, np.int64)
        a, b = memory[10:][:: draw.choice([1, 2])][: sizes[0]], memory[110 : 110 + sizes[1]]
        m = memory[210 : 210 + sizes[2] * sizes[3]].reshape(sizes[2], sizes[3])
        arrays = a, b, m.T if draw.random() < 0.3 else m, memory[310:312]
        functions = {**NAMES, "get": get.__wrapped__, "ident": ident.__wrapped__}
        try:
            expected = run_checked(text, functions, [x.copy() for x in arrays], n, k)
        except ZeroDivisionError:
            continue
        got = None
        with debug():
            try:
                made(*map(asarray, arrays), n, k)
            except BoundsError as error:
                got = OutOfRange(error.tid, error.index)
        assert got == expected, f"{text}\n{sizes} {n} {k}"
        for x in arrays:
            x[...] = 0
        assert not memory.any()


@kernel
def gathers(out, v, index):
    for i in range(out.size):
        out[i] = v[index[i]]


def test_an_index_of_uint64_is_not_reported_as_a_negative_number(device):
    index = on(device, np.array([2**64 - 1], np.uint64))
    with debug(), pytest.raises(BoundsError, match=f"axis 0: got index {2**64 - 1} ") as caught:
        gathers(on(device, np.zeros(1)), on(device, np.zeros(4)), index)
    assert caught.value.index == 2**64 - 1


# ---- refuted when compiled: sizes that are promised


@kernel
def ninth(v):
    for i in range(v.size):
        v[i] = v[8]


@kernel
def ninth_or_none(v):
    for i in range(v.size):
        if v.size > 8:
            v[i] = v[8]


@kernel
def from_the_end(v):
    for i in range(v.size):
        v[i] = v[-9]


def test_a_constant_index_against_a_pinned_size(device):
    short = on(device, np.zeros(8)).mark_static()
    for k, index in ((ninth, 8), (from_the_end, -9)):
        message = f"index {index} is out of range: this axis has 8 elements at most"
        with pytest.raises(CompileError, match=message):
            k(short)
        k(on(device, np.zeros(9)).mark_static())
        k(on(device, np.zeros(9)))
    ninth_or_none(short)


@kernel
def shifted_by_one(out, v):
    for i in range(v.size):
        out[i] = v[i + 1]


def test_what_lies_one_past_a_loops_end_is_not_proven(device):
    v, out = (on(device, np.zeros(8)) for _ in range(2))
    with debug(), pytest.raises(BoundsError, match="got index 8") as raised:
        shifted_by_one(out, v)
    assert (raised.value.tid, raised.value.extent) == (7, 8)


# ---- a block that is inside may take the version for arrays that share no memory


@kernel
def wrapped(out, x, reach: int):
    height, width = out.shape
    for i in range(height):
        up = i - 1 if i > 0 else height - 1
        for j in range(width):
            left, right = (j + width - reach) % width, j + reach if j + reach < width else j + reach - width
            out[i, j] = 2 * x[up, j] + x[i, left] - x[i, right]


@pytest.mark.parametrize("seed", range(20))
def test_indices_chosen_by_conditions(device, seed):
    draw = random.Random(seed)
    height, width = draw.randrange(1, 9), draw.randrange(1, 40)
    x, reach = np.random.default_rng(seed).random((height, width)), draw.randrange(-2, width + 3)
    expected = np.zeros_like(x)
    try:
        run_wrapped(expected, x, reach)
    except OutOfRange:
        with debug(), pytest.raises(BoundsError):
            launch(wrapped, device, np.zeros_like(x), x, reach)
        return
    with debug():
        got, _ = launch(wrapped, device, np.zeros_like(x), x, reach)
    assert got.tolist() == expected.tolist()


def run_wrapped(out, x, reach):
    """The kernel in Python, whose indices are those of the language: none counts from the end."""

    def at(i, j):
        if not 0 <= j < width:
            raise OutOfRange(i, j)
        return x[i, j]

    height, width = out.shape
    for i in range(height):
        up = i - 1 if i > 0 else height - 1
        for j in range(width):
            left, right = (j + width - reach) % width, j + reach if j + reach < width else j + reach - width
            out[i, j] = 2 * at(up, j) + at(i, left) - at(i, right)


@kernel
def running(out, x):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = x[i, j] + 1


@pytest.mark.parametrize("width", [1, 3, 64, 200])
def test_checked_loops_see_what_they_store_through_another_argument(device, width):
    memory = on(device, np.zeros((1, width + 1)))
    with debug():
        running(memory[:, 1:], memory[:, :-1])
    assert asnumpy(memory).tolist() == [list(range(width + 1))]
