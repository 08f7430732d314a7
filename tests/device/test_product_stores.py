"""csrc/device/pa_gemm_mma_store.h by itself, from sums in the layout of tensor cores, against NumPy: so that devices
without tensor cores run it, too."""

import os

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import pyarray as pa

# the tile of sm_90, whose warps are as wide as it is, and one of sm_80
SHAPES = {"wide": (16, 256), "square": (64, 64)}
EPILOGUES = {
    0: "",
    1: "#define PA_GEMM_ADDENDS 1\n#define PA_GEMM_EPILOGUE(more, sum, d) twice_and(sum, d[0], 0)\n",
    2: "#define PA_GEMM_ADDENDS 2\n#define PA_GEMM_EPILOGUE(more, sum, d) twice_and(sum, d[0], widened(d[1]))\n",
}
TEXT = """
#include <pa_base.h>
#include <pa_half.h>
#define widened pa_f32_from_bf16
PA_FN pa_bf16 twice_and(float sum, pa_bf16 x, float y)
{{
    return pa_bf16_from_f32(2 * sum + widened(x) + y);
}}
#define PA_T pa_bf16
#define PA_ACC float
#define PA_BYTES 2
#define PA_STORE(x) pa_bf16_from_f32(x)
{epilogue}
#define PA_M_HALF_C 1
enum {{ PA_M_WORKERS = 32, PA_M_WARP_ROWS = {rows}, PA_M_WARP_COLUMNS = {columns} }};
struct pa_mma_accumulators {{ float v[PA_M_WARP_ROWS / 16][PA_M_WARP_COLUMNS / 8][4]; }};
PA_FN int pa_mma_thread(void) {{ return (int)threadIdx.x; }}
#include <pa_gemm_results.h>
#include <pa_gemm_mma_store.h>

/* Warps with tiles below each other; one in a block, as they store without each other. */
extern "C" __global__ void __launch_bounds__(32) stores(const float *sums, char *c, char *d, char *e,
                                                        const long long *steps)
{{
    __shared__ __align__(1024) unsigned char memory[PA_M_STAGED];
    const long long m = steps[0], n = steps[1];
    pa_gemm_grid g = {{0}};
    g.m = m, g.n = n, g.rcs = steps[2], g.ccs = steps[3];
    g.d[0] = d, g.rds[0] = steps[4], g.cds[0] = steps[5], g.d[1] = e, g.rds[1] = steps[6], g.cds[1] = steps[7];
    const pa_gemm_tile_origin t = {{0}};
    const int lane = (int)threadIdx.x, row = (int)blockIdx.x * PA_M_WARP_ROWS;
    pa_mma_accumulators sum;
    for (int i = 0; i < PA_M_WARP_ROWS / 16; ++i)
        for (int j = 0; j < PA_M_WARP_COLUMNS / 8; ++j)
            for (int k = 0; k < 4; ++k) {{
                const int r = row + i * 16 + k / 2 * 8 + lane / 4, s = j * 8 + lane % 4 * 2 + k % 2;
                sum.v[i][j][k] = r < m && s < n ? sums[r * n + s] : 1e30f;
            }}
    const pa_gemm_results results(&g, t, row, 0);
    pa_mma_store(&g, c + row * g.rcs, m - row, n, sum, results, memory);
}}
"""
LAYOUTS = st.sampled_from(("rows", "columns", "wide", "odd", "row", "column", "backwards"))


def laid_out(shape, layout, seed):
    """Small integers as bfloat16: the memory that they are in, a view of it, and where it begins."""
    m, n = shape
    rng = np.random.default_rng(seed)
    memory = rng.integers(-8, 9, (m + 2, 2 * n + 24)).astype(ml_dtypes.bfloat16)
    view = {
        "rows": lambda: memory.reshape(-1)[: m * n].reshape(m, n),
        "columns": lambda: memory.reshape(-1)[: m * n].reshape(n, m).T,
        "wide": lambda: memory[:m, 8 : 8 + n],
        "odd": lambda: memory[:m, 3 : 3 + n],
        "row": lambda: np.broadcast_to(memory[:1, 8 : 8 + n], shape),
        "column": lambda: np.broadcast_to(memory[:m, :1], shape),
        "backwards": lambda: memory[m - 1 :: -1, 8 : 8 + n] if m > 1 else memory[:1, 8 : 8 + n],
    }[layout]()
    return memory, view, view.__array_interface__["data"][0] - memory.__array_interface__["data"][0]


@pytest.mark.parametrize("addends", EPILOGUES)
@pytest.mark.parametrize("shape", SHAPES)
@examples(12)
@given(data=st.data())
def test_as_numpy(device, shape, addends, data):
    if device.startswith("cpu"):
        pytest.skip("tensor cores' sums are for GPUs")
    if device.startswith("hip") and os.environ.get("HIP_EMULATOR_ISA"):
        pytest.skip("the header has NVIDIA's instructions, which the emulated device ignores")
    rows, columns = SHAPES[shape]
    m = data.draw(st.sampled_from((2 * rows, 2 * rows - 1, rows, rows // 2 + 1, 1)))
    n = data.draw(st.sampled_from((columns, columns - 1, columns - 8, columns // 2, 3)))
    text = TEXT.format(epilogue=EPILOGUES[addends], rows=rows, columns=columns)
    sums = np.random.default_rng(m * n).integers(-20, 21, (m, n)).astype(np.float32)
    out = laid_out((m, n), data.draw(LAYOUTS.filter(lambda x: x not in ("row", "column"))), 1)
    others = [laid_out((m, n), data.draw(LAYOUTS), seed) for seed in (2, 3)]
    steps = [m, n, *(step for _, view, _ in (out, *others) for step in view.strides)]
    memories = [pa.asarray(memory.view(np.uint8), device=device) for memory, _, _ in (out, *others)]
    places = [memory.reshape(-1)[start:] for memory, (_, _, start) in zip(memories, (out, *others), strict=True)]
    kernel = pa.RawKernel(text, "stores")
    kernel((2,), (32,), (pa.asarray(sums, device=device), *places, pa.asarray(np.array(steps), device=device)))
    wanted = sums if not addends else 2 * sums + sum(view.astype(np.float32) for _, view, _ in others[:addends])
    out[1][...] = wanted.astype(ml_dtypes.bfloat16)  # and nothing around it
    np.testing.assert_array_equal(pa.asnumpy(memories[0]), out[0].view(np.uint8))
