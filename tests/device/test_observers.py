"""Traces and dumps observe each computation once: on fast paths, in replays, in other libraries."""

import importlib.metadata

import numpy as np
import pytest
from kernel_tools import on
from tune_tools import own_store  # noqa: F401  (a fixture)

import pyarray as pa
from pyarray import config
from pyarray.kernels.matmul import gemm

LARGE = 400  # products of such matrices are the tuner's
CALLS = {
    "add": lambda a, m, i: a + a,
    "in place": lambda a, m, i: a.__iadd__(0.0),
    "exp, out": lambda a, m, i: pa.exp(a, out=pa.empty_like(a)),
    "fuse": lambda a, m, i: FUSED(a, a),
    "sum": lambda a, m, i: pa.sum(a),
    "sum axis": lambda a, m, i: pa.sum(m, axis=0),
    "var": lambda a, m, i: pa.var(m, axis=1),
    "any": lambda a, m, i: pa.any(a > 2),
    "cumsum": lambda a, m, i: pa.cumulative_sum(a),
    "sort": lambda a, m, i: pa.sort(a),
    "gather": lambda a, m, i: a[i],
    "scatter": lambda a, m, i: a.copy().__setitem__(i, 0.5),
    "mask": lambda a, m, i: a[a > 0.5],
    "slice": lambda a, m, i: a.copy().__setitem__(slice(None, None, 2), 0.5),
    "copy": lambda a, m, i: m.T.copy(),
    "astype": lambda a, m, i: a.astype(pa.float32),
    "concat": lambda a, m, i: pa.concat([a, a]),
    "full": lambda a, m, i: pa.full(5000, 0.0, device=a.device),
    "random": lambda a, m, i: pa.random.default_rng(1).random(5000),
    "matmul": lambda a, m, i: m @ m,
    "matmul, out": lambda a, m, i: pa.matmul(m, m, out=pa.empty_like(m)),
    "column": lambda a, m, i: m @ m[0],
    "einsum": lambda a, m, i: pa.einsum("ij,jk->ik", m, m),
    "tensordot": lambda a, m, i: pa.tensordot(m, m, 1),
    "multi_dot": lambda a, m, i: pa.linalg.multi_dot([m, m]),
    "gemm": lambda a, m, i: pa.gemm(m, m, bias=m[0]),
    "inv": lambda a, m, i: pa.linalg.inv(m[:9, :9]),
    "norm": lambda a, m, i: pa.linalg.norm(m[:9, :9], ord=2),
    "fft": lambda a, m, i: pa.fft.fft(a),
}
FUSED = pa.fuse(lambda x, y: x * y + 1)


@pytest.mark.slow
def test_nothing_computes_unseen(device):
    """Cold, warm and by short ways."""
    size = LARGE if device == "cpu" else 40  # an emulated GPU has no tuner for products, and takes its time
    a = on(device, np.linspace(0, 1, 20_000))
    m = on(device, np.eye(size) + np.arange(size * size).reshape(size, size) / size**3)
    i = on(device, np.arange(5000) * 3 % 5000)
    for name, call in CALLS.items():
        for _ in range(3):
            with pa.trace() as t:
                call(a, m, i)
            assert t.launches, name
            call(a, m, i)


@pytest.mark.all_variants
def test_nothing_computes_unseen_in_debug_mode(device):
    """Its launches have short ways of their own, which the block above has found."""
    a, m = on(device, np.linspace(0, 1, 100)), on(device, np.eye(8))
    for name in ("add", "exp, out", "sum", "sum axis", "copy"):
        with pa.debug():
            for _ in range(3):
                CALLS[name](a, m, None)
        with pa.trace() as t, pa.debug():
            CALLS[name](a, m, None)
        assert t.launches, name
    if device == "cpu":
        return
    text = pa.RawKernel('extern "C" __global__ void one(double *x) { x[threadIdx.x] = 1; }', "one")
    for _ in range(2):
        with pa.debug():
            text((1,), (4,), (a,))
        with pa.trace() as t, pa.debug():
            text((1,), (4,), (a,))
        assert t.launches


LIBRARIES = {"cpu": "numpy", "cuda": "nvmath-python", "hip": "hip-python"}


def library_version(device):
    return np.__version__ if device == "cpu" else importlib.metadata.version(LIBRARIES[device[:-2]])


@pytest.mark.parametrize("how", ["search", "force"])
def test_a_large_product_is_seen_once(tmp_path, monkeypatch, how):
    monkeypatch.setattr(gemm.tuner(), "configs", gemm.tuner().configs[:2])
    gemm.tuner().forget()
    config.set("PYARRAY_AUTOTUNE", how)
    x = pa.asarray(np.random.default_rng(1).standard_normal((LARGE, LARGE)).astype(np.float32))
    out = pa.empty_like(x)
    try:
        for _ in range(3):
            with pa.trace() as t, pa.dump(tmp_path / "dump"):
                x @ x
                pa.matmul(x, x, out=out)
            assert [launch.kernel for launch in t.launches] == ["matmul"] * 2
            first, second = pa.load_dump(tmp_path / "dump")
            assert first.args["c"].after.tobytes() == pa.asnumpy(out).tobytes()
            assert second.replay()["c"].tobytes() == pa.asnumpy(out).tobytes()
    finally:
        gemm.tuner().forget()


def test_a_nan_in_a_large_product_stops_a_dump(tmp_path):
    x = pa.full((LARGE, LARGE), np.inf)
    y = pa.zeros((LARGE, LARGE))
    with pa.dump(tmp_path, stop_at_nan=True):
        x + 1
        x @ y
        x + 2
    found = pa.load_dump(tmp_path)
    assert [launch.kernel for launch in found] == ["add", "matmul"]
    assert found.manifest["stopped"] == {"launch": 1, "kernel": "matmul", "parameter": "c", "stage": "after"}


def test_calls_of_libraries_are_recorded(device, tmp_path):
    """With what went in and came out; they can't be replayed."""
    a = on(device, np.diag([1.0, 4.0]))
    u, s, _ = pa.linalg.svd(a, full_matrices=False)
    with pa.trace() as t, pa.dump(tmp_path / "all"):
        pa.linalg.svd(a, full_matrices=False)
    (traced,), (launch,) = t.launches, pa.load_dump(tmp_path / "all")
    library = LIBRARIES[device.partition(":")[0]]
    assert traced.kernel == launch.kernel == f"{library}.linalg.svd"
    assert traced.key == launch.key == f"{library} {library_version(device)}"
    assert (traced.device, launch.device) == (device, device)
    assert traced.sizes == {"a": (2, 2), "out0": (2, 2), "out1": (2,), "out2": (2, 2)}
    assert (traced.bytes_read, traced.bytes_written) == (32, 80)
    assert [(n, g.direction) for n, g in launch.args.items()] == [
        ("a", "IN"), ("full_matrices", "CONSTANT"), ("out0", "OUT"), ("out1", "OUT"), ("out2", "OUT")
    ]  # fmt: skip
    assert launch.args["a"].before.tolist() == [[1, 0], [0, 4]]
    assert launch.args["out0"].after.tolist() == u.tolist()
    assert launch.args["out1"].after.tolist() == s.tolist() == [4, 1]
    with pytest.raises(ValueError, match=rf"launch 0 is a call of {library}.linalg.svd, .* can't be replayed"):
        launch.replay()
    with pa.dump(tmp_path / "few", level=3):
        pa.linalg.svd(a)
    assert pa.load_dump(tmp_path / "few")[0].args["out1"].shape == (2,)
    with pa.dump(tmp_path / "fail"), pytest.raises(np.linalg.LinAlgError):
        pa.linalg.inv(a * 0)
    assert pa.load_dump(tmp_path / "fail")[-1].error == "LinAlgError: Singular matrix"


def test_a_nan_that_a_library_makes_stops_a_dump(device, tmp_path):
    a = on(device, np.full(8, np.inf))
    with pa.dump(tmp_path, stop_at_nan=True):
        pa.fft.fft(a)
        a + 1
    found = pa.load_dump(tmp_path)
    assert found.manifest["stopped"]["kernel"] == f"{LIBRARIES[device.partition(':')[0]]}.fft.fft"
    assert len(found) == 1
