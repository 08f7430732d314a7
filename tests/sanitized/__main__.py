"""Runs the C runtime, and kernels as they are emitted, under the sanitizers: python -m tests.sanitized [tests …]

`threads.c` with the thread sanitizer, then with those for addresses and for undefined behaviour; then tests of
the suite on a copy of the package whose runtime and kernels are compiled with the latter two. A finding ends
the process it is in, and so the run.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE, BUILT = Path(__file__).resolve().parent, ROOT / "build" / "sanitized"
CC = os.environ.get("CC", "gcc")
ADDRESSES = "-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -g1 -O1"
# Some kernels of each kind, and what is most of the runtime. Products, which take seconds to compile, of two types:
# one that is computed in another, and complex numbers.
TESTS = (
    "tests/unit/test_threads.py",
    "tests/device/test_kernel_views.py",
    "tests/api/test_linear_algebra_functions.py",
    "tests/api/test_host_selections.py",
    "tests/device/test_call_plans.py",
    "tests/interop/test_foreign_arrays.py",
    "tests/interop/test_foreign_kernels.py",
    "tests/interop/test_buffer_protocol.py",
    "tests/device/test_quick_functions.py",
    "tests/device/test_dispatch.py",
    "tests/device/test_library_plans.py",
)
SELECTED = "not every_dtype or bfloat16 or complex64"
NO_FORKS = "not fork"  # a child may inherit a lock of the sanitizer's own; the C program has forks


def program(flags, *arguments):
    """Compiles threads.c with the runtime's files that it needs, and runs it."""
    runtime = ROOT / "csrc" / "runtime"
    files = [HERE / "threads.c", *(runtime / f"{name}.c" for name in ("threads", "memory", "launch"))]
    BUILT.mkdir(parents=True, exist_ok=True)
    output = BUILT / "threads"
    command = [CC, "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-pthread", *flags.split(), f"-I{runtime}"]
    subprocess.run([*command, *map(str, files), "-o", str(output)], check=True)
    subprocess.run([str(output), *arguments], check=True, timeout=300)


def package():
    """A copy of the package with a runtime of its own."""
    for name in ("pyarray", "csrc"):
        shutil.rmtree(BUILT / name, ignore_errors=True)
        ignored = shutil.ignore_patterns("*.so", "__pycache__", "_warmed")
        shutil.copytree(ROOT / name, BUILT / name, ignore=ignored)
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copyfile(ROOT / name, BUILT / name)
    environment = os.environ | {"CC": CC, "CFLAGS": ADDRESSES, "LDFLAGS": "-fsanitize=address,undefined"}
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace", "--force"]
    subprocess.run(command, cwd=BUILT, env=environment, check=True)


def tests(chosen, selected):
    """The interpreter isn't compiled so: the sanitizer's library comes first, and what is never freed is not
    looked for. It needs that of C++ to be there when it starts, since torch throws exceptions."""
    names = ("libasan.so", "libstdc++.so.6")
    ask = [[CC, f"-print-file-name={name}"] for name in names]
    libraries = [subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip() for words in ask]
    environment = os.environ | {
        "LD_PRELOAD": " ".join(libraries),
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYARRAY_CC": CC,
        "PYARRAY_CFLAGS": ADDRESSES,
        "PYARRAY_TEST_DEVICES": "cpu",
        "PYTHONPATH": os.pathsep.join((str(BUILT), str(ROOT))),
    }
    # -P: the folder where it starts has the other package
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-x", "--numprocesses", "auto", *chosen, "-k", selected]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)


if __name__ == "__main__":
    program("-fsanitize=thread -g1 -O1")
    program(ADDRESSES, "forks")
    package()
    if sys.argv[1:]:
        tests(sys.argv[1:], NO_FORKS)
    else:
        tests(TESTS, f"({NO_FORKS}) and ({SELECTED})")
