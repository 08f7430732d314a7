"""Type information is there and current: py.typed, the printed stub of what `ndarray` is given."""

import importlib.metadata
import importlib.util
import inspect
import json
import os
import re
import subprocess
import sys
import typing
from pathlib import Path

import public  # beside this file
import pytest

import pyarray as pa
from pyarray.api.standard import elementwise

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


def test_names_are_written_out_for_type_checkers():
    rows = {name for name in elementwise.UFUNCS if name in vars(elementwise)}
    rows.remove("round")  # the public one has decimals
    assert rows | {"clip"} == set(elementwise.__all__)


SCRIPT = Path(__file__).with_name("typed_script.py")
KNOWN = ROOT / "build" / "mypy"  # what mypy found in files that haven't changed since


def paths():
    """Where checkers look besides: nowhere, but for a checkout that isn't the one that is installed."""
    name = importlib.metadata.packages_distributions()["pyarray"][0]
    installed = importlib.metadata.distribution(name).read_text("direct_url.json") or "{}"
    return [] if json.loads(installed).get("url") == ROOT.as_uri() else [str(ROOT)]


@pytest.mark.parametrize(
    "checker",
    [
        # mypy takes no number and no call in a type: `ndarray[float32, 1]` and `BufferView[float32]`
        (sys.executable, "-m", "mypy", "--cache-dir", str(KNOWN), "--disable-error-code", "type-arg"),
        (str(Path(sys.executable).with_name("basedpyright")), "--level", "error"),
    ],
    ids=["mypy", "basedpyright"],
)
@pytest.mark.slow
def test_a_typed_script(checker, tmp_path):
    """It lies beside the clone, as after `git clone` and `make`: the package is found as it was installed.
    What isn't marked as wrong is no error, and what is marked is one."""
    (tmp_path / "pyarray").symlink_to(ROOT)
    (tmp_path / "script.py").write_text(SCRIPT.read_text())
    extra = ("--python-executable", sys.executable) if "mypy" in checker else ("--pythonpath", sys.executable)
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "MYPYPATH": os.pathsep.join(paths())}
    # a script that only computes needs nothing of torch; mypy would read half of it
    silent = "[mypy]\nfollow_imports = silent\n[mypy-torch.*,sympy.*]\nfollow_imports = skip\n"
    (tmp_path / "mypy.ini").write_text(silent)
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"extraPaths": paths()}))
    command = (*checker, *extra, "script.py")
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300)
    lines = SCRIPT.read_text().splitlines()
    wrong = {n for n, line in enumerate(lines, 1) if "# wrong:" in line}
    said = {int(n) for n in re.findall(r"script\.py:(\d+):.*error", done.stdout)}
    assert said == wrong, done.stdout


STILL_ANY = 40  # parameters: those of other libraries' objects, and options that go on to NumPy


def test_public_parameters_have_types():
    """`Any` says nothing to an editor: `pyarray.typing` has names for what most parameters take."""
    names = []
    for path, function in public.callables():
        for p in inspect.signature(function).parameters.values():
            if p.name != "self" and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
                names += [f"{path}({p.name})"] if p.annotation in (p.empty, "Any") else []
    assert len(names) <= STILL_ANY, "name what they take: " + ", ".join(names)


@pytest.mark.parametrize("function", [pa.sum, pa.zeros, pa.linalg.solve], ids=lambda f: f.__name__)
def test_annotations_name_what_there_is(function):
    """What reads annotations, as `typing.get_type_hints` does, finds the names in them."""
    hints = typing.get_type_hints(inspect.unwrap(function))
    assert hints["return"] is pa.ndarray
    assert pa.typing.ArrayLike in hints.values() or pa.typing.ShapeLike in hints.values()
