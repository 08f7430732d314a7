"""Threads of a block and iterations of a thread: they change the grid, and no result."""

import json
import os
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from kernel_tools import launch

import pyarray as pa
from pyarray.driver import get_device
from pyarray.lang.markers import unordered

# Blocks whose threads divide a tile's 1024 elements and others; vectors, their parts, and more than a vector.
SHAPES = [
    {"threads": 32}, {"threads": 96, "per_thread": 2}, {"threads": 1024, "per_thread": 3}, {"per_thread": 1},
    {"threads": 128, "per_thread": 64}, {"threads": 736, "per_thread": 5}, {"threads": 256, "per_thread": 1000},
]  # fmt: skip


def vector(out, a, b):
    for i in range(out.size):
        out[i] = a[i] * 2 + b[i]


def transposed(out, a):
    for i, j in pa.ndrange(out.shape[0], out.shape[1]):
        out[i, j] = a[j, i] + out[i, j]


def counted(out, a):
    for i in range(a.size):
        if a[i] > 2:
            pa.atomic_add(out, 0, 1)


def prefix(out, a):
    for i in range(out.size):
        s = a[0] * 0
        for j in range(i % 7):
            s += a[j]
        out[i] = s


def bounded(out, a):
    n = int(a[0])  # only the device knows it: the grid fills the device
    for i in range(n):
        out[i] = i
    for i in range(1, n, 3):
        out[i] += a[i]


def row_sums(out, a):
    for i in range(out.size):
        s = a[0, 0] * 0
        for j in unordered(range(a.shape[1])):
            s += a[i, j]
        out[i] = s


def softmax(out, a):
    for i in range(out.shape[0]):
        top = a[i, 0]
        for j in unordered(range(a.shape[1])):
            top = max(top, a[i, j])
        total = a[i, 0] * 0
        for j in unordered(range(a.shape[1])):
            total += pa.exp(a[i, j] - top)
        for j in unordered(range(a.shape[1])):
            out[i, j] = pa.exp(a[i, j] - top) / total


def draw(*shape, dtype="float32"):
    numbers = np.random.default_rng(3).random(shape) * 8
    return numbers.astype(dtype)


CASES = [
    (vector, np.zeros(3001, np.float32), draw(3001), draw(3001)),
    (vector, np.zeros(3001, np.int8), draw(3001, dtype=np.int8), draw(3001, dtype=np.int8)),
    (vector, np.zeros(4000)[::-2], draw(6000, dtype="f8")[::3], draw(2000, dtype="f8")),
    (vector, np.zeros(0), draw(0, dtype="f8"), draw(0, dtype="f8")),
    (transposed, draw(70, 95), draw(95, 70)),
    (transposed, draw(33, 129, dtype="i2"), draw(129, 33, dtype="i2")),
    (transposed, draw(2, 500).T, draw(2, 500)),
    (counted, np.zeros(1, np.int64), draw(5000)),
    (prefix, np.zeros(999), draw(999, dtype="f8")),
    (bounded, np.zeros(700), np.full(700, 699.0)),
    (row_sums, np.zeros(37, np.float32), draw(37, 3000)),
    (row_sums, np.zeros(1200, np.float32), draw(1200, 40)),
    (softmax, np.zeros((9, 4096), np.float32), draw(9, 4096)),
]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_no_bit_depends_on_it(device, case):
    function, *args = CASES[case]
    expected = launch(pa.kernel(function), device, *args)
    for shape in SHAPES:
        for got, right in zip(launch(pa.kernel(**shape)(function), device, *args), expected, strict=True):
            np.testing.assert_array_equal(got, right, str(shape))


@pytest.mark.parametrize("case", [0, 2, 4, 8, 9, 10])
def test_in_debug_mode_too(device, case):
    function, *args = CASES[case]
    expected = launch(pa.kernel(function), device, *args)
    for shape in (SHAPES[1], SHAPES[4]):
        kernel = pa.kernel(**shape, debug=True)(function)
        for got, right in zip(launch(kernel, device, *args), expected, strict=True):
            np.testing.assert_array_equal(got, right, str(shape))


def test_the_first_failure_is_the_same(device):
    def outside(out, a):
        for i in range(out.size):
            out[i] = a[i + 1]

    said = set()
    for shape in ({}, *SHAPES):
        with pytest.raises(pa.BoundsError) as caught:
            launch(pa.kernel(**shape, debug=True)(outside), device, np.zeros(600), np.zeros(600))
        said.add(str(caught.value))
    assert len(said) == 1
    assert "tid=599" in said.pop()


def test_rows_that_a_block_keeps(device):
    """The kernel that takes one row per block takes one with every shape."""
    driver = pa.get_device(device).driver
    gpu = driver._gpu if driver.grid else SimpleNamespace(l2_bytes=0)
    kept, gpu.l2_bytes = gpu.l2_bytes, 0  # as if no array fitted into the cache
    try:
        x = draw(5, 4096)
        expected = launch(pa.kernel(softmax), device, x * 0, x)
        for shape in SHAPES:
            kernel = pa.kernel(**shape)(softmax)
            np.testing.assert_array_equal(launch(kernel, device, x * 0, x), expected)
            steps = [s for v in kernel._variants for s in v.program.steps]
            of_blocks = {(s.threads, s.per_thread) for s in steps if s.row_bytes}
            assert of_blocks <= {(n, 1) for n in (64, 128, 256, 512, 1024)}
            assert bool(of_blocks) == driver.grid
    finally:
        gpu.l2_bytes = kept


# ---- what is launched


def steps_of(kernel, *args):
    launch(kernel, "cpu", *args)
    null = [pa.empty(a.shape, dtype=a.dtype, device="null:0") for a in args]
    return kernel._lowered(kernel.bind(tuple(null)), False, "cuda").steps


def test_steps():
    args = [np.zeros(64, np.float32)] * 3
    (step,) = steps_of(pa.kernel(threads=64, per_thread=2)(vector), *args)
    assert (step.threads, step.per_thread) == (64, 2)
    (step,) = steps_of(pa.kernel(vector), *args)
    assert (step.threads, step.per_thread) == (256, 4)
    (step,) = steps_of(pa.kernel(threads=128)(transposed), *[np.zeros((8, 8))] * 2)
    assert (step.threads, step.per_thread) == (128, 8)  # of a tile's 1024 elements
    (step,) = steps_of(pa.kernel(threads=128, per_thread=3)(row_sums), np.zeros(4), np.zeros((4, 4)))
    assert (step.threads, step.per_thread, step.team) == (256, 3, True)


def test_one_number_for_each_loop():
    steps = steps_of(pa.kernel(threads=(64, None), per_thread=(None, 7))(two_loops), np.zeros(64))
    assert [(s.threads, s.per_thread) for s in steps] == [(64, 4), (256, 7)]
    assert np.array_equal(launch(pa.kernel(threads=(64, None))(two_loops), "cpu", np.zeros(3))[0], [1, 3, 5])


def two_loops(v):
    for i in range(v.size):
        v[i] = 2 * i
    for i in range(v.size):
        if v[i] >= 0:
            v[i] += 1


def test_a_number_too_many(device):
    with pytest.raises(pa.CompileError, match=r"'two_loops' has 2 parallel loops, and threads=\(64, 32, 32\) is for 3"):
        launch(pa.kernel(threads=(64, 32, 32))(two_loops), device, np.zeros(3))
    with pytest.raises(pa.CompileError, match=r"'vector' has 1 parallel loop, and per_thread=\(1, 2\) is for 2"):
        launch(pa.kernel(per_thread=(1, 2))(vector), device, *[np.zeros(3)] * 3)


@pytest.mark.parametrize("make", [pa.kernel, pa.Config])
def test_wrong_numbers(make):
    for wrong in (0, 31, 33, -32, 1056, 1 << 70, (64, 33)):
        with pytest.raises(ValueError, match=r"^threads of a \w+ is a multiple of 32, a warp, from 32 to 1024, got "):
            make(threads=wrong)
    for wrong in (0, -1, 1025, (4, 0)):
        with pytest.raises(ValueError, match=r"^per_thread of a \w+ is a number of iterations from 1 to 1024, got "):
            make(per_thread=wrong)
    for wrong in (True, 64.0, "64", b"64", {64: 1}, (64, "x"), np.float32(64)):
        with pytest.raises(
            TypeError, match=r"^threads of a \w+ is an integer, or a tuple .* write for example threads="
        ):
            make(threads=wrong)
    with pytest.raises(ValueError, match=r"per_thread of a .* is an empty tuple"):
        make(per_thread=())
    with pytest.raises(ValueError, match="got 100; the nearest is 96"):
        make(threads=100)
    assert make(threads=np.int64(64)) is not None


def test_a_cpu_has_one_text_for_all_shapes():
    a = pa.zeros(64)
    keys = {pa.kernel(**shape)(vector).cache_key(a, a, a)["artifact"] for shape in ({}, *SHAPES)}
    assert len(keys) == 1


def test_the_key_and_explain_name_it():
    kernel = pa.kernel(threads=64, per_thread=(3,))(row_sums)
    args = pa.zeros(4), pa.zeros((4, 4))
    key = kernel.cache_key(*args)
    assert (key["threads"], key["per_thread"]) == (64, (3,))
    assert "threads" not in pa.kernel(row_sums).cache_key(*args)
    remarks = kernel._lowered(kernel.bind(args), False, "cuda").remarks
    assert any("threads=64 has no effect: an iteration belongs to a team" in text for _, text in remarks)


def test_explain_says_that_a_loop_that_reduces_ignores_it():
    @pa.kernel(threads=(64, None), per_thread=(2, 4))
    def total(out, v):
        s = 0.0
        for i in range(v.size):
            s += v[i]
        for i in range(out.size):
            out[i] = s

    args = pa.zeros(4), pa.zeros(4)
    remarks = total._lowered(total.bind(args), False, "cuda").remarks
    found = [text.partition(":")[0] for _, text in remarks if "the loop reduces in chunks" in text]
    assert found == ["per_thread=2 has no effect", "threads=64 has no effect"]
    assert not total._lowered(total.bind(args), False, "cpu").remarks


def test_a_saved_kernel_keeps_it(device, tmp_path):
    kernel = pa.kernel(threads=64, per_thread=2)(vector)
    args = CASES[0][1:]
    expected = launch(kernel, device, *args)
    kernel.save(tmp_path / "k")
    again = pa.load_kernel(tmp_path / "k")
    np.testing.assert_array_equal(launch(again, device, *args), expected)
    (row,) = again.manifest()["variants"]
    assert row["entry"].endswith("x2t64") == get_device(device).driver.grid


# ---- the tuner


@pytest.fixture
def own_store(tmp_path, monkeypatch):
    monkeypatch.setattr("pyarray.tune.store.folder", lambda: tmp_path)


GRIDS = [pa.Config(threads=t, per_thread=p) for t in (64, 256) for p in (1, 8)]


def arrays(device):
    return [pa.asarray(a, device=device) for a in (np.zeros(3000, np.float32), draw(3000), draw(3000))]


def test_the_tuner_searches_them(device, own_store):
    tuned = pa.autotune(configs=[*GRIDS, pa.Config()], rep=1, warmup=0)(pa.kernel(threads=32)(vector))
    out, a, b = arrays(device)
    tuned(out, a, b)
    tuned(out, a, b)
    np.testing.assert_array_equal(pa.asnumpy(out), pa.asnumpy(a) * 2 + pa.asnumpy(b))
    results = tuned.results(out, a, b)
    assert [r.config for r in results] == [*GRIDS, pa.Config()]
    assert all(r.median > 0 for r in results)
    info = tuned.cache_info()
    grid = get_device(device).driver.grid
    assert (info["searches"], info["timed"], info["hits"]) == (1, 5 if grid else 1, 1)
    if not grid:  # all are the same code there
        assert len({r.median for r in results}) == 1
    again = pa.autotune(configs=[*GRIDS, pa.Config()])(pa.kernel(threads=32)(vector))
    assert again.choice(out, a, b).source == "winner"


def test_the_choice_is_launched(device, own_store):
    times, now = {64: 3.0, 128: 1.0, 256: 2.0}, {}

    def bench(fn):
        fn()
        return times[now["threads"]]

    configs = [pa.Config(threads=t, pre_hook=lambda args, t=t: now.update(threads=t)) for t in times]
    tuned = pa.autotune(configs=configs, bench=bench)(pa.kernel(vector))
    out, a, b = arrays(device)
    tuned(out, a, b)
    config = tuned.choice(out, a, b).config
    assert config.threads == 128
    steps = [s for v in tuned._compiler.kernel(config)._variants for s in v.program.steps]
    assert {s.threads for s in steps} == {128 if get_device(device).driver.grid else 256}


def test_a_candidate_for_other_loops_is_left_out(device, own_store):
    configs = [pa.Config(threads=(64, 64)), pa.Config(threads=64)]
    tuned = pa.autotune(configs=configs, rep=1, warmup=0)(pa.kernel(vector))
    out, a, b = arrays(device)
    tuned(out, a, b)
    wrong, right = tuned.results(out, a, b)
    assert "has 1 parallel loop, and threads=(64, 64) is for 2" in wrong.reason
    assert right.median > 0
    assert tuned.choice(out, a, b).config == configs[1]


def test_a_timing_is_of_one_grid(own_store):
    """Where the decorator's shape has changed, what was timed with it doesn't count."""
    tuners = [pa.autotune(configs=[pa.Config()])(pa.kernel(per_thread=n)(prefix)) for n in (2, 3)]
    null = [pa.empty(64, device="null:0")] * 2
    digests = set()
    for tuned in tuners:
        bound, kernel = tuned.kernel.bind(tuple(null)), tuned.kernel
        program = kernel._lowered(bound, False, "cuda")
        kernel._lowered = lambda bound, checked, program=program: program
        digests.add(tuned._texts.digest(kernel, bound, False))
    assert len(digests) == 2  # of one text


def test_configs_with_shapes_go_through_json():
    config = pa.Config(block=3, threads=(64, None), per_thread=np.int32(4), flags="-O1")
    again = pa.Config.from_dict(json.loads(json.dumps(config.to_dict())))
    assert again == config
    assert hash(again) == hash(config)
    assert again.identity() == config.identity() not in (None, config.without_shape().identity())
    assert (again.threads, again.per_thread) == ((64, None), 4)
    assert repr(again) == "Config(block=3, threads=(64, None), per_thread=4, flags=('-O1',))"
    assert config.without_shape() == pa.Config(block=3, flags="-O1")
    for wrong in ({"threads": "x"}, {"threads": 33}, {"per_thread": []}):
        with pytest.raises(ValueError, match="expected the dictionary of a Config"):
            pa.Config.from_dict({"values": {}, "flags": []} | wrong)


def test_a_kernel_with_a_parameter_of_that_name():
    def scaled(v, threads: pa.constexpr):
        for i in range(v.size):
            v[i] = threads

    with pytest.raises(ValueError, match=r"threads of Config\(threads=32\) is the launch's, .* rename the parameter"):
        pa.autotune(configs=[pa.Config(threads=32)])(pa.kernel(scaled))
    v = pa.zeros(3)
    pa.kernel(scaled)(v, 4)
    assert v.tolist() == [4, 4, 4]


def test_shipped_choices_have_it(device, own_store, tmp_path):
    tuned = pa.autotune(configs=GRIDS, rep=1, warmup=0, artifact_name="shapes")(pa.kernel(vector))
    args = arrays(device)
    path = tuned.emit(tmp_path / "shipped", *args)
    data = json.loads(path.read_text())
    assert pa.Config.from_dict(data["config"]) == tuned.choice(*args).config
    assert set(data["config"]) >= {"threads", "per_thread"}
    assert os.stat(path).st_size > 0


def test_a_replaced_step_is_another_name():
    (step,) = steps_of(pa.kernel(vector), *[np.zeros(64)] * 3)
    assert str(replace(step, threads=64)) == f"{step}t64"


def test_loops_that_reduce_keep_their_blocks(device):
    def reducing(out, v):
        for i in range(v.size):
            v[i] += 1
        s = 0.0
        best, where = -1.0, 0
        for i in range(v.size):
            s += v[i]
            if v[i] > best:
                best = v[i]
                where = i
        for i in range(v.size):
            out[i] = s + where

    v = np.arange(3000.0) % 1000
    results = []
    for shape in ({}, {"threads": (64, 128, 32), "per_thread": (None, 2, 4)}, {"threads": 512}):
        k, out = pa.kernel(**shape)(reducing), pa.zeros(3000, device=device)
        k(out, pa.asarray(v.copy(), device=device))
        results.append(pa.asnumpy(out))
        first, *reduction, last = (s.threads for s in steps_of(k, np.zeros(3000), v) if not s.single)
        number = shape.get("threads", 256)
        assert (first, last) == ((64, 32) if isinstance(number, tuple) else (number, number))
        assert reduction == [256, 256]
    assert (results[0] == np.sum(v + 1) + 999).all()
    assert all(np.array_equal(results[0], other) for other in results[1:])
    with pytest.raises(pa.CompileError, match=r"has 3 parallel loops, and threads=.* is for 4"):
        pa.kernel(threads=(32,) * 4)(reducing)(pa.zeros(2), pa.zeros(2))
