"""wgmma instructions of kernels for sm_90 are asynchronous: ptxas serializes them, and reports it, where it finds that
other instructions write their accumulators."""

import importlib.util
import re

import numpy as np
import pytest

import pyarray as pa
from pyarray.driver import nvrtc, runtime_compiler
from pyarray.fusion.activations import ACTIVATIONS
from pyarray.kernels.attention import wgmma
from pyarray.kernels.matmul import gemm_bf16x6, gemm_mma, gemm_text
from pyarray.kernels.matmul.gemm_epilogue import Epilogue
from pyarray.kernels.matmul.gemm_key import ProductKey

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("cuda") is None,
    reason="cuda-bindings is not installed: pip install 'pyarray-kernels[cuda]'",
)
WIDE, SQUARE = (tile for tile, _ in gemm_mma.TILES["wgmma", 2][:2])
SILU = Epilogue("bfloat16", activation=ACTIVATIONS["silu"].narrow)
GELU = Epilogue("bfloat16", bias=True, beta=True, activation=ACTIVATIONS["gelu"].narrow)
PRODUCTS = {
    "bfloat16": ProductKey("bfloat16", 0, WIDE._replace(cluster=2)),
    "bfloat16 square": ProductKey("bfloat16", 2, SQUARE),
    "float16 stacks": ProductKey("float16", 1, gemm_mma.STACKED),
    "silu": ProductKey("bfloat16", 0, WIDE, SILU),
    "gelu": ProductKey("bfloat16", 0, WIDE._replace(cluster=2), GELU),
    "groups": ProductKey("bfloat16", 0, WIDE, ends="int64"),
    "tf32": ProductKey("float32", 0, gemm_mma.TILES["wgmma", 4][0][0]),
    "int8": ProductKey("int8", 0, gemm_mma.TILES["wgmma", 1][0][0]),
    "float8": ProductKey("float8_e4m3fn", 0, gemm_mma.TILES["wgmma", 1][0][0], Epilogue("bfloat16")),
    "bf16x6": ProductKey("bfloat16", 0, gemm_bf16x6.TILES[0][0], Epilogue("float32"), flagged=True),
}


@pa.kernel
def product_of_tiles(c, a, b):
    for i, j in pa.tiles(c, (128, 256)):
        acc = pa.zeros((i, j), pa.float32)
        for k in pa.tiles(a.shape[1], 64):
            acc += a[i, k] @ b[k, j]
        c[i, j] = acc


def ptxas_log(text, monkeypatch):
    """What ptxas reports of a text for sm_90."""
    logs, read = [], runtime_compiler._read

    def reading(library, name, program):
        logs.append(read(library, "nvrtcGetProgramLog", program))
        return read(library, name, program)

    monkeypatch.setattr(runtime_compiler, "_read", reading)
    nvrtc.Nvrtc("sm_90").compile(text, ("--ptxas-options=-v",))
    (log,) = logs
    assert b"registers" in log
    return log.decode()


@pytest.mark.slow
@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name, monkeypatch):
    """Nor is there a function that isn't inlined, which has the product's arguments in memory."""
    log = ptxas_log(gemm_text.program(PRODUCTS[name], "cuda", False).text, monkeypatch)
    assert "serialized" not in log
    assert max(int(size) for size in re.findall(r"(\d+) bytes stack frame", log)) <= 64


@pytest.mark.slow
def test_products_of_tiles(monkeypatch):
    c, a, b = (pa.asarray(np.zeros((256, 256)), dtype="bfloat16") for _ in range(3))
    text = product_of_tiles._lowered(product_of_tiles.bind((c, a, b)), False, "cuda").text
    assert "pa_tile_mma.h" in text
    assert "serialized" not in ptxas_log(text, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("program", [wgmma._forward_program, wgmma._backward_program])
def test_attention(program, monkeypatch):
    key = wgmma._Key("bfloat16", 128, True, "")
    assert "serialized" not in ptxas_log(program(key, "cuda", False).text, monkeypatch)


def test_serialization_is_reported(monkeypatch):
    """Of an accumulator that is written between two instructions."""
    text = """
    extern "C" __global__ void waits(float *out, unsigned long long a, unsigned long long b, int n)
    {
        float x[4];
        for (int k = 0; k < n; ++k) {
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
            asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
                         : "+f"(x[0]), "+f"(x[1]), "+f"(x[2]), "+f"(x[3]) : "l"(a), "l"(b));
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
            x[0] += 1;
        }
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        out[threadIdx.x] = x[0] + x[1] + x[2] + x[3];
    }"""
    assert "serialized" in ptxas_log(text, monkeypatch)
