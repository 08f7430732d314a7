"""What launches cost, against counts by hand. Nothing is compiled."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pyarray as pa
from pyarray.errors import CompileError, DeviceError

SIZES = st.integers(0, 70)


@pa.kernel
def axpy(a, x, y):
    for i in range(x.size):
        y[i] += a * x[i]


@pa.kernel
def row_sums(x, out):
    for i in range(x.shape[0]):
        total = 0.0
        for k in range(x.shape[1]):
            total += x[i, k]
        out[i] = total


@pa.kernel
def multiply(a, b, c):
    for i, j in pa.ndrange(c.shape[0], c.shape[1]):
        total = 0.0
        for k in range(a.shape[1]):
            total += a[i, k] * b[k, j]
        c[i, j] = total


@pa.kernel
def stencil(x, y):
    for i in range(1, x.size - 1):
        y[i] = x[i - 1] + x[i] + x[i + 1]


@pa.kernel
def padded_stencil(x, y):
    n = x.size
    for i in range(n):
        if i > 0 and i < n - 1:
            y[i] = x[i - 1] + x[i + 1]
        else:
            y[i] = x[i]


@pa.kernel
def by_view(out, a):
    view = a.T
    for i, j in pa.ndrange(view.shape[0], view.shape[1]):
        out[i, j] = view[i, j]


@pa.kernel
def by_shape(out, a):
    view = a.reshape(a.shape[1], -1)
    for i, j in pa.ndrange(view.shape[0], view.shape[1]):
        out[i, j] = view[i, j]


@pa.kernel
def transposed(x, y):
    for i, j in pa.ndrange(x.shape[0], x.shape[1]):
        y[j, i] = x[i, j]


@pa.kernel
def triangle(x, out):
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(i + 1):
            for k in range(j, x.shape[1], 2):
                total += x[j, k]
        out[i] = total


@pa.kernel
def blocks(x, out, size: int):
    for b in range((x.size + size - 1) // size):
        total = 0.0
        for i in range(b * size, min(x.size, (b + 1) * size)):
            total += x[i]
        out[b] = total


@pa.kernel
def skipping(x, y):
    for i in range(x.size):
        if i % 3 == 0:
            continue
        y[i] = 2 * x[i]


@pa.kernel
def halving(x, y):
    for i in range(y.size):
        n = x.size
        while n > 1:
            n = n // 2
        y[i] = n


@pa.func
def norm(v):
    total = 0.0
    for k in range(v.size):
        total += v[k] * v[k]
    return pa.sqrt(total)


@pa.kernel
def norms(x, out):
    for i in range(x.shape[0]):
        out[i] = norm(x[i])


@pa.kernel
def gathered(x, index, y):
    for i in range(index.size):
        y[i] = x[index[i]]


@pa.kernel
def counted(x, bins):
    for i in range(x.size):
        pa.atomic_add(bins, x[i], 1)


@pa.kernel
def positive(x, y):
    for i in range(x.size):
        if x[i] > 0:
            y[i] = pa.sqrt(x[i]) + 1
        else:
            y[i] = 0


@pa.kernel
def collatz(x, y):
    for i in range(x.size):
        n = x[i]
        while n > 1:
            n = n // 2
        y[i] = n


@pa.kernel
def found(x, y):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] > 0:
                break
        y[i] = 1


def null(*shape, dtype="float64"):
    return pa.empty(shape, dtype=dtype, device="null:0")


def counts_of(cost):
    return cost.operations, cost.loads, cost.stores, cost.iterations


def bytes_of(cost):
    return cost.bytes_read, cost.bytes_written


@given(n=SIZES)
def test_axpy(n):
    cost = axpy.cost_analysis(2.0, null(n), null(n))
    assert counts_of(cost) == (2 * n, 2 * n, n, n)
    assert bytes_of(cost) == (16 * n, 8 * n)
    assert cost.exact
    assert cost.launches == 1


@given(m=SIZES, n=SIZES)
def test_row_sums(m, n):
    cost = row_sums.cost_analysis(null(m, n, dtype="float32"), null(m))
    assert counts_of(cost) == (m * n, m * n, m, m)
    assert bytes_of(cost) == (4 * m * n, 8 * m)
    assert cost.exact


@given(m=SIZES, n=SIZES, k=SIZES)
def test_products(m, n, k):
    shapes = null(m, k), null(k, n), null(m, n)
    cost = multiply.cost_analysis(*shapes)
    assert counts_of(cost) == (2 * m * n * k, 2 * m * n * k, m * n, m * n)
    read = (m * k + k * n) * 8 if m and n else 0
    assert bytes_of(cost) == (read, 8 * m * n)
    assert cost.exact
    library = pa.cost_analysis(pa.matmul, pa.empty((m + 1, k + 1)), pa.empty((k + 1, n + 1)))
    assert library.operations == multiply.cost_analysis(
        null(m + 1, k + 1), null(k + 1, n + 1), null(m + 1, n + 1)
    ).operations or 1 in (m + 1, n + 1)


@given(n=SIZES)
def test_stencils(n):
    inner = max(n - 2, 0)
    cost = stencil.cost_analysis(null(n), null(n))
    assert counts_of(cost) == (2 * inner, 3 * inner, inner, inner)
    assert bytes_of(cost) == (8 * min(n, 3 * inner), 8 * inner)
    cost = padded_stencil.cost_analysis(null(n), null(n))
    compared = n + n + 2 * max(n - 1, 0)  # 0 < i, `and`; i < n - 1 where the first holds
    assert counts_of(cost) == (inner + compared, n + inner, n, n)
    assert cost.exact


@given(m=SIZES, n=SIZES)
def test_transposed_copy(m, n):
    cost = transposed.cost_analysis(null(m, n), null(n, m))
    assert counts_of(cost) == (0, m * n, m * n, m * n)
    assert bytes_of(cost) == (8 * m * n, 8 * m * n)
    assert cost.exact
    cost = by_shape.cost_analysis(null(m, n), null(n, m))
    assert counts_of(cost)[1:] == (m * n, m * n, m * n)
    cost = by_view.cost_analysis(null(m, n), null(n, m))
    assert counts_of(cost) == (0, m * n, m * n, m * n)
    assert cost.exact


@given(m=st.integers(0, 12), n=st.integers(0, 12))
def test_nested_loops_whose_bounds_are_variables(m, n):
    turns = sum(len(range(j, n, 2)) for i in range(m) for j in range(i + 1))
    cost = triangle.cost_analysis(null(m, n), null(m))
    assert counts_of(cost) == (turns, turns, m, m)
    assert cost.exact


@given(n=SIZES, size=st.integers(1, 80))
def test_blocks_with_a_shorter_last_one(n, size):
    count = -(-n // size)
    cost = blocks.cost_analysis(null(n), null(count), size)
    assert counts_of(cost) == (n, n, count, count)
    assert cost.exact


@given(n=SIZES)
def test_skipped_iterations(n):
    rest = n - len(range(0, n, 3))
    cost = skipping.cost_analysis(null(n), null(n))
    assert counts_of(cost) == (2 * n + rest, rest, rest, n)
    assert cost.exact


@given(n=st.integers(1, 2000), m=SIZES)
def test_while_loops_that_follow_from_sizes(n, m):
    steps = n.bit_length() - 1
    cost = halving.cost_analysis(null(n), null(m))
    assert counts_of(cost) == (m * (2 * steps + 1), 0, m, m)
    assert cost.exact


@given(m=SIZES, n=SIZES)
def test_functions_of_parts(m, n):
    cost = norms.cost_analysis(null(m, n), null(m))
    assert counts_of(cost) == (m * (2 * n + 1), 2 * m * n, m, m)
    assert bytes_of(cost) == (8 * m * n, 8 * m)
    assert cost.exact


@given(n=SIZES, m=SIZES)
def test_indices_from_memory(n, m):
    cost = gathered.cost_analysis(null(m), null(n, dtype="int32"), null(n))
    assert counts_of(cost) == (0, 2 * n, n, n)
    assert bytes_of(cost) == (4 * n + 8 * min(n, m), 8 * n)
    cost = counted.cost_analysis(null(n, dtype="int64"), null(m, dtype="int64"))
    assert counts_of(cost) == (n, 2 * n, n, n)
    assert bytes_of(cost) == (8 * n + 8 * min(n, m), 8 * min(n, m))


@given(n=st.integers(1, 70))
def test_what_depends_on_data_is_said(n):
    cost = positive.cost_analysis(null(n), null(n))
    assert counts_of(cost) == (3 * n, 2 * n, n, n)
    (said,) = cost.assumptions
    assert "the costlier side of the branch is always taken" in said
    cost = collatz.cost_analysis(null(n, dtype="int64"), null(n, dtype="int64"))
    assert counts_of(cost) == ((65 + 64) * n, n, n, n)
    assert "the loop runs 64 times" in cost.assumptions[0]
    cost = found.cost_analysis(null(n, 5), null(n))
    assert counts_of(cost) == (5 * n, 5 * n, n, n)
    assert any("break is never taken" in said for said in cost.assumptions)
    assert not cost.exact


def test_operands_of_other_strides():
    wide = pa.broadcast_to(null(1), (1000,))
    assert bytes_of(axpy.cost_analysis(2.0, wide, null(1000))) == (8 + 8000, 8000)
    every_other = null(2000)[::2]
    assert bytes_of(axpy.cost_analysis(2.0, every_other, null(1000)[::-1])) == (16000, 8000)
    rows = pa.broadcast_to(null(7), (5, 7))
    assert bytes_of(pa.cost_analysis(pa.add, rows, np.ones((5, 7)))) == (56 + 280, 280)
    assert bytes_of(row_sums.cost_analysis(rows, null(5))) == (56, 40)


def test_many_iterations_are_counted_without_running():
    n = 10**9
    v = pa.broadcast_to(null(1), (n,))
    cost = row_sums.cost_analysis(v.reshape(1000, 10**6), null(1000))
    assert counts_of(cost) == (n, n, 1000, 1000)
    large = pa.broadcast_to(null(1), (4000, 4000))
    cost = triangle.cost_analysis(large, null(4000))
    assert any("the middle value of j" in said for said in cost.assumptions)
    exact = sum(len(range(j, 4000, 2)) * (4000 - j) for j in range(4000))
    assert abs(cost.operations - exact) < exact / 2


def test_arguments_are_those_of_a_launch():
    with pytest.raises(TypeError):
        axpy.cost_analysis(null(3), null(3))
    with pytest.raises(CompileError, match="expected a number"):
        axpy.cost_analysis("2", null(3), null(3))
    x = np.ones(5)
    assert counts_of(axpy.cost_analysis(2.0, x, x)) == (10, 10, 5, 5)
    assert x.tolist() == [1.0] * 5


def program(x, w):
    for _ in range(3):
        x = pa.tanh(x @ w)
    return pa.mean(x, axis=0), x


def test_a_program_on_the_null_device():
    x, w = null(100, 30), null(30, 30)
    with pa.trace() as trace:
        mean, last = program(x, w)
    assert (mean.shape, last.shape, last.dtype) == ((30,), (100, 30), pa.float64)
    launches = [row.kernel for row in trace.launches]
    assert launches.count("matmul") == launches.count("tanh") == 3
    products = [row.cost for row in trace.launches if row.kernel == "matmul"]
    assert [c.operations for c in products] == [2 * 100 * 30 * 30] * 3
    whole = pa.cost_analysis(program, np.empty((100, 30)), np.empty((30, 30)))
    assert whole == trace.cost
    assert whole.launches == len(launches)
    assert whole.operations > 3 * (180_000 + 3000)
    (line,) = (text.split() for text in trace.summary().splitlines() if text.startswith("matmul"))
    assert (line[1], line[-1]) == ("3", "540000")


def test_a_program_whose_sizes_depend_on_data():
    with pytest.raises(DeviceError, match="the size of the result depends on the elements"):
        pa.cost_analysis(lambda x: x[x > 0].sum(), np.ones(3))


def test_functions_of_other_libraries_are_counted_by_their_arrays():
    cost = pa.cost_analysis(pa.sort, np.ones(8))
    assert bytes_of(cost) == (64, 64)
    assert not cost.exact
    assert "operations are not counted" in cost.assumptions[0]


class Watched:
    """An array for a kernel that Python runs: counts what is loaded and stored."""

    def __init__(self, *shape):
        self.values = np.ones(shape)
        self.shape, self.size = self.values.shape, self.values.size
        self.loads = self.stores = 0

    def __getitem__(self, index):
        self.loads += 1
        return self.values[index]

    def __setitem__(self, index, value):
        self.stores += 1
        self.values[index] = value


@pa.kernel
def windows(x, y, width: int):
    n = x.size
    for i in range(n):
        low = max(0, i - width)
        high = min(n, i + width + 1)
        total = 0.0
        for j in range(low, high):
            if (i + j) % 2 == 0:
                continue
            if j == i + 1 or (j > 2 and j < n - 2):
                total += x[j] * x[i]
            elif j % 5 == 1:
                total -= x[j]
        y[i] = total
    for i in range(0, n, 3):
        y[i] = y[i] * 2


@pa.kernel
def cube(x, y):
    for i in range(x.shape[0] - 1, -1, -1):
        for j in range(x.shape[1]):
            for k in range(i):
                if k < j:
                    y[i, j] = y[i, j] + (x[i, k] if k % 2 else x[k, j])


@given(n=st.integers(0, 30), width=st.integers(0, 9), m=st.integers(0, 9))
def test_loads_and_stores_are_those_of_the_same_function_in_python(n, width, m):
    for kernel, shapes, more in ((windows, ((n,), (n,)), (width,)), (cube, ((m, m), (m, m)), ())):
        arrays = [Watched(*shape) for shape in shapes]
        kernel.__wrapped__(*arrays, *more)
        cost = kernel.cost_analysis(*(null(*shape) for shape in shapes), *more)
        assert cost.loads == sum(a.loads for a in arrays)
        assert cost.stores == sum(a.stores for a in arrays)
        assert cost.exact


@pa.func
def clipped(v, i):
    if i < 0:
        return 0.0
    if i >= v.size:
        return 1.0
    return v[i]


@pa.kernel
def neighbours(x, y):
    for i in range(y.size):
        y[i] = clipped(x, i - 1) + clipped(x, i + 1)


@pa.kernel
def guarded(x, y):
    for i in range(x.size):
        if x[i] > 0:
            y[i] = clipped(x, i)


@given(n=st.integers(2, 70))
def test_functions_that_return_early(n):
    cost = neighbours.cost_analysis(null(n), null(n))
    assert (cost.loads, cost.stores) == (2 * n - 2, n)
    assert cost.exact
    cost = guarded.cost_analysis(null(n), null(n))
    assert (cost.loads, cost.stores) == (2 * n, n)
    assert len(cost.assumptions) == 1


def test_arrays_larger_than_memory():
    n = 1 << 16
    cost = pa.cost_analysis(pa.matmul, null(n, n, dtype="float32"), null(n, n, dtype="float32"))
    assert cost.operations == 2 * n**3
