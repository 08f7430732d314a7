"""Subclasses of NumPy's array: what they say of themselves may be anything, what their memory is may not."""

import numpy as np
import pytest

import pyarray as pa


class Liar(np.ndarray):
    """Says that it is larger, elsewhere and of another type."""

    shape = property(lambda self: (1 << 40,))
    strides = property(lambda self: (1 << 20,))
    size = property(lambda self: 1 << 40)
    dtype = property(lambda self: np.dtype("complex128"))
    flags = property(lambda self: None)
    ctypes = property(lambda self: None)
    __array_interface__ = property(lambda self: {**super().__array_interface__, "data": (64, False)})

    def __setitem__(self, key, value):
        raise AssertionError("written otherwise")


@pa.kernel
def double(v):
    for i in range(v.size):
        v[i] = 2 * v[i]


@pa.kernel
def add_to(o, v):
    for i in range(o.size):
        o[i] += v[i]


def test_memory_of_subclasses_is_what_it_is(device):
    x = np.arange(6.0)
    liar = x[1:4].view(Liar)
    double(liar)
    assert x.tolist() == [0, 2, 4, 6, 4, 5]
    add_to(liar, pa.ones(3, device=device))
    assert x.tolist() == [0, 3, 5, 7, 4, 5]
    for take in (pa.asarray, pa.array, lambda y: pa.ones(3) * y, lambda y: pa.asarray([y, y])[0]):
        assert take(liar).tolist() == [3, 5, 7]
    a = pa.asarray(liar)
    assert (a.shape, a.dtype, np.shares_memory(pa.asnumpy(a), x)) == ((3,), pa.float64, True)
    pa.asarray(x.view(np.matrix))[0, 1] = 9
    assert x[1] == 9


def test_masked_arrays_are_refused(device):
    masked = np.ma.masked_array([1.0, 2.0, 3.0], [False, True, False])
    text = r"a masked array would lose its mask; pass x.filled\(value\), or x.data, and x.mask as another"
    for take in (
        pa.asarray,
        pa.array,
        pa.from_dlpack,
        pa.sum,
        lambda x: pa.asarray([x, x]),
        lambda x: pa.ones(3, device=device) + x,
        lambda x: pa.ones(3, device=device).__setitem__(..., x),
        lambda x: np.add(pa.ones(3), 1, out=x),
    ):
        with pytest.raises(TypeError, match=text):
            take(masked)
        assert masked.mask.tolist() == [False, True, False]
    with pytest.raises(TypeError, match=rf"double\(\): 'v' can't be used: {text}"):
        double(masked)
    assert pa.asarray(masked.filled(0)).tolist() == [1, 0, 3]
