"""csrc/device/pa_exp_cpu.h: its error, its special values, and the same bits from every instruction set."""

import subprocess

import numpy as np
import pytest
from compile_cache import compile_cached
from device_headers import INCLUDE
from test_gemm_instruction_sets import SETS, reason

PROGRAM = """
#include "pa_real.h"
#include <stdio.h>
#include <stdlib.h>
#if !defined(PA_EXP_CPU_H)
#error "fused multiply-add was expected"
#endif
int main(void)
{
    int64_t n;
    if (fread(&n, 8, 1, stdin) != 1) return 2;
    float *x = malloc(n * 4), *y = malloc(n * 4);
    if (fread(x, 4, n, stdin) != (size_t)n) return 2;
    for (int64_t i = 0; i < n; ++i) y[i] = pa_exp_f32(x[i]);
    fwrite(y, 4, n, stdout);
    return 0;
}
"""
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0, -0.0, 1e-45, -1e-45, 3.4e38, -3.4e38, 89, -104, -103.9], np.float32)
OF_SPECIAL = np.array([np.nan, np.inf, 0, 1, 1, 1, 1, np.inf, 0, np.inf, 0, 1.4e-45], np.float32)


def numbers():
    """Every 2503rd float32, and more where results are neither 1 nor infinite nor 0; 2^20 and a few."""
    bits = np.arange(0, 2**32, 2503, dtype=np.uint64).astype(np.uint32).view(np.float32)
    few = np.linspace(-104, 89, 1 << 19).astype(np.float32)
    return np.concatenate([SPECIAL, bits[np.abs(bits) < 104], few])


def exponentials(way, flags, tmp_path, x):
    """Those of `x` by the program, compiled in a way of SETS."""
    command, runs = way[:2]
    path = tmp_path / "exp"
    options = ["-std=gnu11", "-D_GNU_SOURCE", "-ffp-contract=off", "-fno-strict-aliasing", *flags, *INCLUDE]
    compile_cached([*command, *options], PROGRAM, path)
    emulator = [runs] if isinstance(runs, str) else []
    given = np.int64(x.size).tobytes() + x.tobytes()
    return np.frombuffer(subprocess.run([*emulator, path], input=given, stdout=-1, check=True).stdout, np.float32)


@pytest.mark.parametrize("name", ["avx2", "avx512", "neon"])
def test_exponentials(name, tmp_path):
    why = reason(SETS[name])
    if why:
        pytest.skip(why)
    x = numbers()
    got = exponentials(SETS[name], ["-O3"], tmp_path, x)
    one_by_one = exponentials(SETS[name], ["-O1", "-fno-tree-vectorize"], tmp_path, x)
    np.testing.assert_array_equal(got.view(np.uint32), one_by_one.view(np.uint32))
    np.testing.assert_array_equal(got[: len(SPECIAL)], OF_SPECIAL)
    with np.errstate(all="ignore"):
        want = np.exp(x.astype(np.float64))
        rounded = want.astype(np.float32)
    finite = np.isfinite(rounded)
    np.testing.assert_array_equal(got[~finite], rounded[~finite])
    unit = np.spacing(rounded[finite]).astype(np.float64)
    assert (np.abs(got[finite] - want[finite]) <= 1.6 * unit).all()
