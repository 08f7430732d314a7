"""Points in k groups around their means (Lloyd's algorithm; IEEE Transactions on Information Theory 28, 1982).

Each iteration is one launch of two parallel loops. Sums go through atomics, whose order is open: they are of integers,
in steps of 2**-20, so that the result is the same on every device and in every run.

    python docs/examples/kmeans.py --picture kmeans.png
"""

import argparse

import numpy as np

import pyarray as pa

Points = pa.ndarray[pa.float64, (None, 2)]
UNIT = 2.0**20


@pa.kernel
def iterate(labels, means: Points, sums, counts, points: Points):
    for i in range(points.shape[0]):
        nearest, best = 0, pa.inf
        for k in range(means.shape[0]):
            d = points[i] - means[k]
            if d @ d < best:
                nearest, best = k, d @ d
        labels[i] = nearest
        pa.atomic_add(counts, nearest, 1)
        for axis in range(2):
            pa.atomic_add(sums, (nearest, axis), pa.int64(points[i, axis] * UNIT + 0.5))
    for k in range(means.shape[0]):
        if counts[k] > 0:
            means[k] = pa.array([sums[k, 0], sums[k, 1]]) / (UNIT * counts[k])
        counts[k], sums[k, 0], sums[k, 1] = 0, 0, 0


def cluster(points, means, iterations, device=None):
    points, means = (pa.asarray(a, dtype=pa.float64, copy=True, device=device) for a in (points, means))
    n, k = points.shape[0], means.shape[0]
    labels = pa.zeros(n, dtype=pa.int32, device=device)
    sums, counts = (pa.zeros(shape, dtype=pa.int64, device=device) for shape in ((k, 2), k))
    for _ in range(iterations):
        iterate(labels, means, sums, counts, points)
    return pa.asnumpy(labels), pa.asnumpy(means)


def reference(points, means, iterations):
    for _ in range(iterations):
        labels = ((points[:, None] - means) ** 2).sum(-1).argmin(1)
        means = np.stack([points[labels == k].mean(0) if any(labels == k) else means[k] for k in range(len(means))])
    return labels, means


def blobs(count, groups):
    rng = np.random.default_rng(4)
    middles = rng.uniform(-4, 4, (groups, 2))
    return middles[rng.integers(0, groups, count)] + rng.normal(0, 0.7, (count, 2))


def check(device=None):
    points = blobs(900, 6)
    labels, means = cluster(points, points[:6], 12, device)
    expected = reference(points, points[:6], 12)
    np.testing.assert_array_equal(labels, expected[0])
    np.testing.assert_allclose(means, expected[1], atol=1e-6)


def draw(path, device=None):
    from matplotlib import pyplot as plt

    points = blobs(1500, 7)
    labels, means = cluster(points, points[:7], 40, device)
    figure, plot = plt.subplots(figsize=(4, 3), layout="constrained")
    plot.scatter(*points.T, s=1.5, c=labels, cmap="tab10")
    plot.scatter(*means.T, s=60, c="black", marker="+")
    plot.set(xticks=[], yticks=[])
    figure.savefig(path, dpi=72)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", help="cpu, cuda:0 …")
    parser.add_argument("--picture", metavar="FILE.png")
    options = parser.parse_args()
    check(options.device)
    print("labels and means are those of NumPy")
    if options.picture:
        draw(options.picture, options.device)


if __name__ == "__main__":
    main()
