/* pa_gemm_mma_store.h: stores tensor cores' sums in registers to C: of halves by way of shared memory, of float64. */
#ifndef PA_GEMM_MMA_STORE_H
#define PA_GEMM_MMA_STORE_H

#if PA_M_HALF_C
/* A warp's sums go to C by way of shared memory, some columns at a time, so that stores are coalesced. They are results
   there, computed in registers from pairs of an epilogue's arrays; but floats, and computed one by one, where a part
   isn't whole or the arrays have no pairs. */
enum {
    PA_M_LINE = (PA_M_WARP_COLUMNS < 64 ? PA_M_WARP_COLUMNS : 64) * 2, /* bytes */
    PA_M_PART = PA_M_LINE / 2,                                         /* columns */
    PA_M_CHUNKS = PA_M_LINE / 16,
    PA_M_BUFFER = PA_M_WARP_ROWS * PA_M_LINE, /* bytes of a warp's part */
#if PA_M_TMA
    PA_M_BUFFERS = 2, /* bulk copies read one while the other is written */
#else
    PA_M_BUFFERS = 1,
#endif
    PA_M_STAGED = PA_M_WORKERS / 32 * PA_M_BUFFERS * PA_M_BUFFER /* bytes of all warps */
};
/* The byte of a row's column in shared memory, whose chunks of 16 bytes are swizzled. */
PA_FN int pa_mma_staged_at(int row, int col)
{
    return row * PA_M_LINE + ((col / 8 ^ row) & PA_M_CHUNKS - 1) * 16 + col * 2 % 16;
}
struct alignas(16) pa_mma_stored { PA_C v[8]; };

/* A part of a warp's columns, of whose rows and columns `high` and `wide` are inside C. By eights, if its lines are
   aligned; each lane has eight columns of some rows. */
struct pa_mma_part {
    enum { ACROSS = PA_M_PART / 8, STEP = 32 / ACROSS, ROWS = PA_M_WARP_ROWS / STEP /* of a lane */ };
    char *c;
    int high, wide, first; /* the first column of the warp's */
    bool by_eights;

    __device__ inline pa_mma_part(const pa_gemm_grid *g, char *at, int64_t rows, int64_t columns, int part)
    {
        c = at + part * g->ccs, first = part;
        high = rows < PA_M_WARP_ROWS ? rows > 0 ? (int)rows : 0 : PA_M_WARP_ROWS;
        wide = columns - part < PA_M_PART ? columns > part ? (int)(columns - part) : 0 : PA_M_PART;
        by_eights = g->ccs == 2 && (((uint64_t)c | (uint64_t)g->rcs) & 15) == 0;
    }
    __device__ static inline int lane(void) { return (int)threadIdx.x % 32; }
    __device__ static inline int row(int r) { return lane() / ACROSS + r * STEP; }
    __device__ static inline int col(void) { return lane() % ACROSS * 8; }
    __device__ inline bool has_eight(int r) const { return by_eights && row(r) < high && col() + 8 <= wide; }
    __device__ inline bool is_whole(void) const { return high == PA_M_WARP_ROWS && wide == PA_M_PART; }
};

/* Of sums in registers, those of row h * 8 + lane / 4 of 16, and of columns lane % 4 * 2 and the next one of 8. */
PA_FN int pa_mma_pair_row(int i, int h) { return i * 16 + h * 8 + pa_mma_part::lane() / 4; }
PA_FN int pa_mma_pair_col(int j) { return j * 8 + pa_mma_part::lane() % 4 * 2; }

#if PA_M_HAS_WGMMA
/* Stores four matrices of 8 x 8 elements of two bytes: lane n names row n % 8 of matrix n / 8, and has a pair of
   each. */
PA_FN void pa_mma_store_matrices(unsigned char *row, const uint32_t *pairs)
{
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                     (unsigned)__cvta_generic_to_shared(row)),
                 "r"(pairs[0]), "r"(pairs[1]), "r"(pairs[2]), "r"(pairs[3])
                 : "memory");
}
/* Loads them: lane n names row n % 8 of matrix n / 8 by its address in shared memory. */
PA_FN void pa_mma_load_matrices(unsigned row, uint32_t *pairs)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(pairs[0]), "=r"(pairs[1]), "=r"(pairs[2]), "=r"(pairs[3]) : "r"(row) : "memory");
}
#endif

/* Results of a lane's pairs of a warp's rows, in upper rows of 16 and in lower ones, with what an epilogue needs of its
   arrays for some eights of columns of 16 rows. */
enum { PA_M_TOGETHER = 4 };
struct pa_mma_addends { pa_gemm_results::neighbours<2> x[PA_M_TOGETHER][2]; };
struct pa_mma_pairs {
    struct alignas(4) pair { PA_C v[2]; };
    pa_gemm_results at[2];
    bool shared[PA_GEMM_MAX_ADDENDS] = {};         /* whether an array's rows are the same one, in shared memory */
    unsigned shared_row[PA_GEMM_MAX_ADDENDS] = {}; /* the lane's part of it */

    __device__ inline explicit pa_mma_pairs(const pa_gemm_grid *g)
        : at{pa_gemm_results(g), pa_gemm_results(g)} {}
    __device__ inline explicit pa_mma_pairs(const pa_gemm_results &results) : at{results, results}
    {
#pragma unroll
        for (int h = 0; h < 2; ++h) at[h].move(pa_mma_pair_row(0, h), pa_mma_pair_col(0));
    }
    /* All rows of array k are the same one, which is in shared memory. */
    __device__ inline void share_row(int k, unsigned row)
    {
        shared[k] = true, shared_row[k] = row + pa_mma_part::lane() / 8 * 16;
    }
    /* Of rows from i * 16 on, and of columns from `col` on. */
    __device__ inline pa_mma_addends load(int i, int col) const
    {
        pa_mma_addends found;
#if !PA_GEMM_ANYWHERE
#pragma unroll
        for (int k = 0; k < PA_GEMM_ADDENDS; ++k) {
#if PA_M_HAS_WGMMA
            if (shared[k]) { /* eight columns of eight rows are a matrix, of which all rows are the same one */
                uint32_t words[PA_M_TOGETHER];
                pa_mma_load_matrices(shared_row[k] + col * 2, words);
#pragma unroll
                for (int j = 0; j < PA_M_TOGETHER; ++j)
                    found.x[j][0].x[k].words[0] = found.x[j][1].x[k].words[0] = words[j];
                continue;
            }
#endif
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                pa_gemm_results here = at[h];
                here.move(i * 16, 0);
#pragma unroll
                for (int j = 0; j < PA_M_TOGETHER; ++j) found.x[j][h].x[k] = here.load<2>(k, col + j * 8);
            }
        }
#endif
        return found;
    }
};

/* Results of a whole part, which begins at `column`, to shared memory. `addends` are those of its first columns, and
   then, if it `goes_on`, of the next part's: each is loaded ahead of its use. */
PA_FN void pa_mma_stage(int column, const pa_mma_accumulators &sum, const pa_mma_pairs &pairs, pa_mma_addends &addends,
                        bool goes_on, unsigned char *memory)
{
    enum { GROUPS = PA_M_PART / 8 / PA_M_TOGETHER, ALL = PA_M_WARP_ROWS / 16 * GROUPS };
#pragma unroll
    for (int n = 0; n < ALL; ++n) {
        const int i = n / GROUPS, first = n % GROUPS * PA_M_TOGETHER, next = n + 1;
        const pa_mma_addends here = addends;
        if (next < ALL) addends = pairs.load(next / GROUPS, column + next % GROUPS * PA_M_TOGETHER * 8);
        else if (goes_on) addends = pairs.load(0, column + PA_M_PART);
        pa_mma_pairs::pair y[PA_M_TOGETHER][2];
#pragma unroll
        for (int j = 0; j < PA_M_TOGETHER; ++j)
#pragma unroll
            for (int h = 0; h < 2; ++h)
                pairs.at[h].compute<2>(&sum.v[i][column / 8 + first + j][2 * h], here.x[j][h], y[j][h].v);
#if PA_M_HAS_WGMMA
#pragma unroll
        for (int j = 0; j < PA_M_TOGETHER; j += 2) {
            const int lane = pa_mma_part::lane();
            pa_mma_store_matrices(memory + pa_mma_staged_at(i * 16 + lane % 16, (first + j + lane / 16) * 8),
                                  (const uint32_t *)y[j]);
        }
#else
#pragma unroll
        for (int j = 0; j < PA_M_TOGETHER; ++j)
#pragma unroll
            for (int h = 0; h < 2; ++h)
                *(pa_mma_pairs::pair *)(memory + pa_mma_staged_at(pa_mma_pair_row(i, h), pa_mma_pair_col(first + j))) =
                    y[j][h];
#endif
    }
}
/* Results in shared memory to C, of what is inside. */
PA_FN void pa_mma_store_staged(const pa_gemm_grid *g, const pa_mma_part &p, const unsigned char *memory)
{
    char *to = p.c + p.row(0) * g->rcs + p.col() * 2;
#pragma unroll
    for (int r = 0; r < pa_mma_part::ROWS; ++r, to += pa_mma_part::STEP * g->rcs)
        if (p.has_eight(r))
            *(pa_mma_stored *)to = *(const pa_mma_stored *)(memory + pa_mma_staged_at(p.row(r), p.col()));
    const int whole = p.by_eights ? p.wide & ~7 : 0, rest = p.wide - whole;
#pragma unroll 1
    for (int e = p.lane(); e < rest * p.high; e += 32) {
        const int row = e / rest, col = whole + e % rest;
        *(PA_C *)(p.c + row * g->rcs + col * g->ccs) = *(const PA_C *)(memory + pa_mma_staged_at(row, col));
    }
}
#if !PA_GEMM_ANYWHERE
/* The same of a part that isn't whole, or where the epilogue's arrays have no pairs: sums are staged as floats, half of
   the columns at a time, and results are computed one by one. */
PA_FN void pa_mma_store_elements(const pa_gemm_grid *g, const pa_mma_part &p, const pa_mma_accumulators &sum,
                                 const pa_gemm_results &results, unsigned char *memory)
{
    enum { WIDE = PA_M_PART / 2 };
    float *staged = (float *)memory;
#pragma unroll
    for (int from = 0; from < PA_M_PART; from += WIDE) {
#pragma unroll
        for (int i = 0; i < PA_M_WARP_ROWS / 16; ++i)
#pragma unroll
            for (int j = 0; j < WIDE / 8; ++j)
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    staged[pa_mma_pair_row(i, e / 2) * WIDE + pa_mma_pair_col(j) + e % 2] =
                        sum.v[i][(p.first + from) / 8 + j][e];
        __syncwarp();
        const int wide = p.wide - from < WIDE ? p.wide - from : WIDE;
#pragma unroll 1
        for (int e = p.lane(); e < wide * p.high; e += 32) {
            const int row = e / wide, col = e % wide;
            *(PA_C *)(p.c + row * g->rcs + (from + col) * g->ccs) =
                results(row, from + col, staged[row * WIDE + col]);
        }
        __syncwarp();
    }
}
#endif
/* Stores a warp's sums, by way of `memory` of its own. */
PA_FN void pa_mma_store_warp(const pa_gemm_grid *g, char *c, int64_t rows, int64_t columns,
                             const pa_mma_accumulators &sum, const pa_gemm_results &results, unsigned char *memory)
{
    const pa_mma_pairs pairs(results);
#pragma unroll
    for (int part = 0; part < PA_M_WARP_COLUMNS; part += PA_M_PART) {
        const pa_mma_part p(g, c, rows, columns, part);
#if !PA_GEMM_ANYWHERE
        pa_gemm_results here = results;
        here.move(0, part);
        if (!p.is_whole() || !here.are_vectors<2>()) {
            pa_mma_store_elements(g, p, sum, here, memory);
            continue;
        }
#endif
        pa_mma_addends addends = pairs.load(0, part);
        pa_mma_stage(part, sum, pairs, addends, false, memory);
        __syncwarp();
        pa_mma_store_staged(g, p, memory);
        __syncwarp();
    }
}
PA_FN void pa_mma_store(const pa_gemm_grid *g, char *c, int64_t rows, int64_t columns, const pa_mma_accumulators &sum,
                        const pa_gemm_results &results, unsigned char *memory)
{
    pa_mma_store_warp(g, c, rows, columns, sum, results, memory + pa_mma_thread() / 32 * PA_M_BUFFER);
}
#else
/* Doubles. PAIRED: a lane has rows 2 n and 2 n + 1 of 16, where the instruction has n and n + 8 (pa_mma_slices). */
template <bool PAIRED>
PA_FN void pa_mma_store(const pa_gemm_grid *g, char *c, int64_t rows, int64_t columns, const pa_mma_accumulators &sum,
                        const pa_gemm_results &results)
{
    const int lane = (int)threadIdx.x % 32;
    const int64_t step = PAIRED ? g->rcs : g->ccs, other = PAIRED ? g->ccs : g->rcs; /* between neighbours of a lane */
    const bool vectorized = step == 8 && (((uint64_t)c | (uint64_t)other) & 15) == 0;
#pragma unroll
    for (int i = 0; i < PA_M_WARP_ROWS / 16; ++i)
#pragma unroll
        for (int j = 0; j < PA_M_WARP_COLUMNS / 8; ++j)
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                const int row = i * 16 + (PAIRED ? lane / 4 * 2 : e * 8 + lane / 4),
                          col = j * 8 + lane % 4 * 2 + PAIRED * e;
                char *p = c + row * g->rcs + col * g->ccs;
                const double *x = sum.v[i][j], low = x[PAIRED ? e : 2 * e], high = x[PAIRED ? 2 + e : 2 * e + 1];
                if (row >= rows || col >= columns) continue;
                const double first = results(row, col, low);
                if (row + PAIRED >= rows || col + !PAIRED >= columns) *(double *)p = first;
                else if (vectorized) *(double2 *)p = make_double2(first, results(row + PAIRED, col + !PAIRED, high));
                else *(double *)p = first, *(double *)(p + step) = results(row + PAIRED, col + !PAIRED, high);
            }
}
#endif
#endif
