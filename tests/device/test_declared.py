"""Directions that a kernel declares: In, Out and InOut, enforced."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_tools import on
from strategies import examples

import pyarray as pa


@pa.func
def put(v, i, x):
    v[i] = x


@pa.kernel
def promised(out: pa.Out[pa.BufferView[pa.float64]], v: pa.In, acc: pa.InOut[pa.ndarray]):
    for i in range(v.size):
        out[i] = v[i]


def test_declared_directions(device):
    out, v = on(device, np.zeros(4)), on(device, np.arange(4.0))
    promised(out, v, v)
    assert [row.direction for row in promised.signature.values()] == ["OUT", "IN", "INOUT"]
    promised(out, v[:2], v)  # not checked, and not written
    with pa.debug():
        promised(out, v, v)
        message = r"promised\(\): 'out' is declared Out, and this launch left 3 of its 4 elements unwritten, "
        with pytest.raises(ValueError, match=message + r"the first at index \(1,\); write all of them"):
            promised(out, v[:1], v)
        promised(out[:1], v[:1], v)
        promised(out[:0], v[:0], v)
    v.flags.writeable = False
    with pytest.raises(ValueError, match="'acc' is written by the kernel"):
        promised(out, v, v)


@dataclass
class Result:
    m: pa.Out[pa.ndarray[..., 2]]
    rows: int


@pa.kernel(debug=True)
def through_views(r: Result):
    for i in range(r.rows):
        row = r.m[i]
        for j in range(len(row)):
            put(row, j, 1)


@given(st.integers(0, 3), st.integers(0, 3), st.booleans(), st.booleans(), st.sampled_from(["f8", "c16", "u1"]))
@examples(20)
def test_whole_writing_is_seen_through_views(rows, columns, transposed, reverse, dtype):
    base = pa.zeros((3, 3), dtype=np.dtype(dtype))
    m = (base.T if transposed else base)[:rows, :columns]
    m = m[:, ::-1] if reverse else m
    through_views(Result(m, rows))
    assert (pa.asnumpy(m) == 1).all()
    if rows and columns:
        with pytest.raises(ValueError, match=rf"'r\.m' is declared Out, and this launch left {columns} of"):
            through_views(Result(m, rows - 1))


def test_directions_are_enforced(device):
    @pa.func
    def touch(x):
        x[0] = 1

    @pa.func
    def only(x: pa.In[pa.BufferView]):
        x[0] = 1

    def stores(v: pa.In):
        for i in range(v.size):
            v[i] = 1

    def passes(v: pa.In):
        for _ in range(1):
            touch(v[2:])

    def reads(v: pa.Out):
        for i in range(v.size):
            v[i] += 1

    def nothing(v: pa.Out, w: pa.Out):
        for i in range(w.size):
            w[i] = v[i] if i < 0 else 1.0

    def helper(v):
        for _ in range(1):
            only(v)

    v = on(device, np.zeros(4))
    for function, args, line, message in (
        (stores, (v,), "v[i] = 1", "'v' of stores.. is declared In and is written here(.*\n){3}declare it"),
        (passes, (v,), "x[0] = 1", "'v' of passes.. is declared In and is written here"),
        (reads, (v,), "v[i] += 1", "'v' of reads.. is declared Out and is read here before it is wr"),
        (nothing, (v, v), "w[i] = v[i]", "'v' of nothing.. is declared Out and is read here"),
        (helper, (v,), "x[0] = 1", "'x' of only.. is declared In and is written here"),
    ):
        with pytest.raises(pa.CompileError, match=message) as caught:
            pa.kernel(function)(*args)
        assert line in str(caught.value)
    with pytest.raises(TypeError, match=r"the annotation of 'v' is In\[float32\]"):
        pa.kernel(of_a_number)(v)
    with pytest.raises(TypeError, match=r"In\[\.\.\.\] takes one annotation of an array"):
        pa.In[pa.float32, 1]


def of_a_number(v: pa.In[pa.float32]):
    pass


def test_unwritten_at_all(device):
    @pa.kernel
    def k(v: pa.Out):
        pass

    with pytest.raises(pa.CompileError, match=r"'v' of k\(\) is declared Out and is never written"):
        k(on(device, np.zeros(2)))
