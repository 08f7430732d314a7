"""Runs programs on a device, in release and debug mode, and compares them with plain Python. All arrays lie within
larger ones, whose other elements must stay as they are."""

from __future__ import annotations

import contextlib
import linecache
import random
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import pyarray as pa
from pyarray.errors import CompileError
from pyarray.jit.kernel import kernel
from pyarray.lang import pipeline

try:
    from tests.drawn import set_status
except ImportError:  # pytest runs it from its own folder
    from drawn import set_status

from . import names, order
from .draw import LANES, ROWS, draw_program
from .records import Records

RECORDS = pa.zeros(0, dtype=names.Body).dtype
NUMBERS = (0, 1, 7, 500)
AROUND = 3  # rows before and behind each array
# Programs in which it would show that a value is a copy, or that a loop is parallel, are refused: that is the language.
REFUSALS = (
    "shares memory in Python", "is the object", "is a view of a record", "iterations of the parallel loop",
    "may be read before it is assigned", "is read before it is assigned",
)  # fmt: skip


@dataclass
class Report:
    """What ran, and the programs that differ."""

    programs: int = 0
    launches: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Program:
    """A drawn program: its text, the kernel's options, and how its arguments are made from a number."""

    text: str
    scope: dict[str, Any]
    options: dict[str, Any]
    arguments: Callable[[int], list[np.ndarray[Any, Any]]]


def arrays_of_rows(number: int) -> list[np.ndarray[Any, Any]]:
    """Arguments of the programs of `draw`."""
    rng = np.random.default_rng(number)
    made = [rng.integers(0, 50, (LANES, ROWS["m"])), np.zeros((LANES, ROWS["out"]), np.int64)]
    made += [np.zeros((LANES, ROWS["log"]), np.int64), np.zeros((LANES, ROWS["fo"]))]
    records = np.zeros((LANES, ROWS["a"]), RECORDS)
    for part, name, most in ((records, "n", 50), (records, "v", 50), (records["pose"], "a", 9), (records, "small", 9)):
        part[name] = rng.integers(0, most, part[name].shape)
    records["flag"] = records["n"] % 2 == 0
    records["pose"]["b"] = records["n"] / 4
    return [*made, records]


def arrays_of_order(number: int) -> list[np.ndarray[Any, Any]]:
    """Arguments of the programs of `order`."""
    start = np.random.default_rng(number).integers(0, 50, (3, 5))
    return [start, np.zeros(6, np.int64), np.zeros(2, np.int64)]


def draw(seed: str, cpu: bool) -> Program:
    """The program of a seed."""
    chosen = random.Random(seed)
    options: dict[str, Any] = {}
    if chosen.random() < 0.3:
        options |= {"threads": chosen.choice([32, 64, 256]), "per_thread": chosen.choice([1, 2, 4])}
    if cpu and chosen.random() < 0.94:  # optimising takes ten times as long as all else
        options["flags"] = ("-O0",)
    if chosen.random() < 0.25:
        return Program(order.random_program(chosen), order.NAMES, options, arrays_of_order)
    return Program(draw_program(chosen), names.NAMES, options, arrays_of_rows)


def check(
    numbers: Sequence[int], seed: int, device: str = "cpu", stop_after: int = 50,
    found: Callable[[str], None] = lambda line: None,
) -> Report:  # fmt: skip
    """Run the programs of these numbers; the differences are in the report."""
    report = Report()
    for number in numbers:
        set_status(f"program {number}")
        program = draw(f"{seed}/{number}", device == "cpu")
        report.programs += 1
        try:
            line = difference(program, f"{seed}/{number}", device, report)
        except CompileError as error:
            reason = next((r for r in REFUSALS if r in str(error)), None)
            line = None if reason else str(error)
            report.refused[str(reason)] += reason is not None
        except Exception:
            line = traceback.format_exc()
        if line is not None:
            report.differences.append(f"seed {seed}, program {number}: {line}\n{program.text}")
            found(report.differences[-1])
        if len(report.differences) >= stop_after:
            break
    return report


def difference(program: Program, name: str, device: str, report: Report) -> str | None:
    """What differs first, None if nothing does."""
    path = f"<program {name}>"
    linecache.cache[path] = (len(program.text), None, program.text.splitlines(keepends=True), path)
    exec(compile(program.text, path, "exec"), space := dict(program.scope))
    exec(compile(program.text, path, "exec"), python := program.scope | names.IN_PYTHON)
    made = kernel(space["drawn"], **program.options)
    with contextlib.ExitStack() as stack:
        stack.callback(linecache.cache.pop, path)
        stack.enter_context(_analysed_once())
        for number in NUMBERS:
            start = program.arguments(number)
            expected = [np.array(a) for a in start]
            python["drawn"](*(Records(a) if a.dtype.names else a for a in expected), number)
            for checked in (False, True):
                report.launches += 1
                there = [_Surrounded(a, device) for a in start]
                with pa.debug(checked):
                    made(*(a.inner for a in there), number)
                for k, (array, right) in enumerate(zip(there, expected, strict=True)):
                    wrong = array.difference(right)
                    if wrong:
                        return f"argument {k}, x0 = {number}, debug {checked}, {program.options}: {wrong}"
    return None


@contextlib.contextmanager
def _analysed_once() -> Iterator[None]:
    """Within it one kernel is compiled for one tuple of types, in both modes: what is the same in both, and takes half
    of the front end's time, is computed once."""
    analyse, analysed = pipeline.analyse, list[pipeline.Analysed]()

    def once(*args: Any) -> pipeline.Analysed:
        if not analysed:
            analysed.append(analyse(*args))
        return analysed[0]

    pipeline.analyse = once
    try:
        yield
    finally:
        pipeline.analyse = analyse


class _Surrounded:
    """A copy of an array on a device, among rows that belong to nobody."""

    def __init__(self, values: np.ndarray[Any, Any], device: str):
        shape = (len(values) + 2 * AROUND, *values.shape[1:])
        around = np.frombuffer(b"\x5a" * (int(np.prod(shape)) * values.itemsize), np.uint8)
        self.around = around.view(values.dtype).reshape(shape).copy()
        self.around[AROUND:-AROUND] = values
        self.outer = pa.array(self.around, device=device)
        if values.dtype.names:
            self.outer = self.outer.view(names.Body)  # type: ignore[arg-type]
        self.inner = self.outer[AROUND:-AROUND]

    def difference(self, right: np.ndarray[Any, Any]) -> str:
        found = pa.asnumpy(self.outer)
        for a, b in zip(_leaves(found), _leaves(self.around), strict=True):
            if a[:AROUND].tobytes() != b[:AROUND].tobytes() or a[-AROUND:].tobytes() != b[-AROUND:].tobytes():
                return "a store outside"
        for a, b in zip(_leaves(found[AROUND:-AROUND]), _leaves(right), strict=True):
            if not np.array_equal(a, b, equal_nan=a.dtype.kind == "f"):
                return f"got\n{a}\nand in Python\n{b}"
        return ""


def _leaves(x: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    return [leaf for name in x.dtype.names for leaf in _leaves(x[name])] if x.dtype.names else [x]
