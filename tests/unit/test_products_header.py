"""csrc/device/pa_products.h, pa_products_pairs.h and pa_products_words.h as they are compiled for several processors:
products of tiles are those of loops over elements, bit by bit."""

import subprocess

import pytest
from compile_cache import compile_cached
from gemm_cases import INCLUDES
from test_gemm_instruction_sets import SETS, reason

FLAGS = ["-O2", "-std=gnu11", "-w", "-ffp-contract=off", *INCLUDES]
# Draws sizes and strides, computes both, and prints the sizes of a product that is another.
PROGRAM = """
#include <pa_products.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static uint64_t state = 1;
static int64_t below(int64_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((state >> 33) % (uint64_t)n);
}
#define TEST(T, suffix, fused)                                                                                      \\
    static T a_##suffix[1 << 15], b_##suffix[1 << 15], got_##suffix[1 << 14], want_##suffix[1 << 14];               \\
    static int test_##suffix(void)                                                                                  \\
    {                                                                                                               \\
        const int64_t rows = below(30), columns = below(80), depth = below(5) ? below(40) : below(300);             \\
        const int64_t turned_a = below(2), turned_b = below(2), pitch = columns + below(9), more = below(5);        \\
        const pa_products_matrix_##suffix a = {a_##suffix + below(9), turned_a ? 1 : depth + more,                  \\
                                               turned_a ? rows + more : 1};                                         \\
        const pa_products_matrix_##suffix b = {b_##suffix + below(9), turned_b ? 1 : columns + more,                \\
                                               turned_b ? depth + more : 1};                                        \\
        pa_prefetch_next next[3] = {{(char *)a_##suffix, 100, below(50), 200},                                      \\
                                    {(char *)b_##suffix, -4, 3, below(80)}};                                        \\
        for (int k = 0; k < 1 << 15; ++k) {                                                                         \\
            a_##suffix[k] = (T)(below(2001) - 1000) / 7;                                                            \\
            b_##suffix[k] = (T)(below(2001) - 1000) / 11;                                                           \\
        }                                                                                                           \\
        for (int k = 0; k < 1 << 14; ++k) got_##suffix[k] = want_##suffix[k] = (T)below(100) / 3;                   \\
        for (int64_t i = 0; i < rows; ++i)                                                                          \\
            for (int64_t j = 0; j < columns; ++j)                                                                   \\
                for (int64_t k = 0; k < depth; ++k)                                                                 \\
                    want_##suffix[i * pitch + j] = fused(a.at[i * a.rows + k * a.columns],                          \\
                                                         b.at[k * b.rows + j * b.columns],                          \\
                                                         want_##suffix[i * pitch + j]);                             \\
        pa_products_add_##suffix(got_##suffix, pitch, a, b, rows, columns, depth, below(2) ? next : 0);             \\
        if (!memcmp(got_##suffix, want_##suffix, sizeof got_##suffix)) return 0;                                    \\
        printf(#suffix " %ld %ld %ld, turned %ld %ld\\n", (long)rows, (long)columns, (long)depth, (long)turned_a,   \\
               (long)turned_b);                                                                                     \\
        return 1;                                                                                                   \\
    }
TEST(float, f32, fmaf)
TEST(double, f64, fma)
int main(void)
{
    int wrong = 0;
    for (int k = 0; k < 300; ++k) wrong += test_f32() + test_f64();
    return wrong > 0;
}
"""


# The same of bfloat16 by pairs, with sums of -0 and both infinities among the rest.
PAIRS = """
#include <pa_half.h>
#include <pa_products_pairs.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static uint64_t state = 1;
static int64_t below(int64_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((state >> 33) % (uint64_t)n);
}
static pa_bf16 a_of[1 << 15], b_of[1 << 15];
static float got[1 << 14], want[1 << 14], work[2][1 << 15];
static int test(void)
{
    const int64_t rows = below(30), columns = below(80), depth = below(5) ? below(40) : below(300);
    const int64_t turned_a = below(2), turned_b = below(2), pitch = columns + below(9), more = below(5);
    const pa_products_bf16 a = {a_of + below(9), turned_a ? 1 : depth + more, turned_a ? rows + more : 1};
    const pa_products_bf16 b = {b_of + below(9), turned_b ? depth + more : 1, turned_b ? 1 : columns + more};
    for (int k = 0; k < 1 << 15; ++k) {
        a_of[k].bits = (uint16_t)(below(2) << 15 | (100 + below(40)) << 7 | below(128));
        b_of[k].bits = (uint16_t)(below(2) << 15 | (100 + below(40)) << 7 | below(128));
    }
    for (int k = 0; k < 1 << 14; ++k)
        got[k] = want[k] = below(9) ? (float)below(100) / 3 : below(2) ? -0.0f : below(2) ? INFINITY : -INFINITY;
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j)
            for (int64_t k = 0; k < depth; ++k)
                want[i * pitch + j] = fmaf(pa_f32_from_bf16(a.at[i * a.line + k * a.along]),
                                           pa_f32_from_bf16(b.at[k * b.along + j * b.line]), want[i * pitch + j]);
    pa_products_add_bf16(got, pitch, a, b, work[0], work[1], rows, columns, depth, 0);
    if (!memcmp(got, want, sizeof got)) return 0;
    printf("%ld %ld %ld, turned %ld %ld\\n", (long)rows, (long)columns, (long)depth, (long)turned_a, (long)turned_b);
    return 1;
}
int main(void)
{
    int wrong = 0;
    for (int k = 0; k < 600; ++k) wrong += test();
    return wrong > 0;
}
"""

# The same of narrow integers by words, with sums that wrap around.
WORDS = """
#include <pa_products_words.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static uint64_t state = 1;
static int64_t below(int64_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((state >> 33) % (uint64_t)n);
}
static uint32_t got[1 << 14], want[1 << 14], work[2][1 << 15];
#define TEST(A, a_kind, B, b_kind)                                                                                  \\
    static A a_##a_kind##b_kind[1 << 15];                                                                           \\
    static B b_##a_kind##b_kind[1 << 15];                                                                           \\
    static int test_##a_kind##b_kind(void)                                                                          \\
    {                                                                                                               \\
        const int64_t rows = below(30), columns = below(80), depth = below(5) ? below(40) : below(300);             \\
        const int64_t turned_a = below(2), turned_b = below(2), pitch = columns + below(9), more = below(5);        \\
        const int64_t pairs = (depth + 1) / 2, extremes = below(3);                                                 \\
        const pa_products_##a_kind a = {a_##a_kind##b_kind + below(9), turned_a ? 1 : depth + more,                 \\
                                        turned_a ? rows + more : 1};                                                \\
        const pa_products_##b_kind b = {b_##a_kind##b_kind + below(9), turned_b ? depth + more : 1,                 \\
                                        turned_b ? 1 : columns + more};                                             \\
        const pa_products_matrix_words of_a = {work[0], pairs, 1}, of_b = {work[1], columns, 1};                    \\
        for (int k = 0; k < 1 << 15; ++k) {                                                                         \\
            a_##a_kind##b_kind[k] = (A)(extremes ? below(65536) : -32768);                                          \\
            b_##a_kind##b_kind[k] = (B)(extremes ? below(65536) : -32768);                                          \\
            work[0][k] = work[1][k] = (uint32_t)below(1 << 30);                                                     \\
        }                                                                                                           \\
        for (int k = 0; k < 1 << 14; ++k) got[k] = want[k] = (uint32_t)(below(1 << 30) * 5);                        \\
        for (int64_t i = 0; i < rows; ++i)                                                                          \\
            for (int64_t j = 0; j < columns; ++j)                                                                   \\
                for (int64_t k = 0; k < depth; ++k)                                                                 \\
                    want[i * pitch + j] += (uint32_t)a.at[i * a.line + k * a.along] *                               \\
                                           (uint32_t)b.at[k * b.along + j * b.line];                                \\
        pa_products_words_of_##a_kind(work[0], pairs, 1, a, rows, depth);                                           \\
        pa_products_words_of_##b_kind(work[1], 1, columns, b, columns, depth);                                      \\
        pa_products_add_words(got, pitch, of_a, of_b, rows, columns, pairs, 0);                                     \\
        if (!memcmp(got, want, sizeof got)) return 0;                                                               \\
        printf(#a_kind " " #b_kind " %ld %ld %ld, turned %ld %ld\\n", (long)rows, (long)columns, (long)depth,        \\
               (long)turned_a, (long)turned_b);                                                                     \\
        return 1;                                                                                                   \\
    }
TEST(int8_t, i8, int8_t, i8)
TEST(uint8_t, u8, int8_t, i8)
TEST(int16_t, i16, uint8_t, u8)
TEST(int16_t, i16, int16_t, i16)
int main(void)
{
    int wrong = 0;
    for (int k = 0; k < 200; ++k) wrong += test_i8i8() + test_u8i8() + test_i16u8() + test_i16i16();
    return wrong > 0;
}
"""
VNNI = (["cc", "-march=x86-64-v4", "-mavx512vnni"], {"avx512f", "avx512_vnni"}, ())


@pytest.mark.parametrize("name", SETS)
def test_products(name, tmp_path):
    run(SETS[name], reason(SETS[name]), PAIRS if "pairs" in name else PROGRAM, tmp_path)


@pytest.mark.parametrize("name", [*SETS, "avx512, vnni"])
def test_words(name, tmp_path):
    way = SETS.get(name, VNNI)
    run(way, reason(way), WORDS, tmp_path)


def run(way, said, text, tmp_path):
    (command, *flags), runner, _ = way
    if said and isinstance(runner, str):
        pytest.skip(said)
    program = tmp_path / "products"
    compile_cached([command, *flags, *FLAGS], text, program)
    if said:
        pytest.skip(f"compiled, but {said}")
    program.chmod(0o700)
    done = subprocess.run([*([runner] if isinstance(runner, str) else []), program], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
