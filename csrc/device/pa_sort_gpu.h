/* pa_sort_gpu.h: stable radix sorts and argsorts on a grid. Included once per type, with these macros: PA_S_KEY,
   unsigned; PA_S_SIGN_FLIP ... PA_S_ZERO, how an element's bits become a key (`KeyTransform` in
   kernels/sort/sort_keys.py); PA_S_ITEMS, elements per thread; PA_S_POSITIONS, 1 for an argsort; PA_S_WIDE, whether
   positions need 64 bits; PA_S_ROWS, whether a block sorts whole rows, and PA_S_CARRY, whether it sorts their positions
   with them; PA_S_MATCH, whether lanes with the same digit are matched by a lane mask for each digit in shared memory,
   which must have room, or by ballots. Digits have 8 bits, and a block has a thread for each value of a digit. The
   match gives a lane's rank in its warp; counts per warp and digit in shared memory give the rank in the tile. Elements
   are ordered in shared memory first, so that those of one digit are written next to each other. Atomics of lanes with
   the same digit are serialized, so the digits that are frequent in a tile are matched by ballots. Long rows are in
   pa_sort_passes_gpu.h. */
#ifndef PA_SORT_GPU_H
#define PA_SORT_GPU_H
#include "pa_base.h"
#ifdef PA_DEBUG_CHECKS
#include "pa_check.h"
#endif

enum {
    PA_S_THREADS = 256, /* values of a digit, too */
    PA_S_TILE = PA_S_THREADS * PA_S_ITEMS,
    PA_S_PASSES = sizeof(PA_S_KEY),
    PA_S_WARPS = 8,                               /* at most */
    PA_S_COPIES = sizeof(PA_S_KEY) > 4 ? 4 : 8,   /* of a digit's counter, so that few atomics conflict */
    PA_S_IN_FLIGHT = 8,                           /* elements of a thread that are loaded at once to be counted */
    PA_S_LOOK_BACK = 4,                           /* tiles whose states are loaded at once */
    PA_S_FREQUENT = 2,                            /* digits matched by ballots, each of more than an eighth of a tile */
    PA_S_AGGREGATE = 1, PA_S_PREFIX = 2           /* flags of a tile's counts */
};
#if PA_S_WIDE
typedef unsigned long long pa_sort_word;
#else
typedef unsigned pa_sort_word; /* a count of 30 bits and 2 flags */
#endif
#if PA_S_POSITIONS
typedef int64_t pa_sort_out;
#else
typedef PA_S_KEY pa_sort_out;
#endif
#if PA_S_POSITIONS && !PA_S_CARRY
typedef pa_sort_word pa_sort_position; /* in shared memory */
#else
typedef uint16_t pa_sort_position;
#endif

#if defined(__HIPCC__) || defined(__HIPCC_RTC__)
typedef unsigned long long pa_lanes;
#define PA_LANES warpSize
PA_FN pa_lanes pa_ballot(bool x) { return __ballot(x); }
PA_FN void pa_lanes_sync(void) { __builtin_amdgcn_wave_barrier(); __threadfence_block(); }
PA_FN int pa_popcount(pa_lanes x) { return __popcll(x); }
PA_FN int pa_last_lane(pa_lanes x) { return 63 - __clzll((long long)x); }
PA_FN unsigned pa_shfl(unsigned x, int lane) { return (unsigned)__shfl((int)x, lane); }
template <typename T> PA_FN T pa_shfl_up(T x, int d) { return __shfl_up(x, d); }
#else
typedef unsigned pa_lanes;
#define PA_LANES 32 /* warpSize is no constant there */
PA_FN pa_lanes pa_ballot(bool x) { return __ballot_sync(0xffffffffu, x); }
PA_FN void pa_lanes_sync(void) { __syncwarp(); }
PA_FN int pa_popcount(pa_lanes x) { return __popc(x); }
PA_FN int pa_last_lane(pa_lanes x) { return 31 - __clz((int)x); }
PA_FN unsigned pa_shfl(unsigned x, int lane) { return __shfl_sync(0xffffffffu, x, lane); }
template <typename T> PA_FN T pa_shfl_up(T x, int d) { return __shfl_up_sync(0xffffffffu, x, d); }
#endif

/* An array of the arguments. In debug mode an index outside is reported, and lands in scrap memory. */
template <typename T> struct pa_sort_array {
    T *data;
    int64_t size;
#ifdef PA_DEBUG_CHECKS
    pa_runtime *rt;
    int site;
    int64_t offset;
    __device__ bool inside(int64_t i) const
    {
        return pa_check_index(rt, 0, site, 0, (int64_t)blockIdx.x * PA_S_THREADS + threadIdx.x, i, size, offset, size);
    }
    __device__ T &at(int64_t i) const { return *(inside(i) ? data + i : (T *)&pa_scrap); }
#else
    __device__ bool inside(int64_t) const { return true; }
    __device__ T &at(int64_t i) const { return data[i]; }
#endif
};

/* `keys` and `positions` are double buffers. `work` starts as zeros: 256 words, the first of which numbers the tiles of
   all passes; then what each pass does with each row, counts of the digits, and tiles' counts. */
typedef struct pa_sort_grid {
    int64_t rows, n, tiles, parts; /* of a row: tiles, blocks that count digits; in pa_sort_rows `tiles` are rows */
    pa_sort_array<pa_sort_out> out;
    pa_sort_array<PA_S_KEY> x, keys;
    pa_sort_array<pa_sort_word> positions, work;

    __device__ int64_t step(int64_t row, int pass) const { return 256 + row * PA_S_PASSES + pass; }
    __device__ int64_t digit(int64_t row, int pass, int d) const
    {
        return 256 + (rows * PA_S_PASSES + 255) / 256 * 256 + (row * PA_S_PASSES + pass) * 256 + d;
    }
    __device__ int64_t state(int pass, int64_t tile, int d) const
    {
        return digit(rows, 0, 0) + (pass * rows * tiles + tile) * 256 + d;
    }
} pa_sort_grid;

PA_FN PA_S_KEY pa_sort_key(PA_S_KEY v)
{
    if ((v & PA_S_SIGN_FLIP) > PA_S_LIMIT) v = PA_S_NAN;
    return (PA_S_KEY)(v ^ (((PA_S_KEY)(0 - (v >> (8 * sizeof v - 1))) & PA_S_SIGN_FLIP) ^ PA_S_FLIP));
}
PA_FN PA_S_KEY pa_sort_value(PA_S_KEY v)
{
    return (PA_S_KEY)(v ^ (((PA_S_KEY)(0 - ((PA_S_KEY)(v ^ PA_S_FLIP) >> (8 * sizeof v - 1))) & PA_S_SIGN_FLIP) ^
                           PA_S_FLIP));
}
PA_FN unsigned pa_sort_digit(PA_S_KEY key, int pass)
{
    /* -0.0 is equal to 0.0, and stays what it is */
    if (key == (PA_S_ZERO ^ PA_S_SIGN_FLIP ^ PA_S_FLIP)) key = PA_S_FLIP;
    return (unsigned)(key >> 8 * pass) & 255;
}

struct pa_sort_shared {
    union {
        PA_S_KEY keys[PA_S_TILE];
        pa_sort_position positions[PA_S_TILE];
    };
    unsigned counts[PA_S_WARPS][PA_S_THREADS];
#if PA_S_MATCH
    pa_lanes lanes[PA_S_WARPS][PA_S_THREADS]; /* the lanes of a warp with a digit */
    unsigned frequent[PA_S_FREQUENT], found;
#endif
    pa_sort_word sums[PA_S_WARPS], before[PA_S_THREADS];
    int64_t tile, row;
    int pass;
};

/* The sum of `x` of all threads before this one. */
template <typename T> PA_FN T pa_sort_exclusive_scan(T x, pa_sort_word *sums)
{
    const int lane = (int)threadIdx.x % PA_LANES, warp = (int)threadIdx.x / PA_LANES;
    T all = x;
    for (int d = 1; d < PA_LANES; d *= 2) {
        const T below = pa_shfl_up(all, d);
        if (lane >= d) all += below;
    }
    if (lane == PA_LANES - 1) sums[warp] = all;
    __syncthreads();
    for (int w = 0; w < warp; ++w) all += (T)sums[w];
    __syncthreads();
    return all - x;
}

/* Where an item of this thread is in its tile: a warp has a contiguous part. */
PA_FN int pa_sort_item_index(int item)
{
    const int lane = (int)threadIdx.x % PA_LANES;
    return ((int)threadIdx.x - lane) * PA_S_ITEMS + item * PA_LANES + lane;
}

/* Counts of the tile's digits, one per thread; `digit(i)` is the digit of the thread's item. */
template <typename Digit> PA_FN unsigned pa_sort_histogram(pa_sort_shared *s, Digit digit)
{
    const int tid = (int)threadIdx.x, warps = PA_S_THREADS / PA_LANES;
    for (int w = 0; w < warps; ++w) {
        s->counts[w][tid] = 0;
#if PA_S_MATCH
        s->lanes[w][tid] = 0;
#endif
    }
#if PA_S_MATCH
    if (tid < PA_S_FREQUENT) s->frequent[tid] = PA_S_THREADS; /* no digit */
    s->found = 0;
#endif
    __syncthreads();
#pragma unroll
    for (int i = 0; i < PA_S_ITEMS; ++i) atomicAdd(&s->counts[tid / PA_LANES][digit(i)], 1u);
    __syncthreads();
    unsigned total = 0;
    for (int w = 0; w < warps; ++w) {
        const unsigned count = s->counts[w][tid];
        s->counts[w][tid] = total;
        total += count;
    }
#if PA_S_MATCH
    if (total > PA_S_TILE / 8) {
        const unsigned k = atomicAdd(&s->found, 1u);
        if (k < PA_S_FREQUENT) s->frequent[k] = (unsigned)tid;
    }
#endif
    return total;
}

/* Ranks keys by their digit and stores them in shared memory; `at` are their ranks. Returns where the thread's digit
   begins. The last of the lanes with a digit counts for all. A key is stored at once, which frees its register. */
template <typename Digit> PA_FN unsigned pa_sort_rank_and_store(pa_sort_shared *s, unsigned total, Digit digit,
                                                                const PA_S_KEY (&key)[PA_S_ITEMS],
                                                                unsigned (&at)[PA_S_ITEMS])
{
    const int tid = (int)threadIdx.x, lane = tid % PA_LANES;
    const pa_lanes upto = ~(pa_lanes)0 >> (8 * (int)sizeof(pa_lanes) - 1 - lane);
    const unsigned start = pa_sort_exclusive_scan(total, s->sums);
    for (int w = 0; w < PA_S_THREADS / PA_LANES; ++w) s->counts[w][tid] += start;
    __syncthreads();
#if PA_S_MATCH
    unsigned frequent[PA_S_FREQUENT];
    for (int k = 0; k < PA_S_FREQUENT; ++k) frequent[k] = s->frequent[k];
#else
    const pa_lanes all = pa_ballot(true);
#endif
#pragma unroll
    for (int i = 0; i < PA_S_ITEMS; ++i) {
        const unsigned own_digit = digit(i);
#if PA_S_MATCH
        pa_lanes *const lanes = &s->lanes[tid / PA_LANES][own_digit];
        pa_lanes same = 0;
#pragma unroll
        for (int k = 0; k < PA_S_FREQUENT; ++k) {
            const pa_lanes votes = pa_ballot(own_digit == frequent[k]);
            if (own_digit == frequent[k]) same = votes;
        }
        if (same == 0) atomicOr(lanes, (pa_lanes)1 << lane);
        pa_lanes_sync();
        if (same == 0) same = *(volatile pa_lanes *)lanes;
#else
        pa_lanes same = all;
#pragma unroll
        for (int b = 0; b < 8; ++b) {
            const bool set = own_digit >> b & 1;
            const pa_lanes votes = pa_ballot(set);
            same &= set ? votes : ~votes;
        }
#endif
        const unsigned rank = (unsigned)pa_popcount(same & upto);
        const int last = pa_last_lane(same);
        unsigned before = 0;
        if (lane == last) before = atomicAdd(&s->counts[tid / PA_LANES][own_digit], rank);
        before = pa_shfl(before, last);
#if PA_S_MATCH
        if (lane == last) *(volatile pa_lanes *)lanes = 0; /* all have read it: they have shuffled since */
        pa_lanes_sync();
#endif
        at[i] = before + rank - 1;
        s->keys[at[i]] = key[i];
    }
    return start;
}

#if PA_S_ROWS
/* ---- rows that a block sorts in shared memory: several short ones together, by the row's number as the last digit */

/* Those from `row` on. */
PA_FN void pa_sort_some_rows(const pa_sort_grid *g, int64_t row, pa_sort_shared &s)
{
    const int n = (int)g->n;
    const int64_t base = row * n;
    const int count = (int)(g->rows - row < g->tiles ? g->rows - row : g->tiles) * n;
    const int steps = PA_S_PASSES + (g->tiles > 1);
    PA_S_KEY key[PA_S_ITEMS];
    unsigned at[PA_S_ITEMS];
#if PA_S_CARRY
    int item[PA_S_ITEMS];
#endif
#pragma unroll
    for (int i = 0; i < PA_S_ITEMS; ++i) {
        const int t = pa_sort_item_index(i);
        key[i] = t < count ? pa_sort_key(g->x.at(base + t)) : (PA_S_KEY) ~(PA_S_KEY)0;
#if PA_S_CARRY
        item[i] = t;
#endif
    }
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
        const auto digit = [&](int i) {
#if PA_S_CARRY
            if (step == PA_S_PASSES) return item[i] < count ? (unsigned)item[i] / (unsigned)n : 255u;
#endif
            return pa_sort_digit(key[i], step);
        };
        const unsigned total = pa_sort_histogram(&s, digit);
        pa_sort_rank_and_store(&s, total, digit, key, at);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < PA_S_ITEMS; ++i) key[i] = s.keys[pa_sort_item_index(i)];
#if PA_S_CARRY
        __syncthreads();
#pragma unroll
        for (int i = 0; i < PA_S_ITEMS; ++i) s.positions[at[i]] = (pa_sort_position)item[i];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < PA_S_ITEMS; ++i) item[i] = s.positions[pa_sort_item_index(i)];
#endif
    }
#pragma unroll
    for (int i = 0; i < PA_S_ITEMS; ++i) {
        const int t = pa_sort_item_index(i);
#if PA_S_POSITIONS
        if (t < count) g->out.at(base + t) = item[i] % n;
#else
        if (t < count) g->out.at(base + t) = pa_sort_value(key[i]);
#endif
    }
}
PA_FN void pa_sort_rows(const pa_sort_grid *g)
{
    __shared__ pa_sort_shared s;
#pragma unroll 1
    for (int64_t row = blockIdx.x * g->tiles; row < g->rows; row += gridDim.x * g->tiles) {
        __syncthreads();
        pa_sort_some_rows(g, row, s);
    }
}

#else
#include "pa_sort_passes_gpu.h"
#endif

#endif
