/* A parallel sample sort of a row, and positions: splitters from a sample cut the keys into runs. Pieces of the row are
   counted by run, and then scattered. */

#define PA_S_RUNS 32   /* at most */
#define PA_S_PIECES 64 /* at most */
#ifndef PA_S_PIECE
#define PA_S_PIECE (1 << 14)
#endif
#define PA_S_SAMPLE 32 /* sampled elements for each run */
#define PA_S_SAMPLES (PA_S_RUNS * PA_S_SAMPLE)

typedef struct pa_sort_wide {
    pa_sort_row *row;
    int64_t piece;                           /* elements */
    int64_t offsets[PA_S_PIECES][PA_S_RUNS]; /* of a piece's keys in each run; before the scan, how many there are */
    int64_t first[PA_S_RUNS + 1];            /* of each run */
    pa_key splitters[PA_S_RUNS];             /* the least key that a run may have */
    int runs;
    int64_t zeros[PA_S_PIECES];
} pa_sort_wide;

/* Counts the elements of each run in pieces of the row. */
PA_S_NOINLINE void pa_sort_count(void *context, int64_t begin, int64_t end)
{
    pa_sort_wide *w = (pa_sort_wide *)context;
    const pa_sort *job = w->row->job;
    for (; begin < end; begin++) {
        const int64_t first = begin * w->piece, left = w->row->n - first, n = left < w->piece ? left : w->piece;
        const pa_key *from = w->row->x + first;
        pa_keys zeros = {0}, below[PA_S_RUNS];
        int64_t i, before = 0;
        int run, lane;
        __builtin_memset(below, 0, sizeof below);
        /* lanes beyond the end count in the last run */
        for (i = 0; i < n; i += PA_S_LANES) {
            const pa_keys v = pa_sort_keys(job, pa_keys_get(from + i, n - i, pa_sort_value(job, PA_S_KEY_MAX)), &zeros);
            for (run = 1; run < w->runs; run++) below[run] -= v < w->splitters[run];
        }
        for (run = 1; run < w->runs; run++) {
            int64_t count = 0;
            for (lane = 0; lane < PA_S_LANES; lane++) count += below[run][lane];
            w->offsets[begin][run - 1] = count - before;
            before = count;
        }
        w->offsets[begin][w->runs - 1] = n - before;
        w->zeros[begin] = pa_sort_any(zeros);
    }
}

#if PA_S_MASKED
/* Writes the positions of some of the lanes whose first one is at `first`. */
PA_S_INLINE void pa_sort_put_positions(int64_t *to, int64_t first, pa_lanes some)
{
    const pa_keys lanes = {PA_S_ALL(PA_S_XOR, 0)}, packed = pa_keys_compress(lanes, some);
    const pa_lanes count = pa_lanes_of(some);
#if PA_S_BITS == 64
    pa_keys_put(to, packed + first, count);
#else
    pa_positions_put(to, pa_positions_low(packed) + first, count);
    pa_positions_put(to + PA_S_LANES / 2, pa_positions_high(packed) + first, count >> PA_S_LANES / 2);
#endif
}
#endif

/* Writes keys of pieces, or their positions, to their runs. */
PA_S_NOINLINE void pa_sort_scatter(void *context, int64_t begin, int64_t end)
{
    pa_sort_wide *w = (pa_sort_wide *)context;
    const pa_sort *job = w->row->job;
    for (; begin < end; begin++) {
        const int64_t first = begin * w->piece, left = w->row->n - first, n = left < w->piece ? left : w->piece;
        const pa_key *from = w->row->x + first;
        int64_t *offsets = w->offsets[begin];
        pa_keys zeros = {0};
        int64_t i;
        int run;
        for (i = 0; i < n; i += PA_S_LANES) {
            const pa_keys v = pa_sort_keys(job, pa_keys_get(from + i, n - i, 0), &zeros);
#if PA_S_MASKED
            pa_lanes rest = n - i < PA_S_LANES ? (pa_lanes)((1u << (n - i)) - 1) : PA_S_FULL;
            for (run = 0; run < w->runs; run++) {
                const pa_lanes less = run + 1 < w->runs ? pa_keys_less(v, pa_keys_of(w->splitters[run + 1]))
                                                        : PA_S_FULL;
                const pa_lanes here = less & rest;
                if (w->row->positions) pa_sort_put_positions(w->row->positions + offsets[run], first + i, here);
                else pa_keys_put(w->row->out + offsets[run], pa_keys_compress(v, here), pa_lanes_of(here));
                offsets[run] += __builtin_popcount(here);
                rest &= (pa_lanes)~less;
            }
#else
            pa_keys in = {0};
            int64_t t;
            for (run = 1; run < w->runs; run++) in -= v >= w->splitters[run];
            for (t = 0; t < PA_S_LANES && t < n - i; t++)
                if (w->row->positions) w->row->positions[offsets[in[t]]++] = first + i + t;
                else w->row->out[offsets[in[t]]++] = v[t];
#endif
        }
    }
}

PA_S_NOINLINE void pa_sort_runs(void *context, int64_t begin, int64_t end)
{
    pa_sort_wide *w = (pa_sort_wide *)context;
    for (; begin < end; begin++) {
        const int64_t n = w->first[begin + 1] - w->first[begin];
        pa_sort_row row = *w->row;
        pa_sort_quick(&row, row.out, w->first[begin], n, w->splitters[begin], pa_sort_max_bad_pivots(n));
    }
}

/* Writes the row's keys to row->out (or positions to row->positions) in the order of the runs. */
PA_S_NOINLINE void pa_sort_scatter_runs(pa_sort_wide *w, int threads)
{
    const pa_sort *job = w->row->job;
    const int64_t n = w->row->n, most = threads ? PA_S_PIECES : 1;
    const int64_t pieces = n <= PA_S_PIECE ? 1 : n / PA_S_PIECE < most ? n / PA_S_PIECE : most;
    int64_t count, piece, before = 0;
    int run;
    w->piece = (n + pieces - 1) / pieces;
    count = (n + w->piece - 1) / w->piece;
    if (threads) job->rt->parallel_for(job->rt, pa_sort_count, w, count, 1);
    else pa_sort_count(w, 0, count);
    for (run = 0; run < w->runs; run++) {
        w->first[run] = before;
        for (piece = 0; piece < count; piece++) {
            const int64_t here = w->offsets[piece][run];
            w->offsets[piece][run] = before;
            before += here;
        }
    }
    w->first[w->runs] = before;
    for (piece = 0; piece < count; piece++) w->row->zeros |= w->zeros[piece];
    if (threads) job->rt->parallel_for(job->rt, pa_sort_scatter, w, count, 1);
    else pa_sort_scatter(w, 0, count);
}

/* A stratified sample: a key of each of `count` equal parts of n elements. */
PA_S_INLINE void pa_sort_sample(const pa_sort *job, const pa_key *from, int values, int64_t n, pa_key *sample,
                                int count)
{
    uint64_t state = (uint64_t)n * 2654435769u;
    const int64_t part = n / count;
    int i;
    for (i = 0; i < count; i++) {
        const pa_key v = from[i * part + pa_sort_random(&state, part)];
        sample[i] = values ? pa_sort_key(job, v) : v;
    }
}

/* Sorts `count` samples of the row into sample[1]. */
static const pa_sort pa_sort_identity_job = {.limit = PA_S_KEY_MAX};
PA_S_NOINLINE void pa_sort_samples(const pa_sort_row *row, pa_key (*sample)[PA_S_SAMPLES], int count)
{
    pa_sort_row samples = {
        .job = &pa_sort_identity_job, .x = sample[0], .out = sample[1], .tmp = sample[2], .number = -1};
    pa_sort_sample(row->job, row->x, 1, row->n, sample[0], count);
    pa_sort_quick(&samples, samples.x, 0, count, PA_S_KEY_MIN, pa_sort_max_bad_pivots(count));
}

/* Splitters at equal parts of a sample. */
PA_S_NOINLINE void pa_sort_choose_splitters(pa_sort_wide *w)
{
    pa_key sample[3][PA_S_SAMPLES];
    int run;
    pa_sort_samples(w->row, sample, w->runs * PA_S_SAMPLE);
    w->splitters[0] = PA_S_KEY_MIN;
    for (run = 1; run < w->runs; run++) w->splitters[run] = sample[1][run * PA_S_SAMPLE];
}

/* Positions of a row whose `out` has the elements at kth where a sort puts them. */
PA_S_NOINLINE void pa_sort_positions(pa_sort_row *row, int threads)
{
    const pa_sort *job = row->job;
    pa_sort_wide w;
    int64_t k;
    w.row = row, w.runs = 1, w.splitters[0] = PA_S_KEY_MIN;
    for (k = 0; k < job->kths && pa_sort_check_range(row, job->kth[k], 1); k++) {
        /* those below the element, those equal to it, and the others */
        const pa_key key = pa_sort_key(job, row->out[job->kth[k]]);
        if (key > w.splitters[w.runs - 1]) w.splitters[w.runs++] = key;
        if (key < PA_S_KEY_MAX && key == w.splitters[w.runs - 1]) w.splitters[w.runs++] = key + 1;
    }
    pa_sort_scatter_runs(&w, threads);
}
