"""The default device: where arrays are made when neither `device=` nor an operand says it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from .. import config
from .._core import register_devices
from .base import Device, get_device, scoped_default

__all__ = ["default_device", "get_default_device", "set_default_device"]


def get_default_device() -> Device:
    """The device of new arrays for which none is named: the innermost `default_device` of this thread, else
    what `set_default_device` said, else PYARRAY_DEVICE, else the CPU.

    Raises `ValueError` when PYARRAY_DEVICE is no device's name, `DeviceError` when that device is not there.

    >>> get_default_device()
    pyarray.Device('cpu')
    """
    return get_device(None)


def set_default_device(device: str | Device | None) -> None:
    """Make `device` the default of all threads of this process; None goes back to PYARRAY_DEVICE.

    Arrays that are there stay where they are, and results of functions stay where their operands are. Raises
    what `get_device` raises, and then changes nothing.

    >>> set_default_device("cpu")
    >>> set_default_device(None)
    """
    config.set("PYARRAY_DEVICE", None if device is None else str(get_device(device)))


@contextmanager
def default_device(device: str | Device) -> Iterator[Device]:
    """Make `device` the default inside a `with` block, for this thread (and this asyncio task) only.

    Raises what `get_device` raises, at the beginning of the block.

    >>> with default_device("cpu") as device:
    ...     str(device)
    'cpu'
    """
    token = scoped_default.set(get_device(device))
    try:
        yield get_device(None)
    finally:
        scoped_default.reset(token)


# C finds the default device as `get_device` does, and asks it only where a setting may say another one.
register_devices(Device, get_device, scoped_default, config.overrides, getattr(os.environ, "_data", None))
