"""Air flows past a cylinder and leaves a street of vortices: the lattice Boltzmann method.

Nine densities at each point stand for particles that rest or move to a neighbour (D2Q9; Qian, d'Humières and
Lallemand, Europhysics Letters 17, 1992). Each step they collide and stream. Warp and Taichi have it in their galleries.

    python docs/examples/lattice_boltzmann.py --picture lattice_boltzmann.png
"""

import argparse

import numpy as np

import pyarray as pa

Field = pa.ndarray[pa.float64, (None, None, 9)]
DIRECTIONS = np.array([(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1)])
WEIGHTS = np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)
OPPOSITE = np.array([0, 3, 4, 1, 2, 7, 8, 5, 6])
SPEED, VISCOSITY = 0.1, 0.006
RELAXATION = 1 / (3 * VISCOSITY + 0.5)


@pa.func
def equilibrium(density, ux, uy, ex, ey, weight):
    along = ex * ux + ey * uy
    return weight * density * (1 + 3 * along + 4.5 * along * along - 1.5 * (ux * ux + uy * uy))


@pa.kernel
def step(new: Field, old: Field, solid, e: pa.ndarray[pa.int64, (9, 2)], w: pa.ndarray[pa.float64, (9,)], opposite):
    """Each point gathers what comes to it, and lets that collide. Walls send back what comes; at the left the wind
    enters, above and below are the same line."""
    height, width, _ = old.shape
    for y, x in pa.ndrange(height, width):
        f = pa.zeros(9)
        for k in range(9):
            sx, sy = max(min(x - e[k, 0], width - 1), 0), (y - e[k, 1] + height) % height
            f[k] = old[y, x, opposite[k]] if solid[sy, sx] else old[sy, sx, k]
        density = f.sum()
        ux, uy = 0.0, 0.0
        for k in range(9):
            ux += f[k] * e[k, 0] / density
            uy += f[k] * e[k, 1] / density
        if x == 0:
            density, ux, uy = 1.0, SPEED, 0.0
        for k in range(9):
            rest = equilibrium(density, ux, uy, e[k, 0], e[k, 1], w[k])
            new[y, x, k] = rest if x == 0 else f[k] + RELAXATION * (rest - f[k])


def flow(height, width, steps, device=None):
    """Velocities, (height, width, 2), and which points are solid."""
    f, solid = start(height, width)
    old, walls = (pa.asarray(a, copy=True, device=device) for a in (f, solid))
    e, w, opposite = (pa.asarray(a, device=device) for a in (DIRECTIONS, WEIGHTS, OPPOSITE))
    new = pa.empty_like(old)
    for _ in range(steps):
        step(new, old, walls, e, w, opposite)
        old, new = new, old
    return velocities(pa.asnumpy(old)), solid


def velocities(f):
    return f @ DIRECTIONS / f.sum(-1, keepdims=True)


def rest(density, u):
    along = u @ DIRECTIONS.T
    return WEIGHTS * density[..., None] * (1 + 3 * along + 4.5 * along**2 - 1.5 * (u**2).sum(-1, keepdims=True))


def start(height, width):
    y, x = np.mgrid[:height, :width]
    solid = (x - width // 5) ** 2 + (y - height // 2) ** 2 < (height // 9) ** 2
    u = np.zeros((height, width, 2))
    u[..., 0] = SPEED * (1 + 0.1 * np.sin(2 * np.pi * y / height))  # a street begins with what isn't symmetric
    return rest(np.ones((height, width)), u), solid


def reference(height, width, steps):
    f, solid = start(height, width)
    x = np.arange(width)
    for _ in range(steps):
        came = np.empty_like(f)
        for k, (ex, ey) in enumerate(DIRECTIONS):
            source = np.clip(x - ex, 0, width - 1)
            wall = np.roll(solid, ey, 0)[:, source]
            came[..., k] = np.where(wall, f[..., OPPOSITE[k]], np.roll(f[..., k], ey, 0)[:, source])
        density, u = came.sum(-1), velocities(came)
        f = came + RELAXATION * (rest(density, u) - came)
        f[:, 0] = rest(np.ones(height), np.broadcast_to([SPEED, 0.0], (height, 2)))
    return velocities(f)


def check(device=None):
    u, _ = flow(27, 50, 60, device)
    np.testing.assert_allclose(u, reference(27, 50, 60), atol=1e-12)


def draw(path, device=None):
    from matplotlib import pyplot as plt

    u, solid = flow(72, 240, 7000, device)
    curl = np.gradient(u[..., 1], axis=1) - np.gradient(u[..., 0], axis=0)
    plt.imsave(path, np.where(solid, 0, np.clip(curl, -0.02, 0.02)), cmap="RdBu")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", help="cpu, cuda:0 …")
    parser.add_argument("--picture", metavar="FILE.png")
    options = parser.parse_args()
    check(options.device)
    print("sixty steps are those of NumPy")
    if options.picture:
        draw(options.picture, options.device)


if __name__ == "__main__":
    main()
