/* pa_gemm_tma.h: tiles of pa_gemm_mma.h on sm_90 by bulk tensor copies, for operands that are aligned to 16 bytes; the
   device decides, and others take the way of pa_gemm_mma.h. One thread copies slices ahead, two warpgroups multiply
   them, and stages of shared memory go round between them by barriers in it: `full` when a stage's bytes are there,
   `empty` when all warps have read it. Blocks stay and take tiles in turn, so that the next tile is loaded while one is
   stored. With PA_M_CLUSTER 2, two blocks compute tiles below each other: each loads half of the columns of B and
   writes it to both.
   Copies need a description of the operand in global memory (PTX ISA, "Tensor-map"). Addresses change from launch to
   launch, so each block writes its own descriptions, in slots that it takes for its time. */
#ifndef PA_GEMM_TMA_H
#define PA_GEMM_TMA_H

#ifndef PA_M_STRIP
#define PA_M_STRIP (16 / PA_M_CLUSTER)
#endif
enum {
    PA_TMA_STAGED = PA_M_STAGES * PA_M_SLICE, /* offsets in shared memory: of sums on their way to C, ... */
    PA_TMA_FULL = PA_TMA_STAGED + PA_M_STAGED,
    PA_TMA_EMPTY = PA_TMA_FULL + PA_M_STAGES * 8,
    PA_TMA_SLOTS_TAKEN = PA_TMA_FULL + 128,
    PA_TMA_MAPS = PA_TMA_FULL + 256,
    PA_TMA_SLOTS = 1024, /* more than two for each block that can run at a time */
    PA_TMA_RANK = 2 + PA_GEMM_BATCHES,
    PA_TMA_BOX_A = PA_M_ROWS, /* rows of a copy, where they are lines along the depth */
    PA_TMA_BOX_B = PA_M_COLUMNS / 2
};
static_assert(PA_M_DEPTH * PA_M_SIZE == 128, "a line of 128 bytes, as swizzled");
static_assert(PA_M_STAGES * 16 <= 128, "room for the barriers");

struct alignas(128) pa_tensor_map { uint64_t words[16]; };
__device__ pa_tensor_map pa_tma_maps[PA_TMA_SLOTS];
__device__ unsigned pa_tma_taken[PA_TMA_SLOTS];

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
    return g->m < 1u << 31 && g->n < 1u << 31 && g->k < 1u << 31 &&
           pa_tma_fits_operand(g, g->a, g->ras, g->cas, g->batch_a) &&
           pa_tma_fits_operand(g, g->b, g->cbs, g->rbs, g->batch_b);
}
#else
PA_FN bool pa_tma_fits(const pa_gemm_grid *) { return false; }
#endif

PA_FN void pa_barrier_init(unsigned barrier, int count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}
PA_FN void pa_barrier_wait(unsigned barrier, unsigned parity)
{
    asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; "
                 "@!p bra again; }" ::"r"(barrier), "r"(parity) : "memory");
}
PA_FN void pa_barrier_expect(unsigned barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
/* Arrives at the barrier of a block of the cluster. */
PA_FN void pa_barrier_arrive(unsigned barrier, unsigned block)
{
    asm volatile("{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; "
                 "mbarrier.arrive.shared::cluster.b64 _, [there]; }" ::"r"(barrier), "r"(block)
                 : "memory");
}
PA_FN void pa_cluster_sync(void)
{
#if PA_M_CLUSTER > 1
    asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
#else
    __syncthreads();
#endif
}

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
    const bool k_major = cs == PA_M_SIZE;
    PA_TMA_FIELD("global_address", "64", "l", p);
    PA_TMA_FIELD("rank", "32", "r", PA_TMA_RANK - 1);
    PA_TMA_FIELD("elemtype", "32", "n", 1); /* u16 */
    PA_TMA_FIELD("interleave_layout", "32", "n", 0);
    PA_TMA_FIELD("swizzle_mode", "32", "n", 3); /* of 128 bytes */
    PA_TMA_FIELD("fill_mode", "32", "n", 0);
    pa_tma_axis<0>(to, k_major ? g->k : rows, 0, 64);
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

/* Called by a warp: takes a slot for the description in shared memory, and writes it there. */
PA_FN int pa_tma_publish(unsigned from, int slot)
{
    if (threadIdx.x % 32 == 0)
        while (atomicCAS(&pa_tma_taken[slot], 0, 1)) slot = (slot + 1) % PA_TMA_SLOTS;
    slot = __shfl_sync(~0u, slot, 0);
    asm volatile("fence.acq_rel.gpu;\n\ttensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync"
                 ".aligned [%0], [%1], 128;" ::"l"(&pa_tma_maps[slot]), "r"(from) : "memory");
    return slot;
}
PA_FN void pa_tma_acquire(const pa_tensor_map *map)
{
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
}

/* Copies the box at (x, y) of a matrix of the batch; `blocks`: a mask of those of the cluster that get it. */
#if PA_GEMM_BATCHES == 1
#define PA_TMA_ASM(MANY, ...)                                                                                          \
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes" MANY " [%0], "          \
                 "[%1, {%3, %4, %5}], [%2]" __VA_ARGS__ : "memory")
#define PA_TMA_LAST "%6"
#define PA_TMA_INDEX "r"(index[0])
#elif PA_GEMM_BATCHES == 2
#define PA_TMA_ASM(MANY, ...)                                                                                          \
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes" MANY " [%0], "          \
                 "[%1, {%3, %4, %5, %6}], [%2]" __VA_ARGS__ : "memory")
#define PA_TMA_LAST "%7"
#define PA_TMA_INDEX "r"(index[0]), "r"(index[1])
#else
#define PA_TMA_ASM(MANY, ...)                                                                                          \
    asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.mbarrier::complete_tx::bytes" MANY " [%0], "          \
                 "[%1, {%3, %4, %5, %6, %7}], [%2]" __VA_ARGS__ : "memory")
#define PA_TMA_LAST "%8"
#define PA_TMA_INDEX "r"(index[0]), "r"(index[1]), "r"(index[2])
#endif
template <bool SHARED>
PA_FN void pa_tma_copy(unsigned to, const pa_tensor_map *map, unsigned barrier, int x, int y, const int *index)
{
    if (SHARED)
        PA_TMA_ASM(".multicast::cluster", ", " PA_TMA_LAST ";" ::"r"(to), "l"(map), "r"(barrier), "r"(x), "r"(y),
                   PA_TMA_INDEX, "h"((uint16_t)((1 << PA_M_CLUSTER) - 1)));
    else PA_TMA_ASM("", ";" ::"r"(to), "l"(map), "r"(barrier), "r"(x), "r"(y), PA_TMA_INDEX);
}

/* What both roles know. */
struct pa_tma_block {
    const pa_gemm_grid *g;
    unsigned char *memory;
    unsigned base, rank; /* its address, and the block's number in the cluster */
    int64_t tiles, first, step;
    int depths; /* slices of a tile */

    __device__ inline pa_tma_block(const pa_gemm_grid *grid, unsigned char *shared)
    {
        g = grid, memory = shared, base = (unsigned)__cvta_generic_to_shared(shared), rank = blockIdx.x % PA_M_CLUSTER;
        tiles = pa_gemm_tiles<PA_M_ROWS * PA_M_CLUSTER, PA_M_COLUMNS>(g);
        first = blockIdx.x / PA_M_CLUSTER, step = gridDim.x / PA_M_CLUSTER;
        depths = (int)((g->k + PA_M_DEPTH - 1) / PA_M_DEPTH);
    }
    __device__ inline pa_gemm_tile_origin tile(int64_t t) const
    {
        pa_gemm_tile_origin at = pa_gemm_origin_of<PA_M_ROWS * PA_M_CLUSTER, PA_M_COLUMNS, PA_M_STRIP>(g, t);
        at.row += rank * PA_M_ROWS;
        return at;
    }
    __device__ inline unsigned full(unsigned stage) const { return base + PA_TMA_FULL + stage * 8; }
    __device__ inline unsigned empty(unsigned stage) const { return base + PA_TMA_EMPTY + stage * 8; }
};

/* The copies of an operand's slice: boxes FIRST to LAST of COUNT, which are rows or panels of 64 across the depth. */
template <int ROWS, int BOX, bool SHARED>
PA_FN void pa_tma_copy_slice(unsigned to, const pa_tensor_map *map, unsigned barrier, bool k_major, int row, int depth,
                             const int *index, unsigned part)
{
    enum { PARTS = SHARED ? PA_M_CLUSTER : 1, LINES = ROWS / BOX / PARTS, PANELS = ROWS / 64 / PARTS };
    if (k_major) {
#pragma unroll
        for (int i = 0; i < LINES; ++i) {
            const int at = (part * LINES + i) * BOX;
            pa_tma_copy<SHARED>(to + at * 128, map, barrier, depth, row + at, index);
        }
    } else {
#pragma unroll
        for (int i = 0; i < PANELS; ++i) {
            const int at = part * PANELS + i;
            pa_tma_copy<SHARED>(to + at * PA_M_PANEL, map, barrier, row + at * 64, depth, index);
        }
    }
}

PA_FN void pa_tma_produce(const pa_tma_block &o, const pa_tensor_map *map_a, const pa_tensor_map *map_b)
{
    const pa_gemm_grid *g = o.g;
    const bool k_major_a = g->cas == PA_M_SIZE, k_major_b = g->rbs == PA_M_SIZE;
    pa_tma_stage stage = {0, 1};
    for (int64_t tile = o.first; tile < o.tiles; tile += o.step) {
        const pa_gemm_tile_origin t = o.tile(tile);
        int index_a[PA_GEMM_BATCHES], index_b[PA_GEMM_BATCHES];
#pragma unroll
        for (int d = 0; d < PA_GEMM_BATCHES; ++d) {
            index_a[d] = g->batch_a[d] ? (int)t.index[d] : 0;
            index_b[d] = g->batch_b[d] ? (int)t.index[d] : 0;
        }
#pragma unroll 1
        for (int s = 0; s < o.depths; ++s) {
            const unsigned slice = o.base + stage.at * PA_M_SLICE, full = o.full(stage.at);
            pa_barrier_wait(o.empty(stage.at), stage.parity);
            pa_barrier_expect(full, PA_M_SLICE);
            pa_tma_copy_slice<PA_M_ROWS, PA_TMA_BOX_A, false>(slice, map_a, full, k_major_a, (int)t.row,
                                                              s * PA_M_DEPTH, index_a, 0);
            pa_tma_copy_slice<PA_M_COLUMNS, PA_TMA_BOX_B, (PA_M_CLUSTER > 1)>(slice + PA_M_SLICE_A, map_b, full,
                                                                              k_major_b, (int)t.col, s * PA_M_DEPTH,
                                                                              index_b, o.rank);
            stage.next();
        }
    }
}

/* Says to all blocks that write to it that this warp has read a stage. */
PA_FN void pa_tma_release(const pa_tma_block &o, unsigned stage)
{
    const unsigned lane = threadIdx.x % 32;
    if (lane < PA_M_CLUSTER) pa_barrier_arrive(o.empty(stage), lane);
}

template <bool K_MAJOR_A, bool K_MAJOR_B>
PA_FN void pa_tma_mainloop(const pa_tma_block &o, pa_tma_stage &stage, pa_mma_accumulators &sum)
{
    enum { NEXT_A = (K_MAJOR_A ? 32 : 2048) >> 4, NEXT_B = (K_MAJOR_B ? 32 : 2048) >> 4 };
    const unsigned half = o.base + pa_mma_thread() / 128 * (PA_M_SLICE_A / 2); /* of A: 64 rows, or a panel */
    unsigned before = 0;
#pragma unroll 1
    for (int s = 0; s < o.depths; ++s) {
        const uint64_t a = pa_wgmma_descriptor<K_MAJOR_A>(half + stage.at * PA_M_SLICE),
                       b = pa_wgmma_descriptor<K_MAJOR_B>(o.base + stage.at * PA_M_SLICE + PA_M_SLICE_A);
        pa_barrier_wait(o.full(stage.at), stage.parity);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int d = 0; d < PA_M_STEPS; ++d) pa_wgmma<K_MAJOR_A, K_MAJOR_B>(sum.v[0], a + d * NEXT_A, b + d * NEXT_B);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
        if (s) pa_tma_release(o, before);
        before = stage.at;
        stage.next();
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    if (o.depths) pa_tma_release(o, before);
    pa_mma_keep(sum);
}
PA_FN void pa_tma_consume(const pa_tma_block &o)
{
    const pa_gemm_grid *g = o.g;
    const bool k_major_a = g->cas == PA_M_SIZE, k_major_b = g->rbs == PA_M_SIZE;
    const int row = pa_mma_thread() / 32 * PA_M_WARP_ROWS;
    pa_tma_stage stage = {0, 0};
    for (int64_t tile = o.first; tile < o.tiles; tile += o.step) {
        pa_mma_accumulators sum;
#pragma unroll
        for (int j = 0; j < PA_M_WARP_COLUMNS / 8; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) sum.v[0][j][e] = 0;
        if (k_major_a && k_major_b) pa_tma_mainloop<true, true>(o, stage, sum);
        else if (k_major_a) pa_tma_mainloop<true, false>(o, stage, sum);
        else if (k_major_b) pa_tma_mainloop<false, true>(o, stage, sum);
        else pa_tma_mainloop<false, false>(o, stage, sum);
        const pa_gemm_tile_origin t = o.tile(tile);
        char *c = t.c + (t.row + row) * g->rcs + t.col * g->ccs;
        pa_mma_store(g, c, g->m - t.row - row, g->n - t.col, sum, o.memory + PA_TMA_STAGED);
    }
}

PA_FN void pa_tma_gemm(const pa_gemm_grid *g)
{
    extern __shared__ __align__(1024) unsigned char pa_mma_memory[];
    const pa_tma_block o(g, pa_mma_memory);
    const int warp = (int)threadIdx.x / 32;
    const bool fits = pa_tma_fits(g);
    volatile int *slots = (volatile int *)(pa_mma_memory + PA_TMA_SLOTS_TAKEN);
    if (fits && warp < 2) {
        const unsigned map = o.base + PA_TMA_MAPS + warp * sizeof(pa_tensor_map);
        if (threadIdx.x % 32 < 16) ((uint64_t *)(pa_mma_memory + PA_TMA_MAPS))[warp * 16 + threadIdx.x % 32] = 0;
        __syncwarp();
        if (threadIdx.x % 32 == 0) {
            if (warp == 0) pa_tma_describe(map, g, g->a, g->m, g->ras, g->cas, g->batch_a, PA_TMA_BOX_A);
            else pa_tma_describe(map, g, g->b, g->n, g->cbs, g->rbs, g->batch_b, PA_TMA_BOX_B);
        }
        __syncwarp();
        const int slot = pa_tma_publish(map, blockIdx.x * 2 % PA_TMA_SLOTS + warp);
        if (threadIdx.x % 32 == 0) slots[warp] = slot;
    }
    if (threadIdx.x == 64) {
        for (int s = 0; s < PA_M_STAGES; ++s) {
            pa_barrier_init(o.full(s), 1);
            pa_barrier_init(o.empty(s), PA_M_WORKERS / 32 * PA_M_CLUSTER);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    pa_cluster_sync();
    if (warp < PA_M_FIRST / 32) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (fits && threadIdx.x == 0) {
            const pa_tensor_map *map_a = &pa_tma_maps[slots[0]], *map_b = &pa_tma_maps[slots[1]];
            pa_tma_acquire(map_a), pa_tma_acquire(map_b);
            pa_tma_produce(o, map_a, map_b);
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        if (fits) pa_tma_consume(o);
        else pa_mma_tiles(g);
    }
    __syncthreads();
    pa_cluster_sync(); /* all copies have arrived, in both blocks */
    if (fits && threadIdx.x < 2) {
        __threadfence();
        atomicExch(&pa_tma_taken[slots[threadIdx.x]], 0);
    }
}
#endif
