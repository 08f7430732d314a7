"""Products of tiles whose operands are of narrower types than their sums, against NumPy."""

import numpy as np
import pytest

import pyarray as pa


@pa.kernel
def product(c, a, b, sums: pa.constexpr, rows: pa.constexpr, columns: pa.constexpr, depth: pa.constexpr):
    for i, j in pa.tiles(c, (rows, columns)):
        total = pa.zeros((i, j), sums)
        for k in pa.tiles(a.shape[1], depth):
            total += a[i, k] @ b[k, j]
        c[i, j] = total


@pa.kernel
def with_itself(c, a, sums: pa.constexpr, n: pa.constexpr):
    """Two casts of one tile, and a product whose operands are one array's."""
    for i, j in pa.tiles(c, (n, n)):
        total = pa.zeros((i, j), sums)
        for k in pa.tiles(a.shape[1], n):
            x = a[i, k]
            total += x @ a[j, k].T
            total += (x * 2) @ a[j, k].T
        c[i, j] = total


TYPES = [
    ("int8", pa.int32), ("uint8", pa.int32), ("int16", pa.int64), ("int8", pa.float32), ("uint16", pa.float64),
    ("float16", pa.float32), ("bfloat16", pa.float32), ("float32", pa.float64), ("bool", pa.int32),
]  # fmt: skip


def drawn(shape, kind, device):
    least, past = 0 if kind.startswith(("bool", "uint")) else -4, 2 if kind == "bool" else 5
    numbers = np.random.default_rng(sum(shape)).integers(least, past, shape)
    return numbers, pa.asarray(numbers.astype("int32"), device=device).astype(kind)


@pytest.mark.parametrize(("kind", "sums"), TYPES)
@pytest.mark.parametrize("debugs", [False, True])
def test_as_numpy(device, kind, sums, debugs):
    for (m, k, n), tile in [((70, 50, 90), (32, 64, 16)), ((5, 200, 3), (8, 8, 32)), ((64, 0, 64), (64, 64, 16))]:
        (x, a), (y, b) = drawn((m, k), kind, device), drawn((k, n), kind, device)
        c = pa.empty((m, n), sums, device=device)
        with pa.debug(debugs):
            product(c, a, b, sums, *tile)
            np.testing.assert_array_equal(pa.asnumpy(c), x @ y)
            product(c, a.T.copy().T, b[:, ::-1], sums, *tile)
            np.testing.assert_array_equal(pa.asnumpy(c), x @ y[:, ::-1])


@pytest.mark.parametrize(("kind", "sums"), TYPES[:3])
def test_of_one_array(device, kind, sums):
    x, a = drawn((40, 33), kind, device)
    c = pa.empty((40, 40), sums, device=device)
    with_itself(c, a, sums, 16)
    np.testing.assert_array_equal(pa.asnumpy(c), 3 * (x @ x.T))


@pytest.mark.parametrize("columns", [16, 23, 64])
def test_every_number_of_float16(device, columns):
    """As rows of tiles, which a function casts, and as columns; the last tile isn't whole. Times 1 each is the same."""
    every = np.arange(2**16, dtype=np.uint16).view(np.float16)
    numbers = pa.asarray(every, device=device)
    across, down = (pa.empty(s, "float32", device=device) for s in ((16, 2**16), (2**16, 16)))
    product(across, pa.ones((16, 1), "float16", device=device), numbers[None], pa.float32, 16, columns, 4)
    product(down, numbers[:, None], pa.ones((1, 16), "float16", device=device), pa.float32, columns, 16, 4)
    for got in (pa.asnumpy(across), pa.asnumpy(down).T):
        np.testing.assert_array_equal(got, np.broadcast_to(every.astype(np.float32), got.shape))


@pa.kernel
def among_many(c, a, b):
    """Tiles of 128 KiB each that take most of a thread's memory for tiles."""
    for i, j in pa.tiles(c, (128, 128)):
        p = pa.full((i, j), 1, pa.float64)
        q = p + 1
        r = q + 1
        s = r + 1
        t = s + 1
        u = t + 1
        total = pa.zeros((i, j), pa.float64)
        for k in pa.tiles(a.shape[1], 128):
            total += a[i, k] @ b[k, j]
        c[i, j] = total + p + q + r + s + t + u


def test_what_is_cast_counts_as_tiles():
    (x, a), (y, b) = drawn((130, 140), "int8", "cpu"), drawn((140, 100), "int8", "cpu")
    c = pa.empty((130, 100), pa.float64)
    among_many(c, a, b)
    np.testing.assert_array_equal(pa.asnumpy(c), x @ y + 21)
    product(c, a, b, pa.float64, 128, 128, 64)
    casts = [kernel.source("cpu").count("_float64 __attribute__") for kernel in (among_many, product)]
    assert casts[0] < casts[1]


@pa.kernel
def sums_of_one_operand(c, v, b, w):
    """The axis that goes is one of `b` alone."""
    for i, j in pa.tiles(c, (32, 64)):
        x = v[i]
        total = pa.zeros((i, j), pa.int32)
        for k in pa.tiles(b.shape[0], 32):
            y = b[k, j]
            total = total + (pa.int32(x)[None, :, None] * pa.int32(y)[:, None, :]).sum(axis=0, dtype=pa.int32)
            z = w[k, i]
            total = total + (pa.int32(z)[:, :, None] * pa.int32(y)[:, None, :]).sum(axis=0, dtype=pa.int32)
        c[i, j] = total


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16"])
def test_operands_without_the_depth(device, kind):
    (x, v), (y, b), (z, w) = (drawn(shape, kind, device) for shape in ((90,), (50, 70), (50, 90)))
    c = pa.empty((90, 70), "int32", device=device)
    sums_of_one_operand(c, v, b, w)
    np.testing.assert_array_equal(pa.asnumpy(c), x[:, None] * y.sum(0) + z.T @ y)


@pa.kernel
def of_two_types(c, a, b):
    for i, j in pa.tiles(c, (16, 16)):
        total = pa.zeros((i, j), pa.int32)
        for k in pa.tiles(a.shape[1], 16):
            total += a[i, k] @ b[k, j]
        c[i, j] = total


@pytest.mark.parametrize("kinds", [("int8", "float32"), ("float32", "int8")])
def test_sums_of_a_narrower_type_than_an_operand(device, kinds):
    """A sum becomes what NumPy makes of it, whichever operand is wide."""
    x, y = (np.random.default_rng(3).integers(-4, 5, s) for s in ((20, 24), (24, 18)))
    x, y = (v * 0.5 if kind == "float32" else v for v, kind in zip((x, y), kinds, strict=True))
    a, b = (pa.asarray(v.astype(kind), device=device) for v, kind in zip((x, y), kinds, strict=True))
    c = pa.empty((20, 18), "float64", device=device)
    of_two_types(c, a, b)
    np.testing.assert_array_equal(pa.asnumpy(c), x @ y)
