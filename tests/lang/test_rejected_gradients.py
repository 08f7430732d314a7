"""One program per message: kernels whose gradient would be wrong, and what the user is told."""

import math

import pytest

import pyarray as pa
from pyarray.errors import CompileError
from pyarray.jit.kernel import from_text

SETUP = "def k(v, y, c, n):\n    for i in range(n):\n        {}\n"

# Statements of a kernel's loop, `c` being an array of integers, → part of the message; None: it has a gradient.
STATEMENTS = {
    "y[i] = v[i] * v[i]": None,
    "v[i] = math.sin(v[i])": "needs this element of 'v' as it is read here, and line 3 overwrites it",
    "y[i] = v[i] * y[i]": "needs this element of 'y' as it is read here, and line 3 overwrites it",
    "y[i] = 2 * y[i] + v[i]": None,
    "y[c[i]] = v[i]": "two iterations may store into one element of 'y': its index isn't shown to tell 'i'",
    "y[i // 2] = v[i]": "two iterations may store into one element of 'y'",
    "y[n - 1 - i] = v[i]": None,
    "y[i] = y[i + 1] + v[i]": "an iteration may read or update an element of 'y' that another one stores in line 3",
    "pa.atomic_add(y, c[i], v[i])": None,
    "pa.atomic_add(y, 0, v[i] + y[i])": "iterations read 'y' here, and others may add to it",
    "y[pa.atomic_add(c, 0, 1)] = v[i]": "two iterations may store into one element of 'y'",
    "y[i] = pa.atomic_add(c, 0, 1) * v[i]": "the gradient needs the value that an atomic found",
    "y[i] = pa.atomic_add(v, 0, 1.0)": "no gradient flows through the value before an atomic",
    "pa.atomic_max(y, 0, v[i])": "atomic_max() has no gradient",
    "y[0] = max(y[0], v[i])": "has no gradient: it keeps no note of whose value it is",
    "y[i] = abs(v[i] * 1j)": "abs() has no derivative of complex numbers",
    "y[i] = (v[i].view(pa.int64) + 1).view(pa.float64)": "no gradient flows through the bits of a number",
    "y[i] = math.gamma(v[i])": "tgamma() has no derivative here",
    "s = v[i]\n        while s > 0.1: s = s * s / 2\n        y[i] = s": "needs 's' as it was in each iteration",
    "s = v[i]\n        for j in range(n): s = math.sin(s)\n        y[i] = s": "needs 's' as it was in each iteration",
    "s = v[i]\n        for j in range(4000): s = math.sin(s)\n        y[i] = s": "needs 's' as it was in each",
    "s = v[i]\n        for j in range(100): s = math.sin(s)\n        y[i] = s": None,
    "for k in range(5): y[3 * i + k] = v[0]\n        for k in range(3): y[3 * i + k] = v[1]": "two iterations may",
    "if pa.uint8(i) == 0: y[0] = v[i]": "two iterations may store into one element of 'y'",
    "if i == 0: y[0] = v[i]": None,
    "row = v if n > 2 else y\n        y[i] = row[i]": "which array this is a view of depends on a condition",
}


# Calls that are refused, by `k` whose loop has `y[i] = v[i] * v[i]` and a `tuned` kernel, → part of the message.
CALLS = {
    "tuned.grad(v, y, c, 3, grad_v=g, grad_y=h)": "the tuned kernel 'tuned' has no gradient",
    "k.grad.grad(v, y, c, 3, grad_v=g, grad_y=h)": "kernels have first derivatives alone",
    "k.grad(v, y, c, 3, grad_n=g)": "grad_n",
    "k.grad(v, y, c, 3, grad_v=g[:2], grad_y=h)": "pass one of the same shape",
    "k.grad(v, y, c, 3, grad_v=g, grad_y=g)": "their gradients would be wrong; pass a copy",
    "k.grad(v, y, c, 3, grad_v=pa.broadcast_to(g[:1], (4,)), grad_y=h)": "each would be written more than once",
}


def call(text):
    """Makes one of `CALLS`."""
    k = from_text("k", SETUP.format("y[i] = v[i] * v[i]"), {"math": math, "pa": pa})
    text_of_tuned = SETUP.replace("k(", "tuned(").replace("n)", "n, b: pa.constexpr)", 1)
    plain = from_text("tuned", text_of_tuned.format("y[i] = v[i]"), {"pa": pa})
    tuned = pa.autotune(configs=[pa.Config(b=1), pa.Config(b=2)])(plain)
    arrays = {name: pa.ones(4) for name in "vygh"}
    eval(text, {"k": k, "tuned": tuned, "pa": pa, "c": pa.zeros(4, dtype=pa.int64), **arrays})


@pytest.mark.parametrize("text", CALLS)
def test_refused_calls(text):
    with pytest.raises((TypeError, ValueError)) as caught:
        call(text)
    assert CALLS[text] in str(caught.value)


def launch(statement):
    """Launches the adjoint of the program."""
    k = from_text("k", SETUP.format(statement), {"math": math, "pa": pa})
    grads = {"grad_v": pa.zeros(4), "grad_y": pa.zeros(4)}
    k.grad(pa.ones(4), pa.ones(4), pa.zeros(4, dtype=pa.int64), 3, **grads)


@pytest.mark.parametrize("statement", [s for s, expected in STATEMENTS.items() if expected])
def test_refused(statement):
    with pytest.raises(CompileError) as caught:
        launch(statement)
    message = str(caught.value).split("\n")
    assert STATEMENTS[statement] in message[0]
    assert message[1].strip() in SETUP.format(statement)
    assert "^" in message[2]
    assert message[3]


@pytest.mark.parametrize("statement", [s for s, expected in STATEMENTS.items() if not expected])
def test_taken(statement):
    launch(statement)


def test_the_mantissa_is_refused_too():
    """`frexp` takes it from the number's bits, in a function of the library, whose line the message shows."""
    k = from_text("k", SETUP.format("y[i] = math.frexp(v[i])[0]"), {"math": math})
    with pytest.raises(CompileError, match="no gradient flows through the bits of a number"):
        k.grad(pa.ones(4), pa.ones(4), pa.zeros(4, dtype=pa.int64), 3, grad_v=pa.zeros(4), grad_y=pa.zeros(4))
