"""Inspection: what the namespace can do, `pyarray.__array_namespace_info__()`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...array import MAX_NDIM
from ...driver import base
from ...driver.base import Device, get_device
from ...dtypes import ALL, DEFAULT
from ...typing import DeviceLike
from .data_types import isdtype

__all__ = ["__array_namespace_info__"]


class Info:
    """The standard's inspection object."""

    def capabilities(self) -> dict[str, Any]:
        """What is optional in the standard: boolean indexing and data-dependent shapes work; `max dimensions`
        is the largest rank.
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": MAX_NDIM}

    def default_device(self) -> Device:
        """Where arrays are made when no device is named: `pyarray.get_default_device()`."""
        return get_device(None)

    def default_dtypes(self, *, device: DeviceLike = None) -> dict[str, np.dtype[Any]]:
        """Dtypes of Python numbers and of indices, on every device alike."""
        names = {"real floating": "f", "complex floating": "c", "integral": "i", "indexing": "i"}
        return {name: DEFAULT[kind].numpy for name, kind in names.items()}

    def dtypes(self, *, device: DeviceLike = None, kind: Any = None) -> dict[str, np.dtype[Any]]:
        """The standard's dtypes by name (narrower floating types are beyond it), those of `kind` (as for
        `isdtype`) where one is given. Raises `ValueError` for another kind.
        """
        return {row.name: row.numpy for row in ALL if not row.is_narrow and (kind is None or isdtype(row, kind))}

    def devices(self) -> tuple[Device, ...]:
        """All devices of this machine."""
        return tuple(device for kind in base.KINDS if kind != "null" for device in base.devices(kind))


def __array_namespace_info__() -> Info:
    """The inspection object of the array API standard.

    >>> import pyarray as pa
    >>> sorted(pa.__array_namespace_info__().dtypes(kind="complex floating"))
    ['complex128', 'complex64']
    """
    return Info()
