"""Functions of tiles beyond arithmetic, under NumPy's names and with NumPy's arguments, on every device, in release and
in debug mode."""

import linecache

import numpy as np
import pytest
from kernel_tools import launch

import pyarray as pa
from pyarray.jit.launch_state import debug

HEAD = "@pa.kernel\ndef k(o, x):\n    for i, j in pa.tiles(o, (4, 8)):\n        t = x[i, j]\n"
X = np.random.default_rng(0).integers(-4, 5, (13, 21)).astype("f4")
ROW, COLUMN = np.arange(13)[:, None], np.arange(21)

# by expression: what NumPy makes of it
ELEMENTS = {
    "pa.clip(t, max=2) + np.clip(t, -1, None) + t.clip(min=0, max=i[:, None])": (
        X.clip(None, 2) + X.clip(-1, None) + np.clip(X, 0, ROW)
    ),
    "divmod(t, 2)[0] + divmod(t, 3)[1]": X // 2 + X % 3,
    "t.T.T + t.transpose(1, 0).T + pa.permute_dims(t, (0, 1)) + t.mT.mT + pa.swapaxes(t, 0, 1).T": X * 5,
    "pa.squeeze(t[:, None], axis=1) + pa.expand_dims(t, 2).squeeze(-1) + t.squeeze()": X * 3,
    "t[:, np.newaxis, :].sum(axis=1) + x[i, j, pa.newaxis].sum(axis=2)": X * 2,
    "x[..., i, j] + x[i, ..., j]": X * 2,
    "pa.zeros_like(t, dtype=pa.int8) + pa.ones_like(t) + np.full_like(t, 3, dtype=pa.int32) + pa.zeros_like(j)": (
        np.full(X.shape, 4)
    ),
    "t.round() + t.real + t.imag + t.conj() + t.astype(dtype=pa.int32)": X * 4,
    "len(t) * 0 + t.size * 0 + j.shape[0] * 0 + t": X,
    "j.T + j.astype(pa.float32) + i.sum() * 0 + pa.max(j) * 0": COLUMN * 2 + X * 0,
    "t if i.start > 3 else t * 2": np.where(ROW > 3, X, X * 2),
    "x[i + 4, j] if i.start + 8 < x.shape[0] else -t": np.vstack([X[4:8], X[8:12], -X[8:]]),
}


def load(text):
    path = f"<{hash(text)}>"
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    exec(compile(text, path, "exec"), space := {"pa": pa, "np": np})
    return space["k"]


def agrees(kernel, device, wanted, *arguments):
    for checked in (False, True):
        with debug(checked):
            got, *_ = launch(kernel, device, *arguments)
        np.testing.assert_allclose(got, wanted, rtol=1e-6)


@pytest.mark.parametrize("expression", ELEMENTS)
def test_elements(device, expression):
    kernel = load(f"{HEAD}        o[i, j] = {expression}\n")
    agrees(kernel, device, ELEMENTS[expression], np.zeros(X.shape), X)


@pa.kernel
def of_rows(o, x):
    for i in pa.tiles(x.shape[0], 4):
        (j,) = pa.tiles(x.shape[1], 32)
        t = x[i, j]
        o[i, 0] = t.var(axis=1, ddof=1)
        o[i, 1] = pa.std(t, axis=1, correction=1.5)
        o[i, 2] = t.var(axis=1, ddof=30)
        o[i, 3] = t.sum(axis=1, dtype=pa.float64)
        o[i, 4] = t.mean(axis=1, dtype=pa.float64)
        o[i, 5] = t.prod(axis=1, dtype=pa.int32)
        o[i, 6] = pa.count_nonzero(t, axis=1)
        o[i, 8] = pa.count_nonzero(t, axis=1) // 2 + t.max()[None] * 0
        o[i, 7] = t.cumsum(axis=1, dtype=pa.int8).max(axis=1)


def test_reductions_with_arguments(device):
    columns = [
        X.var(1, ddof=1), X.std(1, ddof=1.5), np.full(13, np.inf), X.sum(1), X.mean(1, dtype="f8"),
        X.prod(1, dtype="i4"), np.count_nonzero(X, 1), X.cumsum(1, dtype="i1").max(1),
        np.count_nonzero(X, 1) // 2,
    ]  # fmt: skip
    agrees(of_rows, device, np.stack(columns, 1), np.zeros((13, 9)), X)


@pa.kernel
def of_halves(o, x):
    for i in pa.tiles(x.shape[0], 4):
        (j,) = pa.tiles(x.shape[1], 64)
        o[i] = x[i, j].sum(axis=1, dtype=pa.float32)


def test_a_sum_of_halves_that_only_float32_holds(device):
    x = np.full((9, 40), 6e4, "f2")
    agrees(of_halves, device, x.sum(1, dtype="f4"), np.zeros(9, "f4"), x)


@pa.kernel
def turned(o, x):
    for i, j, k in pa.tiles(x, (2, 3, 4)):
        t = x[i, j, k]
        o[k, i, j] = pa.transpose(t, (2, 0, 1)) + t.transpose(2, 0, 1) + t.T.swapaxes(1, 2)


@pa.kernel
def matrices_transposed(o, x):
    for i, j, k in pa.tiles(x, (2, 3, 4)):
        o[i, k, j] = pa.matrix_transpose(x[i, j, k]) + x[i, j, k].mT


def test_three_axes(device):
    x = np.random.default_rng(1).integers(-4, 5, (5, 7, 6)).astype("f4")
    agrees(turned, device, 3 * x.transpose(2, 0, 1), np.zeros((6, 5, 7), "f4"), x)
    agrees(matrices_transposed, device, 2 * x.swapaxes(1, 2), np.zeros((5, 6, 7), "f4"), x)


@pa.kernel
def complex_parts(o, x):
    for _ in range(1):
        (i,) = pa.tiles(x.shape[0], 16)
        (j,) = pa.tiles(x.shape[1], 32)
        t = x[i, j]
        o[i, j] = t.real + 2 * t.conj().imag + t.any(axis=1)[:, None] + pa.count_nonzero(t, axis=0)


def test_parts_of_complex_numbers(device):
    x = (X + 1j * X[::-1]).astype("c8")
    wanted = x.real - 2 * x.imag + x.any(1)[:, None] + np.count_nonzero(x, axis=0)
    agrees(complex_parts, device, wanted, np.zeros(x.shape, "f4"), x)


@pa.kernel
def stacks(o, x, y):
    for b, i, j in pa.tiles(o, (2, 4, 4)):
        total = pa.zeros((b, i, j), pa.float64)
        for k in pa.tiles(x.shape[2], 4):
            total += x[b, i, k] @ y[b, k, j]
            total += x[b, i, k] @ y[0, k, j]
        (k,) = pa.tiles(x.shape[2], 8)
        o[b, i, j] = total + pa.matmul(x[0, i, k], y[b, k, j], dtype=pa.float64)


@pa.kernel
def vectors(o, x, y):
    for b, j in pa.tiles(o, (2, 4)):
        (k,) = pa.tiles(x.shape[2], 8)
        v = x[0, 0, k]
        row = (v[None] @ y[0, k, j]).sum(axis=0)
        number = (v[None] @ v[:, None]).sum() + (v @ v[:, None]).sum() + (v[None] @ v).sum() + v @ v
        o[b, j] = v @ y[b, k, j] + row + number + x[b, 0, 0][:, None] @ y[0, 0, j][None]


def test_products_of_stacks_and_of_axes_of_size_1(device):
    numbers = np.random.default_rng(2)
    for dtype in ("f4", "i4", "f2"):
        x, y = (numbers.integers(-4, 5, shape).astype(dtype) for shape in ((3, 5, 7), (3, 7, 6)))
        a, b = x.astype("f8"), y.astype("f8")
        agrees(stacks, device, a @ b + a @ b[0] + a[0] @ b, np.zeros((3, 5, 6)), x, y)
        v = a[0, 0]
        wanted = v @ b + v @ b[0] + 4 * v @ v + np.outer(a[:, 0, 0], b[0, 0])
        agrees(vectors, device, wanted, np.zeros((3, 6)), x, y)
