"""Stores of tiles into arrays whose neighbours in memory are across the tiles' rows, against NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import pyarray as pa


@pa.kernel
def shifted(c, a, b, rows: pa.constexpr, columns: pa.constexpr):
    """Tiles of c from tiles that are computed before, transposed and broadcast."""
    for i, j in pa.tiles(c, (rows, columns)):
        turned = a[j, i] * 2
        wide = b[j] + 1
        c[i, j] = pa.where(turned.T > 3, turned.T, wide[None, :])


@pa.kernel
def added(c, a, rows: pa.constexpr, columns: pa.constexpr):
    """What is stored is read from the same array."""
    for i, j in pa.tiles(c, (rows, columns)):
        c[i, j] = c[i, j] + a[i, j]


@pa.kernel
def copied(c, a, rows: pa.constexpr, columns: pa.constexpr):
    for i, j in pa.tiles(c, (rows, columns)):
        tile = a[i, j]
        tile = tile + tile
        c[i, j] = tile


# The shape of the memory of an (m, n) array, and the array as a view of it.
LAYOUTS = {
    "columns": (lambda m, n: (n, m), lambda x: x.T),
    "padded columns": (lambda m, n: (n + 1, m + 3), lambda x: x[1:, 2:-1].T),
    "upwards": (lambda m, n: (n, m), lambda x: x[::-1].T),
    "backwards": (lambda m, n: (n, m), lambda x: x[:, ::-1].T),
    "steps": (lambda m, n: (2 * n, 2 * m), lambda x: x[::2, ::2].T),
    "rows": (lambda m, n: (m, n), lambda x: x),
}


def laid(layout, m, n, dtype, device):
    """The memory, of zeros, and the view."""
    shape, view = LAYOUTS[layout]
    memory = pa.zeros(shape(m, n), dtype=dtype, device=device)
    return memory, view(memory)


@examples(30)
@given(data=st.data(), m=st.integers(0, 70), n=st.integers(0, 70))
def test_layouts(device, data, m, n):
    dtype = data.draw(st.sampled_from(["float32", "float64", "float16", "int8", "complex128"]))
    tile = data.draw(st.sampled_from([(16, 32), (32, 16), (5, 7), (64, 8)]))
    layout = data.draw(st.sampled_from(sorted(LAYOUTS)))
    memory, c = laid(layout, m, n, dtype, device)
    x = np.random.default_rng(m + n).integers(-4, 5, (m, n))
    a = pa.asarray(x.astype("int32"), device=device).astype(dtype)
    copied(c, a, *tile)
    added(c, a, *tile)
    np.testing.assert_array_equal(pa.asnumpy(c.astype("complex128")), 3 * x)
    rest = pa.asnumpy(memory.astype("complex128"))
    assert np.count_nonzero(rest) == np.count_nonzero(x)


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_expressions(device, layout):
    m, n = 50, 37
    _, c = laid(layout, m, n, "float32", device)
    x, y = np.random.default_rng(0).integers(-4, 5, (n, m)), np.arange(n)
    shifted(c, *(pa.asarray(z.astype("float32"), device=device) for z in (x, y)), 32, 16)
    np.testing.assert_array_equal(pa.asnumpy(c), np.where(2 * x.T > 3, 2 * x.T, y + 1))


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("kernel", [copied, added])
@pytest.mark.parametrize("dtype", ["int8", "float32", "complex128"])
def test_lines_of_memory_are_written_at_once(kernel, debug, dtype):
    """On a CPU, by bands of rows, where the text doesn't know that rows are in memory."""
    c, a = pa.zeros((64, 64), dtype).T, pa.zeros((64, 64), dtype)
    assert "band" in kernel._lowered(kernel.bind((c, a, 16, 16)), debug, "cpu").text
    assert "band" not in kernel._lowered(kernel.bind((a, a, 16, 16)), debug, "cpu").text
