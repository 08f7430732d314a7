"""Targets by name, for binaries that are made without their device: `sm_90`, `gfx942`, `cpu`."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from ..errors import DeviceError
from . import cc, command_compilers, nvrtc

_CUDA = re.compile(r"sm_[0-9]{2,3}")
_HIP = re.compile(r"gfx[0-9]{1,2}[0-9a-f]{2}")


class OfflineCompiler(Protocol):
    """A compiler for one target. It returns the binary and its own fingerprint, and raises `DeviceError` where it
    isn't there."""

    def compile(self, text: str, extra_flags: tuple[str, ...] = ()) -> tuple[bytes, str]: ...


@dataclass(frozen=True)
class Target:
    """What a user's `name` means: the kind of device, and what `Driver.runs` of such a device is asked."""

    name: str
    kind: str
    target: str
    machine: str

    def compile(self, text: str, flags: tuple[str, ...]) -> tuple[bytes, str]:
        """The binary of `text`, and the fingerprint of the first compiler that is there. Raises `CompileError` with
        the compiler's words, `DeviceError` with what each compiler lacks."""
        missing = []
        for compiler in _compilers(self):
            try:
                return compiler.compile(text, flags)
            except DeviceError as error:
                missing.append(str(error))
        raise DeviceError(f"nothing here compiles for {self.name}: {'; '.join(missing)}{_ADVICE[self.kind]}")


# By kind of device: what installs a compiler.
_ADVICE = {
    "cpu": "",
    "cuda": ". Install NVRTC (pip install 'pyarray-kernels[cuda]' nvidia-cuda-nvrtc) or CUDA's nvcc",
    "hip": ". Install ROCm (its hiprtc with pip install 'pyarray-kernels[hip]', or its clang)",
}


def find_target(name: Any) -> Target:
    """The target of that name. Raises `TypeError` for what is no text, `ValueError` for one that names none."""
    if not isinstance(name, str):
        raise TypeError(f"a target is a text like 'sm_90', 'gfx942' or 'cpu', got {name!r}")
    if _CUDA.fullmatch(name):
        return Target(name, "cuda", name, name)
    if _HIP.fullmatch(name):
        return Target(name, "hip", name, name)
    kind, colon, level = name.partition(":")
    levels, usual = cc.LEVELS.get(platform.machine(), ({}, "native"))
    if kind == "cpu" and (not colon or level in levels or level == "native"):
        level = level or usual
        return Target(name, "cpu", platform.machine(), cc.processor() if level == "native" else level)
    cpus = ", ".join(f"'cpu:{level}'" for level in ("native", *levels))
    raise ValueError(f"unknown target {name!r}: expected one like 'sm_90' (NVIDIA), 'gfx942' (AMD), 'cpu', or {cpus}")


@dataclass(frozen=True)
class _Nvrtc:
    target: str

    def compile(self, text: str, extra_flags: tuple[str, ...] = ()) -> tuple[bytes, str]:
        nvrtc.version()  # says what is missing, if anything is
        nvrtc.check_target(self.target)
        compiler = nvrtc.Nvrtc(self.target)
        return compiler.compile(text, extra_flags), compiler.fingerprint


@dataclass(frozen=True)
class _HipClang:
    target: str

    def compile(self, text: str, extra_flags: tuple[str, ...] = ()) -> tuple[bytes, str]:
        compiler = command_compilers.HipClang(self.target)
        return compiler.compile(text, extra_flags), compiler.fingerprint


@dataclass(frozen=True)
class _C:
    machine: str

    def compile(self, text: str, extra_flags: tuple[str, ...] = ()) -> tuple[bytes, str]:
        native = self.machine == cc.processor()
        compiler = cc.toolchain() if native else cc.portable_toolchain(self.machine)
        return compiler.compile(text, extra_flags), compiler.fingerprint


def _compilers(target: Target) -> Iterator[OfflineCompiler]:
    """Those that may be there, the best first."""
    if target.kind == "cuda":
        yield from (_Nvrtc(target.target), command_compilers.Nvcc(target.target))
    elif target.kind == "hip":
        yield from (command_compilers.HiprtcProcess(target.target), _HipClang(target.target))
    else:
        yield _C(target.machine)
