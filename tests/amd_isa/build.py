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
# Optimising more takes longer than the kernels of tests run.
FLAGS = ("-std=c++17", "-Og", "-march=native", "-ffp-contract=off", "-fPIC", "-fvisibility=hidden", "-fno-math-errno")
LIBRARY = "libamdisa.so"


def _compiler() -> str:
    return os.environ.get("CXX", "c++")


def _machine() -> str:
    """The compiler, and what the processor has: FLAGS ask for it."""
    processor = Path("/proc/cpuinfo").read_text().partition("\n\n")[0] if Path("/proc/cpuinfo").exists() else ""
    return _compiler() + "".join(line for line in processor.splitlines() if line.startswith(("flags", "Features")))


def digest(target: str) -> str:
    """Of all that decides what the executor of a target does."""
    sources = sorted([*HERE.glob("*.cpp"), *HERE.glob("*.h"), *HERE.glob("*.py")])
    parts = [target, VERSION, _machine(), *FLAGS, *(f"{path.name}\0{path.read_text()}" for path in sources)]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _object(folder: Path, name: str, text: str, headers: str, flags: tuple[str, ...]) -> str:
    """The compiled `text`, once for all states of the other sources."""
    digest = hashlib.sha256("\0".join([text, headers, _machine(), *flags]).encode()).hexdigest()[:16]
    made = BUILT / "objects" / f"{name}-{digest}.o"
    if not made.exists():
        made.parent.mkdir(parents=True, exist_ok=True)
        source, fresh = folder / f"{name}.cpp", made.with_suffix(f".{os.getpid()}")
        source.write_text(text)
        command = [_compiler(), *flags, f"-I{folder}", f"-I{HERE}", "-c", str(source), "-o", str(fresh)]
        subprocess.run(command, check=True)
        fresh.rename(made)
    return str(made)


def _compile(folder: Path, target: str) -> None:
    """In two units side by side: what is generated for the target, and all that is written by hand, most of whose time
    would go into the same headers again and again."""
    (folder / "isa_fields.h").write_text(generate.fields_header())
    tables = generate.fields_header() + "".join((HERE / name).read_text() for name in ("isa_tables.h", "isa_math.h"))
    headers = tables + "".join((HERE / name).read_text() for name in ("isa.h", "metadata.h"))
    own = ("-Wall", "-Wextra", "-Werror", "-Wno-missing-field-initializers")
    by_hand = "".join(f'#line 1 "{path}"\n{path.read_text()}' for path in sorted(HERE.glob("*.cpp")))
    units = [
        ("generated", generate.source(target), tables, (*FLAGS, "-w")),
        ("executor", by_hand, headers, (*FLAGS, *own)),
    ]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(lambda unit: _object(folder, *unit), units))
    subprocess.run([_compiler(), "-shared", *objects, "-o", str(folder / LIBRARY)], check=True)


def build(target: str) -> Path:
    """The executor's library for gfx942 or gfx1100. Raises `CalledProcessError` where it can't be compiled."""
    if target not in TARGETS:
        raise ValueError(f"expected one of {', '.join(TARGETS)} for the executor, got {target!r}")
    home = BUILT / f"{target}-{digest(target)}"
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
