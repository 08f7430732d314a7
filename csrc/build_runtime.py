"""Describes the extension module pyarray._runtime to cffi. setup.py reads `ffi` from here."""

import os
from pathlib import Path

from cffi import FFI

HERE = Path(__file__).resolve().parent if "__file__" in globals() else Path("csrc").resolve()
RUNTIME = HERE / "runtime"
HEADERS = ("pyarray.h", "pyarray_gpu.h", "pyarray_grid.h")


def declarations(header: str) -> str:
    """The header without all between `#ifndef PYARRAY_CDEF` and its `#endif`: cffi cannot parse it."""
    kept: list[str] = []
    depth = 0  # of nested #if, counted from the guard
    for line in header.splitlines():
        word = line.strip()
        if depth or word == "#ifndef PYARRAY_CDEF":
            depth += word.startswith("#if") - word.startswith("#endif")
        else:
            kept.append(line)
    if depth:
        raise ValueError("a PYARRAY_CDEF guard has no #endif")
    return "\n".join(kept)


def _relative(path: Path) -> str:
    """setuptools refuses absolute source paths; it runs in the folder above this one."""
    return path.relative_to(HERE.parent).as_posix()


# CFLAGS come before these words, and of several levels the last one counts.
LEVEL = () if "-O" in os.environ.get("CFLAGS", "") else ("-O2",)
ffi = FFI()
for header in HEADERS:
    ffi.cdef(declarations((RUNTIME / header).read_text()))
ffi.set_source(
    "pyarray._runtime",
    "".join(f'#include "{header}"\n' for header in HEADERS),
    sources=[_relative(path) for path in sorted(RUNTIME.glob("*.c"))],
    depends=[_relative(path) for path in sorted(RUNTIME.glob("*.h"))],
    include_dirs=[_relative(RUNTIME)],
    extra_compile_args=["-std=gnu11", *LEVEL, "-fvisibility=hidden", "-pthread"],
    extra_link_args=["-pthread"],
)
