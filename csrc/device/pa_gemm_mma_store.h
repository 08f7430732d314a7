/* pa_gemm_mma_store.h: stores tensor cores' sums in registers to C: of halves by way of shared memory, of float64. */
#ifndef PA_GEMM_MMA_STORE_H
#define PA_GEMM_MMA_STORE_H

#if PA_M_HALF_C
/* A warp's sums go to C by way of shared memory, some columns at a time, so that stores are coalesced. They are halves
   there, or floats where an epilogue takes them: there it is a short loop, and reads its arrays by vectors, too. */
#ifdef PA_GEMM_EPILOGUE
typedef float pa_mma_staged;
#define PA_MMA_STAGED(x) (x)
#else
typedef PA_C pa_mma_staged;
#define PA_MMA_STAGED(x) ((PA_C)PA_STORE(x))
#endif
enum {
    PA_M_LINE = (PA_M_WARP_COLUMNS < 128 ? PA_M_WARP_COLUMNS : 128) * 2, /* bytes */
    PA_M_PART = PA_M_LINE / sizeof(pa_mma_staged),                       /* columns */
    PA_M_CHUNKS = PA_M_LINE / 16,
    PA_M_STAGED = PA_M_WORKERS / 32 * PA_M_WARP_ROWS * PA_M_LINE /* bytes of all warps */
};
/* The byte of a row's column in shared memory, whose chunks of 16 bytes are swizzled. */
PA_FN int pa_mma_staged_at(int row, int col)
{
    const int at = col * (int)sizeof(pa_mma_staged);
    return row * PA_M_LINE + ((at / 16 ^ row) & PA_M_CHUNKS - 1) * 16 + at % 16;
}
/* The warp's part of C begins at `c`; rows x columns of it are inside. */
PA_FN void pa_mma_store_part(const pa_gemm_grid *g, char *c, int64_t rows, int64_t columns, int first,
                             const pa_gemm_results &results, const unsigned char *memory)
{
    enum { ACROSS = PA_M_PART / 8 };
    struct alignas(16) eight { PA_C v[8]; };
    union { uint4 chunks[sizeof(pa_mma_staged) / 2]; pa_mma_staged v[8]; } x;
    const int lane = (int)threadIdx.x % 32, high = rows < PA_M_WARP_ROWS ? (int)rows : PA_M_WARP_ROWS;
    if (g->ccs == 2 && (((uint64_t)c | (uint64_t)g->rcs) & 15) == 0) {
        const int col = lane % ACROSS * 8, n = columns - col < 8 ? (int)(columns - col) : 8;
#pragma unroll (PA_GEMM_ANYWHERE ? 4 : 1)
        for (int row = lane / ACROSS; row < high; row += 32 / ACROSS) {
#pragma unroll
            for (int k = 0; k < (int)sizeof(pa_mma_staged) / 2; ++k)
                x.chunks[k] = *(const uint4 *)(memory + pa_mma_staged_at(row, col + k * 4));
            PA_C *to = (PA_C *)(c + row * g->rcs + col * 2);
            eight y;
            if (n > 0) results.several<8>(row, first + col, n, x.v, y.v);
            if (n == 8) *(eight *)to = y;
            else
#pragma unroll
                for (int e = 0; e < 8; ++e)
                    if (e < n) to[e] = y.v[e];
        }
        return;
    }
#pragma unroll 2
    for (int row = 0; row < high; ++row)
#pragma unroll 1
        for (int col = lane; col < PA_M_PART && col < columns; col += 32) {
            x.v[0] = *(const pa_mma_staged *)(memory + pa_mma_staged_at(row, col));
            results.several<1>(row, first + col, 1, x.v, (PA_C *)(c + row * g->rcs + col * g->ccs));
        }
}
PA_FN void pa_mma_store(const pa_gemm_grid *g, char *c, int64_t rows, int64_t columns, const pa_mma_accumulators &sum,
                        const pa_gemm_results &results, unsigned char *memory)
{
    const int lane = (int)threadIdx.x % 32;
    memory += pa_mma_thread() / 32 * (PA_M_WARP_ROWS * PA_M_LINE);
#pragma unroll
    for (int part = 0; part < PA_M_WARP_COLUMNS; part += PA_M_PART) {
#pragma unroll
        for (int i = 0; i < PA_M_WARP_ROWS / 16; ++i)
#pragma unroll
            for (int j = 0; j < PA_M_PART / 8; ++j)
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    struct alignas(2 * sizeof(pa_mma_staged)) pair { pa_mma_staged v[2]; };
                    const int row = i * 16 + h * 8 + lane / 4;
                    const float *x = &sum.v[i][part / 8 + j][2 * h];
                    *(pair *)(memory + pa_mma_staged_at(row, j * 8 + lane % 4 * 2)) =
                        {{PA_MMA_STAGED(x[0]), PA_MMA_STAGED(x[1])}};
                }
        __syncwarp();
        pa_mma_store_part(g, c + part * g->ccs, rows, columns - part, part, results, memory);
        __syncwarp();
    }
}
#else
PA_FN void pa_mma_store(const pa_gemm_grid *g, char *c, int64_t rows, int64_t columns, const pa_mma_accumulators &sum,
                        const pa_gemm_results &results, unsigned char *)
{
    const int lane = (int)threadIdx.x % 32;
    const bool vectorized = g->ccs == 8 && (((uint64_t)c | (uint64_t)g->rcs) & 15) == 0;
#pragma unroll
    for (int i = 0; i < PA_M_WARP_ROWS / 16; ++i)
#pragma unroll
        for (int j = 0; j < PA_M_WARP_COLUMNS / 8; ++j)
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                const int row = i * 16 + h * 8 + lane / 4, col = j * 8 + lane % 4 * 2;
                char *p = c + row * g->rcs + col * g->ccs;
                const double *x = &sum.v[i][j][2 * h];
                if (row >= rows || col >= columns) continue;
                const double low = results(row, col, x[0]);
                if (col + 1 >= columns) *(double *)p = low;
                else if (vectorized) *(double2 *)p = make_double2(low, results(row, col + 1, x[1]));
                else *(double *)p = low, *(double *)(p + g->ccs) = results(row, col + 1, x[1]);
            }
}
#endif
#endif
