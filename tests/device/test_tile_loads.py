"""Loops of products whose operands are loaded for the next iteration while one is in use, against NumPy: what the loads
index with must be what that iteration would have."""

import re

import numpy as np
import pytest

import pyarray as pa
from pyarray.lang.dialect import DIALECTS

M = pa.ndarray[pa.float32, 2]


@pa.kernel
def counted_after(c: M, a, b):
    for i, j in pa.tiles(c, (64, 64)):
        acc = pa.zeros((i, j), pa.float32)
        p = 0
        for k in pa.tiles(a.shape[2], 32):
            x = a[p, i, k]
            y = b[0, k, j]
            acc += x @ y
            p = p + 1
        c[i, j] = acc


@pa.kernel
def counted_before(c: M, a, b):
    for i, j in pa.tiles(c, (64, 64)):
        acc = pa.zeros((i, j), pa.float32)
        p = -1
        for k in pa.tiles(a.shape[2], 32):
            p = p + 1
            x = a[p, i, k]
            y = b[0, k, j]
            acc += x @ y
        c[i, j] = acc


@pa.kernel
def assigned_twice(c: M, a, b):
    for i, j in pa.tiles(c, (64, 64)):
        acc = pa.zeros((i, j), pa.float32)
        for k in pa.tiles(a.shape[2], 32):
            p = 0
            x = a[p, i, k]
            p = 1
            y = b[p, k, j]
            acc += x @ y
        c[i, j] = acc


@pa.kernel
def assigned_in_a_branch(c: M, a, b):
    for i, j in pa.tiles(c, (64, 64)):
        acc = pa.zeros((i, j), pa.float32)
        p = 0
        for k in pa.tiles(a.shape[2], 32):
            q = p + 0
            x = a[q, i, k]
            y = b[q, k, j]
            acc += x @ y
            if k.start == 32:
                p = 2
        c[i, j] = acc


@pa.kernel
def of_the_iteration(c: M, a, b):
    for i, j in pa.tiles(c, (64, 64)):
        acc = pa.zeros((i, j), pa.float32)
        for k in pa.tiles(a.shape[2], 32):
            p = k.start // 32
            q = p % 2
            x = a[p, i, k]
            y = b[q, k, j]
            acc += x @ y
        c[i, j] = acc


@pa.kernel
def of_a_view(c: M, a, b):
    for i, j in pa.tiles(c, (64, 64)):
        acc = pa.zeros((i, j), pa.float32)
        for k in pa.tiles(a.shape[2], 32):
            one = a[k.start // 32]
            x = one[i, k]
            y = b[1, k, j]
            acc += x @ y
        c[i, j] = acc


@pa.kernel
def with_a_half(c: M, a, b):
    for i, j in pa.tiles(c, (64, 64)):
        p = 0
        acc = pa.zeros((i, j), pa.float32)
        for k in pa.tiles(a.shape[2], 32):
            h = pa.float16(k.start)
            z = pa.complex64(k.start)
            x = a[p, i, k]
            y = b[p, k, j]
            acc += x @ y
            acc = acc * (1 + (h - h) + z.imag)
        c[i, j] = acc


@pa.kernel
def of_numbers(c: M, a, b):
    for i, j in pa.tiles(c, (64, 64)):
        acc = pa.zeros((i, j), pa.float32)
        for k in pa.tiles(a.shape[2], 32):
            acc += a[2, i, k] @ b[-1, k, j]
        c[i, j] = acc


@pa.kernel
def of_expressions(c: M, a, b):
    for i, j in pa.tiles(c, (64, 64)):
        acc = pa.zeros((i, j), pa.float32)
        for k in pa.tiles(a.shape[2], 32):
            n = k.start // 32
            acc += a[2 - n, i, k] @ b[(n + 1) % b.shape[0], k, j]
        c[i, j] = acc


@pa.func
def twice(t):
    return t + t


@pa.kernel
def with_a_function(c: M, a, b):
    for i, j in pa.tiles(c, (64, 64)):
        p = 0
        acc = pa.zeros((i, j), pa.float32)
        top = pa.full((i, j), -1, pa.float32)
        for k in pa.tiles(a.shape[2], 32):
            x = a[p, i, k]
            y = b[p, k, j]
            acc += x @ y
            top = pa.maximum(top, twice(top))
        c[i, j] = acc + (top + 1)


# by kernel: matrices of a and of b that each of the three iterations takes, and whether loads are ahead
KERNELS = {
    "counted after": (counted_after, (0, 1, 2), (0, 0, 0), False),
    "counted before": (counted_before, (0, 1, 2), (0, 0, 0), False),
    "assigned twice": (assigned_twice, (0, 0, 0), (1, 1, 1), False),
    "assigned in a branch": (assigned_in_a_branch, (0, 0, 2), (0, 0, 2), False),
    "of the iteration": (of_the_iteration, (0, 1, 2), (0, 1, 0), True),
    "of numbers": (of_numbers, (2, 2, 2), (2, 2, 2), True),
    "of expressions": (of_expressions, (2, 1, 0), (1, 2, 0), True),
    "with a half": (with_a_half, (0, 0, 0), (0, 0, 0), True),
    "with a function": (with_a_function, (0, 0, 0), (0, 0, 0), True),
    "of a view": (of_a_view, (0, 1, 2), (1, 1, 1), False),
}


@pytest.mark.parametrize("dtype", ["float16", "float32"])
@pytest.mark.parametrize("name", KERNELS)
def test_as_numpy(device, name, dtype, monkeypatch):
    """On the emulated device by the text for matrix instructions."""
    if device.startswith("hip"):
        monkeypatch.setitem(DIALECTS, "hip", DIALECTS["cuda"])
    program, of_a, of_b, ahead = KERNELS[name]
    rng = np.random.default_rng(3)
    a, b = rng.integers(-3, 4, (3, 70, 90)), rng.integers(-3, 4, (3, 90, 64))
    at, bt = (pa.asarray(x.astype(dtype), device=device) for x in (a, b))
    c = pa.empty((70, 64), dtype="float32", device=device)
    program(c, at, bt)
    wanted = np.zeros((70, 64))
    for n, (p, q) in enumerate(zip(of_a, of_b, strict=True)):
        part = slice(32 * n, 32 * n + 32)
        wanted += a[p][:, part] @ b[q][part]
    np.testing.assert_array_equal(pa.asnumpy(c), wanted)
    if not device.startswith("cpu"):
        assert ("pa_tile_copy(" in program.source(args=(c, at, bt))) == ahead


@pa.kernel
def of_any_size(c, a, b, sums: pa.constexpr, columns: pa.constexpr, depth: pa.constexpr):
    for i, j in pa.tiles(c, (16, columns)):
        acc = pa.zeros((i, j), sums)
        for k in pa.tiles(a.shape[1], depth):
            acc += a[i, k] @ b[k, j]
        c[i, j] = acc


@pytest.mark.parametrize("sizes", [(10, 6), (7, 9), (12, 4), (1, 1), (33, 2)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_of_tiles_begin_with_whole_vectors(device, dtype, sizes, monkeypatch):
    """Copies of 16 bytes have such addresses in shared memory, however wide the tile is."""
    if device.startswith("hip"):
        monkeypatch.setitem(DIALECTS, "hip", DIALECTS["cuda"])
    rng = np.random.default_rng(3)
    x, y = rng.integers(-3, 4, (20, 24)), rng.integers(-3, 4, (24, 40))
    a, b = (pa.asarray(v.astype(dtype), device=device) for v in (x, y))
    c = pa.empty((20, 40), dtype, device=device)
    of_any_size(c, a, b, getattr(pa, dtype), *sizes)
    np.testing.assert_array_equal(pa.asnumpy(c), x @ y)
    if not device.startswith("cpu"):
        text = of_any_size.source(args=(c, a, b, getattr(pa, dtype), *sizes))
        pitches = re.findall(r"pa_tile_copy\w*\(&\w+\[\(\w+\) \* (\d+) \+", text)
        assert pitches
        assert all(int(n) * np.dtype(dtype).itemsize % 16 == 0 for n in pitches)


@pa.kernel
def turned(c, a, b):
    for i, j in pa.tiles(c, (32, 32)):
        acc = pa.zeros((i, j), pa.float64)
        for k in pa.tiles(a.shape[0], 16):
            acc += a[k, i].T @ b[j, k].T
        c[i, j] = acc


@pa.kernel
def turned_and_read(c, a, b):
    """What else reads the tile finds it as it is."""
    for i, j in pa.tiles(c, (32, 32)):
        acc = pa.zeros((i, j), pa.float32)
        for k in pa.tiles(a.shape[0], 16):
            x = a[k, i].T
            acc += x @ b[j, k].T
            acc += x.sum(axis=1)[:, None] - a[k, i].sum(axis=0)[:, None]
        c[i, j] = acc


@pa.kernel
def reshaped(c, a, b):
    x = a.reshape(c.shape[0], b.shape[1])
    for i, j in pa.tiles(c, (32, 32)):
        acc = pa.zeros((i, j), pa.float32)
        for k in pa.tiles(x.shape[1], 16):
            acc += x[i, k] @ b[j, k].T
        c[i, j] = acc


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32"])
@pytest.mark.parametrize("depth", [16, 48, 51])
@pytest.mark.parametrize("layout", ["dense", "part", "steps"])
@pytest.mark.parametrize("program", [turned, turned_and_read, reshaped], ids=lambda x: x.__name__)
def test_operands_that_the_kernel_turns_or_reshapes(device, program, layout, depth, dtype, monkeypatch):
    """On the emulated device by the text for matrix instructions, too."""
    rng, (m, n) = np.random.default_rng(3), (64, 70)
    x, y = rng.integers(-3, 4, (depth, m)), rng.integers(-3, 4, (n, depth))
    given = (32, 2 * depth) if program is reshaped else (depth, m)
    wide = np.full((given[0], 2 * given[1] + 4), 100)
    part = {"dense": np.s_[:, :], "part": np.s_[:, 1 : given[1] + 1], "steps": np.s_[:, : 2 * given[1] : 2]}[layout]
    source = x.T.reshape(given) if program is reshaped else x
    if layout == "dense":
        wide = source.copy()
    wide[part] = source
    for text in ("hip", "cuda") if device.startswith("hip") else (device,):
        if text == "cuda":
            monkeypatch.setitem(DIALECTS, "hip", DIALECTS["cuda"])
        kernel = pa.kernel(program.__wrapped__)
        a, b = pa.asarray(wide.astype(dtype), device=device)[part], pa.asarray(y.astype(dtype), device=device)
        c = pa.empty((m, n), dtype="float64" if program is turned else "float32", device=device)
        kernel(c, a, b)
        np.testing.assert_array_equal(pa.asnumpy(c), x.T @ y.T)
