"""Builds the executor for a target, once per state of its sources and tables."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from . import generate
from .tables import TARGETS, VERSION

HERE = Path(__file__).resolve().parent
BUILT = HERE.parent.parent / "build" / "amd_isa"
# For this machine: the library is built where it is used. No contraction: a * b + c rounds twice, as it is written.
FLAGS = ("-std=c++17", "-O2", "-march=native", "-ffp-contract=off", "-fPIC", "-fvisibility=hidden", "-fno-math-errno")
LIBRARY = "libamdisa.so"


def _compiler() -> str:
    return os.environ.get("CXX", "c++")


def _digest(target: str) -> str:
    sources = sorted([*HERE.glob("*.cpp"), *HERE.glob("*.h"), *HERE.glob("*.py")])
    processor = Path("/proc/cpuinfo").read_text().partition("\n\n")[0] if Path("/proc/cpuinfo").exists() else ""
    flags = "".join(line for line in processor.splitlines() if line.startswith(("flags", "Features")))
    parts = [target, VERSION, _compiler(), flags, *FLAGS, *(f"{path.name}\0{path.read_text()}" for path in sources)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _compile(folder: Path, target: str) -> None:
    (folder / "isa_fields.h").write_text(generate.fields_header())
    (folder / "generated.cpp").write_text(generate.source(target))
    sources = [folder / "generated.cpp", *sorted(HERE.glob("*.cpp"))]

    def compile_one(source: Path) -> str:
        made = str(folder / f"{source.stem}.o")
        warnings = ["-w"] if source.parent == folder else ["-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers"]
        command = [_compiler(), *FLAGS, *warnings, f"-I{folder}", f"-I{HERE}", "-c", str(source), "-o", made]
        subprocess.run(command, check=True)
        return made

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(compile_one, sources))
    subprocess.run([_compiler(), "-shared", *objects, "-o", str(folder / LIBRARY)], check=True)
    for made in objects:
        os.unlink(made)


def build(target: str) -> Path:
    """The executor's library for gfx942 or gfx1100. Raises `CalledProcessError` where it can't be compiled."""
    if target not in TARGETS:
        raise ValueError(f"expected one of {', '.join(TARGETS)} for the executor, got {target!r}")
    home = BUILT / f"{target}-{_digest(target)}"
    if not home.is_dir():
        BUILT.mkdir(parents=True, exist_ok=True)
        with (BUILT / f"{target}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not home.is_dir():
                for old in BUILT.glob(f"{target}-*"):
                    shutil.rmtree(old, ignore_errors=True)
                fresh = Path(tempfile.mkdtemp(dir=BUILT))
                _compile(fresh, target)
                fresh.rename(home)
    return home / LIBRARY
