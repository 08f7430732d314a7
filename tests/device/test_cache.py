"""The disk cache: keys, publication, damage, places that can't be trusted."""

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from pyarray import config
from pyarray.array_convert import asarray
from pyarray.jit import cache
from pyarray.jit import compile as compiler
from pyarray.jit.kernel import kernel


@kernel
def triple(v):
    for i in range(v.size):
        v[i] = v[i] * 3


@pytest.fixture
def place(tmp_path):
    """An empty cache, and nothing in memory."""
    config.set("PYARRAY_CACHE_DIR", tmp_path / "cache")
    loaded = dict(compiler._loaded)
    compiler._loaded.clear()
    cache._warned.clear()
    yield tmp_path / "cache"
    config.set("PYARRAY_CACHE_DIR", None)
    compiler._loaded.update(loaded)


def launched():
    """Counts of a new kernel of the same text, as a second process would see it."""
    compiler._loaded.clear()
    again = kernel(triple.__wrapped__)
    again(v := asarray(np.ones(4)))
    assert v.tolist() == [3.0] * 4
    info = again.cache_info()
    return info["compiles"], info["disk_hits"]


def test_second_process_finds_the_artifact(place):
    assert launched() == (1, 0)
    assert launched() == (0, 1)
    (entry,) = place.iterdir()
    assert entry.suffix == ".kernel"
    assert place.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "damage", [lambda b: b[: len(b) // 2], lambda b: b"", lambda b: b"{}\n", lambda b: b[:-1] + b"?"]
)
def test_a_damaged_entry_is_a_miss(place, damage):
    launched()
    (entry,) = place.iterdir()
    entry.write_bytes(damage(entry.read_bytes()))
    with pytest.warns(RuntimeWarning, match="is damaged; it is rebuilt") as caught:
        assert launched() == (1, 0)
    assert len(caught) == 1
    assert launched() == (0, 1)


def test_flags_and_text_are_keys(place):
    launched()
    kernel(triple.__wrapped__, flags=("-O1",))(asarray(np.ones(4)))
    kernel(triple.__wrapped__)(asarray(np.ones(4, np.float32)))
    kernel(triple.__wrapped__, debug=True)(asarray(np.ones(4)))
    assert len(list(place.iterdir())) == 4
    assert cache.key_of("ab", "c") != cache.key_of("a", "bc")


def test_off_and_run_only(place):
    config.set("PYARRAY_CACHE", False)
    try:
        assert launched() == (1, 0)
        assert not place.exists()
        config.set("PYARRAY_RUN_ONLY", True)
        with pytest.raises(RuntimeError, match="PYARRAY_RUN_ONLY=1 forbids compiling"):
            launched()
    finally:
        config.set("PYARRAY_CACHE", None)
        config.set("PYARRAY_RUN_ONLY", None)


def test_a_place_that_others_can_write_to_is_refused(place):
    place.mkdir()
    place.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="it belongs to or can be written by others"):
        assert launched() == (1, 0)
    assert not list(place.iterdir())
    assert launched() == (1, 0)  # and says so once


def test_a_place_that_cannot_be_made(place):
    place.write_text("a file")
    with pytest.warns(RuntimeWarning, match="can't be used"):
        assert launched() == (1, 0)


def test_lines_that_moved_are_todays(tmp_path):
    program = """
        import numpy as np
        from pyarray.array_convert import asarray
        from pyarray.jit.kernel import kernel
        {}
        @kernel(debug=True)
        def k(v):
            for i in range(v.size + 1):
                v[i] = 1
        try:
            k(asarray(np.zeros(2)))
        except IndexError as error:
            print(error.frames[0].line, k.cache_info()["compiles"])
    """
    lines = []
    for filler in ("", "\n        # a line more"):
        path = tmp_path / "program.py"
        path.write_text(textwrap.dedent(program.format(filler)))
        done = subprocess.run(
            [sys.executable, path], capture_output=True, text=True, check=True, env=dict(os.environ)
        )
        lines.append(tuple(map(int, done.stdout.split())))
    assert lines[1] == (lines[0][0] + 1, 0)
