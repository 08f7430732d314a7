"""Promotion against NumPy where the standard and NumPy agree, and against the standard where they don't."""

import itertools
import pickle
import sys

import ml_dtypes
import numpy as np
import pytest

import pyarray as pa
from pyarray import _core, dtypes
from pyarray.dtypes import promote, promote_scalar, result_type
from pyarray.lang.ir import static_key
from pyarray.tune import tuning_key as tune_key

INTEGERS = [row for row in dtypes.ALL if row.kind in "iu"]
FLOATING = [row for row in dtypes.ALL if row.kind in "fc" and not row.is_narrow]


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
    assert promote(dtypes.float8_e4m3fn, dtypes.float8_e5m2) is dtypes.float32
    assert promote(dtypes.float8_e5m2, dtypes.float16) is dtypes.float32


def test_narrow_types():
    narrow = {row.name: row.greatest_bits for row in dtypes.ALL if row.is_narrow}
    assert narrow == {"float16": 0x7C00, "bfloat16": 0x7F80, "float8_e4m3fn": 0x7E, "float8_e5m2": 0x7C}
    for row in dtypes.ALL:
        assert row.arithmetic is (dtypes.float32 if row.name in narrow else row)


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
    if dtypes.PYTHON_KIND[scalar] == row.kind or "biufc".index(dtypes.PYTHON_KIND[scalar]) < "biufc".index(row.kind):
        assert found is row
    if row.kind in "iufc" and row not in dtypes.EXTENSIONS and not (row.kind in "iu" and scalar in (float, complex)):
        assert found is dtypes.asdtype(np.result_type(row.numpy, scalar(1)))


def test_result_type():
    assert result_type(1, 2.0) is dtypes.float64
    assert result_type(dtypes.int8, 2.0) is dtypes.float64
    assert result_type(np.dtype("float32"), "int64", 3) is dtypes.float32
    with pytest.raises(ValueError, match="at least one array, dtype or scalar, got none; give one"):
        result_type()


def test_names_and_identity():
    for row in dtypes.ALL:
        for name in (
            row,
            row.name,
            row.numpy,
            row.numpy.type,
            row.numpy.str if row not in dtypes.EXTENSIONS else row,
        ):
            assert dtypes.asdtype(name) is row
        assert np.dtype(row) is row.numpy
        assert pickle.loads(pickle.dumps(row)) is row
        assert row(1).dtype == row.numpy
    for bad in (
        "object",
        "datetime64[s]",
        object,
        None,
        np.dtype("U3"),
        np.dtype("V2"),
        np.dtype("V1"),
        3,
        [1],
        np.ones(2),
    ):
        with pytest.raises(TypeError, match="is not supported"):
            dtypes.asdtype(bad)


PUBLIC = [(row, getattr(pa, row.name)) for row in dtypes.ALL]


@pytest.mark.parametrize(("row", "public"), PUBLIC, ids=str)
def test_public_types_are_numpys(row, public):
    owner = ml_dtypes if row in dtypes.EXTENSIONS else np
    assert public is getattr(owner, "bool_" if row.name == "bool" else row.name)
    a = pa.zeros(2, dtype=public)
    assert a._dtype is row
    assert isinstance(a.dtype, np.dtype)
    for name in (public, row.name, row.numpy, np.zeros(1, public).dtype):
        assert a.dtype == name
        assert pa.zeros(2, dtype=name).dtype is a.dtype
        assert a.astype(name).dtype is a.dtype
    assert a.dtype != ("int8" if row.name != "int8" else "int16")
    assert np.dtype(a.dtype) is a.dtype
    assert np.zeros(2, dtype=public).dtype == a.dtype
    assert type(public(1)) is public
    assert isinstance(public(1), np.generic)
    assert hash(a.dtype) == hash(np.dtype(public))


def test_answers_about_types_are_numpys():
    for row, public in PUBLIC:
        for other, also in PUBLIC:
            try:
                expected = promote(row, other).numpy
            except TypeError:
                with pytest.raises(TypeError, match="astype"):
                    pa.result_type(public, also)
                continue
            found = pa.result_type(public, np.dtype(also))
            assert isinstance(found, np.dtype)
            assert found is expected
            assert pa.promote_types(public, other.name) is expected
        assert pa.isdtype(np.dtype(public), public)
        assert pa.can_cast(np.dtype(public), public)
    assert pa.result_type(pa.ones(2, dtype="int8"), 1.5) == np.float64
    assert pa.common_type(pa.ones(2, dtype="float32")) is np.float32
    assert pa.finfo(pa.complex64).dtype == np.float32
    assert all(isinstance(d, np.dtype) for d in pa.__array_namespace_info__().dtypes().values())
    assert all(isinstance(d, np.dtype) for d in pa.__array_namespace_info__().default_dtypes().values())
    assert pa.dtype is np.dtype


@pytest.mark.parametrize(("row", "public"), PUBLIC, ids=str)
def test_a_type_is_one_constant_by_whichever_name(row, public):
    key = static_key(public)
    assert static_key(np.dtype(public)) == static_key(row) == key
    assert all(static_key(other) != key for _, other in PUBLIC if other is not public)
    assert static_key(row.name) != key  # a text
    assert dtypes.shown(public) == dtypes.shown(np.dtype(public)) == row.name
    assert tune_key.plain_data(public) == tune_key.plain_data(np.dtype(public)) == ["dtype", row.name]


def test_annotations_take_any_name_of_a_type():
    for row, public in PUBLIC:
        for name in (public, row.name, row.numpy):
            assert repr(pa.BufferView[name]) == f"BufferView[{row}]"
            assert repr(pa.In[pa.ndarray[name, 2]]) == f"In[ndarray[{row}, 2]]"
    assert repr(pa.In[pa.float32]) == "In[float32]"


def test_can_cast():
    assert dtypes.can_cast(dtypes.int8, dtypes.int64)
    assert not dtypes.can_cast(dtypes.int64, dtypes.int8)
    assert not dtypes.can_cast(dtypes.uint64, dtypes.int64)


def test_the_core_keeps_the_references_that_it_has():
    held = [x for row in dtypes.ALL for x in (row, row.numpy, row.numpy.type)]
    before = [sys.getrefcount(x) for x in held]
    for _ in range(10):
        _core.register_dtypes(dtypes.ALL, dtypes.asdtype)
    assert [sys.getrefcount(x) for x in held] == before
