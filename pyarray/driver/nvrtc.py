"""CUDA C++ text to a binary for one GPU, by NVRTC."""

from __future__ import annotations

import functools
import importlib
import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from ..errors import DeviceError
from .cc import include_dirs
from .runtime_compiler import call, compile_program
from .text_units import packed, unit_sets

# --fmad=false: a * b + c must round as NumPy does
FLAGS = ("--std=c++17", "--fmad=false", "--device-as-default-execution-space", "-w")
# Of a text. NVRTC's own `--split-compile` refuses some texts ("Failed to read bitcode"), and hangs after an error.
MAX_UNITS = 8


@dataclass(frozen=True)
class Nvrtc:
    """NVRTC for one `target` like sm_90."""

    target: str

    @property
    def architecture(self) -> str:
        """The target, with the instructions that only GPUs of this very architecture have: wgmma of sm_90."""
        return "sm_90a" if self.target == "sm_90" else self.target

    @property
    def fingerprint(self) -> str:
        return f"nvrtc {version()} {self.architecture} {' '.join(FLAGS)}"

    def compile(self, text: str, extra_flags: tuple[str, ...] = ()) -> bytes:
        """The cubin of `text`, or those of its units. Raises `CompileError` with the compiler's words, `DeviceError`
        without NVRTC."""
        sets = unit_sets(text, MAX_UNITS)
        if len(sets) == 1:
            return self._compiled(text, extra_flags)
        flags = [(*extra_flags, f"-DPA_UNIT={bits:#x}") for bits in sets]
        with ThreadPoolExecutor(len(sets), thread_name_prefix="pyarray-nvrtc") as pool:
            try:
                units = pool.map(self._compiled, itertools.repeat(text), flags)
            except RuntimeError:  # no thread starts while the interpreter ends; what units raise comes later
                return self._compiled(text, extra_flags)
            return packed(list(units))

    def _compiled(self, text: str, extra_flags: tuple[str, ...]) -> bytes:
        rtc = _nvrtc()
        options = [f"--gpu-architecture={self.architecture}", *FLAGS, *extra_flags]
        options += [f"--include-path={folder}" for folder in include_dirs()]
        program = call(rtc, "nvrtcCreateProgram", text.encode(), b"kernel.cu", 0, [], [])
        try:
            return compile_program(rtc, "nvrtc", program, options, self.target, "CUBIN")
        finally:
            rtc.nvrtcDestroyProgram(program)


def check_target(target: str) -> None:
    """Raises `DeviceError` for a target that this NVRTC doesn't know, and without NVRTC."""
    known = call(_nvrtc(), "nvrtcGetSupportedArchs")
    if int(target.removeprefix("sm_")) not in known:
        listed = ", ".join(f"sm_{number}" for number in known)
        raise DeviceError(f"NVRTC {version()} has no target {target!r}; it has {listed}")


@functools.cache
def _nvrtc() -> Any:
    try:
        return importlib.import_module("cuda.bindings.nvrtc")
    except ImportError:
        raise DeviceError("kernels for cuda need NVRTC: pip install 'pyarray-kernels[cuda]'") from None


@functools.cache
def version() -> str:
    """Of the library. Raises `DeviceError` without it."""
    try:
        major, minor = call(_nvrtc(), "nvrtcVersion")
    except DeviceError:
        raise
    except Exception as error:  # the binding's own: the library is not there
        raise DeviceError(f"NVRTC can't be loaded ({error}); pip install nvidia-cuda-nvrtc") from None
    return f"{major}.{minor}"
