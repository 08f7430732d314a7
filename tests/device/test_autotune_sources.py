"""Where a tuned kernel's choice comes from, what its key holds, and what is timed."""

import contextlib
import inspect
import json
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from tune_tools import Clock, configs, own_store, tuned  # noqa: F401  (a fixture of every test)

import pyarray as pa
from pyarray import config
from pyarray.lang.parse import function_from_text
from pyarray.tune import shipped as tune_artifact
from pyarray.tune import store as tune_store
from pyarray.tune import timing as tune_time
from pyarray.tune import tuning_key as tune_key
from pyarray.tune.search import CompiledCandidate, Options, Search, Task


@pa.kernel
def scaled(out, v, n: int = 4, block: pa.constexpr = 1):
    for i in range(out.size):
        out[i] = n * v[i] + 0 * block


@pa.kernel
def grown(v, w, block: pa.constexpr):
    for i in range(v.size):
        v[i] = v[i] + w[i] + 0 * block


def pair(device, n=4):
    return pa.zeros(n, device=device), pa.ones(n, device=device)


def searched(t, *args, **kwargs):
    before = t.cache_info()["searches"]
    t(*args, **kwargs)
    return t.cache_info()["searches"] - before


def test_the_options_and_what_they_are_without_a_word():
    options = inspect.signature(pa.autotune).parameters
    named = "configs key restore_value reset_to_zero prune warmup rep default artifact_name check pre_hook"
    assert set(f"{named} post_hook bench budget model cases".split()) == set(options)
    assert (options["warmup"].default, options["rep"].default, options["check"].default) == (5, 25, True)
    assert options["restore_value"].default is None


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"configs": scaled}, TypeError, "needs candidates"),
        ({"budget": "3"}, TypeError, "budget is seconds"),
        ({"budget": float("nan")}, ValueError, "budget is seconds"),
        ({"model": 3}, TypeError, "model is a function"),
        ({"cases": [()]}, TypeError, "cases is a function"),
    ],
)
def test_more_wrong_options(options, error, text):
    with pytest.raises(error, match=text):
        pa.autotune(**{"configs": configs(1, 2)} | options)(scaled)
    with pytest.raises(TypeError, match="flags of a Config are texts"):
        pa.Config(flags=3)
    with pytest.raises(RuntimeError, match="no cost model"):
        tuned(scaled, 1, 2, model=False).fits(*pair("cpu"))


def test_functions_that_give_nonsense(device):
    args = pair(device)
    for option, error, text in (
        (
            {"prune": lambda configs, args: None},
            TypeError,
            r"prune\(configs, args\) gives a list of pa.Config",
        ),
        ({"configs": lambda: 3}, TypeError, "configs is a list of pa.Config, or a function"),
        ({"check": lambda out, v, n: 2 * v}, TypeError, "check writes what is right into its arguments"),
        ({"bench": lambda fn: float("inf")}, pa.AutotuneError, "gives milliseconds, got inf"),
        ({"bench": lambda fn: float("nan")}, pa.AutotuneError, "gives milliseconds, got nan"),
        ({"bench": lambda fn: "3 ms"}, pa.AutotuneError, "gives milliseconds, got '3 ms'"),
        ({"default": lambda *args: 1 / 0}, ZeroDivisionError, "division"),
    ):
        t = tuned(scaled, 1, 2, **option)
        with pytest.raises(error, match=text):
            t(*args)
        assert args[0].tolist() == [0, 0, 0, 0]


def test_a_reference_may_give_what_it_wrote(device):
    t = tuned(scaled, 1, 2, check=lambda out, v, n: np.multiply(v, n, out=out))
    args = pair(device)
    t(*args)
    assert [r.reason for r in t.results(*args)] == [None, None]


def test_what_prune_gives_doesn_t_overrule_the_caller(device):
    t = tuned(scaled, 1, 2, prune=lambda configs, args: [pa.Config(block=7), *configs])
    assert t.choice(*pair(device), block=1) == (pa.Config(block=1), "only")


def test_functions_may_do_as_they_like_with_what_they_get(device):
    def spoils(*given):
        for each in given:
            each.clear()
        return configs(1, 2)

    t = tuned(scaled, 1, 2, prune=spoils, pre_hook=lambda args: args.clear())
    args = pair(device)
    t(*args)
    assert args[0].tolist() == [4, 4, 4, 4]


def test_its_signature_has_what_a_call_gives():
    assert str(inspect.signature(tuned(scaled, 1, 2))) == "(out, v, n=4, *, block=chosen by the tuner)"


@pytest.mark.parametrize("name", ["self", "dir", "args", "kwargs", "found", "table", "config"])
def test_parameters_may_have_any_name(device, name):
    text = f"""
def named({name}, block: pa.constexpr):
    for i in range({name}.size):
        {name}[i] = {name}[i] + 1 + 0 * block
"""
    scope = {"pa": pa}
    t = tuned(pa.kernel(function_from_text("named", text, scope)), 1, 2, key=[name], artifact_name="named")
    a = pa.zeros(3, device=device)
    assert t.results(**{name: a})[0].reason == "not tried"
    for _ in range(2):
        t(**{name: a})
    assert a.tolist() == [2, 2, 2]
    assert t.search(**{name: a}) == t.choice(**{name: a}).config
    t.kernel(**{name: a, "block": 1})


# ---- the key


def test_alignment_that_is_chance_is_in_no_key():
    """Memory of NumPy's begins at any multiple of 16 bytes."""
    t, memory = tuned(scaled, 1, 2), np.zeros(1000)
    first = -memory.ctypes.data % 4096 // 8
    found = []
    for start in range(0, 40, 2):  # 16 bytes each
        v = pa.asarray(memory[first + start :][:50])
        assert v._ptr % 4096 == 8 * start
        found.append(searched(t, pa.zeros(50), v))
        assert t.choice(pa.zeros(50), v).source in ("search", "winner")
    assert found == [1] + 19 * [0]
    again = tuned(scaled, 1, 2)  # as another process
    assert searched(again, pa.zeros(50), pa.asarray(memory[first + 6 :][:50])) == 0
    assert again.cache_info()["disk_hits"] == 1
    assert searched(t, pa.zeros(50), pa.asarray(memory[first + 1 :][:50])) == 1  # less than 16 is no chance


@pytest.mark.parametrize("fact", ["kind", "model", "target", "machine", "memory", "threads", "driver"])
def test_facts_of_the_device_are_in_the_key(device, monkeypatch, fact):
    t = tuned(scaled, 1, 2)
    args = pair(device)
    assert searched(t, *args) == 1
    facts = tune_key.device_properties(pa.get_device(device))
    monkeypatch.setattr(tune_key, "device_properties", lambda device: facts | {fact: "another"})
    t.forget()
    assert searched(t, *args) == 1
    monkeypatch.undo()


def test_a_key_without_a_compiler_equals_no_whole_one(monkeypatch):
    device = pa.get_device("cpu")
    whole = tune_key.toolchain_properties(device)

    def missing():
        raise pa.DeviceError("no compiler")

    monkeypatch.setattr(device.driver, "compiler", missing)
    degraded = tune_key.toolchain_properties(device)
    assert degraded["compiler"] == tune_key.MISSING != whole["compiler"]
    assert tune_key.digest_of(degraded) != tune_key.digest_of(whole)


def test_it_imports_and_decorates_without_a_compiler(tmp_path):
    (tmp_path / "app.py").write_text(
        "import sys\n"
        "import pyarray as pa\n"
        "@pa.autotune(configs=[pa.Config(b=1), pa.Config(b=2)])\n"
        "@pa.kernel\n"
        "def up(v, b: pa.constexpr):\n"
        "    for i in range(v.size):\n"
        "        v[i] = b\n"
        "assert up.tuned == ('b',)\n"
        "assert not {'torch', 'cuda', 'hip', 'matplotlib'} & set(sys.modules)\n"
    )
    own = {"PATH": "", "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "PYARRAY_CACHE": "0"}
    subprocess.run([sys.executable, str(tmp_path / "app.py")], env=own, check=True)


def test_flags_and_wraparound_of_the_kernel_are_in_the_key(device):
    def function(out, v, block: pa.constexpr):
        for i in range(out.size):
            out[i] = v[i] + 0 * block

    args = pair(device)
    flags = ("-DPA_TEST_OTHER=1",)
    made = [pa.kernel(function), pa.kernel(function, flags=flags), pa.kernel(function, wraparound=True)]
    assert [searched(tuned(kernel, 1, 2), *args) for kernel in made] == [1, 1, 1]
    assert [searched(tuned(kernel, 1, 2), *args) for kernel in made] == [0, 0, 0]


def test_the_files_are_beside_the_kernels(monkeypatch, tmp_path):
    monkeypatch.undo()
    monkeypatch.setenv("PYARRAY_CACHE_DIR", str(tmp_path / "own"))
    assert tune_store.folder() == tmp_path / "own" / "tune"
    monkeypatch.setenv("PYARRAY_CACHE", "0")
    assert tune_store.folder() is None


@pytest.mark.parametrize("cache", ["0", "file"])
def test_without_a_cache_each_process_searches(tmp_path, monkeypatch, cache, recwarn):
    monkeypatch.undo()
    (tmp_path / "file").write_text("")
    for name, value in {"0": {"PYARRAY_CACHE": "0"}, "file": {"PYARRAY_CACHE_DIR": str(tmp_path / "file")}}[
        cache
    ].items():
        monkeypatch.setenv(name, value)
    args = pair("cpu")
    for _ in range(2):
        t = tuned(scaled, 1, 2)
        assert [searched(t, *args) for _ in range(2)] == [1, 0]
    assert args[0].tolist() == [4, 4, 4, 4]


# ---- the order of sources


def shipped(device, folder, *blocks, **times):
    """A tuner with an artifact in `folder`, and nothing else known."""
    options = {"clock": Clock(**times), "key": ["n"], "artifact_name": "scaled"}
    path = tuned(scaled, *blocks, **options).emit(folder / "shipped", *pair(device))
    for file in folder.glob("*.json"):
        file.unlink()
    config.set("PYARRAY_AUTOTUNE_CONFIG_DIR", folder / "shipped")
    return path, lambda: tuned(scaled, *blocks, **options)


def test_a_winner_goes_before_an_artifact_and_that_before_a_default(device, tmp_path):
    _, made = shipped(device, tmp_path, 1, 2, _1=2.0, _2=1.0)
    args = pair(device)
    found = made()
    found._all.default = lambda *args: pa.Config(block=1)
    found(*args)
    assert found.choice(*args) == (pa.Config(block=2), "artifact")
    local = tuned(scaled, 1, 2, clock=Clock(_1=1.0, _2=2.0), key=["n"])
    assert searched(local, *args) == 1
    again = made()
    again(*args)
    assert again.choice(*args) == (pa.Config(block=1), "winner")


def test_another_folder_is_asked_at_once(device, tmp_path):
    _, made = shipped(device, tmp_path, 1, 2, _1=2.0, _2=1.0)
    t, args = made(), pair(device)
    config.set("PYARRAY_AUTOTUNE_CONFIG_DIR", None)
    config.set("PYARRAY_AUTOTUNE", "use")
    t(*args)
    assert t.choice(*args).source == "first"
    config.set("PYARRAY_AUTOTUNE_CONFIG_DIR", tmp_path / "shipped")
    assert t.choice(*args) == (pa.Config(block=2), "artifact")


def test_defaults_are_a_part_of_what_an_artifact_is_for(device, tmp_path):
    _, made = shipped(device, tmp_path, 1, 2, _1=2.0, _2=1.0)
    t, args = made(), pair(device)
    assert searched(t, *args, 4) == 0  # spelt out
    assert searched(t, *args, n=4) == 0
    with pytest.warns(RuntimeWarning, match=r"no tuned choice was shipped for 'scaled' n=5 on .*scaled-"):
        assert searched(t, *args, 5) == 1


@pytest.mark.parametrize("fact", ["kind", "model", "target", "threads"])
def test_an_artifact_is_for_its_device(device, tmp_path, monkeypatch, fact):
    _, made = shipped(device, tmp_path, 1, 2, _1=2.0, _2=1.0)
    facts = tune_key.device_properties(pa.get_device(device))
    monkeypatch.setattr(tune_key, "device_properties", lambda device: facts | {fact: "another"})
    with pytest.warns(RuntimeWarning, match="no tuned choice was shipped"):
        assert searched(made(), *pair(device)) == 1


@pytest.mark.parametrize("mode", [0o777, 0o775])
@pytest.mark.parametrize("which", ["file", "folder"])
def test_an_artifact_that_others_can_write_is_not_used(tmp_path, monkeypatch, which, mode):
    path, made = shipped("cpu", tmp_path, 1, 2, _1=2.0, _2=1.0)
    place = path if which == "file" else path.parent
    place.chmod(mode)
    with pytest.warns(RuntimeWarning, match=r"can't be trusted: .*can be written by others .chmod go-w"):
        assert searched(made(), *pair("cpu")) == 1
    place.chmod(mode & ~0o022)
    for file in tmp_path.glob("*.json"):
        file.unlink()
    assert searched(made(), *pair("cpu")) == 0
    for file in tmp_path.glob("*.json"):
        file.unlink()
    monkeypatch.setattr(os, "getuid", lambda: path.stat().st_uid + 1)
    if path.stat().st_uid:
        with pytest.warns(RuntimeWarning, match=r"can't be trusted"):
            assert searched(made(), *pair("cpu")) == 1


def test_an_emitted_artifact_is_for_all_to_read_and_for_nobody_else_to_write(tmp_path):
    before = os.umask(0)
    try:
        path, made = shipped("cpu", tmp_path, 1, 2, _1=2.0, _2=1.0)
    finally:
        os.umask(before)
    assert [p.stat().st_mode & 0o777 for p in (path, path.parent)] == [0o644, 0o755]
    assert searched(made(), *pair("cpu")) == 0


def test_flags_come_from_candidates_only(tmp_path):
    """What a file says reaches no command line."""
    path, made = shipped("cpu", tmp_path, 1, 2, _1=2.0, _2=1.0)
    script = tmp_path / "x.sh"
    script.write_text(f'#!/bin/sh\ntouch {tmp_path}/ran\nexec "$@"\n')
    script.chmod(0o755)
    data = json.loads(path.read_text())
    for flags in (["-wrapper", str(script)], [f"-fplugin={script}"], ["-O1"]):
        data["config"]["flags"] = flags
        path.write_text(json.dumps(data))
        with pytest.warns(RuntimeWarning, match="which is none of the 2 candidates; add it to configs"):
            made()(*pair("cpu"))
        for file in tmp_path.glob("*.json"):
            file.unlink()
    assert not (tmp_path / "ran").exists()


def test_an_artifact_doesn_t_overrule_the_caller_or_the_key(tmp_path):
    path, made = shipped("cpu", tmp_path, 1, 2, _1=2.0, _2=1.0)
    args = pair("cpu")
    with pytest.warns(RuntimeWarning, match="sets block=2, and the caller 1"):
        made()(*args, block=1)
    data = json.loads(path.read_text())
    data["config"]["values"]["n"] = 5
    path.write_text(json.dumps(data))
    with pytest.warns(RuntimeWarning, match="sets 'n', which is no tuned parameter"):
        assert searched(made(), *args) == 1


def test_what_fails_behind_an_accepted_artifact_is_raised(tmp_path):
    @pa.kernel
    def choosy(out, v, block: pa.constexpr):
        for i in range(out.size):
            out[i] = v[i] if block < 3 else v[i].no_such_thing

    options = {"clock": Clock(_1=2.0, _2=1.0), "artifact_name": "choosy"}
    args = pair("cpu")
    path = tuned(choosy, 1, 2, 3, **options).emit(tmp_path / "shipped", *args)
    path.write_text(path.read_text().replace('"block": 2', '"block": 3'))
    for file in tmp_path.glob("*.json"):
        file.unlink()
    config.set("PYARRAY_AUTOTUNE_CONFIG_DIR", tmp_path / "shipped")
    with pytest.raises(pa.CompileError, match="no_such_thing"):
        tuned(choosy, 1, 2, 3, **options)(*args)
    assert not list(tmp_path.glob("*.json"))


def test_tuples_and_unknown_devices_are_not_shipped(tmp_path, monkeypatch):
    @pa.kernel
    def shaped(out, block: pa.constexpr):
        for i in range(out.size):
            out[i] = block[0]

    out = pa.zeros(4)
    t = pa.autotune(configs=[pa.Config(block=(1, 2)), pa.Config(block=(1, 3))], artifact_name="a")(shaped)
    with pytest.raises(ValueError, match="block is a tuple, which JSON would change"):
        t.emit(tmp_path / "shipped", out)
    facts = tune_key.device_properties(out.device)
    monkeypatch.setattr(tune_key, "device_properties", lambda device: facts | {"model": tune_key.MISSING})
    with pytest.raises(ValueError, match="doesn't say its model"):
        tuned(scaled, 1, 2, artifact_name="b").emit(tmp_path / "shipped", *pair("cpu"))
    assert not (tmp_path / "shipped").exists()
    assert tune_artifact.MISSING == tune_key.MISSING


def test_off_means_the_default_or_the_first(device):
    config.set("PYARRAY_AUTOTUNE", "off")
    args = pair(device)
    given = tuned(scaled, 1, 2, default=lambda out, v, n, block=None: pa.Config(block=2))
    for t, choice in (
        (given, (pa.Config(block=2), "default")),
        (tuned(scaled, 1, 2), (pa.Config(block=1), "first")),
    ):
        assert searched(t, *args) == 0
        assert t.choice(*args) == choice
    assert t(*args) is None  # also where it is quick


# ---- what is timed


def test_restoring_zeroing_and_hooks_are_outside_of_what_is_timed(device, monkeypatch):
    """And events are of the stream of the call."""
    order, streams = [], set()
    driver = pa.get_device(device).driver

    class Recorded(tune_time.Event):
        def record(self, stream=None):
            order.append("event")
            streams.add(driver.current_stream())
            super().record(stream)

    monkeypatch.setattr(tune_time, "Event", Recorded)
    real = Search._before

    def before(self, c, arguments):
        restore = arguments.restore
        monkeypatch.setattr(arguments, "restore", lambda: (order.append("restore"), restore()))
        real(self, c, arguments)
        order.append("ready")

    monkeypatch.setattr(Search, "_before", before)
    t = tuned(
        grown, 1, 2, rep=3, check=False, reset_to_zero=["w"],
        pre_hook=lambda args: order.append("pre"), post_hook=lambda args: order.append("post"),
    )  # fmt: skip
    with pa.Stream(device) as stream:
        v, w = pa.arange(4.0, device=device), pa.ones(4, device=device)
        t(v, w)
        stream.synchronize()
    assert v.tolist() == [0, 1, 2, 3]
    runs = " ".join(order).split("post")
    for run in runs[:-1]:
        *before_it, first, second = run.split()
        assert (first, second) == ("event", "event")
        assert before_it[-2:] == ["pre", "ready"]
        assert set(before_it[:-2]) == {"restore"}
    assert streams == {stream.handle}


def test_a_median_has_its_spread():
    times = tune_time.Times.of([1.0, 2.0, 3.0, 4.0, 100.0])
    assert (times.median, times.least, times.runs) == (3.0, 1.0, 5)
    assert times.spread == pytest.approx(2 / 3)
    assert tune_time.Times.of([5.0]).spread == 0


# ---- compiling, without a kernel


def task(prepare, *blocks):
    return Task("fake", pa.get_device("cpu"), tuple(configs(*blocks)), prepare, {}, {})


def test_candidates_are_compiled_at_once_and_before_any_runs(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1}, raising=False)
    both, order = threading.Barrier(2, timeout=300), []

    def prepare(c):
        both.wait()  # raises unless two are here
        order.append("compiled")
        return CompiledCandidate(lambda: order.append("run"), None, {})

    search = Search(task(prepare, 1, 2, 3, 4), Options(warmup=0, rep=1), (), lambda results: None)
    assert [r.reason for r in search.run()] == [None] * 4
    assert order[:4] == ["compiled"] * 4
    assert set(order[4:]) == {"run"}


def test_a_compiler_that_hangs_ends_with_the_budget():
    released = threading.Event()

    def prepare(c):
        if c["block"] == 2:
            released.wait(60)
        return CompiledCandidate(lambda: None, None, {})

    search = Search(task(prepare, 1, 2), Options(warmup=0, rep=1, budget=0.2), (), lambda results: None)
    with contextlib.closing(contextlib.ExitStack()) as stack:
        stack.callback(released.set)
        rows = search.run()
    assert rows[1].is_over_budget
    assert rows[0].is_over_budget or rows[0].median is not None
