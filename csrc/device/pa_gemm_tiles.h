/* pa_gemm_tiles.h: common to the matrix products on grids: arguments, the order of tiles, asynchronous copies. With
   PA_GEMM_ENDS there are groups, whose ends, of that type, only the device knows. Those of rows: of A and C, and group
   g is multiplied by matrix g of B; rows behind the last one become 0. A tile never spans two groups: a table has the
   rows of each. With PA_GEMM_GROUPED_DEPTH those of the depth: each gives a matrix of the batch of C. */
#ifndef PA_GEMM_TILES_H
#define PA_GEMM_TILES_H
#include "pa_base.h"

#ifndef PA_GEMM_BATCHES
#define PA_GEMM_BATCHES 1
#endif
#define PA_GEMM_MAX_ADDENDS 2 /* arrays of an epilogue */

#ifndef PA_GEMM_GROUPED_DEPTH
#define PA_GEMM_GROUPED_DEPTH 0
#endif
#if defined(PA_GEMM_ENDS) && !PA_GEMM_GROUPED_DEPTH
#define PA_GEMM_GROUPED_ROWS 1
#else
#define PA_GEMM_GROUPED_ROWS 0
#endif

/* The ends of groups: their first one, bytes between them, how many there are, and the rows of all. */
typedef struct pa_gemm_ends { const char *first; int64_t step, count, rows; } pa_gemm_ends;

#ifdef PA_GEMM_ENDS
/* The end of a group; what is behind the last one is one more. Ends are whatever memory has. */
PA_FN int64_t pa_gemm_group_end(const pa_gemm_ends *g, int64_t group)
{
    if (group < 0) return 0;
    if (group >= g->count) return g->rows;
    const int64_t end = (int64_t)*(const PA_GEMM_ENDS *)(g->first + group * g->step);
    return end < 0 ? 0 : end < g->rows ? end : g->rows;
}
#endif

/* The first row of a tile, the end of its group's rows, and which group it is. */
typedef struct pa_gemm_group_tile { int64_t row, end, group; } pa_gemm_group_tile;

typedef struct pa_gemm_grid {
    int64_t m, n, k;
    const char *a, *b;
    char *c;
    int64_t ras, cas, rbs, cbs, rcs, ccs; /* bytes between rows and columns */
    int64_t batch[PA_GEMM_BATCHES], batch_a[PA_GEMM_BATCHES], batch_b[PA_GEMM_BATCHES], batch_c[PA_GEMM_BATCHES];
    const char *range[3][2];
    const void *more; /* what an epilogue takes besides */
    const char *d[PA_GEMM_MAX_ADDENDS];
    const pa_gemm_group_tile *tiles; /* of groups of rows: `row` of the first one is how many follow */
    pa_gemm_ends ends; /* of groups of the depth */
    int64_t rds[PA_GEMM_MAX_ADDENDS], cds[PA_GEMM_MAX_ADDENDS], batch_d[PA_GEMM_MAX_ADDENDS][PA_GEMM_BATCHES];
} pa_gemm_grid;

/* The number of rows of tiles of a matrix, of all tiles of all batches, less than 2^32; and a tile's origin: the
   matrices of its batch, its first row and column. */
template <int ROWS> PA_FN int64_t pa_gemm_tile_rows(const pa_gemm_grid *g)
{
#if PA_GEMM_GROUPED_ROWS
    return g->tiles->row;
#else
    return (g->m + ROWS - 1) / ROWS;
#endif
}
template <int ROWS, int COLUMNS> PA_FN uint32_t pa_gemm_tiles(const pa_gemm_grid *g)
{
    int64_t tiles = ((g->n + COLUMNS - 1) / COLUMNS) * pa_gemm_tile_rows<ROWS>(g);
#if !PA_GEMM_GROUPED_ROWS
#pragma unroll
    for (int d = 0; d < PA_GEMM_BATCHES; ++d) tiles *= g->batch[d];
#endif
    return (uint32_t)tiles;
}
struct pa_gemm_tile_origin {
    const char *a, *b;
    char *c;
    int64_t row, col;
    int64_t index[PA_GEMM_BATCHES]; /* in the batch */
#ifdef PA_GEMM_ENDS
    int64_t depth; /* of its group, where that begins in the depth of all, and its last row's end */
    int64_t first_depth, end;
#endif
};
/* The end of a tile's rows, those that it stores, and the depth, 0 where nothing is multiplied. */
PA_FN int64_t pa_gemm_end(const pa_gemm_grid *g, const pa_gemm_tile_origin &at)
{
#if PA_GEMM_GROUPED_ROWS
    return at.end;
#else
    return g->m;
#endif
}
PA_FN int64_t pa_gemm_depth(const pa_gemm_grid *g, const pa_gemm_tile_origin &at)
{
#ifdef PA_GEMM_ENDS
    return at.depth;
#else
    return g->k;
#endif
}
template <int ROWS, int COLUMNS> PA_FN pa_gemm_tile_origin pa_gemm_origin_of(const pa_gemm_grid *g, uint32_t tile)
{
    const uint32_t across = (uint32_t)((g->n + COLUMNS - 1) / COLUMNS), down = (uint32_t)pa_gemm_tile_rows<ROWS>(g);
    pa_gemm_tile_origin at = {g->a, g->b, g->c, 0, 0, {0}};
#if PA_GEMM_GROUPED_ROWS
    const bool single = false;
    const uint32_t in_batch = tile;
#else
    const bool single = across * down == 1; /* a division takes as long as a small tile */
    uint32_t rest = single ? tile : tile < across * down ? 0 : tile / (across * down);
    const uint32_t in_batch = tile - rest * across * down;
#pragma unroll
    for (int d = PA_GEMM_BATCHES - 1; d >= 0; --d) {
        const uint32_t i = d ? rest % (uint32_t)g->batch[d] : rest;
        if (d) rest /= (uint32_t)g->batch[d];
        at.index[d] = i;
        at.a += i * g->batch_a[d], at.b += i * g->batch_b[d], at.c += i * g->batch_c[d];
    }
#endif
#if PA_GEMM_GROUPED_DEPTH
    at.first_depth = pa_gemm_group_end(&g->ends, at.index[0] - 1);
    at.depth = pa_gemm_group_end(&g->ends, at.index[0]) - at.first_depth;
    at.depth = at.depth > 0 ? at.depth : 0;
    at.a += at.first_depth * g->cas, at.b += at.first_depth * g->rbs;
#endif
    if (single) return at;
    /* tiles in strips of 8 rows: those that run at the same time share their operands in the cache */
    const uint32_t strip = down > 8 ? in_batch / (8 * across) : 0, high = down - 8 * strip < 8 ? down - 8 * strip : 8;
    const uint32_t in_strip = in_batch - strip * 8 * across;
    const uint32_t col = high == 8 ? in_strip / 8 : in_strip / high, row = 8 * strip + in_strip - col * high;
    at.row = (int64_t)row * ROWS, at.col = (int64_t)col * COLUMNS;
#if PA_GEMM_GROUPED_ROWS
    const pa_gemm_group_tile t = g->tiles[1 + row];
    const bool multiplies = t.group < g->batch[0];
    at.row = t.row, at.end = t.end, at.depth = multiplies ? g->k : 0;
    at.index[0] = multiplies ? t.group : 0, at.b += at.index[0] * g->batch_b[0];
#endif
    return at;
}

/* Whether an operand's neighbours in memory, of `size` bytes, are along the depth, whose stride is `cs`. */
PA_FN bool pa_gemm_k_major(int64_t rs, int64_t cs, int64_t size)
{
    if (cs == size || rs == size) return cs == size;
    return (cs < 0 ? -cs : cs) <= (rs < 0 ? -rs : rs);
}

/* Calls a function for the layouts of A and B: whether their neighbours are along the depth. */
template <bool VALUE> struct pa_gemm_constant { enum { value = VALUE }; };
template <class Call> PA_FN void pa_gemm_by_layouts(bool k_major_a, bool k_major_b, const Call &call)
{
    if (k_major_a && k_major_b) call(pa_gemm_constant<true>(), pa_gemm_constant<true>());
    else if (k_major_a) call(pa_gemm_constant<true>(), pa_gemm_constant<false>());
    else if (k_major_b) call(pa_gemm_constant<false>(), pa_gemm_constant<true>());
    else call(pa_gemm_constant<false>(), pa_gemm_constant<false>());
}

/* cp.async groups: commit one, and wait for all but the last N. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
PA_FN void pa_cp_async_commit(void) { asm volatile("cp.async.commit_group;" ::); }
template <int N> PA_FN void pa_cp_async_wait(void) { asm volatile("cp.async.wait_group %0;" ::"n"(N)); }
#endif

#endif
