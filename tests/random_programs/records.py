"""What plain Python takes for a structured array of `Body`: records by attribute, on NumPy's memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from .names import Body, Pose


def as_tuple(value: Any) -> Any:
    """A record as the tuple that NumPy stores."""
    if isinstance(value, Record):
        return value.values.item()
    if isinstance(value, (Body, Pose)):
        return tuple(as_tuple(getattr(value, name)) for name in type(value).__dataclass_fields__)
    if isinstance(value, tuple):
        return tuple(map(as_tuple, value))
    return value


class Record:
    """A record of an array: reading and assigning its fields is the array's."""

    def __init__(self, values: Any, kind: type):
        self.__dict__.update(values=values, kind=kind)

    def __getattr__(self, name: str) -> Any:
        if name not in self.values.dtype.names:
            method = getattr(self.kind, name)
            return lambda *args: method(self, *args)
        found = self.values[name]
        if found.dtype.names:
            return Record(found, Pose)
        return found if found.ndim else found[()]

    def __setattr__(self, name: str, value: Any) -> None:
        self.values[name] = as_tuple(value)

    def __add__(self, other: Any) -> Any:
        return Body.__add__(self, other)

    def __rmul__(self, other: Any) -> Any:
        return Body.__rmul__(self, other)

    def __getitem__(self, k: Any) -> Any:
        return Body.__getitem__(self, k)

    def __lt__(self, other: Any) -> Any:
        return Body.__lt__(self, other)


class Records:
    """An array of records."""

    def __init__(self, values: np.ndarray[Any, Any]):
        self.values, self.shape, self.size, self.ndim = values, values.shape, values.size, values.ndim

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            return self.values[key]
        found = self.values[key if isinstance(key, tuple) else (key,)]
        if isinstance(found, np.ndarray):
            return Records(found)
        return Record(self.values[(*key, ...) if isinstance(key, tuple) else (key, ...)], Body)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.values[key] = as_tuple(value)

    def __iter__(self) -> Any:
        return (self[k] for k in range(len(self)))

    def __reversed__(self) -> Any:
        return (self[k] for k in reversed(range(len(self))))
