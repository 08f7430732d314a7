"""A pytest plugin, for both steps of `make test`. The first records the GPU text of every kernel that the
tests lower, in release and debug, one file per text; the second, test_emitted.py, compiles that folder.

Lowering them for a GPU as well, and compiling that, takes as long as a fifth of the tests: one of `SHARE` kernels is
recorded, by its text and the round of the days in which tests take turns (`variants_by_turn`). In a long run all
are."""

import hashlib
import os
import shutil
from pathlib import Path

import pytest
from variants_by_turn import TURN, TURNS

SHARE = 4
GPU = "cuda"  # whose text is that of all GPUs, but for products of tiles by matrix instructions
MATRIX = "pa_tile_mma.h"


# Folders: where to write the GPU text of every kernel, and where what was recorded is compiled. Environment
# variables, since the workers of xdist read their command line before this file.
RECORD, COMPILE = "PYARRAY_TEST_RECORD", "PYARRAY_TEST_COMPILE"


def pytest_sessionstart(session):
    config = session.config
    folder = os.environ.get(RECORD)
    if folder is None:
        return
    if hasattr(config, "workerinput"):  # the workers of xdist write into what their controller has made
        del os.environ[RECORD]  # a pytest that a test starts would make the folder anew
    else:
        shutil.rmtree(folder, ignore_errors=True)
        Path(folder).mkdir(parents=True)
    # not before the tests' settings stand, and before the tests import it
    from strategies import TIMES

    from pyarray.jit import text_kernel
    from pyarray.lang import pipeline

    record, patch = Recorder(Path(folder), SHARE if TIMES == 1 else 1), pytest.MonkeyPatch()
    patch.setattr(pipeline, "generate", record.generate(pipeline.generate))
    patch.setattr(text_kernel.TextKernel, "_compile", record.compile(text_kernel.TextKernel._compile))
    config.add_cleanup(patch.undo)


class Recorder:
    """Wraps what makes texts, and writes one of `share` into a folder."""

    def __init__(self, folder, share=1):
        self.folder, self.share = folder.absolute(), share  # a test may change the working directory
        self.generated, self.written = set(), set()  # digests

    def write(self, text):
        """Keeps a text, with the test that first had it in front."""
        digest = _digest(text)
        if digest in self.written:
            return
        self.written.add(digest)
        test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
        self.made(f"{digest}.cu", f"// {test}\n{text}")

    def made(self, name, text):
        """Whether there was no such file yet, in any process."""
        try:
            with open(self.folder / name, "x") as file:
                file.write(text)
        except FileExistsError:
            return False
        return True

    def is_due(self, digest):
        return (int(digest, 16) + TURN // TURNS) % self.share == 0

    def generate(self, generate):
        def recorded(analysed, target, debug, asserts=False):
            program = generate(analysed, target, debug, asserts)
            digest = _digest(program.text)
            if digest not in self.generated and self.is_due(digest):
                self.generated.add(digest)
                if not self.made(f"{digest}.generated", ""):  # another process writes the texts
                    return program
                for checked in (False, True):
                    known = target == GPU and checked == debug
                    text = program.text if known else generate(analysed, GPU, checked, asserts).text
                    self.write(text)
                    if MATRIX in text:
                        self.write(generate(analysed, "hip", checked, asserts).text)
            return program

        return recorded

    def compile(self, compile):
        def recorded(kernel, key, device, *more):
            made = compile(kernel, key, device, *more)  # what is refused on purpose ends here
            if kernel.cpu_only:
                return made
            texts = [_defined(kernel.program(key, GPU, checked).text, kernel.grid_flags) for checked in (False, True)]
            if self.is_due(_digest(texts[0])):
                for text in texts:
                    self.write(text)
            return made

        return recorded


def _digest(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _defined(text, flags):
    """A text that has in it what compilers' flags define."""
    defined = [flag[2:].replace("=", " ", 1) for flag in flags if flag.startswith("-D")]
    return "".join(f"#define {words}\n" for words in defined) + text


def recorded_name(text, flags=()):
    """The name of a text that is compiled with these flags, if it is recorded."""
    return _digest(_defined(text, flags))
