"""What one call found is not believed where the next one differs: data, hooks, checks, sizes, threads."""

import functools
import itertools
import os
import threading
import time

import pytest
from tune_tools import configs, own_store, tuned  # noqa: F401  (a fixture of every test)

import pyarray as pa
from pyarray import config
from pyarray.tune import search as tune_search


@pa.kernel
def gather(out, v, places, block: pa.constexpr):
    for i in range(out.size):
        out[i] = v[places[i]] + 0 * block


@pa.kernel
def scaled(out, v, n: pa.int32 = 4, block: pa.constexpr = 1):
    for i in range(out.size):
        out[i] = n * v[i] + 0 * block


@pa.kernel
def wrong_above_one(out, v, block: pa.constexpr):
    for i in range(out.size):
        out[i] = v[i] if block == 1 else -3.0


@pa.kernel
def in_blocks(v, block: pa.constexpr):
    for i in range((v.size + block - 1) // block):
        for k in range(block):
            v[i * block + k] = i


@pa.kernel
def increased(v, block: pa.constexpr):
    for i in range(v.size):
        v[i] = v[i] + 1 + 0 * block


def quick(kernel, **options):
    return tuned(kernel, 1, 2, **options)


def anew(kernel, **options):
    """Another tuner of the same kernel, as the next process has it: it knows what is on disk."""
    return quick(kernel, **options)


def test_an_index_out_of_bounds_in_the_data_is_no_candidates_fault(device):
    t = quick(gather)
    out, v = pa.zeros(4, device=device), pa.arange(4.0, device=device)
    with pytest.raises(pa.AutotuneError, match="got index 99"):
        t(out, v, pa.asarray([0, 1, 2, 99], device=device))
    for again in (t, anew(gather)):
        again(out, v, pa.asarray([3, 2, 1, 0], device=device))
        assert out.tolist() == [3, 2, 1, 0]
    assert anew(gather).choice(out, v, pa.asarray([3, 2, 1, 0], device=device)).source == "winner"


def test_nor_is_an_error_of_a_hook_or_of_the_reference(device):
    out, v = pa.zeros(4, device=device), pa.ones(4, device=device)
    with pytest.raises(pa.AutotuneError, match="IndexError"):
        quick(scaled, pre_hook=lambda args: [][0])(out, v)
    quick(scaled, pre_hook=lambda args: None)(out, v)
    assert out.tolist() == [4] * 4

    def bad(out, v, n):
        out[...] = v + 1

    with pytest.raises(pa.AutotuneError, match="wrong result"):
        quick(scaled, check=bad)(out, v, 3)
    anew(scaled, check=True)(out, v, 3)
    assert out.tolist() == [3] * 4


def test_a_failure_is_shown_and_tried_again(device):
    t = quick(wrong_above_one, check=lambda out, v: out.__setitem__(..., v))
    out, v = pa.zeros(4, device=device), pa.ones(4, device=device)
    t(out, v)
    right, wrong = t.results(out, v)
    assert right.reason is None
    assert "wrong result" in wrong.reason
    assert [r.reason for r in anew(wrong_above_one, check=t.options.check).results(out, v)] == [
        None, wrong.reason
    ]  # fmt: skip


def test_what_was_timed_unchecked_is_not_believed_by_a_check(device):
    times = itertools.cycle([2.0, 1.0])

    def faster_wrong(run):
        run()
        return next(times)

    out, v = pa.zeros(4, device=device), pa.ones(4, device=device)
    t = quick(wrong_above_one, check=False, bench=faster_wrong)
    t(out, v)
    checked = quick(wrong_above_one, check=lambda out, v: out.__setitem__(..., v), bench=faster_wrong)
    checked(out, v)
    assert out.tolist() == [1] * 4
    assert checked.choice(out, v).config == pa.Config(block=1)


@pytest.mark.parametrize("how", ["prune", "configs"])
def test_candidates_are_asked_for_at_every_size(device, how):
    def fitting(configs, args):
        return [c for c in configs if args["v"].size % c["block"] == 0]

    every = configs(64, 4)
    slower = itertools.count(1)
    options = {"bench": lambda run: (run(), float(next(slower)))[1]}
    if how == "prune":
        t = tuned(in_blocks, 64, 4, prune=fitting, **options)
    else:
        t = tuned(in_blocks, configs=lambda args: fitting(every, args), **options)
    t(pa.zeros(64, device=device))
    whole = pa.zeros(200, device=device)
    part = whole[:100]
    assert t.choice(part).config == pa.Config(block=4)
    t(part)
    assert part[99] == 24
    assert not whole[100:].any()


def test_a_budget_beyond_all_clocks(device):
    for budget in (1e10, float("inf")):
        t = quick(scaled, budget=budget)
        out, v = pa.zeros(4, device=device), pa.ones(4, device=device)
        t(out, v)
        assert out.tolist() == [4] * 4


def test_the_budget_begins_when_the_device_is_free(device, monkeypatch):
    class Time:
        now = 0.0
        monotonic = staticmethod(lambda: Time.now)
        perf_counter = staticmethod(time.perf_counter)

    monkeypatch.setattr(tune_search, "time", Time)
    out, v = pa.zeros(4, device=device), pa.ones(4, device=device)
    busy, go = threading.Event(), threading.Event()

    def slow(run):
        busy.set()
        assert go.wait(300)
        run()
        return 1.0

    endless = quick(increased, bench=slow, budget=float("inf"))
    first = threading.Thread(target=endless, args=(pa.ones(4, device=device),))
    first.start()
    assert busy.wait(300)
    t = quick(scaled, budget=1.5)
    second = threading.Thread(target=t, args=(out, v))
    second.start()
    second.join(0.5)  # it waits by now, even if not on every machine
    Time.now = 2.0  # more than its budget, which the wait doesn't count for
    go.set()
    first.join()
    second.join()
    assert t.choice(out, v).source in ("search", "winner")


def test_forced_once_by_many_threads(device):
    config.set("PYARRAY_AUTOTUNE", "force")
    t = quick(scaled)
    start = threading.Barrier(4)

    def call():
        out, v = pa.zeros(4, device=device), pa.ones(4, device=device)
        start.wait()
        t(out, v)

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert t.cache_info()["searches"] == 1


@pytest.mark.parametrize("value", [[1.0, 2.0], {}, object(), bytearray(2)], ids=lambda v: type(v).__name__)
@pytest.mark.parametrize("key", [(), ("v",)])
def test_what_is_no_argument_is_told_as_the_plain_kernel_tells_it(device, value, key):
    out = pa.zeros(2, device=device)
    with pytest.raises(TypeError) as plain:
        scaled(out, value)
    with pytest.raises(TypeError) as ours:
        quick(scaled, key=key)(out, value)
    assert str(ours.value) == str(plain.value)


def test_nothing_is_zeroed_by_a_call_that_is_refused(device):
    out, v = pa.full(4, 5.0, device=device), pa.ones(4, device=device)
    t = quick(scaled, reset_to_zero=["out"])
    for _ in range(2):
        with pytest.raises(OverflowError):
            t(out, v, 2**40)
        assert out.tolist() == [5] * 4
        t(pa.zeros(4, device=device), v, 2)  # and from now on the quick way
    frozen = pa.zeros(4, device=device)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match=r"reset_to_zero names 'out', and this array is read-only"):
        t(frozen, v)


def test_off_asks_for_no_candidates(device):
    config.set("PYARRAY_AUTOTUNE", "off")
    asked = []
    t = tuned(
        scaled,
        configs=lambda: asked.append(1) or configs(1, 2),
        default=lambda *args: pa.Config(block=2),
    )
    for _ in range(3):
        t(pa.zeros(4, device=device), pa.ones(4, device=device))
    assert not asked


def test_without_restoring_there_is_nothing_to_compare(device):
    t = quick(increased, restore_value=[])
    t(v := pa.zeros(4, device=device))
    assert [r.reason for r in t.results(v)] == [None, None]


def test_a_default_without_a_constant(device):
    t = quick(gather, default=lambda *args: pa.Config())
    out, v = pa.zeros(2, device=device), pa.zeros(2, device=device)
    with pytest.raises(ValueError, match=r"default\(...\) gives Config\(\), which doesn't set 'block'"):
        t(out, v, pa.asarray([0, 1], device=device))


def test_prune_that_gives_a_dict(device):
    t = quick(scaled, prune=lambda configs, args: {})
    with pytest.raises(TypeError, match=r"prune\(configs, args\) gives a list of pa.Config, got {}"):
        t(pa.zeros(2, device=device), pa.ones(2, device=device))


def test_what_cannot_be_shipped_is_not_searched_for(device, tmp_path):
    t = quick(scaled, artifact_name="s", default=functools.partial(_hooked))
    with pytest.raises(ValueError, match="pre_hook"):
        t.emit(tmp_path / "out", pa.zeros(2, device=device), pa.ones(2, device=device))
    assert t.cache_info()["searches"] == 0
    assert not (tmp_path / "out").exists()


def _hooked(*args):
    return pa.Config(block=2, pre_hook=print)


def test_library_kernels_read_the_environment_anew(monkeypatch):
    a = pa.ones((400, 400), device="cpu")  # there the blocks are chosen by a tuner
    assert (a @ a)[0, 0] == 400
    monkeypatch.setitem(os.environ, "PYARRAY_AUTOTUNE", "bogus")
    with pytest.raises(ValueError, match="PYARRAY_AUTOTUNE"):
        _ = a @ a


def test_axes_of_size_one_have_no_steps(device):
    """The same strides and address are another key of the tuner there, and another choice."""

    @pa.kernel
    def doubled(v, block: pa.constexpr):
        for i in range(v.shape[0]):
            for j in range(v.shape[1]):
                v[i, j] = 2 * v[i, j] + 0 * block

    v = pa.ones((4, 16), device=device)
    for first, then in ((v, v[:1]), (v[:1], v), (v[:, ::2], v[:1, ::2])):
        t = quick(doubled)
        for misses, x in enumerate((first, then, first, then), 1):
            t(x)
            assert t.cache_info()["misses"] == min(misses, 2)


def test_zeros_of_either_sign_are_two_numbers(device):
    @pa.kernel
    def added(v, x: float, block: pa.constexpr):
        for i in range(v.size):
            v[i] = x + 0 * block

    t, v = quick(added, key=("x",)), pa.zeros(4, device=device)
    for misses, x in enumerate((0.0, -0.0, 0.0, -0.0), 1):
        t(v, x)
        assert t.cache_info()["misses"] == min(misses, 2)
