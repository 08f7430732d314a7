"""`a.T` in a kernel: the view whose axes are in reverse order."""

import numpy as np
import pytest
from kernel_tools import agree, launch, on

from pyarray.errors import BoundsError
from pyarray.jit.kernel import func, kernel
from pyarray.jit.launch_state import debug
from pyarray.lang.markers import ndrange


@func
def corner(v, i, j):
    return v[i, j] + v.shape[0] * 1000


@kernel
def turned(out, a):
    t = a.T
    for i, j in ndrange(t.shape[0], t.shape[1]):
        out.T[j, i] = a.T[i, j] + 10 * t[i][j] + t[i, :].size + t.T[j, i] + corner(t[:, j:], i, 0)


@kernel
def cube(out, a):
    for i in range(a.T.shape[0]):
        row = out.T
        for j in range(a.T.shape[1]):
            for k in range(a.T.shape[2]):
                row[k, j, i] = a.T[i, j, k] + a[k].T[i, j] + a.strides[0] - a.T.strides[2]


@kernel
def flat(out, v):
    for i in range(v.T.size):
        out[i] = v.T[i]


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("shape", [(3, 5), (1, 4), (0, 3), (4, 4)])
def test_as_numpy(device, shape, checked):
    a = np.arange(np.prod(shape), dtype=np.int64).reshape(shape)
    with debug(checked):
        agree(turned, device, np.zeros(shape[::-1], np.int64), a)
        agree(turned, device, np.zeros(shape[::-1], np.int64), np.asfortranarray(a)[:, ::-1])
        agree(
            cube,
            device,
            np.zeros((3, 2, 5), np.int64),
            np.arange(30).reshape(5, 2, 3)[::-1],
        )
        agree(flat, device, np.zeros(3), np.arange(3.0))


@kernel
def beyond(out, a):
    for i in range(out.size):
        out[i] = a.T[i, 1]


def test_bounds_are_those_of_the_view(device):
    out = on(device, np.zeros(3))
    with debug():
        beyond(out, on(device, np.ones((2, 3))))
        with pytest.raises(BoundsError, match=r"a view of argument 'a', axis 0: got index 2 .*axis extent 2"):
            beyond(out, on(device, np.ones((3, 2))))


@kernel
def filled(out, v):
    for i, j in ndrange(v.shape[0], v.shape[0]):
        out.T[i, j] = v[i]


def test_stores_through_the_view(device):
    v = np.arange(3.0)
    (got, _) = launch(filled, device, np.zeros((3, 3)), v)
    np.testing.assert_array_equal(got, np.broadcast_to(v, (3, 3)))
