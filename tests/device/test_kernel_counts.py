"""What a kernel says of its variants: counts of hits, texts by mode and types, warnings of compiles."""

import gc
import warnings

import numpy as np
import pytest

import pyarray as pa


def _kernel():
    @pa.kernel
    def double(v):
        for i in range(v.size):
            v[i] = 2 * v[i]

    return double


def test_launches_with_host_arrays_are_counted_as_hits(device):
    double = _kernel()
    host = np.ones(4, np.float32)
    for _ in range(10):
        double(host) if device == "cpu" else double(pa.asarray(host, device=device))
    assert double.cache_info()["hits"] == 9
    with pa.trace():
        double(pa.ones(4, dtype=pa.float32, device=device))
    assert double.cache_info()["hits"] == 10
    assert double.cache_info()["misses"] == 1


def test_torch_launches_are_counted_as_hits():
    torch = pytest.importorskip("torch")
    double, t = _kernel(), torch.ones(4)
    for _ in range(5):
        double(t)
    assert double.cache_info()["hits"] == 4


def test_sums_of_counts_do_not_fall_when_kernels_are_collected():
    def made():
        fused = pa.fuse(lambda x: x * 3.25 + 1)
        fused(pa.ones(5))
        return fused

    fused = made()
    before = pa.cache_info()
    del fused
    gc.collect()
    after = pa.cache_info()
    assert all(after[name] >= before[name] for name in ("compiles", "disk_hits", "misses", "hits"))


def test_an_unused_array_does_not_change_the_text(device):
    @pa.kernel
    def fill(out, unused):
        for i in range(out.size):
            out[i] = 1

    out = pa.zeros(4, device=device)
    for dtype in (pa.float32, pa.int8, pa.float64, pa.complex64):
        fill(out, pa.zeros(3, dtype=dtype, device=device))
    fill(out, pa.zeros((3, 2), device=device)[:, 0])
    counts = fill.cache_info()
    assert counts["compiles"] + counts["disk_hits"] == 1
    assert "unused" not in fill.source()
    assert fill.signature["unused"].direction == "UNUSED"
    assert fill.signature["unused"].dtype == pa.float64


def test_scalars_of_numpy_and_python_are_one_constant(device):
    @pa.kernel
    def fill(out, n: pa.constexpr):
        for i in range(out.size):
            out[i] = n

    out = pa.zeros(4, device=device)
    for n in (3, np.int64(3), True, np.bool_(True), 0.5, np.float64(0.5)):
        fill(out, n)
        assert out.tolist() == [n] * 4
    assert fill.cache_info()["variants"] == 3


def test_source_is_of_the_mode_and_types_asked_for(device):
    double = _kernel()
    a = pa.ones(4, device=device)
    with pytest.raises(RuntimeError, match=r"has not been compiled; launch it once, or pass args=\(\.\.\.\)"):
        double.source()
    double(a)
    with pa.debug():
        double(a)
    assert "pa_check" not in double.source()
    assert "pa_check" in double.source(debug=True)
    with pa.debug():
        assert double.source() == double.source(debug=True)
    text = double.source(args=(pa.ones(4, dtype=pa.int16, device=device),))
    assert "int16_t" in text
    assert double.cache_info()["variants"] == 2
    double(pa.ones(4, dtype=pa.int16, device=device))
    assert double.source() == text
    assert double.source(args=(a,)) != text


def test_source_of_a_mode_that_was_not_compiled(device):
    double = _kernel()
    with pa.debug():
        double(pa.ones(4, device=device))
    message = r"has not been compiled without bounds checks; launch it once, pass debug=True, or pass args"
    with pytest.raises(RuntimeError, match=message):
        double.source()
    with pytest.raises(RuntimeError, match="has not been compiled for null"):
        double.source("null:0")
    with pytest.raises(TypeError, match=r"args is a tuple of all arguments of a launch, got ndarray; write"):
        double.source(args=pa.ones(1, device=device))
    with pytest.raises(ValueError, match=r"the arguments are on .*, asked for null:0"):
        double.source("null:0", args=(pa.ones(4, device=device),))


step = 0.5
steps = {"first": 0.5}


def test_a_captured_number_that_keeps_changing_is_warned_of_once(device):
    global step

    @pa.kernel
    def move(v):
        for i in range(v.size):
            v[i] += step

    @pa.kernel
    def move_by_item(v):
        for i in range(v.size):
            v[i] += steps["first"]

    v = pa.zeros(3, device=device)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in range(6):
            step = float(n)
            move(v)
        for n in range(4):
            steps["first"] = float(n)
            move_by_item(v)
    assert v.tolist() == [21.0] * 3
    warning, of_item = caught
    assert "item 'first' of a captured dict changes" in str(of_item.message)
    assert str(of_item.message).endswith("def move_by_item(..., first)")
    assert warning.category is RuntimeWarning
    assert warning.filename == __file__
    assert str(warning.message) == (
        "kernel 'move' is compiled again whenever step changes, 3 times by now: it is a captured value, "
        "compiled in as a constant; pass it as a parameter, def move(..., step)"
    )
