"""Fields of local dataclasses are assigned, and copies with other fields made, as Python does; what would show that
names share an object is refused."""

import linecache
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pytest
from kernel_tools import agree, launch

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


@pa.func
def body_of(p, calls, k):
    calls[k] += 1
    return Body(p, pa.array([p.x, 2, 3], dtype=pa.float64))


@pa.func
def both(x):
    return x + 0.5, (x, 2 * x)


@pa.func
def first(body, by):
    return body.pos[0] * by


@pa.kernel
def parts_of_results(out, calls):
    for i in range(out.shape[0]):
        out[i, 0] = made(i).x + made(i + 1).n
        out[i, 1] = moved(made(moved(made(i)).x)).energy()
        out[i, 2] = body_of(made(i), calls[i], 0).p.energy() + body_of(made(2), calls[i], 0).pos[2]
        out[i, 3] = first(by=both(i)[0], body=body_of(moved(made(i), by=both(i)[1][1]), calls[i], 1))
        out[i, 4] = Body(made(i), pa.zeros(3)).p.n + Ray(both(i)[1][0], 3).d
        j = 0
        while moved(made(j)).x < 4:
            j += 1
        q = replace(body_of(made(j), calls[i], 2).p)
        if made(i).x > 1:
            q = made(3)
        q.x += 1
        out[i, 5] = q.x + j


def test_parts_of_what_calls_return(device):
    """Each call is evaluated once, in the order of Python."""
    for checked in (False, True):
        with debug(checked):
            agree(parts_of_results, device, np.zeros((4, 6)), np.zeros((4, 3), np.int64))


@pa.func
def take(calls, value):
    calls[0] = 10 * calls[0] + value
    return value


@pa.kernel
def copies_with_other_fields(out, r, calls):
    for i in range(1):
        y = 1
        p = replace(r[y % 4], n=(y := 3))
        out[0] = 10 * p.x + p.n
        p = replace(Particle(y * 0.5, 2), n=(y := 1))
        out[1] = 10 * p.x + p.n
        p = replace(r[(y := y + 1)], x=(y := y + 5))
        out[2] = 10 * p.x + p.n
        p = replace(replace(r[y % 4], n=(y := 2)), x=r[y].x + y)
        out[3] = 10 * p.x + p.n
        p = replace(Particle(take(calls, 1), take(calls, 2)), n=take(calls, 3), x=take(calls, 4))
        out[4] = 10 * p.x + p.n
        p = replace(r[take(calls, 5) % 4], n=take(calls, 6))
        out[5] = 10 * p.x + p.n
        q = Ray(y, y + 1)._replace(d=(y := 9))
        out[6] = 10 * q.o + q.d + y + i


def test_what_is_copied_is_found_before_the_new_values(device):
    records = pa.zeros(4, dtype=Particle, device=device)
    records["x"][:] = pa.asarray([0.5, 1.5, 2.5, 3.5], device=device)
    records["n"][:] = pa.asarray([5, 6, 7, 8], device=device)
    for checked in (False, True):
        with debug(checked):
            out, calls = pa.zeros(7, device=device), pa.zeros(1, dtype=pa.int64, device=device)
            copies_with_other_fields(out, records, calls)
            assert out.tolist() == [18.0, 16.0, 77.0, 47.0, 43.0, 21.0, 38.0]
            assert calls.tolist() == [123456]


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
    "q = same(same(p)); p.x = 2; out[i] = q.x": "'q' is the object 'p' in Python",
    "c = pa.zeros(3); b = same(Body(p, c)).pos; c[0] = 1; out[i] = b[0]": "is a copy here, and shares memory",
    "same(p).x = 3": "the field 'x' of what a call returns can't be assigned",
    "out.x = 3": "the field 'x' of a 1-D contiguous array of float64 can't be assigned",
    "b = Body(p, pa.zeros(4))": "'pos' of Body is annotated",
    "c = pa.zeros(3); b = Body(p, c); c[0] = 1; out[i] = b.pos[0]": "is a copy here, and shares memory in Python",
}


@pa.func
def two(x):
    return x, x + 1


@pa.kernel
def from_calls(out, x):
    for i in range(x.size):
        p, q = Particle(x[i], 2), Particle(1.0)
        p, q = moved(q, 1.0), moved(p, 2.0)
        a = replace(moved(p, 1.0), n=moved(q, 1.0).n + 3)
        b = Ray(x[i])._replace(o=two(x[i])[1], d=moved(p, 0.5).x)
        c = replace(moved(moved(q, 1.0), 2.0))
        t = (two(x[i]), moved(p, 4.0), 3)
        match two(i):
            case 0, _:
                k = 5
            case k, n:
                k = k + 10 * n
        out[i, 0] = p.x + 10 * q.x + 100 * p.n + 1000 * q.n
        out[i, 1] = a.x + 10 * a.n + b.o + b.d + c.x + 100 * c.n
        out[i, 2] = t[0][1] + 10 * t[1].x + 100 * t[2] + 1000 * k


def test_calls_that_return_several_values_are_parts_and_copied(device):
    for checked in (False, True):
        with debug(checked):
            agree(from_calls, device, np.zeros((3, 3)), np.arange(3, dtype=np.float32))


@pa.func
def counted(c, n):
    return pa.atomic_add(c, 0, n), pa.atomic_add(c, 0, 1)


def test_calls_in_tuples_are_made_once_and_in_order(device):
    @pa.kernel
    def ordered(out, c):
        for _ in range(1):
            t = (counted(c, 1), pa.atomic_add(c, 0, 5), counted(c, 2))
            (a, b), d = counted(c, 1), pa.atomic_add(c, 0, 5)
            out[0] = t[0][0] + 10 * t[0][1] + 100 * t[1] + 1000 * t[2][0] + 10000 * t[2][1]
            out[1] = a + 100 * b + 10000 * d
            out[2] = (pa.atomic_add(c, 0, 1), counted(c, 3))[1][1]
            out[3] = (counted(c, 3), counted(c, 4))[0][1]
            out[4] = pa.atomic_add(c, 0, 0)

    (got, _) = launch(ordered, device, np.zeros(5, np.int64), np.zeros(1, np.int64))
    assert got.tolist() == [97210, 121110, 21, 25, 31]


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
