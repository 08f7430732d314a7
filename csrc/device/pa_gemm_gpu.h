/* pa_gemm_gpu.h: C = A B on a grid, for any strides, batches and tails. Included once per type, with the macros PA_T
   (in memory), PA_ACC (while computing), PA_KIND, and PA_LOAD and PA_STORE where these types differ. A block computes a
   tile of C, slice by slice of A and B through shared memory: several stages are in flight while one is in use. Each
   thread accumulates a rectangle of C in registers, in fragments of 16 bytes. Tiles are numbered through all batches,
   and the grid strides over them. Slices are loaded by vectors of four elements where operands are aligned and
   contiguous, else by single, coalesced elements. Only the loader differs between row-major, transposed, strided and
   misaligned operands. */
#ifndef PA_GEMM_GPU_H
#define PA_GEMM_GPU_H
#define PA_GEMM_TILE_ROWS PA_G_ROWS
#include "pa_check.h"
#include "pa_dependent_launch.h"
#include "pa_gemm_elements.h"

/* Copies from memory to shared memory that pass no register, where the target has them and nothing is converted. */
#if PA_G_CONVERTS
#define PA_G_ASYNC 0
#elif !defined(PA_G_ASYNC)
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800 && PA_BYTES == 4
#define PA_G_ASYNC 1
#else
#define PA_G_ASYNC 0
#endif
#endif

#include "pa_gemm_results.h"

/* PA_G_SMALL: tiles of 64 x 64, for matrices that have too few larger ones for all multiprocessors. PA_G_STACKED: such
   tiles by fewer threads, which read less of shared memory, for stacks that have many. Others are 256 x 128, with
   PA_G_WIDE 128 x 256; 128 x 128 with PA_G_SQUARE, and for types of 8 bytes. A thread computes
   PA_G_TM x PA_G_TN elements, a warp has its 32 threads in PA_G_LANES rows, a tile its warps in PA_G_DOWN rows. */
enum {
    PA_G_SIZE = sizeof(PA_G_ELEMENT),
    PA_G_PART = PA_G_SIZE > 8 ? 1 : PA_G_SIZE > 4 ? 2 : 4, /* adjacent elements of a thread */
#if PA_G_STACKED
    PA_G_THREADS = 128,
    PA_G_TM = 8,
    PA_G_TN = 4,
    PA_G_LANES = 4,
    PA_G_DOWN = 2,
    PA_G_DEPTH = 16,
    PA_G_STAGES = PA_G_ASYNC ? 3 : 2,
    PA_G_BLOCKS = 5,
#else
    PA_G_THREADS = 256,
    PA_G_TM = PA_G_SIZE > 8 || PA_G_SMALL ? 4 : 8,
    PA_G_TN = PA_G_SIZE > 8 || PA_G_SMALL ? 4 : PA_G_SIZE > 4 || PA_G_SQUARE ? 8 : 16,
    PA_G_LANES = PA_G_SIZE > 4 || PA_G_SMALL || PA_G_WIDE || PA_G_SQUARE ? 4 : 8,
    PA_G_DOWN = 4,
    PA_G_DEPTH = PA_G_SMALL && PA_G_SIZE <= 8 ? 16 : 8, /* of a slice */
    PA_G_STAGES = PA_G_ASYNC ? 3 : 2,
    /* of a multiprocessor at the same time */
    PA_G_BLOCKS = PA_G_SIZE > 4 ? 1 : PA_G_SMALL ? 2 + PA_G_ASYNC : PA_G_SQUARE ? 2 : 1,
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
PA_FN bool pa_gemm_inside(const pa_gemm_grid *g, pa_runtime *rt, int which, const char *p, uint32_t tile)
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

#include "pa_gemm_loader.h"

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
    /* In this order compilers of CUDA put the fewest operands of an instruction into the same bank of registers. */
    __device__ inline void multiply(pa_gemm_accumulators *sum) const
    {
#pragma unroll
        for (int j = 0; j < PA_G_TN; ++j)
#pragma unroll
            for (int k = 0; k < PA_G_TM; ++k) {
                const int i = j % 2 ? PA_G_TM - 1 - k : k;
                PA_G_MAC(sum->v[i][j], x[i / PA_G_PART].v[i % PA_G_PART], y[j / PA_G_PART].v[j % PA_G_PART]);
            }
    }
};

/* A sum that is stored. Vectors are stored from adjacent registers. For sums these would be in the banks of their
   operands, so they are moved there, by an instruction with a 0 of which compilers don't know that it is one. */
PA_FN PA_G_ELEMENT pa_gemm_moved(PA_G_ELEMENT x, const pa_gemm_grid *g)
{
#if PA_G_ASYNC && PA_KIND == PA_GEMM_REAL
    asm volatile("xor.b32 %0, %0, %1;" : "+f"(x) : "r"((int)(g->k >> 62)));
#endif
    return x;
}

/* Stores the sums to C, of rows less than `end`; (row, col) is this thread's first element, and `results` counts from
   C's first one. */
PA_FN void pa_gemm_store(const pa_gemm_grid *g, pa_runtime *rt, uint32_t tile, char *c, int64_t row, int64_t end,
                         int64_t col, bool all_inside, const pa_gemm_accumulators *sum, const pa_gemm_results &results)
{
    enum { ABOVE = PA_G_LANES * PA_G_PART, ASIDE = 32 / PA_G_LANES * PA_G_PART };
    const bool vectorized = all_inside && g->ccs == (int64_t)sizeof(PA_C) &&
                      (((uint64_t)(c + col * g->ccs) | (uint64_t)g->rcs) & (alignof(pa_gemm_stored) - 1)) == 0;
#pragma unroll
    for (int i = 0; i < PA_G_TM; ++i) {
        const int64_t r = row + i % PA_G_PART + i / PA_G_PART * ABOVE;
        char *line = c + r * g->rcs;
        if (r < end) {
#pragma unroll
            for (int j = 0; j < PA_G_TN; j += PA_G_PART) {
                const int64_t s = col + j / PA_G_PART * ASIDE;
                if (vectorized && s + PA_G_PART <= g->n) {
                    pa_gemm_stored x;
#pragma unroll
                    for (int e = 0; e < PA_G_PART; ++e) x.v[e] = results(r, s + e, pa_gemm_moved(sum->v[i][j + e], g));
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

enum { PA_G_LINE_A = PA_G_ROWS + PA_G_PAD, PA_G_LINE_B = PA_G_COLUMNS + PA_G_PAD };

/* The first row and column that a tile computes, and its matrices. */
struct pa_gemm_place {
    pa_gemm_tile_origin at;
    int64_t row, col;

    __device__ inline pa_gemm_place(const pa_gemm_grid *g, uint32_t tile)
    {
        at = pa_gemm_origin_of<PA_G_ROWS, PA_G_COLUMNS>(g, tile);
        row = at.row, col = at.col;
#ifndef PA_GEMM_EPILOGUE /* it may read C */
        /* the last tiles move inwards, compute some elements twice: faster than checks for the matrix' end */
#if !PA_GEMM_GROUPED_ROWS
        if (g->m >= PA_G_ROWS && row > g->m - PA_G_ROWS) row = g->m - PA_G_ROWS;
#endif
        if (g->n >= PA_G_COLUMNS && col > g->n - PA_G_COLUMNS) col = g->n - PA_G_COLUMNS;
#endif
    }
};

/* A thread's loads of both operands' slices. */
struct pa_gemm_slices {
    pa_gemm_loader<PA_G_ROWS> a;
    pa_gemm_loader<PA_G_COLUMNS> b;
    int64_t ahead, edge; /* slices of the tile that aren't loaded yet; so many last ones of it aren't all inside */
    int64_t depth; /* of the tile */

    __device__ static inline int64_t count(int64_t depth) { return (depth + PA_G_DEPTH - 1) / PA_G_DEPTH; }
    __device__ inline void start(const pa_gemm_grid *g, uint32_t tile)
    {
        const pa_gemm_place p(g, tile);
        const char *first_a = p.at.a + p.row * g->ras, *first_b = p.at.b + p.col * g->cbs;
        depth = pa_gemm_depth(g, p.at), ahead = count(depth);
        a.start(first_a, g->m - p.row, g->ras, g->cas, g->cas <= g->ras && g->cas >= -g->ras);
        b.start(first_b, g->n - p.col, g->cbs, g->rbs, g->rbs < g->cbs);
        const bool unchecked = a.rows == PA_G_ROWS && b.rows == PA_G_COLUMNS &&
                               PA_G_ALL_INSIDE(0, first_a, PA_G_ROWS, g->ras, depth, g->cas) &&
                               PA_G_ALL_INSIDE(1, first_b, PA_G_COLUMNS, g->cbs, depth, g->rbs);
        edge = unchecked ? depth % PA_G_DEPTH != 0 : ahead;
    }
    /* Whether the next slice is inside; else what it has inside is loaded. */
    __device__ inline bool is_inside(const pa_gemm_grid *g, pa_runtime *rt, uint32_t tile, PA_G_ELEMENT *to_a,
                                     PA_G_ELEMENT *to_b) const
    {
        if (ahead > edge) return true;
        if (ahead <= 0) return false;
        const int64_t depths = depth - (count(depth) - ahead) * PA_G_DEPTH;
        pa_gemm_load_edge(g, rt, 0, tile, &a, depths, g->ras, g->cas, to_a);
        pa_gemm_load_edge(g, rt, 1, tile, &b, depths, g->cbs, g->rbs, to_b);
        return false;
    }
    __device__ inline void next(const pa_gemm_grid *g)
    {
        a.at += PA_G_DEPTH * g->cas, b.at += PA_G_DEPTH * g->rbs, ahead -= 1;
    }
};

/* The thread's first row and column of a tile. */
PA_FN int pa_gemm_thread_row(void)
{
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    return warp % PA_G_DOWN * PA_G_LANES * PA_G_TM + lane / (32 / PA_G_LANES) * PA_G_PART;
}
PA_FN int pa_gemm_thread_col(void)
{
    const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x % 32;
    return warp / PA_G_DOWN * (32 / PA_G_LANES) * PA_G_TN + lane % (32 / PA_G_LANES) * PA_G_PART;
}

PA_FN void pa_gemm_store_tile(const pa_gemm_grid *g, pa_runtime *rt, uint32_t tile, const pa_gemm_accumulators *sum)
{
    const pa_gemm_place p(g, tile);
    const bool all_inside = PA_G_ALL_INSIDE(2, p.at.c, g->m, g->rcs, g->n, g->ccs);
    pa_gemm_store(g, rt, tile, p.at.c, p.row + pa_gemm_thread_row(), pa_gemm_end(g, p.at),
                  p.col + pa_gemm_thread_col(), all_inside, sum, pa_gemm_results(g, p.at, 0, 0));
}
PA_FN void pa_gemm_clear(pa_gemm_accumulators *sum)
{
#pragma unroll
    for (int i = 0; i < PA_G_TM; ++i)
#pragma unroll
        for (int j = 0; j < PA_G_TN; ++j) PA_G_ZERO(sum->v[i][j]);
}

#if PA_G_ASYNC
/* The loads of all tiles of a persistent block. Their slices go through shared memory one after the other, so that a
   tile's first ones arrive while the tile before is computed and stored. */
struct pa_gemm_tile_loads {
    pa_gemm_slices slices;
    int rounds, round; /* tiles of the block, and that of the next slice */

    __device__ static inline uint32_t tile(int round) { return blockIdx.x + round * gridDim.x; }
    __device__ inline pa_gemm_tile_loads(const pa_gemm_grid *g)
    {
        const uint32_t tiles = pa_gemm_tiles<PA_G_ROWS, PA_G_COLUMNS>(g);
        rounds = (int)((tiles - 1 - blockIdx.x) / gridDim.x) + 1, round = 0;
        slices.start(g, blockIdx.x);
#ifdef PA_GEMM_ENDS
        next_tile(g);
#endif
    }
    /* Goes on to the next tile that has slices after the last slice of one. */
    __device__ inline void next_tile(const pa_gemm_grid *g)
    {
#ifdef PA_GEMM_ENDS
#pragma unroll 1
        while (slices.ahead <= 0 && round + 1 < rounds) slices.start(g, tile(++round));
#else
        if (slices.ahead > 0 || round + 1 >= rounds) return;
        round += 1;
        slices.start(g, tile(round));
#endif
    }
    /* Slices of the tile of a round. */
    __device__ inline int64_t count(const pa_gemm_grid *g, int round) const
    {
        return slices.count(pa_gemm_depth(g, pa_gemm_place(g, tile(round)).at));
    }
};
/* The address of shared memory, from a register: compilers would compute it anew for each slice, and its loads would
   wait for that. */
PA_FN unsigned pa_gemm_shared_address(const void *p)
{
    return __shfl_sync(~0u, (unsigned)__cvta_generic_to_shared(p), 0);
}
PA_FN void pa_gemm(const pa_gemm_grid *g, pa_runtime *rt)
{
    __shared__ __align__(16) PA_G_ELEMENT sa[PA_G_STAGES][PA_G_DEPTH * PA_G_LINE_A],
        sb[PA_G_STAGES][PA_G_DEPTH * PA_G_LINE_B];
    if (blockIdx.x >= pa_gemm_tiles<PA_G_ROWS, PA_G_COLUMNS>(g)) return;
    const unsigned to_a = pa_gemm_shared_address(sa), to_b = pa_gemm_shared_address(sb);
    const PA_G_ELEMENT *own_a = (const PA_G_ELEMENT *)__cvta_shared_to_generic(to_a) + pa_gemm_thread_row(),
                       *own_b = (const PA_G_ELEMENT *)__cvta_shared_to_generic(to_b) + pa_gemm_thread_col();
    int stage = 0, fill_stage = 0;
    pa_gemm_fragments parts[2];
    pa_gemm_tile_loads loads(g);
#pragma unroll 1
    for (; fill_stage < PA_G_STAGES - 1; ++fill_stage) {
        if (loads.slices.is_inside(g, rt, loads.tile(loads.round), sa[fill_stage], sb[fill_stage])) {
            pa_gemm_load_async(&loads.slices.a, to_a + fill_stage * sizeof(sa[0]));
            pa_gemm_load_async(&loads.slices.b, to_b + fill_stage * sizeof(sb[0]));
        }
        pa_cp_async_commit();
        loads.slices.next(g);
        loads.next_tile(g);
    }
    pa_cp_async_wait<PA_G_STAGES - 2>();
    __syncthreads();
    parts[0].read(own_a, own_b, 0);
#pragma unroll 1
    for (int round = 0; round < loads.rounds; ++round) {
        pa_gemm_accumulators sum;
        pa_gemm_clear(&sum);
#pragma unroll 1
        for (int64_t left = loads.count(g, round), now; left > 0; left -= now) {
            /* as many as are loaded of one tile and computed of one */
            now = loads.slices.ahead > 0 && loads.slices.ahead < left ? loads.slices.ahead : left;
#pragma unroll 1
            for (int64_t s = now; s > 0; --s) {
                if (loads.slices.is_inside(g, rt, loads.tile(loads.round), sa[fill_stage], sb[fill_stage])) {
                    pa_gemm_load_async(&loads.slices.a, to_a + fill_stage * sizeof(sa[0]));
                    pa_gemm_load_async(&loads.slices.b, to_b + fill_stage * sizeof(sb[0]));
                }
                const PA_G_ELEMENT *at_a = own_a + stage * (PA_G_DEPTH * PA_G_LINE_A),
                                   *at_b = own_b + stage * (PA_G_DEPTH * PA_G_LINE_B);
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
                        parts[0].read(own_a + stage * (PA_G_DEPTH * PA_G_LINE_A),
                                      own_b + stage * (PA_G_DEPTH * PA_G_LINE_B), 0);
                    }
                    parts[d % 2].multiply(&sum);
                }
                loads.slices.next(g);
            }
            loads.next_tile(g);
        }
        if (round == loads.rounds - 1) pa_griddep_launch_dependents();
        pa_gemm_store_tile(g, rt, loads.tile(round), &sum);
    }
}
#else
PA_FN void pa_gemm_tile(const pa_gemm_grid *g, pa_runtime *rt, uint32_t tile)
{
    __shared__ __align__(16) PA_G_ELEMENT sa[PA_G_STAGES][PA_G_DEPTH * PA_G_LINE_A],
        sb[PA_G_STAGES][PA_G_DEPTH * PA_G_LINE_B];
    const int first_row = pa_gemm_thread_row(), first_col = pa_gemm_thread_col();
    int stage = 0, fill_stage = 0;
    pa_gemm_fragments parts[2];
    pa_gemm_slices next;
    pa_gemm_accumulators sum;
    next.start(g, tile);
    pa_gemm_clear(&sum);
    PA_G_ELEMENT next_a[pa_gemm_loader<PA_G_ROWS>::ELEMENTS], next_b[pa_gemm_loader<PA_G_COLUMNS>::ELEMENTS];
    const int64_t depth = next.ahead * PA_G_DEPTH; /* rounded up to slices */
    for (int64_t left = depth + PA_G_DEPTH; left > 0; left -= PA_G_DEPTH) {
        const bool go = next.is_inside(g, rt, tile, sa[fill_stage], sb[fill_stage]);
        if (go) {
            pa_gemm_load(&next.a, next_a);
            pa_gemm_load(&next.b, next_b);
        }
        if (left <= depth) {
#pragma unroll
            for (int d = 0; d < PA_G_DEPTH - 1; ++d) {
                parts[(d + 1) % 2].read(sa[stage] + first_row, sb[stage] + first_col, d + 1);
                parts[d % 2].multiply(&sum);
            }
            stage ^= 1;
        }
        if (go) {
            pa_gemm_store_shared(&next.a, next_a, sa[fill_stage]);
            pa_gemm_store_shared(&next.b, next_b, sb[fill_stage]);
        }
        __syncthreads();
        parts[0].read(sa[stage] + first_row, sb[stage] + first_col, 0);
        if (left <= depth) parts[1].multiply(&sum);
        next.next(g), fill_stage ^= 1;
    }
    pa_gemm_store_tile(g, rt, tile, &sum);
    __syncthreads(); /* before the next tile overwrites the slices */
}
PA_FN void pa_gemm(const pa_gemm_grid *g, pa_runtime *rt)
{
    const uint32_t tiles = pa_gemm_tiles<PA_G_ROWS, PA_G_COLUMNS>(g);
    for (uint32_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) pa_gemm_tile(g, rt, tile);
}
#endif

#endif
