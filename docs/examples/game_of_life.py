"""Conway's Game of Life on a torus: a live cell stays with two or three live neighbours, a dead one wakes with three.

The rules are Conway's, as Martin Gardner printed them (Scientific American, October 1970). Taichi's and Numba's
tutorials have the game too.

    python docs/examples/game_of_life.py --picture game_of_life.png
"""

import argparse

import numpy as np

import pyarray as pa


@pa.func
def lives(above, row, below, left, j, right):
    around = above[left] + above[j] + above[right] + row[left] + row[right]
    around += below[left] + below[j] + below[right]
    return around == 3 or (around == 2 and row[j] == 1)


@pa.kernel
def step(new, old):
    """Between the first and the last column nothing wraps around, so that these cells are computed as vectors."""
    height, width = old.shape
    for i in range(height):
        above, row, below = old[(i + height - 1) % height], old[i], old[(i + 1) % height]
        for j in range(0, width, max(width - 1, 1)):
            new[i, j] = lives(above, row, below, (j + width - 1) % width, j, (j + 1) % width)
        for j in pa.unordered(range(1, width - 1)):
            new[i, j] = lives(above, row, below, j - 1, j, j + 1)


def play(cells, generations, device=None):
    """The board after some generations. Two boards take turns: one is read while the other is written."""
    old = pa.asarray(cells, copy=True, device=device)
    new = pa.empty_like(old)
    for _ in range(generations):
        step(new, old)
        old, new = new, old
    return pa.asnumpy(old)


def reference(cells, generations):
    for _ in range(generations):
        shifts = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]
        around = sum(np.roll(cells, shift, (0, 1)) for shift in shifts)
        cells = ((around == 3) | ((around == 2) & (cells == 1))).astype(np.uint8)
    return cells


def soup(height, width):
    return (np.random.default_rng(1).random((height, width)) < 0.3).astype(np.uint8)


def check(device=None):
    for height, width in ((64, 48), (3, 5), (2, 2), (1, 1), (2, 0)):
        cells = soup(height, width)
        np.testing.assert_array_equal(play(cells, 20, device), reference(cells, 20))

    glider = np.zeros((8, 8), np.uint8)
    glider[[0, 1, 2, 2, 2], [1, 2, 0, 1, 2]] = 1
    moved = play(glider, 4 * 8, device)  # a cell down and to the right in four generations: once around
    np.testing.assert_array_equal(moved, glider)


def draw(path, device=None):
    from matplotlib import pyplot as plt

    board = play(soup(160, 240), 200, device)
    plt.imsave(path, board.repeat(2, 0).repeat(2, 1), cmap="Greens")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", help="cpu, cuda:0 …")
    parser.add_argument("--picture", metavar="FILE.png")
    options = parser.parse_args()
    check(options.device)
    print("the boards are those of NumPy, and the glider came back")
    if options.picture:
        draw(options.picture, options.device)


if __name__ == "__main__":
    main()
