"""A block of fluid falls: the material point method, whose particles meet on a grid.

The algorithm is MLS-MPM with affine particles (Hu et al., "A moving least squares material point method", SIGGRAPH
2018; Jiang et al., "The affine particle-in-cell method", SIGGRAPH 2015), the setting that of Taichi's mpm88.

    python docs/examples/mpm.py --picture mpm.png
"""

import argparse

import numpy as np

import pyarray as pa

V2 = pa.ndarray[pa.float32, (None, 2)]
M2 = pa.ndarray[pa.float32, (None, 2, 2)]
N = 64  # cells of the grid along an axis
DX, DT = 1 / N, 2e-4
DENSITY, STIFFNESS, GRAVITY = 1.0, 400.0, 9.8
VOLUME = (DX / 2) ** 2
MASS = VOLUME * DENSITY


@pa.func
def base_and_weights(p):
    """The first of three by three nodes around a point, and the quadratic B-spline's weights along each axis."""
    x, y = p[0] * N, p[1] * N
    i, j = int(x - 0.5), int(y - 0.5)
    f = pa.array([x - i, y - j])
    return i, j, f, pa.array([0.5 * (1.5 - f) ** 2, 0.75 - (f - 1) ** 2, 0.5 * (f - 0.5) ** 2])


@pa.kernel
def step(x: V2, v: V2, c: M2, volume, momentum, mass):
    """One step: particles to grid, the grid's velocities, grid to particles. `c` is a particle's velocity gradient,
    `volume` its volume relative to that at rest."""
    for i, j in pa.ndrange(N, N):
        mass[i, j], momentum[i, j, 0], momentum[i, j, 1] = 0, 0, 0

    for p in range(x.shape[0]):
        i, j, f, w = base_and_weights(x[p])
        stress = -DT * 4 * STIFFNESS * VOLUME * (volume[p] - 1) / DX**2
        affine = stress * pa.eye(2, dtype=pa.float32) + MASS * c[p]
        for a in range(3):
            for b in range(3):
                d = (pa.array([a, b]) - f) * DX
                weight = w[a, 0] * w[b, 1]
                push = weight * (MASS * v[p] + affine @ d)
                pa.atomic_add(momentum, (i + a, j + b, 0), push[0])
                pa.atomic_add(momentum, (i + a, j + b, 1), push[1])
                pa.atomic_add(mass, (i + a, j + b), weight * MASS)

    for i, j in pa.ndrange(N, N):
        if mass[i, j] > 0:
            vx, vy = momentum[i, j, 0] / mass[i, j], momentum[i, j, 1] / mass[i, j] - DT * GRAVITY
            if (i < 3 and vx < 0) or (i > N - 3 and vx > 0):
                vx = 0.0
            if (j < 3 and vy < 0) or (j > N - 3 and vy > 0):
                vy = 0.0
            momentum[i, j, 0], momentum[i, j, 1] = vx, vy

    for p in range(x.shape[0]):
        i, j, f, w = base_and_weights(x[p])
        speed, gradient = pa.zeros(2, dtype=pa.float32), pa.zeros((2, 2), dtype=pa.float32)
        for a in range(3):
            for b in range(3):
                d = pa.array([a, b]) - f
                weight = w[a, 0] * w[b, 1]
                g = pa.array([momentum[i + a, j + b, 0], momentum[i + a, j + b, 1]])
                speed += weight * g
                gradient += 4 * weight / DX * pa.outer(g, d)
        v[p], c[p] = speed, gradient
        x[p] += DT * speed
        volume[p] *= 1 + DT * pa.linalg.trace(gradient)


class Material:
    def __init__(self, positions, device=None):
        self.x = pa.asarray(positions, dtype=pa.float32, copy=True, device=device)
        n, device = len(positions), self.x.device
        self.v = pa.zeros((n, 2), dtype=pa.float32, device=device)
        self.c = pa.zeros((n, 2, 2), dtype=pa.float32, device=device)
        self.volume = pa.ones(n, dtype=pa.float32, device=device)
        self.momentum = pa.zeros((N, N, 2), dtype=pa.float32, device=device)
        self.mass = pa.zeros((N, N), dtype=pa.float32, device=device)

    def step(self):
        step(self.x, self.v, self.c, self.volume, self.momentum, self.mass)


def reference(x, steps):
    v, c, volume = np.zeros_like(x), np.zeros((len(x), 2, 2)), np.ones(len(x))
    node = np.arange(N)
    low, high = node < 3, node > N - 3
    for _ in range(steps):
        base = (x * N - 0.5).astype(int)
        f = x * N - base
        w = np.stack([0.5 * (1.5 - f) ** 2, 0.75 - (f - 1) ** 2, 0.5 * (f - 0.5) ** 2])
        affine = MASS * c - np.eye(2) * (DT * 4 * STIFFNESS * VOLUME * (volume - 1) / DX**2)[:, None, None]
        grid = np.zeros((N, N, 3))
        nodes = [(a, b, w[a, :, 0] * w[b, :, 1], np.array([a, b]) - f) for a in range(3) for b in range(3)]
        for a, b, weight, d in nodes:
            push = weight[:, None] * (MASS * v + np.einsum("pij,pj->pi", affine, d * DX))
            np.add.at(grid, (base[:, 0] + a, base[:, 1] + b), np.column_stack([push, weight * MASS]))
        g = grid[..., :2] / np.where(grid[..., 2:] > 0, grid[..., 2:], 1)
        g[..., 1] -= DT * GRAVITY * (grid[..., 2] > 0)
        for u in (g[..., 0], g[..., 1].T):
            u[low] = np.maximum(u[low], 0)
            u[high] = np.minimum(u[high], 0)
        v, c = np.zeros_like(v), np.zeros_like(c)
        for a, b, weight, d in nodes:
            each = g[base[:, 0] + a, base[:, 1] + b]
            v += weight[:, None] * each
            c += 4 / DX * weight[:, None, None] * each[:, :, None] * d[:, None, :]
        x = x + DT * v
        volume *= 1 + DT * np.trace(c, axis1=1, axis2=2)
    return x, v


def block(count):
    return np.random.default_rng(0).random((count, 2)) * 0.4 + [0.2, 0.25]


def check(device=None):
    material = Material(block(500), device)
    for _ in range(30):
        material.step()
    x, v = reference(block(500).astype(np.float32).astype(float), 30)
    np.testing.assert_allclose(pa.asnumpy(material.x), x, atol=1e-5)
    np.testing.assert_allclose(pa.asnumpy(material.v), v, atol=1e-3)


def draw(path, device=None):
    from matplotlib import pyplot as plt

    material = Material(block(4000), device)
    figure, axes = plt.subplots(1, 3, figsize=(9, 3), layout="constrained")
    for plot, steps in zip(axes, (400, 1000, 1200), strict=True):
        for _ in range(steps):
            material.step()
        plot.scatter(*pa.asnumpy(material.x).T, s=0.5, color="tab:blue")
        plot.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xticks=[], yticks=[])
    figure.savefig(path, dpi=60)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", help="cpu, cuda:0 …")
    parser.add_argument("--picture", metavar="FILE.png")
    options = parser.parse_args()
    check(options.device)
    print("thirty steps are those of NumPy")
    if options.picture:
        draw(options.picture, options.device)


if __name__ == "__main__":
    main()
