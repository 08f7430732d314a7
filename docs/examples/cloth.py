"""A cloth falls on a ball: masses and springs along the threads, across them, and over two for bending.

Springs as in Provot, "Deformation constraints in a mass-spring model to describe rigid cloth behavior" (Graphics
Interface 1995). Taichi's tutorials and Warp's examples have a cloth on a sphere.

    python docs/examples/cloth.py --picture cloth.png
"""

import argparse

import numpy as np

import pyarray as pa

V3 = pa.ndarray[pa.float32, (None, None, 3)]
STIFFNESS, DAMPING, DRAG, GRAVITY, STEP = 3e4, 60.0, 1.0, 9.8, 5e-4
RADIUS = 0.3
NEIGHBOURS = ((0, 1), (1, 0), (1, 1), (1, -1), (0, 2), (2, 0))  # and the same with the other sign


@pa.func
def spring(d, dv, rest):
    """The pull of a neighbour at distance d, per mass."""
    length = pa.linalg.norm(d)
    along = d / length
    return (STIFFNESS * (length / rest - 1) * rest + DAMPING * (dv @ along)) * along


@pa.kernel
def pull(new: V3, velocities: V3, positions: V3, neighbours: pa.ndarray[pa.int64, (None, 2)], cell: float):
    rows, columns, _ = positions.shape
    for i, j in pa.ndrange(rows, columns):
        total = pa.array([0, -GRAVITY, 0], dtype=pa.float32) - DRAG * velocities[i, j]
        for k in range(neighbours.shape[0]):
            a, b = neighbours[k]
            for sign in range(-1, 2, 2):
                m, n = i + sign * a, j + sign * b
                if 0 <= m < rows and 0 <= n < columns:
                    d, dv = positions[m, n] - positions[i, j], velocities[m, n] - velocities[i, j]
                    total += spring(d, dv, cell * pa.sqrt(pa.float32(a * a + b * b)))
        new[i, j] = velocities[i, j] + STEP * total


@pa.kernel
def move(positions: V3, velocities: V3):
    """Along the velocities; what would enter the ball slides on it."""
    for i, j in pa.ndrange(positions.shape[0], positions.shape[1]):
        p, v = positions[i, j] + STEP * velocities[i, j], velocities[i, j].copy()
        distance = pa.linalg.norm(p)
        if distance < RADIUS:
            normal = p / distance
            v = 0.995 * (v - min(v @ normal, 0.0) * normal)
            p = RADIUS * normal
        positions[i, j], velocities[i, j] = p, v


def fall(n, steps, device=None):
    """A cloth of n by n masses, a unit square above the ball, after some steps."""
    x, z = np.meshgrid(np.linspace(-0.5, 0.5, n), np.linspace(-0.5, 0.5, n), indexing="ij")
    start = np.stack([x, np.full_like(x, RADIUS + 0.02), z], axis=-1)
    positions = pa.asarray(start, dtype=pa.float32, device=device)
    velocities, new = pa.zeros_like(positions), pa.zeros_like(positions)
    neighbours = pa.asarray(NEIGHBOURS, dtype=pa.int64, device=device)
    for _ in range(steps):
        pull(new, velocities, positions, neighbours, 1 / (n - 1))
        velocities, new = new, velocities
        move(positions, velocities)
    return pa.asnumpy(positions)


def reference(n, steps):
    x, z = np.meshgrid(np.linspace(-0.5, 0.5, n), np.linspace(-0.5, 0.5, n), indexing="ij")
    p = np.stack([x, np.full_like(x, RADIUS + 0.02), z], axis=-1)
    v = np.zeros_like(p)
    for _ in range(steps):
        total = np.array([0, -GRAVITY, 0]) - DRAG * v
        for a, b in NEIGHBOURS:
            one = np.s_[: n - a, max(-b, 0) : n - max(b, 0)]
            other = np.s_[a:, max(b, 0) : n - max(-b, 0)]
            d, dv, rest = p[other] - p[one], v[other] - v[one], np.hypot(a, b) / (n - 1)
            length = np.linalg.norm(d, axis=-1, keepdims=True)
            along = d / length
            force = (STIFFNESS * (length - rest) + DAMPING * (dv * along).sum(-1, keepdims=True)) * along
            total[one] += force
            total[other] -= force
        v = v + STEP * total
        p = p + STEP * v
        distance = np.linalg.norm(p, axis=-1, keepdims=True)
        normal, inside = p / np.where(distance > 0, distance, 1), distance < RADIUS
        v = np.where(inside, 0.995 * (v - np.minimum((v * normal).sum(-1, keepdims=True), 0) * normal), v)
        p = np.where(inside, RADIUS * normal, p)
    return p


def check(device=None):
    cloth = fall(20, 240, device)
    np.testing.assert_allclose(cloth, reference(20, 240), atol=2e-4)
    assert np.linalg.norm(cloth, axis=-1).min() > RADIUS - 1e-4
    assert cloth[0, 0, 1] < RADIUS - 0.04, "a corner hangs down"


def draw(path, device=None):
    from matplotlib import pyplot as plt

    x, y, z = np.moveaxis(fall(48, 1400, device), -1, 0)
    plot = plt.figure(figsize=(4, 3.2)).add_axes((-0.1, -0.2, 1.2, 1.4), projection="3d")
    colors = plt.get_cmap("Blues")(0.35 + 0.4 * (np.add.outer(np.arange(48) // 4, np.arange(48) // 4) % 2))
    plot.plot_surface(x, z, y, facecolors=colors, rcount=48, ccount=48, shade=True)
    plot.set(box_aspect=(1, 1, 0.7))
    plot.set_axis_off()
    plot.figure.savefig(path, dpi=80)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", help="cpu, cuda:0 …")
    parser.add_argument("--picture", metavar="FILE.png")
    options = parser.parse_args()
    check(options.device)
    print("the cloth hangs where that of NumPy does")
    if options.picture:
        draw(options.picture, options.device)


if __name__ == "__main__":
    main()
