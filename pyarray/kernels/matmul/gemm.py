"""Matrix products of any strides and batch: launches csrc/device/pa_gemm.h on CPUs, pa_gemm_gpu.h, pa_gemm_mma.h and
pa_gemm_amd.h on GPUs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ... import jit, lang, shapes
from ..._core import BoundLaunch, CallPlan
from ...array import ndarray
from ...driver.kernel_step import KernelStep
from ...dtypes import BY_NAME, DType, int8, int32, int64, uint8, uint32
from ...jit.launch_state import launch_state
from ...jit.text_kernel import Address, TextKernel
from ...memory.host_access import not_repeatable
from .. import matmul
from ..argument_slots import slot_fields
from ..elementwise.elementwise import copy_if_aliased
from ..workspace import unchecked_empty
from . import thresholds as th
from .gemm_mma import Tile, along_depth, copy_if_unaligned, is_turned_faster, k_major_operands, tile_for
from .gemm_types import BLOCKS, gemm_operations, headers, is_tf32, macros

if TYPE_CHECKING:
    from .gemm_epilogue import Addends, Epilogue

_NAMES = ("a", "b", "c")  # d and e may follow
Layout = tuple[tuple[int, ...], tuple[int, ...]]


def gemm(
    c: ndarray,
    a: ndarray,
    b: ndarray,
    epilogue: Epilogue | None = None,
    addends: Addends = (),
    numbers: Any = (),
    precision: str | None = None,
    sums: Callable[[], ndarray] | None = None,
) -> None:
    """`c[...] = a @ b` for arrays (..., m, k), (..., k, n) and (..., m, n) of one type, whose batches
    broadcast to that of `c`. `precision` of float32: "tf32" or "float32"; None is the setting's.

    With `epilogue`, that is applied to the sums, `addends` (arrays like `c`) and `numbers`; `c` has its type. Kernels
    that have no epilogues store the sums to `sums()`, an array like `c`; None: to a new one."""
    batch, checked = c._shape[:-2], launch_state.debug
    a, b = copy_if_overlapping(a, c), copy_if_overlapping(b, c)
    grid, given = c._buffer.device.driver.grid, (a, b, c)
    vector = grid and 1 in c._shape[-2:] and not checked and c._size and a._shape[-1]
    tiles: int | Tile = 0
    parts = 1
    if not vector:
        a, b, c, tiles, parts = _for_grid_tiles(*_row_major(a, b, c), checked, precision)
    if grid and epilogue is not None:
        widened = a._dtype is not c._dtype and not a._dtype.is_narrow
        if vector or checked or parts > 1 or widened or not matmul.gemm_epilogue.is_cheap(epilogue):
            _apply_to_sums(*given, epilogue, addends, numbers, precision, sums)
            return
        if (c._shape, c._strides) != (given[2]._shape, given[2]._strides):  # the transposed product
            addends = [_transposed(x) for x in addends]
    arrays = (a, b, c, *addends)
    columns = [shapes.broadcast_strides(x._shape[:-2], x._strides[:-2], batch) for x in arrays]
    batch, merged = shapes.collapse(batch, *columns)
    views = [
        x._view(0, batch + x._shape[-2:], steps + x._strides[-2:]) for x, steps in zip(arrays, merged, strict=True)
    ]
    if vector:
        matmul.gemv.gemv(*views)
        return
    if grid and shapes.size(batch) >= th.MOST_MATRICES:
        for part in _halves(views):
            gemm(part[2], part[0], part[1], epilogue, part[3:], numbers, precision)
        return
    if parts > 1 and not isinstance(tiles, Tile):
        matmul.split_k.add_parts(_KERNEL, views[0], views[1], views[2], tiles, parts)
        return
    if isinstance(tiles, Tile) and tiles.bf16x6:
        if _by_bf16x6(views, numbers, tiles, epilogue):
            return
        tiles = matmul.split_k.schedule(c, a._shape[-1], True)[0]
    extra: list[int] = [end for x in arrays for end in _buffer_range(x)] if checked else []
    if epilogue is None and a._dtype.is_narrow and a._dtype is not c._dtype:
        epilogue = matmul.gemm_epilogue.Epilogue(c._dtype.name)
    key = (a._dtype.name, len(batch), tiles, epilogue) if epilogue else (a._dtype.name, len(batch), tiles)
    if c._size * a._shape[-1] >= th.TUNED_WORK and not checked and not grid:
        _tuned(key, *views, *numbers)
    else:
        if grid:
            extra.append(matmul.split_k.blocks(tiles, c, a._dtype))
        _KERNEL.launch(key, c.device, *views, *numbers, *extra, checked=checked)


def _halves(views: Sequence[ndarray]) -> Iterator[list[ndarray]]:
    """Both halves of arrays along the longest axis of their batch."""
    batch = views[0]._shape[:-2]
    axis = batch.index(max(batch))
    middle = batch[axis] // 2
    for low, high in ((0, middle), (middle, batch[axis])):
        size = *batch[:axis], high - low, *batch[axis + 1 :]
        yield [x._view(low * x._strides[axis], size + x._shape[-2:], x._strides) for x in views]


def _by_bf16x6(views: Sequence[ndarray], numbers: Any, tile: Tile, epilogue: Epilogue | None) -> bool:
    """Launches the product by parts of bfloat16, and that of float32 for numbers out of range. False if there is no
    memory for the parts."""
    a, _, c, *_ = views
    nb, epilogue = len(c._shape) - 2, epilogue or matmul.gemm_epilogue.Epilogue(c._dtype.name)
    tiles = matmul.split_k.schedule(c, a._shape[-1], True)[0]
    keys = ("bfloat16", nb, tile, epilogue), (c._dtype.name, nb, tiles, epilogue)
    return matmul.gemm_bf16x6.multiply(_FLAGGED, keys, views, numbers, tile)


def _tuned(key: Any, a: ndarray, b: ndarray, c: ndarray, *more: Any) -> None:
    """The launch with the best known block sizes for these operands."""
    device, epilogue = c._buffer.device, key[3] if len(key) > 3 else None
    not_repeatable()  # a replayed call wouldn't ask the tuner again
    blocks = matmul.gemm_blocks

    def launch_arguments(config: Any) -> tuple[Any, tuple[Any, ...]]:
        if config == blocks.DEFAULT:
            return key, (a, b, c, *more)
        return (*key[:3], epilogue, True), (a, b, c, *more, *(config[name] for name in BLOCKS))

    def prepare(config: Any) -> Callable[[], Any]:
        """A launch for the tuner, without observers."""
        variant_key, arguments = launch_arguments(config)
        launch = _KERNEL.variant(variant_key, device, checked=False).launch
        return lambda: launch(*arguments)

    inputs = (a, b, *(x for x in more if isinstance(x, ndarray)))
    variant_key, arguments = launch_arguments(
        tuner().choose(device, blocks.tuning_key(a, c, epilogue is not None), blocks.DEFAULT, prepare, (c,), inputs)
    )
    _KERNEL.launch(variant_key, device, *arguments, checked=False)


def bound_gemm_launch(
    dtype: DType, epilogue: Epilogue | None, layouts: Sequence[Layout], offsets: Sequence[int], device: Any
) -> BoundLaunch | None:
    """The launch bound to arrays of these shapes and strides, those of a, b, c and of the epilogue's arrays, `offsets`
    bytes before them: a function of the addresses of c, a, b and of these. None where each call chooses: on grids, and
    where block sizes are tuned."""
    shape, depth = layouts[2][0], layouts[0][0][-1]
    if device.driver.grid or shapes.size(shape) * depth >= th.TUNED_WORK:
        return None
    key = (dtype.name, len(shape) - 2, 0, epilogue) if epilogue else (dtype.name, len(shape) - 2, 0)
    order = (2, 0, 1, *range(3, len(layouts)))
    return jit.bound_launch.bind_launch(_KERNEL.variant(key, device, checked=False), layouts, (), offsets, order)


def product_plan(dtype: DType, device: Any, key: int, has_out: bool) -> CallPlan | None:
    """The plan of a call that multiplies two matrices of one type and any strides into a new one of that type key, or
    into a third operand: all sizes whose block sizes aren't tuned. None on grids, whose tiles depend on sizes."""
    if device.driver.grid:
        return None
    variant = _KERNEL.variant((dtype.name, 0, 0), device, checked=False)
    m, k, n = ("dim", 0, 0), ("dim", 0, 1), ("dim", 1, 1)
    target = ("operand", 2, 0) if has_out else ("buffer", 0, 0)
    strides = (("stride", 2, 0), ("stride", 2, 1)) if has_out else (("dim", 1, 1, dtype.itemsize), dtype.itemsize)
    a, b, c = jit.bound_launch.first_slots(variant.program.params)
    fills = [(c, target), *enumerate((m, n, *strides), c + 1)]
    for operand, slot in enumerate((a, b)):
        values = *(("dim", operand, axis) for axis in (0, 1)), *(("stride", operand, axis) for axis in (0, 1))
        fills += [(slot, ("operand", operand, 0)), *enumerate(values, slot + 1)]
    unknown = ((1, 1), (dtype.itemsize, dtype.itemsize))
    step = jit.bound_launch.bind_launch(variant, (unknown,) * 3), tuple(fills), (m, n, k)
    conditions: list[Any] = [
        ("equal", k, ("dim", 1, 0)),
        (1, th.TUNED_WORK - 1, (m, n)),
        (0, th.TUNED_WORK - 1, (m, n, k)),
    ]
    if has_out:
        conditions += [("equal", m, ("dim", 2, 0)), ("equal", n, ("dim", 2, 1))]
        return CallPlan(3, (), (step,), ("operand", 2), (2,), tuple(conditions))
    result = ("array", 0, key, (m, n), None, None)
    return CallPlan(2, ((dtype.itemsize, m, n),), (step,), result, (), tuple(conditions))


def is_widening_on_grid(dtype: DType, c: ndarray) -> bool:
    """Whether `gemm` multiplies operands of `dtype` into `c` without casting them first, on a grid: where tensor cores
    do."""
    vector = 1 in c._shape[-2:] or not c._size
    return dtype.itemsize == 1 and not vector and not launch_state.debug and tile_for(c, 0, dtype=dtype) is not None


def is_widening(dtype: DType, out: DType) -> bool:
    """Whether `gemm` multiplies operands of `dtype` into `out` without casting them first."""
    if dtype.kind in "iu" and out.kind in "iu":
        return dtype.itemsize < out.itemsize
    return dtype.is_narrow and out.kind == "f" and dtype.itemsize < out.itemsize <= 4


def _row_major(a: ndarray, b: ndarray, c: ndarray) -> tuple[ndarray, ndarray, ndarray]:
    """The operands, or on a grid those of `c.T = b.T @ a.T` if `c` is column-major: it is stored by rows."""
    if abs(c._strides[-2]) >= abs(c._strides[-1]) or not c._buffer.device.driver.grid:
        return a, b, c
    return _transposed(b), _transposed(a), _transposed(c)


def _transposed(x: ndarray) -> ndarray:
    shape, steps = x._shape, x._strides
    return x._view(0, (*shape[:-2], shape[-1], shape[-2]), (*steps[:-2], steps[-1], steps[-2]))


def _apply_to_sums(
    a: ndarray,
    b: ndarray,
    c: ndarray,
    epilogue: Epilogue,
    addends: Addends,
    numbers: Any,
    precision: str | None,
    sums: Callable[[], ndarray] | None,
) -> None:
    """A product and its epilogue in a kernel of its own."""
    target = unchecked_empty(c._shape, c._dtype, c.device) if sums is None else sums()
    gemm(target, a, b, precision=precision)
    matmul.gemm_epilogue.apply_epilogue(epilogue, c, target, addends, numbers)


def _for_grid_tiles(
    a: ndarray, b: ndarray, c: ndarray, checked: bool, precision: str | None
) -> tuple[ndarray, ndarray, ndarray, int | Tile, int]:
    """The operands as the tiles of a grid take them, the tiles, which are tensor cores' if they support the dtype,
    except in debug mode, and the number of parts of the depth."""
    if not c._buffer.device.driver.grid:
        return a, b, c, 0, 1
    if not checked:
        depth = a._shape[-1]
        if a.itemsize == 1 and (tile := tile_for(c, depth, dtype=a._dtype)):
            return *along_depth(a, b), c, tile, 1
        float32 = c._dtype.name == "float32"
        tile = tile_for(c, depth, True) if float32 and is_tf32(precision) else None
        if tile and (turned := k_major_operands(a, b, c)):
            return *turned, tile, 1
        if tile := matmul.gemm_bf16x6.bf16x6_tile(a, b, c):
            return a, b, c, tile, 1
        if (tile := tile_for(c, depth)) and not (float32 and matmul.split_k.schedule(c, depth, False)[1] > 1):
            a, b = copy_if_unaligned(a, c._shape[-1]), copy_if_unaligned(b, c._shape[-2])
            if is_turned_faster(b, tile):
                a, b, c = _transposed(b), _transposed(a), _transposed(c)
                tile = tile_for(c, depth) or tile
            return a, b, c, tile, 1
    return a, b, c, *matmul.split_k.schedule(c, a._shape[-1], checked)


def copy_if_overlapping(x: ndarray, c: ndarray) -> ndarray:
    """`x`, copied if it aliases the output in any layout: every element is read many times."""
    if x._ptr == c._ptr and x._size and c._size:
        return x.copy()
    return copy_if_aliased(x, c)


def _buffer_range(x: ndarray) -> tuple[Address, Address]:
    return Address(x._buffer.ptr), Address(x._buffer.ptr + x._buffer.nbytes)


def _program(key: Any, target: str, debug: bool, flagged: bool = False) -> lang.pipeline.Program:
    """`key`: the element type, the axes of the batch, the tiles of a grid; on CPUs, an `Epilogue` and whether
    block sizes are arguments. `flagged`: flags say whether it computes."""
    name, nb, tiles, *more = key
    epilogue: Epilogue | None = more[0] if more else None
    blocks = len(more) > 1
    dtype = BY_NAME[name]
    out = BY_NAME[epilogue.out] if epilogue else _grid_result(dtype, tiles)
    names = (*_NAMES, *(epilogue.addends if epilogue else ()))
    params: list[tuple[str, Any]] = [
        (n, lang.ir.ArrayType(dtype if n in "ab" else out, nb + 2, strided=True)) for n in names
    ]
    if epilogue:
        params += [(n, lang.ir.ScalarType(epilogue.number)) for n in epilogue.numbers]
    if blocks:
        params += [(n, lang.ir.ScalarType(int64)) for n in BLOCKS]
    if debug:
        params += [(f"{n}_{end}", lang.ir.ScalarType(int64)) for n in names for end in ("low", "high")]
    loc = lang.ir.Loc(os.path.join("pyarray", "kernels", "matmul", "gemm.py"), 1, 1, 0)
    sites = tuple(lang.bounds_checks.Site("index", loc, "matmul", (n,), 0, 2) for n in names)
    if flagged:
        params.append(("flags", lang.ir.ArrayType(uint32, 1, strided=False)))
    if not lang.dialect.DIALECTS[target].blocks:
        params.append(("blocks", lang.ir.ScalarType(int64)))
    inputs: tuple[str, ...] = (*names, "flags") if flagged else names
    directions = dict.fromkeys(inputs, "IN") | {"c": "OUT"}
    if lang.dialect.DIALECTS[target].blocks:
        text, step = _text(dtype, nb, params, epilogue, debug)
    else:
        text, step = _grid_text(dtype, nb, params, epilogue, debug, tiles, target)
    by_parts = flagged and isinstance(tiles, Tile)
    times = matmul.gemm_bf16x6.PRODUCTS // matmul.gemm_bf16x6.PARTS if by_parts else 1
    count: lang.operation_counts.CountOperations = partial(gemm_operations, epilogue is not None, times=times)
    if flagged and not by_parts:
        count = matmul.gemm_bf16x6.count_nothing
    return lang.pipeline.Program("matmul", text, (step,), tuple(params), directions, sites, count_operations=count)


def _grid_result(dtype: DType, tiles: int | Tile) -> DType:
    """The dtype of a product without an epilogue: that of its operands, but tensor cores make int32 of bytes."""
    return int32 if isinstance(tiles, Tile) and dtype in (int8, uint8) else dtype


def _text(dtype: DType, nb: int, params: Any, epilogue: Epilogue | None, debug: bool) -> tuple[str, KernelStep]:
    """C text and its entry."""
    out = BY_NAME[epilogue.out] if epilogue else dtype
    checks = "#define PA_DEBUG_CHECKS 1\n" if debug else ""
    body = f"    g.m = s->c_n{nb};\n    g.n = s->c_n{nb + 1};\n    g.k = s->a_n{nb + 1};\n"
    body += "".join(f"    g.{n} = s->{n}_data;\n" for n in _NAMES)
    for n in _NAMES:
        body += f"    g.r{n}s = s->{n}_s{nb};\n    g.c{n}s = s->{n}_s{nb + 1};\n"
    if nb:
        sizes = ", ".join(f"s->c_n{k}" for k in range(nb))
        body += f"    const int64_t batch[] = {{{sizes}}};\n    g.batch = batch;\n"
    names = (*_NAMES, *(epilogue.addends if epilogue else ()))
    for number, n in enumerate(names):
        field = f"batch_{n}" if number < len(_NAMES) else f"batch_d[{'de'.index(n)}]"
        if nb:
            steps = ", ".join(f"s->{n}_s{k}" for k in range(nb))
            body += f"    const int64_t batch_{n}[] = {{{steps}}};\n    g.{field} = batch_{n};\n"
        if number >= len(_NAMES):
            k = "de".index(n)
            body += f"    g.d[{k}] = s->{n}_data, g.rds[{k}] = s->{n}_s{nb}, g.cds[{k}] = s->{n}_s{nb + 1};\n"
    if debug:
        for n in names:
            number = "abcde".index(n)
            body += f"    g.range[{number}][0] = (const void *)s->{n}_low;\n"
            body += f"    g.range[{number}][1] = (const void *)s->{n}_high;\n"
    if BLOCKS[0] in dict(params):
        body += "".join(f"    g.{n} = s->{n};\n" for n in BLOCKS)
    text = f"""#include <pa_base.h>
{headers(dtype, out)}
typedef struct {{
{slot_fields(params, debug)}}} matmul_slots;
{matmul.gemm_epilogue.epilogue_text(epilogue) if epilogue else ""}
{checks}{macros(dtype, out)}#include <pa_gemm.h>

__attribute__((visibility("default"))) void kernel_matmul(const void *memory, pa_runtime *rt)
{{
    const matmul_slots *s = (const matmul_slots *)memory;
    pa_gemm_args g = {{0}};
    g.nb = {nb};
    g.more = s;
{body}    pa_gemm(&g, rt);
}}
"""
    return text, KernelStep("kernel_matmul")


def _grid_text(
    dtype: DType, nb: int, params: Any, epilogue: Epilogue | None, debug: bool, tiles: int | Tile, target: str
) -> tuple[str, KernelStep]:
    """The same for a grid (csrc/device/pa_gemm_gpu.h, pa_gemm_mma.h, pa_gemm_amd.h)."""
    out = BY_NAME[epilogue.out] if epilogue else _grid_result(dtype, tiles)
    defines = ("#define PA_DEBUG_CHECKS 1\n" if debug else "") + macros(dtype, out)
    *_, blocks = jit.bound_launch.first_slots(params)
    letter, call, header = "G", "pa_gemm", "pa_gemm_gpu.h"
    step = KernelStep("kernel_matmul", (blocks,), team=True, dependent_launch=True)
    cluster = ""
    if isinstance(tiles, Tile):
        defines += tiles.macros(dtype, out)
        letter, call, header = "M", "pa_gemm_mma", tiles.header
        cluster = f"__cluster_dims__({tiles.cluster}, 1, 1)" if tiles.cluster > 1 else ""
        step = KernelStep(
            "kernel_matmul", (blocks,), team=True, shared=tiles.shared(dtype, out), threads=tiles.threads,
            dependent_launch=tiles.header == "pa_gemm_mma.h",
        )  # fmt: skip
    slots, addends = slot_fields(params, debug), epilogue.addends if epilogue else ()
    body = f"    g.m = s->c_n{nb}, g.n = s->c_n{nb + 1}, g.k = s->a_n{nb + 1};\n"
    for number, n in enumerate(_NAMES):
        body += f"    g.{n} = (char *)s->{n}_data, g.r{n}s = s->{n}_s{nb}, g.c{n}s = s->{n}_s{nb + 1};\n"
        body += "".join(f"    g.batch_{n}[{k}] = s->{n}_s{k};\n" for k in range(nb))
        if debug:
            body += f"    g.range[{number}][0] = (const char *)s->{n}_low;\n"
            body += f"    g.range[{number}][1] = (const char *)s->{n}_high;\n"
    for number, n in enumerate(addends):
        places = f"g.d[{number}] = (char *)s->{n}_data, g.rds[{number}] = s->{n}_s{nb}"
        body += f"    {places}, g.cds[{number}] = s->{n}_s{nb + 1};\n"
        body += "".join(f"    g.batch_d[{number}][{k}] = s->{n}_s{k};\n" for k in range(nb))
    body += "    g.more = s;\n" if epilogue else ""
    body += "".join(f"    g.batch[{k}] = s->c_n{k};\n" for k in range(nb)) or "    g.batch[0] = 1;\n"
    if debug:
        slots += "    pa_runtime run;\n"
        body += "    run = s->run;\n"
    flagged = "flags" in dict(params)
    if flagged:  # what one of the two kernels computes, the other one doesn't
        other = "" if isinstance(tiles, Tile) else "!"
        body = f"    if ({other}pa_bf16x6_flagged(s->flags_data, s->flags_n0)) return;\n" + body
    if flagged or letter == "G":  # else the header says when
        body = "    pa_griddep_wait();\n" + body
    text = f"""#include <pa_base.h>
{headers(dtype, out)}
typedef struct {{
{slots}}} matmul_slots;
{matmul.gemm_epilogue.grid_epilogue_text(epilogue, target) if epilogue and epilogue.computes else ""}
{defines}{matmul.split_k.macros(tiles)}#define PA_GEMM_BATCHES {max(nb, 1)}
{"#include <pa_gemm_bf16x6.h>" if flagged else ""}
#include <{header}>

extern "C" __global__ void __launch_bounds__(PA_{letter}_THREADS, PA_{letter}_BLOCKS) {cluster}
kernel_matmul(const matmul_slots memory)
{{
    const matmul_slots *s = &memory;
    pa_gemm_grid g = {{0}};
    pa_runtime run = {{0}};
{body}    {call}(&g, &run);
}}
"""
    return text, step


# contraction of products and sums is allowed, as in BLAS
_KERNEL = TextKernel("matmul", _program, flags=("-ffp-contract=fast",))
_FLAGGED = TextKernel("matmul", partial(_program, flagged=True))


def tuner() -> Any:
    """The `LibraryTuner` of block sizes."""
    return matmul.gemm_blocks.tuner(_float32_text)


def _float32_text() -> str:
    return _program(("float32", 0, 0), "cpu", False).text
