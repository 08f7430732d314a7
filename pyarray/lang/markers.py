"""Functions and types that kernels name and Python lacks: `constexpr`, `ndrange`, `unordered`, atomics.

On the host they do the same one step at a time, so that a kernel's body also runs as plain Python."""

from __future__ import annotations

import itertools
import types
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .builtins import ATOMICS, FUNCTIONS

__all__ = [
    "atomic_add", "atomic_and", "atomic_cas", "atomic_exchange", "atomic_max", "atomic_min", "atomic_or", "atomic_sub",
    "atomic_xor", "ndrange", "tiles", "unordered",
]  # fmt: skip

_Host = TypeVar("_Host", bound=Callable[..., Any])


def _marker(name: str, host: _Host, doc: str) -> _Host:
    """A function that the kernel language knows by `name`; `host` is what a plain Python call of it does."""
    host.__name__ = host.__qualname__ = name
    host.__doc__ = doc
    setattr(host, "__pyarray_builtin__", name)  # noqa: B010
    return host


if TYPE_CHECKING:
    from ..kernel_types import constexpr
else:

    class constexpr:
        """Annotation of a parameter whose value is compiled in: another value is another artifact.

        >>> import pyarray as pa
        >>> @pa.kernel
        ... def power(v, n: pa.constexpr):
        ...     for i in range(v.size):
        ...         v[i] = v[i] ** n
        """


def builtin(name: str) -> Callable[..., Any]:
    """The function `name` of `builtins.FUNCTIONS`; on the host it is NumPy's of that name.

    >>> float(builtin("sqrt")(9.0))
    3.0
    """
    row = FUNCTIONS[name]

    def host(*args: Any) -> Any:
        function: Any = getattr(np, _NUMPY.get(name, name), None)
        if function is None:
            raise RuntimeError(f"{name}() works in kernels only: on the host NumPy stands in, which has none")
        return function(*args)

    return _marker(name, host, row.doc)


_NUMPY = {"min": "minimum", "max": "maximum", "recip": "reciprocal"}  # the others have one name


def _ndrange(*sizes: int | tuple[int, ...]) -> Iterable[tuple[int, ...]]:
    ranges = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], tuple) else sizes
    return itertools.product(*(range(*size) if isinstance(size, tuple) else range(size) for size in ranges))


def _unordered(indices: Iterable[int]) -> Iterable[int]:
    return indices


def _tiles(sizes: Any, tile: Any) -> Iterable[Any]:
    shape = getattr(sizes, "shape", sizes)
    if not isinstance(shape, tuple):
        return [slice(k, min(k + tile, shape)) for k in range(0, shape, tile)]
    axes = ([slice(k, min(k + b, n)) for k in range(0, n, b)] for n, b in zip(shape, tile, strict=True))
    return itertools.product(*axes)


tiles = _marker(
    "tiles",
    _tiles,
    "`for i, j in pa.tiles(c, (BM, BN))`: a loop over the tiles of an array or of sizes, whose variables are tile "
    "indices; `a[i, k]` is a tile. `(k,) = pa.tiles(n, BK)` is one tile for a whole axis. On the host the variables "
    "are slices.",
)
ndrange = _marker(
    "ndrange",
    _ndrange,
    "`for i, j in pa.ndrange(m, n)`: one loop over all pairs, the last index fastest. A shape alone will do; "
    "of several arguments each may be a pair of bounds, `pa.ndrange((1, m - 1), n)`.",
)
unordered = _marker(
    "unordered",
    _unordered,
    "`for j in pa.unordered(range(n))`: an inner loop whose iterations may run in any order, or at the same "
    "time. It may store elements that no other iteration reads or writes, and carry reductions whose order "
    "of combination is free.",
)

_UPDATES: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda old, x: old + x,
    "sub": lambda old, x: old - x,
    "min": np.minimum,
    "max": np.maximum,
    "and": lambda old, x: old & x,
    "or": lambda old, x: old | x,
    "xor": lambda old, x: old ^ x,
    "exchange": lambda old, x: x,
}


def _atomic(op: str) -> Callable[[Any, int | tuple[int, ...], complex], Any]:
    def host(array: Any, index: int | tuple[int, ...], value: complex) -> Any:
        old = array[index]
        array[index] = _UPDATES[op](old, value)
        return old

    doc = f"`old = pa.atomic_{op}(v, i, x)`: one indivisible update of `v[i]`; an N-D index is a tuple."
    return _marker(f"atomic_{op}", host, doc)


def _compare_and_swap(array: Any, index: int | tuple[int, ...], expected: complex, desired: complex) -> Any:
    old = array[index]
    if old == expected:
        array[index] = desired
    return old


atomic_add, atomic_sub, atomic_min, atomic_max = map(_atomic, ("add", "sub", "min", "max"))
atomic_and, atomic_or, atomic_xor, atomic_exchange = map(_atomic, ("and", "or", "xor", "exchange"))
atomic_cas = _marker(
    "atomic_cas",
    _compare_and_swap,
    "`old = pa.atomic_cas(v, i, expected, desired)`: is `v[i]` as expected, `desired` takes its place, in "
    "one step; floats are compared by their bits.",
)
assert globals().keys() >= ATOMICS.keys()

kernel_math = types.SimpleNamespace(**{name: builtin(name) for name in FUNCTIONS})
"""Every row of the function table: `kernel_math.sin`."""
