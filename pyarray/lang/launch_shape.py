"""The launch's shape: threads of a block and iterations of a thread, for the parallel loops of a kernel on GPUs.

Results never depend on it."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from . import ir
from .emit_loop import parallel_loops
from .parse import FunctionSource

THREADS = 256  # of a block, where nothing else is asked for
WARP = 32  # lanes; of AMD's waves of 64 the half
MAX_THREADS = 1024  # that a block of any GPU may have
MAX_PER_THREAD = 1024

Numbers = int | tuple[int | None, ...] | None  # for all parallel loops, or for each; None: the compiler says it


@dataclass(frozen=True)
class LaunchShape:
    """What was asked for; `launch_shape` makes it of a user's values.

    >>> launch_shape("a kernel", (64, None), 4).of_loop(1)
    (256, 4)
    """

    threads: Numbers = None
    per_thread: Numbers = None

    def of_loop(self, number: int) -> tuple[int, int | None]:
        """Threads of a block, and iterations of a thread, None where the loop's text says it."""
        return _of_loop(self.threads, number) or THREADS, _of_loop(self.per_thread, number)

    def overridden(self, other: LaunchShape) -> LaunchShape:
        """This one with what `other` asks for in its place."""
        threads = self.threads if other.threads is None else other.threads
        return LaunchShape(threads, self.per_thread if other.per_thread is None else other.per_thread)

    def check_loops(self, source: FunctionSource, kernel: ir.Function) -> None:
        """Raises `CompileError` where a tuple has more or fewer numbers than the kernel has parallel loops."""
        loops = parallel_loops(kernel)
        for name, numbers in self.given().items():
            if isinstance(numbers, tuple) and len(numbers) != len(loops):
                has = f"has {len(loops)} parallel loop{'' if len(loops) == 1 else 's'}"
                what = f"kernel {source.name!r} {has}, and {name}={numbers!r} is for {len(numbers)}"
                source.fail(loops[0].loc if loops else source.node, what, f"give {name} one number, or one for each")

    def split(self, kernel: ir.Function) -> LaunchShape:
        """This one for the loops that `lower_reductions` makes of a kernel's: of one that reduces two, which teams run,
        in blocks of THREADS."""
        loops = parallel_loops(kernel)
        if not any(loop.reductions for loop in loops):
            return self
        given = (self.threads, self.per_thread)
        return LaunchShape(*(tuple(_split(numbers, loops)) for numbers in given))

    def ignored(self, kernel: ir.Function) -> Iterator[tuple[int, str]]:
        """(line, remark) of each loop of a kernel that reduces, for which numbers are asked that don't count."""
        for k, loop in enumerate(parallel_loops(kernel)):
            numbers = ((name, _of_loop(asked, k)) for name, asked in self.given().items())
            for name, number in numbers if loop.reductions else ():
                if number is not None:
                    what = "the loop reduces in chunks, which depend on the number of iterations alone"
                    yield loop.loc.line, f"{name}={number} has no effect: {what}"

    def given(self) -> dict[str, Numbers]:
        """What is asked for, by name."""
        named = {"threads": self.threads, "per_thread": self.per_thread}
        return {name: numbers for name, numbers in named.items() if numbers is not None}


UNSHAPED = LaunchShape()


def launch_shape(what: str, threads: Any, per_thread: Any) -> LaunchShape:
    """The shape that a user gave `what`. Raises `TypeError` for what is no integer and no tuple of these,
    `ValueError` for a number that no block, or no thread, can have."""
    return LaunchShape(_checked(what, "threads", threads), _checked(what, "per_thread", per_thread))


def _split(numbers: Numbers, loops: Sequence[ir.For]) -> Iterator[int | None]:
    for k, loop in enumerate(loops):
        yield from (None, None) if loop.reductions else (_of_loop(numbers, k),)


def _of_loop(numbers: Numbers, loop: int) -> int | None:
    return numbers[loop] if isinstance(numbers, tuple) else numbers


def _checked(what: str, name: str, value: Any) -> Numbers:
    if value is None:
        return None
    if not isinstance(value, (tuple, list)):
        return _number(what, name, value)
    if not value:
        raise ValueError(f"{name} of {what} is an empty tuple; give one number, or one for each parallel loop")
    return tuple(None if item is None else _number(what, name, item) for item in value)


def _number(what: str, name: str, value: Any) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        expected = f"{name} of {what} is an integer, or a tuple with one for each parallel loop"
        raise TypeError(f"{expected}, got {value!r}; write for example {name}={_EXAMPLES[name]}") from None
    if name == "per_thread" and not 1 <= number <= MAX_PER_THREAD:
        raise ValueError(f"per_thread of {what} is a number of iterations from 1 to {MAX_PER_THREAD}, got {number}")
    if name == "threads" and not (1 <= number <= MAX_THREADS and number % WARP == 0):
        nearest = min(max(round(number / WARP), 1) * WARP, MAX_THREADS)
        legal = f"a multiple of {WARP}, a warp, from {WARP} to {MAX_THREADS}"
        raise ValueError(f"threads of {what} is {legal}, got {number}; the nearest is {nearest}")
    return number


_EXAMPLES = {"threads": 128, "per_thread": 4}  # by the name of the parameter
