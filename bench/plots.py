"""Plots as SVG text: a bar of a ratio, its axis, ratios over sizes. Colours are classes in page.css."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT, MARGIN = 340, 18, 8  # of a bar's line
PANEL = (216, 132)  # a plot over sizes
INNER = (34, 8, 8, 20)  # its margins: left, right, top, bottom
WIDEST = 2.0**8  # ratios beyond are drawn at the edge, with an arrow


@dataclass(frozen=True)
class Scale:
    """Places of positive numbers between two powers of two, by their logarithm."""

    low: float
    high: float
    start: float
    end: float

    @classmethod
    def around(cls, values: Sequence[float], start: float, end: float) -> Scale:
        """Of all values, of 1/2 and of 2."""
        kept = [min(max(v, 1 / WIDEST), WIDEST) for v in (*values, 0.5, 2.0)]
        low, high = 2.0 ** math.floor(math.log2(min(kept))), 2.0 ** math.ceil(math.log2(max(kept)))
        return cls(low, high, start, end)

    def at(self, value: float) -> float:
        """Its place; the edge, for what is outside."""
        part = math.log(value / self.low) / math.log(self.high / self.low)
        return self.start + (self.end - self.start) * min(max(part, 0.0), 1.0)

    @property
    def ticks(self) -> list[float]:
        """Powers of two: all, or every second or third."""
        low, high = round(math.log2(self.low)), round(math.log2(self.high))
        step = -(-(high - low) // 6)
        return [2.0**k for k in range(low, high + 1) if k % step == 0]


def number(value: float) -> str:
    """A place in an SVG."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def label(ratio: float) -> str:
    """Of a tick: 4, 1, ½."""
    return f"{ratio:g}" if ratio >= 1 else {0.5: "½", 0.25: "¼", 0.125: "⅛"}.get(ratio, f"1/{1 / ratio:g}")


def _svg(width: float, height: float, parts: Sequence[str], title: str) -> str:
    size = f'width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}"'
    return f'<svg {size} role="img"><title>{escape(title)}</title>{"".join(parts)}</svg>'


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    a, b, c, d = map(number, (x1, y1, x2, y2))
    return f'<line class="{kind}" x1="{a}" y1="{b}" x2="{c}" y2="{d}"/>'


def _text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    return f'<text x="{number(x)}" y="{number(y)}" text-anchor="{anchor}">{escape(text)}</text>'


def bar_scale(ratios: Sequence[float]) -> Scale:
    """For bars below each other."""
    return Scale.around(ratios, MARGIN, WIDTH - MARGIN)


def axis(scale: Scale) -> str:
    """The numbers above the bars."""
    parts = [_text(scale.at(t), 12, label(t)) for t in scale.ticks]
    return _svg(WIDTH, 16, parts, "ratio to the best peer, logarithmic")


def bar(ratio: float, typical: float | None, target: float | None, scale: Scale, kind: str, title: str) -> str:
    """From 1 to the ratio of minima; a dot at that of medians, an upright line at the target."""
    parts = [_line(scale.at(t), 0, scale.at(t), HEIGHT, "one" if t == 1 else "grid") for t in scale.ticks]
    left, right = sorted((scale.at(1.0), scale.at(ratio)))
    place = f'x="{number(left)}" y="4" width="{number(right - left)}" height="{HEIGHT - 8}"'
    parts.append(f'<rect class="bar {kind}" {place}/>')
    if not scale.low <= ratio <= scale.high:
        end, tip = (right, 5) if ratio > 1 else (left, -5)
        points = f"{number(end)},4 {number(end + tip)},{HEIGHT // 2} {number(end)},{HEIGHT - 4}"
        parts.append(f'<polygon class="bar {kind}" points="{points}"/>')
    if target is not None:
        parts.append(_line(scale.at(target), 1, scale.at(target), HEIGHT - 1, "target"))
    if typical is not None:
        parts.append(f'<circle class="typical" cx="{number(scale.at(typical))}" cy="{HEIGHT / 2:g}" r="2"/>')
    return _svg(WIDTH, HEIGHT, parts, title)


def share(part: float, whole: float, title: str) -> str:
    """A bar of a part of `whole`, from the left."""
    width = (WIDTH - 2 * MARGIN) * min(part / whole, 1.0)
    place = f'x="{MARGIN}" y="4" width="{number(width)}" height="{HEIGHT - 8}"'
    return _svg(WIDTH, HEIGHT, [f'<rect class="bar free" {place}/>'], title)


Points = Sequence[tuple[int, float]]  # (size, ratio), by size


def growth(lines: Mapping[str, Points], best: Points, targets: Points, colours: Mapping[str, int], title: str) -> str:
    """Ratios over sizes, both logarithmic: a thin line for each peer, a thick one for the best of them."""
    (width, height), (left, right, top, bottom) = PANEL, INNER
    sizes = [n for n, _ in best]
    first, last = math.log(sizes[0]), math.log(sizes[-1])
    drawn = [r for points in (*lines.values(), best, targets) for _, r in points]
    scale = Scale.around(drawn, height - bottom, top)

    def across(n: int) -> float:
        return left + 8 + (width - left - right - 16) * (math.log(n) - first) / (last - first)

    parts = []
    for tick in scale.ticks:
        y = scale.at(tick)
        parts += [_line(left, y, width - right, y, "one" if tick == 1 else "grid")]
        parts += [_text(left - 4, y + 3.5, label(tick), "end")]
    parts += [_text(across(n), height - 5, size(n)) for n in _apart(sizes, across)]
    for name, points in lines.items():
        parts.append(_path([(across(n), scale.at(r)) for n, r in points], f"line c{colours[name]}"))
    for n, target in targets:
        y = scale.at(target)
        parts.append(_line(across(n) - 7, y, across(n) + 7, y, "target"))
    parts.append(_path([(across(n), scale.at(r)) for n, r in best], "line best"))
    parts += [f'<circle class="best" cx="{number(across(n))}" cy="{number(scale.at(r))}" r="2.5"/>' for n, r in best]
    return _svg(width, height, parts, title)


def _apart(sizes: Sequence[int], across: object) -> list[int]:
    """Sizes whose labels don't touch: the first, and each that is far enough from the one before."""
    kept: list[int] = []
    for n in sizes:
        if not kept or across(n) - across(kept[-1]) >= 30:
            kept.append(n)
    return kept


def _path(points: Sequence[tuple[float, float]], kind: str) -> str:
    return f'<polyline class="{kind}" points="{" ".join(f"{number(x)},{number(y)}" for x, y in points)}"/>'


def size(n: int) -> str:
    """A size for reading: 10⁷, 2048.

    >>> size(10**7), size(2048)
    ('10⁷', '2048')
    """
    power = len(str(n)) - 1
    if power >= 3 and n == 10**power:
        return "10" + "".join("⁰¹²³⁴⁵⁶⁷⁸⁹"[int(d)] for d in str(power))
    return str(n)
