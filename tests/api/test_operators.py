"""Operators of arrays: every form, foreign operands, NumPy's arrays on either side."""

import math
import operator

import numpy as np
import pytest

import pyarray as pa

INTEGER = [
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and_", "or_", "xor", "lshift", "rshift",
]  # fmt: skip
FLOATING = INTEGER[:7]
COMPARISONS = ["eq", "ne", "lt", "le", "gt", "ge"]


class Foreign:
    """Answers every reflected operator itself."""

    def _answer(self, other):
        return "foreign"

    __radd__ = __rsub__ = __rmul__ = __rmatmul__ = __rpow__ = __rand__ = __rtruediv__ = _answer
    __lt__ = __gt__ = __le__ = __ge__ = __eq__ = __ne__ = _answer
    __hash__ = None


def same(ours, theirs):
    assert type(ours) is pa.ndarray
    np.testing.assert_array_equal(pa.asnumpy(ours), theirs)


@pytest.mark.parametrize("name", INTEGER)
def test_integers(name):
    do, x, y = getattr(operator, name), np.array([1, 2, 7, 12]), np.array([1, 3, 2, 2])
    a, b = pa.asarray(x), pa.asarray(y)
    for _ in range(2):
        same(do(a, b), do(x, y))
        same(do(a, 2), do(x, 2))
        same(do(2, a), do(2, x))
        same(do(x, b), do(x, y))
        same(do(a, y), do(x, y))
        same(do(np.int64(3), b), do(np.int64(3), y))
        same(do(a, np.int64(3)), do(x, np.int64(3)))


@pytest.mark.parametrize("name", FLOATING)
def test_floats(name):
    do = getattr(operator, name)
    x, y = np.array([1.5, 2.0, 0.25], np.float32), np.array([0.5, 3.0, 1.25], np.float32)
    a, b = pa.asarray(x), pa.asarray(y)
    for ours, theirs in ((do(a, b), do(x, y)), (do(a, 2.5), do(x, 2.5)), (do(2.5, a), do(2.5, x))):
        assert ours.dtype == pa.float32
        np.testing.assert_allclose(pa.asnumpy(ours), theirs, rtol=1e-6)
    assert do(a, np.float64(2)).dtype == pa.float64
    assert do(np.float64(2), a).dtype == pa.float64


@pytest.mark.parametrize("name", [n for n in INTEGER if n != "truediv"])
def test_in_place(name):
    do = getattr(operator, "i" + name.rstrip("_"))
    x = np.array([5, 2, 7, 12])
    a = pa.array(x)
    memory = a
    for other in (np.array([1, 3, 2, 2]), 2, np.array([2])):
        x = do(x, other)
        a = do(a, pa.asarray(other) if isinstance(other, np.ndarray) else other)
        assert a is memory
        same(a[:2], x[:2]) if type(a[:2]) is pa.ndarray else np.testing.assert_array_equal(pa.asnumpy(a), x)


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons(name):
    do, x = getattr(operator, name), np.array([1.0, np.nan, -3.0, np.inf])
    a = pa.asarray(x)
    for other in (x, 1.0, 1, True, np.float32(1)):
        same(do(a, pa.asarray(other) if isinstance(other, np.ndarray) else other), do(x, other))
        same(do(other, a), do(other, x))


def test_unary():
    x = np.array([-1, 0, 5], np.int16)
    a = pa.asarray(x)
    same(-a, -x)
    same(+a, +x)
    same(abs(a), abs(x))
    same(~a, ~x)


def test_matmul():
    x = np.arange(6.0).reshape(2, 3)
    a = pa.asarray(x)
    same(a @ a.T, x @ x.T)
    same(x @ a.T, x @ x.T)
    same(a @ x.T, x @ x.T)
    b = pa.asarray(np.eye(2) * 2)
    kept = b
    b @= b
    assert b is kept
    same(b, np.eye(2) * 4)
    for refused in (lambda: a @ "x", lambda: a @ None, lambda: a @ Foreign.__new__):
        with pytest.raises(TypeError):
            refused()
    with pytest.raises(ValueError, match="0-d"):
        a @ 2


def test_foreign_operands_are_asked():
    a, other = pa.ones(3), Foreign()
    for do in (
        operator.add,
        operator.sub,
        operator.mul,
        operator.matmul,
        operator.pow,
        operator.lt,
        operator.eq,
    ):
        assert do(a, other) == "foreign"
    held = a
    held += other
    assert held == "foreign"
    assert a.__add__("text") is NotImplemented
    assert a.__iadd__("text") is NotImplemented
    for refused in (lambda: a + "x", lambda: None - a, lambda: a < "x", lambda: {} + a, lambda: a ** "x"):
        with pytest.raises(TypeError):
            refused()
    assert (a == "x") is False
    assert (a != None) is True  # noqa: E711


def test_numpy_on_the_left():
    x = np.arange(3.0)
    a = pa.asarray(x)
    assert type(x + a) is pa.ndarray
    assert type(x < a) is pa.ndarray
    assert type(np.float64(1) + a) is pa.ndarray
    y = np.zeros(3)
    kept = y
    y += a
    assert y is kept
    assert isinstance(y, np.ndarray)
    np.testing.assert_array_equal(y, x)


def test_truth_of_comparisons():
    a = pa.asarray([1, 2, 3])
    with pytest.raises(ValueError, match="ambiguous"):
        bool(1 < a < 3)
    assert ((a > 1) & (a < 3)).tolist() == [False, True, False]
    assert bool(pa.asarray(2) > 1)
    assert 2 in a
    assert 5 not in a


def test_no_hash():
    with pytest.raises(TypeError, match="unhashable"):
        hash(pa.ones(2))


def test_views_are_operands():
    a = pa.asarray(np.arange(8, dtype=np.float32))
    run = a[2:6]
    assert type(run) is pa.BufferView
    for _ in range(2):
        assert (run + run).tolist() == [4, 6, 8, 10]
        assert type(run + 1) is pa.ndarray
    run += 1
    assert a.tolist() == [0, 1, 3, 4, 5, 6, 6, 7]


def test_divmod():
    x = np.array([7, -7, 5])
    a = pa.asarray(x)
    for ours, theirs in (
        (divmod(a, 2), divmod(x, 2)),
        (divmod(7, a), divmod(7, x)),
        (divmod(a, a), divmod(x, x)),
        (divmod(x, a), divmod(x, x)),
    ):
        for got, want in zip(ours, theirs, strict=True):
            same(got, want)
    with pytest.raises(TypeError, match="divmod"):
        divmod(a, "x")


def test_rounding_to_python():
    x = pa.asarray([2.567, 1.234])
    same(round(x, 1), np.array([2.6, 1.2]))
    same(round(x), np.array([3.0, 1.0]))
    mean = pa.mean(x)
    same(round(mean, 2), np.float64(1.9))
    assert (round(mean), math.trunc(-mean), math.floor(mean), math.ceil(mean)) == (2, -1, 1, 2)
    assert type(round(mean)) is int
    big = pa.asarray(2**62 + 1)
    assert round(big) == math.trunc(big) == math.floor(big) == math.ceil(big) == 2**62 + 1
    with pytest.raises(TypeError, match=r"math\.floor\(\) takes a 0-d array, .* pyarray\.floor\(a\) takes"):
        math.floor(x)
    with pytest.raises(OverflowError):
        math.ceil(pa.asarray(np.inf))


def test_parts_are_assigned():
    c = pa.asarray([1j, 2])
    c.real, c.imag = 1, [5, 6]
    assert c.tolist() == [1 + 5j, 1 + 6j]
    a = pa.ones(2)
    a.real = 3
    assert a.tolist() == [3, 3]
    with pytest.raises(TypeError, match="float64 has no imaginary part to set; cast it first"):
        a.imag = 1


@pytest.mark.parametrize("name", ["shape", "dtype", "strides"])
def test_what_is_not_assigned_says_what_to_write(name):
    advice = {"shape": "a.reshape", "dtype": "a.view", "strides": "an index, a transpose"}[name]
    with pytest.raises(AttributeError, match=f"{name} of an array can't be assigned; .*{advice}"):
        setattr(pa.ones(4), name, (2, 2))


def test_attributes_that_are_absent():
    a = pa.ones((2, 2))
    for name, message in (
        ("cpu", r"'ndarray' object has no attribute 'cpu': write a.to_device\('cpu'\)$"),
        ("cuda", r"write a.to_device\('cuda:0'\)$"),
        ("to", r"a.to_device\(device\) moves, a.astype\(dtype\) converts$"),
        ("numpy", r"write pyarray.asnumpy\(a\), or a.get\(\) for a copy$"),
        ("nope", "^'ndarray' object has no attribute 'nope'$"),
        ("__nope__", "^'ndarray' object has no attribute '__nope__'$"),
        ("__cuda_array_interface__", "it is for arrays of NumPy's dtypes on cuda devices"),
    ):
        for x in (a, a[0]):
            assert not hasattr(x, name)
            with pytest.raises(AttributeError, match=message.replace("'ndarray'", f"'{type(x).__name__}'")):
                getattr(x, name)
    with pytest.raises(TypeError, match=r"'.2f' formats one number, and the array has shape \(2, 2\)"):
        f"{a:.2f}"
    assert (f"{a[0, 0]:.2f}", f"{a[0]:>10}") == ("1.00", "   [1. 1.]")


def test_devices_of_torch_are_named():
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match=r"a Device or None, not torch.device; pass 'cuda:1'$"):
        pa.ones(3, device=torch.device("cuda", 1))


def test_names_that_are_absent():
    for name, message in (
        ("nditer", r"no attribute 'nditer': loop over pyarray\.ndindex"),
        ("matrix", "a matrix is an array of two dimensions"),
        ("busday_count", r"which NumPy has: numpy\.busday_count"),
        ("nope", r"^module 'pyarray' has no attribute 'nope'$"),
    ):
        assert not hasattr(pa, name)
        with pytest.raises(AttributeError, match=message):
            getattr(pa, name)
