"""Compilers for GPUs that need no GPU: what each says about a text, and what installs it."""

import ctypes
import functools
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

from compile_cache import compiler_identity

from pyarray.driver import hiprtc
from pyarray.driver.cc import include_dirs
from pyarray.driver.nvrtc import Nvrtc
from pyarray.errors import CompileError

NVRTC, HIPRTC, CLANG = "nvrtc", "hiprtc", "clang"
TARGETS = {
    "sm_80": NVRTC, "sm_90": NVRTC, "gfx90a": HIPRTC, "gfx908": HIPRTC, "gfx1030": HIPRTC,
    "gfx942": CLANG, "gfx1100": CLANG,
}  # fmt: skip
_CLANG_FLAGS = [
    "-x", "hip", "--cuda-device-only", "-nogpuinc", "-nogpulib", "-nostdinc", "-D__HIPCC_RTC__", *hiprtc.FLAGS,
]  # fmt: skip


def missing(target):
    """The command that installs what `target` needs; '' when all is there."""
    kind = TARGETS[target]
    if kind == NVRTC:
        return ""  # part of the test extra: its absence is an error
    packages = [] if _library("hiprtc-builtins") else ["libhiprtc-builtins5"]
    if kind == CLANG:
        packages += [] if shutil.which("clang-19") else ["clang-19"]
    else:
        packages += [] if _library("amdhip64") else ["libamdhip64-5"]
        if importlib.util.find_spec("hip") is None and importlib.util.find_spec("rocm") is None:
            return "pip install hip-python"
    return f"apt-get install {' '.join(packages)}" if packages else ""


def fingerprint(target):
    """All that decides the answer of a target's compiler besides the text and our headers."""
    if TARGETS[target] == NVRTC:
        return Nvrtc(target).fingerprint
    if TARGETS[target] == HIPRTC:
        parts = [_library("amdhip64"), _library("hiprtc-builtins"), *hiprtc.FLAGS]
    else:
        parts = [shutil.which("clang-19"), _library("hiprtc-builtins"), *_CLANG_FLAGS]
    return " ".join([target, *(compiler_identity(part) if os.path.isabs(part) else part for part in parts)])


def refused(target, text, folder, parsed):
    """The compiler's words when it refuses `text`, '' otherwise. `folder` is for files; `parsed` says that no
    code need be made."""
    return _COMPILERS[TARGETS[target]](target, text, Path(folder), parsed)


def _nvrtc(target, text, folder, parsed):
    try:
        Nvrtc(target).compile(text)
    except CompileError as error:
        return str(error)
    return ""


def _hiprtc(target, text, folder, parsed):
    """In a process of its own, since the library aborts the process for targets that it doesn't know, and
    the emulator has the same names."""
    file = folder / f"{target}.cu"
    file.write_text(text)
    program, rocm = Path(__file__).with_name("hiprtc_process.py"), _rocm(folder)
    environment = os.environ | {"ROCM_PATH": str(rocm), "LD_LIBRARY_PATH": str(rocm / "lib")}
    return _words([sys.executable, str(program), target, str(file)], environment)


def _rocm(folder):
    """A folder where hip-python finds the library under the names that it looks for: in 5.2 the functions of
    hiprtc are in libamdhip64."""
    rocm = folder / "rocm"
    if not rocm.exists():
        (rocm / "lib").mkdir(parents=True)
        for name in ("libamdhip64.so", "libhiprtc.so"):
            (rocm / "lib" / name).symlink_to(_library("amdhip64"))
    return rocm


@functools.cache
def _library(name):
    """Where the system has a library; '' if it doesn't. (ctypes would find the emulator, too.)"""
    lines = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True).stdout.splitlines()
    found = [line.rpartition("=> ")[2] for line in lines if line.strip().startswith(f"lib{name}.so")]
    return found[0] if found else ""


def _clang(target, text, folder, parsed):
    """Against the declarations that hiprtc compiles with: clang itself has none of HIP's."""
    file, header = folder / f"{target}.hip", folder / "hiprtc_declarations.h"
    file.write_text(text)
    header.write_bytes(_declarations())
    made = ["-fsyntax-only"] if parsed else ["-S", "-o", os.devnull]
    folders = [f"-I{place}" for place in include_dirs()]
    command = ["clang-19", f"--offload-arch={target}", *_CLANG_FLAGS, "-include", str(header)]
    return _words([*command, *folders, *made, str(file)])


@functools.cache
def _declarations():
    library = ctypes.CDLL(_library("hiprtc-builtins"))
    size = ctypes.c_uint.in_dll(library, "__hipRTC_header_size").value
    return bytes((ctypes.c_char * size).in_dll(library, "__hipRTC_header")).rstrip(b"\0")


def _words(command, environment=None):
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", env=environment)
    if not done.returncode:
        return ""
    return f"{command[0]} ended with {done.returncode}\n{done.stdout}{done.stderr}"


_COMPILERS = {NVRTC: _nvrtc, HIPRTC: _hiprtc, CLANG: _clang}
