"""Reductions of the rows of products of halves, whose results threads keep by the layout of matrix instructions: used
in all ways that tiles are, on every device, against NumPy."""

import linecache

import numpy as np
import pytest

import pyarray as pa
from pyarray.jit.kernel import kernel
from pyarray.lang.dialect import DIALECTS

LAST = {
    "added": ("acc + m[:, None]", lambda acc, m: acc + m[:, None]),
    "summed": ("acc + m.sum()", lambda acc, m: acc + m.sum()),
    "both": ("acc + m[:, None] + m.sum()", lambda acc, m: acc + m[:, None] + m.sum()),
    "largest": ("acc * m.max() + m[:, None]", lambda acc, m: acc * m.max() + m[:, None]),
    "scanned": ("acc + pa.cumsum(m, axis=0)[:, None]", lambda acc, m: acc + np.cumsum(m)[:, None]),
    "of all": ("acc + (acc * m[:, None]).sum()", lambda acc, m: acc + (acc * m[:, None]).sum()),
    "of rows": ("acc + (acc.min(axis=1) * m).max()", lambda acc, m: acc + (acc.min(1) * m).max()),
    "where": ("pa.where(m[:, None] > 5, acc, m.min())", lambda acc, m: np.where(m[:, None] > 5, acc, m.min())),
}
TEXT = """
def drawn(c, a, b):
    for i, j in pa.tiles(c, (64, 64)):
        acc = pa.zeros((i, j), pa.float32)
        m = pa.full(i, -9, pa.float32)
        for k in pa.tiles(a.shape[1], 32):
            acc += a[i, k] @ b[k, j]
            m = {update}
        c[i, j] = {last}
"""
UPDATES = {
    "once": ("acc.max(axis=1)", lambda acc, m: acc.max(1)),
    "kept": ("pa.maximum(m, acc.max(axis=1))", lambda acc, m: np.maximum(m, acc.max(1))),
    "with a sum": ("pa.minimum(m + acc.sum(axis=1), 7)", lambda acc, m: np.minimum(m + acc.sum(1), 7)),
}


@pytest.mark.parametrize("text", ["own", "of CUDA"])
@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("last", LAST)
def test_as_numpy(device, text, update, last, monkeypatch):
    if text == "of CUDA":
        if not device.startswith("hip"):
            return  # it is the device's own, or none of it
        monkeypatch.setitem(DIALECTS, "hip", DIALECTS["cuda"])
    (next_m, updated), (at_last, wanted) = UPDATES[update], LAST[last]
    source, path = TEXT.format(update=next_m, last=at_last), f"<rows {text} {update} {last}>"
    linecache.cache[path] = (len(source), None, source.splitlines(keepends=True), path)
    exec(compile(source, path, "exec"), space := {"pa": pa})
    made = kernel(space["drawn"])
    rng = np.random.default_rng(1)
    x, y = rng.integers(-2, 3, (64, 50)), rng.integers(-2, 3, (50, 64))
    acc, m = np.zeros((64, 64)), np.full(64, -9.0)
    for k in range(0, 50, 32):
        acc = acc + x[:, k : k + 32] @ y[k : k + 32]
        m = updated(acc, m)
    for checked in (False, True):
        a, b = (pa.asarray(v.astype(np.float16), device=device) for v in (x, y))
        c = pa.empty((64, 64), "float32", device=device)
        with pa.debug(checked):
            made(c, a, b)
        np.testing.assert_array_equal(pa.asnumpy(c), wanted(acc, m), err_msg=f"debug {checked}")
