"""A pytest plugin: the compiler optimises one of `FULL` kernels for the CPU as it does for users, and the others less.
Optimising is most of what compiling a kernel takes, and what most tests look at is decided before.

Which kernel is of which kind follows from its text, so that all tests that need a kernel share it; of each family of
kernels, whose members differ in types and layouts, some are compiled as for users. In a long run all are, as are
those of processes that tests start."""

import hashlib

import pytest

FULL = 4
LESS = "-O1"  # after the other flags, of which the last counts


def less(text, flags=()):
    """Flags for this text, in addition to those that its kernel has."""
    if any(flag.startswith("-O") for flag in flags):
        return ()
    return (LESS,) if int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) % FULL else ()


def pytest_sessionstart(session):
    # not before the tests' settings stand, and before the tests import it
    from strategies import TIMES

    from pyarray.driver import cc
    from pyarray.jit import compile as compiler

    if TIMES > 1:
        return
    compile_text, key_for, patch = cc.Toolchain.compile, compiler.key_for, pytest.MonkeyPatch()

    def compiled(toolchain, text, extra_flags=()):
        return compile_text(toolchain, text, (*extra_flags, *less(text, extra_flags)))

    def key(text, steps, fingerprint, flags):
        of_cpu = any(flag in fingerprint for flag in cc.FLAGS if flag.startswith("-O"))
        return key_for(text, steps, fingerprint, (*flags, *less(text, flags)) if of_cpu else flags)

    patch.setattr(cc.Toolchain, "compile", compiled)
    patch.setattr(compiler, "key_for", key)
    session.config.add_cleanup(patch.undo)
