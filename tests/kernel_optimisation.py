"""A pytest plugin: kernels for the CPU are compiled at one of `LEVELS`, which follows from the text, and a quarter of
them as for users. Optimising is most of what compiling a kernel takes, and what most tests look at is decided before.

All tests that need a kernel share it, then; and of each family of kernels, whose members differ in types and layouts,
some are compiled at each level. In a long run all are compiled as for users, as are those of processes that tests
start."""

import hashlib

import pytest

LEVELS = ((), ("-O1",), ("-O0",), ("-O0",))  # after the other flags, of which the last counts


def level(text, flags):
    """Flags for this text, in addition to those that its kernel has."""
    if any(flag.startswith("-O") for flag in flags):
        return ()
    return LEVELS[int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) % len(LEVELS)]


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
        return key_for(text, steps, fingerprint, (*flags, *level(text, flags)) if of_cpu else flags)

    patch.setattr(cc.Toolchain, "compile", compiled)
    patch.setattr(compiler, "key_for", key)
    session.config.add_cleanup(patch.undo)
