"""The tool that compiles all kernels at once finds the one that is at fault."""

import importlib.util

import pytest
from kernel_batch import Emitted, culprit, first_callers, joined, recorded, share
from kernel_recorder import Recorder
from target_compilers import refused

from pyarray.kernels.matmul import gemm_bf16x6
from pyarray.kernels.matmul.gemm_epilogue import Epilogue
from pyarray.kernels.matmul.gemm_key import ProductKey
from pyarray.kernels.matmul.gemm_mma import TILES
from pyarray.kernels.matmul.gemm_text import program
from pyarray.lang.dialect import DIALECTS
from pyarray.lang.pipeline import Program

HEAD = f"#include <pa_base.h>\n#include <pa_real.h>\n\n{DIALECTS['cuda'].prelude}\n"
FLOAT32 = Epilogue("float32")
KERNEL = 'extern "C" __global__ void __launch_bounds__(256) kernel_add_0(const slots memory)\n{\n'


@pytest.fixture(autouse=True)
def nvrtc():
    if importlib.util.find_spec("cuda") is None:
        pytest.skip("cuda-bindings is not installed: pip install 'pyarray-kernels[cuda]'")


def kernel(number, statement):
    text = f"{HEAD}typedef struct {{ float *data; }} slots;\n{KERNEL}    {statement}\n}}\n"
    return Emitted(f"{number:016x}", f"test_{number}", text)


def good(count):
    return [kernel(n, f"memory.data[{n}] = pa_sin_f32({n}.0f);") for n in range(count)]


WRONG = {
    "undeclared": "memory.data[0] = nothing;",
    "type": "float *p = 3.5f; memory.data[0] = *p;",
    "template": "pa_vector<void, 4> v; (void)v;",
    "syntax": "this is no statement",
}


@pytest.mark.parametrize("parsed", [True, False])
@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.slow
def test_the_kernel_at_fault_is_found(tmp_path, wrong, parsed):
    kernels = good(9)
    kernels.insert(5, kernel(77, WRONG[wrong]))
    found, words = culprit(kernels, lambda some: refused("sm_80", joined(some, parsed), tmp_path, parsed))
    assert found.test == "test_77"
    assert "000000000000004d.cu" in words
    assert culprit(good(9), lambda some: refused("sm_80", joined(some, parsed), tmp_path, parsed)) is None


def test_headers_that_are_read_once_per_type(tmp_path):
    keys = [
        ("float32", 0, False),
        ("float32", 0, True),
        ("complex64", 2, True),
        ("bool", 1, False),
        ("bfloat16", 0, False),
        ("bfloat16", 1, TILES["wgmma", 2][1][0]),
        ("float16", 0, TILES["mma", 2][2][0]),
        ("float64", 0, TILES["mma", 8][0][0]),
        ("bfloat16", 0, TILES["wmma", 2][0][0]),
        ("float32", 0, TILES["mfma", 4][1][0]),
    ]
    of_sm_90 = [("bfloat16", 2, TILES["wgmma", 2][0][0]._replace(cluster=2)), ("float64", 1, TILES["wgmma", 8][0][0])]
    for target, more in (("sm_80", []), ("sm_90", of_sm_90)):
        programs = [program(ProductKey(*key), "cuda", checked) for key in (*keys, *more) for checked in (False, True)]
        if more:
            parts = (
                ProductKey("bfloat16", 2, gemm_bf16x6.TILES[2][0], FLOAT32, flagged=True),
                ProductKey("float32", 0, 0, FLOAT32, flagged=True, ends="int64"),
            )
            programs += [gemm_bf16x6._program(2, "cuda", False)]
            programs += [program(key, "cuda", False) for key in parts]
        kernels = [Emitted(f"{n:016x}", "", program.text) for n, program in enumerate(programs)]
        assert not refused(target, joined(kernels, True), tmp_path, True)


def test_targets_of_a_compiler_share_kernels_and_each_has_every_call():
    calls = ["pa_sin_f32(v_x)", "pa_sin_f32(v_y)", "pa_sin_f32(-v_y)", "__popc(n0_v_x)", "func_f(1)"]
    kernels = [Emitted(str(n), "", call) for n, call in enumerate([*calls, calls[0]])]
    callers = first_callers(kernels)
    assert callers == {"0", "2", "3"}
    parts = [[k.name for k in share(kernels, part, 2, callers)] for part in range(2)]
    assert parts == [["0", "2", "3", "4"], ["0", "1", "2", "3", "5"]]
    assert share(kernels, 0, 1, callers) == kernels


def test_a_text_is_recorded_once_with_the_test_that_had_it(tmp_path):
    for record in (Recorder(tmp_path), Recorder(tmp_path)):  # as two processes
        for text in ("int a;\n", "int b;\n", "int a;\n"):
            record.write(text)
    found = recorded(tmp_path)
    assert sorted(k.text for k in found) == ["int a;\n", "int b;\n"]
    assert all("test_a_text_is_recorded_once" in k.test for k in found)


@pytest.mark.parametrize("target", ["cpu", "hip", "cuda"])
@pytest.mark.parametrize("debug", [False, True])
def test_what_is_lowered_is_recorded_in_both_modes_for_every_device(tmp_path, target, debug):
    made = []

    def generate(source, target, debug, asserts):
        kind = "cpu" if target == "cpu" else "gpu"
        made.append((kind, debug))
        assert asserts
        return Program(source, f"{source} {kind} {debug}", "", (), {}, ())

    recorded_generate = Recorder(tmp_path).generate(generate)
    for _ in range(2):
        assert recorded_generate("add", target, debug, True).text.startswith("add")
    assert sorted(k.text for k in recorded(tmp_path)) == ["add gpu False", "add gpu True"]
    assert {("gpu", False), ("gpu", True)} <= set(made)
    assert len(made) == (3 if target == "cuda" else 4)
