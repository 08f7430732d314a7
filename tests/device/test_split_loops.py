"""Loops that divide their variable mean what plain Python says, whatever the divisors are."""

import linecache
import random

import numpy as np
import pytest
from kernel_tools import agree, launch, on

from pyarray.errors import BoundsError
from pyarray.jit.kernel import kernel
from pyarray.jit.launch_state import debug
from pyarray.lang.markers import ndrange, unordered

DIVISORS = [
    (3, 4),
    (1, 1),
    (7, 1),
    (1, 5),
    (0, 2),
    (2, 0),
    (-3, 2),
    (3, -2),
    (100, 3),
    (2**40, 2**40),
    (2**62, 3),
]
RANGES = [(0, 0), (0, 1), (0, 97), (5, 60), (-20, 30), (2**62 - 40, 2**62 + 3), (9, 2)]
TERMS = ["i // n", "i % n", "i // n % m", "i // n // m", "i % (n * m)", "i // (n * m)", "i % (n * m) // n",
         "i % (n * m) % n", "i // (2 * n)", "q", "q % m", "q // m", "i % 6", "i // 6 % n", "i // 1 + i % 1",
         "(i + 1) % n", "i // m", "(q := q + m) % n"]  # fmt: skip
HEADS = {
    "parallel": ["    for i in range(start, stop):"],
    "inner": ["    for _ in range(1):", "        for i in range(start, stop):"],
    "inner pairs": [
        "    for _ in range(1):",
        "        for _, k in ndrange(1, stop - start):",
        "            i = k",
    ],
    "pairs": ["    for _, k in ndrange(1, stop - start):", "        i = k"],
}


def drawn(seed):
    draw = random.Random(seed)
    how = list(HEADS)[seed % 4]
    terms = draw.sample(TERMS, draw.randint(1, 4))
    lines = ["def drawn(out, start, stop, n, m):", *HEADS[how]]
    pad = "    " * (2 + how.startswith("inner"))
    body = ["q = i // n", f"x = {draw.randint(2, 9)} * ({terms[0]})", *(f"x = x + ({t})" for t in terms[1:])]
    if draw.random() < 0.5:
        body.insert(1, "if i % n == 1:\n" + pad + "    continue")
    body.append("out[i - start] = x" if not how.endswith("pairs") else "out[i] = x")
    text = "\n".join([*lines, *(pad + line for line in body)]) + "\n"
    path = f"<drawn split {seed}>"
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    exec(compile(text, path, "exec"), space := {"ndrange": ndrange})
    return kernel(space["drawn"]), text


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_as_python(device, seed):
    made, text = drawn(seed)
    for start, stop in RANGES:
        for n, m in DIVISORS:
            expected = np.zeros(max(stop - start, 1), np.int64)
            made.__wrapped__(expected, start, stop, np.int64(n), np.int64(m))
            (got,) = launch(made, device, np.zeros_like(expected), start, stop, n, m)[:1]
            np.testing.assert_array_equal(expected, got, err_msg=f"{(start, stop, n, m)}\n{text}")


@kernel
def spread(out, a, w):
    for i in range(out.size):
        out[i] = a[i // w, i % w]


def test_failures_name_the_iteration(device):
    """`tid` is the number of the iteration, in the loop as it was written."""
    out, a = on(device, np.zeros(24, np.float32)), on(device, np.ones((4, 6), np.float32))
    with debug():
        spread(out, a, 6)
        with pytest.raises(BoundsError, match=r"axis 0: got index 4") as caught:
            spread(out, a, 5)
    assert caught.value.tid == 20


@pytest.mark.parametrize("count", [10**5, 10**5 + 1])
def test_blocks_of_several_threads(device, count):
    """Blocks begin anywhere in a row, and large results go by blocks of their own."""
    for width in (1, 2, 3, 64, 1000):
        a = np.random.default_rng(0).random((count // width + 1, width)).astype(np.float32)
        (got,) = launch(spread, device, np.zeros(count, np.float32), a, width)[:1]
        np.testing.assert_array_equal(got, a.ravel()[:count])


@kernel
def divided_by_inner_variables(out, rows, n):
    for i in range(out.size):
        s = 0
        for j in range(1, n):
            s += i % j + i // n
        for j, k in ndrange(2, n):
            s += i // (j + 1) % (k + 1)
        out[i] = s
    for i in range(rows.shape[0]):
        for k in unordered(range(rows.shape[1])):
            s = 0
            for j in range(1, n):
                s += k % j + k // n
            rows[i, k] = s + i


def test_inner_variables_are_no_divisors_of_digits(device):
    for checked in (False, True):
        with debug(checked):
            agree(divided_by_inner_variables, device, np.zeros(50, np.int64), np.zeros((3, 500), np.int64), 7)
