/* pa_gemv_gpu.h: y = M x on a grid, for any strides, batches and tails: a product with a matrix of one row or one
   column. Included once per type, with the macros of pa_gemm_gpu.h. Memory bandwidth is the limit, so the layout of the
   matrix decides the schedule:
     along   contiguous along the depth: `team` lanes of a warp for each row of M, whose sum they share
     across  contiguous across the rows: a block for a strip of rows, `lanes` threads beside each other with PA_V_N rows
             each, and such lines of threads below each other share the depth
   Loads are vectors of 16 bytes if M is aligned and contiguous, else coalesced elements. The depth is cut into parts if
   rows are too few for all multiprocessors; pa_gemv_total adds up their sums, in order. */
#ifndef PA_GEMV_GPU_H
#define PA_GEMV_GPU_H
#include "pa_dependent_launch.h"
#include "pa_gemm_gpu.h"

#if PA_KIND == PA_GEMM_COMPLEX
#define PA_V_ADD(c, x) ((c).re += (x).re, (c).im += (x).im)
#elif PA_KIND == PA_GEMM_BOOL
#define PA_V_ADD(c, x) ((c) = (PA_ACC)((c) | (x)))
#else
#define PA_V_ADD(c, x) ((c) = (PA_ACC)((c) + (x)))
#endif

enum {
    PA_V_BITS = 9, /* of a thread's number */
    PA_V_THREADS = 1 << PA_V_BITS,
    PA_V_N = sizeof(PA_T) < 16 ? 16 / (int)sizeof(PA_T) : 1,
    PA_V_IN_FLIGHT = 4, /* vectors that a thread loads at once, along; */
    PA_V_DEEP = PA_V_N > 8 || sizeof(PA_T) == 16 ? 4 : 8 /* and across */
};
/* Words, as those of pa_gemm_results are: the upper bfloat16 of a word is a float32 by one instruction. */
struct alignas(16) pa_gemv_vector {
    uint32_t words[4];
    __device__ inline PA_T operator[](int i) const
    {
        PA_T x;
        const uint32_t word = words[i * sizeof(PA_T) / 4] >> i * sizeof(PA_T) % 4 * 8;
        memcpy(&x, sizeof(PA_T) < 4 ? &word : &words[i * sizeof(PA_T) / 4], sizeof(PA_T));
        return x;
    }
};

typedef struct pa_gemv_grid {
    int64_t rows, depth, parts, part_depth;
    int64_t lanes; /* of a strip, a power of two; 0 for a schedule along the depth */
    int64_t team; /* lanes of a row along the depth, a power of two */
    const char *m, *x;
    char *y;
    PA_G_ELEMENT *part; /* sums of the parts, if there are several */
    int64_t rs, cs, xs, ys; /* bytes between rows and columns of M, elements of x and of y */
    int64_t batch[PA_GEMM_BATCHES], batch_m[PA_GEMM_BATCHES], batch_x[PA_GEMM_BATCHES], batch_y[PA_GEMM_BATCHES];
} pa_gemv_grid;

PA_FN PA_G_ELEMENT pa_gemv_at(const char *p) { return (PA_G_ELEMENT)PA_LOAD(*(const PA_T *)p); }
/* Of M, of which each element is read once: not by way of the first-level cache. */
PA_FN pa_gemv_vector pa_gemv_vector_at(const char *p)
{
#ifdef __CUDA_ARCH__
    pa_gemv_vector x;
    asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.words[0]), "=r"(x.words[1]), "=r"(x.words[2]), "=r"(x.words[3]) : "l"(p));
    return x;
#else
    return *(const pa_gemv_vector *)p;
#endif
}

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
        const int64_t i = d ? number % g->batch[d] : number;
        if (d) number /= g->batch[d];
        g->m += i * g->batch_m[d], g->x += i * g->batch_x[d], g->y += i * g->batch_y[d];
    }
}

/* What one of so many strips or rows of each part of each matrix has: its number, of `strips`; the part, and where that
   begins and ends; the number of the matrix. Numbers of 64 bits take a hundred instructions to divide. */
struct pa_gemv_share { int64_t row, part, first, end, number; };
PA_FN pa_gemv_share pa_gemv_share_of(const pa_gemv_grid *g, int64_t at, int64_t strips)
{
    pa_gemv_share s;
    if (at < strips) {
        s.row = at, s.part = 0, s.number = 0;
    } else if (g->parts == 1 && (at | strips) >> 32 == 0) {
        s.number = (unsigned)at / (unsigned)strips, s.part = 0;
        s.row = at - s.number * strips;
    } else if ((at | strips) >> 32 == 0) {
        const unsigned which = (unsigned)at / (unsigned)strips, parts = (unsigned)g->parts;
        s.row = (unsigned)at % (unsigned)strips, s.part = which % parts, s.number = which / parts;
    } else {
        const int64_t which = at / strips;
        s.row = at % strips, s.part = which % g->parts, s.number = which / g->parts;
    }
    s.first = s.part * g->part_depth;
    s.end = s.first + g->part_depth < g->depth ? s.first + g->part_depth : g->depth;
    return s;
}

/* This lane's share of a row's sum, from column `first` up to `end`. */
template <bool WIDE> PA_FN PA_G_ELEMENT pa_gemv_along(const pa_gemv_grid *g, int64_t row, int64_t first, int64_t end)
{
    const char *m = g->m + row * g->rs, *x = g->x;
    PA_G_ELEMENT sum[PA_V_IN_FLIGHT];
#pragma unroll
    for (int j = 0; j < PA_V_IN_FLIGHT; ++j) PA_G_ZERO(sum[j]);
    const int64_t each = WIDE ? PA_V_N : 1, step = g->team * each;
    int64_t k = first + (threadIdx.x & (unsigned)g->team - 1) * each;
    if (WIDE) {
        for (; k + (PA_V_IN_FLIGHT - 1) * step + each <= end; k += PA_V_IN_FLIGHT * step) {
            pa_gemv_vector a[PA_V_IN_FLIGHT], b[PA_V_IN_FLIGHT];
#pragma unroll
            for (int j = 0; j < PA_V_IN_FLIGHT; ++j)
                a[j] = pa_gemv_vector_at(m + (k + j * step) * (int64_t)sizeof(PA_T));
#pragma unroll
            for (int j = 0; j < PA_V_IN_FLIGHT; ++j)
                b[j] = *(const pa_gemv_vector *)(x + (k + j * step) * (int64_t)sizeof(PA_T));
#pragma unroll
            for (int j = 0; j < PA_V_IN_FLIGHT; ++j)
#pragma unroll
                for (int i = 0; i < PA_V_N; ++i)
                    PA_G_MAC(sum[j], (PA_G_ELEMENT)PA_LOAD(a[j][i]), (PA_G_ELEMENT)PA_LOAD(b[j][i]));
        }
        if (k + each <= end) { /* fewer whole vectors: nothing else of a short row */
            pa_gemv_vector a[PA_V_IN_FLIGHT - 1] = {}, b[PA_V_IN_FLIGHT - 1] = {};
#pragma unroll
            for (int j = 0; j < PA_V_IN_FLIGHT - 1; ++j)
                if (k + j * step + each <= end) {
                    a[j] = pa_gemv_vector_at(m + (k + j * step) * (int64_t)sizeof(PA_T));
                    b[j] = *(const pa_gemv_vector *)(x + (k + j * step) * (int64_t)sizeof(PA_T));
                }
#pragma unroll
            for (int j = 0; j < PA_V_IN_FLIGHT - 1; ++j)
                if (k + j * step + each <= end)
#pragma unroll
                    for (int i = 0; i < PA_V_N; ++i)
                        PA_G_MAC(sum[j], (PA_G_ELEMENT)PA_LOAD(a[j][i]), (PA_G_ELEMENT)PA_LOAD(b[j][i]));
#pragma unroll
            for (int j = 0; j < PA_V_IN_FLIGHT - 1; ++j)
                if (k + each <= end) k += step;
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

/* This thread's share of the sums of PA_V_N rows, of which the block's first is `row`: neighbours with WIDE, else
   `lanes` apart. */
template <bool WIDE>
PA_FN void pa_gemv_across(const pa_gemv_grid *g, int64_t row, int64_t first, int64_t end, PA_G_ELEMENT *sum)
{
    enum { DEEP = WIDE ? (int)PA_V_DEEP : PA_V_N > 2 ? 2 : 8 / PA_V_N };
    const int lanes = (int)g->lanes, lane = (int)threadIdx.x & lanes - 1, lines = PA_V_THREADS / lanes;
    const int64_t left = g->rows - row - lane, step = lines * g->cs, apart = lanes * g->rs, x_step = lines * g->xs;
    int64_t k = first + (int)threadIdx.x / lanes;
    const char *m = g->m + (row + lane * (WIDE ? PA_V_N : 1)) * g->rs + k * g->cs, *x = g->x + k * g->xs;
#pragma unroll
    for (int i = 0; i < PA_V_N; ++i) PA_G_ZERO(sum[i]);
    if (WIDE && row + lane * PA_V_N >= g->rows) return;
    for (; k + (DEEP - 1) * lines < end; k += DEEP * lines, m += DEEP * step, x += DEEP * x_step) {
        const char *from = m, *of = x;
        if (WIDE) {
            pa_gemv_vector a[DEEP];
#pragma unroll
            for (int j = 0; j < DEEP; ++j, from += step) a[j] = pa_gemv_vector_at(from);
#pragma unroll
            for (int j = 0; j < DEEP; ++j, of += x_step) {
                const PA_G_ELEMENT b = pa_gemv_at(of);
#pragma unroll
                for (int i = 0; i < PA_V_N; ++i) PA_G_MAC(sum[i], (PA_G_ELEMENT)PA_LOAD(a[j][i]), b);
            }
        } else {
            PA_G_ELEMENT a[DEEP][PA_V_N];
#pragma unroll
            for (int j = 0; j < DEEP; ++j, from += step)
#pragma unroll
                for (int i = 0; i < PA_V_N; ++i) {
                    PA_G_ZERO(a[j][i]);
                    if (lanes * i < left) a[j][i] = pa_gemv_at(from + i * apart);
                }
#pragma unroll
            for (int j = 0; j < DEEP; ++j, of += x_step) {
                const PA_G_ELEMENT b = pa_gemv_at(of);
#pragma unroll
                for (int i = 0; i < PA_V_N; ++i) PA_G_MAC(sum[i], a[j][i], b);
            }
        }
    }
#pragma unroll 1
    for (; k < end; k += lines, m += step, x += x_step) {
        const PA_G_ELEMENT b = pa_gemv_at(x);
        if (WIDE) {
            const pa_gemv_vector a = pa_gemv_vector_at(m);
#pragma unroll
            for (int i = 0; i < PA_V_N; ++i) PA_G_MAC(sum[i], (PA_G_ELEMENT)PA_LOAD(a[i]), b);
        } else
#pragma unroll
            for (int i = 0; i < PA_V_N; ++i)
                if (lanes * i < left) {
                    const PA_G_ELEMENT a = pa_gemv_at(m + i * apart);
                    PA_G_MAC(sum[i], a, b);
                }
    }
}

PA_FN void pa_gemv_store(const pa_gemv_grid *g, int64_t number, int64_t part, int64_t row, PA_G_ELEMENT sum)
{
    if (g->parts == 1) *(PA_C *)(g->y + row * g->ys) = PA_STORE(sum);
    else g->part[(number * g->parts + part) * g->rows + row] = sum;
}

/* The sum of a place in a strip of so many, of which each line of threads has a share in shared memory; for threads
   whose number is such a place. */
PA_FN PA_G_ELEMENT pa_gemv_sum_lines(PA_G_ELEMENT *shared, int places)
{
    const int at = (int)threadIdx.x, together = PA_V_THREADS / places; /* threads that add up a place */
    __syncthreads();
#pragma unroll 8
    for (int e = at + PA_V_THREADS; e < PA_V_THREADS * PA_V_N; e += PA_V_THREADS) PA_V_ADD(shared[at], shared[e]);
    __syncthreads();
    PA_G_ELEMENT sum = shared[at];
    if (at < places)
        for (int k = 1; k < together; ++k) PA_V_ADD(sum, shared[at + k * places]);
    return sum;
}

/* Sums of a strip of rows across: block number `block` of all. */
PA_FN void pa_gemv_strip(const pa_gemv_grid *args, int64_t block, PA_G_ELEMENT *shared)
{
    pa_gemv_grid g = *args;
    const int lanes = (int)g.lanes, group = lanes * PA_V_N, place = (int)threadIdx.x;
    const pa_gemv_share s = pa_gemv_share_of(&g, block, (g.rows - 1) / group + 1);
    const int64_t row = s.row * group;
    pa_gemv_select_matrix(&g, s.number);
    const bool aligned = (((uint64_t)g.m | (uint64_t)g.cs) & 15) == 0;
    const bool wide = g.rs == (int64_t)sizeof(PA_T) && aligned && g.rows % PA_V_N == 0;
    PA_G_ELEMENT sums[PA_V_N];
    if (wide) pa_gemv_across<true>(&g, row, s.first, s.end, sums);
    else pa_gemv_across<false>(&g, row, s.first, s.end, sums);
    pa_griddep_launch_dependents();
    __syncthreads(); /* the sums of a strip before may be read */
#pragma unroll
    for (int i = 0; i < PA_V_N; ++i) shared[place / lanes * group + i * lanes + place % lanes] = sums[i];
    const PA_G_ELEMENT sum = pa_gemv_sum_lines(shared, group);
    const int at = wide ? place % lanes * PA_V_N + place / lanes : place;
    if (place < group && row + at < g.rows) pa_gemv_store(&g, s.number, s.part, row + at, sum);
}

/* The logarithm of the number of teams of a block: a division takes longer than a short row. */
PA_FN int pa_gemv_team_bits(const pa_gemv_grid *g) { return PA_V_BITS - (31 - __clz((int)g->team)); }

/* A barrier of a team, which are lanes of one warp. */
PA_FN void pa_gemv_sync_team(void)
{
#ifdef __CUDA_ARCH__
    __syncwarp();
#else
    __syncthreads();
#endif
}

/* The sum of a row along, for each team of lanes: block number `block` of all. */
PA_FN void pa_gemv_rows(const pa_gemv_grid *args, int64_t block, int64_t rows, PA_G_ELEMENT *shared)
{
    pa_gemv_grid g = *args;
    const int team = (int)g.team, lane = (int)threadIdx.x & team - 1, bits = pa_gemv_team_bits(args);
    const int64_t at = (block << bits) + ((int)threadIdx.x >> PA_V_BITS - bits);
    const pa_gemv_share s = pa_gemv_share_of(&g, at < rows ? at : 0, g.rows);
    pa_gemv_select_matrix(&g, s.number);
    const bool aligned = (((uint64_t)g.m | (uint64_t)g.rs | (uint64_t)g.x) & 15) == 0;
    const bool wide = g.cs == (int64_t)sizeof(PA_T) && g.xs == (int64_t)sizeof(PA_T) && aligned;
    PA_G_ELEMENT sum;
    PA_G_ZERO(sum);
    if (at < rows)
        sum = wide ? pa_gemv_along<true>(&g, s.row, s.first, s.end) : pa_gemv_along<false>(&g, s.row, s.first, s.end);
    pa_griddep_launch_dependents();
    pa_gemv_sync_team();
    shared[threadIdx.x] = sum;
#pragma unroll 1
    for (int d = team / 2; d > 0; d /= 2) {
        pa_gemv_sync_team();
        if (lane < d) PA_V_ADD(shared[threadIdx.x], shared[threadIdx.x + d]);
    }
    if (lane == 0 && at < rows) pa_gemv_store(&g, s.number, s.part, s.row, shared[threadIdx.x]);
}

/* A block for each part of each strip of each matrix, or for as many parts of rows as it has teams; fewer blocks, which
   have several, where a grid has no more. */
PA_FN void pa_gemv(const pa_gemv_grid *g)
{
    __shared__ PA_G_ELEMENT shared[PA_V_THREADS * PA_V_N];
    pa_griddep_wait();
    const int64_t each = pa_gemv_batches(g) * g->parts, strips = g->lanes ? (g->rows - 1) / (g->lanes * PA_V_N) + 1 : 0;
    const int64_t rows = each * g->rows, blocks = g->lanes ? each * strips : (rows - 1 >> pa_gemv_team_bits(g)) + 1;
#pragma unroll 1
    for (int64_t block = blockIdx.x; block < blocks; block += gridDim.x)
        if (g->lanes) pa_gemv_strip(g, block, shared);
        else pa_gemv_rows(g, block, rows, shared);
}

/* A thread for each result, where there are several parts. */
PA_FN void pa_gemv_total(const pa_gemv_grid *args)
{
    pa_griddep_wait();
    const int64_t count = args->rows * pa_gemv_batches(args), step = (int64_t)gridDim.x * PA_V_THREADS;
#pragma unroll 1
    for (int64_t index = (int64_t)blockIdx.x * PA_V_THREADS + threadIdx.x; index < count; index += step) {
        pa_gemv_grid g = *args;
        const int64_t number = index / g.rows, row = index % g.rows;
        const PA_G_ELEMENT *part = g.part + number * g.parts * g.rows + row;
        PA_G_ELEMENT sum = *part;
#pragma unroll 8
        for (int64_t k = 1; k < g.parts; ++k) PA_V_ADD(sum, part[k * g.rows]);
        pa_gemv_select_matrix(&g, number);
        *(PA_C *)(g.y + row * g.ys) = PA_STORE(sum);
    }
}

#endif
