"""What stands in one statement is evaluated in the order of Python, in release and in debug mode."""

from dataclasses import dataclass

import numpy as np
import pytest
from kernel_tools import launch
from test_control import as_python

import pyarray as pa


@dataclass
class Point:
    x: pa.float64
    n: pa.int64


@pa.func
def bump(w, i):
    w[i] = 5.0
    return i


@pa.kernel
def stores(out, m, t, w):
    for i in range(out.size):
        out[bump(w, i)] = w[i]
        w[i] = i
        m[i, bump(w, i) % 2] = w[i] + 1
        w[i] = i
        t[bump(w, i)] = t[i] + w[i]
        w[i] = i
        m[bump(w, i)][1] = w[i]
        w[i] = i
        out[bump(w, i)] += w[i]


def test_a_stored_value_comes_before_its_place(device):
    n = 70
    as_python(stores, device, np.zeros(n), np.zeros((n, 2)), np.ones(n), np.arange(float(n)))


def test_a_stored_value_comes_before_the_atomic_in_its_index(device):
    @pa.kernel
    def counted(out, c):
        for i in range(out.shape[0]):
            out[i, pa.atomic_add(c, i, 1)] = c[i]
            out[i, pa.atomic_add(c, i, 1)] = c[i] + 10

    for checked in (False, True):
        with pa.debug(checked):
            out, c = launch(counted, device, np.full((9, 3), -1), np.zeros(9, np.int64))
        assert out.tolist() == [[0, 11, -1]] * 9
        assert c.tolist() == [2] * 9


@pa.kernel
def local_stores(out, w):
    for i in range(out.shape[0]):
        p = pa.zeros(4)
        j = 0
        p[j] = (j := 2)
        p[(j := j + 1)] = j
        p[j] += (j := 1)
        p[j] = w[bump(w, i)] + w[i]
        for k in range(4):
            out[i, k] = p[k]


def test_an_element_of_a_local_array_is_found_behind_its_value(device):
    as_python(local_stores, device, np.zeros((9, 4)), np.arange(9.0))
    for checked in (False, True):  # C has no order for two changes of a variable in one assignment
        source = local_stores.source("cpu", args=(pa.zeros((9, 4)), pa.arange(9.0)), debug=checked)
        assert "value = ((double)(v_j = 2, v_j));" in source
        assert "[v_j] = ((" not in source


def test_fields_are_found_behind_their_values(device):
    @pa.kernel
    def fields(r, w):
        for i in range(r.size):
            r[bump(w, i)].x = w[i]
            w[i] = i
            r[bump(w, i)] = Point(w[i] + r[i].x, int(w[i]))
            w[i] = i
            r[bump(w, i)].n += int(w[i])

    for checked in (False, True):
        with pa.debug(checked):
            r, w = pa.zeros(5, dtype=Point, device=device), pa.arange(5.0, device=device)
            fields(r, w)
            assert r["x"].tolist() == [0, 2, 4, 6, 8]
            assert r["n"].tolist() == [5, 6, 7, 8, 9]


@pa.kernel
def conditions(out, v, y):
    for i in range(out.size):
        f = v[i]
        if (x := v[i]) > 1 and x < 5:
            out[i] += 1
        if 1 < f * 2 < 30 and y < 3:
            out[i] += 2
        if (x := f + 1) > 2 and y < 3 and x < 5:
            out[i] += 4
        if (x := f - 1) < 2 or (y > 3 or x > 5):
            out[i] += 8
        out[i] += 16 if y < f < x + 9 else 32
        out[i] += 64 * min((x := f + 2), x)


def test_a_condition_is_assigned_before_it_is_read(device):
    v = np.arange(20.0)
    as_python(conditions, device, np.zeros(20), v, 2)
    source = conditions.source("cpu", args=(pa.zeros(20), pa.asarray(v), 2), debug=False)
    lines = [line for line in source.splitlines() if "if (" in line and "v_x = " in line]
    assert len(lines) == 3
    # C evaluates the operands of & and | in any order, those of && and || from left to right
    assert "v_x) > 1.0) && (v_x < 5.0)" in lines[0]
    assert "v_x) > 2.0) & (v_y < 3)) && (v_x < 5.0)" in lines[1]
    assert "v_x) < 2.0) || ((v_y > 3) | (v_x > 5.0))" in lines[2]


@pa.kernel
def parts(out, v, n):
    for i in range(out.shape[0]):
        out[i, 0] = (y := v[i]).imag + y
        out[i, 1] = pa.imag(y := v[i] + 1) + y
        out[i, 2] = (y := v[i] + 2).real + pa.conj(y)
        out[i, 3] = (k := n[i]).imag + (k := k + 1).real + k
        out[i, 4] = (b := v[i] > 1).imag + b
        out[i, 5] = pa.isnan(k := n[i]) + pa.isfinite(k) + k
        out[i, 6] = (y := v[i] + 3) ** 0 + y
        out[i, 7] = pa.array([(y := v[i] + 4), 1.0]).size + y


def test_operands_are_evaluated_whose_value_is_not_needed(device):
    as_python(parts, device, np.zeros((5, 8)), np.arange(5.0), np.arange(5))


def test_operands_are_tested_whose_value_is_not_needed(device):
    @pa.kernel
    def imaginary(out, v):
        for i in range(out.size):
            out[i] = v[i + 100].imag

    for dtype in ("float64", "float32", "float16", "int32", "bool"):
        with pa.debug(), pytest.raises(pa.BoundsError, match="got index 100"):
            launch(imaginary, device, np.zeros(5), np.zeros(5, dtype))
