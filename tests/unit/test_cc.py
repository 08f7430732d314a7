"""Finding the C compiler, calling it, and what its failures say."""

import ctypes
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
    binary = cc.toolchain().compile('#include "pyarray.h"\n#include <math.h>\ndouble f(double x) { return sin(x); }')
    assert len(binary) > 1000
    assert list(tmp_path.iterdir()) == []


def test_the_headers_are_there():
    assert any(Path(folder, "pyarray.h").is_file() for folder in cc.include_dirs())
    assert any(list(Path(folder).glob("pa_*.h")) for folder in cc.include_dirs())


def test_a_failure_shows_the_compiler_s_words_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for flags, text in (((), "int f(void)\n{ return absent; }"), (cc.CPP, "int f(void)\n{ return absent; }")):
        with pytest.raises(CompileError, match="absent") as caught:
            cc.toolchain().compile(text, flags)
        assert "line 2: { return absent; }" in str(caught.value)
        assert str(caught.value).endswith("PYARRAY_FAILED_DIR names a folder in which refused texts are kept")
    assert list(tmp_path.iterdir()) == []


def test_refused_texts_are_kept_where_that_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setenv("PYARRAY_FAILED_DIR", str(tmp_path / "failed"))
    for _ in range(2):
        with pytest.raises(CompileError, match="absent") as caught:
            cc.toolchain().compile("int f(void) { return absent; }")
    (source,) = (tmp_path / "failed").iterdir()
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
    # --version, the refused compile, a probe of each choice, the compile; then one more compile
    assert len(log.read_text().splitlines()) == 4 + len(cc.toolchain().native)
    with pytest.raises(CompileError, match="error"):
        cc.toolchain().compile("int x")


def test_a_gcc_that_knows_no_tuning_of_gathers(tmp_path, monkeypatch):
    """It compiles for this machine nevertheless."""
    log = tmp_path / "log"
    refuse = 'case "$*" in *mtune-ctrl*) echo "cc1: error: unknown parameter to option -mtune-ctrl" >&2; exit 1;; esac'
    body = f'echo "$*" >> {log}\n{refuse}\nexec cc "$@"\n'
    monkeypatch.setenv("PYARRAY_CC", script(tmp_path / "gcc", body))
    assert cc.toolchain().compile("int x;")
    last = log.read_text().splitlines()[-1]
    assert "-march=native" in last
    assert "-mtune-ctrl" not in last


@pytest.mark.parametrize(
    ("how", "told"),
    [
        (
            'echo "cc1: out of memory allocating 65536 bytes" >&2; exit 1',
            "exit status 1.*out of memory allocating",
        ),
        ('echo "ld: final link failed: No space left on device" >&2; exit 1', "No space left on device"),
        ('echo "cc: fatal error: Killed signal terminated program cc1" >&2; exit 1', "Killed signal"),
        ("kill -9 $$", "ended by signal 9, as a system does that has no memory left"),
    ],
)
def test_a_passing_failure_changes_nothing(tmp_path, monkeypatch, how, told):
    """Neither the first compile nor, where `-march=native` is asked about, the probes."""
    log, ill = tmp_path / "log", tmp_path / "ill"
    body = f'echo "$*" >> {log}\n[ -e {ill} ] && [ "$1" != --version ] && {{ {how}; }}\nexec cc "$@"\n'
    monkeypatch.setenv("PYARRAY_CC", script(tmp_path / "cc", body))
    ill.touch()
    for _ in range(2):
        with pytest.raises(DeviceError, match=f"(?s)could not compile a kernel.*{told}"):
            cc.toolchain().compile("int x;")
    ill.unlink()
    assert cc.toolchain().compile("int x;")
    assert "-march=native" in log.read_text().splitlines()[-1]
    assert cc._native == {}


def test_a_probe_that_fails_for_another_reason_is_no_answer(tmp_path, monkeypatch):
    count = tmp_path / "count"
    refuse = 'case "$*" in *=native*) echo "bad option -march=native" >&2; exit 1;; esac'
    body = f'[ "$1" = --version ] && echo cc && exit\necho >> {count}\n'
    body += f"[ $(wc -l < {count}) = 2 ] && kill -9 $$\n"
    monkeypatch.setenv("PYARRAY_CC", script(tmp_path / "old", f'{body}{refuse}\nexec cc "$@"\n'))
    with pytest.raises(CompileError, match="bad option -march=native"):
        cc.toolchain().compile("int x;")
    assert cc._native == {}
    assert cc.toolchain().compile("int x;")
    assert set(cc._native.values()) == {()}


def test_a_text_that_is_refused_asks_for_no_probe(tmp_path, monkeypatch):
    log = tmp_path / "log"
    monkeypatch.setenv("PYARRAY_CC", script(tmp_path / "cc", f'echo "$*" >> {log}\nexec cc "$@"\n'))
    with pytest.raises(CompileError):
        cc.toolchain().compile("int x")
    assert len(log.read_text().splitlines()) == 2  # --version, and the refused compile


@pytest.mark.parametrize("body", ["exit 0", 'while [ "$1" != -o ]; do shift; done; : > "$2"'])
def test_a_compiler_that_writes_nothing(tmp_path, monkeypatch, body):
    command = script(tmp_path / "cc", f'[ "$1" = --version ] && echo cc 1 && exit\n{body}\n')
    monkeypatch.setenv("PYARRAY_CC", command)
    with pytest.raises(DeviceError, match=r"exit status 0 and wrote no binary: is it a C compiler.*PYARRAY_CC"):
        cc.toolchain().compile("int x;")


def test_a_compiler_that_hangs_at_its_version(tmp_path, monkeypatch):
    """A process that a script has started holds the pipes."""
    monkeypatch.setattr(cc, "VERSION_TIMEOUT", 0.3)
    monkeypatch.setenv("PYARRAY_CC", script(tmp_path / "cc", "sleep 100\n"))
    with pytest.raises(DeviceError, match=r"does not answer to --version: it ran for 0.3 s; name anoth"):
        cc.toolchain()


def test_quotes_that_are_not_closed(monkeypatch):
    monkeypatch.setenv("PYARRAY_CC", "gcc '-O2")
    with pytest.raises(ValueError, match=r"PYARRAY_CC=.*: expected a command as in a shell, with all quotes closed"):
        cc.toolchain()


def test_the_fingerprint_names_compiler_and_machine():
    assert os.uname().machine in cc.toolchain().fingerprint


def test_cpp_is_compiled_by_the_same_command():
    text = 'template <typename T> T twice(T x) { return 2 * x; }\nextern "C" int f(int x) { return twice(x); }'
    assert cc.toolchain().compile(text, cc.CPP)[1:4] == b"ELF"
    with pytest.raises(CompileError):
        cc.toolchain().compile(text)
    assert cc.zig_cpp(cc.ZIG)[-1] == "c++"


def test_a_compiler_without_its_cpp_half_says_what_to_install(tmp_path, monkeypatch):
    words = "cc: fatal error: cannot execute 'cc1plus': execvp: No such file or directory"
    command = script(tmp_path / "cc", f'[ "$1" = --version ] && echo cc 1 && exit 0\necho "{words}" >&2\nexit 1\n')
    monkeypatch.setenv("PYARRAY_CC", command)
    with pytest.raises(DeviceError, match=r"can't compile C\+\+, in which this kernel is written: install g\+\+"):
        cc.toolchain().compile("int f;", cc.CPP)


def test_words_of_the_cpp_half_are_no_sign_that_it_is_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("PYARRAY_CFLAGS", "-Wstrict-prototypes")  # which g++ warns of: it is for C
    assert cc.toolchain().compile("int f;", cc.CPP)[1:4] == b"ELF"
    words = "cc1plus: fatal error: absent.h: No such file or directory"
    command = script(tmp_path / "cc", f'[ "$1" = --version ] && echo cc 1 && exit 0\necho "{words}" >&2\nexit 1\n')
    monkeypatch.setenv("PYARRAY_CC", command)
    with pytest.raises(CompileError, match=r"absent\.h"):
        cc.toolchain().compile("int f;", cc.CPP)


def test_gcc_links_c_with_few_libraries(tmp_path, monkeypatch):
    """What a kernel calls of libc, libm and libgcc is found; other compilers, C++ and flags of the user,
    which may need more, are linked as the compiler does by itself."""
    log = tmp_path / "log"
    body = 'echo "$*" >> {log}\n[ "$1" = --version ] && echo "{says}" && exit\nexec cc "$@"\n'

    def short(says, flags=(), text="int x;"):
        cc._toolchain.cache_clear()
        monkeypatch.setenv("PYARRAY_CC", script(tmp_path / "cc", body.format(log=log, says=says)))
        cc.toolchain().compile(text, flags)
        return "-nostdlib" in log.read_text().splitlines()[-1]

    gcc = "gcc (GCC) 12.2.0\nCopyright (C) 2022 Free Software Foundation, Inc."
    assert short(gcc)
    assert not short("clang version 19.1.7")
    assert not short(gcc, cc.CPP)
    monkeypatch.setenv("PYARRAY_CFLAGS", "-fopenmp")
    assert not short(gcc)
    monkeypatch.undo()
    text = """#include <math.h>
    #include <string.h>
    double f(const char *from, long n, double x)
    {
        char to[64];
        memcpy(to, from, n);
        return to[1] + exp(x) + (double)((__int128)n * n * n / (n - 1));
    }"""
    path = tmp_path / "f.so"
    path.write_bytes(cc.toolchain().compile(text))
    f = ctypes.CDLL(str(path)).f
    f.argtypes, f.restype = (ctypes.c_char_p, ctypes.c_long, ctypes.c_double), ctypes.c_double
    assert f(b"abc", 3, 0.0) == 98 + 1 + 13
