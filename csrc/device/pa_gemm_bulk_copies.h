/* pa_gemm_bulk_copies.h: bulk tensor copies of the operands of matrix products, and of results of two bytes: whether
   they can be copied so, their descriptions in global memory (PTX ISA, "Tensor-map"), and the copies, to one block or
   to all of a cluster, and from a block. Included with the macros of a tile (PA_M_*) and sizes of its slices. Addresses
   change from launch to launch, so each block writes its own descriptions, in slots that it takes for its time. */
#ifndef PA_GEMM_BULK_COPIES_H
#define PA_GEMM_BULK_COPIES_H
#include "pa_gemm_tiles.h"
#include "pa_mbarrier.h"

enum {
    PA_TMA_SLOTS = 2048, /* more than four for each block that can run at a time */
    PA_TMA_RANK = 2 + PA_GEMM_BATCHES,
    PA_TMA_ROWS = PA_GEMM_TILE_ROWS, /* of a cluster's tile */
    PA_TMA_LINE = 128 / PA_M_SIZE,          /* elements of a line across the depth, and of one along it */
    PA_TMA_LINE_ALONG = PA_M_LINE_ALONG / PA_M_SIZE
};

struct alignas(128) pa_tensor_map { uint64_t words[16]; };
static __device__ pa_tensor_map pa_tma_maps[PA_TMA_SLOTS];
static __device__ unsigned pa_tma_taken[PA_TMA_SLOTS];

#if PA_GEMM_BATCHES <= 3 /* a tensor map has five axes */
PA_FN bool pa_tma_fits_step(int64_t step) { return step >= 0 && step < (int64_t)1 << 40 && (step & 15) == 0; }
PA_FN bool pa_tma_fits_matrix(const pa_gemm_grid *g, const char *p, int64_t pitch, const int64_t *batch)
{
    bool fits = ((uint64_t)p & 15) == 0 && pitch > 0 && pa_tma_fits_step(pitch);
#pragma unroll
    for (int d = 0; d < PA_GEMM_BATCHES; ++d) fits = fits && g->batch[d] < 1u << 31 && pa_tma_fits_step(batch[d]);
    return fits;
}
PA_FN bool pa_tma_fits_operand(const pa_gemm_grid *g, const char *p, int64_t rs, int64_t cs, const int64_t *batch)
{
    return (cs == PA_M_SIZE || rs == PA_M_SIZE) && pa_tma_fits_matrix(g, p, cs == PA_M_SIZE ? rs : cs, batch);
}
/* Whether such copies store results of two bytes, where they load the operands. */
PA_FN bool pa_tma_fits_results(const pa_gemm_grid *g)
{
    return g->ccs == 2 && pa_tma_fits_matrix(g, g->c, g->rcs, g->batch_c);
}
PA_FN bool pa_tma_fits(const pa_gemm_grid *g)
{
    const uint32_t tiles = pa_gemm_tiles<PA_TMA_ROWS, PA_M_COLUMNS>(g);
    return g->m < 1u << 31 && g->n < 1u << 31 && g->k < 1u << 31 && tiles < 1 << 28 &&
           (PA_M_BF16X6 || g->k > 0) && /* sums begin with products */
           (PA_BYTES == 2 || PA_BYTES == 8 || (g->rbs == PA_M_SIZE && (PA_BYTES == 4 || g->cas == PA_M_SIZE))) &&
           pa_tma_fits_operand(g, g->a, g->ras, g->cas, g->batch_a) &&
           pa_tma_fits_operand(g, g->b, g->cbs, g->rbs, g->batch_b);
}
#else
PA_FN bool pa_tma_fits(const pa_gemm_grid *) { return false; }
PA_FN bool pa_tma_fits_results(const pa_gemm_grid *) { return false; }
#endif

#if PA_M_CLUSTER > 1
/* Where block `rank` of the cluster has what is at this address of shared memory; a barrier there. */
PA_FN unsigned pa_cluster_address(unsigned address, unsigned rank)
{
    unsigned there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
    return there;
}
PA_FN void pa_mbarrier_arrive_at(unsigned barrier)
{
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
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
PA_FN unsigned pa_cluster_address(unsigned address, unsigned) { return address; }
PA_FN void pa_mbarrier_arrive_at(unsigned barrier) { pa_mbarrier_arrive(barrier); }
PA_FN unsigned pa_cluster_rank(void) { return 0; }
PA_FN void pa_cluster_sync(void) { __syncthreads(); }
#endif

/* Descriptions of operands. `to` is in shared memory; axis 0 is contiguous. */
#define PA_TMA_FIELD(NAME, BITS, TYPE, VALUE)                                                                          \
    asm volatile("tensormap.replace.tile." NAME ".shared::cta.b1024.b" BITS " [%0], %1;" ::"r"(to), TYPE(VALUE)       \
                 : "memory")
#define PA_TMA_AXIS(NAME, BITS, AXIS, TYPE, VALUE)                                                                     \
    asm volatile("tensormap.replace.tile." NAME ".shared::cta.b1024.b" BITS " [%0], %1, %2;" ::"r"(to), "n"(AXIS),    \
                 TYPE(VALUE) : "memory")
/* An axis of a matrix: its size, bytes between its elements, and how many of them a copy has. */
struct pa_tma_axis { int64_t size, step; int box; };
template <int AXIS> PA_FN void pa_tma_describe_axis(unsigned to, pa_tma_axis axis)
{
#if __CUDACC_VER_MAJOR__ == 12 && __CUDACC_VER_MINOR__ < 5
    axis.step >>= 4; /* as these compilers take it */
#endif
    PA_TMA_AXIS("global_dim", "32", AXIS, "r", (uint32_t)axis.size);
    PA_TMA_AXIS("box_dim", "32", AXIS, "r", axis.box);
    PA_TMA_AXIS("element_stride", "32", AXIS, "r", 1);
    if (AXIS > 0) PA_TMA_AXIS("global_stride", "64", (AXIS > 0 ? AXIS - 1 : 0), "l", axis.step);
}
enum { PA_TMA_SWIZZLE_64 = 2, PA_TMA_SWIZZLE_128 };
/* Of elements of SIZE bytes; those of four are tf32. Neighbours along x are neighbours in memory. */
template <int SIZE>
PA_FN void pa_tma_describe(unsigned to, const pa_gemm_grid *g, const char *p, pa_tma_axis x, pa_tma_axis y,
                           const int64_t *batch, int swizzle)
{
    PA_TMA_FIELD("global_address", "64", "l", p);
    PA_TMA_FIELD("rank", "32", "r", PA_TMA_RANK - 1);
    PA_TMA_FIELD("elemtype", "32", "n", SIZE == 4 ? 11 : SIZE / 2); /* tf32, or u64, u16, u8 */
    PA_TMA_FIELD("interleave_layout", "32", "n", 0);
    if (swizzle == PA_TMA_SWIZZLE_64) PA_TMA_FIELD("swizzle_mode", "32", "n", (int)PA_TMA_SWIZZLE_64);
    else PA_TMA_FIELD("swizzle_mode", "32", "n", (int)PA_TMA_SWIZZLE_128);
    PA_TMA_FIELD("fill_mode", "32", "n", 0);
    pa_tma_describe_axis<0>(to, x);
    pa_tma_describe_axis<1>(to, y);
    /* of a broadcast axis, the only index is 0 */
#define PA_TMA_BATCH(D) pa_tma_describe_axis<2 + D>(to, {batch[D] ? g->batch[D] : 1, batch[D] ? batch[D] : 16, 1})
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
/* Copies so many bytes, of addresses that are aligned to 16, as their number is. */
PA_FN void pa_tma_copy_bytes(unsigned to, const char *from, unsigned bytes, unsigned barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                 ::"r"(to), "l"(from), "r"(bytes), "r"(barrier) : "memory");
}
/* Copies a box from shared memory to (x, y) of the matrix, what is inside of it. */
#if PA_GEMM_BATCHES == 1
#define PA_TMA_TO "3d.global.shared::cta.bulk_group [%0, {%1, %2, %4}], [%3];"
#elif PA_GEMM_BATCHES == 2
#define PA_TMA_TO "4d.global.shared::cta.bulk_group [%0, {%1, %2, %4, %5}], [%3];"
#else
#define PA_TMA_TO "5d.global.shared::cta.bulk_group [%0, {%1, %2, %4, %5, %6}], [%3];"
#endif
PA_FN void pa_tma_store(const pa_tensor_map *map, int x, int y, unsigned from, const int *index)
{
    asm volatile("cp.async.bulk.tensor." PA_TMA_TO ::"l"(map), "r"(x), "r"(y), "r"(from), PA_TMA_INDEX : "memory");
}
/* Waits until such copies have read shared memory. */
PA_FN void pa_tma_wait_stores(void)
{
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;" ::: "memory");
}
#endif
