"""`x.view(dtype)` of a number in a kernel: its bits as another type."""

import numpy as np
import pytest
from kernel_tools import on

from pyarray.array_convert import asnumpy
from pyarray.dtypes import (
    bfloat16,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from pyarray.errors import CompileError
from pyarray.jit.kernel import func, kernel
from pyarray.jit.launch_state import debug

SIZES = [
    (int8, uint8),
    (int16, uint16, float16, bfloat16),
    (int32, uint32, float32),
    (int64, uint64, float64),
]
SOURCES = [(kind, kinds) for kinds in SIZES for kind in kinds]


@func
def bits(x, dtype):
    return x.view(dtype)


def viewed(targets):
    first, second, third, last = targets

    @kernel
    def copy(a, b, c, d, v):
        for i in range(v.shape[0]):
            a[i] = bits(v[i], first)
            b[i] = bits(v[i], second)
            c[i] = bits(v[i], third)
            d[i] = bits(v[i], last)

    return copy


@pytest.mark.parametrize(("source", "kinds"), SOURCES, ids=lambda x: getattr(x, "name", ""))
def test_views_of_numbers(device, source, kinds):
    raw = np.random.default_rng(3).integers(0, 256, 64 * source.itemsize, np.uint8)
    raw[: source.itemsize] = 0
    raw[source.itemsize : 2 * source.itemsize] = 255
    values = raw.view(source.numpy)
    targets = (*kinds, *kinds)[:4]  # each of them
    for checked in (False, True):
        outs = [on(device, np.zeros(64, target.numpy)) for target in targets]
        with debug(checked):
            viewed(targets)(*outs, on(device, values))
        for target, out in zip(targets, outs, strict=True):
            assert asnumpy(out).tobytes() == raw.tobytes(), target


@kernel
def exponents(out, v):
    for i in range(out.shape[0]):
        out[i] = (abs(v[i]).view(np.int32) >> 23) - 127


def test_exponents(device):
    values = np.array([1.0, -1.5, 2.0, 1e-30, 3e38], np.float32)
    out = on(device, np.zeros(5, np.int64))
    exponents(out, on(device, values))
    assert asnumpy(out).tolist() == (np.frexp(values)[1] - 1).tolist()


@pytest.mark.parametrize(("target", "message"), [
    (int64, "a float32 has no view as int64(.*\n)*.*integers or floats of the same size"),
    (np.dtype(bool), "a float32 has no view as bool"),
    (np.complex64, "a float32 has no view as complex64"),
    (float, r"view\(\) of a number takes a dtype(.*\n)*.*write x.view\(int32\)"),
])  # fmt: skip
def test_what_has_no_view(target, message):
    with pytest.raises(CompileError, match=message):
        viewed([target] * 4)(*[on("cpu", np.zeros(3, np.int64))] * 4, on("cpu", np.zeros(3, np.float32)))


@kernel
def of_a_weak_number(out):
    for i in range(out.shape[0]):
        out[i] = (1.0).view(int64)


def test_a_python_number_has_no_view():
    with pytest.raises(CompileError, match="has no attribute 'view'"):
        of_a_weak_number(on("cpu", np.zeros(3, np.int64)))
