/* pa_gemm_results.h: what the matrix products on grids store, from sums in registers: converted to the type of C, or by
   an epilogue, which also reads other arrays of C's shape. Included with PA_ACC, PA_STORE and PA_C as the products are.
   With an epilogue there are PA_GEMM_ADDENDS, the number of its arrays, 0 to 2, and

       PA_GEMM_EPILOGUE(more, sum, d)   the element of C from the sum and `d`, elements of these arrays */
#ifndef PA_GEMM_RESULTS_H
#define PA_GEMM_RESULTS_H
#include "pa_gemm_tiles.h"

#ifndef PA_C
#define PA_C PA_T
#endif
#ifndef PA_STORE
#define PA_STORE(x) (x)
#endif
#ifdef PA_GEMM_EPILOGUE
#define PA_GEMM_ANYWHERE 0 /* whether results can be computed outside of C, too */
#else
#define PA_GEMM_ANYWHERE 1
#endif

/* Elements of C by their row and column, counted from a place in a tile. */
struct pa_gemm_results {
#ifdef PA_GEMM_EPILOGUE
    const pa_gemm_grid *g;
    const char *d[PA_GEMM_MAX_ADDENDS];

    __device__ inline explicit pa_gemm_results(const pa_gemm_grid *grid) : g(grid) {} /* nowhere yet */
    __device__ inline pa_gemm_results(const pa_gemm_grid *grid, const pa_gemm_tile_origin &t, int64_t row, int64_t col)
    {
        g = grid;
#pragma unroll
        for (int k = 0; k < PA_GEMM_ADDENDS; ++k) {
            d[k] = g->d[k] + row * g->rds[k] + col * g->cds[k];
#pragma unroll
            for (int b = 0; b < PA_GEMM_BATCHES; ++b) d[k] += t.index[b] * g->batch_d[k][b];
        }
    }
    /* The element must be inside. */
    template <class Sum> __device__ inline PA_C operator()(int64_t row, int64_t col, Sum sum) const
    {
        PA_C values[PA_GEMM_MAX_ADDENDS];
#pragma unroll
        for (int k = 0; k < PA_GEMM_ADDENDS; ++k)
            values[k] = *(const PA_C *)(d[k] + row * g->rds[k] + col * g->cds[k]);
        return PA_GEMM_EPILOGUE(g->more, sum, values);
    }
    /* Goes on by rows and columns. */
    __device__ inline void move(int64_t rows, int64_t cols)
    {
#pragma unroll
        for (int k = 0; k < PA_GEMM_ADDENDS; ++k) d[k] += rows * g->rds[k] + cols * g->cds[k];
    }
    /* Neighbours along a row, of the arrays; and whether there are such vectors from the place on, in each row. They
       are kept as words: compilers take the upper half of a word as a float32 by one instruction, but of two elements
       of 16 bits by three. */
    template <int N> struct neighbours {
        struct alignas(sizeof(PA_C) * N) vector { uint32_t words[sizeof(PA_C) * N / 4]; } x[PA_GEMM_MAX_ADDENDS];

        __device__ inline PA_C element(int k, int e) const
        {
            PA_C found;
            if (sizeof(PA_C) < 4) {
                const uint32_t word = x[k].words[e * sizeof(PA_C) / 4] >> e * sizeof(PA_C) % 4 * 8;
                memcpy(&found, &word, sizeof(PA_C) < 4 ? sizeof(PA_C) : 4);
            } else memcpy(&found, &x[k].words[e * sizeof(PA_C) / 4], sizeof(PA_C));
            return found;
        }
    };
    template <int N> __device__ inline bool are_vectors() const
    {
        bool all = true;
#pragma unroll
        for (int k = 0; k < PA_GEMM_ADDENDS; ++k)
            all = all && g->cds[k] == sizeof(PA_C) && ((uint64_t)d[k] | (uint64_t)g->rds[k]) % (sizeof(PA_C) * N) == 0;
        return all;
    }
    /* Whether there are pairs from all even columns on. */
    __device__ static inline bool have_pairs(const pa_gemm_grid *g)
    {
        bool all = true;
#pragma unroll
        for (int k = 0; k < PA_GEMM_ADDENDS; ++k) {
            uint64_t bits = (uint64_t)g->d[k] | (uint64_t)g->rds[k];
#pragma unroll
            for (int b = 0; b < PA_GEMM_BATCHES; ++b) bits |= (uint64_t)g->batch_d[k][b];
            all = all && g->cds[k] == sizeof(PA_C) && bits % (sizeof(PA_C) * 2) == 0;
        }
        return all;
    }
    /* Whether all rows of a matrix of array `k` are the same one, which is aligned to 16 bytes. */
    __device__ static inline bool have_shared_row(const pa_gemm_grid *g, int k)
    {
        uint64_t bits = (uint64_t)g->d[k];
#pragma unroll
        for (int b = 0; b < PA_GEMM_BATCHES; ++b) bits |= (uint64_t)g->batch_d[k][b];
        return k < PA_GEMM_ADDENDS && !g->rds[k] && g->cds[k] == sizeof(PA_C) && bits % 16 == 0;
    }
    /* Of array `k`. */
    template <int N> __device__ inline typename neighbours<N>::vector load(int k, int col) const
    {
        return *(const typename neighbours<N>::vector *)(d[k] + col * (int)sizeof(PA_C));
    }
    template <int N, class Sum>
    __device__ inline void compute(const Sum *sums, const neighbours<N> &addends, PA_C *to) const
    {
#pragma unroll
        for (int e = 0; e < N; ++e) {
            const PA_C values[PA_GEMM_MAX_ADDENDS] = {addends.element(0, e), addends.element(1, e)};
            to[e] = PA_GEMM_EPILOGUE(g->more, sums[e], values);
        }
    }
#else
    __device__ inline explicit pa_gemm_results(const pa_gemm_grid *) {}
    __device__ inline pa_gemm_results(const pa_gemm_grid *, const pa_gemm_tile_origin &, int64_t, int64_t) {}
    template <class Sum> __device__ inline PA_C operator()(int64_t, int64_t, Sum sum) const
    {
        return (PA_C)PA_STORE(sum);
    }
    __device__ inline void move(int64_t, int64_t) {}
    __device__ static inline bool have_pairs(const pa_gemm_grid *) { return true; }
    __device__ static inline bool have_shared_row(const pa_gemm_grid *, int) { return false; }
    template <int N> struct neighbours {};
    template <int N, class Sum> __device__ inline void compute(const Sum *sums, const neighbours<N> &, PA_C *to) const
    {
#pragma unroll
        for (int e = 0; e < N; ++e) to[e] = (PA_C)PA_STORE(sums[e]);
    }
#endif
};
#endif
