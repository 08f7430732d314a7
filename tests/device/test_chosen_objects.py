"""`p if c else q` of tuples and objects: one of each leaf, chosen once, and only the chosen one is evaluated."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
from kernel_tools import agree

import pyarray as pa
from pyarray.errors import CompileError


@dataclass
class Inner:
    a: int
    b: float


@dataclass
class Outer:
    x: float
    inner: Inner
    v: np.ndarray

    @pa.func
    def total(self):
        return self.x + self.inner.a + self.inner.b + self.v[0] + 10 * self.v[1]


class Pair(NamedTuple):
    x: float
    y: int


@pa.func
def outer(x, log, k):
    log[k] += 1
    return Outer(x, Inner(int(x), 0.5), np.array([x, 1.0]))


@pa.func
def pair(i):
    return Pair(i / 2, i) if i % 2 else Pair(1.0, 2)


@pa.kernel
def chosen(out, v, log):
    for i in range(out.shape[0]):
        p, q = Outer(v[i], Inner(i, 1.5), np.array([1.0, 2.0])), Outer(3.0, Inner(7, v[i]), np.array([v[i], 4.0]))
        r = p if v[i] > 0 else q
        out[i, 0] = r.total()
        s = outer(v[i], log[i], 0) if v[i] > 0 else outer(1.0, log[i], 1)
        out[i, 1] = s.inner.a + s.v[0] + s.inner.b
        out[i, 2] = (p if i % 3 else q).inner.b + (p if i % 3 else q).total()
        a, b = (i, v[i]) if i % 2 else (2.5, 1)
        out[i, 3] = a + 10 * b
        t = pair(i) if v[i] < 2 else Pair(4, 5)
        out[i, 4] = t.x + t.y
        u = r if i > 2 else (q if i else p)
        out[i, 5] = u.total() + u.x
        w = (Pair(1, 2), 3) if i % 2 else (pair(i), i)
        out[i, 6] = w[0].x + w[0].y + w[1]


@pytest.mark.parametrize("checked", [False, True])
def test_objects_are_chosen_as_in_python(device, checked):
    v = np.array([-1.0, 2.0, 0.0, 3.0, -2.0, 1.0, 5.0])
    with pa.debug(checked):
        agree(chosen, device, np.zeros((7, 7)), v, np.zeros((7, 2), np.int64))


def kernel_of(line, folder):
    path = folder / "chosen_here.py"
    body = "".join(f"        {part}\n" for part in line.split("; "))
    path.write_text(f"def k(out, v):\n    for i in range(out.size):\n{body}")
    space = {"Inner": Inner, "Pair": Pair, "pa": pa}
    exec(compile(path.read_text(), str(path), "exec"), space)
    return pa.kernel(space["k"])


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (
            "p = Inner(1, 2.0); q = Inner(i, 0.5); r = p if i else q; r.a = 3; out[i] = p.a",
            "is the object 'r' in Python",
        ),
        (
            "p = Inner(1, 2.0); q = Inner(i, 0.5); r = p if i else q; q.a = 3; out[i] = r.a",
            "is the object 'q' in Python",
        ),
        (
            "r = Inner(1, 2.0) if i else Pair(1, 2); out[i] = 1",
            "chooses between an Inner and a Pair.*(\n.*)*same class",
        ),
        ("r = Inner(1, 2.0) if i else 3; out[i] = 1", "chooses between an Inner and an int64"),
        ("r = (1, 2) if i else (1, 2, 3); out[i] = 1", "chooses between a tuple of 2 and a tuple of 3"),
        ("g = pa.rng(1, i); h = pa.rng(2, i); r = g if i else h; out[i] = r.uniform()", "a condition chooses between"),
    ],
)
def test_what_cant_be_chosen(line, says, tmp_path):
    with pytest.raises(CompileError, match=says):
        kernel_of(line, tmp_path)(pa.zeros(3), pa.zeros(3))
