"""What `print` and `assert` say: texts with numbers in them. A device writes the numbers as words of 64 bits; the texts
are in a table of the host."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..dtypes import BY_NAME, DType
from . import ir

# A number in a text: its format, "", "r" or "s", whether it is a Python number, the name of its dtype, its expression.
Number = tuple[str, str, bool, str, str]
Template = tuple[Any, ...]  # of texts and Numbers, in order


def number(kind: ir.ScalarType, spec: str, conversion: str, text: str) -> Number:
    return spec, conversion, kind.weak, kind.dtype.name, text


def numbers_of(template: Template) -> list[Number]:
    return [part for part in template if not isinstance(part, str)]


def word_count(dtype: DType) -> int:
    return 2 if dtype.kind == "c" else 1


def value_of(dtype: DType, words: Iterator[int], weak: bool) -> Any:
    """The number that was written as the next words: a Python number, or a NumPy scalar of a type that Python lacks."""
    parts = [next(words) & ((1 << 64) - 1) for _ in range(word_count(dtype))]
    if dtype.kind == "c":
        real, imag = (struct.unpack("<d", struct.pack("<Q", w))[0] for w in parts)
        return complex(real, imag) if dtype.itemsize == 16 else dtype.numpy.type(complex(real, imag))
    (word,) = parts
    if dtype.kind == "f":
        value = struct.unpack("<d", struct.pack("<Q", word))[0]
        return value if weak or dtype.itemsize == 8 else dtype.numpy.type(value)
    if dtype.kind == "b":
        return bool(word)
    return word - (1 << 64) if dtype.kind == "i" and word >> 63 else word


def text_of(template: Template, words: Sequence[int]) -> tuple[str, dict[str, Any]]:
    """The text, and its numbers by their expressions."""
    remaining, texts, values = iter(words), list[str](), dict[str, Any]()
    for part in template:
        if isinstance(part, str):
            texts.append(part)
            continue
        spec, conversion, weak, dtype, expression = part
        values[expression] = value = value_of(BY_NAME[dtype], remaining, weak)
        texts.append(formatted(value, spec, conversion))
    return "".join(texts), values


def formatted(value: Any, spec: str, conversion: str) -> str:
    """As an f-string formats it. NumPy's scalars print as numbers."""
    if conversion:
        value = {"r": repr, "s": str, "a": ascii}[conversion](value)
    elif isinstance(value, np.generic) and not spec:
        return str(value)
    return format(value, spec)
