"""Functions and classes that random programs use."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

import pyarray as pa

MODULUS = 1009


def local_functions(log: str) -> list[str]:
    """Lines of functions inside a drawn kernel, which read its variables, late; `log` is what it calls the traces."""
    return f"""
def late(e, b=2):
    for j in range(e % 4):
        if note({log}, j) % 3 == 2:
            return (j + x) % M
    else:
        if e > b:
            return (e * y + b) % M
    return (z - x0) % M
short = lambda e: (e + z) % M
def early(e):
    c = short(e)
    if c % 2:
        return c
    return (late(c, b=x) + 1) % M
""".strip().splitlines()


@pa.func
def note(log, k):
    """`k`, once the log knows that it was asked for."""
    log[0] = (log[0] * 31 + k) % MODULUS
    return k % MODULUS


@pa.func
def ticket(log, n):
    """A number below `n` that is another one at each call."""
    log[1] += 1
    return log[1] % n


@pa.func
def mix(a, b=2, c=5):
    return (a + 3 * b - c) % MODULUS


@pa.func
def turned(v, n):
    return np.array([v[1], v[2], (v[0] + n) % MODULUS])


@pa.func
def scaled(v, n=3):
    for j in range(3):
        if v[j] % 7 == n % 7:
            return (v * j) % MODULUS
    else:
        if n % 2:
            return (v + n) % MODULUS
    return (v * n) % MODULUS


@pa.func
def above(v, n):
    """The first element above `n`, or the last one; leaves loops early."""
    for j in range(len(v)):
        if v[j] > n:
            return v[j]
    return v[len(v) - 1]


@pa.func
def ends(v, n):
    return v[0] + n, v[2] % MODULUS


@pa.func
def fill(view, n):
    """Stores into the caller's view."""
    for j in range(len(view)):
        view[j] = (view[j] + j * n) % MODULUS


@dataclass
class Pose:
    a: pa.int64
    b: pa.float64 = 0.0


@dataclass
class Body:
    n: pa.int64
    v: pa.ndarray[pa.int64, (3,)]
    pose: Pose
    flag: pa.bool = False
    small: pa.int16 = 3

    @pa.func
    def total(self, k):
        return (self.n + self.v[0] * k + self.v[2] + self.pose.a) % MODULUS

    @pa.func
    def __add__(self, other):
        a = (self.pose.a + other.pose.a) % MODULUS
        return Body((self.n + 2 * other.n) % MODULUS, (self.v + other.v) % MODULUS, Pose(a, 0.5), other.flag)

    @pa.func
    def __rmul__(self, k):
        return Body((self.n * k) % MODULUS, (self.v * k) % MODULUS, Pose(k % MODULUS), k > 3)

    @pa.func
    def __getitem__(self, k):
        return (self.n * k + self.v[1]) % MODULUS

    @pa.func
    def __lt__(self, other):
        return self.n + self.pose.a < other.n + other.pose.a


@pa.func
def copied(p):
    return Body(p.n, p.v.copy(), Pose(p.pose.a, p.pose.b), p.flag, p.small)


def replaced(p, **fields):
    """`dataclasses.replace`, of records of arrays too, which it copies."""
    return dataclasses.replace(Body(p.n, p.v.copy(), Pose(p.pose.a, p.pose.b), p.flag, p.small), **fields)


@pa.func
def moved(p, k):
    if k % 3 == 0:
        return Body(k % MODULUS, p.v.copy(), Pose(p.n, 1.5))
    return Body(p.n, turned(p.v, k), Pose(k % MODULUS, p.pose.b), not p.flag)


NAMES = {
    "np": np, "M": MODULUS, "note": note, "ticket": ticket, "mix": mix, "turned": turned, "scaled": scaled,
    "above": above, "ends": ends, "fill": fill, "Pose": Pose, "Body": Body, "copied": copied, "moved": moved,
    "replace": dataclasses.replace, "make_rng": pa.rng, "unordered": pa.unordered, "atomic_add": pa.atomic_add,
    "atomic_max": pa.atomic_max, "ndrange": pa.ndrange,
}  # fmt: skip
IN_PYTHON = {"replace": replaced}  # what plain Python has under the names of the language
