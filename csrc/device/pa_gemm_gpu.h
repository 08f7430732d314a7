/* pa_gemm_gpu.h: C = A B on a grid, for any strides, batches and tails. Included once per type, with the macros PA_T
   (in memory), PA_ACC (while computing), PA_KIND, and PA_LOAD and PA_STORE where these types differ. A block computes a
   tile of C, slice by slice of A and B through shared memory: several stages are in flight while one is in use. Each
   thread accumulates a rectangle of C in registers, in fragments of 16 bytes. Tiles are numbered through all batches,
   and the grid strides over them. Slices are loaded by vectors of four elements where operands are aligned and
   contiguous, else by single, coalesced elements. Only the loader differs between row-major, transposed, strided and
   misaligned operands. */
#ifndef PA_GEMM_GPU_H
#define PA_GEMM_GPU_H
#include "pa_complex.h"
#include "pa_half.h"
#include "pa_check.h"
#include "pa_gemm_tiles.h"

#define PA_GEMM_REAL 0
#define PA_GEMM_INT 1
#define PA_GEMM_BOOL 2
#define PA_GEMM_COMPLEX 3

PA_FN float pa_fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
PA_FN double pa_fma(double a, double b, double c) { return __fma_rn(a, b, c); }

/* One element of the computing type from memory, 0 outside the matrix. */
#if PA_KIND == PA_GEMM_COMPLEX
#define PA_G_ELEMENT PA_T
#define PA_G_ZERO(x) ((x).re = 0, (x).im = 0)
#define PA_G_MAC(c, a, b)                                                                                              \
    ((c).re = pa_fma(-(a).im, (b).im, pa_fma((a).re, (b).re, (c).re)),                                             \
     (c).im = pa_fma((a).im, (b).re, pa_fma((a).re, (b).im, (c).im)))
#else
#define PA_G_ELEMENT PA_ACC
#define PA_G_ZERO(x) ((x) = 0)
#if PA_KIND == PA_GEMM_REAL
#define PA_G_MAC(c, a, b) ((c) = pa_fma(a, b, c))
#elif PA_KIND == PA_GEMM_INT
#define PA_G_MAC(c, a, b) ((c) = (PA_ACC)((c) + (a) * (b)))
#else
#define PA_G_MAC(c, a, b) ((c) = (PA_ACC)((c) | ((a) & (b))))
#endif
#endif

/* Copies from memory to shared memory that pass no register, where the target has them and nothing is converted. */
#ifdef PA_LOAD
#define PA_G_ASYNC 0
#else
#define PA_LOAD(x) (x)
#define PA_STORE(x) (x)
#if !defined(PA_G_ASYNC)
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800 && PA_BYTES == 4
#define PA_G_ASYNC 1
#else
#define PA_G_ASYNC 0
#endif
#endif
#endif

#include "pa_gemm_results.h"

/* PA_G_SMALL: tiles of 64 x 64, for matrices that have too few larger ones for all multiprocessors. Others are
   256 x 128, with PA_G_WIDE 128 x 256; 128 x 128 for types of 8 bytes. A thread computes PA_G_TM x PA_G_TN elements, a
   warp has its 32 threads in PA_G_LANES rows, a tile its warps in PA_G_DOWN rows. */
enum {
    PA_G_SIZE = sizeof(PA_G_ELEMENT),
    PA_G_PART = PA_G_SIZE > 8 ? 1 : PA_G_SIZE > 4 ? 2 : 4, /* adjacent elements of a thread */
#ifndef PA_G_SHAPE
    PA_G_THREADS = 256,
    PA_G_TM = PA_G_SIZE > 8 || PA_G_SMALL ? 4 : 8,
    PA_G_TN = PA_G_SIZE > 8 || PA_G_SMALL ? 4 : PA_G_SIZE > 4 ? 8 : 16,
    PA_G_LANES = PA_G_SIZE > 4 || PA_G_SMALL || PA_G_WIDE ? 4 : 8,
    PA_G_DOWN = 4,
    PA_G_DEPTH = PA_G_SMALL && PA_G_SIZE <= 8 ? 16 : 8, /* of a slice */
    PA_G_STAGES = PA_G_ASYNC ? 3 : 2,
    PA_G_BLOCKS = PA_G_SMALL && PA_G_SIZE <= 4 ? 2 : 1, /* of a multiprocessor at the same time */
#else
    PA_G_SHAPE,
#endif
    PA_G_ROWS = PA_G_DOWN * PA_G_LANES * PA_G_TM, /* of a tile */
    PA_G_COLUMNS = PA_G_THREADS / 32 / PA_G_DOWN * (32 / PA_G_LANES) * PA_G_TN,
    PA_G_PAD = PA_G_SIZE > 8 ? 1 : 16 / PA_G_SIZE,
    PA_G_VECTOR = PA_G_SIZE > 8 ? 1 : 4 /* elements of a load */
};

struct alignas(PA_G_SIZE * PA_G_PART < 16 ? PA_G_SIZE * PA_G_PART : 16) pa_gemm_fragment {
    PA_G_ELEMENT v[PA_G_PART];
};
struct alignas(sizeof(PA_C) * PA_G_PART < 16 ? sizeof(PA_C) * PA_G_PART : 16) pa_gemm_stored {
    PA_C v[PA_G_PART];
};
struct alignas(sizeof(PA_T) * PA_G_VECTOR < 16 ? sizeof(PA_T) * PA_G_VECTOR : 16) pa_gemm_vector {
    PA_T v[PA_G_VECTOR];
};

#ifdef PA_DEBUG_CHECKS
/* An address outside the operand's buffer is reported and read as zero. */
PA_FN bool pa_gemm_inside(const pa_gemm_grid *g, pa_runtime *rt, int which, const char *p, int64_t tile)
{
    const int64_t size = which == 2 ? (int64_t)sizeof(PA_C) : (int64_t)sizeof(PA_T);
    if (p >= g->range[which][0] && p + size <= g->range[which][1]) return true;
    pa_fail_index(rt, 0, which, 0, tile, (p - g->range[which][0]) / size,
                  (g->range[which][1] - g->range[which][0]) / size, 0,
                  (g->range[which][1] - g->range[which][0]) / size);
    return false;
}
#define PA_G_INSIDE(which, p) pa_gemm_inside(g, rt, which, p, tile)
/* Whether an operand's tile is inside its buffer as a whole, so that no element needs a check. */
PA_FN bool pa_gemm_all_inside(const pa_gemm_grid *g, int which, const char *first, int64_t rows, int64_t rs,
                              int64_t depths, int64_t cs)
{
    const int64_t down = (rows - 1) * rs, along = (depths - 1) * cs;
    const char *low = first + (down < 0 ? down : 0) + (along < 0 ? along : 0);
    const char *high = first + (down < 0 ? 0 : down) + (along < 0 ? 0 : along);
    high += which == 2 ? sizeof(PA_C) : sizeof(PA_T);
    return low >= g->range[which][0] && high <= g->range[which][1];
}
#define PA_G_ALL_INSIDE(which, first, rows, rs, depths, cs) pa_gemm_all_inside(g, which, first, rows, rs, depths, cs)
#else
#define PA_G_INSIDE(which, p) true
#define PA_G_ALL_INSIDE(which, first, rows, rs, depths, cs) true
#endif

#if PA_G_ASYNC
/* Asynchronous copies; `go` is a predicate, so that no branch splits the arithmetic around it. */
template <int N> PA_FN void pa_cp_async(unsigned to, const char *from, bool go)
{
    if (N == 16)
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %2, 0; @p cp.async.cg.shared.global [%0], [%1], 16; }"
                     ::"r"(to), "l"(from), "r"((int)go));
    else
        asm volatile("{ .reg .pred p; setp.ne.b32 p, %2, 0; @p cp.async.ca.shared.global [%0], [%1], %3; }"
                     ::"r"(to), "l"(from), "r"((int)go), "n"(N));
}
template <int N> PA_FN void pa_cp_async_or_zero(unsigned to, const char *from, bool inside)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(to), "l"(from), "r"(inside ? N : 0), "n"(N));
}
#endif

/* A thread's loads of the slices of an operand, of which a tile has `ROWS` rows (columns, for B): ELEMENTS in each, by
   vectors if `vectorized`. `k_major`: contiguous along the depth. */
template <int ROWS> struct pa_gemm_loader {
    enum { ELEMENTS = PA_G_DEPTH * ROWS / PA_G_THREADS, LINE = ROWS + PA_G_PAD };
    const char *at; /* element 0 in the next slice */
    int64_t slice_stride, stride; /* bytes to the next slice, and to the next element or vector */
    int shared_index, shared_stride; /* elements in shared memory: of element 0, and to the next element or vector */
    bool vectorized, k_major, full;

    __device__ inline void start(const char *base, int64_t rows, int64_t rs, int64_t cs, bool along)
    {
        const uint64_t mask = alignof(pa_gemm_vector) - 1;
        k_major = along;
        vectorized = (along ? cs : rs) == (int64_t)sizeof(PA_T) &&
                     (((uint64_t)base | (uint64_t)(along ? rs : cs)) & mask) == 0 && !(PA_G_ASYNC && k_major);
        full = rows >= ROWS;
        const int step = vectorized ? PA_G_VECTOR : 1, row = row_of(0), depth = depth_of(0);
        shared_index = depth * LINE + row;
        shared_stride = (depth_of(step) - depth) * LINE + row_of(step) - row;
        stride = (depth_of(step) - depth) * cs + (row_of(step) - row) * rs;
        slice_stride = PA_G_DEPTH * cs;
        at = base + row * rs + depth * cs;
    }
    /* Indices of element e in the slice along the contiguous axis and along the other one. Sizes are powers of two. */
    __device__ inline int group() const
    {
        return (k_major ? (int)PA_G_DEPTH : ROWS) / (vectorized ? (int)PA_G_VECTOR : 1);
    }
    __device__ inline int fast_index(int e) const
    {
        const int t = (int)threadIdx.x & (group() - 1);
        return vectorized ? t * PA_G_VECTOR + e % PA_G_VECTOR : t;
    }
    __device__ inline int slow_index(int e) const
    {
        const int shift = 31 - __clz(group());
        return ((int)threadIdx.x >> shift) + (vectorized ? e / PA_G_VECTOR : e) * (PA_G_THREADS >> shift);
    }
    __device__ inline int row_of(int e) const { return k_major ? slow_index(e) : fast_index(e); }
    __device__ inline int depth_of(int e) const { return k_major ? fast_index(e) : slow_index(e); }
};

/* The next slice where some of it may be outside the matrix, of which `rows` and `depths` are left: zeros there. */
template <int ROWS> PA_FN void pa_gemm_load_edge(const pa_gemm_grid *g, pa_runtime *rt, int which, int64_t tile,
                                                 const pa_gemm_loader<ROWS> *w, int64_t rows, int64_t depths,
                                                 int64_t rs, int64_t cs, PA_G_ELEMENT *to)
{
#pragma unroll 1
    for (int e = 0; e < pa_gemm_loader<ROWS>::ELEMENTS; ++e) {
        const int row = w->row_of(e), depth = w->depth_of(e);
        const char *p = w->at + (row - w->row_of(0)) * rs + (depth - w->depth_of(0)) * cs;
        bool inside = false;
        if (row < rows && depth < depths) inside = PA_G_INSIDE(which, p);
        PA_G_ELEMENT *element = to + depth * pa_gemm_loader<ROWS>::LINE + row;
#if PA_G_ASYNC
        pa_cp_async_or_zero<PA_G_SIZE>((unsigned)__cvta_generic_to_shared(element), p, inside);
#else
        if (inside) *element = PA_LOAD(*(const PA_T *)p);
        else PA_G_ZERO(*element);
#endif
    }
}

#if PA_G_ASYNC
/* The copies of the next slice that are issued in step `d` of the arithmetic, if `go`: all of the slice is inside. `to`
   is an address of cp.async. */
template <int ROWS> PA_FN void pa_gemm_load_async(const pa_gemm_loader<ROWS> *w, int d, bool go, unsigned to)
{
    typedef pa_gemm_loader<ROWS> loader;
#pragma unroll
    for (int e = 0; e < loader::ELEMENTS; ++e)
        if (e * (PA_G_DEPTH - 1) / loader::ELEMENTS == d) {
            pa_cp_async<PA_G_SIZE>(to + (w->shared_index + e * w->shared_stride) * PA_G_SIZE, w->at + e * w->stride,
                                   go && !w->vectorized);
            if (e % PA_G_VECTOR == 0)
                pa_cp_async<16>(to + (w->shared_index + e / PA_G_VECTOR * w->shared_stride) * PA_G_SIZE,
                                w->at + e / PA_G_VECTOR * w->stride, go && w->vectorized);
        }
}
#else
/* Loads the next slice into registers: all of it is inside. */
template <int ROWS> PA_FN void pa_gemm_load(const pa_gemm_loader<ROWS> *w, PA_G_ELEMENT *to)
{
    typedef pa_gemm_loader<ROWS> loader;
    if (w->vectorized) {
#pragma unroll
        for (int e = 0; e < loader::ELEMENTS; e += PA_G_VECTOR) {
            const pa_gemm_vector x = *(const pa_gemm_vector *)(w->at + e / PA_G_VECTOR * w->stride);
#pragma unroll
            for (int j = 0; j < PA_G_VECTOR; ++j) to[e + j] = PA_LOAD(x.v[j]);
        }
    } else {
#pragma unroll
        for (int e = 0; e < loader::ELEMENTS; ++e) to[e] = PA_LOAD(*(const PA_T *)(w->at + e * w->stride));
    }
}

/* Stores the loaded elements to shared memory. */
template <int ROWS>
PA_FN void pa_gemm_store_shared(const pa_gemm_loader<ROWS> *w, const PA_G_ELEMENT *from, PA_G_ELEMENT *to)
{
    typedef pa_gemm_loader<ROWS> loader;
    to += w->shared_index;
    if (w->vectorized && !w->k_major) {
#pragma unroll
        for (int e = 0; e < loader::ELEMENTS; e += PA_G_PART)
            *(pa_gemm_fragment *)(to + e / PA_G_VECTOR * w->shared_stride +
                                  e % PA_G_VECTOR) = *(const pa_gemm_fragment *)(from + e);
    } else if (w->vectorized) {
#pragma unroll
        for (int e = 0; e < loader::ELEMENTS; ++e)
            to[e / PA_G_VECTOR * w->shared_stride + e % PA_G_VECTOR * loader::LINE] = from[e];
    } else {
#pragma unroll
        for (int e = 0; e < loader::ELEMENTS; ++e) to[e * w->shared_stride] = from[e];
    }
}
#endif

struct pa_gemm_accumulators { PA_G_ELEMENT v[PA_G_TM][PA_G_TN]; };

/* This thread's elements of a slice for one step of the depth; its first ones are at `a` and `b`. */
struct pa_gemm_fragments {
    pa_gemm_fragment x[PA_G_TM / PA_G_PART], y[PA_G_TN / PA_G_PART];

    __device__ inline void read(const PA_G_ELEMENT *a, const PA_G_ELEMENT *b, int d)
    {
        enum { ABOVE = PA_G_LANES * PA_G_PART, ASIDE = 32 / PA_G_LANES * PA_G_PART };
#pragma unroll
        for (int i = 0; i < PA_G_TM / PA_G_PART; ++i)
            x[i] = *(const pa_gemm_fragment *)(a + d * (PA_G_ROWS + PA_G_PAD) + i * ABOVE);
#pragma unroll
        for (int j = 0; j < PA_G_TN / PA_G_PART; ++j)
            y[j] = *(const pa_gemm_fragment *)(b + d * (PA_G_COLUMNS + PA_G_PAD) + j * ASIDE);
    }
    __device__ inline void multiply(pa_gemm_accumulators *sum) const
    {
#pragma unroll
        for (int i = 0; i < PA_G_TM; ++i)
#pragma unroll
            for (int j = 0; j < PA_G_TN; ++j)
                PA_G_MAC(sum->v[i][j], x[i / PA_G_PART].v[i % PA_G_PART], y[j / PA_G_PART].v[j % PA_G_PART]);
    }
};

/* Stores the sums to C; (row, col) is this thread's first element, and `results` counts from C's first one. */
PA_FN void pa_gemm_store(const pa_gemm_grid *g, pa_runtime *rt, int64_t tile, char *c, int64_t row, int64_t col,
                         bool all_inside, const pa_gemm_accumulators *sum, const pa_gemm_results &results)
{
    enum { ABOVE = PA_G_LANES * PA_G_PART, ASIDE = 32 / PA_G_LANES * PA_G_PART };
    const bool vectorized = all_inside && g->ccs == (int64_t)sizeof(PA_C) &&
                      (((uint64_t)(c + col * g->ccs) | (uint64_t)g->rcs) & (alignof(pa_gemm_stored) - 1)) == 0;
#pragma unroll
    for (int i = 0; i < PA_G_TM; ++i) {
        const int64_t r = row + i % PA_G_PART + i / PA_G_PART * ABOVE;
        char *line = c + r * g->rcs;
        if (r < g->m) {
#pragma unroll
            for (int j = 0; j < PA_G_TN; j += PA_G_PART) {
                const int64_t s = col + j / PA_G_PART * ASIDE;
                if (vectorized && s + PA_G_PART <= g->n) {
                    pa_gemm_stored x;
#pragma unroll
                    for (int e = 0; e < PA_G_PART; ++e) x.v[e] = results(r, s + e, sum->v[i][j + e]);
                    *(pa_gemm_stored *)(line + s * (int64_t)sizeof(PA_C)) = x;
                } else {
#pragma unroll
                    for (int e = 0; e < PA_G_PART; ++e) {
                        char *p = line + (s + e) * g->ccs;
                        if (s + e < g->n && (all_inside || PA_G_INSIDE(2, p)))
                            *(PA_C *)p = results(r, s + e, sum->v[i][j + e]);
                    }
                }
            }
        }
    }
}

PA_FN void pa_gemm_tile(const pa_gemm_grid *g, pa_runtime *rt, int64_t tile)
{
    enum { LINE_A = PA_G_ROWS + PA_G_PAD, LINE_B = PA_G_COLUMNS + PA_G_PAD };
    __shared__ __align__(16) PA_G_ELEMENT sa[PA_G_STAGES][PA_G_DEPTH * LINE_A], sb[PA_G_STAGES][PA_G_DEPTH * LINE_B];
    const pa_gemm_tile_origin at = pa_gemm_origin_of<PA_G_ROWS, PA_G_COLUMNS>(g, tile);
    const char *a = at.a, *b = at.b;
    char *c = at.c;
    int64_t row0 = at.row, col0 = at.col;
#ifndef PA_GEMM_EPILOGUE /* it may read C */
    /* the last tiles move inwards and compute some elements twice, which is faster than checks for the matrix' end */
    if (g->m >= PA_G_ROWS && row0 > g->m - PA_G_ROWS) row0 = g->m - PA_G_ROWS;
    if (g->n >= PA_G_COLUMNS && col0 > g->n - PA_G_COLUMNS) col0 = g->n - PA_G_COLUMNS;
#endif
    pa_gemm_loader<PA_G_ROWS> wa;
    pa_gemm_loader<PA_G_COLUMNS> wb;
    const char *first_a = a + row0 * g->ras, *first_b = b + col0 * g->cbs;
    wa.start(first_a, g->m - row0, g->ras, g->cas, g->cas <= g->ras && g->cas >= -g->ras);
    wb.start(first_b, g->n - col0, g->cbs, g->rbs, g->rbs < g->cbs);
    const bool unchecked = wa.full && wb.full && PA_G_ALL_INSIDE(0, first_a, PA_G_ROWS, g->ras, g->k, g->cas) &&
                           PA_G_ALL_INSIDE(1, first_b, PA_G_COLUMNS, g->cbs, g->k, g->rbs);
    const bool all_inside = PA_G_ALL_INSIDE(2, c, g->m, g->rcs, g->n, g->ccs);
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    const int first_row = warp % PA_G_DOWN * PA_G_LANES * PA_G_TM + lane / (32 / PA_G_LANES) * PA_G_PART;
    const int first_col = warp / PA_G_DOWN * (32 / PA_G_LANES) * PA_G_TN + lane % (32 / PA_G_LANES) * PA_G_PART;
    pa_gemm_accumulators sum;
#pragma unroll
    for (int i = 0; i < PA_G_TM; ++i)
#pragma unroll
        for (int j = 0; j < PA_G_TN; ++j) PA_G_ZERO(sum.v[i][j]);
    int64_t ahead = g->k; /* the depth that isn't loaded yet */
    int stage = 0, fill_stage = 0;
    pa_gemm_fragments parts[2];
#if PA_G_ASYNC
    const unsigned to_a = (unsigned)__cvta_generic_to_shared(sa), to_b = (unsigned)__cvta_generic_to_shared(sb);
#pragma unroll
    for (; fill_stage < PA_G_STAGES - 1; ++fill_stage) {
        const bool go = unchecked && ahead >= PA_G_DEPTH;
        if (!go && ahead > 0) {
            pa_gemm_load_edge(g, rt, 0, tile, &wa, g->m - row0, ahead, g->ras, g->cas, sa[fill_stage]);
            pa_gemm_load_edge(g, rt, 1, tile, &wb, g->n - col0, ahead, g->cbs, g->rbs, sb[fill_stage]);
        }
#pragma unroll
        for (int d = 0; d < PA_G_DEPTH; ++d) {
            pa_gemm_load_async(&wa, d, go, to_a + fill_stage * sizeof(sa[0]));
            pa_gemm_load_async(&wb, d, go, to_b + fill_stage * sizeof(sb[0]));
        }
        pa_cp_async_commit();
        wa.at += wa.slice_stride, wb.at += wb.slice_stride, ahead -= PA_G_DEPTH;
    }
    pa_cp_async_wait<PA_G_STAGES - 2>();
    __syncthreads();
    parts[0].read(sa[0] + first_row, sb[0] + first_col, 0);
    for (int64_t left = g->k; left > 0; left -= PA_G_DEPTH) {
        const bool go = unchecked && ahead >= PA_G_DEPTH;
        if (!go && ahead > 0) {
            pa_gemm_load_edge(g, rt, 0, tile, &wa, g->m - row0, ahead, g->ras, g->cas, sa[fill_stage]);
            pa_gemm_load_edge(g, rt, 1, tile, &wb, g->n - col0, ahead, g->cbs, g->rbs, sb[fill_stage]);
        }
        const unsigned slice_a = to_a + fill_stage * sizeof(sa[0]), slice_b = to_b + fill_stage * sizeof(sb[0]);
        const PA_G_ELEMENT *at_a = sa[stage] + first_row, *at_b = sb[stage] + first_col;
        stage = stage == PA_G_STAGES - 1 ? 0 : stage + 1,
        fill_stage = fill_stage == PA_G_STAGES - 1 ? 0 : fill_stage + 1;
#pragma unroll
        for (int d = 0; d < PA_G_DEPTH; ++d) {
            if (d < PA_G_DEPTH - 1) {
                parts[(d + 1) % 2].read(at_a, at_b, d + 1);
            } else { /* the next slice: its first step is read while the last one of this is computed */
                pa_cp_async_commit();
                pa_cp_async_wait<PA_G_STAGES - 2>();
                __syncthreads();
                parts[0].read(sa[stage] + first_row, sb[stage] + first_col, 0);
            }
            pa_gemm_load_async(&wa, d, go, slice_a);
            pa_gemm_load_async(&wb, d, go, slice_b);
            parts[d % 2].multiply(&sum);
        }
        wa.at += wa.slice_stride, wb.at += wb.slice_stride, ahead -= PA_G_DEPTH;
    }
#else
    PA_G_ELEMENT next_a[pa_gemm_loader<PA_G_ROWS>::ELEMENTS], next_b[pa_gemm_loader<PA_G_COLUMNS>::ELEMENTS];
    for (int64_t left = g->k + PA_G_DEPTH; left > 0; left -= PA_G_DEPTH) {
        const bool go = unchecked && ahead >= PA_G_DEPTH;
        if (go) {
            pa_gemm_load(&wa, next_a);
            pa_gemm_load(&wb, next_b);
        } else if (ahead > 0) {
            pa_gemm_load_edge(g, rt, 0, tile, &wa, g->m - row0, ahead, g->ras, g->cas, sa[fill_stage]);
            pa_gemm_load_edge(g, rt, 1, tile, &wb, g->n - col0, ahead, g->cbs, g->rbs, sb[fill_stage]);
        }
        if (left <= g->k) {
#pragma unroll
            for (int d = 0; d < PA_G_DEPTH - 1; ++d) {
                parts[(d + 1) % 2].read(sa[stage] + first_row, sb[stage] + first_col, d + 1);
                parts[d % 2].multiply(&sum);
            }
            stage ^= 1;
        }
        if (go) {
            pa_gemm_store_shared(&wa, next_a, sa[fill_stage]);
            pa_gemm_store_shared(&wb, next_b, sb[fill_stage]);
        }
        __syncthreads();
        parts[0].read(sa[stage] + first_row, sb[stage] + first_col, 0);
        if (left <= g->k) parts[1].multiply(&sum);
        wa.at += wa.slice_stride, wb.at += wb.slice_stride, ahead -= PA_G_DEPTH, fill_stage ^= 1;
    }
#endif
    pa_gemm_store(g, rt, tile, c, row0 + first_row, col0 + first_col, all_inside, &sum, pa_gemm_results(g, at, 0, 0));
    __syncthreads(); /* before the next tile overwrites the slices */
}

PA_FN void pa_gemm(const pa_gemm_grid *g, pa_runtime *rt)
{
    const int64_t tiles = pa_gemm_tiles<PA_G_ROWS, PA_G_COLUMNS>(g);
    for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) pa_gemm_tile(g, rt, tile);
}

#endif
