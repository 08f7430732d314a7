"""Times predicted from counted costs. A test's own clock says what a launch takes."""

import numpy as np
import pytest
from kernel_tools import on
from tune_tools import own_store, tuned  # noqa: F401

import pyarray as pa
from pyarray.errors import CompileError


@pa.kernel
def grow(v):
    for i in range(v.size):
        v[i] = v[i] + 1


@pa.kernel
def products(a, b, c):
    for i, j in pa.ndrange(c.shape[0], c.shape[1]):
        total = 0.0
        for k in range(a.shape[1]):
            total += a[i, k] * b[k, j]
        c[i, j] = total


@pa.kernel
def scaled(out, v, n: int, block: pa.constexpr):
    for b in range((n + block - 1) // block):
        for i in range(b * block, min(n, (b + 1) * block)):
            out[i] = 2 * v[i]


class Bench:
    """Milliseconds that a test sets; `runs` counts what was timed."""

    def __init__(self):
        self.now, self.runs = 0.0, 0

    def __call__(self, fn):
        fn()
        self.runs += 1
        return self.now


def measured(model, bench, milliseconds, *args):
    bench.now = milliseconds
    return model.measure(*args)


def test_sizes_that_never_ran_are_predicted(device):
    bench = Bench()
    model = pa.TimeModel(grow, bench=bench)
    v = on(device, np.arange(4096.0))
    assert model.count(v) == 3 * 4096
    for n in (256, 512):
        assert measured(model, bench, 2 + 0.03 * n, v[:n]) == 2 + 0.03 * n
        assert (model.fit, model.predict(v[:n])) == (None, None)
    measured(model, bench, 2 + 0.03 * 1024, v[:1024])
    fit, ran = model.fit, bench.runs
    assert (round(fit.launch, 6), round(fit.tile, 6), fit.sizes) == (2, 0.01, 3)
    assert (fit.least, fit.most) == (768, 3072)
    assert fit.residual < 1e-9
    for n in (64, 777, 4096):
        assert model.predict(v[:n]) == pytest.approx(2 + 0.03 * n)
    assert [model.predict(v[:63]), model.predict(on(device, np.ones(4097)))] == [None, None]
    assert bench.runs == ran
    assert pa.asnumpy(v).tolist() == list(range(4096))


def test_tiles_are_those_that_are_asked_for(device):
    def arguments(m, n, k):
        return (on(device, np.ones(shape)) for shape in ((m, k), (k, n), (m, n)))

    bench = Bench()
    model = pa.TimeModel(products, tiles="operations", bench=bench)
    for m, n, k in ((8, 8, 8), (4, 8, 32), (16, 8, 16)):
        measured(model, bench, 1 + 0.001 * 2 * m * n * k, *arguments(m, n, k))
    assert model.predict(*arguments(10, 6, 20)) == pytest.approx(1 + 0.001 * 2400)
    own = pa.TimeModel(grow, tiles=lambda v: v.size // 16, bench=bench)
    assert own.count(on(device, np.ones(160))) == 10


@pytest.mark.parametrize("factor", [1.6, 0.5])
def test_a_wrong_prediction_is_noticed_and_timed_again(device, factor):
    bench = Bench()
    model = pa.TimeModel(grow, bench=bench)
    v = on(device, np.zeros(1000))
    for n in (100, 200, 400):
        measured(model, bench, 0.01 * n, v[:n])
    bench.now = 0.01 * 300 * 1.4
    verified = model.verify(v[:300])
    assert (verified.right, verified.measured) == (True, bench.now)
    assert verified.predicted == pytest.approx(3.0)
    measured(model, bench, 3.0, v[:300])
    bench.now = 0.01 * 800 * factor
    verified = model.verify(v[:800])
    assert not verified.right
    assert verified.predicted == pytest.approx(8.0)
    assert model.fit.sizes == 5
    assert model.fit.residual > 0.1
    assert model.predict(v[:800]) is None  # the fit isn't believed any more
    assert model.verify(v[:500]).predicted is None
    assert not model.verify(v[:500]).right
    assert pa.asnumpy(v).tolist() == [0.0] * 1000


def test_a_tuner_counts_tiles_by_its_kernel(device):
    seen = {}

    def clock(fn):
        fn()
        return 1.0 + 0.5 * -(-seen["n"] // seen["block"])

    t = tuned(scaled, 1, 4, key=["n"], bench=clock, pre_hook=seen.update, model="iterations")
    out, v = on(device, np.zeros(256)), on(device, np.ones(256))
    for n in (16, 32, 64):
        t(out, v, n)
    fits = t.fits(out, v, 40)
    assert {c["block"]: (f.least, f.most) for c, f in fits.items()} == {1: (16, 64), 4: (4, 16)}
    assert all(round(f.tile, 6) == 0.5 for f in fits.values())
    t(out, v, 40)
    assert t.choice(out, v, 40) == (pa.Config(block=4), "model")


def test_what_is_no_model():
    with pytest.raises(TypeError, match=r"takes what pa\.kernel made, got function"):
        pa.TimeModel(lambda v: None)
    with pytest.raises(TypeError, match="a tuned kernel has fits"):
        pa.TimeModel(tuned(scaled, 1, 2))
    with pytest.raises(ValueError, match="one of 'work', 'operations'"):
        pa.TimeModel(grow, tiles="flops")
    with pytest.raises(TypeError, match="the name of a count, got 3"):
        pa.TimeModel(grow, tiles=3)
    with pytest.raises(ValueError, match="model is a function, or one of"):
        tuned(scaled, 1, 2, model="flops")
    with pytest.raises(TypeError, match="gives a number of tiles, got 'x'"):
        pa.TimeModel(grow, tiles=lambda v: "x").measure(pa.ones(3))


def test_a_launch_that_fails_says_why(device):
    @pa.kernel
    def wrong(v):
        for i in range(v.size):
            v[i] = v.nothing

    with pytest.raises(CompileError, match="nothing"):
        pa.TimeModel(wrong).measure(on(device, np.ones(3)))
