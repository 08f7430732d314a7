"""Names that mean something in a kernel and that Python has no word for. On the host they do the same, one step at a time."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any


class Marker:
    """A function that the kernel language knows by `name`; `host` is what a plain Python call of it does."""

    def __init__(self, name: str, host: Any, doc: str):
        self.__pyarray_builtin__ = self.__name__ = name
        self.__doc__, self._host = doc, host

    def __call__(self, *args: Any) -> Any:
        return self._host(*args)

    def __repr__(self) -> str:
        return f"<pyarray {self.__name__}>"


def _ndrange(*sizes: Any) -> Iterable[tuple[int, ...]]:
    flat = [n for size in sizes for n in (size if isinstance(size, tuple) else (size,))]
    return itertools.product(*map(range, flat))


ndrange = Marker("ndrange", _ndrange, "`for i, j in pa.ndrange(m, n)`: one loop over all index pairs, the last one fastest.")
unordered = Marker("unordered", lambda r: r, "`for i in unordered(range(n))`: a reduction whose order of combination is free.")
