"""What public functions say of themselves: parameters, and a section of the docstring for each kind of facts."""

import inspect
import pydoc
import re
import subprocess
import sys

import public  # beside this file
import pytest

import pyarray as pa
from pyarray import docstring_sections
from pyarray.api.core import registry

# They give their keywords to another function: NumPy's, or one that the caller passes.
PASSED_ON = {
    "apply_along_axis", "array2string", "cost_analysis", "fromfunction", "genfromtxt", "loadtxt", "pad", "piecewise",
    "savetxt", "savez", "savez_compressed", "count", "measure", "predict", "verify", "capture", "launch",
    *pa.testing.__all__,
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


def test_docstrings_have_sections():
    for path, function in public.callables():
        text = pydoc.plain(pydoc.render_doc(function))
        names = list(inspect.signature(function).parameters)
        owner = path.split(".")[-2]
        is_method = (owner == "ndarray" or owner[0].isupper()) and names[:1] in (["self"], ["x"], ["a"])
        assert text.count("    Parameters\n    ---") == (len(names) > is_method), path
        assert text.count("    Returns\n    ---") == 1, path
        assert (">>> " in text) == ("    Examples\n    ---" in text), path
        assert text.count("    Raises\n    ---") <= 1, path


def test_examples_import_the_package():
    """Once, whether their docstring says it or not."""
    for path, function in public.callables():
        text = str(function.__doc__)
        if re.search(r"(?m)^\s*>>> .*\bpa\.", text):
            assert len(re.findall(r">>> import .*pyarray as pa\b", text)) == 1, path


def test_parameters_are_described():
    missing = [
        f"{path}({p.name})"
        for path, function in public.callables()
        for p in inspect.signature(function).parameters.values()
        if p.name != "self" and docstring_sections.description(function, p) is None
    ]
    assert not missing, "say in pyarray/docstring_sections.toml what they are: " + ", ".join(missing)


def test_sections_come_once_and_errors_keep_their_reasons():
    text = pa.arange.__doc__
    assert "Raises\n------\nZeroDivisionError\n    For a step of 0.\nValueError\n    For a length" in text
    assert text.index("Parameters\n") < text.index("Returns\n") < text.index("Raises\n") < text.index("Examples\n")
    assert "`ZeroDivisionError`" not in text
    assert "`TypeError` for what" in inspect.getdoc(pa.kernel)  # the sentence says more than that


def test_a_docstring_reads_as_the_text_with_sections():
    doc = pa.sum.__doc__
    assert str(doc) == f"{doc}" == "\n".join(doc.splitlines()) == doc.expandtabs()
    assert "Parameters" in doc
    assert len(doc) == len(str(doc))
    assert str.__len__(doc) < len(doc)
    assert inspect.unwrap(pa.sum).__doc__ is doc  # where mkdocs reads it


def test_importing_reads_no_descriptions():
    code = "import pyarray, sys; assert 'pyarray.docstring_sections' not in sys.modules; help(pyarray.sum)"
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
