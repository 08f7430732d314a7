"""The page: results of all parts as one HTML file, without scripts and without anything from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from . import compare, plots
from .compare import Change
from .timing import SUBJECT, Figure, Row, Times, geometric_mean, text_of

Part = Mapping[str, Any]
STYLE = Path(__file__).with_name("page.css").read_text()
HOW = """
<p>A <b>ratio</b> is the time of the fastest peer over pyarray's, in one process and taking turns: above 1, to
the right, pyarray is faster. Bars show the ratio of the least times, on a logarithmic axis; the dot is the
ratio of the medians. <span class="key target-key"></span> is the target, <span class="key good"></span> a
case that reaches it, <span class="key low"></span> one that misses it in both, <span class="key free"></span>
one without a target.</p>
"""


def tag(name: str, content: str, kind: str = "") -> str:
    """An element; `content` is HTML already."""
    return f'<{name} class="{kind}">{content}</{name}>' if kind else f"<{name}>{content}</{name}>"


def table(head: Sequence[str], lines: Iterable[Sequence[str]], kinds: Sequence[str]) -> str:
    """HTML cells below `head`; a column's class is in `kinds`. The first cell heads its line."""
    top = "".join(tag("th", cell, kind) for cell, kind in zip(head, kinds, strict=True))
    body = []
    for first, *rest in lines:
        cells = "".join(tag("td", cell, kind) for cell, kind in zip(rest, kinds[1:], strict=True))
        body.append(f'<tr><th scope="row">{first}</th>{cells}</tr>')
    return f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{"".join(body)}</tbody></table></div>'


def ratio_text(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio:.2f}"


def percent(factor: float) -> str:
    """A change for reading: '+25 %', '−20 %'; a large one as a factor."""
    if not 0.5 < factor < 2:
        return f"×\u2009{factor:.2f}"
    return f"{'+' if factor >= 1 else '−'}{abs(factor - 1) * 100:.0f}\u2009%"


def page(parts: Mapping[str, Part], earlier: Mapping[str, Part]) -> str:
    """All parts, next to those of an earlier run."""
    rows = {name: compare.rows_of(part) for name, part in parts.items()}
    moves = {name: compared(name, part, rows[name], earlier.get(name)) for name, part in parts.items()}
    body = [
        tag("h1", "pyarray next to its peers"),
        "".join(tag("p", line, "facts") for line in machine_lines(parts)),
        HOW,
        summary(parts, rows, moves),
        problems(parts, rows),
        comparison(parts, earlier, moves),
        *(section(name, part, rows[name], moves[name]) for name, part in parts.items()),
    ]
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    head += '<meta name="color-scheme" content="light dark"><title>pyarray: benchmarks</title>'
    head += f"<style>{STYLE}</style>"
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body><main>\n'
        + "\n".join(body)
        + "\n</main></body></html>\n"
    )


def compared(name: str, part: Part, rows: Sequence[Row], earlier: Part | None) -> list[Change]:
    """This part's changes."""
    if earlier is None:
        return []
    quick = bool(part.get("quick") or earlier.get("quick"))
    return compare.changes(name, rows, compare.rows_of(earlier), quick)


def said(parts: Mapping[str, Part], earlier: Mapping[str, Part]) -> str:
    """The changes, for a terminal."""
    cases = [c for name, part in parts.items() for c in compared(name, part, compare.rows_of(part), earlier.get(name))]
    if not cases:
        return "(no earlier run to compare with)"
    moved = sorted((c for c in cases if c.moved), key=lambda c: c.factor)
    lines = [f"of {len(cases)} cases {len(moved)} moved by more than the noise, in relation to their peers"]
    for c in moved:
        where = f"{c.part}: {c.row.case}, {c.row.group}"
        lines.append(f"  {c.before:7.2f} → {c.now:7.2f}  {percent(c.factor):>8}  (± {c.noise * 100:.0f} %)  {where}")
    return "\n".join(lines)


# ---- the top


def machine_lines(parts: Mapping[str, Part]) -> list[str]:
    """Machine and versions; of each part where they aren't the same for all, which the sections say."""
    lines = list(dict.fromkeys(line for part in parts.values() for line in _facts(part)))
    return lines


def _facts(part: Part) -> tuple[str, str]:
    m, versions = part.get("machine", {}), part.get("versions", {})
    threads = part.get("threads")
    cores = f"{m.get('cores', '?')} cores" + (f", libraries with {threads} thread(s) each" if threads else "")
    machine = [str(m.get("processor") or m.get("machine", "?")), cores, str(m.get("system", "?"))]
    return (
        escape(" · ".join([*machine, f"Python {m.get('python', '?')}"])),
        escape(" · ".join(f"{name} {version}" for name, version in versions.items())),
    )


def when(part: Part) -> str:
    """Day and hour of a part, how long it took, and how."""
    m = part.get("machine", {})
    text = str(m.get("time", "?"))[:16].replace("T", " ")
    load = m.get("load")
    more = [f"{part.get('seconds', 0):.0f} s", *(["quick"] if part.get("quick") else [])]
    more += [f"load {load[0]:.1f} at its start"] if load else []
    return ", ".join([text, *more])


def summary(parts: Mapping[str, Part], rows: Mapping[str, list[Row]], moves: Mapping[str, list[Change]]) -> str:
    """A line for each part."""
    means = {name: geometric_mean(found) for name, found in rows.items()}
    scale, lines = plots.bar_scale([m for m in means.values() if m]), []
    failed = ' <b class="warn">failed</b>'
    for name, part in parts.items():
        mean, wanted = means[name], [r for r in rows[name] if r.target is not None and r.ratio() is not None]
        reached = sum(not r.missed for r in wanted)
        up, down = (sum(c.moved and (c.factor > 1) == up for c in moves[name]) for up in (True, False))
        lines.append([
            f'<a href="#{escape(name)}">{escape(name)}</a>{failed if part.get("failed") else ""}',
            plots.bar(mean, None, None, scale, "free", f"{name}: {mean:.2f}") if mean else "",
            ratio_text(mean),
            f"{sum(r.ratio() is not None for r in rows[name])}",
            f"{reached} of {len(wanted)}" if wanted else "",
            (f"{up} faster, {down} slower" if up or down else "none") if moves[name] else "",
            escape(when(part)[:16] + (", quick" if part.get("quick") else "")),
        ])  # fmt: skip
    head = ["part", plots.axis(scale), "geometric mean", "cases", "targets reached", "moved", "measured"]
    return table(head, lines, ["", "plot", "num", "num", "num", "num", "dim"])


def problems(parts: Mapping[str, Part], rows: Mapping[str, list[Row]]) -> str:
    """What failed, what is missing, what pyarray itself refused."""
    lines = []
    for name, part in parts.items():
        if part.get("failed"):
            *_, last = str(part["failed"]).strip().splitlines()
            text = f"<b>{escape(name)}</b> did not get to its end: {escape(last)}"
            whole = tag("details", tag("summary", "all of it") + tag("pre", escape(str(part["failed"]))))
            lines.append(text + (whole if last != str(part["failed"]).strip() else ""))
    absent: dict[tuple[str, str], list[str]] = {}
    for name, part in parts.items():
        for peer, why in part.get("missing", {}).items():
            absent.setdefault((peer, why), []).append(name)
    for (peer, why), where in absent.items():
        lines.append(f"<b>{escape(peer)}</b> is not measured in {escape(', '.join(where))}: {escape(why)}")
    for name, found in rows.items():
        for row in found:
            if why := row.why.get(SUBJECT):
                lines.append(f"<b>pyarray</b> has no time for {escape(f'{name}, {row.case}')}: {escape(why)}")
    return tag("h2", "What is missing") + tag("ul", "".join(tag("li", line) for line in lines)) if lines else ""


def comparison(parts: Mapping[str, Part], earlier: Mapping[str, Part], moves: Mapping[str, list[Change]]) -> str:
    """Cases that moved, the slowest first."""
    cases = [c for part in moves.values() for c in part]
    title = tag("h2", "What moved", "")
    if not cases:
        return title + tag("p", "No earlier run of the same cases to compare with.")
    moved = sorted((c for c in cases if c.moved), key=lambda c: c.factor)
    dates = sorted({when(earlier[name])[:16] for name in moves if moves[name]})
    then = " and ".join(dict.fromkeys((dates[0], dates[-1])))
    text = (
        f"{len(moved)} of {len(cases)} cases moved in relation to their peers by more than the noise, "
        f"against the run of {then}. The noise is what the spread of the samples says, of ours and of the "
        "best peer in both runs, and what differs from process to process."
    )
    notes = {text: None for name in moves if moves[name] for text in compare.differences(parts[name], earlier[name])}
    note = tag("p", "Other than then: " + escape("; ".join(notes)) + ".", "warn") if notes else ""
    lines = [
        [
            escape(c.row.case), escape(c.part), escape(c.row.group),
            ratio_text(c.before), ratio_text(c.now),
            tag("b", percent(c.factor), "up" if c.factor > 1 else "down"),
            f"±\u2009{c.noise * 100:.0f}\u2009%",
        ]
        for c in moved
    ]  # fmt: skip
    head = ["case", "part", "group", "ratio then", "now", "change", "noise"]
    return (
        title
        + tag("p", escape(text))
        + note
        + (table(head, lines, ["", "", "", "num", "num", "num", "num dim"]) if lines else "")
    )


# ---- a part


def section(name: str, part: Part, rows: Sequence[Row], moves: Sequence[Change]) -> str:
    """One part: what it is, bars by group, growth with size, all figures."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.group, []).append(row)
    changed = {c.row.key: c for c in moves}
    body = [
        f'<h2 id="{escape(name)}">{escape(name)}</h2>',
        tag("p", code(str(part.get("about", "")))),
        tag("p", escape(when(part)), "facts"),
        figures([Figure(**f) for f in part.get("figures", ())]),
        *(group(title, found, changed) for title, found in groups.items()),
        growth(rows),
        everything(groups),
    ]
    return tag("section", "\n".join(body))


def code(text: str) -> str:
    """Text whose `words` are code."""
    return "".join(tag("code", escape(t)) if k % 2 else escape(t) for k, t in enumerate(text.split("`")))


def figures(rows: Sequence[Figure]) -> str:
    """What is no ratio to a peer."""
    if not rows:
        return ""
    lines = []
    for f in rows:
        value = escape(f.value) if isinstance(f.value, str) else f"{f.value:.4g}"
        bounds = [f"{sign}\u2009{b:g}" for sign, b in (("≤", f.at_most), ("≥", f.at_least)) if b is not None]
        mark = "" if not bounds else tag("b", "missed", "down") if f.missed else "reached"
        lines.append([escape(f.name), value, escape(f.unit), " and ".join(bounds), mark])
    return table(["figure", "value", "", "target", ""], lines, ["", "num", "", "num", ""])


def group(title: str, rows: Sequence[Row], changed: Mapping[Any, Change]) -> str:
    """A bar for each case."""
    raced = [row for row in rows if row.ratio() is not None]
    parts = [shares(row) for row in rows if row.against == () and row.times.get(SUBJECT)]
    if not raced:
        return "".join(parts)
    scale = plots.bar_scale([x for r in raced for x in (r.ratio(), r.ratio("median"), r.target) if x is not None])
    lines = [line(row, scale, changed.get(row.key)) for row in raced]
    mean = geometric_mean(raced)
    count, _, rest = title.partition(" ")
    heading = f"{plots.size(int(count))} {rest}" if count.isdigit() else title
    caption = f"{escape(heading)} <span class='dim'>geometric mean {ratio_text(mean)} of {len(raced)}</span>"
    head = ["case", plots.axis(scale), "ratio", "of medians", "target", "best peer"]
    head.append("change" if changed else "")
    kinds = ["", "plot", "num", "num dim", "num", "", "num"]
    if any(row.multiples for row in raced):
        head.append("pyarray's time in times of the peer's")
        kinds.append("num")
        lines = [[*cells, multiple(row)] for cells, row in zip(lines, raced, strict=True)]
    return tag("h3", caption) + table(head, lines, kinds) + "".join(parts)


def line(row: Row, scale: plots.Scale, change: Change | None) -> list[str]:
    """A case: its bar and the numbers beside it."""
    ratio, typical, best = row.ratio(), row.ratio("median"), row.best_peer()
    assert ratio is not None
    kind = "free" if row.target is None else "low" if row.missed else "good"
    facts = "".join(f"; {name}: {fact_text(value)}" for name, value in row.facts.items())
    drawn = plots.bar(ratio, typical, row.target, scale, kind, f"{row.case}: {ratio:.2f} times {best}'s speed{facts}")
    since = "" if change is None else tag("span", percent(change.factor), "dim")
    if change is not None and change.moved:
        since = tag("b", percent(change.factor), "up" if change.factor > 1 else "down")
    shown = tag("b", ratio_text(ratio), "down") if kind == "low" else ratio_text(ratio)
    target = "" if row.target is None else f"{row.target:.2f}"
    return [escape(row.case), drawn, shown, ratio_text(typical), target, escape(best or ""), since]


def multiple(row: Row) -> str:
    """Pyarray's time in times of the best peer's, and the most it is to be."""
    shown, most = ratio_text(row.multiple()), "" if row.target is None else f" (≤\u2009{1 / row.target:.2g})"
    return tag("b", shown + most, "down") if row.missed else shown + most


def fact_text(value: Any) -> str:
    return (
        text_of(value)
        if isinstance(value, float) and value < 1e-3
        else f"{value:.3g}"
        if isinstance(value, float)
        else str(value)
    )


def shares(row: Row) -> str:
    """Candidates that are no peers, next to pyarray's time."""
    times: dict[str, Times] = {name: t for name, t in row.times.items() if t is not None}
    own, most = times[SUBJECT].min, max(t.min for t in times.values())
    lines = [
        [escape(name), plots.share(t.min, most, f"{name}: {t.min / own:.2f}"), f"{t.min / own:.2f}"]
        for name, t in times.items()
    ]
    caption = f"{escape(row.group)} <span class='dim'>{escape(row.case)}: time over pyarray's</span>"
    return tag("h3", caption) + table(["", "", "of pyarray's"], lines, ["", "plot", "num"])


def growth(rows: Sequence[Row]) -> str:
    """A small plot for each case that has several sizes."""
    series: dict[str, dict[int, Row]] = {}
    for row in rows:
        if row.n is not None and row.ratio() is not None:
            series.setdefault(row.series or row.case, {})[row.n] = row
    several = {name: [sizes[n] for n in sorted(sizes)] for name, sizes in series.items() if len(sizes) > 1}
    if not several:
        return ""
    names = list(dict.fromkeys(peer for sizes in several.values() for row in sizes for peer in row.peers))
    colours = {name: k % 6 for k, name in enumerate(names)}
    legend = "".join(f'<span class="peer"><i class="c{k}"></i>{escape(name)}</span>' for name, k in colours.items())
    drawn = []
    for name, sizes in several.items():
        lines = {
            peer: [(row.n or 1, r) for row in sizes if (r := row.ratio("min", {peer})) is not None] for peer in names
        }
        best = [(row.n or 1, row.ratio() or 1.0) for row in sizes]
        targets = [(row.n or 1, row.target) for row in sizes if row.target is not None]
        svg = plots.growth({p: points for p, points in lines.items() if points}, best, targets, colours, name)
        drawn.append(tag("figure", tag("figcaption", escape(name)) + svg))
    what = "ratio to each peer; thick: to the best one of that size; dashed: the target"
    caption = f"Growth with size <span class='dim'>{what}</span>"
    return tag("h3", caption) + tag("p", legend, "legend") + tag("div", "".join(drawn), "panels")


def everything(groups: Mapping[str, Sequence[Row]]) -> str:
    """The times themselves, folded away: they hold for that machine and hour."""
    parts = []
    for title, rows in groups.items():
        names = list(dict.fromkeys(name for row in rows for name in row.times))
        lines = [[escape(row.case), *(times_text(row, name) for name in names)] for row in rows]
        parts.append(
            tag("h4", escape(title)) + table(["case", *map(escape, names)], lines, ["", *["num"] * len(names)])
        )
    if not parts:
        return ""
    return tag("details", tag("summary", "All times: minimum (median)") + "".join(parts))


def times_text(row: Row, name: str) -> str:
    """A cell of times, or why there is none."""
    t = row.times.get(name)
    if t is None:
        why = row.why.get(name)
        return f'<span class="dim" title="{escape(why)}">refused</span>' if why else "–"
    return f'{text_of(t.min)} <span class="dim">({text_of(t.median)})</span>'
