"""Runs a kernel on a device and its body as plain Python, on equal arrays."""

import numpy as np

from pyarray.array_convert import asarray, asnumpy


def on(device, array):
    """The NumPy array on the device, in the same layout; on the CPU it is the same memory."""
    return asarray(array) if device == "cpu" else asarray(array, device=device)


def launch(kernel, device, *args):
    """NumPy results of all array arguments after a launch on copies in the same layout."""
    copies = [same_layout(a) if isinstance(a, np.ndarray) else a for a in args]
    there = [on(device, a) if isinstance(a, np.ndarray) else a for a in copies]
    kernel(*there)
    return [asnumpy(a) for a in there if hasattr(a, "_key")]


def same_layout(a):
    """A copy with the same strides: the smallest block that holds the array is copied."""
    low = sum(s * (n - 1) for s, n in zip(a.strides, a.shape, strict=True) if s < 0) if a.size else 0
    high = sum(s * (n - 1) for s, n in zip(a.strides, a.shape, strict=True) if s > 0) if a.size else 0
    block = np.zeros(high - low + a.itemsize, np.uint8)
    copy = np.ndarray(a.shape, a.dtype, block, -low, a.strides)
    copy[...] = a
    return copy


def agree(kernel, device, *args, rtol=0):
    """Assert that the device does what plain Python does."""
    host = [np.array(a) if isinstance(a, np.ndarray) else a for a in args]
    with np.errstate(all="ignore"):
        kernel.__wrapped__(*host)
    got = launch(kernel, device, *args)
    for expected, actual in zip((a for a in host if isinstance(a, np.ndarray)), got, strict=True):
        if rtol:
            np.testing.assert_allclose(actual, expected, rtol=rtol)
        else:
            np.testing.assert_array_equal(actual, expected)
