"""The kernels of compiled graphs on torch's own threads: how many there are, and what a fork and other
threads of Python's do to them. Each case is a process of its own, since threads stay."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

torch = pytest.importorskip("torch")

from pyarray.torch import threads  # noqa: E402

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not os.path.isdir("/proc/self/task") or threads._team() is None,
        reason="threads are counted on Linux alone, and torch has no OpenMP that can be shared",
    ),
]
BEGIN = """
import os, sys, threading
import torch
from pyarray.torch.backend import pyarray
def count(): return len(os.listdir("/proc/self/task"))
def function(x): return torch.relu(x * 2 + 1)
ours = torch.compile(function, backend=pyarray, dynamic=True)
x = torch.randn(1 << 21)
def right():
    with torch.no_grad():
        torch.testing.assert_close(ours(x), function(x))
torch.set_num_threads(3)
ours(x[:8])  # compiled, and run by one thread
"""


def run(case: str) -> None:
    """The case behind what all begin with; it asserts."""
    # torch refuses to compile in a child of a process that has used a GPU
    settings = os.environ | {"PYARRAY_NUM_THREADS": "3", "CUDA_VISIBLE_DEVICES": ""}
    text = BEGIN + textwrap.dedent(case)
    done = subprocess.run(
        [sys.executable, "-c", text], env=settings, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_as_many_threads_as_torch_has():
    """Those that its operators started; no others, whoever calls."""
    run("""
        before = count()
        torch.set_num_threads(2)
        ours(x)
        assert count() == before + 1, (count(), before)
        torch.set_num_threads(3)
        right()
        assert count() == before + 2, (count(), before)
        function(x)
        right()
        assert count() == before + 2, (count(), before)
        torch.set_num_threads(1)
        before, found = count(), []
        def other():
            ours(x)
            found.append(count())
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert found == [before + 1], (found, before)
    """)


FORK = """
        child = os.fork()
        if child == 0:
            found = ours(x)
            os._exit(0 if bool((found[:1000] == function(x[:1000])).all()) and count() == 3 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        right()
"""


def test_several_callers_and_forks_after_them():
    """A child has threads of its own."""
    run(f"""
        right()  # compiled for this size and mode by one thread: torch refuses to do so for several at once
        wrong = []
        def other():
            for _ in range(10):
                try:
                    right()
                except Exception as error:
                    wrong.append(error)
        others = [threading.Thread(target=other) for _ in range(3)]
        for thread in others: thread.start()
        for thread in others: thread.join()
        assert not wrong, wrong
{FORK}
    """)


@pytest.mark.slow
def test_a_fork_before_any_thread():
    run(FORK)
