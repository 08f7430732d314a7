/* pa_fill_where_gpu.h: masked fill on a grid, v[mask] = x of dense arrays. Included once per type, with PA_T (elements)
   and PA_FILL_ROWS (groups of a thread).
   A thread has several groups of 16 bytes of v, a block's width apart, each with its bytes of the mask. A group of
   which nothing is chosen is neither read nor written, and one that is chosen as a whole isn't read: memory reads a
   sector that is written in part. */
#ifndef PA_FILL_WHERE_GPU_H
#define PA_FILL_WHERE_GPU_H
#include "pa_base.h"

enum {
    PA_FILL_THREADS = 128,
    PA_FILL_GROUP = 16 / sizeof(PA_T) /* elements */
};
struct alignas(16) pa_fill_group { PA_T v[PA_FILL_GROUP]; };
struct alignas(PA_FILL_GROUP) pa_fill_mask { uint8_t v[PA_FILL_GROUP]; };

/* Sets the groups from number `first` on, `PA_FILL_THREADS` apart, of `groups` in all. */
PA_FN void pa_fill_groups(pa_fill_group *v, const uint8_t *mask, PA_T x, int64_t first, int64_t groups)
{
    const bool aligned = (uint64_t)mask % PA_FILL_GROUP == 0;
    pa_fill_mask chosen[PA_FILL_ROWS];
    pa_fill_group old[PA_FILL_ROWS];
    int count[PA_FILL_ROWS];
#pragma unroll
    for (int r = 0; r < PA_FILL_ROWS; ++r) {
        const int64_t group = first + r * PA_FILL_THREADS;
        const uint8_t *const bytes = mask + group * PA_FILL_GROUP;
#pragma unroll
        for (int j = 0; j < PA_FILL_GROUP; ++j) chosen[r].v[j] = 0;
        if (group >= groups) continue;
        if (aligned) {
            chosen[r] = *(const pa_fill_mask *)bytes;
        } else {
#pragma unroll
            for (int j = 0; j < PA_FILL_GROUP; ++j) chosen[r].v[j] = bytes[j];
        }
    }
#pragma unroll
    for (int r = 0; r < PA_FILL_ROWS; ++r) {
        count[r] = 0;
#pragma unroll
        for (int j = 0; j < PA_FILL_GROUP; ++j) count[r] += chosen[r].v[j] != 0;
        if (count[r] > 0 && count[r] < PA_FILL_GROUP) old[r] = v[first + r * PA_FILL_THREADS];
    }
#pragma unroll
    for (int r = 0; r < PA_FILL_ROWS; ++r) {
#pragma unroll
        for (int j = 0; j < PA_FILL_GROUP; ++j)
            if (chosen[r].v[j] != 0) old[r].v[j] = x;
        if (count[r] > 0) v[first + r * PA_FILL_THREADS] = old[r];
    }
}

/* What stands before the first whole group and behind the last is set by single elements. */
PA_FN void pa_fill_where(PA_T *v, const uint8_t *mask, PA_T x, int64_t count)
{
    const int64_t threads = (int64_t)gridDim.x * PA_FILL_THREADS;
    const int rest = (int)((uint64_t)v % 16), odd = rest % (int)sizeof(PA_T);
    int64_t before = odd ? count : (16 - rest) % 16 / (int)sizeof(PA_T);
    if (before > count) before = count;
    const int64_t groups = (count - before) / PA_FILL_GROUP, singles = count - groups * PA_FILL_GROUP;
    for (int64_t i = (int64_t)blockIdx.x * PA_FILL_THREADS + threadIdx.x; i < singles; i += threads) {
        const int64_t at = i < before ? i : i + groups * PA_FILL_GROUP;
        if (mask[at]) v[at] = x;
    }
    for (int64_t first = (int64_t)blockIdx.x * PA_FILL_THREADS * PA_FILL_ROWS; first < groups;
         first += threads * PA_FILL_ROWS)
        pa_fill_groups((pa_fill_group *)(v + before), mask + before, x, first + threadIdx.x, groups);
}

#endif
