"""C text of a few programs, whole, so that a change of the emitter is seen in review."""

from pathlib import Path

import pytest

from pyarray.dtypes import bool_, float32, int64
from pyarray.jit.kernel import func, kernel
from pyarray.lang.ir import ArrayType, ScalarType
from pyarray.lang.markers import ndrange, unordered
from pyarray.lang.pipeline import lower

FOLDER = Path(__file__).parent / "golden"
VECTOR, STRIDED = ArrayType(float32, 1, False), ArrayType(float32, 2, True)
NUMBER, INDEX = ScalarType(float32), ScalarType(int64, weak=True)


@func
def damp(v, i, factor):
    return v[i] * factor


@kernel
def scale(v, factor):
    for i in range(v.size):
        v[i] = damp(v, i, factor)


@kernel
def transposed(a, b, n):
    s = n + 1
    for i, j in ndrange(n, a.shape[1]):
        a[i, j] = b[j, i] + s


@kernel
def total(v, out):
    for _ in range(1):
        s = 0
        for i in unordered(range(v.size)):
            s += v[i]
        out[0] = s


@kernel
def centre(out, x):
    for i in range(x.shape[0]):
        first = x[i, 0]
        s = float32(0)
        for j in unordered(range(x.shape[1])):
            s += x[i, j]
        for j in unordered(range(x.shape[1])):
            out[i, j] = x[i, j] - s / x.shape[1] + first


@kernel
def masked_sum(out, x, mask):
    for i in range(x.shape[0]):
        s = float32(0)
        for j in unordered(range(x.shape[1])):
            s += x[i, j] if mask[i, j] else 0.0
        out[i] = s


@kernel
def shifted(out, x):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = x[i, j] + 1


@kernel
def product(out, a, b):
    for i, j in ndrange(out.shape[0], out.shape[1]):
        out[i, j] = a[i, j] * b[j, i]


MATRIX = ArrayType(float32, 2, False)
PROGRAMS = {
    "scale": (scale, [("v", VECTOR), ("factor", NUMBER)], False),
    "scale_debug": (scale, [("v", VECTOR), ("factor", NUMBER)], True),
    "transposed": (transposed, [("a", STRIDED), ("b", STRIDED), ("n", INDEX)], False),
    "total": (total, [("v", VECTOR), ("out", VECTOR)], False),
    "centre": (centre, [("out", STRIDED), ("x", STRIDED)], False),
    "centre.cuda": (centre, [("out", STRIDED), ("x", STRIDED)], False),
    # vectorised: partial sums in lanes, a mask read as bytes
    "masked_sum": (masked_sum, [("out", VECTOR), ("x", MATRIX), ("mask", ArrayType(bool_, 2, False))], False),
    # once for arguments that overlap, once for those that don't
    "shifted": (shifted, [("out", MATRIX), ("x", MATRIX)], False),
    # tiles in shared memory
    "product.cuda": (product, [("out", STRIDED), ("a", STRIDED), ("b", STRIDED)], False),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_golden(name, request):
    k, params, debug = PROGRAMS[name]
    stem, _, target = name.partition(".")
    text = lower(k.source_text, params, target or "cpu", debug).text
    path = FOLDER / (f"{stem}.cu" if target else f"{stem}.c")
    if request.config.getoption("--update-golden", default=False):
        path.write_text(text)
    assert path.read_text() == text
