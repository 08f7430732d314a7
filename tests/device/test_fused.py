"""Fused functions on every device: maps, rows, columns, tiles, several results, copies, debug checks."""

import numpy as np
import pytest

import pyarray as pa

CASES = {
    "map": lambda x, t: x * t + pa.where(x > 3, x, -x),
    "rows": lambda x, t: pa.sum(x * t, axis=1),
    "columns": lambda x, t: pa.max(x * t, axis=0),
    "all": lambda x, t: pa.mean(x.T * t),
    "reshape": lambda x, t: (x + x[0]).reshape(-1, 2) * t,
    "copied": lambda x, t: (x + x[0]).reshape(5, 8) * x.T.reshape(5, 8),
    "several": lambda x, t: (x + t, x[:, ::-1] > t, pa.any(x > t, axis=1)),
    "stages": lambda x, t: x / pa.sum(x, axis=0, keepdims=True),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("checked", [False, True], ids=["plain", "debug"])
def test_fused_is_what_numpy_finds(device, name, checked):
    values = np.arange(1, 41, dtype=np.float32).reshape(8, 5)
    fused = pa.fuse(CASES[name])
    with pa.debug(checked):
        found = fused(pa.asarray(values, device=device), 2)
        again = fused(pa.asarray(values, device=device), 3)
    for ours, number in ((found, 2), (again, 3)):
        theirs = CASES[name](pa.asarray(values, device="cpu"), number)
        for x, y in zip(ours, theirs, strict=True) if name == "several" else [(ours, theirs)]:
            assert str(x.device) == str(pa.get_device(device))
            np.testing.assert_allclose(pa.asnumpy(x), pa.asnumpy(y), rtol=1e-6)
    assert fused.cache_info()["unfused"] == 0


def test_a_transpose_is_walked_in_tiles(device):
    values = np.arange(200 * 130, dtype=np.float32).reshape(200, 130)
    x = pa.asarray(values, device=device)
    fused = pa.fuse(lambda x, y: x.T * 2 + y)
    np.testing.assert_array_equal(pa.asnumpy(fused(x, x[0, 0])), values.T * 2)
