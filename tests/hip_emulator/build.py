"""Builds the emulated HIP runtime, once per state of its sources, and points hip-python at it.

`use_emulator()` comes before pyarray's first look for HIP devices. Processes that are started later find the
emulator by the environment.
"""

import ctypes
import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from amd_isa import build as executor
from amd_isa import toolchain
from hip_emulator import libraries

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
HEADERS = ROOT / "csrc" / "device"
BUILT = ROOT / "build" / "hip_emulator"
LIBRARIES = ("libamdhip64.so", "libhiprtc.so")


def _sources() -> list[Path]:
    headers = [HERE / "emulator.h", *sorted(HEADERS.glob("pa_grid_*.h")), HEADERS / "pa_math.h"]
    return [*sorted(HERE.glob("*.cpp")), *headers]


def _digest() -> str:
    parts = [f"{path.name}\0{path.read_text()}" for path in _sources()] + list(map(libraries.text, libraries.FILES))
    return hashlib.sha256("\0".join([*parts, _compiler(), Path(__file__).read_text()]).encode()).hexdigest()


def _compiler() -> str:
    return os.environ.get("CXX", "c++")


def _compile(folder: Path, digest: str) -> None:
    # the second one has nothing of its own: who looks a name up in it finds the first one's
    runtime, rtc = (str(folder / name) for name in LIBRARIES)
    flags = [
        "-std=c++17",
        "-O1",
        "-g1",
        "-fPIC",
        "-shared",
        "-fvisibility=hidden",
        "-Wall",
        "-Wextra",
        "-Werror",
    ]
    facts = [f'-DPA_DEVICE_HEADERS="{HEADERS}"', f"-DHIP_EMULATOR_VERSION={70000000 + int(digest[:6], 16)}"]
    compiler = _compiler()
    named = [f"-Wl,-soname,{LIBRARIES[0]}", "-o", runtime, "-ldl", "-lm"]
    # As one text, most of whose time would else go into the same headers; but for the file that reads those of kernels.
    files = "".join(f'#include "{path}"\n' for path in sorted(HERE.glob("*.cpp")) if path.name != "grid.cpp")
    units = [str(HERE / "grid.cpp"), "-x", "c++", "-"]
    subprocess.run([compiler, *flags, *facts, f"-I{HEADERS}", *units, *named], check=True, input=files, text=True)
    empty = ["-shared", "-x", "c++", "/dev/null", "-x", "none", "-Wl,--no-as-needed", runtime]
    subprocess.run([compiler, *empty, f"-Wl,-soname,{LIBRARIES[1]}", "-Wl,-rpath,$ORIGIN", "-o", rtc], check=True)
    for prefix, file in libraries.FILES.items():
        from_text = [*flags[1:5], "-fvisibility=default", "-x", "c", "-", "-o", str(folder / file)]
        subprocess.run([compiler, *from_text], input=libraries.text(prefix), text=True, check=True)


def _forget_old(kernels: Path) -> None:
    """Of headers that have changed since, texts that no test has any more."""
    kept = time.time() - 7 * 24 * 3600
    for path in kernels.glob("*.so"):
        if path.stat().st_mtime < kept:
            path.unlink(missing_ok=True)


def build() -> Path:
    """The folder with `lib/libamdhip64.so` and the other libraries, as ROCm has it. Raises
    `CalledProcessError` where they can't be compiled."""
    digest = _digest()
    home = BUILT / digest[:16]
    if (home / "lib").is_dir():
        _forget_old(home / "kernels")
        return home
    BUILT.mkdir(parents=True, exist_ok=True)
    with (BUILT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / "lib").is_dir():
            for old in BUILT.iterdir():
                if old.is_dir():
                    shutil.rmtree(old, ignore_errors=True)
            fresh = Path(tempfile.mkdtemp(dir=BUILT))
            (fresh / "lib").mkdir()
            (fresh / "kernels").mkdir()
            _compile(fresh / "lib", digest)
            fresh.rename(home)
    return home


def _use_executor(home: Path) -> None:
    """HIP_EMULATOR_ISA: kernels are AMD's code objects, made by clang and executed."""
    target = os.environ["HIP_EMULATOR_ISA"]
    os.environ["HIP_EMULATOR_ISA_LIBRARY"] = str(executor.build(target))
    toolchain.use(home, target)


def use_emulator() -> ctypes.CDLL:
    """The emulator, loaded; from now on it is the HIP runtime of this process and of those it starts."""
    home = build()
    os.environ["ROCM_PATH"] = str(home)
    os.environ["LD_LIBRARY_PATH"] = os.pathsep.join(
        [str(home / "lib"), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    )
    os.environ["HIP_EMULATOR_CACHE"] = str(home / "kernels")
    if os.environ.get("HIP_EMULATOR_ISA"):
        _use_executor(home)
    # hip-python before version 10 asks the loader for bare names, under which these are known once loaded
    library, _ = (ctypes.CDLL(str(home / "lib" / name)) for name in LIBRARIES)
    library.hipEmulatorFault.restype = ctypes.c_char_p
    library.hipEmulatorOrder.argtypes = [ctypes.c_char_p]
    library.hipEmulatorBlocks.restype = ctypes.c_int64
    library.hipEmulatorMemory.argtypes = [ctypes.c_uint64, ctypes.c_int]
    library.hipEmulatorMemory.restype = ctypes.c_uint64
    libraries.use_libraries(home / "lib", library)
    return library
