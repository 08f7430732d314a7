"""Sorting by digits: histograms of each chunk, running sums over them, and a stable scatter (LSD radix sort).

The scheme of Zagha and Blelloch, "Radix sort for vector multiprocessors" (Supercomputing 1991), and of most GPU sorts
since. `pa.sort` is there, too; this shows how one is made.

    python docs/examples/radix_sort.py
"""

import argparse

import numpy as np

import pyarray as pa

BITS = 8
DIGITS, CHUNK = 1 << BITS, 4096


@pa.func
def digit(key, shift):
    return int(key >> shift) & (DIGITS - 1)


@pa.kernel
def count(counts, keys: pa.BufferView[pa.uint32], shift: pa.uint32):
    """Keys of each chunk with each digit: counts[digit, chunk]."""
    for chunk in range(counts.shape[1]):
        own = pa.zeros(DIGITS, dtype=pa.int32)
        for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, keys.size)):
            own[digit(keys[i], shift)] += 1
        for d in range(DIGITS):
            counts[d, chunk] = own[d]


@pa.kernel
def scatter(out, keys: pa.BufferView[pa.uint32], places, shift: pa.uint32):
    """places[digit, chunk] is where the next key with that digit goes."""
    for chunk in range(places.shape[1]):
        for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, keys.size)):
            d = digit(keys[i], shift)
            out[places[d, chunk]] = keys[i]
            places[d, chunk] += 1


def sort(keys, device=None):
    keys = pa.asarray(keys, dtype=pa.uint32, copy=True, device=device)
    out = pa.empty_like(keys)
    counts = pa.empty((DIGITS, -(-keys.size // CHUNK)), dtype=pa.int64, device=device)
    for shift in range(0, 32, BITS):
        count(counts, keys, shift)
        places = pa.cumulative_sum(counts.reshape(-1), include_initial=True)[:-1]
        scatter(out, keys, places.reshape(counts.shape), shift)
        keys, out = out, keys
    return pa.asnumpy(keys)


def reference(keys):
    return np.sort(keys, kind="stable")


def check(device=None):
    rng = np.random.default_rng(6)
    for size in (1, CHUNK, 3 * CHUNK + 17):
        keys = rng.integers(0, 2**32, size, dtype=np.uint32)
        np.testing.assert_array_equal(sort(keys, device), reference(keys))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", help="cpu, cuda:0 …")
    parser.add_argument("--size", type=int, default=1_000_000)
    options = parser.parse_args()
    check(options.device)
    keys = np.random.default_rng(0).integers(0, 2**32, options.size, dtype=np.uint32)
    assert np.all(sort(keys, options.device) == reference(keys))
    print(f"{options.size} keys are in order")


if __name__ == "__main__":
    main()
