/* pa_scan_gpu.h: scans (running sums and products) on a grid. Included once per kernel, with the macros that
   kernels/scan/scan_gpu.py writes:
     PA_T, PA_U (elements and results in memory), PA_ACC, PA_LOAD(x), PA_STORE(acc), PA_COMBINE(a, b), PA_IDENTITY,
     PA_TEAM, PA_LEAD (axes of lines), PA_TOTALS (1: reduce the segments only)
   A line is cut into segments of whole tiles, each scanned by a team; a first launch (PA_TOTALS) reduced the segments
   for their carries. A thread has PA_ITEMS adjacent elements of each of a tile's PA_ROWS rows. Results are
   deterministic. */
#ifndef PA_SCAN_GPU_H
#define PA_SCAN_GPU_H
#include "pa_complex.h"
#include "pa_float8.h"

/* Products of floats: m * 2^(512 e), with m between 2^-256 and 2^256. Partial products may overflow where the product
   from left to right doesn't, and 0 times infinity would be NaN. */
typedef struct pa_scaled { double m; int64_t e; } pa_scaled;
PA_FN pa_scaled pa_scaled_normalize(double m, int64_t e)
{
    const double size = fabs(m);
    const bool big = size > 0x1p+256, small = size < 0x1p-256 && size > 0;
    pa_scaled x = {m * (big ? 0x1p-512 : small ? 0x1p+512 : 1.0), e + (big ? 1 : small ? -1 : 0)};
    return x;
}
PA_FN pa_scaled pa_scaled_from(double m)
{
    const pa_scaled x = pa_scaled_normalize(m, 0);
    return pa_scaled_normalize(x.m, x.e);
}
PA_FN pa_scaled pa_scaled_mul(pa_scaled a, pa_scaled b) { return pa_scaled_normalize(a.m * b.m, a.e + b.e); }
PA_FN double pa_scaled_value(pa_scaled x)
{
    int e = x.e > 3 ? 3 : x.e < -3 ? -3 : (int)x.e;
    for (; e > 0; --e) x.m *= 0x1p+512;
    for (; e < 0; ++e) x.m *= 0x1p-512;
    return x.m;
}

#include "pa_team_gpu.h"

enum {
    PA_ITEMS = 4,
    PA_ROWS = sizeof(PA_T) > 8 ? 1 : sizeof(PA_T) > 4 ? 2 : 4, /* of a warp in a tile */
    PA_TILE = PA_TEAM * PA_ITEMS * PA_ROWS
};
typedef struct pa_scan {
    pa_operand out, x, carry; /* carry: inclusive scan of the segments' sums */
    int64_t n, out_step, x_step, segments, length, lines;
    int64_t lead[PA_LEAD + 1], out_lead[PA_LEAD + 1], x_lead[PA_LEAD + 1];
} pa_scan;

/* A thread's elements of a tile that begins at element `first` of the line; the segment ends at `end`. */
struct pa_scan_items {
    pa_row<PA_T, PA_ITEMS> x[PA_ROWS];
    int64_t first_of_thread;

    __device__ inline void read(const pa_scan *s, pa_runtime *rt, int64_t tile, int64_t first, int64_t end)
    {
        first_of_thread = first + (threadIdx.x % PA_TEAM / 32 * PA_ROWS * 32 + threadIdx.x % 32) * PA_ITEMS;
#pragma unroll
        for (int r = 0; r < PA_ROWS; ++r) {
            const int64_t index = first_of_thread + r * 32 * PA_ITEMS;
            x[r] = pa_load_row<PA_T, PA_ITEMS>(&s->x, rt, tile, index, end - index, s->x_step);
        }
    }
};
#if PA_TOTALS
PA_FN PA_ACC pa_reduce_tile(const pa_scan *s, pa_runtime *rt, int64_t tile, int64_t first, int64_t end, PA_ACC sum)
{
    pa_scan_items p;
    p.read(s, rt, tile, first, end);
#pragma unroll
    for (int r = 0; r < PA_ROWS; ++r)
#pragma unroll
        for (int j = 0; j < PA_ITEMS; ++j)
            if (p.first_of_thread + r * 32 * PA_ITEMS + j < end) sum = PA_COMBINE(sum, PA_LOAD(p.x[r].v[j]));
    return sum;
}
#else
/* Scans a tile; `*sum` is the carry before it, and then after it. */
PA_FN void pa_scan_tile(const pa_scan *s, pa_runtime *rt, int64_t tile, int64_t first, int64_t end, PA_ACC *sum)
{
    pa_scan_items p;
    PA_ACC before[PA_ROWS], run = PA_IDENTITY, all;
    p.read(s, rt, tile, first, end);
#pragma unroll
    for (int r = 0; r < PA_ROWS; ++r) {
        PA_ACC partial = PA_LOAD(p.x[r].v[0]);
#pragma unroll
        for (int j = 1; j < PA_ITEMS; ++j) partial = PA_COMBINE(partial, PA_LOAD(p.x[r].v[j]));
        partial = pa_warp_exclusive_scan(partial, &all);
        before[r] = PA_COMBINE(run, partial);
        run = PA_COMBINE(run, all);
    }
    const PA_ACC before_thread = pa_team_exclusive_scan(run, &all), base = PA_COMBINE(*sum, before_thread);
    *sum = PA_COMBINE(*sum, all);
#pragma unroll
    for (int r = 0; r < PA_ROWS; ++r) {
        PA_ACC acc = PA_COMBINE(base, before[r]);
        pa_row<PA_U, PA_ITEMS> y;
#pragma unroll
        for (int j = 0; j < PA_ITEMS; ++j) {
            acc = PA_COMBINE(acc, PA_LOAD(p.x[r].v[j]));
            y.v[j] = PA_STORE(acc);
        }
        const int64_t index = p.first_of_thread + r * 32 * PA_ITEMS;
        char *to = s->out.at + index * s->out_step;
        if (s->out_step == (int64_t)sizeof(PA_U) && end - index >= PA_ITEMS && PA_ALIGNED(to, sizeof y)) {
            *(pa_row<PA_U, PA_ITEMS> *)to = y;
        } else {
#pragma unroll
            for (int j = 0; j < PA_ITEMS; ++j)
                if (index + j < end && PA_INSIDE(s->out, to + j * s->out_step, sizeof(PA_U)))
                    *(PA_U *)(to + j * s->out_step) = y.v[j];
        }
    }
}
#endif
PA_FN void pa_scan_all(const pa_scan *all, pa_runtime *rt)
{
    const int64_t teams = (int64_t)gridDim.x * (PA_BLOCK / PA_TEAM);
    for (int64_t tile = (int64_t)blockIdx.x * (PA_BLOCK / PA_TEAM) + threadIdx.x / PA_TEAM;
         tile < all->lines * all->segments; tile += teams) {
        pa_scan s = *all;
        int64_t rest = tile / s.segments, segment = tile % s.segments;
        PA_ACC sum = PA_IDENTITY;
        if (!PA_TOTALS && segment &&
            PA_INSIDE(s.carry, s.carry.at + (tile - 1) * (int64_t)sizeof(PA_ACC), sizeof(PA_ACC)))
            sum = ((const PA_ACC *)s.carry.at)[tile - 1];
#pragma unroll
        for (int d = PA_LEAD - 1; d >= 0; --d) {
            const int64_t i = rest % s.lead[d];
            rest /= s.lead[d];
            s.out.at += i * s.out_lead[d], s.x.at += i * s.x_lead[d];
        }
        const int64_t first = segment * s.length, end = first + s.length < s.n ? first + s.length : s.n;
#if PA_TOTALS
        PA_ACC all;
        for (int64_t t = first; t < end; t += PA_TILE) sum = pa_reduce_tile(&s, rt, tile, t, end, sum);
        pa_warp_exclusive_scan(sum, &all);
        pa_team_exclusive_scan(all, &sum);
        if (threadIdx.x % PA_TEAM == 0) pa_store_element<PA_ACC>(&s.carry, rt, tile, tile, sum);
#else
        for (int64_t t = first; t < end; t += PA_TILE) pa_scan_tile(&s, rt, tile, t, end, &sum);
#endif
    }
}

#endif
