"""The text of an array: NumPy's, with device and place, read from the printed corners only."""

import numpy as np
import pytest
from hypothesis import given
from strategies import numpy_views

from pyarray import array_format
from pyarray.array import empty
from pyarray.array_convert import asarray
from pyarray.dtypes import EXTENSIONS, asdtype


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (np.array([0, 1], np.float32), "array([0., 1.], dtype=float32, device='cpu')"),
        (np.array(3, np.int8), "array(3, dtype=int8, device='cpu')"),
        (np.array(2.5), "array(2.5, dtype=float64, device='cpu')"),
        (np.array([]), "array([], dtype=float64, device='cpu')"),
        (np.zeros((2, 0), bool), "array([], shape=(2, 0), dtype=bool, device='cpu')"),
        (np.array([[True], [False]]), "array([[ True],\n       [False]],\n      dtype=bool, device='cpu')"),
    ],
)
def test_repr(x, expected):
    assert repr(asarray(x)) == expected


def test_views_show_their_place():
    view = asarray(np.arange(32, dtype=np.float32))[8:10]
    assert repr(view) == "BufferView([8., 9.], dtype=float32, device='cpu', offset=8, size=2)"
    assert repr(view[5:]) == "BufferView([], dtype=float32, device='cpu', offset=10, size=0)"


@pytest.mark.parametrize("name", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_types_of_ml_dtypes(name):
    a = empty(2, name)
    a[:] = 1.5
    assert str(a) == "[1.5 1.5]"
    assert repr(a[:1]) == f"BufferView([1.5], dtype={name}, device='cpu', offset=0, size=1)"


@given(numpy_views().filter(lambda x: asdtype(x.dtype) not in EXTENSIONS))
def test_str_is_numpys(x):
    assert str(asarray(x)) == str(x)


@pytest.mark.parametrize("shape", [(2000,), (50, 50), (7, 200), (3, 3, 300), (1001, 1), (2, 0, 4000)])
def test_large_arrays_move_their_corners_only(shape, monkeypatch):
    x = np.arange(np.prod(shape), dtype=np.int64).reshape(shape)
    a = asarray(x)
    moved = []
    real = array_format.host
    monkeypatch.setattr(array_format, "host", lambda part: moved.append(part.size) or real(part))
    assert str(a) == str(x)
    assert sum(moved) <= 7 ** len(shape)
