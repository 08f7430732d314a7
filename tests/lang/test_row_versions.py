"""Which kernels a loop over cached rows has, and which rows they take."""

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


def lowered(kernel, dtypes, target, checked=False):
    shapes = [(2, 64)] * 3 if kernel is centred else [(2, 64), (2, 64), (64,)]
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
        by_teams = [step for step in guarded if not step.row_bytes and "edged" not in step.symbol]
        for columns in range(8, 12_000, 8):
            taken = [
                step.symbol
                for step in by_teams
                if "single" not in step.symbol
                and all(g.low <= columns <= g.high for g in step.guards if g.mask == -1 and g.high > 8)
            ]
            assert len(taken) <= 1, (columns, taken)


def test_single_elements_are_aligned():
    """A complex number may lie where its parts may, and is loaded as a whole."""
    text = lowered(weighted, ("complex64",) * 3, "cuda", True).text
    test = text.partition("const bool aligned =")[2].partition(";")[0]
    assert "v_w.data" in test
    assert "v_out.data" in test
    assert "dense && aligned && row_size >= 24" in text
    release = [step for step in lowered(weighted, ("complex64",) * 3, "cuda").steps if "single" in step.symbol]
    assert [sum(g.mask == np.dtype("complex64").itemsize - 1 for g in step.guards) for step in release] == [3]
