"""Matrix products by MFMA and WMMA (csrc/device/pa_gemm_amd.h, pa_tile_waves.h), kernel by kernel: the instructions of
their code objects, the numbers of all tiles, and bugs in them that are found. tests/device/test_tensor_cores.py has the
products as users call them, and test_drawn_tile_products.py those of tiles."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from targets.kernel_batch import Emitted, joined
from targets.target_compilers import TARGETS, missing, refused

import pyarray as pa
from pyarray.driver import hip
from pyarray.driver.cc import include_dirs
from pyarray.kernels.matmul import gemm_mma, split_k
from pyarray.kernels.matmul.gemm_key import ProductKey
from pyarray.kernels.matmul.gemm_text import program

from .harness import KernelFault, compiled, decoded, needs_toolchain, run

pytestmark = needs_toolchain
TYPES = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float32": np.float32, "float64": np.float64}
INSTRUCTIONS = {  # of a target, by dtype
    "gfx942": {
        "float16": "V_MFMA_F32_16X16X16_F16", "bfloat16": "V_MFMA_F32_16X16X16_BF16",
        "float32": "V_MFMA_F32_16X16X4_F32", "float64": "V_MFMA_F64_16X16X4_F64",
    },
    "gfx1100": {"float16": "V_WMMA_F32_16X16X16_F16", "bfloat16": "V_WMMA_F32_16X16X16_BF16"},
}  # fmt: skip
UNITS = {"gfx942": "mfma", "gfx1100": "wmma"}
LDS = 64 << 10  # bytes of a block


def tiles_of(target, dtype):
    return [tile for tile, _ in gemm_mma.TILES[UNITS[target], np.dtype(TYPES[dtype]).itemsize]]


def text_of(dtype, tile, debug=False):
    return program(ProductKey(dtype, 1, tile), "hip", debug).text


def product(target, text, tile, a, b, **options):
    """`a @ b` of batches of matrices, by one kernel; each block takes two tiles."""
    c = np.full((len(a), a.shape[1], b.shape[2]), 99, a.dtype)
    slots = [v for x in (a, b, c) for v in (x.ctypes.data, *x.shape, *x.strides)]
    tiles = len(a) * -(-c.shape[1] // tile.rows) * -(-c.shape[2] // tile.columns)
    shared = tile.shared(a.dtype, a.dtype)
    options = {"grid": -(-tiles // 2), "block": tile.threads, "shared": shared} | options
    signed = np.array([*slots, tiles], np.int64).view(np.uint64)
    memory = [x if x.base is None else x.base for x in (a, b, c)]
    run(target, text, "kernel_matmul", memory, arguments=signed, **options)
    return c


def operands(dtype, m, k, n, batch=2):
    """Of small integers, whose sums are exact."""
    rng = np.random.default_rng(m + k + n)
    return [rng.integers(-3, 4, (batch, *s)).astype(TYPES[dtype]) for s in ((m, k), (k, n))]


def exact(a, b):
    return (a.astype(np.float64) @ b.astype(np.float64)).astype(a.dtype)


def test_the_driver_knows_what_a_target_has(target):
    assert hip._tensor_cores(target) == UNITS[target]
    assert not any(map(hip._tensor_cores, ("gfx908", "gfx90a", "gfx1030", "gfx1200")))


def test_code_objects_multiply_by_matrix_instructions(target):
    for dtype, instruction in INSTRUCTIONS[target].items():
        for tile in tiles_of(target, dtype):
            _, names = decoded(target, compiled(target, text_of(dtype, tile)))
            assert instruction in names
            assert not any(name.startswith(("SCRATCH", "BUFFER_STORE", "V_ACCVGPR")) for name in names)
            assert tile.shared(*(np.dtype(TYPES[dtype]),) * 2) <= LDS // 2  # of two blocks at the same time


@pa.kernel
def product_of_tiles(c, a, b, rows: pa.constexpr, columns: pa.constexpr):
    for i, j in pa.tiles(c, (rows, columns)):
        total = pa.zeros((i, j), pa.float32)
        for k in pa.tiles(a.shape[1], 32):
            total += a[i, k] @ b[k, j]
        c[i, j] = total


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_products_of_tiles_use_them(target, dtype):
    c, a = (pa.zeros((256, 256), x) for x in ("float32", dtype))
    for sizes in ((64, 64), (128, 128)):
        bound = product_of_tiles.bind((c, a, a, *sizes))
        _, names = decoded(target, compiled(target, product_of_tiles._lowered(bound, False, "hip").text))
        assert INSTRUCTIONS[target][dtype] in names
        assert not any(name.startswith("V_ACCVGPR") for name in names)
        # of the larger tile some addresses are spilled, which are computed ahead of the loop over tiles
        assert sizes[0] > 64 or not any(name.startswith(("SCRATCH", "BUFFER_STORE")) for name in names)


@pytest.mark.slow
def test_other_targets_and_debug_mode_have_the_plain_kernel(target, tmp_path):
    """Each text is valid everywhere, since `make test` compiles all texts for all targets."""
    tile = tiles_of(target, "float16")[-1]
    _, names = decoded(target, compiled(target, text_of("float16", tile, debug=True)))
    assert not any("MFMA" in name or "WMMA" in name for name in names)
    texts = [text_of(dtype, tiles_of(target, dtype)[-1]) for dtype in INSTRUCTIONS[target]]
    joint = joined([Emitted(f"{n:016x}", "", text) for n, text in enumerate(texts)], parsed=True)
    for other in TARGETS:
        assert missing(other) or not refused(other, joint, tmp_path, parsed=True)


def test_products_of_int16_that_wrap(target):
    """By the plain kernel: where the compiler makes one of two products of halves of registers, it has to be right."""
    rng, tile = np.random.default_rng(0), split_k.SMALL
    a, b = (rng.integers(-(1 << 15), 1 << 15, s).astype(np.int16) for s in ((130, 67), (67, 70)))
    c = np.zeros((130, 70), np.int16)
    slots = [*(v for x in (a, b, c) for v in (x.ctypes.data, *x.shape, *x.strides)), 6]
    text, arguments = (
        program(ProductKey("int16", 0, tile), "hip", False).text,
        np.array(slots, np.int64).view(np.uint64),
    )
    run(target, text, "kernel_matmul", [a, b, c], arguments=arguments, grid=6, block=256)
    np.testing.assert_array_equal(c, (a.astype(np.int64) @ b.astype(np.int64)).astype(np.int16))


@pytest.mark.all_variants
@pytest.mark.parametrize("sizes", [(1, 1, 1), (15, 17, 63), (65, 100, 127), (130, 33, 130), (16, 0, 5)], ids=str)
def test_numbers(target, sizes):
    m, k, n = sizes
    for dtype in INSTRUCTIONS[target]:
        a, b = operands(dtype, m, k, n)
        for tile in tiles_of(target, dtype):
            text = text_of(dtype, tile)
            wanted = exact(a, b)
            np.testing.assert_array_equal(product(target, text, tile, a, b), wanted)
            turned = [np.ascontiguousarray(x.mT).mT for x in (a, b)]
            np.testing.assert_array_equal(product(target, text, tile, *turned, backwards=True), wanted)
            strange = [np.repeat(x[:, ::-1], 2, axis=2)[:, ::-1, ::2] for x in (a, b)]
            np.testing.assert_array_equal(product(target, text, tile, *strange), wanted)


UNWRITTEN = "which nothing has written"
# What is changed in the kernel's header, and what the executor says of it; "": the numbers are wrong.
BUGS = {
    "a slice is read before it is there": ("        __syncthreads(); /* the next", "        /* the next", UNWRITTEN),
    "one slice is multiplied again": ("sums.add(pa_amd_memory + (fill ^ PA_M_SLICE)", "sums.add(pa_amd_memory", ""),
    "slices don't take turns": ("fill ^= PA_M_SLICE;", "fill = 0;", UNWRITTEN),
    "a lane reads its neighbour's line": ("line + lane % 16, first", "line + (lane ^ 1) % 16, first", ""),
    "odd lines are swizzled otherwise": ("= pa_amd_offset(line, chunk)", "= pa_amd_offset(line, chunk ^ line & 1)", ""),
    "the depth ends one element too late": ("if (e < n) next.v[i", "if (e <= n) next.v[i", "touched address"),
    "the last column is left out": ("if (j * 16 < columns)", "if (j * 16 < columns - 1)", ""),
}  # fmt: skip


@pytest.mark.all_variants
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_found(target, bug):
    old, new, words = BUGS[bug]
    header = next(path for folder in include_dirs() if (path := Path(folder) / "pa_gemm_amd.h").exists()).read_text()
    assert header.count(old) == 1
    tile = tiles_of(target, "bfloat16")[-1]
    text = text_of("bfloat16", tile)
    wrong = text.replace("#include <pa_gemm_amd.h>", header.replace(old, new))
    a, b = operands("bfloat16", 70, 75, 66)
    np.testing.assert_array_equal(product(target, text, tile, a, b), exact(a, b))
    if words:
        with pytest.raises(KernelFault, match=words):
            product(target, wrong, tile, a, b)
    else:
        assert not np.array_equal(product(target, wrong, tile, a, b), exact(a, b))
