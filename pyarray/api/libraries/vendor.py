"""Calls of the GPU vendor's libraries, as docs/design/libraries.md says."""

from __future__ import annotations

from typing import Any

from ...array import ndarray
from . import linalg, transforms
from .bindings import VENDORS as VENDORS
from .bindings import package as package


def compute(part: str, name: str, arrays: tuple[ndarray, ...], options: dict[str, Any]) -> Any:
    """`part`.`name` of NumPy, of arrays on a GPU of a kind in `VENDORS`.

    Raises what NumPy raises; `DeviceError` where the library or its binding is missing.
    """
    if part == "fft":
        return transforms.compute(name, arrays[0], **options)
    if not arrays[0]._size:
        return linalg.of_nothing(name, arrays, options)
    return linalg.FUNCTIONS[name](*arrays, **options)
