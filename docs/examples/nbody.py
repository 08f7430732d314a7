"""Bodies that attract each other, all pairs of them, by the leapfrog method.

Leapfrog (kick, drift, kick) is symplectic: the energy swings and doesn't drift. Softened gravity as in Aarseth's
codes. All-pairs gravity is the example of NVIDIA's GPU Gems 3, chapter 31, and of Taichi's and Warp's tutorials.

    python docs/examples/nbody.py --picture nbody.png
"""

import argparse

import numpy as np

import pyarray as pa

V3 = pa.ndarray[pa.float32, (None, 3)]
SOFTENING = 0.05


@pa.kernel
def accelerations(out: V3, positions: V3, masses: pa.BufferView[pa.float32]):
    for i in range(positions.shape[0]):
        x, y, z = pa.float32(0), pa.float32(0), pa.float32(0)
        for j in pa.unordered(range(positions.shape[0])):  # sums in any order: vectors on CPUs, many threads on GPUs
            d = positions[j] - positions[i]
            square = d @ d + SOFTENING**2
            weight = masses[j] / (square * pa.sqrt(square))
            x += weight * d[0]
            y += weight * d[1]
            z += weight * d[2]
        out[i] = pa.array([x, y, z])


@pa.kernel
def kick_and_drift(positions: V3, velocities: V3, acceleration: V3, kick: float, drift: float):
    for i in range(positions.shape[0]):
        velocities[i] += kick * acceleration[i]
        positions[i] += drift * velocities[i]


def simulate(positions, velocities, masses, dt, steps, device=None):
    x, v, m = (pa.asarray(a, dtype=pa.float32, copy=True, device=device) for a in (positions, velocities, masses))
    a = pa.empty_like(x)
    accelerations(a, x, m)
    for _ in range(steps):
        kick_and_drift(x, v, a, dt / 2, dt)
        accelerations(a, x, m)
        kick_and_drift(x, v, a, dt / 2, 0.0)
    return pa.asnumpy(x), pa.asnumpy(v)


def reference(x, v, m, dt, steps):
    def attraction(x):
        d = x - x[:, None]
        square = (d**2).sum(-1) + SOFTENING**2
        return (d * (m / square**1.5)[..., None]).sum(1)

    a = attraction(x)
    for _ in range(steps):
        v = v + dt / 2 * a
        x = x + dt * v
        a = attraction(x)
        v = v + dt / 2 * a
    return x, v


def energy(x, v, m):
    apart = np.sqrt(((x - x[:, None]) ** 2).sum(-1) + SOFTENING**2)
    return 0.5 * (m * (v**2).sum(-1)).sum() - 0.5 * (np.outer(m, m) * (1 / apart)).sum()


def galaxies(count):
    """Two discs around heavy bodies that pass each other."""
    rng = np.random.default_rng(3)
    x, v, m = [], [], []
    for side in (-1, 1):
        r, angle = rng.uniform(0.15, 0.8, count), rng.uniform(0, 2 * np.pi, count)
        disc = np.stack([r * np.cos(angle), r * np.sin(angle), 0.02 * rng.normal(size=count)], 1)
        speed = np.sqrt(1 / r)[:, None] * np.stack([-np.sin(angle), np.cos(angle), 0 * r], 1)
        x += [np.zeros((1, 3)) + [side, 0.4 * side, 0], disc + [side, 0.4 * side, 0]]
        v += [np.zeros((1, 3)) - [0.5 * side, 0, 0], speed - [0.5 * side, 0, 0]]
        m += [[1.0], np.full(count, 1e-5)]
    return np.concatenate(x), np.concatenate(v), np.concatenate(m)


def check(device=None):
    bodies = galaxies(60)
    x, v = simulate(*bodies, 1e-3, 50, device)
    expected = reference(*bodies, 1e-3, 50)
    np.testing.assert_allclose(x, expected[0], atol=1e-4)
    np.testing.assert_allclose(v, expected[1], atol=1e-3)
    before, after = energy(*bodies), energy(x, v, bodies[2])
    assert abs(after - before) < 1e-4 * abs(before)


def draw(path, device=None):
    from matplotlib import pyplot as plt

    x, v, m = galaxies(700)
    figure, axes = plt.subplots(1, 3, figsize=(9, 2.6), layout="constrained", facecolor="black")
    for plot, steps in zip(axes, (0, 400, 500), strict=True):
        x, v = simulate(x, v, m, 4e-3, steps, device)
        plot.scatter(x[:, 0], x[:, 1], s=0.4, c=np.arange(len(x)) < len(x) / 2, cmap="cool")
        plot.set(xlim=(-2.6, 2.6), ylim=(-1.6, 1.6), aspect="equal")
        plot.axis("off")
    figure.savefig(path, dpi=56)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", help="cpu, cuda:0 …")
    parser.add_argument("--picture", metavar="FILE.png")
    options = parser.parse_args()
    check(options.device)
    print("orbits are those of NumPy, and the energy stays")
    if options.picture:
        draw(options.picture, options.device)


if __name__ == "__main__":
    main()
