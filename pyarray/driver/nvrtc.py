"""CUDA C++ text to a binary for one GPU, by NVRTC."""

from __future__ import annotations

import functools
import importlib
from dataclasses import dataclass
from typing import Any

from ..errors import DeviceError
from .base import cores
from .cc import include_dirs
from .runtime_compiler import call, compile_program

# --fmad=false: a * b + c must round as NumPy does
FLAGS = ("--std=c++17", "--fmad=false", "--device-as-default-execution-space", "-w")
MOST_THREADS = 8  # that compile a text


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
        """The cubin of `text`. Raises `CompileError` with the compiler's words, `DeviceError` without
        NVRTC."""
        rtc = _nvrtc()
        options = [f"--gpu-architecture={self.architecture}", *FLAGS, *extra_flags, *_parallel(text)]
        options += [f"--include-path={folder}" for folder in include_dirs()]
        program = call(rtc, "nvrtcCreateProgram", text.encode(), b"kernel.cu", 0, [], [])
        try:
            return compile_program(rtc, "nvrtc", program, options, self.target, "CUBIN")
        finally:
            rtc.nvrtcDestroyProgram(program)


def _parallel(text: str) -> tuple[str, ...]:
    """The option to compile the kernels of a text at the same time. Not of wgmma: ptxas would write to stderr what it
    says of them, and not to the log."""
    threads = min(text.count("__global__"), MOST_THREADS, cores())
    return (f"--split-compile={threads}",) if threads > 1 and "mma" not in text else ()


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
