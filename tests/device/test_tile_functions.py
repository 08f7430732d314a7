"""What kernels do with tiles, function by function, against NumPy on every device, in release and in debug mode."""

import numpy as np
import pytest

import pyarray as pa
from pyarray.errors import BoundsError
from pyarray.jit.launch_state import debug

M = pa.ndarray[pa.float32, 2]
V = pa.ndarray[pa.float32, 1]
N = pa.ndarray[pa.int64, 1]


@pytest.fixture(params=[False, True], ids=["release", "debug"])
def mode(request):
    with debug(request.param):
        yield request.param


def on(device, *arrays):
    return [pa.asarray(a, device=device) for a in arrays]


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype("f")


@pa.kernel
def statistics(out: M, place: pa.ndarray[pa.int64, 2], x: M):
    for i in pa.tiles(x.shape[0], 4):
        (j,) = pa.tiles(x.shape[1], 32)
        t = x[i, j]
        out[i, 0] = t.mean(axis=1)
        out[i, 1] = t.var(axis=-1)
        out[i, 2] = pa.std(t, axis=1)
        out[i, 3] = t.min(axis=1)
        out[i, 4] = pa.max(t, axis=1)
        out[i, 5] = (t > 0).any(axis=1)
        out[i, 6] = (t < 3).all(axis=1)
        out[i, 7] = pa.abs(t).sum(1)
        out[i, 8] = pa.prod(t * 0.5 + 1, axis=1)
        place[i, 0] = t.argmax(axis=1)
        place[i, 1] = pa.argmin(t, axis=1)


def test_reductions_of_rows(device, mode):
    x = numbers(10, 23)
    out, place, xt = on(device, np.zeros((10, 9), "f"), np.zeros((10, 2), "i8"), x)
    statistics(out, place, xt)
    wide = x.astype("d")
    expected = [
        wide.mean(1), wide.var(1), wide.std(1), x.min(1), x.max(1), (x > 0).any(1), (x < 3).all(1), abs(wide).sum(1),
        (wide * 0.5 + 1).prod(1),
    ]  # fmt: skip
    np.testing.assert_allclose(pa.asnumpy(out), np.stack(expected, 1), rtol=2e-5, atol=1e-6)
    np.testing.assert_array_equal(pa.asnumpy(place), np.stack([x.argmax(1), x.argmin(1)], 1))


@pa.kernel
def columns(total: V, most: V, whole: V, x: M):
    for j in pa.tiles(x.shape[1], 8):
        (i,) = pa.tiles(x.shape[0], 16)
        t = x[i, j]
        total[j] = t.sum(axis=0)
        most[j] = t.max(axis=0, keepdims=True).sum(axis=0)
        s = t.sum()
        if s > 0:
            s = -s
        whole[j] = s


def test_reductions_of_columns_and_of_whole_tiles(device, mode):
    x = numbers(13, 21)
    total, most, whole, xt = on(device, *np.zeros((3, 21), "f"), x)
    columns(total, most, whole, xt)
    np.testing.assert_allclose(pa.asnumpy(total), x.sum(0), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(pa.asnumpy(most), x.max(0))
    sums = [-abs(x[:, k : k + 8].sum(dtype="d")) for k in range(0, 21, 8)]
    np.testing.assert_allclose(pa.asnumpy(whole), np.repeat(sums, 8)[:21], rtol=1e-4)


@pa.kernel
def choose(y: M, x: M, index: N):
    for i, j in pa.tiles(y, (4, 8)):
        causal = i[:, None] >= j
        near = pa.where(i[:, None] + 1 < x.shape[0], x[i + 1, j], 0)
        y[i, j] = pa.where(causal, x[index[i], j], near) + pa.minimum(x[i, j], 0.5)


def test_where_selects_loads(device, mode):
    x, index = numbers(11, 19), np.random.default_rng(1).integers(0, 11, 11)
    y, xt, it = on(device, np.zeros((11, 19), "f"), x, index)
    choose(y, xt, it)
    near = np.vstack([x[1:], np.zeros((1, 19), "f")])
    causal = np.arange(11)[:, None] >= np.arange(19)
    np.testing.assert_allclose(pa.asnumpy(y), np.where(causal, x[index], near) + np.minimum(x, 0.5), rtol=1e-6)


@pytest.mark.all_variants
def test_registers_of_elements_that_do_not_exist_are_zero(device):
    """No result shows it: the executor of AMD's instructions tells where something is computed from others."""
    if device == "cpu":
        pytest.skip("threads of a block have tiles in registers")
    choose(*on(device, np.zeros((11, 19), "f"), numbers(11, 19), np.arange(11)))
    assert "= float();" in choose.source(device)


@pa.kernel
def pick(out: V, x: M, index: N):
    for i in pa.tiles(out, 8):
        t = index[i]
        out[i] = x[i, t] * i + x[t, i]


def test_indices_of_one_axis_go_together(device, mode):
    x, index = numbers(9, 9), np.random.default_rng(1).integers(0, 9, 9)
    out, xt, it = on(device, np.zeros(9, "f"), x, index)
    pick(out, xt, it)
    r = np.arange(9)
    np.testing.assert_allclose(pa.asnumpy(out), x[r, index] * r + x[index, r], rtol=1e-6)


@pa.kernel
def histogram(counts: N, old: M, x: M):
    for i, j in pa.tiles(x, (4, 8)):
        bins = pa.int64(pa.floor(pa.abs(x[i, j]) * 2))
        pa.atomic_add(counts, pa.minimum(bins, counts.size - 1), 1)
        pa.copyto(old[i, j], x[i, j] * 2, where=bins > 0)
        before = pa.atomic_max(old, (i, j), x[i, j])
        old[i, j] += before * 0


def test_atomics_and_masked_stores(device, mode):
    x = numbers(10, 21)
    counts, old, xt = on(device, np.zeros(4, "i8"), np.full((10, 21), -9, "f"), x)
    histogram(counts, old, xt)
    bins = np.minimum(np.floor(abs(x) * 2).astype("i8"), 3)
    np.testing.assert_array_equal(pa.asnumpy(counts), np.bincount(bins.ravel(), minlength=4))
    masked = np.where(np.floor(abs(x) * 2) > 0, x * 2, -9)
    np.testing.assert_allclose(pa.asnumpy(old), np.maximum(masked, x), rtol=1e-6)


@pa.kernel
def scans(y: M, z: M, x: M):
    for i in pa.tiles(x.shape[0], 4):
        (j,) = pa.tiles(x.shape[1], 32)
        t = x[i, j]
        y[i, j] = t.cumsum(axis=1)
        z[i, j] = pa.cumprod(t, axis=0)


def test_scans(device, mode):
    x = numbers(8, 17)
    y, z, xt = on(device, np.zeros((8, 17), "f"), np.zeros((8, 17), "f"), x)
    scans(y, z, xt)
    np.testing.assert_allclose(pa.asnumpy(y), x.cumsum(1), rtol=1e-5, atol=1e-5)
    parts = np.vstack([x[:4].cumprod(0), x[4:].cumprod(0)])
    np.testing.assert_allclose(pa.asnumpy(z), parts, rtol=1e-5)


@pa.kernel
def products(c: M, s: V, r: V, a: M, b: M, v: V):
    for i, j in pa.tiles(c, (8, 4)):
        (k,) = pa.tiles(a.shape[1], 16)
        c[i, j] = (a[i, k] @ b[j, k].T).T.T + pa.matmul(a[i, k], b[j, k].T, dtype=pa.float64)
        s[i] = a[i, k] @ v[k]
        r[j] = v[k] @ b[j, k].T


def test_products(device, mode):
    a, b, v = numbers(17, 11), numbers(9, 11, seed=1), numbers(11, seed=2)
    c, s, r, at, bt, vt = on(device, np.zeros((17, 9), "f"), np.zeros(17, "f"), np.zeros(9, "f"), a, b, v)
    products(c, s, r, at, bt, vt)
    np.testing.assert_allclose(pa.asnumpy(c), 2 * a @ b.T, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(pa.asnumpy(s), a @ v, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(pa.asnumpy(r), v @ b.T, rtol=1e-4, atol=1e-5)


H = pa.ndarray[pa.float16, 2]


@pa.kernel
def halves(c: H, top: pa.ndarray[pa.int32, 1], a: H, n: pa.ndarray[pa.int32, 2]):
    for i, j in pa.tiles(c, (8, 8)):
        acc = pa.zeros((i, j), dtype=pa.float32)
        for k in pa.tiles(a.shape[1], 8):
            acc += a[i, k] @ a[j, k].T
        c[i, j] = acc
    for i in pa.tiles(n.shape[0], 4):
        (k,) = pa.tiles(n.shape[1], 16)
        top[i] = n[i, k].max(axis=1) + pa.int32((n[i, k] // 2).sum(axis=1) % 7)


def test_halves_are_summed_in_float32(device, mode):
    a, n = numbers(13, 30).astype("e"), np.random.default_rng(0).integers(-50, 50, (10, 13)).astype("i4")
    c, top, at, nt = on(device, np.zeros((13, 13), "e"), np.zeros(10, "i4"), a, n)
    halves(c, top, at, nt)
    np.testing.assert_allclose(pa.asnumpy(c), a.astype("f") @ a.astype("f").T, rtol=2e-3)
    np.testing.assert_array_equal(pa.asnumpy(top), n.max(1) + (n // 2).sum(1) % 7)


@pa.kernel
def running(y: V, x: M, steps: int):
    for i in range(x.shape[0]):
        best = pa.float32(-1e30)
        count = 0
        for k in pa.tiles(x.shape[1], 8):
            best = max(best, x[i, k].max())
            count += len(k) + k.start - k.stop
        turns = 0
        while turns < steps:
            best = best * 0.5
            turns += 1
        for k in pa.tiles(x.shape[1], 4):
            if k.start > 3:
                best += x[i, k].sum() * 0
                continue
            best += 1
        y[i] = best + count


def test_tiles_within_a_plain_parallel_loop(device, mode):
    x = numbers(5, 19)
    y, xt = on(device, np.zeros(5, "f"), x)
    running(y, xt, 2)
    np.testing.assert_allclose(pa.asnumpy(y), x.max(1) / 4 + 1, rtol=1e-5)


@pa.kernel
def attend(out: M, q: M, k: M, v: M, rows: pa.constexpr, step: pa.constexpr):
    for i in pa.tiles(q.shape[0], rows):
        (d,) = pa.tiles(q.shape[1], 16)
        top = pa.full(i, -1e30, pa.float32)
        total = pa.zeros(i, pa.float32)
        mixed = pa.zeros((i, d), pa.float32)
        query = q[i, d]
        for j in pa.tiles(k.shape[0], step):
            s = pa.where(i[:, None] >= j, query @ k[j, d].T, -1e30)
            best = pa.maximum(top, s.max(axis=1))
            w = pa.exp(s - best[:, None])
            shrink = pa.exp(top - best)
            total = total * shrink + w.sum(axis=1)
            mixed = mixed * shrink[:, None]
            mixed += w @ v[j, d]
            top = best
        out[i, d] = mixed / total[:, None]


def test_attention(device, mode):
    q, k, v = (numbers(37, 12, seed=s) for s in range(3))
    out, *t = on(device, np.zeros((37, 12), "f"), q, k, v)
    attend(out, *t, 8, 8)
    s = np.where(np.tri(37, dtype=bool), q @ k.T, -np.inf)
    w = np.exp(s - s.max(1, keepdims=True))
    np.testing.assert_allclose(pa.asnumpy(out), w / w.sum(1, keepdims=True) @ v, rtol=2e-4, atol=1e-5)


@pa.func
def normal(t, eps):
    m = t.mean(axis=1, keepdims=True)
    d = t - m
    return d / pa.sqrt((d * d).mean(axis=1, keepdims=True) + eps), m


@pa.func
def leaky(x: pa.float32):
    if x > 0:
        return x
    return x * 0.5


@pa.func
def gram(x, i, j, n):
    acc = pa.zeros((i, j), pa.float32)
    for k in pa.tiles(n, 4):
        acc += x[i, k] @ x[j, k].T
    return acc


@pa.func
def too_deep(x, i, j):
    return gram(x, i, j, x.shape[1] + 1)


@pa.kernel
def with_functions(y: M, z: M, x: M):
    for i in pa.tiles(x.shape[0], 4):
        (j,) = pa.tiles(x.shape[1], 32)
        t, m = normal(x[i, j], 1e-5)
        t, other = t * 1, t
        y[i, j] = leaky(t) + m * 0 + other * 0
    for i, j in pa.tiles(z, (4, 4)):
        z[i, j] = gram(x, i, j, x.shape[1])


def test_functions_take_tiles(device, mode):
    x = numbers(9, 13)
    y, z, xt = on(device, np.zeros((9, 13), "f"), np.zeros((9, 9), "f"), x)
    with_functions(y, z, xt)
    n = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(pa.asnumpy(y), np.where(n > 0, n, n * 0.5), rtol=2e-4, atol=1e-5)
    np.testing.assert_allclose(pa.asnumpy(z), x @ x.T, rtol=1e-4, atol=1e-5)


@pa.kernel
def beyond(z: M, x: M):
    for i, j in pa.tiles(z, (4, 4)):
        z[i, j] = too_deep(x, i, j)


def test_the_call_stack_of_inlined_functions(device):
    z, x = on(device, np.zeros((9, 9), "f"), numbers(9, 13))
    with debug(), pytest.raises(BoundsError) as caught:
        beyond(z, x)
    assert [frame.function for frame in caught.value.frames] == ["beyond", "too_deep", "gram"]
    assert (caught.value.argument, caught.value.axis, caught.value.index) == ("x", 1, 13)


def test_saved_kernels_and_dumps_keep_the_call_stack(device, tmp_path):
    z, x = on(device, np.zeros((9, 9), "f"), numbers(9, 13))
    with debug():
        with pytest.raises(BoundsError):
            beyond(z, x)
        beyond.save(tmp_path / "kernel")
        loaded = pa.load_kernel(tmp_path / "kernel")
        with pytest.raises(BoundsError) as caught:
            loaded(z, x)
    assert [frame.function for frame in caught.value.frames] == ["beyond", "too_deep", "gram"]


def test_a_saved_kernel(device, tmp_path):
    x = numbers(37, 12)
    out, *t = on(device, np.zeros((37, 12), "f"), x, x, x)
    attend(out, *t, 8, 8)
    attend.save(tmp_path / "kernel")
    again = pa.zeros_like(out)
    pa.load_kernel(tmp_path / "kernel")(again, *t, 8, 8)
    np.testing.assert_array_equal(pa.asnumpy(again), pa.asnumpy(out))


@pytest.mark.slow
def test_the_tuner_chooses_sizes_of_tiles(device):
    tuned = pa.autotune(configs=[pa.Config(rows=8, step=8), pa.Config(rows=16, step=4)], key=["q"])(attend)
    q, k, v = (numbers(37, 12, seed=s) for s in range(3))
    out, *t = on(device, np.zeros((37, 12), "f"), q, k, v)
    tuned(out, *t)
    s = np.where(np.tri(37, dtype=bool), q @ k.T, -np.inf)
    w = np.exp(s - s.max(1, keepdims=True))
    np.testing.assert_allclose(pa.asnumpy(out), w / w.sum(1, keepdims=True) @ v, rtol=2e-4, atol=1e-5)


@pa.kernel
def told(total: V, x: M):
    s = pa.float32(0)
    for i, j in pa.tiles(x, (4, 8)):
        if i.start == 4 and j.start == 8:
            print("part", x[i, j].max(), len(i), j.size)
        s += x[i, j].sum()
    for k in range(1):
        total[k] = s


def test_messages_and_sums_over_all_tiles(device, mode, capfd):
    x = np.arange(130, dtype="f").reshape(10, 13)
    total, xt = on(device, np.zeros(1, "f"), x)
    told(total, xt)
    np.testing.assert_allclose(pa.asnumpy(total), x.sum())
    assert "part 103.0 4 5" in capfd.readouterr().out


@pa.kernel
def places(found: N, count: N, x: M):
    for i in pa.tiles(x.shape[0], 4):
        first = pa.atomic_add(count, 0, len(i))
        for k in range(len(i)):
            found[first + k] = i.start + k


def test_a_number_that_one_thread_gets_for_all(device, mode):
    x, (found, count) = numbers(10, 3), on(device, np.zeros(10, "i8"), np.zeros(1, "i8"))
    places(found, count, *on(device, x))
    assert sorted(pa.asnumpy(found).tolist()) == list(range(10))
    assert pa.asnumpy(count).tolist() == [10]


@pa.kernel
def in_place(x: M):
    for j in pa.tiles(x.shape[1], 8):
        (i,) = pa.tiles(x.shape[0], 16)
        x[i, j] = x[x.shape[0] - 1 - i, j] * 2


def test_all_is_read_before_it_is_stored(device, mode):
    x = numbers(13, 21)
    (xt,) = on(device, x.copy())
    in_place(xt)
    np.testing.assert_array_equal(pa.asnumpy(xt), x[::-1] * 2)


@pa.func
def row_sum(x, i):
    s = pa.float32(0)
    for k in pa.tiles(x.shape[1], 8):
        s += x[i, k].sum()
    return s


@pa.func
def twice_row_sum(x, i):
    return row_sum(x, i) * 2


@pa.func
def normalized_row(y, x, i):
    (j,) = pa.tiles(x.shape[1], 32)
    y[i, j] = x[i, j] / x[i, j].max()


@pa.kernel
def with_plain_loops(s: V, y: M, x: M):
    for i in range(x.shape[0]):
        s[i] = twice_row_sum(x, i) + row_sum(x, i)
        normalized_row(y, x, i)


def test_functions_of_numbers_that_loop_over_tiles(device, mode):
    x = abs(numbers(7, 21)) + 1
    s, y, xt = on(device, np.zeros(7, "f"), np.zeros((7, 21), "f"), x)
    with_plain_loops(s, y, xt)
    np.testing.assert_allclose(pa.asnumpy(s), x.sum(1) * 3, rtol=1e-5)
    np.testing.assert_allclose(pa.asnumpy(y), x / x.max(1, keepdims=True), rtol=1e-6)
