"""tensordot, vecdot, einsum and NumPy's other products against NumPy's, on drawn shapes and layouts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import pyarray as pa

FEW = examples(40)
DTYPES = (np.float64, np.complex64, np.int16, np.bool_)


def drawn(shape, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.integers(-4, 5, shape)
    return (x + 1j * rng.integers(-4, 5, shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def same(ours, theirs):
    theirs = np.asarray(theirs)
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype
    np.testing.assert_array_equal(pa.asnumpy(ours), theirs)


SUBSCRIPTS = [
    ("ij,jk", (2, 3), (3, 4)),
    ("ij,jk->ki", (2, 3), (3, 4)),
    ("ij,kj->ik", (2, 3), (4, 3)),
    ("ii", (3, 3)),
    ("ii->i", (3, 3)),
    ("iji->j", (3, 2, 3)),
    ("ij->ji", (2, 3)),
    ("ijk->", (2, 3, 4)),
    ("ba", (2, 3)),
    ("i,j->ij", (3,), (4,)),
    ("ij,ij->ij", (2, 3), (2, 3)),
    ("ij,ij->i", (2, 3), (2, 3)),
    ("ij,ij", (2, 3), (2, 3)),
    ("bij,bjk->bik", (5, 2, 3), (5, 3, 4)),
    ("...ij,...jk->...ik", (5, 2, 3), (3, 4)),
    ("...ij,...jk", (5, 2, 3), (1, 3, 4)),
    ("...", (2, 3)),
    ("i...->...", (2, 3)),
    ("...i,i", (2, 3), (3,)),
    ("ab,bc,cd->ad", (2, 3), (3, 4), (4, 5)),
    ("abc,cd,bd->a", (2, 3, 4), (4, 5), (3, 5)),
    ("abcd,cdef->eafb", (2, 3, 4, 5), (4, 5, 2, 3)),
    ("a,a,a->a", (3,), (3,), (3,)),
    ("a,a,a", (3,), (3,), (3,)),
    ("ij,kl", (2, 3), (4, 5)),
    ("ij,jk", (2, 1), (3, 4)),
    ("ij,jk", (2, 0), (0, 4)),
    ("iij,jk->ik", (3, 3, 2), (2, 4)),
    ("i,->i", (3,), ()),
    (" ij , jk -> ik ", (2, 3), (3, 2)),
]


@pytest.mark.parametrize("case", SUBSCRIPTS, ids=lambda c: c[0])
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda t: t.__name__)
def test_einsum(case, dtype):
    subscripts, *shapes = case
    given = [drawn(shape, dtype, k) for k, shape in enumerate(shapes)]
    expected = np.einsum(subscripts, *given)
    same(pa.einsum(subscripts, *map(pa.asarray, given)), expected)
    same(pa.einsum(subscripts, *map(pa.asarray, given), optimize=False), expected)
    strided = [np.repeat(x, 2, axis=-1)[..., ::2] if x.ndim else x for x in given]
    same(pa.einsum(subscripts, *map(pa.asarray, strided)), expected)


def test_einsum_views_and_out():
    a = pa.asarray(drawn((3, 3)))
    for subscripts in ("ij->ji", "ii->i", "ij"):
        assert pa.einsum(subscripts, a).base is a
    pa.einsum("ii->i", a)[...] = 7
    assert pa.diag(a).tolist() == [7, 7, 7]
    out = pa.zeros((3, 3), dtype=pa.complex128)
    assert pa.einsum("ij,jk->ki", a, a, out=out) is out
    same(pa.real(out), np.einsum("ij,jk->ki", pa.asnumpy(a), pa.asnumpy(a)))
    assert pa.einsum("ij,jk->ik", pa.ones((2, 2), dtype="int8"), pa.ones((2, 2))).dtype == pa.float64


@pytest.mark.parametrize(
    ("subscripts", "shapes", "said"),
    [
        ("ij,jk", [(2, 3)], "2 operands"),
        ("ij", [(2, 3), (3,)], "1 operands"),
        ("ijk", [(2, 3)], "operand 1 has shape"),
        ("i", [(2, 3)], "operand 1 has shape"),
        ("ij,jk", [(2, 3), (4, 5)], "'j' has sizes 3 and 4"),
        ("...i,...i", [(2, 3), (5, 3)], "an axis of '...' has sizes"),
        ("ij->ijj", [(2, 3)], "comes twice"),
        ("ij->k", [(2, 3)], "'k' of the result"),
        ("i1", [(2, 3)], "letters"),
        ("......", [(2, 3)], "letters"),
        ("", [], "at least one array"),
    ],
)
def test_einsum_says_what_is_wrong(subscripts, shapes, said):
    with pytest.raises(ValueError, match=said.replace("...", r"\.\.\.")):
        pa.einsum(subscripts, *map(pa.ones, shapes))


def test_einsum_takes_text():
    with pytest.raises(TypeError, match="subscripts as text"):
        pa.einsum([0, 1], pa.ones((2, 2)))


@examples(20)
@given(st.data())
def test_tensordot(data):
    ranks = [data.draw(st.integers(0, 4)) for _ in "ab"]
    count = data.draw(st.integers(0, min(ranks)))
    size = st.integers(0, 3)
    shapes = [[data.draw(size) for _ in range(n)] for n in ranks]
    axes = [data.draw(st.permutations(range(n)))[:count] for n in ranks]
    for i, j in zip(*axes, strict=True):
        shapes[1][j] = shapes[0][i]
    x, y = (drawn(shape, np.int64, k) for k, shape in enumerate(shapes))
    if data.draw(st.booleans()):
        y = np.ascontiguousarray(y.T).T
    if data.draw(st.booleans()) and x.ndim:
        x = x[::-1]
    same(pa.tensordot(pa.asarray(x), pa.asarray(y), axes=axes), np.tensordot(x, y, axes=axes))


@pytest.mark.parametrize("axes", [0, 1, 2, (1, 0), ((-1,), (-2,)), ((), ())])
def test_tensordot_axes(axes):
    x, y = drawn((4, 3, 3)), drawn((3, 3, 5), seed=1)
    same(pa.tensordot(pa.asarray(x), pa.asarray(y), axes=axes), np.tensordot(x, y, axes=axes))


@pytest.mark.parametrize(
    ("axes", "error", "said"),
    [
        (3, ValueError, "no 3 axes"),
        (-1, ValueError, "no -1 axes"),
        (1, ValueError, "axis 1 of the first has size 3"),
        (((0,), (0, 1)), ValueError, "pairs of axes"),
        (((0,), (5,)), ValueError, "axis 5"),
        (((0, 0), (0, 1)), ValueError, "twice"),
        ((0, 1, 2), ValueError, "axes is a number"),
    ],
)
def test_tensordot_says_what_is_wrong(axes, error, said):
    with pytest.raises(error, match=said):
        pa.tensordot(pa.ones((2, 3)), pa.ones((2, 2)), axes=axes)


@FEW
@given(st.data())
def test_vecdot(data):
    shape = [data.draw(st.integers(0, 4)) for _ in range(data.draw(st.integers(1, 3)))]
    other = [n if data.draw(st.booleans()) else 1 for n in shape[:-1]] + shape[-1:]
    dtype = data.draw(st.sampled_from((np.float64, np.complex128, np.int8)))
    x, y = drawn(shape, dtype), drawn(other[data.draw(st.integers(0, len(other) - 1)) :], dtype, 1)
    if data.draw(st.booleans()):
        x, y = y, x
    same(pa.vecdot(pa.asarray(x), pa.asarray(y)), np.sum(np.conj(x) * y, axis=-1, dtype=dtype))


@pytest.mark.parametrize("shape", [(3000, 3), (40, 1000), (1, 100000), (3, 5000)], ids=str)
def test_vecdot_of_many_and_of_long_vectors(shape):
    x, y = drawn(shape, np.float32), drawn(shape, np.float32, 1)
    for a, b in ((x, y), (x[::-1], y), (x[:, ::2], y[:, ::2]), (x.T.copy().T, y)):
        same(pa.vecdot(pa.asarray(a), pa.asarray(b)), np.sum(a * b, axis=-1))
    same(pa.vecdot(pa.asarray(x), pa.asarray(y), axis=0), np.sum(x * y, axis=0))


def test_vecdot_says_what_is_wrong():
    with pytest.raises(ValueError, match="axis -1 has sizes 3 and 1"):
        pa.vecdot(pa.ones((2, 3)), pa.ones(1))
    with pytest.raises(IndexError, match="axis -2"):
        pa.vecdot(pa.ones((2, 3)), pa.ones(3), axis=-2)
    with pytest.raises(TypeError, match="common"):
        pa.vecdot(pa.ones(3, dtype="uint64"), pa.ones(3, dtype="int8"))


@pytest.mark.parametrize("shapes", [((), ()), ((), (3,)), ((3,), (3,)), ((2, 3), (3,)), ((2, 3), (4, 3))], ids=str)
def test_numpys_products(shapes):
    x, y = (drawn(shape, np.int64, k) for k, shape in enumerate(shapes))
    a, b = pa.asarray(x), pa.asarray(y)
    for name in ("inner", "outer", "kron"):
        same(getattr(pa, name)(a, b), getattr(np, name)(x, y))
        same(getattr(np, name)(a, b), getattr(np, name)(x, y))
    if y.ndim < 2:
        same(pa.dot(a, b), np.dot(x, y))
        same(a.dot(b), np.dot(x, y))


def test_dot_of_higher_ranks_and_vdot():
    x, y = drawn((2, 3, 4)), drawn((5, 4, 3), seed=1)
    same(pa.dot(pa.asarray(x), pa.asarray(y)), np.dot(x, y))
    z, w = drawn((2, 3), np.complex128), drawn((3, 2), np.complex128, 1)
    same(pa.vdot(pa.asarray(z), pa.asarray(w)), np.vdot(z, w))
    same(np.kron(pa.asarray(x), pa.asarray(z)), np.kron(x, z))


@pytest.mark.parametrize("offset", [-9, -2, -1, 0, 1, 2, 9])
def test_diagonal_and_trace(offset):
    x = drawn((4, 2, 3), np.int16)
    a = pa.asarray(x)
    same(pa.linalg.diagonal(a, offset=offset), np.diagonal(x, offset, -2, -1))
    same(pa.linalg.trace(a, offset=offset), np.trace(x, offset, -2, -1))
    same(a.diagonal(offset), np.diagonal(x, offset))
    same(np.diagonal(a, offset, 2, 0), np.diagonal(x, offset, 2, 0))
    same(np.trace(a, offset, 2, 0), np.trace(x, offset, 2, 0))
    same(a.trace(offset, dtype="float32"), np.trace(x, offset, dtype=np.float32))
    assert not a.diagonal().flags.writeable
    with pytest.raises(ValueError, match="2 or more dimensions"):
        pa.diagonal(pa.ones(3))


@pytest.mark.parametrize("axis", [-2, -1])
def test_cross(axis):
    x, y = drawn((2, 3, 3), np.int32), drawn((3, 3), np.int32, 1)
    same(pa.cross(pa.asarray(x), pa.asarray(y), axis=axis), np.cross(x, y, axis=axis))
    same(pa.linalg.cross(pa.asarray(x), pa.asarray(x), axis=1), np.cross(x, x, axis=1))
    with pytest.raises(ValueError, match="3 elements"):
        pa.cross(pa.ones((2, 2)), pa.ones((2, 3)))


def test_devices(device):
    x, y = drawn((70, 40), np.float32), drawn((40, 3), np.float32, 1)
    a, b = pa.asarray(x, device=device), pa.asarray(y, device=device)
    for ours, theirs in (
        (pa.einsum("ij,jk->ki", a, b), x.dot(y).T),
        (pa.einsum("ij,ij->i", a, a), (x * x).sum(1)),  # inner products, long
        (pa.vecdot(b, b), (y * y).sum(1)),  # short
        (pa.vecdot(b, b, axis=0), (y * y).sum(0)),
        (pa.tensordot(a, a, axes=2), np.tensordot(x, x)),
        (pa.kron(b, b[:2]), np.kron(y, y[:2])),
    ):
        assert ours.device is a.device
        np.testing.assert_array_equal(ours.get(), theirs)
    if a.device.kind != "cpu":
        with pytest.raises(ValueError, match="operand 2 on cpu"):
            pa.einsum("i,i", a[0], pa.ones(40))
