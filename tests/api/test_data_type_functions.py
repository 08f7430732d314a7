"""Data type functions, constants and inspection."""

import math

import ml_dtypes
import numpy as np
import pytest

import pyarray as pa
from pyarray import dtypes


@pytest.mark.parametrize("dtype", dtypes.of_kinds("fc"), ids=str)
def test_finfo(dtype):
    info = pa.finfo(dtype)
    expected = ml_dtypes.finfo(dtype.numpy) if dtype in dtypes.EXTENSIONS else np.finfo(dtype.numpy)
    names = ("bits", "eps", "max", "min", "smallest_normal")
    assert [getattr(info, n) for n in names] == [float(getattr(expected, n)) for n in names]
    assert type(info.eps) is float
    assert pa.issubdtype(info.dtype, pa.floating)


@pytest.mark.parametrize("dtype", dtypes.of_kinds("iu"), ids=str)
def test_iinfo(dtype):
    info, expected = pa.iinfo(dtype), np.iinfo(dtype.numpy)
    assert (info.bits, info.min, info.max, info.dtype) == (expected.bits, expected.min, expected.max, dtype)


def test_infos_of_arrays_and_errors():
    assert pa.finfo(pa.ones(1, dtype=pa.float32)).bits == 32
    assert pa.finfo(pa.complex64).dtype == pa.float32
    with pytest.raises(ValueError, match="use iinfo"):
        pa.finfo(pa.int8)
    with pytest.raises(ValueError, match="use finfo"):
        pa.iinfo(pa.float32)


def test_isdtype():
    groups = {
        "bool": "b",
        "signed integer": "i",
        "unsigned integer": "u",
        "integral": "iu",
        "real floating": "f",
        "complex floating": "c",
        "numeric": "iufc",
    }
    for name, kinds in groups.items():
        assert [pa.isdtype(d, name) for d in dtypes.ALL] == [d.kind in kinds for d in dtypes.ALL]
    assert pa.isdtype(pa.int8, (pa.float32, "integral"))
    assert not pa.isdtype(pa.int8, pa.int16)
    with pytest.raises(ValueError, match="'floating' is no group"):
        pa.isdtype(pa.int8, "floating")


def test_can_cast():
    for source in dtypes.ALL:
        for target in dtypes.ALL:
            if {source, target} & dtypes.EXTENSIONS or (source.kind in "iu" and target.kind in "fc"):
                continue  # NumPy asks whether the values fit, the standard does not say
            assert pa.can_cast(source, target) == np.can_cast(source.numpy, target.numpy) or source.kind == "b"
    assert pa.can_cast(pa.ones(1, dtype=pa.int8), pa.int16)
    with pytest.raises(TypeError, match="not supported"):
        pa.can_cast("what", pa.int8)


def test_astype():
    x = pa.asarray([1.5, -2.5])
    assert pa.astype(x, pa.float64, copy=False) is x
    assert pa.astype(x, pa.float64) is not x
    assert pa.astype(x, pa.int32, device="cpu").tolist() == [1, -2]


def test_constants():
    assert (pa.e, pa.pi, pa.inf) == (math.e, math.pi, math.inf)
    assert math.isnan(pa.nan)
    assert pa.newaxis is None


def test_inspection():
    info = pa.__array_namespace_info__()
    assert info.capabilities()["boolean indexing"]
    assert info.default_device() in info.devices()
    assert info.default_dtypes()["real floating"] == pa.float64
    assert info.dtypes()["bool"] == pa.bool
    # the standard's dtypes only, and a tuple of devices since 2025.12
    assert set(info.dtypes(kind=("bool", "real floating"))) == {"bool", "float32", "float64"}
    assert len(info.dtypes()) == 13
    assert isinstance(info.devices(), tuple)


@pytest.mark.parametrize(
    "other", [{"a": 1}, {"names": 3}, [1, 2], "i4,", object(), ((),), None], ids=lambda x: type(x).__name__
)
def test_a_dtype_equals_no_other_thing(other):
    assert pa.float32 != other


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_one_element_as_a_python_number(dtype):
    values = {"b": [0, 1], "u": [0, 255], "c": [1.5, -2 - 0.5j, complex(math.inf, -0.0)]}.get(dtype.kind, [-3, 7])
    for value in values + ([0.5, -0.0, math.inf, math.nan] if dtype.kind == "f" else []):
        expected = np.asarray(value).astype(dtype.numpy).item()
        a = pa.asarray(np.asarray([0, value], dtype=dtype.numpy))[1]
        for found in (a.item(), complex(a), *((float(a), int(a)) if dtype.kind in "biu" else ())):
            np.testing.assert_equal(found, expected)
        assert type(a.item()) is type(expected)
        assert bool(a) is bool(expected)
