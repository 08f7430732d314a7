"""Parallel loops over several ranges whose sizes have a product of more than 64 bits, or are not positive;
bounds of loops that are no int64."""

import math

import numpy as np
import pytest
from kernel_tools import on

from pyarray.api.manipulation import broadcast_to
from pyarray.array_convert import asnumpy
from pyarray.dtypes import int32, int64, uint64
from pyarray.errors import BoundsError
from pyarray.jit.kernel import func, kernel
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


@kernel
def between(out, first: uint64, last: uint64):
    for _ in range(first, last):
        atomic_add(out, 0, 1)


@kernel
def down(out, first: uint64, last: int64):
    for _ in range(first, last, -1):
        atomic_add(out, 0, 1)


@func
def length(bounds, step):
    count = 0
    for _ in range(bounds[0], bounds[1], step):
        count += 1
    return count


@kernel
def within(out, bounds, step):
    for i in range(1):
        out[i] = length(bounds, step)


@kernel
def left(out, last: uint64):
    for k in range(1):
        for i in range(3, last):
            if i == 7:
                break
            out[k] += 1


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
    out[0] = 0
    for n, m in [(2**40, 2**40), (2**63, 3)]:
        sizes = on(device, np.array([n, m], np.uint64))
        what = r"ndrange of 2\*\*63 iterations or more: kernel" if n < 2**63 else f"range bound {n}: kernel"
        with debug(), pytest.raises(BoundsError, match=f"^{what}.*\nCallstack:\n  read"):
            read(out, sizes)
    with debug():
        assert runs(read, out, on(device, np.array([2, 3], np.uint64))) == 6


def test_bounds_that_are_no_int64_are_reported(device):
    out, huge = on(device, np.zeros(1, np.int64)), 2**63
    unsigned = [on(device, np.array(v, np.uint64)) for v in ((2, 9), (huge, huge + 3), (0, 2**64 - 1))]
    right = [(between, 2, 6, 4), (between, 6, 2, 0), (down, 5, -1, 6), (within, unsigned[0], 3, 3)]
    right.append((left, 2**64 - 1, 4))
    wrong = [(between, huge, huge + 3), (down, huge + 1, 0), (within, unsigned[1], 1)]
    wrong.append((within, unsigned[2], HUGE))
    with debug():
        for k, *args, expected in right:
            assert runs(k, out, *args) == expected
        for k, *args in wrong:
            what = r"^range bound \d+: kernel\[\w+\] tid=0: loop variables are int64, so bounds are below"
            with pytest.raises(BoundsError, match=what) as caught:
                k(out, *args)
            assert caught.value.index >= huge
            assert [f.function for f in caught.value.frames] == [k.__name__, "length"][: 1 + (k is within)]
    for k, *args, expected in right:
        assert runs(k, out, *args) == expected
