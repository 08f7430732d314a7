"""A pytest plugin: one of `SHARE` kernels for the CPU is optimised as for users, the others aren't at all. Optimising
is most of what compiling a kernel takes, and what most tests look at is decided before. Under the sanitizers
(tests/sanitized) no kernel is optimised, and one of `SHARE` is compiled for them.

Which ones are follows from their texts and the day: tests that need the same kernel share it, of each family of
kernels, whose members differ in types and layouts, some are optimised, and after `SHARE` rounds of the days in which
tests take turns (`variants_by_turn`) each was. In a long run all are, as are those of processes that tests start.
"""

import hashlib
import os

import pytest
from variants_by_turn import TURN, TURNS

SHARE = 16
SORTS = "<pa_sort"  # a header of functions that are always inlined: without optimising them it takes longer
# All of these are optimised or none is: they round as the compiler contracts sums of products, and tests compare bits.
PRODUCTS = "<pa_gemm"


def level(text, flags):
    """Flags for this text behind those that its kernel has: of levels the last one counts."""
    sanitized = "-fsanitize" in os.environ.get("PYARRAY_CFLAGS", "")
    as_it_is = any(flag.startswith("-O") for flag in flags) or SORTS in text
    if sanitized:
        return () if is_due(text) else ("-fno-sanitize=all",)
    return () if as_it_is or is_due(PRODUCTS if PRODUCTS in text else text) else ("-O0",)


def is_due(text):
    digest = hashlib.sha256(text.encode()).hexdigest()
    return (int(digest[:8], 16) + TURN // TURNS) % SHARE == 0


def pytest_sessionstart(session):
    # not before the tests' settings stand, and before the tests import it
    from strategies import TIMES

    from pyarray.driver import cc
    from pyarray.jit import compile as compiler

    if TIMES > 1:
        return
    compile_text, key_for, patch = cc.Toolchain.compile, compiler.key_for, pytest.MonkeyPatch()

    def compiled(toolchain, text, extra_flags=()):
        return compile_text(toolchain, text, (*extra_flags, *level(text, extra_flags)))

    def key(text, steps, fingerprint, flags):
        of_cpu = any(flag in fingerprint for flag in cc.FLAGS if flag.startswith("-O"))
        added = [f"of the tests: {flag}" for flag in level(text, flags)] if of_cpu else []  # not a kernel's own flag
        return key_for(text, steps, fingerprint, (*flags, *added))

    patch.setattr(cc.Toolchain, "compile", compiled)
    patch.setattr(compiler, "key_for", key)
    session.config.add_cleanup(patch.undo)
