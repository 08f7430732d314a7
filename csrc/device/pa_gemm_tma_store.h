/* pa_gemm_tma_store.h: results of two bytes on sm_90, from shared memory to C by bulk tensor copies, so that warps go
   on to the next tile while their results are stored. A warpgroup leaves parts of its rows, PA_M_PART columns wide, in
   two buffers in turn. A warp for each warpgroup, of those that don't multiply, describes C and starts the copies: that
   takes as long as to leave a part. Barriers go between them: `full` when all warps of a warpgroup have left their rows
   of a part, `empty` when a copy has read it. The same warp copies rows of an epilogue's arrays that all rows of a tile
   share, to where `rows` says that they have come. Tiles that don't fit are stored without bulk copies. */
#ifndef PA_GEMM_TMA_STORE_H
#define PA_GEMM_TMA_STORE_H

static_assert(PA_M_LINE == 128, "lines of 128 bytes, as swizzled");
enum {
    PA_TMA_GROUPS = PA_M_WORKERS / 128, /* warpgroups */
    PA_TMA_GROUP_ROWS = 4 * PA_M_WARP_ROWS,
    PA_TMA_PARTS = PA_M_WARP_COLUMNS / PA_M_PART,
    PA_TMA_SHARED_ROWS = PA_TMA_MAPS + PA_TMA_MATRICES * 128, /* offset of shared rows of each warpgroup */
    PA_TMA_SHARED_ROW = PA_M_COLUMNS * 2                      /* bytes */
};
static_assert(PA_TMA_GROUPS <= 2, "a warp for each, beside those that copy A and B");

/* The buffers of a warpgroup, which its parts take in turn. */
struct pa_tma_result_buffers {
    const pa_tma_block &o;
    int group;
    unsigned uses; /* before the tile */
    bool fits;     /* bulk copies can store C, of an epilogue by pairs */
    bool shared[PA_GEMM_MAX_ADDENDS]; /* bulk copies can copy a row of the epilogue's array, which all rows share */

    __device__ inline pa_tma_result_buffers(const pa_tma_block &block, int number) : o(block)
    {
        group = number, uses = 0, fits = pa_tma_fits_results(o.g) && pa_gemm_results::have_pairs(o.g);
#pragma unroll
        for (int k = 0; k < PA_GEMM_MAX_ADDENDS; ++k) shared[k] = pa_gemm_results::have_shared_row(o.g, k);
    }
    /* Of a tile's part: its buffer, and the parity of the buffer's use. */
    __device__ inline unsigned at(int part) const
    {
        return PA_TMA_PARTS % PA_M_BUFFERS ? (uses + part) % PA_M_BUFFERS : part % PA_M_BUFFERS;
    }
    __device__ inline unsigned parity(int part) const { return (uses + part) / PA_M_BUFFERS & 1; }
    __device__ inline unsigned barrier(int which, unsigned buffer) const
    {
        return o.base + PA_TMA_RESULTS + ((which * PA_TMA_GROUPS + group) * PA_M_BUFFERS + buffer) * 8;
    }
    __device__ inline unsigned full(unsigned buffer) const { return barrier(0, buffer); }
    __device__ inline unsigned empty(unsigned buffer) const { return barrier(1, buffer); }
    __device__ inline unsigned rows(void) const { return barrier(2, 0); }
    __device__ inline void start(void) const
    {
#pragma unroll
        for (int b = 0; b < PA_M_BUFFERS; ++b) pa_mbarrier_init(full(b), 4), pa_mbarrier_init(empty(b), 1);
        pa_mbarrier_init(rows(), 1);
    }
    /* Where array k's row is in shared memory. */
    __device__ inline unsigned shared_row(int k) const
    {
        return o.base + PA_TMA_SHARED_ROWS + (group * PA_GEMM_MAX_ADDENDS + k) * PA_TMA_SHARED_ROW;
    }
    /* Waits until the part's buffer has been read. */
    __device__ inline void wait_for_empty(int part) const { pa_mbarrier_wait(empty(at(part)), parity(part) ^ 1); }
    /* Waits for a tile's rows. */
    __device__ inline void wait_for_rows(void) const
    {
        if (shared[0] || shared[1]) pa_mbarrier_wait(rows(), uses / PA_TMA_PARTS & 1);
    }
    /* Bytes in shared memory of a buffer's rows. */
    __device__ inline unsigned rows_at(unsigned buffer, int warp) const
    {
        return PA_TMA_STAGED + ((group * PA_M_BUFFERS + buffer) * 4 + warp) * PA_M_BUFFER;
    }
    /* The warpgroup's first row of a tile. */
    __device__ inline int64_t row(const pa_gemm_tile_origin &t) const { return t.row + group * PA_TMA_GROUP_ROWS; }
    /* Whether bulk copies store its rows of a tile: what is left of C's rows behind the tile's end mustn't be written,
       and an epilogue computes pairs of whole parts only. */
    __device__ inline bool stores(const pa_gemm_tile_origin &t) const
    {
        const int64_t end = pa_gemm_end(o.g, t);
        const bool whole = end - row(t) >= PA_TMA_GROUP_ROWS;
#if PA_GEMM_ANYWHERE
        return fits && (whole || end == o.g->m);
#else
        return fits && whole && o.g->n - t.col >= PA_M_COLUMNS;
#endif
    }
};

/* A warp's results of a tile. */
struct pa_tma_warp_results {
    pa_tma_result_buffers &buffers;
    const pa_gemm_tile_origin &t;
    pa_gemm_results results;
    pa_mma_pairs pairs;
    pa_mma_addends addends; /* of the first columns */
    bool bulk;              /* stored by bulk copies */

    __device__ inline pa_tma_warp_results(pa_tma_result_buffers &into, const pa_gemm_tile_origin &tile)
        : buffers(into), t(tile), results(into.o.g), pairs(into.o.g) {}
    /* What can be done before the sums are there. */
    __device__ inline void prepare(void)
    {
        results = pa_gemm_results(buffers.o.g, t, t.row + pa_tma_warp_row(), t.col), pairs = pa_mma_pairs(results);
        bulk = buffers.stores(t);
        if (!bulk) return;
        buffers.wait_for_rows();
#pragma unroll
        for (int k = 0; k < PA_GEMM_MAX_ADDENDS; ++k)
            if (buffers.shared[k]) pairs.share_row(k, buffers.shared_row(k));
        addends = pairs.load(0, 0);
    }
    __device__ inline void store(const pa_mma_accumulators &sum)
    {
        const pa_tma_block &o = buffers.o;
        const int warp = pa_mma_thread() % 128 / 32;
        if (!bulk) {
            const pa_gemm_grid *g = o.g;
            const int64_t row = t.row + pa_tma_warp_row();
#pragma unroll
            for (int n = 0; n < PA_M_BUFFERS; ++n) buffers.wait_for_empty(n);
            return pa_mma_store_warp(g, t.c + row * g->rcs + t.col * g->ccs, pa_gemm_end(g, t) - row, g->n - t.col, sum,
                                     results, o.memory + buffers.rows_at(0, warp));
        }
#pragma unroll
        for (int n = 0; n < PA_TMA_PARTS; ++n) {
            const unsigned buffer = buffers.at(n);
            buffers.wait_for_empty(n);
            pa_mma_stage(n * PA_M_PART, sum, pairs, addends, n + 1 < PA_TMA_PARTS,
                         o.memory + buffers.rows_at(buffer, warp));
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            __syncwarp();
            if (threadIdx.x % 32 == 0) pa_mbarrier_arrive(buffers.full(buffer));
        }
        buffers.uses += PA_TMA_PARTS;
    }
};

/* Starts the copies of a warpgroup's parts of a tile, and says when buffers have been read. By one thread. */
PA_FN void pa_tma_store_parts(pa_tma_result_buffers &buffers, const pa_gemm_tile_origin &t, const pa_tensor_map *map)
{
    const pa_tma_block &o = buffers.o;
    const int row = (int)buffers.row(t);
    int index[PA_GEMM_BATCHES];
#pragma unroll
    for (int d = 0; d < PA_GEMM_BATCHES; ++d) index[d] = o.g->batch_c[d] ? (int)t.index[d] : 0;
#pragma unroll
    for (int n = 0; n < PA_TMA_PARTS; ++n) {
        const int col = (int)t.col + n * PA_M_PART;
        pa_mbarrier_wait(buffers.full(buffers.at(n)), buffers.parity(n));
        if (row < o.g->m && col < o.g->n)
            pa_tma_store(map, col, row, o.base + buffers.rows_at(buffers.at(n), 0), index);
        pa_tma_wait_stores();
        pa_mbarrier_arrive(buffers.empty(buffers.at(n)));
    }
    buffers.uses += PA_TMA_PARTS;
}
/* A thread copies the rows of an epilogue's arrays that all rows of a tile share, and prefetches others into the
   second-level cache. */
PA_FN void pa_tma_load_addends(const pa_tma_result_buffers &buffers, const pa_gemm_tile_origin &t)
{
#if !PA_GEMM_ANYWHERE
    enum { LINES = (PA_TMA_SHARED_ROW + 127) / 128 };
    const pa_gemm_grid *g = buffers.o.g;
    const pa_gemm_results results(g, t, buffers.row(t), t.col);
    if (buffers.shared[0] || buffers.shared[1])
        pa_mbarrier_expect(buffers.rows(), (buffers.shared[0] + buffers.shared[1]) * PA_TMA_SHARED_ROW);
#pragma unroll
    for (int k = 0; k < PA_GEMM_ADDENDS; ++k) {
        if (buffers.shared[k])
            pa_tma_copy_bytes(buffers.shared_row(k), results.d[k], PA_TMA_SHARED_ROW, buffers.rows());
        else
#pragma unroll 1
            for (int e = 0; e < (g->rds[k] ? (int)PA_TMA_GROUP_ROWS : 1) * LINES; ++e)
                asm volatile("prefetch.global.L2 [%0];" ::"l"(results.d[k] + e / LINES * g->rds[k] + e % LINES * 128));
    }
#endif
}
/* Of all tiles, and loads what an epilogue needs of each. By one thread. */
PA_FN void pa_tma_store_tiles(const pa_tma_block &o, int group, const pa_tensor_map *map)
{
    pa_tma_result_buffers buffers(o, group);
    for (unsigned tile = o.first_tile(); tile < o.tiles; tile += o.tile_step()) {
        const pa_gemm_tile_origin t = o.origin(tile);
        if (!buffers.stores(t)) continue;
        pa_tma_load_addends(buffers, t);
        pa_tma_store_parts(buffers, t, map);
    }
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
/* A warp for a warpgroup: describes C, and one thread starts the copies. The slot of the description. */
PA_FN int pa_tma_store_results(const pa_tma_block &o, int group)
{
    const pa_gemm_grid *g = o.g;
    const int slot = pa_tma_publish_matrix<2>(o, g->c, {g->n, 0, PA_M_PART}, {g->m, g->rcs, PA_TMA_GROUP_ROWS},
                                              g->batch_c, PA_TMA_SWIZZLE_128);
    pa_griddep_wait();
    if (threadIdx.x % 32 == 0) pa_tma_store_tiles(o, group, &pa_tma_maps[slot]);
    return slot;
}
#endif
