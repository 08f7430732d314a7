/* pa_gemm_amd.h: C = A B by the matrix instructions of AMD GPUs (pa_matrix_amd.h), for any strides, batches and tails:
   float16 and bfloat16 with sums in float32, and on gfx942 float32 and float64. In debug mode, and on targets that the
   tile isn't for, pa_gemm_mma is the pa_gemm of pa_gemm_gpu.h, same macros. Included with the tile: PA_M_ROWS x
   PA_M_COLUMNS of C by 256 threads, PA_M_WARP_ROWS x PA_M_WARP_COLUMNS by each wave; two slices of PA_M_DEPTH, 64
   bytes, are in (dynamic) LDS, one in use and one to come. Their layout doesn't depend on that of memory: a line of 4
   chunks for each row (or column) of the tile, along the depth, what is outside the operand zeros. Chunks are swizzled,
   so that 8 lines that are read together are in different banks. A thread loads a chunk each of one or two lines into
   registers, by vectors or by elements, while the slice before is multiplied; what lies across the depth is turned when
   it is stored to LDS. So an element of C doesn't depend on strides. */
#ifndef PA_GEMM_AMD_H
#define PA_GEMM_AMD_H
#include "pa_base.h"
#include "pa_matrix_amd.h"

#define PA_M_WAVES (PA_M_ROWS / PA_M_WARP_ROWS * (PA_M_COLUMNS / PA_M_WARP_COLUMNS))
#if !PA_MATRIX_AMD(PA_BYTES) || PA_M_WAVES * PA_MATRIX_WAVE != 256 || defined(PA_DEBUG_CHECKS)
#include "pa_gemm_gpu.h"
#define PA_M_THREADS PA_G_THREADS
#define PA_M_BLOCKS PA_G_BLOCKS
PA_FN void pa_gemm_mma(const pa_gemm_grid *g, pa_runtime *rt) { pa_gemm(g, rt); }
#else
#include "pa_gemm_tiles.h"
#include "pa_half.h"
#include "pa_gemm_results.h"

#define PA_GEMM_TILE_ROWS PA_M_ROWS
enum {
    PA_M_THREADS = 256,
    PA_M_BLOCKS = 2, /* for HIP waves of a SIMD, at least: with 256 registers sums aren't moved to AGPRs and back */
    PA_M_SIZE = sizeof(PA_T),
    PA_M_CHUNK = 16 / PA_M_SIZE, /* elements */
    PA_M_LINE = 64,              /* bytes */
    PA_M_STEPS = 4 / PA_MATRIX_CHUNKS,
    PA_M_HIGH = PA_M_WARP_ROWS / 16, /* fragments of a wave */
    PA_M_WIDE = PA_M_WARP_COLUMNS / 16,
    PA_M_DOWN = PA_M_ROWS / PA_M_WARP_ROWS, /* waves below each other */
    PA_M_SLICE_A = PA_M_ROWS * PA_M_LINE,
    PA_M_SLICE = PA_M_SLICE_A + PA_M_COLUMNS * PA_M_LINE
};
static_assert(PA_M_DEPTH * PA_M_SIZE == PA_M_LINE && PA_M_STAGES == 2, "the layout of slices");
static_assert(PA_M_ROWS <= 128 && PA_M_COLUMNS <= 128, "one or two lines for each thread");

PA_FN unsigned pa_amd_offset(int line, int chunk) { return line * PA_M_LINE + ((chunk ^ (line >> 1 & 3)) << 4); }

/* A thread's part of the slices of an operand, of which a tile has LINES rows (columns, for B). */
template <int LINES> struct pa_amd_operand {
    enum { PART = LINES * 4 / PA_M_THREADS, ELEMENTS = PART * PA_M_CHUNK }; /* lines, of which it has a chunk each */
    struct alignas(PA_M_SIZE * PART) lines_of_depth { PA_T v[PART]; };
    const char *at;     /* the first element in the next slice */
    int64_t rs, cs;     /* bytes to the next line, and along the depth */
    int line, line_step, chunk;
    int inside;         /* lines of the tile */
    bool along, vectorized, turned; /* turned: loaded line by line of the depth */
    unsigned offset;    /* of the first chunk in a slice */
    union {
        pa_matrix_chunk chunks[PART];
        lines_of_depth lines[PA_M_CHUNK];
        PA_T v[ELEMENTS];
    } next;

    __device__ inline void start(const char *base, int64_t left, int64_t line_stride, int64_t depth_stride)
    {
        const int t = (int)threadIdx.x;
        rs = line_stride, cs = depth_stride, along = pa_gemm_k_major(rs, cs, PA_M_SIZE);
        line = along ? t / 4 : t % (PA_M_THREADS / 4) * PART, line_step = along ? PA_M_THREADS / 4 : 1;
        chunk = along ? t % 4 : t / (PA_M_THREADS / 4);
        inside = left < LINES ? (int)left : LINES;
        offset = pa_amd_offset(line, chunk);
        const uint64_t mask = along ? 15 : alignof(lines_of_depth) - 1;
        vectorized = (along ? cs : rs) == PA_M_SIZE && (((uint64_t)base | (uint64_t)(along ? rs : cs)) & mask) == 0;
        turned = vectorized && !along;
        at = base + line * rs + chunk * PA_M_CHUNK * cs;
    }
    /* Starts to load the next slice, of which `depths` exist, into registers. */
    __device__ inline void load(int64_t depths)
    {
        if (!vectorized || inside < LINES || depths < PA_M_DEPTH) {
            load_some(depths < PA_M_DEPTH ? (int)depths : PA_M_DEPTH);
        } else if (turned) {
#pragma unroll
            for (int e = 0; e < PA_M_CHUNK; ++e) next.lines[e] = *(const lines_of_depth *)(at + e * cs);
        } else {
#pragma unroll
            for (int i = 0; i < PART; ++i) next.chunks[i] = *(const pa_matrix_chunk *)(at + i * line_step * rs);
        }
        at += PA_M_DEPTH * cs;
    }
    /* The same where some of it is outside, which are zeros, or can't be loaded by vectors. */
    __device__ inline void load_some(int depths)
    {
        const int n = depths - chunk * PA_M_CHUNK; /* elements of a chunk that exist */
        int64_t step = cs;
        asm volatile("" : "+s"(step)); /* else its multiples would be kept in registers all the time */
#pragma unroll
        for (int i = 0; i < PART; ++i) next.chunks[i] = 0;
        if (turned) {
#pragma unroll
            for (int e = 0; e < PA_M_CHUNK; ++e) {
                const char *from = at + e * step;
                if (e >= n) continue;
                if (line + PART <= inside) next.lines[e] = *(const lines_of_depth *)from;
                else if (line < inside) next.v[e * PART] = *(const PA_T *)from; /* of two the first */
            }
            return;
        }
#pragma unroll
        for (int i = 0; i < PART; ++i) {
            const char *from = at + i * line_step * rs;
            if (line + i * line_step >= inside) continue;
            if (vectorized && n >= PA_M_CHUNK) {
                next.chunks[i] = *(const pa_matrix_chunk *)from;
                continue;
            }
#pragma unroll
            for (int e = 0; e < PA_M_CHUNK; ++e)
                if (e < n) next.v[i * PA_M_CHUNK + e] = *(const PA_T *)(from + e * step);
        }
    }
    __device__ inline void store(unsigned char *slice) const
    {
#pragma unroll
        for (int i = 0; i < PART; ++i) {
            union { pa_matrix_chunk all; PA_T v[PA_M_CHUNK]; } x;
            x.all = next.chunks[i];
            if (turned) {
#pragma unroll
                for (int e = 0; e < PA_M_CHUNK; ++e) x.v[e] = next.v[e * PART + i];
            }
            *(pa_matrix_chunk *)(slice + offset + i * line_step * PA_M_LINE) = x.all;
        }
    }
};

/* A lane's part of the 16 lines from `line` on, for step d of the depth. */
PA_FN void pa_amd_read(pa_matrix_fragment &x, const unsigned char *slice, int line, int d, int lane)
{
    const int first = d * PA_MATRIX_CHUNKS + pa_matrix_first_chunk(lane);
#pragma unroll
    for (int n = 0; n < PA_MATRIX_OWN; ++n)
        x.chunks[n] = *(const pa_matrix_chunk *)(slice + pa_amd_offset(line + lane % 16, first + n));
}

struct pa_amd_sums {
    typename pa_matrix_results<PA_ACC>::type v[PA_M_HIGH][PA_M_WIDE];

    __device__ inline void clear()
    {
#pragma unroll
        for (int i = 0; i < PA_M_HIGH; ++i)
#pragma unroll
            for (int j = 0; j < PA_M_WIDE; ++j) v[i][j] = 0;
    }
    /* Adds the products of a slice; the wave's lines begin at `row` and `col`. */
    __device__ inline void add(const unsigned char *slice, int row, int col, int lane)
    {
#pragma unroll
        for (int d = 0; d < PA_M_STEPS; ++d) {
            pa_matrix_fragment x[PA_M_HIGH], y[PA_M_WIDE];
#pragma unroll
            for (int i = 0; i < PA_M_HIGH; ++i) pa_amd_read(x[i], slice, row + i * 16, d, lane);
#pragma unroll
            for (int j = 0; j < PA_M_WIDE; ++j) pa_amd_read(y[j], slice + PA_M_SLICE_A, col + j * 16, d, lane);
#pragma unroll
            for (int i = 0; i < PA_M_HIGH; ++i)
#pragma unroll
                for (int j = 0; j < PA_M_WIDE; ++j) pa_matrix_multiply(PA_T(), v[i][j], x[i], y[j]);
        }
    }
    /* Stores them to C, whose part for the wave begins at `c`; rows x columns of it are inside. */
    __device__ inline void store(const pa_gemm_grid *g, char *c, int64_t rows, int64_t columns, int lane,
                                 const pa_gemm_results &results) const
    {
        c += lane % 16 * g->ccs, columns -= lane % 16;
#pragma unroll
        for (int i = 0; i < PA_M_HIGH; ++i)
#pragma unroll
            for (int e = 0; e < PA_MATRIX_RESULTS; ++e) {
                const int row = i * 16 + pa_matrix_row(PA_ACC(), e, lane);
                char *to = c + row * g->rcs;
                if (row >= rows) continue;
#pragma unroll
                for (int j = 0; j < PA_M_WIDE; ++j)
                    if (j * 16 < columns)
                        *(PA_C *)(to + j * 16 * g->ccs) = results(row, j * 16 + lane % 16, v[i][j][e]);
            }
    }
};

PA_FN void pa_amd_tile(const pa_gemm_grid *g, const pa_gemm_tile_origin &t)
{
    extern __shared__ __align__(16) unsigned char pa_amd_memory[];
    const int wave = __builtin_amdgcn_readfirstlane((int)threadIdx.x / PA_MATRIX_WAVE);
    const int lane = (int)threadIdx.x % PA_MATRIX_WAVE;
    const int row = wave % PA_M_DOWN * PA_M_WARP_ROWS, col = wave / PA_M_DOWN * PA_M_WARP_COLUMNS;
    pa_amd_operand<PA_M_ROWS> a;
    pa_amd_operand<PA_M_COLUMNS> b;
    a.start(t.a + t.row * g->ras, g->m - t.row, g->ras, g->cas);
    b.start(t.b + t.col * g->cbs, g->n - t.col, g->cbs, g->rbs);
    pa_amd_sums sums;
    sums.clear();
    unsigned fill = 0; /* the slice that is filled; the other one is multiplied */
    const int64_t depth = pa_gemm_depth(g, t);
    for (int64_t left = depth + PA_M_DEPTH; left > 0; left -= PA_M_DEPTH) {
        const int64_t ahead = left - PA_M_DEPTH; /* the depth that isn't loaded yet */
        if (ahead > 0) a.load(ahead), b.load(ahead);
        if (left <= depth) sums.add(pa_amd_memory + (fill ^ PA_M_SLICE), row, col, lane);
        if (ahead > 0) a.store(pa_amd_memory + fill), b.store(pa_amd_memory + fill + PA_M_SLICE_A);
        __syncthreads(); /* the next slice is there, and all have read the other one: it may be overwritten */
        fill ^= PA_M_SLICE;
    }
    char *c = t.c + (t.row + row) * g->rcs + (t.col + col) * g->ccs;
    const pa_gemm_results results(g, t, t.row + row, t.col + col);
    sums.store(g, c, pa_gemm_end(g, t) - t.row - row, g->n - t.col - col, lane, results);
}

PA_FN void pa_gemm_mma(const pa_gemm_grid *g, pa_runtime *)
{
    const uint32_t tiles = pa_gemm_tiles<PA_M_ROWS, PA_M_COLUMNS>(g);
    for (uint32_t tile = blockIdx.x; tile < tiles; tile += gridDim.x)
        pa_amd_tile(g, pa_gemm_origin_of<PA_M_ROWS, PA_M_COLUMNS>(g, tile));
}
#endif
#endif
