"""Quaternions as arrays of four numbers (x, y, z, w), as SciPy and Warp order them: functions of kernels, which on the
host take NumPy arrays.

>>> import numpy as np
>>> from pyarray import quaternion
>>> turn = quaternion.from_axis_angle(np.array([0.0, 0.0, 1.0]), np.pi / 2)
>>> quaternion.rotate(turn, np.array([1.0, 0.0, 0.0])).round(6).tolist()
[0.0, 1.0, 0.0]
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from . import docstrings
from .array import ndarray
from .jit.functions import func

__all__ = [
    "conjugate", "from_axis_angle", "identity", "inverse", "multiply", "normalize", "rotate", "slerp", "to_matrix",
]  # fmt: skip


Array: TypeAlias = ndarray | np.ndarray[Any, Any]  # local arrays in kernels are arrays to type checkers


@func
def identity(like: Array) -> Array:
    """The rotation that turns nothing, with the dtype of the array `like`."""
    return np.array([0, 0, 0, 1], dtype=like.dtype)


@func
def from_axis_angle(axis: Array, angle: float) -> Array:
    """The rotation about a vector of any length but 0, by an angle in radians."""
    s = np.sin(angle / 2) / np.linalg.norm(axis)
    return np.array([axis[0] * s, axis[1] * s, axis[2] * s, np.cos(angle / 2)])


@func
def multiply(a: Array, b: Array) -> Array:
    """The rotation `b`, and then `a`."""
    return np.array(
        [
            a[3] * b[0] + a[0] * b[3] + a[1] * b[2] - a[2] * b[1],
            a[3] * b[1] - a[0] * b[2] + a[1] * b[3] + a[2] * b[0],
            a[3] * b[2] + a[0] * b[1] - a[1] * b[0] + a[2] * b[3],
            a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2],
        ]
    )


@func
def conjugate(q: Array) -> Array:
    """The opposite rotation of a unit quaternion."""
    return np.array([-q[0], -q[1], -q[2], q[3]])


@func
def inverse(q: Array) -> Array:
    """`multiply(q, inverse(q))` is the identity, of quaternions of any length but 0."""
    return conjugate(q) / np.dot(q, q)


@func
def normalize(q: Array) -> Array:
    """The quaternion of length 1."""
    return q / np.linalg.norm(q)


@func
def rotate(q: Array, v: Array) -> Array:
    """The vector `v`, turned by a unit quaternion."""
    axis = q[:3]
    t = 2 * np.cross(axis, v)
    return v + q[3] * t + np.cross(axis, t)


@func
def to_matrix(q: Array) -> Array:
    """The 3 x 3 matrix of a unit quaternion: `to_matrix(q) @ v` is `rotate(q, v)`."""
    x, y, z, w = q
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


@func
def slerp(a: Array, b: Array, t: float) -> Array:
    """The rotation between two unit quaternions, the shorter way: `a` at t = 0, `b` at 1."""
    cosine = np.dot(a, b)
    sign = 1 - 2 * (cosine < 0)
    cosine = abs(cosine)
    u, v = 1 - t, t * sign  # of nearly equal ones, where the sine is 0
    if cosine < 0.9999:
        angle = np.arccos(cosine)
        u = np.sin((1 - t) * angle) / np.sin(angle)
        v = sign * np.sin(t * angle) / np.sin(angle)
    return normalize(a * u + b * v)


docstrings.install(globals())
