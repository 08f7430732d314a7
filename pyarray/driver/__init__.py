"""What a device can do. Nothing here knows about arrays."""

from .base import KINDS, Device, Driver, Failure, Kind, get_device

__all__ = ["KINDS", "Device", "Driver", "Failure", "Kind", "get_device"]
