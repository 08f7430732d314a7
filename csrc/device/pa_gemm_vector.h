/* pa_gemm.h's part for up to PA_GEMM_FEW rows (or, transposed, columns): memory is the limit, so the big matrix B is read once,
   in place and in the order it lies. Rows in a run are added up with factors (axpy), columns in a run are dot products.
   Only pa_gemm.h includes it.

   All arithmetic is on runs of PA_ACC. Elements that are not one PA_ACC (halves, bools, bytes, complex numbers) are first
   widened, a piece that fits L1 at a time; of complex numbers the two planes count as two rows. */

#define PA_G_RUN ((int64_t)(4096 / sizeof(PA_ACC) / PA_G_PLANES)) /* elements widened at a time */
#define PA_G_GROUP (4 / PA_G_PLANES)                              /* rows or columns of B taken at a time */

/* y[j] += x[0] * b[0][j] + ... + x[count - 1] * b[count - 1][j] */
PA_GEMM_HOT void PA_G(axpy)(int64_t n, PA_ACC *y, const PA_ACC *x, const PA_ACC *const *b, int count)
{
    int64_t j = 0;
    int q;
    if (count == 4) {
        const PA_ACC *b0 = b[0], *b1 = b[1], *b2 = b[2], *b3 = b[3], x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3];
        for (; j + PA_G_L <= n; j += PA_G_L) {
            PA_G_V s = *(PA_G_VU *)(y + j);
            s = PA_G_VMAC(s, *(const PA_G_VU *)(b0 + j), x0);
            s = PA_G_VMAC(s, *(const PA_G_VU *)(b1 + j), x1);
            s = PA_G_VMAC(s, *(const PA_G_VU *)(b2 + j), x2);
            s = PA_G_VMAC(s, *(const PA_G_VU *)(b3 + j), x3);
            *(PA_G_VU *)(y + j) = s;
        }
    } else {
        for (; j + PA_G_L <= n; j += PA_G_L) {
            PA_G_V s = *(PA_G_VU *)(y + j);
            for (q = 0; q < count; q++) s = PA_G_VMAC(s, *(const PA_G_VU *)(b[q] + j), x[q]);
            *(PA_G_VU *)(y + j) = s;
        }
    }
    for (; j < n; j++)
        for (q = 0; q < count; q++) { PA_GEMM_SCALAR(); y[j] = PA_G_MAC(y[j], b[q][j], x[q]); }
}

/* out[q] = sum of x[j] * b[q][j] */
PA_GEMM_HOT void PA_G(dot)(int64_t n, const PA_ACC *x, const PA_ACC *const *b, PA_ACC *out)
{
    const PA_ACC *b0 = b[0], *b1 = b[1], *b2 = b[2], *b3 = b[3];
    PA_G_V zero = {0}, s[4];
    int64_t j;
    int q, l;
    PA_GEMM_UNROLL for (q = 0; q < 4; q++) s[q] = zero;
    for (j = 0; j + PA_G_L <= n; j += PA_G_L) {
        PA_G_V v = *(const PA_G_VU *)(x + j);
        s[0] = PA_G_VMAC(s[0], *(const PA_G_VU *)(b0 + j), v);
        s[1] = PA_G_VMAC(s[1], *(const PA_G_VU *)(b1 + j), v);
        s[2] = PA_G_VMAC(s[2], *(const PA_G_VU *)(b2 + j), v);
        s[3] = PA_G_VMAC(s[3], *(const PA_G_VU *)(b3 + j), v);
    }
    for (q = 0; q < 4; q++) {
        const PA_ACC *lanes = (const PA_ACC *)&s[q];
        PA_ACC sum = 0;
        for (l = 0; l < PA_G_L; l++) { PA_GEMM_SCALAR(); sum = (PA_ACC)PA_G_ADD(sum, lanes[l]); }
        for (l = (int)(n - j); l > 0; l--) { PA_GEMM_SCALAR(); sum = PA_G_MAC(sum, b[q][n - l], x[n - l]); }
        out[q] = sum;
    }
}

/* b = the runs of `count` rows or columns of B, `apart` bytes from one to the next, widened into `room` where needed. Beyond `count` the last is repeated. */
PA_GEMM_HOT void PA_G(runs)(int64_t n, const char *from, int64_t apart, int count, PA_ACC *room, const PA_ACC **b)
{
    int q;
    for (q = 0; q < PA_G_GROUP; q++) {
        const char *run = from + (q < count ? q : count - 1) * apart;
#if PA_G_PLAIN
        (void)room, (void)n;
        b[q] = (const PA_ACC *)run;
#else
        PA_ACC *own = room + q * PA_G_RUN * PA_G_PLANES;
        if (q < count) PA_G(widen)(n, (const PA_T *)run, own, PA_G_RUN);
        b[q * PA_G_PLANES] = own;
        if (PA_G_PLANES == 2) b[q * PA_G_PLANES + 1] = own + PA_G_RUN;
#endif
    }
}

/* The vectors in scratch: x[row][plane][k], then the sums part[piece of k][row][plane][n]. */
PA_GEMM_INLINE PA_ACC *PA_G(sum_at)(const pa_gemm_job *job, int64_t piece, int64_t row)
{
    return (PA_ACC *)job->acc + (piece * job->m + row) * PA_G_PLANES * job->n;
}

PA_GEMM_PLAN void PA_G(finish)(const pa_gemm_job *job, int64_t j0, int64_t j1)
{
    int64_t pieces = pa_gemm_ceil(job->k, job->kchunk), r, j, q;
    for (r = 0; r < job->m; r++) {
        char *c = job->c + r * job->rcs + j0 * job->ccs;
        for (j = j0; j < j1; j++, c += job->ccs) {
            PA_ACC x[PA_G_PLANES];
            PA_GEMM_SCALAR();
            for (q = 0; q < PA_G_PLANES; q++) x[q] = PA_G(sum_at)(job, 0, r)[q * job->n + j];
            for (q = PA_G_PLANES; q < pieces * PA_G_PLANES; q++)
                x[q % PA_G_PLANES] = (PA_ACC)PA_G_ADD(x[q % PA_G_PLANES], PA_G(sum_at)(job, q / PA_G_PLANES, r)[q % PA_G_PLANES * job->n + j]);
#if PA_KIND == PA_GEMM_COMPLEX
            PA_G_GET(*(PA_T *)c, x, 0, 1);
#ifdef PA_EPILOGUE
            *(PA_T *)c = PA_EPILOGUE(*(PA_T *)c, (job->swapped ? j : r), (job->swapped ? r : j));
#endif
#else
#ifdef PA_EPILOGUE
            x[0] = (PA_ACC)PA_EPILOGUE(x[0], (job->swapped ? j : r), (job->swapped ? r : j));
#endif
            PA_G_GET(*(PA_T *)c, x, 0, 0);
#endif
        }
    }
}

/* Rows p .. p + count of B, columns j .. j + n, times their elements of x, on all rows of C. */
PA_GEMM_INLINE void PA_G(rows)(const pa_gemm_job *job, int64_t piece, int64_t p, int count, int64_t j, int64_t n, PA_ACC *room)
{
    const PA_ACC *b[4];
    int64_t r;
    int q;
    PA_G(runs)(n, job->b + p * job->rbs + j * PA_G_ES, job->rbs, count, room, b);
    for (r = 0; r < job->m; r++) {
        const PA_ACC *x = (const PA_ACC *)job->pa + r * PA_G_PLANES * job->k + p;
        PA_ACC *y = PA_G(sum_at)(job, piece, r) + j, f[4];
#if PA_KIND == PA_GEMM_COMPLEX
        for (q = 0; q < count; q++) f[2 * q] = x[q], f[2 * q + 1] = -x[job->k + q];
        PA_G(axpy)(n, y, f, b, 2 * count);
        for (q = 0; q < count; q++) f[2 * q] = x[job->k + q], f[2 * q + 1] = x[q];
        PA_G(axpy)(n, y + job->n, f, b, 2 * count);
#else
        for (q = 0; q < count; q++) f[q] = x[q];
        PA_G(axpy)(n, y, f, b, count);
#endif
    }
}

/* Columns j .. j + count of B, rows p .. p + n: dot products with all rows of A. */
PA_GEMM_INLINE void PA_G(columns)(const pa_gemm_job *job, int64_t piece, int64_t p, int64_t n, int64_t j, int count, PA_ACC *room)
{
    const PA_ACC *b[4];
    PA_ACC s[4];
    int64_t r;
    int q;
    PA_G(runs)(n, job->b + p * PA_G_ES + j * job->cbs, job->cbs, count, room, b);
    for (r = 0; r < job->m; r++) {
        const PA_ACC *x = (const PA_ACC *)job->pa + r * PA_G_PLANES * job->k + p;
        PA_ACC *y = PA_G(sum_at)(job, piece, r) + j;
        PA_G(dot)(n, x, b, s);
#if PA_KIND == PA_GEMM_COMPLEX
        for (q = 0; q < count; q++) y[q] += s[2 * q], y[job->n + q] += s[2 * q + 1];
        PA_G(dot)(n, x + job->k, b, s);
        for (q = 0; q < count; q++) y[q] -= s[2 * q + 1], y[job->n + q] += s[2 * q];
#else
        for (q = 0; q < count; q++) y[q] = (PA_ACC)PA_G_ADD(y[q], s[q]);
#endif
    }
}

/* Each task takes a chunk of columns and a piece of the depth. */
PA_GEMM_PLAN void PA_G(sweep)(void *context, int64_t begin, int64_t end)
{
    const pa_gemm_job *job = (const pa_gemm_job *)context;
    int64_t across = pa_gemm_ceil(job->n, job->cchunk), t, r, j, p, at;
    PA_ACC room[PA_G_PLAIN ? 1 : 4 * PA_G_RUN] __attribute__((aligned(64)));
    for (t = begin; t < end; t++) {
        int64_t piece = t / across, j0 = t % across * job->cchunk, j1 = pa_gemm_min(job->n, j0 + job->cchunk);
        int64_t p0 = piece * job->kchunk, p1 = pa_gemm_min(job->k, p0 + job->kchunk);
        for (r = 0; r < job->m * PA_G_PLANES; r++)
            __builtin_memset(PA_G(sum_at)(job, piece, 0) + r * job->n + j0, 0, (size_t)(j1 - j0) * sizeof(PA_ACC));
        if (job->by_rows) {
            int64_t run = PA_G_PLAIN ? j1 - j0 : PA_G_RUN;
            for (j = j0; j < j1; j += run)
                for (p = p0; p < p1; p += PA_G_GROUP)
                    PA_G(rows)(job, piece, p, (int)pa_gemm_min(PA_G_GROUP, p1 - p), j, pa_gemm_min(run, j1 - j), room);
        } else {
            int64_t run = PA_G_PLAIN && job->m == 1 ? p1 - p0 : PA_G_RUN;
            for (j = j0; j < j1; j += PA_G_GROUP)
                for (at = p0; at < p1; at += run)
                    PA_G(columns)(job, piece, at, pa_gemm_min(run, p1 - at), j, (int)pa_gemm_min(PA_G_GROUP, j1 - j), room);
        }
        if (job->kchunk >= job->k) PA_G(finish)(job, j0, j1);
    }
}

/* True when it was done. */
PA_GEMM_PLAN int PA_G(vector)(pa_gemm_job *job, int wide)
{
    int64_t bytes = job->n * job->k * PA_G_ES, pieces, r, p;
    int rows = job->cbs == PA_G_ES && job->n > 1;
    PA_ACC *x;
    if (job->m > PA_GEMM_FEW || (!rows && job->rbs != PA_G_ES) || (rows ? job->n : job->k) < 2 * PA_G_L) return 0;
    if (job->m > 1 && bytes < 1 << 17) return 0;
    /* Some 8 tasks; whole rows in a run where that gives enough of them. A row of sums stays in L1. */
    job->cchunk = rows ? 16384 / (int64_t)sizeof(PA_ACC) : pa_gemm_ceil(pa_gemm_ceil(job->n, 8), PA_G_GROUP) * PA_G_GROUP;
    if (job->cchunk > job->n) job->cchunk = job->n;
    pieces = pa_gemm_min(8 / pa_gemm_ceil(job->n, job->cchunk), bytes >> 16);
    job->kchunk = pieces > 1 ? pa_gemm_ceil(pa_gemm_ceil(job->k, pieces), 64) * 64 : job->k;
    pieces = pa_gemm_ceil(job->k, job->kchunk);
    job->pa = (char *)job->rt->scratch(job->rt, (size_t)(job->m * PA_G_WORD * (job->k + pieces * job->n)));
    if (!job->pa) return 0;
    job->acc = job->pa + job->m * PA_G_WORD * job->k;
    job->by_rows = rows;
    x = (PA_ACC *)job->pa;
    for (r = 0; r < job->m; r++) {
        const char *a = job->a + r * job->ras;
        for (p = 0; p < job->k; p++, a += job->cas) {
            PA_GEMM_SCALAR();
            PA_G_PUT(x + r * PA_G_PLANES * job->k, p, job->k, *(const PA_T *)a);
        }
    }
    PA_G(run)(job, PA_G(sweep), pa_gemm_ceil(job->n, job->cchunk) * pieces, wide && bytes >= 1 << 19);
    if (pieces > 1) PA_G(finish)(job, 0, job->n);
    return 1;
}

#undef PA_G_RUN
#undef PA_G_GROUP
