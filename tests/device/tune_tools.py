"""Tuned kernels whose times a test decides."""

import pytest

import pyarray as pa
from pyarray import config
from pyarray.tune import store as tune_store


@pytest.fixture(autouse=True, name="folder")
def own_store(tmp_path, monkeypatch):
    """Every test has a store of its own; settings are as before after it."""
    monkeypatch.setattr(tune_store, "folder", lambda: tmp_path)
    yield tmp_path
    for name in config.SETTINGS:
        if name.startswith("PYARRAY_AUTOTUNE"):
            config.set(name, None)


class Clock:
    """A `bench` that says what the test wants: the milliseconds of the value that a candidate has for
    `block`. `ran` lists the values whose runs were timed."""

    def __init__(self, **times):
        self.times = {int(name[1:]): ms for name, ms in times.items()}
        self.ran = []
        self.now = None

    def pre_hook(self, args):
        self.now = args["block"]

    def __call__(self, fn):
        fn()
        self.ran.append(self.now)
        return self.times[self.now]


def configs(*blocks):
    return [pa.Config(block=b) for b in blocks]


def tuned(kernel, *blocks, clock=None, **options):
    """`kernel` with candidates for `block`; without a clock, times are real and few."""
    options = {"warmup": 0, "rep": 1, "configs": configs(*blocks)} | options
    if clock is not None:
        options |= {"bench": clock, "pre_hook": clock.pre_hook}
    return pa.autotune(**options)(kernel)
