"""C text of a few programs, whole, so that a change of the emitter is seen in review."""

from pathlib import Path

import pytest

from pyarray.dtypes import float32, int64
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


PROGRAMS = {
    "scale": (scale, [("v", VECTOR), ("factor", NUMBER)], False),
    "scale_debug": (scale, [("v", VECTOR), ("factor", NUMBER)], True),
    "transposed": (transposed, [("a", STRIDED), ("b", STRIDED), ("n", INDEX)], False),
    "total": (total, [("v", VECTOR), ("out", VECTOR)], False),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_golden(name, request):
    k, params, debug = PROGRAMS[name]
    text = lower(k.source_text, params, "cpu", debug).text
    path = FOLDER / f"{name}.c"
    if request.config.getoption("--update-golden", default=False):
        path.write_text(text)
    assert path.read_text() == text
