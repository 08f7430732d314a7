"""A KeyboardInterrupt during the first call of a kernel or fused function, wherever it comes: the next call works."""

import sys

import numpy as np
import pytest

import pyarray as pa
from pyarray.jit.kernel import Binder

STEP = 97  # lines of the package between two interruptions


def add(a, n: int, step: pa.constexpr):
    for i in range(a.size):
        a[i] += n * step


def of_kernel():
    kernel, a = pa.kernel(add), pa.zeros(4)
    return lambda: kernel(a, 1, 3), lambda: np.testing.assert_array_equal(pa.asnumpy(a) % 3, np.zeros(4))


def of_tuned_kernel():
    kernel, a = pa.autotune(configs=[pa.Config(step=3)], key=["n"])(pa.kernel(add)), pa.zeros(4)
    return lambda: kernel(a, 1), lambda: np.testing.assert_array_equal(pa.asnumpy(a) % 3, np.zeros(4))


def of_fused_function():
    fused, a = pa.fuse(lambda x: pa.exp(x) * 2 - 1), pa.zeros(5)
    return lambda: fused(a), lambda: np.testing.assert_array_equal(pa.asnumpy(fused(a)), np.ones(5))


def is_interrupted(call, line):
    """Calls, and interrupts the call before so many lines of the package. Whether there were as many."""
    left = line

    def trace(frame, event, arg):
        nonlocal left
        if "/pyarray/" not in frame.f_code.co_filename or frame.f_code.co_name == "_retire":
            return None  # a finalizer, whose exceptions nobody sees
        left -= event == "line"
        if left == 0:
            left = -1
            raise KeyboardInterrupt
        return trace

    outer = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(outer)
    return False


@pytest.mark.parametrize("make", [of_kernel, of_tuned_kernel, of_fused_function])
def test_first_calls(make):
    make()[0]()  # compiled, and what is imported at first
    line = 1
    while True:
        call, check = make()
        interrupted = is_interrupted(call, line)
        for _ in range(2):
            call()
            check()
        if not interrupted:
            break
        line += STEP if line > 100 else 1
    assert line > 100


def test_between_two_steps():
    """Where C knows the parameters, and Python doesn't know that it does."""
    first, second = pa.kernel(add), pa.kernel(add)
    for kernel in (first, second):
        kernel._set_parameters(*Binder("add", kernel.parameters).for_c(), kernel.debug)
    second._prepared = True
    for kernel in (first, second):
        a = pa.zeros(3)
        for _ in range(2):
            kernel(a, 1, 2)
        assert a.tolist() == [4.0] * 3
    with pytest.raises(ValueError, match="no parameters of a new dispatcher"):
        first._set_parameters(("x",), 1, (NotImplemented,), None)
