"""csrc/device/pa_sort_cpu.h as it is compiled for other processors than this one (vectors of SSE2, AVX2 and
AVX-512, and those of 64-bit Arm on an emulator), with pivots that are never trusted, and with long rows that
are short."""

import struct
import subprocess

import numpy as np
import pytest
from gemm_cases import INCLUDES
from test_gemm_instruction_sets import SETS, executable, reason

from pyarray.dtypes import BY_NAME
from pyarray.kernels.sort.sort_cpu import _signed_transform
from pyarray.kernels.sort.sort_keys import key_transform

# Reads problems from standard input and writes elements and positions to standard output.
PROGRAM = """
#include <pa_base.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if BITS == 16
#include <pa_sort_narrow.h>
typedef uint16_t element;
#else
#include <pa_sort_cpu.h>
typedef pa_key element;
#endif
static void all(pa_runtime *rt, pa_block block, void *context, int64_t count, int64_t grain)
{
    int64_t begin = (count - 1) / grain * grain; /* backwards: nothing is said about the order */
    (void)rt;
    for (; begin >= 0; begin -= grain) block(context, begin, begin + grain < count ? begin + grain : count);
}
int main(void)
{
    int64_t s[13]; /* rows, n, threads, whether positions are asked for, kths, 3 of kth; how keys are made */
    while (fread(s, 8, 13, stdin) == 13) {
        const size_t size = (size_t)(s[0] * s[1]), nbytes = size * sizeof(element);
        pa_runtime rt = {.parallel_for = all, .threads = (int32_t)s[2]};
        element *x = malloc(nbytes), *out = malloc(nbytes);
        pa_key *tmp = malloc(3 * size * sizeof(pa_key));
        int64_t *positions = calloc(size, 8);
        pa_sort job = {.rows = s[0], .n = s[1], .tasks = s[0], .kths = s[4], .kth = s + 5, .rt = &rt};
        job.sign_flip = (pa_key)s[8], job.flip = (pa_key)s[9], job.limit = (pa_key)s[10];
        job.nan = (pa_key)s[11], job.zero = (pa_key)s[12];
        job.tmp = tmp, job.positions = s[3] ? positions : 0;
        if (fread(x, 1, nbytes, stdin) != nbytes) return 2;
#if BITS == 16
        pa_sort_all_narrow(&job, x, out);
#else
        job.x = x, job.out = out;
        pa_sort_all(&job);
#endif
        fwrite(out, 1, nbytes, stdout);
        fwrite(positions, 8, size, stdout);
        free(x), free(out), free(tmp), free(positions);
    }
    return 0;
}
"""
# what is defined besides: one run of a kind each
VARIANTS = {
    "plain": ("-DPA_S_SELECT=200",),
    "no tries": ("-DPA_S_TRIES=0", "-DPA_S_SELECT=200"),
    "long": ("-DPA_S_LONG=300", "-DPA_S_PIECE=100", "-DPA_S_SELECT=600"),
}
SIZES = (1, 2, 5, 8, 15, 16, 17, 33, 64, 65, 127, 129, 256, 257, 300, 1000, 2500)


def drawn(rng, dtype, shape, kind):
    dtype = np.dtype(dtype)
    if kind == "random":
        return np.frombuffer(rng.bytes(dtype.itemsize * shape[0] * shape[1]), dtype).reshape(shape)
    if kind == "few":
        return rng.integers(0, 4, shape).astype(dtype)
    if kind == "rising":
        return np.sort(rng.integers(0, 1 << (30 if dtype.itemsize > 2 else 15), shape)).astype(dtype)
    some = [0.0, -0.0, np.nan, np.inf, -np.inf, 1, -1] if dtype.kind == "f" else [0, 1]
    info = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    return rng.choice(np.array([info.min, info.max, *some], dtype), shape)


def built(name, variant, bits, folder):
    command = SETS[name][0]
    flags = ["-std=gnu11", "-w", "-O1", "-fno-strict-aliasing", f"-DBITS={bits}", *VARIANTS[variant]]
    flags.append(f"-DPA_S_BITS={max(bits, 32)}")
    return executable([*command, *flags, *INCLUDES], PROGRAM, folder / f"sort{bits}")


def problems(rng, bits):
    for dtype in (f"float{bits}", f"int{bits}", f"uint{bits}"):
        for place, n in enumerate(SIZES):
            for kind in ("random", "few", "rising", "special"):
                rows = 3 if n < 70 else 1
                kth = np.unique(rng.integers(0, n, place % 4 if bits > 16 else 0))
                wanted = bool(kth.size) and bool(rng.integers(2))
                falling = not kth.size and bool(rng.integers(2))
                yield drawn(rng, dtype, (rows, n), kind), kth, wanted, falling


def check(x, kth, wanted, falling, out, positions):
    for row, found, at in zip(x, out, positions, strict=True):
        ordered = np.sort(row)
        if falling:
            nans = np.isnan(row).sum() if row.dtype.kind == "f" else 0
            ordered = np.concatenate([ordered[: row.size - nans][::-1], ordered[row.size - nans :]])
        if wanted:
            found = row[at]
            np.testing.assert_array_equal(np.sort(at), np.arange(row.size))
        if not kth.size:
            np.testing.assert_array_equal(found, ordered)
        np.testing.assert_array_equal(np.sort(found), np.sort(row))
        for k in kth:
            np.testing.assert_array_equal(np.sort(found[:k]), ordered[:k])
            np.testing.assert_array_equal(found[k], ordered[k])
        if row.dtype.kind == "f":
            assert np.signbit(found[found == 0]).sum() == np.signbit(row[row == 0]).sum()


@pytest.mark.slow
@pytest.mark.parametrize("bits", [16, 32, 64])
@pytest.mark.parametrize(
    ("name", "variant"),
    [("sse2", "plain"), ("avx2", "long"), ("avx512", "no tries"), ("avx512", "long"), ("neon", "no tries")],
)
def test_sorts(name, variant, bits, tmp_path):
    said, runner = reason(SETS[name]), SETS[name][1]
    if said and isinstance(runner, str):
        pytest.skip(said)
    program = [built(name, variant, bits, tmp_path)]
    if said:
        pytest.skip(f"compiled, but {said}")
    rng, sent, cases = np.random.default_rng(0), b"", list(problems(np.random.default_rng(bits), bits))
    for x, kth, wanted, falling in cases:
        keys = _signed_transform(key_transform(BY_NAME[x.dtype.name], falling), x.itemsize)
        padded = [*kth.tolist(), 0, 0, 0][:3]
        threads = int(rng.integers(1, 9))
        sent += struct.pack("13q", *x.shape, threads, wanted, kth.size, *padded, *keys) + x.tobytes()
    program = [runner, *program] if isinstance(runner, str) else program
    done = subprocess.run(program, input=sent, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr
    at = 0
    for x, kth, wanted, falling in cases:
        out = np.frombuffer(done.stdout, x.dtype, x.size, at).reshape(x.shape)
        positions = np.frombuffer(done.stdout, np.int64, x.size, at + x.nbytes).reshape(x.shape)
        at += x.nbytes + positions.nbytes
        check(x, kth, wanted, falling, out, positions)
    assert at == len(done.stdout)
