"""xarray over our arrays gives what it gives over NumPy's, and its arrays stay ours."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import pyarray as pa

xr = pytest.importorskip("xarray")
pd = pytest.importorskip("pandas")


def written(a):
    b = a.copy()
    b[{"time": 0}] = 9.0
    b.loc[{"x": 1.0}] = 1.0
    return b


# `a` is without NaN, `n` has some
OPERATIONS = {
    "arithmetic": lambda a, n: (a + 1) * a - a.mean() / 2**a,
    "broadcasting by name": lambda a, n: a * n.isel(time=0) + a.isel(x=1),
    "ufuncs": lambda a, n: np.sin(a) + np.exp(-n),
    "comparison": lambda a, n: (a > 0.5) | n.isnull(),
    "sum": lambda a, n: n.sum("time"),
    "sum of enough": lambda a, n: n.sum("time", min_count=10),
    "mean": lambda a, n: n.mean("time"),
    "mean with NaN": lambda a, n: n.mean("x", skipna=False),
    "mean of integers": lambda a, n: (a * 10).astype("int64").mean("time"),
    "std": lambda a, n: n.std("time", ddof=1),
    "var": lambda a, n: n.var("x"),
    "prod": lambda a, n: n.prod("x"),
    "max, min": lambda a, n: n.max("time") - n.min("time"),
    "median": lambda a, n: n.median("time"),
    "count": lambda a, n: n.count("time"),
    "any, all": lambda a, n: (a > 0.5).any("x") & (a > 0.1).all("x"),
    "argmax": lambda a, n: a.argmax("time"),
    "cumsum": lambda a, n: n.cumsum("time"),
    "quantile": lambda a, n: a.quantile([0.1, 0.5], dim="time"),
    "quantile without NaN": lambda a, n: n.quantile(0.5, dim="time"),
    "weighted": lambda a, n: n.weighted(a.isel(time=0)).mean("x"),
    "dot": lambda a, n: xr.dot(a, a, dim="time") + a.isel(time=0) @ a.isel(time=0),
    "cov, corr": lambda a, n: xr.cov(a, a * 2, dim="time") + xr.corr(a, n, dim="time"),
    "groupby": lambda a, n: n.groupby("g").mean(),
    "anomalies of groups": lambda a, n: a.groupby("g") - a.groupby("g").mean(),
    "bins": lambda a, n: a.groupby_bins("x", [-1, 1, 9]).sum(),
    "resample": lambda a, n: a.resample(time="QE").mean(),
    "coarsen": lambda a, n: a.drop_vars("g").coarsen(time=3).mean(),
    "rolling": lambda a, n: a.rolling(time=3).mean(),
    "rolling, centred": lambda a, n: n.rolling(time=3, center=True, min_periods=1).sum(),
    "windows": lambda a, n: a.rolling(time=3).construct("window"),
    "where": lambda a, n: a.where(a > 0.5),
    "where with other": lambda a, n: xr.where(a > 0.5, a, -a) + a.where(a > 0.5, 0.0),
    "fillna": lambda a, n: n.fillna(0.0),
    "dropna": lambda a, n: n.dropna("time"),
    "combine_first": lambda a, n: n.combine_first(a),
    "concat": lambda a, n: xr.concat([a, a * 2], "time"),
    "concat along a new dimension": lambda a, n: xr.concat([a, a * 2], "run"),
    "isel": lambda a, n: a.isel(time=slice(2, 8, 2), x=-1),
    "isel by a list": lambda a, n: a.isel(x=[2, 0, 1]),
    "sel": lambda a, n: a.sel(x=1.2, method="nearest"),
    "sel by a slice": lambda a, n: a.sel(time=slice("2001-03", "2001-06")),
    "assignment": lambda a, n: written(a),
    "reindex": lambda a, n: a.reindex(x=[0.0, 9.0]),
    "transpose": lambda a, n: a.transpose("x", "time"),
    "stack": lambda a, n: a.stack(z=("time", "x")),
    "unstack": lambda a, n: a.stack(z=("time", "x")).unstack("z"),
    "expand_dims": lambda a, n: a.expand_dims("run").squeeze("run"),
    "diff": lambda a, n: a.diff("time"),
    "shift": lambda a, n: a.shift(time=2),
    "roll": lambda a, n: a.roll(time=2),
    "pad": lambda a, n: a.pad(x=(1, 2), mode="edge"),
    "differentiate": lambda a, n: a.differentiate("x"),
    "integrate": lambda a, n: a.integrate("x"),
    "sortby": lambda a, n: a.sortby("x", ascending=False),
    "clip": lambda a, n: a.clip(0.2, 0.8).round(1),
    "astype": lambda a, n: a.astype("float32"),
    "apply_ufunc": lambda a, n: xr.apply_ufunc(lambda v: v.sum(axis=-1), a, input_core_dims=[["x"]]),
    "datasets": lambda a, n: (xr.Dataset({"a": a, "n": n}) + 1).mean("time")["n"],
    "merge": lambda a, n: xr.merge([a, n.rename("n")])["n"],
    "to_array": lambda a, n: xr.Dataset({"a": a, "n": n}).to_array(),
}


def labelled(values, convert):
    time = pd.date_range("2001-01-31", periods=12, freq="ME")
    coordinates = {"time": time, "x": np.arange(values.shape[1]) * 1.0, "g": ("time", list("aabbccaabbcc"))}
    return xr.DataArray(convert(values), dims=("time", "x"), coords=coordinates, name="a")


def of_both(width, seed, device="cpu"):
    """Pairs of labelled arrays, without NaN and with some: ours, and NumPy's."""
    values = np.random.default_rng(seed).random((12, width))
    both = (values, np.where(values > 0.2, values, np.nan))
    return [[labelled(v.copy(), make) for v in both] for make in (lambda v: pa.asarray(v, device=device), np.asarray)]


def assert_same(found, want):
    assert isinstance(found.data, pa.ndarray)
    assert found.dims == want.dims
    assert list(found.coords) == list(want.coords)
    assert found.dtype == want.dtype
    np.testing.assert_allclose(pa.asnumpy(found.data), want.data, rtol=1e-9, atol=1e-12)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", OPERATIONS)
@examples(2)
@given(width=st.integers(3, 6), seed=st.integers(0, 99))
def test_operations(name, width, seed):
    ours, theirs = of_both(width, seed)
    assert_same(OPERATIONS[name](*ours), OPERATIONS[name](*theirs))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["arithmetic", "mean", "groupby", "rolling", "where", "concat"])
def test_arrays_of_each_device(name, device):
    ours, theirs = of_both(4, 1, device)
    with pa.default_device(device):  # where xarray puts the NaN that it writes, for one
        found = OPERATIONS[name](*ours)
    assert_same(found, OPERATIONS[name](*theirs))
    assert str(found.data.device) == device
    assert "pyarray" in repr(found) or str(device) in repr(found)


def test_interpolation_answers_with_numpys_arrays():
    pytest.importorskip("scipy")
    (a, _), (b, _) = of_both(4, 2)
    np.testing.assert_allclose(a.interp(x=[0.5, 1.5]).data, b.interp(x=[0.5, 1.5]).data)


def test_chunks_of_dask_in_xarray():
    pytest.importorskip("dask.array")
    (a, _), (b, _) = of_both(4, 3)
    assert_same(a.chunk(time=4).mean("time").compute(), b.mean("time"))
