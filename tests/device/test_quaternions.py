"""Quaternions in kernels are those of SciPy, on every device."""

import numpy as np
import pytest
from kernel_tools import agree

import pyarray as pa
from pyarray import quaternion
from pyarray.jit.launch_state import debug

Q = pa.ndarray[pa.float64, (None, 4)]
V = pa.ndarray[pa.float64, (None, 3)]
DRAW = np.random.default_rng(8)


def rotations(count):
    q = DRAW.normal(size=(count, 4))
    return q / np.linalg.norm(q, axis=1)[:, None]


@pa.kernel
def turn(q: Q, other: Q, v: V, out: V, between: Q):
    for i in range(q.shape[0]):
        both = quaternion.multiply(q[i], other[i])
        out[i] = quaternion.rotate(both, v[i]) - quaternion.to_matrix(q[i]) @ v[i]
        back = quaternion.rotate(quaternion.inverse(q[i] * 3), out[i])
        out[i] = back + quaternion.rotate(quaternion.from_axis_angle(v[i], v[i, 0]), out[i])
        between[i] = quaternion.slerp(q[i], other[i], 0.3) + quaternion.identity(q[i])


def test_as_plain_python(device):
    q, other, v = rotations(20), rotations(20), DRAW.normal(size=(20, 3))
    other[:3] = q[:3]
    other[3] = -q[3]
    for checked in (False, True):
        with debug(checked):
            agree(turn, device, q, other, v, np.zeros((20, 3)), np.zeros((20, 4)), rtol=1e-9)


def test_as_scipy():
    rotation = pytest.importorskip("scipy.spatial.transform")
    a, b, v = rotations(1)[0], rotations(1)[0], DRAW.normal(size=3)
    first, second = map(rotation.Rotation.from_quat, (a, b))
    np.testing.assert_allclose(quaternion.rotate(a, v), first.apply(v), rtol=1e-12)
    np.testing.assert_allclose(quaternion.to_matrix(a), first.as_matrix(), rtol=1e-12)
    np.testing.assert_allclose(quaternion.rotate(quaternion.multiply(a, b), v), (first * second).apply(v), rtol=1e-12)
    between = rotation.Slerp([0, 1], rotation.Rotation.concatenate([first, second]))(0.25)
    np.testing.assert_allclose(quaternion.rotate(quaternion.slerp(a, b, 0.25), v), between.apply(v), rtol=1e-9)
