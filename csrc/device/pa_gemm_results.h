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
    template <class Sum> __device__ inline PA_C element(Sum sum, PA_C d0, PA_C d1) const
    {
        const PA_C values[PA_GEMM_MAX_ADDENDS] = {d0, d1};
        return PA_GEMM_EPILOGUE(g->more, sum, values);
    }
    /* N neighbours along a row, of which `n` are inside. */
    template <int N, class Sum>
    __device__ inline void several(int64_t row, int64_t col, int n, const Sum *sums, PA_C *to) const
    {
        struct alignas(sizeof(PA_C) * N) vector { PA_C v[N]; } x[PA_GEMM_MAX_ADDENDS];
#pragma unroll
        for (int k = 0; k < PA_GEMM_ADDENDS; ++k) {
            const char *from = d[k] + row * g->rds[k] + col * g->cds[k];
            if (n == N && g->cds[k] == sizeof(PA_C) && ((uint64_t)from & (sizeof(vector) - 1)) == 0)
                x[k] = *(const vector *)from;
            else
#pragma unroll
                for (int e = 0; e < N; ++e)
                    if (e < n) x[k].v[e] = *(const PA_C *)(from + e * g->cds[k]);
        }
        /* without branches where all are inside, so that their instructions are interleaved */
        if (n == N) {
#pragma unroll
            for (int e = 0; e < N; ++e) to[e] = element(sums[e], x[0].v[e], x[1].v[e]);
        } else {
#pragma unroll
            for (int e = 0; e < N; ++e)
                if (e < n) to[e] = element(sums[e], x[0].v[e], x[1].v[e]);
        }
    }
#else
    __device__ inline pa_gemm_results(const pa_gemm_grid *, const pa_gemm_tile_origin &, int64_t, int64_t) {}
    template <class Sum> __device__ inline PA_C operator()(int64_t, int64_t, Sum sum) const
    {
        return (PA_C)PA_STORE(sum);
    }
    template <int N> __device__ inline void several(int64_t, int64_t, int, const PA_C *stored, PA_C *to) const
    {
#pragma unroll
        for (int e = 0; e < N; ++e) to[e] = stored[e];
    }
#endif
};
#endif
