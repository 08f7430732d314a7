"""Dumps change no result, share their files with nobody, and survive what ends badly."""

import os
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest
from dump_tools import observed, run_python

import pyarray as pa
from pyarray.debug.dump import HINT


@pa.kernel
def scale(v: pa.BufferView[pa.float32], factor: pa.float32):
    for i in range(v.size):
        v[i] = v[i] * factor


def everything():
    """Results of kernels of all families, as bytes."""
    rng = np.random.default_rng(1)
    m = pa.asarray(rng.standard_normal((40, 50)).astype(np.float32))
    v = pa.asarray(rng.standard_normal(100_003))
    index = pa.asarray(rng.integers(0, 40, 30))
    w = v[1:-1:3].copy()
    scaled = m[3].copy()
    scale(scaled, 0.3)
    w[w > 0] = 1.5
    found = [
        m + m.T.copy().T, pa.exp(v), m @ m.T, pa.sum(v), pa.sum(m, axis=0), pa.max(m, axis=1), m[index],
        pa.nonzero(v > 1)[0], pa.where(v > 0, v, -v), w, scaled, pa.argmax(m, axis=1),
        pa.asarray(m, dtype=pa.float16),
    ]  # fmt: skip
    return [pa.asnumpy(x).tobytes() for x in found]


def test_results_are_the_same_with_a_dump(tmp_path):
    plain = everything()
    with pa.dump(tmp_path) as running:
        assert everything() == plain
    assert everything() == plain
    launches = pa.load_dump(tmp_path)
    names = {"add", "exp", "matmul", "sum_rows", "gather", "where", "greater", "scale", "copy"}
    assert names <= {launch.kernel for launch in launches}
    assert running.counters["launches"] == len(launches)
    assert all(launch.status == "ok" for launch in launches)


def test_threads_share_a_dump(tmp_path):
    threads, rounds = 4, 25
    arrays = [pa.full(16, k + 1, dtype=pa.float32) for k in range(threads)]

    def work(k):
        for _ in range(rounds):
            scale(arrays[k], -1.0)

    scale(arrays[0], 1.0)
    with pa.dump(tmp_path):
        running = [threading.Thread(target=work, args=(k,), name=f"worker {k}") for k in range(threads)]
        for t in running:
            t.start()
        for t in running:
            t.join()
    launches = pa.load_dump(tmp_path)
    assert [launch.number for launch in launches] == list(range(threads * rounds))
    for launch in launches:
        k = int(launch.thread.split()[1])
        v = launch.args["v"]
        assert set(abs(v.before)) == {k + 1.0}
        assert (v.after == -v.before).all()


def test_a_thread_inside_debug_joins_at_once(tmp_path):
    entered, go = threading.Event(), threading.Event()
    v = pa.ones(3, dtype=pa.float32)

    def work():
        with pa.debug():
            scale(v, 2.0)
            entered.set()
            go.wait(300)
            scale(v, 2.0)

    thread = threading.Thread(target=work)
    thread.start()
    assert entered.wait(300)
    with pa.dump(tmp_path):
        go.set()
        thread.join()
    assert [launch.facts["checked"] for launch in pa.load_dump(tmp_path)] == [True]


CRASH = """
import os, sys
import pyarray as pa
from pyarray.jit.launch_state import add_observer
@pa.kernel
def twice(v):
    for i in range(v.size):
        v[i] = v[i] * 2
v = pa.ones(5)
launches = []
def deadly(launch):
    launches.append(launch)
    if len(launches) == 3:
        os._exit(9)
    launch.run()
pa.dump(sys.argv[1]).__enter__()
add_observer(deadly, inner=True)
for _ in range(5):
    twice(v)
"""


def test_what_a_crash_leaves_is_read(tmp_path):
    folder = tmp_path / "dump"
    source = tmp_path / "crash.py"
    source.write_text(CRASH)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, source, folder], env=environment)
    assert done.returncode == 9
    with open(folder / "manifest.jsonl", "ab") as file:
        file.write(b'{"launch": {"number": 3')  # half a line: it died while writing
    launches = pa.load_dump(folder)
    assert [launch.status for launch in launches] == ["ok", "ok", "unfinished"]
    assert not launches.manifest["complete"]
    assert launches.manifest["counters"]["recorded"] == 3
    assert launches[2].args["v"].before.tolist() == [4.0] * 5
    assert launches[2].replay()["v"].tolist() == [8.0] * 5
    with pa.dump(folder):  # and may be replaced
        pass
    assert pa.load_dump(folder) == []
    assert sorted(os.listdir(folder)) == ["data.bin", "manifest.json"]


def test_a_forked_child_leaves_the_files_alone(tmp_path):
    v = pa.ones(4, dtype=pa.float32)
    scale(v, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        with pa.dump(tmp_path) as running:
            scale(v, 2.0)
            child = os.fork()
            if not child:
                scale(v, 3.0)
                running.close()
                os._exit(0 if v.tolist() == [6.0] * 4 else 1)
            assert os.waitpid(child, 0)[1] == 0
            scale(v, 5.0)
    assert [launch.args["factor"].before for launch in pa.load_dump(tmp_path)] == [2.0, 5.0]


SETTINGS = """
import os
import pyarray as pa
@pa.kernel
def twice(v):
    for i in range(v.size):
        v[i] = v[i] * 2
v = pa.asarray(__import__("numpy").ones(5))
try:
    twice(v)
except ValueError as error:
    print(error)
print(v.tolist())
if os.environ.get("FORK") and not os.fork():
    twice(v)
    os._exit(0)
elif os.environ.get("FORK"):
    os.wait()
"""


@pytest.mark.slow
def test_settings(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SETTINGS)
    done = run_python(script, PYARRAY_DUMP_ARGS="2")
    assert done.stdout == "a dump needs a folder: pa.dump(dir), or set PYARRAY_DUMP_DIR\n[1.0, 1.0, 1.0, 1.0, 1.0]\n"
    folder = tmp_path / "dump"
    settings = {"PYARRAY_DUMP_DIR": str(folder), "PYARRAY_DUMP_MAX_BYTES": "60"}
    done = run_python(script, PYARRAY_DUMP_ARGS="7", **settings)
    assert "PYARRAY_DUMP_ARGS='7': expected 0 (off), 1" in done.stdout
    assert "[1.0, 1.0" in done.stdout
    assert not folder.exists()
    run_python(script, PYARRAY_DUMP_ARGS="2", FORK="1", **settings)
    launches = pa.load_dump(folder)
    assert launches.manifest["complete"]
    assert launches.manifest["counters"]["truncated"] == 1
    assert launches[0].args["v"].before.tolist() == [1.0] * 5
    (child,) = folder.glob("process-*")
    assert pa.load_dump(child)[0].args["v"].before.tolist() == [2.0] * 5
    with pa.dump(tmp_path / "busy"):
        run_python(script, PYARRAY_DUMP_ARGS="true", PYARRAY_DUMP_DIR=str(tmp_path / "busy"))
    (other,) = (tmp_path / "busy").glob("process-*")
    assert pa.load_dump(tmp_path / "busy") == []
    assert pa.load_dump(other).manifest["hint"] == HINT  # a level of 1, and nothing was marked


def test_only_dumps_are_replaced_and_two_at_once_are_refused(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "data.bin").write_bytes(b"dear")
    with pytest.raises(FileExistsError, match="no dump"), pa.dump(tmp_path / "mine"):
        pass
    assert (tmp_path / "mine" / "data.bin").read_bytes() == b"dear"
    v = pa.ones(2, dtype=pa.float32)
    with pa.dump(tmp_path / "one"):
        with pytest.raises(FileExistsError, match="another dump"), pa.dump(tmp_path / "one"):
            pass
        with pa.dump(tmp_path / "two"):
            scale(v, 2.0)
        scale(v, 2.0)
        assert len(pa.load_dump(tmp_path / "one")) == 2  # of a dump that runs
    assert (len(pa.load_dump(tmp_path / "one")), len(pa.load_dump(tmp_path / "two"))) == (2, 1)
    with pytest.raises(FileNotFoundError):
        pa.load_dump(tmp_path / "three")
    manifest = tmp_path / "two" / "manifest.json"
    for old, new, message in (
        ('"schema": 2', '"schema": 9', "schema 9"),
        ("pyarray dump", "else", "no manifest"),
    ):
        text = manifest.read_text()
        manifest.write_text(text.replace(old, new))
        with pytest.raises(ValueError, match=message):
            pa.load_dump(tmp_path / "two")
        manifest.write_text(text)


@pytest.mark.parametrize("failing", range(4))
def test_a_full_disk_stops_one_launch_and_breaks_nothing(tmp_path, monkeypatch, failing):
    """A launch writes data, its line, data, its end. Of a write that fails, half is there."""
    v = pa.ones(4, dtype=pa.float32)
    count, write = iter(range(100)), os.pwrite

    def full(file, data, at):
        if next(count) == 5 + failing:  # the second launch's; the first began with its program
            write(file, data[: len(data) // 2], at)
            raise OSError(28, "No space left on device")
        return write(file, data, at)

    monkeypatch.setattr(os, "pwrite", full)
    with pa.dump(tmp_path):
        scale(v, 2.0)
        with pytest.raises(OSError, match="No space"):
            scale(v, 3.0)
        scale(v, 5.0)
    before = 2.0 if failing < 2 else 6.0  # either it was refused, or it has happened
    launches = pa.load_dump(tmp_path)
    assert [x.status for x in launches] == ["ok", *(["unfinished"] if failing >= 2 else []), "ok"]
    assert launches[0].args["v"].after.tolist() == [2.0] * 4
    assert launches[-1].args["v"].before.tolist() == [before] * 4
    assert launches[-1].replay()["v"].tolist() == v.tolist() == [before * 5] * 4


def test_what_cannot_be_recorded_is_in_the_manifest(tmp_path):
    v, ran = pa.ones(3), []
    with pa.dump(tmp_path):
        observed({"a": (v, "INOUT"), "p.x": (v, "IN")}, lambda: ran.append(1), given={"a": v})
    (missing,) = pa.load_dump(tmp_path)
    assert ran
    assert missing.status == "not dumped"
    assert "KeyError: 'p.x'" in missing.error
    with pytest.raises(ValueError, match="was not dumped: its arguments"):
        missing.replay()


def test_the_function_debug_stays_what_the_name_means():
    import pyarray.debug.dump  # noqa: F401

    assert pa.debug.__wrapped__.__module__ == "pyarray.jit.launch_state"
    with pa.debug():
        pass
    code = "import pyarray.debug, pyarray as pa\nwith pa.debug(): print(pa.debug.__name__)"
    assert run_python(code).stdout == "debug\n"


@pytest.mark.parametrize("text", ["[" * 200_000, '{"format": ' + "[" * 200_000, "no JSON", "3"])
def test_a_manifest_that_is_none_is_named(tmp_path, text):
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(ValueError, match=r"manifest.json is no manifest of a pyarray dump"):
        pa.load_dump(tmp_path)
