"""Loops that ask whether they are at an end of their range give what plain Python gives, whatever they ask."""

import linecache
import random

import numpy as np
import pytest

import pyarray as pa
from pyarray.jit.kernel import kernel
from pyarray.lang import emit_index_sets
from pyarray.lang.markers import ndrange, unordered

FORMS = (
    "j - {a} if j {op} {b} else {b}", "{b} if w - {a} {op} j else j - {b}", "max(j - {a}, {b})",
    "w - {a} if j + {b} {op} w - {a} else j + {a}", "min(w - {b}, j + {a})", "max(min(j - {a}, w - {b}), {a})",
    "j + {a} if j + {b} {op} w and j {op} {a} else {b}", "j + {a} if n {op} j else j",
    "j - {a} if {b} {op} j or j {op} w - {b} else w - {a}",
)  # fmt: skip
RANGES = ("w", "{a}, w", "{a}, w - {b}", "w - {b}", "n", "{a}, {b}0", "n, w")


def drawn(rng):
    """The text of a kernel: for each j the sum of a few chosen numbers, and how often it ran."""

    def numbers():
        return {"a": rng.randint(0, 3), "b": rng.randint(0, 3), "op": rng.choice(("<", "<=", ">", ">=", "==", "!="))}

    chosen = [f"x{k} = {rng.choice(FORMS).format(**numbers())}" for k in range(rng.randint(1, 3))]
    total = " + ".join(f"{3**k} * x{k}" for k in range(len(chosen)))
    body = [*chosen, f"out[i, j] += {total} * (j + 1)", "out[i, w + 3] += 1"]
    form = rng.randrange(3)
    if form == 0:
        lines = ["for i, j in ndrange(out.shape[0], w):", *(f"    {x}" for x in body[:-1])]
    else:
        range_ = f"range({rng.choice(RANGES).format(**numbers())})"
        head = f"for j in {f'unordered({range_})' if form == 1 else range_}:"
        used = body[:-1] if form == 1 else body
        lines = ["for i in range(out.shape[0]):", f"    {head}", "        if 0 <= j < w:"]
        lines += [f"            {x}" for x in used]
    return "def chooses(out, w, n):\n" + "".join(f"    {x}\n" for x in lines)


def compiled(text, number):
    """The kernel, and the function that Python runs."""
    name = f"<index set {number}>"
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    sizes = lambda *n: [(i, j) for i in range(n[0]) for j in range(n[1])]  # noqa: E731
    scope, plain = {"ndrange": ndrange, "unordered": unordered}, {"ndrange": sizes, "unordered": lambda r: r}
    exec(compile(text, name, "exec"), scope)
    exec(compile(text, name, "exec"), plain)
    return kernel(scope["chooses"]), plain["chooses"]


@pytest.mark.parametrize("part", range(4))
def test_drawn_questions(device, part):
    rng = random.Random(part)
    for number in range(12 if device == "cpu" else 2):
        text = drawn(rng)
        made, plain = compiled(text, f"{part}.{number}")
        for w in (0, 1, 2, 3, 5, 40):
            n = rng.choice((0, 1, w // 2, w - 1, w))
            want = np.zeros((3, w + 4), np.int64)
            plain(want, w, n)
            for checked in (False, True):
                out = pa.zeros((3, w + 4), dtype=pa.int64, device=device)
                if checked:
                    with pa.debug():
                        made(out, w, n)
                else:
                    made(out, w, n)
                np.testing.assert_array_equal(pa.asnumpy(out), want, err_msg=f"{text}w = {w}, n = {n}")


@pa.kernel
def periodic(v, out):
    height, width = v.shape
    for i, j in pa.ndrange(height, width):
        left, right = j - 1 if j > 0 else width - 1, j + 1 if j + 1 < width else 0
        out[i, j] = v[i, left] - v[i, right] + v[max(i - 1, 0), min(j + 2, width - 1)]


def test_neighbours(device):
    for shape in ((1, 1), (4, 2), (3, 3), (7, 100), (30, 1000), (0, 5), (5, 0)):
        x = np.random.default_rng(1).integers(0, 99, shape).astype(np.float32)
        out = pa.empty(shape, dtype="float32", device=device)
        periodic(pa.asarray(x, device=device), out)
        above = x[[max(i - 1, 0) for i in range(shape[0])]][:, [min(j + 2, shape[1] - 1) for j in range(shape[1])]]
        want = np.roll(x, 1, 1) - np.roll(x, -1, 1) + above
        np.testing.assert_array_equal(pa.asnumpy(out), want)


@pa.kernel
def far(out, first, last):
    for i in range(2):
        for j in range(first, last):
            out[i] += 1 if j + 1 < last else 100


@pa.kernel
def shrinks(out, n):
    for i in range(1):
        for j in range(n[i]):
            out[j] = j + 1 if j + 1 < n[i] else -1
            n[i] -= 1


def test_ends_that_are_far_and_ends_that_change(device):
    for first in (-(2**63), -(2**62) - 2, 2**62 - 3, 2**62, 2**63 - 6):
        out = pa.zeros(2, dtype=pa.int64, device=device)
        far(out, first, first + 5)
        assert out.tolist() == [104, 104]
    out, n = pa.zeros(6, dtype=pa.int64, device=device), pa.full(1, 6, dtype=pa.int64, device=device)
    shrinks(out, n)
    assert out.tolist() == [1, 2, 3, -1, -1, -1]


def test_which_loops_are_split(monkeypatch):
    """Those whose questions are about their ends."""
    found = []
    between = emit_index_sets._between
    monkeypatch.setattr(emit_index_sets, "_between", lambda loop: found.append(between(loop)) or found[-1])
    for number, (choice, low, high) in enumerate((
        ("j - 1 if j > 0 else w - 1", 1, 0), ("j + 1 if j + 1 < w else 0", 0, -1), ("max(j - 2, 0)", 2, 0),
        ("min(j + 2, w - 1)", 0, -2), ("j if j != w - 1 else 0", 0, -1), ("j if 0 < j and j <= w - 3 else 0", 1, -2),
        ("j if j > n else 0", None, None), ("j if j > 100 else 0", None, None), ("j if n > 0 else 0", None, None),
    )):  # fmt: skip
        head = "def chooses(out, w, n):\n    for i in range(2):\n        for j in range(w):\n"
        text = f"{head}            out[i, j] = {choice}\n"
        made, _ = compiled(text, f"which {number}")
        found.clear()
        made(pa.zeros((2, 9), dtype=pa.int64, device="cpu"), 9, 4)
        ends = {None if b is None else (b.low, b.high) for b in found}
        assert ends == {None if low is None else (low, high)}, choice
