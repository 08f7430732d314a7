"""`RecordedLaunch`: a launch of a graph, with the arrays that it uses, and its packed arguments."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from .. import shapes
from ..array import WATCHED, ndarray
from ..driver.graph import GraphLaunch
from ..lang.ir import ArrayType
from ..lang.parse import is_internal
from .launch import operands, packer, slot_count
from .launch_state import Launch, observe
from .text_kernel import Address

_HERE = str(Path(__file__).parent)
Range = tuple[int, int]


def bounds(a: ndarray) -> Range:
    """First address of an array's elements, and the one behind the last; equal for no elements."""
    low, high = shapes.byte_bounds(a._shape, a._strides, a._dtype.itemsize)
    return a._ptr + low, a._ptr + high


def handle(a: ndarray) -> ndarray:
    """The same memory, shape and strides by an object of its own: arrays of users can be changed in place."""
    return a._view(0, a._shape, a._strides, type(a))


def called_by_user() -> bool:
    """Whether the kernel that is being launched was called outside of this package, not by a function of it."""
    frame = sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith((_HERE, "<pyarray")):
            return not is_internal(path)
        frame = frame.f_back  # type: ignore[assignment]
    return False


@dataclass(frozen=True, eq=False)
class RecordedLaunch:
    """`values` are the live arguments by parameter: arrays by handles of the graph's own, and numbers. `direct`: the
    user called the kernel. `keys` are the type keys of arrays as they were passed."""

    kernel: str
    variant: Any
    values: Mapping[str, Any]
    marked: frozenset[str]
    direct: bool
    keys: Mapping[str, int]
    pack: Callable[..., bytes]  # of all values in the order of parameters

    @classmethod
    def of(cls, launch: Launch) -> RecordedLaunch:
        """Raises `RuntimeError` for a launch that can't be repeated."""
        variant, program = launch.variant, launch.variant.program
        if program is None:
            raise _refused(launch, "is a call of another library, which launches work of its own")
        if program.raw:
            raise _refused(launch, "has a grid of its own, and what it reads and writes isn't known")
        if variant.returns_failures:
            raise _refused(launch, "is in debug mode or tests assertions: the failure record is read after each launch")
        if program.lines:
            raise _refused(launch, "prints, and what it prints is read after each launch")
        values, keys = {}, {}
        for name, _ in program.params:
            value = launch.args.get(name)
            if value is None or isinstance(value, Address):
                raise _refused(launch, f"has an argument {name!r} that is of this launch alone")
            if isinstance(value, ndarray):
                keys[name], value = value._key, handle(value)
            values[name] = value
        pack = packer(program.params)
        return cls(launch.kernel, variant, values, launch.marked, called_by_user(), keys, pack)

    @property
    def arrays(self) -> Iterator[tuple[str, ndarray, bool]]:
        """Name, array and whether it is written, of those that the kernel uses."""
        for name, kind in self.variant.program.params:
            direction = self.variant.program.directions.get(name)
            if isinstance(kind, ArrayType) and direction != "UNUSED":
                yield name, self.values[name], direction != "IN"

    @property
    def numbers(self) -> Iterator[tuple[str, Any]]:
        for name, kind in self.variant.program.params:
            if not isinstance(kind, ArrayType):
                yield name, kind

    def with_arrays(self, arrays: Mapping[str, ndarray]) -> RecordedLaunch:
        """The launch with other arrays as some parameters."""
        return replace(self, values={**self.values, **arrays}) if arrays else self

    @property
    def alignment(self) -> int:
        """What addresses of its arrays are multiples of, in bytes."""
        alignment: int = self.variant.program.alignment
        return alignment

    @property
    def watched(self) -> list[ndarray]:
        """The arrays that it writes whose memory's owners are told before."""
        return [a for _, a, writes in self.arrays if writes and a._key & WATCHED]

    def before(self) -> None:
        """Tells owners of memory that it is to be written."""
        for a in self.watched:
            a._buffer.before_write()

    def packed(self) -> bytes:
        """The arguments in slots of 8 bytes."""
        values = []
        for name, kind in self.variant.program.params:
            x = self.values[name]
            values.append(x.item() if hasattr(x, "item") and not isinstance(kind, ArrayType) else x)
        return self.pack(*values)

    @property
    def slots(self) -> dict[str, int]:
        """The number of each array's first slot, which has its address."""
        found, slot = {}, 0
        for name, kind in self.variant.program.params:
            if isinstance(kind, ArrayType):
                found[name] = slot
            slot += slot_count(kind, False)
        return found

    def for_driver(self) -> GraphLaunch:
        program = self.variant.program
        arrays = operands(program.params, program.directions, False)
        return GraphLaunch(self.variant.artifact.function, arrays, self.packed())

    def run_observed(self) -> None:
        """Launches by itself, seen by observers."""
        made = self.for_driver()
        run = self.variant.device.driver.launcher(made.function, made.operands)
        observe(Launch(self.kernel, self.variant, self.values, partial(run, made.slots), self.marked))


def _refused(launch: Launch, why: str) -> RuntimeError:
    return RuntimeError(f"capture(): the launch of {launch.kernel!r} {why}: make it outside of the block")
