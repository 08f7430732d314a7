"""Install lines name a package of ours, and an editable installation is found by scripts that lie beside the
clone; that editors find it, too, is in test_stubs.py."""

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
SCRIPT = "import pyarray as pa\n\na = pa.ones(3)\nb: pa.ndarray = a + 1\nprint(b.tolist())\n"


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


@pytest.mark.slow
def test_the_installed_package_has_our_name():
    assert "pyarray" in importlib.metadata.packages_distributions()
    assert set(importlib.metadata.packages_distributions()["pyarray"]) == {NAME}


@pytest.mark.slow
def test_a_script_beside_the_clone_finds_the_package(tmp_path):
    """As after `git clone` and `make`, without the variables of this test run."""
    (tmp_path / "pyarray").symlink_to(ROOT)
    (tmp_path / "script.py").write_text(SCRIPT)
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    command = (sys.executable, "script.py")
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout + done.stderr) == (0, "[2.0, 2.0, 2.0]\n")
