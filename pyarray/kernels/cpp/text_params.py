"""Parameters of C++ kernels: parses CuPy's parameter lists and binds type letters to argument dtypes."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import shapes
from ...array import ndarray
from ...array_hooks import on_several_devices
from ...array_views import repetition
from ...driver.base import Device, get_device
from ...driver.cc import CPP
from ...dtypes import DType, asdtype
from ...jit.report import caller
from ...jit.signature import as_argument, check_number, is_readonly
from ...jit.text_kernel import TextKernel
from ...lang.pipeline import Program
from ..elementwise.elementwise import copy_if_aliased

CTYPES = {
    "bool": "bool", "int8": "signed char", "int16": "short", "int32": "int", "int64": "long long",
    "uint8": "unsigned char", "uint16": "unsigned short", "uint32": "unsigned int",
    "uint64": "unsigned long long", "float16": "float16", "bfloat16": "bfloat16",
    "float8_e4m3fn": "float8_e4m3fn", "float8_e5m2": "float8_e5m2", "float32": "float",
    "float64": "double", "complex64": "complex<float>", "complex128": "complex<double>",
}  # fmt: skip
RESERVED = ("i", "n", "_ind")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Param:
    """One of `"T x, raw float32 y"`. `dtype` is None where the type is a letter."""

    name: str
    letter: str
    dtype: DType | None
    raw: bool
    out: bool

    def ctype(self, types: dict[str, DType]) -> str:
        """Its type in the text."""
        return self.letter if self.dtype is None else CTYPES[self.dtype.name]

    def kind(self, types: dict[str, DType]) -> DType:
        """The type of its elements when letters stand for `types`."""
        return types[self.letter] if self.dtype is None else self.dtype


def check_name(name: Any) -> str:
    """`name`, if a function in C++ can be called so. Raises `ValueError`."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise ValueError(f"{name!r} is no name for a kernel: expected letters, digits and _, no digit first")
    return name


def check_options(kernel: str, options: Any) -> tuple[str, ...]:
    """Options for compilers. Raises `TypeError` unless it is a tuple or list of str."""
    if not isinstance(options, (tuple, list)) or not all(isinstance(o, str) for o in options):
        raise TypeError(f"{kernel}: options is a tuple of strings, got {options!r}")
    return tuple(options)


def host_options(options: tuple[str, ...]) -> tuple[str, ...]:
    """Those that mean the same to the C++ compiler of a CPU: definitions and folders."""
    return tuple(o for o in options if o.startswith(("-D", "-U", "-I")))


def parse_params(kernel: str, text: str, out: bool) -> tuple[Param, ...]:
    """The parameters that a list in CuPy's way names. Raises `ValueError` that shows the wrong one."""
    return tuple(_param(kernel, part, out) for part in text.split(",")) if text.strip() else ()


def _param(kernel: str, part: str, out: bool) -> Param:
    *words, kind, name = part.split() if len(part.split()) > 1 else ("", "", "")
    if not name or any(word != "raw" for word in words):
        raise ValueError(f"{kernel}: {part.strip()!r} is no parameter; expected 'T x', 'float32 x' or 'raw T x'")
    if not _NAME.fullmatch(name) or name in RESERVED:
        raise ValueError(
            f"{kernel}: a parameter can't be called {name!r}; names are letters, digits and _, don't begin "
            "with _, and aren't i or n"
        )
    if len(kind) == 1 and kind.isalpha():
        return Param(name, kind, None, bool(words), out)
    try:
        return Param(name, kind, asdtype(kind), bool(words), out)
    except TypeError as error:
        raise ValueError(f"{kernel}: the type of {part.strip()!r} is no letter and no dtype: {error}") from None


class CppKernel(ABC):
    """Base of the kernels that are declared by CuPy's parameter lists."""

    def _declare(self, name: str, in_params: str, out_params: str, options: Any) -> None:
        """Raises `ValueError` for a name or a list that can't be, `TypeError` for options that are no
        strings."""
        self.name = self.__name__ = check_name(name)
        self.in_params = parse_params(name, in_params, out=False)
        self.out_params = parse_params(name, out_params, out=True)
        self.params = self.in_params + self.out_params
        self.nin, self.nout, self.nargs = len(self.in_params), len(self.out_params), len(self.params)
        check_distinct(name, self.params)
        options = check_options(name, options)
        self._location = caller() or ("", 0)
        flags = (*CPP, *host_options(options))
        self._kernel = TextKernel(name, self._program, flags=flags, grid_flags=options)

    @abstractmethod
    def _program(self, key: Any, target: str, debug: bool) -> Program:
        """The text for a key that the kernel is launched with."""


def check_distinct(kernel: str, params: Sequence[Param]) -> None:
    """Raises `ValueError` for a name that comes twice."""
    names = [p.name for p in params]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"{kernel}: two parameters are called {twice!r}")


# ---- arguments


def arguments_of(kernel: str, params: Sequence[Param], args: Sequence[Any]) -> list[Any]:
    """Arguments as arrays and numbers. Raises `TypeError` for anything else, and for an output that is no
    array, `ValueError` for an output that is read-only."""
    arguments: list[Any] = []
    for param, arg in zip(params, args, strict=True):
        arg = as_argument(arg)
        if not isinstance(arg, (ndarray, bool, int, float, complex, np.generic)) or (
            param.out and not isinstance(arg, ndarray)
        ):
            what = "an array" if param.out else "an array or a number"
            raise TypeError(f"{kernel}(): {param.name!r} must be {what}, got {type(arg).__name__}")
        if isinstance(arg, ndarray) and param.out and is_readonly(arg._key):
            why = repetition(arg)
            what = f"the output {param.name!r} is read-only{why and ': '}{why}"
            raise ValueError(f"{kernel}(): {what}; pass a copy")
        arguments.append(arg)
    return arguments


def device_of(kernel: str, params: Sequence[Param], args: Sequence[Any]) -> Device:
    """The device of all arrays; the default device without any. Raises `ValueError` for two devices."""
    arrays = [(repr(p.name), a) for p, a in zip(params, args, strict=True) if isinstance(a, ndarray)]
    devices = {a.device for _, a in arrays}
    if len(devices) > 1:
        raise on_several_devices(kernel, arrays)
    return next(iter(devices), None) or get_device(None)


def bind_letters(kernel: str, params: Sequence[Param], args: Sequence[Any]) -> dict[str, DType]:
    """The dtype of each letter, from the array arguments, outputs first; numbers bind none. Raises
    `TypeError` for an array of another type than its parameter has, and for a letter that no array binds."""
    types: dict[str, DType] = {}
    by: dict[str, str] = {}
    arrays = [(p, a) for p, a in zip(params, args, strict=False) if isinstance(a, ndarray)]
    for p, a in sorted(arrays, key=lambda pair: not pair[0].out):
        expected = p.dtype if p.dtype is not None else types.setdefault(p.letter, a._dtype)
        if a._dtype is not expected:
            why = f", since {p.letter} is the type of {by[p.letter]!r}" if p.dtype is None else ""
            raise TypeError(
                f"{kernel}(): {p.name!r} must be an array of {expected}{why}, got one of {a._dtype}; "
                f"convert it with .astype(pa.{expected})"
            )
        by.setdefault(p.letter, p.name)
    for p in params:
        if p.dtype is None and p.letter not in types:
            what = "give the output array" if p.out else "pass an array, or write a dtype in its place"
            raise TypeError(f"{kernel}(): no array says what the type {p.letter!r} of {p.name!r} is; {what}")
    return types


def as_number(kernel: str, name: str, dtype: DType, value: Any) -> Any:
    """A number as a parameter of `dtype` takes it: cut to an integer, as NumPy assigns. Raises `TypeError`
    for a complex number where that is lost, and `OverflowError` for an integer out of range."""
    plain = value.item() if isinstance(value, np.generic) else value
    if dtype.kind == "b":
        return bool(plain)
    if dtype.kind in "iu" and isinstance(plain, (bool, float)):
        plain = int(plain)
    check_number(kernel, name, dtype, dtype, plain)
    return {"i": int, "u": int, "f": float, "c": complex}[dtype.kind](plain)


def broadcast(kernel: str, arrays: Sequence[tuple[Param, tuple[int, ...]]]) -> tuple[int, ...]:
    """The shape of all these arrays together. Raises `ValueError` that names them, and for an output of
    another shape."""
    try:
        shape = shapes.broadcast_shapes(*(shape for _, shape in arrays))
    except ValueError:
        listed = ", ".join(f"{p.name!r} of shape {shape}" for p, shape in arrays)
        raise ValueError(f"{kernel}(): {listed} don't broadcast: sizes must be equal or 1") from None
    for p, shape_of_param in arrays:
        if p.out and shape_of_param != shape:
            raise ValueError(f"{kernel}(): the output {p.name!r} has shape {shape_of_param}, the arguments {shape}")
    return shape


def copy_if_unsafe(x: Any, param: Param, outs: Sequence[ndarray]) -> Any:
    """An input, copied if it aliases an output in another arrangement or its elements are misaligned."""
    if not isinstance(x, ndarray) or param.raw:
        return x
    for out in outs:
        x = copy_if_aliased(x, out)
    return x if aligned(x) else x.copy()


def aligned(x: ndarray) -> bool:
    """Whether every element is aligned to its size, as C++ requires."""
    return not any(number % x.itemsize for number in (x._ptr, *x._strides)) or x._size == 0
