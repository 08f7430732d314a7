"""What makes AMD's code objects here: clang and lld, with Debian's device libraries of ROCm 5.2 in a folder that looks
as ROCm's. Those know neither gfx942 nor gfx1100, but all that they ask of a target is its number, which is made here.
"""

from __future__ import annotations

import ctypes.util
import fcntl
import importlib.util
import shutil
import subprocess
from pathlib import Path

from .tables import VERSION

BITCODE = Path("/usr/lib/x86_64-linux-gnu/amdgcn/bitcode")
ISA_VERSIONS = {"942": 9402, "1100": 11000}
_MODULE = """target triple = "amdgcn-amd-amdhsa"
@__oclc_ISA_version = linkonce_odr protected local_unnamed_addr addrspace(4) constant i32 {version}, align 4
"""
# What ROCM_PATH has as its clang. Faults name lines of the kernel's text: code is the same with and without. HIP's
# declarations, which are most of what a small kernel takes, are read precompiled.
_CLANG = """#!/bin/sh
for word; do case $word in --offload-arch=*) target=${{word#*=}};; esac; done
declarations='{folder}'/$target.h
for word; do
  shift
  case $word in */declarations.h) [ -f "$declarations.pch" ] && word=$declarations;; esac
  set -- "$@" "$word"
done
exec '{clang}' -gline-tables-only "$@"
"""


def missing() -> str:
    """The command that installs what is missing here; '' when all is there."""
    packages = [
        package
        for package, there in {
            "clang-19": shutil.which("clang-19"), "lld-19": shutil.which("ld.lld-19"),
            "rocm-device-libs": (BITCODE / "ocml.bc").exists(),
            "libhiprtc-builtins5": ctypes.util.find_library("hiprtc-builtins"),
        }.items()
        if not there
    ]  # fmt: skip
    commands = [f"apt-get install {' '.join(packages)}"] if packages else []
    if importlib.util.find_spec("tinygrad") is None:
        commands.append(f"pip install tinygrad=={VERSION}")
    return " and ".join(commands)


def use(rocm: Path, target: str) -> None:
    """Lets `rocm`, which ROCM_PATH is to name, have what compiles for the target."""
    rocm.mkdir(parents=True, exist_ok=True)
    with (rocm / "compiler.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (rocm / "amdgcn").is_dir():
            _make_libraries(rocm)
        clang = Path(str(shutil.which("clang++-19"))).resolve()
        _write(rocm / "llvm" / "bin" / "clang++", _CLANG.format(folder=rocm / "declarations", clang=clang), 0o755)
        _compile_declarations(rocm, clang, target)


def _make_libraries(rocm: Path) -> None:
    fresh = rocm / "amdgcn.new"
    shutil.rmtree(fresh, ignore_errors=True)
    (fresh / "bitcode").mkdir(parents=True)
    for library in BITCODE.glob("*.bc"):
        (fresh / "bitcode" / library.name).symlink_to(library)
    for name, version in ISA_VERSIONS.items():
        made = str(fresh / "bitcode" / f"oclc_isa_version_{name}.bc")
        command = ["clang-19", "--target=amdgcn-amd-amdhsa", "-nogpulib", "-x", "ir", "-", "-c", "-emit-llvm"]
        subprocess.run([*command, "-o", made], input=_MODULE.format(version=version), text=True, check=True)
    fresh.rename(rocm / "amdgcn")


def _write(path: Path, text: str, mode: int = 0o644) -> None:
    if path.exists() and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    fresh.chmod(mode)
    fresh.rename(path)


def _compile_declarations(rocm: Path, clang: Path, target: str) -> None:
    """What kernels are compiled with (`_declarations` in `command_compilers.py`) as a precompiled header."""
    from pyarray.driver import command_compilers  # not before the tests' settings stand

    header = rocm / "declarations" / f"{target}.h"
    made, stamp = header.with_suffix(".h.pch"), header.with_suffix(".made_by")
    command = [str(clang), *command_compilers._FLAGS_OF_HIP, f"--offload-arch={target}", f"--rocm-path={rocm}"]
    command += ["-nogpuinc", "-nostdinc", "-D__HIPCC_RTC__", "-c", "-emit-llvm", "-Xclang", "-emit-pch", str(header)]
    maker = " ".join([*command, str(clang.stat().st_mtime)])
    if stamp.exists() and stamp.read_text() == maker:
        return
    made.unlink(missing_ok=True)
    _write(header, (command_compilers._hiprtc_header() or b"").decode())
    subprocess.run([*command, "-o", f"{made}.new"], check=True)
    Path(f"{made}.new").rename(made)
    _write(stamp, maker)
