"""The caches: keys, publication, damage, places that can't be trusted, size, many processes, keys by axis."""

import dataclasses
import gc
import os
import subprocess
import sys
import textwrap
import threading
import time
import weakref

import numpy as np
import pytest

import pyarray as pa
from pyarray import __main__ as command
from pyarray import config
from pyarray.array_convert import asarray
from pyarray.driver import cc, get_device
from pyarray.jit import atomic_file, cache
from pyarray.jit import compile as compiler
from pyarray.jit.kernel import kernel
from pyarray.jit.variants import Variants
from pyarray.tune import store as tune_store


@kernel
def triple(v):
    for i in range(v.size):
        v[i] = v[i] * 3


@pytest.fixture
def cache_dir(tmp_path):
    """An empty cache, and nothing in memory."""
    config.set("PYARRAY_CACHE_DIR", tmp_path / "cache")
    forget()
    cache._warned.clear()
    yield tmp_path / "cache"
    config.set("PYARRAY_CACHE_DIR", None)


def forget():
    """Nothing that was loaded is found in memory."""
    compiler._loaded.clear()
    compiler._recent.clear()


def launched():
    """Counts of a new kernel of the same text, as a second process would see it."""
    forget()
    again = kernel(triple.__wrapped__)
    again(v := asarray(np.ones(4)))
    assert v.tolist() == [3.0] * 4
    info = again.cache_info()
    return info["compiles"], info["disk_hits"]


def test_headers_in_the_users_folder_are_not_ours(cache_dir, monkeypatch, tmp_path):
    (tmp_path / "pa_base.h").write_text("#error found where the user works")
    monkeypatch.chdir(tmp_path)
    assert launched() == (1, 0)


def test_second_process_finds_the_artifact(cache_dir):
    assert launched() == (1, 0)
    assert launched() == (0, 1)
    (entry,) = cache_dir.iterdir()
    assert entry.suffix == ".kernel"
    assert cache_dir.stat().st_mode & 0o777 == 0o700


@pytest.mark.all_variants
@pytest.mark.parametrize(
    "damage",
    [
        lambda b: b[: len(b) // 2],
        lambda b: b"",
        lambda b: b"{}\n",
        lambda b: b[:-1] + b"?",
        lambda b: b"[" * 200_000 + b"\n" + b,
        lambda b: b"[" * 60_000 + b"\n" + b,
        lambda b: b'{"sha256": ' * 5000 + b"\n" + b,
        lambda b: b"\xff\n" + b,
    ],
)
def test_a_damaged_entry_is_a_miss(cache_dir, damage):
    launched()
    (entry,) = cache_dir.iterdir()
    entry.write_bytes(damage(entry.read_bytes()))
    with pytest.warns(RuntimeWarning, match="is damaged; it is rebuilt") as caught:
        assert launched() == (1, 0)
    assert len(caught) == 1
    assert launched() == (0, 1)


def test_an_entry_that_others_can_write_is_rebuilt(cache_dir):
    launched()
    (entry,) = cache_dir.iterdir()
    entry.chmod(0o666)
    with pytest.warns(RuntimeWarning, match="belongs to or can be written by others; it is rebuilt"):
        assert launched() == (1, 0)
    assert launched() == (0, 1)


def test_the_tuner_s_folder_is_not_used_where_others_can_write(cache_dir):
    folder = tune_store.folder()
    assert folder == cache_dir / "tune"
    folder.chmod(0o777)
    assert tune_store.folder() is None


def test_long_flags_leave_an_entry_sound(cache_dir, monkeypatch):
    monkeypatch.setenv("PYARRAY_CFLAGS", "-DLONG=" + 60_000 * "\u00e9")
    assert launched() == (1, 0)
    assert launched() == (0, 1)


def test_flags_and_text_are_keys(cache_dir):
    launched()
    kernel(triple.__wrapped__, flags=("-O1",))(asarray(np.ones(4)))
    kernel(triple.__wrapped__)(asarray(np.ones(4, np.float32)))
    kernel(triple.__wrapped__, debug=True)(asarray(np.ones(4)))
    assert len(list(cache_dir.iterdir())) == 4
    assert cache.key_of("ab", "c") != cache.key_of("a", "bc")


def test_flags_are_texts():
    assert kernel(triple.__wrapped__, flags="-O1").flags == ("-O1",)
    assert kernel(triple.__wrapped__, flags=["-O1", "-g"]).flags == ("-O1", "-g")
    for wrong in (3, [None], {"-O1": 1}):
        with pytest.raises(TypeError, match=r'flags of a kernel are texts.*got .*flags=\("-O1", "-g"\)'):
            kernel(triple.__wrapped__, flags=wrong)


def test_off_and_run_only(cache_dir):
    config.set("PYARRAY_CACHE", False)
    try:
        assert launched() == (1, 0)
        assert not cache_dir.exists()
        config.set("PYARRAY_RUN_ONLY", True)
        with pytest.raises(RuntimeError, match="PYARRAY_RUN_ONLY=1 forbids compiling"):
            launched()
    finally:
        config.set("PYARRAY_CACHE", None)
        config.set("PYARRAY_RUN_ONLY", None)


def test_a_place_that_others_can_write_to_is_refused(cache_dir):
    cache_dir.mkdir()
    cache_dir.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="it belongs to or can be written by others"):
        assert launched() == (1, 0)
    assert not list(cache_dir.iterdir())
    assert launched() == (1, 0)  # and says so once


def test_a_place_that_cannot_be_made(cache_dir):
    cache_dir.write_text("a file")
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
        done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=True, env=dict(os.environ))
        lines.append(tuple(map(int, done.stdout.split())))
    assert lines[1] == (lines[0][0] + 1, 0)


def test_what_cannot_be_loaded_is_not_published(cache_dir, monkeypatch):
    whole = cc.Toolchain.compile
    monkeypatch.setattr(cc.Toolchain, "compile", lambda self, *args: whole(self, *args)[:500])
    with pytest.raises(pa.DeviceError, match=r"can't load the compiled .*; the compiler that made it: "):
        launched()
    assert not cache_dir.exists() or not list(cache_dir.iterdir())
    monkeypatch.undo()
    assert launched() == (1, 0)


def test_a_sound_entry_that_cannot_be_loaded_is_made_anew(cache_dir, monkeypatch):
    launched()
    (entry,) = cache_dir.iterdir()
    right = entry.read_bytes()
    cache.publish(entry.stem, b"no shared object", {"kernel": "triple"})
    config.set("PYARRAY_RUN_ONLY", True)
    try:
        with pytest.raises(pa.DeviceError, match="can't load the compiled kernel"):
            launched()
    finally:
        config.set("PYARRAY_RUN_ONLY", None)
    with pytest.warns(RuntimeWarning, match="can't be loaded .*; it is compiled again"):
        assert launched() == (1, 0)
    assert entry.read_bytes()[-1000:] == right[-1000:]
    assert launched() == (0, 1)


def test_a_folder_without_execution_is_named(monkeypatch):
    class Status:
        f_flag = os.ST_NOEXEC

    monkeypatch.setattr(os, "statvfs", lambda path: Status)
    with pytest.raises(pa.DeviceError, match=r"mounted noexec\): set TMPDIR to a folder of another one"):
        pa.get_device("cpu").driver.load(b"what dlopen refuses, for this reason or another")


# ---- places


def test_a_directory_that_cannot_be_written_to(cache_dir, monkeypatch):
    assert launched() == (1, 0)

    def refuse(*_):
        raise PermissionError("read-only")

    monkeypatch.setattr(cache, "replace_file", refuse)
    assert launched() == (0, 1)  # it is still read
    with pytest.warns(RuntimeWarning, match="can't be written to"):
        kernel(triple.__wrapped__)(asarray(np.ones(4, np.int16)))
    kernel(triple.__wrapped__)(asarray(np.ones(4, np.int8)))  # and says so once


def test_a_full_disk_leaves_nothing(cache_dir, monkeypatch):
    def refuse(*_):
        raise OSError("no space")

    cache_dir.mkdir(mode=0o700)
    monkeypatch.setattr(atomic_file.os, "replace", refuse)
    cache._warned.clear()
    with pytest.warns(RuntimeWarning, match=r"can't be written to \(no space\)"):
        cache.publish("0" * 64, b"text", {})
    assert not list(cache_dir.iterdir())


def test_somebody_elses_directory(cache_dir, monkeypatch):
    cache_dir.mkdir(mode=0o700)
    monkeypatch.setattr(os, "getuid", lambda: cache_dir.stat().st_uid + 1)
    with pytest.warns(RuntimeWarning, match="it belongs to or can be written by others"):
        assert launched() == (1, 0)
    assert not list(cache_dir.iterdir())
    assert cache.info().directory is None
    assert cache.clear() == 0


def test_run_only_names_kernel_key_and_directory(cache_dir):
    config.set("PYARRAY_RUN_ONLY", True)
    try:
        forget()
        again = kernel(triple.__wrapped__)
        key = again.cache_key(v := asarray(np.ones(4)))["artifact"]
        with pytest.raises(RuntimeError, match=f"'triple' is not in the cache .{cache_dir}, entry {key[:16]}"):
            again(v)
        config.set("PYARRAY_RUN_ONLY", None)
        assert launched() == (1, 0)
        config.set("PYARRAY_RUN_ONLY", True)
        assert launched() == (0, 1)
    finally:
        config.set("PYARRAY_RUN_ONLY", None)


# ---- size


@pytest.fixture
def cap():
    """Sets the cap, and looks at the directory anew."""

    def change(value):
        config.set("PYARRAY_CACHE_MAX_BYTES", value)
        cache._sizes.clear()

    yield change
    change(None)


def publish(number, size=1000):
    cache.publish(f"{number:064x}", bytes(size), {})


def numbers(cache_dir):
    return sorted(int(f.stem, 16) for f in cache_dir.glob("*.kernel"))


def test_what_was_used_longest_ago_is_deleted(cache_dir, cap):
    cap(5500)
    now = time.time()
    for n in range(5):
        publish(n)
        os.utime(cache_dir / f"{n:064x}.kernel", (now - 100 + n, now - 100 + n))
    assert cache.find(f"{0:064x}") == bytes(1000)  # used just now
    publish(5)
    assert numbers(cache_dir) == [0, 3, 4, 5]
    info = cache.info()
    assert (info.directory, info.entries, info.cap) == (cache_dir, 4, 5500)
    assert 4000 < info.bytes <= 5500 * cache.CLEANED_PART


def test_one_that_is_too_large_is_not_kept(cache_dir, cap):
    cap(900)
    publish(1)
    assert numbers(cache_dir) == []
    cap(0)
    assert launched() == (1, 0)
    assert numbers(cache_dir) == []


def test_other_processes_entries_count(cache_dir, cap):
    cap(5500)
    publish(0)
    for n in range(1, 9):  # another process's
        (cache_dir / f"{n:064x}.kernel").write_bytes(bytes(1000))
    cache._sizes.clear()
    publish(9)
    assert cache.info().bytes <= 5500


def test_what_a_killed_process_left_is_deleted_later(cache_dir):
    code = """
        import os, signal
        from pyarray.jit import cache
        cache.os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        cache.publish("0" * 64, b"half", {})
    """
    environment = os.environ | {"PYARRAY_CACHE_DIR": str(cache_dir)}
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], env=environment)
    assert done.returncode == -9
    (left,) = cache_dir.iterdir()
    assert left.name.startswith(".new-")
    cache._sizes.clear()
    assert launched() == (1, 0)
    assert left.exists()  # it might still be at work
    os.utime(left, (1, time.time() - cache.STALE - 1))
    cache._sizes.clear()
    publish(1)
    assert not left.exists()


def test_clear_deletes_what_is_ours(cache_dir):
    launched()
    (cache_dir / ".new-abc").write_bytes(b"")
    for name in ("notes.txt", "x.kernel", ".newer"):
        (cache_dir / name).write_text("mine")
    (cache_dir / ("0" * 64 + ".kernel")).mkdir()
    assert cache.clear() == 2
    assert sorted(f.name for f in cache_dir.iterdir()) == [
        ".newer",
        "0" * 64 + ".kernel",
        "notes.txt",
        "x.kernel",
    ]
    assert launched() == (1, 0)


def test_the_command(cache_dir, capsys):
    launched()
    command.main(["cache", "info"])
    printed = capsys.readouterr().out
    assert str(cache_dir) in printed
    assert f"1 entries, {cache.info().bytes} bytes of at most 536870912" in printed
    command.main(["cache", "clear"])
    assert capsys.readouterr().out == f"1 files of kernels and 0 of the tuner deleted from {cache_dir}\n"
    config.set("PYARRAY_CACHE", False)
    try:
        command.main(["cache", "info"])
        assert "off" in capsys.readouterr().out
    finally:
        config.set("PYARRAY_CACHE", None)
    with pytest.raises(SystemExit):
        command.main(["cache", "burn"])


def test_clear_deletes_what_the_tuner_knows(cache_dir, capsys):
    """Its leftovers, too, but no lock, which somebody may hold, and nothing of others."""
    store = tune_store.Store("m.f", "0123456789ab")
    store.merge("k", {"timings": {"a": {"config": "a", "reason": "slow"}}})
    with tune_store.locked("search-0a"), tune_store.locked("timing-cuda-0"):
        pass
    store.path.with_name(f"{store.name}.aside-17").write_text("{")
    for name in (".new-abc", "notes.json", "0123456789ab.json"):
        store.path.with_name(name).write_text("")
    command.main(["cache", "clear"])
    assert capsys.readouterr().out == f"0 files of kernels and 3 of the tuner deleted from {cache_dir}\n"
    left = {f.name for f in (cache_dir / "tune").iterdir() if f.suffix != ".lock"}
    assert left == {"0123456789ab.json", "notes.json"}
    assert (cache_dir / "tune" / "search-0a.lock").exists()
    assert store.entries() == {}


def test_the_report(capsys):
    command.main([])
    printed = capsys.readouterr().out
    for word in (pa.__version__, "device cpu", "threads", "C compiler", "kernel cache", "default device"):
        assert word in printed


# ---- many processes

PROGRAM = """
    import sys, numpy as np, pyarray as pa
    @pa.kernel
    def k(v, n: pa.constexpr):
        for i in range(v.size):
            v[i] = v[i] * n
    for n in range(2):
        v = pa.asarray(np.arange(5.0))
        k(v, n)
        assert v.tolist() == [0.0, n, 2 * n, 3 * n, 4 * n]
    info = k.cache_info()
    assert info["compiles"] + info["disk_hits"] == 2
"""


@pytest.mark.slow
def test_eight_cold_processes_and_one_that_is_killed(cache_dir):
    program = cache_dir.parent / "program.py"
    program.write_text(textwrap.dedent(PROGRAM))
    environment = os.environ | {"PYARRAY_CACHE_DIR": str(cache_dir)}
    running = [subprocess.Popen([sys.executable, program], env=environment) for _ in range(8)]
    victim = running.pop()
    victim.kill()
    victim.wait()
    assert [p.wait() for p in running] == [0] * 7
    entries = list(cache_dir.glob("*.kernel"))
    assert len(entries) == 2
    assert all(cache.find(e.stem) for e in entries)


# ---- keys by axis


def make(**options):
    def scale(v, x, f: float, n: pa.constexpr = 1):
        for i in range(v.shape[0]):
            v[i] = v[i] * x * f + n

    return kernel(scale, **options)


def test_what_is_no_axis(device):
    k, a = make(), pa.ones(64, device=device)
    key = k.cache_key(a, 2, 1.0)
    for other in (a[3:40], a[1:], pa.ones(7, device=device), pa.ones(0, device=device), a[5:6]):
        assert k.cache_key(other, 7, 2.5) == key
        assert hash(k.cache_key(other, 7, 2.5)) == hash(key)
    assert k.cache_key(a, x=2, f=1.0) == k.cache_key(a, 2, 1.0, 1) == key
    assert k.cache_info() == {"compiles": 0, "disk_hits": 0, "misses": 0, "hits": 0, "variants": 0}
    strided = k.cache_key(a[::2], 2, 1.0)
    assert strided == k.cache_key(a[::-3], 2, 1.0) == k.cache_key(a[1:9:4], 2, 1.0) != key


def test_what_is_an_axis(device):
    k, a = make(), pa.ones(64, device=device)
    readonly = a[:]
    readonly.setflags(write=False)
    plain = k.cache_key(a, 2, 1.0)
    assert (plain["v.dtype"], plain["v.ndim"], plain["v.layout"]) == ("float64", 1, "contiguous")
    for axis, args in {
        "v.dtype": (a.astype(pa.float32), 2, 1.0),
        "v.layout": (a[::2], 2, 1.0),
        "v.access": (readonly, 2, 1.0),
        "v.pins": (a.mark_static(), 2, 1.0),
        "x.type": (a, 2.0, 1.0),
        "n.value": (a, 2, 1.0, 1.0),  # 1.0 is another constant than 1
    }.items():
        other = k.cache_key(*args)
        differing = [name for name in plain if plain[name] != other[name] and name != "artifact"]
        assert differing == [axis]
    with pa.debug():
        assert k.cache_key(a, 2, 1.0)["debug"] is True
    assert make(wraparound=True).cache_key(a, 2, 1.0)["wraparound"] is True
    assert make(flags=("-O1",)).cache_key(a, 2, 1.0)["flags"] == ("-O1",)
    text = repr(plain)
    assert "v.dtype: float64" in text
    assert "artifact: " in text


def test_a_rank_that_the_body_allows(device):
    @kernel
    def first(out, v):
        out[0] = v.shape[0]

    a = pa.ones((5, 1), device=device)
    one, two = (first.cache_key(a.ravel(), x) for x in (a.ravel(), a))
    assert [n for n in one if one[n] != two[n] and n != "artifact"] == ["v.ndim"]


def test_captured_values_are_axes(device):
    n = 2

    @kernel
    def k(v):
        for i in range(v.size):
            v[i] = v[i] + n

    a = pa.ones(3, device=device)
    key = k.cache_key(a)
    assert key["captured n"] == "2"
    k(a)
    assert k.explain_miss(a) is None
    n = 3
    assert k.cache_key(a)["captured n"] == "3"
    assert "captured n: 3, there 2" in k.explain_miss(a)
    k(a)
    assert k.explain_miss(a) is None
    assert a.tolist() == [6.0] * 3


def test_explain_miss(device):
    k, a = make(), pa.ones(8, device=device)
    assert "has no variants yet" in k.explain_miss(a, 2, 1.0)
    k(a, 2, 1.0)
    before = k.cache_info()
    assert k.explain_miss(a[2:5], 3, 0.5) is None
    with pa.default_device(device):
        assert k.explain_miss(np.ones(4), 3, 0.5) is None
    text = k.explain_miss(a[::2], 2.0, 1.0)
    assert text.splitlines()[1:] == [
        "  v.layout: strided, there contiguous",
        "  x.type: float64 (weak), there int64 (weak)",
    ]
    k(a[::2], 2, 1.0)
    lines = k.explain_miss(a[::2], 2.0, 1.0).splitlines()
    assert "of its 2 variants" in lines[0]
    assert lines[1:] == ["  x.type: float64 (weak), there int64 (weak)"]  # the nearest is another one now
    with pa.debug():
        assert "debug: True, there False" in k.explain_miss(a, 2, 1.0)
    with pytest.raises(TypeError, match="'v' can't be a list"):
        k.explain_miss([1.0], 2, 1.0)
    with pytest.raises(TypeError, match="missing a required argument"):
        k.explain_miss(a)
    after = k.cache_info()
    assert after == before | {
        "misses": 2,
        "variants": 2,
        "compiles": after["compiles"],
        "disk_hits": after["disk_hits"],
    }


# ---- settings

OTHER = {"PYARRAY_CC": "cc -O3", "PYARRAY_CFLAGS": "-DOTHER=1", "PYARRAY_DEBUG": True}


@pytest.mark.parametrize("name", list(config.SETTINGS))
def test_settings_that_change_code_are_in_the_key(name):
    k, a = make(), pa.ones(3)
    key, row = k.cache_key(a, 2, 1.0), config.SETTINGS[name]
    values = OTHER | {"PYARRAY_DEVICE": "cpu", "PYARRAY_AUTOTUNE": "off", "PYARRAY_WARMED": False}
    values |= {"PYARRAY_FLOAT32_MATMUL_PRECISION": "tf32"}
    kinds = {"path": "/nowhere", "flag": not row.default, "integer ≥ 1": 2}
    value = values.get(name, kinds.get(row.kind.words, 1))
    config.set(name, value)
    try:
        other = k.cache_key(a, 2, 1.0)
    finally:
        config.set(name, None)
    assert (name in key) == row.code
    assert (other["artifact"] != key["artifact"]) == row.code
    assert (other != key) == row.code


def test_a_new_setting_takes_effect_at_the_next_launch():
    """Of user kernels and of the library's."""
    k, a = make(), pa.ones((3, 3))
    k(v := pa.ones(3), 2, 1.0)
    for _ in range(3):  # so that all short ways are there
        a + a, a @ a, pa.sum(a)
    config.set("PYARRAY_CFLAGS", "-DOTHER=2")
    try:
        before = pa.cache_info()["misses"]
        assert True
        k(v, 2, 1.0)
        assert k.cache_info()["misses"] == 2
        assert (a + a).tolist() == [[2.0] * 3] * 3
        assert (a @ a).tolist() == [[3.0] * 3] * 3
        assert pa.sum(a).item() == 9
        assert pa.cache_info()["misses"] >= before + 3
    finally:
        config.set("PYARRAY_CFLAGS", None)


def test_the_compilers_own_arguments_are_in_the_key():
    k, a, keys = make(), pa.ones(3), set()
    for command_line in ("cc", "cc -O1", "cc -O2"):
        config.set("PYARRAY_CC", command_line)
        try:
            keys.add(k.cache_key(a, 2, 1.0)["toolchain"])
        finally:
            config.set("PYARRAY_CC", None)
    assert len(keys) == 3


def test_headers_are_in_the_key(cache_dir, monkeypatch):
    assert launched() == (1, 0)
    monkeypatch.setattr(compiler, "headers", lambda: "those of another release")
    assert launched() == (1, 0)
    assert len(list(cache_dir.iterdir())) == 2


def test_the_compiler_is_in_the_key(cache_dir):
    """Another version of it may make another binary of the same text."""
    device = get_device("cpu")
    first = compiler.key_of("text", (), device, ())
    found = cc.toolchain()
    with pytest.MonkeyPatch.context() as patch:
        newer = dataclasses.replace(found, fingerprint=f"{found.fingerprint} of another version")
        patch.setattr(cc, "toolchain", lambda: newer)
        assert device.driver.compiler().fingerprint == newer.fingerprint
        assert compiler.key_of("text", (), device, ()) != first
    assert compiler.key_of("text", (), device, ()) == first


# ---- memory


def test_a_module_lives_as_long_as_what_could_run_it(monkeypatch):
    unloaded = []
    driver = pa.get_device("cpu").driver
    monkeypatch.setattr(type(driver), "unload", lambda self, module: unloaded.append(module))
    forget()
    k = make()
    k(a := pa.ones(4), 2, 1.0)
    variant = next(iter(k._variants))
    module, launch = weakref.ref(variant.artifact.function.module), variant.launch
    handle = module().handle
    del variant, k
    compiler._recent.clear()
    gc.collect()
    assert module() is not None  # the launcher holds it
    launch(a, 2, 1.0, 1)
    assert a.tolist() == [7.0] * 4
    del launch
    gc.collect()
    assert module() is None
    assert unloaded == [handle]


def test_loaded_artifacts_are_bounded(monkeypatch):
    monkeypatch.setattr(compiler, "MAX_LOADED", 3)
    pa.ones(2)  # whose kernel the library holds from its first use on
    forget()
    for n in range(6):
        make()(a := pa.ones(2), 1, 1.0, n)
        assert a.tolist() == [1.0 + n] * 2
    gc.collect()
    assert len(compiler._recent) == 3
    assert len(compiler._loaded) == 3


def test_launches_go_on_while_variants_are_dropped():
    """Threads launch pinned sizes that push each other out."""

    @kernel
    def fill(v, x: float):
        for i in range(v.size):
            v[i] = x

    fill._variants = Variants(most=1)
    arrays = [pa.zeros(n).mark_static() for n in (2, 3, 4)]
    wrong = []

    def work(seed):
        for turn in range(60):
            a = pa.zeros(arrays[(seed + turn) % 3].size).mark_static()
            fill(a, float(seed))
            if a.tolist() != [float(seed)] * a.size:
                wrong.append((seed, turn))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    assert len(fill._variants) <= 2


# ---- never stale


def run_twice(tmp_path, first, second):
    """What two versions of a program print, one after the other with one cache; `k` is its kernel."""
    printed = []
    for files in (first, second):
        for name, text in files.items():
            (tmp_path / name).write_text(textwrap.dedent(text))
        environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": f"{os.getcwd()}:{tmp_path}"}
        done = subprocess.run([sys.executable, tmp_path / "main.py"], capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout.split())
    return printed


MAIN = """
    import numpy as np, pyarray as pa, helper
    {}
    @pa.kernel
    def k(v):
        for i in range(v.size):
            v[i] = helper.step(v[i]) + LIMIT
    v = pa.asarray(np.ones(2))
    k(v)
    print(v[0].item())
"""
HELPER = """
    import pyarray as pa
    @pa.func
    def step(x):
        return x * {}
"""


def test_a_constant_changed_between_processes(tmp_path):
    first = {"helper.py": HELPER.format(2), "main.py": MAIN.format("LIMIT = 10")}
    assert run_twice(tmp_path, first, {"main.py": MAIN.format("LIMIT = 20")}) == [["12.0"], ["22.0"]]


def test_a_helper_edited_on_disk_between_processes(tmp_path):
    first = {"helper.py": HELPER.format(2), "main.py": MAIN.format("LIMIT = 10")}
    assert run_twice(tmp_path, first, {"helper.py": HELPER.format(30)}) == [["12.0"], ["40.0"]]


def test_a_helper_edited_and_reloaded_in_one_process(tmp_path):
    text = (
        MAIN.format("LIMIT = 10")
        + """
    import importlib, pathlib
    path = pathlib.Path(helper.__file__)
    path.write_text(path.read_text().replace("x * 2", "x * 30"))
    importlib.reload(helper)
    v = pa.asarray(np.ones(2))
    k(v)
    print(v[0].item())
    """
    )
    first = {"helper.py": HELPER.format(2), "main.py": text}
    assert run_twice(tmp_path, first, first)[0] == ["12.0", "40.0"]


def test_what_the_front_end_refuses_is_refused_on_a_warm_cache(tmp_path):
    text = """
        import numpy as np, pyarray as pa
        @pa.kernel
        def k(v: pa.BufferView[pa.float64]):
            for i in range(v.size):
                v[i] = 1
        v = pa.asarray(np.zeros(3))
        k(v)
        v.setflags(write=False)
        try:
            k(v)
        except ValueError:
            print("refused", k.cache_info()["compiles"])
    """
    assert run_twice(tmp_path, {"main.py": text}, {})[1] == ["refused", "0"]
