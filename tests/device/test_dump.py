"""Dumps: what is recorded comes back to the bit, launches run again, and what ends badly is still there."""

import gc
import json
import logging
import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
from dump_tools import ROOT, observed, recorded, run_python, same_bits
from hypothesis import given
from hypothesis import strategies as st
from kernel_tools import on

import pyarray as pa
from pyarray import dtypes
from pyarray.debug.dump import HINT

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from strategies import numpy_views


@pa.kernel
def scale(v: pa.BufferView[pa.float32], factor: pa.float32):
    for i in range(v.size):
        v[i] = v[i] * factor


@pa.kernel
def shifted(out, v, factor: pa.float64, n: pa.int64, flag: bool, z: pa.complex64):
    for i in range(out.size):
        if flag:
            out[i] = v[i] * factor + n + z.real


@pa.kernel
def copied(out, v):
    for i in range(out.size):
        out[i] = v[i]


@pa.kernel
def half(out, v, other, kind: pa.constexpr):
    for i in range(out.size):
        out[i] = kind(v[i] / 2)


@pa.kernel
def past(v):
    for i in range(v.size):
        v[i] = v[i + 1]


def test_a_dump_has_all_arguments_with_before_and_after(device, tmp_path):
    v, out = on(device, np.arange(8.0)), on(device, np.zeros(16))
    with pa.dump(tmp_path) as running:
        shifted(out[2:10], v, 0.5, -7, True, 1 + 2j)
        half(out[::-2], v, v[1:3], pa.float64)
    first, second = pa.load_dump(tmp_path)
    assert (first.number, first.kernel, first.status, first.device) == (0, "shifted", "ok", "cpu")
    assert first.key == shifted.variant((out[2:10], v, 0.5, -7, True, 1j)).artifact.key
    assert first.at[0] == __file__
    assert first.thread == "MainThread"
    assert list(first.args) == ["out", "v", "factor", "n", "flag", "z"]
    assert [a.index for a in first.args.values()] == list(range(6))
    assert [a.direction for a in first.args.values()] == ["INOUT", "IN", *["SCALAR"] * 4]
    a = first.args["out"]
    assert (a.shape, a.strides, a.start_offset, a.contiguous, a.dtype) == ((8,), (8,), 2, True, pa.float64)
    assert a.before.tolist() == [0] * 8
    assert a.after.tolist() == (np.arange(8) / 2 - 6).tolist()
    assert a.summary["after"] == {"nan": 0, "inf": 0, "min": -6.0, "max": -2.5}
    assert first.args["v"].before.tolist() == list(range(8))
    assert first.args["v"].after is None
    numbers = {name: a.before for name, a in first.args.items() if a.kind == "scalar"}
    assert numbers == {"factor": 0.5, "n": -7, "flag": True, "z": 1 + 2j}
    assert [first.args[n].dtype for n in numbers] == [pa.float64, pa.int64, pa.bool, pa.complex64]
    a = second.args["out"]
    assert (a.direction, a.strides, a.start_offset, a.contiguous) == ("OUT", (-16,), 15, False)
    assert a.before is None
    assert a.after.tolist() == (np.arange(8) / 2).tolist()
    assert second.args["other"].direction == "UNUSED"
    assert second.args["other"].shape == (2,)
    assert list(second.args["other"].stages) == ["metadata"]
    assert second.args["kind"].kind == "constant"
    assert "float64" in second.args["kind"].facts["value"]
    assert running.counters == {
        "launches": 2, "recorded": 2, "bytes": (3 + 2) * 64, "truncated": 0, "overwritten": 0, "dropped": 0
    }  # fmt: skip


def test_the_manifest_alone_says_where_the_bytes_are(device, tmp_path):
    v = on(device, np.arange(12, dtype=np.int16))
    with pa.dump(tmp_path):
        copied(on(device, np.zeros(4, np.int16)), v[1::3])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data.bin", "manifest.json"]
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert (manifest["schema"], manifest["byteorder"], manifest["complete"]) == (1, "little", True)
    out, read, after = manifest["records"]
    data = (tmp_path / "data.bin").read_bytes()
    for row, stage, values in ((read, "before", [1, 4, 7, 10]), (after, "after", [1, 4, 7, 10])):
        place = data[row["byte_offset"] : row["byte_offset"] + row["size"]]
        assert row["stage"] == stage
        assert np.frombuffer(place, "<i2").tolist() == values
    assert (out["stage"], out["direction"], out["kind"], out["dtype"]) == (
        "metadata",
        "OUT",
        "array",
        "int16",
    )
    names = {"launch", "kernel", "key", "device", "parameter", "index", "direction", "stage", "kind", "dtype"}
    names |= {"shape", "strides", "start_offset", "contiguous", "byte_offset", "size", "summary", "buffer"}
    assert names <= set(read)
    assert read["strides"] == [6]
    assert read["buffer"] != out["buffer"]


@given(data=st.data())
def test_every_layout_and_dtype_comes_back_to_the_bit(data, tmp_path_factory):
    x, y = data.draw(numpy_views()), data.draw(numpy_views())
    a = pa.asarray(x)
    if data.draw(st.booleans()):
        a.setflags(write=False)
    bits = x.copy().tobytes(), y.copy().tobytes()
    written = y.copy() if 0 in y.strides or not y.flags.writeable else y
    folder = tmp_path_factory.mktemp("dump")

    def run():
        written[...] = x.size % 2  # may well be what it was

    with pa.dump(folder):
        observed({"a": (a, "IN"), "b": (pa.asarray(written), "INOUT")}, run)
    (launch,) = pa.load_dump(folder)
    for name, array, before in (("a", x, bits[0]), ("b", written, bits[1])):
        got = launch.args[name]
        assert (got.shape, got.before.dtype) == (array.shape, array.dtype)
        assert got.before.tobytes() == before
        assert got.strides == array.strides or not array.size
    assert same_bits(launch.args["b"].after, written)
    summary = launch.args["a"].summary["before"]
    if x.size and x.dtype.kind in "biu":
        assert (summary["min"], summary["max"]) == (int(x.min()), int(x.max()))


def test_nan_payloads_odd_bools_and_negative_zeros_stay(tmp_path):
    floats = np.array([0x7FC00001, 0xFFC12345, 0x80000000, 0x7F800000, 1], np.uint32).view(np.float32)
    bools = np.array([0, 1, 2, 255], np.uint8).view(np.bool_)
    halves = np.array([0x7E01, 0xFC00, 0x8000, 0x3C00], np.uint16)
    complexes = np.array([complex(np.nan, 1), complex(1, -np.inf), -0.0j])
    arrays = {
        "f": floats, "b": bools, "h": halves.view(np.float16), "c": complexes,
        "bf": halves.view(dtypes.bfloat16.numpy), "i": np.array([-(2**63), 2**63 - 1]),
    }  # fmt: skip
    shared = {name: (pa.asarray(x), "IN") for name, x in arrays.items() if name != "bf"}
    shared["bf"] = pa.asarray(halves).view(pa.bfloat16), "IN"
    got = recorded(tmp_path, shared)
    for name, x in arrays.items():
        assert same_bits(got.args[name].before, x), name
    tiny = float(np.array([1], np.uint32).view(np.float32)[0])
    assert got.args["f"].summary["before"] == {"nan": 2, "inf": 1, "min": -0.0, "max": tiny}
    assert got.args["c"].summary["before"] == {"nan": 1, "inf": 1, "min": None, "max": None}
    assert got.args["h"].summary["before"] == {"nan": 1, "inf": 1, "min": -0.0, "max": 1.0}
    assert got.args["i"].summary["before"]["max"] == 2**63 - 1


def test_repeated_axes_are_stored_once(tmp_path):
    wide = pa.broadcast_to(pa.arange(3, dtype=pa.int8), (10**6, 3))
    launch = recorded(tmp_path, {"a": (wide, "IN")})
    assert (tmp_path / "data.bin").stat().st_size == 3
    assert launch.args["a"].before.shape == (10**6, 3)
    assert launch.args["a"].before[-1].tolist() == [0, 1, 2]


def test_memory_of_another_device_is_read_through_its_driver(tmp_path):
    place = pa.get_device("null:0")
    a = pa.empty((4, 6), dtype=pa.int16, device=place)[::2, ::-1]
    place.driver.calls.clear()
    recorded(tmp_path, {"a": (a, "INOUT")}, device=place)
    calls = place.driver.calls
    assert [name for name, _ in calls] == ["copy_out", "synchronize", "copy_out"]
    assert calls[0][1][1:] == (a._buffer.ptr, 36)


# ---- levels, marks, budgets


def test_levels_and_folders_are_checked_before_anything_runs(tmp_path, monkeypatch):
    monkeypatch.delenv("PYARRAY_DUMP_DIR", raising=False)
    for level in (4, -1, "2", None, 1.0):
        with pytest.raises(ValueError, match=r"0 \(off\), 1, 2 or 3"):
            pa.dump(tmp_path, level=level)
    with pytest.raises(ValueError, match="needs a folder"):
        pa.dump()
    for wrong in ({"every": 0}, {"max_bytes": -1}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            pa.dump(tmp_path, **wrong)
    assert pa.dump(tmp_path, level=True).level == 1
    with pa.dump(level=False), pa.dump(tmp_path / "off", level=0) as off:
        scale(pa.ones(3, dtype=pa.float32), 2.0)
    assert not (tmp_path / "off").exists()
    assert off.counters == {}
    monkeypatch.setenv("PYARRAY_DUMP_DIR", str(tmp_path / "set"))
    with pa.dump() as named:
        pass
    assert named.directory == tmp_path / "set"
    assert pa.load_dump(named.directory) == []
    with pytest.raises(RuntimeError, match="once"), named:
        pass


def test_level_1_follows_the_memory_of_marked_arrays(device, tmp_path, caplog):
    data = on(device, np.zeros(32, np.float32))
    other = on(device, np.zeros(32, np.float32))
    assert pa.dump_tag(data[8:16]) is not data
    pa.dump_tag(data[8:16])
    with pa.dump(tmp_path, level=1):
        for array in (data, data[4:9], data[15:20], data[8:12], other, data[:8], data[16:], data[10:10]):
            scale(array, 2.0)
        copied(other[:4], data[8:12])
    launches = pa.load_dump(tmp_path)
    assert [launch.number for launch in launches] == [0, 1, 2, 3, 8]
    assert set(launches[0].args) == {"v", "factor"}
    assert set(launches[-1].args) == {"v"}
    with pytest.raises(ValueError, match=r"'out' wasn't recorded.*level=2"):
        launches[-1].replay()
    assert launches.manifest["hint"] is None
    assert not caplog.records
    with caplog.at_level(logging.WARNING, "pyarray"), pa.dump(tmp_path, level=1):
        scale(other, 2.0)
    assert pa.load_dump(tmp_path) == []
    assert pa.load_dump(tmp_path).manifest["hint"] == HINT
    assert "dump_tag" in caplog.text


def test_a_mark_keeps_nothing_alive_and_ends_with_its_memory(tmp_path):
    marked = pa.dump_tag(pa.empty(77, dtype=pa.float32))
    address = marked._ptr
    assert pa.dump_tag(marked) is marked
    del marked
    gc.collect()
    again = pa.empty(77, dtype=pa.float32)
    assert again._ptr == address  # the pool gave the block back
    with pa.dump(tmp_path, level=1):
        scale(again, 1.0)
    assert pa.load_dump(tmp_path) == []


def test_marks_on_foreign_memory_and_on_parameters(tmp_path):
    host, more = np.zeros(8, np.float32), np.zeros(8, np.float32)
    pa.dump_tag(host[2:4])  # each launch wraps the memory anew
    with pa.dump(tmp_path, level=1):
        scale(host, 1.0)
        scale(pa.asarray(host)[3:], 1.0)
        scale(host[4:], 1.0)
        scale(more, 1.0)
    assert [launch.number for launch in pa.load_dump(tmp_path)] == [0, 1]

    @pa.kernel
    def moved(out, v, n: int):
        for i in range(out.size):
            out[i] = v[i + n]

    assert moved.dump("v", "v") is moved
    with pa.dump(tmp_path, level=1):
        moved(more, host, 0)
    assert set(pa.load_dump(tmp_path)[0].args) == {"v", "n"}
    with pytest.raises(ValueError, match="no parameter 'w'; it has 'out', 'v', 'n'"):
        moved.dump("w")
    with pytest.raises(TypeError, match="'n' of kernel 'moved' is no array"):
        moved.dump("n")
    for wrong in (3, None, [1.0], "v"):
        with pytest.raises(TypeError, match=f"marks an array, got {type(wrong).__name__}"):
            pa.dump_tag(wrong)


def test_metadata_only(device, tmp_path):
    with pa.dump(tmp_path, level=3):
        scale(on(device, np.ones(5, np.float32)), 3.0)
    (launch,) = pa.load_dump(tmp_path)
    v = launch.args["v"]
    assert (v.shape, v.before, v.after, v.summary) == ((5,), None, None, {})
    assert launch.args["factor"].before == 3.0
    assert (tmp_path / "data.bin").stat().st_size == 0


def test_a_budget_cuts_and_counts(device, tmp_path):
    v = on(device, np.arange(10, dtype=np.float32))
    with pa.dump(tmp_path, max_bytes=105) as running:
        for _ in range(3):
            scale(v, 2.0)
    assert (tmp_path / "data.bin").stat().st_size == 104
    assert running.counters["truncated"] == 1
    assert running.counters["dropped"] == 3
    first, second, third = pa.load_dump(tmp_path)
    assert first.replay()["v"].tolist() == first.args["v"].after.tolist()
    cut = second.args["v"]
    assert cut.before is None
    assert cut.kept("before").tolist() == [0, 2, 4, 6, 8, 10]
    assert cut.summary["before"]["max"] == 18.0
    assert third.args["v"].kept("before").size == 0
    assert third.args["v"].after is None
    with pytest.raises(ValueError, match=r"argument 'v' wasn't recorded as a whole.*max_bytes"):
        second.replay()


def test_sampling_and_stopping_at_a_nan(device, tmp_path, caplog):
    v = on(device, np.ones(4, np.float32))
    with pa.dump(tmp_path, every=3) as running:
        for _ in range(7):
            scale(v, 2.0)
    assert [launch.number for launch in pa.load_dump(tmp_path)] == [0, 3, 6]
    assert (running.counters["launches"], running.counters["recorded"]) == (7, 3)
    with pa.dump(tmp_path, stop_at_nan=True):
        scale(v, 2.0)
        scale(v, float("nan"))
        scale(v, 2.0)
    launches = pa.load_dump(tmp_path)
    stopped = {"launch": 1, "kernel": "scale", "parameter": "v", "stage": "after"}
    assert len(launches) == 2
    assert launches.manifest["stopped"] == stopped
    assert "stops at its first NaN" in caplog.text


# ---- replay


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_replays_are_the_same_to_the_bit(device, dtype, tmp_path):
    x = (np.arange(40) % 7).astype(dtype.numpy)
    a = on(device, x)
    with pa.dump(tmp_path):
        copied(a[3:30], a[:12:-1])
        total = pa.sum(a)
    launches = pa.load_dump(tmp_path)
    assert len(launches) >= 2
    assert total.shape == ()
    for launch in launches:
        for name, found in launch.replay().items():
            assert same_bits(found, launch.args[name].after)


REPLAY = """
import sys
import pyarray as pa
for launch in pa.load_dump(sys.argv[1]):
    for name, found in launch.replay().items():
        assert found.tobytes() == launch.args[name].after.tobytes(), (launch, name)
        print(launch.kernel, name, found.sum())
"""


def test_another_process_replays_without_the_source(tmp_path):
    space = {"pa": pa}
    source = tmp_path / "gone.py"
    source.write_text(
        "@pa.kernel\n"
        "def smooth(out, v, w: pa.float16):\n"
        "    for i in range(1, v.size - 1):\n"
        "        out[i] = (v[i - 1] + v[i + 1]) * w\n"
    )
    exec(compile(source.read_text(), str(source), "exec"), space)
    data = pa.asarray(np.linspace(0, 1, 50, dtype=np.float32))
    with pa.dump(tmp_path / "dump"):
        space["smooth"](data[::-1], data, 0.1)  # two views of one block, which the kernel tells nothing of
        pa.exp(data) @ pa.ones((50, 3), dtype=pa.float32)
    source.unlink()
    out = run_python(REPLAY, str(tmp_path / "dump")).stdout
    kernels = [line.split()[0] for line in out.splitlines()]
    assert kernels[0] == "smooth"
    assert {"exp", "matmul"} <= set(kernels)


def test_overlaps_are_rebuilt(device, tmp_path):
    data = on(device, np.arange(20.0))
    with pa.dump(tmp_path):
        copied(data[5:15], data[0:10])
    (launch,) = pa.load_dump(tmp_path)
    out, v = launch.args["out"].facts, launch.args["v"].facts
    assert out["block"] == v["block"]
    assert out["place"] - v["place"] == 40
    assert out["buffer"] == v["buffer"]
    assert same_bits(launch.replay()["out"], launch.args["out"].after)


def test_debug_launches_are_replayed_with_their_checks(device, tmp_path):
    v = on(device, np.arange(9.0))
    with pa.debug(), pa.dump(tmp_path):
        product = pa.ones((3, 4)) @ pa.ones((4, 2))  # its checks know addresses
        with pytest.raises(pa.BoundsError) as raised:
            past(v[2:8])
        scale(v.astype(pa.float32), 2.0)  # and it goes on
    assert product.tolist() == [[4.0, 4.0]] * 3
    *_, matmul, failed, _, last = pa.load_dump(tmp_path)
    assert (matmul.kernel, matmul.args["a_low"].kind) == ("matmul", "address")
    assert same_bits(matmul.replay()["c"], matmul.args["c"].after)
    assert (failed.kernel, failed.status, last.status) == ("past", "error", "ok")
    assert failed.error.startswith("BoundsError: BufferView out of range: kernel[past] tid=5")
    assert failed.args["v"].before.tolist() == [2, 3, 4, 5, 6, 7]
    with pytest.raises(pa.BoundsError) as again:
        failed.replay()
    for fact in ("kernel", "argument", "axis", "index", "offset", "size", "tid", "frames"):
        assert getattr(again.value, fact) == getattr(raised.value, fact)


def test_npz(tmp_path):
    a = pa.ones(3, dtype=pa.bfloat16)
    with pa.dump(tmp_path / "dump"):
        copied(pa.zeros(3, dtype=pa.bfloat16), a)
    pa.load_dump(tmp_path / "dump")[0].save(tmp_path / "launch.npz")
    with np.load(tmp_path / "launch.npz") as found:
        assert sorted(found) == ["out.after", "v.before"]
        assert found["v.before"].view(dtypes.bfloat16.numpy).tolist() == [1, 1, 1]


# ---- what must not change, and what may go wrong


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
            go.wait(30)
            scale(v, 2.0)

    thread = threading.Thread(target=work)
    thread.start()
    assert entered.wait(30)
    with pa.dump(tmp_path):
        go.set()
        thread.join()
    assert [launch.facts["checked"] for launch in pa.load_dump(tmp_path)] == [True]


CRASH = """
import os, sys
import pyarray as pa
from pyarray.jit.mode import add_observer
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
    done = subprocess.run([sys.executable, source, folder], env={**os.environ, "PYTHONPATH": str(ROOT)})
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


def test_settings(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SETTINGS)
    done = run_python(script, PYARRAY_DUMP_ARGS="2")
    assert (
        done.stdout
        == "a dump needs a folder: pa.dump(dir), or set PYARRAY_DUMP_DIR\n[1.0, 1.0, 1.0, 1.0, 1.0]\n"
    )
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
        ('"schema": 1', '"schema": 9', "schema 9"),
        ("pyarray dump", "else", "no manifest"),
    ):
        text = manifest.read_text()
        manifest.write_text(text.replace(old, new))
        with pytest.raises(ValueError, match=message):
            pa.load_dump(tmp_path / "two")
        manifest.write_text(text)


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

    assert pa.debug.__module__ == "pyarray.jit.mode"
    with pa.debug():
        pass
    code = "import pyarray.debug, pyarray as pa\nwith pa.debug(): print(pa.debug.__name__)"
    assert run_python(code).stdout == "debug\n"
