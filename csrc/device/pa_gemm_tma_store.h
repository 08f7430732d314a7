/* pa_gemm_tma_store.h: results of two bytes on sm_90, from shared memory to C by bulk tensor copies, so that warps go
   on to the next tile while their results are stored. A warpgroup leaves parts of its rows, PA_M_PART columns wide, in
   two buffers in turn. A warp for each warpgroup, of those that don't multiply, describes C and starts the copies: that
   takes as long as to leave a part. Barriers go between them: `full` when all warps of a warpgroup have left their rows
   of a part, `empty` when a copy has read it. Parts that don't fit are stored without bulk copies. */
#ifndef PA_GEMM_TMA_STORE_H
#define PA_GEMM_TMA_STORE_H

static_assert(PA_M_LINE == 128, "lines of 128 bytes, as swizzled");
enum {
    PA_TMA_GROUPS = PA_M_WORKERS / 128, /* warpgroups */
    PA_TMA_GROUP_ROWS = 4 * PA_M_WARP_ROWS,
    PA_TMA_PARTS = PA_M_WARP_COLUMNS / PA_M_PART
};
static_assert(PA_TMA_GROUPS <= 2, "a warp for each, beside those that copy A and B");

/* The buffers of a warpgroup, and the use that is next. */
struct pa_tma_result_buffers {
    const pa_tma_block &o;
    int group;
    unsigned use;
    bool fits; /* bulk copies can store C */

    __device__ inline pa_tma_result_buffers(const pa_tma_block &block, int number) : o(block)
    {
        group = number, use = 0, fits = pa_tma_fits_results(o.g);
    }
    __device__ inline unsigned at(void) const { return use % PA_M_BUFFERS; }
    __device__ inline unsigned parity(void) const { return use / PA_M_BUFFERS & 1; }
    __device__ inline unsigned barrier(int which, unsigned buffer) const
    {
        return o.base + PA_TMA_RESULTS + ((which * PA_TMA_GROUPS + group) * PA_M_BUFFERS + buffer) * 8;
    }
    __device__ inline unsigned full(unsigned buffer) const { return barrier(0, buffer); }
    __device__ inline unsigned empty(unsigned buffer) const { return barrier(1, buffer); }
    __device__ inline void start(void) const
    {
#pragma unroll
        for (int b = 0; b < PA_M_BUFFERS; ++b) pa_mbarrier_init(full(b), 4), pa_mbarrier_init(empty(b), 1);
    }
    /* Bytes in shared memory of a buffer's rows. */
    __device__ inline unsigned rows_at(int warp) const
    {
        return PA_TMA_STAGED + ((group * PA_M_BUFFERS + at()) * 4 + warp) * PA_M_BUFFER;
    }
    /* The warpgroup's first row of a tile. */
    __device__ inline int64_t row(const pa_gemm_tile_origin &t) const { return t.row + group * PA_TMA_GROUP_ROWS; }
    /* Whether bulk copies store the part of a tile from column `col` on: what is left of C's rows behind the tile's end
       mustn't be written, and an epilogue computes pairs of whole parts only. */
    __device__ inline bool stores(const pa_gemm_tile_origin &t, int64_t col) const
    {
        const int64_t end = pa_gemm_end(o.g, t);
        const bool whole = end - row(t) >= PA_TMA_GROUP_ROWS;
#if PA_GEMM_ANYWHERE
        return fits && (whole || end == o.g->m);
#else
        return fits && whole && o.g->n - col >= PA_M_PART && pa_gemm_results(o.g, t, row(t), col).are_vectors<2>();
#endif
    }
};

/* What pa_mma_store asks a warp of a warpgroup. */
struct pa_tma_bulk_store {
    pa_tma_result_buffers &buffers;
    const pa_gemm_tile_origin &t;

    __device__ inline unsigned char *buffer(void) const
    {
        pa_mbarrier_wait(buffers.empty(buffers.at()), buffers.parity() ^ 1);
        return buffers.o.memory + buffers.rows_at(pa_mma_thread() % 128 / 32);
    }
    __device__ inline bool store(int part) const
    {
        if (!buffers.stores(t, t.col + part)) return false;
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncwarp();
        if (threadIdx.x % 32 == 0) pa_mbarrier_arrive(buffers.full(buffers.at()));
        ++buffers.use;
        return true;
    }
};

/* Starts the copies of all parts of a warpgroup. By one thread. */
PA_FN void pa_tma_store_parts(pa_tma_result_buffers buffers, const pa_tensor_map *map)
{
    const pa_tma_block &o = buffers.o;
    for (unsigned tile = o.first_tile(); tile < o.tiles; tile += o.tile_step()) {
        const pa_gemm_tile_origin t = o.origin(tile);
        const int row = (int)buffers.row(t);
        int index[PA_GEMM_BATCHES];
#pragma unroll
        for (int d = 0; d < PA_GEMM_BATCHES; ++d) index[d] = o.g->batch_c[d] ? (int)t.index[d] : 0;
        const unsigned before = buffers.use;
#pragma unroll 1
        for (int part = 0; part < PA_TMA_PARTS; ++part) {
            const int col = (int)t.col + part * PA_M_PART;
            if (!buffers.stores(t, col)) continue;
            const unsigned buffer = buffers.at();
            pa_mbarrier_wait(buffers.full(buffer), buffers.parity());
            if (row < o.g->m && col < o.g->n) pa_tma_store(map, col, row, o.base + buffers.rows_at(0), index);
            pa_tma_commit_stores();
            if (buffers.use++ == before) continue;
            pa_tma_wait_stores<1>();
            pa_mbarrier_arrive(buffers.empty((buffer + PA_M_BUFFERS - 1) % PA_M_BUFFERS));
        }
        if (buffers.use == before) continue;
        pa_tma_wait_stores<0>();
        pa_mbarrier_arrive(buffers.empty((buffers.use - 1) % PA_M_BUFFERS));
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
    if (threadIdx.x % 32 == 0) pa_tma_store_parts(pa_tma_result_buffers(o, group), &pa_tma_maps[slot]);
    return slot;
}
#endif
