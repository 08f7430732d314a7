"""NumPy's older functions, which share one generator; CuPy has them too. New code is better off with
`default_rng`.
"""

from __future__ import annotations

from typing import Any

from ..array import ndarray
from ..dtypes import int64
from ..locks import new_lock
from .generator import Generator, default_rng

_lock = new_lock()
_shared: list[Generator] = []


def _generator() -> Generator:
    with _lock:
        if not _shared:
            _shared.append(default_rng())
        return _shared[0]


def seed(seed: Any = None) -> None:
    """Starts the shared generator anew, from the operating system for None.

    >>> seed(3); first = rand(2).tolist()
    >>> seed(3); rand(2).tolist() == first
    True
    """
    made = default_rng(seed)
    with _lock:
        _shared[:] = [made]


def rand(*sizes: int) -> ndarray:
    """Uniform variates in [0, 1), of the shape `sizes`.

    >>> rand(2, 3).shape
    (2, 3)
    """
    return _generator().random(sizes)


def randn(*sizes: int) -> ndarray:
    """Standard normal variates, of the shape `sizes`.

    >>> randn(2, 3).shape
    (2, 3)
    """
    return _generator().standard_normal(sizes)


def randint(low: Any, high: Any = None, size: Any = None, dtype: Any = int64) -> ndarray:
    """Integers from `low` up to, but without, `high`: `Generator.integers`.

    >>> randint(1, size=2).tolist()
    [0, 0]
    """
    return _generator().integers(low, high, size, dtype)


def random(size: Any = None) -> ndarray:
    """Uniform variates in [0, 1)."""
    return _generator().random(size)


random_sample = random


def standard_normal(size: Any = None) -> ndarray:
    """Normal variates of mean 0 and standard deviation 1."""
    return _generator().standard_normal(size)


def normal(loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> ndarray:
    """`Generator.normal`."""
    return _generator().normal(loc, scale, size)


def uniform(low: Any = 0.0, high: Any = 1.0, size: Any = None) -> ndarray:
    """`Generator.uniform`."""
    return _generator().uniform(low, high, size)


def exponential(scale: Any = 1.0, size: Any = None) -> ndarray:
    """`Generator.exponential`."""
    return _generator().exponential(scale, size)


def permutation(x: Any) -> ndarray:
    """`Generator.permutation` along axis 0."""
    return _generator().permutation(x)


def shuffle(x: Any) -> None:
    """`Generator.shuffle` along axis 0."""
    _generator().shuffle(x)


def choice(a: Any, size: Any = None, replace: bool = True, p: Any = None) -> ndarray:
    """`Generator.choice`."""
    return _generator().choice(a, size, replace, p)
