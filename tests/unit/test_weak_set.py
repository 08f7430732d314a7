"""The thread-safe weak set: what it holds, and what threads may do at once."""

import gc
import threading

import pytest

from pyarray.weak_set import ThreadSafeWeakSet


class Thing:
    pass


def test_holds_what_lives():
    living, things = ThreadSafeWeakSet(), [Thing() for _ in range(5)]
    for k in range(10):
        living.add(things[k % 5])
    assert sorted(map(id, living)) == sorted(map(id, things))
    for remaining in (3, 0):
        iterated = iter(living)
        del iterated, things[remaining:]
        gc.collect()
        assert sorted(map(id, living)) == sorted(map(id, things))


@pytest.mark.slow
def test_threads_add_and_drop_while_one_iterates():
    """With `weakref.WeakSet` this raises within a second: "Set changed size during iteration"."""
    living, kept, stop = ThreadSafeWeakSet(), [Thing() for _ in range(200)], threading.Event()
    for thing in kept:
        living.add(thing)

    def work():
        while not stop.is_set():
            some = [Thing() for _ in range(50)]
            for thing in some:
                living.add(thing)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(3000):
            found = set(map(id, living))
            assert found >= set(map(id, kept))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    gc.collect()
    assert set(map(id, living)) == set(map(id, kept))
