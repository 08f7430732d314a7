"""Programmatic dependent launches: kernels whose blocks may start before the kernel ahead has ended wait for it, in all
forms. In one that didn't, a third kernel could overtake the first."""

import importlib.util
import re

import pytest

from pyarray.driver.cc import include_dirs
from pyarray.driver.nvrtc import FLAGS
from pyarray.driver.runtime_compiler import call, compile_program
from pyarray.kernels.matmul import gemm_bf16x6, gemv
from pyarray.kernels.matmul.gemm_epilogue import Epilogue
from pyarray.kernels.matmul.gemm_key import ProductKey
from pyarray.kernels.matmul.gemm_mma import TILES
from pyarray.kernels.matmul.gemm_text import program
from pyarray.kernels.scan import scan_gpu


def tile(units, size, number=0, **changes):
    return TILES[units, size][number][0]._replace(**changes)


PROGRAMS = {
    "gemv": lambda: gemv._program(("bfloat16", 1, "bfloat16"), "cuda", False),
    "scans": lambda: scan_gpu._scan_program(("float32", "float32", "sum", 1, 256, True), "cuda", False),
    "bulk copies": lambda: program(ProductKey("bfloat16", 0, tile("wgmma", 2)), "cuda", False),
    "clusters": lambda: program(ProductKey("float16", 1, tile("wgmma", 2, cluster=2)), "cuda", False),
    "four axes": lambda: program(ProductKey("float16", 4, tile("wgmma", 2)), "cuda", False),
    "asynchronous copies": lambda: program(ProductKey("float16", 0, tile("wgmma", 2, 2)), "cuda", False),
    "tf32": lambda: program(ProductKey("float32", 0, tile("wgmma", 4)), "cuda", False),
    "int8": lambda: program(ProductKey("int8", 0, tile("wgmma", 1)), "cuda", False),
    "float64": lambda: program(ProductKey("float64", 0, tile("wgmma", 8)), "cuda", False),
    "float32": lambda: program(ProductKey("float32", 1, 0), "cuda", False),
    "int64": lambda: program(ProductKey("int64", 0, 1), "cuda", False),
    "float32 if flagged": lambda: program(
        ProductKey("float32", 0, 0, Epilogue("float32"), flagged=True), "cuda", False
    ),
    "debug mode": lambda: program(ProductKey("bfloat16", 0, tile("wgmma", 2)), "cuda", True),
    "flagged": lambda: program(
        ProductKey("bfloat16", 0, gemm_bf16x6.TILES[0][0], Epilogue("float32"), flagged=True), "cuda", False
    ),
    "groups": lambda: program(ProductKey("bfloat16", 0, tile("wgmma", 2), ends="int32"), "cuda", False),
}


@pytest.mark.parametrize("form", PROGRAMS)
def test_kernels_of_dependent_launches_wait(form):
    if importlib.util.find_spec("cuda") is None:
        pytest.skip("cuda-bindings is not installed: pip install 'pyarray-kernels[cuda]'")
    program = PROGRAMS[form]()
    dependent = {step.symbol for step in program.steps if step.dependent_launch}
    assert dependent
    entries = re.split(r"\.entry\s+", ptx(program.text))[1:]
    waiting = {entry.partition("(")[0].strip() for entry in entries if "griddepcontrol.wait" in entry}
    assert dependent <= waiting


def ptx(text):
    """Without code for a device, which takes longer to make."""
    binding = importlib.import_module("cuda.bindings.nvrtc")
    options = ["--gpu-architecture=compute_90a", *FLAGS, *(f"--include-path={folder}" for folder in include_dirs())]
    program = call(binding, "nvrtcCreateProgram", text.encode(), b"kernel.cu", 0, [], [])
    return compile_program(binding, "nvrtc", program, options, "sm_90", "PTX").decode()
