"""Every function whose kernels on a grid are written by hand, with operands that lie in any way: reversed,
in steps, a column of a matrix, one element repeated, off the alignment of vectors. A CPU has to give the
same."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import pyarray as pa
from pyarray.kernels.scan import scan_gpu
from pyarray.kernels.scan.nonzero import unsigned_view

SIZE = 300


def reversed_(x):
    return np.ascontiguousarray(x[::-1])[::-1]


def stepped(x):
    return np.repeat(x, 3)[1::3]


def column(x):
    return np.repeat(x[:, None], 2, axis=1)[:, 1]


def off(x):
    return np.concatenate([x[:1], x, x[:2]])[1:-2]


def repeated(x):
    return np.broadcast_to(x[:1], x.shape)


LAYOUTS = (np.ascontiguousarray, reversed_, stepped, column, off, repeated)


def on(device, x):
    """The array as it lies: its base is copied, and the view is made there."""
    base = x
    while isinstance(base.base, np.ndarray):
        base = base.base
    start = (x.__array_interface__["data"][0] - base.__array_interface__["data"][0]) // x.itemsize
    flat = pa.asarray(np.array(base.reshape(-1)), device=device)
    return flat._view(start * x.itemsize, x.shape, x.strides)


# name: (function, types of its operands; "+" behind one: sorted, "n": natural numbers below 50)
FUNCTIONS = {
    "histogram by edges": (lambda x, e: pa.histogram(x, e)[0], "f4", "f8+"),
    "histogram by whole edges": (lambda x, e: pa.histogram(x, e)[0], "i4", "i8+"),
    "histogram": (lambda x: pa.histogram(x, 7)[0], "f4"),
    "histogram with weights": (lambda x, e, w: pa.histogram(x, e, weights=w)[0], "f4", "f8+", "i8"),
    "bincount": (pa.bincount, "n"),
    "digitize": (pa.digitize, "f8", "f8+"),
    "searchsorted": (pa.searchsorted, "f8+", "f8"),
    "sort": (pa.sort, "f4"),
    "argsort": (pa.argsort, "i8"),
    "unique_values": (pa.unique_values, "i4"),
    "unique_counts": (lambda x: pa.unique_counts(x)[1], "i4"),
    "nonzero": (lambda x: pa.nonzero(x > 0)[0], "f4"),
    "nonzero of numbers": (lambda x: pa.nonzero(x)[0], "i4"),
    "chosen": (lambda x, y: x[y > 0], "f4", "i4"),
    "cumsum": (pa.cumsum, "i8"),
    "cumprod": (lambda x: pa.cumprod(x | 1), "i4"),
    "take": (lambda x, k: x[k], "f4", "n"),
    "matmul": (lambda x, y: pa.matmul(x.reshape(-1, 1), y.reshape(1, -1)), "i8", "i8"),
    "vecdot": (pa.vecdot, "i8", "i8"),
    "var": (pa.var, "f8"),
    "sum": (pa.sum, "i4"),
    "argmax": (pa.argmax, "i4"),
    "isin": (pa.isin, "i4", "i4"),
    "quantile": (lambda x: pa.quantile(x, 0.3), "f8"),
    "interp": (pa.interp, "f8", "f8+", "f8"),
}


def drawn(kind, rng):
    x = rng.standard_normal(SIZE) * 20
    if kind == "n":
        return rng.integers(0, 50, SIZE)
    return np.sort(x).astype(kind[:2]) if kind.endswith("+") else x.astype(kind)


@pytest.mark.parametrize("name", FUNCTIONS)
@examples(2)
@given(data=st.data())
def test_layouts(device, name, data):
    function, *kinds = FUNCTIONS[name]
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    operands = [data.draw(st.sampled_from(LAYOUTS))(drawn(kind, rng)) for kind in kinds]
    want = pa.asnumpy(function(*(pa.asarray(np.array(x)) for x in operands)))
    with pa.debug(data.draw(st.booleans())):
        got = pa.asnumpy(function(*(on(device, x) for x in operands)))
    if want.dtype.kind == "f":
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-12)
    else:
        np.testing.assert_array_equal(got, want)


def test_what_must_lie_together_is_copied_or_refused(device):
    """Below the functions: a kernel that reads neighbours takes a copy, and never the wrong elements."""
    if device == "cpu":
        pytest.skip("blocks share nothing on a CPU")
    x = pa.arange(400, dtype="float32", device=device)
    flat = unsigned_view(x[::2])
    counts = scan_gpu.count(flat)
    assert int(pa.asnumpy(counts)[-1]) == 199
    out = pa.zeros(400, dtype="uint32", device=device)[::2]
    with pytest.raises(ValueError, match=r"compact\(\): 'out' must be contiguous"):
        scan_gpu.compact_into(out, unsigned_view(x[::2]), flat, counts)


@pytest.mark.parametrize("dtype", ["int8", "float16", "complex128"])
def test_copies_of_turned_matrices(device, dtype):
    """By tiles, whose elements outside are undefined on the way."""
    for shape in ((33, 70), (130, 65), (64, 200)):
        x = np.random.default_rng(0).integers(-100, 100, shape).astype(dtype)
        a = pa.asarray(x, device=device)
        for got, wanted in ((a.T, x.T), (a[::-1].T, x[::-1].T), (a[::2, ::3].T, x[::2, ::3].T)):
            np.testing.assert_array_equal(pa.asnumpy(got.copy()), wanted)
            out = pa.zeros((len(wanted), wanted.shape[1] + 5), dtype=dtype, device=device)[:, :-5]
            out[...] = got
            np.testing.assert_array_equal(pa.asnumpy(out), wanted)
