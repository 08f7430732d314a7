"""What rows draw from: shapes, layouts, relations between operands, options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .operands import Case, Memory, Operand, mapped

SIDES = (0, 1, 1, 2, 3, 3, 4, 5, 7, 8, 17)
LARGE = ((2100,), (17, 130), (1, 3000), (130, 140))
DTYPES = {
    "b": ("bool",),
    "i": ("int8", "int16", "int32", "int64"),
    "u": ("uint8", "uint16", "uint32", "uint64"),
    "f": ("float16", "bfloat16", "float32", "float64"),
    "c": ("complex64", "complex128"),
}


def dtypes_of(kinds: str) -> tuple[str, ...]:
    """Names of the dtypes of these kinds."""
    return tuple(name for kind in kinds for name in DTYPES[kind])


class Draw:
    """Draws one case of a row, whose dtypes are among `dtypes`."""

    def __init__(self, rng: np.random.Generator, dtypes: Sequence[str]):
        self.rng, self.dtypes = rng, tuple(dtypes)
        self.memories: list[Memory] = []
        self.dtype = str(self.one_of(self.dtypes)) if dtypes else "float64"

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def integer(self, low: int, high: int) -> int:
        """From `low` to `high`, both included."""
        return int(self.rng.integers(low, high + 1))

    def one_of(self, things: Sequence[Any]) -> Any:
        return things[int(self.rng.integers(len(things)))]

    def options(self, **choices: Sequence[Any]) -> dict[str, Any]:
        """Keywords, each left out half of the time."""
        return {name: self.one_of(values) for name, values in choices.items() if self.chance(0.5)}

    # ---- shapes

    def shape(self, least: int = 0, most: int = 3, empty: bool = True) -> tuple[int, ...]:
        """Of `least` to `most` axes."""
        fits = [s for s in LARGE if least <= len(s) <= most and self.dtype != "float16"]  # sums overflow it
        if fits and self.chance(0.04):
            return self.one_of(fits)
        sides = SIDES if empty else SIDES[1:]
        return tuple(int(self.one_of(sides)) for _ in range(self.integer(least, most)))

    def broadcastable(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """A shape that broadcasts to `shape`."""
        kept = [1 if self.chance(0.25) else n for n in shape]
        return tuple(kept[self.integer(0, len(kept)) if self.chance(0.3) else 0 :])

    def axis(self, shape: tuple[int, ...]) -> int:
        """Of a shape with one at least."""
        return self.integer(-len(shape), len(shape) - 1)

    def axes(self, shape: tuple[int, ...]) -> Any:
        """None, one axis, or several."""
        if not shape or self.chance(0.3):
            return None
        if self.chance(0.7):
            return self.axis(shape)
        count = self.integer(1, len(shape))
        return tuple(int(k) for k in self.rng.permutation(len(shape))[:count])

    # ---- operands

    def array(
        self,
        shape: tuple[int, ...],
        dtype: str | None = None,
        values: str = "any",
        *,
        write: bool = False,
        sort: bool = False,
        ours: bool = False,
    ) -> Operand:
        """An operand of any layout; one that is to be written (`write`) doesn't repeat elements. `ours`: not
        an array of NumPy's."""
        dtype = dtype or self.dtype
        start, steps, extent = self._layout(shape, repeats=not (write or sort))
        plain = self.chance(0.4)
        if plain:
            start, steps, extent = 0, _packed(shape), int(np.prod(shape))
        held = shape if plain else (extent,)
        self.memories.append(Memory(dtype, held, values, self.chance(0.15)))
        given = self.one_of(("array", "array", "array", "array", "view", "view", "view", "returned"))
        if not (write or ours) and len(self.memories) > 1 and self.chance(0.05):
            given = self.one_of(("numpy", "unaligned", "swapped"))
        return Operand(len(self.memories) - 1, start, shape, steps, write or self.chance(0.9), given, sort)

    def _layout(self, shape: tuple[int, ...], repeats: bool) -> tuple[int, tuple[int, ...], int]:
        """(first element, steps, elements of the memory)"""
        order = list(range(len(shape))) if self.chance(0.6) else [int(k) for k in self.rng.permutation(len(shape))]
        steps, step = [0] * len(shape), 1
        for k in reversed(order):
            gap = self.one_of((1, 1, 1, 2, 3))
            if repeats and self.chance(0.08):
                continue
            steps[k] = step * gap
            step *= gap * max(shape[k], 1)
        before = self.integer(0, 5) if self.chance(0.7) else 0
        start = before
        for k, n in enumerate(shape):
            if steps[k] and self.chance(0.25):
                steps[k] = -steps[k]
                start += -steps[k] * max(n - 1, 0)
        end = before + sum(abs(s) * max(n - 1, 0) for s, n in zip(steps, shape, strict=True)) + 1
        return start, tuple(steps), end + self.integer(0, 3)

    # ---- relations

    def case(self, row: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Case:
        """With some operands made the same, or to share memory, as their dtypes, values and sizes allow."""
        case = Case(row, tuple(self.memories), args, kwargs)
        return self.related(case) if row.shares and self.chance(0.4) else case

    def relaid(self, case: Case) -> Case:
        """The case with other layouts of its operands, and perhaps other relations between them."""
        self.memories, made = [], {}

        def again(x: Operand) -> Operand:
            if x not in made:
                memory = case.memories[x.memory]
                y = self.array(x.shape, memory.dtype, memory.values, write=not x.repeats, ours=True)
                made[x] = replace(y, writeable=x.writeable, given=x.given, sort=x.sort)
            return made[x]

        args, kwargs = mapped((case.args, case.kwargs), again)
        return self.case(case.row, args, kwargs)

    def related(self, case: Case) -> Case:
        """The case with another relation between its operands."""
        operands = [x for x in case.operands() if x.given in ("array", "view", "returned")]
        if len(operands) < 2:
            return case
        x = self.one_of(operands)
        alike = [
            y
            for y in operands
            if y is not x and _kind(case, x) == _kind(case, y) and (x.sort, x.writeable) == (y.sort, y.writeable)
        ]
        if not alike:
            return case
        y = self.one_of(alike)
        memory = case.memories[y.memory]
        if x.shape == y.shape and self.chance(0.5):
            moved = y
        else:
            low, high = _reach(x)
            if (x.repeats and x.writeable) or memory.size < high - low or 0 in x.shape or x.sort:
                return case
            start = self.integer(-low, memory.size - high)
            moved = Operand(y.memory, start, x.shape, x.steps, x.writeable, x.given)
        swap = lambda z: moved if z is x else z  # noqa: E731
        args, kwargs = mapped((case.args, case.kwargs), swap)
        return Case(case.row, case.memories, args, kwargs)


def _kind(case: Case, x: Operand) -> tuple[str, str]:
    memory = case.memories[x.memory]
    return memory.dtype, memory.values


def _reach(x: Operand) -> tuple[int, int]:
    """The lowest element relative to the first one, and the one behind the highest."""
    ends = [s * max(n - 1, 0) for s, n in zip(x.steps, x.shape, strict=True)]
    return sum(min(e, 0) for e in ends), sum(max(e, 0) for e in ends) + 1


def _packed(shape: tuple[int, ...]) -> tuple[int, ...]:
    steps, step = [], 1
    for n in reversed(shape):
        steps.append(step)
        step *= max(n, 1)
    return tuple(reversed(steps))
