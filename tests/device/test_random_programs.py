"""Random programs of all that the language has, against plain Python: `make random-programs` runs more."""

import os

import pytest
from random_programs.names import NAMES
from random_programs.run import Program, Report, arrays_of_rows, check, difference

PROGRAMS = int(os.environ.get("PYARRAY_TEST_PROGRAMS", "8"))


@pytest.mark.parametrize("number", range(PROGRAMS))
def test_as_python(device, number):
    report = check([number], seed=0, device=device)
    assert not report.differences, report.differences[0]


# gcc 12 took an argument on the stack for unchanged where a return address lay over it, and crashed.
OVERWRITTEN_ARGUMENT = """
def drawn(m, out, log, fo, a, x0):
    for i in range(5):
        row = m[i]
        r = a[i]
        x = x0 + i
        y = 1
        z = i
        f = 0.5
        b = x0 % 2 == 0
        v = np.array([x % M, i, 2])
        w = np.array([1, 2, x % 5])
        g = np.array([0.5, 1.5], dtype=np.float32)
        p = Body(x % M, np.array([1, i, 3]), Pose(4, 0.25))
        q = Body(2, np.array([x % 7, 1, 0]), Pose(i), True)
        rng = make_rng(x0, i)
        match (p.total(len(v)) % 2, mix(c=r[3].small, b=y, a=r[3].small) % 3):
            case (0, y):
                g[(np.maximum(((r[1:][r[1].pose.a % 3].total(y) - w) % M), (w[2] - len(r)) % M) @ v) % M % 2] = i % 8
            case 0:
                q.v = (np.cross(r[int(r[int(f) % 4].small) % 4].v.copy(), r[0].v) % M).copy()
            case _:
                fo[i, (v[0] * 3 + v[2]) % 3] = float(g[1])
        w = (((-w % M) + np.where(w < p.v, r[0].v, rng.integers(v[0] % 5, len(v) % 900 + 5))) % M).copy()
        r[rng.integers(row[1] % 5, z % 900 + 5) % 4].n = int(p.small)
        out[i, 0] += x
        out[i, 1] += y
        fo[i, 0] += f
        fo[i, 1] += float(g[0] + g[1])
        fo[i, 2] += p.pose.b + float(b)
"""


def test_arguments_on_the_stack_are_stored_again(device):
    program = Program(OVERWRITTEN_ARGUMENT, NAMES, {}, arrays_of_rows)
    assert difference(program, "kept", device, Report()) is None
