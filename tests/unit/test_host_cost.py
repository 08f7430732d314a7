"""What a warm call and the import cost the host, in what doesn't depend on the machine: calls of Python functions and
of functions in C, and instructions of the interpreter. A limit is a little above what it takes; whoever makes it
cheaper lowers it.
"""

import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

import pyarray as pa

pytestmark = pytest.mark.skipif(sys.implementation.name != "cpython", reason="counts the interpreter's instructions")
WARM = 5  # calls after which nothing is looked for any more


@pa.kernel
def scale(v: pa.BufferView[pa.float32], factor: pa.float32):
    for i in range(v.size):
        v[i] = v[i] * factor


def counts(call):
    """Calls of one warm `call`, in Python and in C, and its instructions; its own are among them."""
    found = Counter()

    def profile(frame, event, argument):
        found[event] += 1

    def trace(frame, event, argument):
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        found["opcode"] += event == "opcode"
        return trace

    for _ in range(WARM):
        call()
    before = sys.getprofile(), sys.gettrace()
    try:
        sys.setprofile(profile)
        call()
        sys.setprofile(None)
        sys.settrace(trace)
        call()
    finally:
        sys.settrace(before[1])
        sys.setprofile(before[0])
    return found["call"], found["c_call"], found["opcode"]


x = np.arange(100, dtype=np.float32)
A, B, M = (pa.asarray(v, copy=True) for v in (x, x, x.reshape(10, 10)))
LIMITS = {
    "a + b": (lambda: A + B, 9, 8, 255),
    "a + 2.0": (lambda: A + 2.0, 9, 8, 240),
    "a += b": (lambda: A.__iadd__(B), 6, 5, 145),
    "add(a, b, out=a)": (lambda: pa.add(A, B, out=A), 6, 5, 200),
    "a[1:-1]": (lambda: A[1:-1], 3, 4, 115),
    "m[1:, ::2]": (lambda: M[1:, ::2], 8, 17, 495),
    "a.sum()": (lambda: A.sum(), 2, 3, 15),
    "m.sum(axis=0)": (lambda: M.sum(axis=0), 2, 3, 15),
    "m @ m": (lambda: M @ M, 2, 3, 15),
    "where(a > 0, a, b)": (lambda: pa.where(A > 0, A, B), 2, 3, 25),
    "a user's kernel": (lambda: scale(A, 2.0), 1, 1, 10),
    "a user's kernel of a fresh view": (lambda: scale(A[8:24], 2.0), 1, 1, 15),
}


@pytest.mark.parametrize("name", LIMITS)
def test_a_warm_call_stays_cheap(name):
    call, *limits = LIMITS[name]
    found = counts(call)
    said = f"{name}: calls of Python functions, of C functions, instructions: {found}, of at most {limits}"
    assert all(n <= limit for n, limit in zip(found, limits, strict=True)), said


IMPORT = """
import sys
found = 0
def trace(frame, event, argument):
    global found
    frame.f_trace_opcodes, frame.f_trace_lines = True, False
    found += event == "opcode"
    return trace
counts = []
for name in ("numpy", "pyarray"):
    found = 0
    sys.settrace(trace)
    __import__(name)
    sys.settrace(None)
    counts.append(found)
print(*counts)
"""
# Of the instructions of NumPy's import, which were a quarter fewer before 2.4.
SHARE = 0.7 if np.lib.NumpyVersion(np.__version__) >= "2.4.0" else 1.0


def test_importing_stays_cheap():
    run = subprocess.run([sys.executable, "-c", IMPORT], check=True, capture_output=True, text=True)
    theirs, ours = map(int, run.stdout.split())
    said = f"{ours} instructions to import pyarray after NumPy, of at most {SHARE} * {theirs}"
    assert 0 < ours <= SHARE * theirs, f"{said}: import what few users need when it is used (pyarray/lazy.py)"


def test_what_is_counted_is_the_call():
    def work(n):
        return sum(abs(k) for k in range(n))

    small, large = counts(lambda: work(10)), counts(lambda: work(20))
    assert small == counts(lambda: work(10))
    assert all(a < b for a, b in zip(small, large, strict=True))
