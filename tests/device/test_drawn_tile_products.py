"""Random products of tiles are on every device what NumPy makes of them, in release and in debug mode."""

import linecache
import os

import numpy as np
import pytest
from kernel_tools import launch
from random_tile_products import Drawn

import pyarray as pa
from pyarray.jit.kernel import kernel
from pyarray.jit.launch_state import debug
from pyarray.lang.dialect import DIALECTS

PROGRAMS = int(os.environ.get("PYARRAY_TEST_PROGRAMS", "6"))


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_as_numpy(device, seed, monkeypatch):
    """On the emulated device also by CUDA's text for matrix instructions."""
    if device.startswith("hip") and seed % 2:
        monkeypatch.setitem(DIALECTS, "hip", DIALECTS["cuda"])
    drawn = Drawn(seed)
    path = f"<drawn product {seed}>"
    linecache.cache[path] = (len(drawn.text), None, drawn.text.splitlines(keepends=True), path)
    exec(compile(drawn.text, path, "exec"), space := {"pa": pa})
    made, arguments = kernel(space["drawn"]), drawn.arguments()
    wanted = drawn.expected(arguments)
    for checked in (False, True):
        with debug(checked):
            got = launch(made, device, *arguments)[0]
        np.testing.assert_array_equal(
            got.astype(np.float64), wanted.astype(np.float64), err_msg=f"seed {seed}, debug {checked}\n{drawn.text}"
        )
