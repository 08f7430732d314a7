"""Operators, items, length and calls of named tuples and dataclasses mean what their classes say; annotations
of fields bind what a kernel makes."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from kernel_tools import agree, launch

import pyarray as pa


class Vector(NamedTuple):
    x: float
    y: float

    @pa.func
    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)

    @pa.func
    def __mul__(self, factor):
        return Vector(self.x * factor, self.y * factor)

    @pa.func
    def __rmul__(self, factor):
        return Vector(factor * self.x, factor * self.y)

    @pa.func
    def __neg__(self):
        return Vector(-self.x, -self.y)

    @pa.func
    def __getitem__(self, k):
        return self.x + 10 * k

    @pa.func
    def __len__(self):
        return 7

    @pa.func
    def __lt__(self, other):
        return self.x < other.x

    @pa.func
    def __eq__(self, other):
        return self.y == other.y

    @pa.func
    def __call__(self, x):
        return self.x * x


class Derived(Vector):
    @pa.func
    def __radd__(self, other):
        return Vector(other.x, 100.0)

    @pa.func
    def __iadd__(self, other):
        return Derived(self.y, other.y)


class Plain(NamedTuple):
    x: int
    y: int


@dataclass
class Single:
    a: pa.float32
    b: np.float32 = 0.2
    n: int = 3
    weights: pa.BufferView | None = None


@pa.func
def narrow(x: np.float32, y: pa.float32):
    return x + y


@pa.kernel
def methods(out, s: Vector, d: Derived):
    for _ in range(1):
        v = Vector(1.0, 5.0) + Vector(1.0, 1.0)
        out[0], out[1], out[2], out[3] = v.x, v.y, len(v), v[2]
        w = 2 * v + -s * 3
        out[4], out[5], out[6], out[7] = w.x, w.y, v < w, v(3)
        v += w
        out[8], out[9], out[10] = v.x, (v + w)[1], len(v + w)
        out[11], out[12] = v == w, v != v
        e = s + d
        c = Derived(1.5, 6.0)
        c += v
        out[13], out[14], out[15] = e.y, c.x, c.y
        t = Plain(1, 2) + (3, 4)  # what tuples do
        out[16], out[17] = len(t), t[3]


def test_methods(device):
    agree(methods, device, np.zeros(18), Vector(0.5, 0.25), Derived(1.5, 6.0))


@pa.kernel
def fields(out):
    for _ in range(1):
        f = Single(0.1)
        g = Single(b=1e-9 + 1, a=3)
        out[0], out[1], out[2], out[3] = f.a, f.b, f.n / 2, f.a + f.b
        out[4], out[5], out[6] = g.a / 2, g.b, narrow(1e-9 + 1, 0.1)


def test_annotations_bind_values_made_in_kernels(device):
    one, two = np.float32(0.1), np.float32(0.2)
    expected = [one, two, 1.5, one + two, 1.5, 1, 1 + one]
    np.testing.assert_array_equal(launch(fields, device, np.zeros(7))[0], np.array(expected, np.float64))


@pa.kernel
def slices_within_an_index(out, v):
    for i in range(out.size):
        p = Vector(v[i], 2.0)
        out[i] = p[v[1:].size] + p[(v[1:][i % 2], 3)[1]] + (p + p)[pa.sum(pa.array([1, 2, 3])[::-1])]


def test_an_index_may_hold_slices_of_other_things(device):
    agree(slices_within_an_index, device, np.zeros(5), np.arange(5.0))


@dataclass
class Ordered:
    x: float

    @pa.func
    def __lt__(self, other):
        return self.x < other.x

    @pa.func
    def __bool__(self):
        return self.x > 2

    @pa.func
    def __abs__(self):
        return 10 * self.x


def test_reflected_comparisons_truth_and_abs(device):
    """`a > b` of a class without __gt__ is `b < a`."""

    @pa.kernel
    def all_of_them(out):
        for i in range(out.shape[0]):
            a, b = Ordered(float(i)), Ordered(2.0)
            out[i, 0] = a > b
            out[i, 1] = b > a
            out[i, 2] = 1 if a else 2
            out[i, 3] = not a
            out[i, 4] = abs(a)
            if a and i != 3:
                out[i, 5] = 1

    out = pa.zeros((5, 6), device=device)
    all_of_them(out)
    expected = np.zeros((5, 6))
    all_of_them.__wrapped__(expected)
    np.testing.assert_array_equal(out.get(), expected)


def test_slices_of_tuples(device):
    @pa.kernel
    def parts(out):
        for i in range(1):
            s = (1.5, i + 2, 3, 4)
            a, b = s[1:3]
            out[0], out[1], out[2] = a, b, len(s[::2])
            out[3], out[4], out[5] = s[::-1][0], s[-2:][0], out.shape[:1][0]

    out = pa.zeros(6, device=device)
    parts(out)
    assert out.tolist() == [2, 3, 2, 4, 3, 6]


@dataclass
class Scale:
    factor: float

    offset = 3

    @classmethod
    @pa.func
    def of_sum(cls, a, b):
        return cls(a + b + cls.offset)

    @pa.func
    def times(self, x):
        return self.factor * x


TWICE = Scale(2.0)
METHOD = TWICE.times


def test_methods_of_classes_and_of_objects_that_a_kernel_names(device):
    @pa.kernel
    def named(out, f):
        for i in range(out.size):
            out[i] = Scale.of_sum(i, 1).factor + TWICE.of_sum(0, b=1).times(10.0) + TWICE.times(i) + METHOD(1.0) + f(i)

    out, expected = pa.zeros(3, device=device), np.zeros(3)
    named(out, TWICE.times)
    named.__wrapped__(expected, TWICE.times)
    assert out.tolist() == expected.tolist()
