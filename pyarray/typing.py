"""Types of public parameters: what is taken for an array, a dtype, a shape, axes, a device.

>>> from pyarray.typing import ArrayLike, ShapeLike
>>> def grid(values: ArrayLike, shape: ShapeLike) -> None: ...
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import IO, Any, Protocol, SupportsIndex, TypeAlias, runtime_checkable

import numpy as np

from pyarray.driver.base import Device
from pyarray.dtypes import DType

__all__ = [
    "ArrayLike", "AxisLike", "DTypeLike", "DeviceLike", "FileLike", "ShapeLike", "SupportsCudaArrayInterface",
    "SupportsDLPack",
]  # fmt: skip


@runtime_checkable
class SupportsDLPack(Protocol):
    """An array of any library that exchanges memory: pyarray's, NumPy's, torch's tensors."""

    def __dlpack__(self, *, stream: Any = ...) -> Any: ...
    def __dlpack_device__(self) -> tuple[Any, int]: ...


@runtime_checkable
class SupportsCudaArrayInterface(Protocol):
    """An array in a GPU's memory, as Numba's."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]: ...


# an array of any library, a number, nested sequences of numbers, or a buffer of bytes
ArrayLike: TypeAlias = SupportsDLPack | SupportsCudaArrayInterface | np.generic | complex | Sequence[Any] | memoryview
# `pa.float32`, "float32", NumPy's dtypes and scalar types, Python's types of numbers; None where there is a default
DTypeLike: TypeAlias = str | type[Any] | np.dtype[Any] | DType | None
# a size, or one for each axis
ShapeLike: TypeAlias = SupportsIndex | Sequence[SupportsIndex]
# an axis, or several, of which negative ones count from the last; None is all of them
AxisLike: TypeAlias = SupportsIndex | Sequence[SupportsIndex] | None
# "cpu", "cuda:1", a device, or None for the default device
DeviceLike: TypeAlias = str | Device | None
# a path, or an open file
FileLike: TypeAlias = str | os.PathLike[str] | IO[Any]
