"""The tests' compile cache: an entry is used only where all inputs of the compiler are the same."""

import compile_cache
import pytest

from pyarray import config

TEXT = "#include <pyarray.h>\nint f(void) { return 1; }\n"


@pytest.fixture(autouse=True)
def cache_dir(tmp_path):
    config.set("PYARRAY_CACHE_DIR", tmp_path / "cache")
    yield tmp_path / "cache"
    config.set("PYARRAY_CACHE_DIR", None)


def command(*more):
    return ["cc", "-shared", "-fPIC", *(f"-I{folder}" for folder in compile_cache.cc.include_dirs()), *more]


def test_a_program_is_compiled_once(tmp_path, monkeypatch):
    first, again = tmp_path / "first.so", tmp_path / "again.so"
    compile_cache.compile_cached(command(), TEXT, first)
    monkeypatch.delattr(compile_cache.subprocess, "run")
    compile_cache.compile_cached(command(), TEXT, again)
    assert first.read_bytes() == again.read_bytes()


def test_what_an_entry_depends_on(cache_dir, tmp_path, monkeypatch):
    def entries():
        return len(list(cache_dir.iterdir()))

    out = tmp_path / "program.so"
    for number, (words, text) in enumerate(
        [(command(), TEXT), (command(), TEXT + " "), (command("-DX"), TEXT)], start=1
    ):
        for _ in range(2):
            compile_cache.compile_cached(words, text, out)
            assert entries() == number
    monkeypatch.setattr(compile_cache, "headers", lambda: "another state of them")
    compile_cache.compile_cached(command(), TEXT, out)
    assert entries() == 4


def test_a_program_that_does_not_compile_is_said_each_time(cache_dir, tmp_path):
    for _ in range(2):
        with pytest.raises(AssertionError, match="error"):
            compile_cache.compile_cached(command(), "none", tmp_path / "program.so")
    assert not cache_dir.exists() or not list(cache_dir.iterdir())


def test_texts_that_passed(monkeypatch):
    compile_cache.AcceptedTexts("gfx90a", "whole").add(["a", "b"])
    again = compile_cache.AcceptedTexts("gfx90a", "whole")
    assert "a" in again
    assert "c" not in again
    assert "a" not in compile_cache.AcceptedTexts("gfx90a", "parsed")
    monkeypatch.setattr(compile_cache, "MAX_DIGESTS", 3)
    again.add(["c", "d"])
    assert list(compile_cache.AcceptedTexts("gfx90a", "whole").digests) == ["c", "d", "a"]
