"""Arrays, masks and tables that change while C reads them: by an `__index__` in Python, and by finalizers, which run
where an object is allocated (later Pythons than 3.11 run them between instructions). What is read is of one moment,
and nothing outside the memory is. Each runs in a process of its own, which may crash."""

import subprocess
import sys
from textwrap import dedent, indent

import pytest

PRELUDE = '''
import gc
import numpy as np
import pyarray as pa

class Finalizer:
    def __init__(self, f):
        self.f, self.cycle = f, self
    def __del__(self):
        self.f()

class Index:
    """An index of value 0 that calls `f` first."""
    def __init__(self, f):
        self.f = f
    def __index__(self):
        self.f()
        return 0

def attempt(call):
    """What `call` gives, or the exception where it and what runs meanwhile don't go together."""
    try:
        return call()
    except (IndexError, ValueError) as error:
        return error
    finally:
        gc.disable()

def meanwhile(f, call):
    """What `attempt` gives while `f` runs at one of the first allocations, or after it."""
    gc.collect()
    gc.set_threshold(AFTER, 1000, 1000)
    Finalizer(f)
    gc.enable()
    result = attempt(call)
    gc.collect()  # it has run now
    return result

def is_inside(x):
    """Whether the elements lie in the buffer, and shape, strides and size belong together."""
    first = x.byte_offset + sum((n - 1) * s for n, s in zip(x.shape, x.strides, strict=True) if s < 0)
    last = x.byte_offset + sum((n - 1) * s for n, s in zip(x.shape, x.strides, strict=True) if s > 0)
    assert x.ndim == len(x.shape) and x.size == np.prod(x.shape)
    return not x.size or 0 <= first <= last + x.itemsize <= x._buffer.nbytes

gc.disable()
'''
SLICES = {
    "a view": """
        def resize():
            a.resize((1, 64), refcheck=False)
        for key in (slice(Index(resize), None), slice(None, None), None), (slice(Index(resize), 2), Index(resize)):
            a = pa.zeros((4, 4, 4))
            found = attempt(lambda: a[key])
            assert isinstance(found, ValueError) or is_inside(found)
        a = pa.zeros((2,) * 6)
        found = attempt(lambda: a[Index(lambda: a.resize((64,), refcheck=False)):])
        assert isinstance(found, ValueError) or is_inside(found)
    """,
    "a write": """
        def resize():
            a.resize((4,), refcheck=False)
        for key in (slice(Index(resize), None), slice(None)), ([0, 1], slice(Index(resize), None)):
            a = pa.zeros((2, 2))
            attempt(lambda: a.__setitem__(key, 5.0))
            assert is_inside(a) and a.shape in ((4,), (2, 2))
    """,
    "an index array": """
        for key in (lambda i: (slice(i, None), [0, 1])), (lambda i: ([0, 1], slice(i, None))), (lambda i: (i, [3, 3])):
            a = pa.ones((4, 4, 4))
            found = attempt(lambda: a[key(Index(lambda: a.resize((2, 2, 2), refcheck=False)))])
            assert isinstance(found, Exception) or (is_inside(found) and np.asarray(found).min() == 1)
    """,
    "what is read-only by then": """
        def protect():
            a.flags.writeable = False
        for key in (slice(Index(protect), None), slice(None)), Index(protect):
            a = pa.zeros((2, 2))
            assert "read-only" in str(attempt(lambda: a.__setitem__(key, 5.0)))
            assert not np.asarray(a).any()
    """,
    "integers of NumPy": """
        a = pa.arange(10)
        assert a[np.int64(2) : np.uint8(8) : np.int16(3)].tolist() == [2, 5]
        assert a[pa.asarray(2) : 4].tolist() == [2, 3]
    """,
}
RESIZED = {
    "a[i], i is longer": """
        a, i = pa.zeros(10), pa.zeros(4, "int64")
        a[i]
        b = meanwhile(lambda: i.resize((30000,)), lambda: a[i])
        assert is_inside(b) and b.shape in ((4,), (30000,))
    """,
    "a[i], a is shorter": """
        a, i = pa.zeros((1000, 4)), pa.full(4, 999)
        b = meanwhile(lambda: a.resize((1, 4)), lambda: a[i])
        assert isinstance(b, IndexError) or (is_inside(b) and not np.asarray(b).any())
    """,
    "a[:, list]": """
        a = pa.zeros((2, 3, 4, 5))
        b = meanwhile(lambda: a.resize((1,) * 20 + (120,)), lambda: a[1:, :, [0, 1]])
        assert isinstance(b, IndexError) or (is_inside(b) and not np.asarray(b).any())
    """,
    "a[i, j]": """
        a, i = pa.zeros((300, 300)), pa.asarray([0, 299])
        a[i, i]
        b = meanwhile(lambda: a.resize((2, 2)), lambda: a[i, i])
        assert isinstance(b, IndexError) or (is_inside(b) and not np.asarray(b).any())
    """,
    "a.shape": """
        a = pa.zeros((2, 3))
        full = [(k, k) for k in range(5000)]  # no free tuples are left
        assert meanwhile(lambda: a.resize((6,)), lambda: a.shape) in ((2, 3), (6,))
        assert a.shape == (6,) and a.strides == (8,)
    """,
    "a.strides": """
        a = pa.zeros((2, 3))
        full = [(k, k) for k in range(5000)]
        assert meanwhile(lambda: a.resize((6,)), lambda: a.strides) in ((24, 8), (8,))
        assert a.strides == (8,)
    """,
    "iter(a)": """
        a = pa.zeros((3, 1000))
        rows = iter(a)
        next(rows), next(rows)
        row = meanwhile(lambda: a.resize((1, 3000), refcheck=False), lambda: next(rows))
        assert isinstance(row, IndexError) or (row.shape == (1000,) and is_inside(row))
    """,
    "a[1:]": """
        a = pa.zeros(1000)
        view = meanwhile(lambda: a.resize((2,), refcheck=False), lambda: a[500:900])
        assert is_inside(view)
    """,
    "a + b": """
        a, b = pa.ones(1), pa.ones(100000)
        a + b
        c = meanwhile(lambda: a.resize((2,)), lambda: a + b)
        assert isinstance(c, ValueError) or (np.asarray(c) == 2).all()
    """,
    "pa.empty_like(a)": """
        a = pa.zeros((10, 10))
        b = meanwhile(lambda: a.resize((100,)), lambda: pa.empty_like(a))
        assert is_inside(b) and b.shape in ((10, 10), (100,))
    """,
    "a.copy()": """
        a = pa.zeros((10, 10))
        a.copy()
        b = meanwhile(lambda: a.resize((2,)), lambda: a.copy())
        assert is_inside(b) and b.shape in ((10, 10), (2,))
        a = pa.zeros((2,) * 6)
        b = meanwhile(lambda: a.resize((64,)), lambda: a.copy())
        assert is_inside(b) and b.shape in ((2,) * 6, (64,))
    """,
    "a.flatten()": """
        a = pa.zeros((10, 10))
        a.flatten()
        b = meanwhile(lambda: a.resize((2,)), lambda: a.flatten())
        assert is_inside(b) and b.shape in ((100,), (2,))
    """,
    "nonzero(a)": """
        a = pa.ones((10, 100), "int32")
        pa.nonzero(a)
        found = meanwhile(lambda: a.resize((2,)), lambda: pa.nonzero(a))
        assert len(found) in (1, 2) and all(is_inside(x) for x in found)
        a = pa.zeros((0, 3))
        found = meanwhile(lambda: a.resize((0,) * 30), lambda: pa.nonzero(a))
        assert len(found) in (2, 30)
    """,
}
CLEARED = {
    "a list of arrays, a call of which is captured": """
        for n in range(100 * AFTER, 100 * AFTER + 20):
            parts = [pa.ones(n), pa.ones(n), pa.ones(n)]
            for _ in range(3):
                pa.concatenate(parts)
            b = meanwhile(parts.clear, lambda: pa.concatenate(parts))
            assert isinstance(b, ValueError) or (np.asarray(b) == 1).all()
    """,
    "a[mask]": """
        a, mask = pa.ones(4000), pa.ones(4000, "bool")
        a[mask]
        b = meanwhile(lambda: mask.fill(False), lambda: a[mask])
        assert b.shape in ((0,), (4000,)) and (np.asarray(b) == 1).all()
    """,
    "nonzero(mask)": """
        mask = pa.ones(4000, "bool")
        pa.nonzero(mask)
        (b,) = meanwhile(lambda: mask.fill(False), lambda: pa.nonzero(mask))
        assert b.shape in ((0,), (4000,)) and (np.asarray(b) == np.arange(b.size)).all()
    """,
    "nonzero(mask), which is filled": """
        mask = pa.zeros(30000, "bool")
        mask[[5, 1000]] = True
        pa.nonzero(mask)
        (b,) = meanwhile(lambda: mask.fill(True), lambda: pa.nonzero(mask))
        assert is_inside(b) and b.size in (2, 30000)
        pa.zeros(100000)
    """,
}
TABLES = {
    "PlanTable.entries()": """
        table = pa.sum.plan_table
        for x in [pa.zeros((k, 2)) for k in range(1, 9)]:
            for _ in range(6):
                pa.sum(x, axis=0)
        waste = []
        def clear():
            table.clear()
            waste.extend(b"A" * n for n in range(40, 600) for _ in range(4))
        entries = meanwhile(clear, table.entries)
        assert len(entries) in (0, 8) and "float64" in repr(entries or "float64")
    """,
    "VariantTable.items()": """
        from pyarray._core import VariantTable
        table = VariantTable()
        for k in range(100):
            table.put((k.to_bytes(8, "little"), str(k)), [k])
        waste = []
        def clear():
            table.clear()
            waste.extend(b"A" * n for n in range(20, 200) for _ in range(9))
        items = meanwhile(clear, table.items)
        assert sorted(value for _, value in items) in ([], [[k] for k in range(100)])
    """,
}


SCRIPTS = {
    f"{cause}: {what}": script
    for cause, scripts in (
        ("an __index__", SLICES),
        ("resized", RESIZED),
        ("cleared", CLEARED),
        ("cleared", TABLES),
    )
    for what, script in scripts.items()
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_it_is_read_at_one_moment(name):
    text = f"{PRELUDE}\nfor AFTER in range(1, 9):\n{indent(dedent(SCRIPTS[name]), '    ')}"
    run = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, f"{name}: {run.returncode}\n{run.stderr[-2000:]}"
