/* Matrix products on CPUs with up to PA_G_FEW_AXPY rows (or, transposed, columns): bandwidth is the limit, so the big
   matrix B is read once, in place and in memory order. Contiguous rows of B are added with factors (axpy), contiguous
   columns are dot products.

   All arithmetic is on runs of PA_ACC. Halves, bools and bytes are widened first, a piece that fits L1 at a time.
   Bfloat16 by pairs is not: a column is a run of pairs, and pairs of rows are made in registers. Complex numbers are
   not taken apart: in runs of rows, B is a real matrix of twice the width, which the real and the imaginary parts of a
   row of A multiply as two rows; in runs of columns, one of twice the depth, and the two rows are (re, -im, ..) and
   (im, re, ..). */

#define PA_G_VECTOR_RUN ((int64_t)(PA_GEMM_FEW_RUN_BYTES / sizeof(PA_ACC))) /* elements converted at a time */
/* rows of B that are added up at a time, each twice where A has two rows: as many as the registers hold with their
   factors */
#if defined(__AVX512F__) && PA_G_INPLACE
#define PA_G_AXPY_ROWS 8
#else
#define PA_G_AXPY_ROWS 4
#endif
#define PA_G_DOT_COLUMNS 6 /* rows of B in place that one or two rows of A are multiplied with at a time */
#define PA_G_COLUMNS_IN_PLACE (PA_G_INPLACE || PA_G_PAIRS) /* columns of B are read in place */
#if PA_G_PAIRS
#define PA_G_MAC_WORD(s, b, x) PA_G(dot_pair)(s, b, x)
#else
#define PA_G_MAC_WORD(s, b, x) PA_G_MAC(s, b, x)
#endif

/* A vector of sums of products. */
#if PA_G_HALVES
typedef struct PA_G(vsum) {
    PA_G_V low;
    PA_G(words) cross;
} PA_G(vsum);
PA_GEMM_INLINE PA_G(vsum) PA_G(vsum_from)(PA_G_V v)
{
    const PA_G(vsum) s = {v, {0}};
    return s;
}
PA_GEMM_INLINE PA_G(vsum) PA_G(vsum_mac)(PA_G(vsum) s, PA_G_V x, PA_G_V y)
{
    __asm__("" : "+x"(x)); /* loaded once, not by either instruction: it may lie across two lines */
    s.low += PA_G(mul_low)(x, y);
    s.cross += (PA_G(words))x * PA_G(swap_halves)(y); /* y is used again, so is this */
    return s;
}
PA_GEMM_INLINE PA_G_V PA_G(vsum_value)(PA_G(vsum) s)
{
    return s.low + (((PA_G_V)s.cross + ((PA_G_V)s.cross >> 32)) << 32);
}
#else
typedef struct PA_G(vsum) {
    PA_G_V low;
} PA_G(vsum);
PA_GEMM_INLINE PA_G(vsum) PA_G(vsum_from)(PA_G_V v)
{
    const PA_G(vsum) s = {v};
    return s;
}
PA_GEMM_INLINE PA_G(vsum) PA_G(vsum_mac)(PA_G(vsum) s, PA_G_V x, PA_G_V y)
{
#if PA_G_PAIRS
    s.low = PA_G(dot_pairs)(s.low, x, y);
#else
    s.low = PA_G_VMAC(s.low, x, y);
#endif
    return s;
}
PA_GEMM_INLINE PA_G_V PA_G(vsum_value)(PA_G(vsum) s) { return s.low; }
#endif

/* The sum of a vector's elements, by halves. */
PA_GEMM_INLINE PA_ACC PA_G(horizontal_sum)(PA_G_V v)
{
    typedef PA_ACC quarter __attribute__((vector_size(16), may_alias));
    const quarter *part = (const quarter *)&v;
    quarter q = part[0];
    PA_ACC sum;
    int i;
#if PA_G_VBYTES == 64
    typedef PA_ACC half __attribute__((vector_size(32), may_alias));
    const half both = PA_G_ADD(((const half *)&v)[0], ((const half *)&v)[1]);
    part = (const quarter *)&both;
    q = part[0];
#endif
    if (PA_G_VBYTES > 16) q = PA_G_ADD(q, part[1]);
    sum = q[0];
    for (i = 1; i < (int)(16 / sizeof(PA_ACC)); i++) { PA_GEMM_SCALAR(); sum = (PA_ACC)PA_G_ADD(sum, q[i]); }
    return sum;
}

#if !PA_G_PAIRS
/* y[j] += x[0] * b[0][j] + ... + x[count - 1] * b[count - 1][j], and for the second of two rows (of complex numbers:
   for the imaginary parts) the same with sums that are `ny` further and factors `nx` further. */
PA_GEMM_INLINE void PA_G(axpy)(int64_t n, PA_ACC *y, int64_t ny, const PA_ACC *x, int64_t nx, const PA_ACC *const *b,
                               int count, const int rows)
{
    const PA_G_V zero = {0};
    int64_t j = 0, at, i;
    int q;
    if (count == PA_G_AXPY_ROWS) {
        const PA_ACC *row[PA_G_AXPY_ROWS]; /* what is stored may not change these, as it might b */
        PA_G_V f[PA_G_AXPY_ROWS], g[PA_G_AXPY_ROWS];
        PA_GEMM_UNROLL for (q = 0; q < PA_G_AXPY_ROWS; q++) row[q] = b[q], f[q] = x[q] - zero,
                                                            g[q] = x[(rows - 1) * nx + q] - zero;
        for (; j + PA_G_L <= n; j += PA_G_L) {
            PA_G(vsum) s = PA_G(vsum_from)(*(PA_G_VU *)(y + j));
            PA_G_V v[PA_G_AXPY_ROWS]; /* loads ahead of the sums: memory is requested for all of them at once */
            PA_GEMM_UNROLL for (q = 0; q < PA_G_AXPY_ROWS; q++) v[q] = *(const PA_G_VU *)(row[q] + j);
            PA_GEMM_UNROLL for (q = 0; q < PA_G_AXPY_ROWS; q++) s = PA_G(vsum_mac)(s, v[q], f[q]);
            *(PA_G_VU *)(y + j) = PA_G(vsum_value)(s);
            if (rows == 1) continue;
            s = PA_G(vsum_from)(*(PA_G_VU *)(y + ny + j));
            PA_GEMM_UNROLL for (q = 0; q < PA_G_AXPY_ROWS; q++) s = PA_G(vsum_mac)(s, v[q], g[q]);
            *(PA_G_VU *)(y + ny + j) = PA_G(vsum_value)(s);
        }
    }
    for (q = 0; q < count; q++) {
        for (at = j; at + PA_G_L <= n; at += PA_G_L) {
            const PA_G_V v = *(const PA_G_VU *)(b[q] + at);
            PA_G_VU *to = (PA_G_VU *)(y + at), *next = (PA_G_VU *)(y + ny + at);
            *to = PA_G(vsum_value)(PA_G(vsum_mac)(PA_G(vsum_from)(*to), v, x[q] - zero));
            if (rows == 2) *next = PA_G(vsum_value)(PA_G(vsum_mac)(PA_G(vsum_from)(*next), v, x[nx + q] - zero));
        }
        for (i = at; i < n; i++) {
            PA_GEMM_SCALAR();
            y[i] = PA_G_MAC(y[i], b[q][i], x[q]);
            if (rows == 2) y[ny + i] = PA_G_MAC(y[ny + i], b[q][i], x[nx + q]);
        }
    }
}

PA_GEMM_HOT void PA_G(axpy2)(int64_t n, PA_ACC *y, int64_t ny, const PA_ACC *x, int64_t nx, const PA_ACC *const *b,
                             int count)
{
    PA_G(axpy)(n, y, ny, x, nx, b, count, 2);
}
PA_GEMM_HOT void PA_G(axpy1)(int64_t n, PA_ACC *y, const PA_ACC *x, const PA_ACC *const *b, int count)
{
    PA_G(axpy)(n, y, 0, x, 0, b, count, 1);
}
#endif

/* out[q] = sum of x[q * stride + j] * b[q][j], and for the second of two rows out[4 + q], whose factors are `nx`
   further. A single row has two sums on the way, that no sum waits for the one before. */
PA_GEMM_INLINE void PA_G(dot)(int64_t n, const PA_ACC *x, int64_t stride, int64_t nx, const PA_ACC *const *b,
                              PA_ACC *out, const int rows)
{
    const PA_ACC *b0 = b[0], *b1 = b[1], *b2 = b[2], *b3 = b[3], *z = x + (rows - 1) * nx;
    const int sums = rows == 1 && PA_G_HALVES ? 4 : 8; /* there are no more registers */
    const int64_t step = rows == 1 ? sums / 4 * PA_G_L : PA_G_L, more = step - PA_G_L;
    PA_G(vsum) t[8];
    int64_t j, i;
    int q;
    PA_GEMM_UNROLL for (q = 0; q < 8; q++) t[q] = PA_G(vsum_from)((PA_G_V){0});
    for (j = 0; j + step <= n; j += step) {
        const PA_G_V x0 = *(const PA_G_VU *)(x + j), x1 = *(const PA_G_VU *)(x + stride + j);
        const PA_G_V x2 = *(const PA_G_VU *)(x + 2 * stride + j), x3 = *(const PA_G_VU *)(x + 3 * stride + j);
        t[0] = PA_G(vsum_mac)(t[0], *(const PA_G_VU *)(b0 + j), x0);
        t[1] = PA_G(vsum_mac)(t[1], *(const PA_G_VU *)(b1 + j), x1);
        t[2] = PA_G(vsum_mac)(t[2], *(const PA_G_VU *)(b2 + j), x2);
        t[3] = PA_G(vsum_mac)(t[3], *(const PA_G_VU *)(b3 + j), x3);
        if (sums == 4) continue;
        const PA_G_V z0 = *(const PA_G_VU *)(z + more + j), z1 = *(const PA_G_VU *)(z + stride + more + j);
        const PA_G_V z2 = *(const PA_G_VU *)(z + 2 * stride + more + j),
                     z3 = *(const PA_G_VU *)(z + 3 * stride + more + j);
        t[4] = PA_G(vsum_mac)(t[4], *(const PA_G_VU *)(b0 + more + j), z0);
        t[5] = PA_G(vsum_mac)(t[5], *(const PA_G_VU *)(b1 + more + j), z1);
        t[6] = PA_G(vsum_mac)(t[6], *(const PA_G_VU *)(b2 + more + j), z2);
        t[7] = PA_G(vsum_mac)(t[7], *(const PA_G_VU *)(b3 + more + j), z3);
    }
    PA_GEMM_UNROLL for (q = 0; q < 4 * rows; q++) {
        PA_G_V s = PA_G(vsum_value)(t[q]);
        PA_ACC sum;
        if (rows == 1 && sums == 8) s = PA_G_ADD(s, PA_G(vsum_value)(t[4 + q]));
        sum = PA_G(horizontal_sum)(s);
        for (i = j; i < n; i++) {
            PA_GEMM_SCALAR();
            sum = PA_G_MAC_WORD(sum, b[q % 4][i], x[q % 4 * stride + q / 4 * nx + i]);
        }
        out[q] = sum;
    }
}

PA_GEMM_HOT void PA_G(dot2)(int64_t n, const PA_ACC *x, int64_t nx, const PA_ACC *const *b, PA_ACC *out)
{
#if PA_G_HALVES
    PA_G(dot)(n, x, 0, 0, b, out, 1);
    PA_G(dot)(n, x + nx, 0, 0, b, out + 4, 1);
#else
    PA_G(dot)(n, x, 0, nx, b, out, 2);
#endif
}
#if PA_KIND != PA_GEMM_COMPLEX
PA_GEMM_HOT void PA_G(dot1)(int64_t n, const PA_ACC *x, const PA_ACC *const *b, PA_ACC *out)
{
    PA_G(dot)(n, x, 0, 0, b, out, 1);
}

/* The sum of x[j] * b[j]: four parts of them at a time, and then the rest. */
PA_GEMM_HOT PA_ACC PA_G(dot0)(int64_t n, const PA_ACC *x, const PA_ACC *b)
{
    const int64_t part = n / 4;
    const PA_ACC *parts[4] = {b, b + part, b + 2 * part, b + 3 * part};
    PA_ACC s[4], sum = 0;
    int64_t i;
    PA_G(dot)(part, x, part, 0, parts, s, 1);
    for (i = 0; i < 4; i++) sum = (PA_ACC)PA_G_ADD(sum, s[i]);
    for (i = 4 * part; i < n; i++) sum = PA_G_MAC_WORD(sum, b[i], x[i]);
    return sum;
}
#endif

#if PA_G_COLUMNS_IN_PLACE
/* y[q] += sum of x[j] * b[q][j] for PA_G_DOT_COLUMNS rows of B with a `stride` in bytes, and for a second row of A
   the same `ny` and `nx` further. More rows at a time give the prefetchers more streams; six are what the sums (of two
   rows, or of halves) leave registers for. */
PA_GEMM_INLINE void PA_G(dot_columns)(int64_t n, const PA_ACC *x, int64_t nx, const char *from, int64_t stride,
                                      PA_ACC *y, int64_t ny, const int rows)
{
    PA_G(vsum) t[2 * PA_G_DOT_COLUMNS];
    const PA_ACC *b[PA_G_DOT_COLUMNS];
    int64_t j, i;
    int q, r;
    PA_GEMM_UNROLL for (q = 0; q < rows * PA_G_DOT_COLUMNS; q++) t[q] = PA_G(vsum_from)((PA_G_V){0});
    PA_GEMM_UNROLL for (q = 0; q < PA_G_DOT_COLUMNS; q++) b[q] = (const PA_ACC *)(from + q * stride);
    for (j = 0; j + PA_G_L <= n; j += PA_G_L) {
        const PA_G_V v = *(const PA_G_VU *)(x + j), w = *(const PA_G_VU *)(x + (rows - 1) * nx + j);
        PA_GEMM_UNROLL for (q = 0; q < PA_G_DOT_COLUMNS; q++) {
            const PA_G_V z = *(const PA_G_VU *)(b[q] + j);
            t[q] = PA_G(vsum_mac)(t[q], z, v);
            if (rows == 2) t[PA_G_DOT_COLUMNS + q] = PA_G(vsum_mac)(t[PA_G_DOT_COLUMNS + q], z, w);
        }
    }
    for (r = 0; r < rows; r++, x += nx, y += ny)
        PA_GEMM_UNROLL for (q = 0; q < PA_G_DOT_COLUMNS; q++) {
            PA_ACC sum = PA_G(horizontal_sum)(PA_G(vsum_value)(t[r * PA_G_DOT_COLUMNS + q]));
            for (i = j; i < n; i++) { PA_GEMM_SCALAR(); sum = PA_G_MAC_WORD(sum, b[q][i], x[i]); }
            y[q] = (PA_ACC)PA_G_ADD(y[q], sum);
        }
}
PA_GEMM_HOT void PA_G(dot_columns1)(int64_t n, const PA_ACC *x, const char *from, int64_t stride, PA_ACC *y)
{
    PA_G(dot_columns)(n, x, 0, from, stride, y, 0, 1);
}
PA_GEMM_HOT void PA_G(dot_columns2)(int64_t n, const PA_ACC *x, int64_t nx, const char *from, int64_t stride, PA_ACC *y,
                                    int64_t ny)
{
#if PA_G_HALVES
    PA_G(dot_columns)(n, x, 0, from, stride, y, 0, 1);
    PA_G(dot_columns)(n, x + nx, 0, from, stride, y + ny, 0, 1);
#else
    PA_G(dot_columns)(n, x, nx, from, stride, y, ny, 2);
#endif
}
#endif

/* b = `count` rows or columns of B with a `stride` in bytes, widened into `scratch` where needed. Beyond `count`
   the last is repeated. */
PA_GEMM_HOT void PA_G(row_pointers)(int64_t n, const char *from, int64_t stride, int count, PA_ACC *scratch,
                                    const PA_ACC **b)
{
    int q;
    (void)n, (void)scratch;
    for (q = 0; q < PA_G_AXPY_ROWS; q++) {
        int at = q < count ? q : count - 1;
#if PA_G_COLUMNS_IN_PLACE
        b[q] = (const PA_ACC *)(from + at * stride);
#else
        b[q] = scratch + at * PA_G_VECTOR_RUN;
        if (q == at) PA_G(load_converted)(n, (const PA_T *)(from + q * stride), scratch + q * PA_G_VECTOR_RUN, 0);
#endif
    }
}

/* Row r of A, and the sums of a row: part[piece of the depth][row][column]. */
PA_GEMM_INLINE const PA_ACC *PA_G(row_of_a)(const pa_gemm_job *job, int64_t r)
{
    return (const PA_ACC *)(job->pa + r * job->sai);
}
PA_GEMM_INLINE PA_ACC *PA_G(row_of_sums)(const pa_gemm_job *job, int64_t piece, int64_t r)
{
    return (PA_ACC *)job->acc + (piece * job->mb + r) * job->nb;
}

/* Adds up the pieces of columns j0 .. j1 and writes them to C. */
PA_GEMM_PLAN void PA_G(reduce_slices)(const pa_gemm_job *job, int64_t j0, int64_t j1)
{
    int64_t pieces = pa_gemm_ceil(job->kb, job->kchunk), r, j, q;
    for (r = 0; r < job->mb; r++)
        for (q = 1; q < pieces; q++) {
            PA_ACC *sum = PA_G(row_of_sums)(job, 0, r), *more = PA_G(row_of_sums)(job, q, r);
            for (j = j0; j + PA_G_L <= j1; j += PA_G_L) {
                PA_G_VU *to = (PA_G_VU *)(sum + j);
                *to = PA_G_ADD(*to, *(const PA_G_VU *)(more + j));
            }
            for (; j < j1; j++) { PA_GEMM_SCALAR(); sum[j] = (PA_ACC)PA_G_ADD(sum[j], more[j]); }
        }
#if PA_KIND == PA_GEMM_COMPLEX
    if (job->by_rows) j0 /= 2, j1 /= 2;
#endif
    j1 = pa_gemm_min(j1, job->n);
    for (r = 0; r < job->m; r++) {
        const PA_ACC *sum = PA_G(row_of_sums)(job, 0, r * PA_G_PLANES);
#if defined(PA_EPILOGUE) && PA_KIND != PA_GEMM_COMPLEX
        PA_G(apply_epilogue)(job, sum + j0, 0, 0, r, j0, 1, j1 - j0);
#else
        char *c = job->c + r * job->rcs + j0 * job->ccs;
        for (j = j0; j < j1; j++, c += job->ccs) {
            PA_C x;
            PA_GEMM_SCALAR();
#if PA_KIND == PA_GEMM_COMPLEX
            if (job->by_rows)
                x.re = sum[2 * j] - sum[job->nb + 2 * j + 1], x.im = sum[2 * j + 1] + sum[job->nb + 2 * j];
            else x.re = sum[j], x.im = sum[job->nb + j];
#ifdef PA_EPILOGUE
            PA_G(apply_epilogue)(job, &x.re, 0, 1, r, j, 1, 1);
            continue;
#endif
#else
            x = (PA_C)PA_STORE(sum[j]);
#endif
            *(PA_C *)c = x;
        }
#endif
    }
}

/* Each task takes a chunk of columns and a piece of the depth. */
PA_GEMM_PLAN void PA_G(sweep_b)(void *context, int64_t begin, int64_t end)
{
    const pa_gemm_job *job = (const pa_gemm_job *)context;
    int64_t across = pa_gemm_ceil(job->nb, job->cchunk),
            size = PA_G_COLUMNS_IN_PLACE ? (int64_t)sizeof(PA_ACC) : PA_G_ES;
    int64_t t, r, j, p, n, at, nx = job->sai / (int64_t)sizeof(PA_ACC);
    PA_ACC scratch[PA_G_COLUMNS_IN_PLACE ? 1 : PA_G_AXPY_ROWS * PA_G_VECTOR_RUN] __attribute__((aligned(64))), s[8];
    const PA_ACC *b[PA_G_AXPY_ROWS];
    int q, count, rows;
    for (t = begin; t < end; t++) {
        int64_t piece = t / across, j0 = t % across * job->cchunk, j1 = pa_gemm_min(job->nb, j0 + job->cchunk);
        int64_t p0 = piece * job->kchunk, p1 = pa_gemm_min(job->kb, p0 + job->kchunk), run = PA_G_VECTOR_RUN;
        for (r = 0; r < job->mb; r++)
            __builtin_memset(PA_G(row_of_sums)(job, piece, r) + j0, 0, (size_t)(j1 - j0) * sizeof(PA_ACC));
        if (job->by_rows) {
#if PA_G_PAIRS
            run = 4 * PA_G_VECTOR_RUN / job->m / PA_G_PAIR_COLUMNS * PA_G_PAIR_COLUMNS;
            for (j = j0; j < j1; j += run)
                for (p = p0; p < p1; p += PA_G_PAIR_ROWS)
                    PA_G(axpy_pairs)(job, pa_gemm_min(j + run, j1) - j, j, p, PA_G(row_of_sums)(job, piece, 0) + j,
                                     PA_G(row_of_a)(job, 0) + p);
            for (r = 0; r < job->m; r++) PA_G(restore_order)(j1 - j0, PA_G(row_of_sums)(job, piece, r) + j0);
#else
            if (PA_G_INPLACE && job->m == 1) run = j1 - j0;
            for (j = j0; j < j1; j += run)
                for (p = p0; p < p1; p += PA_G_AXPY_ROWS) {
                    count = (int)pa_gemm_min(PA_G_AXPY_ROWS, p1 - p), n = pa_gemm_min(run, j1 - j);
                    PA_G(row_pointers)(n, job->b + p * job->rbs + j * size, job->rbs, count, scratch, b);
                    for (r = 0; r + 1 < job->mb; r += 2)
                        PA_G(axpy2)(n, PA_G(row_of_sums)(job, piece, r) + j, job->nb, PA_G(row_of_a)(job, r) + p, nx, b,
                                    count);
#if PA_KIND != PA_GEMM_COMPLEX
                    if (r < job->mb)
                        PA_G(axpy1)(n, PA_G(row_of_sums)(job, piece, r) + j, PA_G(row_of_a)(job, r) + p, b, count);
#endif
                }
#endif
        } else {
            j = j0;
            if (PA_G_COLUMNS_IN_PLACE && job->m == 1) run = p1 - p0;
#if PA_G_COLUMNS_IN_PLACE
            for (; j + PA_G_DOT_COLUMNS <= j1; j += PA_G_DOT_COLUMNS)
                for (at = p0; at < p1; at += run) {
                    const char *from = job->b + at * size + j * job->cbs;
                    n = pa_gemm_min(run, p1 - at);
                    for (r = 0; r + 1 < job->mb; r += 2)
                        PA_G(dot_columns2)(n, PA_G(row_of_a)(job, r) + at, nx, from, job->cbs,
                                           PA_G(row_of_sums)(job, piece, r) + j, job->nb);
                    if (r < job->mb)
                        PA_G(dot_columns1)(n, PA_G(row_of_a)(job, r) + at, from, job->cbs,
                                           PA_G(row_of_sums)(job, piece, r) + j);
                }
#endif
            for (; j < j1; j += 4)
                for (at = p0; at < p1; at += run) {
                    count = (int)pa_gemm_min(4, j1 - j), n = pa_gemm_min(run, p1 - at);
                    PA_G(row_pointers)(n, job->b + at * size + j * job->cbs, job->cbs, count, scratch, b);
                    for (r = 0; r < job->mb; r += rows) {
                        PA_ACC *y = PA_G(row_of_sums)(job, piece, r) + j;
                        const PA_ACC *x = PA_G(row_of_a)(job, r) + at;
                        rows = r + 1 < job->mb ? 2 : 1;
#if PA_KIND != PA_GEMM_COMPLEX
                        if (rows == 1 && count == 1) s[0] = PA_G(dot0)(n, x, b[0]);
                        else if (rows == 1) PA_G(dot1)(n, x, b, s);
                        else
#endif
                            PA_G(dot2)(n, x, nx, b, s);
                        for (q = 0; q < count; q++) {
                            y[q] = (PA_ACC)PA_G_ADD(y[q], s[q]);
                            if (rows == 2) y[job->nb + q] = (PA_ACC)PA_G_ADD(y[job->nb + q], s[4 + q]);
                        }
                    }
                }
#if PA_G_PAIRS
            if (2 * p1 + 1 == job->args->k) PA_G(add_odd_depth)(job, j0, j1, PA_G(row_of_sums)(job, piece, 0));
#endif
        }
        if (job->kchunk >= job->kb) PA_G(reduce_slices)(job, j0, j1);
    }
}

/* False where it doesn't apply. */
PA_GEMM_PLAN int PA_G(few_rows)(pa_gemm_job *job, int parallel)
{
    const int64_t unit = PA_G_COLUMNS_IN_PLACE ? PA_G_DOT_COLUMNS : 4;
    const int64_t k = job->args->k;
    int64_t bytes = job->n * k * PA_G_ES, pieces, r, p, words;
    job->by_rows = job->cbs == PA_G_ES && job->n > 1;
    if ((!job->by_rows && job->rbs != PA_G_ES) || (job->by_rows ? job->n : k) < 2 * PA_G_L) return 0;
    job->mb = job->m * PA_G_PLANES;
    job->nb = job->n * (job->by_rows ? PA_G_PLANES : 1);
    job->kb = k * (job->by_rows ? 1 : PA_G_PLANES);
#if PA_G_PAIRS
    job->kb = k / 2;
    if (job->by_rows)
        job->kb = pa_gemm_ceil(job->k, PA_G_PAIR_ROWS) * PA_G_PAIR_ROWS,
        job->nb = pa_gemm_ceil(job->n, PA_G_PAIR_COLUMNS) * PA_G_PAIR_COLUMNS;
#endif
    /* Some 8 tasks; whole rows in a run where that gives enough of them. A row of sums stays in L1. */
    job->cchunk = job->by_rows ? PA_GEMM_FEW_SUM_BYTES / (int64_t)sizeof(PA_ACC)
                               : pa_gemm_ceil(pa_gemm_ceil(job->nb, PA_GEMM_FEW_TASKS), unit) * unit;
    if (job->cchunk > job->nb) job->cchunk = job->nb;
    pieces = pa_gemm_min(PA_GEMM_FEW_TASKS / pa_gemm_ceil(job->nb, job->cchunk), bytes >> PA_GEMM_FEW_SLICE_BYTES);
    job->kchunk = pieces > 1 ? pa_gemm_ceil(pa_gemm_ceil(job->kb, pieces), 64) * 64 : job->kb;
    pieces = pa_gemm_ceil(job->kb, job->kchunk);
    words = PA_G_PLAIN && job->cas == PA_G_ES ? 0 : job->mb * job->kb;
    job->pa = (char *)job->rt->scratch(job->rt, (size_t)(words + pieces * job->mb * job->nb) * sizeof(PA_ACC));
    if (!job->pa) return 0;
    job->acc = job->pa + words * (int64_t)sizeof(PA_ACC);
    job->sai = job->kb * (int64_t)sizeof(PA_ACC);
    for (r = 0; r < job->m && words; r++) {
        PA_ACC *x = (PA_ACC *)job->pa + r * PA_G_PLANES * job->kb;
        const char *a = job->a + r * job->ras;
#if PA_G_PAIRS
        if (job->by_rows) __builtin_memset(x + k / 2, 0, (size_t)(job->kb - k / 2) * sizeof(PA_ACC));
        for (p = 0; p < pa_gemm_min(k, 2 * job->kb); p++, a += job->cas) {
            PA_GEMM_SCALAR();
            ((uint16_t *)x)[p] = *(const uint16_t *)a;
        }
        continue;
#endif
        for (p = 0; p < k; p++, a += job->cas) {
            PA_GEMM_SCALAR();
#if PA_KIND == PA_GEMM_COMPLEX
            PA_T v = *(const PA_T *)a;
            if (job->by_rows) x[p] = v.re, x[k + p] = v.im;
            else x[2 * p] = v.re, x[2 * p + 1] = -v.im, x[job->kb + 2 * p] = v.im, x[job->kb + 2 * p + 1] = v.re;
#else
            x[p] = (PA_ACC)PA_LOAD(*(const PA_T *)a);
#endif
        }
    }
    if (!words) job->pa = (char *)job->a, job->sai = job->ras;
    PA_G(run_tasks)(job, PA_G(sweep_b), pa_gemm_ceil(job->nb, job->cchunk) * pieces,
                    parallel && bytes >= PA_GEMM_PARALLEL_BYTES);
    if (pieces > 1) PA_G(reduce_slices)(job, 0, job->nb);
    return 1;
}

#undef PA_G_VECTOR_RUN
#undef PA_G_AXPY_ROWS
#undef PA_G_DOT_COLUMNS
#undef PA_G_COLUMNS_IN_PLACE
#undef PA_G_MAC_WORD
