"""What calls into the core make is given back: many calls leave neither memory nor references, errors neither."""

import copy
import gc
import operator
import pickle
import sys
import tracemalloc

import numpy as np
import pytest

import pyarray as pa
from pyarray import _core
from pyarray.memory import Buffer

TIMES, ROUNDS = 40, 4
FEW = TIMES // 2  # references, and words of memory: a leak takes one in each call, caches take them now and then


class Wrong(Exception):
    """Raised in the middle of a call."""


class Raises:
    """Every question about it is answered by an exception."""

    def _raise(self, *args, **kwargs):
        raise Wrong

    __index__ = __float__ = __int__ = __len__ = __getitem__ = __iter__ = __bool__ = __array__ = __dlpack__ = _raise
    __add__ = __radd__ = __eq__ = __lt__ = __hash__ = _raise
    shape = dtype = __array_interface__ = property(_raise)


ATTRIBUTES = "shape strides size ndim dtype itemsize nbytes device base byte_offset flags T real"
IN_PLACE = "iadd imul isub itruediv iand ior ixor ilshift ipow imatmul"
METHODS = "copy tolist tobytes ravel flatten sum max mean argmin any cumsum conj squeeze item get nonzero sort"


@pa.kernel
def scaled(out, x, factor):
    for i in range(out.size):
        out[i] = x[i] * factor


@pa.kernel
def typed(out: pa.BufferView[pa.float64], n: pa.int8):
    for i in range(out.size):
        out[i] = n


@pa.fuse
def polynomial(x, y):
    return x * x + y


@pa.fuse
def computed(x, n):
    return x * (2 * n + 1) / pa.max(x), pa.astype(x, pa.int8) + n


def abs_of(x, t):
    return pa.abs(x * t)


class Things:
    """Operands, which all calls leave as they are but for elements."""

    def __init__(self, device):
        self.device = device
        self.a, self.b = (pa.asarray(np.arange(24.0), device=device) for _ in range(2))
        self.m = self.a.reshape(4, 6)
        self.i = pa.arange(6, device=device)
        self.mask = self.a > 11
        self.fixed = pa.ones(4, device=device)
        self.fixed.flags.writeable = False
        self.deep = pa.zeros((1,) * 7, device=device)
        self.host = np.arange(24.0)

    def held(self):
        arrays = (self.a, self.b, self.m, self.i, self.mask, self.fixed, self.deep)
        shared = (self.a.dtype, self.a.device, pa.ndarray, pa.BufferView, self.host, None, NotImplemented, (), 0.5)
        return (*arrays, *(x._buffer for x in arrays), *shared)


def attributes(t):
    for name in ATTRIBUTES.split():
        for x in (t.a, t.m, t.deep, t.a[2:4]):
            yield name, lambda x=x, name=name: getattr(x, name)
    yield "mT", lambda: t.m.mT
    yield "no attribute", lambda: t.a.shap
    yield "assigned", lambda: setattr(t.a, "shape", (3,))
    yield "deleted", lambda: delattr(t.a, "size")
    yield "len", lambda: (len(t.m), len(pa.ones(())))
    yield "iteration", lambda: list(t.m)
    yield "hash", lambda: hash(t.a)
    yield "constructor", lambda: pa.ndarray(3)
    yield "repr", lambda: repr(t.m)


def indices(t):
    keys = (
        2, -1, 99, slice(1, 3), slice(None, None, -2), slice(1, 2, 0), slice("a"), ..., None, (..., ...), (1, 2),
        slice(Raises()), (1, 2, 3), (1, slice(2)), (slice(2), None, 1), 1.5, "a", True, np.int64(1), np.int8(-1),
        Raises(), (Raises(), 1),
        10**30, [0, 1], [0, 99], [True, False], [], t.i[:2], (t.i[:2], t.i[:2]), (0, t.i[:3]), t.mask,
        t.m > 3, t.i * 1.0, np.arange(2), t.host, (t.i[:2], t.i[:3]),
    )  # fmt: skip
    for number, key in enumerate(keys):
        for x in (t.a, t.m, t.deep):
            yield f"get {number}", lambda x=x, key=key: x[key]
            for value in (1, t.b[:2], "text", Raises()):
                yield f"set {number}", lambda x=x, key=key, value=value: operator.setitem(x, key, value)
    yield "read-only", lambda: operator.setitem(t.fixed, 0, 1)
    yield "read-only mask", lambda: operator.setitem(t.fixed, [0, 1], 1)
    yield "deleted", lambda: operator.delitem(t.a, 0)
    yield "nonzero", lambda: (pa.nonzero(t.mask), pa.nonzero(t.m), pa.nonzero(pa.ones(())))


def operators(t):
    binary = (
        operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
        operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift, operator.lt, operator.le,
        operator.gt, operator.ge, operator.eq, operator.ne, operator.matmul, divmod,
    )  # fmt: skip
    others = (t.b, t.a[:3], t.i, 3, 2.5, "text", t.host, Raises(), 1 << 70)
    for f in binary:
        for number, y in enumerate(others):
            yield f"{f.__name__} {number}", lambda f=f, y=y: f(t.a, y)
            yield f"reflected {f.__name__} {number}", lambda f=f, y=y: f(y, t.a)
    for name in IN_PLACE.split():
        f = getattr(operator, name)
        for number, y in enumerate(others):
            yield f"{name} {number}", lambda f=f, y=y: f(t.b, y)
        yield f"{name}, read-only", lambda f=f: f(t.fixed, 1)
    for f in (operator.neg, operator.pos, operator.abs, operator.invert):
        yield f.__name__, lambda f=f: f(t.a)
        yield f"{f.__name__} of integers", lambda f=f: f(t.i)
    yield "pow of three", lambda: pow(t.a, 2, 3)
    rows = pa.broadcast_to(t.a, (1 << 40, 24))
    yield "more than fits", lambda: rows + rows


def methods(t):
    for f in (bool, int, float, complex, operator.index, len, list, str, bytes, copy.copy, copy.deepcopy, memoryview):
        for x in (t.a, t.a[3], t.m[:1, 1:2], t.i[2]):
            yield f.__name__, lambda f=f, x=x: f(x)
    for name in METHODS.split():
        for x in (t.a, t.m, t.a[::2], t.deep, pa.ones(0)):
            yield name, lambda name=name, x=x: getattr(x, name)()
            yield f"{name}, wrong", lambda name=name, x=x: getattr(x, name)(Raises(), "a", nothing=1)
    yield "reshape", lambda: (t.a.reshape(4, 6), t.a.reshape((-1, 3)), t.m.T.reshape(24))
    yield "reshape, wrong", lambda: t.a.reshape(5, 5)
    yield "reshape, -1 twice", lambda: t.a.reshape(-1, -1)
    yield "transpose", lambda: (t.m.transpose(), t.m.transpose(1, 0), t.m.swapaxes(0, 1))
    yield "transpose, wrong", lambda: t.m.transpose(0, 0)
    yield "view", lambda: (t.a.view("int64"), t.a.view("int32"))
    yield "view, wrong", lambda: t.a[:3].view("complex128")
    yield "astype", lambda: (t.a.astype("float32"), t.a.astype("float64", copy=False))
    yield "astype, wrong", lambda: t.a.astype("nothing")
    yield "fill", lambda: t.b.fill(2)
    yield "fill, wrong", lambda: t.b.fill("a")
    yield "setflags", lambda: t.b[:].setflags(write=False)
    yield "setflags, wrong", lambda: pa.broadcast_to(t.a, (2, 24)).setflags(write=True)
    yield "subview", lambda: t.a.subview(2, 3)
    yield "subview, wrong", lambda: t.a.subview(22, 3)
    yield "marks", lambda: (t.m.mark_static(), t.m.assume(0, multiple_of=2), t.m.mark_static(0) + 1)
    yield "pickle", lambda: pickle.loads(pickle.dumps(t.m[1:, ::2]))


def functions(t):
    for dtype in (None, "float32", "nothing"):
        yield (
            "made",
            lambda dtype=dtype: (pa.zeros(3, dtype=dtype), pa.ones((2, 3), dtype=dtype), pa.empty(3, dtype=dtype)),
        )
        yield "full", lambda dtype=dtype: (pa.full(3, 7, dtype=dtype), pa.arange(3, dtype=dtype))
    for shape in (-1, (2, -1), 1.5, "a", Raises(), 1 << 62, (1 << 40, 1 << 40), (1,) * 70):
        yield "made, wrong", lambda shape=shape: pa.zeros(shape)
    for x in (
        1,
        [1, 2],
        [[1], [2, 3]],
        t.host,
        t.host[::-1],
        "a",
        Raises(),
        [Raises()],
        np.array(["a"]),
        bytearray(8),
        t.a,
    ):
        yield "asarray", lambda x=x: pa.asarray(x)
        yield "array on the device", lambda x=x: pa.array(x, device=t.device)
    yield "captured", lambda: (pa.concat([t.a, t.b]), pa.cumsum(t.a), pa.sort(t.m, axis=0), pa.take(t.a, t.i))
    yield "captured, wrong", lambda: pa.concat([t.a, t.m])
    yield "captured, index", lambda: pa.take(t.a, t.i + 99)
    yield "keyword", lambda: pa.concat([t.a], nothing=1)
    yield "out", lambda: (pa.add(t.a, 1, out=t.b), pa.clip(t.a, 1, 2, out=t.b), pa.sum(t.m, axis=0, out=t.b[:6]))
    yield "out, wrong", lambda: pa.add(t.a, 1, out=t.b[:3])
    yield "out, no array", lambda: pa.add(t.a, 1, out=[1])
    yield "where", lambda: (pa.where(t.mask, t.a, 0.0), pa.sum(t.a, where=t.mask), pa.any(t.mask))
    yield "products", lambda: (t.m @ t.m.T, t.m @ t.a[:6], t.a @ t.b, pa.matmul(t.m, t.m.T))
    yield "products, wrong", lambda: t.m @ t.m
    yield "kernel", lambda: (scaled(t.b[:4], t.a[4:8], 2.0), scaled(t.b, t.a, 3), scaled(t.b, t.a, np.float32(2)))
    yield "kernel, other arrays", lambda: scaled(t.host, t.host, 0.5)
    for arguments in ((t.a,), (t.a, t.b, "a"), (t.a, None, 1), (t.fixed, t.a, 1), (Raises(), t.a, 1)):
        yield "kernel, wrong", lambda arguments=arguments: scaled(*arguments)
    yield "kernel, types", lambda: typed(t.b, 5)
    yield "kernel, range", lambda: typed(t.b, 300)
    yield "kernel, dtype", lambda: typed(t.i, 1)
    yield "fused", lambda: (polynomial(t.a, t.b), polynomial(t.m, 2.0))
    yield "fused, wrong", lambda: polynomial(t.a, t.m)
    yield "fused, computed numbers", lambda: (computed(t.a, 3), computed(t.a, n=-5), len(pa.fuse(abs_of)(t.b, 2.0)))
    yield "fused, numbers that don't fit", lambda: computed(t.a, 300)


def exchange(t):
    yield "NumPy", lambda: (np.asarray(t.a), pa.asnumpy(t.m), t.a.__array_interface__ if t.device == "cpu" else None)
    yield "NumPy, dtype", lambda: np.asarray(t.a, dtype="float32")
    yield "DLPack", lambda: (np.from_dlpack(t.a), pa.from_dlpack(t.host), pa.from_dlpack(t.a))
    yield "DLPack, unused", lambda: (t.a.__dlpack__(), t.a.__dlpack__(max_version=(1, 0)), t.a.__dlpack_device__())
    yield "DLPack, wrong", lambda: t.a.__dlpack__(dl_device=(99, 0))
    yield "DLPack, no array", lambda: pa.from_dlpack(3)
    yield "DLPack, raises", lambda: pa.from_dlpack(Raises())
    yield "buffers", lambda: (memoryview(t.a), bytes(memoryview(t.m.T)), np.frombuffer(t.a)) if t.device == "cpu" else 0
    yield "ufuncs of NumPy's", lambda: (np.add(t.a, t.b), np.sum(t.m))
    yield "mixed", lambda: (t.a + t.host, t.host + t.a, pa.add(t.host, t.host), pa.concat([t.host, t.host]))


def memory(t):
    """Of the core's own types, which only the library uses."""
    yield "buffers", lambda: Buffer.allocate(t.a.device, 64)
    for size in (-1, "a", 1 << 62, 1.5, None):
        yield "buffers, wrong", lambda size=size: Buffer.allocate(t.a.device, size)
    yield "wrapped", lambda: Buffer.wrap(t.a.device, t.a._ptr, 8, t.host)
    yield "wrapped, wrong", lambda: Buffer.wrap(t.a.device, "a", 8, None)
    yield "lists", lambda: _core.FreeList(None, 64)
    yield "lists, empty", lambda: _core.FreeList(None, 64).pop()
    yield (
        "lists, filled",
        lambda: (lambda x: (x.append(1 << 20), x.append(2), x.pop(), x.pop(), len(x)))(_core.FreeList(0, 8)),
    )
    yield "lists, wrong", lambda: _core.FreeList("a", "b")
    yield "lists by sizes", lambda: _core.FreeLists(None, lambda size: _core.FreeList(None, 64))[100]
    yield "lists by sizes, wrong", lambda: _core.FreeLists(None, lambda size: 1)[100]
    yield "views", lambda: t.a._view(8, (2, 2), (16, 8))
    for arguments in (
        (),
        (0, [2], (8,)),
        (0, (2,), (8, 8)),
        ("a", (2,), (8,)),
        (0, (2,), (8,), None, 3),
        (0, (1,) * 70, (8,) * 70),
    ):
        yield "views, wrong", lambda arguments=arguments: t.a._view(*arguments)
    for arguments in ((), (1, 2), (t.a._buffer, [2], (8,), 2, 3, 4)):
        yield "arrays, wrong", lambda arguments=arguments: _core.unchecked_array(*arguments)
    yield "element", lambda: _core.load_element(t.a)
    yield "element, wrong", lambda: _core.load_element(3)
    yield "maps", lambda: _core.Map(len, len)
    yield "maps, wrong", lambda: _core.Map(len, len).run(None, t.a)
    yield "maps that raise", lambda: _core.Map(Raises()._raise, len).run(None, t.a)
    yield "maps of nothing", lambda: _core.Map(lambda operands, out: None, len).run(None, t.a)
    yield "maps, compiled wrong", lambda: _core.Map(lambda operands, out: (12, 12), lambda *args: (1, 2)).run(None, t.a)
    yield "maps, assigned", lambda: _core.Map(len, len).assign(t.a)


def attempt(call):
    try:
        call()
    except SystemError:  # C returned a result with an exception, or neither
        raise
    except Exception:
        pass


# Names that types were asked for stay in a cache of the interpreter's.
forget_names = getattr(sys, "_clear_internal_caches", getattr(sys, "_clear_type_cache", None))


def measure():
    forget_names()
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def growth(calls, held):
    """(what, how much) is left of many calls."""
    size, counts = measure(), [sys.getrefcount(x) for x in held]
    for _ in range(TIMES):
        for call in calls:
            attempt(call)
    size_after, counts_after = measure(), [sys.getrefcount(x) for x in held]
    yield "words", (size_after - size) // 32  # some are of this test
    for x, count, after in zip(held, counts, counts_after, strict=True):
        yield f"references to {type(x).__name__}", abs(after - count)


def leaks(name, calls, held):
    """What grows each time."""
    for call in calls * 6:  # plans are made
        attempt(call)
    found = set()
    for k in range(ROUNDS):
        grown = {what for what, count in growth(calls, held) if count > FEW}
        found = found & grown if k else grown
        if not found:
            break
    return [f"{name}: {what}" for what in found]


@pytest.mark.slow
@pytest.mark.parametrize("group", [attributes, indices, operators, methods, functions, exchange, memory])
def test_calls_leave_nothing(device, group):
    """All together, and where that leaves something, one by one."""
    t = Things(device)
    calls = list(group(t))
    gc.freeze()
    tracemalloc.start()
    try:
        found = leaks("all", [call for _, call in calls], t.held())
        if found:
            found += [line for name, call in calls for line in leaks(name, [call], t.held())]
    finally:
        tracemalloc.stop()
    assert not found, "\n".join(found)
