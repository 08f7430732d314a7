"""What public functions say of themselves: parameters, and a section of the docstring for each kind of facts."""

import inspect

import public  # beside this file
import pytest

import pyarray as pa
from pyarray.api.core import registry

# They give their keywords to another function: NumPy's, or one that the caller passes.
PASSED_ON = {
    "apply_along_axis", "array2string", "cost_analysis", "fromfunction", "genfromtxt", "loadtxt", "pad", "piecewise",
    "savetxt", "savez", "savez_compressed", "count", "measure", "predict", "verify", *pa.testing.__all__,
}  # fmt: skip


def test_signatures_name_the_keywords():
    for path, function in public.callables():
        kinds = {p.kind for p in inspect.signature(function).parameters.values()}
        if inspect.Parameter.VAR_KEYWORD in kinds:
            assert path.rpartition(".")[2] in PASSED_ON, path


@pytest.mark.parametrize("owner", [pa.ndarray, pa.ones(2)], ids=["class", "array"])
def test_methods_have_the_signature_of_their_function(owner):
    names = list(inspect.signature(owner.sum).parameters)
    assert names[owner is pa.ndarray :] == ["axis", "dtype", "keepdims", "out", "initial", "where"]
    assert inspect.signature(owner.sum).parameters["keepdims"].default is False
    assert list(inspect.signature(owner.take).parameters)[-4:] == ["indices", "axis", "out", "mode"]


def test_methods_of_ufuncs_have_a_signature():
    assert list(inspect.signature(pa.add.reduce).parameters)[:3] == ["array", "axis", "dtype"]
    assert list(inspect.signature(pa.add.outer).parameters) == ["x1", "x2", "out"]


def test_docstrings_of_methods_are_dedented():
    for name in registry.methods:
        assert getattr(pa.ndarray, name).__doc__ == inspect.getdoc(getattr(pa.ndarray, name))
