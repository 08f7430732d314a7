"""Twelve programs on small arrays, in pyarray next to NumPy: `bench/program_cases.py`.

`python -m bench.programs [--quick] [--json PATH]`. Each runs once in both libraries before it is timed; where results
differ, pyarray has no time.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import pyarray as pa

from .program_cases import PROGRAMS, Program
from .timing import Figure, Row, race, table

ABOUT = """Twelve programs that are written once for either namespace and call many functions on arrays of ten to a
thousand elements: elimination, filters, searches, loops over elements. The time in pyarray is shown in times of the
time in NumPy."""
MOST = 1.3  # geometric mean of multiples of NumPy's time
CLOSE = 1e-9  # of results: sums are added in another order


def prepared(program: Program, size: int, xp: Any, convert: Callable[[Any], Any]) -> Callable[[], Any]:
    """The program with its inputs in the arrays of one library; it doesn't write to them."""
    found = program.inputs(np.random.default_rng(0), size)
    given = tuple(convert(x) if isinstance(x, np.ndarray) else x for x in found)
    return lambda: program.run(xp, *given)


def results(call: Callable[[], Any]) -> list[Any]:
    found = call()
    return [np.asarray(x) for x in (found if isinstance(found, tuple) else (found,))]


def difference(own: Callable[[], Any], theirs: Callable[[], Any]) -> str | None:
    """How the results differ, or what pyarray raises; None where they are equal."""
    try:
        for ours, numpys in zip(results(own), results(theirs), strict=True):
            assert ours.dtype == numpys.dtype, f"{ours.dtype}, not {numpys.dtype}"
            assert ours.shape == numpys.shape, f"{ours.shape}, not {numpys.shape}"
            np.testing.assert_allclose(ours, numpys, rtol=CLOSE, atol=CLOSE)
    except Exception as error:  # the other programs are measured, and the page says it
        return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return None


def measured(program: Program, size: int, budget: float) -> Row:
    """One program with inputs of one size."""
    own = prepared(program, size, pa, lambda x: pa.asarray(x, copy=True))
    theirs = prepared(program, size, np, np.copy)
    wrong = difference(own, theirs)
    times = race({"pyarray": None if wrong else own, "numpy": theirs}, budget)
    if wrong:
        print(f"  ({program.name}, {size}: {wrong})")
    why = times.why | ({"pyarray": wrong} if wrong else {})
    case, elements = f"{program.name}, {size}", program.elements(size)
    return Row("programs", case, times, n=elements, series=program.name, why=why, multiples=True)


def means(rows: Sequence[Row]) -> Iterator[Figure]:
    """Geometric means of the multiples: of all, of the small sizes and of the larger ones."""
    for name, chosen, most in (("programs", rows, MOST), ("small", rows[::2], None), ("larger", rows[1::2], None)):
        for figure, which in (("min", ""), ("median", ", medians")):
            found = [x for row in chosen if (x := row.multiple(figure)) is not None]
            value = statistics.geometric_mean(found) if found else "-"
            bound = most if figure == "min" else None
            yield Figure(f"geometric mean, {name}{which}", value, "times NumPy's time", at_most=bound)


def run(quick: bool = False) -> Iterator[Row | Figure]:
    """All of it, printed as it comes."""
    budget, rows = 0.05 if quick else 0.5, list[Row]()
    for program in PROGRAMS:
        for size in program.sizes:
            rows.append(measured(program, size, budget))
            yield rows[-1]
    print(f"minimum (median)\n{table(rows)}\n")
    for figure in means(rows):
        print(figure, flush=True)
        yield figure


if __name__ == "__main__":
    from .part import alone

    alone("programs")
