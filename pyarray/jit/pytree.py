"""Pytrees of kernel arguments: which are structures, of what classes, and their leaves.

Tuples, dataclasses and objects are flattened at each launch; the device gets their leaves, named by path:
`p.inner.v`, `t[0]`. A pytree is made once, from live arguments; C then reads the leaves of each launch as its `treedef`
says. No value in a structure is kept.
"""

from __future__ import annotations

import enum
import functools
import inspect
import types
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args, get_origin

import numpy as np

from .._core import TreeDef
from ..annotations import ArrayAnnotation, field_annotations, field_names, is_structure
from ..array import ndarray
from ..array_convert import as_base_class
from ..array_hooks import is_foreign
from ..dtypes import DEFAULT, PYTHON_KIND, DType, named_dtype
from ..errors import with_article
from ..lang.aggregates import Aggregate
from ..lang.ir import static_key
from ..lang.parse import attributes_read
from ..structured_array import StructuredArray, array_class
from ..structured_dtypes import StructuredAnnotation, of_dtype
from .signature import Constant, Parameter, Unread, bind_type, field_annotation

Attributes = dict[str, Any]  # attribute → what is read of it: which attributes a kernel's text names
_CONTAINERS = (list, dict, set, frozenset, bytearray)
_CONSTANT_CLASSES = (  # compiled in
    str, bytes, type(None), enum.Enum, np.dtype, types.FunctionType, types.BuiltinFunctionType,
    types.ModuleType, np.ufunc, type,
)  # fmt: skip
# A class's annotations are what they were when it was made.
_field_annotations: weakref.WeakKeyDictionary[type, dict[str, Any]] = weakref.WeakKeyDictionary()
_DEFAULT_SCALARS: tuple[type[np.generic], ...] = (np.bool_, np.int64, np.float64, np.complex128)
# enum pac_leaf_kind of csrc/core/launcher.h: how a leaf is part of the key
ARRAY, NUMBER, TYPED, CONSTANT, UNREAD, LAYOUT, SHAPE = range(7)
_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: not one of the interpreter's own classes


@dataclass(frozen=True)
class Struct:
    """An argument, or a part of one, of class `kind`. `items` are its fields called `names`, of a plain tuple
    its items; `complete` says that these are all fields of the class."""

    name: str
    kind: type
    names: tuple[str, ...]
    items: tuple[Struct | Parameter, ...]
    complete: bool

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that the items are; of structured arrays those that are the views of fields."""
        records = issubclass(self.kind, StructuredArray)
        return tuple(f".{name}" for name in self.names) if records else self.names


@dataclass(frozen=True, eq=False)
class Pytree:
    """One entry per parameter, and the leaves of all in order. `plain`: each is what the signature says.
    Kernels keep one object per structure, so that comparing is fast."""

    items: tuple[Struct | Parameter, ...]

    @functools.cached_property
    def leaves(self) -> tuple[Parameter, ...]:
        return tuple(leaf for item in self.items for leaf in leaves_of(item))

    def named(self, values: Sequence[Any]) -> dict[str, Any]:
        """One value per leaf, by the leaf's name."""
        return {leaf.name: value for leaf, value in zip(self.leaves, values, strict=True)}

    @functools.cached_property
    def plain(self) -> bool:
        return not any(isinstance(item, Struct) or constant_class(item) for item in self.items)

    @functools.cached_property
    def structure(self) -> tuple[Struct | type | None, ...]:
        """The structure by which two pytrees of one kernel are compared."""
        return tuple(item if isinstance(item, Struct) else constant_class(item) for item in self.items)

    @functools.cached_property
    def treedef(self) -> TreeDef:
        """How C flattens arguments of this pytree, and makes the key of their leaves. It tests the classes of
        structures and of what is compiled in because of what it is, and reads each field once."""
        return TreeDef(tuple(_node(item) for item in self.items), static_key, self.plain)


def _node(item: Struct | Parameter) -> tuple[Any, ...]:
    """(class or None, names or None, items) of a structure, (class or None, how it is part of the key, dtype code) of
    a leaf, with the sizes that are declared, -1 for any: there is no key for an array of others. Annotated numbers
    aren't part of the key: they are only values."""
    if isinstance(item, Struct):
        names = None if item.kind is tuple else item.attributes
        return item.kind, names, tuple(_node(part) for part in item.items)
    annotation = item.annotation
    if isinstance(annotation, (Constant, Unread)):
        return annotation.kind, CONSTANT if item.constant else UNREAD, 0
    if isinstance(annotation, ArrayAnnotation):
        sizes = annotation.sizes
        return (None, ARRAY, 0, *([] if sizes is None else [tuple(-1 if n is None else n for n in sizes)]))
    if item.scalar:
        return None, NUMBER, number_code(item)
    return None, CONSTANT if item.constant else TYPED, 0


def number_code(p: Parameter) -> int:
    """The dtype code of a parameter that is annotated as a number."""
    annotation = p.annotation
    return (annotation if isinstance(annotation, DType) else DEFAULT[PYTHON_KIND[annotation]]).code


def constant_class(item: Struct | Parameter) -> type | None:
    """Class of an argument that is compiled in because of what it is, None of others."""
    fixed = isinstance(item, Parameter) and isinstance(item.annotation, Constant)
    return item.annotation.kind if fixed else None  # type: ignore[union-attr]


def leaves_of(item: Struct | Parameter) -> Iterator[Parameter]:
    if isinstance(item, Parameter):
        yield item
        return
    for part in item.items:
        yield from leaves_of(part)


def flatten(
    kernel: str, parameters: tuple[Parameter, ...], args: tuple[Any, ...], reads: Callable[[], Attributes]
) -> tuple[Pytree, list[Any]]:
    """Pytree and leaves of live arguments; each field is read once. `reads()` says what the kernel's text reads
    of objects that are no dataclass.

    Raises `TypeError` for an argument that is not what its annotation says, and for a field without a value.
    """
    reader = _Flattener(kernel, reads)
    items = tuple(reader.argument(p, a) for p, a in zip(parameters, args, strict=True))
    return Pytree(items), reader.values


class _Flattener:
    def __init__(self, kernel: str, reads: Callable[[], Attributes]):
        self.kernel, self.reads = kernel, reads
        self.values: list[Any] = []

    def argument(self, p: Parameter, value: Any) -> Struct | Parameter:
        if value is None and p.default is None and not p.constant:
            p = replace(p, annotation=Constant(type(None)))  # left out
        if _is_records(p.annotation, value):
            return self.records(p.name, p.annotation, value)
        if p.structure:
            return self.annotated(p.name, p.annotation, value, lambda: self.reads().get(p.name, {}))
        group = p.annotation is None and not _is_leaf(value)
        if group and (is_structure(type(value)) or type(value) is tuple or _is_object(value)):
            return self.struct(p.name, value, {}, lambda: self.reads().get(p.name, {}))
        if group and (isinstance(value, _CONSTANT_CLASSES) or hasattr(value, "__pyarray_func__")):
            p = replace(p, annotation=Constant(type(value)))
        self.values.append(_plain_constant(value) if p.constant else value)
        return p

    def annotated(self, path: str, annotation: Any, value: Any, reads: Callable[[], Attributes]) -> Struct:
        """`annotation` is a dataclass, a named tuple or `tuple[...]`."""
        inner = get_args(annotation) if get_origin(annotation) is tuple else ()
        kind = tuple if get_origin(annotation) is tuple else annotation
        wrong = not isinstance(value, kind) or isinstance(value, type)
        if wrong or (inner and len(value) != len(inner)):  # pyright: ignore[reportArgumentType]
            expected = f"a tuple of {len(inner)}" if inner else f"{with_article(kind.__name__)}"
            got = f"a tuple of {len(value)}" if isinstance(value, tuple) and inner else type(value).__name__
            raise TypeError(f"{self.kernel}(): {path!r} must be {expected}, got {got}")
        annotations = {str(k): field_annotation(a) for k, a in enumerate(inner)} if inner else {}
        return self.struct(path, value, annotations or _annotations(kind), reads)

    def struct(self, path: str, value: Any, annotations: dict[str, Any], reads: Callable[[], Attributes]) -> Struct:
        kind = type(value)
        if kind is tuple:
            items = tuple(
                self.part(f"{path}[{k}]", annotations.get(str(k)), item, reads) for k, item in enumerate(value)
            )
            return Struct(path, kind, (), items, True)
        is_aggregate = is_structure(kind)
        named = field_names(kind) if is_aggregate else _read_names(value, reads())
        annotations = annotations or _annotations(kind)
        parts = []
        for name in named:
            try:
                part = getattr(value, name)
            except AttributeError:
                raise TypeError(f"{self.kernel}(): '{path}.{name}' has no value") from None
            inner: Any = lambda n=name: reads().get(n, {})  # noqa: E731
            parts.append(self.part(f"{path}.{name}", annotations.get(name), part, inner))
        return Struct(path, kind, named, tuple(parts), is_aggregate)

    def records(self, path: str, annotation: StructuredAnnotation | None, value: Any) -> Struct:
        """A structured array, of NumPy's too: a leaf for each field of numbers, which has the sizes of a field's
        array."""
        if annotation is not None:
            _check_records(self.kernel, path, annotation, value)
        direction = None if annotation is None else annotation.direction
        if isinstance(value, np.ndarray):
            value = as_base_class(value)
            layout = of_dtype(value.dtype) if annotation is None else annotation.layout
        else:
            layout = value.__pyarray_layout__
        parts: list[Struct | Parameter] = []
        for name, field in layout.fields.items():
            view = value[name]
            if field.inner is not None:
                inner = StructuredAnnotation(field.inner, value.ndim, direction)
                parts.append(self.records(f"{path}.{name}", inner, view))
                continue
            sizes = (None,) * value.ndim + field.shape if field.shape else None
            parts.append(Parameter(f"{path}.{name}", ArrayAnnotation(False, None, view.ndim, direction, sizes)))
            self.values.append(view)
        return Struct(path, array_class(layout), tuple(layout.fields), tuple(parts), True)

    def part(self, path: str, annotation: Any, value: Any, reads: Callable[[], Attributes]) -> Struct | Parameter:
        if _is_records(annotation, value):
            return self.records(path, annotation, value)
        if annotation is not None:
            p = Parameter(path, annotation)
            if p.structure:
                return self.annotated(path, annotation, value, reads)
        elif _is_leaf(value):
            p = Parameter(path, None)
        elif is_structure(type(value)) or type(value) is tuple:
            return self.struct(path, value, {}, reads)
        elif isinstance(value, _CONSTANT_CLASSES) or hasattr(value, "__pyarray_func__"):
            p = Parameter(path, Constant(type(value)))
        elif _is_object(value) and reads():
            return self.struct(path, value, {}, reads)
        else:
            p = Parameter(path, Unread(type(value)))
        self.values.append(_plain_constant(value) if p.constant else value)
        return p


def _is_records(annotation: Any, value: Any) -> bool:
    """Whether an argument is a structured array, or has to be one."""
    if annotation is not None:
        return isinstance(annotation, StructuredAnnotation)
    return isinstance(value, StructuredArray) or (isinstance(value, np.ndarray) and value.dtype.names is not None)


def _check_records(kernel: str, path: str, annotation: StructuredAnnotation, value: Any) -> None:
    """Raises `TypeError` for what is no array of these records of this rank."""
    layout, rank = annotation.layout, annotation.ndim
    what = f"{kernel}(): {path!r} must be {'an' if rank is None else f'a {rank}-D'} array of {layout}"
    if isinstance(value, StructuredArray):
        found = value.__pyarray_layout__
        if found is not layout:
            advice = f"; write .view({layout})" if found.dtype == layout.dtype else ""
            raise TypeError(f"{what}, got one of {found}{advice}")
    elif not isinstance(value, np.ndarray):
        advice = f"; make one with pa.asarray(..., dtype={layout})" if isinstance(value, (list, tuple)) else ""
        raise TypeError(f"{what}, got {type(value).__name__}{advice}")
    elif value.dtype != layout.dtype:
        raise TypeError(f"{what}, got one of {value.dtype}")
    if rank is not None and value.ndim != rank:
        raise TypeError(f"{what}, got a {value.ndim}-D array of shape {value.shape}")


def _plain_constant(value: Any) -> Any:
    """A number to be compiled in: NumPy's scalars of the default types are Python's numbers, so that 3 and
    `np.int64(3)` are one variant."""
    return value.item() if isinstance(value, _DEFAULT_SCALARS) else value


def _is_leaf(value: Any) -> bool:
    """An array or a number, of whichever library."""
    return (
        isinstance(value, (ndarray, np.ndarray, np.generic))
        or type(value) in PYTHON_KIND
        or (is_foreign(value) and not isinstance(value, type))
    )


def _is_object(value: Any) -> bool:
    """Whether its attributes may be read one by one: an instance of a class that Python code defined, or such
    a class."""
    kind = value if isinstance(value, type) else type(value)
    fixed = isinstance(value, (*_CONTAINERS, *_CONSTANT_CLASSES[:-1])) or named_dtype(value)
    return bool(kind.__flags__ & _HEAP_TYPE) and not fixed and not hasattr(value, "__pyarray_func__")


def _read_names(value: Any, reads: Attributes) -> tuple[str, ...]:
    """Attributes of an object that a kernel reads, itself or in a `@pa.func` of the object's class. Methods
    aren't values."""
    names = dict.fromkeys(reads)
    for name in (queue := list(names)):  # which grows on the way
        source = getattr(inspect.getattr_static(value, name, None), "__pyarray_func__", None)
        if source is not None:
            first = next(iter(source.signature.parameters), "")
            queue += [n for n in attributes_read(source).get(first, {}) if n not in names]
            names |= dict.fromkeys(queue)
    attributes = ((name, getattr(value, name, types.MethodType)) for name in names)
    return tuple(n for n, x in attributes if x is not types.MethodType and not isinstance(x, types.MethodType))


def _annotations(kind: type) -> dict[str, Any]:
    """What the annotations of a class's fields say to a kernel, None where nothing."""
    if not is_structure(kind):
        return {}
    cached = _field_annotations.get(kind)
    if cached is None:
        annotations = field_annotations(kind).items()
        cached = _field_annotations[kind] = {n: None if a is None else field_annotation(a) for n, a in annotations}
    return cached


def types_of(kernel: str, pytree: Pytree, values: Iterable[Any]) -> list[tuple[str, Any]]:
    """(name, type) of each parameter: a type, a `Static`, or an `Aggregate` or tuple of these. Raises `TypeError`
    that names the parameter or the path."""
    leaves = iter(values)
    return [(item.name, _type_of(kernel, item, leaves)) for item in pytree.items]


def _type_of(kernel: str, item: Struct | Parameter, leaves: Iterator[Any]) -> Any:
    """Of an item whose leaves' values come next in `leaves`."""
    if isinstance(item, Parameter):
        return bind_type(kernel, item, next(leaves))
    parts = tuple(_type_of(kernel, part, leaves) for part in item.items)
    return parts if item.kind is tuple else Aggregate(item.kind, item.names, parts, item.complete)
