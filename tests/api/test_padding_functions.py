"""Padding against NumPy's: every mode, widths, layouts, axes without elements, arguments that don't fit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import device_subset, examples, numpy_views

import pyarray as pa

FEW = examples(40)
MODES = (
    "constant", "edge", "linear_ramp", "maximum", "mean", "median", "minimum", "reflect", "symmetric", "wrap",
)  # fmt: skip


def same(ours, theirs):
    assert ours.dtype == theirs.dtype
    # reflections through an end subtract again and again, so errors are those of the largest number
    scale = np.max(np.abs(theirs), initial=0, where=np.isfinite(theirs)) if theirs.dtype.kind in "fc" else 0
    np.testing.assert_allclose(pa.asnumpy(ours), theirs, rtol=1e-6, atol=1e-9 + 1e-5 * float(scale))


@pytest.mark.slow
@examples(20)
@given(numpy_views(dtype=pa.float32), st.sampled_from(MODES), st.data())
def test_modes(x, mode, data):
    width = [tuple(data.draw(st.integers(0, 9)) for _ in range(2)) for _ in range(x.ndim)]
    options = {}
    if mode in ("maximum", "mean", "median", "minimum") and data.draw(st.booleans()):
        options = {"stat_length": data.draw(st.integers(1, 3))}
    if mode in ("reflect", "symmetric"):
        options = {"reflect_type": data.draw(st.sampled_from(["even", "odd"]))}
    if mode in ("constant", "linear_ramp"):
        name = "constant_values" if mode == "constant" else "end_values"
        options = {name: [tuple(data.draw(st.integers(-5, 5)) for _ in range(2)) for _ in range(x.ndim)] or 3}
    if not x.ndim:
        width, options = 0, {}
    try:
        expected = np.pad(x, width, mode, **options)
    except ValueError:
        with pytest.raises(ValueError, match="pad"):
            pa.pad(pa.asarray(x), width, mode, **options)
        return
    if mode == "linear_ramp" and not x.size:
        return
    same(pa.pad(pa.asarray(x), width, mode, **options), expected)


@pytest.mark.parametrize("mode", MODES)
def test_types(mode, device):
    kinds = ("int8", "int64") if mode in ("maximum", "median", "minimum") else ("int8", "int64", "complex64")
    for dtype in device_subset(kinds, MODES.index(mode), device):
        x = np.array([[1, 5, 2, 7], [3, 3, 9, 4]]).astype(dtype)
        same(pa.pad(pa.asarray(x, device=device), ((1, 2), (3, 4)), mode), np.pad(x, ((1, 2), (3, 4)), mode))


@pytest.mark.parametrize("width", [2, (1, 2), ((1, 2),), ((1, 2), (0, 3)), [[1], [2]]])
def test_widths(width):
    x = np.arange(6).reshape(2, 3)
    same(pa.pad(x, width, "reflect"), np.pad(x, width, "reflect"))


def test_widths_by_axis():
    """NumPy takes them since 2.4."""
    x = np.arange(6).reshape(2, 3)
    for width, pairs in (({1: (2, 0)}, ((0, 0), (2, 0))), ({-2: 3}, ((3, 3), (0, 0)))):
        same(pa.pad(x, width, "reflect"), np.pad(x, pairs, "reflect"))


def test_empty_mode_leaves_the_middle():
    x = pa.arange(6).reshape(2, 3)
    y = pa.pad(x, 2, mode="empty")
    assert y.shape == (6, 7)
    assert y[2:4, 2:5].tolist() == x.tolist()


def test_errors():
    with pytest.raises(ValueError, match="linear_ramp"):
        pa.pad([1], 1, mode="lineer")
    with pytest.raises(TypeError, match="constant_values"):
        pa.pad([1], 1, end_values=3)
    with pytest.raises(ValueError, match="0 or more"):
        pa.pad([1], -1)
    with pytest.raises(TypeError, match="integers"):
        pa.pad([1], 1.5)
    with pytest.raises(ValueError, match="each of 1 axes"):
        pa.pad([1], (1, 2, 3))
    with pytest.raises(ValueError, match="even"):
        pa.pad([1, 2], 1, mode="reflect", reflect_type="strange")
