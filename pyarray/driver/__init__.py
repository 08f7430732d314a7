"""What a device can do. Nothing here knows about arrays. The compiler's module is imported by the first compile."""

from typing import TYPE_CHECKING

from .base import KINDS, Device, Driver, Kind, get_device
from .failure import Failure

__all__ = ["KINDS", "Device", "Driver", "Failure", "Kind", "get_device"]

if TYPE_CHECKING:
    from . import cc as cc
else:
    from ..lazy import submodules

    __getattr__ = submodules(__name__)
