"""Tuned kernels: what a search leaves of the arguments, who wins, what is searched again, what is refused."""

import copy
import logging
import pickle
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples
from tune_tools import Clock, configs, tuned

import pyarray as pa
from pyarray import config
from pyarray.tune import search as tune_search
from pyarray.tune import store as tune_store
from pyarray.tune.restore import SavedArguments


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty store; compiled kernels are shared between the tests."""
    monkeypatch.setattr(tune_store, "folder", lambda: tmp_path)
    before = dict(config.overrides)
    yield tmp_path
    config.overrides.clear()
    config.overrides.update(before)


@pytest.fixture
def setting():
    yield config.set
    for name in config.SETTINGS:
        if name.startswith("PYARRAY_AUTOTUNE"):
            config.set(name, None)


@pa.kernel
def middles(out, v, block: pa.constexpr):
    for b in range((out.size + block - 1) // block):
        for i in range(max(1, b * block), min(out.size - 1, (b + 1) * block)):
            out[i] = (v[i - 1] + v[i + 1]) / 2


@pa.kernel
def scaled(out, v, n: int, block: pa.constexpr):
    for i in range((n + block - 1) // block):
        for k in range(i * block, min(n, (i + 1) * block)):
            out[k] = 2 * v[k]


@pa.kernel
def grown(v, w, block: pa.constexpr):
    for i in range(v.size):
        v[i] = v[i] + w[i] + 0 * block


@pa.kernel
def doubled(out, v, block: pa.constexpr):
    for i in range(out.size):
        out[i] = 2 * v[i] + 0 * block


@pa.kernel
def counted(total, v, block: pa.constexpr):
    for i in range(v.size):
        pa.atomic_add(total, 0, v[i] + 0 * block)


@pa.kernel
def lying(out, v, block: pa.constexpr):
    for i in range(v.size):
        if block == 1:
            out[i] = v[i] + 1
        elif block == 2:
            out[i] = v[i]
        elif block == 3:
            out[i + 1000] = v[i]
        elif i % block == 0:
            out[i] = v[i]


@pa.kernel
def sized(out, v, n: int, block: pa.constexpr):
    for i in range(n):
        out[i] = v[i] * block


def arrays(device, n=16, dtype=pa.float32):
    return pa.zeros(n, dtype=dtype, device=device), pa.arange(n, dtype=dtype, device=device)


# ---- what a search leaves


def test_the_least_median_wins_and_the_result_is_one_run(device):
    clock = Clock(_1=3.0, _4=1.0, _8=1.0, _16=2.0)
    t = tuned(scaled, 1, 4, 8, 16, clock=clock, key=["n"])
    out, v = arrays(device)
    assert t(out, v, 16) is None
    np.testing.assert_array_equal(pa.asnumpy(out), 2.0 * np.arange(16))
    assert t.choice(out, v, 16) == (pa.Config(block=4), "search")
    found = {r.config["block"]: r.median for r in t.results(out, v, 16)}
    assert found == clock.times
    t(out, v, 16)
    assert t.cache_info()["searches"] == 1
    assert t.cache_info()["hits"] == 1


def test_what_is_read_and_written_is_put_back(device):
    """Triton asks for `restore_value`, and is wrong without it: triton-lang/triton#6547, lion-pytorch#36."""
    t = tuned(grown, 1, 2, 3, rep=5, warmup=3)
    v, w = arrays(device)
    t(v, w)
    np.testing.assert_array_equal(pa.asnumpy(v), np.arange(16))
    t(v, w)
    np.testing.assert_array_equal(pa.asnumpy(v), 2.0 * np.arange(16))


def test_when_runs_need_nothing_between_them(device):
    """Restored memory lies in one core's cache, which a run of many doesn't meet."""
    out, v = arrays(device)
    how = {"out": "INOUT", "v": "IN"}

    def repeatable(write_only, out=out, zeroed=()):
        return SavedArguments({"out": out, "v": v}, how, None, zeroed, write_only).repeatable

    assert repeatable({"out"})
    assert not repeatable(())
    assert not repeatable({"out"}, out=v[1:])
    assert not repeatable({"out"}, zeroed=("out",))
    assert SavedArguments({"out": out, "v": v}, how | {"out": "OUT"}, None, ()).repeatable


def test_an_array_that_is_written_in_part_keeps_the_rest(device):
    """Runs of it are repeated in one stretch: nothing reads what they write."""
    t = tuned(middles, 1, 2, 8, rep=3, warmup=2)
    out, v = pa.full(100, 7.0, device=device), pa.arange(100.0, device=device)
    t(out, v)
    wanted = np.arange(100.0)
    wanted[[0, -1]] = 7
    np.testing.assert_array_equal(pa.asnumpy(out), wanted)
    assert t.cache_info()["searches"] == 1


def test_the_best_few_are_timed_for_longer(device, monkeypatch):
    monkeypatch.setattr(tune_search, "LONG", 1e9)
    t = tuned(grown, 1, 2, 3, 4, clock=Clock(_1=1.0, _2=1.05, _3=1.3, _4=3.0), rep=5)
    v, w = arrays(device)
    t(v, w)
    assert [r.runs for r in t.results(v, w)] == [20, 20, 5, 4]
    alone = tuned(grown, 1, 3, clock=Clock(_1=1.0, _3=1.3), rep=5, key=["v"])
    alone(v, w)
    assert alone.results(v, w)[0].runs == 5


def test_without_restoring_the_arguments_drift(device):
    t = tuned(grown, 1, 2, restore_value=[], check=False, clock=Clock(_1=1.0, _2=2.0))
    v, w = arrays(device)
    t(v, w)
    assert pa.asnumpy(v)[1] > 1


def test_an_override_saves_what_it_names(device):
    t = tuned(grown, 1, 2, restore_value=["v"], rep=3)
    v, w = arrays(device)
    t(v, w)
    np.testing.assert_array_equal(pa.asnumpy(v), np.arange(16))


def test_zeroed_arrays_are_zeroed_at_every_call(device):
    """triton-lang/triton#7181: not on the call after the search."""
    t = tuned(counted, 1, 2, reset_to_zero=["total"], rep=3, warmup=1)
    total, v = pa.full(1, 7.0, device=device), pa.ones(10, device=device)
    for _ in range(3):
        t(total, v)
        assert pa.asnumpy(total)[0] == 10
    assert t.cache_info()["hits"] == 2


@given(st.data())
@examples(8)
def test_nothing_but_the_result_changes_whatever_overlaps(device, data):
    """Views into one memory, in each other's way or not: the same as one run of the plain kernel."""
    memory = np.arange(40, dtype=np.float32)
    size = data.draw(st.integers(1, 12))
    steps = [data.draw(st.sampled_from([1, 2, -1, -2])) for _ in range(2)]
    starts = [data.draw(st.integers(0, 40 - 2 * size)) for _ in range(2)]
    wanted, got = (pa.array(memory, device=device) for _ in range(2))

    def views(a):
        return [a[s : s + 2 * size][:: steps[k]][:size] for k, s in enumerate(starts)]

    kernel, args = data.draw(st.sampled_from([(grown, ()), (doubled, ()), (scaled, (size,))]))
    low = [sorted((s, s + 2 * size)) for s in starts]
    same = starts[0] == starts[1] and steps[0] == steps[1]
    if low[0][0] < low[1][1] and low[1][0] < low[0][1] and not same:
        w = views(pa.array(memory, device=device))[1]  # elements of a loop have no order: in other memory
        kernel(views(wanted)[0], w, *args, 1)
        tuned(kernel, 1, 2)(views(got)[0], w, *args)
    else:
        kernel(*views(wanted), *args, 1)
        tuned(kernel, 1, 2)(*views(got), *args)
    np.testing.assert_array_equal(pa.asnumpy(got), pa.asnumpy(wanted))


def test_the_arguments_are_put_back_when_a_hook_raises(device):
    def raises(args):
        raise KeyError("hook")

    v, w = arrays(device)
    t = tuned(grown, 1, 2, post_hook=raises)
    with pytest.raises(pa.AutotuneError, match=r"all 2 candidates failed:\n.*block=1.*KeyError: 'hook'") as caught:
        t(v, w)
    assert isinstance(caught.value.__cause__, KeyError)
    np.testing.assert_array_equal(pa.asnumpy(v), np.zeros(16))


def test_hooks_come_in_their_order_and_not_at_the_call(device):
    seen = []
    own = pa.Config(block=1, pre_hook=lambda args: seen.append(("config", args["block"], float(args["v"][1]))))
    t = pa.autotune(
        configs=[own, pa.Config(block=2)], warmup=0, rep=1, check=False,
        pre_hook=lambda args: seen.append(("tuner", args["block"], float(args["v"][1]))),
        post_hook=lambda args: seen.append(("post", args["block"], float(args["v"][1]))),
    )(grown)  # fmt: skip
    v, w = arrays(device)
    t(v, w)
    assert seen[:3] == [("config", 1, 0.0), ("tuner", 1, 0.0), ("post", 1, 1.0)]
    count = len(seen)
    t(v, w)
    assert len(seen) == count


# ---- candidates that are wrong


def test_wrong_partial_and_out_of_bounds_candidates_are_dropped(device):
    """A candidate that writes half of the output must not pass with another's results:
    triton-lang/triton#9230."""
    clock = Clock(_1=0.1, _2=5.0, _3=0.1, _4=0.1, _5=0.1)
    t = tuned(lying, 1, 2, 3, 4, 5, clock=clock, check=lambda out, v: np.copyto(out, v))
    out, v = arrays(device)
    t(out, v)
    np.testing.assert_array_equal(pa.asnumpy(out), np.arange(16))
    reasons = {r.config["block"]: r.reason for r in t.results(out, v)}
    assert reasons[2] is None
    assert "wrong result: out[0] is 1.0, expected 0.0" in reasons[1]
    assert "the reference" in reasons[1]
    assert "BoundsError" in reasons[3]
    assert "out[" in reasons[4]
    assert "out[" in reasons[5]


def test_without_a_reference_most_candidates_are_right(device):
    @pa.kernel
    def odd(out, v, block: pa.constexpr):
        for i in range(v.size):
            out[i] = v[i] if block > 1 else -v[i]

    t = tuned(odd, 1, 2, 3, clock=Clock(_1=1.0, _2=2.0, _3=3.0))
    out, v = arrays(device)
    t(out, v)
    assert t.choice(out, v).config == pa.Config(block=2)
    assert "by most candidates" in t.results(out, v)[0].reason


def test_a_candidate_that_doesn_t_compile_is_dropped(device):
    @pa.kernel
    def choosy(out, v, block: pa.constexpr):
        for i in range(v.size):
            out[i] = v[i] if block < 3 else v[i].no_such_thing

    t = tuned(choosy, 4, 1, 2, clock=Clock(_1=1.0, _2=2.0))
    out, v = arrays(device)
    t(out, v)
    assert t.choice(out, v).config == pa.Config(block=1)
    assert "CompileError" in t.results(out, v)[0].reason


def test_when_all_fail_each_says_why(device):
    @pa.kernel
    def never(out, v, block: pa.constexpr):
        for i in range(v.size):
            out[i] = v[i].no_such_thing + block

    t = tuned(never, 1, 2)
    with pytest.raises((pa.AutotuneError, pa.CompileError)) as caught:
        t(*arrays(device))
    assert "no_such_thing" in str(caught.value)


def test_wrong_arguments_are_the_kernels_errors(device):
    t = tuned(scaled, 1, 2, key=["n"])
    out, v = arrays(device)
    with pytest.raises(TypeError, match="'n'"):
        t(out, v, "16")
    with pytest.raises(TypeError, match=r"scaled\(\) missing 1 required positional argument: 'n'"):
        t(out, v)
    out.setflags(write=False)
    with pytest.raises(ValueError, match="read-only"):
        t(out, v, 16)
    assert t.cache_info()["searches"] == 0


def test_no_candidates(device):
    out, v = arrays(device)
    for options, text in (
        ({"prune": lambda configs, args: []}, "prune left none of 2"),
        ({"configs": lambda: []}, "configs gave none"),
    ):
        with pytest.raises(pa.AutotuneError, match=f"no candidates: {text}"):
            tuned(scaled, 1, 2, **options)(out, v, 16)


# ---- the key


def searched(t, *args, **kwargs):
    before = t.cache_info()["searches"]
    t(*args, **kwargs)
    return t.cache_info()["searches"] - before


def test_what_the_key_names_and_what_it_doesn_t(device):
    t = tuned(sized, 1, check=False, configs=configs(1, 2), key=["n"])
    out, v = arrays(device, 64)
    assert searched(t, out, v, 4) == 1
    assert searched(t, out, v, 4) == 0
    assert searched(t, out, v, 5) == 1
    assert searched(t, out=out, n=5, v=v) == 0  # triton-lang/triton#4808
    assert searched(t, out, pa.array(pa.asnumpy(v), device=device), 5) == 0
    assert searched(t, out[:32], v[:40], 5) == 0
    assert searched(t, out[1:], v, 5) == 1  # alignment
    assert searched(t, out[::2], v, 5) == 1  # strides
    assert searched(t, out[::4], v, 5) == 0
    assert searched(t, out[::-1], v, 5) == 1
    assert searched(t, out, v.astype(pa.float64), 5) == 1


def test_shapes_are_a_key(device):
    t = tuned(grown, 1, 2, key=["v"])
    v, w = arrays(device, 32)
    assert searched(t, v, w) == 1
    assert searched(t, v[:16], w[:16]) == 1
    assert searched(t, v[:16], w) == 0


def test_spelling_out_a_default_is_the_same_key(device):
    @pa.kernel
    def defaulted(v, n: int = 3, block: pa.constexpr = 1):
        for i in range(n):
            v[i] = block

    t = tuned(defaulted, 1, 2, key=["n"], check=False)
    v = pa.zeros(8, device=device)
    assert searched(t, v) == 1
    assert searched(t, v, 3) == 0
    assert searched(t, v, n=4) == 1


FACTOR = 2


def test_a_changed_setting_or_captured_value_is_another_key(device, monkeypatch):
    @pa.kernel
    def captured(v, block: pa.constexpr):
        for i in range(v.size):
            v[i] = FACTOR + 0 * block

    t = tuned(captured, 1, 2)
    v = pa.zeros(8, device=device)
    assert searched(t, v) == 1
    assert searched(t, v) == 0
    monkeypatch.setitem(globals(), "FACTOR", 3)
    assert searched(t, v) == 1
    assert pa.asnumpy(v)[0] == 3
    monkeypatch.setenv("PYARRAY_CFLAGS", "-DOTHER=1")
    assert searched(t, v) == 1
    monkeypatch.delenv("PYARRAY_CFLAGS")
    assert searched(t, v) == 0


def test_two_kernels_of_one_name_share_nothing(device):
    def made(factor, blocks):
        @pa.kernel
        def same(out, v, block: pa.constexpr):
            for i in range(v.size):
                out[i] = v[i] + factor * block * 0

        return tuned(same, *blocks)

    out, v = arrays(device)
    first, second = made(1, (128, 64)), made(2, (7, 8))
    first(out, v)
    second(out, v)
    assert second.choice(out, v).config["block"] in (7, 8)
    assert second.cache_info()["searches"] == 1


def test_a_removed_candidate_is_not_served(device):
    out, v = arrays(device)
    clock = Clock(_1=1.0, _2=2.0, _3=3.0)
    tuned(scaled, 1, 2, clock=clock)(out, v, 16)
    again = tuned(scaled, 2, 3, clock=clock)
    again(out, v, 16)
    assert again.choice(out, v, 16).config == pa.Config(block=2)


def test_a_callers_constant_is_not_overridden(device):
    t = tuned(scaled, 1, 2, 4, clock=Clock(_1=3.0, _2=2.0, _4=1.0))
    out, v = arrays(device)
    t(out, v, 16, block=2)
    assert t.cache_info()["searches"] == 0
    assert t.choice(out, v, 16, block=2).config == pa.Config(block=2)
    with pytest.raises(TypeError):
        t(out, v, 16, 2)
    t(out, v, 16, block=3)  # all is said: nothing to choose
    assert pa.asnumpy(out)[15] == 30

    @pa.kernel
    def two(v, block: pa.constexpr, unroll: pa.constexpr):
        for i in range(v.size):
            v[i] = block + unroll

    pairs = pa.autotune(configs=[pa.Config(block=b, unroll=b) for b in (1, 2)])(two)
    pairs(out, block=2)
    assert pa.asnumpy(out)[0] == 4
    with pytest.raises(pa.AutotuneError, match="none of the 2 has block=3"):
        pairs(out, block=3)


def by_size(out, v, n):
    return pa.Config(block=2 if out.size > 10 else 1)


def test_a_default_is_asked_again_for_other_sizes(device):
    t = tuned(scaled, 1, 2, default=by_size)
    out, v = arrays(device)
    for n, block in ((16, 2), (8, 1), (16, 2), (4, 1)):
        for _ in range(2):
            t(out[:n], v[:n], n)
        assert t.choice(out[:n], v[:n], n) == (pa.Config(block=block), "default")
    assert t.cache_info()["hits"] == 5


@pa.autotune(configs=[pa.Config(block=1), pa.Config(block=2)], warmup=0, rep=1)
@pa.kernel
def at_the_top(v, block: pa.constexpr):
    """Adds one."""
    for i in range(v.size):
        v[i] = v[i] + 1 + 0 * block


class Holder:
    method = tuned(at_the_top.kernel, 1, 2)
    size = 3


def test_it_is_an_object_like_a_kernel(device):
    assert pickle.loads(pickle.dumps(at_the_top)) is copy.deepcopy(at_the_top) is at_the_top
    assert (at_the_top.__name__, at_the_top.__doc__) == ("at_the_top", "Adds one.")
    assert repr(at_the_top).startswith("<tuned <kernel at_the_top")
    with pytest.raises(pickle.PicklingError):
        pickle.dumps(tuned(scaled, 1, 2))
    v = pa.zeros(4, device=device)
    at_the_top(v=v)
    assert pa.asnumpy(v)[0] == 1
    assert Holder.method is Holder.__dict__["method"]
    with pytest.raises(TypeError, match="takes 1 positional argument but 2 were given"):
        Holder().method(v)


def test_without_memory_for_a_copy_the_first_candidate_is_used(device, monkeypatch):
    def full(self):
        raise pa.OutOfMemoryError("no memory", 64)

    t = tuned(grown, 1, 2)
    v, w = arrays(device)
    monkeypatch.setattr("pyarray.tune.restore.SavedArguments.save", full)
    with pytest.warns(RuntimeWarning, match="no memory for a copy of 64 bytes"):
        t(v, w)
    np.testing.assert_array_equal(pa.asnumpy(v), np.arange(16))


# ---- stores, threads


def test_another_tuner_of_the_kernel_searches_nothing(device):
    out, v = arrays(device)
    clock = Clock(_1=3.0, _2=1.0, _4=2.0)
    tuned(scaled, 1, 2, 4, clock=clock)(out, v, 16)
    again = tuned(scaled, 1, 2, 4, clock=clock)
    clock.ran.clear()
    again(out, v, 16)
    assert clock.ran == []
    assert again.choice(out, v, 16) == (pa.Config(block=2), "winner")
    assert again.cache_info()["searches"] == 0
    assert {r.source for r in again.results(out, v, 16)} == {"stored"}


def test_a_new_candidate_costs_only_its_own_timing(device):
    """triton-lang/triton#9822."""
    out, v = arrays(device)
    clock = Clock(_1=3.0, _2=2.0, _4=1.0)
    tuned(scaled, 1, 2, clock=clock)(out, v, 16)
    clock.ran.clear()
    more = tuned(scaled, 1, 2, 4, clock=clock)
    more(out, v, 16)
    assert set(clock.ran) == {4}
    assert more.choice(out, v, 16).config == pa.Config(block=4)
    fewer = tuned(scaled, 1, 2, clock=clock)
    clock.ran.clear()
    fewer(out, v, 16)
    assert clock.ran == []
    assert fewer.choice(out, v, 16).config == pa.Config(block=2)


def test_a_stored_winner_that_doesn_t_compile_any_more_is_forgotten(device, monkeypatch):
    """It ends the process in FlagGems: flagos-ai/FlagGems#5832."""
    out, v = arrays(device)
    clock = Clock(_1=3.0, _2=1.0, _4=2.0)
    tuned(scaled, 1, 2, 4, clock=clock)(out, v, 16)
    again = tuned(scaled, 1, 2, 4, clock=clock)
    real = again._compiler.variant

    def refused(call, chosen):
        if chosen["block"] == 2 and not again.cache_info()["searches"]:
            raise pa.CompileError("another compiler")
        return real(call, chosen)

    monkeypatch.setattr(again._compiler, "variant", refused)
    with pytest.warns(RuntimeWarning, match=r"block=2\) doesn't compile any more"):
        again(out, v, 16)
    assert pa.asnumpy(out)[3] == 6


def test_threads_search_once(device):
    """Triton crashes: triton-lang/triton#11494."""
    clock = Clock(_1=3.0, _2=1.0)
    t = tuned(scaled, 1, 2, clock=clock, key=["n"])
    barrier, wrong = threading.Barrier(6), []

    def work():
        out, v = arrays(device)
        barrier.wait()
        for n in (16, 15):
            t(out, v, n)
            if not np.array_equal(pa.asnumpy(out)[:n], 2.0 * np.arange(n)):
                wrong.append(n)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert t.cache_info()["searches"] == 2


def test_a_tuned_kernel_inside_a_search_doesn_t_wait_for_it(device):
    def inner(args):
        nested.append(t.choice(args["out"], args["v"], 16))
        t(args["out"], args["v"], 16)

    nested = []
    t = tuned(scaled, 1, 2, pre_hook=inner)
    out, v = arrays(device)
    t(out, v, 16)
    assert nested
    assert pa.asnumpy(out)[3] == 6


# ---- sources


def test_a_default_is_used_without_a_search_and_must_be_beaten(device, setting):
    out, v = arrays(device)
    clock = Clock(_1=1.0, _2=0.99, _4=0.5)
    t = tuned(scaled, 1, 2, clock=clock, default=lambda out, v, n: pa.Config(block=1))
    t(out, v, 16)
    assert t.choice(out, v, 16) == (pa.Config(block=1), "default")
    assert clock.ran == []
    assert t.search(out, v, 16) == pa.Config(block=1)  # 1 % is not enough
    assert t.choice(out, v, 16).source == "winner"
    fast = tuned(scaled, 1, 2, 4, clock=clock, default=lambda out, v, n: pa.Config(block=1))
    assert fast.search(out, v, 16) == pa.Config(block=4)
    none = tuned(scaled, 1, 2, clock=Clock(_1=1.0, _2=2.0), default=lambda *args: None, key=["n"])
    assert searched(none, out, v, 9) == 1
    wrong = tuned(scaled, 1, 2, default=lambda *args: 3)
    with pytest.raises(TypeError, match=r"default\(\.\.\.\) gives a pa\.Config or None, got 3"):
        wrong(out, v, 16)


@pytest.mark.parametrize("how", ["off", "use", "force", "search"])
def test_the_setting(device, setting, how):
    out, v = arrays(device)
    clock = Clock(_1=3.0, _2=1.0)
    t = tuned(scaled, 1, 2, clock=clock)
    setting("PYARRAY_AUTOTUNE", how)
    for _ in range(3):
        t(out, v, 16)
    assert t.cache_info()["searches"] == (how in ("force", "search"))
    assert t.choice(out, v, 16).config["block"] == (1 if how in ("off", "use") else 2)
    assert pa.asnumpy(out)[3] == 6
    setting("PYARRAY_AUTOTUNE", "search")
    t(out, v, 16)
    again = tuned(scaled, 1, 2, clock=clock)
    setting("PYARRAY_AUTOTUNE", how)
    for _ in range(3):
        again(out, v, 16)
    assert again.cache_info()["searches"] == (how == "force")
    assert again.choice(out, v, 16).config["block"] == (1 if how == "off" else 2)


def test_where_nothing_may_be_compiled_nothing_is_searched(device, setting):
    t = tuned(scaled, 1, 2)
    out, v = arrays(device)
    scaled(out, v, 16, 1)
    setting("PYARRAY_RUN_ONLY", True)
    try:
        t(out, v, 16)
    finally:
        setting("PYARRAY_RUN_ONLY", None)
    assert t.cache_info()["searches"] == 0


def test_a_wrong_setting_is_said(device, monkeypatch):
    monkeypatch.setenv("PYARRAY_AUTOTUNE", "perhaps")
    with pytest.raises(ValueError, match="PYARRAY_AUTOTUNE='perhaps'"):
        tuned(scaled, 1, 2)(*arrays(device), 16)


def test_a_budget_too_small_falls_back_and_says_so(device):
    out, v = arrays(device)
    t = tuned(scaled, 1, 2, budget=0)
    with pytest.warns(RuntimeWarning, match=r"no candidate was timed.*block=1\) is used"):
        t(out, v, 16)
    assert pa.asnumpy(out)[3] == 6
    assert all("budget of 0 s" in r.reason for r in t.results(out, v, 16))
    t(out, v, 16)
    assert t.cache_info()["searches"] == 1
    assert searched(tuned(scaled, 1, 2), out, v, 16) == 1  # nothing of it is on disk
    own = tuned(scaled, 1, 2, budget=0, key=["n"], default=lambda *args: pa.Config(block=2))
    with pytest.warns(RuntimeWarning, match=r"block=2\) is used"):
        assert own.search(out, v, 16) == pa.Config(block=2)


def test_functions_give_and_prune_candidates(device):
    seen = []

    def gives(args):
        seen.append(args["n"])
        return configs(1, 2, 4)

    t = tuned(scaled, configs=gives, clock=Clock(_2=2.0, _4=1.0), key=["n"],
              prune=lambda configs, args: [c for c in configs if c["block"] > 1])  # fmt: skip
    out, v = arrays(device)
    t(out, v, 16)
    t(out, v, 16)
    assert seen == [16]
    assert t.choice(out, v, 16).config == pa.Config(block=4)
    assert len(t.results(out, v, 16)) == 2


def test_empty_arrays_decide_nothing(device):
    t = tuned(scaled, 1, 2, clock=Clock(_1=2.0, _2=1.0))
    empty = pa.zeros(0, dtype=pa.float32, device=device)
    t(empty, empty, 0)
    assert t.cache_info()["searches"] == 0
    assert searched(t, *arrays(device), 16) == 1


def test_flags_are_a_part_of_a_candidate(device):
    if device != "cpu":
        pytest.skip("flags of the C compiler")
    given = [pa.Config(block=1, flags=flags) for flags in ((), "-O1", ["-no-such-flag"])]
    found = tuned(scaled, configs=given)
    out, v = arrays(device)
    found(out, v, 16)
    assert [r.median is not None for r in found.results(out, v, 16)] == [True, True, False]
    assert pa.asnumpy(out)[3] == 6


def test_other_libraries_arrays(device):
    t = tuned(scaled, 1, 2, key=["n"])
    out, v = np.zeros(16, np.float32), np.arange(16, dtype=np.float32)
    there = pa.array(v, device=device)
    for args in ((out, v), (out, there)):
        for _ in range(2):
            out[:] = 0
            t(*args, 16)
            np.testing.assert_array_equal(out, 2 * v)
    total = np.full(1, 5.0)
    zeroing = tuned(counted, 1, 2, reset_to_zero=["total"])
    for _ in range(2):
        zeroing(total, np.ones(4))
        assert total[0] == 4


def test_structures(device):
    @pa.kernel
    def pair(both, block: pa.constexpr):
        for i in range(both[0].size):
            both[0][i] = both[0][i] + both[1][i] + 0 * block

    t = tuned(pair, 1, 2)
    v, w = arrays(device)
    t((v, w))
    t((v, w))
    np.testing.assert_array_equal(pa.asnumpy(v), 2.0 * np.arange(16))
    assert t.cache_info()["searches"] == 1


def test_streams(device):
    t = tuned(grown, 1, 2, rep=3)
    with pa.Stream(device) as stream:
        v, w = arrays(device, 1 << 12)
        t(v, w)
        stream.synchronize()
        np.testing.assert_array_equal(pa.asnumpy(v), np.arange(1 << 12))


def test_a_search_is_not_dumped(device, tmp_path):
    t = tuned(grown, 1, 2, 3, rep=3)
    v, w = arrays(device)
    with pa.dump(tmp_path / "dump"):
        t(v, w)
        t(v, w)
    dumped = [launch.kernel for launch in pa.load_dump(tmp_path / "dump")]
    assert dumped == ["grown", "grown"]


def test_debug_mode(device):
    t = tuned(scaled, 1, 2)
    out, v = arrays(device)
    with pa.debug():
        t(out, v, 16)
        t(out, v, 16)
        assert {debug for *_, debug in t._compiler._others} == {True}
        with pytest.raises(pa.BoundsError, match="got index 16"):
            t(out, v, 17)
    t(out, v, 16)
    assert t.cache_info()["searches"] == 2


def test_progress_goes_to_the_logger(device, caplog, capsys, setting):
    with caplog.at_level(logging.INFO, "pyarray"):
        tuned(scaled, 1, 2)(*arrays(device), 16)
    assert "scaled: Config(block=1): " in caplog.text
    assert capsys.readouterr() == ("", "")
    setting("PYARRAY_AUTOTUNE_VERBOSE", True)
    tuned(grown, 1, 2)(*arrays(device))
    assert "grown: Config(block=2): " in capsys.readouterr().err


# ---- artifacts


def test_a_shipped_choice_is_used(device, tmp_path, setting):
    clock = Clock(_1=2.0, _2=1.0)
    out, v = arrays(device)
    options = {"clock": clock, "key": ["n"], "artifact_name": "scaled"}
    path = tuned(scaled, 1, 2, **options).emit(tmp_path / "shipped", out, v, 16)
    assert path.parent == tmp_path / "shipped"
    for file in tmp_path.glob("*.json"):
        file.unlink()  # what is known here
    setting("PYARRAY_AUTOTUNE_CONFIG_DIR", tmp_path / "shipped")
    there = tuned(scaled, 1, 2, **options)
    clock.ran.clear()
    there(out, v, 16)
    assert there.choice(out, v, 16) == (pa.Config(block=2), "artifact")
    assert there.cache_info()["artifacts"] == 1
    assert clock.ran == []
    assert not list(tmp_path.glob("*.json"))  # no search, nothing stored
    with pytest.warns(RuntimeWarning, match=r"no tuned choice was shipped for 'scaled' n=15"):
        assert searched(there, out, v, 15) == 1  # another key


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('"version": 1', '"version": 2', "version 2"),
        ('"block": 2', '"blok": 2', "'blok', which is no tuned parameter"),
        ('"block": 2', '"block": "2"', "block='2'., which is none of the 2 candidates; add it to conf"),
        ('"block": 2', '"block": 3', r"names Config\(block=3\), which is none of the 2 candidates"),
        ('"flags": []', '"flags": ["-wrapper", "/tmp/x.sh"]', "which is none of the 2 candidates"),
        ('"n": [', '"m": [', "another kernel, key or device"),
        ("{", "", "damaged"),
    ],
)
def test_a_shipped_choice_that_doesn_t_fit_is_a_warning(tmp_path, setting, old, new, why):
    out, v = arrays("cpu")
    options = {"clock": Clock(_1=2.0, _2=1.0), "key": ["n"], "artifact_name": "scaled"}
    path = tuned(scaled, 1, 2, **options).emit(tmp_path / "shipped", out, v, 16)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    for file in tmp_path.glob("*.json"):
        file.unlink()
    setting("PYARRAY_AUTOTUNE_CONFIG_DIR", tmp_path / "shipped")
    t = tuned(scaled, 1, 2, **options)
    with pytest.warns(RuntimeWarning, match=why):
        assert searched(t, out, v, 16) == 1


def test_what_can_t_be_shipped_is_not_written(tmp_path):
    out, v = arrays("cpu")
    with pytest.raises(ValueError, match="no artifact_name"):
        tuned(scaled, 1, 2).emit(tmp_path / "shipped", out, v, 16)
    hooked = [pa.Config(block=1, pre_hook=lambda args: None), pa.Config(block=2)]
    t = tuned(scaled, configs=hooked, artifact_name="scaled")
    with pytest.raises(ValueError, match="pre_hook"):
        t.emit(tmp_path / "shipped", out, v, 16)
    assert not (tmp_path / "shipped").exists()
    assert t.cache_info()["searches"] == 0


# ---- the model


def test_sizes_never_met_are_predicted(device):
    """Small blocks start quicker, large ones go on quicker."""
    seen = {}

    def remember(args):
        seen.update(args)

    def cost(fn):
        fn()
        launch, tile = {1: (0.1, 1.0), 16: (4.0, 0.1)}[seen["block"]]
        return launch + tile * seen["n"]

    t = tuned(scaled, 1, 16, key=["n"], bench=cost, pre_hook=remember, model=lambda config, args: args["n"])
    out, v = arrays(device, 64)
    assert searched(t, out, v, 2) == 1
    assert searched(t, out, v, 8) == 1
    assert searched(t, out, v, 32) == 1
    fits = t.fits(out, v, 60)
    assert {c["block"]: (round(f.launch, 6), round(f.tile, 6), f.sizes) for c, f in fits.items()} == {
        1: (0.1, 1.0, 3), 16: (4.0, 0.1, 3),
    }  # fmt: skip
    assert max(f.residual for f in fits.values()) < 1e-9
    for n, block in ((3, 1), (60, 16)):
        assert searched(t, out, v, n) == 0
        assert t.choice(out, v, n) == (pa.Config(block=block), "model")
        assert all(r.source == "predicted" for r in t.results(out, v, n))
    assert t.cache_info()["predicted"] == 2
    fresh = tuned(scaled, 1, 16, key=["n"], bench=cost, pre_hook=remember, model=lambda config, args: args["n"])
    assert searched(fresh, out, v, 50) == 0  # from disk
    with pytest.raises(RuntimeError, match="no cost model"):
        tuned(scaled, 1, 2).fits(out, v, 16)


def test_where_the_fit_fails_there_is_a_search(device):
    seen = {}

    def cost(fn):
        fn()
        return {2: 1.0, 4: 9.0, 8: 1.0}.get(seen["n"], 5.0) + seen["block"]

    t = tuned(scaled, 1, 2, key=["n"], bench=cost, pre_hook=seen.update, model=True)
    out, v = arrays(device)
    for n in (2, 4, 8):  # fewer than three are no model
        assert searched(t, out, v, n) == 1
    assert max(f.residual for f in t.fits(out, v, 9).values()) > 0.1
    assert searched(t, out, v, 9) == 1


def modelled(times, **options):
    """A tuner whose candidates take what `times(block, n)` says."""
    seen = {}

    def clock(fn):
        fn()
        ran.append((seen["block"], seen["n"]))
        return times(seen["block"], seen["n"])

    ran = []
    t = tuned(scaled, 1, 2, key=["n"], bench=clock, pre_hook=seen.update, model=True, **options)
    return t, ran


def test_nothing_is_predicted_far_from_what_was_timed(device):
    t, _ = modelled(lambda block, n: block + n / block)
    out, v = arrays(device, 512)
    for n in (16, 32, 64):
        assert searched(t, out, v, n) == 1
    assert [searched(t, out, v, n) for n in (4, 256)] == [0, 0]
    assert searched(t, out, v, 3) == 1
    assert searched(t, out, v, 257) == 1
    assert [t.choice(out, v, n).source for n in (4, 256, 3, 257)] == ["model", "model", "search", "search"]
    assert searched(t, out, v, 12) == 0


@pytest.mark.parametrize("factor", [1.6, 6.0, 0.5])
def test_a_prediction_that_was_off_is_searched(device, factor):
    """Beyond 100 the block of 2, which would be best, takes another time than the model says."""
    t, ran = modelled(lambda block, n: (block + n / block) * (factor if n > 100 and block == 2 else 1.0))
    out, v = arrays(device, 512)
    before = pa.asnumpy(out).tolist(), pa.asnumpy(v).tolist()
    for n in (25, 50, 100):
        t(out, v, n)
    out[...] = pa.asarray(before[0], device=device)
    ran.clear()
    assert searched(t, out, v, 80) == 0
    assert set(ran) == {(2, 80)}  # timed, a few times
    assert len(ran) <= 12
    ran.clear()
    assert searched(t, out, v, 80) == 0
    assert ran == []
    assert t.choice(out, v, 80) == (pa.Config(block=2), "model")
    assert {r.source for r in t.results(out, v, 80)} == {"predicted"}
    assert searched(t, out, v, 200) == 1
    assert t.choice(out, v, 200).source in ("search", "winner")
    assert t.choice(out, v, 200).config == pa.Config(block=1 if factor == 6.0 else 2)
    assert {r.source for r in t.results(out, v, 200)} == {"timed"}
    assert pa.asnumpy(v).tolist() == before[1]


def test_asking_what_would_be_used_times_nothing(device):
    t, ran = modelled(lambda block, n: block + n / block)
    out, v = arrays(device, 512)
    for n in (16, 32, 64):
        t(out, v, n)
    ran.clear()
    assert t.choice(out, v, 40).source == "model"
    assert [r.source for r in t.results(out, v, 40)] == ["predicted"] * 2
    assert ran == []
    config.set("PYARRAY_AUTOTUNE", "use")
    try:
        t(out, v, 48)
    finally:
        config.set("PYARRAY_AUTOTUNE", None)
    assert ran == []


@pa.kernel
def repeated(out, v, times: pa.constexpr):
    for i in range(out.size):
        for _ in range(times):
            out[i] = 2 * v[i]


def test_a_tuned_kernel_says_where_its_gradient_is(device):
    made = pa.autotune([pa.Config(times=1), pa.Config(times=2)])(repeated)
    says = r"'repeated' has no gradient: .* call repeated.kernel.grad\(\.\.\., times=\.\.\.\)"
    with pytest.raises(TypeError, match=says):
        _ = made.grad
    out, v = pa.zeros(9, device=device), pa.ones(9, device=device)
    g, one = pa.zeros(9, device=device), pa.ones(9, device=device)
    made.kernel.grad(out, v, times=1, grad_v=g, grad_out=one)
    assert g.tolist() == [2.0] * 9
