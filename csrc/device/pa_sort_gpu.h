/* pa_sort_gpu.h: stable sorts on a grid, of keys or of positions by keys. Included once per type, with these macros:
   PA_S_KEY, unsigned; PA_S_ALSO ... PA_S_LEVEL, how an element's bits become a key (`Order` in kernels/sort.py); PA_S_ITEMS, elements
   per thread; PA_S_POSITIONS, whether positions are asked for; PA_S_WIDE, whether places need 64 bits; PA_S_ROWS, whether rows are
   sorted by a block, and PA_S_CARRY, whether that needs to know where elements were; PA_S_MATCH, whether lanes find those with the
   same digit by a word of bits for each digit in shared memory, for which there must be room, or by ballots.
   Digits have 8 bits, and a block as many threads as a digit has values. Within a warp, that tells each lane how many lanes
   before it have its digit; counts per warp and digit in shared memory do the rest. Elements leave through shared memory, so that
   those of one digit are written side by side.
   Long rows take a pass over memory per digit. A tile's places follow from the counts of the tiles before it (chained scan with
   look-back): each tile says its own counts first, then those of all up to it, in one word with a mark, so that no fence is needed.
   Tiles are numbered as they begin, which is why those before are sure to go on. A digit that is the same in a whole row makes no
   pass; only the device knows. */
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
    PA_S_WARPS = 8,                              /* at most */
    PA_S_PARTS = sizeof(PA_S_KEY) > 4 ? 4 : 8,   /* counters of a digit, so that lanes meet seldom */
    PA_S_AHEAD = 8,                              /* elements that a thread reads at once to count them */
    PA_S_LOOK = 4,                               /* tiles that are looked at at once */
    PA_S_OWN = 1, PA_S_ALL = 2                   /* marks of a tile's counts */
};
#if PA_S_WIDE
typedef unsigned long long pa_sort_word;
#else
typedef unsigned pa_sort_word; /* counts have 30 bits */
#endif
#if PA_S_POSITIONS
typedef int64_t pa_sort_out;
#else
typedef PA_S_KEY pa_sort_out;
#endif
#if PA_S_POSITIONS && !PA_S_CARRY
typedef pa_sort_word pa_sort_place; /* in shared memory */
#else
typedef uint16_t pa_sort_place;
#endif

#if defined(__HIPCC__) || defined(__HIPCC_RTC__)
typedef unsigned long long pa_lanes;
#define PA_LANES warpSize
PA_FN pa_lanes pa_ballot(bool x) { return __ballot(x); }
PA_FN void pa_lanes_sync(void) { __builtin_amdgcn_wave_barrier(); __threadfence_block(); }
PA_FN int pa_ones(pa_lanes x) { return __popcll(x); }
PA_FN int pa_last_lane(pa_lanes x) { return 63 - __clzll((long long)x); }
PA_FN unsigned pa_lane_of(unsigned x, int lane) { return (unsigned)__shfl((int)x, lane); }
template <typename T> PA_FN T pa_lane_below(T x, int d) { return __shfl_up(x, d); }
#else
typedef unsigned pa_lanes;
#define PA_LANES 32 /* warpSize is no constant there */
PA_FN pa_lanes pa_ballot(bool x) { return __ballot_sync(0xffffffffu, x); }
PA_FN void pa_lanes_sync(void) { __syncwarp(); }
PA_FN int pa_ones(pa_lanes x) { return __popc(x); }
PA_FN int pa_last_lane(pa_lanes x) { return 31 - __clz((int)x); }
PA_FN unsigned pa_lane_of(unsigned x, int lane) { return __shfl_sync(0xffffffffu, x, lane); }
template <typename T> PA_FN T pa_lane_below(T x, int d) { return __shfl_up_sync(0xffffffffu, x, d); }
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

/* `keys` and `places` are two arrays each, between which passes go to and fro. `work` has, after 256 words of which the first one
   numbers the tiles of all passes: what each row does in each pass, counts of the digits, and tiles' counts. All are 0 at first. */
typedef struct pa_sort_grid {
    int64_t rows, n, tiles, parts; /* tiles and parts of a row; in pa_sort_rows tiles are rows of a block */
    pa_sort_array<pa_sort_out> out;
    pa_sort_array<PA_S_KEY> x, keys;
    pa_sort_array<pa_sort_word> places, work;

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
    if ((v & PA_S_ALSO) > PA_S_LIMIT) v = PA_S_NAN;
    return (PA_S_KEY)(v ^ (((PA_S_KEY)(0 - (v >> (8 * sizeof v - 1))) & PA_S_ALSO) ^ PA_S_FLIP));
}
PA_FN PA_S_KEY pa_sort_value(PA_S_KEY v)
{
    return (PA_S_KEY)(v ^ (((PA_S_KEY)(0 - ((PA_S_KEY)(v ^ PA_S_FLIP) >> (8 * sizeof v - 1))) & PA_S_ALSO) ^ PA_S_FLIP));
}
PA_FN unsigned pa_sort_digit(PA_S_KEY key, int pass)
{
    if (key == PA_S_MINUS) key = PA_S_LEVEL; /* -0.0 is equal to 0.0, and stays what it is */
    return (unsigned)(key >> 8 * pass) & 255;
}

struct pa_sort_shared {
    union {
        PA_S_KEY keys[PA_S_TILE];
        pa_sort_place places[PA_S_TILE];
    };
    unsigned counts[PA_S_WARPS][PA_S_THREADS];
#if PA_S_MATCH
    pa_lanes lanes[PA_S_WARPS][PA_S_THREADS]; /* of a warp, those with a digit */
#endif
    pa_sort_word sums[PA_S_WARPS], before[PA_S_THREADS];
    int64_t tile, row;
    int pass;
};

/* The sum of `x` of all threads before this one. */
template <typename T> PA_FN T pa_sort_before(T x, pa_sort_word *sums)
{
    const int lane = (int)threadIdx.x % PA_LANES, warp = (int)threadIdx.x / PA_LANES;
    T all = x;
    for (int d = 1; d < PA_LANES; d *= 2) {
        const T below = pa_lane_below(all, d);
        if (lane >= d) all += below;
    }
    if (lane == PA_LANES - 1) sums[warp] = all;
    __syncthreads();
    for (int w = 0; w < warp; ++w) all += (T)sums[w];
    __syncthreads();
    return all - x;
}

/* Where an item of this thread is in its tile: a warp has neighbours. */
PA_FN int pa_sort_spot(int item)
{
    const int lane = (int)threadIdx.x % PA_LANES;
    return ((int)threadIdx.x - lane) * PA_S_ITEMS + item * PA_LANES + lane;
}

/* How often the tile has the digit that is the thread's number; `at` are the digits of the thread's items. */
PA_FN unsigned pa_sort_total(pa_sort_shared *s, const unsigned (&at)[PA_S_ITEMS])
{
    const int tid = (int)threadIdx.x, warps = PA_S_THREADS / PA_LANES;
    for (int w = 0; w < warps; ++w) {
        s->counts[w][tid] = 0;
#if PA_S_MATCH
        s->lanes[w][tid] = 0;
#endif
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < PA_S_ITEMS; ++i) atomicAdd(&s->counts[tid / PA_LANES][at[i]], 1u);
    __syncthreads();
    unsigned total = 0;
    for (int w = 0; w < warps; ++w) {
        const unsigned count = s->counts[w][tid];
        s->counts[w][tid] = total;
        total += count;
    }
    return total;
}

/* From digits to places in the tile; answers where the thread's digit begins. The last of the lanes with a digit counts for all. */
PA_FN unsigned pa_sort_spread(pa_sort_shared *s, unsigned total, unsigned (&at)[PA_S_ITEMS])
{
    const int tid = (int)threadIdx.x, lane = tid % PA_LANES;
    const pa_lanes upto = ~(pa_lanes)0 >> (8 * (int)sizeof(pa_lanes) - 1 - lane);
#if !PA_S_MATCH
    const pa_lanes all = pa_ballot(true);
#endif
    const unsigned start = pa_sort_before(total, s->sums);
    for (int w = 0; w < PA_S_THREADS / PA_LANES; ++w) s->counts[w][tid] += start;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < PA_S_ITEMS; ++i) {
#if PA_S_MATCH
        pa_lanes *const lanes = &s->lanes[tid / PA_LANES][at[i]];
        atomicOr(lanes, (pa_lanes)1 << lane);
        pa_lanes_sync();
        const pa_lanes same = *(volatile pa_lanes *)lanes;
#else
        pa_lanes same = all;
#pragma unroll
        for (int b = 0; b < 8; ++b) {
            const bool set = at[i] >> b & 1;
            const pa_lanes votes = pa_ballot(set);
            same &= set ? votes : ~votes;
        }
#endif
        const unsigned rank = (unsigned)pa_ones(same & upto);
        const int last = pa_last_lane(same);
        unsigned before = 0;
        if (lane == last) before = atomicAdd(&s->counts[tid / PA_LANES][at[i]], rank);
        before = pa_lane_of(before, last);
#if PA_S_MATCH
        if (lane == last) *(volatile pa_lanes *)lanes = 0; /* all have read it: they have shuffled since */
        pa_lanes_sync();
#endif
        at[i] = before + rank - 1;
    }
    return start;
}

#if PA_S_ROWS
/* ---- rows that a block sorts in shared memory: several if they are short, told apart by a last digit ---- */

PA_FN void pa_sort_rows(const pa_sort_grid *g)
{
    __shared__ pa_sort_shared s;
    const int n = (int)g->n;
    const int64_t row = blockIdx.x * g->tiles, base = row * n;
    const int count = (int)(g->rows - row < g->tiles ? g->rows - row : g->tiles) * n;
    const int steps = PA_S_PASSES + (g->tiles > 1);
    PA_S_KEY key[PA_S_ITEMS];
    unsigned at[PA_S_ITEMS];
#if PA_S_CARRY
    int spot[PA_S_ITEMS];
#endif
#pragma unroll
    for (int i = 0; i < PA_S_ITEMS; ++i) {
        const int t = pa_sort_spot(i);
        key[i] = t < count ? pa_sort_key(g->x.at(base + t)) : (PA_S_KEY) ~(PA_S_KEY)0;
#if PA_S_CARRY
        spot[i] = t;
#endif
    }
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
#pragma unroll
        for (int i = 0; i < PA_S_ITEMS; ++i) {
#if PA_S_CARRY
            if (step == PA_S_PASSES) at[i] = spot[i] < count ? (unsigned)spot[i] / (unsigned)n : 255;
            else
#endif
                at[i] = pa_sort_digit(key[i], step);
        }
        const unsigned total = pa_sort_total(&s, at);
        pa_sort_spread(&s, total, at);
#pragma unroll
        for (int i = 0; i < PA_S_ITEMS; ++i) s.keys[at[i]] = key[i];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < PA_S_ITEMS; ++i) key[i] = s.keys[pa_sort_spot(i)];
#if PA_S_CARRY
        __syncthreads();
#pragma unroll
        for (int i = 0; i < PA_S_ITEMS; ++i) s.places[at[i]] = (pa_sort_place)spot[i];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < PA_S_ITEMS; ++i) spot[i] = s.places[pa_sort_spot(i)];
#endif
    }
#pragma unroll
    for (int i = 0; i < PA_S_ITEMS; ++i) {
        const int t = pa_sort_spot(i);
#if PA_S_POSITIONS
        if (t < count) g->out.at(base + t) = spot[i] % n;
#else
        if (t < count) g->out.at(base + t) = pa_sort_value(key[i]);
#endif
    }
}

#else
/* ---- long rows ---- */

PA_FN void pa_sort_clear(const pa_sort_grid *g)
{
    const int64_t step = (int64_t)gridDim.x * PA_S_THREADS;
    for (int64_t i = (int64_t)blockIdx.x * PA_S_THREADS + threadIdx.x; i < g->work.size; i += step) g->work.at(i) = 0;
}

/* The digits of all passes are counted in one read. */
PA_FN void pa_sort_count(const pa_sort_grid *g)
{
    __shared__ unsigned counts[PA_S_PASSES * 256 * PA_S_PARTS];
    const int tid = (int)threadIdx.x, chunk = PA_S_THREADS * PA_S_AHEAD;
    const int64_t row = blockIdx.x / g->parts;
    for (int k = tid; k < PA_S_PASSES * 256 * PA_S_PARTS; k += PA_S_THREADS) counts[k] = 0;
    __syncthreads();
    for (int64_t first = blockIdx.x % g->parts * chunk + tid; first < g->n; first += g->parts * chunk) {
        PA_S_KEY v[PA_S_AHEAD];
#pragma unroll
        for (int k = 0; k < PA_S_AHEAD; ++k)
            if (first + k * PA_S_THREADS < g->n) v[k] = g->x.at(row * g->n + first + k * PA_S_THREADS);
#pragma unroll
        for (int k = 0; k < PA_S_AHEAD; ++k) {
            if (first + k * PA_S_THREADS >= g->n) break;
            const PA_S_KEY key = pa_sort_key(v[k]);
#pragma unroll
            for (int p = 0; p < PA_S_PASSES; ++p)
                atomicAdd(&counts[(p * 256 + pa_sort_digit(key, p)) * PA_S_PARTS + tid % PA_S_PARTS], 1u);
        }
    }
    __syncthreads();
    for (int p = 0; p < PA_S_PASSES; ++p) {
        pa_sort_word sum = 0;
        for (int k = 0; k < PA_S_PARTS; ++k) sum += counts[(p * 256 + tid) * PA_S_PARTS + k];
        if (sum) atomicAdd(&g->work.at(g->digit(row, p, tid)), sum);
    }
}

/* A block per row: counts become places, and it is said what each pass does: 0, nothing; else 1, from where (x, the first or the
   second array of keys) in the next two bits, and whether it is the last one. */
PA_FN void pa_sort_plan(const pa_sort_grid *g)
{
    __shared__ pa_sort_word sums[PA_S_WARPS];
    const int64_t row = blockIdx.x;
    int moves = 0, from = 0;
    for (int p = 0; p < PA_S_PASSES; ++p) {
        pa_sort_word *place = &g->work.at(g->digit(row, p, (int)threadIdx.x));
        const pa_sort_word count = *place;
        if (!__syncthreads_or(count == (pa_sort_word)g->n)) moves |= 1 << p;
        *place = pa_sort_before(count, sums);
    }
    if (threadIdx.x != 0) return;
    for (int p = 0, left = moves ? moves : 1; left; ++p, left >>= 1) {
        if (!(left & 1)) continue;
        g->work.at(g->step(row, p)) = (pa_sort_word)(1 | from << 1 | (left == 1) << 3);
        from = from == 1 ? 2 : 1;
    }
}

/* How many of this digit are in the tiles before; says what it learns. */
PA_FN pa_sort_word pa_sort_look(const pa_sort_grid *g, int pass, int64_t tile, int64_t first, unsigned total)
{
    const int d = (int)threadIdx.x;
    pa_sort_word sum = 0;
    int64_t t = tile - 1;
    while (t >= first) {
        pa_sort_word seen[PA_S_LOOK];
#pragma unroll
        for (int k = 0; k < PA_S_LOOK; ++k) {
            const int64_t i = g->state(pass, t - k > first ? t - k : first, d);
            seen[k] = g->work.inside(i) ? *(volatile pa_sort_word *)(g->work.data + i) : (pa_sort_word)PA_S_ALL;
        }
#pragma unroll
        for (int k = 0; k < PA_S_LOOK; ++k) {
            if (seen[k] == 0) break;
            sum += seen[k] >> 2;
            t = seen[k] & PA_S_ALL ? first - 1 : t - 1;
            if (t < first) break;
        }
    }
    *(volatile pa_sort_word *)&g->work.at(g->state(pass, tile, d)) = (sum + total) << 2 | PA_S_ALL;
    return sum;
}

PA_FN void pa_sort_pass(const pa_sort_grid *g)
{
    __shared__ pa_sort_shared s;
    const int tid = (int)threadIdx.x;
    if (tid == 0) { /* one thread divides for all */
        const int64_t number = (int64_t)atomicAdd(&g->work.at(0), (pa_sort_word)1), tiles = g->rows * g->tiles;
        s.pass = (int)(number / tiles);
        s.tile = number - s.pass * tiles;
        s.row = s.tile / g->tiles;
    }
    __syncthreads();
    const int64_t tile = s.tile, row = s.row, first = row * g->tiles, begin = (tile - first) * PA_S_TILE;
    const int pass = s.pass;
    const int64_t base = row * g->n, all = g->rows * g->n;
    const int count = (int)(g->n - begin < PA_S_TILE ? g->n - begin : PA_S_TILE), step = (int)g->work.at(g->step(row, pass));
    if (step == 0) return;
    const int from = step >> 1 & 3;
    const bool last = step >> 3;
    const pa_sort_array<PA_S_KEY> in = from == 0 ? g->x : g->keys;
#if !PA_S_POSITIONS
    const pa_sort_array<PA_S_KEY> into = last ? g->out : g->keys;
#endif
    const int64_t source = (from == 2 ? all : 0) + base + begin, target = (from == 1 && !last ? all : 0) + base;
    PA_S_KEY key[PA_S_ITEMS];
    unsigned at[PA_S_ITEMS];
#pragma unroll
    for (int i = 0; i < PA_S_ITEMS; ++i) {
        const int t = pa_sort_spot(i);
        key[i] = (PA_S_KEY) ~(PA_S_KEY)0;
        if (t < count) key[i] = in.at(source + t);
    }
#pragma unroll
    for (int i = 0; i < PA_S_ITEMS; ++i) {
        if (from == 0 && pa_sort_spot(i) < count) key[i] = pa_sort_key(key[i]);
        at[i] = pa_sort_digit(key[i], pass);
    }
    const unsigned total = pa_sort_total(&s, at);
    pa_sort_word before;
    if (tile != first) { /* the first one has counts of all to begin with */
        *(volatile pa_sort_word *)&g->work.at(g->state(pass, tile, tid)) = (pa_sort_word)total << 2 | PA_S_OWN;
    } else {
        before = g->work.at(g->digit(row, pass, tid));
        *(volatile pa_sort_word *)&g->work.at(g->state(pass, tile, tid)) = (before + total) << 2 | PA_S_ALL;
    }
    const unsigned start = pa_sort_spread(&s, total, at);
#pragma unroll
    for (int i = 0; i < PA_S_ITEMS; ++i) s.keys[at[i]] = key[i];
    if (tile != first) before = pa_sort_look(g, pass, tile, first, total);
    s.before[tid] = before - start;
    __syncthreads();
    pa_sort_word to[PA_S_ITEMS];
#pragma unroll
    for (int i = 0; i < PA_S_ITEMS; ++i) {
        const int j = i * PA_S_THREADS + tid;
        const PA_S_KEY moved = s.keys[j];
        to[i] = s.before[pa_sort_digit(moved, pass)] + (pa_sort_word)j;
#if PA_S_POSITIONS
        if (j < count && !last) g->keys.at(target + (int64_t)to[i]) = moved;
#else
        if (j < count) into.at(target + (int64_t)to[i]) = last ? pa_sort_value(moved) : moved;
#endif
    }
#if PA_S_POSITIONS
    __syncthreads();
#pragma unroll
    for (int i = 0; i < PA_S_ITEMS; ++i) {
        const int t = pa_sort_spot(i);
        if (t < count) s.places[at[i]] = (pa_sort_place)(from == 0 ? (pa_sort_word)(begin + t) : g->places.at(source + t));
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < PA_S_ITEMS; ++i) {
        const int j = i * PA_S_THREADS + tid;
        if (j >= count) continue;
        if (last) g->out.at(base + (int64_t)to[i]) = (int64_t)s.places[j];
        else g->places.at(target + (int64_t)to[i]) = s.places[j];
    }
#endif
}
#endif

#endif
