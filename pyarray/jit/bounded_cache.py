"""A dictionary of bounded size."""

from __future__ import annotations

from typing import TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class BoundedCache(dict[_Key, _Value]):
    """A dictionary of at most `most` entries, if they are put in by `add`, which drops the oldest. A look-up is
    that of a dictionary. Any thread may add."""

    def __init__(self, most: int):
        super().__init__()
        self.most = most

    def add(self, key: _Key, value: _Value) -> _Value:
        """Puts `value` in and returns it."""
        # a list, for other threads may change the dictionary between two steps of an iteration
        for first in list(self)[: max(0, len(self) - self.most + 1)]:
            self.pop(first, None)
        self[key] = value
        return value
