"""A dam breaks: a fluid of particles (SPH), whose neighbours are found by a grid.

Densities, pressure and viscosity are those of Müller, Charypar and Gross, "Particle-based fluid simulation for
interactive applications" (SCA 2003), in two dimensions. Warp and Taichi have SPH among their examples.

    python docs/examples/sph.py --picture sph.png
"""

import argparse
import math
from dataclasses import dataclass

import numpy as np

import pyarray as pa

V2 = pa.ndarray[pa.float32, (None, 2)]
REACH, SPACING = 0.04, 0.02  # of a particle's kernels; between particles at rest
REST, STIFFNESS, VISCOSITY, GRAVITY = 1000.0, 400.0, 4.0, 9.81
MASS = REST * SPACING**2
WIDTH, HEIGHT, STEP = 1.6, 1.0, 5e-4
COLUMNS, ROWS = int(WIDTH / REACH) + 1, int(HEIGHT / REACH) + 1


@dataclass
class Grid:
    """Particles by cells: those of cell c are `order[start[c]:start[c + 1]]`."""

    start: pa.BufferView[pa.int64]
    order: pa.BufferView[pa.int64]


@pa.func
def column_and_row(p):
    return min(max(int(p[0] / REACH), 0), COLUMNS - 1), min(max(int(p[1] / REACH), 0), ROWS - 1)


@pa.kernel
def count(counts, positions: V2):
    for c in range(counts.size):
        counts[c] = 0
    for i in range(positions.shape[0]):
        x, y = column_and_row(positions[i])
        pa.atomic_add(counts, y * COLUMNS + x, 1)


@pa.kernel
def place(grid: Grid, left, positions: V2):
    for i in range(positions.shape[0]):
        x, y = column_and_row(positions[i])
        c = y * COLUMNS + x
        grid.order[grid.start[c] + pa.atomic_sub(left, c, 1) - 1] = i


@pa.func
def sum_of_neighbours(grid, p, term, total):
    """`total` and `term(j)` of each particle j in the nine cells around a point."""
    x, y = column_and_row(p)
    for row in range(max(y - 1, 0), min(y + 2, ROWS)):
        for column in range(max(x - 1, 0), min(x + 2, COLUMNS)):
            c = row * COLUMNS + column
            for k in range(grid.start[c], grid.start[c + 1]):
                total = total + term(grid.order[k])
    return total


@pa.func
def poly6(d):
    """The kernel of the density."""
    near = max(REACH**2 - d @ d, 0.0)
    return 4 / (math.pi * REACH**8) * (near * near * near)


@pa.func
def push(d, dv, density, other):
    """The force of a neighbour at distance d: pressure pushes away, viscosity drags along."""
    square = d @ d
    force = pa.zeros(2, dtype=pa.float32)
    if square > 0 and square < REACH**2:
        r = pa.sqrt(square)
        pressure = STIFFNESS * (max(density - REST, 0.0) + max(other - REST, 0.0)) / 2
        force = d * (pressure * 30 * (REACH - r) ** 2 / r) + dv * (VISCOSITY * 40 * (REACH - r))
    return force * (MASS / (other * math.pi * REACH**5))


@pa.func
def density_at(p, grid, positions):
    return MASS * sum_of_neighbours(grid, p, lambda j: poly6(p - positions[j]), pa.float32(0))


@pa.func
def force_on(p, v, rho, grid, positions, velocities, density):
    def term(j):
        return push(p - positions[j], velocities[j] - v, rho, density[j])

    return sum_of_neighbours(grid, p, term, pa.zeros(2, dtype=pa.float32))


@pa.kernel
def accelerate(force: V2, density, grid: Grid, positions: V2, velocities: V2):
    for i in range(positions.shape[0]):
        density[i] = density_at(positions[i], grid, positions)
    for i in range(positions.shape[0]):
        force[i] = force_on(positions[i], velocities[i], density[i], grid, positions, velocities, density)


@pa.kernel
def move(positions: V2, velocities: V2, force: V2, density):
    for i in range(positions.shape[0]):
        v = velocities[i] + STEP * force[i] / density[i]
        v[1] -= STEP * GRAVITY
        p = positions[i] + STEP * v
        inside = pa.clip(p, 0, pa.array([WIDTH, HEIGHT]))
        v = pa.where(p == inside, v, -0.3 * v)  # what hits a wall comes back slower
        positions[i], velocities[i] = inside, v


class Fluid:
    def __init__(self, positions, device=None):
        self.positions = pa.asarray(positions, dtype=pa.float32, copy=True, device=device)
        n, device = len(positions), self.positions.device
        self.velocities, self.force = pa.zeros_like(self.positions), pa.zeros_like(self.positions)
        self.density = pa.zeros(n, dtype=pa.float32, device=device)
        self.counts = pa.zeros(COLUMNS * ROWS, dtype=pa.int64, device=device)
        self.order = pa.zeros(n, dtype=pa.int64, device=device)

    def accelerate(self):
        count(self.counts, self.positions)
        grid = Grid(pa.cumulative_sum(self.counts, include_initial=True), self.order)
        place(grid, self.counts, self.positions)
        accelerate(self.force, self.density, grid, self.positions, self.velocities)

    def step(self):
        self.accelerate()
        move(self.positions, self.velocities, self.force, self.density)


def reference(positions, velocities):
    """Densities and forces of all pairs."""
    d = positions[:, None] - positions
    r = np.hypot(d[..., 0], d[..., 1])
    density = MASS * (4 / (np.pi * REACH**8) * np.maximum(REACH**2 - r**2, 0) ** 3).sum(1)
    over = np.maximum(density - REST, 0)
    pressure = STIFFNESS * (over[:, None] + over) / 2
    near = np.where((r > 0) & (r < REACH), REACH - r, 0)
    along = pressure * 30 * near**2 / np.where(r > 0, r, 1)
    drag = VISCOSITY * 40 * near
    weight = MASS / (density * np.pi * REACH**5)
    force = (d * (along * weight)[..., None]).sum(1)
    return density, force + ((velocities - velocities[:, None]) * (drag * weight)[..., None]).sum(1)


def dam(columns, rows):
    """A block of water in the lower left corner, a little disordered."""
    x, y = np.mgrid[:columns, :rows] * SPACING + SPACING / 2
    noise = np.random.default_rng(0).uniform(-0.05, 0.05, (columns * rows, 2)) * SPACING
    return np.stack([x.ravel(), y.ravel()], 1) + noise


def check(device=None):
    fluid = Fluid(dam(16, 20), device)
    for _ in range(40):
        fluid.step()
    fluid.accelerate()
    density, force = reference(pa.asnumpy(fluid.positions).astype(float), pa.asnumpy(fluid.velocities).astype(float))
    np.testing.assert_allclose(pa.asnumpy(fluid.density), density, rtol=1e-4)
    np.testing.assert_allclose(pa.asnumpy(fluid.force), force, atol=1e-3 * abs(force).max())


def draw(path, device=None):
    from matplotlib import pyplot as plt

    fluid = Fluid(dam(28, 36), device)
    figure, axes = plt.subplots(1, 3, figsize=(9, 2.2), layout="constrained")
    for plot, steps in zip(axes, (0, 500, 600), strict=True):
        for _ in range(steps):
            fluid.step()
        x, y = pa.asnumpy(fluid.positions).T
        plot.scatter(x, y, s=1.5, c=pa.asnumpy(pa.linalg.vector_norm(fluid.velocities, axis=1)), cmap="viridis")
        plot.set(xlim=(0, WIDTH), ylim=(0, HEIGHT), aspect="equal", xticks=[], yticks=[])
    figure.savefig(path, dpi=60)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", help="cpu, cuda:0 …")
    parser.add_argument("--picture", metavar="FILE.png")
    options = parser.parse_args()
    check(options.device)
    print("densities and forces are those of all pairs")
    if options.picture:
        draw(options.picture, options.device)


if __name__ == "__main__":
    main()
