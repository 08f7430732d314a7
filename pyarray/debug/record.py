"""Records of a dump: metadata of a launch and its arguments for JSON, elements as little-endian words, summaries."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from .. import shapes
from ..array import STRIDED, ndarray
from ..driver.kernel_step import format_steps
from ..dtypes import DType
from ..jit.launch import is_hidden, offset_of, slot_format
from ..jit.launch_state import Launch
from ..jit.serialization import site_to_json, type_to_json
from ..jit.signature import array_type
from ..jit.text_kernel import Address
from ..lang.ir import ArrayType, ScalarType
from ..memory.host_access import by_observer, download, on_host, window
from .tags import memory_range

PAGE = 4096  # a replay gives each block its old offset in a page: code may depend on alignment
SHOWN = 200  # characters of a constant's repr


@dataclass(frozen=True)
class LaunchArgument:
    """An argument of a launch: its position, name, type (None: compiled in), direction and value."""

    index: int
    name: str
    type: Any
    direction: str
    value: Any


def arguments(launch: Launch) -> Iterator[LaunchArgument]:
    """The arguments of a launch in order; those that were compiled in come last."""
    if launch.variant.program is None:  # another library's function reads what it gets
        for index, (name, value) in enumerate(launch.args.items()):
            if isinstance(value, ndarray):
                yield LaunchArgument(index, name, array_type(value._key), "IN", value)
            else:
                yield LaunchArgument(index, name, None, "CONSTANT", value)
        return
    program, types = launch.variant.program, launch.variant.leaf_types
    live = [name for name, _ in program.params if not is_hidden(name)]
    for index, name in enumerate([*live, *(n for n in launch.args if n not in live)]):
        kind = types.get(name)
        typed = isinstance(kind, (ArrayType, ScalarType))
        direction = program.directions.get(name, "SCALAR") if typed else "CONSTANT"
        yield LaunchArgument(index, name, kind if typed else None, direction, launch.args[name])


# ---- memory


class Block(NamedTuple):
    """A range of memory that arguments show: its first address and its bytes."""

    low: int
    nbytes: int


def blocks(arrays: Sequence[ndarray]) -> tuple[list[Block], list[int]]:
    """The ranges of memory that arrays of one device show, and the number of each array's range. Arrays that
    overlap share a range, so that a replay can rebuild the overlap."""
    ranges = [memory_range(a) for a in arrays]
    runs: list[Block] = []
    number = [0] * len(arrays)
    for k in sorted(range(len(arrays)), key=ranges.__getitem__):
        low, high = ranges[k]
        if not runs or low == high or not runs[-1].nbytes or runs[-1].low + runs[-1].nbytes <= low:
            runs.append(Block(low, high - low))
        else:
            runs[-1] = Block(runs[-1].low, max(high - runs[-1].low, runs[-1].nbytes))
        number[k] = len(runs) - 1
    return runs, number


def storage_dtype(kind: DType) -> np.dtype[Any]:
    """Elements of `kind` as they are stored: bits, which no conversion touches."""
    return np.dtype(f"<c{kind.itemsize}" if kind.kind == "c" else f"<u{kind.itemsize}")


def read(a: ndarray) -> np.ndarray[Any, Any]:
    """The elements of `stored_shape` in C order, as `storage_dtype` the dtype: on the CPU the memory itself where
    it is contiguous. Launches nothing."""
    kind, words = a._dtype, storage_dtype(a._dtype)
    shape, native = shapes.stored_shape(a._shape, a._strides), words.newbyteorder("=")
    if not a._size:
        return np.empty(shape, words)
    with by_observer():
        if on_host(a):
            host = window(a, shape, native)
        else:
            low, high = shapes.byte_bounds(shape, a._strides, kind.itemsize)
            block = np.empty(high - low, np.uint8)
            download(a.device, a._ptr + low, block)
            host = np.ndarray(shape, native, block, -low, a._strides)
    return np.asarray(host, words, order="C")


def summary(words: np.ndarray[Any, Any], kind: DType) -> dict[str, Any]:
    """How many are NaN and how many infinite, least and greatest of the finite ones. These are None where
    there is none, and of complex numbers, which count as NaN or infinite if a part is."""
    values = words.astype(words.dtype.newbyteorder("="), copy=False).view(kind.numpy)
    if kind.kind in "biu":
        ends = (int(values.min()), int(values.max())) if values.size else (None, None)
        return {"nan": 0, "inf": 0, "min": ends[0], "max": ends[1]}
    with np.errstate(all="ignore"):
        if kind.is_narrow:
            values = values.astype(np.float32)
        finite = np.isfinite(values)
        all_finite = bool(finite.all())
        nan = 0 if all_finite else int(np.isnan(values).sum())
        inf = 0 if all_finite else int(values.size - finite.sum() - nan)
        numbers = values if all_finite else values[finite]
    if kind.kind == "c" or not numbers.size:
        return {"nan": nan, "inf": inf, "min": None, "max": None}
    return {"nan": nan, "inf": inf, "min": float(numbers.min()), "max": float(numbers.max())}


# ---- metadata


def array_metadata(a: ndarray, run: int, block: Block, buffer: int) -> dict[str, Any]:
    """Metadata of an array. `buffer` tells memory apart over the whole dump, `block` and `place` (bytes from
    its start to the first element) within the launch."""
    return {
        "kind": "array", "dtype": a._dtype.name, "shape": list(a._shape), "strides": list(a._strides),
        "start_offset": offset_of(a), "contiguous": not a._key & STRIDED, "writeable": a._writeable,
        "buffer": buffer, "block": run, "place": a._ptr - block.low,
        "block_size": block.nbytes, "block_page": block.low % PAGE,
    }  # fmt: skip


def scalar_slot(kind: ScalarType) -> struct.Struct:
    """A number as it goes to the device: 8 bytes, 16 of a complex one."""
    return struct.Struct("<" + slot_format(kind, False))


def scalar_metadata(kind: ScalarType, value: Any, arrays: Mapping[str, ndarray]) -> dict[str, Any]:
    """A number with the bits that go to the device. An address is an end of an array's memory."""
    if isinstance(value, Address):
        for name, a in arrays.items():
            for end, address in (("low", a._buffer.ptr), ("high", a._buffer.ptr + a._buffer.nbytes)):
                if address == value:
                    return {"kind": "address", "dtype": kind.dtype.name, "argument": name, "end": end}
    number = value.item() if hasattr(value, "item") else value  # pyright: ignore[reportAttributeAccessIssue]
    parts = (number.real, number.imag) if kind.dtype.kind == "c" else (number,)
    bits = scalar_slot(kind).pack(*parts)
    return {"kind": "scalar", "dtype": kind.dtype.name, "value": repr(number), "bits": bits.hex()}


def scalar_value(kind: ScalarType, bits: str) -> Any:
    """The number from its bits."""
    parts = scalar_slot(kind).unpack(bytes.fromhex(bits))
    return complex(*parts) if len(parts) == 2 else parts[0]


def results(launch: Launch, first: int) -> Iterator[LaunchArgument]:
    """What another library's function has made, numbered from `first`; of a kernel, whose results are
    arguments, nothing."""
    for index, (name, value) in enumerate(launch.made.items(), first):
        yield LaunchArgument(index, name, array_type(value._key), "OUT", value)


def constant_metadata(value: Any) -> dict[str, Any]:
    """The metadata of a value that is compiled in: its text."""
    return {"kind": "constant", "value": repr(value)[:SHOWN]}


def program_metadata(launch: Launch, number: int) -> dict[str, Any]:
    """All that another process needs to compile and launch the same program."""
    variant = launch.variant
    program = variant.program
    return {
        "number": number, "kernel": launch.kernel, "key": variant.artifact.key, "name": program.name,
        "device": variant.device.kind, "entry": format_steps(program.steps), "flags": list(variant.flags),
        "checked": variant.returns_failures, "directions": dict(program.directions),
        "params": [[name, type_to_json(kind)] for name, kind in program.params],
        "sites": [site_to_json(site) for site in program.sites], "text": program.text, "raw": program.raw,
        "lines": [asdict(line) for line in program.lines],
    }  # fmt: skip
