"""Two substances that feed on each other and spread draw patterns: the equations of Gray and Scott.

Pearson, "Complex patterns in a simple system" (Science 261, 1993), has the map of what feeds and kills give.

    python docs/examples/gray_scott.py --picture gray_scott.png
"""

import argparse
from dataclasses import dataclass

import numpy as np

import pyarray as pa


@dataclass
class Recipe:
    feed: float = 0.0545
    kill: float = 0.062
    spread_u: float = 0.16
    spread_v: float = 0.08


@pa.kernel
def react(new_u, new_v, u, v, recipe: Recipe):
    """What leaves at one side comes in at the other. The elements of a row may be computed in any order."""
    height, width = u.shape
    for i in range(height):
        up, down = i - 1 if i > 0 else height - 1, i + 1 if i + 1 < height else 0
        for j in pa.unordered(range(width)):
            left, right = j - 1 if j > 0 else width - 1, j + 1 if j + 1 < width else 0
            eaten = u[i, j] * v[i, j] ** 2
            spread_u = recipe.spread_u * (u[up, j] + u[down, j] + u[i, left] + u[i, right] - 4 * u[i, j])
            spread_v = recipe.spread_v * (v[up, j] + v[down, j] + v[i, left] + v[i, right] - 4 * v[i, j])
            new_u[i, j] = u[i, j] + spread_u - eaten + recipe.feed * (1 - u[i, j])
            new_v[i, j] = v[i, j] + spread_v + eaten - (recipe.feed + recipe.kill) * v[i, j]


def grow(u, v, steps, recipe, device=None):
    u, v = (pa.asarray(a, dtype=pa.float32, copy=True, device=device) for a in (u, v))
    new_u, new_v = pa.empty_like(u), pa.empty_like(v)
    for _ in range(steps):
        react(new_u, new_v, u, v, recipe)
        u, v, new_u, new_v = new_u, new_v, u, v
    return pa.asnumpy(u), pa.asnumpy(v)


def reference(u, v, steps, recipe):
    def spread(a):
        return sum(np.roll(a, shift, axis) for shift in (-1, 1) for axis in (0, 1)) - 4 * a

    for _ in range(steps):
        eaten = u * v**2
        u, v = (
            u + recipe.spread_u * spread(u) - eaten + recipe.feed * (1 - u),
            v + recipe.spread_v * spread(v) + eaten - (recipe.feed + recipe.kill) * v,
        )
    return u, v


def seeds(size, count):
    """Drops of the second substance in the first."""
    rng = np.random.default_rng(11)
    u, v = np.ones((size, size)), np.zeros((size, size))
    for i, j in rng.integers(0, size - 6, (count, 2)):
        u[i : i + 6, j : j + 6], v[i : i + 6, j : j + 6] = 0.5, 0.25
    return u, v


def check(device=None):
    u, v = grow(*seeds(32, 3), 100, Recipe(), device)
    expected = reference(*seeds(32, 3), 100, Recipe())
    np.testing.assert_allclose(u, expected[0], atol=1e-4)
    np.testing.assert_allclose(v, expected[1], atol=1e-4)


def draw(path, device=None):
    from matplotlib import pyplot as plt

    _, v = grow(*seeds(200, 30), 5000, Recipe(), device)
    plt.imsave(path, v, cmap="ocean_r")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", help="cpu, cuda:0 …")
    parser.add_argument("--picture", metavar="FILE.png")
    options = parser.parse_args()
    check(options.device)
    print("a hundred steps are those of NumPy")
    if options.picture:
        draw(options.picture, options.device)


if __name__ == "__main__":
    main()
