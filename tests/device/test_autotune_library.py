"""The tuner as the library's own kernels use it."""

import pytest
from tune_tools import Clock, configs

import pyarray as pa
from pyarray import config
from pyarray.tune import store as tune_store
from pyarray.tune.choice import offline
from pyarray.tune.library import LibraryTuner


@pa.kernel
def scaled(out, v, block: pa.constexpr):
    for i in range(v.size):
        out[i] = 2 * v[i] + 0 * block


@pa.kernel
def scaled_wrongly(out, v):
    for i in range(v.size):
        out[i] = v[i]


class Library:
    """A function of the library: it launches what its tuner says."""

    def __init__(self, source="1", **times):
        self.clock = Clock(**times)
        blocks = configs(*self.clock.times)
        hooks = {"pre_hook": self.clock.pre_hook, "bench": self.clock}
        self.tuner = LibraryTuner("scaled", blocks, lambda: source, warmup=0, rep=1, **hooks)
        self.wrong = set()

    def __call__(self, device, n=16):
        out, v = pa.zeros(n, device=device), pa.arange(n, dtype=pa.float64, device=device)
        kernels = {True: lambda c: scaled_wrongly(out, v), False: lambda c: scaled(out, v, c["block"])}

        def prepare(c):
            if c["block"] == 99:
                raise pa.CompileError("no such block")
            return lambda: kernels[c["block"] in self.wrong](c)

        found = self.tuner.choose(
            out.device, {"n": n, "dtype": "float64"}, pa.Config(block=1), prepare, outputs=(out,), inputs=(v,)
        )
        prepare(found)()
        assert pa.asnumpy(out)[3] == 6
        return found["block"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(tune_store, "folder", lambda: tmp_path)
    yield tmp_path
    for name in ("PYARRAY_AUTOTUNE", "PYARRAY_AUTOTUNE_CONFIG_DIR"):
        config.set(name, None)


def test_no_call_waits_for_a_search(device):
    f = Library(_1=3.0, _2=1.0)
    assert f(device) == 1
    assert f.clock.ran == []
    assert f.tuner.cache_info()["searches"] == 0


def test_a_search_that_is_asked_for_decides_for_all_processes(device):
    f = Library(_1=3.0, _2=1.0, _3=0.5, _99=0.1)
    f.wrong = {3}
    config.set("PYARRAY_AUTOTUNE", "force")
    assert [f(device), f(device)] == [2, 2]
    assert f.tuner.cache_info()["searches"] == 1
    reasons = {
        r.config["block"]: r.reason for r in f.tuner.results(pa.get_device(device), {"n": 16, "dtype": "float64"})
    }
    assert reasons[99].startswith("CompileError")
    assert "wrong result" in f.tuner._chooser._results.popitem()[1].results[pa.Config(block=3)].reason
    config.set("PYARRAY_AUTOTUNE", None)
    again = Library(_1=3.0, _2=1.0, _3=0.5, _99=0.1)
    assert again(device) == 2
    assert again(device, 8) == 1  # another key
    assert again.clock.ran == []
    assert Library("2", _1=3.0, _2=1.0, _3=0.5, _99=0.1)(device) == 1  # another source
    config.set("PYARRAY_AUTOTUNE", "off")
    assert Library(_1=3.0, _2=1.0, _3=0.5, _99=0.1)(device) == 1


def test_a_winner_must_beat_the_default(device):
    config.set("PYARRAY_AUTOTUNE", "force")
    assert Library(_1=1.0, _2=0.99)(device) == 1
    assert Library(_1=1.0, _2=0.9)(device, 8) == 2


def test_offline_it_is_searched_and_written_down(device, tmp_path, monkeypatch):
    monkeypatch.setattr(offline, "on", True)
    monkeypatch.setattr(offline, "decided", [])
    f = Library(_1=3.0, _2=1.0)
    assert f(device) == 2
    ((identity, chosen, median),) = offline.decided
    assert (chosen, median) == (pa.Config(block=2), 1.0)
    assert identity["name"] == "pyarray.scaled"
