"""The cost model: cost(n) = launch + tiles(n) · tile, in milliseconds, fitted to timings at three or more
sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..jit.launch_cost import Cost
from .config import Config
from .search import Result

ERROR = 0.1  # the largest residual of a fit that is used
SIZES = 3  # at least: a line through two points fits always
MAX_EXTRAPOLATION = 4.0  # times the largest number of tiles that was timed, or its part of the least: no farther
MAX_RATIO = 1.5  # times what was predicted, or its part of that: such a time says that the model is wrong there

COUNTS = ("work", "operations", "bytes_accessed", "loads", "stores", "iterations")  # of `Cost`


@dataclass(frozen=True)
class Fit:
    """`launch` and `tile` are milliseconds; `residual` is the largest relative error over the `sizes` sizes
    that it was fitted to, of `least` to `most` tiles."""

    launch: float
    tile: float
    residual: float
    sizes: int
    least: float = 0.0
    most: float = math.inf

    def reaches(self, tiles: float) -> bool:
        """Whether that many tiles are near enough to what was timed.

        >>> fit = Fit(launch=0.01, tile=0.5, residual=0.0, sizes=3, least=8, most=100)
        >>> fit.reaches(400), fit.reaches(401), fit.reaches(1)
        (True, False, False)
        """
        return self.least / MAX_EXTRAPOLATION <= tiles <= self.most * MAX_EXTRAPOLATION

    def cost(self, tiles: float) -> float:
        """Milliseconds for that many tiles.

        >>> Fit(launch=0.01, tile=0.5, residual=0.0, sizes=2).cost(4)
        2.01
        """
        return self.launch + self.tile * tiles


def fit(points: Iterable[tuple[float, float]]) -> Fit | None:
    """The least squares of the relative errors through (tiles, milliseconds); None for fewer than three
    sizes. Neither part is negative.

    >>> found = fit([(1, 1.5), (2, 2.5), (4, 4.5)])
    >>> round(found.launch, 6), round(found.tile, 6), found.sizes
    (0.5, 1.0, 3)
    """
    samples = [(float(x), float(y)) for x, y in points if y > 0]
    sizes = {x for x, _ in samples}
    if len(sizes) < SIZES:
        return None
    # of the equations launch / y + tile · x / y = 1, about the weighted means: sizes may be close together
    s11, s22 = sum(1 / y**2 for _, y in samples), sum((x / y) ** 2 for x, y in samples)
    b1, b2 = sum(1 / y for _, y in samples), sum(x / y for x, y in samples)
    middle, mean = sum(x / y**2 for x, y in samples) / s11, b1 / s11
    variance = sum(((x - middle) / y) ** 2 for x, y in samples)
    tile = sum((x - middle) * (y - mean) / y**2 for x, y in samples) / variance if variance > 0 else 0.0
    launch = mean - tile * middle if variance > 0 else -1.0
    if launch < 0:
        launch, tile = 0.0, b2 / s22
    elif tile < 0:
        launch, tile = b1 / s11, 0.0
    residual = max(abs(launch + tile * x - y) / y for x, y in samples)
    return Fit(launch, tile, residual, len(sizes), min(sizes), max(sizes))


def fits(
    groups: Iterable[tuple[Mapping[str, Result], Mapping[str, float]]],
    candidates: Sequence[Config],
    text: Callable[[Config], str],
) -> dict[Config, Fit]:
    """The fit of each candidate to results and tiles by identity, one pair per size. Empty while one has
    fewer than three sizes; those that failed are left out."""
    points: dict[Config, list[tuple[float, float]]] = {}
    failed = set()
    for results, work in groups:
        for c in candidates:
            row, tiles = results.get(str(c.identity())), work.get(str(c.identity()))
            if row is None or row.text != text(c):
                continue
            if row.median is None and not row.is_over_budget:
                failed.add(c)
            elif row.median is not None and tiles is not None:
                points.setdefault(c, []).append((tiles, row.median))
    by_candidate = {c: fit(points.get(c, ())) for c in candidates if c not in failed}
    fitted = {c: f for c, f in by_candidate.items() if f is not None}
    return fitted if len(fitted) == len(by_candidate) else {}


def check_count(what: str, name: Any) -> None:
    """Raises `TypeError` or `ValueError` for what is no count of `Cost` that time can grow with."""
    if not isinstance(name, str):
        raise TypeError(f"{what} is a function, or the name of a count, got {name!r}")
    if name not in COUNTS:
        raise ValueError(f"{what} is a function, or one of {', '.join(map(repr, COUNTS))}, got {name!r}")


def checked_tiles(what: str, number: Any) -> float:
    """What a function of the user's returned. Raises `TypeError` for what is no number of tiles."""
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not number >= 0:
        raise TypeError(f"{what} gives a number of tiles, got {number!r}")
    return float(number)


def work(
    model: Any,
    config: Config,
    args: Mapping[str, Any],
    named: Sequence[str],
    counted: Callable[[Config], Cost] = lambda config: Cost(),
) -> float:
    """Tiles of a call: what `model(config, args)` says; a count of the kernel's cost, `counted(config)`; or,
    for True, the product of the sizes in the tuner's `key`. Raises `TypeError` for what is no number of
    tiles."""
    if isinstance(model, str):
        return float(getattr(counted(config), model))
    if callable(model):
        return checked_tiles("model(config, args)", model(config, dict(args)))
    sizes = 1.0
    for name in named:
        value = args[name]
        shape = getattr(value, "shape", None)
        if shape:
            sizes *= math.prod(shape)
        elif isinstance(value, int) and not isinstance(value, bool):
            sizes *= value
    return sizes


def predict(
    fits: Mapping[Config, Fit], tiles: Callable[[Config], float], error: float = ERROR
) -> dict[Config, float] | None:
    """Milliseconds of each candidate; None where a fit is missing or not good enough."""
    work = {config: tiles(config) for config in fits}
    if not fits or any(f.residual > error or not f.reaches(work[c]) for c, f in fits.items()):
        return None
    return {config: f.cost(work[config]) for config, f in fits.items()}


def right(predicted: float, timed: float | None) -> bool:
    """Whether the time of a run is near what was predicted. None, where there was no time for it, says
    nothing against it.

    >>> right(1.0, 1.4), right(1.0, 6.0), right(1.0, 0.1)
    (True, False, False)
    """
    return timed is None or timed <= MAX_RATIO * predicted <= MAX_RATIO**2 * timed
