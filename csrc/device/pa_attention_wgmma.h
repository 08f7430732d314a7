/* pa_attention_wgmma.h: what the kernels of attention on sm_90a share: operands as blocks of halves in shared memory,
   in panels of lines of 128 bytes, whose chunks of 16 are swizzled, and products of these by warpgroups (PTX ISA,
   "Asynchronous warpgroup level matrix instructions"). Included with PA_MMA ("f16", "bf16"), PA_T and PA_LOAD, which is
   a half as a float, and PA_A_MASK (0: none). */
#ifndef PA_ATTENTION_WGMMA_H
#define PA_ATTENTION_WGMMA_H
#include "pa_base.h"
#include "pa_half.h"
#include "pa_mbarrier.h"
#include "pa_quad.h"
#include "pa_wgmma_registers.h"

/* A descriptor of a block in shared memory; `panel` bytes are between panels of 64 elements. */
PA_FN uint64_t pa_block_descriptor(unsigned address, unsigned panel)
{
    return (uint64_t)1 << 62 | (uint64_t)(1024 >> 4) << 32 | (uint64_t)(panel >> 4) << 16 | (address & 0x3ffff) >> 4;
}

/* Sums of 64 rows, of which a thread has two: 8 columns are four of its elements, as for mma.m16n8k16. */
#define PA_X_1(x) "+f"((x)[0]), "+f"((x)[1]), "+f"((x)[2]), "+f"((x)[3])
#define PA_X_4(x, n) PA_X_1(x[n]), PA_X_1(x[n + 1]), PA_X_1(x[n + 2]), PA_X_1(x[n + 3])
#define PA_X_8(x, n) PA_X_4(x, n), PA_X_4(x, n + 4)
#define PA_X_HEAD(N) "{ .reg .pred p; setp.ne.b32 p, "
#define PA_X_CALL(N, SUMS) ", 0; wgmma.mma_async.sync.aligned.m64n" N "k16.f32." PA_MMA "." PA_MMA " {" SUMS "}, "

/* c += a b, or c = a b if not `onto`: both blocks in shared memory. TURNED: lines are along the depth's other axis. */
template <bool TURNED_A, bool TURNED_B> PA_FN void pa_wgmma_64(float (*c)[4], uint64_t a, uint64_t b, int onto)
{
    asm volatile(PA_X_HEAD("64") "%34" PA_X_CALL("64", PA_REGISTERS_32) "%32, %33, p, 1, 1, %35, %36; }"
                 : PA_X_8(c, 0) : "l"(a), "l"(b), "r"(onto), "n"(TURNED_A), "n"(TURNED_B));
}
template <bool TURNED_A, bool TURNED_B> PA_FN void pa_wgmma_128(float (*c)[4], uint64_t a, uint64_t b, int onto)
{
    asm volatile(PA_X_HEAD("128") "%66" PA_X_CALL("128", PA_REGISTERS_64) "%64, %65, p, 1, 1, %67, %68; }"
                 : PA_X_8(c, 0), PA_X_8(c, 8) : "l"(a), "l"(b), "r"(onto), "n"(TURNED_A), "n"(TURNED_B));
}
/* The same with a in registers: fragments of halves. */
template <bool TURNED_B> PA_FN void pa_wgmma_64(float (*c)[4], const unsigned *a, uint64_t b, int onto)
{
    asm volatile(PA_X_HEAD("64") "%37" PA_X_CALL("64", PA_REGISTERS_32) "{%32, %33, %34, %35}, %36, p, 1, 1, %38; }"
                 : PA_X_8(c, 0) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(onto), "n"(TURNED_B));
}
template <bool TURNED_B> PA_FN void pa_wgmma_128(float (*c)[4], const unsigned *a, uint64_t b, int onto)
{
    asm volatile(PA_X_HEAD("128") "%69" PA_X_CALL("128", PA_REGISTERS_64) "{%64, %65, %66, %67}, %68, p, 1, 1, %70; }"
                 : PA_X_8(c, 0), PA_X_8(c, 8)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(onto), "n"(TURNED_B));
}
template <int COLUMNS, bool TURNED_A, bool TURNED_B>
PA_FN void pa_wgmma(float (*c)[4], uint64_t a, uint64_t b, int onto)
{
    if (COLUMNS == 64) pa_wgmma_64<TURNED_A, TURNED_B>(c, a, b, onto);
    else pa_wgmma_128<TURNED_A, TURNED_B>(c, a, b, onto);
}
template <int COLUMNS, bool TURNED_B> PA_FN void pa_wgmma(float (*c)[4], const unsigned *a, uint64_t b, int onto)
{
    if (COLUMNS == 64) pa_wgmma_64<TURNED_B>(c, a, b, onto);
    else pa_wgmma_128<TURNED_B>(c, a, b, onto);
}
PA_FN void pa_wgmma_begin(void) { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
PA_FN void pa_wgmma_commit(void) { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int LEFT> PA_FN void pa_wgmma_wait(void)
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}
/* No sum is read or written before. */
template <int TILES> PA_FN void pa_keep(float (&c)[TILES][4])
{
#pragma unroll
    for (int j = 0; j < TILES; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) asm volatile("" : "+f"(c[j][e])::"memory");
}

/* Waits for products, after what is computed of c meanwhile: the compiler moves a wait before all that doesn't need it,
   as far as to a branch. Here that is a barrier, which threads have passed before. */
template <int TILES> PA_FN void pa_wgmma_wait_after(float (&c)[TILES][4], unsigned barrier, unsigned parity)
{
    pa_keep(c);
    pa_mbarrier_wait(barrier, parity);
    pa_wgmma_wait<0>();
}

PA_FN float pa_exp2_fast(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
#define PA_PACK(TYPE) asm("cvt.rn." TYPE "x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low))
PA_FN unsigned pa_halves(float low, float high)
{
    unsigned pair;
    PA_PACK(PA_MMA);
    return pair;
}

PA_FN float pa_half_low(unsigned pair)
{
    PA_T x;
    x.bits = (uint16_t)pair;
    return PA_LOAD(x);
}
PA_FN float pa_half_high(unsigned pair) { return pa_half_low(pair >> 16); }

/* Masks: booleans, which say whether a query sees a key, or halves, which are added to scores. */
enum { PA_A_SEEN = 1, PA_A_ADDED = 2, PA_A_MASK_SIZE = PA_A_MASK == PA_A_ADDED ? 2 : 1 };
#define PA_A_LOG2E 1.44269504088896341f

/* Stores sums of a thread's two rows as halves, each row times a factor, in the lines `row` and `row + APART`, of which
   `rows` exist. */
template <int APART, int TILES>
PA_FN void pa_store_lines(char *to, int64_t step, const float (&x)[TILES][4], int row, int rows, float high, float low)
{
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        const float factor = h ? low : high;
        char *line = to + (row + h * APART) * step + threadIdx.x % 4 * 16;
#pragma unroll
        for (int j = 0; j < TILES; j += 4) {
            unsigned pairs[4];
#pragma unroll
            for (int n = 0; n < 4; ++n) pairs[n] = pa_halves(x[j + n][h * 2] * factor, x[j + n][h * 2 + 1] * factor);
            const uint4 all = pa_quad_exchange(~0u, pairs);
            if (row + h * APART < rows) *(uint4 *)(line + j * 16) = all;
        }
    }
}

/* Which head and which block a causal kernel takes as its `number`th: of `group` heads, whose operands fit the cache
   together, the `blocks` of each with the most work come first. */
PA_FN int2 pa_causal_order(int number, int blocks, int heads, int group)
{
    const int before = number / (group * blocks) * group, many = heads - before < group ? heads - before : group;
    const int inside = number - before * blocks;
    return make_int2(before + inside % many, inside / many);
}
/* The tiles of this block, in turn. Every other one from the end of what all blocks take: there is the least work. */
PA_FN int pa_tile_of_turn(int turn)
{
    const int all = (int)gridDim.x, block = (int)blockIdx.x;
    return turn * all + (PA_A_CAUSAL && turn % 2 ? all - 1 - block : block);
}

/* Barriers of a ring of blocks: `full` when a block's bytes are there, `empty` when all have read it. */
struct pa_ring_place {
    unsigned at, parity;

    template <int STAGES> __device__ inline void next()
    {
        if (++at == STAGES) at = 0, parity ^= 1;
    }
};

/* A matrix of halves in memory: lines of HEAD elements, `step` bytes apart, aligned to 16. */
struct pa_lines {
    const char *data;
    int64_t step;
    int count; /* of lines that exist */
};

/* Which line of a block is at line `n` in shared memory: a permutation of the bits of `n`. The order of keys within a
   block is free, as their products are summed, and with a mask it is chosen for what a thread reads of it. */
struct pa_same_order {
    static constexpr __device__ int line(int n) { return n; }
};
/* For keys as 128 columns: the 32 of a thread are adjacent. */
struct pa_columns_order {
    static constexpr __device__ int line(int n) { return PA_A_MASK ? n % 8 / 2 * 32 + n / 8 * 2 + n % 2 : n; }
};
/* For keys as rows: the two of a thread are adjacent. */
struct pa_rows_order {
    static constexpr __device__ int line(int n) { return PA_A_MASK ? n / 16 * 16 + n % 8 * 2 + n % 16 / 8 : n; }
};

/* Threads that copy blocks of LINES x HEAD and say so when they are there, one or two copies later. */
template <int HEAD> struct pa_block_copier {
    unsigned waiting[2]; /* barriers of copies that aren't said to be there yet, 0 if none */
    int thread;

    __device__ inline pa_block_copier(int number)
    {
        waiting[0] = waiting[1] = 0, thread = number;
    }
    __device__ inline void say(unsigned barrier)
    {
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        pa_mbarrier_arrive(barrier);
    }
    __device__ inline void flush()
    {
        asm volatile("cp.async.wait_all;" ::: "memory");
        if (waiting[0]) say(waiting[0]);
        if (waiting[1]) say(waiting[1]);
        waiting[0] = waiting[1] = 0;
    }
    /* Waits for room. Where that takes long, all that was copied is said to be there. */
    __device__ inline void wait(unsigned empty, unsigned parity)
    {
        if (pa_mbarrier_test(empty, parity)) return;
        flush();
        pa_mbarrier_wait(empty, parity);
    }
    template <int LINES, class ORDER> __device__ inline void load(unsigned to, const pa_lines &from, int first)
    {
        enum { CHUNKS = HEAD / 8, EACH = 128 / CHUNKS };
        const int chunk = thread % CHUNKS, place = thread / CHUNKS, line = first + ORDER::line(place);
        const char *at = from.data + line * from.step + chunk * 16;
        const int left = from.count - line;
        to += chunk / 8 * (LINES * 128) + place * 128 + ((chunk % 8 ^ place % 8) << 4);
#pragma unroll
        for (int i = 0; i < LINES / EACH; ++i) {
            const int inside = ORDER::line(i * EACH) < left;
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to + i * (EACH * 128)),
                         "l"(inside ? at : from.data), "r"(inside * 16) : "memory");
            at += (ORDER::line((i + 1) * EACH) - ORDER::line(i * EACH)) * from.step;
        }
    }
    __device__ inline void commit(unsigned full)
    {
        asm volatile("cp.async.commit_group;" ::: "memory");
        if (waiting[0]) {
            asm volatile("cp.async.wait_group 2;" ::: "memory");
            say(waiting[0]);
        }
        waiting[0] = waiting[1], waiting[1] = full;
    }
};
#endif
