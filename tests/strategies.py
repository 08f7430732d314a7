"""Hypothesis strategies: NumPy arrays, contiguous, strided, reversed, offset, transposed, repeated, empty, 0-d."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from variants_by_turn import HALF

from pyarray import dtypes

TIMES = int(os.environ.get("PYARRAY_TEST_TIMES", "1"))  # make test-long draws so many times as often
PERCENT = int(os.environ.get("PYARRAY_TEST_PERCENT", "50"))  # and otherwise so many of a hundred


def examples(count: int, **more: Any) -> settings:
    """The settings of a test with `count` drawn cases, without a deadline: the first one compiles kernels."""
    quiet = (HealthCheck.too_slow, HealthCheck.function_scoped_fixture)
    drawn = -(-count * TIMES * PERCENT // 100)
    return settings(deadline=None, suppress_health_check=quiet, max_examples=drawn, **more)


def known_to_numpy(x: np.ndarray) -> np.ndarray:
    """`x`, or of a type of ml_dtypes its values as float32: NumPy's functions don't know those types."""
    return x.astype(np.float32) if dtypes.asdtype(x.dtype) in dtypes.EXTENSIONS else x


def half_of(rows: Sequence[Any]) -> st.SearchStrategy[Any]:
    """Every second of them, those between on the next day, and all in a long run: tests compile kernels for each."""
    return st.sampled_from(rows if TIMES > 1 else rows[HALF::2])


dtype_rows = half_of(dtypes.ALL)
# For functions that only move and compare elements: one dtype of each size, kind and comparison. Kernels of
# other types differ in the type's name alone.
few_dtypes = half_of(
    [dtypes.asdtype(name) for name in ("bool", "float32", "bfloat16", "int16", "uint64", "complex128")]
)
array_shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5)


def basic_keys(shape: tuple[int, ...]) -> st.SearchStrategy:
    """Basic indices of `shape`: integers, slices with any step, Ellipsis and newaxis."""
    return hnp.basic_indices(shape, min_dims=0, max_dims=6, allow_newaxis=True, allow_ellipsis=True)


def as_view(x: np.ndarray, key: object) -> np.ndarray:
    """`x[key]` as an array even where NumPy would return a scalar."""
    result = x[key]
    return result if isinstance(result, np.ndarray) else x[(*key, ...) if isinstance(key, tuple) else (key, ...)]


@st.composite
def numpy_views(draw: st.DrawFn, dtype: Any = None, shape: tuple[int, ...] | None = None):
    """A NumPy array of distinct values (as far as the dtype goes) of any layout."""
    dtype = dtype_rows if dtype is None else dtype
    row = draw(dtype) if isinstance(dtype, st.SearchStrategy) else dtypes.asdtype(dtype)
    sizes = draw(array_shapes) if shape is None else shape
    base = (np.arange(int(np.prod(sizes))) % 120).reshape(sizes).astype(row.numpy)
    for change in draw(st.lists(st.sampled_from(("index", "reverse", "transpose", "repeat")), max_size=3)):
        if change == "index":
            base = as_view(base, draw(basic_keys(base.shape)))
        elif change == "reverse":
            base = as_view(base, tuple(slice(None, None, -1) for _ in base.shape))
        elif change == "transpose":
            base = base.transpose(draw(st.permutations(range(base.ndim))))
        elif base.ndim < 5:
            # broadcast_to is read-only, as_strided is not: it stands for the repeated axes of other libraries
            bits = base.view(f"u{row.itemsize}") if row in dtypes.EXTENSIONS else base
            repeated = np.lib.stride_tricks.as_strided(bits, (2, *base.shape), (0, *base.strides))
            base = repeated.view(base.dtype)
    return base


def device_subset(items, turn, device):
    """The `items` that a test runs on a device: all, or on HIP every third, so that three tests with successive
    turns reach each. There a compiler is started for each kernel, whose text other devices have compiled."""
    return rotating_subset(items, turn, 3) if device.startswith("hip") else items


def rotating_subset(items, turn, parts):
    """Every `parts`-th item from `turn` on, so that `parts` tests with successive turns reach each; in a long run
    all of them."""
    return items if TIMES > 1 else items[turn % parts :: parts]
