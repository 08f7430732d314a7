"""Products, softmax, layer normalization and attention, in tiles.

Each iteration of a loop over tiles works on blocks of arrays, as in Triton; the texts are those of NumPy on slices.

    python docs/examples/tiles.py
"""

import argparse
import math

import numpy as np

import pyarray as pa

M = pa.ndarray[pa.float32, 2]
V = pa.ndarray[pa.float32, 1]
Heads = pa.ndarray[pa.float32, 3]  # head, position, feature


@pa.kernel
def gemm(c: M, a: M, b: M, rows: pa.constexpr, columns: pa.constexpr, depth: pa.constexpr):
    for i, j in pa.tiles(c, (rows, columns)):
        total = pa.zeros((i, j), pa.float32)
        for k in pa.tiles(a.shape[1], depth):
            total += a[i, k] @ b[k, j]
        c[i, j] = total


@pa.kernel
def softmax(y: M, x: M, columns: pa.constexpr):
    for i in pa.tiles(x.shape[0], 1):
        (j,) = pa.tiles(x.shape[1], columns)
        t = x[i, j]
        e = pa.exp(t - t.max(axis=1, keepdims=True))
        y[i, j] = e * (1 / e.sum(axis=1, keepdims=True))


@pa.kernel
def layer_norm(y: M, x: M, weight: V, bias: V, epsilon: float, columns: pa.constexpr):
    for i in pa.tiles(x.shape[0], 1):
        (j,) = pa.tiles(x.shape[1], columns)
        t = x[i, j]
        d = t - t.mean(axis=1, keepdims=True)
        deviation = pa.sqrt((d * d).mean(axis=1, keepdims=True) + epsilon)
        y[i, j] = d * (1 / deviation) * weight[j] + bias[j]


@pa.kernel
def attend(out: Heads, q: Heads, k: Heads, v: Heads, causal: bool, rows: pa.constexpr, width: pa.constexpr):
    """softmax(q kᵀ) v with a running maximum and a running sum, as FlashAttention has it."""
    heads, queries, features = q.shape
    for h, i in pa.tiles((heads, queries), (1, rows)):
        (d,) = pa.tiles(features, width)
        head = h.start
        query = q[head, i, d] / pa.float32(math.sqrt(features))
        top = pa.full(i, -1e30, pa.float32)
        total = pa.zeros(i, pa.float32)
        mixed = pa.zeros((i, d), pa.float32)
        for j in pa.tiles(i.stop if causal else k.shape[1], rows):
            score = query @ k[head, j, d].T
            if causal:
                score = pa.where(i[:, None] >= j, score, -1e30)
            best = pa.maximum(top, score.max(axis=1))
            weight = pa.exp(score - best[:, None])
            shrink = pa.exp(top - best)
            total = total * shrink + weight.sum(axis=1)
            mixed = mixed * shrink[:, None]
            mixed += weight @ v[head, j, d]
            top = best
        out[head, i, d] = mixed / total[:, None]


def on(device, *arrays):
    return [pa.asarray(a, dtype=pa.float32, device=device) for a in arrays]


def reference_attention(q, k, v, causal):
    scores = np.einsum("hid,hjd->hij", q, k) / np.sqrt(q.shape[-1])
    if causal:
        scores = np.where(np.tri(*scores.shape[1:], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("hij,hjd->hid", weights / weights.sum(-1, keepdims=True), v)


def check(device=None):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(50, 30)), rng.normal(size=(30, 70))
    c, at, bt = on(device, np.zeros((50, 70)), a, b)
    gemm(c, at, bt, 16, 32, 8)
    np.testing.assert_allclose(pa.asnumpy(c), a @ b, atol=1e-4)

    x, weight, bias = rng.normal(3, 2, (20, 100)), rng.normal(size=100), rng.normal(size=100)
    y, *rest = on(device, np.zeros_like(x), x, weight, bias)
    softmax(y, rest[0], 128)
    weights = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(pa.asnumpy(y), weights / weights.sum(1, keepdims=True), atol=1e-6)
    layer_norm(y, *rest, 1e-5, 128)
    normal = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(pa.asnumpy(y), normal * weight + bias, atol=1e-4)

    q, k, v = rng.normal(size=(3, 2, 37, 12))
    for causal in (False, True):
        out, *rest = on(device, np.zeros_like(q), q, k, v)
        attend(out, *rest, causal, 16, 16)
        np.testing.assert_allclose(pa.asnumpy(out), reference_attention(q, k, v, causal), atol=1e-5)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", help="cpu, cuda:0 …")
    options = parser.parse_args()
    check(options.device)
    print("products, softmax, normalized rows and attention are those of NumPy")


if __name__ == "__main__":
    main()
