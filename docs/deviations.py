"""Where pyarray differs from NumPy and is meant to: `make_reference.py` prints it, and the differential test
(`tests/differential`) takes these differences and no others."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Deviation:
    """A row of the page: `what` differs, `numpy` and `here`. `checks` are (function, aspect, when): what the
    test takes for meant. `function` is a pattern, `aspect` one of `tests/differential/compare.py`,
    `when` one of the conditions in `tests/differential/meant.py`."""

    what: str
    numpy: str
    here: str
    checks: tuple[tuple[str, str, str], ...] = ()


def _each(functions: str, aspects: str, when: str) -> tuple[tuple[str, str, str], ...]:
    return tuple((f, a, when) for f in functions.split() for a in aspects.split())


DEVIATIONS = (
    Deviation(
        "one element, a full reduction",
        "a scalar (`np.float64`)",
        "a 0-d array; `float(a)` and `a.item()` read it",
    ),
    Deviation(
        "`a[0]` of an array",
        "a number of its own",
        "a view: it changes with `a` ([why](../guide/numpy.md#an-element-is-a-view))",
    ),
    Deviation(
        "Python numbers",
        "weak, as of NumPy 2",
        "weak: `int8 + 1` is int8, and `int8 + 300` an `OverflowError`",
    ),
    Deviation(
        "an integer with a floating type",
        "a floating type that holds all integers of the type: int32 with float32 is float64",
        "the floating type: int32 with float32 is float32 ([table](dtypes.md))",
        _each("add multiply maximum divide diff polyder polyint", "dtype", "mixed")
        + _each("polyder polyint", "dtype", "floats")
        + _each("diff", "dtype", "Python integers"),
    ),
    Deviation(
        "uint64 with a signed integer",
        "float64",
        "a `TypeError` that asks for `astype`; comparisons go by value",
        _each("add multiply maximum divide", "raises", "mixed") + _each("diff", "raises", "uint64"),
    ),
    Deviation("integer sums", "int64", "int64, unsigned: uint64"),
    Deviation(
        "`sqrt`, `sin`, `exp` … of small integers; `divide`, `hypot`, `arctan2`, `copysign`, `logaddexp`",
        "int8 and bool: float16, int16: float32",
        "float64, as of all integers",
        _each("sqrt exp log sin divide median mean", "dtype", "integers"),
    ),
    Deviation(
        "`reciprocal` of integers",
        "an integer, mostly 0",
        "float64",
        _each("reciprocal", "dtype values", "integers"),
    ),
    Deviation(
        "integers to the power of an array with negative integers",
        "a `ValueError`",
        "0, but for bases of 1 and -1: elements of a device are not read to decide. A Python number such as "
        "`a ** -1` is a `ValueError`, of an empty array too",
        _each("pow power ndarray.__pow__ ndarray.__ipow__", "raises", "empty"),
    ),
    Deviation(
        "order of complex numbers: `<`, `max`, `maximum`, `argmax`, `ptp`, `median`",
        "by real part, then imaginary part",
        "a `TypeError`; `sort`, `argsort` and `unique` work, as in NumPy",
        _each("less maximum max argmax ptp median", "raises", "complex"),
    ),
    Deviation(
        "`spacing` of negative float16",
        "positive, and halved for powers of two",
        "negative, and the distance to the next number away from zero, as of the other types",
        _each("spacing", "values memory", "half"),
    ),
    Deviation(
        "`nextafter(0.0, -0.0)` of float16",
        "the first",
        "the second, as C's function and as of the other types",
        _each("nextafter", "values memory", "half"),
    ),
    Deviation(
        "`round` of integers to tens, with `out=` of integers",
        "`UFuncTypeError`, though it gives integers without `out`",
        "integers",
        (("round", "raises", "all integers"),),
    ),
    Deviation(
        "`i0` of float16 beyond 11.08",
        "infinite: its steps are rounded to float16, and `exp` overflows",
        "the number, up to 65504",
        _each("i0", "values memory", "half"),
    ),
    Deviation(
        "`place` with values that lie in the array itself",
        "reads values that it has just written",
        "the values before the call",
        (("place", "memory", "shared"),),
    ),
    Deviation(
        "`corrcoef` of a row whose elements are all the same",
        "NaN, or the quotient of two rounding errors",
        "the same, by other roundings",
        (("corrcoef", "values", "repeats"),),
    ),
    Deviation(
        "`prod` of many floats, some of whose products overflow",
        "one factor after the other: 0 remains 0",
        "in parts, at once: NaN where one part is infinite and another is 0",
    ),
    Deviation(
        "`prod` of complex numbers, some of which are infinite",
        "one factor after the other, from the first one",
        "in parts that start from 1+0j, which is not neutral: it may be NaN",
    ),
    Deviation(
        "norms of float16",
        "float16, which they overflow at 65504",
        "float32",
        _each("linalg.norm linalg.vector_norm", "dtype", "half"),
    ),
    Deviation(
        "edges of `histogram` of float16",
        'float16, which may be equal: "too many bins"',
        "float64",
        _each("histogram histogram2d histogram_bin_edges", "dtype values", "half"),
    ),
    Deviation(
        "`axis=0` of a 0-d array",
        "taken by sums, extremes, scans and `take`; not by `mean`, `median` and `sort`",
        "an `AxisError`; `add.reduce` and its like take it, whose default it is",
    ),
    Deviation("`a == None`", "an array of False", "`False`"),
    Deviation(
        "`np.divide.at` of integers and the like",
        "what doesn't fit is cut off",
        'the "same_kind" casts of `/=`: a `TypeError`',
    ),
    Deviation(
        "`np.save`, `np.savez` of such arrays",
        "yes",
        "a `TypeError` that says what to call; `pa.save` writes the same files",
    ),
    Deviation(
        "sums of floats",
        "pairwise, in their own type",
        "float64 accumulators, compensated: never less exact. Sums of float32 and narrower along rows in `pa.fuse` on "
        "GPUs: in float32, pairwise ([why](../design/fused_rows.md))",
    ),
    Deviation(
        "results into other types (`out=`, `+=`)",
        '"same_kind" casts',
        "the same: int64 into int8, not float into int, not signed into unsigned",
    ),
    Deviation(
        "what repeats (`broadcast_to`, `torch`'s `expand`: a stride of 0)",
        "read-only, or written several times",
        "read-only; writing is a `ValueError`, `a.copy()` is free to be written",
    ),
    Deviation(
        "which of 0.0 and -0.0 is the larger, or comes first in an order",
        "either, by chance of the vectors",
        "either; `sort` keeps them in their order",
    ),
    Deviation(
        "`round(a)`, `math.floor(a)` of one element",
        "a Python int",
        "the same; `round(a, 2)` is an array",
    ),
    Deviation(
        "subclasses",
        "yes",
        "none; memory of NumPy's (`memmap`, `matrix`) is shared, masked arrays are refused: pass "
        "`x.filled(value)`, or `x.data` and `x.mask`",
    ),
    Deviation("object, text and date dtypes", "yes", "no"),
    Deviation(
        "memory order",
        "`order=` of nearly all",
        "of `zeros`, `ravel`, `copy` … and their like; results are in C order, or as their operands lie",
    ),
    Deviation(
        "where arrays are",
        "the host",
        "a [device](../guide/devices.md); NumPy gets a GPU's elements by `a.get()` or `pa.asnumpy(a)` alone",
    ),
)
