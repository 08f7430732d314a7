"""Parallel loops over several ranges whose sizes have a product of more than 64 bits, or are not positive;
bounds of loops that are no int64."""

import math

import numpy as np
import pytest
from kernel_tools import on

from pyarray.api.standard.manipulation import broadcast_to
from pyarray.array_convert import asnumpy
from pyarray.dtypes import int32, int64, uint64
from pyarray.errors import BoundsError, CompileError
from pyarray.jit.kernel import func, kernel
from pyarray.jit.launch_state import debug
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
def down(out, first: uint64):
    for _ in range(first, -1, -1):
        atomic_add(out, 0, 1)


@kernel
def by(out, last: int64, step: uint64):
    for _ in range(0, last, step):
        atomic_add(out, 0, 1)


@func
def length(bounds):
    count = 0
    for _ in range(bounds[0], bounds[1]):
        count += 1
    return count


@kernel
def within(out, bounds):
    for i in range(1):
        out[i] = length(bounds)


@kernel
def pairs(out, bounds):
    for _, _ in ndrange((bounds[0], bounds[1]), 2):
        atomic_add(out, 0, 1)


@kernel
def signed(out, bounds):
    for _, _ in ndrange((int(bounds[0]), int(bounds[1])), bounds[0]):
        atomic_add(out, 0, 1)


@kernel(wraparound=True)
def sliced(out, v, n):
    for k in range(1):
        out[0], out[1], out[2] = v[: n[k]].size, v[n[k] :].size, v[:: n[k]].size
        if n[k] < v.shape[0]:
            out[3] = v[n[k]]


@kernel(wraparound=True)
def picked(out, v, n):
    for k in range(1):
        out[k] = v[n[k]]


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
        what = r"kernel 'constant': the parallel loop at test_loop_extents.py:\d+ would have 4 \* \d+ = \d+ iter"
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
        what = r"ndrange of 2\*\*63 iterations or more: kernel"
        with debug(), pytest.raises(BoundsError, match=f"^{what}.*\nCallstack:\n  read"):
            read(out, sizes)
    with debug():
        assert runs(read, out, on(device, np.array([2, 3], np.uint64))) == 6


@pytest.mark.parametrize("checked", [False, True])
def test_bounds_that_may_be_no_int64_are_refused(device, checked):
    out, bounds = on(device, np.zeros(1, np.int64)), on(device, np.array([2, 9], np.uint64))
    calls = [(between, 2, 9), (down, 5), (by, 9, 2), (within, bounds), (pairs, bounds)]
    with debug(checked):
        for k, *args in calls:
            what = r"is a uint64, and the loop's variable an int64(.*\n)*.*convert it with int\(\.\.\.\)"
            with pytest.raises(CompileError, match=what):
                k(out, *args)
        assert runs(left, out, 2**64 - 1) == 4
        assert runs(signed, out, bounds) == 14


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("n", [2**64 - 1, 2**64 - 3, 2**63, 2**63 - 1, 3])
def test_slices_by_numbers_that_are_no_int64(device, n, checked):
    values = np.arange(10)
    out, v = on(device, np.full(4, -1)), on(device, values)
    with debug(checked):
        sliced(out, v, on(device, np.array([n], np.uint64)))
    got = [values[:n].size, values[n:].size, values[::n].size, values[n] if n < 10 else -1]
    assert asnumpy(out).tolist() == got


def test_an_unsigned_index_never_counts_from_the_end(device):
    out, v = on(device, np.zeros(1, np.int64)), on(device, np.arange(10))
    with debug(), pytest.raises(BoundsError, match=f"got index {2**64 - 1} "):
        picked(out, v, on(device, np.array([2**64 - 1], np.uint64)))
