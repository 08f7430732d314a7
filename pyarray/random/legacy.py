"""NumPy's older names: `RandomState`, and functions that share one; CuPy has them too. New code is better off
with `default_rng`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from ..array import ndarray
from ..dtypes import int64
from ..locks import new_lock
from ..typing import ArrayLike, DTypeLike, ShapeLike
from .bit_generator import Philox4x3210
from .generator import Generator

__all__ = [
    "RandomState", "choice", "exponential", "normal", "permutation", "rand", "randint", "randn", "random",
    "random_sample", "seed", "shuffle", "standard_normal", "uniform",
]  # fmt: skip

_P = ParamSpec("_P")
_R = TypeVar("_R")
_INT64_MAX = (1 << 63) - 1


class RandomState(Generator):
    """A `Generator` with the names that the methods of NumPy's `RandomState` have. `seed` is as for
    `Philox4x3210`; the numbers are those of `default_rng(seed)`, not NumPy's.

    >>> RandomState(1).randint(3, size=2).shape
    (2,)
    """

    _has_ordered_bounds = False

    def __init__(self, seed: Any = None):
        super().__init__(Philox4x3210(seed))

    def seed(self, seed: Any = None) -> None:
        """Starts anew, from the operating system for None."""
        self.bit_generator = Philox4x3210(seed)

    def rand(self, *sizes: int) -> ndarray:
        """Uniform variates in [0, 1), of the shape `sizes`."""
        return self.random(sizes)

    def randn(self, *sizes: int) -> ndarray:
        """Standard normal variates, of the shape `sizes`."""
        return self.standard_normal(sizes)

    def randint(
        self,
        low: ArrayLike,
        high: ArrayLike | None = None,
        size: ShapeLike | None = None,
        dtype: DTypeLike = int64,
    ) -> ndarray:
        """Integers from `low` up to, but without, `high`: `Generator.integers`."""
        return self.integers(low, high, size, dtype)

    def random_integers(self, low: ArrayLike, high: ArrayLike | None = None, size: ShapeLike | None = None) -> ndarray:
        """Integers from `low` up to and with `high`; from 1 up to `low` where only that is given."""
        first, last = (1, low) if high is None else (low, high)
        return self.integers(first, last, size, endpoint=True)

    def random_sample(self, size: ShapeLike | None = None) -> ndarray:
        """Uniform variates in [0, 1)."""
        return self.random(size)

    def tomaxint(self, size: ShapeLike | None = None) -> ndarray:
        """Integers from 0 to 2**63 - 1."""
        return self.integers(0, _INT64_MAX, size, endpoint=True)


_lock = new_lock()
_shared: list[RandomState] = []


def _generator() -> RandomState:
    with _lock:
        if not _shared:
            _shared.append(RandomState())
        return _shared[0]


def seed(seed: Any = None) -> None:
    """Starts the shared generator anew, from the operating system for None.

    >>> seed(3); first = rand(2).tolist()
    >>> seed(3); rand(2).tolist() == first
    True
    """
    state = RandomState(seed)
    with _lock:
        _shared[:] = [state]


def _of_shared(method: Callable[Concatenate[Any, _P], _R]) -> Callable[_P, _R]:
    """The function that calls this method of the shared generator."""
    name = method.__name__

    @functools.wraps(method)
    def function(*args: _P.args, **options: _P.kwargs) -> _R:
        return getattr(_generator(), name)(*args, **options)

    function.__qualname__ = name
    full = inspect.signature(method)
    function.__signature__ = full.replace(parameters=list(full.parameters.values())[1:])  # type: ignore[attr-defined]
    return function


rand = _of_shared(RandomState.rand)
randn = _of_shared(RandomState.randn)
randint = _of_shared(RandomState.randint)
random = random_sample = _of_shared(RandomState.random)
standard_normal = _of_shared(RandomState.standard_normal)
normal = _of_shared(RandomState.normal)
uniform = _of_shared(RandomState.uniform)
exponential = _of_shared(RandomState.exponential)
permutation = _of_shared(RandomState.permutation)
shuffle = _of_shared(RandomState.shuffle)
choice = _of_shared(RandomState.choice)
