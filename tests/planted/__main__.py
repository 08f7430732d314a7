"""Plants bugs, one at a time, in a copy of the source, and runs the tests that are to find it:

    python -m tests.planted [--only WORDS]

A bug is found where a test fails with it and passes without it, in every turn in which the variants of tests are run
(tests/variants_by_turn.py). Prints a table. Ends with 1 where one isn't found, or where a text doesn't stand in one
place any more.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from tests.planted.bugs import BUGS, Bug
from tests.planted.core_bugs import CORE_BUGS
from tests.planted.turns import FOUND, alike

ROOT = Path(__file__).resolve().parents[2]
ALL = (*BUGS, *CORE_BUGS)
COPIED = ("pyarray", "csrc", "tests", "bench", "docs", "setup.py", "pyproject.toml", "README.md", "LICENSE")
HANG = 100  # seconds after which a test hangs, which is a way to find a bug
LIMIT = 600  # and all tests of a bug


def file_of(bug: Bug, root: Path) -> Path:
    """The one file with the text. Raises `LookupError` for none, several, or a text that stands there twice."""
    files = [path for glob in ("pyarray/**/*.py", "csrc/**/*.[ch]") for path in root.glob(glob)]
    found = [path for path in files if bug.old in path.read_text()]
    if len(found) != 1 or found[0].read_text().count(bug.old) != 1:
        where = ", ".join(str(path.relative_to(root)) for path in found) or "no file"
        raise LookupError(f"{bug.name}: the text is to stand in one place, and stands in {where}: {bug.old!r}")
    return found[0]


def libraries_of(path: Path, root: Path) -> list[Path]:
    """The copy's libraries that a file of the source is compiled into: the C runtime or the core. Headers for kernels
    are in none."""
    folder = path.relative_to(root).parts[:-1]
    return [] if folder not in (("csrc", "core"), ("csrc", "runtime")) else [*root.glob(f"pyarray/_{folder[1]}*.so")]


def build(root: Path) -> bool:
    """The C runtime and the core of the copy; False where they don't compile, which finds the bug, too."""
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    return subprocess.run(command, cwd=root, capture_output=True).returncode == 0


class Failure(NamedTuple):
    """What the tests did: `how` in words, the failed test (without one they crashed or hung), and the turns in which
    it isn't found."""

    how: str
    test: str | None = None
    missed: tuple[int, ...] = ()


def failure(tests: str, root: Path, turn: int, alone: bool = False) -> Failure | None:
    """How these tests fail, crash or hang, all with what is drawn in a turn, or `alone` those of it; None where they
    pass."""
    found = root / "found.json"
    found.unlink(missing_ok=True)
    of_turn = {"PYARRAY_TEST_BY_TURN": "1"} if alone else {}
    words = [next((root / "tests").rglob(word)) if word.endswith(".py") else word for word in shlex.split(tests)]
    environment = os.environ | {
        "PYTHONPATH": str(root),
        "PYARRAY_TEST_DEVICES": "cpu,hip:0",
        "PYARRAY_WARMED": "0",
        "PYARRAY_TEST_TURN": str(turn),
        FOUND: str(found),
        **of_turn,
    }
    options = ["-q", "-p", "tests.planted.turns", "-p", "no:cacheprovider", "-o", f"faulthandler_timeout={HANG}"]
    command = [sys.executable, "-m", "pytest", *options, "-o", "faulthandler_exit_on_timeout=true", *map(str, words)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    # In a session, since a test that hangs may wait for processes of its own.
    with subprocess.Popen(command, cwd=root, env=environment, start_new_session=True, **pipes) as running:
        try:
            output, _ = running.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            return Failure("hang", missed=missed(found, turn))
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
    code = running.returncode
    if code > 1:
        raise RuntimeError(f"pytest was to run {tests}, and ended with {code}; look at\n{output[-2000:]}")
    if code == 0:
        return None
    if code < 0:
        return Failure(f"end with {signal.Signals(-code).name}", missed=missed(found, turn))
    first = json.loads(found.read_text())["failed"] if found.exists() else ""
    return Failure("fail", first, missed(found, turn)) if first else Failure("hang", missed=missed(found, turn))


def missed(found: Path, turn: int) -> tuple[int, ...]:
    """The turns like this one in which the tests that failed, or that ran when the process ended, aren't run."""
    if not found.exists():
        return ()  # while tests are collected, which is in all of them
    said = json.loads(found.read_text())
    return tuple(other for other in alike(turn) if other not in (said["turns"] or said["running"]))


def plant(bug: Bug, root: Path) -> tuple[str, tuple[int, ...]]:
    """How it is found, "" if it isn't, and the turns in which it isn't. The source is as before, then, and the
    test that failed passes again."""
    path = file_of(bug, root)
    whole = path.read_text()
    libraries = {library: library.read_bytes() for library in libraries_of(path, root)}
    path.write_text(whole.replace(bug.old, bug.new))
    try:
        if libraries and not build(root):
            return f"{bug.tests}, which don't compile", ()
        found = [found_in(bug, root, turn) for turn in (0, 1)]
    finally:
        path.write_text(whole)
        for library, content in libraries.items():
            library.unlink(missing_ok=True)  # not written over: a process may have it open
            library.write_bytes(content)
    failed = [f for f in found if f.how]
    for turn, f in enumerate(found):
        if f.how and (without := failure(shlex.quote(f.test) if f.test else bug.tests, root, turn)) is not None:
            raise RuntimeError(
                f"{bug.name}: {without.test or bug.tests}: they {without.how} without the bug, too; mend that first"
            )
    words = [f.test or f"{bug.tests}, which {f.how}" for f in failed]
    return words[0] if words else "", tuple(sorted(turn for f in found for turn in f.missed))


def found_in(bug: Bug, root: Path, turn: int) -> Failure:
    """How it is found in this turn and in those like it; `how` is empty where it isn't."""
    found = failure(bug.tests, root, turn)
    if found is None:
        return Failure("", missed=tuple(alike(turn)))
    if not found.test:  # the process ended before other tests
        return found._replace(missed=tuple(t for t in found.missed if not failure(bug.tests, root, t, alone=True)))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.planted", description=__doc__)
    parser.add_argument("--only", default="", help="bugs with these words in their areas or names")
    arguments = parser.parse_args()
    chosen = [bug for bug in ALL if arguments.only in f"{bug.area}: {bug.name}"]
    for bug in chosen:
        file_of(bug, ROOT)
    not_found = 0
    print("| area | bug | found by | not in turns | seconds |\n|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory(prefix="pyarray-planted-") as folder:
        root = Path(folder)
        for name in COPIED:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copyfile
            copy(ROOT / name, root / name)
        (root / ".venv").mkdir()
        assert build(root), "the C runtime or the core doesn't compile as it is"
        for bug in chosen:
            began = time.monotonic()
            found, turns = plant(bug, root)
            not_found += bool(turns)
            words = ", ".join(map(str, turns))
            row = (bug.area, bug.name, found or "**not found**", words, f"{time.monotonic() - began:.0f}")
            print(f"| {' | '.join(row)} |", flush=True)
    print(f"\n{len(chosen) - not_found} of {len(chosen)} found in every turn")
    return bool(not_found)


if __name__ == "__main__":
    sys.exit(main())
