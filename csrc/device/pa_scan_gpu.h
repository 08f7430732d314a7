/* pa_scan_gpu.h: running sums, what isn't zero, and bins, on a grid. Included once per kernel, with the macros that
   kernels/grid_text.py writes: PA_T (elements in memory) and what follows for each of
     PA_SCAN     PA_U (results), PA_ACC, PA_LOAD(x), PA_STORE(acc), PA_JOIN(a, b), PA_START, PA_TEAM, PA_LEAD
     PA_COUNT    PA_TRUE(x)
     PA_COMPACT  PA_TRUE(x), and PA_RANK (positions in an array of so many axes) or PA_U (elements)
     PA_BINS     PA_KIND (edges), PA_LOAD(x), PA_FORM, PA_COUNTERS (in shared memory, 0: none)
   A line is cut into segments of whole tiles, each of which belongs to a team; what is before a segment was computed before. Each
   thread of a warp has PA_PART neighbours of a tile, of which a warp takes several rows one after the other. A warp is 32 threads
   here, also where the hardware's has 64. The results are the same each time. */
#ifndef PA_SCAN_GPU_H
#define PA_SCAN_GPU_H
#include "pa_complex.h"
#include "pa_half.h"
#include "pa_check.h"

#if PA_CUDA
#define PA_UP(x, d) __shfl_up_sync(0xffffffffu, x, d, 32)
#define PA_FROM(x, lane) __shfl_sync(0xffffffffu, x, lane, 32)
#else
#define PA_UP(x, d) __shfl_up(x, d, 32)
#define PA_FROM(x, lane) __shfl(x, lane, 32)
#endif
enum { PA_BLOCK = 256, PA_BLOCK_WARPS = PA_BLOCK / 32 };

template <typename T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) pa_row { T v[N]; };
template <typename T> union pa_words { T value; unsigned word[(sizeof(T) + 3) / 4]; };

/* Where an operand lies. An access outside is reported; a read there is of zeros, and nothing is written. */
typedef struct pa_place { char *at; const char *low, *high; int which; } pa_place;
#ifdef PA_DEBUG_CHECKS
PA_FN bool pa_inside(const pa_place *p, pa_runtime *rt, int64_t tile, const char *at, int64_t size)
{
    if (at >= p->low && at + size <= p->high) return true;
    pa_fail_index(rt, 0, p->which, 0, tile, (at - p->low) / size, (p->high - p->low) / size, 0, (p->high - p->low) / size);
    return false;
}
#define PA_INSIDE(p, at, size) pa_inside(&(p), rt, tile, at, size)
#define PA_WIDE(at, size) false /* elements one by one */
#else
#define PA_INSIDE(p, at, size) true
#define PA_WIDE(at, size) ((((uint64_t)(at)) & ((size) < 16 ? (size) - 1 : 15)) == 0)
#endif

template <typename T> PA_FN T pa_zero(void)
{
    union { T value; unsigned char bytes[sizeof(T)]; } u;
    for (int k = 0; k < (int)sizeof(T); ++k) u.bytes[k] = 0;
    return u.value;
}
/* N neighbours from element `first` on, of which `left` exist: zeros behind them. */
template <typename T, int N>
PA_FN pa_row<T, N> pa_get(const pa_place *p, pa_runtime *rt, int64_t tile, int64_t first, int64_t left, int64_t step)
{
    const char *at = p->at + first * step;
    if (step == (int64_t)sizeof(T) && left >= N && PA_WIDE(at, sizeof(T) * N)) return *(const pa_row<T, N> *)at;
    pa_row<T, N> x;
#pragma unroll
    for (int j = 0; j < N; ++j)
        x.v[j] = j < left && PA_INSIDE(*p, at + j * step, sizeof(T)) ? *(const T *)(at + j * step) : pa_zero<T>();
    return x;
}
template <typename T> PA_FN void pa_put(const pa_place *p, pa_runtime *rt, int64_t tile, int64_t place, T x)
{
    char *at = p->at + place * (int64_t)sizeof(T);
    if (PA_INSIDE(*p, at, sizeof(T))) *(T *)at = x;
}

#if !PA_BINS
#if !PA_SCAN
#define PA_ACC int
#define PA_JOIN(a, b) ((a) + (b))
#define PA_START 0
#define PA_TEAM 256
#endif
PA_FN PA_ACC pa_up(PA_ACC x, int d)
{
    pa_words<PA_ACC> u;
    u.value = x;
#pragma unroll
    for (int k = 0; k < (int)(sizeof(PA_ACC) / 4); ++k) u.word[k] = PA_UP(u.word[k], d);
    return u.value;
}
/* What the warp's threads before this one have, and all of them. */
PA_FN PA_ACC pa_before(PA_ACC x, PA_ACC *all)
{
    const int lane = (int)threadIdx.x % 32;
    pa_words<PA_ACC> u;
#pragma unroll
    for (int d = 1; d < 32; d *= 2) {
        const PA_ACC other = pa_up(x, d);
        if (lane >= d) x = PA_JOIN(other, x);
    }
    u.value = x;
#pragma unroll
    for (int k = 0; k < (int)(sizeof(PA_ACC) / 4); ++k) u.word[k] = PA_FROM(u.word[k], 31);
    *all = u.value;
    x = pa_up(x, 1);
    return lane ? x : (PA_ACC)PA_START;
}
/* The same for the warps of a team, each of which has `x`. */
PA_FN PA_ACC pa_warps_before(PA_ACC x, PA_ACC *all)
{
    PA_ACC before = PA_START;
#if PA_TEAM > 32
    __shared__ PA_ACC have[PA_BLOCK_WARPS];
    const int warp = (int)threadIdx.x / 32;
    __syncthreads(); /* what the last call left has been read */
    if (threadIdx.x % 32 == 0) have[warp] = x;
    __syncthreads();
    PA_ACC sum = PA_START;
#pragma unroll
    for (int w = 0; w < PA_BLOCK_WARPS; ++w) {
        if (w == warp) before = sum;
        sum = PA_JOIN(sum, have[w]);
    }
    *all = sum;
#else
    *all = x;
#endif
    return before;
}
#endif

#if PA_SCAN
enum {
    PA_PART = 4,
    PA_ROWS = sizeof(PA_ACC) > 8 ? 1 : sizeof(PA_T) > 4 ? 2 : 4, /* of a warp in a tile */
    PA_TILE = PA_TEAM * PA_PART * PA_ROWS
};
typedef struct pa_scan {
    pa_place out, x, carry; /* carry: sums up to the end of each segment */
    int64_t n, out_step, x_step, segments, length, lines;
    int64_t lead[PA_LEAD + 1], out_lead[PA_LEAD + 1], x_lead[PA_LEAD + 1];
} pa_scan;

/* A thread's part of a tile, whose first element in the line is `first`; `end` is that of the segment. */
struct pa_scan_part {
    pa_row<PA_T, PA_PART> x[PA_ROWS];
    int64_t mine;

    __device__ inline void read(const pa_scan *s, pa_runtime *rt, int64_t tile, int64_t first, int64_t end)
    {
        mine = first + (threadIdx.x % PA_TEAM / 32 * PA_ROWS * 32 + threadIdx.x % 32) * PA_PART;
#pragma unroll
        for (int r = 0; r < PA_ROWS; ++r) {
            const int64_t place = mine + r * 32 * PA_PART;
            x[r] = pa_get<PA_T, PA_PART>(&s->x, rt, tile, place, end - place, s->x_step);
        }
    }
};
#if PA_TOTALS
PA_FN PA_ACC pa_total_tile(const pa_scan *s, pa_runtime *rt, int64_t tile, int64_t first, int64_t end, PA_ACC sum)
{
    pa_scan_part p;
    p.read(s, rt, tile, first, end);
#pragma unroll
    for (int r = 0; r < PA_ROWS; ++r)
#pragma unroll
        for (int j = 0; j < PA_PART; ++j)
            if (p.mine + r * 32 * PA_PART + j < end) sum = PA_JOIN(sum, PA_LOAD(p.x[r].v[j]));
    return sum;
}
#else
/* The sum goes on from `*sum`. */
PA_FN void pa_scan_tile(const pa_scan *s, pa_runtime *rt, int64_t tile, int64_t first, int64_t end, PA_ACC *sum)
{
    pa_scan_part p;
    PA_ACC before[PA_ROWS], run = PA_START, all;
    p.read(s, rt, tile, first, end);
#pragma unroll
    for (int r = 0; r < PA_ROWS; ++r) {
        PA_ACC own = PA_LOAD(p.x[r].v[0]);
#pragma unroll
        for (int j = 1; j < PA_PART; ++j) own = PA_JOIN(own, PA_LOAD(p.x[r].v[j]));
        own = pa_before(own, &all);
        before[r] = PA_JOIN(run, own);
        run = PA_JOIN(run, all);
    }
    const PA_ACC ahead = pa_warps_before(run, &all), base = PA_JOIN(*sum, ahead);
    *sum = PA_JOIN(*sum, all);
#pragma unroll
    for (int r = 0; r < PA_ROWS; ++r) {
        PA_ACC acc = PA_JOIN(base, before[r]);
        pa_row<PA_U, PA_PART> y;
#pragma unroll
        for (int j = 0; j < PA_PART; ++j) {
            acc = PA_JOIN(acc, PA_LOAD(p.x[r].v[j]));
            y.v[j] = PA_STORE(acc);
        }
        const int64_t place = p.mine + r * 32 * PA_PART;
        char *to = s->out.at + place * s->out_step;
        if (s->out_step == (int64_t)sizeof(PA_U) && end - place >= PA_PART && PA_WIDE(to, sizeof y)) {
            *(pa_row<PA_U, PA_PART> *)to = y;
        } else {
#pragma unroll
            for (int j = 0; j < PA_PART; ++j)
                if (place + j < end && PA_INSIDE(s->out, to + j * s->out_step, sizeof(PA_U))) *(PA_U *)(to + j * s->out_step) = y.v[j];
        }
    }
}
#endif
PA_FN void pa_scan_all(const pa_scan *all, pa_runtime *rt)
{
    const int64_t teams = (int64_t)gridDim.x * (PA_BLOCK / PA_TEAM);
    for (int64_t tile = (int64_t)blockIdx.x * (PA_BLOCK / PA_TEAM) + threadIdx.x / PA_TEAM; tile < all->lines * all->segments; tile += teams) {
        pa_scan s = *all;
        int64_t rest = tile / s.segments, segment = tile % s.segments;
        PA_ACC sum = PA_START;
        if (!PA_TOTALS && segment && PA_INSIDE(s.carry, s.carry.at + (tile - 1) * (int64_t)sizeof(PA_ACC), sizeof(PA_ACC))) sum = ((const PA_ACC *)s.carry.at)[tile - 1];
#pragma unroll
        for (int d = PA_LEAD - 1; d >= 0; --d) {
            const int64_t i = rest % s.lead[d];
            rest /= s.lead[d];
            s.out.at += i * s.out_lead[d], s.x.at += i * s.x_lead[d];
        }
        const int64_t first = segment * s.length, end = first + s.length < s.n ? first + s.length : s.n;
#if PA_TOTALS
        PA_ACC all;
        for (int64_t t = first; t < end; t += PA_TILE) sum = pa_total_tile(&s, rt, tile, t, end, sum);
        pa_before(sum, &all);
        pa_warps_before(all, &sum);
        if (threadIdx.x % PA_TEAM == 0) pa_put<PA_ACC>(&s.carry, rt, tile, tile, sum);
#else
        for (int64_t t = first; t < end; t += PA_TILE) pa_scan_tile(&s, rt, tile, t, end, &sum);
#endif
    }
}
#endif

#if PA_COUNT || PA_COMPACT
#ifndef PA_RANK
#define PA_RANK 0
#endif
enum { PA_PART = 16, PA_TILE = PA_BLOCK * PA_PART };
typedef struct pa_compact {
    pa_place x, counts, values, out; /* counts: of each segment; for PA_COMPACT, up to its end */
    int64_t n, length, total, sizes[PA_RANK + 1];
} pa_compact;

/* Bits of those of this thread's elements that aren't zero. */
PA_FN unsigned pa_truths(const pa_compact *s, pa_runtime *rt, int64_t tile, int64_t first, int64_t end)
{
    const int64_t mine = first + (int64_t)threadIdx.x * PA_PART;
    const pa_row<PA_T, PA_PART> x = pa_get<PA_T, PA_PART>(&s->x, rt, tile, mine, end - mine, sizeof(PA_T));
    unsigned bits = 0;
#pragma unroll
    for (int j = 0; j < PA_PART; ++j) bits |= (unsigned)(PA_TRUE(x.v[j])) << j;
    return bits;
}
#endif
#if PA_COUNT
typedef pa_compact pa_count;
PA_FN void pa_count_all(const pa_count *s, pa_runtime *rt)
{
    for (int64_t tile = blockIdx.x; tile * s->length < s->n; tile += gridDim.x) {
        const int64_t first = tile * s->length, end = first + s->length < s->n ? first + s->length : s->n;
        int count = 0, all;
        for (int64_t t = first; t < end; t += PA_TILE) count += __popc(pa_truths(s, rt, tile, t, end));
        pa_before(count, &all);
        pa_warps_before(all, &count);
        if (threadIdx.x == 0) pa_put<int64_t>(&s->counts, rt, tile, tile, count);
    }
}
#endif
#if PA_COMPACT
#if PA_RANK
/* Index i in the order of all elements, as one index per axis; the first axis' length is not needed. */
PA_FN void pa_deliver(const pa_compact *s, pa_runtime *rt, int64_t tile, int64_t place, int64_t i)
{
#pragma unroll
    for (int k = PA_RANK - 1; k > 0; --k) {
        const bool small = s->n <= 0x7fffffff;
        const int64_t rest = small ? (int64_t)((uint32_t)i / (uint32_t)s->sizes[k]) : i / s->sizes[k];
        pa_put<int64_t>(&s->out, rt, tile, k * s->total + place, i - rest * s->sizes[k]);
        i = rest;
    }
    pa_put<int64_t>(&s->out, rt, tile, place, i);
}
#else
PA_FN void pa_deliver(const pa_compact *s, pa_runtime *rt, int64_t tile, int64_t place, int64_t i)
{
    const char *at = s->values.at + i * (int64_t)sizeof(PA_U);
    if (PA_INSIDE(s->values, at, sizeof(PA_U))) pa_put<PA_U>(&s->out, rt, tile, place, *(const PA_U *)at);
}
#endif
PA_FN void pa_compact_all(const pa_compact *s, pa_runtime *rt)
{
    __shared__ uint16_t chosen[PA_TILE];
    for (int64_t tile = blockIdx.x; tile * s->length < s->n; tile += gridDim.x) {
        const int64_t first = tile * s->length, end = first + s->length < s->n ? first + s->length : s->n;
        int64_t place = 0;
        if (tile && PA_INSIDE(s->counts, s->counts.at + (tile - 1) * 8, 8)) place = ((const int64_t *)s->counts.at)[tile - 1];
        for (int64_t t = first; t < end; t += PA_TILE) {
            const unsigned bits = pa_truths(s, rt, tile, t, end);
            int all, count, spot = pa_before(__popc(bits), &all);
            spot += pa_warps_before(all, &count); /* behind its barriers, `chosen` is free */
#pragma unroll
            for (int j = 0; j < PA_PART; ++j)
                if (bits >> j & 1) chosen[spot++] = (uint16_t)(threadIdx.x * PA_PART + j);
            __syncthreads();
            for (int k = (int)threadIdx.x; k < count; k += PA_BLOCK) pa_deliver(s, rt, tile, place + k, t + chosen[k]);
            place += count;
        }
    }
}
#endif

#if PA_BINS
enum { PA_HELD = 4 };
typedef struct pa_bins {
    pa_place x, edges, out;
    int64_t n, bins;
    double scale;
} pa_bins;

/* Which bin v belongs to; none if it isn't one of `bins`. */
PA_FN int64_t pa_bin(const pa_bins *s, const PA_KIND *edges, PA_KIND low, PA_KIND high, PA_KIND v)
{
    const int64_t bins = s->bins;
#if PA_FORM == 0
    return (int64_t)v;
#else
    if (!(v >= low && v <= high)) return -1;
#if PA_FORM == 1 /* the division may round to a neighbour of the bin whose edges say that it is the one */
    int64_t place = (int64_t)((double)(v - low) * s->scale);
    place = place < 0 ? 0 : place > bins - 1 ? bins - 1 : place;
    if (v < edges[place]) return place - 1;
    return v >= edges[place + 1] && place < bins - 1 ? place + 1 : place;
#else
    int64_t place = 0;
    for (int64_t left = bins - 1; left > 0;) {
        const int64_t half = (left + 1) >> 1;
        if (edges[place + half] <= v) place += half;
        left -= half;
    }
    return place;
#endif
#endif
}
PA_FN void pa_bins_all(const pa_bins *s, pa_runtime *rt)
{
    const int64_t tile = blockIdx.x, threads = (int64_t)gridDim.x * PA_BLOCK, bins = s->bins;
    const PA_KIND *edges = (const PA_KIND *)s->edges.at;
    PA_KIND low = 0, high = 0;
    unsigned long long *out = (unsigned long long *)s->out.at;
    if (PA_FORM && !PA_INSIDE(s->edges, (const char *)(edges + bins), sizeof(PA_KIND))) return;
    if (!PA_INSIDE(s->out, (const char *)(out + bins - 1), 8)) return;
    if (PA_FORM) low = edges[0], high = edges[bins];
#if PA_COUNTERS
    __shared__ unsigned counters[PA_COUNTERS];
    const int copies = PA_COUNTERS / (int)bins < PA_BLOCK_WARPS ? PA_COUNTERS / (int)bins : PA_BLOCK_WARPS;
    for (int k = (int)threadIdx.x; k < copies * (int)bins; k += PA_BLOCK) counters[k] = 0;
    __syncthreads();
    unsigned *own = counters + threadIdx.x / 32 % copies * bins;
#endif
    for (int64_t t = tile * PA_BLOCK * PA_HELD; t < s->n; t += threads * PA_HELD) {
        PA_T x[PA_HELD];
#pragma unroll
        for (int j = 0; j < PA_HELD; ++j) {
            const int64_t i = t + j * PA_BLOCK + threadIdx.x;
            x[j] = i < s->n && PA_INSIDE(s->x, s->x.at + i * (int64_t)sizeof(PA_T), sizeof(PA_T)) ? ((const PA_T *)s->x.at)[i] : pa_zero<PA_T>();
        }
#pragma unroll
        for (int j = 0; j < PA_HELD; ++j) {
            const int64_t place = pa_bin(s, edges, low, high, (PA_KIND)PA_LOAD(x[j]));
            if (t + j * PA_BLOCK + threadIdx.x < s->n && (uint64_t)place < (uint64_t)bins) {
#if PA_COUNTERS
                atomicAdd(own + place, 1u);
#else
                atomicAdd(out + place, 1ull);
#endif
            }
        }
    }
#if PA_COUNTERS
    __syncthreads();
    for (int k = (int)threadIdx.x; k < (int)bins; k += PA_BLOCK) {
        unsigned long long sum = 0;
        for (int c = 0; c < copies; ++c) sum += counters[c * (int)bins + k];
        if (sum) atomicAdd(out + k, sum);
    }
#endif
}
#endif

#endif
