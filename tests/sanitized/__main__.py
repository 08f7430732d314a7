"""Runs the C runtime, the core, and kernels as they are emitted, under the sanitizers:
python -m tests.sanitized [tests …]

`threads.c` with the thread sanitizer, then with those for addresses and for undefined behaviour; then tests of
the suite on copies of the package whose runtime, core and kernels are compiled with the latter two, and at the same
time those that have threads with the first. Of the files of tests every second one is run, the others on the next day.
A finding ends the process it is in, and so the run.
"""

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests.variants_by_turn import HALF

ROOT = Path(__file__).resolve().parents[2]
HERE, BUILT = Path(__file__).resolve().parent, ROOT / "build" / "sanitized"
CC = os.environ.get("CC", "gcc")


class Sanitizer(NamedTuple):
    """`library` comes before the interpreter, which isn't compiled so; what is never freed is not looked for."""

    flags: str
    library: str
    options: dict[str, str]
    before: tuple[str, ...] = ()  # words before the command

    @property
    def folder(self):
        return BUILT / self.library.partition(".")[0]


ADDRESSES = Sanitizer(
    "-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -g1 -O0",
    "libasan.so",
    {"ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1"},
)
# It knows few layouts of memory: where addresses are drawn at random, processes may not start.
FIXED = ("setarch", "--addr-no-randomize") if shutil.which("setarch") else ()
# Where two threads need new memory at once, the thread sanitizer of gcc 12 may end the process with these words: a race
# of its own, in MapShadow (tsan_rtl.cpp), which isn't locked there.
ITS_OWN, ATTEMPTS = "ThreadSanitizer failed to allocate", 4
RACES = Sanitizer("-fsanitize=thread -g1 -O0", "libtsan.so", {"TSAN_OPTIONS": "halt_on_error=1"}, FIXED)
# Some kernels of each kind, and what is most of the runtime and the core: creation, views, selections, plans, replays,
# launches, other libraries' arrays; programs at the edge of the language, some of which run. Two products, which take
# seconds to compile: one with panels, one of complex numbers.
TESTS = (
    "tests/unit/test_threads.py",
    "tests/unit/test_array.py",
    "tests/device/test_kernel_views.py",
    "tests/device/test_call_plans.py",
    "tests/device/test_library_plans.py",
    "tests/device/test_quick_functions.py",
    "tests/device/test_dispatch.py",
    "tests/device/test_references.py",
    "tests/device/test_complex_alignment.py",
    "tests/api/test_linear_algebra_functions.py::test_larger[float32]",
    "tests/api/test_linear_algebra_functions.py::test_every_dtype[complex64]",
    "tests/api/test_host_selections.py",
    "tests/api/test_replayed_calls.py",
    "tests/interop/test_foreign_arrays.py",
    "tests/interop/test_foreign_kernels.py",
    "tests/interop/test_buffer_protocol.py",
    "tests/lang/test_rejected.py",
)
# Many calls in a row, whose kinds test_call_plans has; of replays, one of each kind of kernel; of plans for any size,
# reductions of one type; and all functions of NumPy's operands, which are read as others are.
LONG = (
    "(leave_nothing and (operators or methods or functions)) or (what_is_called and not sort and not median)"
    " or test_casts or test_what_changes_between_calls or test_operands_of_numpy_give_what_arrays_of_them_give"
    " or test_products_of_changing_sizes or (test_reductions_of_changing_sizes and not float32)"
)
SELECTED = f"not ({LONG})"
OF_THREADS = (
    "tests/device/test_call_plans.py",
    "tests/device/test_library_plans.py",
    "tests/device/test_dispatch.py",
    "tests/device/test_launch_state_changes.py",
    "tests/device/test_stale.py",
    "tests/api/test_replayed_calls.py",
    "tests/interop/test_foreign_kernels.py",
)
NO_FORKS = "not fork"  # a child may inherit a lock of the sanitizer's own; the C program has forks


def program(sanitizer, *arguments):
    """Compiles threads.c with the runtime's files that it needs, and runs it."""
    runtime = ROOT / "csrc" / "runtime"
    files = [HERE / "threads.c", *(runtime / f"{name}.c" for name in ("threads", "memory", "launch"))]
    BUILT.mkdir(parents=True, exist_ok=True)
    output = BUILT / "threads"
    command = [CC, "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-pthread", *sanitizer.flags.split(), f"-I{runtime}"]
    subprocess.run([*command, *map(str, files), "-o", str(output)], check=True)
    subprocess.run([*sanitizer.before, str(output), *arguments], check=True, timeout=300)


def package(sanitizer):
    """A folder with a copy of the package that has a runtime and a core of its own."""
    folder = sanitizer.folder
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("pyarray", "csrc"):
        shutil.rmtree(folder / name, ignore_errors=True)
        ignored = shutil.ignore_patterns("*.so", "__pycache__", "_warmed")
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copyfile(ROOT / name, folder / name)
    linked = next(word for word in sanitizer.flags.split() if word.startswith("-fsanitize="))
    environment = os.environ | {"CC": CC, "CFLAGS": sanitizer.flags, "LDFLAGS": linked}
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace", "--force"]
    subprocess.run(command, cwd=folder, env=environment, check=True)


def tests(sanitizer, chosen, selected):
    """Runs tests with the sanitizer's copy of the package. The sanitizer's library needs that of C++ to be there when
    it starts, since torch throws exceptions."""
    ask = [[CC, f"-print-file-name={name}"] for name in (sanitizer.library, "libstdc++.so.6")]
    libraries = [subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip() for words in ask]
    environment = os.environ | sanitizer.options | {
        "LD_PRELOAD": " ".join(libraries),
        "PYARRAY_CC": CC,
        "PYARRAY_CFLAGS": sanitizer.flags,
        "PYARRAY_TEST_DEVICES": "cpu",
        "PYTHONPATH": os.pathsep.join((str(sanitizer.folder), str(ROOT))),
    }  # fmt: skip
    # -P: the folder where it starts has the other package. --capture=sys leaves what a sanitizer writes when it ends a
    # process, of which pytest would lose what it has captured.
    python = [sys.executable, "-P", "-m", "pytest", "-q", "-x", "--numprocesses", "auto", "--capture=sys"]
    command = [*sanitizer.before, *python, *chosen, "-k", selected]
    for _ in range(ATTEMPTS):
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, errors="replace")
        print(f"{sanitizer.library}:\n{done.stdout}\n{done.stderr}", flush=True)
        if not done.returncode or ITS_OWN not in done.stderr:
            break
    done.check_returncode()


if __name__ == "__main__":
    program(RACES)
    program(ADDRESSES, "forks")
    with ThreadPoolExecutor() as pool:
        list(pool.map(package, (ADDRESSES,) if sys.argv[1:] else (ADDRESSES, RACES)))
    if sys.argv[1:]:
        tests(ADDRESSES, sys.argv[1:], NO_FORKS)
    else:
        os.environ |= {"PYARRAY_TEST_BY_TURN": "1", "PYARRAY_TEST_PERCENT": "25"}
        with ThreadPoolExecutor() as pool:  # each begins with seconds on one core
            runs = [
                pool.submit(tests, ADDRESSES, TESTS[HALF::2], f"({NO_FORKS}) and ({SELECTED})"),
                pool.submit(tests, RACES, OF_THREADS, f"({NO_FORKS}) and thread"),
            ]
        for run in runs:
            run.result()
