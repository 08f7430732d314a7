/* pa_gemv_gpu.h: y = M x on a grid, for any strides, batches and tails: a product with a matrix of one row or one
   column. Included once per type, with the macros of pa_gemm_gpu.h. Memory bandwidth is the limit, so the layout of the
   matrix decides the schedule:
     along   contiguous along the depth: a warp for each row of M, whose sum its lanes share
     across  contiguous across the rows: a thread for PA_V_N rows, the warps of a block share the depth
   Loads are vectors of 16 bytes if M is aligned and contiguous, else coalesced elements. The depth is cut into parts if
   rows are too few for all multiprocessors; pa_gemv_total adds up their sums, in order. */
#ifndef PA_GEMV_GPU_H
#define PA_GEMV_GPU_H
#include "pa_gemm_gpu.h"

#if PA_KIND == PA_GEMM_COMPLEX
#define PA_V_ADD(c, x) ((c).re += (x).re, (c).im += (x).im)
#elif PA_KIND == PA_GEMM_BOOL
#define PA_V_ADD(c, x) ((c) = (PA_ACC)((c) | (x)))
#else
#define PA_V_ADD(c, x) ((c) = (PA_ACC)((c) + (x)))
#endif

enum {
    PA_V_THREADS = 256,
    PA_V_WARPS = PA_V_THREADS / 32,
    PA_V_N = sizeof(PA_T) < 16 ? 16 / (int)sizeof(PA_T) : 1,
    PA_V_ROWS = 32 * PA_V_N, /* of a block, across */
    PA_V_IN_FLIGHT = 4 /* vectors that a thread loads at once */
};
struct alignas(16) pa_gemv_vector { PA_T v[PA_V_N]; };

typedef struct pa_gemv_grid {
    int64_t rows, depth, parts, part_depth, across;
    const char *m, *x;
    char *y;
    PA_G_ELEMENT *part; /* sums of the parts, if there are several */
    int64_t rs, cs, xs, ys; /* bytes between rows and columns of M, elements of x and of y */
    int64_t batch[PA_GEMM_BATCHES], batch_m[PA_GEMM_BATCHES], batch_x[PA_GEMM_BATCHES], batch_y[PA_GEMM_BATCHES];
} pa_gemv_grid;

PA_FN PA_G_ELEMENT pa_gemv_at(const char *p) { return (PA_G_ELEMENT)PA_LOAD(*(const PA_T *)p); }

/* The operands of a matrix of the batch. */
PA_FN int64_t pa_gemv_batches(const pa_gemv_grid *g)
{
    int64_t count = 1;
#pragma unroll
    for (int d = 0; d < PA_GEMM_BATCHES; ++d) count *= g->batch[d];
    return count;
}
PA_FN void pa_gemv_select_matrix(pa_gemv_grid *g, int64_t number)
{
    if (!number) return;
#pragma unroll
    for (int d = PA_GEMM_BATCHES - 1; d >= 0; --d) {
        const int64_t i = number % g->batch[d];
        number /= g->batch[d];
        g->m += i * g->batch_m[d], g->x += i * g->batch_x[d], g->y += i * g->batch_y[d];
    }
}

/* This lane's share of a row's sum, from column `first` up to `end`. */
template <bool WIDE> PA_FN PA_G_ELEMENT pa_gemv_along(const pa_gemv_grid *g, int64_t row, int64_t first, int64_t end)
{
    const char *m = g->m + row * g->rs, *x = g->x;
    PA_G_ELEMENT sum[PA_V_IN_FLIGHT];
#pragma unroll
    for (int j = 0; j < PA_V_IN_FLIGHT; ++j) PA_G_ZERO(sum[j]);
    const int64_t each = WIDE ? PA_V_N : 1, step = 32 * each;
    int64_t k = first + threadIdx.x % 32 * each;
    if (WIDE) {
        for (; k + (PA_V_IN_FLIGHT - 1) * step + each <= end; k += PA_V_IN_FLIGHT * step) {
            pa_gemv_vector a[PA_V_IN_FLIGHT], b[PA_V_IN_FLIGHT];
#pragma unroll
            for (int j = 0; j < PA_V_IN_FLIGHT; ++j)
                a[j] = *(const pa_gemv_vector *)(m + (k + j * step) * (int64_t)sizeof(PA_T));
#pragma unroll
            for (int j = 0; j < PA_V_IN_FLIGHT; ++j)
                b[j] = *(const pa_gemv_vector *)(x + (k + j * step) * (int64_t)sizeof(PA_T));
#pragma unroll
            for (int j = 0; j < PA_V_IN_FLIGHT; ++j)
#pragma unroll
                for (int i = 0; i < PA_V_N; ++i)
                    PA_G_MAC(sum[j], (PA_G_ELEMENT)PA_LOAD(a[j].v[i]), (PA_G_ELEMENT)PA_LOAD(b[j].v[i]));
        }
        for (; k + each <= end; k += step) {
            const pa_gemv_vector a = *(const pa_gemv_vector *)(m + k * (int64_t)sizeof(PA_T));
            const pa_gemv_vector b = *(const pa_gemv_vector *)(x + k * (int64_t)sizeof(PA_T));
#pragma unroll
            for (int i = 0; i < PA_V_N; ++i)
                PA_G_MAC(sum[0], (PA_G_ELEMENT)PA_LOAD(a.v[i]), (PA_G_ELEMENT)PA_LOAD(b.v[i]));
        }
        for (; k < end; ++k) { /* the last vector of the row is not whole */
            const PA_G_ELEMENT a = pa_gemv_at(m + k * g->cs), b = pa_gemv_at(x + k * g->xs);
            PA_G_MAC(sum[0], a, b);
        }
    } else {
        for (; k + (2 * PA_V_IN_FLIGHT - 1) * step < end; k += 2 * PA_V_IN_FLIGHT * step) {
            PA_G_ELEMENT a[2 * PA_V_IN_FLIGHT], b[2 * PA_V_IN_FLIGHT];
#pragma unroll
            for (int j = 0; j < 2 * PA_V_IN_FLIGHT; ++j) a[j] = pa_gemv_at(m + (k + j * step) * g->cs);
#pragma unroll
            for (int j = 0; j < 2 * PA_V_IN_FLIGHT; ++j) b[j] = pa_gemv_at(x + (k + j * step) * g->xs);
#pragma unroll
            for (int j = 0; j < 2 * PA_V_IN_FLIGHT; ++j) PA_G_MAC(sum[j % PA_V_IN_FLIGHT], a[j], b[j]);
        }
        for (; k < end; k += step) {
            const PA_G_ELEMENT a = pa_gemv_at(m + k * g->cs), b = pa_gemv_at(x + k * g->xs);
            PA_G_MAC(sum[0], a, b);
        }
    }
#pragma unroll
    for (int j = 1; j < PA_V_IN_FLIGHT; ++j) PA_V_ADD(sum[0], sum[j]);
    return sum[0];
}

/* This thread's share of the sums of PA_V_N rows, of which the block's first is `row`: neighbours with WIDE, else 32
   apart. */
template <bool WIDE>
PA_FN void pa_gemv_across(const pa_gemv_grid *g, int64_t row, int64_t first, int64_t end, PA_G_ELEMENT *sum)
{
    const int lane = (int)threadIdx.x % 32;
    const char *m = g->m + (row + lane * (WIDE ? PA_V_N : 1)) * g->rs;
    int64_t k = first + threadIdx.x / 32;
    const int64_t left = g->rows - row - lane;
#pragma unroll
    for (int i = 0; i < PA_V_N; ++i) PA_G_ZERO(sum[i]);
    if (WIDE) {
        if (row + lane * PA_V_N >= g->rows) return;
        for (; k + (PA_V_IN_FLIGHT - 1) * PA_V_WARPS < end; k += PA_V_IN_FLIGHT * PA_V_WARPS) {
            pa_gemv_vector a[PA_V_IN_FLIGHT];
            PA_G_ELEMENT b[PA_V_IN_FLIGHT];
#pragma unroll
            for (int j = 0; j < PA_V_IN_FLIGHT; ++j)
                a[j] = *(const pa_gemv_vector *)(m + (k + j * PA_V_WARPS) * g->cs);
#pragma unroll
            for (int j = 0; j < PA_V_IN_FLIGHT; ++j) b[j] = pa_gemv_at(g->x + (k + j * PA_V_WARPS) * g->xs);
#pragma unroll
            for (int j = 0; j < PA_V_IN_FLIGHT; ++j)
#pragma unroll
                for (int i = 0; i < PA_V_N; ++i) PA_G_MAC(sum[i], (PA_G_ELEMENT)PA_LOAD(a[j].v[i]), b[j]);
        }
        for (; k < end; k += PA_V_WARPS) {
            const pa_gemv_vector a = *(const pa_gemv_vector *)(m + k * g->cs);
            const PA_G_ELEMENT b = pa_gemv_at(g->x + k * g->xs);
#pragma unroll
            for (int i = 0; i < PA_V_N; ++i) PA_G_MAC(sum[i], (PA_G_ELEMENT)PA_LOAD(a.v[i]), b);
        }
        return;
    }
    enum { DEEP = PA_V_N > 2 ? 2 : 8 / PA_V_N };
    for (; k + (DEEP - 1) * PA_V_WARPS < end; k += DEEP * PA_V_WARPS) {
        PA_G_ELEMENT a[DEEP][PA_V_N], b[DEEP];
#pragma unroll
        for (int j = 0; j < DEEP; ++j)
#pragma unroll
            for (int i = 0; i < PA_V_N; ++i) {
                PA_G_ZERO(a[j][i]);
                if (32 * i < left) a[j][i] = pa_gemv_at(m + 32 * i * g->rs + (k + j * PA_V_WARPS) * g->cs);
            }
#pragma unroll
        for (int j = 0; j < DEEP; ++j) b[j] = pa_gemv_at(g->x + (k + j * PA_V_WARPS) * g->xs);
#pragma unroll
        for (int j = 0; j < DEEP; ++j)
#pragma unroll
            for (int i = 0; i < PA_V_N; ++i) PA_G_MAC(sum[i], a[j][i], b[j]);
    }
    for (; k < end; k += PA_V_WARPS) {
        const PA_G_ELEMENT b = pa_gemv_at(g->x + k * g->xs);
#pragma unroll
        for (int i = 0; i < PA_V_N; ++i)
            if (32 * i < left) {
                const PA_G_ELEMENT a = pa_gemv_at(m + 32 * i * g->rs + k * g->cs);
                PA_G_MAC(sum[i], a, b);
            }
    }
}

PA_FN void pa_gemv_store(const pa_gemv_grid *g, int64_t number, int64_t part, int64_t row, PA_G_ELEMENT sum)
{
    if (g->parts == 1) *(PA_T *)(g->y + row * g->ys) = PA_STORE(sum);
    else g->part[(number * g->parts + part) * g->rows + row] = sum;
}

/* A block for each part of each group of rows of each matrix. */
PA_FN void pa_gemv(const pa_gemv_grid *args)
{
    __shared__ PA_G_ELEMENT shared[PA_V_WARPS * PA_V_ROWS];
    pa_gemv_grid g = *args;
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const int group = g.across ? PA_V_ROWS : PA_V_WARPS;
    /* a grid has less than 2^31 blocks; dividing 64 bits takes a hundred instructions */
    const unsigned groups = (unsigned)(g.across ? (g.rows - 1) / PA_V_ROWS : (g.rows - 1) / PA_V_WARPS) + 1;
    const unsigned which = blockIdx.x / groups, parts = (unsigned)g.parts;
    const int64_t part = which % parts, number = which / parts, row = (int64_t)(blockIdx.x - which * groups) * group;
    const int64_t first = part * g.part_depth, end = first + g.part_depth < g.depth ? first + g.part_depth : g.depth;
    pa_gemv_select_matrix(&g, number);
    const bool unit = (g.across ? g.rs : g.cs) == (int64_t)sizeof(PA_T);
    const bool aligned = (((uint64_t)g.m | (uint64_t)(g.across ? g.cs : g.rs)) & 15) == 0;
    if (g.across) {
        PA_G_ELEMENT sum[PA_V_N];
        const bool wide = unit && aligned && g.rows % PA_V_N == 0;
        if (wide) pa_gemv_across<true>(&g, row, first, end, sum);
        else pa_gemv_across<false>(&g, row, first, end, sum);
#pragma unroll
        for (int i = 0; i < PA_V_N; ++i) shared[warp * PA_V_ROWS + (wide ? lane * PA_V_N + i : lane + 32 * i)] = sum[i];
        __syncthreads();
        for (int r = (int)threadIdx.x; r < PA_V_ROWS && row + r < g.rows; r += PA_V_THREADS) {
            PA_G_ELEMENT all = shared[r];
#pragma unroll
            for (int w = 1; w < PA_V_WARPS; ++w) PA_V_ADD(all, shared[w * PA_V_ROWS + r]);
            pa_gemv_store(&g, number, part, row + r, all);
        }
        return;
    }
    PA_G_ELEMENT sum;
    PA_G_ZERO(sum);
    const bool wide = unit && aligned && g.xs == (int64_t)sizeof(PA_T) && ((uint64_t)g.x & 15) == 0;
    if (row + warp < g.rows)
        sum = wide ? pa_gemv_along<true>(&g, row + warp, first, end) : pa_gemv_along<false>(&g, row + warp, first, end);
    shared[threadIdx.x] = sum;
#pragma unroll
    for (int d = 16; d > 0; d /= 2) {
        __syncthreads();
        if (lane < d) PA_V_ADD(shared[threadIdx.x], shared[threadIdx.x + d]);
    }
    if (lane == 0 && row + warp < g.rows) pa_gemv_store(&g, number, part, row + warp, shared[threadIdx.x]);
}

/* A thread for each result, where there are several parts. */
PA_FN void pa_gemv_total(const pa_gemv_grid *args)
{
    pa_gemv_grid g = *args;
    const int64_t index = (int64_t)blockIdx.x * PA_V_THREADS + threadIdx.x, number = index / g.rows,
                  row = index % g.rows;
    if (index >= g.rows * pa_gemv_batches(&g)) return;
    const PA_G_ELEMENT *part = g.part + number * g.parts * g.rows + row;
    PA_G_ELEMENT sum = *part;
#pragma unroll 8
    for (int64_t k = 1; k < g.parts; ++k) PA_V_ADD(sum, part[k * g.rows]);
    pa_gemv_select_matrix(&g, number);
    *(PA_T *)(g.y + row * g.ys) = PA_STORE(sum);
}

#endif
