"""Signatures of kernels: parameters with their annotations, and the types that arguments give them."""

from __future__ import annotations

import enum
import functools
import inspect
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, get_args, get_origin

import numpy as np

from ..annotations import ArrayAnnotation, declared, is_structure, without_none
from ..array import ndarray
from ..array_convert import asarray
from ..array_hooks import is_foreign
from ..array_marks import MARKED, specializations_of
from ..buffer_view import BufferView
from ..dtypes import ALL, DEFAULT, PYTHON_KIND, DType, asdtype, dtype_of
from ..errors import with_article
from ..lang.aggregates import UnreadableField
from ..lang.ir import ArrayType, ScalarType, Static
from ..lang.markers import constexpr
from ..lang.parse import FunctionSource
from ..lang.pipeline import Program
from ..lang.specializations import Specialization
from ..structured_dtypes import StructuredAnnotation


@dataclass(frozen=True)
class Constant:
    """Annotation of a field that holds an object of class `kind` and is compiled in."""

    kind: type


@dataclass(frozen=True)
class Unread:
    """Annotation of a field that holds an object of class `kind`, of which kernels can't read anything."""

    kind: type


@dataclass(frozen=True)
class Parameter:
    """A parameter, or a leaf of one, then called by its path. `annotation` is an `ArrayAnnotation`, a
    `DType`, bool, int, float, complex, `constexpr`, a dataclass or named tuple, `Constant`, `Unread`, or
    None: whatever comes."""

    name: str
    annotation: Any
    default: Any = inspect.Parameter.empty
    keyword_only: bool = False

    @functools.cached_property
    def scalar(self) -> bool:
        """Whether the annotation is a number's type: the argument is then a value and no part of the key."""
        return isinstance(self.annotation, DType) or _is_python_number(self.annotation)

    @functools.cached_property
    def structure(self) -> bool:
        """Whether the annotation says a tuple, a named tuple, a dataclass or an array of records."""
        annotation = self.annotation
        return (
            is_structure(annotation) or isinstance(annotation, StructuredAnnotation) or get_origin(annotation) is tuple
        )

    @functools.cached_property
    def constant(self) -> bool:
        """Whether the argument's value is compiled in."""
        return self.annotation is constexpr or isinstance(self.annotation, Constant)


class Argument(NamedTuple):
    """A row of `Signature`: direction is IN, OUT, INOUT, UNUSED or SCALAR."""

    direction: str
    dtype: np.dtype[Any]
    ndim: int


class Signature(dict[str, Argument]):
    """Parameter name → `Argument`, in order. `arrays` leaves the scalars out."""

    @property
    def arrays(self) -> dict[str, Argument]:
        return {name: row for name, row in self.items() if row.direction != "SCALAR"}


def signature_of(program: Program, types: Mapping[str, Any]) -> Signature:
    """What a compiled kernel's parameters are; `types` by the name of the leaf."""
    return Signature(
        (name, Argument(how, types[name].dtype.numpy, getattr(types[name], "ndim", 0)))
        for name, how in program.directions.items()
    )


def parameters_of(source: FunctionSource) -> tuple[Parameter, ...]:
    """Parameters of a kernel function. Raises `TypeError` for an annotation that means nothing here."""
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in source.signature.parameters.values()):
        _ = source.node  # refuses them, with file and line
    return tuple(
        Parameter(name, _annotation(source, name), p.default, p.kind is inspect.Parameter.KEYWORD_ONLY)
        for name, p in source.signature.parameters.items()
    )


def _annotation(source: FunctionSource, name: str) -> Any:
    annotation = without_none(source.annotation(name))
    if annotation is None or annotation is Any or _is_of_objects(annotation):
        return None
    try:
        return _resolve(annotation)
    except TypeError:
        raise TypeError(
            f"{source.name}(): the annotation of {name!r} is {annotation!r}; expected pa.BufferView[dtype], "
            "pa.ndarray[dtype, ndim], pa.ndarray[dtype, shape], one of these in pa.In[...], pa.Out[...] or "
            "pa.InOut[...], a dtype, int, float, bool, complex, a dataclass, a named tuple, tuple[...], str, an Enum, "
            "Callable or pa.constexpr"
        ) from None


def _is_of_objects(annotation: Any) -> bool:
    """Whether an annotation is that of a text, a member of an Enum, a function or a class: the argument is compiled in,
    whatever it is."""
    if isinstance(annotation, type) and issubclass(annotation, (str, enum.Enum, types.NoneType)):
        return True
    origin = get_origin(annotation) or annotation
    return any(origin is kind for kind in (Callable, Literal, type))


def _resolve(annotation: Any) -> Any:
    """An annotation as `Parameter` keeps it. Raises `TypeError` for what means nothing here."""
    direction = declared(annotation)
    if direction is not None:
        inner = ArrayAnnotation(False, None, None) if direction.inner is None else _resolve(direction.inner)
        if not isinstance(inner, (ArrayAnnotation, StructuredAnnotation)):
            raise TypeError(f"only arrays have a direction, not {inner!r}")
        return replace(inner, direction=direction.direction)
    if annotation is ndarray or annotation is BufferView:
        return ArrayAnnotation(annotation is BufferView, None, 1 if annotation is BufferView else None)
    plain = isinstance(annotation, (ArrayAnnotation, StructuredAnnotation, DType))
    is_type = plain or annotation is constexpr or _is_python_number(annotation)
    if (
        is_type
        or is_structure(annotation)
        or (get_origin(annotation) is tuple and Ellipsis not in get_args(annotation))
    ):
        return annotation
    return asdtype(annotation)  # numpy.float32 and the like


def _is_python_number(kind: Any) -> bool:
    """By identity, since NumPy's dtypes equal Python's types of numbers."""
    return any(kind is number for number in (bool, int, float, complex))


def field_annotation(annotation: Any) -> Any:
    """A field's annotation as the kernel language reads it; None if it has no meaning there."""
    try:
        return None if isinstance(annotation, str) else _resolve(annotation)
    except TypeError:
        return None


# ---- types that arguments give parameters


def array_type(key: int) -> ArrayType:
    """The `ArrayType` that an array's `_key` says (docs/design/contracts.md)."""
    specs = specializations_of(key) if key & MARKED else ()
    return ArrayType(ALL[key & 0xFF], key >> 8 & 0xFF, bool(key >> 16 & 1), specs)


def is_readonly(key: int) -> bool:
    return bool(key >> 17 & 1)


def bind_type(kernel: str, parameter: Parameter, argument: Any) -> Any:
    """Type (or `Static`) of one parameter for this argument. Raises `TypeError` that names the parameter,
    what was expected and what came."""
    annotation = parameter.annotation
    if isinstance(annotation, Unread):
        return Static(UnreadableField(annotation.kind))
    if parameter.constant:
        return Static(argument)
    if isinstance(annotation, ArrayAnnotation):
        return _bind_array(kernel, parameter.name, annotation, argument)
    if isinstance(argument, ndarray) and annotation is None:
        return array_type(argument._key)
    if annotation is None:
        if type(argument) in PYTHON_KIND:
            return ScalarType(DEFAULT[PYTHON_KIND[type(argument)]], weak=type(argument) is not bool)
        if isinstance(argument, np.generic):
            return ScalarType(asdtype(argument.dtype))
        raise TypeError(
            f"{kernel}(): {parameter.name!r} can't be {with_article(type(argument).__name__)}"
            + (_advice(argument) or "; pass an array or a number")
        )
    dtype = annotation if isinstance(annotation, DType) else DEFAULT[PYTHON_KIND[annotation]]
    check_number(kernel, parameter.name, annotation, dtype, argument)
    return ScalarType(dtype, weak=not isinstance(annotation, DType) and annotation is not bool)


def _bind_array(kernel: str, name: str, annotation: ArrayAnnotation, argument: Any) -> ArrayType:
    if not isinstance(argument, ndarray):
        raise TypeError(
            f"{kernel}(): {name!r} must be {_expected(annotation)}, got {type(argument).__name__}{_advice(argument)}"
        )
    kind = array_type(argument._key)
    if annotation.dtype is not None and kind.dtype is not annotation.dtype:
        raise TypeError(
            f"{kernel}(): {name!r} must be {_expected(annotation)}, got an array of {kind.dtype}; "
            f"convert it with .astype(pa.{annotation.dtype})"
        )
    if annotation.ndim is not None and kind.ndim != annotation.ndim:
        raise TypeError(
            f"{kernel}(): {name!r} must be {_expected(annotation)}, got a {kind.ndim}-D array of shape {argument.shape}"
        )
    if annotation.view and kind.strided:
        raise TypeError(
            f"{kernel}(): {name!r} is a BufferView, which is contiguous, and got strides {argument.strides}; "
            f"annotate it pa.ndarray[pa.{kind.dtype}, 1] or pass a copy"
        )
    if annotation.sizes is None:
        return kind
    if any(n is not None and n != m for n, m in zip(annotation.sizes, argument.shape, strict=True)):
        raise TypeError(
            f"{kernel}(): {name!r} must be {_expected(annotation)}, got a {kind.ndim}-D array of shape {argument.shape}"
        )
    pinned = {spec.axis: spec for spec in kind.specializations if spec.size is not None}
    for axis, n in enumerate(annotation.sizes):
        if n is not None and axis not in pinned:
            pinned[axis] = Specialization(axis, n)
    others = (spec for spec in kind.specializations if spec.axis not in pinned)
    return replace(kind, specializations=tuple(sorted([*pinned.values(), *others], key=lambda spec: spec.axis)))


def _advice(argument: Any) -> str:
    return "; make an array of it with pa.asarray(...)" if isinstance(argument, (list, tuple, range)) else ""


def _expected(annotation: ArrayAnnotation) -> str:
    rank = "a 1-D contiguous" if annotation.view else f"a {annotation.ndim}-D" if annotation.ndim is not None else "an"
    shape = f" of shape {annotation.sizes}" if annotation.sizes is not None else ""
    return f"{rank} array" + (f" of {annotation.dtype}" if annotation.dtype is not None else "") + shape


def check_number(kernel: str, name: str, annotation: Any, dtype: DType, value: Any) -> None:
    """Raises `TypeError` or `OverflowError` unless `value` is a number that a parameter of `dtype` can
    hold."""
    legal = {"b": (bool, np.bool_), "f": (float, np.floating), "c": (complex, np.complexfloating)}.get(dtype.kind, ())
    order = "biufc"
    kind: str | None
    if isinstance(value, (np.generic, ndarray)):
        kind = dtype_of(value).kind
    else:  # a member of an IntEnum is an integer
        kind = PYTHON_KIND.get(type(value)) or ("i" if isinstance(value, int) else None)
    if isinstance(value, ndarray) and value.size != 1:
        kind = None
    wrong = kind is None or (order.index(kind) > order.index(dtype.kind) and not (kind in "iu" and dtype.kind in "iu"))
    if wrong and not isinstance(value, legal):
        got = (
            f"an array of {value._dtype} of shape {value.shape}"
            if isinstance(value, ndarray)
            else f"{type(value).__name__} ({value!r})"
        )
        shown = annotation if isinstance(annotation, DType) else annotation.__name__
        raise TypeError(f"{kernel}(): {name!r} must be a number of type {shown}, got {got}")
    if dtype.kind in "iu":
        info = np.iinfo(dtype.numpy)
        if not info.min <= int(value) <= info.max:
            raise OverflowError(f"{kernel}(): {name!r} = {_shown(int(value))} is out of range for {dtype}")
    elif type(value) is int and dtype.kind in "fc" and value.bit_length() > 64:
        try:
            float(value)
        except OverflowError:
            raise OverflowError(f"{kernel}(): {name!r} = {_shown(value)} is out of range for {dtype}") from None


def _shown(value: int) -> str:
    return str(value) if abs(value) < 1 << 70 else f"an integer of {value.bit_length()} bits"


def as_argument(value: Any) -> Any:
    """Other libraries' arrays as arrays on the same memory; everything else as it is."""
    if isinstance(value, ndarray) or not (isinstance(value, np.ndarray) or is_foreign(value)):
        return value
    # of NumPy's, on the CPU, whatever the default device: elsewhere it would be a copy
    return asarray(value, copy=False, device=None if is_foreign(value) else "cpu")
