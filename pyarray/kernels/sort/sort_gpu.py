"""Stable radix sorts and argsorts on grids: launches csrc/device/pa_sort_gpu.h.

Rows that fit in shared memory are sorted by a block each, several together if they are short. Longer ones
take a pass over memory per digit. The host reads nothing back, so a call can be replayed.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from ... import lang
from ...array import STRIDED, ndarray
from ...driver.kernel_step import KernelStep
from ...dtypes import DType, int64, uint8, uint16, uint32, uint64
from ...jit.text_kernel import TextKernel
from ..argument_slots import slot_fields
from ..workspace import unchecked_empty
from .sort_keys import KeyTransform

THREADS = 256  # of a block: one for each value of a digit
MAX_SHARED_BYTES = 1 << 15  # of a block's elements
MAX_ITEMS = 32  # elements of a thread
MIN_BLOCK_ELEMENTS = 1 << 11  # of short rows that a block sorts together
MIN_HISTOGRAM_ELEMENTS = 1 << 14  # of a block that counts digits
MAX_HISTOGRAM_BLOCKS = 1 << 11  # if there are fewer rows
MIN_WIDE = 1 << 30  # elements from which on a count and its flags need 64 bits
MAX_LAUNCH_ELEMENTS = 1 << 28  # of all rows of a launch

_WORDS = {1: uint8, 2: uint16, 4: uint32, 8: uint64}
# the threads of the launches come first, since their slots are constants
_SIZES = ("pass_threads", "count_threads", "plan_threads", "rows", "n", "tiles", "parts")


class _Config(NamedTuple):
    """The constants of a text. `rows`: a block sorts whole rows; `carry`: positions are sorted with the elements."""

    word: int  # bytes of a key
    order: KeyTransform
    items: int
    positions: bool
    rows: bool
    carry: bool
    wide: bool


def sort_rows(out: ndarray, x: ndarray, order: KeyTransform, positions: bool) -> None:
    """`out[r] = sorted(x[r])`, or the positions (int64) that sort it. All are 2-D and contiguous; elements are
    unsigned integers, which `order` transforms to keys."""
    rows, n = x._shape
    largest = min(MAX_ITEMS, MAX_SHARED_BYTES // x.itemsize // THREADS)
    if n <= largest * THREADS:
        _launch(out, x, _block_config(rows, n, x.itemsize, order, positions))
        return
    items = 16 if positions or x.itemsize == 8 else 28
    config = _Config(x.itemsize, order, items, positions, False, False, n >= MIN_WIDE)
    rows_per_launch = max(MAX_LAUNCH_ELEMENTS // n, 1)
    for row in range(0, rows, rows_per_launch):
        _launch(_some_rows(out, row, rows_per_launch), _some_rows(x, row, rows_per_launch), config)


def _block_config(rows: int, n: int, word: int, order: KeyTransform, positions: bool) -> _Config:
    elements = max(n, min(rows * n, MIN_BLOCK_ELEMENTS))
    items = 1 << (-(-elements // THREADS) - 1).bit_length()
    carry = positions or (rows > 1 and 2 * n <= items * THREADS)
    return _Config(word, order, items, positions, True, carry, False)


def _some_rows(x: ndarray, row: int, rows: int) -> ndarray:
    rows, n = min(rows, x._shape[0] - row), x._shape[1]
    part: ndarray = x._view(row * x._strides[0], (rows, n), x._strides)
    return part


def _launch(out: ndarray, x: ndarray, config: _Config) -> None:
    rows, n = x._shape
    tile = config.items * THREADS
    number = uint64 if config.wide else uint32
    if config.rows:
        rows_per_block = min(tile // n, THREADS - 1) if config.carry else 1
        sizes = (-(-rows // rows_per_block) * THREADS, 0, 0, rows, n, rows_per_block, 0)
        _KERNEL.launch(config, x.device, *sizes, _flat(out), _flat(x))
        return
    tiles = -(-n // tile)
    parts = min(-(-n // MIN_HISTOGRAM_ELEMENTS), max(MAX_HISTOGRAM_BLOCKS // rows, 1))
    work = 256 + -(-rows * config.word // 256) * 256 + config.word * rows * 256 * (1 + tiles)
    keys = unchecked_empty((2 * rows * n,), x._dtype, x.device)
    index_buffer = unchecked_empty((2 * rows * n if config.positions else 0,), number, x.device)
    sizes = (rows * tiles * THREADS, rows * parts * THREADS, rows * THREADS, rows, n, tiles, parts)
    _KERNEL.launch(
        config,
        x.device,
        *sizes,
        _flat(out),
        _flat(x),
        keys,
        index_buffer,
        unchecked_empty((work,), number, x.device),
    )


def _flat(x: ndarray) -> ndarray:
    """All elements of a contiguous array. Raises `ValueError` for another."""
    if x._key & STRIDED:
        raise ValueError(f"sort(): rows to sort must be contiguous, got strides {x._strides}")
    flat: ndarray = x._view(0, (x._size,), (x.itemsize,))
    return flat


def _program(config: _Config, target: str, debug: bool) -> lang.pipeline.Program:
    word = _WORDS[config.word]
    number = uint64 if config.wide else uint32
    kinds: dict[str, DType] = {"out": int64 if config.positions else word, "x": word}
    if not config.rows:
        kinds |= {"keys": word, "positions": number, "work": number}
    params: list[tuple[str, Any]] = [(name, lang.ir.ScalarType(int64)) for name in _SIZES]
    params += [(name, lang.ir.ArrayType(kind, 1, strided=False)) for name, kind in kinds.items()]
    loc = lang.ir.Loc(os.path.join("pyarray", "kernels", "sort", "sort_gpu.py"), 1, 1, 0)
    sites = tuple(lang.bounds_checks.Site("index", loc, "sort", (name,), 0, 1) for name in kinds)
    directions = {"out": "OUT", "x": "IN"} | {name: "INOUT" for name in kinds if name not in ("out", "x")}
    text, steps = _text(config, params, tuple(kinds), debug)
    return lang.pipeline.Program("sort", text, steps, tuple(params), directions, sites)


def _text(config: _Config, params: Any, arrays: tuple[str, ...], debug: bool) -> tuple[str, tuple[KernelStep, ...]]:
    """The text, and its kernels in the order in which they are launched."""
    fields = config.order._asdict().items()
    defines = {f"PA_S_{name.upper()}": f"((PA_S_KEY){value:#x}ull)" for name, value in fields}
    defines |= {"PA_S_KEY": _WORDS[config.word].ctype, "PA_S_ITEMS": str(config.items)}
    flags = {"POSITIONS": config.positions, "ROWS": config.rows, "CARRY": config.carry, "WIDE": config.wide}
    # a block has 48 KiB of shared memory, of which positions of 8 bytes take what lanes would
    flags["MATCH"] = not config.rows and config.word <= 4 and not (config.wide and config.positions)
    defines |= {f"PA_S_{name}": str(int(flag)) for name, flag in flags.items()}
    size = len(_SIZES) + 4 * (2 + debug) + 1 + debug  # the slot with the size of `work`
    blocks = 3 if config.rows else 4 if config.word <= 4 else 1  # of a processor at the same time
    grids = {"rows": 0} if config.rows else {"clear": size, "count": 1, "plan": 2, "pass": 0}  # slots of sizes
    body = "".join(f"    g.{name} = s->{name};\n" for name in ("rows", "n", "tiles", "parts"))
    for site, name in enumerate(arrays):
        cast = f"(decltype(g.{name}.data))" if name in ("out", "positions", "work") else ""
        body += f"    g.{name}.data = {cast}s->{name}_data, g.{name}.size = s->{name}_n0;\n"
        if debug:
            body += f"    g.{name}.rt = run, g.{name}.site = {site}, g.{name}.offset = s->{name}_offset;\n"
    kernels = "".join(
        f"""
extern "C" __global__ void __launch_bounds__({THREADS}, {blocks}) kernel_sort_{name}(const sort_slots memory)
{{
    {"pa_runtime run = memory.run;" if debug else ""}
    const pa_sort_grid g = sort_grid(&memory{", &run" if debug else ""});
    pa_sort_{name}(&g);
}}
"""
        for name in grids
    )
    text = f"""#include "pa_base.h"
{"#define PA_DEBUG_CHECKS 1" if debug else ""}
{"".join(f"#define {name} {value}{chr(10)}" for name, value in defines.items())}#include "pa_sort_gpu.h"

typedef struct {{
{slot_fields(params, debug)}{"    pa_runtime run;" if debug else ""}
}} sort_slots;

PA_FN pa_sort_grid sort_grid(const sort_slots *s{", pa_runtime *run" if debug else ""})
{{
    pa_sort_grid g = {{}};
{body}    return g;
}}
{kernels}"""
    names = ["rows"] if config.rows else ["clear", "count", "plan", *["pass"] * config.word]
    per_thread = {"clear": 8}
    steps = (KernelStep(f"kernel_sort_{name}", (grids[name],), per_thread.get(name, 1)) for name in names)
    return text, tuple(steps)


_KERNEL = TextKernel("sort", _program)
