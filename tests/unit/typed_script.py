"""A user's script, as a type checker sees it: test_stubs.py has it checked. It doesn't run."""

from typing import assert_type

import numpy as np

import pyarray as pa
from pyarray.typing import ArrayLike, DeviceLike, DTypeLike, ShapeLike


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


def mean_of(values: ArrayLike, shape: ShapeLike, dtype: DTypeLike = None, device: DeviceLike = None) -> pa.ndarray:
    return pa.mean(pa.asarray(values, dtype, device=device).reshape(shape), dtype=dtype)


for values in (
    a,
    a[0],
    np.ones(4),
    np.float32(1),
    [[1, 2], [3, 4]],
    (1.5, 2),
    1j,
    True,
    b"ab",
    memoryview(b"ab"),
):
    pa.sqrt(values)
mean_of([1, 2], 2, pa.float32, "cpu")
mean_of(np.ones(4), (2, 2), "float64", a.device)
mean_of(a, [12], np.dtype("int8"), None)
a.sum(axis=(0, 1), dtype=float, where=a > 0)
scale(a[0], pa.zeros(4), 2.0, 3)
scale(np.ones(4), a[1], 0.5, n=2)
scale(a[0], out=a[0][:2], factor=np.float32(2).item(), n="two")
shift(np.ones(4))
shift(a[0], by=2, mode="clip")
both(np.ones(3), 2.0)
both(a, b=a)
scale.cache_info()["hits"] + 1
both.explain(a, a)
damp("x", 2.0)  # wrong: damp
scale(a[0], a[1])  # wrong: a missing argument
scale(a[0], a[1], 2.0, 3, 4)  # wrong: too many
scale(a[0], a[1], 2.0, m=3)  # wrong: no such keyword
scale()  # wrong: none
shift()  # wrong: a missing argument
shift(a[0], 1, "wrap", 2)  # wrong: too many
shift(a[0], times=2)  # wrong: no such keyword
both(a)  # wrong: a missing argument
both(a, a, a)  # wrong: too many
both(a, a, c=a)  # wrong: no such keyword
damp(1.0)  # wrong: a missing argument
damp(1.0, 2.0, 3.0)  # wrong: too many
damp(1.0, rate=2.0)  # wrong: no such keyword
a.no_such_method()  # wrong: no_such_method
pa.no_such_function(a)  # wrong: no_such_function
scale.no_such_attribute  # wrong: no_such_attribute  # noqa: B018
pa.zeros("3")  # wrong: ShapeLike
pa.ones(3, device=1)  # wrong: DeviceLike
a.sum(axis="x")  # wrong: AxisLike
pa.mean(a, dtype=4)  # wrong: DTypeLike
pa.sqrt(object())  # wrong: ArrayLike
