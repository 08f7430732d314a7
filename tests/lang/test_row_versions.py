"""Which kernels a loop over cached rows has, and which rows they take."""

import re

import numpy as np
import pytest

import pyarray as pa
from pyarray.driver.kernel_step import ROW_SHARED
from pyarray.lang.markers import unordered


@pa.kernel
def centred(out, a, b):
    for i in range(a.shape[0]):
        m = a[0, 0] * 0
        for j in unordered(range(a.shape[1])):
            m += a[i, j] * b[i, j]
        for j in unordered(range(a.shape[1])):
            out[i, j] = a[i, j] * b[i, j] - m


@pa.kernel
def weighted(out, a, w):
    for i in range(a.shape[0]):
        m = a[0, 0] * 0
        for j in unordered(range(a.shape[1])):
            m += a[i, j] * w[j]
        for j in unordered(range(a.shape[1])):
            out[i, j] = a[i, j] * w[j] - m


@pa.kernel
def shifted(out, a):
    for i in range(a.shape[0]):
        m = a[0, 0] * 0
        for j in unordered(range(a.shape[1])):
            m += a[i, j]
        for j in unordered(range(a.shape[1])):
            out[i, j] = a[i, j] - m


def lowered(kernel, dtypes, target, checked=False):
    shapes = [(2, 64)] * len(dtypes) if kernel is not weighted else [(2, 64), (2, 64), (64,)]
    arrays = [pa.zeros(s, dtype=d) for s, d in zip(shapes, dtypes, strict=True)]
    return kernel._lowered(kernel.bind(tuple(arrays)), checked, target)


@pytest.mark.parametrize(
    "dtypes", [("float64", "float16", "float64"), ("float32",) * 3, ("float64",) * 3, ("int8",) * 3]
)
def test_rows_in_shared_memory_are_for_devices_that_they_are_compiled_for(dtypes):
    """The text has them from sm_90 on; what came before has no blocks with as many bytes."""
    program = lowered(centred, dtypes, "cuda")
    steps = [step for step in program.steps if step.shared]
    assert steps
    assert [step.shared for step in steps] == [ROW_SHARED] * len(steps)
    assert ROW_SHARED > 166_912  # bytes of a block of sm_80
    assert program.text.count("#if !PA_CUDA || __CUDA_ARCH__ >= 900") == len(steps)
    assert not any(step.shared for step in lowered(centred, dtypes, "hip").steps)


def test_guards_leave_no_row_to_two_kernels():
    """Of rows of whole vectors, at aligned addresses; and a kernel without guards takes the others."""
    for dtype in ("float32", "float16"):
        *guarded, last = lowered(centred, (dtype,) * 3, "cuda").steps
        assert not last.guards
        by_teams = [step for step in guarded if re.search("_(short|long)", step.symbol)]
        for columns in range(8, 12_000, 8):
            taken = [
                step.symbol
                for step in by_teams
                if all(g.low <= columns <= g.high for g in step.guards if g.mask == -1 and g.high > 8)
            ]
            assert len(taken) <= 1, (columns, taken)


@pytest.mark.parametrize(
    ("kernel", "dtypes", "most", "most_pairs"),
    [
        (shifted, ("float16",) * 2, 2048, 1024), (shifted, ("uint8",) * 2, 2048, 1024),
        (centred, ("float16",) * 3, 1024, 1024), (weighted, ("float16", "float16", "float32"), 512, 512),
        (shifted, ("float32",) * 2, 256, 512), (centred, ("float32",) * 3, 256, 256),
    ],
)  # fmt: skip
def test_short_rows_of_all_lengths_have_kernels(kernel, dtypes, most, most_pairs):
    """Rows that aren't of whole vectors: those at all addresses, and those of pairs, which come first."""
    steps = [s for s in lowered(kernel, dtypes, "cuda").steps if re.search("_(even|single|edged)[0-9]+_", s.symbol)]
    sizes = {s.symbol: next((g.low, g.high) for g in s.guards if g.mask == -1 and g.high > 8) for s in steps}
    anywhere = [n for name, (low, high) in sizes.items() if "even" not in name for n in range(low, high + 1)]
    assert anywhere == list(range(24, most + 1))
    pairs = [n for name, (low, high) in sizes.items() if "even" in name for n in range(low, high + 1)]
    assert pairs == list(range(pairs[0], most_pairs + 1))
    assert ["even" in s.symbol for s in steps[:2]] == [True, True]


def test_single_elements_are_aligned():
    """A complex number may lie where its parts may, and is loaded as a whole."""
    text = lowered(weighted, ("complex64",) * 3, "cuda", True).text
    test = text.partition("const bool aligned =")[2].partition(";")[0]
    assert "v_w.data" in test
    assert "v_out.data" in test
    assert "dense && aligned && row_size >= 24" in text
    release = [step for step in lowered(weighted, ("complex64",) * 3, "cuda").steps if "single" in step.symbol]
    assert [sum(g.mask == np.dtype("complex64").itemsize - 1 for g in step.guards) for step in release] == [3]
