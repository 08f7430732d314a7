"""What the programs that draw cases share: `tests/drawn.py`."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests import drawn
from tests.differential import __main__ as program


@dataclass
class Report:
    calls: int = 0
    functions: int = 0
    cases: int = 0
    meant: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)


def part(number: int) -> Report:
    """A difference in every third part."""
    wrong = [f"part {number}"] if number % 3 == 2 else []
    return Report(10, 1, 2, Counter({"meant": number}), wrong)


def crash(number: int) -> Report:
    raise RuntimeError(f"part {number}")


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
def test_reports_of_all_parts_are_one(processes, monkeypatch):
    for name in drawn._THREADS:
        monkeypatch.setenv(name, "2")
    report = drawn.run_parts(part, range(5), processes, stop_after=50)
    assert (report.calls, report.differences) == (50, ["part 2"])
    assert report.meant["meant"] == 10
    with pytest.raises(RuntimeError, match="part"):
        drawn.run_parts(crash, range(2), processes, stop_after=50)


def test_parts_are_left_out_once_enough_differs():
    assert drawn.run_parts(part, range(100), 1, stop_after=2).calls == 60


@pytest.mark.parametrize(("given", "status"), [(part, 0), (lambda number: part(2), 1)])
def test_a_difference_is_an_exit_status(given, status, monkeypatch, capsys):
    monkeypatch.setattr(drawn, "calls_of_functions", lambda package, arguments, number: given(number))
    monkeypatch.setattr(sys, "argv", ["differential", "--calls", "10"])
    assert program.main() == status
    assert f"10 calls of 1 functions (2 cases) on cpu, seed 0: {status} differences" in capsys.readouterr().out
