"""One program per message: what is outside the language, and what the user is told."""

import copy
import enum
import linecache
import random
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import pytest

import pyarray as pa
from pyarray import dtypes
from pyarray.array_convert import asarray
from pyarray.errors import CompileError
from pyarray.jit.kernel import func, kernel
from pyarray.lang import markers


class Point(NamedTuple):
    x: float
    y: float


@dataclass
class Checked:
    x: float

    def __post_init__(self):
        assert self.x


class Plain(NamedTuple):
    x: float
    n: int = 3

    def __add__(self, other):
        return Plain(self.x + other.x)

    def __getitem__(self, k):
        return self.x

    def __len__(self):
        return 7

    def __iter__(self):
        return iter((1, 2))

    def __lt__(self, other):
        return self.x < other.x


@dataclass
class Made:
    x: dtypes.float32
    later: list = field(default_factory=list)


@dataclass
class Body:
    x: dtypes.float32
    v: pa.ndarray[dtypes.float32, (2,)]
    n: int = 0

    @func
    def __add__(self, other):
        return Body(self.x + other.x, self.v, self.n)


class Side(enum.Enum):
    LEFT = 1


PLAIN = {
    "Side": Side, "copy": copy,
    "Body": Body, "replace": replace,
    "Plain": Plain, "Made": Made, "pa": pa,
    "f32": dtypes.float32, "np": np, "ndrange": markers.ndrange, "constexpr": markers.constexpr,
    "atomic_add": markers.atomic_add, "atomic_and": markers.atomic_and, "atomic_cas": markers.atomic_cas,
    "unordered": markers.unordered,
    "a_list": [1, 2], "random": random, "rng": pa.random.default_rng(1),
    "an_array": np.zeros(2), "Point": Point, "Checked": Checked,
}  # fmt: skip


def load(text, name="k", scope=None):
    path = f"<rejected {hash(text)}>"
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    space = {**PLAIN, "kernel": kernel, "func": func, **(scope or {})}
    exec(compile(text, path, "exec"), space)
    return space[name]


def args():
    return (
        asarray(np.zeros(8, np.float32)),
        asarray(np.zeros((2, 3), np.complex64)),
        asarray(np.zeros(4, np.uint8)),
        3,
        pa.zeros(8, dtype=Body),  # as many as v has: rows that are taken store into them
    )


SETUP = """
def plain(x): return x
@func
def rec(x): return rec(x)
@func
def some(x):
    if x > 0:
        return x
@func
def pair(x): return x, x
@func
def two_kinds(x):
    if x > 1: return x, x
    return 1.0
@func
def names(): return "a", "b"
@func
def of_point(p: Point): return p.x
@func
def change(p): p[0] = 1
@func
def same(p): return p
@func
def void(v): v[0] = 1
@func
def rest(v):
    v[0] = 1
    return v[1:]
@func
def typed(x: f32): return x
@kernel
def other(v):
    for i in range(v.size): v[i] = 1
@kernel
def k(v, z, b, n, r):
    for i in range(v.size):
        {}
"""
STATEMENTS = {
    "p = r[i]; p.x = 1": "'p' is a view of a record of 'r' in NumPy, and a copy .*\n.*\n.*\nstore into the array, r",
    "p = r[i]; p.v[0] = 1": "'p' is a view of a record of 'r' in NumPy, and a copy here",
    "p = r[i]; p.v += 1": "'p' is a view of a record of 'r' in NumPy, and a copy here",
    "q = r[i].v; q[0] = 1; r[i].v[1] = q[0]": None,
    "p = replace(r[i]); p.v[0] = 1": None,
    "p = replace(r[i]); p.x = 1": None,
    "r.x[i] = 1": "'x' is a field of the records.*\n.*\n.*\nwrite r..x.. for its view, or r.i..x",
    "r[i].mass = 1": "a Body has no field 'mass'.*\n.*\n.*\nthere are: x, v, n",
    'v[i] = r["mass"][i]': "an array of Body has no field 'mass'",
    'v[i] = r[i]["mass"]': "a Body has no field 'mass'",
    "v[i] = r.mass": "an array of records in a kernel has no attribute 'mass'.*\n.*\n.*\nthere are shape, size",
    "r[i] = 1": "an int64 .weak. can't be stored as a Body.*\n.*\n.*\nBody.*, another record or a tuple of 3",
    "r[i] = (1, 2)": "a tuple of 2 can't be stored as a Body",
    "r[i] = Point(1, 2)": "a Point can't be stored as a Body",
    "r[1:] = r[0]": "records are assigned one by one",
    "r[i, 0].x = 1": "2 indices for a 1-D array of records",
    "r[i].x = z[0, 0]": "a complex64 can't be stored in a field of float32",
    "r[i].v = pa.zeros(3)": "an array of shape .3,. can't be stored where .2,. is",
    "r[0].n += n; r[1].n = 2": "iterations of the parallel loop update one element of 'r.n' at the same time",
    "r += 1": "expected a number, got an array of Body",
    "v[i] = r[i]": "expected a number, got a Body",
    "v[i] = r[i] < r[0]": "a Body",
    "p = r[int(rest(v)[0]) :]; p[0].x = 1": "a slice of an array of records takes indices without calls",
    "r[int(rest(v)[0])].x = 1": None,
    "for p in r: p.x = 1": "is a view of a record of 'r' in NumPy",
    "try: pass\n        except: pass": "'try' is not part of the kernel language.*\n.*\n.*\na kernel can't raise",
    "raise ValueError": "'raise' is not part",
    "with v: pass": "'with' is not part",
    "import math": "'import' is not part",
    "del i": "'del' is not part",
    "global q": "'global' is not part",
    "x = [1, 2]": "a list is not part",
    "x = {1: 2}": "a dict is not part",
    "x = [j for j in range(3)]": "a comprehension is not part",
    "x = (y := (1, 2))": "':=' assigns a number or a view of an array, got a tuple of 2",
    "if i > 2 and (y := i) > 3: pass\n        v[i] = y": "'y' may be read before it is assigned",
    "x = f'{i}'": "a text with numbers in it is not part .*\n.*\n.*\nprint it, or assert with it",
    "x = 1 in (1, 2)": "'in' is not part",
    "x = v is b": "'is' between numbers or arrays is not part.*\n.*\n.*\ncompare numbers with ==",
    "x = 1 < i is not None is not b": None,
    "v[i] = an_array[i]": "an array of Python's can't be indexed.*\n.*\n.*\narrays are not captured: pass it",
    "v[i] = an_array": "expected a number, got an array of Python's.*\n.*\n.*\narrays are not captured",
    "atomic_add(an_array, 0, 1)": "takes an array",
    "v[i] = Point(i, 1)._replace(z=2).x": "Point has no field 'z'.*\n.*\n.*\nthere are: x, y",
    "v[i] = Point(i, 1)._replace(x=2).x": None,
    "v[i] = Point(i, 1)._asdict": "is a plain method",
    "x = v @ v": "'@' in a kernel takes arrays of constant shape, got a 1-D contiguous array",
    "x = lambda: 1; y = (x, 1)": "a function can't be kept in a variable",
    "x = lambda: 1; x = 2": "'x' is a function here and something else elsewhere",
    "x = 2; x = lambda: 1": "'x' is a function here and something else elsewhere",
    "x = lambda y: x(y); v[i] = x(1)": "'<lambda>' calls itself",
    "x = lambda y=i: y": "a default of a function inside a kernel is a constant",
    "x = 1; g = lambda y: y * x; v[i] = g((x := 2))": "'x' is set in a call of a function that uses it",
    "g = lambda y: y * i; v[i] = g(1, i=2)": "<lambda>.. has no parameter 'i'",
    "@func\n        def g(y): return y": "a function inside a kernel has no decorator",
    "match i:\n            case {}: pass": "this pattern is not part.*\n.*\n.*\nmatch constants, dotted names",
    "match i:\n            case [1, *x]: pass": "is not part of the kernel language",
    "match v:\n            case (1, 2): pass": "an array can't be matched",
    "break": "'break' can't leave a parallel loop",
    "return": "'return' can't leave a parallel loop.*\n.*\n.*\nskip with continue, or make the iteration",
    "return 3": "a kernel returns nothing",
    "for j in range(3):\n            return": "'return' can't leave a parallel loop",
    "v[i] = q": "'q' is not defined",
    "v[i] = x; x = 1": "'x' is read before it is assigned",
    "if i > 2: x = 1\n        v[i] = x": "'x' may be read before it is assigned",
    "i + 1": "this statement has no effect",
    "v[i] = v": "expected a number, got a 1-D contiguous array of float32.*\n.*\n.*\nindex it",
    "v[i, i] = 1": "2 indices for a 1-D contiguous array",
    "v[0.5] = 1": "an index must be an integer, got a float64",
    "v[i > 0] = 1": "an index must be an integer, got a bool",
    "v[:] = 1": "a slice can't be assigned as a whole",
    "v[v.size] = 1": "one past the last element",
    "x = v[::0]": "slice step must not be 0",
    "for j in range(1, 2, 0): pass": "the step of range",
    "for j in range(0.5): pass": "a range bound must be an integer",
    "for j in 3: pass": "a loop runs over range",
    "for j in z: pass": "a loop over a 2-D",
    "for j, l in range(3): pass": "this loop needs 1 name",
    "for j, l in ndrange(3, 3): break": "'break' in a loop over ndrange",
    "v[i] = (1j * v[i]).conjugate().real": "a complex64 has no attribute 'conjugate'.*\n.*\n.*\nwrite pa.conj",
    "v[i] = v[i].astype(pa.int8)": "a float32 has no attribute 'astype'.*\n.*\n.*\nwrite the dtype as a function",
    "v[i] = pa.quaternion.rotate(1.0, r[i].v)[0]": "<rejected .*rotate\\(\\): a float64 .* can't be indexed",
    "p = Point(v[i], 1.0) if i else Body(v[i], r[i].v); v[i] = p.x": "a condition chooses between a Point and a Body",
    "v[i] = pa.quaternion.multiply(r[i].v, r[i].v)[0]": "<rejected .*multiply\\(\\): index .* is out of range",
    "v[i] = pa.clip(v[i], 1j, 2)": "<rejected .*clip\\(\\): max\\(\\) is not defined for complex",
    "g = pa.rng(1, i); v[i] = g.normal('a')": "<rejected .*normal\\(\\): expected a number, got the Python object 'a'",
    "v[i] = v.flags": "has no attribute 'flags'",
    "v[i] = np.nope": "has no attribute 'nope'",
    "v[i] = z[0, 0]": "a complex64 can't be stored in an array of float32",
    "x = z[0, 0] < 1": "complex numbers have no order",
    "x = f32(z[0, 0])": "take its .real, .imag",
    "x = v[i] & 1": "'&' is not defined for float32 and int64",
    "x = v[i] << 1": "'<<' is not defined",
    "x = ~v[i]": "'~' is not defined",
    "x = (i > 0) - (i > 1)": "'-' is not defined for bool",
    "b[i] = 300": "the number 300 is out of range for uint8",
    "b[i] = b[i] + -1": "the number -1 is out of range for uint8",
    "x = 2**64": "out of range for uint64",
    "x = 10**5000": "doesn't fit into 64 bits",
    "x = 1 // 0": "division by zero|modulo by zero",
    "x = i ** -1": "is a fraction",
    "x = v": None,
    "x = v; x = z": "'x' is a 1-D .* and here a 2-D",
    "x = 1; x = v": "'x' is an int64 .* and here a 1-D",
    "n = 1": "'n' is assigned before the parallel loop",
    "v = z[0]": "'v' is assigned before the parallel loop",
    "if n > 1: continue\n        v[n] = max(v[n], i)": "update one element of 'v'.*\n.*\n.*\nwrite pa.atomic_max",
    "x, y = 1": "2 names can't be assigned from",
    "x = np": "'x' can't hold the module numpy",
    "v[i] = plain(i)": "'plain' is a plain Python function.*\n.*\n.*\ndecorate it with @pa.func",
    "v[i] = rec(i)": "'rec' calls itself",
    "v[i] = some(i)": "returns a value on some paths only",
    "v[i] = pair(i)": "expected a number, got a tuple of 2.*\n.*\n.*\ntake one of its items",
    "v[i] = pair(i) + 1": "expected a number, got a tuple of 2.*\n.*\n.*\nassign it first",
    "v[i] = pair(pair(i))": "expected a number, got a tuple of 2",
    "v[i] = pair(void(v))": "expected a value, got",
    "v[i] = pair(i)[2]": "index 2 is out of range for a tuple of 2",
    "v[i] = pair(i).x": "a tuple of 2 has no attribute .x.",
    "x = two_kinds(i)": "this function returns a tuple of 2 and here a float64|returns a float64 and here",
    "x = names()": "without numbers or arrays can't be returned",
    "x = void(v)": "returns nothing that could be assigned",
    "v[i] = typed(v)": "'x' of typed.. is a number, got a 1-D",
    "v[i] = typed()": "missing a required argument",
    "v[i] = typed(1, 2)": "too many positional",
    "other(v)": "'other' is a kernel, and a kernel can't call a kernel",
    "print(v)": "a 1-D contiguous array of float32 can't be shown by a kernel.*\n.*\n.*\nname its elements",
    "print(i, file=n)": "takes values, and texts as sep and end",
    "print(f'{i:{n}}')": "a format that depends on a value",
    "print(f'{v[i]:x}')": "a float32 has no format 'x'",
    "assert i > 0, f'{i}{n}{v[i]}{b[i]}{i + 1}'": "an assertion shows 4 numbers at most, this one has 5",
    "assert i > 0, v": "can't be shown by a kernel",
    "assert i > 0, f'{(x := i)}{x}'": "assigns no variable\n.*\n.*\nassign it on a line before",
    "rng = pa.rng(0.5)": "the seed of rng.. is an integer, got a float64",
    "rng = pa.rng()": "rng..: missing a required argument: 'seed'",
    "rng = pa.rng(1, i); x = rng": "a random number generator can't be kept",
    "rng = pa.rng(1, i); x = (rng, 1)": "a random number generator can't be a part of another value",
    "rng = pa.rng(1, i); v[i] = typed(rng)": "'x' of typed.. is a number, got a Rng",
    "rng = pa.rng(1, i); g = lambda: rng.uniform(); v[i] = g()": "can't be used by a function inside a kernel",
    "v[i] = sum(v)": "'sum' is not part of the kernel language",
    "v[i] = abs(v[i], 2)": "abs.. takes 1 argument, got 2",
    "v[i] = max(v[i], z[0, 0])": "max.. is not defined for complex64",
    "v[i] = len(i)": "has no len",
    "x = v.subview(1)": "a sub-view needs an array, an offset and a size",
    "x = v.subview(-1, 2)": "the offset of a sub-view can't be negative",
    "x = z.subview(0, 1)": "only a 1-D array has sub-views",
    "w = v.reshape(-1, -1)": "only one size can be -1",
    "w = v.reshape(-2, 3)": "a size can't be negative, got -2",
    "w = v.reshape()": "reshape.. takes sizes",
    "w = v.reshape(3, order='F')": "reshape.. takes sizes",
    "w = z.ravel(3)": "ravel.. takes nothing",
    "w = v.reshape(n, 0.5)": "a size must be an integer",
    "x = z[:, ::2].reshape(2, -1).strides": "a reshape of a strided array may have no strides",
    "atomic_add(v, i)": "takes an array, an index and a value",
    "atomic_and(v, i, 1)": "atomic_and.. is not defined for float32",
    "atomic_add(z, i, 1)": "1 indices for a 2-D",
    "v[i] = (1, 2)[i]": "a tuple needs a constant index",
    "v[i] = (1, 2)[i:]": "a slice of a tuple needs constant bounds",
    "x, y = (pa.atomic_add(v, 0, 1.0), 2, 3)[:2]": "a slice of a tuple that is made by calls.*\n.*\n.*\nassign",
    "v[i] = (1, 2)[::0]": "slice step must not be 0",
    "v[i] = (1, 2) < (1, i)": "got a tuple of 2 and a tuple of 2.*\n.*\n.*\ncompare their items or fields$",
    "v[i] = Point(1, 2) == Point(1, i)": "compares no tuples.*\n.*\n.*\ncompare .*, or define __eq__ in the class",
    "v[i] = 1 if Point(1, 2) else 2": "a condition is a number, got a Point.*\n.*\n.*\ntest .*, or define __bool__",
    "v[i] = np.clip(i, 0)": "np.clip..: missing a required argument: 'a_max'",
    "v[0] += b[i]\n        if i > 1: v[1] += 1": "update one element.*\n.*\n.*\nit is a reduction if the loop doesn't",
    "v[i] = (1, 2)[2]": "index 2 is out of range for a tuple of 2",
    "v[i] = a_list[i]": "a captured list needs a constant index.*\n.*\n.*\npass it as an array, pa.asarray",
    "v[i] = a_list": "expected a number, got the Python object .1, 2.\n.*\n.*\npass it as an array",
    "x = a_list": "'x' can't hold the Python object .*\n.*\n.*\npass it as an array",
    "for x in a_list: pass": "a loop runs over .*\n.*\n.*\npass it as an array",
    "v[i] = a_list[2]": "no such item: IndexError",
    "v[i] = np[0]": "can't be indexed",
    "x = (i, 1)[i]": "a tuple needs a constant index",
    "x = (i, 1); x[0] = 2": "an item of a tuple of 2 can't be assigned.*\n.*\n.*\nits values are copies",
    "x = (i, 1); x = 3": "'x' is a tuple of 2 and here an int64",
    "x = (i, 1); x = (i, 1, 2)": "'x' is a tuple of 2 and here a tuple of 3",
    "x = 3; x = (i, 1)": "'x' is an int64 .weak. and here a tuple of 2",
    "x = Point(i, 1); x.x = 3": "the field 'x' can't be assigned.*\n.*\n.*\nPoint is immutable: p = p._replace",
    "x = Point(i, 1); x.x += 3": "the field 'x' can't be assigned in a kernel",
    "x = Point(i, 1); v[i] = x.z": "a Point has no field 'z' here.*\n.*\n.*\nthere are: x, y",
    "x = Point(i)": "Point.*: missing a required argument: 'y'",
    "x = Checked(i)": "a Checked can't be made here.*\n.*\n.*\na kernel runs no __init__",
    "v[0] += z[0, 0].real * i": None,  # a reduction
    "v[n] = v[n] * 2": None,
    "v[0] = max(v[0], i)": None,
    "if n: v[0] += z[0, 0].real * i": "iterations of the parallel loop update one element of 'v' at the same time: its index doesn't depend on 'i'.*\n.*\n.*\nwrite pa.atomic_add.v, index, x., or one iteration per result; on the host pa.sum",  # noqa: E501
    "if n: v[n] = v[n] * 2": "update one element of 'v'.*\n.*\n.*\nstore one result per iteration",
    "if n: v[0] = max(v[0], i)": "update one element of 'v'.*\n.*\n.*\nwrite pa.atomic_max",
    "if v[i] > v[0]: v[0] = v[i]": "update one element of 'v'.*\n.*\n.*\nwrite pa.atomic_max",
    "s = v[0]; s = s + i; v[0] = s": "update one element of 'v'.*\n.*\n.*\nstore one result per iteration",
    "v[0] = i": "store different values into one element of 'v'.*\n.*\n.*\nwhich one stays is chance",
    "x = pa.arange(3)": "'arange' makes no local arrays.*\n.*\n.*\nwrite pa.zeros",
    "x = pa.zeros(n)": "the shape of a local array is constant, got an int64",
    "x = pa.zeros((3, -1))": "a size can't be negative, got -1",
    "x = pa.zeros(())": "a local array has one axis or more",
    "x = pa.zeros(5000)": "has 40000 bytes, and 16384 is the most.*\n.*\n.*\npass an array",
    "x = pa.zeros(3, order='C')": "zeros.. in a kernel has no argument 'order'",
    "x = pa.zeros(3, dtype=3)": "zeros.. takes a dtype, got",
    "x = pa.array(3)": "a local array is made of numbers, got an int64",
    "x = pa.array(v)": "a local array is made of numbers, got a 1-D contiguous array",
    "x = pa.array([])": "an array of nothing has no dtype",
    "x = pa.array([[1, 2], [3]])": "the rows of an array have one shape, got .1,., .2,.",
    "x = pa.array([1, 2]); v[i] = x[2]": "index 2 is out of range for axis 0 with size 2",
    "x = pa.array([1, 2]); v[i] = x[-3]": "index -3 is out of range for axis 0 with size 2",
    "x = pa.array([1, 2]); v[i] = x[0, 0]": "2 indices for an array of shape .2,.",
    "x = pa.array([1, 2]); v[i] = x": "expected a number, got a local array of int64",
    "x = pa.array([1, 2]); v[i] = x[0:n][0]": "a slice of a local array has constant bounds",
    "x = pa.array([1, 2]); x[0][0] = 1": "an element of a local array is a number",
    "x = pa.array([1, 2]); x[0] = 1j": "can't be stored in an array of int64",
    "x = pa.array([1, 2]); x[:] = pa.zeros(3)": "an array of shape .3,. can't be stored where .2,. is",
    "x = pa.array([1, 2]); x += 0.5": "an array of int64 can't hold float64 in place.*\n.*\n.*\nwrite p = p",
    "x = pa.array([1, 2]); x = x + pa.zeros(3)": "shapes .2,. and .3,. don't broadcast",
    "x = pa.array([1, 2]); x = pa.zeros(3)": "'x' is a local array of int64 of shape .2,. and here a local array",
    "x = pa.array([1, 2]) if i else 3": "expected a number, got a local array",
    "x = pa.array([1, 2]); v[i] = 1 if x else 2": "expected a number, got a local array",
    "x = pa.array([1, 2]); v[i] = 1 < x < 3": "expected a number, got a local array",
    "x = pa.array([1, 2]); v[i] = x.nothing": "a local array has no attribute 'nothing'.*\n.*\n.*\nthere are shape",
    "x = pa.array([1, 2]); a, b, c = x": "3 names can't be assigned from 2 values",
    "x = pa.array([1, 2]); v[i] = min(x, x)[0]": "min.. of Python doesn't compare arrays",
    "x = pa.array([1, 2]); v[i] = pa.sum(x, axis=1)": "axis 1 is out of range for an array of 1 axes",
    "x = pa.array([1, 2]); v[i] = pa.sum(x, axis=n)": "an axis is a constant",
    "x = pa.array([1j]); v[i] = pa.max(x).real": "max.. is not defined for complex128",
    "v[i] = pa.min(pa.zeros(0))": "min.. of no elements has no value",
    "x = pa.array([1, 2]); v[i] = (x @ pa.zeros(3))": "'@' is not defined for shapes .2,. and .3,.",
    "x = pa.array([1, 2]); v[i] = pa.cross(x, x)[0]": "cross.. takes two vectors of 3 elements",
    "x = pa.array([1, 2]); v[i] = pa.linalg.det(x)": "det.. takes a square matrix",
    "v[i] = pa.linalg.det(pa.zeros((5, 5)))": "det.. in a kernel takes matrices of 1 to 4 rows, got 5",
    "v[i] = pa.linalg.solve(pa.eye(2), pa.zeros(3))[0]": "solve.. is not defined for shapes",
    "x = pa.eye(2); v[i] = x.reshape(3)[0]": "an array of 4 elements can't have the shape .3,.",
    "x = pa.array([1, 2]); y = x; x[0] = 3; v[i] = y[0]": "'y' is a copy here, and shares.*\n.*\n.*\nsay which",
    "x = pa.eye(2); y = x[0]; x[0, 0] = 3; v[i] = y[0]": "'y' is a copy here, and shares memory in Python",
    "x = pa.eye(2); y = x.T; y[0, 1] = 3; v[i] = x[1, 0]": "'x' is a copy here, and shares memory in Python",
    "x = pa.array([1, 2]); y = x.copy(); x[0] = 3; v[i] = y[0]": None,
    "x = pa.eye(2); y = same(x)[0]; x[0, 0] = 3; v[i] = y[0]": "'y' is a copy here, and shares memory in Python",
    "x = pa.eye(2); y = same(x).T; x[0, 0] = 3; v[i] = y[0, 0]": "'y' is a copy here, and shares memory in Python",
    "x = pa.array([1, 2]); y = same(x).copy(); x[0] = 3; v[i] = y[0]": None,
    "x = pa.array([1, 2]); y = pa.array(x); x[0] = 3; v[i] = y[0]": None,
    "x = pa.array([1, 2]); y = pa.asarray(x); x[0] = 3; v[i] = y[0]": "'y' is a copy here, and shares memory in Python",
    "x = pa.array([1, 2]); y = x;  x = x + 1; x[0] = 3; v[i] = y[0]": None,
    "x = pa.array([1, 2]); y = x; x[0] = 3; v[i] = x[0]": None,
    "x = pa.array([1, 2]); change(x); v[i] = x[0]": "'p' may be the caller's array 'p', and a copy of it here",
    "x = pa.array([1, 2]); y = same(x); y[0] = 3; v[i] = x[0]": "'x' is a copy here, and shares memory in Python",
    "x = pa.zeros(2)\n        for j in range(3): y = x; x = y + 1; x[0] = j; v[i] = y[0]": None,
    "x = pa.zeros(2)\n        for j in range(3): y = x; x[0] = j; v[i] = y[0]": "'y' is a copy here",
    "i = pa.tid()": "no attribute 'tid'.*\n.*\n.*\nthe variable of a parallel loop is the thread",
    "x = pa.shared(3)": "no attribute 'shared'.*\n.*\n.*\nthere is no shared memory",
    "x = Plain(1.0) + Plain(2.0)": "'__add__' is a plain method of Plain.*\n.*\n.*\ndecorate it",
    "x = Plain(1.0); x += Plain(2.0)": "'__add__' is a plain method of Plain",
    "x = Plain(1.0); v[i] = x[0]": "'__getitem__' is a plain method of Plain",
    "v[i] = len(Plain(1.0))": "'__len__' is a plain method of Plain",
    "v[i] = Plain(1.0) < Plain(2.0)": "'__lt__' is a plain method of Plain",
    "x, y = Plain(1.0)": "Plain has an __iter__ of its own.*\n.*\n.*\ntake its fields by name",
    "x = Plain(1.0, 0.5)": "'n' of Plain is annotated int, got a float64.*\n.*\n.*\nconvert it: int.x.",
    "x = Plain(z[0, 0])": "'x' of Plain is annotated float, got a complex64.*\n.*\n.*\ntake its .real",
    "x = Plain(v)": "'x' of Plain is a number, got a 1-D",
    "x = Made(1.0)": "'later' of Made is made by Python, which a kernel can't run.*\n.*\n.*\ngive it a value",
    "v[i] = 1 if (rest(v), 'a')[1] == 'a' else 0": "the other parts of a tuple of 2 would not be evaluated here",
    "for j, l in ndrange((0, 1, 2), 3): pass": "is a size or .start, stop.*\n.*\n.*\na shape stands alone",
    "for j in ndrange((1, 3)): pass": "this loop needs 2 names.*\n.*\n.*\na tuple alone is a shape",
    "x = Point(i, 1); v[i] = x + 1": "expected a number, got a Point",
    "v[i] = typed((i, 1))": "'x' of typed.. is a number, got a tuple of 2.*\n.*\n.*\npass one of its items",
    "v[i] = of_point(i)": "'p' of of_point.. is a Point, got an int64",
    "x: f32 = 1; x: np.int8 = 2": "declare it once",
    "x: 3 = 1": "the annotation of a variable is an element type",
    "s = 0.0\n        for j in unordered(range(3)):\n            s = v[j] - s": "is not a plain reduction",
    "for j in unordered(range(3)): v[i] = j": "the unordered loop store different values into one element",
    "for j in unordered(range(3)): v[i] += j": "update one element of 'v' .*\n.*\n.*\nupdate a variable, and",
    "for j in unordered(range(1, 3)): z[i, j] = z[i, j - 1]": "into 'z', and this reads it at another place",
    "for j in unordered(range(3)): z[i, j] = z[i, 0]": "into 'z', and this reads it at another place",
    "row = z[i]\n        for j in unordered(range(3)): row[j] = row[2 - j]": "into 'z', and this reads it at",
    "x = {1, 2}": "a set is not part",
    "x = {j: 1 for j in range(3)}": "a comprehension is not part",
    "x = (j for j in range(3))": "a generator expression is not part",
    "yield i": "'yield' is not part",
    "x = yield": "'yield' is not part",
    "class A: pass": "a class is not part",
    "def g(): pass\n        x = g()": "returns nothing that could be assigned",
    "def g(*a): pass": "'.a' is not part of the kernel language",
    "def g(): return lambda: 1\n        g()": "a function that is defined in another one can't be returned",
    "from os import path": "'import' is not part",
    "x = i not in (1, 2)": "'not in' is not part",
    "x = v is not v": "'is' between numbers or arrays is not part",
    "x, *y = 1, 2": "'.' is not part of the kernel language.*\n.*\n.*\nwrite the values out",
    "x = typed(*v)": "'.' is not part of the kernel language.*\n.*\n.*\nwrite the values out",
    "x = typed(**v)": "'..' is not part of the kernel language.*\n.*\n.*\nwrite the arguments out",
    "[x, y] = 1, 2": "a list is not part",
    "v @= v": "'@' in a kernel takes arrays of constant shape",
    "v[1:] += 1": "a slice can't be assigned as a whole",
    "z[0] = 1": "a slice can't be assigned as a whole",
    "v += 1": "expected a number, got a 1-D",
    "x = -v": "expected a number, got a 1-D",
    "x = v < 1": "expected a number, got a 1-D",
    "if v: pass": "expected a number, got a 1-D",
    "x = v == None": "expected a number, got a 1-D",
    "x = 'a' + 'b'": "expected a number, got the Python object 'a'.*\n.*\n.*\na text is printed",
    "print(str(i))": "'str' is not part.*\n.*\n.*\nprint..'.x.'. shows a number",
    "x = Side.LEFT + 1": "expected a number, got .*Side.LEFT.*\n.*\n.*\nonly members of an IntEnum are numbers",
    "x = copy.copy(v)": "'copy' is not part.*\n.*\n.*\nwrite dataclasses.replace.p., or p.copy",
    "x = pa.int64(i) + pa.uint64(i)": "have no common type that holds both.*\n.*\n.*\nconvert one of them: pa.int64",
    "x = 'text'": "'x' can't hold the Python object 'text'",
    "x = ...": "'x' can't hold the Python object Ellipsis",
    "x = None": "'x' can't hold the Python object None",
    "x = v.subview": "'x' can't hold the Python object subview",
    "v[i] = v.sum()": "has no attribute 'sum'",
    "v.size = 3": "the field 'size' of a 1-D contiguous array of float32 can't be assigned",
    "v()": "a 1-D contiguous array of float32 can't be called",
    "v[i]()": "a float32 can't be called",
    "v[i] = v[i][0]": "a float32 can't be indexed",
    "v[i] = v[b]": "expected a number, got a 1-D",
    "v[i] = v[None]": "expected a number, got the Python object None",
    "v[i] = v.shape[i]": "a tuple needs a constant index",
    "v[2**63] = 1": "the number 9223372036854775808 is out of range for int64",
    "v[i] = np.sum(v)": "'sum' is not part of the kernel language.*\n.*\n.*\ncall it on the host",
    "v[i] = np.random.rand()": "'rand' draws random numbers, and .*\n.*\n.*\ndraw them on the host",
    "v[i] = np.random.normal(0, 1, size=3)": "'normal' draws random numbers, and a kernel can't",
    "v[i] = pa.random.default_rng(1).random()": "'default_rng' draws random numbers",
    "v[i] = pa.random.standard_normal(3)[i]": "'standard_normal' draws random numbers",
    "v[i] = rng.random()": "'random' draws random numbers",
    "v[i] = random.gauss(0, 1)": "'gauss' draws random numbers",
    "v[i] = sorted(v)": "'sorted' is not part .*\n.*\n.*\nsort on the host",
    "v[i] = isinstance(v, int)": "'isinstance' is not part .*\n.*\n.*\ncompare element types",
    "v[i] = int()": "'int' is not part .*\n.*\n.*\ngive it a number",
    "v[i] = float('nan')": "expected a number, got the Python object 'nan'",
    "for j, x in enumerate(v, n): pass": "the first number of enumerate.. is a constant",
    "for j, x in enumerate(): pass": "enumerate.. takes what to count",
    "for x in zip(): pass": "zip.. takes arrays and ranges",
    "for x, y in zip(v, 3): pass": "a loop runs over range",
    "for x in reversed(zip(v, v)): pass": "reversed.. takes a range or a 1-D array",
    "for j in reversed(range(0, 9, n)): pass": "the step of a range in enumerate, zip or reversed is a constant",
    "x = enumerate(i)": "'enumerate' is not part .*\n.*\n.*\nwrite it in a for loop",
    "for j in (1, 2): pass": "a loop runs over range",
    "for v[0] in range(3): pass": "this loop needs 1 name",
    "for j in range(): pass": "range.. takes 1 to 3 arguments, got 0",
    "for j in ndrange(): pass": "takes one size per loop variable",
    "x: int": "a declaration is of a name, with a value",
    "x: float = 1; x = v": "'x' is a float64 and here a 1-D",
    "x = 1 << -1": "negative shift count",
    "x = 1 << 1000": "doesn't fit into 64 bits",
    "x = v.subview(0.5, 1)": "an offset must be an integer",
    "atomic_cas(v, i, 1)": "takes an array, an index and two values.*\n.*\n.*\nwrite pa.atomic_cas.v, i, ",
    "w = v.subview(0, 4); v[i] = w[4]": "index 4 is out of range: this axis has 4 elements at most",
    "v[i] = v[2:5][3]": "index 3 is out of range: this axis has 3 elements at most",
    "v[i] = v[2:5][-4]": "index -4 is out of range: this axis has 3 elements at most",
    "v[i] = v[:1][1] if n > 3 else 0": None,  # something decides whether it is read
    "v[i] = 1 if 0 < i < 3 else 2": None,
    "for i in range(3): v[i] = i": None,
    "x = y = 3; x, y = y, x; v[i] += x": None,
    "i += 1; v[0] = 1": None,
}  # fmt: skip


def launch(statement):
    """Launches the kernel with this statement in its loop."""
    load(SETUP.format(statement))(*args())


@pytest.mark.parametrize("statement", STATEMENTS)
def test_rejected(statement):
    message = STATEMENTS[statement]
    k = load(SETUP.format(statement))
    if message is None:
        k(*args())
        return
    for _ in range(2):  # nothing half-made is left: the second call says the same
        with pytest.raises(CompileError, match=message) as caught:
            k(*args())
    assert caught.value.line is not None
    assert "\n    " in str(caught.value)
    assert "^" in str(caught.value)
    assert k.cache_info()["variants"] == 0


def test_the_whole_message():
    text = "@kernel\ndef k(v):\n    for i in range(v.size):\n        v[i] = vé + [i, 1]\n"
    with pytest.raises(CompileError) as caught:
        load(text)(args()[0])
    place = caught.value.path.strip("<>")
    assert str(caught.value) == (
        f"<{place}>:4: a list is not part of the kernel language\n"
        "    v[i] = vé + [i, 1]\n"
        "                ^^^^^^\n"
        "pa.array([x, y, z]) makes an array of it; otherwise use a tuple"
    )
    assert (caught.value.line, caught.value.column) == (4, 21)


def test_text_that_is_nowhere():
    space = dict(PLAIN, kernel=kernel)
    exec("@kernel\ndef k(v): v[0] = 1", space)
    with pytest.raises(CompileError, match=r"the source of 'k' .* can't be found"):
        space["k"](args()[0])


def test_no_function():
    with pytest.raises(TypeError, match="expected a Python function, got int"):
        kernel(3)
    with pytest.raises(TypeError, match="expected a Python function, got type"):
        func(int)


def test_star_arguments():
    with pytest.raises(CompileError, match=r"'\*rest' is not part"):
        load("@kernel\ndef k(*rest): pass\n")()


@pytest.mark.parametrize("loop", ["range(-5, 5)", "range(1 - n, n)", "range(0, -n, -1)"])
def test_a_limit_that_several_iterations_keep(loop):
    """`i <= 0` leaves one iteration only where the loop begins at 0 and goes up."""
    text = f"@kernel\ndef k(v, n: int):\n    for i in {loop}:\n        if i <= 0:\n            v[0] += v[1]\n"
    with pytest.raises(CompileError, match="update one element of 'v' at the same time"):
        load(text)(args()[0], 3)


LIMITED = """
@kernel
def k(v, n: int):
    for i in range(0, n, 2):
        if {}:
            v[0] += v[1]
"""
ONE = [
    "i < 1", "i < 2", "i <= 0", "1 > i", "not i >= 2", "i - 3 <= -2", "3 - i > 1", "-i > -2", "2 * i + 1 < 5",
    "i * n < 1",
]  # fmt: skip
SEVERAL = [
    "i < 3", "i - 3 <= 0", "i - 1 < 2", "3 - i >= 0", "0 >= i - 3", "-i <= 0", "i * 2 <= 4", "not i - 3 > 0",
    "i > 0",
]  # fmt: skip


@pytest.mark.parametrize("condition", ONE)
def test_a_limit_that_one_iteration_keeps(condition):
    load(LIMITED.format(condition))(args()[0], 3)


@pytest.mark.parametrize("condition", SEVERAL)
def test_a_limit_beyond_the_first_iteration(condition):
    with pytest.raises(CompileError, match="update one element of 'v' at the same time"):
        load(LIMITED.format(condition))(args()[0], 3)
