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
    const int at = col * (int)sizeof(pa_mma_staged), chunk = at / 16;
    /* a lane reads one chunk, or of floats two beside each other: then the first ones of eight lanes are in one half */
    const int spread = sizeof(pa_mma_staged) == 4 ? chunk ^ chunk >> 3 : chunk;
    return row * PA_M_LINE + ((spread ^ row) & PA_M_CHUNKS - 1) * 16 + at % 16;
}
struct alignas(16) pa_mma_stored { PA_C v[8]; };
union pa_mma_eight {
    uint4 chunks[sizeof(pa_mma_staged) / 2];
    pa_mma_staged v[8];
    __device__ inline void read(const unsigned char *memory, int row, int col)
    {
#pragma unroll
        for (int k = 0; k < (int)sizeof(pa_mma_staged) / 2; ++k)
            chunks[k] = *(const uint4 *)(memory + pa_mma_staged_at(row, col + k * 4));
    }
};

/* A part of a warp's columns, of whose rows and columns `high` and `wide` are inside C. By eights, if its lines and
   those of an epilogue's arrays are aligned; each lane has eight columns of some rows. */
struct pa_mma_part {
    enum {
        ACROSS = PA_M_PART / 8,
        STEP = 32 / ACROSS,
        ROWS = PA_M_WARP_ROWS / STEP,    /* of a lane */
        TOGETHER = ROWS < 4 ? ROWS : 4 /* that are loaded and computed at once */
    };
    char *c;
    int high, wide, first; /* the first column, counted as `results` does */
    bool by_eights;

    __device__ inline pa_mma_part(const pa_gemm_grid *g, char *at, int64_t rows, int64_t columns, int part,
                                  const pa_gemm_results &results)
    {
        c = at + part * g->ccs, first = part;
        high = rows < PA_M_WARP_ROWS ? rows > 0 ? (int)rows : 0 : PA_M_WARP_ROWS;
        wide = columns - part < PA_M_PART ? columns > part ? (int)(columns - part) : 0 : PA_M_PART;
        by_eights = g->ccs == 2 && (((uint64_t)c | (uint64_t)g->rcs) & 15) == 0 && results.are_vectors<8>(0, first);
    }
    __device__ static inline int lane(void) { return (int)threadIdx.x % 32; }
    __device__ static inline int row(int r) { return lane() / ACROSS + r * STEP; }
    __device__ static inline int col(void) { return lane() % ACROSS * 8; }
    __device__ inline bool has_eight(int r) const { return by_eights && row(r) < high && col() + 8 <= wide; }
};
/* What a lane needs of an epilogue's arrays for rows from number `from` on. */
struct pa_mma_addends {
    pa_gemm_results::neighbours<8> v[pa_mma_part::TOGETHER];
    __device__ inline void load(const pa_mma_part &p, const pa_gemm_results &results, int from)
    {
#pragma unroll
        for (int r = 0; r < pa_mma_part::TOGETHER; ++r)
            if (p.has_eight(from + r)) v[r] = results.load<8>(p.row(from + r), p.first + p.col());
    }
};
/* `addends` are those of the first rows, loaded ahead. */
PA_FN void pa_mma_store_part(const pa_gemm_grid *g, const pa_mma_part &p, pa_mma_addends &addends,
                             const pa_gemm_results &results, const unsigned char *memory)
{
    char *to = p.c + p.row(0) * g->rcs + p.col() * 2;
#pragma unroll 1
    for (int from = 0; from < pa_mma_part::ROWS; from += pa_mma_part::TOGETHER) {
        if (from) addends.load(p, results, from);
#pragma unroll
        for (int r = from; r < from + pa_mma_part::TOGETHER; ++r, to += pa_mma_part::STEP * g->rcs)
            if (p.has_eight(r)) {
                pa_mma_eight x;
                pa_mma_stored y;
                x.read(memory, p.row(r), p.col());
                results.compute<8>(x.v, addends.v[r - from], y.v);
                *(pa_mma_stored *)to = y;
            }
    }
    const int whole = p.by_eights ? p.wide & ~7 : 0, rest = p.wide - whole;
#pragma unroll 1
    for (int e = p.lane(); e < rest * p.high; e += 32) {
        const int row = e / rest, col = whole + e % rest;
        const pa_mma_staged x = *(const pa_mma_staged *)(memory + pa_mma_staged_at(row, col));
        *(PA_C *)(p.c + row * g->rcs + col * g->ccs) = results.one(row, p.first + col, x);
    }
}
PA_FN void pa_mma_store(const pa_gemm_grid *g, char *c, int64_t rows, int64_t columns, const pa_mma_accumulators &sum,
                        const pa_gemm_results &results, unsigned char *memory)
{
    const int lane = (int)threadIdx.x % 32;
    memory += pa_mma_thread() / 32 * (PA_M_WARP_ROWS * PA_M_LINE);
#pragma unroll
    for (int part = 0; part < PA_M_WARP_COLUMNS; part += PA_M_PART) {
        const pa_mma_part p(g, c, rows, columns, part, results);
        pa_mma_addends addends;
        addends.load(p, results, 0);
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
        pa_mma_store_part(g, p, addends, results, memory);
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
