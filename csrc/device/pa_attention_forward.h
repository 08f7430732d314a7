/* pa_attention_forward.h: out = softmax(scale q kᵀ) v on sm_90a, for heads of 64 and 128 halves whose lines are
   aligned. Two warpgroups have 64 queries each, whose scores and sums are in registers; a warpgroup before them copies
   queries, keys and values. One multiplies while the other computes exponentials (Shah et al., FlashAttention-3).
   Keys are taken from the last block to the first, so that only the first one that is taken can have keys that don't
   exist or come after a query. With a mask they are in an order (pa_columns_order) in which a thread reads whole chunks
   of it. Included with PA_A_HEAD, PA_A_CAUSAL and what pa_attention_wgmma.h needs. */
#ifndef PA_ATTENTION_FORWARD_H
#define PA_ATTENTION_FORWARD_H
#include "pa_attention_wgmma.h"

enum {
    PA_A_ROWS = 128,
    PA_A_KEYS = 128,
    PA_A_STAGES = PA_A_HEAD == 64 ? 5 : 2, /* of keys, and of values; of queries two */
    PA_A_WORKERS = 256,
    PA_A_THREADS = 128 + PA_A_WORKERS,
    PA_A_Q = PA_A_ROWS * PA_A_HEAD * 2, /* bytes of a block */
    PA_A_K = PA_A_KEYS * PA_A_HEAD * 2,
    PA_A_KEYS_AT = 2 * PA_A_Q, /* offsets in shared memory */
    PA_A_VALUES_AT = PA_A_KEYS_AT + PA_A_STAGES * PA_A_K,
    PA_A_BARRIERS_AT = PA_A_VALUES_AT + PA_A_STAGES * PA_A_K,
    PA_A_TILES = PA_A_HEAD / 8,
    PA_A_SCORES = PA_A_KEYS / 8,
    PA_A_TURNS = PA_A_HEAD == 128 /* with smaller heads there is too little to multiply */
};

struct pa_attention {
    const char *q, *k, *v, *mask;
    char *out;
    float *logsumexp;
    int64_t q_steps[3], k_steps[3], v_steps[3], mask_steps[3], out_steps[3]; /* bytes: batch, head, line */
    int batch, heads, queries, keys;
    int group; /* of pa_causal_order */
    float scale;
};

/* Where a block of queries is. Those with the most keys come first; heads whose keys fit the cache together, one after
   the other. */
struct pa_attention_tile {
    int batch, head, row, keys; /* keys: blocks of them */
};
PA_FN pa_attention_tile pa_attention_tile_of(const pa_attention &o, int number)
{
    const int rows = (o.queries + PA_A_ROWS - 1) / PA_A_ROWS, all = o.batch * o.heads;
    pa_attention_tile t;
    const int2 place = PA_A_CAUSAL ? pa_causal_order(number, rows, all, o.group)
                                   : make_int2(number / rows, number % rows);
    const int which = place.x, row = PA_A_CAUSAL ? rows - 1 - place.y : place.y;
    t.batch = which / o.heads, t.head = which % o.heads, t.row = row * PA_A_ROWS;
    int keys = o.keys;
    if (PA_A_CAUSAL && t.row + PA_A_ROWS < keys) keys = t.row + PA_A_ROWS;
    t.keys = (keys + PA_A_KEYS - 1) / PA_A_KEYS;
    return t;
}
PA_FN int pa_attention_tiles(const pa_attention &o)
{
    return (o.queries + PA_A_ROWS - 1) / PA_A_ROWS * o.batch * o.heads;
}
PA_FN pa_lines pa_attention_lines(const char *p, const int64_t *steps, const pa_attention_tile &t, int count)
{
    pa_lines lines = {p + t.batch * steps[0] + t.head * steps[1], steps[2], count};
    return lines;
}

/* Addresses of barriers. */
struct pa_attention_block {
    unsigned base;

    __device__ inline unsigned keys(unsigned stage) const { return base + PA_A_KEYS_AT + stage * PA_A_K; }
    __device__ inline unsigned values(unsigned stage) const { return base + PA_A_VALUES_AT + stage * PA_A_K; }
    __device__ inline unsigned barrier(unsigned n) const { return base + PA_A_BARRIERS_AT + n * 8; }
    __device__ inline unsigned full_q(unsigned turn) const { return barrier(turn); }
    __device__ inline unsigned empty_q(unsigned turn) const { return barrier(2 + turn); }
    __device__ inline unsigned full_k(unsigned stage) const { return barrier(4 + stage); }
    __device__ inline unsigned empty_k(unsigned stage) const { return barrier(4 + PA_A_STAGES + stage); }
    __device__ inline unsigned full_v(unsigned stage) const { return barrier(4 + PA_A_STAGES * 2 + stage); }
    __device__ inline unsigned empty_v(unsigned stage) const { return barrier(4 + PA_A_STAGES * 3 + stage); }
};
PA_FN void pa_attention_produce(const pa_attention &o, const pa_attention_block &s)
{
    pa_block_copier<PA_A_HEAD> copier((int)threadIdx.x);
    pa_ring_place q = {0, 1}, k = {0, 1}, v = {0, 1};
    const int tiles = pa_attention_tiles(o);
    for (int turn = 0, number; (number = pa_tile_of_turn(turn)) < tiles; ++turn) {
        const pa_attention_tile t = pa_attention_tile_of(o, number);
        const pa_lines queries = pa_attention_lines(o.q, o.q_steps, t, o.queries),
                       keys = pa_attention_lines(o.k, o.k_steps, t, o.keys),
                       values = pa_attention_lines(o.v, o.v_steps, t, o.keys);
        copier.wait(s.empty_q(q.at), q.parity);
        copier.load<PA_A_ROWS, pa_same_order>(s.base + q.at * PA_A_Q, queries, t.row);
        copier.commit(s.full_q(q.at));
        q.next<2>();
#pragma unroll 1
        for (int n = t.keys; n >= 0; --n) { /* keys are one block ahead of values */
            if (n > 0) {
                copier.wait(s.empty_k(k.at), k.parity);
                copier.load<PA_A_KEYS, pa_columns_order>(s.keys(k.at), keys, (n - 1) * PA_A_KEYS);
                copier.commit(s.full_k(k.at));
                k.next<PA_A_STAGES>();
            }
            if (n < t.keys) {
                copier.wait(s.empty_v(v.at), v.parity);
                copier.load<PA_A_KEYS, pa_columns_order>(s.values(v.at), values, n * PA_A_KEYS);
                copier.commit(s.full_v(v.at));
                v.next<PA_A_STAGES>();
            }
        }
    }
    copier.flush();
}

/* Two warpgroups take turns with the matrix units: while one multiplies, the other computes exponentials. */
PA_FN void pa_turn_wait(int group) { asm volatile("bar.sync %0, 256;" ::"r"(2 + group) : "memory"); }
PA_FN void pa_turn_pass(int group) { asm volatile("bar.arrive %0, 256;" ::"r"(2 + group) : "memory"); }

/* The state of a thread's two rows. */
struct pa_attention_rows {
    float sums[PA_A_TILES][4];
    float top[2], total[2];
};

/* Starts to multiply this warpgroup's queries and a block of keys. */
PA_FN void pa_attention_scores(float (&scores)[PA_A_SCORES][4], unsigned q, unsigned k)
{
    const uint64_t a = pa_block_descriptor(q, 0), b = pa_block_descriptor(k, 0);
    pa_wgmma_begin();
#pragma unroll
    for (int d = 0; d < PA_A_HEAD / 16; ++d)
        pa_wgmma<PA_A_KEYS, false, false>(scores, a + (d / 4 * (PA_A_ROWS * 128) + d % 4 * 32 >> 4),
                                          b + (d / 4 * (PA_A_KEYS * 128) + d % 4 * 32 >> 4), d > 0);
    pa_wgmma_commit();
}
/* Starts to add the weighted values. */
PA_FN void pa_attention_mix(pa_attention_rows &r, const unsigned (&weights)[PA_A_SCORES / 2][4], unsigned v, int onto)
{
    const uint64_t b = pa_block_descriptor(v, PA_A_KEYS * 128);
    pa_wgmma_begin();
#pragma unroll
    for (int d = 0; d < PA_A_KEYS / 16; ++d)
        pa_wgmma<PA_A_HEAD, true>(r.sums, weights[d], b + (d * 2048 >> 4), d > 0 || onto);
    pa_wgmma_commit();
}
/* The mask of a block of keys, of this thread's rows. Its lines are whole chunks of 16 bytes. */
struct pa_attention_mask {
    enum { WORDS = PA_A_MASK ? PA_A_KEYS / 4 * PA_A_MASK_SIZE / 4 : 4 };
    unsigned words[2][WORDS];

    /* `row` and `key`: the first ones of this thread. Before products are started: their time hides this. */
    __device__ inline void load(const pa_attention &o, const pa_attention_tile &t, int row, int key)
    {
        if (!PA_A_MASK) return;
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int line = row + h * 8 < o.queries ? row + h * 8 : o.queries - 1;
            const char *at = o.mask + t.batch * o.mask_steps[0] + t.head * o.mask_steps[1] +
                             line * o.mask_steps[2] + (int64_t)key * PA_A_MASK_SIZE;
#pragma unroll
            for (int n = 0; n < WORDS; n += 4) {
                unsigned *to = words[h] + n;
                to[0] = to[1] = to[2] = to[3] = 0;
                if (key + n * (4 / PA_A_MASK_SIZE) < o.keys)
                    asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
                                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "l"(at + n * 4));
            }
        }
    }
    /* Scores that aren't seen are minus infinity; if numbers are added, scores are of base 2 from here on. */
    __device__ inline void apply(float (&scores)[PA_A_SCORES][4], float scale) const
    {
#pragma unroll
        for (int j = 0; j < PA_A_SCORES; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                float *x = &scores[j][e];
                if (PA_A_MASK == PA_A_SEEN && !(words[e / 2][j / 2] & 0xffu << (j % 2 * 2 + e % 2) * 8))
                    *x = -PA_INF_F32;
                if (PA_A_MASK == PA_A_ADDED) {
                    const unsigned pair = words[e / 2][j];
                    const float added = e % 2 ? pa_half_high(pair) : pa_half_low(pair);
                    *x = __fmaf_rn(*x, scale, __fmul_rn(added, PA_A_LOG2E));
                }
            }
    }
};
/* Scores of keys that don't count are minus infinity. `row` and `key`: the first ones of this thread. */
PA_FN void pa_attention_hide(float (&scores)[PA_A_SCORES][4], int row, int key, int keys)
{
#pragma unroll
    for (int j = 0; j < PA_A_SCORES; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
            const int at = key + pa_columns_order::line(j * 8 + e % 2);
            if (at >= keys || (PA_A_CAUSAL && at > row + e / 2 * 8)) scores[j][e] = -PA_INF_F32;
        }
}
/* Scores become their exponentials; `shrink` is what older sums are multiplied by. */
PA_FN void pa_attention_weigh(float (&scores)[PA_A_SCORES][4], pa_attention_rows &r, float scale, float (&shrink)[2])
{
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        float top = fmaxf(scores[0][h * 2], scores[0][h * 2 + 1]);
#pragma unroll
        for (int j = 1; j < PA_A_SCORES; ++j) top = fmaxf(top, fmaxf(scores[j][h * 2], scores[j][h * 2 + 1]));
        top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
        top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
        top = fmaxf(top, r.top[h]);
        const float base = top == -PA_INF_F32 ? 0 : top * scale;
        shrink[h] = pa_exp2_fast(r.top[h] * scale - base);
        float total = 0, other = 0;
#pragma unroll
        for (int j = 0; j < PA_A_SCORES; ++j) {
            float *x = scores[j] + h * 2;
            x[0] = pa_exp2_fast(__fmaf_rn(x[0], scale, -base)), x[1] = pa_exp2_fast(__fmaf_rn(x[1], scale, -base));
            total += x[0], other += x[1];
        }
        r.total[h] = r.total[h] * shrink[h] + (total + other);
        r.top[h] = top;
    }
}
PA_FN void pa_attention_pack(unsigned (&weights)[PA_A_SCORES / 2][4], const float (&scores)[PA_A_SCORES][4])
{
#pragma unroll
    for (int d = 0; d < PA_A_SCORES / 2; ++d)
#pragma unroll
        for (int e = 0; e < 4; ++e)
            weights[d][e] = pa_halves(scores[2 * d + e / 2][e % 2 * 2], scores[2 * d + e / 2][e % 2 * 2 + 1]);
}

PA_FN void pa_attention_store(const pa_attention &o, const pa_attention_tile &t, pa_attention_rows &r, int row)
{
    const int lane = (int)threadIdx.x % 32;
    const int64_t first = (int64_t)(t.batch * o.heads + t.head) * o.queries;
    char *out = o.out + t.batch * o.out_steps[0] + t.head * o.out_steps[1];
    const float unit = PA_A_MASK == PA_A_ADDED ? 1 / PA_A_LOG2E : o.scale;
    float factor[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
        float total = r.total[h];
        total += __shfl_xor_sync(~0u, total, 1);
        total += __shfl_xor_sync(~0u, total, 2);
        factor[h] = total == 0 ? 0 : 1 / total;
        const int at = row + h * 8;
        if (at < o.queries && lane % 4 == 0)
            o.logsumexp[first + at] = total == 0 ? -PA_INF_F32 : r.top[h] * unit + __logf(total);
    }
    pa_store_lines<8>(out, o.out_steps[2], r.sums, row, o.queries, factor[0], factor[1]);
}

PA_FN void pa_attention_consume(const pa_attention &o, const pa_attention_block &s)
{
    const int thread = (int)threadIdx.x - 128, lane = thread % 32;
    const int group = __shfl_sync(~0u, thread / 128, 0); /* so that the compiler knows it is a warp's */
    const bool says = lane == 0; /* that the warp has read a block */
    const float scale = o.scale * PA_A_LOG2E, factor = PA_A_MASK == PA_A_ADDED ? 1 : scale;
    pa_ring_place query = {0, 0}, k = {0, 0}, v = {0, 0};
    const int tiles = pa_attention_tiles(o);
    if (PA_A_TURNS && group) pa_turn_pass(0);
    for (int turn = 0, number; (number = pa_tile_of_turn(turn)) < tiles; ++turn, query.next<2>()) {
        const unsigned q = s.base + query.at * PA_A_Q + group * (64 * 128);
        const pa_attention_tile t = pa_attention_tile_of(o, number);
        const int row = t.row + group * 64 + thread % 128 / 32 * 16 + lane / 4;
        const int key = pa_columns_order::line(lane % 4 * 2);
        pa_attention_rows r;
        float scores[PA_A_SCORES][4], shrink[2];
        unsigned weights[PA_A_SCORES / 2][4];
        pa_attention_mask mask;
        r.top[0] = r.top[1] = -PA_INF_F32, r.total[0] = r.total[1] = 0;
        mask.load(o, t, row, (t.keys - 1) * PA_A_KEYS + key);
        pa_mbarrier_wait(s.full_q(query.at), query.parity);
        pa_mbarrier_wait(s.full_k(k.at), k.parity);
        pa_attention_scores(scores, q, s.keys(k.at));
        pa_wgmma_wait<0>();
        pa_keep(scores);
        if (says) pa_mbarrier_arrive(s.empty_k(k.at));
        if (says && t.keys == 1) pa_mbarrier_arrive(s.empty_q(query.at));
        k.next<PA_A_STAGES>();
        mask.apply(scores, scale);
        pa_attention_hide(scores, row, (t.keys - 1) * PA_A_KEYS + key, o.keys);
        pa_attention_weigh(scores, r, factor, shrink);
        pa_attention_pack(weights, scores);
#pragma unroll 1
        for (int n = t.keys - 2; n >= 0; --n) {
            mask.load(o, t, row, n * PA_A_KEYS + key);
            pa_mbarrier_wait(s.full_k(k.at), k.parity);
            if (PA_A_TURNS) pa_turn_wait(group);
            pa_attention_scores(scores, q, s.keys(k.at));
            pa_mbarrier_wait(s.full_v(v.at), v.parity);
            pa_attention_mix(r, weights, s.values(v.at), n < t.keys - 2);
            if (PA_A_TURNS) pa_turn_pass(1 - group);
            pa_wgmma_wait<1>();
            pa_keep(scores);
            if (says) pa_mbarrier_arrive(s.empty_k(k.at));
            if (says && n == 0) pa_mbarrier_arrive(s.empty_q(query.at));
            k.next<PA_A_STAGES>();
            mask.apply(scores, scale);
            pa_attention_weigh(scores, r, factor, shrink);
            pa_wgmma_wait<0>();
            pa_keep(r.sums);
            if (says) pa_mbarrier_arrive(s.empty_v(v.at));
            v.next<PA_A_STAGES>();
#pragma unroll
            for (int j = 0; j < PA_A_TILES; ++j)
#pragma unroll
                for (int e = 0; e < 4; ++e) r.sums[j][e] *= shrink[e / 2];
            pa_attention_pack(weights, scores);
        }
        pa_mbarrier_wait(s.full_v(v.at), v.parity);
        pa_attention_mix(r, weights, s.values(v.at), t.keys > 1);
        pa_wgmma_wait<0>();
        pa_keep(r.sums);
        if (says) pa_mbarrier_arrive(s.empty_v(v.at));
        v.next<PA_A_STAGES>();
        pa_attention_store(o, t, r, row);
    }
}

PA_FN void pa_attention_forward(const pa_attention &o)
{
    extern __shared__ __align__(1024) unsigned char pa_attention_memory[];
    const pa_attention_block s = {(unsigned)__cvta_generic_to_shared(pa_attention_memory)};
    if (threadIdx.x == 0) {
        const int readers = PA_A_WORKERS / 32;
        for (int n = 0; n < 2; ++n) pa_mbarrier_init(s.full_q(n), 128), pa_mbarrier_init(s.empty_q(n), readers);
        for (int n = 0; n < PA_A_STAGES; ++n) {
            pa_mbarrier_init(s.full_k(n), 128), pa_mbarrier_init(s.full_v(n), 128);
            pa_mbarrier_init(s.empty_k(n), readers), pa_mbarrier_init(s.empty_v(n), readers);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        pa_attention_produce(o, s);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        pa_attention_consume(o, s);
    }
}
#endif
