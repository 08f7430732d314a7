"""Launches of a graph with one array after the other in the place of a named one; updates that fail."""

import contextlib
import ctypes
import re

import numpy as np
import pytest
from graph_tools import add_to, numbers, same, scale
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import pyarray as pa
from pyarray.driver.base import get_device


def test_arrays_at_any_distance_of_16_bytes(device):
    """Which of a kernel's steps run may depend on that."""
    many, x = numbers(device, 100_020), numbers(device, 100_000, seed=1)
    y = numbers(device, 100_000, seed=2)
    with pa.capture(x=x) as g:
        z, total = x * 2 + y, pa.sum(x)
    for first in (1, 4, 3, 0, 2, 5):
        b = many[first : first + 100_000]
        g.launch(x=b)
        same((z, total), (b * 2 + y, pa.sum(b)))
    g.launch()
    same((z, total), (x * 2 + y, pa.sum(x)))


@examples(15)
@given(
    turns=st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(0, 3), max_size=3), min_size=2, max_size=8),
    streams=st.booleans(),
)
def check_turns(device, turns, streams):
    """Each launch has the arrays that it is given, and the block's for the other names. Numbers 3 have other shapes."""
    arrays = {n: [numbers(device, k, seed=k) for k in (60, 60, 60, 40)] for n in "abc"}
    block = {n: numbers(device, 60, seed=9) for n in "abc"}
    with pa.capture(**block) as g:
        scale(block["a"], block["b"], 0.5)
        add_to(block["b"], block["c"])
        add_to(block["a"], block["c"])
    stream = pa.Stream(device) if streams else contextlib.nullcontext()
    for k, turn in enumerate(turns):
        if 3 in turn.values():
            turn = dict.fromkeys("abc", 3)
        given_arrays = {n: arrays[n][k] for n, k in turn.items()}
        now = block | given_arrays
        expected = {n: pa.asnumpy(x).copy() for n, x in now.items()}
        expected["b"] = expected["a"] * np.float32(0.5)
        expected["c"] = expected["c"] + expected["b"] + expected["a"]
        with stream if k % 2 else contextlib.nullcontext():
            g.launch(**given_arrays)
        for n, x in now.items():
            np.testing.assert_array_equal(pa.asnumpy(x), expected[n])


def test_turns_of_arrays(device):
    check_turns(device)


def test_an_array_of_a_graph_cannot_be_resized(device):
    x, y, b = (numbers(device, seed=k) + 0 for k in range(3))
    with pa.capture(x=x) as g:
        z = x + y
    for a in (x, y, z):
        with pytest.raises(ValueError, match="there is a view of it"):
            a.resize(200, refcheck=False)
    g.launch(x=b)
    b.resize(200)  # no array of the graph
    with pytest.raises(ValueError, match=re.escape("has shape (200,)")):
        g.launch(x=b)
    b.resize(100)
    g.launch(x=b)
    same([z], [b + y])


def test_a_launch_in_a_launch(device, monkeypatch):
    """As of a signal handler, which may come between the update of a graph and its launch."""
    x, b, c = (numbers(device, seed=k) for k in range(3))
    with pa.capture(x=x) as g:
        x *= 2
    launch, inner = g._graph.launch, [c]

    def interrupted():
        if inner:
            g.launch(x=inner.pop())
        launch()

    monkeypatch.setattr(g._graph, "launch", interrupted)
    g.launch(x=b)
    same([b, c, x], [numbers(device, seed=k) * np.float32(f) for k, f in ((1, 2), (2, 2), (0, 2))])


@contextlib.contextmanager
def failing(device, call, after=0):
    """Calls of the vendor's function fail in the block, but for the first ones."""
    gpu, left = get_device(device).driver._gpu, [0] * after
    real = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 3)(before := getattr(gpu, call))
    called = type(real)(lambda *args: real(*args) if left and not left.pop() else 1)
    setattr(gpu, call, ctypes.cast(called, ctypes.c_void_p).value)
    try:
        yield
    finally:
        setattr(gpu, call, before)


@pytest.mark.parametrize("after", [0, 1])
def test_updates_that_fail_are_made_by_the_next_launch(device, after):
    if not get_device(device).driver.grid:
        pytest.skip("a CPU has no nodes to update")
    x, b, c = (numbers(device, seed=k) for k in range(3))
    with pa.capture(x=x) as g:
        z = pa.exp(x) * (x + 1)
    for failed, again in ((b, {"x": b}), (c, {"x": b}), (c, {})):
        with pytest.raises(pa.DeviceError, match="a launch of a graph"), failing(device, "graph_set_kernel", after):
            g.launch(x=failed)
        g.launch(**again)
        now = again.get("x", x)
        same([z], [pa.exp(now) * (now + 1)])


def test_a_graph_that_could_not_be_made_anew_is_made_by_the_next_launch(device):
    if not get_device(device).driver.grid:
        pytest.skip("a CPU has no nodes to make")
    x, out = numbers(device), pa.full(100, 0, dtype="float32", device=device)
    with pa.capture(x=x, out=out) as g:
        scale(x, out, 2.0)
        add_to(x, out)
    for call in ("graph_create", "graph_instantiate"):
        with pytest.raises(pa.DeviceError, match="making a graph"), failing(device, call):
            g.launch(x=x[:0], out=out[:0])
        out[...] = 0
        g.launch()
        np.testing.assert_allclose(pa.asnumpy(out), pa.asnumpy(x) * np.float32(3), rtol=1e-6)
