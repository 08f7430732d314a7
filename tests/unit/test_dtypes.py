"""Promotion against NumPy where the standard and NumPy agree, and against the standard where they don't."""

import itertools
import pickle

import numpy as np
import pytest

from pyarray import dtypes
from pyarray.dtypes import promote, promote_scalar, result_type

INTEGERS = [row for row in dtypes.ALL if row.kind in "iu"]
FLOATING = [row for row in dtypes.ALL if row.kind in "fc" and row.name not in ("float16", "bfloat16")]


def standard_pairs():
    """The pairs that the standard's tables of promotion hold, each in one order."""
    yield dtypes.bool_, dtypes.bool_
    for a, b in itertools.combinations_with_replacement(INTEGERS, 2):
        if {a.name, b.name} != {"uint64", a.name if a.kind == "i" else b.name} or a.kind == b.kind:
            yield a, b
    yield from itertools.combinations_with_replacement(FLOATING, 2)


@pytest.mark.parametrize(("a", "b"), list(standard_pairs()), ids=str)
def test_standard_promotion_is_numpys(a, b):
    expected = dtypes.asdtype(np.result_type(a.numpy, b.numpy))
    assert promote(a, b) is promote(b, a) is expected


@pytest.mark.parametrize("signed", [row for row in INTEGERS if row.kind == "i"], ids=str)
def test_uint64_and_signed_have_no_common_type(signed):
    with pytest.raises(TypeError, match="astype"):
        promote(dtypes.uint64, signed)


def test_halves():
    assert promote(dtypes.float16, dtypes.bfloat16) is dtypes.float32
    assert promote(dtypes.float16, dtypes.complex64) is dtypes.complex64
    assert promote(dtypes.bfloat16, dtypes.float64) is dtypes.float64


@pytest.mark.parametrize("row", dtypes.ALL, ids=str)
def test_integers_take_the_floating_type(row):
    for integer in INTEGERS:
        if row.kind in "fc":
            assert promote(row, integer) is row


@pytest.mark.parametrize("kinds", ["fc", "biu"])
def test_promotion_is_associative_within_a_family(kinds):
    family = [row for row in dtypes.ALL if row.kind in kinds and row is not dtypes.uint64]
    for a, b, c in itertools.product(family, repeat=3):
        assert promote(promote(a, b), c) is promote(a, promote(b, c))


@pytest.mark.parametrize("row", dtypes.ALL, ids=str)
@pytest.mark.parametrize("scalar", [bool, int, float, complex])
def test_python_scalars_are_weak(row, scalar):
    found = promote_scalar(row, scalar)
    if dtypes.PYTHON_KIND[scalar] == row.kind or "biufc".index(dtypes.PYTHON_KIND[scalar]) < "biufc".index(
        row.kind
    ):
        assert found is row
    if (
        row.kind in "iufc"
        and row is not dtypes.bfloat16
        and not (row.kind in "iu" and scalar in (float, complex))
    ):
        assert found is dtypes.asdtype(np.result_type(row.numpy, scalar(1)))


def test_result_type():
    assert result_type(1, 2.0) is dtypes.float64
    assert result_type(dtypes.int8, 2.0) is dtypes.float64
    assert result_type(np.dtype("float32"), "int64", 3) is dtypes.float32
    with pytest.raises(ValueError, match="at least one array, dtype or scalar, got none; give one"):
        result_type()


def test_names_and_identity():
    for row in dtypes.ALL:
        assert dtypes.asdtype(row.name) is dtypes.asdtype(row.numpy) is row
        assert row == row.name
        assert pickle.loads(pickle.dumps(row)) is row
        assert row(1).dtype == row.numpy
    for bad in ("object", "datetime64[s]", object, None, np.dtype("U3"), np.dtype("V2")):
        with pytest.raises(TypeError, match="is not supported"):
            dtypes.asdtype(bad)


def test_can_cast():
    assert dtypes.can_cast(dtypes.int8, dtypes.int64)
    assert not dtypes.can_cast(dtypes.int64, dtypes.int8)
    assert not dtypes.can_cast(dtypes.uint64, dtypes.int64)
