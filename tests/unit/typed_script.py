"""A user's script, as a type checker sees it: test_stubs.py has it checked. It doesn't run."""

from typing import assert_type

import numpy as np

import pyarray as pa


@pa.kernel
def scale(v: pa.BufferView[pa.float32], out: pa.Out[pa.BufferView], factor: pa.float32, n: pa.constexpr):
    for i in range(v.size):
        out[i] = v[i] * factor**n


@pa.kernel(debug=True)
def shift(v: pa.InOut[pa.ndarray], by: pa.int32 = 1, mode: pa.constexpr = "wrap"):
    for i in range(v.size - by):
        v[i] = v[i + by]


@pa.func
def damp(x: float, factor: float) -> float:
    return x * factor


@pa.fuse
def both(a: pa.ndarray, b: pa.ndarray) -> pa.ndarray:
    return a + b


a = pa.ones((3, 4), dtype=pa.float32)
assert_type(a[0], pa.ndarray)
assert_type(a[0][1:3], pa.BufferView)
assert_type(a[0].subview(0, 2).offset, int)
assert_type(a.reshape(12), pa.ndarray)
assert_type(a.T, pa.ndarray)
assert_type(pa.where(a > 0, a, 0), pa.ndarray)
assert_type(pa.where(a > 0), tuple[pa.ndarray, ...])
assert_type(damp(1.0, 2.0), float)
assert_type(both(a, a, out=a), pa.ndarray)
scale(a[0], pa.zeros(4), 2.0, 3)
scale(np.ones(4), a[1], 0.5, n=2)
shift(np.ones(4))
scale.cache_info()["hits"] + 1
both.explain(a, a)
damp("x", 2.0)  # wrong: damp
a.no_such_method()  # wrong: no_such_method
pa.no_such_function(a)  # wrong: no_such_function
scale.no_such_attribute  # wrong: no_such_attribute  # noqa: B018
