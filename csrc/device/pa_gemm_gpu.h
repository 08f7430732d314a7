/* pa_gemm_gpu.h: C = A B on a grid, for any strides, batches and tails. Included once per type, with the macros of pa_gemm.h:
   PA_T, PA_ACC, PA_KIND, and PA_LOAD and PA_STORE where memory and computing differ.
   A block of 256 threads computes a tile of 128 x 128 (64 x 64 for types above 4 bytes). Slices of A and B go through shared
   memory while the next slice is on its way into registers; each thread keeps a square of C in registers. Tiles are numbered
   through all batches, and the grid strides over them. */
#ifndef PA_GEMM_GPU_H
#define PA_GEMM_GPU_H
#include "pa_complex.h"
#include "pa_half.h"
#include "pa_check.h"

#define PA_GEMM_REAL 0
#define PA_GEMM_INT 1
#define PA_GEMM_BOOL 2
#define PA_GEMM_COMPLEX 3
#ifndef PA_GEMM_BATCHES
#define PA_GEMM_BATCHES 1
#endif

typedef struct pa_gemm_grid {
    int64_t m, n, k, nb;
    const char *a, *b;
    char *c;
    int64_t ras, cas, rbs, cbs, rcs, ccs; /* bytes between rows and columns */
    int64_t batch[PA_GEMM_BATCHES], batch_a[PA_GEMM_BATCHES], batch_b[PA_GEMM_BATCHES], batch_c[PA_GEMM_BATCHES];
    const char *range[3][2];
} pa_gemm_grid;

PA_FN float pa_fused(float a, float b, float c) { return __fmaf_rn(a, b, c); }
PA_FN double pa_fused(double a, double b, double c) { return __fma_rn(a, b, c); }

/* One element of the computing type from memory, 0 outside the matrix. */
#if PA_KIND == PA_GEMM_COMPLEX
#define PA_G_ELEMENT PA_T
#define PA_G_ZERO(x) ((x).re = 0, (x).im = 0)
#define PA_G_MAC(c, a, b)                                                                                              \
    ((c).re = pa_fused(-(a).im, (b).im, pa_fused((a).re, (b).re, (c).re)),                                             \
     (c).im = pa_fused((a).im, (b).re, pa_fused((a).re, (b).im, (c).im)))
#else
#define PA_G_ELEMENT PA_ACC
#define PA_G_ZERO(x) ((x) = 0)
#if PA_KIND == PA_GEMM_REAL
#define PA_G_MAC(c, a, b) ((c) = pa_fused(a, b, c))
#elif PA_KIND == PA_GEMM_INT
#define PA_G_MAC(c, a, b) ((c) = (PA_ACC)((c) + (a) * (b)))
#else
#define PA_G_MAC(c, a, b) ((c) = (PA_ACC)((c) | ((a) & (b))))
#endif
#endif
#ifndef PA_LOAD
#define PA_LOAD(x) (x)
#define PA_STORE(x) (x)
#endif

/* A thread's square of C is made of 2 x 2 smaller ones, so that its rows and columns are read as vectors of PA_G_PART. */
#define PA_G_PART (sizeof(PA_G_ELEMENT) > 4 ? 2 : 4)
#define PA_G_SIDE (2 * PA_G_PART)
#define PA_G_HALF (16 * PA_G_PART)  /* between the halves of a tile */
#define PA_G_TILE (2 * PA_G_HALF)   /* of a block */
#define PA_G_DEPTH 16               /* of a slice */
#define PA_G_LOADS (PA_G_TILE * PA_G_DEPTH / 256) /* elements of a slice that a thread fetches */
#define PA_G_PAD (sizeof(PA_G_ELEMENT) > 8 ? 1 : 16 / sizeof(PA_G_ELEMENT))

struct alignas(sizeof(PA_G_ELEMENT) * PA_G_PART < 16 ? sizeof(PA_G_ELEMENT) * PA_G_PART : 16) pa_gemm_part {
    PA_G_ELEMENT v[PA_G_PART];
};

#ifdef PA_DEBUG_CHECKS
/* An address outside the operand's buffer is reported and read as zero. */
PA_FN bool pa_gemm_inside(const pa_gemm_grid *g, pa_runtime *rt, int which, const char *p, int64_t tile)
{
    if (p >= g->range[which][0] && p + sizeof(PA_T) <= g->range[which][1]) return true;
    const int64_t size = (int64_t)sizeof(PA_T);
    pa_fail_index(rt, 0, which, 0, tile, (p - g->range[which][0]) / size, (g->range[which][1] - g->range[which][0]) / size, 0,
                  (g->range[which][1] - g->range[which][0]) / size);
    return false;
}
#define PA_G_INSIDE(which, p) pa_gemm_inside(g, rt, which, p, tile)
#else
#define PA_G_INSIDE(which, p) true
#endif

/* How a thread walks over an operand's slices: it fetches PA_G_LOADS elements, `row_step` and `depth_step` apart. Neighbours in
   memory go to neighbouring threads, along the depth if that is `deep`. */
struct pa_gemm_walk {
    const char *at; /* the first of them, in the next slice */
    int64_t step;   /* bytes to the next of them */
    int row, depth, row_step, depth_step;
};

PA_FN pa_gemm_walk pa_gemm_start(const char *base, int64_t row0, int64_t rs, int64_t cs, bool deep)
{
    pa_gemm_walk w;
    const int t = (int)threadIdx.x;
    w.row = deep ? t / PA_G_DEPTH : t % PA_G_TILE;
    w.depth = deep ? t % PA_G_DEPTH : t / PA_G_TILE;
    w.row_step = deep ? 256 / PA_G_DEPTH : 0;
    w.depth_step = deep ? 0 : 256 / PA_G_TILE;
    w.step = w.row_step * rs + w.depth_step * cs;
    w.at = base + (row0 + w.row) * rs + w.depth * cs;
    return w;
}

/* The next slice into registers; elements outside the matrix are 0. `rows` and `depths` are those that are left. */
PA_FN void pa_gemm_fetch(const pa_gemm_grid *g, pa_runtime *rt, int which, int64_t tile, const pa_gemm_walk *w, int64_t rows,
                         int64_t depths, PA_G_ELEMENT *to)
{
    const char *p = w->at;
    const bool whole = rows >= PA_G_TILE && depths >= PA_G_DEPTH;
#pragma unroll
    for (int i = 0; i < PA_G_LOADS; ++i, p += w->step) {
        const bool inside = whole || (w->row + i * w->row_step < rows && w->depth + i * w->depth_step < depths);
        if (inside && PA_G_INSIDE(which, p)) to[i] = PA_LOAD(*(const PA_T *)p);
        else PA_G_ZERO(to[i]);
    }
}

PA_FN void pa_gemm_tile(const pa_gemm_grid *g, pa_runtime *rt, int64_t tile)
{
    __shared__ __align__(16) PA_G_ELEMENT sa[PA_G_DEPTH][PA_G_TILE + PA_G_PAD], sb[PA_G_DEPTH][PA_G_TILE + PA_G_PAD];
    const int64_t across = (g->n + PA_G_TILE - 1) / PA_G_TILE, down = (g->m + PA_G_TILE - 1) / PA_G_TILE;
    int64_t rest = tile / (across * down), place = tile % (across * down);
    const char *a = g->a, *b = g->b;
    char *c = g->c;
    for (int64_t d = g->nb; d-- > 0;) {
        const int64_t i = rest % g->batch[d];
        rest /= g->batch[d];
        a += i * g->batch_a[d], b += i * g->batch_b[d], c += i * g->batch_c[d];
    }
    /* tiles in strips of 8 rows: those that run at the same time share their operands in the cache */
    const int64_t strip = place / (8 * across), high = down - 8 * strip < 8 ? down - 8 * strip : 8;
    const int64_t in_strip = place % (8 * across);
    const int64_t row0 = (8 * strip + in_strip % high) * PA_G_TILE, col0 = in_strip / high * PA_G_TILE;
    pa_gemm_walk wa = pa_gemm_start(a, row0, g->ras, g->cas, g->cas <= g->ras && g->cas >= -g->ras);
    pa_gemm_walk wb = pa_gemm_start(b, col0, g->cbs, g->rbs, g->rbs < g->cbs);
    const int tx = threadIdx.x % 16 * PA_G_PART, ty = threadIdx.x / 16 * PA_G_PART;
    PA_G_ELEMENT sum[PA_G_SIDE][PA_G_SIDE], next_a[PA_G_LOADS], next_b[PA_G_LOADS];
#pragma unroll
    for (int i = 0; i < PA_G_SIDE; ++i)
#pragma unroll
        for (int j = 0; j < PA_G_SIDE; ++j) PA_G_ZERO(sum[i][j]);
    for (int64_t left = g->k + PA_G_DEPTH; left > 0; left -= PA_G_DEPTH) {
        const int64_t depths = left - PA_G_DEPTH; /* from the next slice on */
        if (depths > 0) {
            pa_gemm_fetch(g, rt, 0, tile, &wa, g->m - row0, depths, next_a);
            pa_gemm_fetch(g, rt, 1, tile, &wb, g->n - col0, depths, next_b);
            wa.at += PA_G_DEPTH * g->cas, wb.at += PA_G_DEPTH * g->rbs;
        }
        if (left <= g->k) {
#pragma unroll
            for (int d = 0; d < PA_G_DEPTH; ++d) {
                const pa_gemm_part x[2] = {*(const pa_gemm_part *)&sa[d][ty], *(const pa_gemm_part *)&sa[d][ty + PA_G_HALF]};
                const pa_gemm_part y[2] = {*(const pa_gemm_part *)&sb[d][tx], *(const pa_gemm_part *)&sb[d][tx + PA_G_HALF]};
#pragma unroll
                for (int i = 0; i < PA_G_SIDE; ++i)
#pragma unroll
                    for (int j = 0; j < PA_G_SIDE; ++j)
                        PA_G_MAC(sum[i][j], x[i / PA_G_PART].v[i % PA_G_PART], y[j / PA_G_PART].v[j % PA_G_PART]);
            }
        }
        __syncthreads();
        if (depths > 0) {
#pragma unroll
            for (int i = 0; i < PA_G_LOADS; ++i) {
                sa[wa.depth + i * wa.depth_step][wa.row + i * wa.row_step] = next_a[i];
                sb[wb.depth + i * wb.depth_step][wb.row + i * wb.row_step] = next_b[i];
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < PA_G_SIDE; ++i)
#pragma unroll
        for (int j = 0; j < PA_G_SIDE; ++j) {
            const int64_t row = row0 + ty + i % PA_G_PART + i / PA_G_PART * PA_G_HALF;
            const int64_t col = col0 + tx + j % PA_G_PART + j / PA_G_PART * PA_G_HALF;
            char *p = c + row * g->rcs + col * g->ccs;
            if (row < g->m && col < g->n && PA_G_INSIDE(2, p)) *(PA_T *)p = PA_STORE(sum[i][j]);
        }
}

PA_FN void pa_gemm(const pa_gemm_grid *g, pa_runtime *rt)
{
    int64_t tiles = ((g->n + PA_G_TILE - 1) / PA_G_TILE) * ((g->m + PA_G_TILE - 1) / PA_G_TILE);
    for (int64_t d = 0; d < g->nb; ++d) tiles *= g->batch[d];
    for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) pa_gemm_tile(g, rt, tile);
}

#endif
