"""The second step of `make test`: what the first has recorded compiles for every kind of GPU."""

import os
import re

import pytest
from compile_cache import AcceptedTexts
from kernel_batch import culprit, first_callers, joined, recorded, share
from kernel_recorder import COMPILE
from strategies import TIMES
from target_compilers import CLANG, HIPRTC, NVRTC, TARGETS, fingerprint, missing, refused

SAMPLED = 512  # of so many kernels one is compiled to the end


@pytest.fixture(scope="session")
def kernels(request):
    found = recorded(os.environ.get(COMPILE))
    assert found, "no kernels were recorded"
    return found


@pytest.fixture(scope="session")
def callers(kernels):
    return first_callers(kernels)


LACKING = {target: command for target in TARGETS if (command := missing(target))}


@pytest.fixture(params=[target for target in TARGETS if target not in LACKING])
def target(request):
    return request.param


def test_there_is_a_compiler_for_each_target():
    if LACKING:
        commands = "; ".join(dict.fromkeys(LACKING.values()))
        pytest.skip(f"nothing was compiled for {', '.join(LACKING)}: {commands}")
    assert len(TARGETS) == 7


def check(target, kernels, folder, parsed):
    """Fails with the first kernel that is refused, its test and the compiler's words. What the same compiler
    has passed in an earlier run isn't asked again."""
    passed = AcceptedTexts(fingerprint(target), joined([], parsed))
    kernels, names = [k for k in kernels if k.name not in passed], [k.name for k in kernels]

    def words(some):
        return refused(target, joined(some, parsed), folder, parsed)

    found = culprit(kernels, words) if kernels else None
    if found:
        kernel, said = found
        others = set(re.findall(r"\b([0-9a-f]{16})\.cu", words(kernels))) - {kernel.name}
        alone = refused(target, kernel.text, folder, parsed=False) or said
        pytest.fail(
            f"kernel {kernel.name}, first emitted by {kernel.test}, does not compile for {target}"
            f" ({len(others)} others are named): {alone}\n{kernel.text}",
            pytrace=False,
        )
    passed.add(names)


def test_every_kernel_is_valid(target, kernels, callers, tmp_path):
    """A compiler of each vendor reads every kernel, for one of its targets, and for all of them every kind of
    call. In a long run each compiler does."""
    vendor = {NVRTC: {NVRTC}, HIPRTC: {HIPRTC, CLANG}, CLANG: {HIPRTC, CLANG}}
    kinds = {TARGETS[target]} if TIMES > 1 else vendor[TARGETS[target]]
    alike = [other for other in TARGETS if TARGETS[other] in kinds and other not in LACKING]
    check(target, share(kernels, alike.index(target), len(alike), callers), tmp_path, parsed=True)


def test_code_for_some(target, kernels, tmp_path):
    """All the way to the binary, for those whose digests say so."""
    sample = [k for k in kernels if int(k.name, 16) % SAMPLED < TIMES]
    check(target, sample, tmp_path, parsed=False)


def test_texts_as_they_are(target, kernels, tmp_path):
    """Not joined with others: a kernel includes what it needs."""
    passed = AcceptedTexts(fingerprint(target), "alone")
    alone = [k for k in (kernels[0], kernels[len(kernels) // 2]) if k.name not in passed]
    for kernel in alone:
        words = refused(target, kernel.text, tmp_path, parsed=False)
        assert not words, f"kernel {kernel.name} of {kernel.test} for {target}: {words}"
    passed.add([kernel.name for kernel in alone])
