"""Fields of local dataclasses are assigned, and copies with other fields made, as Python does; what would show that
names share an object is refused."""

import linecache
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pytest
from kernel_tools import agree

import pyarray as pa
from pyarray.jit.launch_state import debug


@dataclass
class Particle:
    x: pa.float32
    n: int = 1

    @pa.func
    def energy(self):
        return self.x * self.n


@dataclass(frozen=True)
class Fixed:
    x: float


class Ray(NamedTuple):
    o: float
    d: float = 1.0


@dataclass
class Body:
    p: Particle
    pos: pa.ndarray[pa.float64, (3,)]


@pa.func
def same(p):
    return p


@pa.func
def moved(p, by=1):
    return replace(p, x=p.x + by)


@pa.func
def made(x):
    p = Particle(x, 4)
    p.n += 1
    return p


@pa.kernel
def run(out, t: int):
    for i in range(out.size):
        p = Particle(1, 2)
        p.x = 5
        p.n += t
        q = moved(p)
        q.x *= 2
        for k in range(t):
            q = moved(q, by=k)
            q.n -= 1
        r = Ray(1.0)
        r = r._replace(d=7.0 + t)
        f = replace(Fixed(1.0), x=r.d)
        b = Body(Particle(3), pa.array([1.0, 2, 3]))
        b.pos[1] = 8
        b.p.x = 9
        b.pos += 1
        b.pos = b.pos * 2
        m = made(t)
        m.x, m.n = m.n, 3
        if i % 2:
            b.p = Particle(i, 2)
        out[i] = p.energy() + 100 * q.x + r.d + b.pos.sum() + b.p.energy() + f.x + m.energy() + q.n


def test_fields(device):
    for t in (0, 1, 4):
        for checked in (False, True):
            with debug(checked):
                agree(run, device, np.zeros(4), t)


REFUSED = {
    "q = p; q.x = 1": "'p' is the object 'q' in Python, of which fields are assigned",
    "q = same(p); q.x = 1": "'p' is the object 'q' in Python",
    "q = same(p); p.x = 2; out[i] = q.x": "'q' is the object 'p' in Python",
    "t = (p, 1); p.x = 3": "'t' is the object 'p' in Python",
    "b = Body(p, pa.zeros(3)); p.x = 1": "'b' is the object 'p' in Python",
    "b = Body(p, pa.zeros(3)); b.p.x = 1": "'p' is the object 'b' in Python",
    "b = Body(p, pa.zeros(3)); q = b.p; q.x = 1": "'b' is the object 'q' in Python",
    "r = Ray(1.0, 2.0); r.d = 3": "the field 'd' can't be assigned.*\n.*\n.*\nRay is immutable: p = p._replace",
    "r = Fixed(1.0); r.x = 3": "the field 'x' can't be assigned.*\n.*\n.*\nFixed is frozen: p = dataclasses.replace",
    "p.y = 3": "a Particle has no field 'y'",
    "p.x = pa.zeros(3)": "'x' of Particle is a number, got a local array",
    "p.x = 1j": "'x' of Particle is annotated float32, got a complex",
    "p = replace(p, y=2)": "Particle has no field 'y'",
    "p = replace(3, y=2)": "takes a dataclass or a named tuple",
    "change(p)": "the field 'x' can't be assigned in a kernel: 'q' is a parameter",
    "same(p).x = 3": "the field 'x' of what a call returns can't be assigned",
    "out.x = 3": "the field 'x' of a 1-D contiguous array of float64 can't be assigned",
    "b = Body(p, pa.zeros(4))": "'pos' of Body is annotated",
    "c = pa.zeros(3); b = Body(p, c); c[0] = 1; out[i] = b.pos[0]": "is a copy here, and shares memory in Python",
}


@pytest.mark.parametrize("body", REFUSED)
def test_refused(body):
    text = (
        "@pa.func\ndef change(q):\n    q.x = 3\n"
        f"@pa.kernel\ndef k(out):\n    for i in range(out.size):\n        p = Particle(1, 2)\n        {body}\n"
    )
    path = f"<refused {body}>"
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    exec(compile(text, path, "exec"), space := dict(globals()))
    with pytest.raises(pa.CompileError, match=REFUSED[body]):
        space["k"](pa.zeros(2))
