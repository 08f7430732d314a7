"""csrc/device/pa_gemm.h as it is compiled for other processors than this one: vectors of SSE2, AVX2 and
AVX-512, and those of 64-bit Arm on an emulator."""

import os
import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
from compile_cache import compile_cached
from gemm_cases import DTYPES, FLAGS, INCLUDES, KINDS, arguments, check, text, view

# Reads products from standard input, numbers before bytes, and writes each C to standard output.
PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
static void all(pa_runtime *rt, pa_block block, void *context, int64_t count, int64_t grain)
{
    int64_t begin = (count - 1) / grain * grain; /* backwards: nothing is said about the order */
    (void)rt;
    for (; begin >= 0; begin -= grain) block(context, begin, begin + grain < count ? begin + grain : count);
}
static void *scratch(pa_runtime *rt, size_t n)
{
    static void *last;
    (void)rt;
    free(last);
    return last = aligned_alloc(64, (n + 63) / 64 * 64);
}
static char *matrix(int64_t bytes, int64_t first, int filled)
{
    char *p = malloc(bytes + 1);
    if (filled && fread(p, 1, bytes, stdin) != (size_t)bytes) exit(2);
    if (!filled) memset(p, 85, bytes);
    return p + first;
}
int main(void)
{
    int64_t n[16]; /* kind; m, n, k; strides; bytes and first element of A, B, C */
    while (fread(n, 8, 16, stdin) == 16) {
        pa_runtime rt = {.parallel_for = all, .scratch = scratch, .threads = 2};
        pa_gemm_args g = {.m = n[1], .n = n[2], .k = n[3]};
        g.ras = n[4], g.cas = n[5], g.rbs = n[6], g.cbs = n[7], g.rcs = n[8], g.ccs = n[9];
        const pa_gemm_args *args = &g;
        g.a = matrix(n[10], n[11], 1), g.b = matrix(n[12], n[13], 1), g.c = matrix(n[14], n[15], 0);
        RUN[n[0]](&args, &rt);
        fwrite((char *)g.c - n[15], 1, n[14], stdout);
        free((char *)g.a - n[11]), free((char *)g.b - n[13]), free((char *)g.c - n[15]);
    }
    return 0;
}
"""
SOME = ("f32", "f64", "c64", "u8", "u64")
# compiler, what runs the program (words of /proc/cpuinfo or an emulator), element types
SETS = {
    "sse2": (["cc", "-march=x86-64"], set(), SOME),
    "avx2": (["cc", "-march=x86-64-v3"], {"avx2", "fma"}, SOME),
    "avx512": (["cc", "-march=x86-64-v4"], {"avx512f", "avx512dq"}, (*SOME, "bf16")),
    "avx512, pairs": (["cc", "-march=x86-64-v4", "-mavx512bf16"], {"avx512f", "avx512_bf16"}, ("bf16",)),
    "neon": (["aarch64-linux-gnu-gcc", "-static"], "qemu-aarch64-static", tuple(KINDS)),
}
SHAPES = (
    (1, 1, 1), (5, 7, 9), (8, 8, 8), (12, 48, 16), (63, 65, 67), (1, 300, 200), (200, 300, 1), (3, 130, 257),
    (97, 1100, 70), (9, 33, 3), (30, 301, 19), (2, 301, 330), (7, 140, 530), (1100, 5, 3), (2, 9, 1500), (1030, 20, 7),
    (7, 1100, 3), (23, 5000, 3),
)  # fmt: skip
LAYOUTS = (("rows", "rows"), ("columns", "rows"), ("rows", "columns"), ("offset", "steps"))


def reason(way):
    """Why a way of SETS can't be tried here; '' where it can."""
    command, wanted, _ = way
    if shutil.which(command[0]) is None:
        return f"no {command[0]}: apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross"
    if isinstance(wanted, str):
        return "" if shutil.which(wanted) else f"no {wanted}: apt-get install qemu-user-static"
    if os.uname().machine != "x86_64":
        return "this is no x86-64"
    has = set(Path("/proc/cpuinfo").read_text().split())
    return "" if not wanted or wanted <= has else f"this processor has no {' and '.join(sorted(wanted - has))}"


def built(name, folder):
    """The program for a set."""
    command, _, kinds = SETS[name]
    table = ", ".join(f"run_{kind}" for kind in kinds)
    source = text(kinds, "#include <string.h>")
    source += f"static void (*const RUN[])(const void *, pa_runtime *) = {{{table}}};\n{PROGRAM}"
    return executable([*command, "-std=gnu11", "-w", *FLAGS, *INCLUDES], source, folder / "products")


def executable(command, source, path):
    """Compiles a program."""
    compile_cached(command, source, path)
    path.chmod(0o700)
    return str(path)


def problem(rng, dtype, kind, place):
    """Operands, a result to fill, and the bytes that ask the program for it."""
    m, k, n = SHAPES[place % len(SHAPES)]
    layouts = LAYOUTS[place % len(LAYOUTS)]
    a, b = (view(rng, *shape, dtype, of) for shape, of in zip(((m, k), (k, n)), layouts, strict=True))
    memory = np.empty((n, m) if place % 3 == 2 else (m, n), dtype)
    c = memory.T if place % 3 == 2 else memory
    args, _ = arguments(a, b, c)
    numbers = [kind, m, n, k, args.ras, args.cas, args.rbs, args.cbs, args.rcs, args.ccs]
    sent = b""
    for x in (a, b):
        whole = x if x.base is None else x.base
        numbers += [whole.nbytes, x.ctypes.data - whole.ctypes.data]
        sent += whole.tobytes()
    return a, b, c, memory, struct.pack("16q", *numbers, memory.nbytes, 0) + sent


@pytest.mark.parametrize("name", SETS)
@pytest.mark.slow
def test_products(name, tmp_path):
    _, runner, kinds = SETS[name]
    said = reason(SETS[name])
    if said and isinstance(runner, str):
        pytest.skip(said)
    program = [built(name, tmp_path)]
    if said:
        pytest.skip(f"compiled, but {said}")
    rng = np.random.default_rng(0)
    problems = [
        problem(rng, np.dtype(dtype), kinds.index(kind), place)
        for dtype, kind in DTYPES.items()
        if kind in kinds
        for place in range(2 * len(SHAPES))
    ]
    program = [runner, *program] if isinstance(runner, str) else program
    sent = b"".join(sent for *_, sent in problems)
    done = subprocess.run(program, input=sent, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout) == sum(memory.nbytes for _, _, _, memory, _ in problems)
    at = 0
    for a, b, c, memory, _ in problems:
        got = np.frombuffer(done.stdout[at : at + memory.nbytes], memory.dtype).reshape(memory.shape)
        at += memory.nbytes
        memory[...] = got
        check(c, a, b)
