"""Parallel loops over several ranges whose sizes have a product of more than 64 bits, or are not positive."""

import math

import numpy as np
import pytest
from kernel_tools import on

from pyarray.api.manipulation import broadcast_to
from pyarray.array_convert import asnumpy
from pyarray.dtypes import int32, int64
from pyarray.jit.kernel import kernel
from pyarray.jit.mode import debug
from pyarray.jit.saved import load_kernel
from pyarray.lang.markers import atomic_add, ndrange

HUGE = 2**62
SIZES = [(2, 3, 2), (HUGE, 1, 1), (2, 2**60, 2), (0, 2**61, 7), (HUGE, HUGE // 2, 0), (-1, -4, 3), (3, 5, 1)]


@kernel
def constant(out):
    for _, _ in ndrange(4, HUGE):
        atomic_add(out, 0, 1)


@kernel
def counted(out, n, m: int64, k: int32):
    twice = 2 * m
    for _, _, _ in ndrange(n, (1, twice + 1), k):
        atomic_add(out, 0, 1)


@kernel
def shaped(out, a, b):
    for _, _ in ndrange(a.shape[0], b.size):
        atomic_add(out, 0, 1)


@kernel
def read(out, sizes):
    for _, _ in ndrange(sizes[0], sizes[1]):
        atomic_add(out, 0, 1)


def runs(k, out, *args):
    """How many iterations ran; None where the launch was refused."""
    out[0] = 0
    try:
        k(out, *args)
    except ValueError as error:
        if "iterations, and 2**63 - 1 is the most; nothing was run" not in str(error):
            raise
        return None if asnumpy(out)[0] == 0 else "some ran"
    return int(asnumpy(out)[0])


@pytest.mark.parametrize("checked", [False, True])
def test_more_iterations_than_64_bits(device, checked, tmp_path):
    out = on(device, np.zeros(1, np.int64))
    with debug(checked):
        what = r"kernel 'constant': the parallel loop at test_extents.py:\d+ would have 4 \* \d+ = \d+ iter"
        with pytest.raises(ValueError, match=what):
            constant(out)
        for n, m, k in SIZES:
            sizes = (n, 2 * m, k)
            expected = math.prod(sizes) if min(sizes) > 0 else 0
            assert runs(counted, out, n, m, k) == (None if expected >= 2**63 else expected)
        counted.save(tmp_path / "counted")
        saved = load_kernel(tmp_path / "counted")
        assert [runs(saved, out, n, 3, 2) for n in (2, HUGE)] == [24, None]


def test_sizes_of_views_and_from_memory(device):
    out, one = on(device, np.zeros(1, np.int64)), on(device, np.zeros(1, np.int8))
    for n, m in [(2, 3), (2**40, 2**40), (2**40, 0)]:
        expected = None if n * m >= 2**63 else n * m
        assert runs(shaped, out, broadcast_to(one, (n,)), broadcast_to(one, (m,))) == expected
        sizes = on(device, np.array([n, m]))  # only the device knows them: nothing is run
        assert runs(read, out, sizes) == (expected or 0)
    assert runs(read, out, on(device, np.array([-2, -3]))) == 0
