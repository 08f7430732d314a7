"""`pa.torch.op(..., backward=kernel.grad)`: autograd by a kernel's adjoint."""

import math

import pytest

import pyarray as pa

torch = pytest.importorskip("torch")
F64 = pa.ndarray[pa.float64, 1]


@pa.kernel
def mixed(x: F64, w: F64, a: float, at: pa.ndarray[pa.int64, 1], y: F64, z: F64):
    for i in range(x.size):
        s = 0.0
        for j in range(w.size):
            s += math.tanh(x[i] * w[j]) * a
        y[i] = s * x[i]
        pa.atomic_add(z, at[i], s)


@pa.kernel
def other(x: F64, y: F64):
    for i in range(x.size):
        y[i] = x[i] ** 3


def new_op(name):
    out = {"y": "x", "z": lambda x, w, a, at: x.new_zeros(2)}
    return pa.torch.op(mixed, f"gradients::{name}", out=out, backward=mixed.grad)


def operands():
    generator = torch.Generator().manual_seed(0)
    x, w = (torch.randn(n, dtype=torch.float64, generator=generator).requires_grad_() for n in (5, 3))
    return x, w, 0.7, torch.tensor([0, 1, 1, 0, 1])


def test_gradcheck():
    f, (x, w, a, at) = new_op("checked"), operands()
    assert torch.autograd.gradcheck(lambda x, w: f(x, w, a, at), (x, w))
    assert torch.autograd.gradcheck(lambda x: f(x, w.detach(), a, at)[1], (x,))


def test_gradients_that_come_are_not_changed():
    """NVIDIA/warp#1732: a second backward, or one with the same tensor of gradients, gave zeros."""
    f, (x, w, a, at) = new_op("twice"), operands()
    y, _ = f(x, w, a, at)
    ones = torch.ones_like(y)
    first = torch.autograd.grad(y, (x, w), ones, retain_graph=True)
    again = torch.autograd.grad(y, (x, w), ones)
    assert all(map(torch.equal, first, again))
    assert ones.tolist() == [1] * 5


def test_compiled():
    f, (x, w, a, at) = new_op("compiled"), operands()

    def loss(x, w):
        y, z = f(x, w, a, at)
        return (y * y).sum() + z.prod()

    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    expected = torch.autograd.grad(loss(x, w), (x, w))
    for got, e in zip(torch.autograd.grad(compiled(x, w), (x, w)), expected, strict=True):
        torch.testing.assert_close(got, e)
    torch.library.opcheck(f, (x, w, a, at))


def test_values_that_were_changed_are_noticed():
    """NVIDIA/warp#1350: a backward of values that had changed meanwhile."""
    f = pa.torch.op(other, "gradients::changed", out={"y": "x"}, backward=other.grad)
    x = torch.ones(3, dtype=torch.float64, requires_grad=True)
    b = x * 1
    y = f(b)
    b.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_the_gradient_of_another_kernel():
    with pytest.raises(ValueError, match="gradient of another kernel, 'mixed'"):
        pa.torch.op(other, "gradients::wrong", out={"y": "x"}, backward=mixed.grad)


def test_a_refused_gradient():
    @pa.kernel
    def scatter(x: F64, at: pa.ndarray[pa.int64, 1], y: F64):
        for i in range(x.size):
            y[at[i]] = x[i]

    with pytest.raises(pa.CompileError, match="two iterations may store into one element of 'y'"):
        pa.torch.op(scatter, "gradients::refused", out={"y": "x"}, backward=scatter.grad)


def test_rows_of_declared_size():
    @pa.kernel
    def lengths(w: pa.ndarray[pa.float64, (None, 3)], y: pa.ndarray[pa.float64, 1], scale: float):
        for i in range(y.size):
            y[i] = w[i] @ w[i] * scale

    op = pa.torch.op(
        lengths, "tests::declared_lengths", out={"y": lambda w, scale: w.new_zeros(len(w))}, backward=lengths.grad
    )
    w = torch.rand(6, 3, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(op(w, 2.0), 2 * (w * w).sum(1))
    assert torch.autograd.gradcheck(lambda w: op(w[::2], 2.0), w)
