"""Every example in a docstring runs, and prints what it says."""

import doctest
import importlib
import inspect
import pkgutil

import pytest

import pyarray
from pyarray.api.standard.elementwise import UFUNCS

MODULES = sorted(
    m.name for m in pkgutil.walk_packages(pyarray.__path__, "pyarray.") if not m.name.endswith(("_runtime", "__main__"))
)
GPU_DRIVERS = {"pyarray.driver.cuda", "pyarray.driver.hip"}


class Finder(doctest.DocTestFinder):
    """Also finds what a decorator has wrapped."""

    def _from_module(self, module, obj):
        return super()._from_module(module, inspect.unwrap(obj) if callable(obj) else obj)


@pytest.mark.slow
@pytest.mark.parametrize("name", [m for m in MODULES if m not in GPU_DRIVERS])
def test_examples(name):
    if name.startswith("pyarray.torch"):
        pytest.importorskip("torch")
    if name == "pyarray.interop.dask_array":
        pytest.importorskip("dask.array")  # which imports our module, and calls it
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    # public docstrings get their import of the package when they are installed: `docstring_sections`
    for test in Finder().find(module, module.__name__, extraglobs={"pa": pyarray}):
        runner.run(test)
    assert not runner.failures


@pytest.mark.slow
def test_examples_of_elementwise_functions():
    """They are written by the rows' table, which the finder doesn't read."""
    runner, parser = doctest.DocTestRunner(), doctest.DocTestParser()
    public = [row for row in UFUNCS.values() if hasattr(pyarray, row.name)]  # others are parts of functions
    for row in public:
        runner.run(parser.get_doctest(row.doc, {"pa": pyarray}, row.name, None, None))
    assert runner.tries >= len(public) > 80
    assert not runner.failures


def test_public_functions_are_documented():
    public = [getattr(pyarray, n) for n in dir(pyarray) if not n.startswith("_")]
    missing = [f.__name__ for f in public if callable(f) and not f.__doc__]
    assert not missing
