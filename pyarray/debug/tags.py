"""`dump_tag`: marks memory whose arrays a dump of level 1 records."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import shapes
from ..array import ndarray
from ..array_views import memory_range
from ..driver.base import Device
from ..jit.signature import as_argument
from ..locks import new_lock


@dataclass(frozen=True, eq=False)
class _Tag:
    """Bytes `low` to `high` of `device`. They are valid while the memory's owner lives, which is as long as no
    other memory can be there."""

    owner: weakref.ref[Any]
    device: Device
    low: int
    high: int


_tags: tuple[_Tag, ...] = ()
_lock = new_lock()


def dump_tag(a: Any) -> Any:
    """Mark the memory of `a` for `pa.dump(level=1)`, which then records every argument that shares bytes with
    it: the array, its views, views that overlap it.

    `a` is an array, a view, or what a kernel takes as one (a NumPy array, a torch tensor), and is returned.
    A mark keeps nothing alive and ends with the memory. Marking twice is marking once. Raises
    `TypeError` for what is no array.

    >>> weights = pa.dump_tag(pa.zeros(8))
    """
    array = as_argument(a)
    if not isinstance(array, ndarray):
        raise TypeError(f"dump_tag() marks an array, got {type(a).__name__}; numbers need no mark")
    low, high = memory_range(array)
    owner = _holder(a, array)
    global _tags
    with _lock:
        if not any(t.owner() is owner and (t.low, t.high) == (low, high) for t in _tags):
            _tags += (_Tag(weakref.ref(owner, _forget), array.device, low, high),)
    return a


def tagged(a: ndarray) -> bool:
    """Whether `a` shares bytes with marked memory. Gaps between strided elements count as covered."""
    memory = memory_range(a)
    return any(
        t.device is a.device and shapes.may_overlap((t.low, t.high), memory) and t.owner() is not None for t in _tags
    )


def _holder(value: Any, array: ndarray) -> Any:
    """The object whose lifetime stands for that of the memory: the outermost known owner."""
    if not isinstance(value, (ndarray, np.ndarray)):
        return value
    owner = array._buffer.owner
    if not isinstance(owner, np.ndarray):
        return array._buffer
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    return owner


def _forget(owner: weakref.ref[Any]) -> None:
    global _tags
    with _lock:
        _tags = tuple(t for t in _tags if t.owner is not owner)
