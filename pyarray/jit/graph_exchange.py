"""`Exchange`: what is to be checked of an array in the place of a graph's named one, prepared when the block ends."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..array import READONLY, WATCHED, ndarray
from .graph_launch import Range, bounds


def merged(ranges: Iterable[Range]) -> list[int]:
    """First addresses and ends of ranges in turn, those that overlap or touch as one."""
    found: list[int] = []
    for low, high in sorted(r for r in ranges if r[0] < r[1]):
        if found and low <= found[-1]:
            found[-1] = max(found[-1], high)
        else:
            found += low, high
    return found


class Exchange:
    """A named array of a graph. `places` are where its address goes, as the driver takes them. `avoided` are ranges
    of other memory of the graph that an array in its place may not overlap; `rivals` are other named arrays of which
    it may overlap none: one of the two is written. Its address moves by multiples of `alignment` bytes."""

    __slots__ = (
        "_any", "_avoided", "_key", "_shape", "_strides", "address", "alignment", "high", "low", "places", "rivals",
    )  # fmt: skip

    def __init__(self, array: ndarray, key: int, written: bool, avoided: Sequence[Range], places: Any, alignment: int):
        self._any = 0 if written else READONLY | WATCHED  # bits of a key that don't matter
        self._key = -1 if written and key & (READONLY | WATCHED) else key | self._any  # -1: each is checked in full
        self._shape, self._strides = array._shape, array._strides
        self._avoided = merged(avoided)
        self.address, self.places, self.alignment = array._ptr, places, alignment
        low, high = bounds(array)
        self.low, self.high = low - array._ptr, high - array._ptr  # from the address of any in its place
        self.rivals: Mapping[str, Exchange] = {}  # of this graph's named arrays, by their names

    def address_of(self, a: Any) -> int | None:
        """The address of an array that differs from the named one in nothing but where it is, and overlaps no range
        that it may not. None for others, which may fit too."""
        if not isinstance(a, ndarray):
            return None
        key, shape, strides, address = a._key, a._shape, a._strides, a._ptr  # at once: another thread may resize it
        if key | self._any != self._key or shape != self._shape or strides != self._strides:
            return None
        if (address - self.address) % self.alignment:
            return None
        k = bisect_right(self._avoided, address + self.low)
        return None if k & 1 or bisect_left(self._avoided, address + self.high) != k else address

    def overlaps_rivals(self, address: int, others: Mapping[str, int]) -> bool:
        """Whether an array at this address overlaps a rival, which is at its address of `others` or the block's."""
        low, high = address + self.low, address + self.high
        for name, rival in self.rivals.items():
            start = others.get(name, rival.address)
            if low < start + rival.high and start + rival.low < high:
                return True
        return False


def addresses(exchanges: Mapping[str, Exchange], arrays: Mapping[str, Any]) -> dict[str, int] | None:
    """The addresses of arrays that fit in the places of named ones. None if not all are quickly seen to fit."""
    found = {}
    for name, a in arrays.items():
        if (exchange := exchanges.get(name)) is None or (address := exchange.address_of(a)) is None:
            return None
        found[name] = address
    for name, address in found.items():
        if exchanges[name].overlaps_rivals(address, found):
            return None
    return found


__all__ = ["Exchange", "addresses"]
