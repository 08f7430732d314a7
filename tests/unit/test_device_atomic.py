"""csrc/device/pa_atomic.h, one thread: every operation's new and old values, against NumPy."""

import ctypes

import numpy as np
import pytest
from device_headers import CC, COMPLEX, INTS, NARROW, REALS, library, pointer  # beside this file

pytestmark = pytest.mark.skipif(CC is None, reason="no C compiler")


@pytest.fixture(scope="module")
def lib():
    return library()


MOST = {"e4m3": 20, "e5m2": 20}  # whose sums of twenty aren't NaN


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [*INTS, *REALS, *NARROW, *COMPLEX, "b"])
@np.errstate(all="ignore")
def test_atomic(lib, suffix):
    dtype = {**INTS, **REALS, **NARROW, **COMPLEX, "b": np.dtype(bool)}[suffix]
    r = np.random.default_rng(2)
    values = r.integers(0, 2 if suffix == "b" else MOST.get(suffix, 120), 20).astype(dtype)
    steps = {
        "add": lambda o, v: o + v,
        "sub": lambda o, v: o - v,
        "min": np.minimum,
        "max": np.maximum,
        "exchange": lambda o, v: v,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
    }
    kind = "int" if suffix in INTS else "bool" if suffix == "b" else "complex" if suffix in COMPLEX else "float"
    ops = {
        "int": "add sub min max exchange and or xor",
        "bool": "and or xor exchange",
        "complex": "add sub",
        "float": "add sub min max exchange",
    }
    for op in ops[kind].split():
        cell, old, want = np.array([5 if suffix != "b" else 1]).astype(dtype), np.zeros_like(values), []
        now = cell[0]
        for v in values:
            want.append(now)
            now = dtype.type(steps[op](now, v))
        getattr(lib, f"v_pa_atomic_{op}_{suffix}")(
            pointer(cell), pointer(values), pointer(old), ctypes.c_int64(values.size)
        )
        np.testing.assert_array_equal(old, np.array(want, dtype), op)
        assert cell[0] == now, op
    if kind != "complex":
        cell, expected, desired = (
            np.array([1]).astype(dtype),
            np.array([1, 0]).astype(dtype),
            np.array([0, 1]).astype(dtype),
        )
        swapped = desired.copy()
        getattr(lib, f"v_pa_atomic_cas_{suffix}")(pointer(cell), pointer(expected), pointer(swapped), ctypes.c_int64(2))
        np.testing.assert_array_equal(swapped, np.array([1, 0]).astype(dtype))
        assert cell[0] == dtype.type(1)
