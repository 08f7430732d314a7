"""Elementwise functions and sums of 16 to 10^7 elements: fresh and `out=`, contiguous, sliced, transposed.

`python -m bench.elementwise [--json PATH]`
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import pyarray as pa

from . import kernels, peers
from .timing import Figure, Row, race, table

ABOUT = """Elementwise functions and sums of float32, fresh results and `out=`, on slices and transposes; next
to NumPy, PyTorch and numexpr on the same numbers."""
SIDES = re.compile(r", \d+×\d+")  # in the name of a case
SIZES = (16, 10**3, 10**5, 10**7)
Calls = dict[str, Callable[[], Any] | None]


wave = kernels.wave_of_pyarray(pa)


class Operands:
    """The same numbers in the arrays of every library, which are on the same memory where the library can."""

    def __init__(self, *shape: int):
        rng = np.random.default_rng(0)
        self.np = [rng.standard_normal(shape, dtype=np.float32) for _ in range(3)]
        self.pa = [pa.array(x) for x in self.np]
        torch = peers.peer("torch")
        self.torch = [torch.from_numpy(x.copy()) for x in self.np] if torch else None


def add(x: Operands) -> tuple[Calls, Calls]:
    """`a + b`: fresh result, `out=`."""
    torch, ne = peers.peer("torch"), peers.peer("numexpr")
    (a, b, out), (p, q, r) = x.np, x.pa
    fresh: Calls = {"pyarray": lambda: p + q, "numpy": lambda: a + b}
    kept: Calls = {"pyarray": lambda: pa.add(p, q, out=r), "numpy": lambda: np.add(a, b, out=out)}
    if x.torch:
        s, t, u = x.torch
        fresh["torch"], kept["torch"] = lambda: s + t, lambda: torch.add(s, t, out=u)
    if ne:
        names = {"a": a, "b": b}
        fresh["numexpr"] = lambda: ne.evaluate("a + b", local_dict=names)
        kept["numexpr"] = lambda: ne.evaluate("a + b", local_dict=names, out=out)
    return fresh, kept


def waves(x: Operands) -> Calls:
    """`a*b + sin(a)*exp(-b*b)`: one kernel, numexpr's one pass, and eager temporaries."""
    torch, ne = peers.peer("torch"), peers.peer("numexpr")
    (a, b, out), (p, q, r) = x.np, x.pa
    calls: Calls = {
        "pyarray": lambda: wave(p, q, r),
        "pyarray eager": lambda: p * q + pa.sin(p) * pa.exp(-q * q),
        "numpy": lambda: a * b + np.sin(a) * np.exp(-b * b),
    }
    if x.torch:
        s, t, _ = x.torch
        calls["torch"] = lambda: s * t + torch.sin(s) * torch.exp(-t * t)
    if ne:
        names = {"a": a, "b": b}
        calls["numexpr"] = lambda: ne.evaluate("a*b + sin(a)*exp(-b*b)", local_dict=names, out=out)
    return calls


def total(x: Operands) -> Calls:
    """Sum of all elements."""
    torch, ne = peers.peer("torch"), peers.peer("numexpr")
    a, p = x.np[0], x.pa[0]
    calls: Calls = {"pyarray": lambda: pa.sum(p), "numpy": lambda: np.sum(a)}
    if x.torch:
        s = x.torch[0]
        calls["torch"] = lambda: torch.sum(s)
    if ne:
        calls["numexpr"] = lambda: ne.evaluate("sum(a)", local_dict={"a": a})
    return calls


def sliced(x: Operands) -> tuple[Calls, Calls]:
    """`a[1:-1] + b[:-2]`, slices made in the call: fresh result, `out=`."""
    torch, ne = peers.peer("torch"), peers.peer("numexpr")
    (a, b, c), (p, q, r) = x.np, x.pa
    out, kept_out = c[2:], r[2:]
    fresh: Calls = {"pyarray": lambda: p[1:-1] + q[:-2], "numpy": lambda: a[1:-1] + b[:-2]}
    kept: Calls = {
        "pyarray": lambda: pa.add(p[1:-1], q[:-2], out=kept_out),
        "numpy": lambda: np.add(a[1:-1], b[:-2], out=out),
    }
    if x.torch:
        s, t, u = x.torch
        held = u[2:]
        fresh["torch"], kept["torch"] = lambda: s[1:-1] + t[:-2], lambda: torch.add(s[1:-1], t[:-2], out=held)
    if ne:
        fresh["numexpr"] = lambda: ne.evaluate("a + b", local_dict={"a": a[1:-1], "b": b[:-2]})
        kept["numexpr"] = lambda: ne.evaluate("a + b", local_dict={"a": a[1:-1], "b": b[:-2]}, out=out)
    return fresh, kept


def transposed(x: Operands) -> tuple[Calls, Calls]:
    """`a.T + b`: fresh result, `out=`."""
    torch, ne = peers.peer("torch"), peers.peer("numexpr")
    (a, b, out), (p, q, r) = x.np, x.pa
    fresh: Calls = {"pyarray": lambda: p.T + q, "numpy": lambda: a.T + b}
    kept: Calls = {"pyarray": lambda: pa.add(p.T, q, out=r), "numpy": lambda: np.add(a.T, b, out=out)}
    if x.torch:
        s, t, u = x.torch
        fresh["torch"], kept["torch"] = lambda: s.T + t, lambda: torch.add(s.T, t, out=u)
    if ne:
        fresh["numexpr"] = lambda: ne.evaluate("a + b", local_dict={"a": a.T, "b": b})
        kept["numexpr"] = lambda: ne.evaluate("a + b", local_dict={"a": a.T, "b": b}, out=out)
    return fresh, kept


def cases(size: int) -> list[tuple[str, Calls, float | None]]:
    """(name, candidates, ratio to reach) of every case of one size."""
    flat, side = Operands(size), math.isqrt(size)
    square = Operands(side, side)
    goal = 1.0 if size >= 10**6 else 0.25 if size == 16 else None
    named: list[tuple[str, Calls, float | None]] = []
    for name, (fresh, kept) in (
        ("a + b", add(flat)),
        ("a[1:-1] + b[:-2]", sliced(flat)),
        (f"a.T + b, {side}×{side}", transposed(square)),
    ):
        named += [(name, fresh, goal), (f"{name}, out=", kept, goal)]
    named.append(("sum(a)", total(flat), goal))
    named.append(("a*b + sin(a)*exp(-b*b), one kernel", waves(flat), 2.0 if goal == 1.0 else goal))
    return named


def run(quick: bool = False) -> Iterator[Row | Figure]:
    """All of it, printed as it comes."""
    for size in SIZES[: 3 if quick else None]:
        budget = (0.15 if size < 10**6 else 1.0) * (0.3 if quick else 1.0)
        group = [
            Row(f"{size} elements", name, race(calls, budget), goal, n=size, series=SIDES.sub("", name))
            for name, calls, goal in cases(size)
        ]
        print(f"float32, n = {size}: minimum (median)\n{table(group)}\n", flush=True)
        yield from group


if __name__ == "__main__":
    from .part import alone

    alone("elementwise")
