"""Gravity of many bodies in N log N: what is far away counts as one body (Barnes and Hut, Nature 324, 1986).

The quadtree is a pyramid of grids: level l has 2**l by 2**l cells, and cell (x, y) has the four children
(2x, 2y) … (2x + 1, 2y + 1). So there are no pointers, and each level is made by one parallel loop.

    python docs/examples/barnes_hut.py --picture barnes_hut.png
"""

import argparse
from dataclasses import dataclass

import numpy as np

import pyarray as pa

V2 = pa.ndarray[pa.float64, (None, 2)]
LEVELS = 7  # the finest grid has 64 by 64 cells
SIDE = 2 ** (LEVELS - 1)
SOFTENING = 1e-3


@dataclass
class Tree:
    mass: pa.BufferView[pa.float64]  # of each cell of each level, coarse levels first
    moment: V2  # mass times position
    start: pa.BufferView[pa.int64]  # bodies of the finest cell c: order[start[c]:start[c + 1]]
    order: pa.BufferView[pa.int64]


@pa.func
def number(level, x, y):
    """Of a cell: the levels before have (4**level - 1) / 3."""
    return ((1 << 2 * level) - 1) // 3 + (y << level) + x


@pa.kernel
def find_cells(cells, positions: V2):
    for i in range(cells.size):
        x, y = positions[i]
        cells[i] = min(max(int(y * SIDE), 0), SIDE - 1) * SIDE + min(max(int(x * SIDE), 0), SIDE - 1)


@pa.kernel
def fill(tree: Tree, positions: V2, masses):
    """The finest level; each cell adds its bodies in their order."""
    for y, x in pa.ndrange(SIDE, SIDE):
        c, k = y * SIDE + x, number(LEVELS - 1, x, y)
        mass, moment = 0.0, pa.zeros(2)
        for n in range(tree.start[c], tree.start[c + 1]):
            i = tree.order[n]
            mass += masses[i]
            moment += masses[i] * positions[i]
        tree.mass[k], tree.moment[k] = mass, moment


@pa.kernel
def join(tree: Tree, level: int):
    for y, x in pa.ndrange(1 << level, 1 << level):
        mass, moment = 0.0, pa.zeros(2)
        for k in range(4):
            child = number(level + 1, 2 * x + k % 2, 2 * y + k // 2)
            mass += tree.mass[child]
            moment += tree.moment[child]
        k = number(level, x, y)
        tree.mass[k], tree.moment[k] = mass, moment


@pa.func
def pull(d, mass):
    square = d @ d + SOFTENING**2
    return mass / (square * pa.sqrt(square)) * d


@pa.kernel
def attract(out: V2, tree: Tree, positions: V2, masses, opening: float):
    """A cell counts as one body where its size is below `opening` times its distance."""
    for i in range(masses.size):
        p, total = positions[i], pa.zeros(2)
        stack = pa.zeros((3 * LEVELS + 1, 3), dtype=pa.int32)  # level, x, y of cells to look at
        depth = 1
        while depth > 0:
            depth -= 1
            level, x, y = stack[depth]
            cell = number(level, x, y)
            if tree.mass[cell] == 0:
                continue
            d = tree.moment[cell] / tree.mass[cell] - p
            size = 1.0 / (1 << level)
            if size * size < opening**2 * (d @ d):
                total += pull(d, tree.mass[cell])
            elif level == LEVELS - 1:
                for n in range(tree.start[y * SIDE + x], tree.start[y * SIDE + x + 1]):
                    total += pull(positions[tree.order[n]] - p, masses[tree.order[n]])
            else:
                for k in range(4):
                    stack[depth] = pa.array([level + 1, 2 * x + k % 2, 2 * y + k // 2])
                    depth += 1
        out[i] = total


def attraction(positions, masses, opening=0.5):
    """Accelerations of bodies in the unit square."""
    device = positions.device
    cells = pa.empty(masses.size, dtype=pa.int64, device=device)
    find_cells(cells, positions)
    order = pa.argsort(cells)
    start = pa.searchsorted(cells[order], pa.arange(SIDE * SIDE + 1, device=device))
    count = (4**LEVELS - 1) // 3
    tree = Tree(pa.empty(count, device=device), pa.empty((count, 2), device=device), start, order)
    fill(tree, positions, masses)
    for level in reversed(range(LEVELS - 1)):
        join(tree, level)
    out = pa.empty_like(positions)
    attract(out, tree, positions, masses, opening)
    return out


def reference(positions, masses):
    """All pairs."""
    d = positions - positions[:, None]
    return (d * (masses / ((d**2).sum(-1) + SOFTENING**2) ** 1.5)[..., None]).sum(1)


def bodies(count, device):
    rng = np.random.default_rng(5)
    middle = np.where(rng.random((count, 1)) < 0.4, [0.3, 0.65], [0.6, 0.4])
    positions = np.clip(middle + 0.09 * rng.standard_t(4, (count, 2)), 0, 1)
    return pa.asarray(positions, device=device), pa.asarray(rng.uniform(0.5, 1, count) / count, device=device)


def check(device=None):
    positions, masses = bodies(1000, device)
    exact = reference(pa.asnumpy(positions), pa.asnumpy(masses))
    np.testing.assert_allclose(pa.asnumpy(attraction(positions, masses, 0.0)), exact, rtol=1e-9, atol=1e-9)
    error = np.linalg.norm(pa.asnumpy(attraction(positions, masses)) - exact, axis=1)
    assert np.median(error / np.linalg.norm(exact, axis=1)) < 0.01


def draw(path, device=None):
    from matplotlib import pyplot as plt

    positions, masses = bodies(3000, device)
    strength = pa.asnumpy(pa.linalg.vector_norm(attraction(positions, masses), axis=1))
    figure, plot = plt.subplots(figsize=(4, 4), layout="constrained")
    for level in range(1, LEVELS - 1):
        cells = np.unique((pa.asnumpy(positions) * 2**level).astype(int), axis=0)
        for x, y in cells:
            plot.add_patch(plt.Rectangle((x / 2**level, y / 2**level), 2**-level, 2**-level, fill=False, lw=0.1))
    plot.scatter(*pa.asnumpy(positions).T, s=1, c=np.log(strength), cmap="plasma")
    plot.set(xlim=(0, 1), ylim=(0, 1), xticks=[], yticks=[])
    figure.savefig(path, dpi=70)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", help="cpu, cuda:0 …")
    parser.add_argument("--picture", metavar="FILE.png")
    options = parser.parse_args()
    check(options.device)
    print("accelerations are those of all pairs, within the method's error")
    if options.picture:
        draw(options.picture, options.device)


if __name__ == "__main__":
    main()
