"""Tuned kernels in bad company: hooks that raise or search, structures, candidates that take for ever,
signals, files that can't be used."""

import dataclasses
import gc
import json
import os
import re
import signal
import threading
import traceback
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import basic_keys, examples
from tune_tools import Clock, configs, tuned

import pyarray as pa
from pyarray.tune import search as tune_search
from pyarray.tune import store as tune_store
from pyarray.tune.restore import SavedArguments


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tune_store, "folder", lambda: tmp_path)
    return tmp_path


@pa.kernel
def doubled(out, v, block: pa.constexpr):
    for i in range(out.size):
        out[i] = 2 * v[i] + 0 * block


@pa.kernel
def grown(v, w, block: pa.constexpr):
    for i in range(v.size):
        v[i] = v[i] + w[i] + 0 * block


@pa.kernel
def summed(p, block: pa.constexpr):
    for i in range(p[0].size):
        p[0][i] = p[0][i] + p[1][i] + 0 * block


@pa.kernel
def outside(out, v, block: pa.constexpr):
    for i in range(out.size):
        out[i] = v[i + block]


def pair(device, n=4):
    return pa.arange(float(n), device=device), pa.ones(n, device=device)


# ---- the arguments


def test_a_search_without_a_launch_leaves_all_as_it_was(device):
    out, v = pa.full(4, 7.0, device=device), pa.arange(4.0, device=device)
    t = tuned(doubled, 1, 2, rep=3)
    t.search(out, v)
    assert out.tolist() == [7, 7, 7, 7]
    t(out, v)
    assert out.tolist() == [0, 2, 4, 6]


def test_where_all_candidates_fail_the_results_are_as_they_were(device):
    out, v = pa.full(4, 7.0, device=device), pa.arange(4.0, device=device)
    with pytest.raises(pa.AutotuneError, match="all 2 candidates failed"):
        tuned(outside, 1, 2)(out, v)
    assert out.tolist() == [7, 7, 7, 7]


@pytest.mark.parametrize("stop", range(1, 9, 2))
def test_an_interrupt_leaves_the_arguments(device, stop):
    count = iter(range(100))

    def interrupts(args):
        if next(count) == stop:
            raise KeyboardInterrupt

    t = tuned(grown, 1, 2, 3, pre_hook=interrupts)
    other = tuned(doubled, 1, 2, 3, pre_hook=interrupts)
    (v, w), out = pair(device), pa.full(4, 7.0, device=device)
    with pytest.raises(KeyboardInterrupt):
        t(v, w)
    assert v.tolist() == [0, 1, 2, 3]
    count = iter(range(100))
    with pytest.raises(KeyboardInterrupt):
        other(out, w)
    assert out.tolist() == [7, 7, 7, 7]
    t(v, w)
    assert v.tolist() == [1, 2, 3, 4]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # in a callback it is lost
def test_signals_at_any_time_leave_the_arguments():
    """Where Ctrl-C comes in the middle of a search, whatever that is doing."""

    armed = []

    def interrupts(number, frame):
        if armed:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupts)
    tuned(grown, 1, 2, 3)(*pair("cpu"))  # compiled
    came = 0
    try:
        for k in range(40):
            v, w = pair("cpu", 100_000)
            t = tuned(grown, 1, 2, 3, rep=2, key=["v"], restore_value=None)
            t._chooser.store.path.unlink(missing_ok=True)
            armed.append(True)
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.001 + 0.0007 * k)
                t.search(v, w)
                armed.clear()
            except (KeyboardInterrupt, RuntimeError):  # in the middle of Python's locks it is the latter
                came += 1
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            np.testing.assert_array_equal(pa.asnumpy(v), np.arange(100_000))
    finally:
        signal.signal(signal.SIGALRM, before)
    assert came


def test_an_override_doesn_t_spoil_what_it_forgets(device):
    @pa.kernel
    def both(v, w, block: pa.constexpr):
        for i in range(v.size):
            v[i] = v[i] + 1
            w[i] = w[i] + 1 + 0 * block

    v, w = pa.zeros(4, device=device), pa.zeros(4, device=device)
    tuned(both, 1, 2, restore_value=["v"])(v, w)
    assert v.tolist() == [1, 1, 1, 1]
    assert np.isfinite(pa.asnumpy(w)).all()


def test_memory_that_two_arguments_share_is_saved_once(device):
    a = pa.arange(100, dtype=pa.float32, device=device)
    arrays = {"whole": a, "same": a[:], "part": a[10:20], "steps": a[::3], "other": pa.ones(5, device=device)}
    saved = SavedArguments(arrays, dict.fromkeys(arrays, "INOUT"), None, ())
    assert saved.saved_bytes == a.nbytes + arrays["other"].nbytes
    view = SavedArguments({"part": a[10:20]}, {"part": "INOUT"}, None, ())
    assert view.saved_bytes == 40
    for one in (saved, view):
        one.save()
    a[...] = -1
    view.restore_all()
    assert pa.asnumpy(a)[8:22].tolist() == [-1, -1, *range(10, 20), -1, -1]
    saved.restore_all()
    assert pa.asnumpy(a).tolist() == list(range(100))


@pytest.mark.all_variants
@given(data=st.data())
@examples(40)
def test_drawn_views_of_one_memory_are_put_back(device, data):
    """Each run reads what was there before the first, and all of it is there at the end."""
    host = np.arange(24, dtype=np.float32).reshape(4, 6)
    memory = pa.array(host, device=device)
    keys = data.draw(st.lists(basic_keys(host.shape), min_size=1, max_size=4))
    arrays = {f"v{k}": memory[key] for k, key in enumerate(keys)}
    directions = {name: data.draw(st.sampled_from(["IN", "OUT", "INOUT"])) for name in arrays}
    saved = SavedArguments(arrays, directions, None, ())
    saved.save()
    for _ in range(2):
        saved.prepare()
        saved.fill()
        for (name, a), key in zip(arrays.items(), keys, strict=True):
            if directions[name] != "OUT":
                np.testing.assert_array_equal(pa.asnumpy(a), host[key])
        for name, a in arrays.items():
            if directions[name] != "IN":
                a[...] = -1
    saved.restore_all()
    np.testing.assert_array_equal(pa.asnumpy(memory), host)


def test_what_nobody_may_write_is_refused_before_a_search(device):
    t = tuned(doubled, 1, 2)
    for out in (pa.broadcast_to(pa.zeros(1, device=device), (4,)), np.broadcast_to(np.zeros(1), (4,))):
        with pytest.raises(ValueError, match="read-only"):
            t(out, pa.ones(4, device=device))
    assert t.cache_info()["searches"] == 0
    fixed = np.arange(4.0)
    fixed.setflags(write=False)
    out = np.zeros(4)
    t(out, fixed)
    assert out.tolist() == [0, 2, 4, 6]


def test_arrays_without_axes(device):
    @pa.kernel
    def up(v, block: pa.constexpr):
        v[()] = v[()] + 1 + 0 * block

    v = pa.array(3.0, device=device)
    t = tuned(up, 1, 2, key=["v"], rep=3)
    t(v)
    t(v)
    assert v.item() == 5
    assert t.cache_info()["searches"] == 1


def test_a_failed_candidate_keeps_no_argument_alive(device):
    @pa.kernel
    def further(out, v, block: pa.constexpr):
        for i in range(out.size):
            out[i] = v[i + 100 * (block - 1)]

    out, v = pair(device)
    t, seen = tuned(further, 1, 2), weakref.ref(v)
    t(out, v)
    assert "BoundsError" in t.results(out, v)[1].reason
    del v
    gc.collect()
    assert seen() is None


# ---- structures


@dataclasses.dataclass
class Pair:
    v: object
    w: object


def test_structures_as_keys(device):
    @pa.kernel
    def added(p: Pair, block: pa.constexpr):
        for i in range(p.v.size):
            p.v[i] = p.v[i] + p.w[i] + 0 * block

    for kernel, make in ((added, Pair), (summed, lambda *arrays: arrays)):
        t, p = tuned(kernel, 1, 2, key=["p"]), make(*pair(device))
        for _ in range(2):
            t(p)
        assert t.cache_info()["searches"] == 1
        t(make(*pair(device, 8)))
        assert t.cache_info()["searches"] == 2
        first = p[0] if isinstance(p, tuple) else p.v
        assert first.tolist() == [2, 3, 4, 5]
    changed = Pair(*pair(device))
    t = tuned(added, 1, 2, key=["p"])
    t(changed)
    changed.v, changed.w = pair(device, 16)  # the same object, another size
    before = t.cache_info()["searches"]
    t(changed)
    assert t.cache_info()["searches"] == before + 1


def test_structures_may_be_restored_and_not_zeroed(device):
    p = pair(device)
    tuned(summed, 1, 2, restore_value=["p"], rep=4)(p)
    assert p[0].tolist() == [1, 2, 3, 4]
    t = tuned(summed, 1, 2, reset_to_zero=["p"])
    with pytest.raises(TypeError, match="reset_to_zero names 'p', which is no array here, but a tuple"):
        t(p)
    assert p[0].tolist() == [1, 2, 3, 4]


def test_methods_and_captured_values(device):
    class Adder:
        def __init__(self, step):
            self.step = step

        @pa.autotune(configs=configs(1, 2), warmup=0, rep=1)
        @pa.kernel
        def add(self, v, block: pa.constexpr):
            for i in range(v.size):
                v[i] = v[i] + self.step + 0 * block

    v = pa.zeros(3, device=device)
    for step in (1, 10, 100):
        Adder(step).add(v)
    assert v.tolist() == [111, 111, 111]


# ---- searches that go on


def test_a_search_inside_a_hook_is_an_error_and_no_deadlock(device):
    other = tuned(grown, 1, 2)

    def searches(args):
        which[0].search(*args_of[0])

    t = tuned(doubled, 1, 2, pre_hook=searches, check=False)
    v, w = pair(device)
    for inner, args in ((t, (v, w)), (other, (v, w))):
        which, args_of, told = [inner], [args], []

        def call(told=told):
            try:
                t(v, w)
            except pa.AutotuneError as error:
                told.append(str(error))

        thread = threading.Thread(target=call, daemon=True)
        thread.start()
        thread.join(300)
        assert not thread.is_alive()
        assert "a search inside a hook of another one" in told[0]
    assert v.tolist() == [0, 1, 2, 3]


@pa.kernel
def laboured(out, v, block: pa.constexpr):
    for i in range(out.size):
        total = 0.0
        for k in range(v.size):
            for _ in range(block):
                total = total + v[k]
        out[i] = total / block


def test_a_candidate_that_takes_very_long_is_run_no_further(device, monkeypatch):
    monkeypatch.setattr(tune_search, "HEAVY", 0.0)
    monkeypatch.setattr(tune_search, "SLOW", 4.0)
    t = tuned(laboured, 1, 4000, rep=5, warmup=2)  # so much more that no other process on the device hides it
    out, v = pa.zeros(1, device=device), pa.ones(5000, device=device)
    t(out, v)
    assert out.tolist() == [5000]
    quick, slow = t.results(out, v)
    assert quick.runs == 5
    assert slow.runs == 1
    assert slow.reason is None
    assert t.choice(out, v).config == pa.Config(block=1)


def test_when_the_budget_is_over_what_ran_decides(device, monkeypatch):
    """The first candidates have run once when a slow one takes what is left: the next process goes on."""

    class Time:
        now = 0.0
        monotonic = staticmethod(lambda: Time.now)
        perf_counter = staticmethod(lambda: Time.now)

    def hook(args):
        Time.now += {1: 0.02, 2: 0.01, 4: 9.0, 8: 0.001}[args["block"]] / 2

    monkeypatch.setattr(tune_search, "time", Time)
    t = tuned(doubled, 1, 2, 4, 8, budget=5, post_hook=hook)
    out, v = pair(device)
    t(out, v)
    choice = t.choice(out, v)
    assert choice.source == "search"
    reasons = [r.reason for r in t.results(out, v)]
    assert reasons[:3] == [None, None, None]
    assert "the budget of 5 s was over" in reasons[3]
    assert out.tolist() == [2, 2, 2, 2]
    (entry,) = t._chooser.store.entries().values()
    assert entry["winners"] == {}


def test_threads_with_keys_of_their_own(device):
    t, wrong = tuned(doubled, 1, 2, key=["v"], rep=2), []

    def work(first):
        for n in range(first, first + 3):
            out, v = pa.zeros(n, device=device), pa.arange(float(n), device=device)
            t(out, v)
            if out.tolist() != [2.0 * k for k in range(n)]:
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(100 * k + 10,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert t.cache_info()["searches"] == 12


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_in_the_middle_of_a_search():
    inside = threading.Event()

    def hook(args):
        inside.set()
        waiting.wait(0.05)

    waiting = threading.Event()
    t = tuned(doubled, 1, 2, 3, pre_hook=hook, key=["v"])
    thread = threading.Thread(target=lambda: t(*pair("cpu", 50)))
    thread.start()
    assert inside.wait(300)
    child = os.fork()
    if child == 0:
        signal.alarm(300)
        try:
            out, v = pair("cpu", 50)
            t.forget()
            t(out, v)
            os._exit(out.tolist() != [2.0] * 50)
        finally:  # an exception must not lead the child into the test run
            traceback.print_exc()
            os._exit(2)
    status = os.waitpid(child, 0)[1]
    waiting.set()
    thread.join()
    assert status == 0


# ---- candidates


def test_odd_constants(device):
    @pa.kernel
    def filled(out, value: pa.constexpr):
        for i in range(out.size):
            out[i] = 0 * value

    for values, count in (
        ([np.int64(4), 4, np.float32(4.0), 4.0, True], 3), ([float("nan"), float("nan")], 1),
        ([0.0, -0.0], 2), ([1, 1, 1], 1),
    ):  # fmt: skip
        given = (pa.Config(value=v) for v in values)  # a generator
        t = pa.autotune(configs=given, warmup=0, rep=1, check=False)(filled)
        out = pa.zeros(3, device=device)
        for _ in range(2):
            t(out)
            assert len(t.results(out)) == count
        assert t.cache_info()["searches"] == (count > 1)


def test_functions_as_constants(device):
    @pa.func
    def one(x):
        return x + 1

    @pa.func
    def two(x):
        return 1 + x

    @pa.kernel
    def applied(v, f: pa.constexpr):
        for i in range(v.size):
            v[i] = f(v[i])

    t = pa.autotune(configs=[pa.Config(f=one), pa.Config(f=two)], warmup=0, rep=1)(applied)
    v = pa.zeros(3, device=device)
    t(v)
    t(v)
    assert v.tolist() == [2, 2, 2]


def test_results_that_are_nan_agree(device):
    @pa.kernel
    def ratio(out, v, block: pa.constexpr):
        for i in range(out.size):
            out[i] = v[i] / v[i] + 0 * block

    t = tuned(ratio, 1, 2)
    out, v = pa.ones(4, device=device), pa.zeros(4, device=device)
    t(out, v)
    assert np.isnan(pa.asnumpy(out)).all()
    assert [r.reason for r in t.results(out, v)] == [None, None]


# ---- files


@pytest.mark.parametrize("runs", ["1e999", "1" + "0" * 400, "NaN", "true"])
def test_numbers_that_no_search_writes(tmp_path, runs):
    out, v = pair("cpu")
    first = tuned(doubled, 1, 2)
    first(out, v)
    path = first._chooser.store.path
    path.write_text(re.sub(r'"runs": \d+', f'"runs": {runs}', path.read_text()))
    with pytest.warns(RuntimeWarning, match="damaged"):
        tuned(doubled, 1, 2)(out, v)
    assert out.tolist() == [2, 2, 2, 2]
    assert len(list(tmp_path.glob("*.aside-*"))) == 1


def test_a_clock_that_jumps(monkeypatch, recwarn):
    """Only the order in which keys are dropped depends on the time of day."""
    for now in (-5.0, 1e12):
        monkeypatch.setattr(tune_store.time, "time", lambda now=now: now)
        for n in (4, 5):
            t = tuned(doubled, 1, 2, key=["v"])
            t(*pair("cpu", n))
            t.forget()
            t(*pair("cpu", n))
            assert t.cache_info()["searches"] == (now < 0)
    assert not list(recwarn)


def test_a_file_that_can_t_be_read_just_now_is_left_alone(tmp_path, monkeypatch, recwarn):
    out, v = pair("cpu")
    first = tuned(doubled, 1, 2)
    first(out, v)
    path = first._chooser.store.path
    before = path.read_bytes()

    def full(path):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(tune_store, "read", full)
    t = tuned(doubled, 1, 2, clock=Clock(_1=2.0, _2=1.0))
    t(out, v)
    assert t.cache_info()["searches"] == 1
    assert path.read_bytes() == before
    assert not list(tmp_path.glob("*.aside-*"))
    assert not list(recwarn)


@pytest.mark.parametrize("call", ["fdopen", "replace", "open"])
def test_a_folder_that_is_full_or_read_only(tmp_path, monkeypatch, call):
    def fails(*args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tune_store.os, call, fails)
    out, v = pair("cpu")
    t = tuned(doubled, 1, 2)
    t(out, v)
    monkeypatch.undo()
    assert out.tolist() == [2, 2, 2, 2]
    assert not list(tmp_path.glob(".new-*"))


def test_lists_of_candidates_of_two_programs(tmp_path):
    """They share the timings, and each its winner."""
    out, v = pair("cpu")
    clock = Clock(_1=3.0, _2=2.0, _4=1.0, _8=0.5)
    tuned(doubled, 1, 2, 4, clock=clock)(out, v)
    tuned(doubled, 8, 2, clock=clock)(out, v)
    clock.ran.clear()
    for blocks, best in (((1, 2, 4), 4), ((8, 2), 8), ((1, 2), 2)):
        t = tuned(doubled, *blocks, clock=clock)
        t(out, v)
        assert t.choice(out, v).config == pa.Config(block=best)
    assert clock.ran == []
    (path,) = tmp_path.glob("*.json")
    (entry,) = json.loads(path.read_text())["entries"].values()
    assert len(entry["timings"]) == 4
