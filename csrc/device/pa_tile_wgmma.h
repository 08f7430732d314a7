/* pa_tile_wgmma.h: products of tiles by warpgroups of sm_90, which read operands in shared memory while the threads go
   on (PTX ISA, "Asynchronous warpgroup level matrix instructions"). */
#ifndef PA_TILE_WGMMA_H
#define PA_TILE_WGMMA_H
#include "pa_tile_operands.h"
#include "pa_wgmma_registers.h"

/* Of 64 rows a thread has two, `upper` and `lower`, and of each two of 8 columns. */
#define PA_TILE_1(j) "+f"(upper[2 * (j)]), "+f"(upper[2 * (j) + 1]), "+f"(lower[2 * (j)]), "+f"(lower[2 * (j) + 1])
#define PA_TILE_2(j) PA_TILE_1(j), PA_TILE_1(j + 1)
#define PA_TILE_4(j) PA_TILE_2(j), PA_TILE_2(j + 2)
#define PA_TILE_8(j) PA_TILE_4(j), PA_TILE_4(j + 4)
#define PA_TILE_16(j) PA_TILE_8(j), PA_TILE_8(j + 8)
#define PA_TILE_32(j) PA_TILE_16(j), PA_TILE_16(j + 16)
#define PA_TILE_ISSUE(N, TYPE, SUMS, OPERANDS)                                                                         \
    "{ .reg .pred p; setp.ne.b32 p, 1, 0; wgmma.mma_async.sync.aligned.m64n" N "k16.f32." TYPE "." TYPE " {" SUMS      \
    "}, " OPERANDS "; }"
/* Sums of N columns, of either type. */
#define PA_TILE_ISSUE_ANY(N, SUMS, OPERANDS, ...)                                                                      \
    if constexpr (pa_tile_is_bf16<T>::value) asm volatile(PA_TILE_ISSUE(N, "bf16", SUMS, OPERANDS) : __VA_ARGS__);     \
    else asm volatile(PA_TILE_ISSUE(N, "f16", SUMS, OPERANDS) : __VA_ARGS__)
template <typename T> struct pa_tile_is_bf16 { enum { value = 0 }; };
template <> struct pa_tile_is_bf16<pa_bf16> { enum { value = 1 }; };

/* sums += a b of N columns, with both in shared memory. TURNED: the depth is the operand's first axis. */
template <int N, bool TURNED_A, bool TURNED_B, typename T>
PA_FN void pa_tile_wgmma(T, float *upper, float *lower, uint64_t a, uint64_t b)
{
#define PA_TILE_FROM "l"(a), "l"(b), "n"(TURNED_A), "n"(TURNED_B)
    if constexpr (N == 16)
        PA_TILE_ISSUE_ANY("16", PA_REGISTERS_8, "%8, %9, p, 1, 1, %10, %11", PA_TILE_2(0) : PA_TILE_FROM);
    else if constexpr (N == 32)
        PA_TILE_ISSUE_ANY("32", PA_REGISTERS_16, "%16, %17, p, 1, 1, %18, %19", PA_TILE_4(0) : PA_TILE_FROM);
    else if constexpr (N == 64)
        PA_TILE_ISSUE_ANY("64", PA_REGISTERS_32, "%32, %33, p, 1, 1, %34, %35", PA_TILE_8(0) : PA_TILE_FROM);
    else if constexpr (N == 128)
        PA_TILE_ISSUE_ANY("128", PA_REGISTERS_64, "%64, %65, p, 1, 1, %66, %67", PA_TILE_16(0) : PA_TILE_FROM);
    else
        PA_TILE_ISSUE_ANY("256", PA_REGISTERS_128, "%128, %129, p, 1, 1, %130, %131", PA_TILE_32(0) : PA_TILE_FROM);
#undef PA_TILE_FROM
}
/* The same with a in registers. */
template <int N, bool TURNED_B, typename T>
PA_FN void pa_tile_wgmma(T, float *upper, float *lower, const unsigned *a, uint64_t b)
{
#define PA_TILE_FROM "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(TURNED_B)
    if constexpr (N == 16)
        PA_TILE_ISSUE_ANY("16", PA_REGISTERS_8, "{%8, %9, %10, %11}, %12, p, 1, 1, %13", PA_TILE_2(0) : PA_TILE_FROM);
    else if constexpr (N == 32)
        PA_TILE_ISSUE_ANY("32", PA_REGISTERS_16, "{%16, %17, %18, %19}, %20, p, 1, 1, %21",
                          PA_TILE_4(0) : PA_TILE_FROM);
    else if constexpr (N == 64)
        PA_TILE_ISSUE_ANY("64", PA_REGISTERS_32, "{%32, %33, %34, %35}, %36, p, 1, 1, %37",
                          PA_TILE_8(0) : PA_TILE_FROM);
    else if constexpr (N == 128)
        PA_TILE_ISSUE_ANY("128", PA_REGISTERS_64, "{%64, %65, %66, %67}, %68, p, 1, 1, %69",
                          PA_TILE_16(0) : PA_TILE_FROM);
    else
        PA_TILE_ISSUE_ANY("256", PA_REGISTERS_128, "{%128, %129, %130, %131}, %132, p, 1, 1, %133",
                          PA_TILE_32(0) : PA_TILE_FROM);
#undef PA_TILE_FROM
}

/* A descriptor of an operand from an element (line, depth) on, where lines are along the depth, or, TURNED, across it:
   the bytes between groups of 8 lines, and between panels. */
template <int ROWS, int COLUMNS, bool TURNED> PA_FN uint64_t pa_tile_descriptor(unsigned tile, int line, int depth)
{
    enum {
        WIDE = pa_tile_panel<COLUMNS>(),
        LINE = WIDE * 2,
        PANEL = ROWS * LINE,
        KIND = WIDE == 64 ? 1 : WIDE == 32 ? 2 : 3 /* of swizzle */
    };
    const int row = TURNED ? depth : line, column = TURNED ? line : depth;
    const unsigned address = tile + column / WIDE * PANEL + row * LINE + column % WIDE * 2;
    return (uint64_t)KIND << 62 | (uint64_t)(LINE * 8 >> 4) << 32 | (uint64_t)(PANEL >> 4) << 16 |
           (address & 0x3ffff) >> 4;
}
template <typename T> PA_FN unsigned pa_tile_address(const T *tile)
{
    return __shfl_sync(~0u, (unsigned)__cvta_generic_to_shared(tile), 0);
}

/* sums += x b from column FIRST on, in as few instructions as there are powers of two. X gives the rows at a depth. */
template <int I, int FIRST, int ACROSS, int DEPTH, bool TURNED_A, bool TURNED_B, typename T, typename X>
PA_FN void pa_tile_wgmma_columns(float *sums, const X &x, unsigned b)
{
    enum {
        LEFT = ACROSS * 8 - FIRST,
        N = LEFT >= 256 ? 256 : LEFT >= 128 ? 128 : LEFT >= 64 ? 64 : LEFT >= 32 ? 32 : 16
    };
    float *upper = sums + (2 * I * ACROSS + FIRST / 8) * 2, *lower = upper + ACROSS * 2;
#pragma unroll
    for (int k = 0; k < DEPTH; k += 16) {
        const uint64_t of_b = TURNED_B ? pa_tile_descriptor<DEPTH, ACROSS * 8, true>(b, FIRST, k)
                                       : pa_tile_descriptor<ACROSS * 8, DEPTH, false>(b, FIRST, k);
        x.template multiply<I, N, TURNED_B>(T(), upper, lower, k, of_b);
    }
    if constexpr (LEFT > N) pa_tile_wgmma_columns<I, FIRST + N, ACROSS, DEPTH, TURNED_A, TURNED_B, T>(sums, x, b);
}
template <int I, int DOWN, int ACROSS, int DEPTH, bool TURNED_A, bool TURNED_B, typename T, typename X>
PA_FN void pa_tile_wgmma_rows(float *sums, const X &x, unsigned b)
{
    pa_tile_wgmma_columns<I, 0, ACROSS, DEPTH, TURNED_A, TURNED_B, T>(sums, x, b);
    if constexpr (I + 1 < DOWN) pa_tile_wgmma_rows<I + 1, DOWN, ACROSS, DEPTH, TURNED_A, TURNED_B, T>(sums, x, b);
}

/* Rows of the first operand: in shared memory, 64 for each of GROUPS warpgroups, `first` those of this one; and in
   registers. */
template <int DOWN, int DEPTH, int GROUPS, bool TURNED> struct pa_tile_shared_rows {
    unsigned a;
    int first;
    template <int I, int N, bool TURNED_B, typename T>
    __device__ inline void multiply(T type, float *upper, float *lower, int k, uint64_t b) const
    {
        enum { ROWS = DOWN * GROUPS * 64 };
        const int row = I * GROUPS * 64 + first;
        const uint64_t of_a = TURNED ? pa_tile_descriptor<DEPTH, ROWS, true>(a, row, k)
                                     : pa_tile_descriptor<ROWS, DEPTH, false>(a, row, k);
        pa_tile_wgmma<N, TURNED, TURNED_B>(type, upper, lower, of_a, b);
    }
};
template <int DOWN, int DEPTH> struct pa_tile_register_rows {
    unsigned x[DOWN][DEPTH / 16][4];
    template <typename T> __device__ inline void take(const T *a, int depth, int lane)
    {
#pragma unroll
        for (int i = 0; i < DOWN; ++i)
#pragma unroll
            for (int k = 0; k < DEPTH; k += 16) pa_tile_fragments<DEPTH>(x[i][k / 16], a, i, k, depth, lane);
    }
    template <int I, int N, bool TURNED_B, typename T>
    __device__ inline void multiply(T type, float *upper, float *lower, int k, uint64_t b) const
    {
        pa_tile_wgmma<N, TURNED_B>(type, upper, lower, x[I][k / 16], b);
    }
};

PA_FN void pa_tile_wgmma_begin(void) { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
PA_FN void pa_tile_wgmma_end(void) { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

/* Waits for all products but the last one. */
PA_FN void pa_tile_finish_before(void) { asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory"); }
/* Waits for the products, of which no sum is read before. */
template <int COUNT> PA_FN void pa_tile_finish(float *sums)
{
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
    for (int e = 0; e < COUNT; ++e) asm volatile("" : "+f"(sums[e])::"memory");
}
#endif
