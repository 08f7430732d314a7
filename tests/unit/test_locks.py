"""Locks and forks: what another thread held is free in the child, what the forking thread held it has."""

import ast
import os
import signal
import threading
from pathlib import Path

import numpy as np
from syntax_trees import nodes

import pyarray as pa
from pyarray.jit import compile as compiler
from pyarray.jit.text_kernel import TextKernel
from pyarray.locks import new_lock

PACKAGE = Path(pa.__file__).parent


def in_child(check):
    """Whether `check()` is true in the child of a fork."""
    child = os.fork()
    if child == 0:
        code = 1
        signal.alarm(300)  # ends it where it waits for ever
        try:
            code = 0 if check() else 2
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


class Held:
    """Another thread is in the block of `lock` meanwhile."""

    def __init__(self, lock):
        self.lock, self.inside, self.end = lock, threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.hold)

    def hold(self):
        with self.lock:
            self.inside.set()
            self.end.wait()

    def __enter__(self):
        self.thread.start()
        self.inside.wait()

    def __exit__(self, *exception):
        self.end.set()
        self.thread.join()


def test_what_another_thread_holds_is_free_in_the_child():
    lock = new_lock()
    with Held(lock):
        assert not lock.acquire(timeout=0.01)
        assert in_child(lambda: lock.acquire(timeout=300))
        assert not lock.acquire(timeout=0.01)
    assert lock.acquire(timeout=300)


def test_what_the_forking_thread_holds_it_goes_on_to_hold():
    lock = new_lock()

    def check():
        lock.release()
        thread = threading.Thread(target=lambda: found.append(lock.acquire(timeout=300)))
        found = []
        thread.start()
        thread.join()
        return found == [True]

    with lock:
        assert in_child(check)


def test_a_fork_while_another_thread_compiles(monkeypatch):
    """A kernel of text, whose lock is held as long as the compiler runs."""
    kernel = pa.ElementwiseKernel("float64 x", "float64 y", "y = x + 41", "forked")
    x, load = pa.ones(3), compiler.load
    inside, end = threading.Event(), threading.Event()

    def slow(*args):
        inside.set()
        end.wait()
        return load(*args)

    def check():
        monkeypatch.undo()
        return kernel(x).tolist() == [42.0] * 3

    monkeypatch.setattr(compiler, "load", slow)
    thread = threading.Thread(target=lambda: kernel(x))
    thread.start()
    inside.wait()
    try:
        assert in_child(check)
    finally:
        end.set()
        thread.join()


def test_other_locks_that_a_fork_may_leave_taken():
    made = [
        pa.random.default_rng(1).bit_generator._lock,
        pa.fuse(lambda a: a + 1)._lock,
        TextKernel("none", lambda *_: None)._lock,
        pa.kernel(lambda v: None)._lock,
    ]
    for lock in made:
        with Held(lock):
            assert in_child(lambda lock=lock: lock.acquire(timeout=300))
    with Held(pa.random.legacy._lock):
        assert in_child(lambda: np.isfinite(pa.random.rand()))


def test_there_are_no_others():
    for path in PACKAGE.rglob("*.py"):
        for node in nodes(path):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("threading.Lock", "threading.RLock"):
                assert path.name == "locks.py", f"{path}:{node.lineno}: make it with locks.new_lock"
