/* pa_gemm_tf32.h: tf32 matrix products (float32 operands rounded to tf32): fragments of A, and the store, which
   those of bytes take, too. Tensor cores read such operands from shared memory only where lines are along the depth.
   A may be otherwise: then its fragments come through registers, and a thread has two rows beside each other, so
   that it loads both at once without bank conflicts. The host sees to it that B is as it must be. */
#ifndef PA_GEMM_TF32_H
#define PA_GEMM_TF32_H

/* The first of a thread's two rows in a tile, and how far the other one is from it. */
template <bool K_MAJOR_A> PA_FN int pa_tf32_row(void)
{
    const int lane = (int)threadIdx.x % 32, warp = pa_mma_thread() / 32, pair = lane / 8;
    if (K_MAJOR_A) return warp * 16 + lane / 4;
    /* the chunk of four rows: those that half a warp reads at once are in different banks */
    return warp / 2 * 32 + (pair % 2 * 4 + pair / 2 + warp % 2 * 2) * 4 + lane / 4 % 2 * 2;
}
template <bool K_MAJOR_A>
PA_FN void pa_tf32_store(const pa_gemm_grid *g, char *c, int row, int64_t rows, int64_t columns,
                         const pa_mma_accumulators &sum, const pa_gemm_results &results)
{
    enum { DOWN = K_MAJOR_A ? 8 : 1 };
    const int first = (int)threadIdx.x % 4 * 2;
    enum { SIZE = sizeof(PA_C) };
    struct alignas(2 * SIZE) pair { PA_C v[2]; };
    const bool along = g->ccs == SIZE && g->rcs % (2 * SIZE) == 0 && (uint64_t)c % (2 * SIZE) == 0,
               down = !K_MAJOR_A && g->rcs == 4 && g->ccs % 8 == 0 && (uint64_t)c % 8 == 0 && row + 1 < rows;
#pragma unroll
    for (int j = 0; j < PA_M_COLUMNS / 8; ++j) {
        const int col = j * 8 + first;
        PA_C x[4];
        char *p = c + row * g->rcs + col * g->ccs;
#pragma unroll
        for (int e = 0; e < 4; ++e)
            if (PA_GEMM_ANYWHERE || (row + e / 2 * DOWN < rows && col + e % 2 < columns))
                x[e] = results(row + e / 2 * DOWN, col + e % 2, sum.v[0][j][e]);
        if (down) {
            if (col < columns) *(pair *)p = {{x[0], x[2]}};
            if (col + 1 < columns) *(pair *)(p + g->ccs) = {{x[1], x[3]}};
            continue;
        }
#pragma unroll
        for (int h = 0; h < 2; ++h, p += DOWN * g->rcs) {
            if (row + h * DOWN >= rows) continue;
            if (along && col + 1 < columns) *(pair *)p = {{x[2 * h], x[2 * h + 1]}};
            else {
                if (col < columns) *(PA_C *)p = x[2 * h];
                if (col + 1 < columns) *(PA_C *)(p + g->ccs) = x[2 * h + 1];
            }
        }
    }
}
/* A warp's part, whose 16 rows begin at `c`. */
PA_FN void pa_mma_store(const pa_gemm_grid *g, char *c, int64_t rows, int64_t columns, const pa_mma_accumulators &sum,
                        const pa_gemm_results &results, unsigned char *)
{
    pa_tf32_store<true>(g, c, (int)threadIdx.x % 32 / 4, rows, columns, sum, results);
}

#if PA_BYTES == 4
/* Fragments of A for a stage, whose lines are along rows. */
struct pa_tf32_fragments {
    uint32_t v[PA_M_STEPS][4];

    __device__ inline void read(const unsigned char *slice)
    {
        const int row = pa_tf32_row<false>(), depth = (int)threadIdx.x % 4, chunk = row / 4 % 8;
        slice += row / 32 * PA_M_PANEL + depth * 128 + row % 4 * 4;
#pragma unroll
        for (int d = 0; d < PA_M_STEPS; ++d) {
            const uint2 low = *(const uint2 *)(slice + d * 1024 + ((chunk ^ depth) << 4)),
                        high = *(const uint2 *)(slice + d * 1024 + 512 + ((chunk ^ (depth + 4)) << 4));
            v[d][0] = low.x, v[d][1] = low.y, v[d][2] = high.x, v[d][3] = high.y;
        }
    }
};
#endif
#endif
