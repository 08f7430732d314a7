"""Compiles C text to shared objects with the system's compiler, which is looked for at the first compile."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from .. import config
from ..errors import CompileError, DeviceError
from .cc_units import MAX_UNITS, compile_units
from .text_units import unit_sets

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
# By default gcc reads start files and libraries at each link, which takes longer than linking a kernel. They are
# for programs, C++ and sanitizers; what C kernels call of libc is in the process already.
GCC_LINK = ("-nostdlib", "-fno-use-linker-plugin")
LIBRARIES = ("-lm", "-lgcc")
GCC_BANNER = "Free Software Foundation"
# gcc 12 takes an argument on the stack for unchanged behind a call of a function that it finds to be constant, whose
# return address lies over it, and doesn't store it again. So the place of arguments isn't popped in between.
GCC_X86 = ("-maccumulate-outgoing-args",)
# For text that is C++. After FLAGS, since the last -std counts.
CPP = ("-xc++", "-std=gnu++17", "-fno-exceptions", "-fno-rtti")
# zig turns the undefined-behaviour sanitizer on by itself, and its runtime is not linked here.
ZIG_FLAGS = ("-fno-sanitize=undefined",)
# The first that the compiler takes. Old clang on ARM knows only -mcpu.
NATIVE: tuple[tuple[str, ...], ...] = (("-march=native",), ("-mcpu=native",), ())
# Several loads and inserts are faster than a gather on the processors that hold speculative gathers back (Intel's from
# Skylake to Tiger Lake), and hardly slower on others; gcc before 14 takes gathers for all of Intel's.
GCC_X86_NATIVE = (("-march=native", "-mtune-ctrl=^use_gather,^use_gather_2parts,^use_gather_4parts"), *NATIVE)
# What compilers say of these flags where they don't know them: nothing else makes a process do without them.
NATIVE_UNKNOWN = re.compile(rb"-m(arch|cpu|tune-ctrl)\b|\b(cpu|CPU|processor)\W+native\b")
# What they say of failures that another run may not have.
TRANSIENT = re.compile(
    rb"\b[Kk]illed\b|[Nn]o space left|[Dd]isk quota|"
    rb"[Cc]annot allocate memory|[Oo]ut of memory|memory exhausted"
)
# Instruction sets that binaries for other machines are made for: what -march calls them, and the flags of
# /proc/cpuinfo that a processor has for each, besides those before it. The first level is every processor's.
_X86_LEVELS = {
    "x86-64": "",
    "x86-64-v2": "cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3",
    "x86-64-v3": "abm avx avx2 bmi1 bmi2 f16c fma movbe xsave",
    "x86-64-v4": "avx512bw avx512cd avx512dq avx512f avx512vl",
}
# By `platform.machine()`: the levels, and the one that is meant where none is named.
LEVELS = {
    "x86_64": (_X86_LEVELS, "x86-64-v3"),
    "AMD64": (_X86_LEVELS, "x86-64-v3"),
    "aarch64": ({"armv8-a": ""}, "armv8-a"),
    "arm64": ({"armv8-a": ""}, "armv8-a"),
}
SHOWN_LINES = 5  # lines of a refused text in an error
VERSION_TIMEOUT = 20.0  # seconds for a compiler to tell its version
# What gcc says where its C++ half is missing, which is a package of its own. cc1plus also begins the line of
# many other messages, of a header that isn't found for one.
CPP_MISSING = re.compile(rb"cannot execute \W*cc1plus|cc1plus.*\bexecvp\b|cc1plus\W*: No such file")


@dataclass(frozen=True)
class Toolchain:
    """A C compiler and how it is called. `fingerprint` names all that decides the binary besides the text."""

    command: tuple[str, ...]
    flags: tuple[str, ...]
    fingerprint: str
    link: tuple[str, ...] = ()  # of C alone
    march: tuple[str, ...] = ()  # for a level of LEVELS; none: for this machine
    native: tuple[tuple[str, ...], ...] = NATIVE  # for this machine: the first that the compiler takes

    def compile(self, text: str, extra_flags: tuple[str, ...] = ()) -> bytes:
        """The shared object made from C `text`.

        `extra_flags` come after the toolchain's own. Raises `CompileError` with the compiler's words, and
        `DeviceError` where the compiler couldn't work: the text may be all right. PYARRAY_FAILED_DIR is where
        a refused text is kept.

        >>> toolchain().compile("int f(void) { return 1; }")[1:4]  # on Linux
        b'ELF'
        """
        with tempfile.TemporaryDirectory(prefix="pyarray-") as folder:
            output = Path(folder, "kernel.so")
            if self._compiled_by_units(text, extra_flags, output):
                return output.read_bytes()
            result = self._run(text, extra_flags, output)
            if result.returncode and CPP_MISSING.search(result.stderr):
                raise DeviceError(
                    f"{shlex.join(self.command)} can't compile C++, in which this kernel is written: "
                    "install g++, or name a compiler that can in PYARRAY_CC"
                )
            if result.returncode and self.march and NATIVE_UNKNOWN.search(result.stderr):
                what = f"{shlex.join(self.command)} doesn't know {shlex.join(self.march)}"
                raise DeviceError(f"{what}; take a lower level, or name a newer compiler in PYARRAY_CC")
            if result.returncode < 0 or (result.returncode and TRANSIENT.search(result.stderr)):
                raise DeviceError(_failed_run(self.command, result))
            if result.returncode:
                raise CompileError(_compile_error(self.command, text, result))
            binary = output.read_bytes() if output.exists() else b""
            if not binary:
                errors = result.stderr.decode(errors="replace").strip() or "nothing"
                what = f"{shlex.join(self.command)} ended with exit status 0 and wrote no binary"
                raise DeviceError(f"{what}: is it a C compiler? Name one in PYARRAY_CC. It said: {errors}")
            return binary

    def _compiled_by_units(self, text: str, extra_flags: tuple[str, ...], output: Path) -> bool:
        """Whether the text is worth several compilers, and they did it. `link` is gcc's, without flags of the user."""
        sets = unit_sets(text, MAX_UNITS)
        if not self.link or "-O0" in extra_flags or CPP[0] in extra_flags or len(sets) == 1:
            return False
        native = self.march or _native.get(self.command, self.native[0])
        includes = (f"-I{folder}" for folder in include_dirs())
        command = [*self.command, *self.flags, *native, *includes, *extra_flags]
        try:
            return compile_units(command, [*self.link, *LIBRARIES], text, sets, output)
        except OSError:
            return False  # and the words are those of a compiler of the whole text

    def _run(self, text: str, extra_flags: tuple[str, ...], output: Path) -> subprocess.CompletedProcess[bytes]:
        native = self.march or _native.get(self.command, self.native[0])
        result = self._call(native, extra_flags, text, output)
        # Probed only after a complaint: asking first would cost every process a compiler run.
        if (
            result.returncode
            and not self.march
            and self.command not in _native
            and NATIVE_UNKNOWN.search(result.stderr)
        ):
            accepted = self._accepted_native(output)
            if accepted is not None:
                _native[self.command] = accepted
            if accepted not in (None, native):
                result = self._call(_native[self.command], extra_flags, text, output)
        return result

    def _accepted_native(self, output: Path) -> tuple[str, ...] | None:
        """The first flags for native code that the compiler accepts; None if it fails for another reason."""
        for flags in self.native:
            result = self._call(flags, (), "", output)
            if not result.returncode:
                return flags
            if not NATIVE_UNKNOWN.search(result.stderr):
                return None
        return None

    def _call(
        self, native: tuple[str, ...], extra_flags: tuple[str, ...], text: str, output: Path
    ) -> subprocess.CompletedProcess[bytes]:
        includes = [f"-I{folder}" for folder in include_dirs()]
        cpp = CPP[0] in extra_flags
        command = zig_cpp(self.command) if cpp and "ziglang" in self.command else self.command
        command_line = [*command, *self.flags, *native, *includes, *extra_flags]
        language = () if cpp else (*self.link, "-x", "c")
        libraries = LIBRARIES if self.link and not cpp else ("-lm",)
        try:
            return subprocess.run(
                [*command_line, *language, "-", "-o", str(output), *libraries],
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
    paths = (path for folder in include_dirs() for path in Path(folder).glob("*.h"))
    headers_of_runtime = (path for path in paths if path.name == "pyarray.h" or path.name.startswith("pa_"))
    return sorted(headers_of_runtime, key=lambda path: path.name)


def toolchain() -> Toolchain:
    """The compiler that PYARRAY_CC and PYARRAY_CFLAGS ask for now. Raises `DeviceError` if there is none."""
    return _toolchain(config.get("PYARRAY_CC"), config.get("PYARRAY_CFLAGS"), os.environ.get("PATH"))


@functools.cache
def _toolchain(setting: str | None, more_flags: str, path: str | None) -> Toolchain:
    command = _command(setting) if setting else _first_compiler()
    banner = _version(command)
    own = FLAGS + (ZIG_FLAGS if "ziglang" in command else ())
    native: tuple[tuple[str, ...], ...] = NATIVE
    if GCC_BANNER in banner and platform.machine() in ("x86_64", "AMD64"):
        own, native = own + GCC_X86, GCC_X86_NATIVE
    flags = own + tuple(shlex.split(more_flags))
    # What the user adds may need libraries: -fsanitize, -fopenmp, -flto
    link = GCC_LINK if GCC_BANNER in banner and len(command) == 1 and not more_flags else ()
    version = banner.partition("\n")[0].strip()
    # The command itself, too: it may hold flags, and two of one version may be built differently.
    calls = shlex.join((*command, *flags, *native[0], *link))
    return Toolchain(command, flags, f"{version} [{processor()}] {calls}", link, native=native)


def portable_toolchain(level: str) -> Toolchain:
    """The toolchain for every processor of a level of `LEVELS`. Raises `DeviceError` if there is none."""
    here = toolchain()
    march = f"-mcpu={level.replace('-', '_')}" if "ziglang" in here.command else f"-march={level}"
    fingerprint = here.fingerprint.replace(f"[{processor()}]", f"[{level}]")
    return replace(here, march=(march,), fingerprint=fingerprint)


def has_level(level: str) -> bool:
    """Whether this processor has all instructions of a level of `LEVELS`; False where that can't be told."""
    levels, _ = LEVELS.get(platform.machine(), ({}, ""))
    if level not in levels:
        return False
    names = list(levels)
    needed = {flag for name in names[: names.index(level) + 1] for flag in levels[name].split()}
    return needed <= _processor_flags()


@functools.cache
def _processor_flags() -> frozenset[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return frozenset()
    # Some machines have two kinds of core.
    rows = [set(line.partition(":")[2].split()) for line in lines if line.partition(":")[0].strip() == "flags"]
    return frozenset(set.intersection(*rows)) if rows else frozenset()


def _command(setting: str) -> tuple[str, ...]:
    command = tuple(shlex.split(setting))
    if not command or shutil.which(command[0]) is None:
        raise DeviceError(f"PYARRAY_CC={setting!r}: there is no such program")
    return command


def _first_compiler() -> tuple[str, ...]:
    for name in CANDIDATES:
        if shutil.which(name):
            return (name,)
    if importlib.util.find_spec("ziglang"):
        return ZIG
    candidates = ", ".join(CANDIDATES)
    raise DeviceError(
        f"no C compiler: looked for PYARRAY_CC, {candidates} and the ziglang package. Kernels for the CPU are"
        " compiled on this machine: install any C compiler, for which `pip install ziglang` is enough"
    )


def _version(command: tuple[str, ...]) -> str:
    query = [*command, "--version"]
    try:
        # in a session of its own: what a script has started holds the pipes as long as it lives
        process = subprocess.Popen(
            query,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        raise DeviceError(f"can't run the C compiler {shlex.join(command)}: {error}") from error
    try:
        out, errors = process.communicate(timeout=VERSION_TIMEOUT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        what = f"the C compiler {shlex.join(command)} does not answer to --version: it ran for {VERSION_TIMEOUT:g} s"
        raise DeviceError(f"{what}; name another one in PYARRAY_CC") from None
    if process.returncode:
        what = f"the C compiler {shlex.join(command)} does not answer to --version"
        raise DeviceError(f"{what}: exit status {process.returncode}. It said: {errors.strip() or 'nothing'}")
    return out or errors


@functools.cache
def processor() -> str:
    """What -march=native depends on, as a short hash."""
    fields = {"flags", "Features", "model name", "CPU part"}
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    # The same lines stand there once per core, and some machines have two kinds of core.
    named = sorted({line for line in lines if line.partition(":")[0].strip() in fields})
    text = "\n".join(named) or platform.processor()
    return f"{platform.machine()}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _failed_run(command: tuple[str, ...], result: subprocess.CompletedProcess[bytes]) -> str:
    how = f"exit status {result.returncode}"
    if result.returncode < 0:
        how = f"ended by signal {-result.returncode}, as a system does that has no memory left"
    errors = result.stderr.decode(errors="replace").strip()
    what = f"{shlex.join(command)} could not compile a kernel ({how})"
    return f"{what}; it may work the next time. It said:\n{errors or 'nothing'}"


def _compile_error(command: tuple[str, ...], text: str, result: subprocess.CompletedProcess[bytes]) -> str:
    errors = result.stderr.decode(errors="replace").strip()
    head = f"{shlex.join(command)} failed (exit status {result.returncode})"
    path = _write_refused(text)
    if path is not None:
        return f"{head} on {path}\n{errors.replace('<stdin>', str(path))}"
    lines = text.splitlines()
    numbers = dict.fromkeys(int(n) for n in re.findall(r"<stdin>:(\d+):\d+: \w*\s?error", errors))
    shown = [f"  line {n}: {lines[n - 1].strip()}" for n in numbers if n <= len(lines)][:SHOWN_LINES]
    return "\n".join([head, errors, *shown, "PYARRAY_FAILED_DIR names a folder in which refused texts are kept"])


def _write_refused(text: str) -> Path | None:
    """Writes a text that the compiler refused to a file of its own, and returns its path. None unless
    PYARRAY_FAILED_DIR is set."""
    folder = config.get("PYARRAY_FAILED_DIR")
    if folder is None:
        return None
    path = Path(folder, f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.c")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    except OSError:
        return None
    return path
