"""The CPU driver: memory and worker threads of the C runtime, kernels from the system's C compiler."""

from __future__ import annotations

import ctypes
import itertools
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import config, driver
from .._core import connect
from .._runtime import ffi, lib
from ..errors import DeviceError
from .base import CheckedLauncher, Driver, GridLauncher, Launcher, NativeLaunch, Operand, cores
from .failure import Failure, read_failure
from .kernel_step import KernelStep

# What a kernel with a grid of its own may ask for: csrc/device/pa_grid_cpu.h, and else what GPUs allow.
GRID = {
    "warp": 32,
    "shared_bytes": 65536,
    "block_threads": 1024,
    "block_sides": (1024, 1024, 64),
    "grid_sides": (2**31 - 1, 65535, 65535),
}


class CpuDriver(Driver):
    """All cores of the machine are one device. Everything is done when a call returns."""

    kind = "cpu"
    zeroed_from = int(lib.pa_memory_zeroed_from())

    def __init__(self, index: int):
        super().__init__(index)
        # The driver lives until the process ends, and so do the workers: nobody destroys the pool.
        self._pool = lib.pa_pool_create(_threads())

    @classmethod
    def count(cls) -> int:
        return 1

    def name(self) -> str:
        return _first_field("/proc/cpuinfo", "model name") or platform.processor() or platform.machine()

    def properties(self) -> Mapping[str, Any]:
        return {
            "threads": lib.pa_pool_threads(self._pool),
            "cores": os.cpu_count() or 1,
            "machine": platform.machine(),
            **GRID,
        }

    def target(self) -> str:
        return platform.machine()

    def machine(self) -> str:
        return driver.cc.processor()

    def runs(self, target: str, machine: str) -> bool:
        return super().runs(target, machine) or (target == self.target() and driver.cc.has_level(machine))

    def memory_info(self) -> tuple[int, int]:
        page = os.sysconf("SC_PAGE_SIZE")
        total = os.sysconf("SC_PHYS_PAGES") * page
        return _available() or total, total

    def allocate(self, nbytes: int) -> int:
        return int(ffi.cast("uintptr_t", lib.pa_memory_alloc(nbytes)))

    def free(self, ptr: int, nbytes: int) -> None:
        lib.pa_memory_free(ffi.cast("void *", ptr), nbytes)

    def fill(self, ptr: int, byte: int, nbytes: int) -> None:
        ctypes.memset(ptr, byte, nbytes)

    def copy_in(self, ptr: int, host: int, nbytes: int) -> None:
        ctypes.memmove(ptr, host, nbytes)

    def copy_out(self, host: int, ptr: int, nbytes: int) -> None:
        ctypes.memmove(host, ptr, nbytes)

    def copy_disjoint(self, target: int, source: int, nbytes: int) -> None:
        """Between ranges that don't overlap, by all cores."""
        lib.pa_memory_copy(self._pool, ffi.cast("void *", target), ffi.cast("void *", source), nbytes)

    def compiler(self) -> driver.cc.Toolchain:
        return driver.cc.toolchain()

    def load(self, artifact: bytes) -> int:
        import tempfile  # which takes long to import, and is needed for kernels alone

        # The system loader knows files by path and takes a known path for a loaded module: hence a number
        # that no other module of this process has, nor of those that it is a fork of.
        handle, path = tempfile.mkstemp(prefix=f"pyarray-{next(_numbers)}-", suffix=".so")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(artifact)
            return self.load_file(path)
        finally:
            os.unlink(path)

    def load_file(self, path: str | os.PathLike[str]) -> int:
        """A module from a shared object on disk. A path that was loaded before gives that same module."""
        module: int = lib.pa_module_open(os.fsencode(path))
        if not module:
            what = f"can't load the compiled kernel {os.fspath(path)}: {_module_error()}"
            raise DeviceError(what + _noexec(os.path.dirname(os.fspath(path))))
        return module

    def unload(self, module: int) -> None:
        lib.pa_module_close(module)

    def function(self, module: int, steps: Sequence[KernelStep]) -> int:
        (step,) = steps
        return self.symbol(module, step.symbol)

    def symbol(self, module: int, name: str) -> int:
        """Address of a function of the module, which is its handle, too."""
        address: int = lib.pa_module_symbol(module, name.encode())
        if not address:
            raise DeviceError(f"the compiled module has no function {name!r}: {_module_error()}")
        return address

    def launcher(self, function: int, operands: Sequence[Operand] = ()) -> Launcher:
        # Locals, so that a launch looks no attribute up.
        run, pool, no_record = lib.pa_launch, self._pool, ffi.NULL

        def launch(slots: bytes) -> None:
            run(function, slots, pool, no_record)

        return launch

    def native_launch(self, function: int, operands: Sequence[Operand] = ()) -> NativeLaunch:
        return function, int(ffi.cast("uintptr_t", self._pool)), None, function

    def checked_launcher(
        self, function: int, operands: Sequence[Operand] = (), inside: Callable[[Any], bool] | None = None
    ) -> CheckedLauncher:
        run, new, pool = lib.pa_launch, ffi.new, self._pool

        def launch(slots: bytes) -> Failure | None:
            # A record per launch: two threads may launch the same kernel.
            record = new("pa_failure *")
            return read_failure(record) if run(function, slots, pool, record) else None

        return launch

    def grid_launcher(self, module: int, name: str) -> GridLauncher:
        entry = self.symbol(module, f"pa_grid_{name}")
        run, pool = lib.pa_grid_run, self._pool

        def launch(grid: tuple[int, int, int], block: tuple[int, int, int], shared: int, slots: bytes) -> None:
            error = run(entry, grid, block, shared, slots, len(slots), pool)
            if error:
                raise DeviceError(f"cpu: a launch of {name} failed: {ffi.string(error).decode()}")

        return launch

    def use_team(self, team: int) -> None:
        """Run loops on the threads behind that address, a `pa_team` of pyarray.h."""
        lib.pa_pool_use(self._pool, team)

    def synchronize(self) -> None:
        pass

    def stream(self) -> int:
        return 0


_numbers = itertools.count()  # of loaded artifacts
connect(int(ffi.cast("uintptr_t", ffi.addressof(lib, "pa_launch"))))


def _threads() -> int:
    setting = config.get("PYARRAY_NUM_THREADS")
    return int(setting) if setting is not None else cores()


def _noexec(folder: str) -> str:
    """Advice if a folder's file system is mounted noexec, which forbids loading libraries from it; else ""."""
    try:
        forbidden = os.statvfs(folder or ".").f_flag & os.ST_NOEXEC
    except OSError:
        return ""
    hint = f"; {folder} is on a file system that runs no programs (mounted noexec): set TMPDIR to a folder of"
    return f"{hint} another one" if forbidden else ""


def _module_error() -> str:
    text: bytes = ffi.string(lib.pa_module_error())
    return text.decode(errors="replace")


def _available() -> int | None:
    """Bytes that new memory can take without swapping; None where the system doesn't say."""
    text = _first_field("/proc/meminfo", "MemAvailable")
    return int(text.split()[0]) * 1024 if text else None


def _first_field(path: str, name: str) -> str | None:
    """Value of the first line `name : value` of a Linux information file; None if there is none."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except OSError:
        return None
    pairs = (line.partition(":") for line in lines)
    return next((value.strip() for key, _, value in pairs if key.strip() == name), None)
