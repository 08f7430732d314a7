"""`a.resize` while others use the memory of `a`: it refuses, or what they use stays as it is."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pyarray as pa

EXPORTS = {
    "view": lambda a: a[1:],
    "transpose": lambda a: a.T,
    "handle": lambda a: a.mark_static(),
    "part": lambda a: a.astype("complex128", copy=False).real,
    "asnumpy": pa.asnumpy,
    "numpy": np.asarray,
    "array": lambda a: np.array(a, copy=False),
    "dlpack": np.from_dlpack,
    "capsule": lambda a: a.__dlpack__(),
    "back": lambda a: pa.asarray(np.from_dlpack(a)),
}
ADDRESS = ("numpy", "array")  # the array's address is given, and nobody tells when that is over


@pytest.mark.parametrize("name", EXPORTS)
def test_resize_is_refused_while_others_have_the_memory(name):
    a = pa.full(1000, 3, dtype="complex128")
    other = EXPORTS[name](a)
    for shape in (2000, 10):
        with pytest.raises(ValueError, match=r"resize\(\): .* a = pyarray.resize\(a, shape\), which copies"):
            a.resize(shape)
    if isinstance(other, pa.BufferView):
        assert (other.base is a, other.offset) == (True, 1)
    del other
    a.resize(2000, refcheck=name not in ADDRESS)
    assert (a.sum().item(), a.shape) == (3000, (2000,))


def test_what_holds_the_memory_is_named():
    a = pa.ones((4, 5))
    for export, text in (
        (lambda: a[1:], r"there is a view of it; drop that first"),
        (lambda: pa.asnumpy(a), "a NumPy array shows its memory; drop that first"),
        (lambda: np.from_dlpack(a), r"another library has its memory \(by DLPack\); drop that first"),
        (lambda: np.asarray(a), "its address was given out, .* pass refcheck=False if that is over"),
    ):
        held = export()
        with pytest.raises(ValueError, match=text):
            a.resize(3)
        del held


@given(st.lists(st.tuples(st.integers(0, 300), st.sampled_from(("numpy", "array", "none"))), max_size=8))
def test_resized_arrays_keep_their_elements_and_exports_theirs(steps):
    """As NumPy's, at each step; memory that was given out before is nobody else's."""
    a, x, given_out = pa.arange(50, dtype="float64"), np.arange(50.0), []
    for count, export in steps:
        if export != "none":
            given_out.append((EXPORTS[export](a), a.size))
        a.resize(count, refcheck=False)
        x.resize(count, refcheck=False)
        others = [pa.full(n, -1.0) for n in (50, count, 2 * count) for _ in range(3)]
        assert a.tolist() == x.tolist()
        for seen, size in given_out:
            assert seen.shape == (size,)
            assert -1 not in seen
        del others


@pa.kernel
def add_one(v):
    for i in range(v.size):
        v[i] += 1


def test_launches_of_other_threads_stay_in_their_memory(device):
    """A launch that began before a resize writes where the array was, which nobody else gets meanwhile."""
    sizes = [1 << k for k in range(10, 16)]
    shared, done, failures = [pa.zeros(sizes[0], device=device)], threading.Event(), []
    add_one(shared[0])

    def add():
        while not done.is_set():
            add_one(shared[0])

    def watch():
        while not done.is_set():
            mine = [pa.zeros(n, device=device) for n in sizes]
            if any(pa.any(x) for x in mine):
                failures.append("written by another thread's launch")

    threads = [threading.Thread(target=target) for target in (add, watch)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            shared[0] = pa.zeros(sizes[0], device=device)
            for size in sizes:
                shared[0].resize(size)
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert not failures
    assert shared[0].shape == (sizes[-1],)
