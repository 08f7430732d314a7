"""Arrays of other libraries as C reads them: as the general way does, or not at all."""

import contextlib
import itertools
import sys
import threading

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples, numpy_views

import pyarray as pa
from pyarray import dtypes, shapes
from pyarray._core import CAPTURED_AT, clear_plans, foreign_array, from_capsule
from pyarray.array import WATCHED, type_key
from pyarray.array_convert import array_on_numpy
from pyarray.driver.base import get_device
from tests.interop.dlpack_capsules import Producer, exchanging

CPU = get_device("cpu")
FLOATS = np.arange(6, dtype=np.float32)


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


def facts(a):
    """All that an array is, but for the strides of axes that are never walked."""
    strides = tuple(s if n > 1 and a._size else 0 for n, s in zip(a._shape, a._strides, strict=True))
    return a._ptr, a._key, a._shape, strides, a._size, a._buffer.ptr, a._buffer.nbytes, a._buffer.device


# NumPy


@given(numpy_views(), st.booleans())
def test_numpy_arrays_are_read_as_the_general_way_reads_them(x, readonly):
    if readonly:
        x.flags.writeable = False
    a = foreign_array(x)
    assert facts(a) == facts(array_on_numpy(x, dtypes.asdtype(x.dtype), CPU))
    assert a._buffer.owner is x
    assert pa.asarray(x)._ptr == a._ptr
    np.testing.assert_array_equal(pa.asnumpy(a), x)


@pytest.mark.parametrize("letter", "?bBhHiIlLqQefdFD")
def test_each_of_numpys_numbers_of_a_dtype(letter):
    x = np.ones((2, 3), letter)
    assert facts(foreign_array(x)) == facts(array_on_numpy(x, dtypes.asdtype(x.dtype), CPU))


RECORDS = np.zeros(4, np.dtype([("a", "f4"), ("b", "i2")]))
LEFT = {
    "other byte order": np.arange(4).astype(">i8"),
    "unaligned": np.frombuffer(b"x" * 17, np.float64, offset=1),
    "field of a packed record": RECORDS["a"],
    "objects": np.array([1, None]),
    "records": RECORDS,
    "text": np.array(["a"]),
    "dates": np.zeros(2, "M8[s]"),
    "durations": np.zeros(2, "m8[s]"),
    "long doubles": np.zeros(2, np.longdouble),
    "complex long doubles": np.zeros(2, np.clongdouble),
    "a dtype of ml_dtypes": np.zeros(2, ml_dtypes.float8_e5m2fnuz),
    "mask": np.ma.masked_array([1.0, 2.0], [True, False]),
    "matrix": np.ones((2, 2)).view(np.matrix),
    "subclass": np.ones(3).view(np.recarray),
    "NumPy's number": np.float64(2),
    "list": [1.0],
    "number": 3,
    "nothing": None,
    "class": np.ndarray,
    "own": pa.ones(3),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_is_left_to_the_general_way(name):
    assert foreign_array(LEFT[name]) is None


def test_strides_in_bytes_and_views_that_warn():
    field = np.zeros(4, np.dtype([("a", "c16"), ("b", "f8")]))["a"]  # aligned, and no whole number of elements apart
    assert foreign_array(field)._strides == (24,)
    for x in np.broadcast_arrays(np.ones(3), np.ones((2, 1))):
        assert not foreign_array(x).flags.writeable
        assert not pa.asarray(x).flags.writeable


def test_more_elements_than_can_be_counted():
    x = np.lib.stride_tricks.as_strided(np.zeros(1), (1 << 40, 1 << 19), (0, 0))
    a = foreign_array(x)
    assert (a.size, a._buffer.nbytes, a.flags.writeable) == (1 << 59, 8, False)


# tensors


def tensor_layouts(t):
    """Tensors of other layouts on the memory of a 3-D one."""
    return {
        "whole": t,
        "transposed": t.mT,
        "sliced": t[:, 1:, ::2],
        "0-d": t[0, 0, 0],
        "empty": t[:0],
        "of one": t[:1, :1, :1],
        "expanded": t[:1].expand(4, *t.shape[1:]),
        "one of two axes expanded": t[0, :1].expand(3, t.shape[2]),
    }


def test_tensors_are_read_as_they_are(torch):
    for row in dtypes.ALL:
        if not hasattr(torch, row.name):
            continue
        base = torch.arange(24).reshape(2, 3, 4).to(getattr(torch, row.name))
        for name, t in tensor_layouts(base).items():
            a, strides = foreign_array(t), tuple(s * row.itemsize for s in t.stride())
            strided = not shapes.is_contiguous(tuple(t.shape), strides, row.itemsize)
            writeable = not (strided and shapes.repeats(tuple(t.shape), strides))
            key = type_key(row, t.ndim, strided, writeable, CPU) | (WATCHED if writeable else 0)
            assert (a._ptr, a._key, a._shape) == (t.data_ptr(), key, tuple(t.shape)), name
            if strided:
                assert [s for n, s in zip(a._shape, a._strides, strict=True) if n > 1] == [
                    s for n, s in zip(t.shape, strides, strict=True) if n > 1
                ]
            assert a.tolist() == t.tolist()
            assert (a._buffer.before_write is not None) == writeable


def test_written_tensors_are_counted(torch):
    t = torch.ones(3)
    a = foreign_array(t)
    assert t._version == 0
    a[1:] = 5
    assert (t._version, t.tolist()) == (1, [1, 5, 5])
    with torch.inference_mode():
        t = torch.ones(3)
    foreign_array(t)[0] = 4
    assert t[0] == 4


def test_tensors_that_are_left(torch):
    class Own(torch.Tensor):
        pass

    x = torch.tensor([1 + 2j, 3 - 1j])
    leaf = torch.nn.Parameter(torch.ones(3))
    left = {
        "subclass": torch.ones(3).as_subclass(Own),
        "requires grad": torch.ones(3, requires_grad=True),
        "parameter": leaf,
        "conjugate": x.conj(),
        "negative": x.conj().imag,
        "negative integers": torch._neg_view(torch.arange(3)),
        "sparse": torch.eye(3).to_sparse(),
        "rows": torch.eye(3).to_sparse_csr(),
        "mkldnn": torch.ones(3).to_mkldnn(),
        "nested": torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
        "quantized": torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8),
        "meta": torch.ones(3, device="meta"),
        "zero": torch._efficientzerotensor(3),
        "functional": torch._to_functional_tensor(torch.ones(3)),
        "half complex": torch.zeros(2, dtype=torch.complex32),
        "float8": torch.zeros(2, dtype=torch.float8_e5m2fnuz),
    }
    for name, t in left.items():
        assert foreign_array(t) is None, name
    with torch.no_grad():
        assert foreign_array(leaf)._ptr == leaf.data_ptr()
    assert foreign_array(x.conj().resolve_conj()) is not None


def test_wrapped_tensors_are_left(torch):
    found = []

    def take(x):
        found.append(foreign_array(x))
        return x.sum()

    torch.vmap(take)(torch.ones(2, 3))
    torch.func.grad(take)(torch.ones(3))
    torch.func.functionalize(take)(torch.ones(3))
    forward = torch.autograd.forward_ad
    with forward.dual_level():
        take(forward.make_dual(torch.ones(3), torch.ones(3)))
        take(torch.ones(3))  # the general way asks whether it is one
    assert found == [None] * 5
    assert foreign_array(torch.ones(3)) is not None


def test_interrupts_go_on_and_errors_do_not(torch):
    class Raises(torch.overrides.TorchFunctionMode):
        error = None

        def __torch_function__(self, function, types, args=(), kwargs=None):
            if self.error is not None and "is_neg" in str(function):
                raise self.error
            return function(*args, **(kwargs or {}))

    t = torch.ones(3)
    with Raises() as mode:
        mode.error = ValueError("is an error")
        assert foreign_array(t) is None
        mode.error = KeyboardInterrupt
        with pytest.raises(KeyboardInterrupt):
            foreign_array(t)
        mode.error = None
        assert foreign_array(t) is not None


# DLPack's table of C functions


def test_a_type_with_a_table():
    kind = exchanging()
    x = kind(FLOATS.tobytes(), (2, 2), (3, 1), byte_offset=4)
    a = foreign_array(x)
    assert (a.tolist(), a._strides, a.flags.writeable, len(kind.table_calls)) == ([[1, 2], [4, 5]], (12, 4), True, 1)
    assert x.deleted == 0
    del a
    assert x.deleted == 1
    assert pa.from_dlpack(x).tolist() == [[1, 2], [4, 5]]
    assert (pa.ones((2, 2)) + x).tolist() == [[2, 3], [5, 6]]
    assert len(kind.table_calls) == 3


def test_flags_of_a_table():
    kind = exchanging()
    assert not foreign_array(kind(FLOATS.tobytes(), (6,), flags=1)).flags.writeable
    copied = kind(FLOATS.tobytes(), (6,), flags=2)
    assert foreign_array(copied) is None
    assert copied.deleted == 1
    assert pa.from_dlpack(copied).tolist() == FLOATS.tolist()  # from its capsule


@pytest.mark.parametrize(
    "fields",
    [
        {"major": 2},
        {"lanes": 4},
        {"code": 99},
        {"bits": 4},
        {"ndim": -1},
        {"ndim": 65},
        {"device": (8, 0)},
        {"null": True},
        {"byte_offset": 1},
        {"shape": (-1,)},
        {"shape": (1 << 62, 2), "strides": (0, 0)},
        {"shape": (2, 2), "strides": (1 << 62, 1)},
    ],
)
def test_what_a_table_gives_that_is_no_array(fields):
    x = exchanging()(FLOATS.tobytes() + bytes(8), **({"shape": (6,)} | fields))
    assert foreign_array(x) is None
    assert x.deleted == 1


def test_tables_that_are_not_used():
    kinds = {
        "new": exchanging(major=2),
        "fails": exchanging(managed_tensor_from=lambda x, out: -1),
        "subclass": type("Sub", (exchanging(),), {}),
        "no capsule": type("Odd", (Producer,), {"__dlpack_c_exchange_api__": 3}),
    }
    for name, kind in kinds.items():
        for _ in range(2):
            x = kind(FLOATS.tobytes(), (6,))
            assert foreign_array(x) is None, name
            assert pa.from_dlpack(x).tolist() == FLOATS.tolist(), name
    old = exchanging()
    kind = exchanging(major=2, older=old.table)
    assert foreign_array(kind(FLOATS.tobytes(), (6,))).tolist() == FLOATS.tolist()
    assert (len(kind.table_calls), len(old.table_calls)) == (0, 1)


def test_streams_decide_on_other_devices():
    """Memory of a device is read where both are in one stream: else one has to wait for the other."""
    ours = get_device("null").driver.current_stream()
    for stream in (ours, ours + 8):
        x = exchanging(stream)(FLOATS.tobytes(), (6,), device=(12, 0))
        a = foreign_array(x)
        assert (a is not None) == (stream == ours)
        assert a is None or a.device == get_device("null")


# owners that are told of writes


def assigned(key):
    def assign(out, x, y):
        out[key] = x[0, 0].item() if isinstance(key, tuple) else x

    return assign


def masked(out, x, y):
    out[y > 2] = 2.5


def indexed(out, x, y):
    out[pa.asarray([2, 0], device=out.device)] = y[:2]


def added(out, x, y):
    out += x


# A function that writes, the same of NumPy's arrays, and the shape of what is written.
WRITES = {
    "matmul": (lambda out, x, y: pa.matmul(x, y, out=out), lambda out, x, y: x @ y, (4, 4)),
    "sum": (lambda out, x, y: pa.sum(x, axis=0, out=out), lambda out, x, y: x.sum(0), (4,)),
    "take": (
        lambda out, x, y: pa.take(x, pa.asarray([3, 1], device=x.device), axis=0, out=out),
        lambda out, x, y: x[[3, 1]],
        (2, 4),
    ),
    "add": (lambda out, x, y: pa.add(x, y, out=out), lambda out, x, y: x + y, (4, 4)),
    "clip": (lambda out, x, y: pa.clip(x, 1, 5, out=out), lambda out, x, y: x.clip(1, 5), (4, 4)),
    "in place": (added, lambda out, x, y: out + x, (4, 4)),
    "overlapping": (
        lambda out, x, y: added(out[1:], out[:-1], y),
        lambda out, x, y: np.concatenate((out[:1], out[1:] + out[:-1])),
        (4, 4),
    ),
    "assigned": (assigned(...), lambda out, x, y: x, (4, 4)),
    "element": (assigned((1, 2)), lambda out, x, y: np.where(np.arange(16).reshape(4, 4) == 6, x[0, 0], out), (4, 4)),
    "mask": (masked, lambda out, x, y: np.where(y > 2, np.float32(2.5), out), (4, 4)),
    "rows": (indexed, lambda out, x, y: np.stack((y[1], out[1], y[0], out[3])), (4, 4)),
}


def operands_of(call, device):
    """Other numbers in each call."""
    x = (np.arange(16, dtype=np.float32) + call).reshape(4, 4) % 7
    return (x, x.T.copy()), [pa.asarray(a, device=device) for a in (x, x.T.copy())]


def watched(shape, device, hook):
    """An array of zeros, and one on its memory whose writes `hook` is told of."""
    memory = pa.zeros(shape, dtype="float32", device=device)
    return memory, from_capsule(memory.__dlpack__(max_version=(1, 0)), hook)


@pytest.mark.all_variants
@pytest.mark.parametrize("strided", [False, True], ids=["whole", "strided"])
@pytest.mark.parametrize("name", WRITES)
def test_each_write_raises_the_version(torch, name, strided):
    write, wanted, shape = WRITES[name]
    base = torch.zeros((*shape[:-1], 2 * shape[-1]))
    t = base[..., ::2] if strided else torch.zeros(shape)
    out = foreign_array(t)
    for call in range(CAPTURED_AT + 3):
        host, operands = operands_of(call, "cpu")
        expected, version = wanted(t.numpy().copy(), *host), t._version
        write(out, *operands)
        assert t._version > version
        np.testing.assert_array_equal(t.numpy(), expected)
    assert not base[..., 1::2].any()


@pytest.mark.parametrize("name", WRITES)
def test_autograd_notices_writes(torch, name):
    write, _, shape = WRITES[name]
    leaf, t = torch.ones(shape, requires_grad=True), torch.ones(shape)
    out = foreign_array(t)
    for call in range(CAPTURED_AT + 2):
        loss = (leaf * t).sum()
        write(out, *operands_of(call, "cpu")[1])
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()


def test_writes_that_are_told_of_have_plans(device):
    told = []
    (x, y), out = operands_of(0, device)[1], watched((4, 4), device, lambda: told.append(1))[1]
    for function in (pa.matmul, pa.add):
        for _ in range(CAPTURED_AT):
            function(x, y, out=out)
        assert function.explain_miss(x, y, out=out) is None
        before, count = function.cache_info()["hits"], len(told)
        function(x, y, out=out)
        assert function.cache_info()["hits"] == before + 1
        assert len(told) == count + 1


@pytest.mark.all_variants
@pytest.mark.parametrize("name", WRITES)
def test_nothing_is_written_where_the_owner_raises(device, name):
    write, wanted, shape = WRITES[name]
    refuses = []

    def hook():
        if refuses:
            raise LookupError("the owner says no")

    memory, out = watched(shape, device, hook)
    for call in range(CAPTURED_AT + 3):
        host, operands = operands_of(call, device)
        before = pa.asnumpy(memory).copy()
        refuses.append(1)
        with pytest.raises(LookupError, match="the owner says no"):
            write(out, *operands)
        np.testing.assert_array_equal(pa.asnumpy(memory), before)
        refuses.clear()
        write(out, *operands)
        np.testing.assert_array_equal(pa.asnumpy(memory), wanted(before, *host))


def test_an_owner_is_not_told_where_a_check_fails():
    told = []
    x, out = operands_of(0, "cpu")[1][0], watched((2, 4), "cpu", lambda: told.append(1))[1]
    for index in ([0, 1], [3, 3], [0, 4]) * (CAPTURED_AT + 2):
        before = len(told)
        if 4 in index:
            with pytest.raises(IndexError):
                pa.take(x, pa.asarray(index), axis=0, out=out)
        else:
            pa.take(x, pa.asarray(index), axis=0, out=out)
        assert (len(told) > before) == (4 not in index)


@pytest.mark.parametrize("name", WRITES)
def test_an_owner_that_takes_itself_away(device, name):
    """With all else that it can reach."""
    write, wanted, shape = WRITES[name]
    for call in range(CAPTURED_AT + 3):
        told, given = [], []

        def hook(told=told, given=given):
            told.append(1)
            given[0]._buffer.before_write = None
            given.clear()
            clear_plans()

        host, operands = operands_of(call, device)
        memory, out = watched(shape, device, hook)
        given.append(out)
        del hook
        for _ in range(2):
            before = pa.asnumpy(memory).copy()
            write(out, *operands)
            np.testing.assert_array_equal(pa.asnumpy(memory), wanted(before, *host))
            assert len(told) == 1


@pytest.mark.parametrize("name", WRITES)
def test_an_owner_that_comes_back(device, name):
    """The same write into other arrays, of other layouts too, while the owner is told."""
    write, wanted, shape = WRITES[name]
    told, operands = [], []
    others = [pa.zeros((*shape[:-1], step * shape[-1]), dtype="float32", device=device)[..., ::step] for step in (1, 2)]
    if len(shape) == 2:  # more layouts than the table of a Map has room for
        others.append(pa.zeros((2 * shape[0], shape[1]), dtype="float32", device=device)[::2])
        others.append(pa.zeros(shape[::-1], dtype="float32", device=device).T)

    def hook():
        told.append(1)
        if operands:
            mine, inner = list(operands), watched(shape, device, lambda: None)[1]
            operands.clear()  # so that it comes back once
            for other in (*others, inner, out):
                write(other, *mine)

    memory, out = watched(shape, device, hook)
    for call in range(CAPTURED_AT + 3):
        host, operands[:] = operands_of(call, device)
        arguments, before = list(operands), pa.asnumpy(memory).copy()
        write(out, *arguments)
        twice = wanted(wanted(before, *host), *host)
        np.testing.assert_array_equal(pa.asnumpy(memory), twice)
        assert len(told) >= 2 * (call + 1)


@pytest.mark.parametrize("name", ["matmul", "add", "in place", "assigned", "mask", "rows"])
def test_an_owner_that_gives_operands_other_memory(name):
    """They are refused it, or the old memory is read."""
    write, wanted, shape = WRITES[name]
    given = []

    def hook():
        for x in given:
            with contextlib.suppress(ValueError):
                x.resize((300, 300), refcheck=False)
        given[:] = [pa.full((4, 4), 9, dtype="float32") for _ in given * 20]  # in blocks that were given back

    memory, out = watched(shape, "cpu", hook)
    for call in range(CAPTURED_AT + 3):
        host, operands = operands_of(call, "cpu")
        before, given[:] = pa.asnumpy(memory).copy(), operands if call > CAPTURED_AT else []
        write(out, *operands)
        np.testing.assert_array_equal(pa.asnumpy(memory), wanted(before, *host))


def test_launches_of_an_owner_are_its_own(device):
    """A plan tells the owner, and so has none of its launches."""
    calls = itertools.count(1)
    count = pa.zeros(4, dtype="int32", device=device)

    def hook():
        pa.add(count, 1, out=count)

    memory, out = watched((4,), device, hook)
    for x in (pa.ones((4, 4), dtype="float32", device=device) * k for k in range(CAPTURED_AT + 4)):
        pa.sum(x, axis=0, out=out)
        assert count.tolist() == [next(calls)] * 4
        assert memory.tolist() == [4 * x[0, 0].item()] * 4


# lifetimes


def test_nothing_is_left_behind(torch):
    x, t = np.ones(3), torch.ones(3)
    producer = exchanging()(FLOATS.tobytes(), (6,))
    odd = np.arange(3).astype(">i8")
    own = pa.ones(3)
    for _ in range(2):
        before = [sys.getrefcount(y) for y in (x, t, producer, odd, own, own._buffer, None, np.ndarray, torch.Tensor)]
        for _ in range(100):
            for y in (x, t, producer, odd, [1]):
                foreign_array(y)
            own + x
            own += t
            pa.equal(own, x)
        after = [sys.getrefcount(y) for y in (x, t, producer, odd, own, own._buffer, None, np.ndarray, torch.Tensor)]
    assert [abs(a - b) < 50 for a, b in zip(after, before, strict=True)] == [True] * len(before)
    assert producer.deleted == 200


def test_threads_read_at_once(torch):
    x, t = np.arange(8.0), torch.arange(8.0)
    wrong = []

    def work(k):
        for n in range(300):
            a, b = foreign_array(x[n % 8 :]), foreign_array(t[n % 8 :])
            if (a._size, b._size, a._ptr) != (8 - n % 8, 8 - n % 8, x[n % 8 :].ctypes.data):
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# operands


@examples(40)  # most need a kernel of their own
@given(numpy_views(shape=(2, 3)), numpy_views(shape=(3,)), st.sampled_from(("add", "multiply", "less", "divide")))
def test_operands_of_numpy_give_what_arrays_of_them_give(x, y, name):
    function = getattr(pa, name)
    a, b = pa.asarray(x.copy()), pa.asarray(y.copy())

    def attempt(*operands):
        try:
            return function(*operands)
        except (TypeError, ValueError) as error:
            return str(error)

    for _ in range(2):  # cold and warm
        wanted = attempt(a, b)
        for found in (attempt(a, y), attempt(x, b)):
            if isinstance(wanted, str):
                assert found == wanted
                continue
            assert (found.dtype, found.shape, found.tobytes()) == (wanted.dtype, wanted.shape, wanted.tobytes())


def test_operands_that_share_memory_with_the_output():
    x = np.arange(8.0)
    a = pa.asarray(x)
    a[1:] += x[:-1]
    assert x.tolist() == [0, 1, 3, 5, 7, 9, 11, 13]
    a -= x[::-1]
    assert x.tolist() == [-13, -10, -6, -2, 2, 6, 10, 13]
    a[:] = x[::-1]
    assert x.tolist() == [13, 10, 6, 2, -2, -6, -10, -13]


def test_operands_on_other_devices(device):
    x = np.arange(3.0)
    a = pa.ones(3, device=device)
    for _ in range(2):
        assert ((a + x).tolist(), (a + x).device) == ([1, 2, 3], a.device)
        a += x
        a -= x
    assert a.tolist() == [1, 1, 1]


def test_operands_that_require_grad(torch):
    a = pa.ones(3, dtype="float32")
    leaf = torch.ones(3, requires_grad=True)
    for _ in range(2):
        with pytest.raises(BufferError, match="requires grad"):
            a + leaf
        with torch.no_grad():
            assert (a + leaf).tolist() == [2, 2, 2]
