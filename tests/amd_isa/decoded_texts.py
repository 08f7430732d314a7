"""A pytest plugin: of each code object that a run of the tests makes, the executor decodes everything, also what no
test executes, and writes down of which text it was. test_recorded.py need not compile those again."""

import os
from pathlib import Path

import pytest
from targets.kernel_recorder import COMPILE, recorded_name

from .reports import ISA

DECODED = "PYARRAY_TEST_DECODED"  # the folder, which is there


def pytest_sessionstart(session):
    folder = os.environ.get(DECODED)
    if not ISA or folder is None or COMPILE in os.environ:  # test_recorded.py decodes by itself
        return
    from pyarray.driver.command_compilers import HipClang  # not before the tests' settings stand

    from .harness import decoded

    compile_text, patch = HipClang.compile, pytest.MonkeyPatch()

    def compiled(clang, text, extra_flags=()):
        image = compile_text(clang, text, extra_flags)
        if clang.target == ISA:
            decoded(ISA, image)
            if all(flag.startswith("-D") for flag in extra_flags):
                Path(folder, recorded_name(text, extra_flags)).touch()
        return image

    patch.setattr(HipClang, "compile", compiled)
    session.config.add_cleanup(patch.undo)
