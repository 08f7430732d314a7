/* Sorts and selections (partition, argpartition) of rows of elements of PA_S_BITS (32 or 64) on CPUs: a vectorised
   quicksort.

   Elements are transformed to signed keys of the same order. Runs of up to PA_S_MAX_SMALL keys are sorted in registers
   (pa_sort_network.h), longer ones are partitioned by a pivot from one array into another and back, so that loads and
   stores never overlap; AVX-512 compresses the keys below the pivot, and the others, by one instruction each. A pivot
   that is the minimum of its run removes all keys equal to it. After too many bad pivots, the middle between minimum
   and maximum is the pivot, which halves the keys' range each time: no input takes more than PA_S_BITS such steps.

   A long row is first partitioned into several runs by all threads (pa_sort_wide.h); a selection first partitions by a
   sample (pa_sort_select.h). */
#include "pa_check.h"
#include "pa_sort_network.h"

#ifndef PA_S_LONG
#define PA_S_LONG (1 << 15) /* elements of a row that is shared by threads */
#endif
#define PA_S_MANY 32          /* rows of any length that keep all threads busy */
#define PA_S_SERIAL (1 << 14) /* elements in all for which other threads aren't woken */

typedef struct pa_sort {
    const pa_key *x;    /* rows * n elements, bit for bit; shares no memory with the others */
    pa_key *out;        /* as many; a workspace where positions are computed */
    pa_key *tmp;        /* tasks * n */
    int64_t *positions; /* rows * n, or NULL: elements are computed */
    int64_t rows, n, tasks;
    /* Bits v become the key v ^ (v < 0 ? sign_flip : 0) ^ flip, after v & sign_flip > limit became `nan` and `zero`
       became 0. */
    pa_key sign_flip, flip, limit, nan, zero;
    const int64_t *kth; /* kths positions of a row, ascending, less than PA_S_RUNS / 2 of them; 0: a sort */
    int64_t kths;
    pa_runtime *rt;
} pa_sort;

/* A row, and the arrays that hold its elements: values in x, keys in the others. */
typedef struct pa_sort_row {
    const pa_sort *job;
    const pa_key *x;
    pa_key *out, *tmp;
    int64_t *positions;
    int64_t n, number;
    int64_t zeros; /* whether the row has a `zero` */
} pa_sort_row;

PA_S_INLINE pa_key pa_sort_key(const pa_sort *job, pa_key v)
{
    if (v == job->zero) v = 0;
    if ((v & job->sign_flip) > job->limit) v = job->nan;
    return v ^ (v < 0 ? job->sign_flip : 0) ^ job->flip;
}
PA_S_INLINE pa_key pa_sort_value(const pa_sort *job, pa_key k)
{
    k ^= job->flip;
    return k ^ (k < 0 ? job->sign_flip : 0);
}
/* The same for vectors; `zeros` collects where `zero` was. */
PA_S_INLINE pa_keys pa_sort_keys(const pa_sort *job, pa_keys v, pa_keys *zeros)
{
    const pa_keys zero = v == job->zero;
    pa_keys bad;
    *zeros |= zero;
    v &= ~zero;
    bad = (v & job->sign_flip) > job->limit;
    v = (v & ~bad) | (bad & job->nan);
    return v ^ ((v < 0) & job->sign_flip) ^ job->flip;
}
PA_S_INLINE pa_keys pa_sort_values(const pa_sort *job, pa_keys k)
{
    k ^= job->flip;
    return k ^ ((k < 0) & job->sign_flip);
}
PA_S_INLINE int pa_sort_any(pa_keys v)
{
    pa_key found = 0;
    int i;
    for (i = 0; i < PA_S_LANES; i++) found |= v[i];
    return found != 0;
}

/* Whether `count` elements from `at` on are in the row; debug mode reports otherwise, at the sites PA_S_SITE (rows) and
   PA_S_SITE + 1. */
PA_S_INLINE int pa_sort_check_range(const pa_sort_row *row, int64_t at, int64_t count)
{
#ifdef PA_DEBUG_CHECKS
    pa_runtime *rt = row->job->rt;
    const int64_t r = row->number;
    if (r < 0 || count <= 0) return 1; /* a sample, or nothing */
    return pa_check_index(rt, 0, PA_S_SITE, 0, r, r, row->job->rows, 0, 0) &&
           pa_check_index(rt, 0, PA_S_SITE + 1, 0, r, at, row->n, 0, 0) &&
           pa_check_index(rt, 0, PA_S_SITE + 1, 0, r, at + count - 1, row->n, 0, 0);
#else
    (void)row, (void)at, (void)count;
    return 1;
#endif
}
#ifdef PA_DEBUG_CHECKS
/* Whether an array of `size` elements has the needed number. */
PA_S_INLINE int pa_sort_check_size(pa_runtime *rt, int site, int64_t needed, int64_t size)
{
    return needed <= 0 || pa_check_index(rt, 0, site, 0, 0, needed - 1, size, 0, 0);
}
#endif

/* ---- runs that fit in registers ---- */

#define PA_S_LOAD(i, n) v[i] = pa_keys_get(from + (i) * PA_S_LANES, (n) - (i) * PA_S_LANES, rest)
#define PA_S_TO_KEYS(i, job) v[i] = pa_sort_keys(job, v[i], &zeros)
#define PA_S_STORE(i, n) pa_sort_put(job, to + (i) * PA_S_LANES, v[i], (n) - (i) * PA_S_LANES)
/* pa_sort_1 and so on sort as many vectors. */
#define PA_S_SMALL(r)                                                                                                  \
    PA_S_NOINLINE void pa_sort_##r(pa_sort_row *row, const pa_key *from, int values, pa_key *to, int64_t n)            \
    {                                                                                                                  \
        const pa_sort *job = row->job;                                                                                 \
        const pa_key rest = values ? pa_sort_value(job, PA_S_KEY_MAX) : PA_S_KEY_MAX;                                  \
        pa_keys v[r], zeros = {0};                                                                                     \
        PA_S_##r(PA_S_LOAD, n) if (values)                                                                             \
        {                                                                                                              \
            PA_S_##r(PA_S_TO_KEYS, job) row->zeros |= pa_sort_any(zeros);                                              \
        }                                                                                                              \
        pa_keys_sort_##r(v);                                                                                           \
        PA_S_##r(PA_S_STORE, n)                                                                                        \
    }

PA_S_INLINE void pa_sort_put(const pa_sort *job, pa_key *to, pa_keys keys, int64_t n)
{
    pa_keys_put_up_to(to, pa_sort_values(job, keys), n);
}
PA_S_SMALL(1)
PA_S_SMALL(2)
PA_S_SMALL(4)
PA_S_SMALL(8)

/* The values of `n` keys, or of values, in order; `to` may be `from`. */
PA_S_INLINE void pa_sort_small(pa_sort_row *row, const pa_key *from, int values, pa_key *to, int64_t n)
{
    if (n <= PA_S_LANES) pa_sort_1(row, from, values, to, n);
    else if (n <= 2 * PA_S_LANES) pa_sort_2(row, from, values, to, n);
    else if (n <= 4 * PA_S_LANES) pa_sort_4(row, from, values, to, n);
    else pa_sort_8(row, from, values, to, n);
}

/* ---- partition ---- */

/* Writes the n keys at `from` (or those of values) to `to`: first those below `cut`, whose number it returns, then the
   others. */
PA_S_INLINE int64_t pa_sort_partition_into(pa_sort_row *row, const pa_key *from, const int values, pa_key *to,
                                           int64_t n, pa_key cut)
{
    const pa_sort *job = row->job;
    pa_key *low = to, *high = to + n;
    pa_keys zeros = {0};
    int64_t i;
#if PA_S_MASKED
    const pa_keys splitters = pa_keys_of(cut);
    for (i = 0; i + PA_S_LANES <= n; i += PA_S_LANES) {
        const pa_keys raw = *(const pa_keys_at *)(from + i), v = values ? pa_sort_keys(job, raw, &zeros) : raw;
        const pa_lanes less = pa_keys_less(v, splitters);
        const int count = __builtin_popcount(less);
        /* extra lanes are overwritten later: there are as many free elements as lanes */
        *(pa_keys_at *)low = pa_keys_compress(v, less);
        low += count;
        high -= PA_S_LANES - count;
        pa_keys_put(high, pa_keys_compress(v, (pa_lanes)(less ^ PA_S_FULL)), (pa_lanes)(PA_S_FULL >> count));
    }
    if (i < n) {
        const pa_lanes some = (pa_lanes)((1u << (n - i)) - 1);
        const pa_keys raw = pa_keys_some(from + i, n - i, 0), v = values ? pa_sort_keys(job, raw, &zeros) : raw;
        const pa_lanes less = pa_keys_less(v, splitters) & some;
        const int count = __builtin_popcount(less);
        pa_keys_put(low, pa_keys_compress(v, less), (pa_lanes)((1u << count) - 1));
        low += count;
        pa_keys_put(low, pa_keys_compress(v, less ^ some), (pa_lanes)((1u << (n - i - count)) - 1));
    }
#else
    for (i = 0; i < n; i += PA_S_LANES) {
        const int64_t count = n - i < PA_S_LANES ? n - i : PA_S_LANES;
        pa_keys v = pa_keys_get(from + i, n - i, 0);
        int64_t t;
        if (values) v = pa_sort_keys(job, v, &zeros);
        for (t = 0; t < count; t++) {
            const pa_key k = v[t];
            const int less = k < cut;
            *low = k; /* without a branch, which would be mispredicted half of the time */
            high[-1] = k;
            low += less;
            high -= !less;
        }
    }
#endif
    if (values) row->zeros |= pa_sort_any(zeros);
    return low - to;
}
PA_S_NOINLINE int64_t pa_sort_partition(pa_sort_row *row, const pa_key *from, int values, pa_key *to, int64_t n,
                                        pa_key cut)
{
    if (values) return pa_sort_partition_into(row, from, 1, to, n, cut);
    return pa_sort_partition_into(row, from, 0, to, n, cut);
}

/* A pseudorandom number below n. */
PA_S_INLINE int64_t pa_sort_random(uint64_t *state, int64_t n)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((*state >> 32) * (uint64_t)(n > UINT32_MAX ? UINT32_MAX : n) >> 32);
}

/* The vector of keys at about `part` ninths of n. */
PA_S_INLINE pa_keys pa_sort_sample_vector(const pa_sort *job, const pa_key *from, int values, int64_t n, int part,
                                          uint64_t *state)
{
    const int64_t step = (n - PA_S_LANES) / 9;
    const pa_keys v = *(const pa_keys_at *)(from + part * step + pa_sort_random(state, step));
    pa_keys zeros = {0};
    return values ? pa_sort_keys(job, v, &zeros) : v;
}
PA_S_INLINE pa_keys pa_sort_median(pa_keys a, pa_keys b, pa_keys c)
{
    return pa_keys_max(pa_keys_min(a, b), pa_keys_min(pa_keys_max(a, b), c));
}

/* A key about in the middle of n > PA_S_MAX_SMALL: of a vector of medians of 3, or of 3 such medians, the middle
   one. */
PA_S_NOINLINE pa_key pa_sort_pivot(const pa_sort *job, const pa_key *from, int values, int64_t n)
{
    uint64_t state = (uint64_t)n * 2654435769u;
    const int few = n <= 4 * PA_S_MAX_SMALL;
    pa_keys found[3];
    int i;
    for (i = 0; i < (few ? 1 : 3); i++)
        found[i] = pa_sort_median(pa_sort_sample_vector(job, from, values, n, few ? 0 : 3 * i, &state),
                                  pa_sort_sample_vector(job, from, values, n, few ? 4 : 3 * i + 1, &state),
                                  pa_sort_sample_vector(job, from, values, n, few ? 8 : 3 * i + 2, &state));
    if (!few) found[0] = pa_sort_median(found[0], found[1], found[2]);
    pa_keys_sort_1(found);
    return found[0][PA_S_LANES / 2];
}

/* A key that isn't the least of n, in the middle between least and largest; PA_S_KEY_MIN if all are equal. */
PA_S_NOINLINE pa_key pa_sort_range_middle(const pa_sort *job, const pa_key *from, int values, int64_t n)
{
    pa_key low = PA_S_KEY_MAX, high = PA_S_KEY_MIN;
    int64_t i;
    for (i = 0; i < n; i++) {
        const pa_key k = values ? pa_sort_key(job, from[i]) : from[i];
        low = k < low ? k : low;
        high = k > high ? k : high;
    }
    return low == high ? PA_S_KEY_MIN : (pa_key)((pa_word)low + ((pa_word)high - (pa_word)low) / 2 + 1);
}

/* ---- rows ---- */

PA_S_INLINE int pa_sort_is_selected(const pa_sort *job, int64_t at, int64_t n)
{
    int64_t k;
    for (k = 0; k < job->kths; k++)
        if (job->kth[k] >= at && job->kth[k] < at + n) return 1;
    return !job->kths && n > 0;
}

/* The values of n keys, or values as they are. */
PA_S_NOINLINE void pa_sort_store_run(const pa_sort *job, const pa_key *from, int values, pa_key *to, int64_t n)
{
    int64_t i;
    if (values) __builtin_memcpy(to, from, (size_t)n * sizeof *to);
    else
        for (i = 0; i < n; i += PA_S_LANES) pa_sort_put(job, to + i, pa_keys_get(from + i, n - i, 0), n - i);
}
PA_S_NOINLINE void pa_sort_fill(const pa_sort *job, pa_key *to, int64_t n, pa_key key)
{
    int64_t i;
    for (i = 0; i < n; i += PA_S_LANES) pa_sort_put(job, to + i, pa_keys_of(key), n - i);
}

/* Sorts the n elements from `at` on, which are in `in` and none of which is below `low`, into row->out. After
   `bad_pivots_left` steps, pivots are no longer taken from samples. */
PA_S_NOINLINE void pa_sort_quick(pa_sort_row *row, const pa_key *in, int64_t at, int64_t n, pa_key low,
                                 int bad_pivots_left)
{
    const pa_sort *job = row->job;
    if (!pa_sort_check_range(row, at, n)) return;
    for (;;) {
        const int values = in == row->x;
        pa_key *to = in == row->out ? row->tmp : row->out;
        pa_key pivot, cut;
        int64_t m;
        if (!pa_sort_is_selected(job, at, n)) {
            if (n > 0 && in != row->out) pa_sort_store_run(job, in + at, values, row->out + at, n);
            else if (n > 0 && (job->flip | job->sign_flip)) pa_sort_store_run(job, in + at, 0, row->out + at, n);
            return;
        }
        if (n <= PA_S_MAX_SMALL) {
            pa_sort_small(row, in + at, values, row->out + at, n);
            return;
        }
        if (bad_pivots_left-- > 0) pivot = pa_sort_pivot(job, in + at, values, n);
        else if ((pivot = pa_sort_range_middle(job, in + at, values, n)) == PA_S_KEY_MIN) {
            pa_sort_fill(job, row->out + at, n, values ? pa_sort_key(job, in[at]) : in[at]);
            return;
        }
        if (pivot == low && pivot == PA_S_KEY_MAX) {
            pa_sort_fill(job, row->out + at, n, pivot);
            return;
        }
        cut = pivot == low ? pivot + 1 : pivot;
        m = pa_sort_partition(row, in + at, values, to + at, n, cut);
        in = to;
        if (cut != pivot) pa_sort_fill(job, row->out + at, m, pivot);
        else if (m <= n / 2) pa_sort_quick(row, in, at, m, low, bad_pivots_left);
        else {
            pa_sort_quick(row, in, at + m, n - m, cut, bad_pivots_left);
            n = m;
            continue;
        }
        at += m, n -= m, low = cut;
    }
}

PA_S_INLINE int pa_sort_max_bad_pivots(int64_t n)
{
#ifdef PA_S_TRIES
    (void)n;
    return PA_S_TRIES;
#else
    int found = 4;
    for (; n > PA_S_MAX_SMALL / 2; n >>= 1) found += 2;
    return found;
#endif
}

/* Restores the signs of zeros, which were sorted as equal, in the order of x. */
PA_S_NOINLINE void pa_sort_restore_zero_signs(const pa_sort_row *row)
{
    const pa_sort *job = row->job;
    int64_t i, at = 0;
    for (i = 0; i < row->n; i++)
        if (!(row->x[i] & job->sign_flip)) {
            while (at < row->n && row->out[at]) at++;
            if (!pa_sort_check_range(row, at, 1)) return;
            row->out[at++] = row->x[i];
        }
}

#include "pa_sort_wide.h"
#include "pa_sort_select.h"

PA_S_NOINLINE void pa_sort_row_sort(pa_sort_row *row, int threads)
{
    const int selected = threads <= PA_S_MAX_SERIAL_THREADS && pa_sort_select(row);
    if (selected) {
        if (row->positions) return;
    } else if (!threads) pa_sort_quick(row, row->x, 0, row->n, PA_S_KEY_MIN, pa_sort_max_bad_pivots(row->n));
    else {
        pa_sort_row elements = *row;
        pa_sort_wide w;
        elements.positions = 0;
        w.row = &elements;
        w.runs = threads <= 2 ? 4 : threads <= 4 ? 8 : threads <= 8 ? 16 : PA_S_RUNS;
        pa_sort_choose_splitters(&w);
        pa_sort_scatter_runs(&w, threads);
        row->job->rt->parallel_for(row->job->rt, pa_sort_runs, &w, w.runs, 1);
        row->zeros = elements.zeros;
    }
    if (row->positions) pa_sort_positions(row, threads);
    else if (row->zeros && row->job->zero) pa_sort_restore_zero_signs(row);
}

static pa_sort_row pa_sort_row_of(const pa_sort *job, int64_t number, int64_t task)
{
    const int64_t first = number * job->n;
    pa_sort_row row = {.job = job, .n = job->n, .number = number};
    row.x = job->x + first, row.out = job->out + first, row.tmp = job->tmp + task * job->n;
    row.positions = job->positions ? job->positions + first : 0;
    return row;
}

/* Task t of the job has the rows t * per to (t + 1) * per. */
PA_S_NOINLINE void pa_sort_tasks(void *context, int64_t begin, int64_t end)
{
    const pa_sort *job = (const pa_sort *)context;
    const int64_t per = (job->rows + job->tasks - 1) / job->tasks;
    for (; begin < end; begin++) {
        int64_t number = begin * per, stop = number + per < job->rows ? number + per : job->rows;
        for (; number < stop; number++) {
            pa_sort_row row = pa_sort_row_of(job, number, begin);
            pa_sort_row_sort(&row, 0);
        }
    }
}

PA_S_INLINE void pa_sort_all(const pa_sort *job)
{
    int64_t number;
    if (job->n >= PA_S_LONG && job->rows < PA_S_MANY && job->rt->threads > 1)
        for (number = 0; number < job->rows; number++) {
            pa_sort_row row = pa_sort_row_of(job, number, 0);
            pa_sort_row_sort(&row, job->rt->threads);
        }
    else {
        const int64_t grain = job->rows * job->n < PA_S_SERIAL ? job->tasks : 1;
        job->rt->parallel_for(job->rt, pa_sort_tasks, (void *)job, job->tasks, grain);
    }
}
