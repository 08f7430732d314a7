"""Finding the C compiler, calling it, and what its failures say."""

import dataclasses
import os
import stat
import sys
from pathlib import Path

import pytest

from pyarray.driver import cc
from pyarray.errors import CompileError, DeviceError


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """Nothing remembered from other tests."""
    cc._toolchain.cache_clear()
    monkeypatch.setattr(cc, "_native", {})
    yield
    cc._toolchain.cache_clear()


def script(path: Path, body: str) -> str:
    path.write_text("#!/bin/sh\n" + body)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_compiles_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    binary = cc.toolchain().compile(
        '#include "pyarray.h"\n#include <math.h>\ndouble f(double x) { return sin(x); }'
    )
    assert len(binary) > 1000
    assert list(tmp_path.iterdir()) == []


def test_the_headers_are_there():
    assert any(Path(folder, "pyarray.h").is_file() for folder in cc.include_dirs())
    assert any(list(Path(folder).glob("pa_*.h")) for folder in cc.include_dirs())


def test_a_failure_shows_the_compiler_s_words_and_keeps_the_source(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(CompileError, match="undeclared") as caught:
        cc.toolchain().compile("int f(void) { return absent; }")
    (source,) = tmp_path.glob("*/kernel.c")
    assert source.read_text() == "int f(void) { return absent; }"
    assert f"{source}:1" in str(caught.value)


def test_extra_flags_reach_the_compiler():
    with pytest.raises(CompileError):
        cc.toolchain().compile("#ifndef GIVEN\n#error absent\n#endif")
    assert cc.toolchain().compile("#ifndef GIVEN\n#error absent\n#endif", ("-DGIVEN",))


def test_toolchain_is_found_once_and_follows_the_settings(monkeypatch):
    first = cc.toolchain()
    assert cc.toolchain() is first
    monkeypatch.setenv("PYARRAY_CFLAGS", "-DMORE='1 + 1'")
    second = cc.toolchain()
    assert second.flags[-1] == "-DMORE=1 + 1"
    assert second.fingerprint != first.fingerprint
    with pytest.raises(dataclasses.FrozenInstanceError):
        first.command = ()


def test_named_compiler_with_arguments(tmp_path, monkeypatch):
    wrapper = script(tmp_path / "wrapper", 'shift\nexec cc "$@"\n')
    monkeypatch.setenv("PYARRAY_CC", f"{wrapper} first")
    assert cc.toolchain().command == (wrapper, "first")


def test_named_compiler_that_is_absent(monkeypatch):
    monkeypatch.setenv("PYARRAY_CC", "no-such-compiler")
    with pytest.raises(DeviceError, match="no-such-compiler"):
        cc.toolchain()


def test_named_compiler_that_does_not_work(tmp_path, monkeypatch):
    monkeypatch.setenv("PYARRAY_CC", script(tmp_path / "broken", "exit 3\n"))
    with pytest.raises(DeviceError, match="does not answer"):
        cc.toolchain()


def test_no_compiler_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("PYARRAY_CC", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(DeviceError, match=r"cc, gcc, clang .*pip install ziglang"):
        cc.toolchain()


def test_ziglang_is_the_last_resort(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("PYARRAY_CC", raising=False)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)
    monkeypatch.setattr(cc, "_version", lambda command: "zig")
    found = cc.toolchain()
    assert found.command == (sys.executable, "-m", "ziglang", "cc")
    assert "-fno-sanitize=undefined" in found.flags


def test_a_compiler_without_march_native(tmp_path, monkeypatch):
    """It is probed once, and only after a failure."""
    log = tmp_path / "log"
    refuse = 'case "$*" in *=native*) echo "bad option -march=native" >&2; exit 1;; esac'
    body = f'echo "$*" >> {log}\n{refuse}\nexec cc "$@"\n'
    monkeypatch.setenv("PYARRAY_CC", script(tmp_path / "old", body))
    for _ in range(2):
        assert cc.toolchain().compile("int x;")
    # --version, the refused compile, three probes, the compile; then one more compile.
    assert len(log.read_text().splitlines()) == 7
    with pytest.raises(CompileError, match="error"):
        cc.toolchain().compile("int x")


def test_the_fingerprint_names_compiler_and_machine():
    assert os.uname().machine in cc.toolchain().fingerprint


def test_cpp_is_compiled_by_the_same_command():
    text = (
        'template <typename T> T twice(T x) { return 2 * x; }\nextern "C" int f(int x) { return twice(x); }'
    )
    assert cc.toolchain().compile(text, cc.CPP)[1:4] == b"ELF"
    with pytest.raises(CompileError):
        cc.toolchain().compile(text)
    assert cc.zig_cpp(cc.ZIG)[-1] == "c++"


def test_a_compiler_without_its_cpp_half_says_what_to_install(tmp_path, monkeypatch):
    words = "cc: fatal error: cannot execute 'cc1plus': execvp: No such file or directory"
    command = script(
        tmp_path / "cc", f'[ "$1" = --version ] && echo cc 1 && exit 0\necho "{words}" >&2\nexit 1\n'
    )
    monkeypatch.setenv("PYARRAY_CC", command)
    with pytest.raises(
        DeviceError, match=r"can't compile C\+\+, in which this kernel is written: install g\+\+"
    ):
        cc.toolchain().compile("int f;", cc.CPP)


def test_words_of_the_cpp_half_are_no_sign_that_it_is_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("PYARRAY_CFLAGS", "-Wstrict-prototypes")  # which g++ warns of: it is for C
    assert cc.toolchain().compile("int f;", cc.CPP)[1:4] == b"ELF"
    words = "cc1plus: fatal error: absent.h: No such file or directory"
    command = script(
        tmp_path / "cc", f'[ "$1" = --version ] && echo cc 1 && exit 0\necho "{words}" >&2\nexit 1\n'
    )
    monkeypatch.setenv("PYARRAY_CC", command)
    with pytest.raises(CompileError, match=r"absent\.h"):
        cc.toolchain().compile("int f;", cc.CPP)
