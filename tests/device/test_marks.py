"""mark_static and assume: handles, their keys, what is folded into the text, and that results stay right."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_tools import on

import pyarray as pa
from pyarray.jit import variants
from pyarray.lang.specializations import Specialization, decode, encode


def make():
    """A new kernel each time: counts begin at 0."""

    @pa.kernel
    def total(out, v):
        for i in range(v.shape[0]):
            s = 0.0
            for j in range(v.shape[1]):
                s += v[i, j] * (j + 1)
            out[i] = s

    return total


def expected(v):
    return v @ np.arange(1.0, v.shape[1] + 1)


@pa.kernel
def twice(out, v):
    for i in range(v.size):
        out[i] = v[i] * 2


# ---- handles and keys


def test_the_array_stays_as_it_is(device):
    a = pa.ones((4, 6), device=device)
    key = a._key
    m = a.mark_static()
    assert a._key == key != m._key
    assert (m.shape, m.strides, m.dtype, m.base is a, type(m)) == (a.shape, a.strides, a.dtype, True, type(a))
    m[1, 2] = 7
    assert a[1, 2].item() == 7  # one memory
    view = a[1]
    handle = view.mark_static(0)
    assert isinstance(handle, pa.BufferView)
    assert handle.offset == view.offset == 6


def test_marks_add_up_in_any_order(device):
    a = pa.ones((4, 6, 2), device=device)
    both = a.mark_static((0, 2))._key
    assert a.mark_static(0).mark_static(2)._key == a.mark_static(2).mark_static(0)._key == both
    assert a.mark_static(0).mark_static(0)._key == a.mark_static(0)._key
    assert a.mark_static(-1)._key == a.mark_static(2)._key
    assert a.mark_static()._key == a.mark_static([0, 1, 2])._key
    assert a.mark_static(())._key == a._key
    assert a.assume(1, multiple_of=3).mark_static(0)._key == a.mark_static(0).assume(1, multiple_of=3)._key


def test_a_pinned_size_says_more_than_a_multiple(device):
    a = pa.ones((4, 6), device=device)
    assert a.mark_static(1).assume(1, multiple_of=3)._key == a.mark_static(1)._key
    assert a.assume(1, multiple_of=3).mark_static(1)._key == a.mark_static(1)._key
    assert a.assume(1, multiple_of=3).assume(1, multiple_of=2)._key == a.assume(1, multiple_of=2)._key
    assert a.assume(1, multiple_of=3).assume(1, multiple_of=1)._key == a._key


@pytest.mark.parametrize("dims", [2, -3, (0, 2), 1 << 70])
def test_a_dim_out_of_range(dims):
    a = pa.ones((4, 6))
    with pytest.raises(IndexError, match="out of bounds"):
        a.mark_static(dims)
    if isinstance(dims, int):
        with pytest.raises(IndexError, match="out of bounds"):
            a.assume(dims, multiple_of=2)


@pytest.mark.parametrize("dims", ["01", 1.0, [None]])
def test_a_dim_that_is_no_integer(dims):
    with pytest.raises(TypeError):
        pa.ones((4, 6)).mark_static(dims)


@pytest.mark.parametrize("factor", [0, -4, 1 << 63])
def test_a_factor_that_is_not_positive(factor):
    with pytest.raises(ValueError, match=f"multiple_of must be a positive integer, got {factor}"):
        pa.ones(8).assume(0, multiple_of=factor)


def test_a_false_claim_names_both_numbers():
    with pytest.raises(ValueError, match=r"axis 1 of shape \(2, 30\) has size 30, which is no multiple of 8"):
        pa.ones((2, 30)).assume(-1, multiple_of=8)
    assert pa.ones(0).assume(0, multiple_of=8).shape == (0,)


def test_views_copies_and_results_are_unmarked(device):
    a = pa.ones((4, 6), device=device)
    m = a.mark_static().assume(0, multiple_of=2)
    pairs = [(x, y) for x, y in ((m[1:], a[1:]), (m[1], a[1]), (m.T, a.T), (m.reshape(-1), a.reshape(-1)))]
    pairs += [(m.copy(), a.copy()), (m + 1, a + 1), (m[...], a[...]), (m.view(), a.view())]
    line = a.ravel()
    pairs += [(line.mark_static()[2:], line[2:]), (line.mark_static().subview(1, 2), line.subview(1, 2))]
    assert all(x._key == y._key for x, y in pairs)
    m.setflags(write=False)
    assert m._key != a.mark_static()._key  # marks and read-only don't disturb each other
    m.setflags(write=True)
    assert m._key == a.mark_static()._key


def test_library_functions_take_marked_arrays(device):
    plain = np.arange(24.0).reshape(4, 6)
    a = on(device, plain.copy())
    m = a.mark_static(0).assume(1, multiple_of=3)
    for function in (pa.sum, pa.argmax, pa.exp, pa.nonzero, pa.flip, lambda x: x @ x.T, lambda x: x * x):
        got, want = function(m), function(a)
        for x, y in zip(got, want, strict=True) if isinstance(got, tuple) else ((got, want),):
            np.testing.assert_array_equal(pa.asnumpy(x), pa.asnumpy(y))
    m += 1
    assert pa.asnumpy(a)[0, 0] == 1
    np.testing.assert_array_equal(pa.asnumpy(pa.asarray(m)), plain + 1)
    np.testing.assert_array_equal(np.from_dlpack(m) if device == "cpu" else m.get(), plain + 1)


def test_pins_of_the_library_leave_no_variants_behind():
    """Elementwise functions look a launch up by the same keys for marked and unmarked arrays."""
    pa.ones(10) + 1
    before = pa.cache_info()["variants"]
    for n in range(2, 40):
        pa.ones(n).mark_static() + pa.ones(n).mark_static()
    assert pa.cache_info()["variants"] <= before + 2


# ---- one variant per promise


def test_variants(device):
    k = make()

    def run(marks, shape):
        v = marks(on(device, np.arange(float(np.prod(shape))).reshape(shape)))
        out = pa.zeros(v.shape[0], device=device)
        k(out, v)
        np.testing.assert_allclose(pa.asnumpy(out), expected(pa.asnumpy(v)))
        return k.cache_info()["variants"]

    assert run(lambda a: a, (4, 6)) == 1
    assert run(lambda a: a.mark_static(1), (4, 6)) == 2  # marked and unmarked differ
    assert run(lambda a: a.mark_static(1), (9, 6)) == 2  # another dim 0: the same
    assert run(lambda a: a.mark_static(1), (4, 7)) == 3  # another dim 1: not
    assert run(lambda a: a.assume(1, multiple_of=2), (4, 6)) == 4
    assert run(lambda a: a.assume(1, multiple_of=2), (4, 8)) == 4
    assert run(lambda a: a[::2], (8, 6)) == 5  # strided
    assert run(lambda a: a.mark_static(), (4, 6)) == 6
    assert run(lambda a: a, (7, 3)) == 6
    assert k.cache_info()["misses"] == 6


def test_strides_are_pinned_too(device):
    k = make()
    wide = on(device, np.arange(96.0).reshape(8, 12))
    for step in (1, 2, 3, -1):
        v = wide[:, ::step][:, :4]
        out = pa.zeros(8, device=device)
        k(out, v.mark_static(1))
        np.testing.assert_allclose(pa.asnumpy(out), expected(pa.asnumpy(v)))
        if step != 1:
            assert f"v_v.s1 = {8 * step};" in k.source()
    assert k.cache_info()["variants"] == 4  # one size, four strides


def constants(kernel):
    """What the text says of sizes and strides by constants."""
    return sorted(set(re.findall(r"(v_\w+\.[ns]\d+) = (-?\d+);", kernel.source())))


def test_what_is_folded_is_what_the_key_says(device):
    a = pa.ones((4, 6), device=device)
    k, out = make(), pa.zeros(4, device=device)
    k(out, a)
    assert constants(k) == []
    k(out, a.mark_static(1))
    assert constants(k) == [("v_v.n1", "6")]
    k(out, a.mark_static(0))
    # the stride of axis 0, which has no gaps, is that of the size of axis 1
    assert constants(k) == [("v_v.n0", "4"), ("v_v.n1", "6")]
    k(out, a[::2].mark_static())
    assert constants(k) == [("v_v.n0", "2"), ("v_v.n1", "6"), ("v_v.s0", "96"), ("v_v.s1", "8")]
    k(out, a.assume(1, multiple_of=3))
    assert constants(k) == []
    assert "v_v.n1 = v_v.n1 / 3 * 3;" in k.source()
    keys = [v.key["v.pins"] for v in k._variants]
    assert len(set(keys)) == 5
    assert keys[0] == "none"
    assert keys[1] == "axis 1: size 6, stride 8"


shapes = st.tuples(st.integers(0, 9), st.integers(0, 9))
marks = st.lists(st.tuples(st.booleans(), st.integers(-2, 1), st.integers(1, 5)), max_size=4)


@given(shapes, shapes, marks, marks)
def test_equal_texts_and_equal_keys(one, other, first, second):
    """Two handles have one key if and only if the same numbers are folded."""
    made = []
    for shape, chosen in ((one, first), (other, second)):
        a, said = pa.empty(shape), {}
        for static, axis, factor in chosen:
            if static:
                a = a.mark_static(axis)
                said[axis % 2] = (shape[axis], a.strides[axis])
            elif shape[axis] % factor == 0:
                a = a.assume(axis, multiple_of=factor)
                if not isinstance(said.get(axis % 2), tuple):
                    said[axis % 2] = factor
        contiguous = pa.empty(shape)
        strides = {k: x if isinstance(x, int) else (x[0], contiguous.strides[k]) for k, x in said.items()}
        made.append((a._key, {k: x for k, x in strides.items() if x != 1}))
    assert (made[0][0] == made[1][0]) == (made[0][1] == made[1][1])


numbers = st.integers(0, (1 << 63) - 1)
pins = st.dictionaries(st.integers(0, 63), st.one_of(st.tuples(numbers, numbers.map(lambda n: -n)), numbers))


@given(pins)
def test_pins_as_a_number(chosen):
    made = [
        Specialization(axis, *(x if isinstance(x, tuple) else (None, None, x + 2 if x < 9 else x)))
        for axis, x in sorted(chosen.items())
    ]
    assert list(decode(encode(reversed(made)))) == made


# ---- the text uses it, and stays right


@pytest.mark.parametrize("n", [0, 16, 64, 4096, 1 << 17])
def test_multiples(device, n):
    v = np.arange(float(n))
    out = pa.zeros(n, device=device)
    twice(out, on(device, v).assume(0, multiple_of=16))
    np.testing.assert_array_equal(pa.asnumpy(out), 2 * v)
    out = pa.zeros(n, device=device)
    twice(out, on(device, v).mark_static())
    np.testing.assert_array_equal(pa.asnumpy(out), 2 * v)


@pytest.mark.parametrize("n", [3, 30, 30 * 4099])
def test_multiples_that_are_no_power_of_two(device, n):
    v = np.arange(float(n))
    out = pa.zeros(n, device=device)
    twice(out, on(device, v).assume(0, multiple_of=3))
    np.testing.assert_array_equal(pa.asnumpy(out), 2 * v)


def test_a_view_is_not_what_was_promised(device):
    @pa.kernel
    def part(out, v, n: int):
        w = v
        w = v[1:n]
        for i in range(w.size):
            out[i] = w[i] + w.size

    out = pa.zeros(8, device=device)
    part(out, on(device, np.arange(8.0)).mark_static(), 4)
    assert out.tolist() == [4.0, 5.0, 6.0, 0, 0, 0, 0, 0]


def test_marks_in_a_structure_and_in_debug_mode(device):
    def body(p, out):
        v, n = p
        for i in range(n):
            out[i] = v[i]

    k = pa.kernel(body)
    v, out = on(device, np.arange(6.0)), pa.zeros(6, device=device)
    k((v.mark_static(), 6), out)
    assert out.tolist() == v.tolist()
    assert "= 6;" in k.source()
    with pa.debug(), pytest.raises(pa.BoundsError) as caught:
        k((v.mark_static(), 7), out[:6])
    assert (caught.value.index, caught.value.size) == (6, 6)


def test_a_program_that_pins_many_sizes_stays_bounded():
    @pa.kernel
    def fill(v):
        for i in range(v.size):
            v[i] = 1

    fill._variants = small = variants.Variants(most=2)
    for n in range(2, 9):
        fill(a := pa.zeros(n).mark_static())
        assert a.tolist() == [1.0] * n
        assert len(small) <= 4
        assert len(small.table) <= 2
    assert fill.cache_info()["variants"] <= 4
    fill(pa.zeros(2).mark_static())  # dropped, and made again
    assert fill.cache_info()["misses"] == 8


def test_a_variant_in_use_is_not_dropped():
    @pa.kernel
    def fill(v):
        for i in range(v.size):
            v[i] = 1

    fill._variants = variants.Variants(most=2)
    often = pa.zeros(3)
    for n in range(2, 7):
        fill(often)
        fill(pa.zeros(n).mark_static())
    assert fill.cache_info()["misses"] == 6
