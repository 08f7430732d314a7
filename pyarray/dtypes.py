"""Element types: one row each, and promotion from a lattice of upward edges. Users see NumPy's dtypes; what
they give becomes a row in `asdtype` (docs/design/dtypes.md).

>>> import pyarray as pa
>>> pa.result_type(pa.int8, pa.uint8)
dtype('int16')
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import ml_dtypes
import numpy as np

from pyarray._core import register_dtypes


class DType:
    """What the library knows about an element type. `name`, `code` (small integer), `kind` (b i u f c),
    `itemsize` (bytes), `suffix` (of C names), `ctype`, `numpy`: the dtype that users see.

    There is one row per type, so rows are compared by identity.
    """

    __slots__ = ("code", "ctype", "itemsize", "kind", "name", "numpy", "suffix")

    def __init__(self, name: str, code: int, kind: str, suffix: str, ctype: str, numpy: Any):
        self.name, self.code, self.kind = name, code, kind
        self.suffix, self.ctype = suffix, ctype
        self.numpy: np.dtype[Any] = np.dtype(numpy)
        self.itemsize = self.numpy.itemsize

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype: this attribute lets NumPy take a row for a dtype."""
        return self.numpy

    @property
    def is_narrow(self) -> bool:
        """Whether it is a floating type of less than 32 bits: it is computed in float32 and rounded."""
        return self.kind == "f" and self.itemsize < 4

    @property
    def arithmetic(self) -> DType:
        """The type in which it is computed: float32 for a narrow floating type, else itself."""
        return float32 if self.is_narrow else self

    @property
    def greatest_bits(self) -> int:
        """The greatest value of a floating type as an unsigned integer, infinity where it has one: without their signs,
        NaNs alone are above it."""
        bits = int(np.array(np.inf, self.numpy).view(f"u{self.itemsize}"))
        return bits - 1 if np.isnan(np.array(np.inf, self.numpy)) else bits

    def __call__(self, value: Any = 0) -> Any:
        """The NumPy scalar; in the library's own kernels, a cast."""
        return self.numpy.type(value)

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return asdtype, (self.name,)


_ROWS = (  # name, kind, suffix, C type, NumPy type
    ("bool", "b", "b", "bool", np.bool_),
    ("int8", "i", "i8", "int8_t", np.int8),
    ("int16", "i", "i16", "int16_t", np.int16),
    ("int32", "i", "i32", "int32_t", np.int32),
    ("int64", "i", "i64", "int64_t", np.int64),
    ("uint8", "u", "u8", "uint8_t", np.uint8),
    ("uint16", "u", "u16", "uint16_t", np.uint16),
    ("uint32", "u", "u32", "uint32_t", np.uint32),
    ("uint64", "u", "u64", "uint64_t", np.uint64),
    ("float16", "f", "f16", "pa_f16", np.float16),
    ("bfloat16", "f", "bf16", "pa_bf16", ml_dtypes.bfloat16),
    ("float32", "f", "f32", "float", np.float32),
    ("float64", "f", "f64", "double", np.float64),
    ("complex64", "c", "c64", "pa_c64", np.complex64),
    ("complex128", "c", "c128", "pa_c128", np.complex128),
    ("float8_e4m3fn", "f", "e4m3", "pa_e4m3", ml_dtypes.float8_e4m3fn),
    ("float8_e5m2", "f", "e5m2", "pa_e5m2", ml_dtypes.float8_e5m2),
)
ALL = tuple(
    DType(name, code, kind, suffix, ctype, numpy) for code, (name, kind, suffix, ctype, numpy) in enumerate(_ROWS)
)
BY_NAME = {row.name: row for row in ALL}
# A dtype and its class of scalars are equal in NumPy, but their hashes differ: each is a key of its own.
_KNOWN: dict[Any, DType] = {key: row for row in ALL for key in (row, row.name, row.numpy, row.numpy.type)}

bool_ = BY_NAME["bool"]
int8, int16, int32, int64 = ALL[1:5]
uint8, uint16, uint32, uint64 = ALL[5:9]
float16, bfloat16, float32, float64 = ALL[9:13]
complex64, complex128 = ALL[13:15]
float8_e4m3fn, float8_e5m2 = ALL[15:17]
# Those of ml_dtypes: NumPy's files, printer and interfaces have no name for them.
EXTENSIONS = frozenset((bfloat16, float8_e4m3fn, float8_e5m2))
EXTENSION_SCALARS = frozenset(row.numpy.type for row in EXTENSIONS)

# Upward edges; everything else about promotion is derived from them. Without an answer: uint64 with a signed
# integer.
_EDGES = {
    bool_: (int8, uint8),
    int8: (int16,),
    int16: (int32,),
    int32: (int64,),
    uint8: (uint16, int16),
    uint16: (uint32, int32),
    uint32: (uint64, int64),
    float16: (float32,),
    bfloat16: (float32,),
    float8_e4m3fn: (float32,),
    float8_e5m2: (float32,),
    float32: (float64, complex64),
    float64: (complex128,),
    complex64: (complex128,),
}

CATEGORIES = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "real numeric": "iuf",
    "floating": "fc",
    "integer or bool": "biu",
    "real": "biuf",
    "numeric": "iufc",
    "all": "biufc",
}
PYTHON_KIND = {bool: "b", int: "i", float: "f", complex: "c"}
DEFAULT = {"b": bool_, "i": int64, "f": float64, "c": complex128}  # of Python scalars, by kind


def asdtype(value: Any) -> DType:
    """The row that `value` names: a NumPy dtype or scalar type, a name, Python's bool, int, float, complex,
    or a row.

    Raises `TypeError` for anything else, an unsupported NumPy type among it.

    >>> asdtype("float32"), asdtype(np.int8), asdtype(np.dtype("bool")), asdtype(float)
    (float32, int8, bool, float64)
    """
    try:
        dtype = _KNOWN.get(value)
        if dtype is None and value is not None:
            dtype = _KNOWN.get(np.dtype(value))
    except (TypeError, ValueError):
        dtype = None
    names = getattr(value, "names", None)
    if dtype is None and names:
        raise TypeError(f"{value!r} is a dtype of records, and numbers are needed here: pass a field, x['{names[0]}']")
    if dtype is None:
        raise TypeError(f"dtype {value!r} is not supported; there are {', '.join(BY_NAME)}")
    return dtype


register_dtypes(ALL, asdtype)


def dtype_of(value: Any) -> DType:
    """The row of an array's or a NumPy scalar's dtype, or of what names a dtype. Raises `TypeError` for what
    is neither.

    >>> dtype_of(np.ones(2)), dtype_of(np.float32), dtype_of("int8")
    (float64, float32, int8)
    """
    row = getattr(value, "_dtype", None)
    if isinstance(row, DType):
        return row
    return asdtype(value if isinstance(value, type) else getattr(value, "dtype", value))


def named_dtype(value: Any) -> DType | None:
    """The row of a NumPy dtype or of a class of NumPy's scalars; None for other values, and for dtypes that
    are not supported.

    >>> named_dtype(np.float32), named_dtype(np.dtype("int8")), named_dtype("int8"), named_dtype(float)
    (float32, int8, None, None)
    """
    if not isinstance(value, (np.dtype, DType)) and not (isinstance(value, type) and issubclass(value, np.generic)):
        return None
    try:
        return asdtype(value)
    except TypeError:
        return None


def shown(value: Any) -> str:
    """A value in the text of an error: a dtype by its name, others as `repr` has them.

    >>> shown(np.float32), shown(np.dtype("int8")), shown("int8")
    ('float32', 'int8', "'int8'")
    """
    row = named_dtype(value)
    return repr(value) if row is None else row.name


@functools.cache
def above(dtype: DType) -> frozenset[DType]:
    """The types that hold all numbers of this one, itself among them."""
    return frozenset((dtype,)).union(*(above(up) for up in _EDGES.get(dtype, ())))


class NoCommonType(TypeError):
    """No type holds the numbers of both."""


@functools.cache
def promote(a: DType, b: DType) -> DType:
    """The smallest type that holds both: the least common point above them in the lattice.

    An integer or bool with a floating type gives the floating type. Raises `NoCommonType` where there is none
    (uint64 with a signed integer).
    """
    if a is b:
        return a
    for low, high in ((a, b), (b, a)):
        if low.kind in "biu" and high.kind in "fc":
            return high
        if low is bool_:
            return high
    common = above(a) & above(b)
    least = [point for point in common if common <= above(point)]
    if not least:
        raise NoCommonType(f"{a} and {b} have no common type that holds both; cast one of them with astype")
    return least[0]


_KIND_ORDER = "biufc"


def promote_scalar(dtype: DType, scalar: type) -> DType:
    """Type of an array of `dtype` with a Python scalar of type `scalar`: weak, so it only lifts the kind,
    never the width.

    >>> promote_scalar(float32, float), promote_scalar(int8, float), promote_scalar(float32, complex)
    (float32, float64, complex64)
    """
    kind = PYTHON_KIND[scalar]
    if _KIND_ORDER.index(kind) <= _KIND_ORDER.index(dtype.kind) or (kind == "i" and dtype.kind == "u"):
        return dtype
    if kind == "c" and dtype.kind == "f":
        return complex128 if dtype is float64 else complex64
    return DEFAULT[kind]


def result_type(*operands: Any) -> DType:
    """Common type of arrays, dtypes and Python scalars (weak). Raises `ValueError` for no operand and
    `TypeError` where there is no common type.

    >>> result_type(float32, 2.0), result_type(int8, int64)
    (float32, int64)
    """
    kinds = [getattr(x, "_weak_type", type(x)) for x in operands]  # a tracer says whose it is
    scalars = [t for t in kinds if t in PYTHON_KIND]
    strong = [dtype_of(x) for x, t in zip(operands, kinds, strict=True) if t not in PYTHON_KIND]
    if not operands:
        raise ValueError("result_type() takes at least one array, dtype or scalar, got none; give one")
    if not strong:
        return DEFAULT[max((PYTHON_KIND[t] for t in scalars), key=_KIND_ORDER.index)]
    return functools.reduce(promote_scalar, scalars, functools.reduce(promote, strong))


def real_of(dtype: DType) -> DType:
    """The type of a complex type's components; a real type itself."""
    return {complex64: float32, complex128: float64}.get(dtype, dtype)


def complex_of(dtype: DType) -> DType:
    """The complex type whose components are of this type; a complex type itself."""
    return promote(dtype, complex64)


def of_kinds(kinds: Iterable[str]) -> tuple[DType, ...]:
    """All types whose kind letter is in `kinds`, in row order."""
    codes = frozenset(kinds)
    return tuple(row for row in ALL if row.kind in codes)


def can_cast(source: Any, target: DType) -> bool:
    """Whether every value of `source` (dtype or array) is held by `target`, by the lattice.

    >>> can_cast(int8, int32), can_cast(float64, float32)
    (True, False)
    """
    try:
        return promote(dtype_of(source), target) is target
    except TypeError:
        return False
