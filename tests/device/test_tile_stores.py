"""Stores of tiles read all that they need before they write, as NumPy's do; and what has an effect happens once."""

import numpy as np
import pytest
from kernel_tools import launch

import pyarray as pa
from pyarray.jit.launch_state import debug

V = np.random.default_rng(0).integers(-9, 10, 21)
ORDER = np.random.default_rng(1).permutation(21)
X = np.random.default_rng(2).integers(-4, 5, (13, 21)).astype("f4")


@pa.kernel
def index_of_itself(x, p):
    for _ in range(1):
        (i,) = pa.tiles(p.size, 32)
        p[p[i]] = i


@pa.kernel
def mask_of_itself(x, p):
    for _ in range(1):
        (i,) = pa.tiles(p.size, 32)
        pa.copyto(p[p.size - 1 - i], 100, where=p[i] > 10)


@pa.kernel
def through_a_view(x, p):
    for _ in range(1):
        later = x[1:]
        (i,) = pa.tiles(later.size, 32)
        later[i] = x[i]


@pa.func
def shift(a, b, i):
    a[i + 1] = b[i]


@pa.kernel
def in_a_function(x, p):
    for _ in range(1):
        (i,) = pa.tiles(x.size - 1, 32)
        shift(x, x, i)


@pa.kernel
def twice_into_one(x, p):
    for _ in range(1):
        (i,) = pa.tiles(x.size, 32)
        x[p[i] // 2] += 1
        x[i // 4] *= 2
        pa.copyto(x[i // 3], x[i // 3] + 1, where=x[i // 3] < 99)


@pa.kernel
def atomics_of_itself(x, p):
    for _ in range(1):
        (i,) = pa.tiles(x.size, 32)
        pa.atomic_add(x, x.size - 1 - i, x[i])
        pa.atomic_add(x, x[i] % 3, 1)


def numpy_of(name, x, p):
    i = np.arange(21)
    if name == "index_of_itself":
        p[p.copy()] = i
    elif name == "mask_of_itself":
        p[::-1][p > 10] = 100
    elif name in ("through_a_view", "in_a_function"):
        x[1:] = x[:-1].copy()
    elif name == "twice_into_one":
        x[p // 2] += 1
        x[i // 4] *= 2
        x[i // 3] += 1
    else:
        x += x[::-1].copy()
        np.add.at(x, x % 3, 1)


@pytest.mark.parametrize(
    "kernel",
    [index_of_itself, mask_of_itself, through_a_view, in_a_function, twice_into_one, atomics_of_itself],
    ids=lambda k: k.__name__,
)
def test_all_is_read_before_it_is_stored(device, kernel):
    x, p = V.copy(), ORDER.copy()
    numpy_of(kernel.__name__, x, p)
    for checked in (False, True):
        with debug(checked):
            got = launch(kernel, device, V, ORDER)
        np.testing.assert_array_equal(got[0], x)
        np.testing.assert_array_equal(got[1], p)


@pa.func
def count(a, n):
    a[n] += 1
    return 2, 3.5


@pa.func
def count_and_list(a, n):
    a[n] += 1
    return pa.array([1.0, 2.0, 3.0])


@pa.func
def count_and_view(a, n):
    a[n] += 1
    return a[2:]


@pa.kernel
def several_results(o, c, x):
    for i, j in pa.tiles(o, (4, 8)):
        n = i.start // 4 * 3 + j.start // 8
        p, q = count(c, n)
        r = count_and_list(c, n)
        v = count_and_view(c, n)
        o[i, j] = x[i, j] + p * q + r[1] + v.size


@pa.kernel
def local_arrays(o, c, x):
    for i, j in pa.tiles(o, (4, 8)):
        n = i.start // 4 * 3 + j.start // 8
        found = pa.zeros(4, dtype=pa.float64)
        for k in range(4):
            found[k] = k
        found[0] = pa.atomic_add(c, n, 3) + 1
        found *= 2
        o[i, j] = x[i, j] + found[0] + found[3] + 3


def test_what_one_thread_gives_to_all(device):
    for kernel, more in ((several_results, 19), (local_arrays, 11)):
        for checked in (False, True):
            with debug(checked):
                o, c, _ = launch(kernel, device, np.zeros(X.shape), np.zeros(12, "i8"), X)
            np.testing.assert_array_equal(o, X + more)
            np.testing.assert_array_equal(c, np.full(12, 3))


@pa.func
def counted(v: pa.float32, a, n: int):
    pa.atomic_add(a, n, 1)
    return v


@pa.func
def looked_up(v: pa.float32, table, more=0):
    return table[int(v) + 4] + more


@pa.func
def put(v: pa.float32, a, n: int):
    if v > 0:
        a[n] = v


@pa.kernel
def functions_of_elements(o, c, flat, x):
    for i, j in pa.tiles(o, (4, 8)):
        n = i.start // 4 * 3 + j.start // 8
        o[i, j] = counted(x[i, 0], c, n)[:, None] * 0 + looked_up(x[i, j], flat[273:], more=2)
        counted(x[i, j], c, n)
        put(x[i, j], flat, i[:, None] * 21 + j)


def test_functions_of_elements_take_arrays(device):
    table = np.arange(9.0) ** 2
    flat = np.concatenate([np.zeros(273), table])
    rows = np.array([min(4, 13 - i) for i in range(0, 13, 4) for _ in range(3)])
    columns = np.array([min(8, 21 - j) for _ in range(0, 13, 4) for j in range(0, 21, 8)])
    for checked in (False, True):
        with debug(checked):
            o, c, stored, _ = launch(functions_of_elements, device, np.zeros(X.shape), np.zeros(12, "i8"), flat, X)
        np.testing.assert_array_equal(o, table[X.astype(int) + 4] + 2)
        np.testing.assert_array_equal(c, rows * columns + rows)
        np.testing.assert_array_equal(stored[:273], np.maximum(X, 0).ravel())


@pa.kernel
def copied(x, y):
    for _ in range(1):
        (i,) = pa.tiles(x.size, 32)
        x[i] = y[i]


@pa.kernel
def added(x, y):
    for _ in range(1):
        (i,) = pa.tiles(x.size, 32)
        x[i] += y[i]


@pa.kernel
def masked(x, y):
    for _ in range(1):
        (i,) = pa.tiles(x.size, 32)
        pa.copyto(x[i], y[i] * 2, where=y[i] > -5)


@pa.kernel
def scattered(x, y):
    for _ in range(1):
        (i,) = pa.tiles(x.size, 32)
        x[(i + y[i] * 0) % x.size] = y[i]


@pa.kernel
def of_matrices(x, y):
    for _ in range(1):
        (i,) = pa.tiles(x.shape[0], 16)
        (j,) = pa.tiles(x.shape[1], 16)
        x[i, j] = y[i, j] * 2 + y[i, 0][:, None]


@pa.kernel
def of_rows(x, y):
    for i in pa.tiles(x.shape[0], 4):
        (j,) = pa.tiles(x.shape[1], 16)
        x[i, j] = y[i, j] + x[i, j].sum(axis=1)[:, None]


LINES = [
    lambda a: (a[1:], a[:-1]), lambda a: (a[:-1], a[1:]), lambda a: (a[::-1], a), lambda a: (a, a),
    lambda a: (a[::2][:10], a[:10]), lambda a: (a[:10], a[11:]),
]  # fmt: skip
MATRICES = [lambda a: (a, a.T), lambda a: (a[1:], a[:-1]), lambda a: (a[:, ::-1], a), lambda a: (a[:4], a[5:])]
OVERLAPS = {  # by kernel: what is computed of y and x before anything is stored, and the pairs of views
    copied: (lambda x, y: y, LINES),
    added: (lambda x, y: x + y, LINES),
    masked: (lambda x, y: np.where(y > -5, y * 2, x), LINES),
    scattered: (lambda x, y: y, LINES),
    of_matrices: (lambda x, y: y * 2 + y[:, :1], MATRICES),
    of_rows: (lambda x, y: y + x.sum(1, keepdims=True), MATRICES[2:]),
}


@pytest.mark.parametrize("kernel", OVERLAPS, ids=lambda k: k.__name__)
def test_arguments_that_overlap(device, kernel):
    compute, views = OVERLAPS[kernel]
    whole = V if views is LINES else np.random.default_rng(3).integers(-9, 10, (9, 9))
    for two in views:
        wanted = whole.copy()
        x, y = two(wanted)
        x[...] = compute(x.copy(), y.copy())
        for checked in (False, True):
            there = pa.asarray(whole, copy=True, device=device)
            with debug(checked):
                kernel(*two(there))
            np.testing.assert_array_equal(pa.asnumpy(there), wanted)


def test_only_cpus_ask_whether_arguments_overlap(device):
    a = pa.asarray(V, copy=True, device=device)
    copied(a[:10], a[11:])
    assert ("no_alias" in copied.source(device)) == (device == "cpu")
