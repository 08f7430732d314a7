/* pa_gemm_tiny.h: batched products C = A B of tiny matrices on a grid, of any strides. A tile of them would be padding
   for the most part. A thread computes adjacent elements of four rows of C, of operands that it reads from memory; its
   block's other threads find them in the first-level cache. Same macros as pa_gemm_gpu.h. */
#ifndef PA_GEMM_TINY_H
#define PA_GEMM_TINY_H
#include "pa_dependent_launch.h"
#include "pa_gemm_elements.h"
#include "pa_gemm_results.h"

enum {
    PA_G_THREADS = 256,
    PA_G_SIZE = sizeof(PA_G_ELEMENT),
    /* of a multiprocessor at the same time: the more, the more loads are on their way, but loads need registers */
    PA_G_BLOCKS = PA_G_SIZE > 8 ? 2 : PA_G_SIZE == 4 && !PA_G_CONVERTS ? 3 : 4,
    PA_G_DOWN = 4, /* rows of a thread */
    PA_G_PART = PA_G_SIZE > 8 ? 1 : PA_G_SIZE > 4 ? 2 : 4,
    PA_G_DEEP = 4, /* elements along the depth that are loaded at once */
    PA_G_SIDE = 1 << 30 /* a tile has all of a matrix */
};
template <class T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) pa_gemm_neighbours { T v[N]; };

/* What is the same for all matrices: whether the neighbours along a row of each can be loaded, or stored, at once. */
struct pa_gemm_tiny {
    bool a, b, c;

    template <class T, int N>
    __device__ static inline bool are_vectors(const void *first, int64_t rs, int64_t cs, int64_t columns,
                                              const int64_t *batch)
    {
        uint64_t bits = (uint64_t)first | (uint64_t)rs;
#pragma unroll
        for (int d = 0; d < PA_GEMM_BATCHES; ++d) bits |= (uint64_t)batch[d];
        return cs == (int64_t)sizeof(T) && columns % N == 0 && bits % alignof(pa_gemm_neighbours<T, N>) == 0;
    }
    __device__ inline explicit pa_gemm_tiny(const pa_gemm_grid *g)
    {
        a = are_vectors<PA_T, PA_G_DEEP>(g->a, g->ras, g->cas, g->k, g->batch_a);
        b = are_vectors<PA_T, PA_G_PART>(g->b, g->rbs, g->cbs, g->n, g->batch_b);
        c = are_vectors<PA_C, PA_G_PART>(g->c, g->rcs, g->ccs, g->n, g->batch_c);
    }
};

/* A thread's elements of C: `rows` rows and `columns` columns of them exist. Beside the last ones, these are computed
   again instead of others. */
struct pa_gemm_tiny_block {
    const char *a[PA_G_DOWN], *b;
    int rows, columns;
    PA_G_ELEMENT sums[PA_G_DOWN][PA_G_PART];

    __device__ inline pa_gemm_tiny_block(const pa_gemm_grid *g, const pa_gemm_tile_origin &at, int64_t row, int64_t col)
    {
        rows = g->m - row < PA_G_DOWN ? (int)(g->m - row) : (int)PA_G_DOWN;
        columns = g->n - col < PA_G_PART ? (int)(g->n - col) : (int)PA_G_PART;
        b = at.b + col * g->cbs;
#pragma unroll
        for (int i = 0; i < PA_G_DOWN; ++i) {
            a[i] = at.a + (row + (i < rows ? i : rows - 1)) * g->ras;
#pragma unroll
            for (int e = 0; e < PA_G_PART; ++e) PA_G_ZERO(sums[i][e]);
        }
    }
    /* The next COUNT products for each. */
    template <bool VECTORS_A, bool VECTORS_B, int COUNT> __device__ inline void add(const pa_gemm_grid *g)
    {
        PA_G_ELEMENT x[PA_G_DOWN][COUNT], y[COUNT][PA_G_PART];
#pragma unroll
        for (int i = 0; i < PA_G_DOWN; ++i) {
            if (VECTORS_A) {
                const pa_gemm_neighbours<PA_T, COUNT> line = *(const pa_gemm_neighbours<PA_T, COUNT> *)a[i];
#pragma unroll
                for (int p = 0; p < COUNT; ++p) x[i][p] = PA_LOAD(line.v[p]);
            } else {
#pragma unroll
                for (int p = 0; p < COUNT; ++p) x[i][p] = PA_LOAD(*(const PA_T *)(a[i] + p * g->cas));
            }
            a[i] += COUNT * g->cas;
        }
#pragma unroll
        for (int p = 0; p < COUNT; ++p, b += g->rbs) {
            if (VECTORS_B) {
                const pa_gemm_neighbours<PA_T, PA_G_PART> line = *(const pa_gemm_neighbours<PA_T, PA_G_PART> *)b;
#pragma unroll
                for (int e = 0; e < PA_G_PART; ++e) y[p][e] = PA_LOAD(line.v[e]);
            } else {
#pragma unroll
                for (int e = 0; e < PA_G_PART; ++e)
                    y[p][e] = PA_LOAD(*(const PA_T *)(b + (e < columns ? e : columns - 1) * g->cbs));
            }
        }
#pragma unroll
        for (int p = 0; p < COUNT; ++p)
#pragma unroll
            for (int i = 0; i < PA_G_DOWN; ++i)
#pragma unroll
                for (int e = 0; e < PA_G_PART; ++e) PA_G_MAC(sums[i][e], x[i][p], y[p][e]);
    }
    template <bool VECTORS_A, bool VECTORS_B> __device__ inline void add_all(const pa_gemm_grid *g)
    {
        int64_t left = g->k;
#pragma unroll 1
        for (; left >= PA_G_DEEP; left -= PA_G_DEEP) add<VECTORS_A, VECTORS_B, PA_G_DEEP>(g);
#pragma unroll 1
        for (; left > 0; --left) add<false, VECTORS_B, 1>(g);
    }
    __device__ inline void store(const pa_gemm_grid *g, char *c, bool vectors, const pa_gemm_results &results) const
    {
#pragma unroll
        for (int i = 0; i < PA_G_DOWN; ++i, c += g->rcs) {
            if (i >= rows) return;
            if (vectors) {
                pa_gemm_neighbours<PA_C, PA_G_PART> x;
#pragma unroll
                for (int e = 0; e < PA_G_PART; ++e) x.v[e] = results(i, e, sums[i][e]);
                *(pa_gemm_neighbours<PA_C, PA_G_PART> *)c = x;
            } else {
#pragma unroll
                for (int e = 0; e < PA_G_PART; ++e)
                    if (e < columns) *(PA_C *)(c + e * g->ccs) = results(i, e, sums[i][e]);
            }
        }
    }
};

/* Fewer than 2^31 threads have work. */
PA_FN void pa_gemm_tiny_products(const pa_gemm_grid *g, pa_runtime *)
{
    const uint32_t across = (uint32_t)((g->n + PA_G_PART - 1) / PA_G_PART);
    const uint32_t places = (uint32_t)((g->m + PA_G_DOWN - 1) / PA_G_DOWN) * across;
    const uint32_t all = pa_gemm_tiles<PA_G_SIDE, PA_G_SIDE>(g) * places;
    const pa_gemm_tiny vectors(g);
#pragma unroll 1
    for (uint32_t at = blockIdx.x * PA_G_THREADS + threadIdx.x; at < all; at += gridDim.x * PA_G_THREADS) {
        const uint32_t matrix = at / places, place = at - matrix * places, down = place / across;
        const int64_t row = down * PA_G_DOWN, col = (place - down * across) * PA_G_PART;
        const pa_gemm_tile_origin origin = pa_gemm_origin_of<PA_G_SIDE, PA_G_SIDE>(g, matrix);
        pa_gemm_tiny_block block(g, origin, row, col);
        if (vectors.b && vectors.a) block.add_all<true, true>(g);
        else if (vectors.b) block.add_all<false, true>(g);
        else block.add_all<false, false>(g);
        block.store(g, origin.c + row * g->rcs + col * g->ccs, vectors.c, pa_gemm_results(g, origin, row, col));
    }
}

#endif
