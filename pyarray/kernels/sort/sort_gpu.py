"""Stable sorts on a grid, of keys or of positions by keys. The algorithm is in csrc/device/pa_sort_gpu.h.

Rows that a block can hold are sorted in its shared memory, several together if they are short. Longer ones
take a pass over memory per digit. No count comes back to the host, so a call can be repeated as it is.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from ...array import STRIDED, ndarray
from ...driver.kernel_step import KernelStep
from ...dtypes import DType, int64, uint8, uint16, uint32, uint64
from ...jit.text_kernel import TextKernel
from ...lang.bounds_checks import Site
from ...lang.ir import ArrayType, Loc, ScalarType
from ...lang.pipeline import Program
from ..matmul.gemm_epilogue import slots_of
from ..workspace import scratch

if TYPE_CHECKING:
    from .sort import Order

THREADS = 256  # of a block, and values of a digit
SHARED = 1 << 15  # bytes of the elements that a block holds
HELD = 32  # elements that a thread holds at most
TOGETHER = 1 << 11  # elements of short rows that are worth a block
COUNTED = 1 << 14  # elements that are worth a block that counts digits
COUNTING = 1 << 11  # such blocks at most, while there are fewer rows
WIDE = 1 << 30  # from so many elements on, words of 32 bits are too narrow for counts with their marks
AT_ONCE = 1 << 28  # elements of the rows that are sorted by one launch

_WORDS = {1: uint8, 2: uint16, 4: uint32, 8: uint64}
# what the launches' sizes are computed from comes first: its slots are known
_SIZES = ("moving", "counting", "planning", "rows", "n", "tiles", "parts")


class _Form(NamedTuple):
    """What a text depends on. `rows`: they are sorted by blocks; `carry`: these need to know where elements
    were."""

    word: int  # bytes of a key
    order: Order
    items: int
    positions: bool
    rows: bool
    carry: bool
    wide: bool


def sort_rows(out: ndarray, x: ndarray, order: Order, positions: bool) -> None:
    """`out[r] = sorted(x[r])`, or the positions (int64) that sort it. All are 2-D and contiguous, and the
    elements are unsigned integers, of which `order` makes keys."""
    rows, n = x._shape
    largest = min(HELD, SHARED // x.itemsize // THREADS)
    if n <= largest * THREADS:
        _launch(out, x, _held(rows, n, x.itemsize, order, positions))
        return
    items = 16 if positions or x.itemsize == 8 else 28
    form = _Form(x.itemsize, order, items, positions, False, False, n >= WIDE)
    some = max(AT_ONCE // n, 1)
    for row in range(0, rows, some):
        _launch(_part(out, row, some), _part(x, row, some), form)


def _held(rows: int, n: int, word: int, order: Order, positions: bool) -> _Form:
    wanted = max(n, min(rows * n, TOGETHER))
    items = 1 << (-(-wanted // THREADS) - 1).bit_length()
    carry = positions or (rows > 1 and 2 * n <= items * THREADS)
    return _Form(word, order, items, positions, True, carry, False)


def _part(x: ndarray, row: int, rows: int) -> ndarray:
    rows, n = min(rows, x._shape[0] - row), x._shape[1]
    part: ndarray = x._view(row * x._strides[0], (rows, n), x._strides)
    return part


def _launch(out: ndarray, x: ndarray, form: _Form) -> None:
    rows, n = x._shape
    tile = form.items * THREADS
    number = uint64 if form.wide else uint32
    if form.rows:
        together = min(tile // n, THREADS - 1) if form.carry else 1
        sizes = (-(-rows // together) * THREADS, 0, 0, rows, n, together, 0)
        _KERNEL.launch(form, x.device, *sizes, _flat(out), _flat(x))
        return
    tiles = -(-n // tile)
    parts = min(-(-n // COUNTED), max(COUNTING // rows, 1))
    work = 256 + -(-rows * form.word // 256) * 256 + form.word * rows * 256 * (1 + tiles)
    keys = scratch((2 * rows * n,), x._dtype, x.device)
    places = scratch((2 * rows * n if form.positions else 0,), number, x.device)
    sizes = (rows * tiles * THREADS, rows * parts * THREADS, rows * THREADS, rows, n, tiles, parts)
    _KERNEL.launch(
        form, x.device, *sizes, _flat(out), _flat(x), keys, places, scratch((work,), number, x.device)
    )


def _flat(x: ndarray) -> ndarray:
    """All elements of a contiguous array. Raises `ValueError` for another."""
    if x._key & STRIDED:
        raise ValueError(f"sort(): rows to sort must be contiguous, got strides {x._strides}")
    flat: ndarray = x._view(0, (x._size,), (x.itemsize,))
    return flat


def _program(form: _Form, target: str, debug: bool) -> Program:
    word = _WORDS[form.word]
    number = uint64 if form.wide else uint32
    kinds: dict[str, DType] = {"out": int64 if form.positions else word, "x": word}
    if not form.rows:
        kinds |= {"keys": word, "places": number, "work": number}
    params: list[tuple[str, Any]] = [(name, ScalarType(int64)) for name in _SIZES]
    params += [(name, ArrayType(kind, 1, strided=False)) for name, kind in kinds.items()]
    here = Loc(os.path.join("pyarray", "kernels", "sort_gpu.py"), 1, 1, 0)
    sites = tuple(Site("index", here, "sort", (name,), 0, 1) for name in kinds)
    directions = {"out": "OUT", "x": "IN"} | {name: "INOUT" for name in kinds if name not in ("out", "x")}
    text, steps = _text(form, params, tuple(kinds), debug)
    return Program("sort", text, steps, tuple(params), directions, sites)


def _text(
    form: _Form, params: Any, arrays: tuple[str, ...], debug: bool
) -> tuple[str, tuple[KernelStep, ...]]:
    """The text, and its kernels in the order in which they are launched."""
    fields = form.order._asdict().items()
    defines = {
        f"PA_S_{name.upper()}": f"((PA_S_KEY){value:#x}ull)" for name, value in fields if name != "zero"
    }
    defines |= {"PA_S_KEY": _WORDS[form.word].ctype, "PA_S_ITEMS": str(form.items)}
    flags = {"POSITIONS": form.positions, "ROWS": form.rows, "CARRY": form.carry, "WIDE": form.wide}
    flags["MATCH"] = not form.rows and form.word <= 4  # a block has 48 KiB of shared memory
    defines |= {f"PA_S_{name}": str(int(flag)) for name, flag in flags.items()}
    size = len(_SIZES) + 4 * (2 + debug) + 1 + debug  # the slot with the size of `work`
    blocks = 3 if form.rows else 4 if form.word <= 4 else 1  # of a processor at the same time
    grids = {"rows": 0} if form.rows else {"clear": size, "count": 1, "plan": 2, "pass": 0}  # slots of sizes
    body = "".join(f"    g.{name} = s->{name};\n" for name in ("rows", "n", "tiles", "parts"))
    for site, name in enumerate(arrays):
        cast = f"(decltype(g.{name}.data))" if name in ("out", "places", "work") else ""
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
{slots_of(params, debug)}{"    pa_runtime run;" if debug else ""}
}} sort_slots;

PA_FN pa_sort_grid sort_grid(const sort_slots *s{", pa_runtime *run" if debug else ""})
{{
    pa_sort_grid g = {{}};
{body}    return g;
}}
{kernels}"""
    names = ["rows"] if form.rows else ["clear", "count", "plan", *["pass"] * form.word]
    share = {"clear": 8}
    steps = (KernelStep(f"kernel_sort_{name}", (grids[name],), share.get(name, 1)) for name in names)
    return text, tuple(steps)


_KERNEL = TextKernel("sort", _program)
