"""Install lines name a package of ours, and an editable installation is found by editors and by scripts that
lie beside the clone."""

import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NAME = PROJECT["name"]
SCRIPT = """\
import pyarray as pa

a = pa.ones(3)
b: pa.ndarray = a + 1
print(b.tolist())
"""
WRONG = SCRIPT + "pa.no_such_function(b)\n"


def install_lines():
    texts = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "pyarray").rglob("*.py")]
    for path in texts:
        for line in path.read_text().splitlines():
            if found := re.search(r"pip install (?:-e )?'?(\.|pyarray[\w-]*)(?:\[(\w+)\])?", line):
                yield path, *found.groups()


def test_install_lines_are_of_the_clone_or_of_our_name():
    lines = list(install_lines())
    assert len(lines) > 5
    for path, package, extra in lines:
        assert package in (".", NAME), path
        assert extra is None or extra in PROJECT["optional-dependencies"], path


def test_the_installed_package_has_our_name():
    assert "pyarray" in importlib.metadata.packages_distributions()
    assert set(importlib.metadata.packages_distributions()["pyarray"]) == {NAME}


@pytest.fixture
def beside(tmp_path):
    """A folder that holds the clone and a script, as after `git clone` and `make`."""
    (tmp_path / "pyarray").symlink_to(ROOT)
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "wrong.py").write_text(WRONG)
    return tmp_path


def run(folder, *command):
    """Without the variables of this test run: the package is found as it was installed."""
    env = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=300)
    return done.returncode, done.stdout + done.stderr


def test_a_script_beside_the_clone_finds_the_package(beside):
    assert run(beside, sys.executable, "script.py") == (0, "[2.0, 2.0, 2.0]\n")


@pytest.mark.parametrize(
    "checker",
    [
        (sys.executable, "-m", "mypy", "--python-executable", sys.executable),
        (
            str(Path(sys.executable).parent / "basedpyright"),
            "--level",
            "error",
            "--pythonpath",
            sys.executable,
        ),
    ],
    ids=["mypy", "basedpyright"],
)
def test_a_checker_beside_the_clone_knows_the_package(beside, checker):
    code, said = run(beside, *checker, "script.py")
    assert code == 0, said
    code, said = run(beside, *checker, "wrong.py")
    assert code, said
    assert "no_such_function" in said
