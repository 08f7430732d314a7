/* pa_tile_waves.h: products of tiles of halves in shared memory (pa_tile_operands.h) by the matrix instructions of AMD
   GPUs (pa_matrix_amd.h). Sums are in registers as these leave them: of 16 x 16 elements a lane has some of column
   lane % 16, and a wave has 16 rows, as many times as there are rows for it. Where there are no such instructions,
   threads compute the elements of the same column, every THREADS / 16 rows. */
#ifndef PA_TILE_WAVES_H
#define PA_TILE_WAVES_H
#include "pa_matrix_amd.h"
#include "pa_tile_mma.h"

/* The row of a thread's element in a column; there are ROWS * 16 / THREADS of them. */
template <int THREADS> PA_FN int pa_tile_row(int rank, int row_step)
{
#if PA_MATRIX_AMD(2)
    const int block = row_step / PA_MATRIX_RESULTS * (THREADS / PA_MATRIX_WAVE) + rank / PA_MATRIX_WAVE;
    return block * 16 + pa_matrix_row(float(), row_step % PA_MATRIX_RESULTS, rank % PA_MATRIX_WAVE);
#else
    return rank / 16 + row_step * (THREADS / 16);
#endif
}
/* The place of an operand's element. TURNED: the depth is its first axis. */
template <int LINES, int DEPTH, bool TURNED> PA_FN int pa_tile_line_at(int line, int k)
{
    return TURNED ? pa_tile_at<DEPTH, LINES>(k, line) : pa_tile_at<LINES, DEPTH>(line, k);
}

#if PA_MATRIX_AMD(2)
/* A lane's part of 16 lines, rows of A or columns of B, for one instruction's depth from `k` on; zeros behind DEPTH. */
template <int LINES, int DEPTH, bool TURNED, typename T>
PA_FN void pa_tile_fragment(pa_matrix_fragment &x, const T *operand, int line, int k, int lane)
{
#pragma unroll
    for (int n = 0; n < PA_MATRIX_OWN; ++n) {
        const int from = k + (pa_matrix_first_chunk(lane) + n) * 8;
        union { pa_matrix_chunk all; uint16_t bits[8]; } chunk;
        chunk.all = 0;
        if (DEPTH % (PA_MATRIX_CHUNKS * 8) == 0 || from < DEPTH) {
            if (!TURNED) chunk.all = *(const pa_matrix_chunk *)(operand + pa_tile_at<LINES, DEPTH>(line, from));
            else
#pragma unroll
                for (int e = 0; e < 8; ++e) chunk.bits[e] = operand[pa_tile_at<DEPTH, LINES>(from + e, line)].bits;
        }
        x.chunks[n] = chunk.all;
    }
}
#endif

/* sums += a b. DEPTH: the most of the depth, of which `depth` exist; the rest of operands is zeros. */
template <int ROWS, int COLUMNS, int DEPTH, int THREADS, bool TURNED_A, bool TURNED_B, typename T>
PA_FN void pa_tile_waves(float *sums, const T *a, const T *b, int depth, int rank)
{
#if PA_MATRIX_AMD(2)
    enum {
        WAVES = THREADS / PA_MATRIX_WAVE,
        HIGH = ROWS / (16 * WAVES), /* blocks of a wave */
        WIDE = COLUMNS / 16,
        COUNT = PA_MATRIX_RESULTS,
        STEP = PA_MATRIX_CHUNKS * 8 /* of the depth */
    };
    const int wave = rank / PA_MATRIX_WAVE, lane = rank % PA_MATRIX_WAVE;
    typename pa_matrix_results<float>::type c[HIGH][WIDE];
#pragma unroll
    for (int i = 0; i < HIGH; ++i)
#pragma unroll
        for (int j = 0; j < WIDE; ++j)
#pragma unroll
            for (int e = 0; e < COUNT; ++e) c[i][j][e] = sums[(i * COUNT + e) * WIDE + j];
#pragma unroll
    for (int k = 0; k < DEPTH; k += STEP) {
        if (k >= depth) break;
        pa_matrix_fragment x[HIGH];
#pragma unroll
        for (int i = 0; i < HIGH; ++i)
            pa_tile_fragment<ROWS, DEPTH, TURNED_A>(x[i], a, (i * WAVES + wave) * 16 + lane % 16, k, lane);
#pragma unroll
        for (int j = 0; j < WIDE; ++j) {
            pa_matrix_fragment y;
            pa_tile_fragment<COLUMNS, DEPTH, TURNED_B>(y, b, j * 16 + lane % 16, k, lane);
#pragma unroll
            for (int i = 0; i < HIGH; ++i) pa_matrix_multiply(T(), c[i][j], x[i], y);
        }
    }
#pragma unroll
    for (int i = 0; i < HIGH; ++i)
#pragma unroll
        for (int j = 0; j < WIDE; ++j)
#pragma unroll
            for (int e = 0; e < COUNT; ++e) sums[(i * COUNT + e) * WIDE + j] = c[i][j][e];
#else
    enum { HIGH = ROWS * 16 / THREADS, WIDE = COLUMNS / 16 };
#pragma unroll 1
    for (int k = 0; k < depth; ++k) {
        float y[WIDE];
#pragma unroll
        for (int j = 0; j < WIDE; ++j)
            y[j] = pa_tile_f32(b[pa_tile_line_at<COLUMNS, DEPTH, TURNED_B>(rank % 16 + j * 16, k)]);
#pragma unroll
        for (int i = 0; i < HIGH; ++i) {
            const int row = pa_tile_row<THREADS>(rank, i);
            const float x = pa_tile_f32(a[pa_tile_line_at<ROWS, DEPTH, TURNED_A>(row, k)]);
#pragma unroll
            for (int j = 0; j < WIDE; ++j) sums[i * WIDE + j] = x * y[j] + sums[i * WIDE + j];
        }
    }
#endif
}
#endif
