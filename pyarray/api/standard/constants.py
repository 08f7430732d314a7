"""Constants."""

from __future__ import annotations

import math

import numpy as np

e = math.e
"""Euler's number."""
inf = math.inf
"""Positive infinity, as a Python float."""
nan = math.nan
"""Not a number, as a Python float."""
newaxis = None
"""In an index, a new axis of size 1."""
pi = math.pi
"""Ratio of a circle's circumference to its diameter."""

True_ = np.True_
"""NumPy's true value."""
False_ = np.False_
"""NumPy's false value."""

__all__ = ["False_", "True_", "e", "inf", "nan", "newaxis", "pi"]
