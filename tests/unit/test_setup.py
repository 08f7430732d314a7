"""What the build takes from the header, and what an import does not touch."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "csrc" / "build_runtime.py"


@pytest.fixture(scope="module")
def declarations():
    text = SCRIPT.read_text().partition("\nffi = FFI()")[0]
    scope = {"__file__": str(SCRIPT)}
    exec(compile(text, str(SCRIPT), "exec"), scope)
    return scope["declarations"]


def test_guarded_lines_are_hidden(declarations):
    header = "a\n#ifndef PYARRAY_CDEF\n#ifdef __cplusplus\nx\n#endif\ny\n#endif\nb"
    assert declarations(header) == "a\nb"


def test_a_guard_without_end_is_an_error(declarations):
    with pytest.raises(ValueError, match="no #endif"):
        declarations("#ifndef PYARRAY_CDEF\nx")


def test_every_declared_function_is_there():
    from pyarray._runtime import lib

    for name in ("pa_memory_alloc", "pa_pool_create", "pa_parallel_for", "pa_launch", "pa_module_open"):
        assert callable(getattr(lib, name))


def test_import_needs_no_compiler():
    command = [sys.executable, "-c", "import pyarray"]
    result = subprocess.run(command, capture_output=True, text=True, env={"PATH": ""}, check=False)
    assert result.returncode == 0, result.stderr
