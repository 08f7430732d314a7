"""Softmax, its logarithm and logsumexp, along rows that a kernel reads once and along others, against NumPy."""

import numpy as np
import pytest

import pyarray as pa

CASES = {
    "rows": ((5, 7), -1), "a row": ((300,), None), "long rows": ((2, 8200), 1), "longer rows": ((2, 16390), 1),
    "columns": ((4, 9), 0), "batches": ((2, 3, 5), 2), "all": ((2, 5), None), "one element": ((3, 1), 1),
}  # fmt: skip


def expected(x, axis):
    top = x.max(axis=axis, keepdims=True)
    e = np.exp(x - top)
    total = e.sum(axis=axis, keepdims=True)
    return e / total, x - top - np.log(total), np.log(total) + top


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_as_numpy(device, case, dtype):
    shape, axis = CASES[case]
    x = np.random.default_rng(0).normal(0, 3, shape).astype(dtype)
    there = pa.asarray(x, device=device)
    soft, logarithm, total = expected(x.astype("d"), axis)
    limit = {"float16": 2e-2, "float32": 2e-5, "float64": 1e-12}[dtype]
    np.testing.assert_allclose(pa.asnumpy(pa.special.softmax(there, axis=axis)), soft, rtol=limit, atol=limit / 100)
    np.testing.assert_allclose(pa.asnumpy(pa.special.log_softmax(there, axis=axis)), logarithm, rtol=limit, atol=limit)
    kept = pa.special.logsumexp(there, axis=axis, keepdims=True)
    assert kept.shape == total.shape
    np.testing.assert_allclose(pa.asnumpy(kept), total, rtol=limit)
    assert pa.special.logsumexp(there, axis=axis).shape == np.squeeze(total, axis=axis).shape


def test_views_and_special_values(device):
    x = np.random.default_rng(1).normal(size=(6, 8)).astype("f")
    x[0, 3], x[2] = -np.inf, np.inf
    x[4, 1] = np.nan
    there = pa.asarray(x, device=device)
    with np.errstate(all="ignore"):
        for found, given in ((there[::2, 1:], x[::2, 1:]), (there.T, x.T), (there[1:2], x[1:2])):
            top = np.where(np.isfinite(given.max(1, keepdims=True)), given.max(1, keepdims=True), 0)
            e = np.exp(given - top)
            np.testing.assert_allclose(
                pa.asnumpy(pa.special.softmax(found, axis=1)), e / e.sum(1, keepdims=True), rtol=1e-5, atol=1e-7
            )
