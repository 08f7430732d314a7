"""NumPy's names of functions that the standard calls otherwise."""

from __future__ import annotations

from ..standard import elementwise, statistical

__all__ = [
    "absolute", "amax", "amin", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2",
    "arctanh", "bitwise_not", "conjugate", "invert", "left_shift", "mod", "power", "right_shift",
    "true_divide",
]  # fmt: skip

absolute = elementwise.abs
amax = statistical.max
amin = statistical.min
arccos, arccosh = elementwise.acos, elementwise.acosh
arcsin, arcsinh = elementwise.asin, elementwise.asinh
arctan, arctan2, arctanh = elementwise.atan, elementwise.atan2, elementwise.atanh
bitwise_not = invert = elementwise.bitwise_invert
conjugate = elementwise.conj
left_shift, right_shift = elementwise.bitwise_left_shift, elementwise.bitwise_right_shift
mod = elementwise.remainder
power = elementwise.pow
true_divide = elementwise.divide
