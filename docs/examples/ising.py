"""A magnet of spins that heat shakes: the Ising model by Metropolis's algorithm, on a checkerboard.

Spins of one color have neighbours of the other alone, so all of a color may turn at the same time (Preis et al.,
Journal of Computational Physics 228, 2009). Below the temperature 2 / ln(1 + √2) the magnet is one by itself; how
strong it is, Onsager and Yang found (Physical Review 85, 1952).

    python docs/examples/ising.py --picture ising.png
"""

import argparse
import math

import numpy as np

import pyarray as pa

CRITICAL = 2 / math.log(1 + math.sqrt(2))


@pa.kernel
def sweep(spins, color: int, temperature: float, seed: int, number: int):
    """Every spin of one color turns where that saves energy, and by chance where it costs some."""
    n = spins.shape[0]
    for i, half in pa.ndrange(n, n // 2):
        j = 2 * half + (i + color) % 2
        around = spins[(i + 1) % n, j] + spins[(i + n - 1) % n, j] + spins[i, (j + 1) % n] + spins[i, (j + n - 1) % n]
        cost = 2 * spins[i, j] * around
        rng = pa.rng(seed, i * n + j, number)
        if rng.uniform() < math.exp(-cost / temperature):
            spins[i, j] = -spins[i, j]


def magnet(n, temperature, sweeps, device=None):
    """All spins up, and then so many sweeps over both colors. `number` tells the draws of a spin apart."""
    spins = pa.ones((n, n), dtype=pa.int32, device=device)
    for number in range(sweeps):
        for color in range(2):
            sweep(spins, color, temperature, 2026, number)
    return pa.asnumpy(spins)


def reference(n, temperature, sweeps):
    """With the same random numbers: the generator of the host gives those of kernels."""
    spins = np.ones((n, n), np.int32)
    i, j = np.mgrid[:n, :n]
    for number in range(sweeps):
        chance = np.array([pa.rng(2026, k, number).uniform() for k in range(n * n)]).reshape(n, n)
        for color in range(2):
            around = sum(np.roll(spins, shift, axis) for shift in (-1, 1) for axis in (0, 1))
            turns = ((i + j) % 2 == color) & (chance < np.exp(-2.0 * spins * around / temperature))
            spins = np.where(turns, -spins, spins)
    return spins


def strength(temperature):
    """Of an endless magnet."""
    return (1 - math.sinh(2 / temperature) ** -4) ** (1 / 8)


def check(device=None):
    np.testing.assert_array_equal(magnet(12, 2.0, 5, device), reference(12, 2.0, 5))
    assert abs(magnet(128, 1.5, 60, device).mean() - strength(1.5)) < 0.01


def draw(path, device=None):
    from matplotlib import pyplot as plt

    temperatures = (0.9 * CRITICAL, CRITICAL, 1.4 * CRITICAL)
    plt.imsave(path, np.hstack([magnet(128, t, 800, device) for t in temperatures]), cmap="cividis")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", help="cpu, cuda:0 …")
    parser.add_argument("--picture", metavar="FILE.png")
    options = parser.parse_args()
    check(options.device)
    for t in (1.5, 1.8, 2.1):
        print(f"temperature {t}: {magnet(512, t, 200, options.device).mean():.3f} by sweeps, {strength(t):.3f} by Yang")
    if options.picture:
        draw(options.picture, options.device)


if __name__ == "__main__":
    main()
