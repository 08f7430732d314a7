"""What raises in NumPy raises the same class here; errors about shapes name all of them."""

import ast

import numpy as np
import pytest

import pyarray as pa

# `m` is a namespace; v has shape (3,), w (4,), a (2, 3), b (2, 4), s (), c is complex, i integers, t bools
CALLS = """
m.add(a, b)  m.add(v, w)  a + b  a - w  a * m.ones((5, 3))  a @ b  v @ w  a @ w  m.matmul(s, a)
m.matmul(a, s)  m.broadcast_to(a, (3, 3))  m.broadcast_to(a, (3,))  m.broadcast_arrays(a, b)
m.broadcast_shapes((2,), (3,))  m.reshape(a, (4, 2))  m.reshape(a, (-1, -1))  m.reshape(a, (-1, 4))
a.reshape(7)  a.reshape("x")  m.transpose(a, (0, 0))  m.transpose(a, (0, 1, 2))  m.transpose(a, (0, 5))
a.transpose(1)  m.swapaxes(a, 0, 2)  m.moveaxis(a, 0, 2)  m.moveaxis(a, (0, 1), (0,))
m.moveaxis(a, (0, 0), (0, 1))  m.expand_dims(a, 4)  m.expand_dims(a, (0, 0))  m.squeeze(a, 0)
m.squeeze(a, 5)  m.flip(a, 2)  m.roll(a, 1, 2)  m.roll(a, (1, 2), (0, 1, 0))  m.repeat(a, [1, 2])
m.repeat(v, -1)  m.tile(v, -1)  m.concatenate([])  m.concatenate([a, v])  m.concatenate([a, b])
m.concatenate([s, s])  m.concatenate([a, a], axis=2)  m.concatenate(5)  m.stack([])  m.stack([a, b])
m.stack([a, a], axis=4)  m.vstack([a, b])  m.hstack([v, a])  m.sum(a, axis=2)  m.sum(a, axis=(0, 0))
m.sum(a, axis="x")  m.sum(a, axis=1.5)  m.mean(a, axis=-3)  m.max(a, axis=2)  m.max(m.ones(0))
m.min(m.ones((0, 3)), axis=0)  m.argmax(m.ones(0))  m.argmin(a, axis=2)  m.prod(a, axis=3)  m.any(a, axis=2)
m.all(a, axis=-4)  m.std(a, axis=2)  m.var(a, axis=(0, 2))  m.median(a, axis=2)  m.percentile(a, 101)
m.percentile(a, -1)  m.quantile(a, 2)  m.quantile(a, 0.5, axis=3)  m.quantile(v, 0.5, method="odd")
m.cumsum(a, axis=2)  m.diff(a, axis=2)  m.diff(a, n=-1)  m.diff(s)  m.sort(a, axis=2)  m.argsort(a, axis=-3)
m.partition(v, 3)  m.partition(v, -4)  m.argpartition(v, 5)  m.searchsorted(a, v)
m.searchsorted(v, v, side="mid")  m.searchsorted(v, v, sorter=m.asarray([0, 1]))  m.take(v, 3)
m.take(v, [-4])  m.take(a, [0], axis=2)  m.take_along_axis(a, i, axis=0)  m.take_along_axis(a, a, axis=0)
m.compress([True] * 9, v)  m.choose([5], [1, 2])  a[2]  a[0, 3]  a[0, 0, 0]  a[5:, 9]  a[1.5]  a["x"]
a[:, :, None, 0]  v[[0, 3]]  v[[1.5]]  v[t[:2]]  a[i, i, i]  a[[0, 1], [0, 1, 2]]  s[0]  len(s)  iter(s)
bool(a)  bool(m.ones(0))  float(a)  int(v)  complex(v)  a.item()  a.item(9)  hash(a)  a in 5  m.where(a, v)
m.where(t, v, w)  m.nonzero(s)  m.clip(a, w, 1)  m.bitwise_and(a, 1)  a & a  ~a  a << 1  m.bitwise_count(a)
m.gcd(a, a)  m.floor(c)  c % c  c // c  m.logaddexp(c, c)  m.arctan2(c, c)  m.sin("x")  m.add(a, None)
m.add(a, {})  m.add(a)  m.add(a, a, a, a)  m.exp()  m.add(a, b, out=a)  m.add(a, a, out=v)
m.add(a, a, out=m.ones((2, 3), dtype="int32"))  m.add(a, a, out=[1])  m.subtract(t, t)  -t  m.negative(t)
m.power(i, -1)  i ** -2  a.fill([1, 2])  m.full((2,), [1, 2, 3])  m.zeros(-1)  m.zeros((2, -3))
m.zeros("x")  m.zeros(1.5)  m.zeros(3, dtype="nope")  m.zeros(3, dtype=object())  m.arange(0, 1, 0)
m.arange("x", "y", 1)  m.arange(0, float("inf"))  m.arange(1, 5, dtype="bool")  m.linspace(0, 1, -1)
m.linspace(0, 1, 2.5)  m.geomspace(0, 1)  m.eye(-1)  m.eye(2.5)  m.diag(m.ones((2, 2, 2)))  m.diagonal(v)
m.meshgrid(v, w, indexing="zz")  m.vander(a)  m.identity("x")  m.fromiter(["x"], dtype="float64")
m.asarray([[1, 2], [3]])  m.asarray("abc", dtype="float64")  m.asarray([1, "x"], dtype="int64")
m.asarray(3, dtype="x9")  m.asarray([300], dtype="uint8")  m.asarray([-1], dtype="uint8")  a.astype("nope")
a.view("float16")[0, 99]  m.dot(a, b)  m.dot(v, w)  m.vdot(v, w)  m.inner(a, b)  m.cross(w, w)
m.kron(a, None)  m.tensordot(a, b, 1)  m.tensordot(a, b, axes=([0], [1]))  m.einsum("ij,jk", a, a)
m.einsum("ij", v)  m.einsum("i->j", v)  m.einsum("i")  m.einsum("i,i", v)  m.einsum("i%", v)
m.linalg.inv(a)  m.linalg.inv(v)  m.linalg.inv(m.zeros((2, 2)))  m.linalg.det(a)  m.linalg.solve(a @ a.T, v)
m.linalg.solve(m.zeros((2, 2)), m.ones(2))  m.linalg.cholesky(-m.eye(2))  m.linalg.eigh(a)
m.linalg.norm(a, ord="odd")  m.linalg.norm(v, ord="fro")  m.linalg.norm(a, axis=(0, 0))
m.linalg.norm(a, axis=3)  m.linalg.qr(v)  m.linalg.svd(v)  m.linalg.matrix_power(a, 2)
m.linalg.matrix_power(a @ a.T, 1.5)  m.linalg.lstsq(a, v)  m.linalg.multi_dot([a])
m.linalg.multi_dot([a, b])  m.linalg.tensorinv(a, 0)  m.linalg.tensorsolve(a, v)  m.fft.fft(s)
m.fft.fft(v, n=0)  m.fft.fft(v, axis=1)  m.fft.fft(v, norm="odd")  m.fft.fftn(a, s=(1,), axes=(0, 1))
m.fft.irfft(v, n=-1)  m.interp(v, v, w)  m.gradient(m.ones(1))  m.gradient(a, 1, 2, 3)  m.convolve(a, v)
m.convolve(v, m.ones(0))  m.convolve(v, v, "odd")  m.trapezoid(a, axis=2)  m.histogram(v, 0)
m.histogram(v, [2, 1])  m.histogram(v, 5, range=(1, 0))  m.histogram(v, 2, weights=w)  m.bincount(a)
m.bincount(v)  m.bincount(m.asarray([-1]))  m.bincount(i[0], minlength=-1)
m.digitize(v, m.asarray([1, 3, 2]))  m.cov(m.ones((2, 2, 2)))  m.average(v, weights=w)
m.average(v, weights=m.zeros(3))  m.pad(v, -1)  m.pad(v, (1, 2, 3))  m.pad(v, 1, mode="odd")
m.pad(m.ones(0), 1, mode="edge")  m.split(v, 2)  m.split(v, 2, axis=1)  m.array_split(v, 0)  m.hsplit(s, 1)
m.vsplit(v, 1)  m.insert(v, 9, 1)  m.delete(v, 9)  m.append(a, v, axis=0)  m.resize(v, -1)  m.rot90(v)
m.rot90(a, axes=(0, 0))  m.unravel_index(9, (2, 3))  m.ravel_multi_index(([5], [0]), (2, 3))  m.ix_(a)
m.put(v, 9, 1)  m.put_along_axis(a, a, 1, 0)  m.place(v, t, [])  m.copyto(v, w)  m.copyto(a, v, where=w > 0)
m.fill_diagonal(v, 1)  m.unique(a, axis=2)  m.select([t], [1, 2])  m.isclose(a, b)  m.allclose(v, w)
m.piecewise(v, [t], [1, 2, 3])  m.apply_along_axis(m.sum, 2, a)  m.block([])  m.polyfit(v, w, 1)
m.unpackbits(i)  m.packbits(a)  m.union1d(v, None)  m.ediff1d(i[0], to_end=0.5)
m.frombuffer(b"123", dtype="int32")  m.load("nowhere.npy")  m.iinfo("float64")  m.finfo("int8")
m.result_type()  m.can_cast(3.5, "int8")  m.nansum(a, axis=2)  m.nanmax(a, axis=-3)
m.count_nonzero(a, axis=2)  m.lexsort(s)  m.apply_over_axes(m.sum, a, 3)  m.ldexp(a, 0.5)
m.unwrap(a, axis=2)  m.vecmat(v, w)  m.matvec(v, v)  m.i0(c)  m.sort_complex(s)  m.vectorize(3)
m.vectorize(abs)(m.ones(0))  m.vectorize(max)(v, w)
"""


def calls(text):
    """The calls in a text, with two blanks or a line's end between them."""
    return [call for line in text.strip().splitlines() for call in line.split("  ")]


def operands(m):
    a = m.asarray(np.arange(6.0).reshape(2, 3))
    return {
        "m": m,
        "a": a,
        "b": m.asarray(np.arange(8.0).reshape(2, 4)),
        "v": m.asarray(np.arange(3.0)),
        "w": m.asarray(np.arange(4.0)),
        "s": m.asarray(1.5),
        "c": m.asarray(np.arange(3) * 1j),
        "i": m.asarray(np.arange(6).reshape(2, 3)),
        "t": m.asarray(np.array([True, False, True])),
    }


def raised(call, m):
    try:
        found = eval(call, operands(m))
    except Exception as error:
        return error
    return found


def public(error):
    """The first of its classes that is no private one of NumPy."""
    return next(k for k in type(error).__mro__ if k.__module__ in ("builtins", "numpy.exceptions", "numpy.linalg"))


@pytest.mark.parametrize("call", calls(CALLS))
@pytest.mark.filterwarnings("ignore")
def test_the_class_is_numpys(call):
    ours, theirs = raised(call, pa), raised(call, np)
    assert isinstance(theirs, Exception), "NumPy takes it: it is no wrong call"
    assert isinstance(ours, Exception), f"gave {ours!r}, where NumPy says {theirs}"
    assert isinstance(ours, public(theirs)), f"{ours!r}, where NumPy says {theirs!r}"


SHAPES = """
m.add(a, b)  a - w  a @ b  a @ w  m.broadcast_to(a, (3, 3))  m.broadcast_arrays(a, b)  m.reshape(a, (4, 2))
a.reshape(-1, 4)  m.concatenate([a, v])  m.concatenate([a, b])  m.stack([a, b])  m.hstack([v, a])
m.where(t, v, w)  m.clip(a, w, 1)  m.add(a, a, out=v)  m.dot(a, b)  m.vdot(v, w)  m.inner(a, b)
m.tensordot(a, b, 1)  m.einsum("ij,ij", a, b)  m.linalg.solve(a[:, :2], v)  m.linalg.lstsq(a, v)
m.linalg.multi_dot([a, b])  m.interp(v, v, w)  m.matvec(a, w)  m.histogram(v, 2, weights=w)
m.average(v, weights=w)  m.append(a, v, axis=0)  m.copyto(v, w)  m.isclose(a, b)  m.polyfit(v, w, 1)
m.vecmat(w, a)  a.__setitem__(..., w)  a.__iadd__(b)  m.place(v, w > 1, [1])  m.putmask(v, w > 1, [1])
m.put_along_axis(a, i[0], 1, 0)  m.linalg.cross(v, w)  m.searchsorted(v, v, sorter=i[:, 0])
m.linalg.vecdot(v, w)  v == w
"""


@pytest.mark.parametrize("call", calls(SHAPES))
def test_errors_of_shapes_name_them_all(call):
    error = raised(call, pa)
    assert isinstance(error, Exception)
    given = {name: x.shape for name, x in operands(np).items() if name in "abvw" if name in names_in(call)}
    for shape in given.values():
        assert str(shape) in str(error), error


def names_in(call):
    """Names of whole operands."""
    return {node.id for node in ast.walk(ast.parse(call)) if isinstance(node, ast.Name)} - {
        node.value.id
        for node in ast.walk(ast.parse(call))
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name)
    }
