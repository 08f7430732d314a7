"""Type information is there and current: py.typed, the printed stub of what `ndarray` is given."""

import importlib.util
from pathlib import Path

import pyarray as pa
from pyarray.api import elementwise

ROOT = Path(__file__).resolve().parents[2]


def stubs():
    spec = importlib.util.spec_from_file_location("make_stubs", ROOT / "docs" / "make_stubs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_stub_is_current():
    made = stubs().text()
    assert (ROOT / "pyarray" / "array_operators.pyi").read_text() == made, "run python docs/make_stubs.py"


def test_the_stub_has_what_the_class_has():
    made = stubs().text()
    for name in ("__add__", "__rmatmul__", "__ior__", "__invert__", "sum", "argsort", "real"):
        assert hasattr(pa.ndarray, name)
        assert f"def {name}(self" in made


def test_py_typed_is_shipped():
    assert (Path(pa.__file__).parent / "py.typed").is_file()
    assert '"py.typed"' in (ROOT / "pyproject.toml").read_text()


def test_names_are_written_out_for_type_checkers():
    rows = {name for name in elementwise.ROWS if name in vars(elementwise)}
    assert rows | {"clip"} == set(elementwise.__all__)
