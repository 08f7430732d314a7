"""Captured blocks give what the blocks give, with other arrays too, or say why they can't."""

import contextlib
import gc
import os
import re
import threading

import numpy as np
import pytest
from graph_tools import add_to, numbers, same, scale
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import pyarray as pa
from pyarray.driver.base import get_device
from pyarray.jit.graph_launch import RecordedLaunch


@pa.kernel
def bounded(v, out, n):
    for i in range(n):
        out[i] = v[i]


@pa.kernel
def transposed(m, out):
    for i, j in pa.ndrange(m.shape[0], m.shape[1]):
        out[j, i] = m[i, j]


@pa.kernel
def from_first(v, out):
    first = v[0]
    for i in range(v.size):
        out[i] = v[i] - first


def block(x, y):
    z = pa.exp(x * 0.5) + y
    scale(z, y, 0.25)
    return z, pa.sum(z * y), pa.cumulative_sum(pa.sort(z))


def test_a_graph_gives_what_the_block_gives(device):
    x, y = numbers(device), numbers(device, seed=1)
    with pa.capture(x=x) as g:
        results = block(x, y)
    assert str(g.device) == device
    assert len(g.launches) >= 6
    for seed in range(2, 5):
        x[...], other = numbers(device, seed=seed), y.copy()
        g.launch()
        same((*results, y), (*block(x, other), other))
    b = numbers(device, 300, seed=7)[100:200]
    other = y.copy()
    g.launch(x=b)
    same((*results, y), (*block(b, other), other))
    other = y.copy()
    g.launch()  # with the arrays of the block again
    same((*results, y), (*block(x, other), other))


def test_other_arrays_move_their_views_along(device):
    x, out = numbers(device, 60).reshape(6, 10), pa.full((4, 6), 0, dtype="float32", device=device)
    with pa.capture(x=x, out=out) as g:
        transposed(x[:, 2:6], out)
        out[1] += x[::2, 3:5].reshape(-1)
        out[:, 0] = x.T[0, :4]
    y, there = numbers(device, 180, seed=1).reshape(18, 10)[6:12], pa.full((8, 6), 0, dtype="float32", device=device)
    g.launch(x=y, out=there[2:6])
    expected = np.array(pa.asnumpy(y)[:, 2:6].T)
    expected[1] += pa.asnumpy(y)[::2, 3:5].reshape(-1)
    expected[:, 0] = pa.asnumpy(y).T[0, :4]
    np.testing.assert_array_equal(pa.asnumpy(there)[2:6], expected)
    assert not pa.asnumpy(there)[[0, 1, 6, 7]].any()


def test_other_sizes_get_other_grids(device):
    v, out = numbers(device, 5000), pa.full(5000, 0, dtype="float32", device=device)
    with pa.capture(v=v[:10], out=out[:10]) as g:
        scale(v[:10], out[:10], 2.0)
        add_to(v[:10], out[:10])
    for first, n in ((0, 5000), (7, 3), (100, 0), (30, 4000), (0, 10)):
        out[...] = 0
        g.launch(v=v[first : first + n], out=out[first : first + n])
        expected = np.zeros(5000, np.float32)
        expected[first : first + n] = pa.asnumpy(v)[first : first + n] * np.float32(3)
        np.testing.assert_allclose(pa.asnumpy(out), expected, rtol=1e-6)


def test_other_strides(device):
    m, out = numbers(device, 400).reshape(20, 20), pa.full((20, 20), 0, dtype="float32", device=device)
    with pa.capture(m=m[:3, ::2], out=out[:10, :3]) as g:
        transposed(m[:3, ::2], out[:10, :3])
    g.launch(m=m[::4, :7], out=out[:7, 10:15])
    np.testing.assert_array_equal(pa.asnumpy(out)[:7, 10:15], pa.asnumpy(m)[::4, :7].T)


def test_a_graph_is_one_launch_on_a_gpu(device):
    driver, x = get_device(device).driver, numbers(device)
    if not driver.grid:
        pytest.skip("a CPU repeats launches one by one")
    with pa.capture(x=x) as g:
        for _ in range(10):
            x += 1
    other, before = numbers(device), driver._gpu.launches
    g.launch()
    g.launch(x=other)
    assert driver._gpu.launches == before + 2
    assert len(g.launches) == 10


def test_kernels_whose_launches_are_serialized(device):
    v, out = numbers(device), pa.full(100, 0, dtype="float32", device=device)
    with pa.capture(v=v, out=out) as g:
        from_first(v, out)
    w, there = numbers(device, 1000, seed=1), pa.full(1000, 0, dtype="float32", device=device)
    g.launch(v=w, out=there)
    np.testing.assert_array_equal(pa.asnumpy(there), pa.asnumpy(w) - pa.asnumpy(w)[0])


def test_memory_lives_as_long_as_the_graph(device):
    with pa.capture(x=numbers(device)) as g:
        pass
    assert g.launches == ()
    assert g.device is None
    g.launch()
    x = numbers(device)
    with pa.capture(x=x) as g:
        z = pa.sum(pa.exp(x) * 2)
    del x
    kept = [pa.full(100, 9, dtype="float32", device=device) for _ in range(20)]
    g.launch()
    assert all((pa.asnumpy(a) == 9).all() for a in kept)
    b = numbers(device, seed=3)
    g.launch(x=b)
    expected = pa.sum(pa.exp(b) * 2).item()
    del b
    gc.collect()
    assert z.item() == expected
    del g
    gc.collect()
    assert z.item() == expected


def test_order_between_streams(device):
    x, first, second = numbers(device, 4000), pa.Stream(device), pa.Stream(device)
    with pa.capture(x=x) as g:
        z = x * 2
    with first:
        x += 1
        expected = x * 2
    with second:
        g.launch()
    with first:
        y = z + 0
        x += 1
    same([y], [expected])


def test_observers_see_the_launches(device):
    x, b = numbers(device), numbers(device, seed=1)
    with pa.capture(x=x) as g:
        z = pa.exp(x) + 1
    with pa.trace() as t:
        g.launch(x=b)
    assert tuple(row.kernel for row in t.launches) == g.launches
    same([z], [pa.exp(b) + 1])
    with pa.capture(b=b) as outer:  # a graph's launches are launches of a block
        g.launch(x=b)
    outer.launch(b=x)
    same([z], [pa.exp(x) + 1])


def test_threads(device):
    x, arrays = numbers(device), [numbers(device, seed=k) for k in range(4)]
    with pa.capture(x=x) as g:
        x *= 2

    def work(a):
        for _ in range(10):
            g.launch(x=a)

    threads = [threading.Thread(target=work, args=(a,)) for a in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pa.synchronize(device)
    for k, a in enumerate(arrays):
        np.testing.assert_array_equal(pa.asnumpy(a), pa.asnumpy(numbers(device, seed=k)) * np.float32(1024))


# ---- refusals

ACCESS = {
    "item": lambda x: pa.sum(x).item(),
    "asnumpy": lambda x: pa.asnumpy(x),
    "truth": lambda x: bool(pa.any(x)),
    "transfer": lambda x: pa.asarray(np.ones(100, np.float32), device=x.device, copy=True) + x,
    "zeros": lambda x: pa.zeros(3, device=x.device) + 1,
    "mask": lambda x: x[x > 0],
    "random": lambda x: pa.random.default_rng(0).random(100),
}


@pytest.mark.parametrize("what", ACCESS)
def test_what_is_more_than_launches_is_refused(device, what):
    x = numbers(device)
    ACCESS[what](x)
    g = pa.capture()

    def block():
        with g:
            _ = x + 1
            ACCESS[what](x)
            _ = x + 1

    with pytest.raises(RuntimeError, match="read or wrote array memory other than by launches"):
        block()
    with pytest.raises(RuntimeError, match="this graph is failed"):
        g.launch()
    with pa.capture() as g:  # the thread is as before
        _ = x + 1
    g.launch()


def test_blocks_that_are_refused(device):
    x = numbers(device)
    with pytest.raises(RuntimeError, match="debug mode"), pa.debug(), pa.capture():
        x + 1
    with pytest.raises(RuntimeError, match="another library"), pa.capture():
        pa.fft.fft(x)
    with pytest.raises(RuntimeError, match="don't nest"), pa.capture(), pa.capture():
        pass
    other = pa.empty(3, device="cpu" if device != "cpu" else "null:0")
    with pytest.raises(RuntimeError, match="one device"), pa.capture():
        _ = x + 1, other + 1
    with pa.capture() as g:
        x + 1
        with pytest.raises(RuntimeError, match="being captured"):
            g.launch()
    with pytest.raises(RuntimeError, match="captured once"), g:
        pass
    with pa.debug(), pytest.raises(RuntimeError, match="in debug mode run the block"):
        g.launch()
    with pytest.raises(ZeroDivisionError), pa.capture() as g:
        1 // 0  # noqa: B018
    with pytest.raises(RuntimeError, match="this graph is failed"):
        g.launch()
    if get_device(device).driver.grid:
        stream = pa.Stream(device)

        def on_two_streams():
            with pa.capture():
                x + 1
                with stream:
                    x + 1

        with pytest.raises(RuntimeError, match="one stream"):
            on_two_streams()


def test_a_raw_kernel_is_refused(device):
    text = 'extern "C" __global__ void one(float *v) { v[threadIdx.x] = 1; }'
    x = numbers(device)
    with pytest.raises(RuntimeError, match="'one' has a grid of its own"), pa.capture():
        pa.RawKernel(text, "one")((1,), (8,), (x,))


def test_a_refusal_that_is_caught_is_one(device):
    x = numbers(device)
    with pytest.raises(RuntimeError, match="there is no graph"), pa.capture(), contextlib.suppress(RuntimeError):
        pa.fft.fft(x)


def test_names(device):
    x = numbers(device)
    with pytest.raises(TypeError, match="'x' is no pyarray array but an ndarray"):
        pa.capture(x=np.ones(3))
    with pytest.raises(ValueError, match="'x' has no elements"):
        pa.capture(x=x[:0])
    with pytest.raises(ValueError, match="'a' and 'b' overlap"):
        pa.capture(b=x[:10], a=x[9:])
    with pytest.raises(ValueError, match="in part inside 'part'"), pa.capture(part=x[10:20]):
        x + 1
    with pytest.raises(ValueError, match="in part inside 'odd'"), pa.capture(odd=x[1::2]):
        x[2:-2:2] + 1


def test_arrays_that_do_not_fit(device):
    x, y = numbers(device), numbers(device, seed=1)
    frozen = numbers(device)
    frozen.setflags(write=False)
    with pa.capture(x=x, y=y) as g:
        scale(x, y, 3.0)
        x += 1
    with pytest.raises(TypeError, match="no array 'xs' was named; did you mean 'x'"):
        g.launch(xs=x)
    with pytest.raises(TypeError, match="no pyarray array but a list"):
        g.launch(x=[1.0])
    elsewhere = "null:0" if device == "cpu" else "cpu"
    for wrong, what in (
        (pa.ones(100, device=device), "has dtype float64"),
        (x.reshape(10, 10), "has a rank of 2"),
        (numbers(device, 200)[::2], "contiguous: False"),
        (x.mark_static(0), "promises"),
        (pa.empty(100, dtype="float32", device=elsewhere), f"is on {elsewhere}"),
        (frozen, "read-only"),
        (y, "'x' overlaps 'y'"),
        (numbers(device, 50), "has shape (50,)"),
    ):
        with pytest.raises(ValueError, match=re.escape(what)):
            g.launch(x=wrong)
    both = numbers(device, 150)
    with pytest.raises(ValueError, match="'x' overlaps 'y'"):
        g.launch(x=both[:100], y=both[50:])
    before = pa.asnumpy(y).copy()
    g.launch(x=y, y=x)  # both at once is fine
    np.testing.assert_array_equal(pa.asnumpy(x), before * np.float32(3))


def test_addresses_on_which_a_launch_relies(device, monkeypatch):
    """As attention by the matrix instructions of sm_90 does: its kernels load vectors."""
    monkeypatch.setattr(RecordedLaunch, "alignment", property(lambda self: 16 if self.kernel == "scale" else 1))
    x, y, other = numbers(device, 104), numbers(device, 100, seed=1), numbers(device, 104, seed=2)
    with pa.capture(x=x[:100], y=y) as g:
        scale(y, x[:100], 3.0)
    with pytest.raises(
        ValueError, match="'x' is 4 bytes behind a multiple of 16, and in the block 0, on which a launch"
    ):
        g.launch(x=other[1:101])
    g.launch(x=other[4:104])
    np.testing.assert_array_equal(pa.asnumpy(other[4:104]), pa.asnumpy(y) * np.float32(3))
    with pa.capture(x=x[:100], y=y) as g:
        x[:100] += y
    g.launch(x=other[1:101])


def test_shapes_on_which_launches_may_depend(device):
    x, y, small = numbers(device), numbers(device, seed=1), numbers(device, 50)
    with pa.capture(x=x, y=y) as g:
        pa.exp(x)
    with pytest.raises(ValueError, match="is a function's that may depend on it"):
        g.launch(x=small)
    with pa.capture(x=x) as g:
        scale(x, y, 2.0)
    with pytest.raises(ValueError, match="its 'out' is no named array"):
        g.launch(x=small)
    with pa.capture(x=x, y=y) as g:
        scale(x[:50], y, 2.0)
    with pytest.raises(ValueError, match="its 'v' is no named array as it is"):
        g.launch(x=small)
    with pa.capture(x=x, y=y) as g:
        bounded(x, y, 100)
    with pytest.raises(ValueError, match="its 'n' is a whole number"):
        g.launch(x=small)
    with pa.capture(x=x, y=y) as g:
        scale(x, y, 2.0)
        zeros = pa.full(x.shape, 0.0, device=device)
    with pytest.raises(ValueError, match="is a function's that may depend on it"):
        g.launch(x=small, y=small.copy())
    assert zeros.shape == (100,)
    with pa.capture(x=x) as g:
        add_to(x, y)
    with pytest.raises(ValueError, match="'x' overlaps another array of the block"):
        g.launch(x=y)
    around = numbers(device, 300)
    with pa.capture(x=x) as g:
        scale(x, around[100:200], 2.0)
    for first in (1, 100, 199):
        with pytest.raises(ValueError, match="'x' overlaps another array of the block"):
            g.launch(x=around[first : first + 100])
    for first in (0, 200):
        g.launch(x=around[first : first + 100])
        np.testing.assert_array_equal(pa.asnumpy(around)[100:200], pa.asnumpy(around)[first : first + 100] * 2)
    with pa.capture(x=x) as g:  # what is read only may be anywhere, and be read-only
        z = x + around[100:200]
    shown = around[150:250]
    shown.setflags(write=False)
    g.launch(x=shown)
    same([z], [shown + around[100:200]])


def test_a_forked_process(device):
    if not get_device(device).driver.grid:
        pytest.skip("a CPU's graphs work in a child")
    x = numbers(device)
    with pa.capture() as g:
        x += 1
    reader, writer = os.pipe()
    if (child := os.fork()) == 0:
        try:
            g.launch()
        except pa.DeviceError as error:
            os.write(writer, str(error).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert b"can't be used in a process forked" in os.read(reader, 1000)
    for end in (reader, writer):
        os.close(end)


# ---- drawn programs

STEPS = {
    "add": lambda a: a.append(a[-1] + a[0]),
    "where": lambda a: a.append(pa.where(a[-1] > 0, a[0], a[-1])),
    "sum": lambda a: a.append(a[0] - pa.sum(a[-1]) / 8),
    "sort": lambda a: a.append(pa.sort(a[-1])),
    "scan": lambda a: a.append(pa.cumulative_sum(a[-1]) / 8),
    "flip": lambda a: a.append(a[-1][::-1] * 2),
    "matrix": lambda a: a.append(pa.max(a[-1].reshape(6, 4), axis=0)[:1] + a[0]),
    "in place": lambda a: a[-1].__imul__(0.5),
    "slice": lambda a: a[-1].__setitem__(slice(2, 9), a[0][:7]),
    "kernel": lambda a: scale(a[0], a[-1], -0.5) if len(a) > 1 else add_to(a[0] + 0, a[0]),
}


@examples(15)
@given(steps=st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=5), seed=st.integers(0, 99))
def check_drawn(device, steps, seed):
    def program(x):
        arrays = [x]
        for step in steps:
            STEPS[step](arrays)
        return arrays

    x = numbers(device, 24, seed)
    with pa.capture(x=x) as g:
        results = program(x)
    for given_array in (x, numbers(device, 99, seed + 1)[10:34], x):
        given_array[...] = numbers(device, 24, seed + 2)
        expected = program(given_array.copy())
        g.launch(x=given_array)
        same((given_array, *results[1:]), expected)


def test_drawn_programs(device):
    check_drawn(device)
