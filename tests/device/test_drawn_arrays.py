"""Random programs with arrays of constant shape mean on every device, in release and in debug mode, what NumPy says,
or are refused because names share memory in Python."""

import linecache
import os
import random
import re

import numpy as np
import pytest
from drawn_arrays import NAMES, random_program
from kernel_tools import launch

from pyarray.errors import CompileError
from pyarray.jit.kernel import kernel
from pyarray.jit.launch_state import debug

PROGRAMS = int(os.environ.get("PYARRAY_TEST_PROGRAMS", "8"))
START = int(os.environ.get("PYARRAY_TEST_FIRST", "0"))
SHARING = re.compile("shares memory in Python with|and is a copy here: it can't be changed")


def drawn(seed):
    text = random_program(random.Random(seed))
    path = f"<drawn arrays {seed}>"
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    code = compile(text, path, "exec")
    exec(code, space := dict(NAMES))
    exec(code, numpy_space := NAMES | {"pa": np})  # whose items are numbers, as a kernel's are
    return kernel(space["drawn"]), numpy_space["drawn"], text


@pytest.mark.parametrize("seed", range(START, START + PROGRAMS))
def test_as_numpy(device, seed):
    made, plain, text = drawn(seed)
    for number in (0, 1, 7):
        start = np.random.default_rng(number).integers(0, 50, (4, 3))
        args = [start, np.zeros(14, np.int64), number]
        expected = [np.array(a) for a in args[:2]]
        with np.errstate(all="ignore"):
            plain(*expected, number)
        for checked in (False, True):
            with debug(checked):
                try:
                    got = launch(made, device, *args)
                except CompileError as refused:
                    message = str(refused)
                    break
            for a, b in zip(expected, got, strict=True):
                np.testing.assert_array_equal(b, a, err_msg=f"seed {seed}, debug {checked}\n{text}")
        else:
            continue
        assert SHARING.search(message), text
        return
