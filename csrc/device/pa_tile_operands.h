/* pa_tile_operands.h: tiles of halves in shared memory, as matrix instructions read them. Rows are cut into panels of
   at most 64 elements. A panel has one row after the other, and chunks of 16 bytes are swizzled, so that those of 8
   rows are in different banks (PTX ISA, "Asynchronous warpgroup level majorness"). */
#ifndef PA_TILE_OPERANDS_H
#define PA_TILE_OPERANDS_H
#include "pa_base.h"
#include "pa_half.h"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800 /* copies to shared memory while threads go on */
#define PA_TILE_ASYNCHRONOUS 1
#else
#define PA_TILE_ASYNCHRONOUS 0
#endif

/* The elements of a panel's row. */
template <int COLUMNS> PA_FN constexpr int pa_tile_panel(void)
{
    return COLUMNS % 64 == 0 ? 64 : COLUMNS % 32 == 0 ? 32 : 16;
}
/* The place of an element. */
template <int ROWS, int COLUMNS> PA_FN int pa_tile_at(int row, int column)
{
    enum { WIDE = pa_tile_panel<COLUMNS>(), CHUNKS = WIDE / 8 };
    const int chunk = column % WIDE / 8 ^ row / (8 / CHUNKS) % CHUNKS;
    return (column / WIDE * ROWS + row) * WIDE + chunk * 8 + column % 8;
}

/* Instructions find in shared memory what threads have written with stores, behind this and a barrier. */
PA_FN void pa_tile_fence(void)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}
PA_FN void pa_tile_barrier(void)
{
    pa_tile_fence();
    __syncthreads();
}

/* Zeros where an operand has no elements: instructions take whole tiles. */
template <int ROWS, int COLUMNS, typename T>
PA_FN void pa_tile_clear(T *tile, int rows, int columns, int rank, int threads)
{
    for (int n = rank; n < ROWS * COLUMNS; n += threads) {
        const int row = n / COLUMNS, column = n % COLUMNS;
        if (row >= rows || column >= columns) tile[pa_tile_at<ROWS, COLUMNS>(row, column)].bits = 0;
    }
    pa_tile_fence();
}

/* 16 bytes to shared memory, which are there after pa_tile_wait. */
PA_FN void pa_tile_copy(void *to, const void *from)
{
#if PA_TILE_ASYNCHRONOUS
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from)
                 : "memory");
#else
    *(uint4 *)to = *(const uint4 *)from;
#endif
}

/* The same of an element of 4 or 8 bytes, if its type is aligned to them. */
template <typename T> PA_FN void pa_tile_copy_element(T *to, const T *from)
{
#if PA_TILE_ASYNCHRONOUS
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "as wide as the instruction copies");
    if (alignof(T) < sizeof(T)) *to = *from;
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"((unsigned)__cvta_generic_to_shared(to)),
                     "l"(from), "n"((int)sizeof(T)) : "memory");
#else
    *to = *from;
#endif
}

/* 16 bytes from an address that is aligned to an element. Words are read as a whole. */
PA_FN uint4 pa_tile_load_unaligned(const void *from)
{
    const unsigned *const words = (const unsigned *)((uint64_t)from & ~(uint64_t)3);
    uint4 x = make_uint4(words[0], words[1], words[2], words[3]);
    if ((uint64_t)from & 2) {
        x.x = x.x >> 16 | x.y << 16, x.y = x.y >> 16 | x.z << 16;
        x.z = x.z >> 16 | x.w << 16, x.w = x.w >> 16 | words[4] << 16;
    }
    return x;
}

/* A group of copies ends; a wait for all groups but the last `left`. */
#if PA_TILE_ASYNCHRONOUS
PA_FN void pa_tile_commit(void) { asm volatile("cp.async.commit_group;" ::: "memory"); }
PA_FN void pa_tile_wait(int left)
{
    if (left >= 2) asm volatile("cp.async.wait_group 2;" ::: "memory");
    else if (left == 1) asm volatile("cp.async.wait_group 1;" ::: "memory");
    else asm volatile("cp.async.wait_group 0;" ::: "memory");
}
#else
PA_FN void pa_tile_commit(void) {}
PA_FN void pa_tile_wait(int) {}
#endif

/* Element (row, column) of fragments with 8 ACROSS columns, of which a thread has those that begin with its own. */
#define PA_TILE_AT(row_step, column_step, ACROSS) (((row_step) * (ACROSS) + (column_step)) * 2)

/* Fragments of the first operand from those of sums, for one instruction's depth from `k` on. */
template <int DEPTH, typename T>
PA_FN void pa_tile_fragments(unsigned *x, const T *a, int i, int k, int depth, int lane)
{
#pragma unroll
    for (int e = 0; e < 4; ++e) {
        const T *pair = a + PA_TILE_AT(i * 2 + e % 2, k / 8 + e / 2, DEPTH / 8);
        const int column = k + e / 2 * 8 + lane % 4 * 2;
        const unsigned low = column < depth ? pair[0].bits : 0, high = column + 1 < depth ? pair[1].bits : 0;
        x[e] = low | high << 16;
    }
}
/* How many stages of so many bytes are in the dynamic shared memory from `first` on, of at most four. On sm_90 there
   are three at the least. */
PA_FN int pa_tile_stages(int first, int nbytes)
{
#if PA_TILE_ASYNCHRONOUS
    int all;
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(all));
    const int stages = (all - first) / nbytes;
    return stages < 4 ? stages : 4;
#else
    return 1;
#endif
}

/* Moves a tile of `down` x `across`, so that they are in strips of 8 rows: tiles of products that are computed at the
   same time share their operands in the cache. */
PA_FN void pa_tile_in_strip(int64_t *row, int64_t *column, int64_t down, int64_t across)
{
    const int64_t number = *row * across + *column, strip = number / (8 * across), in_strip = number % (8 * across);
    const int64_t high = down - 8 * strip < 8 ? down - 8 * strip : 8;
    *row = 8 * strip + in_strip % high, *column = in_strip / high;
}
#endif
