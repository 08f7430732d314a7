"""dask.array over chunks of ours gives NumPy's results, and its chunks stay ours to the end."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import pyarray as pa

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

FULL = {0: -1, 1: -1}


def one_chunk(m, x, chunks=None):
    """`x` in chunks that are whole along all axes, or those of `chunks`."""
    return x if m is np else x.rechunk(FULL if chunks is None else chunks)


def square(m, x):
    """A symmetric, positive definite matrix."""
    x = one_chunk(m, x)
    return x.T @ x + x.shape[1] * np.eye(x.shape[1])


def integers(x):
    return (x * 5).astype("int64")


def some_nan(m, x):
    return m.where(x > 0.3, x, np.nan)


def written(x):
    y = x.copy()
    y[1:, 0] = 7.0
    y[y > 0.9] = 0.0
    return y


# of NumPy or dask.array, and the array
OPERATIONS = {
    "arithmetic": lambda m, x: -x * 2 + x**2 / (x + 1),
    "ufuncs": lambda m, x: m.sin(x) + m.exp(-x) + m.hypot(x, 1),
    "comparison": lambda m, x: (x > 0.5) & ~(x < 0.7),
    "astype": lambda m, x: x.astype("float32"),
    "clip": lambda m, x: x.clip(0.2, 0.8),
    "round": lambda m, x: m.round(x, 1),
    "where": lambda m, x: m.where(x > 0.5, x, -x),
    "complex": lambda m, x: m.angle(x + 1j * x) + (x - 1j * x).conj().imag,
    "sum": lambda m, x: x.sum(axis=0),
    "sum of all": lambda m, x: x.sum(),
    "sum, kept": lambda m, x: x.sum(axis=1, keepdims=True),
    "prod": lambda m, x: x.prod(axis=0),
    "mean": lambda m, x: x.mean(axis=1),
    "mean of integers": lambda m, x: integers(x).mean(),
    "std": lambda m, x: x.std(axis=0),
    "var": lambda m, x: x.var(ddof=1),
    "moment": lambda m, x: x.moment(3) if m is da else ((x - x.mean()) ** 3).mean(),
    "max, min, ptp": lambda m, x: x.max(axis=0) - x.min(axis=0) + m.ptp(x, axis=0),
    "argmin": lambda m, x: x.argmin(axis=0),
    "argmax": lambda m, x: m.argmax(x, axis=1),
    "any, all": lambda m, x: (x > 0.5).any(axis=0) & (x > 0.1).all(axis=0),
    "nansum": lambda m, x: m.nansum(some_nan(m, x), axis=0),
    "nanmean": lambda m, x: m.nanmean(some_nan(m, x)),
    "nanstd": lambda m, x: m.nanstd(some_nan(m, x)),
    "nanmax": lambda m, x: m.nanmax(m.where(x == x[:1, :1], x, np.nan)),
    "median": lambda m, x: m.median(x, axis=1),
    "quantile": lambda m, x: m.quantile(one_chunk(m, x), [0.1, 0.5], axis=1),
    "nanquantile": lambda m, x: m.nanquantile(one_chunk(m, some_nan(m, x)), 0.25, axis=0),
    "percentile": lambda m, x: m.percentile(one_chunk(m, x)[:, 0], [0, 10, 50, 90, 100]),
    "average": lambda m, x: m.average(x, axis=0, weights=x + 1),
    "cov": lambda m, x: m.cov(x),
    "corrcoef": lambda m, x: m.corrcoef(x),
    "cumsum": lambda m, x: m.cumsum(x, axis=0),
    "cumprod": lambda m, x: m.cumprod(x, axis=1),
    "cumsum in parallel": lambda m, x: m.cumsum(x, axis=0, **({"method": "blelloch"} if m is da else {})),
    "diff": lambda m, x: m.diff(x, axis=0),
    "reshape": lambda m, x: x.reshape(-1),
    "transpose": lambda m, x: x.T,
    "slices": lambda m, x: x[1:, ::-1],
    "a row": lambda m, x: x[1],
    "newaxis": lambda m, x: x[:, None, :],
    "fancy": lambda m, x: x[[1, 0, 1, 1]],
    "take": lambda m, x: m.take(x, [1, 0], axis=1),
    "a mask of rows": lambda m, x: x[np.arange(len(x)) % 2 == 0],
    "a mask": lambda m, x: x[x > 0.5],
    "points": lambda m, x: (x.vindex if m is da else x)[[0, 1, 1], [1, 0, 1]],
    "assignment": lambda m, x: written(x),
    "concatenate": lambda m, x: m.concatenate([x, x * 2], axis=1),
    "stack": lambda m, x: m.stack([x, x * 2], axis=1),
    "block": lambda m, x: m.block([[x, x], [x, -x]]),
    "pad": lambda m, x: m.pad(x, 1, mode="edge"),
    "tile": lambda m, x: m.tile(x, (2, 1)),
    "repeat": lambda m, x: m.repeat(x, 2, axis=0),
    "roll": lambda m, x: m.roll(x, 1, axis=0),
    "flip": lambda m, x: m.flip(x, 0),
    "tril": lambda m, x: m.tril(x),
    "broadcast_to": lambda m, x: m.broadcast_to(x, (2, *x.shape)),
    "squeeze": lambda m, x: m.squeeze(x[:, :1], axis=1),
    "ones_like": lambda m, x: m.ones_like(x) + m.full_like(x, 3.0) + m.zeros_like(x),
    "matmul": lambda m, x: x.T @ x,
    "einsum": lambda m, x: m.einsum("ij,kj->ik", x, x),
    "tensordot": lambda m, x: m.tensordot(x, x.T, axes=1),
    "dot": lambda m, x: m.dot(x, x.T),
    "outer": lambda m, x: m.outer(x[0], x[1]),
    "norm": lambda m, x: m.linalg.norm(x, axis=0),
    "qr": lambda m, x: abs(m.linalg.qr(one_chunk(m, x, {1: -1}))[1]) if len(x) >= len(x.T) else x,
    "svd": lambda m, x: m.linalg.svd(one_chunk(m, x), **({} if m is da else {"full_matrices": False}))[1],
    "cholesky": lambda m, x: m.linalg.cholesky(square(m, x), **({"lower": True} if m is da else {})),
    "fft": lambda m, x: m.fft.fft(one_chunk(m, x), axis=0),
    "rfft": lambda m, x: m.fft.rfft(one_chunk(m, x)),
    "fft2": lambda m, x: m.fft.fft2(one_chunk(m, x)),
    "histogram": lambda m, x: m.histogram(x, bins=np.linspace(0, 1, 6))[0],
    "weighted histogram": lambda m, x: m.histogram(x, bins=5, range=(0, 1), weights=x)[0],
    "bincount": lambda m, x: m.bincount(integers(x).ravel(), minlength=5),
    "digitize": lambda m, x: m.digitize(x, np.array([0.2, 0.5, 0.8])),
    "isin": lambda m, x: m.isin(integers(x), [1, 2]),
    "unique": lambda m, x: m.unique(integers(x)),
    "topk": lambda m, x: m.topk(x, 2, axis=0) if m is da else np.sort(x, axis=0)[::-1][:2],
    "map_blocks": lambda m, x: x.map_blocks(lambda c: c * 2) if m is da else x * 2,
    "map_overlap": lambda m, x: (
        m.map_overlap(lambda c: c + np.roll(c, 1, axis=0), x, depth={0: 1}, boundary="periodic")
        if m is da
        else x + np.roll(x, 1, axis=0)
    ),
    "reduction": lambda m, x: da.reduction(x, pa.sum, pa.sum, dtype=x.dtype) if m is da else x.sum(),
    "apply_along_axis": lambda m, x: m.apply_along_axis(lambda v: v.sum(), 0, x),
}


def collection(values, chunks, device="cpu"):
    return da.from_array(pa.asarray(values, device=device), chunks=chunks)


def assert_same(found, want):
    """The collection computes to an array of ours, with NumPy's elements."""
    made = found.compute(scheduler="sync")
    assert isinstance(made, pa.ndarray)
    assert made.dtype == found.dtype == np.asarray(want).dtype
    assert made.shape == np.shape(want)
    np.testing.assert_allclose(pa.asnumpy(made), want, rtol=1e-6 if made.itemsize == 4 else 1e-9, atol=1e-12)


@pytest.mark.all_variants
@pytest.mark.parametrize("name", OPERATIONS)
@examples(4)
@given(data=st.data())
def test_operations(name, data):
    shape = data.draw(st.tuples(st.integers(2, 7), st.integers(2, 7)))
    chunks = tuple(data.draw(st.integers(1, n)) for n in shape)
    values = np.random.default_rng(data.draw(st.integers(0, 99))).random(shape)
    assert_same(OPERATIONS[name](da, collection(values, chunks)), OPERATIONS[name](np, values))


@pytest.mark.parametrize("name", ["arithmetic", "mean", "matmul", "fancy", "concatenate", "percentile"])
def test_chunks_of_each_device(name, device):
    values = np.random.default_rng(1).random((5, 4))
    # percentiles make arrays of dask's own on the way, which are on the default device
    with pa.default_device(device):
        found = OPERATIONS[name](da, collection(values, (2, 3), device))
        assert_same(found, OPERATIONS[name](np, values))
        assert str(found.compute(scheduler="sync").device) == device


@pytest.mark.parametrize("scheduler", ["sync", "threads", "processes"])
@pytest.mark.slow
def test_schedulers(scheduler):
    values = np.arange(24.0).reshape(4, 6)
    x = collection(values, (2, 3))
    found = ((x.T @ x) / 2).sum(axis=0).compute(scheduler=scheduler)
    assert isinstance(found, pa.ndarray)
    np.testing.assert_array_equal(pa.asnumpy(found), ((values.T @ values) / 2).sum(axis=0))


def test_solvers_answer_with_numpys_chunks_where_dask_calls_scipy():
    pytest.importorskip("scipy")
    values = np.random.default_rng(2).random((4, 4)) + 4 * np.eye(4)
    found = da.linalg.solve(collection(values, 2), collection(values[:, 0].copy(), 2)).compute()
    np.testing.assert_allclose(pa.asnumpy(found), [1, 0, 0, 0], atol=1e-12)


# ---- the backend "pyarray"


CREATION = {
    "ones": lambda m: m.ones((3, 4), **in_chunks(m)),
    "zeros": lambda m: m.zeros((3, 4), dtype="int32", **in_chunks(m)),
    "full": lambda m: m.full((3, 4), 2.5, **in_chunks(m)),
    "arange": lambda m: m.arange(2, 11, 3, **in_chunks(m)),
}


def in_chunks(m):
    return {} if m is np else {"chunks": 2}


@pytest.mark.parametrize("name", CREATION)
def test_created_by_the_backend(name):
    with dask.config.set({"array.backend": "pyarray"}):
        made = CREATION[name](da)
    assert isinstance(made._meta, pa.ndarray)
    assert_same(made, CREATION[name](np))
    assert made.compute().dtype == CREATION[name](np).dtype


@pytest.mark.slow
def test_the_entry_point_is_enough(tmp_path):
    """A process that has imported nothing of pyarray, and finds it installed."""
    root = Path(__file__).resolve().parents[2]
    groups = tomllib.loads((root / "pyproject.toml").read_text())["project"]["entry-points"]
    ((name, target),) = groups["dask.array.backends"].items()
    installed = tmp_path / "pyarray_kernels-0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: pyarray-kernels\nVersion: 0\n")
    (installed / "entry_points.txt").write_text(f"[dask.array.backends]\n{name} = {target}\n")
    code = """
import sys, dask, dask.array as da
assert "pyarray" not in sys.modules
with dask.config.set({"array.backend": "pyarray"}):
    print(type(da.ones(4, chunks=2).compute()).__module__)
"""
    paths = os.pathsep.join(map(str, (tmp_path, root)))
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "pyarray.array\n", done.stderr


def test_empty_of_the_backend():
    with dask.config.set({"array.backend": "pyarray"}):
        made = da.empty((3, 4), chunks=2, dtype="float32").compute()
    assert isinstance(made, pa.ndarray)
    assert made.shape == (3, 4)


@pytest.mark.parametrize("name", ["random", "normal", "integers", "poisson", "choice", "gamma"])
def test_random_numbers_of_a_generator(name):
    args = {"integers": (0, 9), "choice": (9,), "gamma": (2.0,)}.get(name, ())
    with dask.config.set({"array.backend": "pyarray"}):
        draws = [getattr(da.random.default_rng(3), name)(*args, size=(6,), chunks=(4,)) for _ in range(2)]
    first, second = (x.compute() for x in draws)
    assert isinstance(first, pa.ndarray)
    assert first.tolist() == second.tolist()
    assert len(set(draws[0].compute().tolist())) > 1


@pytest.mark.parametrize("name", ["random_sample", "randint", "normal", "tomaxint", "random_integers", "choice"])
def test_random_numbers_of_a_state(name):
    args = {"randint": (9,), "random_integers": (9,), "choice": (9,)}.get(name, ())
    with dask.config.set({"array.backend": "pyarray"}):
        made = getattr(da.random.RandomState(3), name)(*args, size=(6,), chunks=(4,)).compute()
    assert isinstance(made, pa.ndarray)
    assert made.shape == (6,)


def test_collections_change_their_backend():
    values = np.arange(6.0)
    ours = da.from_array(values, chunks=4).to_backend("pyarray")
    assert isinstance(ours._meta, pa.ndarray)
    assert_same(ours + 1, values + 1)
    assert ours.to_backend("pyarray") is ours
    back = ours.to_backend("numpy").compute()
    assert type(back) is np.ndarray
    np.testing.assert_array_equal(back, values)


# ---- what dask knows of an array


def test_arrays_and_collections_add_in_either_order():
    x = da.ones(4, chunks=2)
    for found in (x + pa.arange(4.0), pa.arange(4.0) + x):
        assert isinstance(found, da.Array)
        assert pa.asnumpy(found.compute()).tolist() == [1, 2, 3, 4]


def test_tokens_follow_the_elements():
    a = pa.arange(6.0)
    token = dask.base.tokenize(a)
    assert token == dask.base.tokenize(pa.arange(6.0)) != dask.base.tokenize(pa.arange(6.0) + 1)
    assert token != dask.base.tokenize(a.reshape((2, 3)))
    assert token != dask.base.tokenize(a[::-1])


def test_size_in_bytes(device):
    from dask.sizeof import sizeof

    a = pa.zeros((1000, 100), dtype="float32", device=device)
    assert sizeof(a) == 400_000
    assert sizeof(a[::2]) == 200_000
    assert sizeof(pa.broadcast_to(a[0], (10_000, 100))) == 400


@pytest.mark.parametrize("first", ["pyarray", "dask.array", "pyarray.interop.dask_array"])
@pytest.mark.slow
def test_imported_in_either_order(first):
    second = "pyarray" if first == "dask.array" else "dask.array"
    code = f"""
import sys, {first}
assert {first!r} != "pyarray" or not [name for name in sys.modules if name.startswith("dask")]
import {second}, pyarray as pa, dask, dask.array as da
from dask.array.chunk_types import is_valid_chunk_type
from dask.sizeof import sizeof
assert is_valid_chunk_type(pa.ndarray) and sizeof(pa.zeros(10**6)) == 8 * 10**6
assert not any(getattr(finder, "name", "").startswith("dask") for finder in sys.meta_path)
with dask.config.set({{"array.backend": "pyarray"}}):
    assert isinstance(da.ones(4, chunks=2).compute(), pa.ndarray)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
