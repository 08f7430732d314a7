"""Families of calls: one that is drawn, and some that differ from another of the family in one thing."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from differential.draw import Draw
from differential.operands import Case, Memory, Operand, mapped
from differential.rows import Row
from differential.run import dtypes_for

FOREIGN = ("numpy", "unaligned", "swapped", "subclass", "tensor")  # arrays of other libraries
GIVEN = ("array", "view", "returned", "marked", *FOREIGN)


def family(row: Row, seed: int, number: int, dtypes: int, devices: Sequence[str]) -> list[Case]:
    """The first is the differential test's case of these numbers, so that both need the same kernels."""
    key = [seed, zlib.crc32(row.name.encode()), number]
    draw = Draw(np.random.default_rng(key), dtypes_for(row, seed, dtypes, number))
    args, kwargs = row.draw(draw)
    found = [draw.case(row, args, kwargs)]
    for _ in range(draw.integer(2, 6)):
        changed = draw.one_of(CHANGES)(draw, draw.one_of(found), devices)
        if changed is not None:
            found.append(changed)
    return found


def _layouts(d: Draw, case: Case, devices: Sequence[str]) -> Case | None:
    return d.relaid(case)


def _sharing(d: Draw, case: Case, devices: Sequence[str]) -> Case | None:
    return d.related(case) if case.row.shares else None


def _sizes(d: Draw, case: Case, devices: Sequence[str]) -> Case | None:
    """Other sizes and options: the row's next case."""
    d.memories = []
    args, kwargs = case.row.draw(d)
    return d.case(case.row, args, kwargs)


def _dtypes(d: Draw, case: Case, devices: Sequence[str]) -> Case | None:
    """One memory or all that have a dtype get another one."""
    if not case.memories:
        return None
    chosen, dtype, all_of_it = d.one_of(case.memories), d.one_of(d.dtypes), d.chance(0.5)
    changed = [m is chosen or (all_of_it and m.dtype == chosen.dtype) for m in case.memories]
    memories = [
        replace(m, dtype=dtype) if change and _holds(dtype, m) else m
        for m, change in zip(case.memories, changed, strict=True)
    ]
    return replace(case, memories=tuple(memories))


def _holds(dtype: str, memory: Memory) -> bool:
    """Whether integers of a range fit: others may be indices, whose range says where they may point."""
    low, colon, high = memory.values.partition(":")
    if not colon:
        return True
    kind = np.dtype("float32" if dtype == "bfloat16" else dtype)
    return kind.kind in "fciu" and (kind.kind in "fc" or np.iinfo(kind).min <= int(low) <= int(high) <= 128)


def _writability(d: Draw, case: Case, devices: Sequence[str]) -> Case | None:
    return _with_operand(d, case, lambda x: replace(x, writeable=not x.writeable))


def _givers(d: Draw, case: Case, devices: Sequence[str]) -> Case | None:
    """Another class of array, or another owner of memory."""
    if case.memories and d.chance(0.3):
        chosen = d.one_of(case.memories)
        memories = [replace(m, foreign=not m.foreign) if m is chosen else m for m in case.memories]
        return replace(case, memories=tuple(memories))
    return _with_operand(d, case, lambda x: replace(x, given=d.one_of(GIVEN)))


def _devices(d: Draw, case: Case, devices: Sequence[str]) -> Case | None:
    """All memory on another device, or one block of it."""
    if len(devices) < 2 or not case.memories:
        return None
    chosen, all_of_it, device = d.one_of(case.memories), d.chance(0.7), d.one_of(devices)
    memories = [replace(m, device=device) if all_of_it or m is chosen else m for m in case.memories]
    return replace(case, memories=tuple(memories))


def _arguments(d: Draw, case: Case, devices: Sequence[str]) -> Case | None:
    """One argument that is no array becomes another number, or an equal one of another type."""
    count, at = 0, -1

    def walked(tree: Any) -> Any:
        nonlocal count
        if type(tree) in (tuple, list):
            again = type(tree)([walked(item) for item in tree])
            if (count := count + 1) - 1 == at and not any(isinstance(item, slice) for item in tree):
                return list(again) if type(again) is tuple else tuple(again)
            return again
        if type(tree) is dict:
            return {name: walked(item) for name, item in tree.items()}
        if type(tree) in (bool, int, float):
            count += 1
            return _other_number(d, tree) if count - 1 == at else tree
        return tree

    args = [walked(item) for item in case.args], walked(case.kwargs)
    if not count:
        return None
    count, at = 0, d.integer(0, count - 1)
    args = [walked(item) for item in case.args], walked(case.kwargs)
    return replace(case, args=tuple(args[0]), kwargs=args[1])


def _other_number(d: Draw, x: Any) -> Any:
    if type(x) is bool:
        return d.one_of((not x, int(x), np.bool_(x)))
    if type(x) is int:
        return d.one_of((x + 1, -x, float(x), np.int64(x), np.int32(x), np.float32(x), bool(x)))
    whole = int(x) if np.isfinite(x) else 2
    return d.one_of((-x, x + 0.5, whole, np.float64(x), np.float32(x), float("nan"), -0.0))


def _with_operand(d: Draw, case: Case, change: Callable[[Operand], Operand]) -> Case | None:
    operands = case.operands()
    if not operands:
        return None
    chosen = d.one_of(operands)
    changed = change(chosen)
    args, kwargs = mapped((case.args, case.kwargs), lambda x: changed if x is chosen else x)
    return replace(case, args=args, kwargs=kwargs)


# Others than layouts and sharing, of which a plan may know less, are drawn less often.
CHANGES = (
    *(_layouts, _sharing) * 3, *(_dtypes, _givers, _arguments) * 2, _sizes, _writability, _devices,
)  # fmt: skip
