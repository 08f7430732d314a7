/* pa_gemm_tma.h: tiles on sm_90 by bulk tensor copies, for operands whose lines are aligned to 16 bytes. The device
   decides, and other operands take the asynchronous copies of the file that includes this one. Two threads copy
   slices ahead, one of each operand, two warpgroups multiply them, and stages of shared memory go round between them
   by barriers in it: `full` when a stage's bytes are there, `empty` when all warps have read it. Blocks are
   persistent and take tiles in turn, so that the next tile is loaded while one is stored. The blocks of a cluster
   (PA_M_CLUSTER of them) have tiles below each other: each copies a part of B to all of them.
   Copies need a description of the operand in global memory (PTX ISA, "Tensor-map"). Addresses change from launch to
   launch, so each block writes its own descriptions, in slots that it takes for its time. */
#ifndef PA_GEMM_TMA_H
#define PA_GEMM_TMA_H

enum {
    PA_TMA_STAGED = PA_M_STAGES * PA_M_SLICE, /* offsets in shared memory: of sums on their way to C, ... */
#if PA_M_HALF_C
    PA_TMA_FULL = PA_TMA_STAGED + PA_M_STAGED,
#else /* sums are stored as they are */
    PA_TMA_FULL = PA_TMA_STAGED,
#endif
    /* slices of a block's first tile that the threads copy which multiply them; only bulk copies round to tf32 */
    PA_TMA_AHEAD = PA_BYTES == 2 && !PA_M_BF16X6 ? PA_M_STAGES : 0,
    PA_TMA_EMPTY = PA_TMA_FULL + PA_M_STAGES * 8,
    PA_TMA_MAPS = PA_TMA_FULL + 256,
    PA_TMA_SLOTS = 1024, /* more than two for each block that can run at a time */
    PA_TMA_RANK = 2 + PA_GEMM_BATCHES,
    PA_TMA_ROWS = PA_M_ROWS * PA_M_CLUSTER, /* of a cluster's tile */
    PA_TMA_LINE = 128 / PA_M_SIZE /* elements of a line */
};
static_assert(PA_M_DEPTH * PA_M_SIZE == 128, "a line of 128 bytes, as swizzled");
static_assert(PA_M_STAGES * 16 <= 256, "room for the barriers");
static_assert(PA_BYTES != 2 || PA_M_COLUMNS / PA_M_CLUSTER >= PA_TMA_LINE, "a panel of B for each block of a cluster");

struct alignas(128) pa_tensor_map { uint64_t words[16]; };
static __device__ pa_tensor_map pa_tma_maps[PA_TMA_SLOTS];
static __device__ unsigned pa_tma_taken[PA_TMA_SLOTS];

#if PA_GEMM_BATCHES <= 3 /* a tensor map has five axes */
PA_FN bool pa_tma_fits_step(int64_t step) { return step >= 0 && step < (int64_t)1 << 40 && (step & 15) == 0; }
PA_FN bool pa_tma_fits_operand(const pa_gemm_grid *g, const char *p, int64_t rs, int64_t cs, const int64_t *batch)
{
    const int64_t pitch = cs == PA_M_SIZE ? rs : cs;
    bool fits = (cs == PA_M_SIZE || rs == PA_M_SIZE) && ((uint64_t)p & 15) == 0 && pitch > 0 && pa_tma_fits_step(pitch);
#pragma unroll
    for (int d = 0; d < PA_GEMM_BATCHES; ++d) fits = fits && g->batch[d] < 1u << 31 && pa_tma_fits_step(batch[d]);
    return fits;
}
PA_FN bool pa_tma_fits(const pa_gemm_grid *g)
{
    const uint32_t tiles = pa_gemm_tiles<PA_TMA_ROWS, PA_M_COLUMNS>(g);
    return g->m < 1u << 31 && g->n < 1u << 31 && g->k < 1u << 31 && tiles < 1 << 28 &&
           (PA_BYTES == 2 || (g->rbs == PA_M_SIZE && (PA_BYTES == 4 || g->cas == PA_M_SIZE))) &&
           pa_tma_fits_operand(g, g->a, g->ras, g->cas, g->batch_a) &&
           pa_tma_fits_operand(g, g->b, g->cbs, g->rbs, g->batch_b);
}
#else
PA_FN bool pa_tma_fits(const pa_gemm_grid *) { return false; }
#endif

PA_FN void pa_mbarrier_init(unsigned barrier, int count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}
PA_FN void pa_mbarrier_wait(unsigned barrier, unsigned parity)
{
    asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra again; }"
                 ::"r"(barrier), "r"(parity) : "memory");
}
PA_FN void pa_mbarrier_expect(unsigned barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
PA_FN void pa_mbarrier_arrive(unsigned barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
#if PA_M_CLUSTER > 1
PA_FN void pa_mbarrier_arrive_at(unsigned barrier, unsigned rank)
{
    asm volatile("{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1;"
                 "mbarrier.arrive.shared::cluster.b64 _, [there]; }" ::"r"(barrier), "r"(rank) : "memory");
}
PA_FN unsigned pa_cluster_rank(void)
{
    unsigned rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
PA_FN void pa_cluster_sync(void)
{
    asm volatile("barrier.cluster.arrive.release; barrier.cluster.wait.acquire;" ::: "memory");
}
#else
PA_FN unsigned pa_cluster_rank(void) { return 0; }
PA_FN void pa_cluster_sync(void) { __syncthreads(); }
#endif

/* A stage's number, and the parity of its use. */
struct pa_tma_stage {
    unsigned at, parity;

    __device__ inline void next()
    {
        if (++at == PA_M_STAGES) at = 0, parity ^= 1;
    }
};

/* Descriptions of operands. `to` is in shared memory; axis 0 is contiguous. */
#define PA_TMA_FIELD(NAME, BITS, TYPE, VALUE)                                                                          \
    asm volatile("tensormap.replace.tile." NAME ".shared::cta.b1024.b" BITS " [%0], %1;" ::"r"(to), TYPE(VALUE)       \
                 : "memory")
#define PA_TMA_AXIS(NAME, BITS, AXIS, TYPE, VALUE)                                                                     \
    asm volatile("tensormap.replace.tile." NAME ".shared::cta.b1024.b" BITS " [%0], %1, %2;" ::"r"(to), "n"(AXIS),    \
                 TYPE(VALUE) : "memory")
template <int AXIS> PA_FN void pa_tma_axis(unsigned to, int64_t size, int64_t step, int box)
{
#if __CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ < 5
    step >>= 4; /* as these compilers take it */
#endif
    PA_TMA_AXIS("global_dim", "32", AXIS, "r", (uint32_t)size);
    PA_TMA_AXIS("box_dim", "32", AXIS, "r", box);
    PA_TMA_AXIS("element_stride", "32", AXIS, "r", 1);
    if (AXIS > 0) PA_TMA_AXIS("global_stride", "64", (AXIS > 0 ? AXIS - 1 : 0), "l", step);
}
PA_FN void pa_tma_describe(unsigned to, const pa_gemm_grid *g, const char *p, int64_t rows, int64_t rs, int64_t cs,
                           const int64_t *batch, int box)
{
    /* `box`: rows of a copy, where they are lines along the depth */
    const bool k_major = cs == PA_M_SIZE;
    PA_TMA_FIELD("global_address", "64", "l", p);
    PA_TMA_FIELD("rank", "32", "r", PA_TMA_RANK - 1);
    PA_TMA_FIELD("elemtype", "32", "n", PA_BYTES == 4 ? 11 : PA_BYTES / 2); /* tf32, or u16, u8 */
    PA_TMA_FIELD("interleave_layout", "32", "n", 0);
    PA_TMA_FIELD("swizzle_mode", "32", "n", 3); /* of 128 bytes */
    PA_TMA_FIELD("fill_mode", "32", "n", 0);
    pa_tma_axis<0>(to, k_major ? g->k : rows, 0, PA_TMA_LINE);
    pa_tma_axis<1>(to, k_major ? rows : g->k, k_major ? rs : cs, k_major ? box : (int)PA_M_DEPTH);
    /* of a broadcast axis, the only index is 0 */
#define PA_TMA_BATCH(D) pa_tma_axis<2 + D>(to, batch[D] ? g->batch[D] : 1, batch[D] ? batch[D] : 16, 1)
    PA_TMA_BATCH(0);
#if PA_GEMM_BATCHES > 1
    PA_TMA_BATCH(1);
#endif
#if PA_GEMM_BATCHES > 2
    PA_TMA_BATCH(2);
#endif
}

/* Takes a slot, the first free one from `slot` on. */
PA_FN int pa_tma_take_slot(int slot)
{
    for (;; slot = (slot + 1) % PA_TMA_SLOTS) {
        unsigned taken;
        asm volatile("atom.acquire.gpu.global.cas.b32 %0, [%1], 0, 1;" : "=r"(taken) : "l"(&pa_tma_taken[slot])
                     : "memory");
        if (!taken) return slot;
    }
}
/* Called by a warp: publishes the description in shared memory for copies by this warp. */
PA_FN void pa_tma_publish(const pa_tensor_map *to, unsigned from)
{
    asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], "
                 "128;\n\tfence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(to), "r"(from) : "memory");
}

/* Copies the box at (x, y) of the matrix with an index in the batch; with TO_ALL to all blocks of the cluster, at the
   same place of each. */
#define PA_TMA_FROM(DIMS, HOW) DIMS ".shared::cluster.global.mbarrier::complete_tx::bytes" HOW " [%0], [%1, {"
#if PA_GEMM_BATCHES == 1
#define PA_TMA_AT(HOW, MASK) PA_TMA_FROM("3d", HOW) "%3, %4, %6}], [%2]" MASK ";"
#define PA_TMA_INDEX "r"(index[0])
#elif PA_GEMM_BATCHES == 2
#define PA_TMA_AT(HOW, MASK) PA_TMA_FROM("4d", HOW) "%3, %4, %6, %7}], [%2]" MASK ";"
#define PA_TMA_INDEX "r"(index[0]), "r"(index[1])
#else
#define PA_TMA_AT(HOW, MASK) PA_TMA_FROM("5d", HOW) "%3, %4, %6, %7, %8}], [%2]" MASK ";"
#define PA_TMA_INDEX "r"(index[0]), "r"(index[1]), "r"(index[2])
#endif
template <bool TO_ALL>
PA_FN void pa_tma_copy(unsigned to, const pa_tensor_map *map, unsigned barrier, int x, int y, const int *index)
{
    const unsigned short mask = (1 << PA_M_CLUSTER) - 1;
    if (TO_ALL)
        asm volatile("cp.async.bulk.tensor." PA_TMA_AT(".multicast::cluster", ", %5")
                     ::"r"(to), "l"(map), "r"(barrier), "r"(x), "r"(y), "h"(mask), PA_TMA_INDEX : "memory");
    else
        asm volatile("cp.async.bulk.tensor." PA_TMA_AT("", "")
                     ::"r"(to), "l"(map), "r"(barrier), "r"(x), "r"(y), "h"(mask), PA_TMA_INDEX : "memory");
}

/* What all roles know. */
struct pa_tma_block {
    const pa_gemm_grid *g;
    unsigned char *memory;
    unsigned base; /* its address */
    unsigned tiles;
    int depths; /* slices of a tile */
#if PA_M_BF16X6
    int part; /* slices of a part of an operand */
#endif

    __device__ inline pa_tma_block(const pa_gemm_grid *grid, unsigned char *shared)
    {
        g = grid, memory = shared, base = (unsigned)__cvta_generic_to_shared(shared);
        tiles = pa_gemm_tiles<PA_TMA_ROWS, PA_M_COLUMNS>(g);
        depths = (int)((g->k + PA_M_DEPTH - 1) / PA_M_DEPTH);
#if PA_M_BF16X6
        part = depths / PA_BF16X6_PARTS, depths = part * PA_BF16X6_PRODUCTS;
#endif
    }
    /* Where slice `s` of an operand begins, A or B. */
    template <bool OF_B> __device__ inline int depth_of(int s) const
    {
#if PA_M_BF16X6
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
    /* Said by a warp that has read a stage: to all who copy into it. */
    __device__ inline void release(unsigned stage) const
    {
#if PA_M_CLUSTER > 1
#pragma unroll
        for (unsigned rank = 0; rank < PA_M_CLUSTER; ++rank) pa_mbarrier_arrive_at(empty(stage), rank);
#else
        pa_mbarrier_arrive(empty(stage));
#endif
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
        const int row = (int)(OFFSET ? t.col : t.row) + part * OWN;
        int index[PA_GEMM_BATCHES];
#pragma unroll
        for (int d = 0; d < PA_GEMM_BATCHES; ++d) index[d] = batch[d] ? (int)t.index[d] : 0;
#pragma unroll 1
        for (int s = 0; s < o.depths; ++s, stage.next()) {
            if (s < PA_TMA_AHEAD && tile == o.first_tile()) continue; /* who multiplies has copied them */
            const unsigned to = o.base + stage.at * PA_M_SLICE + OFFSET + part * OWN * 128, full = o.full(stage.at);
            pa_mbarrier_wait(o.empty(stage.at), stage.parity);
            pa_mbarrier_expect(full, ROWS * 128);
            const int depth = o.template depth_of<OFFSET != 0>(s);
            if (k_major) pa_tma_copy<(SHARE > 1)>(to, map, full, depth, row, index);
            else
#pragma unroll
                for (int panel = 0; panel < PANELS; ++panel)
                    pa_tma_copy<(SHARE > 1)>(to + panel * PA_M_PANEL, map, full, row + panel * PA_TMA_LINE, depth,
                                             index);
        }
    }
}

/* A warp for an operand: describes it, and one thread copies. The slot of the description, for this thread. */
template <int ROWS, int OFFSET>
PA_FN int pa_tma_operand(const pa_tma_block &o, const char *p, int64_t rows, int64_t rs, int64_t cs,
                         const int64_t *batch)
{
    const int lane = (int)threadIdx.x % 32, number = (int)threadIdx.x / 32, offset = PA_TMA_MAPS + number * 128;
    unsigned processor;
    asm("mov.u32 %0, %%smid;" : "=r"(processor));
    /* a processor has one such block at a time: these slots are free, even while blocks of an earlier launch run */
    int slot = lane == 0 ? pa_tma_take_slot((int)(processor * 2 + number) % PA_TMA_SLOTS) : 0;
    if (lane < 16) *(uint64_t *)(o.memory + offset + lane * 8) = 0;
    __syncwarp();
    if (lane == 0) pa_tma_describe(o.base + offset, o.g, p, rows, rs, cs, batch, OFFSET ? ROWS / PA_M_CLUSTER : ROWS);
    slot = __shfl_sync(~0u, slot, 0);
    pa_tma_publish(&pa_tma_maps[slot], o.base + offset);
    pa_griddep_wait();
    if (lane == 0) pa_tma_produce<ROWS, OFFSET>(o, &pa_tma_maps[slot], cs == PA_M_SIZE, batch);
    return slot;
}

/* The first slices of the block's first tile are copied by the threads that multiply them, while the operands are
   described: that takes microseconds. */
template <bool K_MAJOR_A, bool K_MAJOR_B>
PA_FN void pa_tma_copy_first(const pa_tma_block &o, const pa_gemm_tile_origin &t)
{
    pa_mma_operands<K_MAJOR_A, K_MAJOR_B> operands(o.g, t, o.memory, 0, 0);
#pragma unroll 1
    for (int s = 0; s < PA_M_STAGES; ++s) {
        if (s < o.depths) operands.template load_async<true>(s * PA_M_SLICE);
        else pa_cp_async_commit(); /* as many groups */
        if (s < o.depths && pa_mma_thread() < 2) pa_mbarrier_arrive(o.full(s)); /* for those who copy else */
    }
}
template <int LEFT> PA_FN void pa_tma_wait_first(int left)
{
    if (left >= LEFT || LEFT == 0) pa_cp_async_wait<LEFT>();
    else pa_tma_wait_first<(LEFT > 0 ? LEFT - 1 : 0)>(left);
}

template <bool K_MAJOR_A, bool K_MAJOR_B>
PA_FN void pa_tma_mainloop(const pa_tma_block &o, bool first, const pa_gemm_tile_origin &t, pa_tma_stage &stage,
                           pa_mma_accumulators &sum)
{
    const unsigned half = o.base + pa_mma_thread() / 128 * (PA_M_SLICE_A / 2); /* of A: 64 rows, or a panel */
    const bool says = threadIdx.x % 32 == 0; /* that the warp has read a stage */
    unsigned before = 0;
#if PA_M_BF16X6
    const int together = o.depths - o.part; /* the rest, the largest products, is added in float32 */
#else
    const int together = o.depths;
    if (first) pa_tma_copy_first<K_MAJOR_A, K_MAJOR_B>(o, t);
#endif
#pragma unroll 1
    for (int s = 0; s < together; ++s) {
        const uint64_t a = pa_wgmma_descriptor<K_MAJOR_A>(half + stage.at * PA_M_SLICE),
                       b = pa_wgmma_descriptor<K_MAJOR_B>(o.base + stage.at * PA_M_SLICE + PA_M_SLICE_A);
        if (first && s < PA_M_STAGES) {
            pa_tma_wait_first<PA_M_STAGES - 1>(PA_M_STAGES - 1 - s);
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            pa_mma_sync();
        } else pa_mbarrier_wait(o.full(stage.at), stage.parity);
        pa_wgmma_stage<K_MAJOR_A, K_MAJOR_B>(sum.v[0], a, b);
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
        if (s && says) o.release(before);
        before = stage.at;
        stage.next();
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    if (o.depths && says) o.release(before);
    pa_mma_keep(sum.v[0]);
#if PA_M_BF16X6
#pragma unroll 1
    for (int s = together; s < o.depths; ++s, stage.next()) {
        pa_mbarrier_wait(o.full(stage.at), stage.parity);
        pa_wgmma_add_stage<K_MAJOR_A, K_MAJOR_B>(
            sum.v[0], pa_wgmma_descriptor<K_MAJOR_A>(half + stage.at * PA_M_SLICE),
            pa_wgmma_descriptor<K_MAJOR_B>(o.base + stage.at * PA_M_SLICE + PA_M_SLICE_A));
        if (says) o.release(stage.at);
    }
#endif
}

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
    if (read.at != stage.at && threadIdx.x % 32 == 0) o.release(read.at);
    read = stage;
    stage.next();
    if (left > 1) {
        pa_mbarrier_wait(o.full(stage.at), stage.parity);
        next.read(o.memory + stage.at * PA_M_SLICE);
    }
}
PA_FN void pa_tma_mainloop_from(const pa_tma_block &o, pa_tma_stage &stage, pa_mma_accumulators &sum)
{
    pa_tf32_fragments even, odd;
    pa_tma_stage read = stage;
    if (!o.depths) return;
    pa_mbarrier_wait(o.full(stage.at), stage.parity);
    even.read(o.memory + stage.at * PA_M_SLICE);
#pragma unroll 1
    for (int left = o.depths; left > 0; left -= 2) {
        pa_tma_step_from(o, left, stage, read, sum, even, odd);
        if (left > 1) pa_tma_step_from(o, left - 1, stage, read, sum, odd, even);
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    if (threadIdx.x % 32 == 0) o.release(read.at);
    pa_mma_keep(sum.v[0]);
}
#endif

PA_FN void pa_tma_consume(const pa_tma_block &o)
{
    const pa_gemm_grid *g = o.g;
#if PA_BYTES > 1
    const bool k_major_a = g->cas == PA_M_SIZE;
#endif
#if PA_BYTES == 2
    const bool k_major_b = g->rbs == PA_M_SIZE;
#endif
    pa_tma_stage stage = {0, 0};
    for (unsigned tile = o.first_tile(); tile < o.tiles; tile += o.tile_step()) {
        const bool first = PA_TMA_AHEAD && tile == o.first_tile();
        const pa_gemm_tile_origin t = o.origin(tile);
        char *c = t.c + t.row * g->rcs + t.col * g->ccs;
        const int64_t rows = g->m - t.row, columns = g->n - t.col;
        pa_mma_accumulators sum;
#pragma unroll
        for (int j = 0; j < PA_M_WARP_COLUMNS / 8; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) sum.v[0][j][e] = 0;
#if PA_M_HALF_C && !PA_M_BF16X6
        const int row = pa_mma_thread() / 32 * PA_M_WARP_ROWS;
        const pa_gemm_results results(g, t, t.row + row, t.col);
        pa_mma_prefetch(g, results, rows - row, columns);
#endif
#if PA_BYTES == 1 && PA_M_HALF_C
        pa_tma_mainloop<true, true>(o, first, t, stage, sum);
#elif PA_BYTES == 1
        pa_tma_mainloop<true, true>(o, first, t, stage, sum);
        pa_tf32_store<true>(g, c, pa_tf32_row<true>(), rows, columns, sum, pa_gemm_results(g, t, t.row, t.col));
#elif PA_BYTES == 4
        if (k_major_a) pa_tma_mainloop<true, true>(o, first, t, stage, sum);
        else pa_tma_mainloop_from(o, stage, sum);
        const int row = k_major_a ? pa_tf32_row<true>() : pa_tf32_row<false>();
        const pa_gemm_results results(g, t, t.row, t.col);
        if (k_major_a) pa_tf32_store<true>(g, c, row, rows, columns, sum, results);
        else pa_tf32_store<false>(g, c, row, rows, columns, sum, results);
#else
        if (k_major_a && k_major_b) pa_tma_mainloop<true, true>(o, first, t, stage, sum);
        else if (k_major_a) pa_tma_mainloop<true, false>(o, first, t, stage, sum);
        else if (k_major_b) pa_tma_mainloop<false, true>(o, first, t, stage, sum);
        else pa_tma_mainloop<false, false>(o, first, t, stage, sum);
#endif
#if PA_M_BF16X6
        pa_tf32_store<true>(g, c, pa_tf32_row<true>(), rows, columns, sum, pa_gemm_results(g, t, t.row, t.col));
#elif PA_M_HALF_C
        if (tile + o.tile_step() >= o.tiles) pa_griddep_launch_dependents();
        pa_mma_store(g, c + row * g->rcs, rows - row, columns, sum, results, o.memory + PA_TMA_STAGED);
#endif
    }
}

PA_FN void pa_tma_gemm(const pa_gemm_grid *g)
{
    extern __shared__ __align__(1024) unsigned char pa_mma_memory[];
    const pa_tma_block o(g, pa_mma_memory);
    const int warp = (int)threadIdx.x / 32;
    const bool fits = pa_tma_fits(g);
#if PA_M_BF16X6
    if (!fits) __trap(); /* its operands are copies that fit, and nothing else computes */
#endif
    int slot = 0;
    if (threadIdx.x == 0) {
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
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        pa_griddep_wait();
        if (PA_M_BF16X6 || fits) pa_tma_consume(o);
#if !PA_M_BF16X6
        else pa_mma_tiles(g);
#endif
    }
    pa_cluster_sync(); /* all copies have arrived: neither this memory nor the descriptions are needed any more */
    if (fits && warp < 2 && threadIdx.x % 32 == 0)
        asm volatile("st.release.gpu.global.b32 [%0], 0;" ::"l"(&pa_tma_taken[slot]) : "memory");
}
#endif
