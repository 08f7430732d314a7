"""The worked changes of docs/develop apply to the package, and their checks hold."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "develop").glob("*.md"))
RUN = """
import sys
from pathlib import Path

import pyarray
from test_docs import Program, blocks_of

assert Path(pyarray.__file__).parent == Path("pyarray").resolve()
for page in map(Path, sys.argv[1:]):
    program = Program(Path(f"{page.stem}.py").resolve())
    for code, stated in blocks_of(page.read_text(encoding="utf-8")):
        program.run(code, stated)
"""


@pytest.mark.slow
def test_recipes_apply_and_their_checks_hold(tmp_path):
    leave = shutil.ignore_patterns("__pycache__", "_warmed")
    for folder in ("pyarray", "csrc"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=leave)
    recipes = [page for page in PAGES if page.name != "index.md"]
    assert len(recipes) == 5
    env = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent), "PYARRAY_WARMED": "0"}
    for page in recipes:
        [diff] = re.findall(r"^```diff\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        done = subprocess.run(("git", "apply", "-"), cwd=tmp_path, env=env, input=diff, text=True, capture_output=True)
        assert done.returncode == 0, f"the diff of {page.name} doesn't apply:\n{done.stderr}"
    env["PYTHONPATH"] = os.pathsep.join((str(tmp_path), str(ROOT / "tests" / "unit")))
    command = (sys.executable, "-c", RUN, *map(str, recipes))
    done = subprocess.run(command, cwd=tmp_path, env=env, text=True, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
