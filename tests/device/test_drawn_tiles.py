"""Random kernels of tiles are on every device what NumPy makes of slices, in release and in debug mode."""

import linecache
import os

import numpy as np
import pytest
from kernel_tools import launch
from random_tiles import Drawn, expected

import pyarray as pa
from pyarray.jit.kernel import kernel
from pyarray.jit.launch_state import debug

PROGRAMS = int(os.environ.get("PYARRAY_TEST_PROGRAMS", "8"))


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_as_numpy(device, seed):
    drawn = Drawn(seed)
    path = f"<drawn tiles {seed}>"
    linecache.cache[path] = (len(drawn.text), None, drawn.text.splitlines(keepends=True), path)
    exec(compile(drawn.text, path, "exec"), space := {"pa": pa})
    made, arguments = kernel(space["drawn"]), drawn.arguments()
    wanted = expected(drawn, arguments)
    for checked in (False, True):
        with debug(checked):
            got = launch(made, device, *arguments)
        for a, b in zip(wanted, got, strict=False):
            np.testing.assert_array_equal(b, a, err_msg=f"seed {seed}, debug {checked}\n{drawn.text}")
