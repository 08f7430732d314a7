"""Plants bugs, one at a time, in a copy of the source, and runs the tests that are to find it:

    python -m tests.planted [--only WORDS] [--at-once]

Ends with 1 where one isn't found, or where a text doesn't stand in one place any more.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.planted.bugs import BUGS, Bug

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("pyarray", "csrc", "tests", "bench", "docs", "setup.py", "pyproject.toml", "README.md", "LICENSE")
LIMIT = 300  # seconds after which tests hang, which is a way to find a bug


def file_of(bug: Bug, root: Path) -> Path:
    """The one file with the text. Raises `LookupError` for none, several, or a text that stands there twice."""
    files = [path for glob in ("pyarray/**/*.py", "csrc/**/*.[ch]") for path in root.glob(glob)]
    found = [path for path in files if bug.old in path.read_text()]
    if len(found) != 1 or found[0].read_text().count(bug.old) != 1:
        where = ", ".join(str(path.relative_to(root)) for path in found) or "no file"
        raise LookupError(f"{bug.name}: the text is to stand in one place, and stands in {where}: {bug.old!r}")
    return found[0]


def build(root: Path) -> bool:
    """The C runtime of the copy; False where it doesn't compile, which finds the bug, too."""
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    return subprocess.run(command, cwd=root, capture_output=True).returncode == 0


def failure(bug: Bug, root: Path) -> str:
    """How its tests fail, crash or hang; "" where they don't."""
    words = bug.tests.split()
    files = [next((root / "tests").rglob(word)) if word.endswith(".py") else word for word in words]
    own = {
        "PYTHONPATH": str(root),
        "PYARRAY_TEST_DEVICES": "cpu,hip:0" if bug.hip else "cpu",
        "PYARRAY_WARMED": "0",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *map(str, files)]
    try:
        done = subprocess.run(command, cwd=root, env=os.environ | own, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return "hangs"
    if done.returncode not in (0, 1) and done.returncode > 0:  # pytest's own words: no such file, no tests
        raise RuntimeError(f"{bug.name}: pytest could not run {bug.tests}\n{done.stdout[-2000:]}")
    if done.returncode < 0:
        return f"signal {-done.returncode}"
    told = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return " ".join([*told, "fails"])[:120] if done.returncode else ""


def plant(bug: Bug, root: Path) -> str:
    """How it is found, "" if it isn't. The source is as before, then."""
    path = file_of(bug, root)
    whole = path.read_text()
    runtime = "runtime" in path.parts
    path.write_text(whole.replace(bug.old, bug.new))
    try:
        return "doesn't compile" if runtime and not build(root) else failure(bug, root)
    finally:
        path.write_text(whole)
        if runtime:
            build(root)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.planted", description=__doc__)
    parser.add_argument("--only", default="", help="bugs with these words in their names")
    parser.add_argument("--at-once", action="store_true", help="without a look whether the tests pass as it is")
    arguments = parser.parse_args()
    chosen = [bug for bug in BUGS if arguments.only in bug.name]
    for bug in chosen:
        file_of(bug, ROOT)
    missed = 0
    with tempfile.TemporaryDirectory(prefix="pyarray-planted-") as folder:
        root = Path(folder)
        for name in COPIED:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copyfile
            copy(ROOT / name, root / name)
        (root / ".venv").mkdir()
        assert build(root), "the C runtime doesn't compile as it is"
        files = {word for bug in chosen for word in bug.tests.split() if word.endswith(".py")}
        before = "" if arguments.at_once else failure(Bug("none", "", "", " ".join(sorted(files))), root)
        assert not before, f"these tests fail without a bug: {before}"
        for bug in chosen:
            began = time.monotonic()
            found = plant(bug, root)
            missed += not found
            print(f"{bug.name}: {found or 'NOT FOUND'} ({time.monotonic() - began:.0f} s)", flush=True)
    print(f"{len(chosen) - missed} of {len(chosen)} found")
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
