"""A driver that records its calls and computes nothing: for tests without hardware, and to see what a program
would launch."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .base import CheckedLauncher, Driver, GridLauncher, Launcher, Operand
from .cpu import GRID
from .kernel_step import KernelStep


class NullCompiler:
    """Returns the text itself. `compiled` lists what it was given."""

    fingerprint = "null"

    def __init__(self) -> None:
        self.compiled: list[str] = []

    def compile(self, text: str, extra_flags: tuple[str, ...] = ()) -> bytes:
        self.compiled.append(text)
        return text.encode()


class NullDriver(Driver):
    """`calls` lists (method, arguments). Addresses and handles are distinct and point nowhere; what is read
    back is zeros.

    >>> get_device("null:0").driver.calls  # doctest: +SKIP
    [('allocate', (64,))]
    """

    kind = "null"
    computes = False
    memory = 1 << 40  # more than a machine has: what would be launched at any size can be asked

    def __init__(self, index: int):
        super().__init__(index)
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self._compiler = NullCompiler()
        self._address = (index + 1) << 48  # above all user memory, so that a mistaken access is a fault
        self._used = 0
        self._handles = itertools.count(1)

    @classmethod
    def count(cls) -> int:
        return 2  # so that "another device" can be tested

    def _record(self, method: str, *arguments: Any) -> None:
        self.calls.append((method, arguments))

    def name(self) -> str:
        return "null"

    def properties(self) -> Mapping[str, Any]:
        return {"threads": 1, **GRID}

    def target(self) -> str:
        return "null"

    def memory_info(self) -> tuple[int, int]:
        return self.memory - self._used, self.memory

    def allocate(self, nbytes: int) -> int:
        self._record("allocate", nbytes)
        if self._used + nbytes > self.memory:
            return 0
        self._used += nbytes
        ptr = self._address
        self._address += (nbytes + 63) // 64 * 64
        return ptr

    def free(self, ptr: int, nbytes: int) -> None:
        self._record("free", ptr, nbytes)
        self._used -= nbytes

    def device_of_pointer(self, ptr: int) -> int | None:
        index = (ptr >> 48) - 1
        return index if 0 <= index < self.count() else None

    def fill(self, ptr: int, byte: int, nbytes: int) -> None:
        self._record("fill", ptr, byte, nbytes)

    def copy_in(self, ptr: int, host: int, nbytes: int) -> None:
        self._record("copy_in", ptr, host, nbytes)

    def copy_out(self, host: int, ptr: int, nbytes: int) -> None:
        self._record("copy_out", host, ptr, nbytes)
        ctypes.memset(host, 0, nbytes)

    def compiler(self) -> NullCompiler:
        return self._compiler

    def load(self, artifact: bytes) -> int:
        self._record("load", artifact)
        return next(self._handles)

    def unload(self, module: int) -> None:
        self._record("unload", module)

    def function(self, module: int, steps: Sequence[KernelStep]) -> int:
        self._record("function", module, tuple(steps))
        return next(self._handles)

    def launcher(self, function: int, operands: Sequence[Operand] = ()) -> Launcher:
        def launch(slots: bytes) -> None:
            self._record("launch", function, slots)

        return launch

    def checked_launcher(
        self, function: int, operands: Sequence[Operand] = (), inside: Callable[[Any], bool] | None = None
    ) -> CheckedLauncher:
        return self.launcher(function)

    def grid_launcher(self, module: int, name: str) -> GridLauncher:
        def launch(grid: tuple[int, int, int], block: tuple[int, int, int], shared: int, slots: bytes) -> None:
            self._record("launch", name, grid, block, shared, slots)

        return launch

    def synchronize(self) -> None:
        self._record("synchronize")

    def stream(self) -> int:
        return self.current_stream()

    def stream_wait(self, waiting: int, other: int) -> None:
        self._record("stream_wait", waiting, other)
