"""The texts of planted bugs (tests/planted): each is in one file of the source, once."""

from pathlib import Path

from planted.__main__ import ALL, file_of


def test_each_text_is_found_once():
    stale = []
    for bug in ALL:
        try:
            file_of(bug, Path(__file__).resolve().parents[2])
        except LookupError as error:
            stale.append(str(error))
    assert not stale, "\n".join(stale)
