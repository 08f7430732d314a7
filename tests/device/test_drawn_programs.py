"""Random programs mean on every device, in release and in debug mode, what plain Python says."""

import linecache
import os
import random

import numpy as np
import pytest
from kernel_tools import launch
from random_programs.order import NAMES, random_program

from pyarray.jit.kernel import kernel
from pyarray.jit.launch_state import debug

PROGRAMS = int(os.environ.get("PYARRAY_TEST_PROGRAMS", "8"))
NUMBERS = (0, 1, 7, 500)


def drawn(seed):
    text = random_program(random.Random(seed))
    path = f"<drawn {seed}>"
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    exec(compile(text, path, "exec"), space := dict(NAMES))
    return kernel(space["drawn"]), text


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_as_python(device, seed):
    made, text = drawn(seed)
    for number in NUMBERS:
        start = np.random.default_rng(number).integers(0, 50, (3, 5))
        args = [start, np.zeros(6, np.int64), np.zeros(2, np.int64), number]
        expected = [np.array(a) for a in args[:3]]
        made.__wrapped__(*expected, number)
        for checked in (False, True):
            with debug(checked):
                got = launch(made, device, *args)
            for a, b in zip(expected, got, strict=True):
                np.testing.assert_array_equal(b, a, err_msg=f"seed {seed}, debug {checked}\n{text}")
