/* Selection in long rows (Floyd and Rivest): a sample of the row bounds the keys at kth. One pass over the row moves
   the keys below and above the bounds to the ends of the row; the few keys between them are selected by quicksort. */

#ifndef PA_S_SELECT
#define PA_S_SELECT (1 << 13) /* elements of a row for which a sample is taken */
#endif
/* threads up to which a pass by one thread is no slower than counting and writing by all */
#define PA_S_MAX_SERIAL_THREADS 4

typedef struct pa_sort_window {
    pa_key least, most;    /* both are inside */
    int64_t below, inside; /* elements */
} pa_sort_window;

/* Bounds of the keys at kth, which almost certainly hold; 0 if the window would be half of the row. */
PA_S_NOINLINE int pa_sort_window_of(const pa_sort_row *row, pa_sort_window *w)
{
    const pa_sort *job = row->job;
    const int64_t count = row->n / 16 < PA_S_SAMPLES ? row->n / 16 : PA_S_SAMPLES;
    pa_key sample[3][PA_S_SAMPLES];
    int64_t ends[2], end;
    if (!job->kths || row->n < PA_S_SELECT) return 0;
    for (end = 0; end < 2; end++) {
        const int64_t rank = (int64_t)((double)job->kth[end ? job->kths - 1 : 0] / (double)row->n * (double)count);
        int64_t margin = 1;
        /* three standard deviations of the number of samples below a key of this rank */
        while (margin * margin * count < 9 * rank * (count - rank)) margin++;
        ends[end] = end ? rank + margin + 2 : rank - margin - 2;
    }
    if (ends[1] - ends[0] > count / 2) return 0;
    pa_sort_samples(row, sample, (int)count);
    w->least = ends[0] < 0 ? PA_S_KEY_MIN : sample[1][ends[0]];
    w->most = ends[1] >= count ? PA_S_KEY_MAX : sample[1][ends[1]];
    return 1;
}

/* Writes the keys below and above the window to row->out, or their positions to row->positions, and the keys inside to
   row->tmp. With positions, those of the keys inside are written to row->out. */
PA_S_INLINE void pa_sort_partition3(pa_sort_row *row, pa_sort_window *w, const int positions)
{
    const pa_sort *job = row->job;
    const int64_t n = row->n;
    int64_t low = 0, high = n, in = 0, i = 0, t;
    pa_keys zeros = {0};
#if PA_S_MASKED
    const pa_keys least = pa_keys_of(w->least), most = pa_keys_of(w->most), lanes = {PA_S_ALL(PA_S_XOR, 0)};
    /* extra lanes are overwritten later: there are as many free elements as lanes */
    for (; i + PA_S_LANES <= n; i += PA_S_LANES) {
        const pa_keys v = pa_sort_keys(job, *(const pa_keys_at *)(row->x + i), &zeros);
        const pa_lanes less = pa_keys_less(v, least), more = pa_keys_less(most, v);
        const pa_lanes between = (pa_lanes)((less | more) ^ PA_S_FULL);
        high -= __builtin_popcount(more);
        if (positions) {
            pa_sort_put_positions(row->positions + low, i, less);
            pa_sort_put_positions(row->positions + high, i, more);
            pa_keys_put_few(row->out + in, pa_keys_compress(lanes + (pa_key)i, between), between);
        } else {
            const pa_keys values = pa_sort_values(job, v);
            *(pa_keys_at *)(row->out + low) = pa_keys_compress(values, less);
            pa_keys_put(row->out + high, pa_keys_compress(values, more), pa_lanes_of(more));
        }
        pa_keys_put_few(row->tmp + in, pa_keys_compress(v, between), between);
        low += __builtin_popcount(less);
        in += __builtin_popcount(between);
    }
#endif
    for (; i < n; i += PA_S_LANES) {
        const pa_keys v = pa_sort_keys(job, pa_keys_get(row->x + i, n - i, 0), &zeros), values = pa_sort_values(job, v);
        for (t = 0; t < PA_S_LANES && t < n - i; t++) {
            const pa_key k = v[t];
            const int less = k < w->least, more = k > w->most;
            if (positions) row->positions[low] = row->positions[high - 1] = i + t, row->out[in] = (pa_key)(i + t);
            else row->out[low] = row->out[high - 1] = values[t];
            row->tmp[in] = k;
            low += less, high -= more, in += !(less | more);
        }
    }
    row->zeros |= pa_sort_any(zeros);
    w->below = low, w->inside = in;
}
PA_S_NOINLINE void pa_sort_partition3_values(pa_sort_row *row, pa_sort_window *w) { pa_sort_partition3(row, w, 0); }
PA_S_NOINLINE void pa_sort_partition3_positions(pa_sort_row *row, pa_sort_window *w) { pa_sort_partition3(row, w, 1); }

/* Selects among the keys inside the window, of which there are at most n / 2, and writes their positions. */
PA_S_NOINLINE void pa_sort_select_positions(const pa_sort_row *row, const pa_sort_window *w)
{
    int64_t kth[PA_S_RUNS], i;
    int64_t *positions = row->positions + w->below;
    pa_sort job = pa_sort_identity_job;
    pa_sort_row keys = {.job = &job, .x = row->tmp, .n = w->inside, .number = -1, .positions = positions};
    keys.out = row->out + w->inside, keys.tmp = row->tmp + w->inside;
    job.rt = row->job->rt, job.kth = kth, job.kths = row->job->kths;
    for (i = 0; i < job.kths; i++) kth[i] = row->job->kth[i] - w->below;
    pa_sort_quick(&keys, keys.x, 0, keys.n, w->least, pa_sort_max_bad_pivots(keys.n));
    pa_sort_positions(&keys, 0);
    for (i = 0; i < w->inside; i++) positions[i] = row->out[positions[i]];
}

/* A selection in the whole row; 0 if the sample's bounds don't hold. */
PA_S_NOINLINE int pa_sort_select(pa_sort_row *row)
{
    const pa_sort *job = row->job;
    pa_sort_window w;
    int64_t i;
    if ((PA_S_BITS == 32 && row->n > INT32_MAX) || !pa_sort_window_of(row, &w)) return 0;
    if (row->positions) pa_sort_partition3_positions(row, &w);
    else pa_sort_partition3_values(row, &w);
    if (job->kth[0] < w.below || job->kth[job->kths - 1] >= w.below + w.inside) return 0;
    if (!row->positions) {
        __builtin_memcpy(row->out + w.below, row->tmp, (size_t)w.inside * sizeof *row->out);
        pa_sort_quick(row, row->out, w.below, w.inside, w.least, pa_sort_max_bad_pivots(w.inside));
    } else if (w.least == w.most)
        for (i = 0; i < w.inside; i++) row->positions[w.below + i] = row->out[i];
    else if (2 * w.inside <= row->n) pa_sort_select_positions(row, &w);
    else return 0;
    return 1;
}
