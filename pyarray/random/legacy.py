"""NumPy's older names: `RandomState`, and functions that share one; CuPy has them too. New code is better off
with `default_rng`.
"""

from __future__ import annotations

from typing import Any

from ..array import ndarray
from ..dtypes import int64
from ..locks import new_lock
from ..typing import ArrayLike, DTypeLike, ShapeLike
from .bit_generator import Philox4x3210
from .generator import Generator

_INT64_MAX = (1 << 63) - 1


class RandomState(Generator):
    """A `Generator` with the names that the methods of NumPy's `RandomState` have. `seed` is as for
    `Philox4x3210`; the numbers are those of `default_rng(seed)`, not NumPy's.

    >>> RandomState(1).randint(3, size=2).shape
    (2,)
    """

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


def rand(*sizes: int) -> ndarray:
    """Uniform variates in [0, 1), of the shape `sizes`.

    >>> rand(2, 3).shape
    (2, 3)
    """
    return _generator().rand(*sizes)


def randn(*sizes: int) -> ndarray:
    """Standard normal variates, of the shape `sizes`.

    >>> randn(2, 3).shape
    (2, 3)
    """
    return _generator().randn(*sizes)


def randint(
    low: ArrayLike, high: ArrayLike | None = None, size: ShapeLike | None = None, dtype: DTypeLike = int64
) -> ndarray:
    """Integers from `low` up to, but without, `high`: `Generator.integers`.

    >>> randint(1, size=2).tolist()
    [0, 0]
    """
    return _generator().randint(low, high, size, dtype)


def random(size: ShapeLike | None = None) -> ndarray:
    """Uniform variates in [0, 1)."""
    return _generator().random(size)


random_sample = random


def standard_normal(size: ShapeLike | None = None) -> ndarray:
    """Normal variates of mean 0 and standard deviation 1."""
    return _generator().standard_normal(size)


def normal(loc: ArrayLike = 0.0, scale: ArrayLike = 1.0, size: ShapeLike | None = None) -> ndarray:
    """`Generator.normal`."""
    return _generator().normal(loc, scale, size)


def uniform(low: ArrayLike = 0.0, high: ArrayLike = 1.0, size: ShapeLike | None = None) -> ndarray:
    """`Generator.uniform`."""
    return _generator().uniform(low, high, size)


def exponential(scale: ArrayLike = 1.0, size: ShapeLike | None = None) -> ndarray:
    """`Generator.exponential`."""
    return _generator().exponential(scale, size)


def permutation(x: ArrayLike) -> ndarray:
    """`Generator.permutation` along axis 0."""
    return _generator().permutation(x)


def shuffle(x: ArrayLike) -> None:
    """`Generator.shuffle` along axis 0."""
    _generator().shuffle(x)


def choice(a: ArrayLike, size: ShapeLike | None = None, replace: bool = True, p: ArrayLike | None = None) -> ndarray:
    """`Generator.choice`."""
    return _generator().choice(a, size, replace, p)
