"""What NumPy has under `lib`: views by shape and strides, in `stride_tricks`."""

from . import stride_tricks as stride_tricks

__all__ = ["stride_tricks"]
