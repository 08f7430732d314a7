"""Operators, casts and atomics of every element type mean in kernels what they mean in NumPy."""

from __future__ import annotations

import linecache
import operator

import numpy as np
import pytest
from kernel_tools import launch, on
from strategies import known_to_numpy

from pyarray.array_convert import asnumpy
from pyarray.dtypes import ALL, BY_NAME, asdtype, promote
from pyarray.errors import CompileError
from pyarray.jit.kernel import kernel
from pyarray.lang import markers

REAL = [row for row in ALL if row.kind != "c"]
OPERATORS = {
    "x + y": np.add, "x - y": np.subtract, "x * y": np.multiply, "x / y": np.true_divide,
    "x // y": np.floor_divide, "x % y": np.remainder, "x ** p": np.power, "x & y": np.bitwise_and,
    "x | y": np.bitwise_or, "x ^ y": np.bitwise_xor, "x << y": np.left_shift, "x >> y": np.right_shift,
    "x < y": np.less, "x <= y": np.less_equal, "x == y": np.equal, "x != y": np.not_equal,
    "min(x, y)": np.minimum, "max(x, y)": np.maximum,
}  # fmt: skip
UNARY = {"+x": operator.pos, "abs(x)": np.abs, "-x": np.negative, "~x": np.invert, "not x": np.logical_not}


def _unary(kind):
    """Those that a type of this kind has, as functions of two."""
    without = {"b": ("+x", "abs(x)", "-x"), "f": ("~x",)}.get(kind, ())
    return {e: lambda x, y, f=f: f(x) for e, f in UNARY.items() if e not in without}


def _values(row):
    """The edges of the type: shifts beyond the width, least and largest, NaN and infinities, both zeros."""
    if row.kind == "b":
        return np.array([False, True])
    if row.kind in "iu":
        info = np.iinfo(row.numpy)
        values = [0, 1, 2, 3, 7, 8, 31, 33, 63, 64, 65, 100, info.max, info.max - 1, info.min, info.min + 1]
        values += [-1, -2, -7, -31, -64] if row.kind == "i" else []
        return np.array(values, row.numpy)
    special = [0.0, -0.0, 0.5, -0.5, 1, -1, 2, -2, 3, 7, -7, 1e4, -1e4, 0.1, -0.3, np.nan, np.inf, -np.inf]
    return np.array(special).astype(row.numpy)


def _takes(expression, kind):
    symbol = expression.split()[1] if " " in expression else expression
    if symbol in ("&", "|", "^"):
        return kind in "biu"
    if symbol in ("<<", ">>"):
        return kind in "iu"
    return kind != "b" or symbol not in ("-", "//", "%", "**", "/")


def _kernel(lines, arguments, scope=None):
    text = f"def drawn({arguments}):\n    for i in range(a.size):\n"
    text += "".join(f"        {line}\n" for line in lines)
    path = f"<semantics {hash(text)}>"
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    exec(compile(text, path, "exec"), space := dict(scope or {}))
    return kernel(space["drawn"])


def _expected(function, common, x, y):
    with np.errstate(all="ignore"):
        if common.is_narrow:  # computed in float32, and rounded
            wide = function(x.astype(np.float32), y.astype(np.float32))
            return wide if wide.dtype == bool else wide.astype(common.numpy)
        return function(x.astype(common.numpy), y.astype(common.numpy))


def _same(got, expected, loose, message):
    if asdtype(got.dtype).is_narrow:
        got, expected = got.astype(np.float32), expected.astype(np.float32)
    if loose:
        np.testing.assert_allclose(got, expected, rtol=loose, err_msg=message)
    else:
        np.testing.assert_array_equal(got, expected, err_msg=message)


PAIRS = [(row, row) for row in REAL] + [
    (BY_NAME[a], BY_NAME[b])
    for a, b in (
        ("int8", "uint8"), ("uint16", "int8"), ("int32", "uint32"), ("bool", "int16"), ("int8", "float16"),
        ("float32", "int64"), ("uint64", "uint8"), ("bfloat16", "float32"), ("float16", "float64"),
    )
]  # fmt: skip


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=lambda row: str(row))
def test_operators(device, first, second):
    common = promote(first, second)
    uses = {e: f for e, f in OPERATORS.items() if _takes(e, common.kind)}
    uses |= _unary(common.kind) if first is second else {}
    a, b = (m.ravel() for m in np.meshgrid(_values(first), _values(second), indexing="ij"))
    powers = b
    if common.kind in "iu":  # NumPy refuses negative ones
        powers = np.where(b < 0, 3, b).astype(b.dtype)
    expected = [_expected(f, common, a, powers if "p" in e.split() else b) for e, f in uses.items()]
    lines = ["x, y, p = a[i], b[i], c[i]", *(f"o{n}[i] = {e}" for n, e in enumerate(uses))]
    made = _kernel(lines, ", ".join(["a, b, c", *(f"o{n}" for n in range(len(uses)))]))
    results = launch(made, device, a, b, powers, *(np.zeros_like(e) for e in expected))[3:]
    for expression, got, want in zip(uses, results, expected, strict=True):
        loose = 4 * np.finfo(np.float32).eps if "**" in expression and common.kind == "f" else 0
        loose = max(loose, {1: 0.25, 2: 1e-2}.get(common.itemsize, 0)) if loose else loose
        _same(got, want, loose, f"{first} {expression} {second}")


@pytest.mark.parametrize("row", [row for row in ALL if row.kind == "c"], ids=str)
def test_operators_of_complex(device, row):
    parts = np.array([0.0, 1.5, -2.0, 3.0])
    values = (parts[:, None] + 1j * parts).ravel().astype(row.numpy)
    a, b = (m.ravel() for m in np.meshgrid(values, values, indexing="ij"))
    uses = {"x + y": np.add, "x - y": np.subtract, "x * y": np.multiply, "x / y": np.true_divide}
    uses |= {"x == y": np.equal, "x != y": np.not_equal}
    with np.errstate(all="ignore"):
        expected = [f(a, b) for f in uses.values()] + [np.abs(a), a.conj(), a.real, -a]
    expressions = [*uses, "abs(x)", "k.conj(x)", "x.real", "-x"]
    lines = ["x, y = a[i], b[i]", *(f"o{n}[i] = {e}" for n, e in enumerate(expressions))]
    names = ", ".join(f"o{n}" for n in range(len(expressions)))
    made = _kernel(lines, f"a, b, {names}", {"k": markers.kernel_math})
    results = launch(made, device, a, b, *(np.zeros_like(e) for e in expected))[2:]
    finite = (b != 0) & np.isfinite(expected[3])
    for expression, got, want in zip(expressions, results, expected, strict=True):
        use = finite if "/" in expression else slice(None)
        np.testing.assert_allclose(got[use], want[use], rtol=1e-6, err_msg=expression)


CASTS = [0.0, -0.0, 0.5, -0.5, 1.5, -1.5, 127, 128, -128, -129, 255, 256, -300, 32767, 32768, -32769, 65536]
CASTS += [
    2.0**31,
    -(2.0**31) - 1,
    2.0**32,
    2.0**63,
    -(2.0**63),
    2.0**64,
    1e30,
    -1e30,
    np.nan,
    np.inf,
    -np.inf,
]


@pytest.mark.parametrize("row", REAL, ids=str)
def test_casts(device, row):
    """Out of range, to integers, the bits are those of x86-64, as NumPy's are there. To uint32 NumPy's own
    depend on the place in the array, and float8's are others."""
    with np.errstate(all="ignore"):
        a = np.array(CASTS).astype(row.numpy) if row.kind == "f" else _values(row)
        expected = [known_to_numpy(a).astype(t.numpy) for t in REAL]
    lines = [f"o{n}[i] = T[{n}](a[i])" for n in range(len(REAL))]
    made = _kernel(lines, ", ".join(["a", *(f"o{n}" for n in range(len(REAL)))]), {"T": tuple(REAL)})
    results = launch(made, device, a, *(np.zeros_like(e) for e in expected))[1:]
    with np.errstate(invalid="ignore"):
        settled = np.abs(a.astype(np.float64)) < 2**32
    for target, got, want in zip(REAL, results, expected, strict=True):
        use = settled if target.name == "uint32" and row.kind == "f" else slice(None)
        _same(got[use], want[use], 0, f"{row} to {target}")


@kernel
def constants(out, i8):
    out[0] = -7 // 2
    out[1] = -7 % 2
    out[2] = 7 // -2
    out[3] = 2**10 >> 3
    out[4] = -1 >> 70
    out[5] = round(2.5) + round(3.5)
    out[6] = int(-2.5)
    out[7] = i8[0] + 100  # a weak number: it wraps in int8
    out[8] = abs(i8[1])
    out[9] = i8[1] // -1
    out[10] = 5 & 3 | 8 ^ 1


def test_constants(device):
    with np.errstate(all="ignore"):
        constants.__wrapped__(expected := np.zeros(11, np.int64), edges := np.array([100, -128], np.int8))
    out = launch(constants, device, np.zeros(11, np.int64), edges)[0]
    assert out.tolist() == expected.tolist()
    assert out[7] == -56
    assert out[8] == -128


def test_a_number_that_is_out_of_range_is_refused():
    made = _kernel(["a[i] = int8(200)"], "a", {"int8": BY_NAME["int8"]})
    with pytest.raises(CompileError, match="the number 200 is out of range for int8"):
        made(np.zeros(3, np.int8))


# ---- atomics: many threads, one element

_SCOPE = {name: getattr(markers, name) for name in dir(markers) if name.startswith("atomic_")}
SUMS = ["atomic_add(out, 0, a[i] % 2)", "atomic_sub(out, i % 2 + 1, a[i] % 2)"]
EXTREMES = ["atomic_min(out, 3, a[i])", "atomic_max(out, 4, a[i])"]
BITS = ["atomic_and(out, 5, a[i] | a[7])", "atomic_or(out, 6, a[i])", "atomic_xor(out, 7, a[i])"]
EXCHANGE = ["got[i] = atomic_exchange(out, 8, a[i])"]


@pytest.mark.parametrize("row", ALL, ids=str)
def test_atomics(device, row):
    """Small numbers, whose sums are exact in any order. Of an exchange, each value is handed to exactly one
    iteration: what comes out, and stays, is what went in."""
    count = {1: 8, 2: 100}[row.itemsize] if row.is_narrow else 20_000
    a = np.random.default_rng(5).integers(0, 2 if row.kind == "b" else 100, count).astype(row.numpy)
    start = np.zeros(9, row.numpy)
    start[3:6] = 9, 9, 1
    start[5] = ~start[5] if row.kind in "biu" else 0
    lines = SUMS if row.kind in "iuf" else []
    lines = [line.replace("a[i] % 2", "a[i]") for line in SUMS] if row.kind == "c" else lines
    lines = [*lines, *(EXTREMES if row.kind in "iuf" else []), *(BITS if row.kind in "biu" else [])]
    made = _kernel([*lines, *(EXCHANGE if row.kind != "c" else [])], "a, out, got", _SCOPE)
    _, out, got = launch(made, device, a, start, np.zeros_like(a))
    if row.kind in "iufc":
        added = a if row.kind == "c" else np.fmod(a.astype(np.float64), 2)
        expected = [added.sum(), -added[::2].sum(), -added[1::2].sum()]
        wrapped = np.array(expected).astype(np.int64).astype(row.numpy) if row.kind in "iu" else expected
        np.testing.assert_array_equal(out[:3].astype(np.complex128), wrapped)
    if row.kind in "iuf":
        assert (out[3], out[4]) == (a.min(), a.max())
    if row.kind in "biu":
        bits = [np.bitwise_and.reduce(a | a[7]), np.bitwise_or.reduce(a), np.bitwise_xor.reduce(a)]
        assert out[5:8].tolist() == [x.item() & start[5].item() if n == 0 else x.item() for n, x in enumerate(bits)]
    if row.kind != "c":
        everything = np.append(got.astype(np.float64), out[8].astype(np.float64))
        np.testing.assert_array_equal(np.sort(everything), np.sort(np.append(a.astype(np.float64), 0)))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_atomic_extremes_of_nan(device, dtype):
    a = np.arange(1000.0).astype(dtype)
    a[123] = np.nan
    made = _kernel(["atomic_min(out, 0, a[i])", "atomic_max(out, 1, a[i])"], "a, out", _SCOPE)
    assert np.isnan(launch(made, device, a, np.array([9, 9]).astype(dtype))[1]).all()


@kernel
def claimed(owner, tries):
    for i in range(tries.size):
        tries[i] = markers.atomic_cas(owner, i % owner.size, 0, i + 1)


@pytest.mark.parametrize("dtype", ["int32", "uint64", "float32", "float64"])
def test_compare_and_swap(device, dtype):
    """One thread of each group gets the place; all others see who has it."""
    owner, tries = on(device, np.zeros(7, dtype)), on(device, np.zeros(20_000, dtype))
    claimed(owner, tries)
    owner, tries = asnumpy(owner).astype(np.int64), asnumpy(tries).astype(np.int64)
    for place in range(7):
        mine = tries[place::7]
        assert (mine == 0).sum() == 1
        assert set(mine[mine != 0]) <= {owner[place]}
        assert mine[(owner[place] - 1) // 7] == 0
