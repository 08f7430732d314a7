/* pa_compact_gpu.h: stream compaction (elements that aren't zero, or differ from the one before) and histograms, on a
   grid. Included once per kernel, with one of PA_COUNT, PA_COMPACT and PA_BINS as 1, PA_T (elements) and the macros
   that kernels/scan/scan_gpu.py writes for it:
     PA_COUNT    PA_NONZERO(x), or PA_DIFFER(x, y) of neighbours: the first element is taken, too
     PA_COMPACT  the same, PA_RANK (positions in an array of so many axes; 0: elements), PA_U (results)
     PA_BINS     PA_KIND (edges), PA_LOAD(x), PA_BINNING, PA_COUNTERS (in shared memory, 0: none)
   Elements are cut into segments of whole tiles, a block for each; a scan of the segments' counts ran before. */
#ifndef PA_COMPACT_GPU_H
#define PA_COMPACT_GPU_H
#include "pa_float8.h"

#define PA_ACC int
#define PA_COMBINE(a, b) ((a) + (b))
#define PA_IDENTITY 0
#define PA_TEAM 256
#include "pa_team_gpu.h"

#if PA_COUNT || PA_COMPACT
#ifndef PA_RANK
#define PA_RANK 0
#endif
enum { PA_ITEMS = 16, PA_TILE = PA_BLOCK * PA_ITEMS };
typedef struct pa_compact {
    pa_operand x, counts, values, out; /* counts: of each segment; for PA_COMPACT, up to its end */
    int64_t n, length, total, sizes[PA_RANK + 1];
} pa_compact;

/* This thread's elements of the tile that begins at `first`. */
PA_FN pa_row<PA_T, PA_ITEMS> pa_elements(const pa_compact *s, pa_runtime *rt, int64_t tile, int64_t first, int64_t end)
{
    const int64_t first_of_thread = first + (int64_t)threadIdx.x * PA_ITEMS;
    return pa_load_row<PA_T, PA_ITEMS>(&s->x, rt, tile, first_of_thread, end - first_of_thread, sizeof(PA_T));
}
/* A bit for each of them: whether it is selected. */
PA_FN unsigned pa_selected(const pa_compact *s, pa_runtime *rt, int64_t tile, int64_t first, int64_t end,
                           const pa_row<PA_T, PA_ITEMS> &x)
{
    unsigned bits = 0;
#ifdef PA_DIFFER
    const int64_t first_of_thread = first + (int64_t)threadIdx.x * PA_ITEMS;
    if (first_of_thread >= end) return 0;
    const char *before = s->x.at + (first_of_thread - 1) * (int64_t)sizeof(PA_T);
    if (first_of_thread == 0) bits = 1;
    else if (PA_INSIDE(s->x, before, sizeof(PA_T))) bits = (unsigned)(PA_DIFFER(*(const PA_T *)before, x.v[0]));
#pragma unroll
    for (int j = 1; j < PA_ITEMS; ++j)
        bits |= (unsigned)(PA_DIFFER(x.v[j - 1], x.v[j]) && j < end - first_of_thread) << j;
#else
    (void)s, (void)rt, (void)tile, (void)first, (void)end; /* zeros are behind the end */
#pragma unroll
    for (int j = 0; j < PA_ITEMS; ++j) bits |= (unsigned)(PA_NONZERO(x.v[j])) << j;
#endif
    return bits;
}
#endif
#if PA_COUNT
typedef pa_compact pa_count;
PA_FN void pa_count_all(const pa_count *s, pa_runtime *rt)
{
    enum { BYTES = PA_ITEMS * sizeof(PA_T), TOGETHER = BYTES < 64 ? 64 / BYTES : 1 }; /* tiles, whose loads go ahead */
    for (int64_t tile = blockIdx.x; tile * s->length < s->n; tile += gridDim.x) {
        const int64_t first = tile * s->length, end = first + s->length < s->n ? first + s->length : s->n;
        int count = 0, all;
        int64_t t = first;
        for (; PA_ALIGNED(s->x.at, BYTES) && t + TOGETHER * PA_TILE <= end; t += TOGETHER * PA_TILE) {
            pa_row<PA_T, PA_ITEMS> x[TOGETHER];
#pragma unroll
            for (int k = 0; k < TOGETHER; ++k)
                x[k] = ((const pa_row<PA_T, PA_ITEMS> *)s->x.at)[t / PA_ITEMS + k * PA_BLOCK + threadIdx.x];
#pragma unroll
            for (int k = 0; k < TOGETHER; ++k) count += __popc(pa_selected(s, rt, tile, t + k * PA_TILE, end, x[k]));
        }
        for (; t < end; t += PA_TILE)
            count += __popc(pa_selected(s, rt, tile, t, end, pa_elements(s, rt, tile, t, end)));
        pa_warp_exclusive_scan(count, &all);
        pa_team_exclusive_scan(all, &count);
        if (threadIdx.x == 0) pa_store_element<int64_t>(&s->counts, rt, tile, tile, count);
    }
}
#endif
#if PA_COMPACT
#if PA_RANK
/* Writes a position: the linear index i, delinearized; the first axis' length is not needed. */
PA_FN void pa_write_selected(const pa_compact *s, pa_runtime *rt, int64_t tile, int64_t offset, int64_t i)
{
#pragma unroll
    for (int k = PA_RANK - 1; k > 0; --k) {
        const bool small = s->n <= 0x7fffffff;
        const int64_t rest = small ? (int64_t)((uint32_t)i / (uint32_t)s->sizes[k]) : i / s->sizes[k];
        pa_store_element<int64_t>(&s->out, rt, tile, k * s->total + offset, i - rest * s->sizes[k]);
        i = rest;
    }
    pa_store_element<int64_t>(&s->out, rt, tile, offset, i);
}

/* Writes the positions of a tile's selected elements, which begins at `first`: collected in shared memory, so that
   adjacent threads write adjacent ones. `bits` are those of pa_selected. Their number. */
PA_FN int pa_write_tile(const pa_compact *s, pa_runtime *rt, int64_t tile, int64_t offset, int64_t first, unsigned bits)
{
    __shared__ uint16_t selected[PA_TILE];
    int all, count, rank = pa_warp_exclusive_scan(__popc(bits), &all);
    rank += pa_team_exclusive_scan(all, &count); /* behind its barriers, `selected` is free */
#pragma unroll
    for (int j = 0; j < PA_ITEMS; ++j)
        if (bits >> j & 1) selected[rank++] = (uint16_t)(threadIdx.x * PA_ITEMS + j);
    __syncthreads();
    for (int k = (int)threadIdx.x; k < count; k += PA_BLOCK)
        pa_write_selected(s, rt, tile, offset + k, first + selected[k]);
    return count;
}
#else
/* The same of the elements' values. A warp goes through its part of the tile by rows of 32 elements, of which each lane
   has one, and reads several values before it writes the first. */
PA_FN int pa_write_tile(const pa_compact *s, pa_runtime *rt, int64_t tile, int64_t offset, int64_t first, unsigned bits)
{
    enum { TOGETHER = 8 };
    const int lane = (int)threadIdx.x % 32;
    const int64_t from = first + (int64_t)(threadIdx.x / 32) * (32 * PA_ITEMS) + lane;
    const int both = (int)(bits | (unsigned)PA_SHFL((int)bits, lane ^ 1) << PA_ITEMS); /* of even lanes: a row's */
    int all, count;
    pa_warp_exclusive_scan(__popc(bits), &all);
    offset += pa_team_exclusive_scan(all, &count);
    static_assert(PA_ITEMS == 16, "32 elements are those of two lanes");
#pragma unroll
    for (int row = 0; row < PA_ITEMS; row += TOGETHER) {
        PA_U value[TOGETHER];
        unsigned of_row[TOGETHER];
#pragma unroll
        for (int r = 0; r < TOGETHER; ++r) {
            const char *at = s->values.at + (from + (row + r) * 32) * (int64_t)sizeof(PA_U);
            of_row[r] = (unsigned)PA_SHFL(both, 2 * (row + r));
            if (of_row[r] >> lane & 1)
                value[r] = PA_INSIDE(s->values, at, sizeof(PA_U)) ? *(const PA_U *)at : pa_zero<PA_U>();
        }
#pragma unroll
        for (int r = 0; r < TOGETHER; ++r) {
            const int before = __popc(of_row[r] & ((1u << lane) - 1));
            if (of_row[r] >> lane & 1) pa_store_element<PA_U>(&s->out, rt, tile, offset + before, value[r]);
            offset += __popc(of_row[r]);
        }
    }
    return count;
}
#endif
PA_FN void pa_compact_all(const pa_compact *s, pa_runtime *rt)
{
    for (int64_t tile = blockIdx.x; tile * s->length < s->n; tile += gridDim.x) {
        const int64_t first = tile * s->length, end = first + s->length < s->n ? first + s->length : s->n;
        int64_t offset = 0;
        if (tile && PA_INSIDE(s->counts, s->counts.at + (tile - 1) * 8, 8))
            offset = ((const int64_t *)s->counts.at)[tile - 1];
        for (int64_t t = first; t < end; t += PA_TILE)
            offset += pa_write_tile(s, rt, tile, offset, t,
                                    pa_selected(s, rt, tile, t, end, pa_elements(s, rt, tile, t, end)));
    }
}
#endif

#if PA_BINS
enum { PA_IN_FLIGHT = 4 };
typedef struct pa_bins {
    pa_operand x, edges, out;
    int64_t n, bins;
    double scale;
} pa_bins;

/* The bin of v; not one of `bins` if v is out of range. */
PA_FN int64_t pa_bin(const pa_bins *s, const PA_KIND *edges, PA_KIND low, PA_KIND high, PA_KIND v)
{
    const int64_t bins = s->bins;
#if PA_BINNING == 0
    return (int64_t)v;
#else
    if (!(v >= low && v <= high)) return -1;
#if PA_BINNING == 1 /* the division may round to a neighbour of the bin whose edges say that it is the one */
    int64_t bin = (int64_t)((double)(v - low) * s->scale);
    bin = bin < 0 ? 0 : bin > bins - 1 ? bins - 1 : bin;
    if (v < edges[bin]) return bin - 1;
    return v >= edges[bin + 1] && bin < bins - 1 ? bin + 1 : bin;
#else
    int64_t bin = 0;
    for (int64_t left = bins - 1; left > 0;) {
        const int64_t half = (left + 1) >> 1;
        if (edges[bin + half] <= v) bin += half;
        left -= half;
    }
    return bin;
#endif
#endif
}
PA_FN void pa_bins_all(const pa_bins *s, pa_runtime *rt)
{
    const int64_t tile = blockIdx.x, threads = (int64_t)gridDim.x * PA_BLOCK, bins = s->bins;
    const PA_KIND *edges = (const PA_KIND *)s->edges.at;
    PA_KIND low = 0, high = 0;
    unsigned long long *out = (unsigned long long *)s->out.at;
    if (PA_BINNING && !PA_INSIDE(s->edges, (const char *)(edges + bins), sizeof(PA_KIND))) return;
    if (!PA_INSIDE(s->out, (const char *)(out + bins - 1), 8)) return;
    if (PA_BINNING) low = edges[0], high = edges[bins];
#if PA_COUNTERS
    __shared__ unsigned counters[PA_COUNTERS];
    const int copies = PA_COUNTERS / (int)bins < PA_BLOCK_WARPS ? PA_COUNTERS / (int)bins : PA_BLOCK_WARPS;
    for (int k = (int)threadIdx.x; k < copies * (int)bins; k += PA_BLOCK) counters[k] = 0;
    __syncthreads();
    unsigned *private_counters = counters + threadIdx.x / 32 % copies * bins;
#endif
    for (int64_t t = tile * PA_BLOCK * PA_IN_FLIGHT; t < s->n; t += threads * PA_IN_FLIGHT) {
        PA_T x[PA_IN_FLIGHT];
#pragma unroll
        for (int j = 0; j < PA_IN_FLIGHT; ++j) {
            const int64_t i = t + j * PA_BLOCK + threadIdx.x;
            x[j] = i < s->n && PA_INSIDE(s->x, s->x.at + i * (int64_t)sizeof(PA_T), sizeof(PA_T))
                       ? ((const PA_T *)s->x.at)[i]
                       : pa_zero<PA_T>();
        }
#pragma unroll
        for (int j = 0; j < PA_IN_FLIGHT; ++j) {
            const int64_t bin = pa_bin(s, edges, low, high, (PA_KIND)PA_LOAD(x[j]));
            if (t + j * PA_BLOCK + threadIdx.x < s->n && (uint64_t)bin < (uint64_t)bins) {
#if PA_COUNTERS
                atomicAdd(private_counters + bin, 1u);
#else
                atomicAdd(out + bin, 1ull);
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
