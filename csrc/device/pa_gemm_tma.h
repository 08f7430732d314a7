/* pa_gemm_tma.h: tiles on sm_90 by bulk tensor copies, for operands whose lines are aligned to 16 bytes. The device
   decides, and other operands take the asynchronous copies of the file that includes this one. Two threads copy
   slices ahead, one of each operand, two warpgroups multiply them, and stages of shared memory go round between them
   by barriers in it: `full` when a stage's bytes are there, `empty` when all warps have read it. Blocks are
   persistent and take tiles in turn, so that the next tile is loaded while one is stored: results of two bytes by warps
   of their own (pa_gemm_tma_store.h). The blocks of a cluster (PA_M_CLUSTER of them) have tiles below each other: each
   copies a part of B to all of them. */
#ifndef PA_GEMM_TMA_H
#define PA_GEMM_TMA_H
#include "pa_gemm_bulk_copies.h"

enum {
    PA_TMA_STAGED = PA_M_STAGES * PA_M_SLICE, /* offsets in shared memory: of sums on their way to C, ... */
#if PA_M_HALF_C
    PA_TMA_FULL = PA_TMA_STAGED + PA_M_STAGED,
#else /* sums are stored as they are */
    PA_TMA_FULL = PA_TMA_STAGED,
#endif
    /* slices of a block's first tile that the threads copy which multiply them, of halves */
    PA_TMA_AHEAD = PA_BYTES == 2 && !PA_M_BF16X6 && !PA_GEMM_GROUPED_DEPTH ? PA_M_STAGES : 0,
    PA_TMA_EMPTY = PA_TMA_FULL + PA_M_STAGES * 8,
    PA_TMA_RESULTS = PA_TMA_EMPTY + PA_M_STAGES * 8, /* barriers of results */
    PA_TMA_MAPS = PA_TMA_FULL + 256, /* descriptions on their way to their slots */
    PA_TMA_MATRICES = 4, /* warps with one */
    /* whether sums begin with the first products, so that they needn't be cleared */
    PA_TMA_BEGINS = PA_BYTES <= 2 && !PA_M_FLOAT8 && !PA_M_BF16X6
};
static_assert(!PA_GEMM_GROUPED_DEPTH || PA_BYTES == 2 || PA_BYTES == 8, "slices are cleared behind a group");
static_assert(PA_M_DEPTH * PA_M_SIZE == 128, "a line of 128 bytes, as swizzled");
static_assert(PA_M_STAGES * 16 + 96 <= 256, "room for the barriers");
static_assert(PA_BYTES == 1 || PA_BYTES == 4 || PA_M_COLUMNS / PA_M_CLUSTER >= PA_TMA_LINE, "whole panels of B");

/* A stage's number, and the parity of its use. */
struct pa_tma_stage {
    unsigned at, parity;

    __device__ inline void next()
    {
        if (++at == PA_M_STAGES) at = 0, parity ^= 1;
    }
};

/* What all roles know. */
struct pa_tma_block {
    const pa_gemm_grid *g;
    unsigned char *memory;
    unsigned base; /* its address */
    unsigned tiles;
    int depths; /* slices of a tile that has any */
    unsigned others_empty; /* address of the first `empty` of the cluster's block with the lane's number */
#if PA_M_BF16X6
    int part; /* slices of a part of an operand */
#endif

    __device__ inline pa_tma_block(const pa_gemm_grid *grid, unsigned char *shared)
    {
        g = grid, memory = shared, base = (unsigned)__cvta_generic_to_shared(shared);
        tiles = pa_gemm_tiles<PA_TMA_ROWS, PA_M_COLUMNS>(g);
        depths = (int)((g->k + PA_M_DEPTH - 1) / PA_M_DEPTH);
        others_empty = pa_cluster_address(empty(0), threadIdx.x % PA_M_CLUSTER);
#if PA_M_BF16X6
        part = depths / PA_BF16X6_PARTS, depths = part * PA_BF16X6_PRODUCTS;
#endif
    }
    /* Slices of this tile. */
    __device__ inline int depths_of(const pa_gemm_tile_origin &t) const
    {
#if PA_GEMM_GROUPED_DEPTH
        return (int)((t.depth + PA_M_DEPTH - 1) / PA_M_DEPTH);
#elif PA_GEMM_GROUPED_ROWS
        if (!t.depth) return 0;
#endif
        return depths;
    }
    /* Where slice `s` of an operand begins, A or B, for this tile. */
    template <bool OF_B> __device__ inline int depth_of(const pa_gemm_tile_origin &t, int s) const
    {
#if PA_GEMM_GROUPED_DEPTH
        return (int)t.first_depth + s * PA_M_DEPTH;
#elif PA_M_BF16X6
        s = s % part + pa_bf16x6_part<OF_B>(s / part) * part;
#endif
        return s * PA_M_DEPTH;
    }
    /* The first tile of the block's cluster, and how far the next one is. */
    __device__ inline unsigned first_tile() const { return blockIdx.x / PA_M_CLUSTER; }
    __device__ inline unsigned tile_step() const { return gridDim.x / PA_M_CLUSTER; }
    __device__ inline pa_gemm_tile_origin origin(unsigned tile) const
    {
        pa_gemm_tile_origin t = pa_gemm_origin_of<PA_TMA_ROWS, PA_M_COLUMNS>(g, tile);
        t.row += (int64_t)pa_cluster_rank() * PA_M_ROWS;
        return t;
    }
    /* Called by a warp that has read a stage: says so to all who copy into it, a lane to each block of the cluster. */
    __device__ inline void release(unsigned stage) const
    {
        if (threadIdx.x % 32 < PA_M_CLUSTER) pa_mbarrier_arrive_at(others_empty + stage * 8);
    }
    __device__ inline unsigned full(unsigned stage) const { return base + PA_TMA_FULL + stage * 8; }
    __device__ inline unsigned empty(unsigned stage) const { return base + PA_TMA_EMPTY + stage * 8; }
};

/* Copies all slices of an operand, of which a tile has ROWS rows (columns, for B), to OFFSET in each stage. */
template <int ROWS, int OFFSET>
PA_FN void pa_tma_produce(const pa_tma_block &o, const pa_tensor_map *map, bool k_major, const int64_t *batch)
{
    enum { SHARE = OFFSET ? PA_M_CLUSTER : 1, OWN = ROWS / SHARE, PANELS = OWN / PA_TMA_LINE };
    pa_tma_stage stage = {0, 1};
    const int part = SHARE > 1 ? (int)pa_cluster_rank() : 0; /* of the rows, which this block copies for all */
    for (unsigned tile = o.first_tile(); tile < o.tiles; tile += o.tile_step()) {
        const pa_gemm_tile_origin t = o.origin(tile);
        const int row = (int)(OFFSET ? t.col : t.row) + part * OWN, depths = o.depths_of(t);
        int index[PA_GEMM_BATCHES];
#pragma unroll
        for (int d = 0; d < PA_GEMM_BATCHES; ++d) index[d] = batch[d] ? (int)t.index[d] : 0;
#pragma unroll 1
        for (int s = 0; s < depths; ++s, stage.next()) {
            if (s < PA_TMA_AHEAD && tile == o.first_tile()) continue; /* who multiplies has copied them */
            const unsigned to = o.base + stage.at * PA_M_SLICE + OFFSET, full = o.full(stage.at);
            pa_mbarrier_wait(o.empty(stage.at), stage.parity);
            pa_mbarrier_expect(full, ROWS * 128);
            const int depth = o.template depth_of<OFFSET != 0>(t, s);
            if (k_major)
#pragma unroll
                for (int panel = 0; panel < PA_M_DEPTH / PA_TMA_LINE_ALONG; ++panel)
                    pa_tma_copy<(SHARE > 1)>(to + (panel * ROWS + part * OWN) * PA_M_LINE_ALONG, map, full,
                                             depth + panel * PA_TMA_LINE_ALONG, row, index);
            else
#pragma unroll
                for (int panel = 0; panel < PANELS; ++panel)
                    pa_tma_copy<(SHARE > 1)>(to + (part * PANELS + panel) * PA_M_PANEL, map, full,
                                             row + panel * PA_TMA_LINE, depth, index);
        }
    }
}

/* A warp describes a matrix (pa_tma_describe) in a slot that it takes. */
template <int SIZE>
PA_FN int pa_tma_publish_matrix(const pa_tma_block &o, const char *p, pa_tma_axis x, pa_tma_axis y,
                                const int64_t *batch, int swizzle)
{
    const int lane = (int)threadIdx.x % 32, number = (int)threadIdx.x / 32, offset = PA_TMA_MAPS + number * 128;
    unsigned processor;
    asm("mov.u32 %0, %%smid;" : "=r"(processor));
    /* a processor has one such block at a time: these slots are free, even while blocks of an earlier launch run */
    int slot = lane == 0 ? pa_tma_take_slot((int)(processor * PA_TMA_MATRICES + number) % PA_TMA_SLOTS) : 0;
    if (lane < 16) *(uint64_t *)(o.memory + offset + lane * 8) = 0;
    __syncwarp();
    if (lane == 0) pa_tma_describe<SIZE>(o.base + offset, o.g, p, x, y, batch, swizzle);
    slot = __shfl_sync(~0u, slot, 0);
    pa_tma_publish(&pa_tma_maps[slot], o.base + offset);
    return slot;
}

/* A warp for an operand: describes it, and one thread copies. The slot of the description. */
template <int ROWS, int OFFSET>
PA_FN int pa_tma_operand(const pa_tma_block &o, const char *p, int64_t rows, int64_t rs, int64_t cs,
                         const int64_t *batch)
{
    const bool k_major = cs == PA_M_SIZE;
    const int64_t k = o.g->k;
    const pa_tma_axis x = {k_major ? k : rows, 0, k_major ? (int)PA_TMA_LINE_ALONG : (int)PA_TMA_LINE},
                      y = {k_major ? rows : k, k_major ? rs : cs,
                           k_major ? (OFFSET ? ROWS / PA_M_CLUSTER : ROWS) : (int)PA_M_DEPTH};
    const int slot = pa_tma_publish_matrix<PA_BYTES>(
        o, p, x, y, batch, PA_M_LINE_ALONG == 64 && k_major ? PA_TMA_SWIZZLE_64 : PA_TMA_SWIZZLE_128);
    pa_griddep_wait();
    if (threadIdx.x % 32 == 0) pa_tma_produce<ROWS, OFFSET>(o, &pa_tma_maps[slot], k_major, batch);
    return slot;
}
/* Numbers of a warp that multiplies and of its warpgroup. By a shuffle, which tells the compiler that lanes have the
   same one: what is computed of it is computed once for a warp, as descriptors are, and branches don't diverge. */
PA_FN int pa_tma_warp(void) { return __shfl_sync(~0u, pa_mma_thread() / 32, 0); }
PA_FN int pa_tma_group(void) { return pa_tma_warp() / 4; }
/* A warp's first row and column in a tile. */
PA_FN int pa_tma_warp_row(void) { return pa_tma_warp() % PA_M_DOWN * PA_M_WARP_ROWS; }
PA_FN int pa_tma_warp_column(void) { return pa_tma_warp() / PA_M_DOWN * PA_M_WARP_COLUMNS; }
#if PA_M_HALF_C
#include "pa_gemm_tma_store.h"
#else
/* A warp's results of a tile, stored as they are. */
struct pa_tma_result_buffers {
    const pa_tma_block &o;
    __device__ inline pa_tma_result_buffers(const pa_tma_block &block, int) : o(block) {}
};
struct pa_tma_warp_results {
    const pa_tma_block &o;
    const pa_gemm_tile_origin &t;

    __device__ inline pa_tma_warp_results(pa_tma_result_buffers &buffers, const pa_gemm_tile_origin &tile)
        : o(buffers.o), t(tile) {}
    __device__ inline void prepare(void) {}
    __device__ inline void store(const pa_mma_accumulators &sum) const
    {
        const pa_gemm_grid *g = o.g;
        char *c = t.c + t.row * g->rcs + t.col * g->ccs;
        const int64_t rows = pa_gemm_end(g, t) - t.row, columns = g->n - t.col;
#if PA_BYTES == 8
        const int row = pa_tma_warp_row(), col = pa_tma_warp_column();
        const pa_gemm_results results(g, t, t.row + row, t.col + col);
        c += row * g->rcs + col * g->ccs;
        if (g->cas != PA_M_SIZE) pa_mma_store<true>(g, c, rows - row, columns - col, sum, results);
        else pa_mma_store<false>(g, c, rows - row, columns - col, sum, results);
#else
        const pa_gemm_results results(g, t, t.row, t.col);
#if PA_BYTES == 4
        if (g->cas != PA_M_SIZE) return pa_tf32_store<false>(g, c, pa_tf32_row<false>(), rows, columns, sum, results);
#endif
        pa_tf32_store<true>(g, c, pa_tf32_row<true>(), rows, columns, sum, results);
#endif
    }
};
#endif

/* The first slices of the block's first tile are copied by the threads that multiply them, while the operands are
   described: that takes microseconds. */
template <bool K_MAJOR_A, bool K_MAJOR_B>
PA_FN void pa_tma_copy_first(const pa_tma_block &o, const pa_gemm_tile_origin &t)
{
    const int depths = o.depths_of(t);
    pa_mma_operands<K_MAJOR_A, K_MAJOR_B> operands(o.g, t, o.memory, 0, 0);
#pragma unroll 1
    for (int s = 0; s < PA_M_STAGES; ++s) {
        if (s < depths) operands.template load_async<true>(s * PA_M_SLICE);
        else pa_cp_async_commit(); /* as many groups */
        if (s < depths && pa_mma_thread() < 2) pa_mbarrier_arrive(o.full(s)); /* for those who copy else */
    }
}
template <int LEFT> PA_FN void pa_tma_wait_first(int left)
{
    if (left >= LEFT || LEFT == 0) pa_cp_async_wait<LEFT>();
    else pa_tma_wait_first<(LEFT > 0 ? LEFT - 1 : 0)>(left);
}

#include "pa_gemm_tma_wait.h"

#if PA_BYTES == 8
/* By instructions of a warp, whose part of the tile begins at `row` and `col`: fragments of the next ones are read
   while some are multiplied. Those that are read behind the last slice are of no use, whatever is there. */
template <bool K_MAJOR_A, bool K_MAJOR_B>
PA_FN void pa_tma_mainloop(const pa_tma_block &o, const pa_gemm_tile_origin &t, int row, int col, pa_tma_stage &stage,
                           pa_mma_accumulators &sum)
{
    const int depths = o.depths_of(t);
    pa_mma_reader<pa_mma_slices<PA_M_ROWS, K_MAJOR_A, true>, pa_mma_slices<PA_M_COLUMNS, K_MAJOR_B, false>> reader(
        o.memory);
    reader.a.start(row), reader.b.start(col);
    if (!depths) return;
    pa_tma_wait_full<K_MAJOR_A, K_MAJOR_B>(o, t, stage, 0);
    pa_mma_pipeline warp(reader, stage.at * PA_M_SLICE);
#pragma unroll 1
    for (int s = 0; s < depths; ++s) {
        const unsigned before = stage.at;
        warp.multiply(
            reader, before * PA_M_SLICE, sum,
            [&] {
                stage.next();
                if (s + 1 < depths) pa_tma_wait_full<K_MAJOR_A, K_MAJOR_B>(o, t, stage, s + 1);
                return stage.at * PA_M_SLICE;
            },
            [] {});
        __syncwarp(); /* all lanes have read it */
        o.release(before);
    }
}
#else
/* `before_last` is called while the last slice but one is multiplied, and `during_last` while the last one is: both
   together would take longer than a slice. */
template <bool K_MAJOR_A, bool K_MAJOR_B, class BeforeLast, class DuringLast>
PA_FN void pa_tma_mainloop(const pa_tma_block &o, bool first, const pa_gemm_tile_origin &t, pa_tma_stage &stage,
                           pa_mma_accumulators &sum, const BeforeLast &before_last, const DuringLast &during_last)
{
    const unsigned half = pa_tma_group() * (PA_M_SLICE_A / 2); /* of A: 64 rows, or a panel */
    const uint64_t first_a = pa_wgmma_descriptor<K_MAJOR_A>(o.base + half),
                   first_b = pa_wgmma_descriptor<K_MAJOR_B>(o.base + PA_M_SLICE_A);
    const int depths = o.depths_of(t);
    unsigned before = 0;
#if PA_M_BF16X6
    const int together = depths ? depths - o.part : 0; /* the rest, the largest products, is added in float32 */
#else
    const int together = depths;
    if (PA_TMA_AHEAD && first) pa_tma_copy_first<K_MAJOR_A, K_MAJOR_B>(o, t);
#endif
    const int ahead = PA_TMA_AHEAD && first ? PA_M_STAGES : 0;
    int s = 0;
    for (int end = together - 1;; end = together) {
#pragma unroll 1
        for (; s < end; ++s) {
            if (PA_TMA_AHEAD && s < ahead) {
                pa_tma_wait_first<PA_M_STAGES - 1>(PA_M_STAGES - 1 - s);
                asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
                pa_mma_sync();
            } else pa_tma_wait_full<K_MAJOR_A, K_MAJOR_B>(o, t, stage, s);
            const uint64_t slice = stage.at * (PA_M_SLICE >> 4);
            pa_wgmma_stage<K_MAJOR_A, K_MAJOR_B>(sum.v[0], first_a + slice, first_b + slice, PA_TMA_BEGINS ? s : 1);
            asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
            if (s) o.release(before);
            before = stage.at;
            stage.next();
        }
        if (end == together) break;
        before_last();
    }
    during_last();
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    if (depths) o.release(before);
    pa_mma_keep(sum.v[0]);
#if PA_M_BF16X6
#pragma unroll 1
    for (int s = together; s < depths; ++s, stage.next()) {
        pa_mbarrier_wait(o.full(stage.at), stage.parity);
        const uint64_t slice = stage.at * (PA_M_SLICE >> 4);
        pa_wgmma_add_stage<K_MAJOR_A, K_MAJOR_B>(sum.v[0], first_a + slice, first_b + slice);
        o.release(stage.at);
    }
#endif
}
#endif

#if PA_BYTES == 4
/* The same with A in registers: the next stage's fragments are read while a stage is multiplied. */
PA_FN void pa_tma_step_from(const pa_tma_block &o, int left, pa_tma_stage &stage, pa_tma_stage &read,
                            pa_mma_accumulators &sum, const pa_tf32_fragments &a, pa_tf32_fragments &next)
{
    const uint64_t b = pa_wgmma_descriptor<true>(o.base + stage.at * PA_M_SLICE + PA_M_SLICE_A);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int d = 0; d < PA_M_STEPS; ++d) pa_wgmma_from(sum.v[0], a.v[d], b + d * 2);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory"); /* `next` was read by the group before */
    if (read.at != stage.at) o.release(read.at);
    read = stage;
    stage.next();
    if (left > 1) {
        pa_mbarrier_wait(o.full(stage.at), stage.parity);
        next.read(o.memory + stage.at * PA_M_SLICE);
    }
}
template <class DuringLast>
PA_FN void pa_tma_mainloop_from(const pa_tma_block &o, int depths, pa_tma_stage &stage, pa_mma_accumulators &sum,
                                const DuringLast &during_last)
{
    pa_tf32_fragments even, odd;
    pa_tma_stage read = stage;
    if (!depths) return during_last();
    pa_mbarrier_wait(o.full(stage.at), stage.parity);
    even.read(o.memory + stage.at * PA_M_SLICE);
#pragma unroll 1
    for (int left = depths; left > 0; left -= 2) {
        pa_tma_step_from(o, left, stage, read, sum, even, odd);
        if (left > 1) pa_tma_step_from(o, left - 1, stage, read, sum, odd, even);
    }
    during_last();
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    o.release(read.at);
    pa_mma_keep(sum.v[0]);
}
#endif

/* Multiplies a tile, and calls both functions once. */
template <class BeforeLast, class DuringLast>
PA_FN void pa_tma_multiply(const pa_tma_block &o, bool first, const pa_gemm_tile_origin &t, pa_tma_stage &stage,
                           pa_mma_accumulators &sum, const BeforeLast &before_last, const DuringLast &during_last)
{
    const bool k_major_a = o.g->cas == PA_M_SIZE, k_major_b = o.g->rbs == PA_M_SIZE;
#ifdef PA_GEMM_ENDS
    const bool begins = PA_TMA_BEGINS && o.depths_of(t) > 0; /* a branch would make the instructions wait */
#else
    const bool begins = PA_TMA_BEGINS;
#endif
    if (!begins) pa_mma_clear(sum);
#if PA_BYTES == 8
    pa_gemm_by_layouts(k_major_a, k_major_b, [&](auto a, auto b) {
        pa_tma_mainloop<a.value, b.value>(o, t, pa_tma_warp_row(), pa_tma_warp_column(), stage, sum);
    });
    before_last(), during_last();
#elif PA_BYTES == 1
    pa_tma_mainloop<true, true>(o, first, t, stage, sum, before_last, during_last);
#elif PA_BYTES == 4
    if (k_major_a) pa_tma_mainloop<true, true>(o, first, t, stage, sum, before_last, during_last);
    else before_last(), pa_tma_mainloop_from(o, o.depths_of(t), stage, sum, during_last);
#else
    pa_gemm_by_layouts(k_major_a, k_major_b, [&](auto a, auto b) {
        pa_tma_mainloop<a.value, b.value>(o, first, t, stage, sum, before_last, during_last);
    });
#endif
}

/* A warp that multiplies: all tiles of the block, of which `t` is the first one. */
PA_FN void pa_tma_consume(const pa_tma_block &o, pa_gemm_tile_origin t)
{
    pa_tma_stage stage = {0, 0};
    pa_tma_result_buffers buffers(o, pa_tma_group());
    for (unsigned tile = o.first_tile(), next; tile < o.tiles; tile = next) {
        const bool first = tile == o.first_tile();
        next = tile + o.tile_step();
        pa_gemm_tile_origin next_origin = t;
        pa_tma_warp_results results(buffers, t);
        pa_mma_accumulators sum;
        pa_tma_multiply(
            o, first, t, stage, sum, [&] { results.prepare(); },
            [&] { if (next < o.tiles) next_origin = o.origin(next); });
        if (next >= o.tiles) pa_griddep_launch_dependents();
        results.store(sum);
        t = next_origin;
    }
}

PA_ALWAYS void pa_tma_gemm(const pa_gemm_grid *g)
{
    extern __shared__ __align__(1024) unsigned char pa_mma_memory[];
#ifdef PA_GEMM_ENDS
    pa_griddep_wait(); /* for what says where groups are */
#endif
    const pa_tma_block o(g, pa_mma_memory);
    const int warp = (int)threadIdx.x / 32;
    const bool fits = pa_tma_fits(g);
#if PA_M_BF16X6
    if (!fits) __trap(); /* its operands are copies that fit, and nothing else computes */
#endif
    int slot = -1;
    if (threadIdx.x == 0) {
#if PA_M_HALF_C
        for (int group = 0; group < PA_TMA_GROUPS; ++group) pa_tma_result_buffers(o, group).start();
#endif
        for (int s = 0; s < PA_M_STAGES; ++s) {
            pa_mbarrier_init(o.full(s), 2); /* who copies A, and who copies B */
            pa_mbarrier_init(o.empty(s), PA_M_CLUSTER * PA_M_WORKERS / 32);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    pa_cluster_sync();
    if (warp < PA_M_FIRST / 32) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (fits && warp == 0)
            slot = pa_tma_operand<PA_M_ROWS, 0>(o, g->a, g->m, g->ras, g->cas, g->batch_a);
        else if (fits && warp == 1)
            slot = pa_tma_operand<PA_M_COLUMNS, PA_M_SLICE_A>(o, g->b, g->n, g->cbs, g->rbs, g->batch_b);
#if PA_M_HALF_C
        else if (fits && pa_tma_fits_results(g) && warp < 2 + PA_TMA_GROUPS) slot = pa_tma_store_results(o, warp - 2);
#endif
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        pa_gemm_tile_origin first = {};
        if (o.first_tile() < o.tiles) first = o.origin(o.first_tile());
        pa_griddep_wait();
        if (PA_M_BF16X6 || fits) pa_tma_consume(o, first);
#if !PA_M_BF16X6
        else
            for (unsigned tile = o.first_tile(); tile < o.tiles; tile += o.tile_step()) pa_mma_tile(g, o.origin(tile));
#endif
    }
    pa_cluster_sync(); /* all copies have arrived: neither this memory nor the descriptions are needed any more */
    if (slot >= 0 && threadIdx.x % 32 == 0)
        asm volatile("st.release.gpu.global.b32 [%0], 0;" ::"l"(&pa_tma_taken[slot]) : "memory");
}
#endif
