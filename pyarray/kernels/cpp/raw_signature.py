"""Parses a C++ kernel's parameter list, and packs arguments into the bytes that a launch takes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...array import ndarray
from ...dtypes import BY_NAME, DEFAULT, PYTHON_KIND, DType, asdtype, uint64
from ...errors import CompileError
from ...jit.signature import as_argument
from .text_params import CTYPES, as_number

# words of C++ and of the headers for the dtypes, without `signed`, `const` and the like
_WORDS = {ctype: name for name, ctype in CTYPES.items()} | {
    "char": "int8", "unsigned": "uint32", "long": "int64", "unsigned long": "uint64", "long int": "int64",
    "long long int": "int64", "short int": "int16", "half": "float16", "__half": "float16",
    "__nv_bfloat16": "bfloat16", "__nv_fp8_e4m3": "float8_e4m3fn", "__nv_fp8_e5m2": "float8_e5m2",
    "size_t": "uint64", "ptrdiff_t": "int64", "float2": "complex64", "double2": "complex128",
    "cuFloatComplex": "complex64", "cuComplex": "complex64", "cuDoubleComplex": "complex128",
    "thrust::complex<float>": "complex64", "thrust::complex<double>": "complex128",
} | {f"{name}_t": name for name in BY_NAME if "int" in name}  # fmt: skip
_QUALIFIERS = re.compile(r"\b(const|volatile|signed|register|struct|__restrict__|__restrict|restrict)\b")


@dataclass(frozen=True)
class RawParam:
    """A parameter in the text. `dtype` is None for an address, and for a type that isn't known here."""

    name: str
    text: str
    address: bool
    dtype: DType | None


def check_kernel(code: str, name: str) -> None:
    """Raises `CompileError` unless the text may define a kernel of that name."""
    if not re.search(rf"\b{re.escape(name)}\s*\(", code) and "#include" not in code and "##" not in code:
        raise CompileError(
            f'there is no kernel {name!r} in the text; it must say: extern "C" __global__ void {name}(...)'
        )


def parameters(code: str, name: str) -> tuple[RawParam, ...] | None:
    """The parameters of a kernel; None where they can't be parsed: several functions of that name, macros in
    the list."""
    code = re.sub(r"//[^\n]*|/\*.*?\*/", " ", code, flags=re.DOTALL).replace("\\\n", " ")
    starts = [m.end() for m in re.finditer(rf"\b{re.escape(name)}\s*\(", code)]
    if len(starts) != 1 or not re.search(r"__global__[^;{}]*$", code[: starts[0] - 1]):
        return None
    depth, end = 1, starts[0]
    while end < len(code) and depth:
        depth += (code[end] == "(") - (code[end] == ")")
        end += 1
    listed = code[starts[0] : end - 1].strip()
    macros = set(re.findall(r"#\s*define\s+(\w+)", code))
    if depth or macros & set(re.findall(r"\w+", listed)) or "=" in listed or "#" in listed or "..." in listed:
        return None
    return tuple(_parameter(part) for part in _split(listed)) if listed not in ("", "void") else ()


def _split(listed: str) -> list[str]:
    """At the commas that aren't inside brackets."""
    parts, depth = [""], 0
    for letter in listed:
        depth += (letter in "(<[{") - (letter in ")>]}")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _parameter(part: str) -> RawParam:
    words = " ".join(_QUALIFIERS.sub(" ", part).split())
    match = re.search(r"(\w+)\s*(\[[^\]]*\]\s*)*$", words)
    name = match[1] if match else ""
    address = "*" in words or "[" in words
    kind = words[: match.start()].strip() if match else words
    dtype = None if address else _WORDS.get(re.sub(r"\s*([<>,:])\s*", r"\1", kind))
    return RawParam(name, " ".join(part.split()), address, BY_NAME[dtype] if dtype else None)


# ---- arguments


def converted_arguments(
    kernel: str, params: tuple[RawParam, ...] | None, args: Sequence[Any]
) -> list[tuple[Any, DType]]:
    """Each argument, an array or a number, with the dtype that the kernel takes. Raises `TypeError` for a
    wrong number of arguments, for other types, and for an array in a number's place or the reverse;
    `OverflowError` for an integer that its parameter can't hold."""
    if params is not None and len(params) != len(args):
        listed = ", ".join(p.text for p in params) or "nothing"
        raise TypeError(f"{kernel}() takes {len(params)} arguments ({listed}), got {len(args)}")
    rows = params if params is not None else [RawParam("", "", False, None)] * len(args)
    return [
        _converted(kernel, n, p, arg, params is not None) for n, (p, arg) in enumerate(zip(rows, args, strict=True))
    ]


def _converted(kernel: str, number: int, param: RawParam, arg: Any, is_typed: bool) -> tuple[Any, DType]:
    what = f"argument {number}" + (f" ({param.text})" if is_typed else "")
    if isinstance(arg, np.ndarray) and (arg.size == 1 or arg.dtype.names):
        arg = arg.reshape(-1)[0]  # by value, as CuPy passes them
    if isinstance(arg, np.void):
        raise TypeError(
            f"{kernel}(): {what} is a structure ({arg.dtype}), and only arrays and numbers can be passed; "
            "pass its fields one by one, or an array that holds it"
        )
    arg = as_argument(arg)
    if isinstance(arg, ndarray):
        if is_typed and not param.address and param.dtype is not None:
            raise TypeError(f"{kernel}(): {what} is a number in the kernel, got an array of {arg._dtype}")
        return arg, arg._dtype
    if not isinstance(arg, (bool, int, float, complex, np.generic)):
        raise TypeError(f"{kernel}(): {what} must be an array or a number, got {type(arg).__name__}")
    if param.address:
        raise TypeError(f"{kernel}(): {what} is an address in the kernel, got {arg!r}; pass an array")
    if param.dtype is not None:
        if type(arg) is float and param.dtype.kind in "iu":
            raise TypeError(f"{kernel}(): {what} is an integer in the kernel, got {arg!r}")
        return as_number(kernel, param.name, param.dtype, arg), param.dtype
    if isinstance(arg, np.generic):
        return arg.item(), asdtype(arg.dtype)
    dtype = DEFAULT[PYTHON_KIND[type(arg)]]
    dtype = uint64 if type(arg) is int and arg >= 1 << 63 else dtype
    return as_number(kernel, what, dtype, arg), dtype


def pack_arguments(values: Sequence[tuple[Any, DType]]) -> bytes:
    """The arguments' bytes, each aligned to its size."""
    row = bytearray()
    for value, dtype in values:
        if isinstance(value, ndarray):
            part = value._ptr.to_bytes(8, "little")
        else:
            part = np.asarray(value, dtype.numpy).tobytes()
        row += bytes(-len(row) % len(part)) + part
    return bytes(row)


_FORMATS = {"int8": "b", "int16": "h", "int32": "i", "int64": "q", "float32": "f", "float64": "d"}
_FORMATS |= {f"u{name}": letter.upper() for name, letter in _FORMATS.items() if "int" in name}


def struct_format(args: Sequence[Any], values: Sequence[tuple[Any, DType]]) -> str | None:
    """`struct` format that packs arguments of these types as `pack_arguments` does, or raises for values that
    need a conversion; None where there is no such format."""
    letters = ["@"]
    for arg, (value, dtype) in zip(args, values, strict=True):
        if isinstance(arg, ndarray):
            letters.append("Q")
        elif value is arg and type(arg) in (int, float) and dtype.name in _FORMATS:
            letters.append(_FORMATS[dtype.name])
        else:
            return None
    return "".join(letters)
