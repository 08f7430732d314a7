/* pa_tile_mma.h: products of tiles of halves in shared memory, onto sums in registers that are fragments of matrix
   instructions (PTX ISA, "Matrix fragments for mma.m16n8k16"). Where there are none, the threads compute the same
   elements. A product is started and finished: on sm_90 threads may do something else meanwhile. A warp has 16 of 16
   WARPS rows, DOWN times, and all 8 ACROSS columns. TURNED: the depth is the operand's first axis. DEPTH: the most of
   it, of which `depth` exist. */
#ifndef PA_TILE_MMA_H
#define PA_TILE_MMA_H
#include "pa_quad.h"
#include "pa_tile_operands.h"

PA_FN float pa_tile_f32(pa_f16 x) { return pa_f32_from_f16(x); }
PA_FN float pa_tile_f32(pa_bf16 x) { return pa_f32_from_bf16(x); }

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#include "pa_tile_wgmma.h"
#endif

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define PA_TILE_MMA(TYPE)                                                                                              \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." TYPE "." TYPE ".f32 "                                        \
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                                               \
                 : "+f"(high[0]), "+f"(high[1]), "+f"(low[0]), "+f"(low[1])                                            \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
/* 16 x 8 sums, of which a thread has two in a row and two 8 rows below. */
PA_FN void pa_tile_mma(pa_f16, float *high, float *low, const unsigned *a, const unsigned *b) { PA_TILE_MMA("f16"); }
PA_FN void pa_tile_mma(pa_bf16, float *high, float *low, const unsigned *a, const unsigned *b) { PA_TILE_MMA("bf16"); }

/* Four matrices of 8 x 8; each lane names a row of one. */
template <bool TURNED> PA_FN void pa_tile_load(unsigned *x, const void *from)
{
    const unsigned p = (unsigned)__cvta_generic_to_shared(from);
    if (TURNED)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(p) : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(p) : "memory");
}

/* sums += x b, of one instruction's depth, from `k` on. */
template <int DOWN, int ACROSS, int DEPTH, bool TURNED_B, typename T>
PA_FN void pa_tile_multiply(float *sums, const unsigned (*x)[4], const T *b, int k, int lane)
{
#pragma unroll
    for (int j = 0; j < ACROSS; j += 2) {
        unsigned y[4];
        pa_tile_load<TURNED_B>(
            y, b + (TURNED_B ? pa_tile_at<DEPTH, ACROSS * 8>(k + lane % 16, j * 8 + lane / 16 * 8)
                             : pa_tile_at<ACROSS * 8, DEPTH>(j * 8 + lane % 8 + lane / 16 * 8, k + lane / 8 % 2 * 8)));
#pragma unroll
        for (int i = 0; i < DOWN; ++i)
#pragma unroll
            for (int n = 0; n < 2; ++n)
                pa_tile_mma(T(), sums + PA_TILE_AT(i * 2, j + n, ACROSS), sums + PA_TILE_AT(i * 2 + 1, j + n, ACROSS),
                            x[i], y + n * 2);
    }
}
template <int DOWN, int ACROSS, int DEPTH, int WARPS, bool TURNED_A, bool TURNED_B, typename T>
PA_FN void pa_tile_step(float *sums, const T *a, const T *b, int k, int warp, int lane)
{
    enum { ROWS = DOWN * WARPS * 16 };
    unsigned x[DOWN][4];
#pragma unroll
    for (int i = 0; i < DOWN; ++i) {
        const int row = (i * WARPS + warp) * 16;
        pa_tile_load<TURNED_A>(
            x[i], a + (TURNED_A ? pa_tile_at<DEPTH, ROWS>(k + lane % 8 + lane / 16 * 8, row + lane / 8 % 2 * 8)
                                : pa_tile_at<ROWS, DEPTH>(row + lane % 16, k + lane / 16 * 8)));
    }
    pa_tile_multiply<DOWN, ACROSS, DEPTH, TURNED_B>(sums, x, b, k, lane);
}
#endif

/* sums += a b, with both in shared memory; then with the first operand in registers, in fragments of sums. */
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
template <int DOWN, int ACROSS, int DEPTH, int WARPS, bool TURNED_A, bool TURNED_B, typename T>
PA_FN void pa_tile_start(float *sums, const T *a, const T *b, int, int rank)
{
    const int group = __shfl_sync(~0u, rank / 128, 0);
    const pa_tile_shared_rows<DOWN, DEPTH, WARPS / 4, TURNED_A> x = {pa_tile_address(a), group * 64};
    pa_tile_wgmma_begin();
    pa_tile_wgmma_rows<0, DOWN, ACROSS, DEPTH, TURNED_A, TURNED_B, T>(sums, x, pa_tile_address(b));
    pa_tile_wgmma_end();
}
template <int DOWN, int ACROSS, int DEPTH, int WARPS, bool TURNED_B, typename T>
PA_FN void pa_tile_start_rows(float *sums, const T *a, const T *b, int depth, int rank)
{
    pa_tile_register_rows<DOWN, DEPTH> x;
    if (depth == DEPTH) x.take(a, DEPTH, rank % 32);
    else x.take(a, depth, rank % 32);
    pa_tile_wgmma_begin();
    pa_tile_wgmma_rows<0, DOWN, ACROSS, DEPTH, false, TURNED_B, T>(sums, x, pa_tile_address(b));
    pa_tile_wgmma_end();
}
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
template <int DOWN, int ACROSS, int DEPTH, int WARPS, bool TURNED_A, bool TURNED_B, typename T>
PA_FN void pa_tile_start(float *sums, const T *a, const T *b, int depth, int rank)
{
    const int warp = rank / 32, lane = rank % 32;
    if (depth == DEPTH) {
#pragma unroll
        for (int k = 0; k < DEPTH; k += 16)
            pa_tile_step<DOWN, ACROSS, DEPTH, WARPS, TURNED_A, TURNED_B>(sums, a, b, k, warp, lane);
        return;
    }
#pragma unroll 1
    for (int k = 0; k < depth; k += 16)
        pa_tile_step<DOWN, ACROSS, DEPTH, WARPS, TURNED_A, TURNED_B>(sums, a, b, k, warp, lane);
}
template <int DOWN, int ACROSS, int DEPTH, int WARPS, bool TURNED_B, typename T>
PA_FN void pa_tile_start_rows(float *sums, const T *a, const T *b, int depth, int rank)
{
    const int lane = rank % 32;
#pragma unroll
    for (int k = 0; k < DEPTH; k += 16) {
        if (k >= depth) return;
        unsigned x[DOWN][4];
#pragma unroll
        for (int i = 0; i < DOWN; ++i)
            if (depth == DEPTH) pa_tile_fragments<DEPTH>(x[i], a, i, k, DEPTH, lane);
            else pa_tile_fragments<DEPTH>(x[i], a, i, k, depth, lane);
        pa_tile_multiply<DOWN, ACROSS, DEPTH, TURNED_B>(sums, x, b, k, lane);
    }
}
#else
template <int DOWN, int ACROSS, int DEPTH, int WARPS, bool TURNED_A, bool TURNED_B, typename T>
PA_FN void pa_tile_start(float *sums, const T *a, const T *b, int depth, int rank)
{
    enum { ROWS = DOWN * WARPS * 16 };
    const int top = rank / 32 * 16 + rank % 32 / 4, left = rank % 4 * 2;
    for (int k = 0; k < depth; ++k)
#pragma unroll
        for (int i = 0; i < DOWN * 2; ++i)
#pragma unroll
            for (int j = 0; j < ACROSS; ++j)
#pragma unroll
                for (int n = 0; n < 2; ++n) {
                    const int row = top + i / 2 * WARPS * 16 + i % 2 * 8, column = left + j * 8 + n;
                    const float x = pa_tile_f32(
                        a[TURNED_A ? pa_tile_at<DEPTH, ROWS>(k, row) : pa_tile_at<ROWS, DEPTH>(row, k)]);
                    const float y = pa_tile_f32(
                        b[TURNED_B ? pa_tile_at<DEPTH, ACROSS * 8>(k, column)
                                   : pa_tile_at<ACROSS * 8, DEPTH>(column, k)]);
                    float *sum = sums + PA_TILE_AT(i, j, ACROSS) + n;
                    *sum = x * y + *sum;
                }
}
PA_FN float pa_tile_shuffle(float x, int d) { return pa_f32_bits((unsigned)__shfl_xor((int)pa_bits_f32(x), d)); }
/* Lanes have each other's elements of the first operand by shuffles. */
template <int DOWN, int ACROSS, int DEPTH, int WARPS, bool TURNED_B, typename T>
PA_FN void pa_tile_start_rows(float *sums, const T *a, const T *b, int depth, int rank)
{
    const int left = rank % 4 * 2;
#pragma unroll 1
    for (int k = 0; k < DEPTH; ++k)
#pragma unroll
        for (int i = 0; i < DOWN * 2; ++i) {
            const float own = pa_tile_f32(a[PA_TILE_AT(i, k / 8, DEPTH / 8) + k % 2]);
            float x = pa_tile_shuffle(own, 1), y = pa_tile_shuffle(own, 2), z = pa_tile_shuffle(x, 2);
            const int from = (k % 8 / 2) ^ (rank % 4); /* the lane that has it is so far away */
            x = from == 0 ? own : from == 1 ? x : from == 2 ? y : z;
            if (k >= depth) continue;
#pragma unroll
            for (int j = 0; j < ACROSS; ++j)
#pragma unroll
                for (int n = 0; n < 2; ++n) {
                    const int column = left + j * 8 + n;
                    float *sum = sums + PA_TILE_AT(i, j, ACROSS) + n;
                    *sum = x * pa_tile_f32(b[TURNED_B ? pa_tile_at<DEPTH, ACROSS * 8>(k, column)
                                                      : pa_tile_at<ACROSS * 8, DEPTH>(column, k)]) + *sum;
                }
        }
}
#endif
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define PA_TILE_IN_FLIGHT 1 /* products that run while the next one is started */
#else
#define PA_TILE_IN_FLIGHT 0
template <int COUNT> PA_FN void pa_tile_finish(float *) {}
PA_FN void pa_tile_finish_before(void) {}
#endif
#endif
