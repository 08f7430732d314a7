"""Dumps: what is recorded comes back to the bit, launches run again, and what ends badly is still there."""

import gc
import json
import logging
import sys
from pathlib import Path

import numpy as np
import pytest
from dump_tools import observed, recorded, same_bits
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


def test_a_dump_has_all_arguments_with_before_and_after(device, tmp_path):
    v, out = on(device, np.arange(8.0)), on(device, np.zeros(16))
    with pa.dump(tmp_path) as running:
        shifted(out[2:10], v, 0.5, -7, True, 1 + 2j)
        half(out[::-2], v, v[1:3], pa.float64)
    first, second = pa.load_dump(tmp_path)
    assert (first.number, first.kernel, first.status, first.device) == (0, "shifted", "ok", device)
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
    assert (manifest["schema"], manifest["byteorder"], manifest["complete"]) == (2, "little", True)
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
    calls = [call for call in place.driver.calls if call[0] != "unload"]  # of earlier tests' modules
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
