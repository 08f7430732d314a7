"""Host cost of common calls on small arrays on the CPU, next to NumPy and torch, and of launches of a user's kernel.

`python -m bench.small_arrays [--quick] [--json PATH]`. A case is a statement. It is compiled `UNROLLED` times into one
function whose names are local, so that a call of 40 ns isn't measured with as much of the loop around it. The
numbers are float64. Ratios are to NumPy alone, and shown as multiples: pyarray's time in times of NumPy's.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import pyarray as pa

from . import kernels, peers
from .timing import Figure, Race, Row, Times, race, table

ABOUT = """Host cost of common calls on small arrays of float64, in times of NumPy's time, with PyTorch's beside it;
and of a launch of `c[i] = f * a[i] + b[i]` on 16 elements of float32, next to Numba."""
SIZES = (16, 10**3, 10**4, 10**5)
MEAN = {16: 1.6, 10**3: 1.3, 10**4: 1.1, 10**5: None}  # geometric mean of multiples, at most
MOST = 4.0  # multiple of any one call on 16 elements
UNROLLED = 10


@dataclass(frozen=True)
class Case:
    """A statement on the names of `operands`; torch's own where it differs ("": torch has none).

    `most` is the multiple on 16 elements to keep. `counted`: it is one of the 22 of the geometric mean.
    """

    statement: str
    most: float = MOST
    counted: bool = True
    torch: str | None = None


CASES = (
    Case("a + b", 1.5),
    Case("a * 2.0"),
    Case("a[1:-1] + b[:-2]", 1.5),
    Case("c += b"),
    Case("a.sum()"),
    Case("a[mask]", 3),
    Case("c[mask] = 1.0", 3),
    Case("a[idx]", 3),
    Case("c[idx] = v", 3),
    Case("xp.where(mask, a, b)"),
    Case("a > b"),
    Case("a.argmin()"),
    Case("xp.zeros(n)", 3, torch="xp.zeros(n, dtype=xp.float64)"),
    Case("a[3]", 2),
    Case("c[3] = 1.0", 2),
    Case("xp.nonzero(mask)", torch="xp.nonzero(mask, as_tuple=True)"),
    Case("xp.concat([a, b])"),
    Case("a @ b"),
    Case("a.reshape(2, -1)"),
    Case("a.copy()", torch="a.clone()"),
    Case("xp.sqrt(p)"),
    Case("m.sum(axis=0)"),
    Case("m.T + m", counted=False),
    Case("a.max()", counted=False),
    Case("xp.clip(a, -1, 1)", counted=False),
    Case("float(a[3])", counted=False),
)
MATRICES = (Case("m @ m", counted=False), Case("w @ w", counted=False))  # on 16 elements: 4 × 4; 16 × 16
COUNTED = {case.statement for case in CASES if case.counted}

# a launch of a user's kernel: name, statement, arguments, µs it may take. NumPy's slices are made in C.
LAUNCHES = (
    ("three fresh views and a float", "k(a[2:18], b[1:17], c[:16], 2.0)", "pyarray", 1.2),
    ("NumPy arguments", "k(u, v, w, 2.0)", "numpy", 1.5),
    ("fresh NumPy slices", "k(a[2:18], b[1:17], c[:16], 2.0)", "numpy", None),
    ("torch tensors", "k(u, v, w, 2.0)", "torch", 2.5),
)


def operands(size: int, xp: Any, convert: Callable[[Any], Any]) -> dict[str, Any]:
    """The same numbers for one library. Statements that write do it in `c`; `p` is positive."""
    rng, side = np.random.default_rng(0), math.isqrt(size)
    a, b, c, v = (rng.standard_normal(size) for _ in range(4))
    found = {
        "a": a, "b": b, "c": c, "p": rng.random(size) + 0.5,
        "m": rng.standard_normal((side, side)), "w": rng.standard_normal((16, 16)),
        "mask": rng.random(size) < 0.5, "idx": rng.permutation(size)[: size // 2], "v": v[: size // 2],
    }  # fmt: skip
    return {name: convert(x) for name, x in found.items()} | {"n": size, "xp": xp}


def compiled(statement: str, names: Mapping[str, Any], count: int = UNROLLED) -> Callable[[], Any]:
    """A function that executes the statement `count` times; all that it names is local."""
    used = [name for name in names if name in compile(statement, "<case>", "exec").co_names]
    # an augmented assignment needs its name to be local: defaults, not a closure
    defaults = ", ".join(f"{name}=names[{name!r}]" for name in used)
    space: dict[str, Any] = {"names": names}
    exec(f"def call({defaults}):\n" + f"    {statement}\n" * count, space)
    call: Callable[[], Any] = space["call"]
    return call


def raced(candidates: Mapping[str, Callable[[], Any] | None], budget: float, count: int = UNROLLED) -> Race:
    """As `race`, of functions from `compiled`: the times are of one statement."""
    found = race(candidates, budget)
    times = {
        name: t and replace(t, min=t.min / count, median=t.median / count, calls=t.calls * count)
        for name, t in found.items()
    }
    return Race(times, found.why)


def value(statement: str, names: Mapping[str, Any]) -> list[Any]:
    """What the statement gives, and the array that it may write, in NumPy's arrays."""
    space = dict(names)
    try:
        result = eval(statement, space)
    except SyntaxError:
        exec(statement, space)
        result = None
    parts = result if isinstance(result, tuple) else (result,)
    return [np.asarray(part) for part in (*parts, space["c"]) if part is not None]


def difference(statement: str, ours: Mapping[str, Any], numpys: Mapping[str, Any]) -> str | None:
    """How the two libraries differ, in what they give or in what they write; None where they don't."""
    try:
        for own, theirs in zip(value(statement, ours), value(statement, numpys), strict=True):
            assert own.dtype == theirs.dtype, f"{own.dtype}, not {theirs.dtype}"
            np.testing.assert_allclose(own, theirs, rtol=1e-12, atol=1e-12)
    except Exception as error:  # the other cases are measured, and the page says it
        return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return None


def libraries() -> dict[str, tuple[Any, Callable[[Any], Any]]]:
    """Those that there are: module, and what copies NumPy's array into one of its own."""
    found: dict[str, tuple[Any, Callable[[Any], Any]]] = {
        "pyarray": (pa, lambda x: pa.asarray(x, copy=True)),
        "numpy": (np, np.copy),
    }
    if (torch := peers.peer("torch")) is not None:
        found["torch"] = torch, lambda x: torch.from_numpy(x.copy())
    return found


def of_size(size: int, budget: float) -> Iterator[Row]:
    """A row for each case. Where pyarray gives something else than NumPy, it has no time."""
    made = libraries()
    names = {library: operands(size, *how) for library, how in made.items()}
    for case in CASES + (MATRICES if size == SIZES[0] else ()):
        # on operands of their own: a race writes to its own as often as there is time
        wrong = difference(case.statement, *(operands(size, *made[library]) for library in ("pyarray", "numpy")))
        if wrong:
            print(f"  ({case.statement}, {size}: {wrong})")
        candidates: dict[str, Callable[[], Any] | None] = {"pyarray": None, "numpy": None, "torch": None}
        for library, given in names.items():
            statement = case.torch if library == "torch" and case.torch is not None else case.statement
            if statement and not (library == "pyarray" and wrong):
                candidates[library] = compiled(statement, given)
        times, group = raced(candidates, budget), f"{size} elements"
        target = 1 / case.most if size == SIZES[0] else None
        why = times.why | ({"pyarray": wrong} if wrong else {})
        yield Row(group, case.statement, times, target, n=size, against=("numpy",), why=why, multiples=True)


def mean(rows: Sequence[Row], figure: str = "min") -> float | None:
    """Geometric mean of the multiples."""
    found = [x for row in rows if (x := row.multiple(figure)) is not None]
    return statistics.geometric_mean(found) if found else None


def means(counted: Mapping[int, Sequence[Row]]) -> Iterator[Figure]:
    """For each size, of minima, with a target, and of medians."""
    for size, rows in counted.items():
        name = f"geometric mean of {len(rows)} calls on {size} elements"
        yield Figure(name, mean(rows) or "-", "times NumPy's time", at_most=MEAN[size])
        yield Figure(f"{name}, medians", mean(rows, "median") or "-", "times NumPy's time")


def arguments(library: str) -> dict[str, Any] | None:
    """Three arrays of 32 float32, and views of 16 of them that are held; None where the library is missing."""
    arrays: list[Any] = [np.arange(32, dtype=np.float32) + k for k in range(3)]
    if library == "torch":
        torch = peers.peer("torch")
        if torch is None:
            return None
        arrays = [torch.from_numpy(x) for x in arrays]
    elif library == "pyarray":
        arrays = [pa.asarray(x, copy=True) for x in arrays]
    a, b, c = arrays
    return {"a": a, "b": b, "c": c, "u": a[2:18], "v": b[1:17], "w": c[:16]}


def launches(budget: float) -> Iterator[Row | Figure]:
    """A user's kernel with each kind of argument, next to Numba with NumPy's arrays; µs in the figures."""
    numba = peers.peer("numba")
    ours, theirs = kernels.of_pyarray(pa), numba and kernels.of_numba(numba)
    for name, statement, library, most in LAUNCHES:
        given = arguments(library)
        if given is None:
            continue
        compiled(statement, given | {"k": ours}, 1)()
        written, wanted = np.asarray(given["c"])[:16], 2 * np.arange(2, 18) + np.arange(2, 18)
        np.testing.assert_array_equal(written, wanted, err_msg=name)  # in the array itself, not in a copy
        peer = arguments("numpy") if theirs and library != "torch" else None
        times = raced(
            {
                "pyarray": compiled(statement, given | {"k": ours}),
                "numba": None if peer is None else compiled(statement, peer | {"k": theirs}),
                "empty call": compiled(statement, given | {"k": _empty}),
            },
            budget,
        )
        yield Row("launch", name, times, against=("numba",), multiples=True)
        own: Times | None = times["pyarray"]
        if own is not None and most is not None:
            yield Figure(f"launch, {name}", own.min * 1e6, "µs", at_most=most)


def _empty(a: Any, b: Any, c: Any, f: Any) -> None:
    pass


def run(quick: bool = False) -> Iterator[Row | Figure]:
    """All of it, printed as it comes."""
    budget = 0.03 if quick else 0.2
    counted: dict[int, list[Row]] = {}
    for size in SIZES[: -1 if quick else None]:
        rows = list(of_size(size, budget))
        print(f"n = {size}: minimum (median)\n{table(rows)}\n", flush=True)
        yield from rows
        counted[size] = [row for row in rows if row.case in COUNTED]
    for figure in means(counted):
        print(figure)
        yield figure
    items = list(launches(budget))
    rows = [item for item in items if isinstance(item, Row)]
    print(f"\nA user's kernel on 16 elements: minimum (median)\n{table(rows)}")
    print(*(item for item in items if isinstance(item, Figure)), sep="\n", flush=True)
    yield from items


if __name__ == "__main__":
    from .part import alone

    alone("small_arrays")
