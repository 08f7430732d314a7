"""The texts of planted bugs (tests/planted): each is in one file of the source, once, and its tests are there."""

import shlex
from pathlib import Path

from planted.__main__ import ALL, file_of

TESTS = Path(__file__).resolve().parents[1]


def test_each_text_is_found_once():
    stale = []
    for bug in ALL:
        try:
            file_of(bug, Path(__file__).resolve().parents[2])
        except LookupError as error:
            stale.append(str(error))
    assert not stale, "\n".join(stale)


def test_files_of_tests_are_there():
    named = {word for bug in ALL for word in shlex.split(bug.tests) if word.endswith(".py")}
    assert named <= {path.name for path in TESTS.rglob("*.py")}
