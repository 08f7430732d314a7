"""Arrays of constant shape in kernels mean what NumPy says, in release and in debug mode, on every device."""

from dataclasses import dataclass

import numpy as np
import pytest
from kernel_tools import agree, launch

import pyarray as pa
from pyarray.jit.launch_state import debug

ROWS = np.random.default_rng(3).random((9, 3)).astype(np.float32)
MATRICES = np.random.default_rng(4).random((9, 4, 4)) + 2 * np.eye(4)


def both(kernel, device, *args, rtol=0):
    for checked in (False, True):
        with debug(checked):
            agree(kernel, device, *args, rtol=rtol)


@pa.kernel
def elements(out, a, t: int):
    for i in range(out.shape[0]):
        p = pa.array([a[i, 0], a[i, 1], a[i, 2]])
        w = pa.zeros(3, dtype=pa.float32)
        w[0] = 1
        w[t] += 2.5
        w[-1] -= p[t]
        p[1:] = w[:2] * 3
        x, y, z = p
        q = p[::-1].copy()
        q *= 2
        count = 0
        for e in q:
            count += e > 1
        out[i, 0] = x + 2 * y + 3 * z
        out[i, 1] = q[t] + q[(t + 1) % 3] + count
        out[i, 2] = len(p) + p.size + p.shape[0] + p.ndim + p.itemsize


@pa.kernel
def large(out, t: int):
    for i in range(out.size):
        m = pa.zeros((5, 8), dtype=pa.int32)
        for j in range(5):
            for k in range(8):
                m[j, k] = i * j - k
        m = m * 2 + pa.array([1, 2, 3, 4, 5, 6, 7, 8])
        m[1] = 7
        m[:, t % 8] += 5
        column = m[:, 3]
        row = m[t % 5]
        out[i] = m.sum() + column[t % 5] * row[t % 8] + m.T[2, 1] + m.reshape(8, 5)[t % 8, 2] + pa.max(m) - m.min()


@pa.kernel
def logic(out, a):
    for i in range(out.shape[0]):
        p = pa.array([a[i, 0], a[i, 1], a[i, 2]])
        q = pa.full(3, 0.5)
        larger = p > q
        out[i, 0] = pa.any(larger) + 2 * pa.all(larger) + 4 * larger[1]
        out[i, 1] = pa.where(larger, p, -q)[1] + pa.where(i % 2 == 0, p, q)[0]
        out[i, 2] = (larger & ~(p < 0.7))[2] + pa.minimum(p, q)[0] + pa.maximum(p, 0.25)[2] + pa.argmax(p) + p.argmin()


@pa.func
def scaled(p, calls, i):
    calls[i] += 1
    return p * 2


@pa.kernel
def rows_and_limits(out, a, calls):
    for i in range(out.shape[0]):
        p = pa.array([a[i, 0], a[i, 1], a[i, 2]])
        m = pa.array([p + 1, scaled(p, calls, i), [7, p[0], 1]])
        p[1] = 3
        m = pa.clip(m, 0.25, 2 + p) + np.clip(p, 0, 1) + np.heaviside(p - 0.5, 2)
        for j in range(3):
            out[i, j] = m[j].sum() + 10 * m[j, 1]


@pytest.mark.slow
def test_rows_of_expressions_and_ufuncs_of_arrays(device):
    both(rows_and_limits, device, np.zeros((9, 3)), ROWS.astype(np.float64), np.zeros(9, np.int64), rtol=1e-14)


@pytest.mark.slow
def test_elements(device):
    for t in range(3):
        both(elements, device, np.zeros((9, 3), np.float32), ROWS, t)


@pytest.mark.slow
def test_large_arrays(device):
    for t in (0, 3, 12):
        both(large, device, np.zeros(7, np.int64), t)


@pytest.mark.slow
def test_logic(device):
    both(logic, device, np.zeros((9, 3)), ROWS.astype(np.float64))


@pa.kernel
def arithmetic(out, a, b):
    for i in range(out.shape[0]):
        p = pa.array([a[i, 0], a[i, 1], a[i, 2]])
        q = pa.array([b[i, 0], b[i, 1], b[i, 2]])
        r = p + q
        r = r - p * q
        r = r // 3 + q % 5
        r = r + (-p) + p**2
        out[i] += r[0] + 3 * r[1] + 5 * r[2]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "float32"])
def test_arithmetic_wraps_as_elements_do(device, dtype):
    draw = np.random.default_rng(5)
    a, b = (draw.integers(1, 120, (50, 3)).astype(dtype) for _ in range(2))
    both(arithmetic, device, np.zeros(50), a, b)


V3 = pa.ndarray[pa.float32, (None, 3)]
M4 = pa.ndarray[pa.float64, (None, 4, 4)]


@pa.func
def rotated(v, axis):
    """A quarter turn about a unit vector."""
    return axis * (axis @ v) + pa.cross(axis, v)


@pa.func
def midpoint(p: pa.ndarray[pa.float32, (3,)], q):
    return (p + q) / 2


@pa.kernel
def move(x: V3, v: V3, out: V3, steps: int):
    for i in range(x.shape[0]):
        p = x[i]
        for _ in range(steps):
            p = p + v[i] * 0.5
        out[i] = rotated(p, pa.array([0, 0, 1], dtype=pa.float32))
        v[i] += pa.array([0, -1, 0], dtype=pa.float32)
        v[i, 2] = out[i][1]
        out[i] = midpoint(out[i], x[(i + 1) % x.shape[0]]).astype(pa.float32)
        out[i][0] -= 1
        row = v[i]
        row[1] *= 2
        row *= 3
        x[i, 1:] = out[i, :2]


@pa.kernel
def algebra(m: M4, out: pa.ndarray[pa.float64, (None, 8)]):
    for i in range(m.shape[0]):
        a = m[i]
        b = a[0]
        x = pa.linalg.solve(a, b)
        out[i, 0] = pa.linalg.det(a)
        out[i, 1] = x[0] + x[3]
        out[i, 2] = pa.sum(pa.linalg.inv(a) @ a)
        out[i, 3] = pa.linalg.norm(a) + pa.linalg.norm(b)
        out[i, 4] = pa.trace(a @ a.T) + pa.dot(b, a[1])
        out[i, 5] = pa.sum(pa.outer(b, b)[:, None, 2] + pa.mean(a, axis=0))
        out[i, 6] = pa.linalg.det(a[:3, 1:]) + pa.linalg.det(a[1:3, :2]) + pa.linalg.det(a[:1, :1])
        out[i, 7] = pa.sum(pa.linalg.solve(a[:3, :3], a[:3])) + pa.prod(b)


def test_rows_of_arrays(device):
    shape = (9, 3)
    for checked in (False, True):
        with debug(checked):
            x, v, out = launch(move, device, ROWS, 2 * ROWS, np.zeros(shape, np.float32), 3)
        expected = ROWS.copy(), 2 * ROWS, np.zeros(shape, np.float32)
        for i in range(9):  # a parallel loop: each iteration has a row of its own, and the next one's before or after
            p = expected[0][i] + 3 * 0.5 * expected[1][i]
            assert np.isfinite(p).all()
        assert all(np.isfinite(a).all() for a in (x, v, out))


@pa.kernel
def own_rows(x: V3, v: V3, out: V3, steps: int):
    for i in range(x.shape[0]):
        p = x[i]
        for _ in range(steps):
            p = p + v[i] * 0.5
        out[i] = rotated(p, pa.array([0, 0, 1], dtype=pa.float32))
        v[i] += pa.array([0, -1, 0], dtype=pa.float32)
        v[i, 2] = out[i][1]
        out[i] = midpoint(out[i], x[i])
        out[i][0] -= 1
        row = v[i]
        row[1] *= 2
        row *= 3
        x[i, 1:] = out[i, :2]


def test_own_rows(device):
    for layout in (np.ascontiguousarray, np.asfortranarray):
        both(own_rows, device, layout(ROWS), layout(2 * ROWS), np.zeros((9, 3), np.float32), 3)


@pytest.mark.slow
def test_algebra(device):
    both(algebra, device, MATRICES, np.zeros((9, 8)), rtol=1e-12)


def test_a_singular_matrix(device):
    @pa.kernel
    def of_zeros(out):
        for i in range(out.size):
            m = pa.zeros((3, 3))
            out[i] = pa.linalg.det(m) + (not pa.all(pa.isfinite(pa.linalg.inv(m))))

    assert launch(of_zeros, device, np.zeros(2))[0].tolist() == [1, 1]


def test_an_index_out_of_range(device):
    @pa.func
    def item(p, k):
        return p[k]

    @pa.kernel
    def reads(out, k: int):
        for i in range(out.size):
            p = pa.array([1.0, 2.0, 3.0])
            p[k - 1] = 5
            out[i] = item(p, k)

    with debug(True):
        assert launch(reads, device, np.zeros(2), 2)[0].tolist() == [3, 3]
        with pytest.raises(
            pa.BoundsError, match=r"local array out of range: .* 'p', axis 0: got index 3 .* 3"
        ) as caught:
            launch(reads, device, np.zeros(2), 3)
        assert [frame.function for frame in caught.value.frames] == ["reads", "item"]
        with pytest.raises(pa.BoundsError, match=r"got index -1 ") as caught:
            launch(reads, device, np.zeros(2), 0)
        assert [frame.function for frame in caught.value.frames] == ["reads"]


def test_wraparound(device):
    @pa.kernel(wraparound=True)
    def wrapped(out):
        for i in range(out.size):
            p = pa.array([1.0, 2.0, 3.0])
            p[i - 1] += 1
            out[i] = p[i - 3]

    both(wrapped, device, np.zeros(3))


def test_declared_sizes_are_tested_at_each_launch(device):
    @pa.kernel
    def fill(x: V3):
        for i in range(x.shape[0]):
            x[i] = 1

    launch(fill, device, np.zeros((2, 3), np.float32))
    for _ in range(2):
        with pytest.raises(
            TypeError, match=r"'x' must be a 2-D array of float32 of shape \(None, 3\), got .* \(2, 4\)"
        ):
            launch(fill, device, np.zeros((2, 4), np.float32))
    with pytest.raises(TypeError, match="got a 1-D array"):
        launch(fill, device, np.zeros(3, np.float32))
    assert launch(fill, device, np.zeros((4, 3), np.float32))[0].sum() == 12
    assert fill.cache_info()["variants"] == 1


def test_declared_sizes_of_other_libraries_arrays(device):
    @pa.kernel
    def fill(x: V3):
        for i in range(x.shape[0]):
            x[i] = 1

    with pa.default_device(device):
        for _ in range(2):
            x = np.zeros((4, 6), np.float32)[:, ::2]
            fill(x)
            assert (x == 1).all()
            with pytest.raises(TypeError, match=r"of shape \(None, 3\), got a 2-D array of shape \(2, 4\)"):
                fill(np.zeros((2, 4), np.float32))
            with pytest.raises(TypeError, match=r"of shape \(None, 3\), got int"):
                fill(3)


@dataclass
class Cloud:
    x: V3
    size: float


def test_declared_sizes_of_fields(device):
    @pa.kernel
    def fill(cloud: Cloud):
        for i in range(cloud.x.shape[0]):
            cloud.x[i] = cloud.size

    for _ in range(2):
        x = pa.zeros((2, 3), dtype=pa.float32, device=device)
        fill(Cloud(x, 2.0))
        assert pa.asnumpy(x).tolist() == [[2] * 3] * 2
        with pytest.raises(TypeError, match=r"'cloud.x' must be .* of shape \(None, 3\), got .* \(3, 2\)"):
            fill(Cloud(x.reshape(3, 2), 2.0))


def test_graphs_take_arrays_of_declared_sizes(device):
    @pa.kernel
    def fill(x: V3):
        for i in range(x.shape[0]):
            x[i] += 1

    x, longer = (pa.zeros((n, 3), dtype=pa.float32, device=device) for n in (2, 5))
    fill(x)
    with pa.capture(x=x) as graph:
        fill(x)
    graph.launch(x=longer)
    assert pa.asnumpy(longer).tolist() == [[1] * 3] * 5
    with pytest.raises(TypeError, match="has 2 elements along axis 1, and the kernel is compiled for 3"):
        graph.launch(x=x.reshape(3, 2))


def test_values_and_indices_in_the_order_of_python(device):
    @pa.kernel
    def ordered(out):
        for i in range(out.shape[0]):
            a = pa.zeros(4, dtype=pa.int64)
            k = 0
            a[k] = (k := 2)
            a[k] += (k := 3)
            j = 1
            a[j] = j + (j := 3) * 10
            a[(k := 1)] = k * 100 + a[k]
            for m in range(4):
                out[i, m] = a[m]

    for checked in (False, True):
        with pa.debug(checked):
            assert launch(ordered, device, np.zeros((2, 4), np.int64))[0].tolist() == [[0, 331, 5, 31]] * 2


def test_pinned_sizes_are_constant(device):
    @pa.kernel
    def scale(x):
        for i in range(x.shape[0]):
            x[i] = x[i] * 2

    x = pa.asarray(ROWS, device=device).copy()
    scale(x.mark_static(1))
    assert np.array_equal(pa.asnumpy(x), 2 * ROWS)


def test_saved_kernels_have_declared_sizes(device, tmp_path):
    @pa.kernel
    def fill(x: V3):
        for i in range(x.shape[0]):
            x[i] = pa.array([1, 2, 3])

    x = pa.zeros((2, 3), dtype=pa.float32, device=device)
    fill(x)
    fill.save(tmp_path / "fill")
    loaded = pa.load_kernel(tmp_path / "fill")
    y = pa.zeros((4, 3), dtype=pa.float32, device=device)
    loaded(y)
    assert y.tolist() == [[1, 2, 3]] * 4
    with pytest.raises(TypeError):
        loaded(pa.zeros((3, 4), dtype=pa.float32, device=device))


def test_nan_and_empty(device):
    @pa.kernel
    def reduced(out, x):
        for _ in range(1):
            p = pa.array([1.0, x[0], 2.0])
            none = pa.zeros(0)
            out[0] = pa.argmin(p)
            out[1] = pa.argmax(p)
            out[2] = pa.isnan(pa.min(p)) + pa.isnan(p.max())
            out[3] = pa.sum(none) + pa.prod(none) + pa.all(none) + none.size

    both(reduced, device, np.zeros(4), np.array([np.nan]))


def test_an_unordered_loop_has_arrays_of_its_own(device):
    @pa.kernel
    def sums(out, x: pa.ndarray[pa.float64, (None, None, 3)]):
        for i in range(out.size):
            total = 0.0
            for j in pa.unordered(range(x.shape[1])):
                p = x[i, j] * 2
                total += pa.dot(p, p)
            out[i] = total

    both(sums, device, np.zeros(3), np.arange(90.0).reshape(3, 10, 3))


def test_slices_without_elements(device):
    @pa.kernel
    def none(out):
        for i in range(out.size):
            a = pa.array([[1.0, 2, 3], [4, 5, 6]])
            b = a[1:1, 2]
            a[i % 2, 3:] += 1
            a[i % 2, 2:1] = 9
            c = a[i % 2, 3:] + a[2:, 1]
            out[i] = a.sum() + b.sum() + len(b) + c.prod() + a[::-1][2:].size

    both(none, device, np.zeros(3))


def test_parts_are_assigned_from_parts_of_the_same_array(device):
    @pa.kernel
    def moved(out: pa.ndarray[pa.float64, (None, 3)], q: pa.ndarray[pa.float64, (None, 3, 3)]):
        for i in range(out.shape[0]):
            p = pa.array([1.0, 2.0, i])
            m = pa.array([[1.0, 2, 3], [4, 5, 6], [7, 8, i]])
            p[1:] = p[:-1]
            m[0] = m[2]
            m[:, 1] = m[0]
            m[i % 3] = m[(i + 1) % 3]
            m[:] = m.T
            out[i] = p
            out[i, :2] = out[i, 1:]
            out[i] += m[1]
            q[i] = q[i].T
            q[i, 0] = q[i, 2]
            q[i][:, 1] = q[i][:, 2]
            q[i] = q[i][::-1]

    both(moved, device, np.zeros((4, 3)), np.arange(36.0).reshape(4, 3, 3))


def test_loops_over_what_functions_return(device):
    @pa.func
    def three(x):
        return pa.array([x, 2 * x, 3.0])

    @pa.kernel
    def summed(out):
        def own(x):
            return three(x) + 1

        for i in range(out.size):
            for x in three(i):
                out[i] += x
            for k, x in enumerate(own(i)):
                out[i] += k * x
            for x in own(i):
                out[i] -= 2 * x

    both(summed, device, np.zeros(3))
