/* pa_attention_backward.h: gradients of attention on sm_90a, for heads of 64 and 128 halves whose lines are aligned. A
   block has 128 keys and goes through the queries; each of two warpgroups has 64 keys, and their gradients in
   registers. Scores are transposed, with keys as rows, so that weights and their changes are operands in registers;
   changes go to shared memory, too, where the gradient of queries takes those of all 128 keys. Blocks add that up in
   float32 in global memory, by fragments (PA_A_QUERY_PART), and another kernel makes halves of it. Queries that don't
   exist are zeros, and so is all that comes of them; the weights of keys that don't exist are made zeros. With a mask
   keys are in an order (pa_rows_order) in which a thread reads pairs of it. Included with PA_A_HEAD, PA_A_CAUSAL and
   what pa_attention_wgmma.h needs. */
#ifndef PA_ATTENTION_BACKWARD_H
#define PA_ATTENTION_BACKWARD_H
#include "pa_attention_wgmma.h"

enum {
    PA_A_KEYS = 128,
    PA_A_ROWS = PA_A_HEAD == 64 ? 128 : 64, /* queries of a step */
    PA_A_STAGES = 2,
    PA_A_THREADS = 128 + 256,
    PA_A_K = PA_A_KEYS * PA_A_HEAD * 2, /* bytes of blocks */
    PA_A_Q = PA_A_ROWS * PA_A_HEAD * 2,
    PA_A_CHANGES = PA_A_KEYS * PA_A_ROWS * 2,
    PA_A_STATISTICS = 2 * PA_A_ROWS * 4,
    PA_A_V_AT = PA_A_K, /* offsets in shared memory */
    PA_A_Q_AT = 2 * PA_A_K,
    PA_A_GRAD_AT = PA_A_Q_AT + PA_A_STAGES * PA_A_Q,
    PA_A_CHANGES_AT = PA_A_GRAD_AT + PA_A_STAGES * PA_A_Q,
    PA_A_STATISTICS_AT = PA_A_CHANGES_AT + 2 * PA_A_CHANGES,
    PA_A_BARRIERS_AT = PA_A_STATISTICS_AT + PA_A_STAGES * PA_A_STATISTICS,
    PA_A_TILES = PA_A_HEAD / 8,
    PA_A_SCORES = PA_A_ROWS / 8,
    PA_A_QUERY_PART = 64 * 64 /* elements of gradients of queries that a warpgroup adds: 8 times 4 of each thread */
};

struct pa_attention {
    const char *q, *k, *v, *grad, *out, *mask;
    char *grad_q, *grad_k, *grad_v;
    const float *logsumexp;
    float *statistics; /* of each head: its logsumexp of base 2, and what is taken from changes; whole blocks of rows */
    float *sums;       /* gradients of queries by parts */
    int64_t q_steps[3], k_steps[3], v_steps[3], grad_steps[3], out_steps[3]; /* bytes: batch, head, line */
    int64_t grad_q_steps[3], grad_k_steps[3], grad_v_steps[3], mask_steps[3];
    int batch, heads, queries, keys;
    int group; /* of pa_causal_order */
    float scale;
};
PA_FN int pa_attention_padded(const pa_attention &o) { return (o.queries + 127) / 128 * 128; }
PA_FN const char *pa_attention_head(const char *p, const int64_t *steps, int which, int heads)
{
    return p + which / heads * steps[0] + which % heads * steps[1];
}

/* Before: a warp for each row of queries. */
PA_FN void pa_attention_prepare(const pa_attention &o)
{
    const int padded = pa_attention_padded(o), lane = (int)threadIdx.x % 32;
    const int64_t rows = (int64_t)o.batch * o.heads * padded, warps = (int64_t)gridDim.x * (blockDim.x / 32);
    for (int64_t n = (int64_t)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32; n < rows; n += warps) {
        const int which = (int)(n / padded), row = (int)(n % padded);
        float removed = 0, top = 0;
        if (row < o.queries) {
            const char *x = pa_attention_head(o.grad, o.grad_steps, which, o.heads) + row * o.grad_steps[2];
            const char *y = pa_attention_head(o.out, o.out_steps, which, o.heads) + row * o.out_steps[2];
#pragma unroll
            for (int d = 0; d < PA_A_HEAD; d += 64) {
                const int at = d * 2 + lane * 4;
                const unsigned a = *(const unsigned *)(x + at), b = *(const unsigned *)(y + at);
                removed += pa_half_low(a) * pa_half_low(b) + pa_half_high(a) * pa_half_high(b);
            }
            top = o.logsumexp[(int64_t)which * o.queries + row] * PA_A_LOG2E;
            if (top == -PA_INF_F32) top = 0; /* a query that sees nothing */
        }
#pragma unroll
        for (int d = 16; d > 0; d /= 2) removed += __shfl_xor_sync(~0u, removed, d);
        if (lane == 0) {
            float *to = o.statistics + ((int64_t)which * 2) * padded + row;
            to[0] = top, to[padded] = removed;
        }
        float4 *sums = (float4 *)(o.sums + n * PA_A_HEAD);
        for (int d = lane; d < PA_A_HEAD / 4; d += 32) sums[d] = make_float4(0, 0, 0, 0);
    }
}

/* After: a warpgroup for each part. */
PA_FN void pa_attention_finish(const pa_attention &o)
{
    const int blocks = pa_attention_padded(o) / 64, thread = (int)threadIdx.x;
    const int64_t parts = (int64_t)o.batch * o.heads * blocks * (PA_A_HEAD / 64);
    for (int64_t n = blockIdx.x; n < parts; n += gridDim.x) {
        const int column = (int)(n % (PA_A_HEAD / 64)) * 64, block = (int)(n / (PA_A_HEAD / 64) % blocks);
        const int which = (int)(n / (PA_A_HEAD / 64) / blocks);
        float x[8][4];
#pragma unroll
        for (int j = 0; j < 8; ++j)
            *(float4 *)x[j] = ((const float4 *)(o.sums + n * PA_A_QUERY_PART))[j * 128 + thread];
        char *to = (char *)pa_attention_head(o.grad_q, o.grad_q_steps, which, o.heads) + column * 2;
        const int row = block * 64 + thread / 32 * 16 + thread % 32 / 4;
        pa_store_lines<8>(to, o.grad_q_steps[2], x, row, o.queries, o.scale, o.scale);
    }
}

struct pa_attention_block {
    unsigned base;

    __device__ inline unsigned q(unsigned stage) const { return base + PA_A_Q_AT + stage * PA_A_Q; }
    __device__ inline unsigned grad(unsigned stage) const { return base + PA_A_GRAD_AT + stage * PA_A_Q; }
    __device__ inline unsigned statistics(unsigned stage) const
    {
        return base + PA_A_STATISTICS_AT + stage * PA_A_STATISTICS;
    }
    __device__ inline unsigned barrier(unsigned n) const { return base + PA_A_BARRIERS_AT + n * 8; }
    __device__ inline unsigned full_keys() const { return barrier(0); }
    __device__ inline unsigned full_changes() const { return barrier(1); }
    __device__ inline unsigned full_q(unsigned stage) const { return barrier(2 + stage); }
    __device__ inline unsigned full_grad(unsigned stage) const { return barrier(4 + stage); }
    __device__ inline unsigned empty(unsigned stage) const { return barrier(6 + stage); }
    __device__ inline unsigned empty_keys() const { return barrier(8); }
};
/* Blocks of keys: those with the most queries first. */
struct pa_attention_tile {
    int which, key, first, past; /* steps of queries */
};
PA_FN int pa_attention_tiles(const pa_attention &o)
{
    return (o.keys + PA_A_KEYS - 1) / PA_A_KEYS * o.batch * o.heads;
}
PA_FN pa_attention_tile pa_attention_tile_of(const pa_attention &o, int number)
{
    const int blocks = (o.keys + PA_A_KEYS - 1) / PA_A_KEYS, all = o.batch * o.heads;
    pa_attention_tile t;
    const int2 place = PA_A_CAUSAL ? pa_causal_order(number, blocks, all, o.group)
                                   : make_int2(number / blocks, number % blocks);
    t.which = place.x, t.key = place.y * PA_A_KEYS;
    t.past = (o.queries + PA_A_ROWS - 1) / PA_A_ROWS;
    t.first = PA_A_CAUSAL ? t.key / PA_A_ROWS : 0;
    return t;
}

PA_FN void pa_attention_copy(const pa_attention &o, const pa_attention_block &s, const pa_attention_tile &t,
                             pa_block_copier<PA_A_HEAD> &copier, pa_ring_place &at, unsigned keys_parity)
{
    const int thread = (int)threadIdx.x, padded = pa_attention_padded(o);
    const pa_lines k = {pa_attention_head(o.k, o.k_steps, t.which, o.heads), o.k_steps[2], o.keys};
    const pa_lines v = {pa_attention_head(o.v, o.v_steps, t.which, o.heads), o.v_steps[2], o.keys};
    const pa_lines q = {pa_attention_head(o.q, o.q_steps, t.which, o.heads), o.q_steps[2], o.queries};
    const pa_lines g = {pa_attention_head(o.grad, o.grad_steps, t.which, o.heads), o.grad_steps[2], o.queries};
    const float *statistics = o.statistics + (int64_t)t.which * 2 * padded;
    copier.wait(s.empty_keys(), keys_parity);
    copier.load<PA_A_KEYS, pa_rows_order>(s.base, k, t.key);
    copier.load<PA_A_KEYS, pa_rows_order>(s.base + PA_A_V_AT, v, t.key);
    copier.commit(s.full_keys());
#pragma unroll 1
    for (int n = t.first; n < t.past; ++n, at.next<PA_A_STAGES>()) {
        copier.wait(s.empty(at.at), at.parity);
        copier.load<PA_A_ROWS, pa_same_order>(s.q(at.at), q, n * PA_A_ROWS);
        if (thread < PA_A_ROWS / 2) { /* chunks of 16 bytes of both */
            const int chunk = thread % (PA_A_ROWS / 4), second = thread / (PA_A_ROWS / 4);
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                             s.statistics(at.at) + second * (PA_A_ROWS * 4) + chunk * 16),
                         "l"(statistics + second * padded + n * PA_A_ROWS + chunk * 4) : "memory");
        }
        copier.commit(s.full_q(at.at));
        copier.load<PA_A_ROWS, pa_same_order>(s.grad(at.at), g, n * PA_A_ROWS);
        copier.commit(s.full_grad(at.at));
    }
}
PA_FN void pa_attention_produce(const pa_attention &o, const pa_attention_block &s)
{
    pa_block_copier<PA_A_HEAD> copier((int)threadIdx.x);
    pa_ring_place at = {0, 1};
    unsigned parity = 1;
    const int tiles = pa_attention_tiles(o);
    for (int turn = 0, number; (number = pa_tile_of_turn(turn)) < tiles; ++turn, parity ^= 1)
        pa_attention_copy(o, s, pa_attention_tile_of(o, number), copier, at, parity);
    copier.flush();
}

/* Starts to multiply 64 lines of one block and all lines of another, along the head. */
PA_FN void pa_attention_multiply(float (&c)[PA_A_SCORES][4], unsigned lines, unsigned others)
{
    const uint64_t a = pa_block_descriptor(lines, 0), b = pa_block_descriptor(others, 0);
#pragma unroll
    for (int d = 0; d < PA_A_HEAD / 16; ++d)
        pa_wgmma<PA_A_ROWS, false, false>(c, a + (d / 4 * (PA_A_KEYS * 128) + d % 4 * 32 >> 4),
                                          b + (d / 4 * (PA_A_ROWS * 128) + d % 4 * 32 >> 4), d > 0);
    pa_wgmma_commit();
}
/* Starts to add the product of fragments in registers and a block of queries. */
PA_FN void pa_attention_add(float (&c)[PA_A_TILES][4], const unsigned (&a)[PA_A_SCORES / 2][4], unsigned block)
{
    const uint64_t b = pa_block_descriptor(block, PA_A_ROWS * 128);
#pragma unroll
    for (int d = 0; d < PA_A_ROWS / 16; ++d)
        pa_wgmma<PA_A_HEAD, true>(c, a[d], b + (d * 2048 >> 4), 1);
    pa_wgmma_commit();
}
PA_FN void pa_attention_pack(unsigned (&to)[PA_A_SCORES / 2][4], const float (&from)[PA_A_SCORES][4])
{
#pragma unroll
    for (int d = 0; d < PA_A_SCORES / 2; ++d)
#pragma unroll
        for (int e = 0; e < 4; ++e)
            to[d][e] = pa_halves(from[2 * d + e / 2][e % 2 * 2], from[2 * d + e / 2][e % 2 * 2 + 1]);
}
PA_FN float2 pa_shared_pair(unsigned address)
{
    float2 x;
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(x.x), "=f"(x.y) : "r"(address) : "memory");
    return x;
}
/* Adds 64 x 64 gradients of queries to those in memory. */
PA_FN void pa_attention_reduce(float *to, const float (&x)[8][4], int thread)
{
#pragma unroll
    for (int j = 0; j < 8; ++j)
        asm volatile("red.relaxed.gpu.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to + (j * 128 + thread) * 4),
                     "f"(x[j][0]), "f"(x[j][1]), "f"(x[j][2]), "f"(x[j][3]) : "memory");
}

/* The mask of this thread's two keys and a step's queries. */
struct pa_attention_mask {
    enum { WORDS = PA_A_MASK_SIZE }; /* booleans of two queries are a word */
    unsigned pairs[PA_A_SCORES][WORDS];

    /* `row` and `key`: the first ones of this thread. Queries that don't exist get no numbers: infinite weights would
       make NaNs of their zeros. */
    __device__ inline void load(const pa_attention &o, const pa_attention_tile &t, int row, int key)
    {
        if (!PA_A_MASK) return;
        const char *at = pa_attention_head(o.mask, o.mask_steps, t.which, o.heads) + row * o.mask_steps[2] +
                         (int64_t)key * PA_A_MASK_SIZE;
#pragma unroll
        for (int j = 0; j < PA_A_SCORES; ++j)
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const char *from = at + (j * 8 + i) * o.mask_steps[2];
                unsigned pair = 0;
                if (key < o.keys && row + j * 8 + i < o.queries)
                    pair = PA_A_MASK == PA_A_ADDED ? __ldg((const unsigned *)from) : __ldg((const uint16_t *)from);
                pairs[j][i % WORDS] = WORDS == 1 && i ? __byte_perm(pairs[j][0], pair, 0x5410) : pair;
            }
    }
    __device__ inline bool seen(int j, int e) const
    {
        return PA_A_MASK != PA_A_SEEN || pairs[j][0] & 0xffu << (e % 2 * 2 + e / 2) * 8;
    }
    /* A score of base 2 and what the mask adds, rounded as forward: of a query whose keys all have great numbers, the
       difference must not be what a sharper product would leave. */
    __device__ inline float plus(float score, int j, int e) const
    {
        if (PA_A_MASK != PA_A_ADDED) return score;
        const unsigned pair = pairs[j][e % 2];
        return __fadd_rn(__fmul_rn(e / 2 ? pa_half_high(pair) : pa_half_low(pair), PA_A_LOG2E), score);
    }
};

/* What goes on from one block of keys to the next. */
struct pa_attention_turns {
    pa_ring_place at;
    unsigned turn, keys;
};
PA_FN void pa_attention_compute(const pa_attention &o, const pa_attention_block &s, const pa_attention_tile &t,
                                pa_attention_turns &turns)
{
    const int thread = (int)threadIdx.x % 128, lane = thread % 32;
    const int group = __shfl_sync(~0u, (int)threadIdx.x / 128 - 1, 0); /* so that the compiler knows it is a warp's */
    const int line = group * 64 + thread / 32 * 16 + lane / 4, column = lane % 4 * 2;
    enum { OTHER = pa_rows_order::line(8) }; /* this thread's keys: `key` and `key + OTHER` */
    const int key = t.key + pa_rows_order::line(line);
    const float scale = o.scale * PA_A_LOG2E;
    const unsigned k = s.base + group * 8192, v = k + PA_A_V_AT;
    const int64_t parts = (int64_t)t.which * (pa_attention_padded(o) / 64) * (PA_A_HEAD / 64);
    float grad_k[PA_A_TILES][4], grad_v[PA_A_TILES][4];
#pragma unroll
    for (int j = 0; j < PA_A_TILES; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) grad_k[j][e] = grad_v[j][e] = 0;
    pa_ring_place at = turns.at;
    unsigned turn = turns.turn;
    pa_mbarrier_wait(s.full_keys(), turns.keys);
#pragma unroll 1
    for (int n = t.first; n < t.past; ++n, turn ^= 1) {
        float scores[PA_A_SCORES][4], changes[PA_A_SCORES][4];
        unsigned weights[PA_A_SCORES / 2][4], packed[PA_A_SCORES / 2][4];
        pa_attention_mask mask;
        mask.load(o, t, n * PA_A_ROWS + column, key);
        pa_mbarrier_wait(s.full_q(at.at), at.parity);
        pa_wgmma_begin();
        pa_attention_multiply(scores, k, s.q(at.at));
        pa_mbarrier_wait(s.full_grad(at.at), at.parity);
        pa_attention_multiply(changes, v, s.grad(at.at));
        pa_wgmma_wait<1>();
        pa_keep(scores);
        const unsigned tops = s.statistics(at.at) + column * 4;
        const bool diagonal = PA_A_CAUSAL && n * PA_A_ROWS < t.key + PA_A_KEYS;
#pragma unroll
        for (int j = 0; j < PA_A_SCORES; ++j) {
            const float2 top = pa_shared_pair(tops + j * 32);
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const float base = mask.plus(-(e % 2 ? top.y : top.x), j, e);
                scores[j][e] = pa_exp2_fast(__fmaf_rn(scores[j][e], scale, base));
                if (!mask.seen(j, e)) scores[j][e] = 0;
                if (diagonal && n * PA_A_ROWS + j * 8 + column + e % 2 < key + e / 2 * OTHER) scores[j][e] = 0;
            }
        }
        if (t.key + PA_A_KEYS > o.keys) { /* scores of keys that don't exist are 0, which may be far above the others */
#pragma unroll
            for (int j = 0; j < PA_A_SCORES; ++j)
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    if (key + e / 2 * OTHER >= o.keys) scores[j][e] = 0;
        }
        pa_attention_pack(weights, scores);
        pa_wgmma_wait_after(scores, s.full_grad(at.at), at.parity);
        pa_keep(changes);
#pragma unroll
        for (int j = 0; j < PA_A_SCORES; ++j) {
            const float2 removed = pa_shared_pair(tops + PA_A_ROWS * 4 + j * 32);
#pragma unroll
            for (int e = 0; e < 4; ++e)
                changes[j][e] = scores[j][e] * (changes[j][e] - (e % 2 ? removed.y : removed.x));
        }
        pa_attention_pack(packed, changes);
        const unsigned shared = s.base + PA_A_CHANGES_AT + turn * PA_A_CHANGES;
#pragma unroll
        for (int j = 0; j < PA_A_SCORES; ++j)
#pragma unroll
            for (int h = 0; h < 2; ++h)
                asm volatile("st.shared.b32 [%0], %1;" ::"r"(shared + j / 8 * (PA_A_KEYS * 128) + (line + h * 8) * 128 +
                                                             ((j % 8 ^ line % 8) << 4) + column * 2),
                             "r"(packed[j / 2][j % 2 * 2 + h]) : "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncwarp();
        if (lane == 0) pa_mbarrier_arrive(s.full_changes());
        pa_wgmma_begin();
        pa_attention_add(grad_v, weights, s.grad(at.at));
        pa_attention_add(grad_k, packed, s.q(at.at));
        float sums[8][4]; /* of 64 queries and 64 elements of the head */
        const uint64_t a = pa_block_descriptor(shared + (PA_A_HEAD == 64 ? group * (PA_A_KEYS * 128) : 0), 0);
        const uint64_t b = pa_block_descriptor(s.base + (PA_A_HEAD == 64 ? 0 : group * (PA_A_KEYS * 128)), 0);
        pa_mbarrier_wait(s.full_changes(), turn);
        pa_wgmma_begin();
#pragma unroll
        for (int d = 0; d < PA_A_KEYS / 16; ++d)
            pa_wgmma<64, true, true>(sums, a + (d * 2048 >> 4), b + (d * 2048 >> 4), d > 0);
        pa_wgmma_commit();
        pa_wgmma_wait<1>();
        pa_keep(grad_v);
        pa_keep(grad_k);
        if (lane == 0) pa_mbarrier_arrive(s.empty(at.at));
        at.next<PA_A_STAGES>();
        pa_wgmma_wait<0>();
        pa_keep(sums);
        pa_attention_reduce(o.sums + (parts + n * 2 + group) * PA_A_QUERY_PART, sums, thread);
    }
    if (lane == 0) pa_mbarrier_arrive(s.empty_keys());
    turns.at = at, turns.turn = turn, turns.keys ^= 1;
    char *to_k = (char *)pa_attention_head(o.grad_k, o.grad_k_steps, t.which, o.heads);
    char *to_v = (char *)pa_attention_head(o.grad_v, o.grad_v_steps, t.which, o.heads);
    pa_store_lines<OTHER>(to_k, o.grad_k_steps[2], grad_k, key, o.keys, o.scale, o.scale);
    pa_store_lines<OTHER>(to_v, o.grad_v_steps[2], grad_v, key, o.keys, 1, 1);
}

PA_FN void pa_attention_consume(const pa_attention &o, const pa_attention_block &s)
{
    pa_attention_turns turns = {{0, 0}, 0, 0};
    const int tiles = pa_attention_tiles(o);
    for (int turn = 0, number; (number = pa_tile_of_turn(turn)) < tiles; ++turn)
        pa_attention_compute(o, s, pa_attention_tile_of(o, number), turns);
}

PA_FN void pa_attention_backward(const pa_attention &o)
{
    extern __shared__ __align__(1024) unsigned char pa_attention_memory[];
    const pa_attention_block s = {(unsigned)__cvta_generic_to_shared(pa_attention_memory)};
    if (threadIdx.x == 0) {
        pa_mbarrier_init(s.full_keys(), 128);
        pa_mbarrier_init(s.empty_keys(), 8);
        pa_mbarrier_init(s.full_changes(), 8);
        for (int n = 0; n < PA_A_STAGES; ++n) {
            pa_mbarrier_init(s.full_q(n), 128), pa_mbarrier_init(s.full_grad(n), 128);
            pa_mbarrier_init(s.empty(n), 8);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        pa_attention_produce(o, s);
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
        pa_attention_consume(o, s);
    }
}
#endif
