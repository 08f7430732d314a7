"""Compilers of GPU text that are programs, for targets that this machine need not have: nvcc, clang, and hiprtc in a
process of its own."""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..errors import CompileError, DeviceError
from . import hiprtc, nvrtc
from .cc import include_dirs

_FLAGS_OF_HIP = ("-x", "hip", "--cuda-device-only", "--no-gpu-bundle-output", *hiprtc.FLAGS)
# What clang says where it isn't the text's fault: parts of ROCm are missing, or too old for the target.
_INCOMPLETE = re.compile(
    rb"cannot find (ROCm device library|HIP runtime)|(lld|linker)\W.*(doesn't exist|not found)|undefined hidden symbol|"
    rb"[Uu]nsupported (HIP gpu|gpu|CUDA gpu) architecture|unknown target CPU|"
    rb"invalid target ID|[Nn]o available targets are compatible"
)
_REFUSED, _MISSING = 3, 4  # exit status of _CHILD
_CHILD = f"""
import json, sys
from pyarray.driver.hiprtc import Hiprtc
from pyarray.errors import CompileError, DeviceError
compiler, flags = Hiprtc(sys.argv[1]), tuple(json.loads(sys.argv[2]))
try:
    binary = compiler.compile(sys.stdin.buffer.read().decode(), flags)
    sys.stdout.buffer.write(compiler.fingerprint.encode() + b"\\0" + binary)
except (CompileError, DeviceError) as error:
    sys.stderr.write(str(error))
    sys.exit({_REFUSED} if isinstance(error, CompileError) else {_MISSING})
"""


@dataclass(frozen=True)
class Nvcc:
    """nvcc for one `target` like sm_90."""

    target: str

    def compile(self, text: str, extra_flags: tuple[str, ...] = ()) -> tuple[bytes, str]:
        """The cubin and the compiler's fingerprint. Raises `CompileError` with the compiler's words, `DeviceError`
        without nvcc."""
        program = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
        if program is None:
            raise DeviceError("there is no nvcc, in PATH or in /usr/local/cuda/bin")
        architecture = nvrtc.Nvrtc(self.target).architecture
        flags = ("-cubin", f"-arch={architecture}", "--std=c++17", "--fmad=false", "-w", *extra_flags)
        result, binary = _run(program, flags, text, "kernel.cu")
        if result.returncode and re.search(rb"gpu[- ]arch", result.stderr):
            raise DeviceError(f"{program} has no target {self.target!r}: {_words(result)}")
        if result.returncode:
            raise CompileError(f"{program} refused the kernel for {self.target}:\n{_words(result)}")
        return binary, " ".join((_first_line(program), *flags))


@dataclass(frozen=True)
class HipClang:
    """clang for one `target` like gfx942: it needs HIP's declarations, ROCm's device libraries and lld."""

    target: str

    @property
    def fingerprint(self) -> str:
        """Raises `DeviceError` without clang."""
        return " ".join((_first_line(self._program()), *self._flags()))

    def compile(self, text: str, extra_flags: tuple[str, ...] = ()) -> bytes:
        """The code object. Raises `CompileError` with the compiler's words, `DeviceError` without clang or one of the
        parts."""
        program = self._program()
        with tempfile.TemporaryDirectory(prefix="pyarray-") as folder:
            declared = _declarations(Path(folder))
            result, binary = _run(program, (*self._flags(), *extra_flags, *declared), text, "kernel.hip")
        if result.returncode and _INCOMPLETE.search(result.stderr):
            needs = "it needs lld, and ROCm's device libraries for the target (ROCM_PATH says where)"
            raise DeviceError(f"{program} can't make code for {self.target}; {needs}. It said: {_words(result)}")
        if result.returncode:
            raise CompileError(f"{program} refused the kernel for {self.target}:\n{_words(result)}")
        return binary

    def _program(self) -> str:
        program = _first(_clangs())
        if program is None:
            raise DeviceError("there is no clang++, in PATH or in ROCM_PATH/llvm/bin")
        return program

    def _flags(self) -> tuple[str, ...]:
        root = os.environ.get("ROCM_PATH")
        return (*_FLAGS_OF_HIP, f"--offload-arch={self.target}", *([f"--rocm-path={root}"] if root else ()))


def clang_version() -> str:
    """What the clang that compiles for AMD GPUs says of itself. Raises `DeviceError` without one."""
    return _first_line(HipClang("")._program())


@dataclass(frozen=True)
class HiprtcProcess:
    """hiprtc for one `target`, in a process that it may end: it does so for targets that it doesn't know."""

    target: str

    def compile(self, text: str, extra_flags: tuple[str, ...] = ()) -> tuple[bytes, str]:
        """The code object and the compiler's fingerprint. Raises as `HipClang.compile`."""
        package = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH"))))
        result = subprocess.run(
            [sys.executable, "-c", _CHILD, self.target, json.dumps(extra_flags)],
            input=text.encode(),
            capture_output=True,
            check=False,
            env=os.environ | {"PYTHONPATH": path},
        )
        if result.returncode == _REFUSED:
            raise CompileError(_words(result))
        if result.returncode == _MISSING:
            raise DeviceError(_words(result))
        if result.returncode:
            ended = f"hiprtc ended its process with {result.returncode}, as for a target that it doesn't know"
            raise DeviceError(f"{ended} ({self.target}). It said: {_words(result) or 'nothing'}")
        fingerprint, _, binary = result.stdout.partition(b"\0")
        return binary, fingerprint.decode()


def _run(program: str, flags: Iterable[str], text: str, name: str) -> tuple[subprocess.CompletedProcess[bytes], bytes]:
    """Compiles a text, and returns what the program said, and the binary."""
    with tempfile.TemporaryDirectory(prefix="pyarray-") as folder:
        source, output = Path(folder, name), Path(folder, "kernel.out")
        source.write_text(text)
        includes = [f"-I{place}" for place in include_dirs()]
        try:
            command = [program, *flags, *includes, str(source), "-o", str(output)]
            result = subprocess.run(command, capture_output=True, check=False)
        except OSError as error:
            raise DeviceError(f"can't run {program}: {error}") from error
        if not result.returncode and not output.exists():
            raise DeviceError(f"{program} ended with exit status 0 and wrote no binary. It said: {_words(result)}")
        return result, output.read_bytes() if output.exists() else b""


def _words(result: subprocess.CompletedProcess[bytes]) -> str:
    return (result.stderr or result.stdout).decode(errors="replace").strip()


def _first(programs: Iterable[str]) -> str | None:
    return next(filter(None, map(shutil.which, programs)), None)


def _clangs() -> Iterable[str]:
    """Names of clang: ROCm's own, then the newest."""
    roots = filter(None, (os.environ.get("ROCM_PATH"), "/opt/rocm"))
    yield from (f"{root}/llvm/bin/clang++" for root in roots)
    yield "amdclang++"
    yield from (f"clang++-{version}" for version in range(30, 14, -1))
    yield "clang++"


def _declarations(folder: Path) -> list[str]:
    """Flags for HIP's declarations: those that hiprtc compiles with, where the library is, else the header. The texts
    need none of the rest, and clang alone has none of them."""
    header = _hiprtc_header()
    if header is None:
        return ["-include", "hip/hip_runtime.h"]
    path = folder / "declarations.h"
    path.write_bytes(header)
    return ["-nogpuinc", "-nostdinc", "-D__HIPCC_RTC__", "-include", str(path)]


# Libraries don't change while a process runs.
@functools.cache
def _hiprtc_header() -> bytes | None:
    name = ctypes.util.find_library("hiprtc-builtins")
    try:
        library = ctypes.CDLL(name) if name else None
        if library is None:
            return None
        size = ctypes.c_uint.in_dll(library, "__hipRTC_header_size").value
        return bytes((ctypes.c_char * size).in_dll(library, "__hipRTC_header")).rstrip(b"\0")
    except (OSError, ValueError):
        return None


@functools.cache
def _first_line(program: str) -> str:
    """What a compiler says of its version, on one line."""
    result = subprocess.run([program, "--version"], capture_output=True, check=False)
    lines = result.stdout.decode(errors="replace").splitlines()
    return " ".join(next((line for line in lines if re.search(r"release|version", line)), program).split())
