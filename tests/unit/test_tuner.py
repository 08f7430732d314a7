"""The tuner without a device: configs, names, keys, what is on disk, the cost model, comparisons."""

import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import pyarray as pa
from pyarray import dtypes
from pyarray.debug import tuning
from pyarray.tune import cost as tune_model
from pyarray.tune import result_comparison as tune_check
from pyarray.tune import store as tune_store
from pyarray.tune import tuning_key as tune_key
from pyarray.tune.search import Result
from pyarray.tune.shipped import check_name

TOLD_APART = {"int32", "bool", "float16", "bfloat16", "float32", "float64", "complex64"}
PLAIN = st.one_of(st.booleans(), st.integers(), st.text(max_size=4), st.none(), st.floats(allow_nan=False))


@pa.kernel
def scale(v: pa.BufferView, w, factor: float, block: pa.constexpr, unroll: pa.constexpr = 1):
    for i in range(v.size):
        v[i] = w[i] * factor * block * unroll


# ---- Config


@given(st.dictionaries(st.sampled_from(["block", "unroll", "x"]), PLAIN), st.lists(st.text(max_size=3)))
def test_a_config_goes_through_json_pickle_and_a_set(values, flags):
    config = pa.Config(flags=flags, **values)
    assert pickle.loads(pickle.dumps(config)) == config
    assert {config: 1}[pa.Config(flags=flags, **dict(reversed(values.items())))] == 1
    assert config.values == values
    if all(np.isfinite(v) for v in values.values() if isinstance(v, float)):
        again = pa.Config.from_dict(json.loads(json.dumps(config.to_dict())))
        assert again == config
        assert again.identity() == config.identity() is not None


def test_values_of_other_types_are_other_configs():
    configs = [pa.Config(block=v) for v in (1, 1.0, True, "1", None)]
    assert len(set(configs)) == len({c.identity() for c in configs}) == 5


def test_a_config_is_frozen():
    config = pa.Config(block=4)
    for change in (lambda: setattr(config, "flags", ()), lambda: delattr(config, "flags")):
        with pytest.raises(AttributeError, match="can't be changed"):
            change()
    config.values["block"] = 5
    assert config["block"] == 4


@pytest.mark.parametrize("config", [pa.Config(t=(1, 2)), pa.Config(block=1, pre_hook=print), pa.Config(x=float("inf"))])
def test_what_json_would_change_is_not_written(config):
    with pytest.raises(ValueError, match="written down"):
        config.to_dict()


@pytest.mark.parametrize(
    "given", [None, 3, {}, {"values": {}}, {"values": {"flags": 1}, "flags": []}, {"values": 3, "flags": []}]
)
def test_what_is_no_config_is_refused(given):
    with pytest.raises(ValueError, match="expected the dictionary of a Config"):
        pa.Config.from_dict(given)


def test_wrong_configs():
    for wrong in ({"block": []}, {"flags": [3]}, {"pre_hook": 3}):
        with pytest.raises(TypeError):
            pa.Config(**wrong)


# ---- names


BLOCKS = [pa.Config(block=4), pa.Config(block=8)]


@pytest.mark.parametrize("option", ["key", "restore_value", "reset_to_zero"])
@pytest.mark.parametrize(
    ("names", "error", "text"),
    [
        (["W"], ValueError, "did you mean 'w'"),
        (["w", "w"], ValueError, "twice"),
        ("w", TypeError, "list of parameter names"),
        ([3], TypeError, "list of parameter names"),
    ],
)
def test_wrong_names_are_refused_at_the_decoration(option, names, error, text):
    with pytest.raises(error, match=f"{option}.*{text}"):
        pa.autotune(configs=BLOCKS, **{option: names})(scale)


@pytest.mark.parametrize(
    ("configs", "error", "text"),
    [
        ([pa.Config(blok=4)], ValueError, "did you mean 'block'"),
        ([pa.Config(factor=2.0)], ValueError, "argument of each launch"),
        ([pa.Config(block=4), pa.Config(unroll=2)], ValueError, "doesn't set 'block'"),
        ([pa.Config(block=4, num_warps=4)], ValueError, "'num_warps', which is no parameter"),
        (
            [pa.Config(block=4), pa.Config(blok=4)],
            ValueError,
            "'blok', which is no parameter; did you mean 'block'",
        ),
        (
            [pa.Config(blok=4), pa.Config(block=4)],
            ValueError,
            "'blok', which is no parameter; did you mean 'block'",
        ),
        (
            [pa.Config(block=4), pa.Config(factor=4)],
            ValueError,
            "'factor', which is an argument of each launch",
        ),
        ([], ValueError, "empty"),
        ([{"block": 4}], TypeError, "pa.Config"),
        (pa.Config(block=4), TypeError, "list of pa.Config"),
        (3, TypeError, "list of pa.Config"),
    ],
)
def test_wrong_candidates_are_refused_at_the_decoration(configs, error, text):
    with pytest.raises(error, match=text):
        pa.autotune(configs=configs)(scale)


def test_a_misspelt_constant_is_refused_before_annotations_can_be_read():
    @pa.kernel
    def late(v: "DefinedLater", block: pa.constexpr):  # noqa: F821
        for i in range(v.size):
            v[i] = block

    with pytest.raises(ValueError, match="'blok', which is no parameter; did you mean 'block'"):
        pa.autotune(configs=[pa.Config(block=4), pa.Config(blok=4)])(late)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"warmup": -1}, ValueError), ({"rep": 0}, ValueError), ({"rep": 2.5}, TypeError),
        ({"budget": -1}, ValueError), ({"check": "yes"}, TypeError), ({"prune": 3}, TypeError),
        ({"artifact_name": 3}, TypeError), ({"artifact_name": "a/b"}, ValueError),
        ({"restore_value": ["factor"]}, ValueError), ({"reset_to_zero": ["block"]}, ValueError),
        ({"key": ["block"]}, ValueError),
    ],
)  # fmt: skip
def test_wrong_options_are_refused_at_the_decoration(options, error):
    with pytest.raises(error):
        pa.autotune(configs=BLOCKS, **options)(scale)


def test_only_kernels_are_tuned():
    with pytest.raises(TypeError, match=r"above @pa\.kernel"):
        pa.autotune(configs=BLOCKS)(lambda v: None)


@pytest.mark.parametrize("name", ["", "a" * 65, "a b", "ä", "a/b"])
def test_names_of_artifacts(name):
    with pytest.raises(ValueError, match="1 to 64"):
        check_name(name)
    check_name("a.b_c-1" + "x" * 57)


# ---- keys


def at(offset, shape, strides, dtype=np.uint8):
    """An array at an address that is `offset` above a multiple of 4096."""
    memory = np.zeros(1 << 16, np.uint8)
    first = -memory.ctypes.data % 4096 + 8192 + offset
    return pa.asarray(np.ndarray(shape, dtype, memory, first, strides))


@given(st.integers(0, 300), st.lists(st.sampled_from([-192, -128, -1, 0, 1, 32, 128, 192]), max_size=3))
def test_layouts_are_patterns_and_alignments(offset, strides):
    a = at(offset, (3,) * len(strides), tuple(strides))
    found = tune_key.layout_class(a)
    assert found["base"] == (1 if offset % 16 else 16)
    named = {0: "0", 1: "1", -1: "-1"}
    assert found["steps"].split() == [named.get(s, "+" if s > 0 else "-") for s in strides]
    far = sorted(abs(s) for s in strides if abs(s) > 1)[0 if {1, -1} & set(strides) else 1 :]
    assert ("rows" in found) == bool(far)
    if far:
        assert found["rows"] == next((n for n in (128, 64, 32, 16) if all(s % n == 0 for s in far)), 1)


def test_declared_values_keep_their_types():
    values = [2, 2.0, "2", True, None, (2,), pa.float32, np.float32(2), np.int64(2), print, len]
    told = [json.dumps(tune_key.plain_data(v)) for v in values]
    assert len(set(told)) == len(told)
    assert tune_key.plain_data(pa.ones((2, 3))) == tune_key.plain_data(np.ones((2, 3), np.int8)) == ["shape", 2, 3]
    assert tune_key.plain_data(pa.ones(())) == ["shape"]


# ---- on disk


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tune_store, "folder", lambda: tmp_path)
    return tmp_path


def row(name, ms):
    return {name: {"config": name, "median": ms, "least": ms, "spread": 0.0, "runs": 3}}


def test_writers_don_t_lose_each_others_timings(folder):
    stores = [tune_store.Store("m.f", "0123456789ab") for _ in range(4)]

    def write(number):
        for k in range(5):
            stores[number].merge(f"key{k}", {"timings": row(f"c{number}", number + 1.0)})

    threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    entries = stores[0].entries()
    assert sorted(entries) == [f"key{k}" for k in range(5)]
    assert all(sorted(e["timings"]) == ["c0", "c1", "c2", "c3"] for e in entries.values())
    assert not list(folder.glob(".new-*"))


def test_what_is_forgotten_wins_nothing(folder):
    store = tune_store.Store("m.f", "0123456789ab")
    store.merge("k", {"timings": row("a", 1.0) | row("b", 2.0), "winners": {"s": "a", "t": "b"}})
    store.forget("k", "a")
    entry = store.entry("k")
    assert list(entry["timings"]) == ["b"]
    assert entry["winners"] == {"t": "b"}


def test_keys_used_long_ago_go_first(folder, monkeypatch):
    monkeypatch.setattr(tune_store, "MAX_STORED_KEYS", 3)
    store = tune_store.Store("m.f", "0123456789ab")
    for k in range(5):
        store.merge(f"k{k}", {"timings": row("a", 1.0)})
        time.sleep(0.002)
    assert sorted(store.entries()) == ["k2", "k3", "k4"]


PART = st.floats(0, 1, exclude_max=True)  # of the text, whose length depends on the clock
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3)),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["entries", "timings", "winners", "x"]), inner)
    ),
    max_leaves=8,
)


@given(st.data())
def test_torn_and_foreign_files_are_moved_aside(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("store")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tune_store, "folder", lambda: folder)
        store = tune_store.Store("m.f", "0123456789ab")
        store.merge("k", {"timings": row("a", 1.0), "winners": {"s": "a"}})
        whole = store.path.read_bytes()
        how = data.draw(st.sampled_from(["torn", "changed", "foreign", "entries"]))
        if how == "torn":
            new = whole[: int(data.draw(PART) * (len(whole) - 2))]
        elif how == "changed":
            place = int(data.draw(PART) * len(whole))
            new = whole[:place] + bytes([data.draw(st.integers(0, 255))]) + whole[place + 1 :]
        elif how == "foreign":
            new = json.dumps(data.draw(JSON)).encode()
        else:
            new = json.dumps(json.loads(whole) | {"entries": data.draw(JSON)}).encode()
        store.path.write_bytes(new)
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            first = store.entries()
            assert store.entries() == first or not first
            store.merge("new", {"timings": row("b", 1.0)})
            assert "new" in store.entries()
        aside = list(folder.glob("*.aside-*"))
        assert len(aside) == len(seen) <= 1
        if how in ("torn", "foreign"):
            assert len(aside) == 1
            assert aside[0].read_bytes() == new
            assert "moved" in str(seen[0].message)


GROUP = {"arrays": {"v": {"dtype": "float64", "steps": "1"}}, "device": {"model": "a CPU", "threads": 2}}
KEY = {"group": GROUP, "sizes": {"n": ["int", "100"], "s": ["shape", 3, 4]}}


def json_paths(data, above=()):
    """Paths to all parts of JSON data."""
    for k in data if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ():
        yield (*above, k)
        yield from json_paths(data[k], (*above, k))


WRONG = [None, "x", [], {}, 5, -1, 1e400, float("nan"), 10**400, True, [1], {"a": 1}, "\ud800"]


@pytest.mark.filterwarnings("ignore:the tuner's file")
@pytest.mark.parametrize("wrong", WRONG, ids=lambda value: str(value)[:9].encode("unicode_escape").decode())
def test_what_is_read_is_sound_or_the_file_is_moved_aside(folder, wrong, capsys):
    """Whatever stands in the place of one part: what reads entries may rely on their types."""
    store = tune_store.Store("m.f", "0123456789ab")
    times = row("a", 1.0) | {"b": {"config": "b", "reason": "slow"}}
    facts = {"timings": times, "winners": {"s": "a"}, "work": {"a": 1e30, "b": 4.0}}
    store.merge("k", facts | {"key": KEY, "group": "f00"})
    good = json.loads(store.path.read_text())
    moved = 0
    for *above, last in json_paths(good):
        data = json.loads(json.dumps(good))
        part = data
        for name in above:
            part = part[name]
        part[last] = wrong
        store.path.write_text(json.dumps(data))
        tuning.show(None, None)
        for entry in store.entries().values():
            for name, fact in entry["timings"].items():
                Result.of_row(pa.Config(block=name), fact)
            tune_model.fit((float(n), 1.0) for n in entry.get("work", {}).values())
        store.merge("new", {"timings": row("c", 1.0), "winners": {"s": "c"}})
        moved += len(list(folder.glob("*.aside-*")))
        for path in folder.glob("*.aside-*"):
            path.unlink()
    assert moved > 8
    assert "m.f" in capsys.readouterr().out


def test_a_lock_is_held_by_one_and_ends_with_its_process(folder):
    code = (
        "import sys, time, pathlib\n"
        "from pyarray.tune import store as tune_store\n"
        f"tune_store.folder = lambda: pathlib.Path({str(folder)!r})\n"
        "with tune_store.locked('x') as got:\n"
        "    print(got, flush=True)\n"
        "    time.sleep(60)\n"
    )
    holder = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    try:
        assert holder.stdout.readline().strip() == b"True"
        with tune_store.locked("x", 0.05) as got:
            assert not got
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        with tune_store.locked("x", 5) as got:
            assert got
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()


def test_a_child_of_a_fork_doesn_t_hold_the_parents_lock(folder):
    with tune_store.locked("x") as got:
        assert got
        reading, writing = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of a fork while threads run
            child = os.fork()
        if child == 0:
            os.close(writing)
            os.read(reading, 1)  # until the parent closes it
            os._exit(0)
        os.close(reading)
    with tune_store.locked("x", 1) as got:
        assert got
    os.close(writing)
    assert os.waitpid(child, 0)[1] == 0


def test_without_a_folder_nothing_is_kept(monkeypatch):
    monkeypatch.setattr(tune_store, "folder", lambda: None)
    store = tune_store.Store("m.f", "0123456789ab")
    store.merge("k", {"timings": row("a", 1.0)})
    assert store.entries() == {}
    with tune_store.locked("x") as got:
        assert not got


# ---- the cost model


@given(
    st.floats(0, 10),
    st.floats(1e-3, 10),
    st.lists(st.integers(1, 10**6), min_size=3, max_size=5, unique=True),
)
@example(0.0, 0.75, [213548, 213550, 213551])
def test_a_fit_finds_what_the_points_were_made_of(launch, tile, sizes):
    found = tune_model.fit([(n, launch + tile * n) for n in sizes])
    assert (found.sizes, found.least, found.most) == (len(sizes), min(sizes), max(sizes))
    assert found.residual < 1e-6
    for n in sizes:
        assert found.cost(n) == pytest.approx(launch + tile * n, rel=1e-6)


@given(st.lists(st.tuples(st.integers(1, 100), st.floats(0.01, 100)), max_size=5))
def test_no_part_of_a_fit_is_negative(points):
    found = tune_model.fit(points)
    if len({x for x, _ in points}) < 3:
        assert found is None
    else:
        assert found.launch >= 0
        assert found.tile >= 0
        worst = max(abs(found.cost(x) - y) / y for x, y in points)
        assert found.residual == pytest.approx(worst)


def test_a_bad_fit_predicts_nothing():
    good, bad = tune_model.Fit(0.1, 1.0, 0.01, 3), tune_model.Fit(0.1, 1.0, 0.5, 3)
    a, b = BLOCKS
    assert tune_model.predict({a: good, b: bad}, lambda c: 1) is None
    assert tune_model.predict({a: good, b: good}, lambda c: c["block"]) == {a: 4.1, b: 8.1}
    assert tune_model.predict({}, lambda c: 1) is None
    with pytest.raises(TypeError, match="number of tiles"):
        tune_model.work(lambda config, args: "3", a, {}, ())
    assert tune_model.work(True, a, {"v": pa.ones((3, 4)), "n": 5, "x": 2.0}, ("v", "n", "x")) == 60


# ---- comparisons


def results(*values, dtype=np.float32):
    return {"out": np.array(values, dtype)}


def test_the_largest_group_is_right():
    arrays = {"out": pa.zeros(3, dtype=pa.float32)}
    votes = tune_check.MajorityVote(arrays, None)
    for k, r in enumerate([results(9, 9, 9), results(1, 2, np.nan), results(1, 2 + 1e-6, np.nan), results(1, 2, 3)]):
        votes.add(k, r)
    wrong = votes.wrong()
    assert sorted(wrong) == [0, 3]
    assert "out[0] is 9.0, expected 1.0 (3 of 3 elements differ)" in wrong[0]
    two = tune_check.MajorityVote(arrays, None)
    two.add(0, results(1, 2, 3))
    two.add(1, results(1, 2, 4))
    assert list(two.wrong()) == [1]
    told = tune_check.MajorityVote(arrays, results(1, 2, 4))
    told.add(0, results(1, 2, 3))
    assert "the reference" in told.wrong()[0]


@given(
    st.sampled_from([row for row in dtypes.ALL if row.name in TOLD_APART]),
    st.data(),
)
def test_results_agree_within_the_tolerance_of_their_type(dtype, data):
    arrays = {"out": pa.zeros(4, dtype=dtype)}
    wanted = np.array(data.draw(st.lists(st.integers(1, 100), min_size=4, max_size=4))).astype(dtype.numpy)
    close, far = wanted.copy(), wanted.copy()
    place = data.draw(st.integers(0, 3))
    scale = float(np.max(np.abs(wanted.astype(np.complex128))))
    error = tune_check.tolerance(dtype) * scale
    if error and wanted.dtype.kind != "b":
        close[place] = (complex(wanted[place]) + error / 4).real
    far[place] = np.logical_not(far[place]) if dtype.kind == "b" else (complex(far[place]) + 4 * error + 1).real
    assert tune_check.difference({"out": wanted}, {"out": close}, arrays) is None
    assert f"out[{place}]" in tune_check.difference({"out": wanted}, {"out": far}, arrays)
