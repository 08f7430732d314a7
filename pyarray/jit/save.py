"""Writing saved kernels: compiled variants in a file, which `saved` reads.

A file is two lines of text, then the texts and binaries of the variants. The first line has a digest of all
that follows it, the second is the manifest (JSON). Nothing in it is executed but the binaries.
"""

from __future__ import annotations

import enum
import hashlib
import inspect
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from ..driver.kernel_step import format_steps
from ..dtypes import DType, named_dtype
from ..lang.emit_views import struct_fields
from ..lang.ir import ArrayType, ScalarType
from . import compile as compiler
from .atomic_file import replace_file
from .pytree import Struct
from .serialization import site_to_json, type_to_json
from .signature import Parameter, Unread
from .variants import Variant

SCHEMA = 1
MAGIC = b"pyarray kernel "
_PLAIN = (bool, int, float, complex, str, bytes, type(None), enum.Enum)
_NO_CONSTANTS: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class WrittenDefault:
    """The default of a saved kernel's parameter, of which the file has the text: that of what was compiled in."""

    text: str

    def __repr__(self) -> str:
        return self.text


def manifest(kernel: Any) -> dict[str, Any]:
    """See `Kernel.manifest`."""
    return _manifest(kernel, _variants_of(kernel))


def _variants_of(kernel: Any) -> list[Variant]:
    """The variants as they are now: other threads may compile more meanwhile."""
    variants = list(kernel._variants)
    if not variants:
        what = f"kernel {kernel.__name__!r} has nothing to save before its first launch"
        raise RuntimeError(f"{what}: types come with the arguments")
    return variants


def _manifest(kernel: Any, variants: Sequence[Any], constants: Mapping[str, Any] = _NO_CONSTANTS) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "kernel": kernel.__name__,
        "debug": kernel.debug,
        "parameters": [_parameter_row(p) for p in _with_constants(kernel.parameters, constants)],
        "variants": [_variant_row(kernel.__name__, v) for v in variants],
    }


def _with_constants(parameters: Sequence[Parameter], constants: Mapping[str, Any]) -> list[Parameter]:
    """Parameters, those with a value in `constants` as their default last, by keyword only."""
    fixed = (replace(p, default=constants[p.name], keyword_only=True) if p.name in constants else p for p in parameters)
    return sorted(fixed, key=lambda p: p.keyword_only)


def _parameter_row(p: Parameter) -> dict[str, Any]:
    row: dict[str, Any] = {"name": p.name, "keyword_only": p.keyword_only}
    if p.default is inspect.Parameter.empty:
        return row
    value = p.default.value if isinstance(p.default, enum.Enum) and p.scalar else p.default
    return {**row, "default": _default_to_json(p.name, value)}


def _default_to_json(name: str, value: Any) -> Any:
    """A default as `saved` reads it: what JSON has, else an object that says how it is written."""
    if type(value) in (bool, int, float, str) or value is None:
        return value
    if type(value) is tuple:
        return {"tuple": [_default_to_json(name, item) for item in value]}
    if type(value) is complex:
        return {"complex": [value.real, value.imag]}
    if isinstance(value, np.generic) and (row := named_dtype(value.dtype)) is not None:
        return {"number": [row.name, value.tobytes().hex()]}
    try:
        return {"text": constant_text("", name, value)}
    except TypeError:
        return {"text": f"the default of {name!r}, which is not in the file"}


def _variant_row(kernel: str, v: Any) -> dict[str, Any]:
    """Of a `Variant`, or of one that was compiled ahead."""
    program = v.program
    return {
        **v.origin._asdict(),
        "interface": compiler.interface(),
        "artifact": v.artifact.key,
        "entry": format_steps(program.steps),
        "debug": v.checked,
        "flags": list(v.flags),
        "text_sha256": hashlib.sha256(program.text.encode()).hexdigest(),
        "binary_sha256": hashlib.sha256(v.artifact.binary).hexdigest(),
        "structures": [row for item in v.pytree.items for row in _structure_rows(item)],
        "leaves": [_leaf_row(kernel, v, p, kind) for p, kind in zip(v.pytree.leaves, v.types, strict=True)],
        "directions": program.directions,
        "params": [[name, type_to_json(kind)] for name, kind in program.params],
        "sites": [site_to_json(site) for site in program.sites],
        "extents": [asdict(extent) for extent in program.extents],
        "returns_failures": v.checked or program.checked,
        "lines": [asdict(line) for line in program.lines],
        **({} if program.overwritten is None else {"overwritten": sorted(program.overwritten)}),
    }


def _structure_rows(item: Any) -> Iterator[dict[str, Any]]:
    if isinstance(item, Struct):
        yield {
            "path": item.name,
            "class": item.kind.__qualname__,
            "names": list(item.names),
            "count": len(item.items),
        }
        for part in item.items:
            yield from _structure_rows(part)


def _leaf_row(kernel: str, v: Any, p: Parameter, kind: Any) -> dict[str, Any]:
    row: dict[str, Any] = {"name": p.name, "direction": v.program.directions.get(p.name)}
    if isinstance(kind, (ArrayType, ScalarType)):
        row |= type_to_json(kind)
        if p.scalar:
            row["annotation"] = p.annotation.name if isinstance(p.annotation, DType) else p.annotation.__name__
    elif isinstance(p.annotation, Unread):
        row |= {"kind": "unread"}
    else:
        row |= {"kind": "constant", "value": constant_text(kernel, p.name, kind.value)}
    live = dict(v.program.params)
    row["slots"] = _slots(live[p.name], v.checked or v.program.checked) if p.name in live else []
    return row


def _slots(kind: Any, checked: bool) -> list[str]:
    """Names of a parameter's slots: each has 8 bytes, and all parameters' stand in order."""
    if isinstance(kind, ArrayType):
        return [name for _, name in struct_fields(kind, checked)]
    return ["re", "im"] if kind.dtype.kind == "c" else ["value"]


def constant_text(kernel: str, name: str, value: Any) -> str:
    """What was compiled in, in words that are the same in each process. Raises `TypeError` where there are
    none."""
    if isinstance(value, WrittenDefault):
        return value.text
    if isinstance(value, (tuple, list)):
        return f"{type(value).__name__}({', '.join(constant_text(kernel, name, item) for item in value)})"
    if (row := named_dtype(value)) is not None:
        return f"dtype {row}"
    if isinstance(value, _PLAIN):
        return f"{type(value).__qualname__} {value!r}"
    what = f"kernel {kernel!r} can't be saved: {name!r} was compiled in with {value!r}"
    raise TypeError(f"{what}, and only numbers, texts, dtypes, None and tuples of these can be written down")


def save(kernel: Any, path: str | os.PathLike[str]) -> None:
    """See `Kernel.save`. The file appears as a whole, or not at all."""
    replace_file(Path(path), file_of(kernel, _variants_of(kernel)))


def file_of(kernel: Any, variants: Sequence[Any], constants: Mapping[str, Any] = _NO_CONSTANTS) -> bytes:
    """The file of a kernel's variants, or of ones that were compiled ahead, with defaults of further parameters."""
    head, blobs, at = _manifest(kernel, variants, constants), [], 0
    for row, v in zip(head["variants"], variants, strict=True):
        for name, data in (("text", v.program.text.encode()), ("binary", v.artifact.binary)):
            row[name] = [at, len(data)]
            blobs.append(data)
            at += len(data)
    body = json.dumps(head).encode() + b"\n" + b"".join(blobs)
    return MAGIC + f"{SCHEMA} {hashlib.sha256(body).hexdigest()}\n".encode() + body
