"""`TimeModel`: predicts a kernel's time at new sizes from its counted cost and a few measurements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..errors import AutotuneError
from ..jit.kernel import Kernel
from . import cost
from .autotune import autotune
from .config import Config
from .cost import Fit

_ALONE = Config()  # a kernel that is timed, not tuned


@dataclass(frozen=True)
class Verified:
    """Milliseconds that were predicted (None where there was no prediction) and measured, and whether the
    prediction was `right`: within 1.5 times of what was measured. None is not right."""

    predicted: float | None
    measured: float
    right: bool


class TimeModel:
    """Milliseconds of a kernel's launches: launch + tile · tiles, where tiles are counted by
    `Kernel.cost_analysis`, and the two constants are fitted to times at three or more sizes.

    Parameters
    ----------
    kernel : Kernel
        What `pa.kernel` made.
    tiles : str or callable, optional
        Which count of `Cost` time grows with, or a function of the arguments that returns a number. Default:
        "work", which is operations, loads and stores together.
    bench : callable, optional
        `bench(fn)` returns the milliseconds of `fn()`. Default: by events of the current stream.

    Raises
    ------
    TypeError
        For what is no kernel, or a tuned one, which has models of its own: `autotune(model=...)`.
    ValueError
        For a name that is no count.

    Examples
    --------
    >>> import pyarray as pa
    >>> @pa.kernel
    ... def double(v):
    ...     for i in range(v.size):
    ...         v[i] = 2 * v[i]
    >>> model = pa.TimeModel(double)
    >>> times = [model.measure(pa.ones(n)) for n in (100, 10_000, 1_000_000)]
    >>> model.fit.sizes, model.fit.least, model.fit.most
    (3, 300.0, 3000000.0)
    """

    def __init__(
        self,
        kernel: Kernel,
        tiles: str | Callable[..., float] = "work",
        bench: Callable[[Callable[[], Any]], float] | None = None,
    ):
        if not isinstance(kernel, Kernel):
            what = f"TimeModel takes what pa.kernel made, got {type(kernel).__name__}"
            raise TypeError(f"{what}; a tuned kernel has fits(*args), with autotune(model=...)")
        if not callable(tiles):
            cost.check_count("tiles", tiles)
        self.kernel, self.tiles, self.bench = kernel, tiles, bench
        self._timed = autotune(configs=[_ALONE], check=False, bench=bench)(kernel)
        self._points: dict[float, float] = {}  # tiles → milliseconds

    def count(self, /, *args: Any, **kwargs: Any) -> float:
        """Tiles of a launch with these arguments. Runs nothing."""
        if callable(self.tiles):
            return cost.checked_tiles("tiles(*args)", self.tiles(*args, **kwargs))
        return float(getattr(self.kernel.cost_analysis(*args, **kwargs), self.tiles))

    def measure(self, /, *args: Any, **kwargs: Any) -> float:
        """Milliseconds of a launch, timed now in a few runs: a point of the fit, in the place of an earlier
        one of as many tiles. The arguments are as before after it. Raises what a launch raises."""
        tiles, call = self.count(*args, **kwargs), self._timed._call(args, kwargs)
        call.check((_ALONE,))
        result = self._timed._chooser.timed(self._timed._task(call, (_ALONE,)))
        if result.median is None:
            raise result.error or AutotuneError(f"{self.kernel.__name__}: {result.reason}")
        self._points[tiles] = result.median
        return result.median

    @property
    def fit(self) -> Fit | None:
        """The constants in milliseconds, `launch` and `tile`; the largest relative error of a point,
        `residual`; how many `sizes`, from `least` to `most` tiles. None for fewer than three sizes."""
        return cost.fit(self._points.items())

    def predict(self, /, *args: Any, **kwargs: Any) -> float | None:
        """Milliseconds of a launch, without one. None where the model has nothing to say: fewer than three
        sizes, a residual above 10 %, more than four times the most tiles that were timed, or less than a
        quarter of the least."""
        fit = self.fit
        if fit is None:
            return None
        costs = cost.predict({_ALONE: fit}, lambda config: self.count(*args, **kwargs))
        return None if costs is None else costs[_ALONE]

    def verify(self, /, *args: Any, **kwargs: Any) -> Verified:
        """A prediction beside the time, which becomes a point, so that a wrong prediction changes the fit, or
        makes it unusable."""
        predicted = self.predict(*args, **kwargs)
        measured = self.measure(*args, **kwargs)
        return Verified(predicted, measured, predicted is not None and cost.right(predicted, measured))
