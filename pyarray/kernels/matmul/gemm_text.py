"""The device text of matrix products: around csrc/device/pa_gemm.h on CPUs, pa_gemm_gpu.h, pa_gemm_tiny.h,
pa_gemm_mma.h or pa_gemm_amd.h on GPUs."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

from ... import jit, lang
from ...driver.kernel_step import THREADS, KernelStep
from ...dtypes import BY_NAME, DType, int8, int32, int64, uint8, uint32
from ...jit.text_kernel import TextKernel
from .. import matmul
from ..argument_slots import slot_fields
from .gemm_key import STACKED, STACKED_THREADS, TINY, ProductKey, tile_macros
from .gemm_mma import Tile
from .gemm_types import (
    BF16X6_PARTS,
    BF16X6_PRODUCTS,
    BLOCKS,
    count_nothing,
    gemm_operations,
    grouped_depth_operations,
    headers,
    macros,
)

if TYPE_CHECKING:
    from .gemm_epilogue import Epilogue

_NAMES = ("a", "b", "c")  # d and e may follow
_ENDS = "pa_gemm_ends{{(const char *)s->ends_data, s->ends_s0, s->ends_n0, s->{count}}}"


def program(key: ProductKey, target: str, debug: bool) -> lang.pipeline.Program:
    """The text for `key` and its parameters."""
    name, nb, tiles, epilogue, blocks, flagged, ends, grouped_depth = key
    dtype = BY_NAME[name]
    out = BY_NAME[epilogue.out] if epilogue else _grid_result(dtype, tiles)
    names = (*_NAMES, *(epilogue.addends if epilogue else ()))
    params: list[tuple[str, Any]] = [
        (n, lang.ir.ArrayType(dtype if n in "ab" else out, nb + 2 + (key.grouped_rows and n == "b"), strided=True))
        for n in names
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
    if ends:
        params.append(("ends", lang.ir.ArrayType(BY_NAME[ends], 1, strided=True)))
    if key.grouped_rows:
        params.append(("tiles", lang.ir.ArrayType(int64, 2, strided=False)))
    if not lang.dialect.DIALECTS[target].blocks:
        params.append(("blocks", lang.ir.ScalarType(int64)))
    inputs: tuple[str, ...] = (*names, *(("flags",) if flagged else ()), *(("ends",) if ends else ()))
    directions = dict.fromkeys(inputs, "IN") | {"c": "OUT"} | ({"tiles": "OUT"} if key.grouped_rows else {})
    if lang.dialect.DIALECTS[target].blocks:
        text, *steps = _text(dtype, nb, params, epilogue, debug)
    else:
        text, *steps = _grid_text(key, params, debug, target)
    by_parts = flagged and isinstance(tiles, Tile)
    times = BF16X6_PRODUCTS // BF16X6_PARTS if by_parts else 1
    count: lang.operation_counts.CountOperations = partial(gemm_operations, epilogue is not None, times=times)
    if flagged and not by_parts:
        count = count_nothing
    if grouped_depth:
        count = grouped_depth_operations
    return lang.pipeline.Program("matmul", text, tuple(steps), tuple(params), directions, sites, count_operations=count)


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


def _grid_text(key: ProductKey, params: Any, debug: bool, target: str) -> tuple[str, *tuple[KernelStep, ...]]:
    """The same for a grid (csrc/device/pa_gemm_gpu.h, pa_gemm_mma.h, pa_gemm_amd.h): the text and its kernels."""
    dtype, nb, tiles, epilogue, flagged = BY_NAME[key.dtype], key.batch_axes, key.tiles, key.epilogue, key.flagged
    out = BY_NAME[epilogue.out] if epilogue else _grid_result(dtype, tiles)
    defines = ("#define PA_DEBUG_CHECKS 1\n" if debug else "") + macros(dtype, out)
    *_, blocks = jit.bound_launch.first_slots(params)
    letter, call, header = "G", "pa_gemm", "pa_gemm_gpu.h"
    threads = STACKED_THREADS if tiles == STACKED else THREADS
    step = KernelStep("kernel_matmul", (blocks,), team=True, threads=threads, dependent_launch=True)
    if tiles == TINY:
        call, header = "pa_gemm_tiny_products", "pa_gemm_tiny.h"
    cluster = ""
    if isinstance(tiles, Tile):
        defines += tiles.macros(dtype, out)
        letter, call, header = "M", "pa_gemm_mma", tiles.header
        cluster = f"__cluster_dims__({tiles.cluster}, 1, 1)" if tiles.cluster > 1 else ""
        step = KernelStep(
            "kernel_matmul", (blocks,), team=True, shared=tiles.shared(dtype, out), threads=tiles.threads,
            dependent_launch=tiles.header == "pa_gemm_mma.h",
        )  # fmt: skip
    slots, body = slot_fields(params, debug), _grid_arguments(key, debug)
    if debug:
        slots += "    pa_runtime run;\n"
        body += "    run = s->run;\n"
    done = ""  # by the other kernel
    if flagged:
        other = "" if isinstance(tiles, Tile) else "!"
        done = f"    if ({other}pa_bf16x6_flagged(s->flags_data, s->flags_n0)) return;\n"
        body = done + body
    steps, list_tiles = [step], ""
    if key.ends:
        defines += f"#define PA_GEMM_ENDS {key.ends}_t\n#define PA_GEMM_GROUPED_DEPTH {int(key.grouped_depth)}\n"
    if key.grouped_rows:
        steps, list_tiles = [KernelStep("kernel_list_tiles", team=True), step], _list_tiles_text(done)
    if flagged or letter == "G":  # else the header says when
        body = "    pa_griddep_wait();\n" + body
    text = f"""#include <pa_base.h>
{headers(dtype, out)}
typedef struct {{
{slots}}} matmul_slots;
{matmul.gemm_epilogue.grid_epilogue_text(epilogue, target) if epilogue and epilogue.computes else ""}
{defines}{tile_macros(tiles)}#define PA_GEMM_BATCHES {max(nb, 1)}
{"#include <pa_gemm_bf16x6.h>" if flagged else ""}
#include <{header}>
{list_tiles}
extern "C" __global__ void __launch_bounds__(PA_{letter}_THREADS, PA_{letter}_BLOCKS) {cluster}
kernel_matmul(const matmul_slots memory)
{{
    const matmul_slots *s = &memory;
    pa_gemm_grid g = {{0}};
    pa_runtime run = {{0}};
{body}    {call}(&g, &run);
}}
"""
    return text, *steps


def _grid_arguments(key: ProductKey, debug: bool) -> str:
    """Text that sets the arguments of a product on a grid from the slots."""
    nb = key.batch_axes
    body = f"    g.m = s->c_n{nb}, g.n = s->c_n{nb + 1}, g.k = s->a_n{nb + 1};\n"
    for number, n in enumerate(_NAMES):
        row = nb + (key.grouped_rows and n == "b")
        body += f"    g.{n} = (char *)s->{n}_data, g.r{n}s = s->{n}_s{row}, g.c{n}s = s->{n}_s{row + 1};\n"
        body += "".join(f"    g.batch_{n}[{k}] = s->{n}_s{k};\n" for k in range(row))
        if debug:
            body += f"    g.range[{number}][0] = (const char *)s->{n}_low;\n"
            body += f"    g.range[{number}][1] = (const char *)s->{n}_high;\n"
    for number, n in enumerate(key.epilogue.addends if key.epilogue else ()):
        places = f"g.d[{number}] = (char *)s->{n}_data, g.rds[{number}] = s->{n}_s{nb}"
        body += f"    {places}, g.cds[{number}] = s->{n}_s{nb + 1};\n"
        body += "".join(f"    g.batch_d[{number}][{k}] = s->{n}_s{k};\n" for k in range(nb))
    body += "    g.more = s;\n" if key.epilogue else ""
    if key.grouped_rows:
        return body + "    g.tiles = (const pa_gemm_group_tile *)s->tiles_data, g.batch[0] = s->ends_n0;\n"
    if key.grouped_depth:
        body += f"    g.ends = {_ENDS.format(count=f'a_n{nb + 1}')};\n"
    return body + ("".join(f"    g.batch[{k}] = s->c_n{k};\n" for k in range(nb)) or "    g.batch[0] = 1;\n")


def _list_tiles_text(done: str) -> str:
    """The kernel that makes the table of tiles of groups."""
    return f"""#include <pa_gemm_groups.h>

extern "C" __global__ void __launch_bounds__(PA_GROUP_THREADS) kernel_list_tiles(const matmul_slots memory)
{{
    const matmul_slots *s = &memory;
    pa_gemm_groups g = {{0}};
    g.ends = {_ENDS.format(count="c_n0")}, g.room = s->tiles_n0;
    g.tiles = (pa_gemm_group_tile *)s->tiles_data;
{done}    pa_gemm_list_tiles(&g);
}}
"""


# contraction of products and sums is allowed, as in BLAS
KERNEL = TextKernel("matmul", program, flags=("-ffp-contract=fast",))
