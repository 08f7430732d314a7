"""What was compiled with the package: found after the user's cache, only read, and made by common calls."""

import contextlib
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import pyarray as pa
from pyarray import __main__ as command
from pyarray import config, warm
from pyarray.api.core import registry
from pyarray.errors import DeviceError
from pyarray.jit import cache
from pyarray.jit import compile as compiler
from pyarray.jit.kernel import kernel

PARTS = 4
FEW = (
    (("float32",), ("a + b", "sum(a)", "sort(a)", "m @ w")),
    (("float32", "int64"), ("a[mask]", "cumulative_sum(a)")),
)


@kernel
def triple(v):
    for i in range(v.size):
        v[i] = v[i] * 3


def launched():
    """Counts of a new kernel of the same text, as a second process would see it."""
    compiler._loaded.clear()
    compiler._recent.clear()
    again = kernel(triple.__wrapped__)
    again(v := pa.asarray(np.ones(4)))
    assert v.tolist() == [3.0] * 4
    info = again.cache_info()
    return info["compiles"], info["disk_hits"]


@pytest.fixture
def cache_dirs(tmp_path):
    """An empty user's cache, and a warmed one that holds `triple`."""
    user, built = tmp_path / "user", tmp_path / "built"
    config.set("PYARRAY_CACHE_DIR", built)
    assert launched() == (1, 0)
    config.set("PYARRAY_CACHE_DIR", user)
    config.set("PYARRAY_WARMED", built)
    yield user, built
    config.set("PYARRAY_CACHE_DIR", None)
    config.set("PYARRAY_WARMED", None)


def test_it_is_found_behind_the_users(cache_dirs):
    user, built = cache_dirs
    (entry,) = built.iterdir()
    before = entry.stat()
    assert launched() == (0, 1)
    assert not list(user.iterdir())
    assert entry.stat() == before
    assert cache.info().entries == 0
    assert cache.info().warmed.total() == 1


def test_a_damaged_entry_is_rebuilt_into_the_users(cache_dirs):
    user, built = cache_dirs
    (entry,) = built.iterdir()
    damaged = entry.read_bytes()[:-1] + b"?"
    entry.write_bytes(damaged)
    with pytest.warns(RuntimeWarning, match=f"is damaged; it is not used.* cache warm {built}") as caught:
        assert launched() == (1, 0)
    assert len(caught) == 1
    assert [path.name for path in user.iterdir()] == [entry.name]
    assert entry.read_bytes() == damaged
    assert launched() == (0, 1)


def test_one_that_others_can_write_to_is_refused(cache_dirs):
    _, built = cache_dirs
    cache._warned.clear()
    built.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="are not used: it belongs to or can be written by others"):
        assert launched() == (1, 0)
    built.chmod(0o755)
    assert cache.warmed() == built


@pytest.mark.parametrize(("owner", "trusted"), [(0, True), (1, False)])
def test_whose_it_may_be(cache_dirs, monkeypatch, owner, trusted):
    _, built = cache_dirs
    cache._warned.clear()
    status = os.stat_result((0o40755, 0, 0, 2, owner, 0, 0, 0, 0, 0))
    monkeypatch.setattr(os, "getuid", lambda: 2)
    monkeypatch.setattr(type(built), "stat", lambda *_, **__: status)
    with contextlib.nullcontext() if trusted else pytest.warns(RuntimeWarning, match="belongs to"):
        assert (cache.warmed() is not None) == trusted


@pytest.mark.parametrize(("setting", "value"), [("PYARRAY_CACHE", False), ("PYARRAY_WARMED", False)])
def test_it_can_be_off(cache_dirs, setting, value):
    before = config.get(setting)
    config.set(setting, value)
    try:
        assert launched() == (1, 0)
        assert cache.warmed() is None
    finally:
        config.set(setting, before)


def test_it_serves_where_the_users_directory_cannot(cache_dirs):
    user, _ = cache_dirs
    user.write_text("a file")
    cache._warned.clear()
    with pytest.warns(RuntimeWarning, match="can't be used"):
        assert launched() == (0, 1)


def test_clear_and_run_only(cache_dirs):
    _, built = cache_dirs
    config.set("PYARRAY_RUN_ONLY", True)
    try:
        assert launched() == (0, 1)
    finally:
        config.set("PYARRAY_RUN_ONLY", None)
    assert cache.clear() == 0
    assert len(list(built.iterdir())) == 1


def test_the_setting(monkeypatch, tmp_path):
    for text, value in (("0", False), ("off", False), (str(tmp_path), tmp_path), ("", None)):
        monkeypatch.setenv("PYARRAY_WARMED", text)
        assert config.get("PYARRAY_WARMED") == value
    monkeypatch.setenv("PYARRAY_WARMED", "1")
    with pytest.raises(ValueError, match="PYARRAY_WARMED='1': expected a directory, or 0 for none"):
        config.get("PYARRAY_WARMED")


@pytest.mark.parametrize("part", range(PARTS))
def test_common_calls_can_be_made(part):
    calls = {call.text: call for call in warm.common_calls()}  # each once: a kernel costs a compile
    assert len(calls) > 100
    assert [said for call in list(calls.values())[part::PARTS] if (said := warm.make(call))] == []


# Of what the guides call: views, memory, copies, and what says or sets something.
NO_KERNEL = {
    *("BufferView", "broadcast_to", "empty", "empty_like", "full", "ones", "zeros", "from_dlpack", "asnumpy"),
    *("default_device", "get_default_device", "get_device", "set_default_device", "Stream", "synchronize"),
    *("cache_info", "debug", "dump", "dump_tag", "get_default_memory_pool", "load_dump", "show_config"),
    *("transfer_info", "default_rng", "Generator", "finfo", "isdtype", "issubdtype"),
    *("capture", "cost_analysis", "TimeModel", "RandomState"),
}
THE_USERS = {  # whose text is the user's own
    *("ElementwiseKernel", "RawKernel", "RawModule", "ReductionKernel", "fuse", "kernel", "load_kernel"),
    *("vectorize", "atomic_add", "atomic_max", "autotune", "Config", "rng", "ndrange", "tiles", "unordered"),
    *("int32", "float32", "array", "inv", "vector_norm", "zeros_like"),  # in kernels
    "gemm",  # by its activation
}
CALL = r"\bpa\.(?:(?:linalg|fft|random|special)\.)?(\w+)\("
OPERATORS = {"add": "+", "matmul": "@"}  # whose kernel is the operator's


def test_what_the_guides_call_is_made_ahead():
    root = Path(__file__).resolve().parents[2]
    pages = [root / "README.md", *(root / "docs" / "guide").glob("*.md")]
    called = {name for page in pages for name in re.findall(CALL, page.read_text())}
    made = " ".join(call.text for call in warm.common_calls())
    assert len(called) > 40
    for name in called - NO_KERNEL - THE_USERS:
        assert re.search(rf"\b{name}\(", made) or f" {OPERATORS.get(name)} " in made, (
            f"the guides call {name}, and no call is made ahead: declare one (@precompiled), or say here why not"
        )
    assert not {name for name in NO_KERNEL | THE_USERS if re.search(rf"\b{name}\(", made)}


def test_a_call_that_fails_says_so():
    assert warm.make(warm.Call("bool", "a[99]", 16)).startswith("a[99] of bool: IndexError: ")


PROGRAM = """
    import pyarray as pa
    from pyarray import warm
    for dtypes, texts in {rows}:
        for call in [warm.Call(dtype, text, 50) for text in texts for dtype in dtypes]:
            assert warm.make(call) is None
    info = pa.cache_info()
    print(info["compiles"], info["disk_hits"])
"""


@pytest.mark.slow
def test_a_fresh_process_compiles_nothing_of_it(tmp_path, monkeypatch, capfd):
    built, user = tmp_path / "built", tmp_path / "user"
    monkeypatch.setattr(warm, "LARGE", ((("float32",), ("m @ w",)),))  # the tuner has nothing to say about it
    monkeypatch.setattr(warm, "CALLS", FEW)
    monkeypatch.setattr(registry, "common_calls", [])
    built.mkdir()
    for stale in (f"{'0' * 64}.kernel", ".new-abc"):
        (built / stale).write_bytes(b"")
        os.utime(built / stale, (1, 1))
    done = warm.warm(built, processes=2)
    assert done.failures == ()
    names = sorted(path.name for path in built.iterdir())
    assert len(names) == done.entries > 5
    assert all(name.endswith(".kernel") and name[0:8] != "00000000" for name in names)
    assert built.stat().st_mode & 0o777 == 0o755
    assert {path.stat().st_mode & 0o777 for path in built.iterdir()} == {0o644}

    environment = os.environ | {"PYARRAY_CACHE_DIR": str(user), "PYARRAY_WARMED": str(built)}
    program = [sys.executable, "-c", textwrap.dedent(PROGRAM.format(rows=FEW))]
    said = subprocess.run(program, env=environment, capture_output=True, text=True, check=True).stdout
    compiles, disk_hits = map(int, said.split())
    assert compiles == 0
    assert disk_hits == done.entries
    assert not list(user.iterdir())


def test_the_command(tmp_path, monkeypatch, capsys):
    done = warm.Warmed(tmp_path, 7, ("sum(a) of bool: ValueError: no",))
    monkeypatch.setattr(warm, "warm", lambda directory: done._replace(directory=directory))
    command.main(["cache", "warm", "there"])
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("7 entries in there\n", "sum(a) of bool: ValueError: no\n")

    def refuse(directory):
        raise DeviceError("no C compiler")

    monkeypatch.setattr(warm, "warm", refuse)
    with pytest.raises(SystemExit, match="no C compiler"):
        command.main(["cache", "warm"])


def test_the_report(cache_dirs, capsys):
    _, built = cache_dirs
    (entry,) = built.iterdir()
    (built / f"{'1' * 64}.kernel").write_bytes(b"{}\n")
    command.main(["cache", "info"])
    assert f"1 entries in {built}, and 1 for another compiler or processor" in capsys.readouterr().out
    entry.unlink()
    (built / f"{'1' * 64}.kernel").unlink()
    command.main(["cache", "info"])
    assert "nothing with this package" in capsys.readouterr().out
