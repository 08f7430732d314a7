"""C text to a shared object, with the compiler of the system, which is looked for at the first compile."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .. import config
from ..errors import CompileError, DeviceError

CANDIDATES = ("cc", "gcc", "clang")
ZIG = (sys.executable, "-m", "ziglang", "cc")

# -ffp-contract=off: a * b + c must round as NumPy does. -fno-math-errno, -fno-trapping-math: nobody reads
# errno or traps, and with them sqrt and comparisons vectorise. -fno-strict-aliasing: views of another dtype
# share memory. -falign-loops: a loop of four instructions that begins anywhere may take a tenth longer.
FLAGS = (
    "-std=gnu11",
    "-O3",
    "-fPIC",
    "-shared",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=off",
    "-fno-strict-aliasing",
    "-fno-semantic-interposition",
    "-falign-loops=32",
    "-pipe",
    "-w",
)
# For text that is C++. After FLAGS, since the last -std counts.
CPP = ("-xc++", "-std=gnu++17", "-fno-exceptions", "-fno-rtti")
# zig turns the undefined-behaviour sanitizer on by itself, and its runtime is not linked here.
ZIG_FLAGS = ("-fno-sanitize=undefined",)
# The first that the compiler takes. Old clang on ARM knows only -mcpu.
NATIVE = (("-march=native",), ("-mcpu=native",), ())
# What gcc says where its C++ half is missing, which is a package of its own. cc1plus also begins the line of
# many other messages, of a header that isn't found for one.
CPP_MISSING = re.compile(rb"cannot execute \W*cc1plus|cc1plus.*\bexecvp\b|cc1plus\W*: No such file")


@dataclass(frozen=True)
class Toolchain:
    """A C compiler and how it is called. `fingerprint` names all that decides the binary besides the text."""

    command: tuple[str, ...]
    flags: tuple[str, ...]
    fingerprint: str

    def compile(self, text: str, extra_flags: tuple[str, ...] = ()) -> bytes:
        """The shared object made from C `text`.

        `extra_flags` come after the toolchain's own. Raises `CompileError` with the compiler's words and the
        path of the source, which is kept for a look.

        >>> toolchain().compile("int f(void) { return 1; }")[1:4]  # on Linux
        b'ELF'
        """
        with tempfile.TemporaryDirectory(prefix="pyarray-") as folder:
            output = Path(folder, "kernel.so")
            result = self._run(text, extra_flags, output)
            if result.returncode and CPP_MISSING.search(result.stderr):
                raise DeviceError(
                    f"{shlex.join(self.command)} can't compile C++, in which this kernel is written: "
                    "install g++, or name a compiler that can in PYARRAY_CC"
                )
            if result.returncode:
                raise CompileError(_complaint(self.command, text, result))
            return output.read_bytes()

    def _run(
        self, text: str, extra_flags: tuple[str, ...], output: Path
    ) -> subprocess.CompletedProcess[bytes]:
        native = _native.get(self.command, NATIVE[0])
        result = self._call(native, extra_flags, text, output)
        # Probed only after a failure: asking first would cost every process a compiler run.
        if result.returncode and self.command not in _native:
            _native[self.command] = self._accepted_native(output)
            if _native[self.command] != native:
                result = self._call(_native[self.command], extra_flags, text, output)
        return result

    def _accepted_native(self, output: Path) -> tuple[str, ...]:
        return next((flags for flags in NATIVE if not self._call(flags, (), "", output).returncode), ())

    def _call(
        self, native: tuple[str, ...], extra_flags: tuple[str, ...], text: str, output: Path
    ) -> subprocess.CompletedProcess[bytes]:
        includes = [f"-I{folder}" for folder in include_dirs()]
        cpp = CPP[0] in extra_flags
        command = zig_cpp(self.command) if cpp and "ziglang" in self.command else self.command
        own = [*command, *self.flags, *native, *includes, *extra_flags]
        language = () if cpp else ("-x", "c")
        try:
            return subprocess.run(
                [*own, *language, "-", "-o", str(output), "-lm"],
                input=text.encode(),
                capture_output=True,
                check=False,
            )
        except OSError as error:
            raise DeviceError(f"can't run the C compiler {shlex.join(self.command)}: {error}") from error


# Per command, the flags for "this machine" that it accepts; absent until a compile failed. They follow from
# the compiler and the CPU, which the fingerprint names already.
_native: dict[tuple[str, ...], tuple[str, ...]] = {}


def zig_cpp(command: tuple[str, ...]) -> tuple[str, ...]:
    """The command for C++ of one for C: `zig cc` knows the language, but has no headers for it. At its first
    use zig builds a library, which takes minutes."""
    return tuple("c++" if word == "cc" else word for word in command)


@functools.cache
def include_dirs() -> tuple[str, ...]:
    """Folders with the headers that generated kernels include: pyarray.h and those of csrc/device."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "include"
    if installed.is_dir():
        return (str(installed),)
    source = package.parent / "csrc"
    return str(source / "device"), str(source / "runtime")


def headers() -> list[Path]:
    """The headers that generated kernels include, by name: the same for a package in place and an installed
    one."""
    found = (path for folder in include_dirs() for path in Path(folder).glob("*.h"))
    own = (path for path in found if path.name == "pyarray.h" or path.name.startswith("pa_"))
    return sorted(own, key=lambda path: path.name)


def toolchain() -> Toolchain:
    """The compiler that PYARRAY_CC and PYARRAY_CFLAGS ask for now. Raises `DeviceError` if there is none."""
    return _toolchain(config.get("PYARRAY_CC"), config.get("PYARRAY_CFLAGS"), os.environ.get("PATH"))


@functools.cache
def _toolchain(asked: str | None, more_flags: str, path: str | None) -> Toolchain:
    command = _named(asked) if asked else _found()
    flags = FLAGS + (ZIG_FLAGS if "ziglang" in command else ()) + tuple(shlex.split(more_flags))
    version = _version(command)
    # The command itself, too: it may hold flags, and two of one version may be built differently.
    return Toolchain(command, flags, f"{version} [{processor()}] {shlex.join((*command, *flags))}")


def _named(asked: str) -> tuple[str, ...]:
    command = tuple(shlex.split(asked))
    if not command or shutil.which(command[0]) is None:
        raise DeviceError(f"PYARRAY_CC={asked!r}: there is no such program")
    return command


def _found() -> tuple[str, ...]:
    for name in CANDIDATES:
        if shutil.which(name):
            return (name,)
    if importlib.util.find_spec("ziglang"):
        return ZIG
    looked = ", ".join(CANDIDATES)
    raise DeviceError(
        f"no C compiler: looked for PYARRAY_CC, {looked} and the ziglang package. Kernels for the CPU are"
        " compiled on this machine: install any C compiler, for which `pip install ziglang` is enough"
    )


def _version(command: tuple[str, ...]) -> str:
    try:
        result = subprocess.run(
            [*command, "--version"], capture_output=True, check=True, text=True, errors="replace"
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise DeviceError(
            f"the C compiler {shlex.join(command)} does not answer to --version: {error}"
        ) from error
    return (result.stdout or result.stderr).partition("\n")[0].strip()


@functools.cache
def processor() -> str:
    """What -march=native depends on, as a short hash."""
    facts = {"flags", "Features", "model name", "CPU part"}
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    # The same lines stand there once per core, and some machines have two kinds of core.
    named = sorted({line for line in lines if line.partition(":")[0].strip() in facts})
    text = "\n".join(named) or platform.processor()
    return f"{platform.machine()}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _complaint(command: tuple[str, ...], text: str, result: subprocess.CompletedProcess[bytes]) -> str:
    source = Path(tempfile.mkdtemp(prefix="pyarray-failed-"), "kernel.c")
    source.write_text(text)
    said = result.stderr.decode(errors="replace").replace("<stdin>", str(source)).strip()
    return f"{shlex.join(command)} failed (exit status {result.returncode}) on {source}\n{said}"
