"""Compilers for GPUs that need no GPU: what each says about a text, and what installs it."""

import ctypes
import ctypes.util
import functools
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

from pyarray.driver.cc import include_dirs
from pyarray.driver.nvrtc import Nvrtc
from pyarray.errors import CompileError

NVRTC, HIPRTC, CLANG = "nvrtc", "hiprtc", "clang"
TARGETS = {
    "sm_80": NVRTC, "sm_90": NVRTC, "gfx90a": HIPRTC, "gfx908": HIPRTC, "gfx1030": HIPRTC,
    "gfx942": CLANG, "gfx1100": CLANG,
}  # fmt: skip
_CLANG_FLAGS = [
    "-x", "hip", "--cuda-device-only", "-nogpuinc", "-nogpulib", "-nostdinc", "-std=c++17", "-w",
    "-ffp-contract=off", "-D__HIPCC_RTC__",
]  # fmt: skip


def missing(target):
    """The command that installs what `target` needs; '' when all is there."""
    kind = TARGETS[target]
    if kind == NVRTC:
        return ""  # part of the test extra: its absence is an error
    packages = ["libhiprtc-builtins5"] if not ctypes.util.find_library("hiprtc-builtins") else []
    if kind == CLANG:
        packages += ["clang-19"] if not shutil.which("clang-19") else []
    else:
        packages += ["libamdhip64-5"] if not ctypes.util.find_library("amdhip64") else []
        if importlib.util.find_spec("hip") is None and importlib.util.find_spec("rocm") is None:
            return "pip install hip-python"
    return f"apt-get install {' '.join(packages)}" if packages else ""


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
    program = Path(__file__).with_name("hiprtc_process.py")
    environment = os.environ | {"LD_LIBRARY_PATH": _links(folder)}
    return _words([sys.executable, str(program), target, str(file)], environment)


def _links(folder):
    """A folder where hip-python finds the library under the names that it looks for: in 5.2 the functions of
    hiprtc are in libamdhip64."""
    links = folder / "links"
    if not links.exists():
        links.mkdir()
        library = _path(ctypes.util.find_library("amdhip64"))
        for name in ("libamdhip64.so", "libhiprtc.so"):
            (links / name).symlink_to(library)
    return str(links)


def _path(library):
    """Where the system keeps a library."""
    lines = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=True).stdout.splitlines()
    return next(line.rpartition("=> ")[2] for line in lines if line.split()[:1] == [library])


def _clang(target, text, folder, parsed):
    """Against the declarations that hiprtc compiles with: clang itself has none of HIP's."""
    file, header = folder / f"{target}.hip", folder / "hiprtc_declarations.h"
    file.write_text(text)
    header.write_bytes(_declarations())
    made = ["-fsyntax-only"] if parsed else ["-S", "-O3", "-o", os.devnull]
    folders = [f"-I{place}" for place in include_dirs()]
    command = ["clang-19", f"--offload-arch={target}", *_CLANG_FLAGS, "-include", str(header)]
    return _words([*command, *folders, *made, str(file)])


@functools.cache
def _declarations():
    library = ctypes.CDLL(ctypes.util.find_library("hiprtc-builtins"))
    size = ctypes.c_uint.in_dll(library, "__hipRTC_header_size").value
    return bytes((ctypes.c_char * size).in_dll(library, "__hipRTC_header")).rstrip(b"\0")


def _words(command, environment=None):
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", env=environment)
    if not done.returncode:
        return ""
    return f"{command[0]} ended with {done.returncode}\n{done.stdout}{done.stderr}"


_COMPILERS = {NVRTC: _nvrtc, HIPRTC: _hiprtc, CLANG: _clang}
