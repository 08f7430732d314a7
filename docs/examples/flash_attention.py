"""Attention without its matrix of weights: softmax(q kᵀ) v with a running maximum and a running sum.

Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018), is the idea; Dao et al., "FlashAttention"
(2022), and Triton's tutorial work on tiles, where this has one thread per query.

    python docs/examples/flash_attention.py
"""

import argparse
import math

import numpy as np

import pyarray as pa

WIDTH = 32  # of a head
Head = pa.ndarray[pa.float32, (None, None, WIDTH)]  # head, position, feature


@pa.kernel
def attend(out: Head, q: Head, k: Head, v: Head, causal: bool):
    heads, queries, _ = q.shape
    for head, i in pa.ndrange(heads, queries):
        query = q[head, i] / math.sqrt(WIDTH)
        top, total = pa.float32(-math.inf), pa.float32(0)
        mixed = pa.zeros(WIDTH, dtype=pa.float32)
        for j in range(i + 1 if causal else k.shape[1]):
            score = query @ k[head, j]
            if score > top:  # what was added so far was relative to a smaller one
                shrink = math.exp(top - score)
                total *= shrink
                mixed *= shrink
                top = score
            weight = math.exp(score - top)
            total += weight
            mixed += weight * v[head, j]
        out[head, i] = mixed / total


def attention(q, k, v, causal, device=None):
    q, k, v = (pa.asarray(a, dtype=pa.float32, device=device) for a in (q, k, v))
    out = pa.empty_like(q)
    attend(out, q, k, v, causal)
    return pa.asnumpy(out)


def reference(q, k, v, causal):
    scores = np.einsum("hid,hjd->hij", q, k) / np.sqrt(WIDTH)
    if causal:
        scores = np.where(np.tri(*scores.shape[1:], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("hij,hjd->hid", weights / weights.sum(-1, keepdims=True), v)


def check(device=None):
    rng = np.random.default_rng(0)
    q, k, v = rng.normal(0, 2, (3, 2, 70, WIDTH))
    for causal in (False, True):
        np.testing.assert_allclose(attention(q, k, v, causal, device), reference(q, k, v, causal), atol=1e-5)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", help="cpu, cuda:0 …")
    options = parser.parse_args()
    check(options.device)
    print("attention is that of NumPy, without a matrix of weights")


if __name__ == "__main__":
    main()
