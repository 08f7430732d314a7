"""The best alignment of two sequences (Needleman and Wunsch, Journal of Molecular Biology 48, 1970).

A score depends on those above, to the left and between; so all scores of an antidiagonal are found at the same time.
One of the Rodinia benchmarks, and of Numba's examples.

    python docs/examples/needleman_wunsch.py --picture needleman_wunsch.png
"""

import argparse

import numpy as np

import pyarray as pa

MATCH, MISMATCH, GAP = 1, -1, -2


@pa.kernel
def edges(score):
    for i in range(score.shape[0]):
        score[i, 0] = i * GAP
    for j in range(score.shape[1]):
        score[0, j] = j * GAP


@pa.kernel
def diagonal(score, a, b, d: int):
    """The scores (i, j) with i + j = d."""
    for i in range(max(1, d - b.size), min(a.size, d - 1) + 1):
        j = d - i
        matched = score[i - 1, j - 1] + (MATCH if a[i - 1] == b[j - 1] else MISMATCH)
        score[i, j] = max(matched, score[i - 1, j] + GAP, score[i, j - 1] + GAP)


def scores(a, b, device=None):
    a, b = (pa.asarray(np.frombuffer(s.encode(), np.uint8).copy(), device=device) for s in (a, b))
    score = pa.empty((a.size + 1, b.size + 1), dtype=pa.int32, device=device)
    edges(score)
    for d in range(2, a.size + b.size + 1):
        diagonal(score, a, b, d)
    return pa.asnumpy(score)


def align(a, b, score):
    """Both sequences with gaps, from the last score back, and the path."""
    i, j = len(a), len(b)
    top, low, path = "", "", [(i, j)]
    while i or j:
        if i and j and score[i, j] == score[i - 1, j - 1] + (MATCH if a[i - 1] == b[j - 1] else MISMATCH):
            i, j = i - 1, j - 1
            top, low = a[i] + top, b[j] + low
        elif i and score[i, j] == score[i - 1, j] + GAP:
            i -= 1
            top, low = a[i] + top, "-" + low
        else:
            j -= 1
            top, low = "-" + top, b[j] + low
        path.append((i, j))
    return top, low, np.array(path)


def reference(a, b):
    """Row by row: matches and gaps above at once, then gaps from the left by a running maximum."""
    a, b = (np.frombuffer(s.encode(), np.uint8) for s in (a, b))
    slope = GAP * np.arange(len(b) + 1)
    rows = [slope]
    for i, letter in enumerate(a):
        best = np.append(
            (i + 1) * GAP, np.maximum(rows[i][:-1] + np.where(b == letter, MATCH, MISMATCH), rows[i][1:] + GAP)
        )
        rows.append(np.maximum.accumulate(best - slope) + slope)
    return np.stack(rows)


def sequences(size):
    """A sequence, and one that came from it by changes, losses and gains."""
    rng = np.random.default_rng(8)
    a = "".join(rng.choice(list("ACGT"), size))
    b = "".join(rng.choice(["", x, x, x, x, x, "A", x + "G"]) for x in a)
    return a, b


def check(device=None):
    for a, b in (sequences(60), ("G", "ACGT"), ("GATTACA", "GCATGCU")):
        score = scores(a, b, device)
        np.testing.assert_array_equal(score, reference(a, b))
        top, low, _ = align(a, b, score)
        value = sum(
            GAP if "-" in pair else MATCH if pair[0] == pair[1] else MISMATCH for pair in zip(top, low, strict=True)
        )
        assert (value, top.replace("-", ""), low.replace("-", "")) == (score[-1, -1], a, b)


def draw(path, device=None):
    from matplotlib import pyplot as plt

    a, b = sequences(150)
    score = scores(a, b, device)
    _, _, way = align(a, b, score)
    figure, plot = plt.subplots(figsize=(3.4, 3), layout="constrained")
    plot.imshow(score, cmap="viridis")
    plot.plot(way[:, 1], way[:, 0], color="white", linewidth=1)
    plot.set(xticks=[], yticks=[])
    figure.savefig(path, dpi=72)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", help="cpu, cuda:0 …")
    parser.add_argument("--picture", metavar="FILE.png")
    options = parser.parse_args()
    check(options.device)
    a, b = sequences(60)
    print(*align(a, b, scores(a, b, options.device))[:2], sep="\n")
    if options.picture:
        draw(options.picture, options.device)


if __name__ == "__main__":
    main()
