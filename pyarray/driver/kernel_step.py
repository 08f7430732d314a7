"""What a compiled kernel launches: one grid per step, in order, as data and as text for files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

THREADS = 256  # of a block, where a step doesn't say more
BLOCKS = 32  # of 256 threads, of a multiprocessor in a full grid: so many that the last ones leave little idle
MOST_SIZES = 6  # PA_GPU_SIZES: size slots of a step
MOST_GUARDS = 16  # PA_GPU_GUARDS: of a step

# bytes of a row that a block keeps at most: in registers, and besides in shared memory, where a block may have so much
ROW_REGISTERS, ROW_SHARED = 128 << 10, 208 << 10
RESERVED = 1024  # bytes of shared memory that CUDA takes for each block besides
SMALL = 128  # threads of a block with so many registers each that two fit a multiprocessor


class Guard(NamedTuple):
    """A condition on an argument slot: its bits in `mask` are a number from `low` up to `high`."""

    slot: int
    mask: int
    low: int
    high: int


@dataclass(frozen=True)
class KernelStep:
    """One grid launch, or on CPUs the call of a kernel's only function.

    `symbol` is its name in the module. The product of `size_slots`, numbers of argument slots, is the number of
    iterations; None if only the device knows it. A thread takes `per_thread` iterations, of a `team` step a
    block takes so many. `row_slot` is the slot of the length of a team's row, `row_elements` how many elements a
    block keeps of it. A block has `threads`, and `shared` bytes of dynamic shared memory, up to `shared_most` where the
    device has them: the kernel asks how many. `single`: one thread in all.

    A step with `guards` takes the place of the ones up to the next without in launches in which all of them hold. One
    with `row_bytes`, whose blocks take a row each, is for arrays that don't fit into the cache besides: iterations x
    row x `row_bytes` is more than twice the L2 cache. Where a block can't have its `shared` bytes, it is left out.

    A `fallback` step runs the iterations whose accesses may fail. It is left out where the host has tested that none
    does.

    The blocks of a `dependent_launch` step may start before the kernel ahead of them on the stream has ended, where the
    device can do that: each of its threads waits for that kernel (pa_dependent_launch.h) before it accesses memory that
    others may.
    """

    symbol: str
    size_slots: tuple[int, ...] | None = ()
    per_thread: int = 1
    team: bool = False
    row_slot: int | None = None
    row_elements: int = 0
    shared: int = 0
    single: bool = False
    guards: tuple[Guard, ...] = ()
    row_bytes: int = 0
    threads: int = THREADS
    fallback: bool = False
    shared_most: int = 0
    dependent_launch: bool = False

    def __str__(self) -> str:
        """`symbol=`, `!` of a fallback, and the size slots, `*` for None and `.` for one thread, then `b` with the
        row's slot and elements for a team, `x` and iterations of a thread, `t` and threads, `@` and bytes, `~` and the
        most of them, `+` of a dependent launch, `?` with the bytes of a row's element and the guards. Names of
        artifacts depend on it."""
        sizes = "*" if self.size_slots is None else ",".join(map(str, self.size_slots))
        text = "!" * self.fallback + ("." if self.single else sizes)
        if self.team:
            text += "b" + ("" if self.row_slot is None else f"{self.row_slot}:{self.row_elements}")
        text += f"x{self.per_thread}" if self.per_thread > 1 else ""
        text += f"t{self.threads}" if self.threads != THREADS else ""
        text += f"@{self.shared}" if self.shared else ""
        text += f"~{self.shared_most}" if self.shared_most else ""
        text += "+" * self.dependent_launch
        text += f"?{self.row_bytes}" if self.guards else ""
        text += "".join(f"&{g.slot}:{g.mask}:{g.low}:{g.high}" for g in self.guards)
        return f"{self.symbol}={text}" if text else self.symbol


def shared_up_to(least: int, most: int, threads: int, of_block: int, of_processor: int) -> int:
    """Bytes of dynamic shared memory for a block that can do with `least` and uses up to `most`: as far as the memory
    of a multiprocessor goes, which two small blocks share if each has enough. `of_block` bytes are the most that a
    block may have.

    >>> shared_up_to(96 << 10, 192 << 10, 256, of_block=227 << 10, of_processor=228 << 10) >> 10
    192
    >>> shared_up_to(48 << 10, 144 << 10, 128, of_block=227 << 10, of_processor=228 << 10) >> 10
    113
    """
    share, enough = of_processor // 2 - RESERVED, (least + most) // 2
    return min(most, share if threads <= SMALL and share >= enough else of_block)


def format_steps(steps: Iterable[KernelStep]) -> str:
    """The text of steps, as `parse_steps` reads it.

    >>> format_steps([KernelStep("once", single=True), KernelStep("add", (0, 1), per_thread=4, shared=512)])
    'once=.;add=0,1x4@512'
    """
    return ";".join(map(str, steps))


def parse_steps(text: str) -> tuple[KernelStep, ...]:
    """The steps that `format_steps` wrote; none of an empty text. Raises `ValueError` for another text.

    >>> parse_steps("sums=*b3:4096")[0].row_slot
    3
    """
    return tuple(_parse(part) for part in text.split(";") if part)


def _parse(text: str) -> KernelStep:
    try:
        symbol, _, rest = text.partition("=")
        fallback, rest = rest.startswith("!"), rest.removeprefix("!")
        rest, _, guards = rest.partition("?")
        dependent, rest = rest.endswith("+"), rest.removesuffix("+")
        rest, _, most = rest.partition("~")
        rest, _, shared = rest.partition("@")
        rest, _, threads = rest.partition("t")
        rest, _, per_thread = rest.partition("x")
        sizes, team, row = rest.partition("b")
        row_slot, _, elements = row.partition(":")
        size_slots = None if sizes == "*" else tuple(int(slot) for slot in sizes.split(",") if slot not in ("", "."))
        slot = int(row_slot) if row_slot else None
        numbers = int(per_thread or 1), bool(team), slot, int(elements or 0), int(shared or 0)
        row_bytes, *conditions = guards.split("&")
        parsed = tuple(Guard(*map(int, condition.split(":"))) for condition in conditions)
        last = parsed, int(row_bytes or 0), int(threads or THREADS), fallback, int(most or 0)
        return KernelStep(symbol, size_slots, *numbers, sizes == ".", *last, dependent_launch=dependent)
    except (TypeError, ValueError):
        what = f"the step {text!r} of a kernel can't be read: expected symbol=slots like 'kernel_add_0=0,1x4@512'"
        raise ValueError(f"{what}; the file is damaged or of another release: save it anew") from None
