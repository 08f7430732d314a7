"""Cost of launches, counted in typed trees at the sizes of arguments; nothing is run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from .. import shapes
from ..array import ndarray
from ..lang.operation_counts import OperationCounts
from ..lang.pipeline import operation_counter


@dataclass(frozen=True)
class Cost:
    """Counts of one or several launches: operations, loads, stores, bytes.

    Attributes
    ----------
    operations : int
        Arithmetic, comparisons and functions, one each, of any dtype. Those of indices and of the bounds of
        loops aren't counted.
    bytes_read, bytes_written : int
        Of memory: each array once per launch, and no more of it than is loaded or stored. An axis of stride 0
        is one element.
    loads, stores : int
        Elements that the iterations load and store, as often as they do.
    iterations : int
        Of parallel loops.
    launches : int
    assumptions : tuple of str
        What depends on data, and what is taken for it; what isn't counted. Without any, all is exact.

    Examples
    --------
    >>> import pyarray as pa
    >>> @pa.kernel
    ... def axpy(a, x, y):
    ...     for i in range(x.size):
    ...         y[i] += a * x[i]
    >>> cost = axpy.cost_analysis(2.0, pa.ones(1000), pa.ones(1000))
    >>> cost.operations, cost.bytes_read, cost.bytes_written, cost.exact
    (2000, 16000, 8000, True)
    """

    operations: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    loads: int = 0
    stores: int = 0
    iterations: int = 0
    launches: int = 0
    assumptions: tuple[str, ...] = ()

    @property
    def exact(self) -> bool:
        """Whether nothing was assumed."""
        return not self.assumptions

    @property
    def bytes_accessed(self) -> int:
        """Read and written."""
        return self.bytes_read + self.bytes_written

    @property
    def work(self) -> int:
        """The sum of operations, loads and stores."""
        return self.operations + self.loads + self.stores

    @property
    def intensity(self) -> float:
        """Operations per byte of memory; 0 where no memory is accessed."""
        return self.operations / self.bytes_accessed if self.bytes_accessed else 0.0

    def __add__(self, other: Cost) -> Cost:
        if not isinstance(other, Cost):
            return NotImplemented
        names = ("operations", "bytes_read", "bytes_written", "loads", "stores", "iterations", "launches")
        sums = {name: getattr(self, name) + getattr(other, name) for name in names}
        return Cost(**sums, assumptions=tuple(dict.fromkeys(self.assumptions + other.assumptions)))


def total(costs: Iterable[Cost]) -> Cost:
    """Of all of them.

    >>> total([Cost(operations=1, launches=1), Cost(operations=2, launches=1)]).operations
    3
    """
    return sum(costs, Cost())


class Layout(NamedTuple):
    """What of an array counts."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def touched(self, accesses: int) -> int:
        """Bytes, where so many elements are loaded, or stored."""
        return min(accesses, math.prod(shapes.stored_shape(self.shape, self.strides))) * self.itemsize


def layouts(args: Mapping[str, Any]) -> dict[str, Any]:
    """Leaves of arguments, with layouts in place of arrays."""
    return {
        name: Layout(x._shape, x._strides, x._dtype.itemsize) if isinstance(x, ndarray) else x
        for name, x in args.items()
    }


def cost_of(kernel: str, count: Any, args: Mapping[str, Any], directions: Mapping[str, str]) -> Cost:
    """One launch of a kernel with these `layouts`. `count` is `Program.count_operations`; without it, arrays are read
    and written by their `directions`, and operations aren't known."""
    arrays = {name: x for name, x in args.items() if isinstance(x, Layout)}
    if count is None:
        found = _by_directions(arrays, directions)
    else:
        found = count({name: x.shape if name in arrays else x for name, x in args.items()})
    read = sum(arrays[name].touched(n) for name, n in found.loads.items() if name in arrays)
    stored = sum(arrays[name].touched(n) for name, n in found.stores.items() if name in arrays)
    loads, stores = sum(found.loads.values()), sum(found.stores.values())
    assumptions = tuple(f"{kernel}: {text}" for text in found.assumptions)
    return Cost(found.operations, read, stored, loads, stores, found.iterations, 1, assumptions)


def _by_directions(arrays: Mapping[str, Layout], directions: Mapping[str, str]) -> OperationCounts:
    used = {name: directions.get(name, "IN") for name in arrays}
    loads = {name: a.size for name, a in arrays.items() if used[name] in ("IN", "INOUT")}
    stores = {name: a.size for name, a in arrays.items() if used[name] in ("OUT", "INOUT")}
    assumed = ("its operations are not counted: it isn't in the kernel language",)
    return OperationCounts(0, loads, stores, 0, assumed)


def cost_of_call(kernel: Any, bound: Any) -> Cost:
    """As `Kernel.cost_analysis`, for arguments that are bound."""
    bound.check_scalars()
    count = operation_counter(kernel.source_text, bound.types(), kernel.wraparound)
    return cost_of(kernel.__name__, count, layouts(bound.named), {})
