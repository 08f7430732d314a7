"""tests/kept_compiles.py: an entry stands for a compile where all that decides the binary is the same."""

import kept_compiles
import pytest

from pyarray.driver import cc
from pyarray.errors import CompileError

COMMAND = [
    "cc",
    "-O3",
    *(f"-I{folder}" for folder in cc.include_dirs()),
    "-x",
    "c",
    "-",
    "-o",
    "/tmp/1",
    "-lm",
]
TEXT = "#include <pa_stream.h>\nint f(void) { return 1; }\n"


def key(text=TEXT, command=COMMAND):
    return kept_compiles._key(command, text)


def test_what_an_entry_depends_on(monkeypatch, tmp_path):
    first = key()
    assert first == key(command=[word.replace("/tmp/1", "/tmp/2") for word in COMMAND])
    changed = dict(kept_compiles._headers())
    changed["pyarray.h"] += "\n"  # by way of pa_base.h
    with monkeypatch.context() as patch:
        patch.setattr(kept_compiles, "_headers", lambda: changed)
        assert key() != first
    assert key(TEXT + " ") != first
    assert key(command=["cc", "-DX", *COMMAND[1:]]) != first
    assert key('#include "other.h"\n') is None
    assert key(command=["cc", "-Ielsewhere", *COMMAND[1:]]) is None
    script = tmp_path / "cc"
    script.write_text('#!/bin/sh\nexec cc "$@"\n')
    script.chmod(0o700)
    assert key(command=[str(script), *COMMAND[1:]]) is None
    monkeypatch.setenv("CPATH", str(tmp_path))
    assert key() is None


def test_compiled_once(monkeypatch, tmp_path):
    monkeypatch.setattr(kept_compiles, "KEPT", tmp_path)
    compiler = cc.toolchain()
    assert compiler.compile(TEXT) == compiler.compile(TEXT)
    (entry,) = tmp_path.iterdir()
    entry.write_bytes(b"kept")
    assert compiler.compile(TEXT) == b"kept"
    with pytest.raises(CompileError):
        compiler.compile("none")
    assert list(tmp_path.iterdir()) == [entry]
