"""Products and reductions of rows in tiles, with sizes and layouts that are drawn: against NumPy, and debug mode
against release, bit by bit unless a function of a library is called: how tests optimise a kernel decides its bits."""

import random

import numpy as np
import pytest

import pyarray as pa
from pyarray.jit.launch_state import debug

SIZES = (0, 1, 3, 8, 15, 16, 17, 31, 33, 48, 70)
TILES = (1, 4, 5, 8, 12, 16, 20, 32, 48)
FLOATS = ("float32", "float64")


@pa.kernel
def product(c, a, b, rows: pa.constexpr, columns: pa.constexpr, depth: pa.constexpr):
    for i, j in pa.tiles(c, (rows, columns)):
        total = pa.zeros((i, j), c.dtype)
        for k in pa.tiles(a.shape[1], depth):
            total += a[i, k] @ b[k, j]
        c[i, j] = total


@pa.kernel
def turned_product(c, a, b, rows: pa.constexpr, columns: pa.constexpr, depth: pa.constexpr):
    """Of a.T and b.T, one after the other, the second one twice."""
    for i, j in pa.tiles(c, (rows, columns)):
        total = pa.ones((i, j), c.dtype)
        for k in pa.tiles(a.shape[0], depth):
            once = a[k, i].T @ b[j, k].T
            total = total + once
            total += a[k, i].T @ b[j, k].T
        c[i, j] = total


@pa.kernel
def squared(c, a, side: pa.constexpr):
    for n in range(1):
        (i,) = pa.tiles(a.shape[0], side)
        (j,) = pa.tiles(a.shape[0], side)
        (k,) = pa.tiles(a.shape[0], side)
        t = a[i, k]
        c[i, j] = t @ a[k, j] + n


@pa.kernel
def normal(y, x, weight, rows: pa.constexpr, columns: pa.constexpr):
    for i in pa.tiles(x.shape[0], rows):
        (j,) = pa.tiles(x.shape[1], columns)
        t = pa.float32(x[i, j])
        d = t - t.mean(axis=1, keepdims=True)
        y[i, j] = d / pa.sqrt((d * d).mean(axis=1, keepdims=True) + 1e-3) * weight[j]


@pa.kernel
def softmax(y, x, weight, rows: pa.constexpr, columns: pa.constexpr):
    for i in pa.tiles(x.shape[0], rows):
        (j,) = pa.tiles(x.shape[1], columns)
        t = pa.float32(x[i, j]) * weight[j]
        e = pa.exp(t - t.max(axis=1, keepdims=True))
        y[i, j] = e / e.sum(axis=1, keepdims=True)


@pa.kernel
def in_turn(y, x, weight, rows: pa.constexpr, columns: pa.constexpr):
    """Row by row in one iteration, whose sums are needed by later elements."""
    for _ in range(1):
        last = 0.0
        for i in pa.tiles(x.shape[0], rows):
            (j,) = pa.tiles(x.shape[1], columns)
            t = pa.float32(x[i, j]) + pa.float32(last)
            s = (t * weight[j]).sum(axis=1)
            u = t - s[:, None]
            y[i, j] = u * u.min(axis=1)[:, None]
            last = float(s.max()) % 3


@pa.kernel
def counted(c, a, b, count, rows: pa.constexpr, depth: pa.constexpr):
    """Which matrix of a is next says a counter in memory."""
    for i, j in pa.tiles(c, (rows, rows)):
        total = pa.zeros((i, j), c.dtype)
        for k in pa.tiles(b.shape[0], depth):
            turn = pa.atomic_add(count, 0, 1)
            total += a[turn % 2, i, k] @ b[k, j]
        c[i, j] = total


@pa.kernel
def through_view(y, x, rows: pa.constexpr, columns: pa.constexpr):
    for n in range(x.shape[0]):
        for i in pa.tiles(x.shape[1], rows):
            (j,) = pa.tiles(x.shape[2], columns)
            t = x[n, i, j]
            s = t.sum(axis=1)
            out = y[n]
            out[i, j] = t - s[:, None]


def references(name, x, weight):
    x = x.astype(np.float64)
    if name == "normal":
        d = x - x.mean(1, keepdims=True)
        return d / np.sqrt((d * d).mean(1, keepdims=True) + 1e-3) * weight
    e = np.exp(x * weight - (x * weight).max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def laid_out(values, layout, device):
    """The same elements as an array with another layout."""
    if layout == "columns":
        return pa.asarray(np.ascontiguousarray(values.T), device=device).T
    if layout == "backwards":
        return pa.asarray(np.ascontiguousarray(values[::-1, ::-1]), device=device)[::-1, ::-1]
    if layout == "part":
        around = np.pad(values, ((1, 0), (2, 3)))
        return pa.asarray(around, device=device)[1:, 2 : 2 + values.shape[1]]
    return pa.asarray(values, device=device)


LAYOUTS = ("rows", "columns", "backwards", "part")


def both_modes(kernel, shape, dtype, device, *arguments, rtol=0.0):
    """The result in release, which is that of debug mode."""
    results = []
    for checked in (False, True):
        out = pa.full(shape, 7, dtype=dtype, device=device)
        with debug(checked):
            kernel(out, *arguments)
        results.append(pa.asnumpy(out))
    np.testing.assert_allclose(*results, rtol=rtol)
    return results[0]


@pytest.mark.parametrize("seed", range(12))
def test_products(device, seed):
    draw = random.Random(seed)
    m, n, k = (draw.choice(SIZES) for _ in range(3))
    tile = [draw.choice(TILES) for _ in range(3)]
    dtype = draw.choice(FLOATS)
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(m, k)).astype(dtype), rng.normal(size=(k, n)).astype(dtype)
    near = {"rtol": 1e-4, "atol": 1e-4, "err_msg": f"{m} {n} {k} {tile} {dtype}"}
    one, other = (laid_out(x, draw.choice(LAYOUTS), device) for x in (a, b))
    np.testing.assert_allclose(both_modes(product, (m, n), dtype, device, one, other, *tile), a @ b, **near)
    one, other = (laid_out(x.T, draw.choice(LAYOUTS), device) for x in (a, b))
    got = both_modes(turned_product, (m, n), dtype, device, one, other, *tile)
    np.testing.assert_allclose(got, 1 + 2 * (a @ b), **near)


@pytest.mark.parametrize("side", [5, 16, 40])
def test_a_product_of_a_tile_with_its_array(device, side):
    a = np.random.default_rng(side).normal(size=(side, side)).astype("f")
    got = both_modes(squared, a.shape, "float32", device, pa.asarray(a, device=device), side + 3)
    np.testing.assert_allclose(got, a @ a, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("name", ["normal", "softmax", "in_turn"])
def test_rows(device, name, seed):
    draw = random.Random(seed)
    shape = draw.choice(SIZES), draw.choice(SIZES[1:])
    columns, dtype = shape[1] + draw.choice((0, 1, 9)), draw.choice(("float32", "float64", "float16", "int8", "int32"))
    rng = np.random.default_rng(seed)
    x, weight = (3 * rng.normal(size=shape)).astype(dtype), rng.normal(size=shape[1]).astype("f")
    arguments = laid_out(x, draw.choice(LAYOUTS), device), pa.asarray(weight, device=device)
    kernel = {"normal": normal, "softmax": softmax, "in_turn": in_turn}[name]
    rtol = 1e-5 if name == "softmax" else 0.0
    got = both_modes(kernel, shape, "float32", device, *arguments, draw.choice((1, 2, 5)), columns, rtol=rtol)
    if name != "in_turn":
        np.testing.assert_allclose(got, references(name, x, weight), rtol=1e-3, atol=1e-4)


def test_in_place(device):
    x = np.random.default_rng(0).normal(size=(9, 40)).astype("f")
    weight = pa.ones(40, dtype=pa.float32, device=device)
    for name, kernel in (("normal", normal), ("softmax", softmax)):
        there = pa.asarray(x, copy=True, device=device)
        kernel(there, there, weight, 4, 40)
        np.testing.assert_allclose(pa.asnumpy(there), references(name, x, 1), rtol=1e-3, atol=1e-4)


def test_a_number_with_an_effect_is_computed_once(device):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 16, 50)).astype("f"), rng.normal(size=(50, 16)).astype("f")
    count = pa.zeros(1, dtype=pa.int64, device=device)
    there = [pa.asarray(x, device=device) for x in (a, b)]
    got = both_modes(counted, (16, 16), "float32", device, *there, count, 16, 25)
    np.testing.assert_allclose(got, a[0, :, :25] @ b[:25] + a[1, :, 25:] @ b[25:], rtol=1e-4, atol=1e-4)
    assert count.tolist() == [4]


def test_a_store_through_a_view_that_the_loop_makes(device):
    x = np.random.default_rng(0).normal(size=(3, 7, 40)).astype("f")
    got = both_modes(through_view, x.shape, "float32", device, pa.asarray(x, device=device), 2, 40)
    np.testing.assert_allclose(got, x - x.sum(-1, keepdims=True), rtol=1e-4, atol=1e-4)
