"""Dtypes as other libraries meet them: what NumPy, SciPy, dask, pandas and xarray ask of `a.dtype`."""

import ml_dtypes
import numpy as np
import pytest

import pyarray as pa
from pyarray import dtypes

ROWS = pytest.mark.parametrize("row", dtypes.ALL, ids=str)
KINDS = {
    "b": np.bool_, "i": np.signedinteger, "u": np.unsignedinteger, "f": np.floating, "c": np.complexfloating,
}  # fmt: skip


@ROWS
def test_numpy_asks(row):
    a, x = pa.zeros(3, dtype=row.name), np.zeros(3, row.numpy)
    for fact in (
        "name",
        "char",
        "kind",
        "num",
        "type",
        "str",
        "itemsize",
        "alignment",
        "byteorder",
        "isnative",
    ):
        assert getattr(a.dtype, fact) == getattr(x.dtype, fact)
    assert np.issubdtype(a.dtype, KINDS[row.kind]) == (row not in dtypes.EXTENSIONS)
    assert pa.issubdtype(a.dtype, KINDS[row.kind])
    assert np.issubdtype(a.dtype, np.generic)
    assert np.result_type(a.dtype, x.dtype) == x.dtype
    assert np.can_cast(a.dtype, x.dtype, "equiv")
    assert np.empty(2, dtype=a.dtype).dtype == x.dtype
    assert np.empty_like(x, dtype=a.dtype).dtype == a.dtype
    assert x.astype(a.dtype).dtype == a.dtype
    assert {x.dtype: 1}[a.dtype] == 1


@ROWS
def test_arrays_of_one_library_by_dtypes_of_the_other(row):
    x = np.arange(4).astype(row.numpy)
    a = pa.asarray(x)
    assert pa.asarray(x, dtype=x.dtype).dtype is a.dtype
    assert a.astype(x.dtype.type).dtype is a.dtype
    assert pa.zeros_like(a, dtype=x.dtype).dtype is a.dtype
    assert a.view(x.dtype).dtype is a.dtype
    assert np.asarray(a, dtype=a.dtype).dtype == x.dtype
    assert np.array_equal(np.asarray(a), x)


def test_limits_are_numpys():
    for name in ("float16", "float32", "float64"):
        a = pa.zeros(1, dtype=name)
        assert float(np.finfo(a.dtype).eps) == pa.finfo(a.dtype).eps
    for row in dtypes.of_kinds("iu"):
        a = pa.zeros(1, dtype=row.numpy)
        assert np.iinfo(a.dtype).max == pa.iinfo(a.dtype).max
    a = pa.zeros(1, dtype=pa.bfloat16)
    assert float(ml_dtypes.finfo(a.dtype).eps) == pa.finfo(a.dtype).eps


def test_mixed_operands():
    a = pa.ones(3, dtype="float32")
    assert np.result_type(a.dtype, np.float64) == np.float64
    assert (a * np.ones(3, a.dtype)).dtype == np.float32
    assert np.result_type(a, np.int8).kind == "f"
    assert [d for d in (np.dtype("float32"), np.dtype("int8")) if d == a.dtype] == [np.dtype("float32")]
    assert a.dtype in (np.float32, np.float64)
    assert a.dtype not in (np.int8, "int16")


def test_scipy():
    pytest.importorskip("scipy")
    from scipy import linalg, sparse

    a = pa.asarray(np.eye(3, dtype=np.float32))
    assert sparse.csr_matrix(pa.asnumpy(a), dtype=a.dtype).dtype == a.dtype
    assert sparse.eye(3, dtype=a.dtype).dtype.char == a.dtype.char == "f"
    assert linalg.get_blas_funcs("gemm", dtype=a.dtype).typecode == "s"
    assert linalg.get_lapack_funcs("gesv", dtype=pa.ones(2, dtype=pa.complex128).dtype).typecode == "z"


def test_dask():
    da = pytest.importorskip("dask.array")
    for row in dtypes.ALL:
        a = pa.asarray(np.arange(6).astype(row.numpy))
        lazy = da.from_array(a, chunks=3, asarray=False)
        assert lazy.dtype is not None
        assert lazy.dtype == a.dtype == lazy._meta.dtype
        assert np.dtype(lazy.dtype) == row.numpy
        assert lazy.astype(pa.float32).dtype == np.float32


def test_pandas():
    pd = pytest.importorskip("pandas")
    a = pa.asarray(np.arange(3, dtype=np.float32))
    assert pd.Series(pa.asnumpy(a), dtype=a.dtype).dtype == a.dtype
    assert pd.api.types.is_float_dtype(a.dtype)
    assert not pd.api.types.is_integer_dtype(a.dtype)
    assert pd.Series([1, 2], dtype=pa.int16).dtype == pa.int16


def test_xarray():
    xr = pytest.importorskip("xarray")
    a = pa.asarray(np.arange(6, dtype=np.float32).reshape(2, 3))
    named = xr.DataArray(a, dims=("x", "y"))
    assert isinstance(named.data, pa.ndarray)
    assert named.dtype == np.float32
    assert (named + 1).dtype == np.float32
    assert named.sum("x").dtype == np.float32
    assert isinstance((named * named).data, pa.ndarray)
    assert named.astype(pa.float64).dtype == np.float64
