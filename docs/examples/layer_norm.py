"""Rows of mean 0 and variance 1, scaled and shifted: layer normalization, forwards and backwards.

Ba, Kiros and Hinton, "Layer Normalization" (2016); the example of Triton's tutorials. A row's inner loops are
unordered: vectors on CPUs, the threads of a block on GPUs.

    python docs/examples/layer_norm.py
"""

import argparse

import numpy as np

import pyarray as pa

M = pa.ndarray[pa.float32, 2]
V = pa.BufferView[pa.float32]
EPSILON = 1e-5


@pa.kernel
def forward(y: M, mean: V, scale: V, x: M, weight: V, bias: V):
    """`scale` is one over the standard deviation."""
    n = x.shape[1]
    for i in range(x.shape[0]):
        total = pa.float32(0)
        for j in pa.unordered(range(n)):
            total += x[i, j]
        middle = total / n
        square = pa.float32(0)
        for j in pa.unordered(range(n)):
            square += (x[i, j] - middle) ** 2
        by = 1 / pa.sqrt(square / n + EPSILON)
        for j in pa.unordered(range(n)):
            y[i, j] = (x[i, j] - middle) * by * weight[j] + bias[j]
        mean[i], scale[i] = middle, by


@pa.kernel
def backward(dx: M, dy: M, x: M, mean: V, scale: V, weight: V):
    n = x.shape[1]
    for i in range(x.shape[0]):
        along, total = pa.float32(0), pa.float32(0)
        for j in pa.unordered(range(n)):
            along += weight[j] * dy[i, j] * (x[i, j] - mean[i]) * scale[i]
            total += weight[j] * dy[i, j]
        for j in pa.unordered(range(n)):
            normal = (x[i, j] - mean[i]) * scale[i]
            dx[i, j] = (weight[j] * dy[i, j] - (normal * along + total) / n) * scale[i]


@pa.kernel
def backward_of_parameters(dweight: V, dbias: V, dy: M, x: M, mean: V, scale: V):
    for j in range(dweight.size):
        weight, bias = pa.float32(0), pa.float32(0)
        for i in range(x.shape[0]):
            weight += dy[i, j] * (x[i, j] - mean[i]) * scale[i]
            bias += dy[i, j]
        dweight[j], dbias[j] = weight, bias


def layer_norm(x, weight, bias, dy, device=None):
    """The result, and gradients of its product with `dy`."""
    x, weight, bias, dy = (pa.asarray(a, dtype=pa.float32, device=device) for a in (x, weight, bias, dy))
    y, dx, dweight, dbias = pa.empty_like(x), pa.empty_like(x), pa.empty_like(weight), pa.empty_like(bias)
    mean, scale = (pa.empty(x.shape[0], dtype=pa.float32, device=device) for _ in range(2))
    forward(y, mean, scale, x, weight, bias)
    backward(dx, dy, x, mean, scale, weight)
    backward_of_parameters(dweight, dbias, dy, x, mean, scale)
    return tuple(pa.asnumpy(a) for a in (y, dx, dweight, dbias))


def reference(x, weight, bias, dy):
    mean, scale = x.mean(1, keepdims=True), 1 / np.sqrt(x.var(1, keepdims=True) + EPSILON)
    normal = (x - mean) * scale
    wdy = weight * dy
    dx = (wdy - normal * (wdy * normal).mean(1, keepdims=True) - wdy.mean(1, keepdims=True)) * scale
    return normal * weight + bias, dx, (dy * normal).sum(0), dy.sum(0)


def check(device=None):
    rng = np.random.default_rng(2)
    for rows, columns in ((33, 200), (4, 1), (1, 513)):
        x, dy = rng.normal(3, 2, (2, rows, columns))
        weight, bias = rng.normal(size=(2, columns))
        for found, expected in zip(
            layer_norm(x, weight, bias, dy, device), reference(x, weight, bias, dy), strict=True
        ):
            np.testing.assert_allclose(found, expected, atol=3e-5 * max(1, abs(expected).max()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", help="cpu, cuda:0 …")
    options = parser.parse_args()
    check(options.device)
    print("results and gradients are those of NumPy")


if __name__ == "__main__":
    main()
