"""About forty functions of the namespace on 10^3 and 10^7 elements, next to NumPy and torch, and others on
10^6 elements, next to NumPy.

`python -m bench.functions [--json PATH]`. Per size: the ratio of the faster peer to pyarray for each
function, and their geometric mean.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import pyarray as pa

from . import peers
from .timing import Figure, Row, geometric_mean, race, table

ABOUT = """Functions of the namespace on the same numbers: float32, where the name says nothing else. Next to
NumPy and PyTorch, each function of theirs that does the same."""
SIZES = (10**3, 10**6, 10**7)
MEAN = {10**3: 0.4, 10**6: 1.0, 10**7: 1.0}  # geometric mean to reach
LEAST = {10**3: None, 10**6: 2 / 3, 10**7: 0.5}  # of a single function
LEAST_SORTED = 1 / 2  # of what NumPy does by a sort that is written for AVX-512
Call = Callable[[Any, Any], Any]  # of a namespace and the operands in its arrays


class Operands:
    """The same numbers for one library: flat, square (m × m), indices, a mask, whole numbers, keys with
    repeats."""

    def __init__(self, size: int, convert: Callable[[Any], Any]):
        rng, side = np.random.default_rng(0), math.isqrt(size)
        self.a, self.b = (convert(rng.standard_normal(size, dtype=np.float32)) for _ in range(2))
        self.m = convert(rng.standard_normal((side, side), dtype=np.float32))
        self.w = convert(rng.standard_normal((side, side), dtype=np.float32))
        self.i = convert(rng.integers(0, size, size))
        self.mask = convert(rng.random(size) < 0.5)
        self.n = convert(rng.integers(-(2**31), 2**31, size, dtype=np.int64))
        self.few = convert(rng.integers(0, 1000, size, dtype=np.int64))
        self.edges = convert(np.sort(rng.standard_normal(1000, dtype=np.float32)))
        self.half = convert(rng.standard_normal((side, 16), dtype=np.float32))


class MillionOperands:
    """What `MILLION` adds to `Operands`."""

    def __init__(self, xp: Any, convert: Callable[[Any], Any]):
        rng, size = np.random.default_rng(0), 10**6
        self.rng = xp.random.default_rng(0)
        self.a = convert(rng.standard_normal(size, dtype=np.float32))
        self.a16 = convert(rng.standard_normal(size).astype(np.float16))
        self.n = convert(rng.integers(-(2**31), 2**31, size, dtype=np.int64))
        self.bits = convert(rng.random(size) < 0.5)
        self.bytes = convert(rng.integers(0, 256, size // 8, dtype=np.uint8))
        self.bins = convert(rng.integers(0, 256, size, dtype=np.int64))
        self.count = _counter(convert)
        self.wide = convert(rng.standard_normal(size))
        self.narrow = convert(rng.integers(-(2**31), 2**31, size, dtype=np.int32))
        self.short = convert(rng.standard_normal(size // 10))
        self.rows = convert(rng.standard_normal((10**4, 100)))
        self.small = convert(rng.integers(0, 256, (10**3, 10**3), dtype=np.uint8))
        self.mask = convert(rng.random((10**3, 10**3)) < 0.5)
        self.list = rng.standard_normal(size // 10).tolist()
        self.signal, self.taps = (convert(rng.standard_normal(k)) for k in (size // 10, 500))
        self.points, self.axis = convert(rng.standard_normal((size // 3, 3))), convert(rng.standard_normal(3))


def _counter(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Counts of whole numbers from 0 to 255: NumPy's function, or a kernel of the user's."""
    if convert is np.asarray:
        return lambda bins: np.bincount(bins, minlength=256)

    @pa.kernel
    def count(bins: pa.BufferView[pa.int64], counts: pa.BufferView[pa.int64]):
        for i in range(bins.size):
            pa.atomic_add(counts, bins[i], 1)

    def counted(bins: Any) -> Any:
        counts = pa.zeros(256, dtype=pa.int64)
        count(bins, counts)
        return counts

    return counted


# (name, the call in NumPy's and our names, torch's own where its names differ; None: torch has none)
CASES: tuple[tuple[str, Call, Call | None], ...] = (
    ("sum", lambda xp, x: xp.sum(x.a), lambda t, x: t.sum(x.a)),
    ("sum axis 0", lambda xp, x: xp.sum(x.m, axis=0), lambda t, x: t.sum(x.m, dim=0)),
    ("sum axis 1", lambda xp, x: xp.sum(x.m, axis=1), lambda t, x: t.sum(x.m, dim=1)),
    ("sum of int64", lambda xp, x: xp.sum(x.n), lambda t, x: t.sum(x.n)),
    ("prod", lambda xp, x: xp.prod(x.a), lambda t, x: t.prod(x.a)),
    ("mean axis 0", lambda xp, x: xp.mean(x.m, axis=0), lambda t, x: t.mean(x.m, dim=0)),
    ("var", lambda xp, x: xp.var(x.a), lambda t, x: t.var(x.a, correction=0)),
    ("std axis 1", lambda xp, x: xp.std(x.m, axis=1), lambda t, x: t.std(x.m, dim=1, correction=0)),
    ("max", lambda xp, x: xp.max(x.a), lambda t, x: t.max(x.a)),
    ("min axis 0", lambda xp, x: xp.min(x.m, axis=0), lambda t, x: t.amin(x.m, dim=0)),
    ("argmax", lambda xp, x: xp.argmax(x.a), lambda t, x: t.argmax(x.a)),
    ("argmin axis 1", lambda xp, x: xp.argmin(x.m, axis=1), lambda t, x: t.argmin(x.m, dim=1)),
    ("any", lambda xp, x: xp.any(x.mask), lambda t, x: t.any(x.mask)),
    ("all axis 0", lambda xp, x: xp.all(x.m > -9, axis=0), lambda t, x: t.all(x.m > -9, dim=0)),
    ("count_nonzero", lambda xp, x: xp.count_nonzero(x.mask), lambda t, x: t.count_nonzero(x.mask)),
    ("sort", lambda xp, x: xp.sort(x.a), lambda t, x: t.sort(x.a)),
    ("sort of int64", lambda xp, x: xp.sort(x.n), lambda t, x: t.sort(x.n)),
    ("sort axis 0", lambda xp, x: xp.sort(x.m, axis=0), lambda t, x: t.sort(x.m, dim=0)),
    ("argsort", lambda xp, x: xp.argsort(x.a), lambda t, x: t.argsort(x.a)),
    ("unique of few", lambda xp, x: xp.unique_values(x.few), lambda t, x: t.unique(x.few)),
    ("unique", lambda xp, x: xp.unique_values(x.a), lambda t, x: t.unique(x.a)),
    ("searchsorted", lambda xp, x: xp.searchsorted(x.edges, x.a), lambda t, x: t.searchsorted(x.edges, x.a)),
    ("isin", lambda xp, x: xp.isin(x.few, x.few[:50]), lambda t, x: t.isin(x.few, x.few[:50])),
    ("cumsum", lambda xp, x: xp.cumulative_sum(x.a), lambda t, x: t.cumsum(x.a, 0)),
    (
        "cumsum axis 0",
        lambda xp, x: xp.cumulative_sum(x.m, axis=0),
        lambda t, x: t.cumsum(x.m, 0),
    ),
    ("diff", lambda xp, x: xp.diff(x.a), lambda t, x: t.diff(x.a)),
    ("take", lambda xp, x: xp.take(x.a, x.i), lambda t, x: t.take(x.a, x.i)),
    ("take axis 1", lambda xp, x: xp.take(x.m, x.i[:8] % 30, axis=1), lambda t, x: x.m[:, x.i[:8] % 30]),
    ("a[mask]", lambda xp, x: x.a[x.mask], lambda t, x: x.a[x.mask]),
    ("nonzero", lambda xp, x: xp.nonzero(x.mask), lambda t, x: t.nonzero(x.mask, as_tuple=True)),
    ("where", lambda xp, x: xp.where(x.mask, x.a, x.b), lambda t, x: t.where(x.mask, x.a, x.b)),
    ("clip", lambda xp, x: xp.clip(x.a, -1, 1), lambda t, x: t.clip(x.a, -1, 1)),
    ("concat", lambda xp, x: xp.concat([x.a, x.b]), lambda t, x: t.concat([x.a, x.b])),
    ("stack", lambda xp, x: xp.stack([x.a, x.b], axis=1), lambda t, x: t.stack([x.a, x.b], dim=1)),
    ("roll", lambda xp, x: xp.roll(x.a, 7), lambda t, x: t.roll(x.a, 7)),
    ("flip", lambda xp, x: xp.flip(x.a) + 0, lambda t, x: t.flip(x.a, (0,))),
    ("repeat", lambda xp, x: xp.repeat(x.a, 2), lambda t, x: t.repeat_interleave(x.a, 2)),
    ("tile", lambda xp, x: xp.tile(x.a, (2,)), lambda t, x: t.tile(x.a, (2,))),
    ("transposed copy", lambda xp, x: xp.ascontiguousarray(x.m.T), lambda t, x: x.m.T.contiguous()),
    ("tril", lambda xp, x: xp.tril(x.m), lambda t, x: t.tril(x.m)),
    ("astype", lambda xp, x: xp.astype(x.a, xp.float64), lambda t, x: x.a.to(t.float64)),
    ("exp", lambda xp, x: xp.exp(x.a), lambda t, x: t.exp(x.a)),
    ("floor_divide", lambda xp, x: x.n // 7, lambda t, x: t.floor_divide(x.n, 7)),
    ("einsum ij,ij->i", lambda xp, x: xp.einsum("ij,ij->i", x.m, x.w), None),
    (
        "einsum ij,ik->jk",
        lambda xp, x: xp.einsum("ij,ik->jk", x.half, x.m),
        lambda t, x: t.einsum("ij,ik->jk", x.half, x.m),
    ),
    ("vecdot", lambda xp, x: xp.vecdot(x.m, x.w), lambda t, x: t.linalg.vecdot(x.m, x.w)),
)

# on 10^6 elements, where the name says nothing else, next to NumPy alone
MILLION: tuple[tuple[str, Call, Call | None], ...] = (
    ("choice without replacement", lambda _, x: x.rng.choice(10**6, 1000, replace=False), None),
    ("beta", lambda _, x: x.rng.beta(2.0, 3.0, 10**6), None),
    ("gamma", lambda _, x: x.rng.gamma(2.0, 1.0, 10**6), None),
    ("packbits", lambda xp, x: xp.packbits(x.bits), None),
    ("unpackbits", lambda xp, x: xp.unpackbits(x.bytes), None),
    ("asarray of a list of 10^5", lambda xp, x: xp.asarray(x.list), None),
    ("counts by atomic_add", lambda _, x: x.count(x.bins), None),
    ("insert", lambda xp, x: xp.insert(x.a, 1000, 1.0), None),
    ("abs of float16", lambda xp, x: xp.abs(x.a16), None),
    ("convolve 10^5 * 500", lambda xp, x: xp.convolve(x.signal, x.taps), None),
    ("matmul (333333, 3) @ (3,)", lambda xp, x: x.points @ x.axis, None),
    ("int64 // 7", lambda _, x: x.n // 7, None),
    ("int64 % 7", lambda _, x: x.n % 7, None),
    ("norm", lambda xp, x: xp.linalg.norm(x.a), None),
    ("argmax of uint8", lambda xp, x: xp.argmax(x.small), None),
    ("argmax of bool axis 1", lambda xp, x: xp.argmax(x.mask, axis=1), None),
    ("all of uint8 axis 1", lambda xp, x: xp.all(x.small, axis=1), None),
)
SORTED: tuple[tuple[str, Call, Call | None], ...] = (
    ("sort", lambda xp, x: xp.sort(x.a), None),
    ("sort of float64", lambda xp, x: xp.sort(x.wide), None),
    ("sort of int64", lambda xp, x: xp.sort(x.n), None),
    ("sort of int32", lambda xp, x: xp.sort(x.narrow), None),
    ("sort of float64, 10^5", lambda xp, x: xp.sort(x.short), None),
    ("sort of float64, 10^4 rows", lambda xp, x: xp.sort(x.rows), None),
    ("partition", lambda xp, x: xp.partition(x.a, 10**5), None),
    ("argpartition", lambda xp, x: xp.argpartition(x.a, 10**5), None),
    ("median", lambda xp, x: xp.median(x.a), None),
    ("unique of floats", lambda xp, x: xp.unique(x.a), None),
)


def calls_of(operands: dict[str, Any], case: tuple[str, Call, Call | None]) -> dict[str, Any]:
    """A call per library, None where it has none."""
    _, call, other = case
    torch = operands.get("torch") and peers.peer("torch")
    calls: dict[str, Any] = {
        "pyarray": lambda: call(pa, operands["pyarray"]),
        "numpy": lambda: call(np, operands["numpy"]),
        "torch": None,
    }
    if torch is not None:
        calls["torch"] = lambda: (other or call)(torch, operands["torch"])
    return calls


def operands_of(size: int) -> dict[str, Any]:
    """By library."""
    if size == 10**6:
        return {
            "pyarray": MillionOperands(pa, pa.asarray),
            "numpy": MillionOperands(np, np.asarray),
        }
    torch = peers.peer("torch")
    by_library = {"pyarray": Operands(size, pa.asarray), "numpy": Operands(size, np.asarray)}
    if torch is not None:
        by_library["torch"] = Operands(size, lambda x: torch.from_numpy(np.array(x)))
    return by_library


def first_use(operands: dict[str, Any]) -> dict[str, float]:
    """Seconds of each function's first call in this process: the compiler's work, unless it is on disk."""
    seconds = {}
    for name, call, _ in CASES:
        start = time.perf_counter()
        call(pa, operands["pyarray"])
        seconds[name] = time.perf_counter() - start
    return seconds


def run(quick: bool = False) -> Iterator[Row | Figure]:
    """All of it, printed as it comes."""
    first: dict[str, float] = {}
    for size in SIZES[: 1 if quick else None]:
        operands = operands_of(size)
        if not first:
            first = first_use(operands)
            slow = sorted(first.items(), key=lambda row: -row[1])[:5]
            print("first calls: " + ", ".join(f"{name} {s:.2f} s" for name, s in slow), flush=True)
        budget = 0.05 if size < 10**6 else 0.6  # a quick run has the small size alone
        cases = [(case, LEAST[size]) for case in (MILLION if size == 10**6 else CASES)]
        cases += [(case, LEAST_SORTED) for case in SORTED if size == 10**6]
        group = [
            Row(f"{size} elements", case[0], race(calls_of(operands, case), budget), least, n=size)
            for case, least in cases
        ]
        print(f"n = {size}: minimum (median)\n{table(group)}")
        yield from group
        mean = Figure(f"geometric mean of {size} elements", geometric_mean(group) or "-", at_least=MEAN[size])
        print(f"{mean}\n", flush=True)
        yield mean
    yield Figure("first calls of all functions in one process, together", sum(first.values()), "s")


if __name__ == "__main__":
    from .part import alone

    alone("functions")
