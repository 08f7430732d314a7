"""`a.reshape(...)` in a kernel: a view, whatever the strides are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_tools import agree, launch, on
from strategies import examples, numpy_views

from pyarray.errors import BoundsError
from pyarray.jit.kernel import func, kernel
from pyarray.jit.launch_state import debug
from pyarray.lang.markers import atomic_add, ndrange, unordered


@func
def corner(v, i):
    total = v.shape[0]
    for x in v[i:]:
        total += x
    return total


@kernel
def forms(out, a, h, w):
    """Ways to an element: by all indices, by the variable of a loop, by another index, of a part."""
    t, line = a.reshape(h, w), a.reshape(-1)
    for i, j in ndrange(t.shape[0], t.shape[1]):
        k = (i * 7 + j * 3) % w
        out[0, i * w + j] = t[i, j] + 100 * a.reshape((h, -1))[i, k] + 10000 * t.T[j, i]
        out[1, i * w + j] = corner(t[i], j) + corner(t.T[j, ::-1], 0) + t[:, j].reshape(h, 1)[i, 0]
    for n in range(line.size):
        m = line.size - 1 - n
        out[2, n] = line[n] + 100 * a.ravel()[m] + 10000 * line.reshape(w, h)[n // h, n % h]


@kernel
def sums(out, a, b, h):
    """Reduced axes, pairs of loops, two arrays whose sizes may be equal."""
    t, s, line = a.reshape(a.shape[0], -1), a.reshape(a.shape[0], -1), b.ravel()
    for i in range(a.shape[0]):
        total, other = 0, 0
        for j in unordered(range(t.shape[1])):
            total += t[i, j]
        for k, j in ndrange(2, t.shape[1]):
            other += (k + 1) * s[i, j]
        out[i] = total + 1000 * other
    for n in range(a.size):
        out[a.shape[0] + n] = a.ravel()[n] - 3 * line[n]


@st.composite
def views(draw):
    """An array of two or three axes in any layout, and two sizes that it has."""
    shape = draw(st.lists(st.integers(0, 6), min_size=2, max_size=3))
    a = draw(numpy_views("int64", tuple(shape)).filter(lambda x: x.ndim in (2, 3)))
    h = draw(st.sampled_from([n for n in range(1, a.size + 1) if a.size % n == 0] or [1, 3]))
    return a, h, a.size // h


@pytest.mark.parametrize("checked", [False, True])
def test_as_numpy(device, checked):
    @examples(8)
    @given(views())
    def drawn(found):
        a, h, w = found
        with debug(checked):
            agree(forms, device, np.zeros((3, a.size), np.int64), a, h, w)
            if a.shape[0]:  # beside a size of 0 NumPy has no -1
                b = a.ravel().reshape(a.shape[::-1]).T[::-1] if h % 2 else a[::-1]
                agree(sums, device, np.zeros(a.shape[0] + a.size, np.int64), a, b, h)

    drawn()


@func
def tall(a, h):
    return a.reshape(h, -1)


@kernel(wraparound=True)
def parts(out, a, o):
    """Sub-views, reshapes that functions return, indices from the end."""
    line = a.ravel().subview(o, 6)
    t, u = line.reshape(2, 3), tall(a, 4)
    for i in range(out.size):
        row = u[i] if i % 2 == 0 else u[0]
        out[i] = line[i] + 100 * t[i - 2, i % 3] + 10000 * row[-1] + 1000000 * u[-1 - i, i]


@pytest.mark.parametrize("checked", [False, True])
def test_parts_and_functions(device, checked):
    def expected(a, o):
        line, u = a.ravel()[o : o + 6], a.reshape(4, -1)
        t, rows = line.reshape(2, 3), [u[i] if i % 2 == 0 else u[0] for i in range(3)]
        return [line[i] + 100 * t[i - 2, i % 3] + 10000 * rows[i][-1] + 1000000 * u[-1 - i, i] for i in range(3)]

    whole = np.arange(48)
    for a in (whole.reshape(4, 12), whole.reshape(8, 6)[::-2], whole.reshape(6, 8).T[1::2, ::-1]):
        with debug(checked):
            (got, _) = launch(parts, device, np.zeros(3, np.int64), a, 5)
            assert got.tolist() == expected(a, 5)
        with debug(), pytest.raises(BoundsError, match=f"of a view of size {a.size}"):
            parts(on(device, np.zeros(3, np.int64)), on(device, a), a.size - 5)


@kernel
def stores(out, v, h, w):
    t, line = out.reshape(h, w), out.ravel()
    for i, j in ndrange(h, w):
        t[i, j] = v[i * w + j]
    for n in range(v.size):
        atomic_add(line, n, 1)


@pytest.mark.parametrize("change", [lambda x: x, lambda x: x[::-1, :, ::-2], lambda x: x.T[1:]])
def test_stores_go_to_the_array(device, change):
    out = change(np.zeros((3, 4, 6), np.int64))
    v = np.arange(out.size)
    got, _ = launch(stores, device, out, v, 6, out.size // 6)
    np.testing.assert_array_equal(got, v.reshape(out.shape) + 1)


@kernel
def counted(out, a, h, w):
    t = a.reshape(h, w)
    for i in range(t.shape[0] + t.shape[1] + 1):
        out[i] = t.shape[0] * 100 + t.size


WRONG = [(5, 4, "a view of size 24 has no shape of 20 elements"),
         (-4, -6, "no shape of a negative size"), (2**32, 2**32, "or 2[*][*]63 elements or more"),
         (0, 3, "no shape of 0 elements")]  # fmt: skip


@pytest.mark.parametrize("a", [np.zeros((4, 6)), np.zeros((4, 12))[:, ::2]])
def test_a_shape_of_another_size_is_empty_and_reported(device, a):
    for h, w, words in WRONG:
        (got, _) = launch(counted, device, np.ones(30), a, h, w)
        assert got.tolist() == [0] + [1] * 29
        with debug(), pytest.raises(BoundsError, match=words) as caught:
            counted(on(device, np.ones(30)), on(device, a), h, w)
        frame = caught.value.frames[0]
        assert (caught.value.argument, frame.function) == ("a", "counted")


@kernel
def left(out, a, h):
    t = a.reshape(h, -1)
    out[0], out[1] = t.shape


def test_what_is_left(device):
    """Nothing is left for -1 beside a 0, which NumPy refuses."""
    for rows, h, shape in [(4, 3, (3, 8)), (0, 3, (3, 0)), (0, 0, (0, 0))]:
        with debug():
            (got, _) = launch(left, device, np.ones(2), np.zeros((rows, 6)), h)
        assert tuple(got) == shape
    for h in (5, -1):
        with debug(), pytest.raises(BoundsError):
            left(on(device, np.ones(2)), on(device, np.zeros((4, 6))), h)


@kernel
def beyond(out, a, w):
    t = a.reshape(-1, w)
    for i in range(out.size):
        out[i] = t[i, 1]


def test_bounds_are_those_of_the_view(device):
    words = r"view 't' of argument 'a', axis 0: got index 3 .*extent 3"
    for a in (np.zeros((4, 6)), np.zeros((4, 12))[:, ::2]):
        with debug(), pytest.raises(BoundsError, match=words):
            beyond(on(device, np.zeros(4)), on(device, a), 8)
