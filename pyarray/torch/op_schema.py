"""The schema of an operator, derived from a kernel's parameters. Types come from annotations, or from
arguments given as examples; who writes what comes from the kernel's directions, for these types.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from pyarray.annotations import ArrayAnnotation
from pyarray.array import empty, ndarray
from pyarray.array_hooks import is_foreign
from pyarray.driver.base import get_device
from pyarray.dtypes import PYTHON_KIND, DType, asdtype, float32
from pyarray.jit.kernel import Kernel
from pyarray.jit.signature import Parameter
from pyarray.lang.markers import constexpr
from pyarray.tune.tuned import Tuned

WRITTEN = ("OUT", "INOUT")
MISSING: Any = inspect.Parameter.empty
_SCHEMA = {"b": "bool", "i": "SymInt", "u": "SymInt", "f": "float", "c": "complex"}
_NUMBERS: dict[str, Any] = {"b": True, "i": 1, "u": 1, "f": 1.0, "c": 1j}  # stand for any of their kind


@dataclass(frozen=True)
class Argument:
    """A parameter of a kernel as torch knows it. `direction` is IN, OUT, INOUT or UNUSED of an array, None of
    others; `kind` is the type in the schema. `default` is that of the Python function."""

    name: str
    direction: str | None
    kind: str
    default: Any
    keyword_only: bool
    dtype: DType | None = None

    @property
    def written(self) -> bool:
        return self.direction in WRITTEN

    @property
    def optional(self) -> bool:
        return self.default is None


def arguments_of(name: str, kernel: Any, args: Any) -> tuple[Argument, ...]:
    """The kernel's parameters, without those that a tuner chooses. `args` are examples: all of a launch's
    arguments in order, or a mapping from some of their names. Raises `TypeError` for what no operator
    takes, and where neither an annotation nor an example says what a parameter is."""
    plain, tuned = plain_kernel(name, kernel)
    parameters = [p for p in plain.parameters if p.name not in tuned]
    by_name = _examples(name, parameters, args)
    examples = {p.name: _example(name, p, by_name.get(p.name)) for p in parameters}
    launch = tuple({**examples, **tuned}[p.name] for p in plain.parameters)
    with torch.no_grad():
        bound = plain.bind(launch)
    directions = plain._lowered(bound, False).directions
    return tuple(_argument(name, p, examples[p.name], directions.get(p.name)) for p in parameters)


def plain_kernel(name: str, kernel: Any) -> tuple[Kernel, dict[str, Any]]:
    """The kernel, and for a tuned one the first candidate's constants by name."""
    if isinstance(kernel, Kernel):
        return kernel, {}
    if isinstance(kernel, Tuned):
        return kernel.kernel, kernel.first()
    what = f"expected what pa.kernel or pa.autotune makes, got {type(kernel).__name__}"
    raise TypeError(f"op {name!r}: {what}; wrap other functions with torch.library.custom_op")


def _examples(name: str, parameters: Sequence[Parameter], args: Any) -> dict[str, Any]:
    names = [p.name for p in parameters]
    if args is None:
        return {}
    if isinstance(args, Mapping):
        unknown = [n for n in args if n not in names]
        if unknown:
            raise TypeError(f"op {name!r}: args has {unknown[0]!r}; the parameters are {', '.join(names)}")
        return dict(args)
    if not isinstance(args, (tuple, list)) or len(args) != len(names):
        got = f"{len(args)}" if isinstance(args, (tuple, list)) else type(args).__name__
        what = f"args is a tuple of examples for {', '.join(names)}, got {got}"
        raise TypeError(f"op {name!r}: {what}; or write a dict from some of the names")
    return dict(zip(names, args, strict=True))


def _example(name: str, p: Parameter, example: Any) -> Any:
    """An argument of the parameter's type."""
    where = f"op {name!r}: {p.name!r}"
    if p.structure:
        what = f"is a structure, {p.annotation!r}, and operators of torch take tensors and numbers"
        raise TypeError(f"{where} {what}; write a kernel that takes its fields")
    if example is not None:
        return example
    annotation = p.annotation
    if isinstance(annotation, ArrayAnnotation) and annotation.ndim is not None:
        shape = tuple(1 if n is None else n for n in annotation.sizes or (None,) * annotation.ndim)
        return empty(shape, annotation.dtype or float32, get_device("cpu"))
    if p.scalar:
        kind = annotation.kind if isinstance(annotation, DType) else PYTHON_KIND[annotation]
        return _NUMBERS[kind]
    if not isinstance(annotation, ArrayAnnotation) and p.default not in (MISSING, None):
        return p.default
    how = "args={%r: torch.empty(...)}" if isinstance(annotation, ArrayAnnotation) else "args={%r: ...}"
    what = "a rank" if isinstance(annotation, ArrayAnnotation) else "whether it is an array or a number"
    raise TypeError(f"{where} has no annotation that says {what}; annotate it, or pass {how % p.name}")


def _argument(name: str, p: Parameter, example: Any, direction: str | None) -> Argument:
    where = f"op {name!r}: {p.name!r}"
    if isinstance(example, (ndarray, np.ndarray)) or is_foreign(example):
        annotation = p.annotation if isinstance(p.annotation, ArrayAnnotation) else None
        if p.keyword_only:
            what = "is an array and keyword-only, which torch's operators don't take"
            raise TypeError(f"{where} {what}; make it positional")
        how, dtype = direction or "UNUSED", annotation.dtype if annotation else None
        return Argument(p.name, how, "Tensor", p.default, False, dtype)
    if isinstance(example, str):
        kind = "str"
    elif isinstance(example, np.generic) or type(example) in PYTHON_KIND:
        letter = PYTHON_KIND.get(type(example)) or asdtype(example.dtype).kind
        kind = "int" if p.annotation is constexpr and letter in "iu" else _SCHEMA[letter]
    else:
        what = f"is {type(example).__name__}, and operators of torch take tensors, numbers and texts"
        raise TypeError(f"{where} {what}; capture it instead")
    return Argument(p.name, None, kind, p.default, p.keyword_only)


def schema(name: str, arguments: Sequence[Argument], results: int) -> str:
    """The schema of an operator with these arguments, without its name's namespace."""
    parts, optional_before = [], ""
    if {"self", "input"} <= {a.name for a in arguments}:
        what = "'self' and 'input' are one name to torch's inductor, which calls both 'input'"
        raise TypeError(f"op {name!r}: {what}; rename a parameter")
    for k, a in enumerate(arguments):
        if a.keyword_only and "*" not in parts:
            parts.append("*")
            optional_before = ""
        if a.default is MISSING and optional_before:
            what = f"{a.name!r} has no default and comes after {optional_before!r}, which has one"
            raise TypeError(f"op {name!r}: {what}; operators of torch have such in the other order")
        optional_before = optional_before or (a.name if a.default is not MISSING else "")
        kind = f"Tensor(a{k}!)" if a.written else a.kind
        mark = "?" if a.optional else ""
        parts.append(f"{kind}{mark} {a.name}{_default(name, a)}")
    returns = {0: "()", 1: "Tensor"}.get(results, f"({', '.join(['Tensor'] * results)})")
    return f"{name.partition('::')[2]}({', '.join(parts)}) -> {returns}"


def _default(name: str, a: Argument) -> str:
    value = a.default.item() if isinstance(a.default, np.generic) else a.default
    if value is MISSING:
        return ""
    if isinstance(value, str):
        plain = value.isprintable() and not set(value) & set("\"'\\")
        text = f'"{value}"' if plain else None
    elif value is None or isinstance(value, (bool, int)):
        text = repr(value)
    else:
        text = repr(value) if isinstance(value, float) and math.isfinite(value) else None
    if text is None:
        what = f"the default {value!r} of {a.name!r} can't be written in a schema of torch"
        raise TypeError(f"op {name!r}: {what}; leave it out")
    return f"={text}"
