"""Operators of narrow floats with literals, parameters, integers and bools: each operand is rounded to the narrow type
first, then the result, as NumPy does with float16 and ml_dtypes with the others."""

import operator

import numpy as np
import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st
from strategies import examples

import pyarray as pa
from pyarray.lang.parse import function_from_text

NARROW = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
KINDS = ("bool", "int8", "uint8", "int16", "int32", "uint32", "int64")
OPERATORS = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
    "!=": operator.ne,
}  # fmt: skip
FUNCTIONS = {"min": np.minimum, "max": np.maximum}
SIZE = 24

# of 32 bits: ml_dtypes rounds a double to float32 first, pyarray once
numbers = st.one_of(
    st.floats(-4, 4, allow_subnormal=False, width=32), st.floats(-3000, 3000, allow_subnormal=False, width=32),
    st.integers(-5000, 5000),
)  # fmt: skip


def _lines(operands):
    """A statement of each operator and operand, and the function that it is compared with."""
    for name in operands:
        for symbol, function in OPERATORS.items():
            yield f"h[i] {symbol} {name}", function, name
            yield f"{name} {symbol} h[i]", lambda x, y, function=function: function(y, x), name
        for call, function in FUNCTIONS.items():
            yield f"{call}(h[i], {name})", function, name
        yield f"h[i] if h[i] < {name} else {name}", _lesser, name


def _lesser(x, y):
    return np.where(x < y, x, y)


@pytest.mark.parametrize("dtype", NARROW)
@given(st.data())
@examples(8, phases=(Phase.explicit, Phase.reuse, Phase.generate))  # a simpler case takes minutes of compilation
def test_operators_round_their_operands(device, dtype, data):
    narrow = np.dtype(getattr(pa, dtype))
    random = np.random.default_rng(data.draw(st.integers(0, 1 << 30), label="seed"))
    x = (random.normal(size=SIZE) * 10.0 ** random.integers(-2, 4, SIZE)).astype(narrow)
    literal, parameter = data.draw(numbers, label="literal"), data.draw(numbers, label="parameter")
    kind = data.draw(st.sampled_from(KINDS), label="elements")
    low, high = (0, 1) if kind == "bool" else (np.iinfo(kind).min, np.iinfo(kind).max)
    elements = random.integers(max(low, -5000), min(high, 5000), SIZE, endpoint=True).astype(kind)
    with np.errstate(all="ignore"):  # some operands are equal when they are rounded
        x[:5] = np.array([literal, parameter, *elements[2:5]]).astype(narrow)
    operands = {f"({literal!r})": literal, "c": parameter, "v[i]": elements}
    lines = list(_lines(operands))
    head = f"def k(out, h, v, c: {type(parameter).__name__}):\n    for i in range({SIZE}):\n"
    body = "".join(f"        out[{row}, i] = {text}\n" for row, (text, *_) in enumerate(lines))
    kernel = pa.kernel(function_from_text("k", head + body, {}))
    out = pa.zeros((len(lines), SIZE), dtype=dtype, device=device)
    kernel(out, pa.asarray(x, device=device), pa.asarray(elements, device=device), parameter)
    found = pa.asnumpy(out).astype(np.float64)
    for row, (text, function, name) in enumerate(lines):
        with np.errstate(all="ignore"):
            other = np.broadcast_to(np.asarray(operands[name]).astype(narrow), SIZE)
            expected = np.asarray(function(x, other)).astype(narrow).astype(np.float64)
        np.testing.assert_array_equal(found[row], expected, err_msg=text)
