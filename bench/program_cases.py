"""Twelve programs on small arrays, written once for NumPy and for pyarray: `xp` is either module.

They read elements by `float` and `int`, since `a[i]` is a view in pyarray, and are otherwise written as one
writes them for NumPy. `PROGRAMS` has each with its inputs, which are NumPy's arrays, lists and numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Program:
    """`run(xp, *inputs(rng, n))` for each n of `sizes`, small and larger; `elements` is how many the arrays have."""

    name: str
    run: Callable[..., Any]
    inputs: Callable[[Any, int], tuple[Any, ...]]
    sizes: tuple[int, int]
    elements: Callable[[int], int] = lambda n: n


def gauss(xp: Any, a: Any, b: Any) -> Any:
    """Solves a x = b by elimination with partial pivoting."""
    a, b, n = a.copy(), b.copy(), len(b)
    for k in range(n - 1):
        pivot = k + int(xp.argmax(xp.abs(a[k:, k])))
        if pivot != k:
            a[[k, pivot]] = a[[pivot, k]]
            b[[k, pivot]] = b[[pivot, k]]
        factors = a[k + 1 :, k] / a[k, k]
        a[k + 1 :, k:] -= factors[:, None] * a[k, k:]
        b[k + 1 :] -= factors * b[k]
    x = xp.zeros(n)
    for k in range(n - 1, -1, -1):
        x[k] = (b[k] - a[k, k + 1 :] @ x[k + 1 :]) / a[k, k]
    return x


def viterbi(xp: Any, start: Any, change: Any, emit: Any, seen: list[int]) -> Any:
    """The most likely states behind what was seen; logarithms of probabilities."""
    back = xp.zeros((len(seen), len(start)), dtype=xp.int64)
    score = start + emit[:, seen[0]]
    for t, what in enumerate(seen[1:], 1):
        ways = score[:, None] + change
        back[t] = xp.argmax(ways, axis=0)
        score = xp.max(ways, axis=0) + emit[:, what]
    states = [int(xp.argmax(score))]
    for t in range(len(seen) - 1, 0, -1):
        states.append(int(back[t, states[-1]]))
    return xp.asarray(states[::-1]), score


def kalman(xp: Any, move: Any, measure: Any, noise: Any, error: Any, readings: Any) -> Any:
    """Estimates of a state, one for each reading."""
    size = len(move)
    x, p, one = xp.zeros(size), xp.eye(size), xp.eye(size)
    found = xp.zeros((len(readings), size))
    for t in range(len(readings)):
        x = move @ x
        p = move @ p @ move.T + noise
        gain = p @ measure.T @ xp.linalg.inv(measure @ p @ measure.T + error)
        x = x + gain @ (readings[t] - measure @ x)
        p = (one - gain @ measure) @ p
        found[t] = x
    return found


def k_means(xp: Any, points: Any, count: int, rounds: int) -> Any:
    """Centres of clusters, and the cluster of each point."""
    centres = points[:count].copy()
    nearest = xp.zeros(len(points), dtype=xp.int64)
    for _ in range(rounds):
        distances = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
        nearest = distances.argmin(axis=1)
        for j in range(count):
            own = nearest == j
            if own.any():
                centres[j] = points[own].mean(axis=0)
    return centres, nearest


def life(xp: Any, board: Any, rounds: int) -> Any:
    """Conway's Game of Life on a board with a border that is dead."""
    board = board.copy()
    for _ in range(rounds):
        count = xp.zeros(board.shape, dtype=xp.int64)
        count[1:-1, 1:-1] = (
            board[:-2, :-2] + board[:-2, 1:-1] + board[:-2, 2:] + board[1:-1, :-2]
            + board[1:-1, 2:] + board[2:, :-2] + board[2:, 1:-1] + board[2:, 2:]
        )  # fmt: skip
        alive = board == 1
        board[alive & ((count < 2) | (count > 3))] = 0
        board[~alive & (count == 3)] = 1
    return board


def dither(xp: Any, image: Any) -> Any:
    """Floyd and Steinberg's: black and white, the error of each pixel goes to those after it."""
    image = image.copy()
    height, width = image.shape
    for y in range(height):
        for x in range(width):
            old = float(image[y, x])
            new = 255.0 if old > 127.5 else 0.0
            image[y, x] = new
            error = old - new
            if x + 1 < width:
                image[y, x + 1] += error * 7 / 16
            if y + 1 < height:
                if x > 0:
                    image[y + 1, x - 1] += error * 3 / 16
                image[y + 1, x] += error * 5 / 16
                if x + 1 < width:
                    image[y + 1, x + 1] += error * 1 / 16
    return image


def gram_schmidt(xp: Any, a: Any) -> Any:
    """Orthonormal columns that span those of `a`."""
    q = xp.zeros(a.shape)
    for k in range(a.shape[1]):
        v = a[:, k].copy()
        for j in range(k):
            v -= (q[:, j] @ v) * q[:, j]
        q[:, k] = v / xp.sqrt((v * v).sum())
    return q


def edit_distance(xp: Any, first: list[int], second: Any) -> Any:
    """Insertions, deletions and replacements from one word to another, row by row."""
    at = xp.arange(len(second) + 1)
    row = at
    for i, letter in enumerate(first, 1):
        best = xp.empty(len(at), dtype=xp.int64)
        best[0] = i
        best[1:] = xp.minimum(row[1:] + 1, row[:-1] + (second != letter))
        row = xp.minimum.accumulate(best - at) + at
    return row


def filters(xp: Any, signal: Any, taps: Any, decay: float, block: int) -> Any:
    """A finite, then a recursive filter, y[i] = x[i] + decay * y[i - 1], both in blocks."""
    order, steps = len(taps), xp.arange(block)
    powers = decay ** (steps + 1.0)
    within = xp.tril(decay ** xp.abs(steps[:, None] - steps[None, :]).astype(xp.float64))
    padded = xp.concat([xp.zeros(order - 1), signal])
    result, last = xp.empty(len(signal)), 0.0
    for start in range(0, len(signal), block):
        part = xp.zeros(block)
        for k in range(order):
            first = start + order - 1 - k
            part += taps[k] * padded[first : first + block]
        out = within @ part + powers * last
        last = float(out[-1])
        result[start : start + block] = out
    return result


def sieve(xp: Any, size: int) -> Any:
    """Primes up to `size`."""
    prime = xp.ones(size + 1, dtype=xp.bool)
    prime[:2] = False
    prime[4::2] = False
    for p in range(3, math.isqrt(size) + 1, 2):
        if prime[p]:
            prime[p * p :: 2 * p] = False
    return xp.nonzero(prime)[0]


def rosenbrock(x: Any) -> float:
    return float((100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum())


def nelder_mead(xp: Any, start: Any, steps: int) -> Any:
    """The least value of `rosenbrock` that so many steps of a simplex find, and where."""
    size = len(start)
    corners = xp.concat([start[None, :], start + 0.5 * xp.eye(size)])
    values = xp.asarray([rosenbrock(corner) for corner in corners])
    for _ in range(steps):
        order = xp.argsort(values)
        corners, values = corners[order], values[order]
        centre = corners[:-1].mean(axis=0)
        tried = 2.0 * centre - corners[-1]
        value = rosenbrock(tried)
        if value < values[0]:
            further = 3.0 * centre - 2.0 * corners[-1]
            if (other := rosenbrock(further)) < value:
                tried, value = further, other
        elif value >= values[-2]:
            tried = 0.5 * (centre + corners[-1])
            value = rosenbrock(tried)
            if value >= values[-1]:
                corners[1:] = 0.5 * (corners[1:] + corners[0])
                values[1:] = xp.asarray([rosenbrock(corner) for corner in corners[1:]])
                continue
        corners[-1], values[-1] = tried, value
    return corners[xp.argmin(values)], xp.min(values)


def rays(xp: Any, origin: Any, directions: Any, centres: Any, radii: list[float]) -> Any:
    """For each ray the distance of the first sphere that it meets, and which one: -1 for none."""
    nearest = xp.full(len(directions), xp.inf)
    which = xp.full(len(directions), -1, dtype=xp.int64)
    for k, radius in enumerate(radii):
        to = origin - centres[k]
        b = directions @ to
        inside = b * b - (to @ to - radius * radius)
        hit = inside > 0
        if not xp.any(hit):
            continue
        distance = xp.full(len(directions), xp.inf)
        distance[hit] = -b[hit] - xp.sqrt(inside[hit])
        closer = (distance > 0) & (distance < nearest)
        nearest[closer] = distance[closer]
        which[closer] = k
    return nearest, which


# ---- inputs


def _of_gauss(rng: Any, n: int) -> tuple[Any, ...]:
    return rng.standard_normal((n, n)), rng.standard_normal(n)


def _of_viterbi(rng: Any, n: int) -> tuple[Any, ...]:
    start, change, emit = (np.log(rng.random(shape) + 0.01) for shape in (n, (n, n), (n, 8)))
    return start, change, emit, rng.integers(0, 8, 60).tolist()


def _of_kalman(rng: Any, n: int) -> tuple[Any, ...]:
    move = np.eye(n) + 0.1 * np.eye(n, k=1)
    measure = np.eye(n // 2, n)
    return move, measure, 0.01 * np.eye(n), 0.1 * np.eye(n // 2), rng.standard_normal((40, n // 2))


def _of_k_means(rng: Any, n: int) -> tuple[Any, ...]:
    return rng.standard_normal((n, 2)) + 3 * rng.integers(0, 2, (n, 2)), 4, 10


def _of_life(rng: Any, n: int) -> tuple[Any, ...]:
    board = np.zeros((n, n), np.int64)
    board[1:-1, 1:-1] = rng.random((n - 2, n - 2)) < 0.4
    return board, 20


def _of_rays(rng: Any, n: int) -> tuple[Any, ...]:
    directions = rng.standard_normal((n, 3)) * [0.5, 0.5, 0] + [0, 0, 1]
    directions /= np.sqrt((directions**2).sum(axis=1, keepdims=True))
    return np.zeros(3), directions, rng.standard_normal((12, 3)) * 2 + [0, 0, 6], [0.5, 0.75, 1.0] * 4


def _square(n: int) -> int:
    return n * n


PROGRAMS = (
    Program("Gauss elimination", gauss, _of_gauss, (10, 30), _square),
    Program("Viterbi", viterbi, _of_viterbi, (6, 30), _square),
    Program("Kalman filter", kalman, _of_kalman, (4, 20), _square),
    Program("k-means", k_means, _of_k_means, (50, 500)),
    Program("Game of Life", life, _of_life, (10, 32), _square),
    Program("Floyd-Steinberg dithering", dither, lambda rng, n: (255 * rng.random((n, n)),), (8, 24), _square),
    Program("Gram-Schmidt", gram_schmidt, lambda rng, n: (rng.standard_normal((n, n // 2)),), (10, 40), _square),
    Program(
        "edit distance",
        edit_distance,
        lambda rng, n: (rng.integers(0, 4, n).tolist(), rng.integers(0, 4, n)),
        (20, 200),
    ),
    Program(
        "filters in blocks",
        filters,
        lambda rng, n: (rng.standard_normal(20 * n), rng.standard_normal(8), 0.9, n),
        (16, 128),
    ),
    Program("prime sieve", sieve, lambda rng, n: (n,), (100, 1000)),
    Program("Nelder-Mead", nelder_mead, lambda rng, n: (rng.standard_normal(n), 60), (4, 10)),
    Program("rays and spheres", rays, _of_rays, (50, 500)),
)
