"""HIP C++ text to a binary for one AMD GPU, by hiprtc; and where hip-python is."""

from __future__ import annotations

import functools
import importlib
import re
from dataclasses import dataclass
from typing import Any

from ..errors import DeviceError
from .cc import include_dirs
from .runtime_compiler import call, compile_program

# -ffp-contract=off: a * b + c must round as NumPy does. -fno-strict-aliasing: views of another dtype share
# memory. -amdgpu-sdwa-peephole=0: that pass of LLVM's has been wrong several times, and is in versions that ROCm has
# (llvm/llvm-project#106920, #123221, #218512). It made wrong products of int16 on gfx942. -slp-vectorize-hor=0: of
# unrolled sums of products of bytes it makes vectors at whose reduction LLVM 19 crashes, for every target.
FLAGS = (
    "-std=c++17", "-O3", "-ffp-contract=off", "-fno-strict-aliasing", "-w", "-mllvm", "-amdgpu-sdwa-peephole=0",
    "-mllvm", "-slp-vectorize-hor=0",
)  # fmt: skip
# It ends the process, rather than answer, for a target that it doesn't know.
TARGET = re.compile(r"gfx[0-9]{1,2}[0-9a-f]{2}")


@functools.cache
def binding(name: str) -> Any:
    """The module `name` of hip-python, which is `rocm.bindings` from version 10 on and was `hip` before. None
    where it is not installed."""
    for package in ("rocm.bindings", "hip"):
        try:
            return importlib.import_module(f"{package}.{name}")
        except ImportError:
            continue
    return None


@dataclass(frozen=True)
class Hiprtc:
    """hiprtc for one `target` like gfx90a."""

    target: str

    @property
    def fingerprint(self) -> str:
        return f"hiprtc {version()} {self.target} {' '.join(FLAGS)}"

    def compile(self, text: str, extra_flags: tuple[str, ...] = ()) -> bytes:
        """The code object of `text`. Raises `CompileError` with the compiler's words, `DeviceError` without
        hiprtc or for what is no target."""
        if not TARGET.fullmatch(self.target):
            raise DeviceError(f"hiprtc has no target {self.target!r}: expected one like 'gfx90a' or 'gfx1100'")
        version()  # says what is missing, if anything is
        options = [f"--offload-arch={self.target}", *FLAGS, *extra_flags]
        options += [f"-I{folder}" for folder in include_dirs()]
        rtc = _hiprtc()
        program = call(rtc, "hiprtcCreateProgram", text.encode(), b"kernel.hip", 0, [], [])
        try:
            return compile_program(rtc, "hiprtc", program, options, self.target, "Code")
        finally:
            rtc.hiprtcDestroyProgram(program.createRef())


def _hiprtc() -> Any:
    rtc = binding("hiprtc")
    if rtc is None:
        raise DeviceError("kernels for hip need hip-python: pip install 'pyarray-kernels[hip]'")
    return rtc


@functools.cache
def version() -> str:
    """The versions of hiprtc and of its ROCm runtime, since hiprtc's own is always 9.0. Raises `DeviceError`
    without it."""
    rtc = _hiprtc()
    try:
        major, minor = call(rtc, "hiprtcVersion")
        _, runtime = binding("hip").hipRuntimeGetVersion()
    except DeviceError:
        raise
    except Exception as error:  # the binding's own: the library is not there
        raise DeviceError(f"hiprtc can't be loaded ({error}); it is a part of ROCm") from None
    return f"{major}.{minor} (HIP {runtime})"
