"""Kernels, and operators of torch made of them, for the tests."""

import pyarray as pa

F32, F64 = pa.float32, pa.float64


@pa.kernel
def scale(x: pa.BufferView[F32], factor: float, y: pa.BufferView[F32]):
    for i in range(y.size):
        y[i] = x[i] * factor


@pa.kernel
def scale_backward(grad_y: pa.BufferView[F32], factor: float, grad_x: pa.BufferView[F32]):
    for i in range(grad_x.size):
        grad_x[i] = grad_y[i] * factor


@pa.kernel
def affine(y, x, a, b):
    for i in range(y.size):
        y[i] = x[i] * a + b


@pa.kernel
def affine_2d(y, x, a, b):
    for i, j in pa.ndrange(y.shape[0], y.shape[1]):
        y[i, j] = x[i, j] * a + b


@pa.kernel
def affine_0d(y, x, a, b):
    y[()] = x[()] * a + b


@pa.kernel
def split(x: pa.ndarray[F64, 1], low: pa.ndarray[F64, 1], high: pa.ndarray[pa.int64, 1]):
    for i in range(low.size):
        low[i] = x[i] - math_floor(x[i])
    for i in range(high.size):
        high[i] = pa.int64(math_floor(x[i]))


@pa.func
def math_floor(x):
    return pa.floor(x)


@pa.kernel
def weighted(x: pa.ndarray[F64, 1], w: pa.ndarray[F64, 1], total: pa.ndarray[F64, 0], power: int = 1):
    for i in range(x.size):
        pa.atomic_add(total, (), x[i] ** power * w[i])


@pa.kernel
def weighted_backward(
    grad_total: pa.ndarray[F64, 0],
    x: pa.ndarray[F64, 1],
    w: pa.ndarray[F64, 1],
    grad_x: pa.ndarray[F64, 1],
    grad_w: pa.ndarray[F64, 1],
    power: int,
):
    for i in range(grad_x.size):
        grad_x[i] = grad_total[()] * w[i] * power * x[i] ** (power - 1)
    for i in range(grad_w.size):
        grad_w[i] = grad_total[()] * x[i] ** power


@pa.kernel
def masked(x: pa.ndarray[F32, 1], mask: pa.ndarray[pa.bool, 1] = None, shift: pa.float32 = 1.0):
    for i in range(x.size):
        if mask is None or mask[i]:
            x[i] += shift


@pa.autotune(configs=[pa.Config(TILE=1), pa.Config(TILE=2)])
@pa.kernel
def tuned(x: pa.BufferView[F32], y: pa.BufferView[F32], TILE: pa.constexpr):
    for i in range(y.size):
        y[i] = 3 * x[i] + 0 * TILE


scaled = pa.torch.op(scale, "tests::scaled", out={"y": "x"}, backward=scale_backward)
scale_into = pa.torch.op(scale, "tests::scale_into")
both = pa.torch.op(split, "tests::split", out={"high": "x", "low": "x"})
dot = pa.torch.op(
    weighted, "tests::dot", out={"total": lambda x, w, power=1: x.new_zeros(())}, backward=weighted_backward
)
add_masked = pa.torch.op(masked, "tests::masked")
tripled = pa.torch.op(tuned, "tests::tripled", out={"y": "x"})
