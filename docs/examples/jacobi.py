"""The temperature of a plate whose edges are held: Laplace's equation by Jacobi's iteration.

Each point becomes the mean of its four neighbours until nothing changes much. The example of Numba's CUDA
documentation, of NVIDIA's OpenACC courses and of Taichi's tutorials.

    python docs/examples/jacobi.py --picture jacobi.png
"""

import argparse

import numpy as np

import pyarray as pa


@pa.kernel
def sweep(new, old, change):
    """A step of the inner points; `change` is how far the furthest one moved."""
    largest = 0.0
    for i in range(1, old.shape[0] - 1):
        for j in pa.unordered(range(1, old.shape[1] - 1)):
            mean = (old[i - 1, j] + old[i + 1, j] + old[i, j - 1] + old[i, j + 1]) / 4
            largest = max(largest, abs(mean - old[i, j]))
            new[i, j] = mean
    change[0] = largest


def relax(plate, tolerance, device=None):
    """The plate at rest and the number of sweeps. The host looks at the change now and then."""
    old = pa.asarray(plate, copy=True, device=device)
    new, change = pa.asarray(old, copy=True), pa.full(1, np.inf, device=device)
    sweeps = 0
    while float(change[0]) > tolerance:
        for _ in range(50):
            sweep(new, old, change)
            old, new = new, old
        sweeps += 50
    return pa.asnumpy(old), sweeps


def reference(plate, sweeps):
    old = plate.copy()
    for _ in range(sweeps):
        new = old.copy()
        new[1:-1, 1:-1] = (old[:-2, 1:-1] + old[2:, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:]) / 4
        old = new
    return old


def heated(size):
    """Hot above, cold below, in between at the sides."""
    plate = np.zeros((size, size))
    plate[0] = np.sin(np.linspace(0, 3 * np.pi, size)) ** 2
    plate[:, 0] = plate[:, -1] = np.linspace(0, 0.4, size)[::-1]
    return plate


def check(device=None):
    plate, sweeps = relax(heated(24), 1e-5, device)
    np.testing.assert_allclose(plate, reference(heated(24), sweeps), atol=1e-13)
    inner = plate[1:-1, 1:-1]
    around = (plate[:-2, 1:-1] + plate[2:, 1:-1] + plate[1:-1, :-2] + plate[1:-1, 2:]) / 4
    assert abs(inner - around).max() < 1e-5


def draw(path, device=None):
    from matplotlib import pyplot as plt

    plate, _ = relax(heated(128), 1e-5, device)
    figure, plot = plt.subplots(figsize=(3.6, 3), layout="constrained")
    image = plot.contourf(plate[::-1], 24, cmap="inferno")
    figure.colorbar(image, label="temperature")
    plot.set(aspect="equal", xticks=[], yticks=[])
    figure.savefig(path, dpi=72)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", help="cpu, cuda:0 …")
    parser.add_argument("--picture", metavar="FILE.png")
    options = parser.parse_args()
    check(options.device)
    _, sweeps = relax(heated(64), 1e-6, options.device)
    print(f"a plate of 64 by 64 points rests after {sweeps} sweeps")
    if options.picture:
        draw(options.picture, options.device)


if __name__ == "__main__":
    main()
