"""What makes AMD's code objects here: clang and lld, with Debian's device libraries of ROCm 5.2 in a folder that looks
as ROCm's. Those know neither gfx942 nor gfx1100, but all that they ask of a target is its number, which is made here.
"""

from __future__ import annotations

import ctypes.util
import fcntl
import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

from .tables import VERSION

BITCODE = Path("/usr/lib/x86_64-linux-gnu/amdgcn/bitcode")
ISA_VERSIONS = {"942": 9402, "1100": 11000}
_MODULE = """target triple = "amdgcn-amd-amdhsa"
@__oclc_ISA_version = linkonce_odr protected local_unnamed_addr addrspace(4) constant i32 {version}, align 4
"""
# Faults name lines of the kernel's text. Code is the same with and without.
LINES = "#+-gline-tables-only"


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


def use_device_libraries(rocm: Path) -> None:
    """Lets `rocm`, which ROCM_PATH names, have the device libraries."""
    folder = rocm / "amdgcn" / "bitcode"
    os.environ["CCC_OVERRIDE_OPTIONS"] = LINES
    with (rocm / "libraries.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.is_dir():
            return
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
