/* pa_scan_gpu.h: scans (running sums and products) on a grid. Included once per kernel, with the macros that
   kernels/scan/scan_gpu.py writes:
     PA_T, PA_U (elements and results in memory), PA_ACC, PA_LOAD(x), PA_STORE(acc), PA_COMBINE(a, b), PA_IDENTITY,
     PA_TEAM, PA_LEAD (axes of lines), PA_ITEMS, PA_ROWS, PA_LOOK_BACK (1: blocks take tiles of all lines)
   A team scans a line, tile by tile; or blocks take tiles in order, and learn by look-back what comes before. A thread
   has PA_ITEMS adjacent elements of each of a tile's PA_ROWS rows. Results are deterministic. */
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

#include "pa_dependent_launch.h"
#include "pa_look_back_gpu.h"

enum { PA_TILE = PA_TEAM * PA_ITEMS * PA_ROWS };
typedef struct pa_scan {
    pa_operand out, x, states; /* states: words of 64 bits, which start as zeros */
    int64_t n, out_step, x_step, tiles, lines, state_words; /* tiles: of a line */
    int64_t lead[PA_LEAD + 1], out_lead[PA_LEAD + 1], x_lead[PA_LEAD + 1];
} pa_scan;

/* A thread's elements of a tile that begins at element `first` of a line, whose `x` and `out` are so many bytes from
   the first line's. */
struct pa_scan_items {
    pa_row<PA_T, PA_ITEMS> x[PA_ROWS];
    PA_ACC before[PA_ROWS]; /* of this warp's elements, what comes before this thread's */

    __device__ inline int64_t at(int64_t first, int row) const
    {
        return first + (threadIdx.x % PA_TEAM / 32 * PA_ROWS * 32 + row * 32 + threadIdx.x % 32) * PA_ITEMS;
    }
    __device__ inline void read(const pa_scan *s, pa_runtime *rt, int64_t tile, int64_t first, int64_t x_offset)
    {
        pa_operand from = s->x;
        from.at += x_offset;
#pragma unroll
        for (int r = 0; r < PA_ROWS; ++r)
            x[r] = pa_load_row<PA_T, PA_ITEMS>(&from, rt, tile, at(first, r), s->n - at(first, r), s->x_step);
    }
    /* The warp's elements together. */
    __device__ inline PA_ACC scan(void)
    {
        PA_ACC run = PA_IDENTITY, all;
#pragma unroll
        for (int r = 0; r < PA_ROWS; ++r) {
            PA_ACC partial = PA_LOAD(x[r].v[0]);
#pragma unroll
            for (int j = 1; j < PA_ITEMS; ++j) partial = PA_COMBINE(partial, PA_LOAD(x[r].v[j]));
            partial = pa_warp_exclusive_scan(partial, &all);
            before[r] = PA_COMBINE(run, partial);
            run = PA_COMBINE(run, all);
        }
        return run;
    }
    /* `base` comes before the warp's elements. */
    __device__ inline void write(const pa_scan *s, pa_runtime *rt, int64_t tile, int64_t first, int64_t out_offset,
                                 PA_ACC base) const
    {
#pragma unroll
        for (int r = 0; r < PA_ROWS; ++r) {
            PA_ACC acc = PA_COMBINE(base, before[r]);
            pa_row<PA_U, PA_ITEMS> y;
#pragma unroll
            for (int j = 0; j < PA_ITEMS; ++j) {
                acc = PA_COMBINE(acc, PA_LOAD(x[r].v[j]));
                y.v[j] = PA_STORE(acc);
            }
            const int64_t left = s->n - at(first, r);
            char *to = s->out.at + out_offset + at(first, r) * s->out_step;
            if (s->out_step == (int64_t)sizeof(PA_U) && left >= PA_ITEMS && PA_ALIGNED(to, sizeof y)) {
                *(pa_row<PA_U, PA_ITEMS> *)to = y;
            } else {
#pragma unroll
                for (int j = 0; j < PA_ITEMS; ++j)
                    if (j < left && PA_INSIDE(s->out, to + j * s->out_step, sizeof(PA_U)))
                        *(PA_U *)(to + j * s->out_step) = y.v[j];
            }
        }
    }
};

/* Where a line's elements are, in bytes from the first line's. */
PA_FN void pa_scan_line(const pa_scan *s, int64_t line, int64_t *x_offset, int64_t *out_offset)
{
    *x_offset = *out_offset = 0;
#pragma unroll
    for (int d = PA_LEAD - 1; d >= 0; --d) {
        const int64_t i = d ? line % s->lead[d] : line;
        if (d) line /= s->lead[d];
        *x_offset += i * s->x_lead[d], *out_offset += i * s->out_lead[d];
    }
}

#if PA_LOOK_BACK
/* A tile of all lines: its number, that in its line, and the line's offsets. */
struct pa_scan_tile {
    int64_t number, in_line, x_offset, out_offset;
    pa_state_offsets offsets;
};
PA_FN pa_scan_tile pa_scan_locate(const pa_scan *s, int64_t number)
{
    pa_scan_tile t;
    const int64_t line = s->lines > 1 ? number / s->tiles : 0;
    t.number = number, t.in_line = number - line * s->tiles;
    t.offsets = pa_offsets_of_line(line, s->lines, s->tiles);
    pa_scan_line(s, line, &t.x_offset, &t.out_offset);
    return t;
}
PA_FN pa_line_states pa_scan_states(const pa_scan *s, pa_runtime *rt, const pa_scan_tile *t)
{
    const pa_line_states states = {&s->states, rt, t->number, t->offsets, s->tiles};
    return states;
}
PA_FN int64_t pa_scan_take(const pa_scan *s, pa_runtime *rt)
{
    const int64_t tile = blockIdx.x;
    if (!PA_INSIDE(s->states, s->states.at, 8)) return s->lines * s->tiles;
    return (int64_t)atomicAdd((pa_state_word *)s->states.at, (pa_state_word)1);
}

/* A tile's elements, scanned by its block: what comes before this warp's, and all of them. */
struct pa_scan_part {
    pa_scan_items items;
    PA_ACC before_warp, all;

    /* Loads and scans a tile, and publishes its aggregate. To the first thread: whether it was the group's last one. */
    __device__ inline bool start(const pa_scan *s, pa_runtime *rt, const pa_scan_tile *t)
    {
        items.read(s, rt, t->number, t->in_line * PA_TILE, t->x_offset);
        const PA_ACC run = items.scan();
        before_warp = pa_team_exclusive_scan(run, &all);
        return threadIdx.x == 0 && pa_scan_states(s, rt, t).publish_tile(t->in_line, all);
    }
};

/* A block takes tiles until there are none. It publishes the aggregate of the next one before it looks up what comes
   before this one: a block that waits keeps no other one waiting. Where tiles are is in shared memory: registers are
   for elements. */
PA_FN void pa_scan_all(const pa_scan *s, pa_runtime *rt)
{
    __shared__ pa_scan_tile taken[4];
    __shared__ PA_ACC prefix[4];
    const int64_t count = s->lines * s->tiles;
    pa_griddep_wait();
    if (threadIdx.x == 0)
        for (int k = 0; k < 2; ++k) taken[k] = pa_scan_locate(s, pa_scan_take(s, rt));
    __syncthreads();
    pa_scan_part part;
    bool completes = false; /* its group, as the first thread knows */
    if (taken[0].number < count) completes = part.start(s, rt, taken);
    if (threadIdx.x < 32 && PA_SHFL((int)completes, 0))
        pa_scan_states(s, rt, taken).complete(taken[0].in_line / PA_GROUP);
#pragma unroll 1
    for (int turn = 0; taken[turn].number < count; turn = (turn + 1) % 4) {
        const pa_scan_tile *const t = taken + turn, *const next = taken + (turn + 1) % 4;
        pa_scan_part next_part;
        completes = false;
        if (next->number < count) {
            int64_t number = 0;
            if (threadIdx.x == 0) number = pa_scan_take(s, rt);
            completes = next_part.start(s, rt, next);
            if (threadIdx.x == 0) taken[(turn + 2) % 4] = pa_scan_locate(s, number);
        }
        if (threadIdx.x < 32) {
            const pa_line_states states = pa_scan_states(s, rt, t);
            pa_look_back back(states, t->in_line, part.all);
            if (PA_SHFL((int)completes, 0)) pa_scan_states(s, rt, next).complete(next->in_line / PA_GROUP);
            const PA_ACC sum = back.prefix(states, t->in_line);
            if (threadIdx.x == 0) prefix[turn] = sum;
        }
        __syncthreads();
        part.items.write(s, rt, t->number, t->in_line * PA_TILE, t->out_offset,
                         PA_COMBINE(prefix[turn], part.before_warp));
        part = next_part;
    }
}
PA_FN void pa_scan_clear_all(const pa_scan *s, pa_runtime *rt)
{
    const int64_t tile = blockIdx.x, step = (int64_t)gridDim.x * PA_BLOCK;
    pa_griddep_wait();
    pa_griddep_launch_dependents();
    for (int64_t i = tile * PA_BLOCK + threadIdx.x; i < s->state_words; i += step)
        pa_store_element<pa_state_word>(&s->states, rt, tile, i, 0);
}
#else
PA_FN void pa_scan_all(const pa_scan *s, pa_runtime *rt)
{
    const int64_t teams = (int64_t)gridDim.x * (PA_BLOCK / PA_TEAM);
    for (int64_t line = (int64_t)blockIdx.x * (PA_BLOCK / PA_TEAM) + threadIdx.x / PA_TEAM; line < s->lines;
         line += teams) {
        PA_ACC sum = PA_IDENTITY;
        int64_t x_offset, out_offset;
        pa_scan_line(s, line, &x_offset, &out_offset);
        for (int64_t first = 0; first < s->n; first += PA_TILE) {
            pa_scan_items items;
            items.read(s, rt, line, first, x_offset);
            PA_ACC all, before_warp = pa_team_exclusive_scan(items.scan(), &all);
            items.write(s, rt, line, first, out_offset, PA_COMBINE(sum, before_warp));
            sum = PA_COMBINE(sum, all);
        }
    }
}
#endif

#endif
