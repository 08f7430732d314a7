"""Loops and slices near the limits of 64 bits, compiled so that undefined behaviour ends the process."""

import subprocess
import sys

import pytest

FLAGS = ("-fsanitize=undefined", "-fno-sanitize=alignment", "-fsanitize-undefined-trap-on-error")
SCRIPT = """
import itertools, sys
import numpy as np, pyarray as pa

most, least = 2**63 - 1, -(2**63)
flags = tuple(sys.argv[1:])

@pa.kernel(flags=flags)
def inner(out, bounds):
    for t in range(bounds.shape[0]):
        n, last = 0, 0
        for i in range(bounds[t, 0], bounds[t, 1], bounds[t, 2]):
            n += 1
            last = i
            if n == 4:
                break
        out[t, 0], out[t, 1] = n, last

@pa.kernel(flags=flags)
def cut(out, v, bounds):
    for t in range(bounds.shape[0]):
        w = v[bounds[t, 0]:bounds[t, 1]:bounds[t, 2]][::bounds[t, 2]]
        out[t, 0], out[t, 1] = w.size, w[w.size - 1] if w.size > 0 else 0

@pa.kernel(flags=flags)
def outer(out, start, stop, step):
    for i in range(start, stop, step):
        pa.atomic_add(out, 0, 1)
        pa.atomic_max(out, 1, i)

edges = (least, least + 1, -(2**62), -3, 0, 1, 2**62, most - 1, most)
bounds = np.array([b for b in itertools.product(edges, edges, edges) if b[2]])
out, v = np.zeros((len(bounds), 2), np.int64), np.arange(9)
for checked in (False, True):
    with pa.debug(checked):
        inner(out, bounds)
        for (a, b, c), found in zip(bounds.tolist(), out.tolist()):
            seen = list(itertools.islice(range(a, b, c), 4))
            assert found == [len(seen), seen[-1] if seen else 0], (a, b, c)
        cut(out, v, bounds)
        for (a, b, c), found in zip(bounds.tolist(), out.tolist()):
            w = v[a:b:c][::c]
            assert found == [w.size, w[-1] if w.size else 0], (a, b, c)
        few = (most - 2, most, 1), (least, least + 3, 2), (least, most, 2**62), (most, least, least)
        for a, b, c in few:
            o = np.array([0, least])
            outer(o, a, b, c)
            assert o.tolist() == [len(list(range(a, b, c))), max(range(a, b, c))]
print("done")
"""


@pytest.mark.slow
def test_nothing_is_undefined_near_the_limits(tmp_path):
    path = tmp_path / "limits.py"
    path.write_text(SCRIPT)
    ran = subprocess.run([sys.executable, path, *FLAGS], capture_output=True, text=True, timeout=300)
    if "unrecognized" in ran.stderr or "unsupported option" in ran.stderr:
        pytest.skip("the compiler has no such checks")
    assert ran.stdout == "done\n", ran.stderr
