"""Arrays of other libraries as C reads them: as the general way does, or not at all."""

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
from pyarray._core import foreign_array
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
    "a dtype of ml_dtypes": np.zeros(2, ml_dtypes.float8_e5m2),
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
        "float8": torch.zeros(2, dtype=torch.float8_e5m2),
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
