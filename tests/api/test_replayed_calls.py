"""Replayed calls give what complete calls give."""

import gc
import itertools
import threading
import weakref

import numpy as np
import pytest
from strategies import device_subset

import pyarray as pa
from pyarray._core import CAPTURED_AT
from pyarray.jit.launch_state import observing
from pyarray.jit.replay import replayable

RNG = np.random.default_rng(3)
TIMES = CAPTURED_AT + 3
CALLS = {
    "sum": lambda x, y: pa.sum(x, axis=-1),
    "sum of all, kept": lambda x, y: pa.sum(x, keepdims=True),
    "prod": lambda x, y: pa.prod(x, axis=0, dtype=pa.float64),
    "max": lambda x, y: pa.max(x, axis=0),
    "mean": lambda x, y: pa.mean(x, axis=0, keepdims=True),
    "var": lambda x, y: pa.var(x, axis=-1),
    "std": lambda x, y: pa.std(x, correction=1),
    "nansum": lambda x, y: pa.nansum(x, axis=0),
    "nanmean": lambda x, y: pa.nanmean(x, axis=0),
    "median": lambda x, y: pa.median(x, axis=0),
    "quantile": lambda x, y: pa.quantile(x, 0.3),
    "sort": lambda x, y: pa.sort(x, axis=0),
    "argsort": lambda x, y: pa.argsort(x, descending=True),
    "cumsum": lambda x, y: pa.cumsum(x, axis=0),
    "cumulative_prod": lambda x, y: pa.cumulative_prod(x, axis=-1, include_initial=True),
    "diff": lambda x, y: pa.diff(x, axis=0),
    "where": lambda x, y: pa.where(x > 0, x, y),
    "argmax": lambda x, y: pa.argmax(x, axis=0),
    "count_nonzero": lambda x, y: pa.count_nonzero(x > 0, axis=0),
    "concat": lambda x, y: pa.concat([x, y], axis=0),
    "stack": lambda x, y: pa.stack((x, y), axis=1),
    "tile": lambda x, y: pa.tile(x, (2, 1)),
    "roll": lambda x, y: pa.roll(x, 1),
    "repeat": lambda x, y: pa.repeat(x, 2),
    "flip": lambda x, y: pa.concat([pa.flip(x), x]),
    "astype": lambda x, y: pa.astype(x, pa.float64),
    "any": lambda x, y: pa.any(x > 0, axis=0),
    "clip": lambda x, y: pa.clip(x, -0.5, 0.5),
    "isclose": lambda x, y: pa.isclose(x, y, atol=0.1),
    "nan_to_num": lambda x, y: pa.nan_to_num(x, nan=2.0),
    "einsum": lambda x, y: pa.einsum("...i,...i->...", x, y),
    "vecdot": lambda x, y: pa.vecdot(x, y),
    "vector_norm": lambda x, y: pa.linalg.vector_norm(x),
    "outer": lambda x, y: pa.outer(x, y),
    "pad": lambda x, y: pa.pad(x, 1),
    "gradient": lambda x, y: pa.gradient(x, axis=0),
    "around": lambda x, y: pa.around(x, 1),
    "searchsorted": lambda x, y: pa.searchsorted(pa.sort(pa.reshape(x, (-1,))), y),
}


def plain(call, *operands):
    """In full: short ways aren't looked up while launches are observed."""
    with observing(lambda launch: launch.run()):
        return call(*operands)


def arrays(layout, device):
    """Fresh random operands, twice of one layout."""
    shape, order, step = layout

    def one():
        whole = RNG.standard_normal(tuple(n * abs(step) for n in shape)).astype(np.float32)
        whole = pa.asarray(np.asarray(whole, order=order), device=device)
        return whole[tuple(slice(None, None, step) for _ in shape)]

    return one(), one()


LAYOUTS = [((9,), "C", 1), ((5, 6), "F", -2), ((0, 3), "C", 1)]


def same(found, wanted):
    if isinstance(wanted, (list, tuple)):
        return type(found) is type(wanted) and all(map(same, found, wanted))
    a, b = pa.asnumpy(found), pa.asnumpy(wanted)
    facts = ("shape", "strides", "dtype", "byte_offset", "writeable")
    described = all(getattr(found, fact, None) == getattr(wanted, fact, None) for fact in facts)
    return (
        described
        and (found.base is None) == (wanted.base is None)
        and np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    )


@pytest.mark.parametrize("name", CALLS)
def test_what_is_repeated_is_what_is_called(device, name):
    for layout in device_subset(LAYOUTS, list(CALLS).index(name), device):
        is_repeated(device, CALLS[name], layout)


def is_repeated(device, call, layout):
    try:
        plain(call, *arrays(layout, device))
    except (ValueError, TypeError, IndexError) as error:
        for _ in range(TIMES):
            with pytest.raises(type(error)):
                call(*arrays(layout, device))
        return
    kept = []
    for _ in range(TIMES):
        operands = arrays(layout, device)
        kept.append((call(*operands), plain(call, *operands)))
    assert all(same(found, wanted) for found, wanted in kept)  # the early results are still whole


def counted(function, operands):
    """Whether a call with these operands is repeated rather than made, once it has come often enough."""
    made = []

    def body(*args):
        made.append(args)
        return function(*args)

    short = replayable(body)
    for _ in range(TIMES):
        short(*operands)
    return len(made) == CAPTURED_AT


@pytest.fixture
def pair(device):
    return arrays(((9,), "C", 1), device)


def kept_elsewhere(x):
    return pa.add(x, MEMORY[x.device])


MEMORY = {}


@pytest.mark.parametrize(
    ("repeats", "function"),
    [
        (True, lambda x, y: pa.add(x, y)),
        (True, lambda x, y: (pa.add(x, y), [pa.exp(x)])),
        (True, lambda x, y: pa.reshape(pa.add(x, y), (3, 3))),
        (False, lambda x, y: pa.add(x, float(y[0]))),  # the host looks
        (False, lambda x, y: x),  # nothing is launched
        (False, lambda x, y: pa.add(x, MEMORY.setdefault(x.device, pa.exp(y)))),  # memory that stays
        (False, lambda x, y: pa.add(x, pa.asarray(np.ones(9, "f"), device=x.device))),  # from the host
        (False, lambda x, y: pa.zeros(9, device=x.device) + x),
        (False, lambda x, y: (pa.add(x, y), 3)),
    ],
)
def test_what_can_be_repeated(pair, repeats, function):
    MEMORY.clear()
    assert counted(function, pair) is repeats


def test_operands_that_are_written(device):
    """They are, by repeated calls, where no two buffers overlap: those of other libraries may."""
    x, y = (pa.array(np.arange(9.0), device=device) for _ in range(2))
    assert counted(lambda x, y: pa.add(x, y, out=y), (x, y))
    assert counted(lambda x, y: pa.sum(x, axis=0, out=y), (x, y[0, ...]))
    assert counted(lambda x, y: pa.copyto(x, y), (x, y))
    if device == "cpu":
        foreign = np.arange(19.0)
        first, second, third = (pa.asarray(foreign[k : k + 9], copy=False) for k in (0, 4, 10))
        assert counted(lambda x, y: pa.add(x, y, out=y), (x, first))
        assert counted(lambda x, y: pa.add(x, y, out=y), (first, third))
        assert not counted(lambda x, y: pa.add(x, y, out=y), (first, second))


@pytest.mark.parametrize("foreign", [False, True])
def test_out_anywhere_in_the_memory_of_an_operand(device, foreign):
    """Windows of one memory at all distances, in turns: one's repetition could be taken for another's."""
    if foreign and device != "cpu":
        pytest.skip("NumPy's memory is the CPU's")
    turn = pa.array(np.eye(8)[::-1], device=device)
    calls = {
        "cumsum": (lambda x, out: pa.cumsum(x, out=out), np.cumsum),
        "clip": (lambda x, out: pa.clip(x, 2, 20, out=out), lambda x: np.clip(x, 2, 20)),
        "matmul": (lambda x, out: pa.matmul(x, turn, out=out), lambda x: x[::-1]),
    }
    for name, (ours, theirs) in calls.items():
        for shift in (0, 1, -1, 4, -8, 8) * TIMES:
            host = np.arange(40.0)
            whole = host if foreign else pa.array(host, device=device)
            x, out = (whole[start : start + 8] for start in (16, 16 + shift))
            if foreign:
                x, out = (pa.asarray(v, copy=False) for v in (x, out))
            wanted = host.copy()
            wanted[16 + shift : 24 + shift] = theirs(host[16:24].copy())
            assert ours(x, out) is out
            assert pa.asnumpy(whole).tolist() == wanted.tolist(), (name, shift)


# what operands may be: the windows (buffer, first element) of six elements that they show
WINDOWS = ((0, 0), (0, 2), (0, 8), (1, 0))
OF_THREE = {
    "concat": lambda lib, x, y, z: lib.concat([x, y, z]),
    "where": lambda lib, x, y, z: lib.where(x > 4, y, z),
    "einsum": lambda lib, x, y, z: lib.einsum("i,i,i->i", x, y, z),
    "stack": lambda lib, x, y, z: lib.stack((x, y, z), axis=1),
    "clip": lambda lib, x, y, z: lib.clip(x, lib.minimum(y, z), lib.maximum(y, z)),
    "add, out": lambda lib, x, y, z: lib.add(x, y, out=z),
    "strided add, out": lambda lib, x, y, z: lib.add(x[::2], y[::-2], out=z[::2]),
    "clip, out": lambda lib, x, y, z: lib.clip(x, 2, y, out=z),
    "cumsum, out": lambda lib, x, y, z: (lib.cumsum(x, out=z), lib.add(y, 1))[0],
    "vecdot, out": lambda lib, x, y, z: lib.matmul(lib.stack([x, y]), z),
    "in place": lambda lib, x, y, z: (x.__iadd__(y), z.__imul__(x))[1],
    "copyto": lambda lib, x, y, z: (lib.copyto(x, y, where=z > 5), x)[1],
    "put": lambda lib, x, y, z: (x.__setitem__(lib.asarray([4, 1], **on(x)), y[:2] + z[:2]), x)[1],
}


def on(x):
    return {} if isinstance(x, np.ndarray) else {"device": x.device}


@pytest.mark.parametrize("name", OF_THREE)
def test_operands_that_are_the_same_overlap_or_share_a_buffer(device, name):
    """All ways in which three operands can share memory, each cold and again, in turns."""
    call = OF_THREE[name]
    turns = list(itertools.product(WINDOWS, repeat=3)) * (TIMES + 1)
    for k in RNG.permutation(len(turns)):
        hosts = [RNG.integers(1, 9, 14), RNG.integers(1, 9, 14)]
        wholes = [pa.array(host, device=device) for host in hosts]
        places = [(n, slice(first, first + 6)) for n, first in turns[k]]
        wanted = call(np, *(hosts[n][place] for n, place in places))
        found = call(pa, *(wholes[n][place] for n, place in places))
        assert found.tolist() == wanted.tolist(), turns[k]
        assert [w.tolist() for w in wholes] == [h.tolist() for h in hosts], turns[k]


def test_memory_that_comes_back_through_numpy():
    """A buffer of the library's own and one of NumPy's may be the same memory."""
    calls = {
        "assignment": lambda x, out: out.__setitem__(..., x),
        "copyto": lambda x, out: pa.copyto(out, x),
        "negative": lambda x, out: pa.negative(pa.negative(x), out=out),
        "positive": lambda x, out: pa.positive(x, out=out),
        "astype": lambda x, out: out.__setitem__(slice(None), x.astype("float64", copy=False)),
    }
    for name, call in calls.items():
        for _ in range(TIMES):
            a = pa.asarray(np.arange(70.0)).copy()
            again = pa.asarray(np.asarray(a), copy=False)
            call(again[:-1], a[1:])
            assert a.tolist() == [0.0, *np.arange(69.0)], name


def test_the_array_that_is_returned(device):
    """Of two arrays that show the same elements it is the one that was given as `out`."""
    x = pa.array(np.arange(9.0), device=device)
    for out in (x[...], x) * TIMES:
        assert pa.cumsum(x, out=out) is out
        assert pa.clip(x, 0, 5, out=out) is out


def test_products_that_no_observer_sees():
    """Large products on a CPU are launched out of sight: what they are part of isn't written down without
    them."""
    x = RNG.standard_normal((400, 400))
    for k in range(TIMES):
        found = pa.cov(pa.asarray(x + k * x.T))
        np.testing.assert_allclose(pa.asnumpy(found), np.cov(x + k * x.T), rtol=1e-6)


def test_an_index_out_of_range_is_found_in_a_repeated_call():
    x = pa.asarray(np.arange(10.0))
    index = pa.asarray(np.arange(5))
    for _ in range(TIMES):
        assert pa.take(x, index).tolist() == [0, 1, 2, 3, 4]
    index[2] = 10
    with pytest.raises(IndexError, match="index 10 is out of bounds for axis 0 with size 10"):
        pa.take(x, index)
    index[2] = -10
    assert pa.take(x, index).tolist() == [0, 1, 0, 3, 4]


def test_operands_that_share_memory_and_others_that_do_not(device):
    def call(x, y):
        return pa.subtract(pa.concat([x, y]), 1)

    short = replayable(call)
    a = pa.asarray(np.arange(20.0), device=device)
    b = pa.asarray(np.arange(100.0, 120.0), device=device)
    pairs = [(a[:5], a[:5]), (a[:5], a[5:10]), (a[5:10], a[:5]), (a[:5], b[:5]), (b[3:8], a[2:7])]
    for _ in range(TIMES):
        for x, y in pairs:
            assert short(x, y).tolist() == plain(call, x, y).tolist()


def test_arguments_that_are_equal_and_not_the_same(device):
    x = pa.asarray([-1.0, 1.0], device=device)
    for low in (0.0, -0.0) * TIMES:
        wanted = np.copysign(1, np.float32(low))
        assert np.copysign(1, pa.asnumpy(pa.clip(x, low, 2.0))[0]) == wanted
    y = pa.asarray([[1, 2]], device=device)
    for keep in (True, 1, False, 0) * TIMES:
        assert pa.sum(y, axis=0, keepdims=keep).ndim == 1 + bool(keep)


def test_results_are_apart(pair):
    first, second = [[pa.cumsum(x) for x in pair] for _ in range(TIMES)][-2:]
    before = [r.tolist() for r in first]
    second[0][...] = 7
    assert [r.tolist() for r in first] == before
    assert first[0].flags.writeable


def test_debug_and_observers_see_every_launch(pair):
    for _ in range(TIMES):
        pa.sort(pair[0])
    names = []
    with observing(lambda launch: (names.append(launch.kernel), launch.run())):
        pa.sort(pair[0])
    assert names
    with pa.debug():
        assert pa.sort(pair[0]).tolist() == sorted(pair[0].tolist())


def test_marked_arrays_are_not_repeated(pair):
    x = pair[0].mark_static()
    assert not counted(lambda x: pa.sort(x), (x,))


@pytest.mark.slow
def test_threads_repeat_side_by_side(device):
    wanted, wrong = {}, []
    operands = [arrays(((6, 50), "C", 1), device) for _ in range(4)]
    for k, (x, y) in enumerate(operands):
        wanted[k] = plain(CALLS["quantile"], x, y).item(), plain(CALLS["argsort"], x, y).tolist()

    def work(k):
        x, y = operands[k]
        for _ in range(30):
            got = CALLS["quantile"](x, y).item(), CALLS["argsort"](x, y).tolist()
            if got != wanted[k]:
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


@pytest.mark.parametrize("made_by", [replayable, pa.fuse])
def test_functions_made_at_run_time_leave_nothing(made_by):
    def double(a):
        return a + a

    gc.collect()
    made = made_by(double)
    for _ in range(CAPTURED_AT + 1):
        made(pa.ones(3))
    assert made.cache_info()["plans"] == 1
    gone = weakref.ref(double)
    del double, made
    gc.collect()
    assert gone() is None
