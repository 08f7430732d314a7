"""Bounds checks switched on and off for the process while other threads launch: each call has one launch state."""

import threading

import numpy as np
import pytest

import pyarray as pa

SECONDS = 2.0


def _work(device, errors, stop):
    @pa.kernel
    def scale(v, factor):
        for i in range(v.size):
            v[i] = v[i] * factor

    m = pa.asarray(np.arange(12, dtype=np.float32).reshape(3, 4), device=device)
    try:
        while not stop.is_set():
            a = pa.ones(16, device=device)
            scale(a[3:9], 2.0)
            b = (a[::2] + 1) @ pa.ones(8, device=device)
            c = m @ m.T
            d = pa.concat([a, a[:3]])
            e = pa.sum(m, axis=0)
            scale.forget()
            got = (pa.sum(a).item(), b.item(), c[1, 2].item(), d.size, e.tolist())
            assert got == (22.0, 19.0, 214.0, 19, [12.0, 15.0, 18.0, 21.0]), got
    except BaseException as error:
        errors.append(error)


@pytest.mark.slow
def test_debug_setting_changes_while_other_threads_launch(device):
    errors, stop = [], threading.Event()
    threads = [threading.Thread(target=_work, args=(device, errors, stop)) for _ in range(4)]
    for thread in threads:
        thread.start()
    timer = threading.Timer(SECONDS, stop.set)
    timer.start()
    try:
        on = False
        while not stop.is_set() and not errors:
            on = not on
            pa.config.set("PYARRAY_DEBUG", on)
    finally:
        stop.set()
        timer.cancel()
        for thread in threads:
            thread.join()
        pa.config.set("PYARRAY_DEBUG", False)
    if errors:
        raise errors[0]


@pytest.mark.parametrize("checked", [False, True])
def test_a_mode_that_changes_while_a_kernel_is_lowered(device, monkeypatch, checked):
    """The mode is switched in the middle of a compile, as another thread may do."""
    from pyarray.jit import kernel as module

    @pa.kernel
    def add_one(v):
        for i in range(v.size):
            v[i] += 1

    lower = module.lower

    def lower_and_switch(*args):
        program = lower(*args)
        pa.config.set("PYARRAY_DEBUG", not checked)
        return program

    monkeypatch.setattr(module, "lower", lower_and_switch)
    try:
        pa.config.set("PYARRAY_DEBUG", checked)
        a = pa.zeros(5, device=device)
        add_one(a)
        assert a.tolist() == [1.0] * 5
        (variant,) = add_one._variants
        assert variant.checked is checked
        assert ("pa_check" in variant.program.text) is checked
    finally:
        pa.config.set("PYARRAY_DEBUG", False)
