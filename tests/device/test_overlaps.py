"""Writes to memory that operands show, too: the result is NumPy's, which reads before it writes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import pyarray as pa
from pyarray.jit.launch_state import observing

STEPS = (1, 1, 2, 3, -1, -2)


def windows(data, rows, columns):
    """Three drawn slices of a matrix of that shape, and whether the second is transposed."""
    keys = []
    for _ in range(3):
        starts = [data.draw(st.integers(0, size - 1)) for size in (rows, columns)]
        steps = [data.draw(st.sampled_from(STEPS)) for _ in range(2)]
        keys.append(tuple(slice(start, None, step) for start, step in zip(starts, steps, strict=True)))
    return keys, data.draw(st.booleans())


def cut(array, keys, transposed):
    """The windows, cut to one shape."""
    out, x, y = (array[key] for key in keys)
    x = x.T if transposed else x
    shape = tuple(min(sizes) for sizes in zip(out.shape, x.shape, y.shape, strict=True))
    return (w[tuple(map(slice, shape))] for w in (out, x, y))


@examples(150)
@given(data=st.data())
def test_windows_of_one_buffer(device, data):
    rows, columns = (data.draw(st.integers(1, 7)) for _ in range(2))
    host = np.arange(rows * columns, dtype=data.draw(st.sampled_from(("int32", "float64", "int8"))))
    host = host.reshape(rows, columns)
    ours = pa.asarray(host.copy(), device=device)
    drawn = windows(data, rows, columns)
    how = data.draw(st.sampled_from(("assign", "add", "in place")))
    for array, xp in ((host, np), (ours, pa)):
        out, x, y = cut(array, *drawn)
        if how == "assign":
            out[...] = x
        elif how == "add":
            xp.add(x, y, out=out)
        else:
            out += x
    assert pa.asnumpy(ours).tolist() == host.tolist()


@pytest.mark.parametrize("size", [2, 5, 100_000])
def test_a_shift_along_an_axis(device, size):
    host, ours = np.arange(size), pa.arange(size, device=device)
    for array in (host, ours):
        array[1:] = array[:-1]
        array[:-1] += array[1:]
    assert pa.asnumpy(ours).tolist() == host.tolist()


def test_columns_of_a_matrix_are_not_copied(device):
    """Their elements lie in each other's gaps, so that an assignment is one launch."""
    m, seen = pa.asarray(np.arange(12.0).reshape(4, 3), device=device), []
    with observing(lambda launch: (seen.append(launch.kernel), launch.run())):
        m[:, 0] = m[:, 2]
        m[::2] += m[1::2]
    assert len(seen) == 2
    assert m[:, 0].tolist() == [2 + 5, 5, 8 + 11, 11]
