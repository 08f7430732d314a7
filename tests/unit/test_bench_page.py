"""The page of the benchmarks, on small made-up results: lengths of bars, escaped names, what moved."""

import math
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from bench import __main__ as command
from bench import compare, page, part, plots
from bench.timing import Figure, Race, Row, Times, geometric_mean, race


def times(least, median=None, samples=20):
    return Times(least, least * 1.02 if median is None else median, samples, 10)


def row(case="sum", own=1.0, numpy=2.0, torch=None, target=None, n=1000, **more):
    found = {"pyarray": own and times(own), "numpy": numpy and times(numpy), "torch": torch and times(torch)}
    return Row(f"{n} elements", case, found, target, n=n, **more)


def results(*rows, failed=None, missing=(), figures=(), **more):
    """A part's JSON."""
    return {
        "about": "Sums, `out=` and not.",
        "machine": {"processor": "Abacus <9>", "cores": 2, "load": [0.5, 0, 0]},
        "versions": {"numpy": "2.0"}, "rows": [r.as_dict() for r in rows], "figures": list(figures),
        "missing": dict(missing), "failed": failed, "quick": False, "seconds": 3.0, **more,
    }  # fmt: skip


NUMBER = re.compile(r"[\d.]+")


def elements(svg, kind):
    """Those of a class, as numbers by attribute where they are numbers."""
    found = (e for e in ElementTree.fromstring(svg).iter() if kind in e.get("class", "").split())
    return [{k: float(v) if NUMBER.fullmatch(v) else v for k, v in e.attrib.items()} for e in found]


def widths(svg):
    return [e["width"] for e in elements(svg, "bar") if "width" in e]


# ---- bars


def drawn(ratio, ratios, **more):
    given = {"typical": None, "target": None, "kind": "good", "title": ""} | more
    return plots.bar(ratio, scale=plots.bar_scale(ratios), **given)


def test_a_bar_is_as_long_as_the_logarithm_of_its_ratio():
    ratios = [0.25, 0.5, 1.0, math.sqrt(2), 2.0, 4.0, 8.0]
    found = [widths(drawn(r, ratios))[0] for r in ratios]
    unit = (plots.WIDTH - 2 * plots.MARGIN) / 5  # from 1/4 to 8
    assert found == pytest.approx([2 * unit, unit, 0, unit / 2, unit, 2 * unit, 3 * unit], abs=0.02)


def test_bars_of_slower_and_of_faster_cases_meet_at_one():
    scale = plots.bar_scale([0.5, 2.0])
    slower, faster = (drawn(r, [0.5, 2.0]) for r in (0.5, 2.0))
    left, right = (elements(svg, "bar")[0]["x"] for svg in (slower, faster))
    assert right == pytest.approx(scale.at(1.0), abs=0.02)
    assert left + widths(slower)[0] == pytest.approx(right, abs=0.02)


def test_the_target_and_the_median_are_at_their_ratios():
    scale = plots.bar_scale([4.0])
    svg = drawn(4.0, [4.0], target=2.0, typical=3.0)
    (target,), (typical,) = elements(svg, "target"), elements(svg, "typical")
    assert target["x1"] == target["x2"] == pytest.approx(scale.at(2.0), abs=0.01)
    assert typical["cx"] == pytest.approx(scale.at(3.0), abs=0.01)


def test_what_is_beyond_the_axis_ends_at_its_edge_with_an_arrow():
    svg = drawn(5000.0, [5000.0, 1.0])
    assert len(elements(svg, "bar")) == len(elements(drawn(50.0, [50.0]), "bar")) + 1
    assert widths(svg)[0] < plots.WIDTH


def test_ticks_are_powers_of_two_and_few():
    assert plots.bar_scale([1.0]).ticks == [0.5, 1.0, 2.0]
    assert 1.0 in plots.bar_scale([0.02, 60.0]).ticks
    assert len(plots.bar_scale([0.02, 60.0]).ticks) <= 7
    assert [plots.label(t) for t in (0.25, 1.0, 16.0, 1 / 16)] == ["¼", "1", "16", "1/16"]


def test_a_case_with_several_sizes_gets_a_plot_of_its_growth():
    rows = [row(n=n, numpy=n / 1000, torch=8.0, target=1.0, case=f"a.T, {n}", series="a.T") for n in (10**3, 10**5)]
    svg = page.growth([*rows, row("alone")])
    assert "a.T" in outline(svg)
    assert "alone" not in outline(svg)
    lines = {e["class"].split()[1]: e["points"] for e in elements(f"<div>{svg}</div>", "line")}
    assert set(lines) == {"c0", "c1", "best"}
    (x1, y1), (x2, y2) = (map(float, point.split(",")) for point in lines["c1"].split())
    assert y1 == y2  # torch's ratio is the same for both sizes
    assert x1 < x2
    assert lines["best"].split()[0] == lines["c0"].split()[0]  # numpy is the best peer of the first size,
    assert lines["best"].split()[1] == lines["c1"].split()[1]  # torch of the second


# ---- what moved


def changes(now, before, **more):
    return compare.changes("functions", now, before, **more)


def test_a_slowdown_is_found():
    found = changes([row(own=1.5), row("max")], [row(own=1.0), row("max")])
    assert [c.row.case for c in found if c.moved] == ["sum"]
    assert found[0].factor == pytest.approx(1 / 1.5)


def test_a_machine_that_slows_all_alike_moves_nothing():
    assert not any(c.moved for c in changes([row(own=3.0, numpy=6.0)], [row(own=1.0, numpy=2.0)]))


def test_noise_is_ignored():
    steady, small = row(own=1.0), row(own=1.08)
    assert not changes([small], [steady])[0].moved
    wild = Row("1000 elements", "sum", {"pyarray": times(1.4, 3.0), "numpy": times(2.0, 4.0)}, n=1000)
    assert not changes([wild], [steady])[0].moved  # its samples are all over the place
    few = Row("1000 elements", "sum", {"pyarray": times(1.4, samples=1), "numpy": times(2.0, samples=1)}, n=1000)
    assert not changes([few], [steady])[0].moved  # a single sample says nothing about its spread
    quick = changes([row(own=1.2)], [steady], quick=True)
    assert not quick[0].moved
    assert changes([row(own=1.2)], [steady])[0].moved


def test_a_minimum_alone_moves_nothing():
    lucky = Row("1000 elements", "sum", {"pyarray": times(0.7, 1.02), "numpy": times(2.0)}, n=1000)
    assert not changes([lucky], [row()])[0].moved


def test_only_peers_that_both_runs_have_are_compared():
    found = changes([row(torch=0.5)], [row()])  # torch is new, and faster than NumPy
    assert found[0].now == pytest.approx(found[0].before)
    assert changes([row(numpy=None, torch=0.5)], [row()]) == []
    assert changes([row(own=None)], [row()]) == []
    assert changes([row(n=10)], [row(n=1000)]) == []


def test_what_differs_besides_is_said():
    now, before = results(quick=True), results(versions={"numpy": "1.9", "torch": "2"}, threads="1")
    said = compare.differences(now, before)
    assert said == ["numpy 1.9 → 2.0", "torch 2 → absent", "full → quick", "threads 1 → threads by default"]


# ---- the page


class Outline(HTMLParser):
    """Checks that elements close in order; keeps the text."""

    def __init__(self):
        super().__init__()
        self.open, self.text = [], []

    def handle_starttag(self, name, attributes):
        if name not in ("meta", "br"):
            self.open.append(name)

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def handle_data(self, text):
        self.text.append(text)


def outline(text):
    parser = Outline()
    parser.feed(text)
    parser.close()
    assert parser.open == []
    return " ".join(" ".join(parser.text).split())


def test_names_are_escaped():
    odd = 'a < b & "c" <script>alert(1)</script>'
    bad = row(odd, own=None)
    bad = Row(odd, odd, bad.times, why={"pyarray": odd}, n=5)
    broken = results(row(odd, series=odd), row(odd, n=7, series=odd), bad, missing={odd: odd}, failed=f"E\n{odd}")
    text = page.page({"functions": broken}, {"functions": results(row(odd, own=9.0))})
    assert "<script" not in text
    assert odd in outline(text)


def test_the_page_needs_nothing_else():
    text = page.page({"functions": results(row(), row(n=10**7))}, {})
    assert not re.search(r"https?:|<link|<script|@import|url\(", text)
    assert "prefers-color-scheme: dark" in text
    assert text.count("<svg") > 4


def test_what_failed_and_what_is_missing_is_on_the_page():
    refused = Row("1000 elements", "sort", Race({"pyarray": None, "numpy": times(1.0)}, {"pyarray": "TypeError: no"}))
    parts = {
        "functions": results(row(), refused, missing={"torch": "ImportError: no torch"}),
        "gemm": results(failed="Traceback\nMemoryError: 2048³"),
        "launch": results(row(target=4.0)),
        "gpu": {"failed": "its process ended with signal SIGSEGV"},
    }
    said = outline(page.page(parts, {}))
    assert "torch is not measured in functions: ImportError: no torch" in said
    assert "gemm did not get to its end: MemoryError: 2048³" in said
    assert "gpu did not get to its end: its process ended with signal SIGSEGV" in said
    assert "pyarray has no time for functions, sort: TypeError: no" in said
    assert "0 of 1" in said  # targets that launch reaches
    assert "No earlier run" in said


def test_the_page_and_the_terminal_say_what_moved():
    parts, earlier = (
        {"functions": results(row(own=2.0), row("max"))},
        {"functions": results(row(), row("max"))},
    )
    for said in (outline(page.page(parts, earlier)), page.said(parts, earlier)):
        assert re.search(r"1 (of 2 cases )?moved|of 2 cases 1 moved", said)
        assert "× 0.50" in " ".join(said.split())
    assert "no earlier run" in page.said(parts, {})


def test_figures_say_whether_they_keep_their_bound():
    good, bad = Figure("mean", 1.2, at_least=1.0), Figure("search", 6.0, "s", at_most=5)
    assert [good.missed, bad.missed, Figure("device", "none").missed] == [False, True, False]
    assert str(bad) == "search: 6 s (to be ≤ 5) <"
    said = outline(page.figures([good, bad, Figure("device", "H100")]))
    assert "mean 1.2 ≥ 1 reached" in said
    assert "search 6 s ≤ 5 missed" in said


# ---- records and files


def test_rows_come_back_from_json():
    given = Row(
        "g",
        "c",
        {"pyarray": times(1.0), "numpy": None},
        0.5,
        2.0,
        7,
        ("numpy",),
        {"x": 1},
        "s",
        {"numpy": "no"},
    )
    assert Row.from_dict(given.as_dict()) == given


def test_a_race_says_why_a_candidate_has_no_time(capsys):
    def refuse():
        raise TypeError("not this one\nand more")

    found = Row("g", "c", race({"pyarray": lambda: None, "numpy": refuse, "torch": None}, 0.001)).as_dict()
    assert found["why"] == {"numpy": "TypeError: not this one"}
    assert found["times"]["numpy"] is None
    assert found["times"]["pyarray"]["min"] > 0
    assert "numpy: TypeError: not this one" in capsys.readouterr().out


def test_means_leave_out_what_has_no_ratio():
    assert geometric_mean([row(numpy=2.0), row(numpy=8.0), row(own=None)]) == pytest.approx(4.0)
    assert geometric_mean([row(own=None)]) is None


def test_a_part_that_raises_keeps_what_it_had(monkeypatch):
    class Broken:
        ABOUT = "About\n nothing."

        @staticmethod
        def run(quick):
            yield row()
            raise RuntimeError("half way")

    notes = []
    monkeypatch.setattr(part.importlib, "import_module", lambda name: Broken)
    found = part.measure("functions", True, lambda known: notes.append((len(known["rows"]), known["failed"])))
    assert found["failed"].endswith("RuntimeError: half way\n")
    assert found["about"] == "About nothing."
    assert notes[0] == (1, part.UNFINISHED)
    assert [r["case"] for r in found["rows"]] == ["sum"]


def test_a_part_that_crashes_is_said_to_have(monkeypatch):
    class Ended:
        returncode = -11

    monkeypatch.setattr(command.subprocess, "run", lambda *a, **k: Ended)
    found, ended = command.measured("gemm", True)
    assert found["failed"] == "its process ended with signal SIGSEGV"
    assert not ended


def test_what_a_run_replaces_is_what_it_is_compared_with():
    old, now, empty = results(row(own=1.0)), results(row(own=2.0)), results(failed="E")
    previous = {"gemm": old, "launch": old, "debug": old}
    current = {"gemm": now, "launch": now, "debug": empty}
    found = command.before(previous, current, ["gemm", "debug"])
    assert found == {"gemm": now, "launch": old, "debug": old}  # a failed run is nothing to compare with


def test_files_that_are_no_results(tmp_path, capsys):
    path = tmp_path / "x.json"
    for text in ("{", '{"rows": []}', '{"parts": []}', "[]"):
        path.write_text(text)
        with pytest.raises(ValueError, match=r"x\.json is no results\.json"):
            command.read(path)
        assert command.known(path) == {}
        assert "is no results.json" in capsys.readouterr().err
    assert command.known(tmp_path / "absent.json") == {}


def test_the_report_is_written_from_the_files(tmp_path, capsys):
    part.write(tmp_path / "results.json", {"parts": {"functions": results(row(own=3.0))}})
    part.write(tmp_path / "previous.json", {"parts": {"functions": results(row())}})
    command.report(tmp_path, None)
    assert "sum" in outline((tmp_path / "report.html").read_text())
    assert "of 1 cases 1 moved" in capsys.readouterr().out
    command.report(tmp_path, {})
    assert "no earlier run" in capsys.readouterr().out
