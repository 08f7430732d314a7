"""Cases: one call as it was drawn, without the values. Memory and arrays are made anew at each run of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import pyarray as pa

from . import values


@dataclass(frozen=True)
class Memory:
    """A block of memory. `foreign`: it is NumPy's, shared where the device is the CPU. `device`: where it is, if not
    where the call is."""

    dtype: str
    shape: tuple[int, ...]
    values: str
    foreign: bool = False
    device: str = ""

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))


@dataclass(frozen=True)
class Operand:
    """An array from element `start` of memory number `memory` on; `steps` count elements. `given`: as an
    `array` of ours, a `view` (of the class that basic indices give), `returned` (by NumPy, to which it was
    given: other memory, for all that is known), or NumPy's `numpy`, `unaligned` or `swapped` (in the other
    byte order)."""

    memory: int
    start: int
    shape: tuple[int, ...]
    steps: tuple[int, ...]
    writeable: bool = True
    given: str = "array"
    sort: bool = False

    @property
    def repeats(self) -> bool:
        return any(n > 1 and not s for n, s in zip(self.shape, self.steps, strict=True))


@dataclass(frozen=True)
class Case:
    """A call of `row` with `args` and `kwargs`, in which operands stand for arrays."""

    row: Any
    memories: tuple[Memory, ...]
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)

    def operands(self) -> list[Operand]:
        """In the order of the arguments."""
        operands: list[Operand] = []
        mapped((self.args, self.kwargs), operands.append)
        return operands

    @property
    def function(self) -> str:
        """The ufunc whose method is called; "" in other rows."""
        return str(self.args[0]) if self.row.name.startswith("ufunc.") else ""

    @property
    def dtypes(self) -> list[str]:
        return [self.memories[x.memory].dtype for x in self.operands()]


def mapped(tree: Any, change: Callable[[Operand], Any]) -> Any:
    """`tree` with each operand in it changed."""
    if isinstance(tree, Operand):
        return change(tree)
    if type(tree) in (tuple, list):
        return type(tree)([mapped(item, change) for item in tree])
    if type(tree) is dict:
        return {name: mapped(item, change) for name, item in tree.items()}
    return tree


class Run:
    """Both sides' memory and arguments for one run of a case."""

    def __init__(self, case: Case, rng: np.random.Generator, device: str):
        self.case, self.device = case, device
        self.hosts = [values.fill(rng, m.size, m.dtype, m.values).reshape(m.shape) for m in case.memories]
        for x in case.operands():
            if x.sort and not x.repeats:
                view = self._theirs(replace(x, writeable=True))
                view[...] = np.sort(view, axis=-1)
        self.ours = [self._memory(m, host) for m, host in zip(case.memories, self.hosts, strict=True)]
        self.before = [host.copy() for host in self.hosts]

    def _memory(self, m: Memory, host: np.ndarray) -> Any:
        device = m.device or self.device
        if m.dtype == "bfloat16":
            return pa.array(host.astype(pa.bfloat16), device=device)
        if m.foreign and device == "cpu":
            return pa.asarray(host.copy(), copy=False)
        return pa.array(host, device=device)

    def _theirs(self, x: Operand) -> np.ndarray:
        host = self.hosts[x.memory]
        width = host.itemsize
        if not host.size or 0 in x.shape:
            view = np.empty(x.shape, host.dtype)
        else:
            view = np.ndarray(x.shape, host.dtype, host, x.start * width, tuple(s * width for s in x.steps))
        if not x.writeable or x.repeats:
            view.flags.writeable = False
        return view

    def _mine(self, x: Operand) -> Any:
        if x.given in ("numpy", "unaligned", "swapped"):
            return _as_numpy(self._theirs(x), x.given, self.case.memories[x.memory].dtype)
        memory = self.ours[x.memory]
        width = memory.itemsize
        if x.given == "array" and x.start == 0 and x.shape == memory.shape and x.writeable:
            steps = tuple(s * width for s in x.steps)
            if steps == memory.strides:
                return memory
        run = pa.BufferView if x.given == "view" else None
        start, steps = (x.start * width, tuple(s * width for s in x.steps)) if 0 not in x.shape else (0, None)
        view = memory._view(start, x.shape, steps or tuple(width for _ in x.shape), run)
        if not x.writeable or x.repeats:
            view.setflags(write=False)
        if x.given == "returned" and memory.device == "cpu" and memory.dtype.name != "bfloat16":
            return pa.asarray(np.asarray(view), copy=False)
        return view

    def arguments(self, ours: bool) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Of the one side's call; the same operand twice is the same array twice."""
        made: dict[Operand, Any] = {}
        make = self._mine if ours else self._theirs

        def once(x: Operand) -> Any:
            if x not in made:
                made[x] = make(x)
            return made[x]

        args, kwargs = mapped((self.case.args, self.case.kwargs), once)
        return args, kwargs


def _as_numpy(view: np.ndarray, given: str, dtype: str) -> np.ndarray:
    """A copy of NumPy's in its own memory, laid out as the operand is asked to be."""
    if dtype == "bfloat16":
        view = view.astype(pa.bfloat16)
    elif given == "swapped":
        return view.astype(view.dtype.newbyteorder())
    if given == "unaligned":
        buffer = np.empty(view.nbytes + 1, np.uint8)
        copy = np.ndarray(view.shape, view.dtype, buffer, 1)
        copy[...] = view
        return copy
    return view.copy()
