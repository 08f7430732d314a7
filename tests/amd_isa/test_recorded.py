"""The last step of `make test-amd`: the code objects of all kernel texts that a run of the tests has recorded
(tests/targets/kernel_recorder.py) have no instruction that the executor doesn't know."""

import os
import shutil

import pytest
from compile_cache import AcceptedTexts, compiler_identity
from targets.kernel_batch import culprit, joined, recorded
from targets.kernel_recorder import COMPILE, MATRIX

from pyarray.errors import CompileError

from . import build
from .decoded_texts import DECODED
from .harness import compiled, decoded, needs_toolchain

pytestmark = needs_toolchain
SHARES, BATCH = 16, 24  # shares are tests, for several workers; a batch is compiled as one text


def refused(target, kernels):
    """The words of the compiler or of the executor; '' where all is known."""
    try:
        decoded(target, compiled(target, joined(kernels, parsed=False)))
    except (CompileError, ValueError) as error:
        return str(error)
    return ""


@pytest.fixture(scope="module")
def kernels():
    found = [k for k in recorded(os.environ[COMPILE]) if MATRIX not in k.text]  # for AMD GPUs tiles have another text
    assert found, "no kernels were recorded"
    return found


@pytest.fixture(scope="module")
def by_tests():
    """Names of texts whose code objects were decoded where tests executed them."""
    return set(os.listdir(os.environ[DECODED])) if DECODED in os.environ else set()


@pytest.mark.parametrize("share", range(SHARES))
def test_all_instructions_are_known(target, kernels, by_tests, share):
    compiler = compiler_identity(shutil.which("clang-19"))
    passed = AcceptedTexts(build.digest(target), compiler, joined([], parsed=False), str(share))
    mine = [k for k in kernels if int(k.name, 16) % SHARES == share]
    passed.add([k.name for k in mine if k.name in by_tests])
    mine = [k for k in mine if k.name not in passed]
    for first in range(0, len(mine), BATCH):
        batch = mine[first : first + BATCH]
        if found := culprit(batch, lambda some: refused(target, some)):
            kernel, words = found
            what = f"kernel {kernel.name}, first emitted by {kernel.test}, for {target}: {words}"
            pytest.fail(f"{what}\n{kernel.text}", pytrace=False)
        passed.add([kernel.name for kernel in batch])
