/* Matrix products on CPUs with a tall and skinny matrix, of up to two vectors' columns: times a small matrix, or, both
   transposed and not, times another such. Panels would be padding for the most part. Operands are read in place: rows
   of the skinny B by whole vectors, whose elements behind a row are cleared: as subnormal numbers they would take 80
   times as long. Sums of a row are in order of the depth; those of a long depth are of runs and slices, which
   sizes and strides decide. */

#define PA_G_SKINNY_COLUMNS ((PA_G_NRV < 2 ? PA_G_NRV : 2) * PA_G_L)
#define PA_G_SKINNY_LAST 32 /* rows behind which a whole vector doesn't end in the matrix, at most */

typedef uint32_t PA_G(bits) __attribute__((vector_size(PA_G_VBYTES)));

/* Rows i0 to i1 of C, at least PA_G_MR of them, from the small B, which is padded to `across` vectors. */
PA_GEMM_INLINE void PA_G(skinny_rows)(const pa_gemm_job *job, int64_t i0, int64_t i1, const int across)
{
    const int64_t n = job->n, bytes = n * PA_G_ES, step = across * PA_G_VBYTES;
    /* Whole vectors may be stored where the rows that they spill into are computed behind: then they end in the task's
       rows. */
    const int64_t whole = job->rcs == bytes && n > 1 ? i1 - PA_G_MR - pa_gemm_ceil(step, bytes) : i0 - 1;
    PA_G(accumulators) s, spilled;
    int64_t i, at;
    int r;
    for (i = i0; i < i1; i += PA_G_MR) {
        const char *a;
        char *c;
        at = pa_gemm_min(i, i1 - PA_G_MR);
        a = job->a + at * job->ras, c = job->c + at * job->rcs;
        PA_G(micro_kernel)(job->k, a, job->ras, job->cas, job->pb, step, a, 0, &s, PA_G_MR, across, 0);
        if (at <= whole) {
            PA_G(store_registers)(c, job->rcs, &s, 1, PA_G_MR, across);
            continue;
        }
        spilled = s;
        for (r = 0; r < PA_G_MR; r++, c += job->rcs) {
            if (n == 1) *(PA_T *)c = spilled.re[r][0][0];
            else if (bytes <= 64) pa_gemm_bytes(c, &spilled.re[r], bytes);
            else __builtin_memcpy(c, &spilled.re[r], (size_t)bytes);
        }
    }
}
PA_GEMM_HOT void PA_G(skinny_rows1)(const pa_gemm_job *job, int64_t i0, int64_t i1)
{
    PA_G(skinny_rows)(job, i0, i1, 1);
}
PA_GEMM_HOT void PA_G(skinny_rows2)(const pa_gemm_job *job, int64_t i0, int64_t i1)
{
    PA_G(skinny_rows)(job, i0, i1, 2);
}
PA_GEMM_PLAN void PA_G(skinny_rows_task)(void *context, int64_t begin, int64_t end)
{
    const pa_gemm_job *job = (const pa_gemm_job *)context;
    for (; begin < end; begin++) {
        /* the last task has what is left, too, so that none has fewer rows than a block */
        const int64_t i0 = begin * job->mc, i1 = job->m - i0 < 2 * job->mc ? job->m : i0 + job->mc;
        if (job->n <= PA_G_L) PA_G(skinny_rows1)(job, i0, i1);
        else PA_G(skinny_rows2)(job, i0, i1);
    }
}

/* sums[i][j] += a column of A times a row of B of so many `bytes`, `count` of them. `at_once` of these have sums of
   their own, that none waits for the one before. */
PA_GEMM_INLINE void PA_G(outer_products)(int64_t count, const char *a, int64_t ras, int64_t cas, const char *b,
                                         int64_t rbs, int64_t bytes, PA_G_V *sums, const int rows, const int across,
                                         const int at_once)
{
    PA_G_V s[8][2], zero = {0};
    PA_G(bits) own[2]; /* of a row */
    int64_t p;
    int i, j, q;
    __builtin_memset(own, 0, sizeof own);
    __builtin_memset(own, 255, (size_t)bytes);
    PA_GEMM_UNROLL for (i = 0; i < rows * at_once; i++) PA_GEMM_UNROLL for (j = 0; j < across; j++) s[i][j] = zero;
    for (p = 0; p + at_once <= count; p += at_once, a += at_once * cas, b += at_once * rbs)
        PA_GEMM_UNROLL for (q = 0; q < at_once; q++) {
            PA_G_V row[2];
            PA_GEMM_UNROLL for (j = 0; j < across; j++)
                row[j] = (PA_G_V)((PA_G(bits))((const PA_G_VU *)(b + q * rbs))[j] & own[j]);
            PA_GEMM_UNROLL for (i = 0; i < rows; i++) {
                const PA_ACC x = *(const PA_ACC *)(a + i * ras + q * cas);
                PA_GEMM_UNROLL for (j = 0; j < across; j++)
                    s[q * rows + i][j] = PA_G_VMAC(s[q * rows + i][j], row[j], x);
            }
        }
    for (; p < count; p++, a += cas, b += rbs)
        PA_GEMM_UNROLL for (j = 0; j < across; j++) {
            const PA_G_V row = (PA_G_V)((PA_G(bits))((const PA_G_VU *)b)[j] & own[j]);
            PA_GEMM_UNROLL for (i = 0; i < rows; i++)
                s[i][j] = PA_G_VMAC(s[i][j], row, *(const PA_ACC *)(a + i * ras));
        }
    PA_GEMM_UNROLL for (i = 0; i < rows; i++) PA_GEMM_UNROLL for (j = 0; j < across; j++) {
        PA_G_V sum = s[i][j];
        PA_GEMM_UNROLL for (q = 1; q < at_once; q++) sum = PA_G_ADD(sum, s[q * rows + i][j]);
        sums[i * across + j] = PA_G_ADD(sums[i * across + j], sum);
    }
}
/* All rows, by blocks of up to eight accumulators. */
PA_GEMM_INLINE void PA_G(skinny_run)(const pa_gemm_job *job, int64_t count, const char *a, const char *b, int64_t rbs,
                                     PA_G_V *sums, const int across)
{
    const int64_t ras = job->ras, cas = job->cas, bytes = job->n * PA_G_ES;
    int64_t left = job->m;
    int rows;
    for (; left > 0; left -= rows, a += rows * ras, sums += rows * across) {
        rows = left >= 8 && across == 1 ? 8 : left >= 4 ? 4 : left == 3 && across == 1 ? 3 : 1;
#define PA_G_ROWS(ROWS, AT_ONCE)                                                                                       \
    PA_G(outer_products)(count, a, ras, cas, b, rbs, bytes, sums, ROWS, across, AT_ONCE)
        if (rows == 8) PA_G_ROWS(8, 1);
        else if (rows == 4) PA_G_ROWS(4, across == 1 ? 2 : 1);
        else if (rows == 3) PA_G_ROWS(3, 2);
        else PA_G_ROWS(1, across == 1 ? 8 : 4);
#undef PA_G_ROWS
    }
}
PA_GEMM_HOT void PA_G(skinny_run1)(const pa_gemm_job *job, int64_t count, const char *a, const char *b, int64_t rbs,
                                   PA_G_V *sums)
{
    PA_G(skinny_run)(job, count, a, b, rbs, sums, 1);
}
PA_GEMM_HOT void PA_G(skinny_run2)(const pa_gemm_job *job, int64_t count, const char *a, const char *b, int64_t rbs,
                                   PA_G_V *sums)
{
    PA_G(skinny_run)(job, count, a, b, rbs, sums, 2);
}
/* Each task sums a slice of the depth. */
PA_GEMM_PLAN void PA_G(skinny_depth_task)(void *context, int64_t begin, int64_t end)
{
    const pa_gemm_job *job = (const pa_gemm_job *)context;
    const int64_t across = pa_gemm_ceil(job->n, PA_G_L), bytes = job->n * PA_G_ES;
    /* steps whose vectors end in the matrix */
    const int64_t inside = job->k - pa_gemm_ceil(across * PA_G_VBYTES - bytes, job->rbs);
    for (; begin < end; begin++) {
        const int64_t past = pa_gemm_min(job->k, (begin + 1) * job->kchunk);
        PA_G_V *sums = (PA_G_V *)(job->acc + begin * job->cchunk);
        PA_ACC last[PA_G_SKINNY_LAST * 2 * PA_G_L] __attribute__((aligned(64)));
        int64_t p, count, q;
        __builtin_memset(sums, 0, (size_t)job->cchunk);
        for (p = begin * job->kchunk; p < past; p += count) {
            const char *a = job->a + p * job->cas, *b = job->b + p * job->rbs;
            int64_t rbs = job->rbs;
            count = pa_gemm_min(PA_GEMM_SKINNY_RUN, (p < inside ? pa_gemm_min(inside, past) : past) - p);
            if (p >= inside) {
                rbs = across * PA_G_VBYTES;
                __builtin_memset(last, 0, sizeof last);
                for (q = 0; q < count; q++)
                    __builtin_memcpy((char *)last + q * rbs, b + q * job->rbs, (size_t)bytes);
                b = (const char *)last;
            }
            if (across == 1) PA_G(skinny_run1)(job, count, a, b, rbs, sums);
            else PA_G(skinny_run2)(job, count, a, b, rbs, sums);
        }
    }
}

/* The transposed problem. */
PA_GEMM_PLAN pa_gemm_job PA_G(transposed)(const pa_gemm_job *job)
{
    pa_gemm_job t = *job;
    t.m = job->n, t.n = job->m, t.rcs = job->ccs, t.ccs = job->rcs;
    t.a = job->b, t.ras = job->cbs, t.cas = job->rbs, t.b = job->a, t.rbs = job->cas, t.cbs = job->ras;
    return t;
}

/* False where it doesn't apply: a tall matrix times a small one. */
PA_GEMM_PLAN int PA_G(tall_times_small)(const pa_gemm_job *all, int parallel)
{
    PA_ACC small[PA_GEMM_SKINNY_DEPTH * 2 * PA_G_L] __attribute__((aligned(64)));
    pa_gemm_job job = all->m < all->n ? PA_G(transposed)(all) : *all;
    int64_t width = pa_gemm_ceil(job.n, PA_G_L) * PA_G_L, j, p;
    if (job.m < PA_GEMM_SKINNY_ROWS || job.n > PA_G_SKINNY_COLUMNS || job.k > PA_GEMM_SKINNY_DEPTH) return 0;
    if (job.n == 2 * PA_G_L) return 0; /* a panel without padding */
    /* few_rows is faster, but with short rows: then dot products are mostly sums of a vector's lanes */
    if (all->by_vector && (job.n == 1 || job.k > PA_GEMM_SKINNY_DOTS_DEPTH || job.cas != PA_G_ES)) return 0;
    if (job.n > 1 && job.ccs != PA_G_ES) return 0;
    __builtin_memset(small, 0, (size_t)(job.k * width * PA_G_ES));
    for (p = 0; p < job.k; p++)
        for (j = 0; j < job.n; j++) {
            PA_GEMM_SCALAR();
            small[p * width + j] = *(const PA_T *)(job.b + p * job.rbs + j * job.cbs);
        }
    job.pb = (char *)small;
    job.mc = pa_gemm_cut(job.m, pa_gemm_ceil(job.m, PA_GEMM_SKINNY_TASKS), PA_G_MR);
    if (pa_gemm_work(job.m, width, job.k, 1) < PA_G_PARALLEL_WORK) parallel = 0;
    PA_G(run_tasks)(&job, PA_G(skinny_rows_task), job.m / job.mc, parallel);
    return 1;
}

/* False where it doesn't apply: the transpose of a tall matrix times another one. */
PA_GEMM_PLAN int PA_G(tall_times_tall)(const pa_gemm_job *all, int parallel)
{
    const int turned = all->cbs != PA_G_ES || (all->n < all->m && all->ras == PA_G_ES);
    pa_gemm_job job = turned ? PA_G(transposed)(all) : *all;
    const int64_t across = pa_gemm_ceil(job.n, PA_G_L);
    int64_t slices, i, j;
    if (job.k < PA_GEMM_SKINNY_ROWS || job.n > PA_G_SKINNY_COLUMNS) return 0;
    if (job.m * across > (job.n % PA_G_L ? PA_GEMM_SKINNY_SIDE : PA_GEMM_SKINNY_WHOLE_SIDE)) return 0;
    if (job.cbs != PA_G_ES || job.rbs < job.n * PA_G_ES) return 0;
    slices = pa_gemm_min(PA_GEMM_SKINNY_TASKS, pa_gemm_ceil(job.k, 2 * PA_GEMM_SKINNY_RUN));
    job.kchunk = pa_gemm_ceil(job.k, slices), slices = pa_gemm_ceil(job.k, job.kchunk);
    job.cchunk = job.m * across * PA_G_VBYTES;
    job.acc = (char *)job.rt->scratch(job.rt, (size_t)(slices * job.cchunk));
    if (!job.acc) return 0;
    PA_G(run_tasks)(&job, PA_G(skinny_depth_task), slices,
                    parallel && (job.m + job.n) * job.k * PA_G_ES >= PA_GEMM_PARALLEL_BYTES);
    PA_G(add_slices)(job.acc, slices, job.cchunk);
    for (i = 0; i < job.m; i++)
        for (j = 0; j < job.n; j++) {
            PA_GEMM_SCALAR();
            *(PA_T *)(job.c + i * job.rcs + j * job.ccs) = ((const PA_T *)job.acc)[i * across * PA_G_L + j];
        }
    return 1;
}

#undef PA_G_SKINNY_COLUMNS
#undef PA_G_SKINNY_LAST
