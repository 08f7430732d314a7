/* Micro-kernel, epilogue and tiles of the matrix product on CPUs. */

/* ---- the micro-kernel -------------------------------------------------------------------------------------------- */

typedef struct PA_G(accumulators) {
    PA_G_V re[PA_G_MR][PA_G_NRV];
#if PA_KIND == PA_GEMM_COMPLEX
    PA_G_V im[PA_G_MR][PA_G_NRV];
#endif
} PA_G(accumulators);

#if PA_G_HALVES
/* AVX2 has no 64-bit multiplication: products of the low halves, to which the cross products add 32 bits in the high
   half. */
PA_GEMM_INLINE PA_G_V PA_G(mul_low)(PA_G_V x, PA_G_V y)
{
#ifdef __clang__
    return (x & 0xffffffffu) * (y & 0xffffffffu);
#else
    typedef int halves __attribute__((vector_size(32)));
    return (PA_G_V)__builtin_ia32_pmuludq256((halves)x, (halves)y);
#endif
}
PA_GEMM_INLINE PA_G(words) PA_G(swap_halves)(PA_G_V x)
{
#ifdef __clang__
    return __builtin_shufflevector((PA_G(words))x, (PA_G(words))x, 1, 0, 3, 2, 5, 4, 7, 6);
#else
    return __builtin_shuffle((PA_G(words))x, (PA_G(words)){1, 0, 3, 2, 5, 4, 7, 6});
#endif
}
#endif

/* sums = `rows` rows of A (PA_MR at most) times `across` vectors of columns of B (PA_NR at most). Rows of A are `sai`
   bytes apart and columns `sak`, rows of B `sbk`: a panel or the matrix itself. In complex panels the imaginary parts
   follow at a distance of one group. `other`: integers of 64 bits that fit 32, complex numbers of A from the matrix
   itself. Meanwhile `prefetched` is prefetched into L2, `prefetch_step` bytes per step of the depth: hardware
   prefetches a new panel too late. */
PA_GEMM_INLINE void PA_G(micro_kernel)(int64_t kc, const char *a, int64_t sai, int64_t sak, const char *b, int64_t sbk,
                                       const char *prefetched, int64_t prefetch_step, PA_G(accumulators) *out,
                                       const int rows, const int across, const int other)
{
    PA_G_V re[PA_G_MR][PA_G_NRV], zero = {0};
    int64_t p;
    int i, j;
    (void)other;
#if PA_KIND == PA_GEMM_COMPLEX
    PA_G_V im[PA_G_MR][PA_G_NRV];
#elif PA_G_HALVES
    PA_G(words) cross[PA_G_MR][PA_G_NRV];
#endif
    PA_GEMM_UNROLL for (i = 0; i < rows; i++) PA_GEMM_UNROLL for (j = 0; j < across; j++) {
        re[i][j] = zero;
#if PA_G_HALVES
        cross[i][j] = (PA_G(words))zero;
#endif
#if PA_KIND == PA_GEMM_COMPLEX
        im[i][j] = zero;
#endif
    }
    for (p = 0; p < kc; p++, a += sak, b += sbk, prefetched += prefetch_step) {
        __builtin_prefetch(prefetched, 0, 2);
        PA_G_V br[PA_G_NRV];
        PA_GEMM_UNROLL for (j = 0; j < across; j++) br[j] = ((const PA_G_VU *)b)[j];
#if PA_KIND == PA_GEMM_COMPLEX
        PA_G_V bi[PA_G_NRV];
        PA_GEMM_UNROLL for (j = 0; j < across; j++) bi[j] = ((const PA_G_VU *)b)[PA_G_NRV + j];
#endif
        PA_GEMM_UNROLL for (i = 0; i < rows; i++) {
#if PA_G_PAIRS /* two numbers at a time, which begin at any one of them */
            PA_ACC x;
            __builtin_memcpy(&x, a + i * sai, sizeof x);
#else
            const PA_ACC x = *(const PA_ACC *)(a + i * sai);
#endif
#if PA_KIND == PA_GEMM_COMPLEX
            const PA_ACC y = *(const PA_ACC *)(a + i * sai + (other ? 1 : PA_G_MR) * (int64_t)sizeof(PA_ACC));
#endif
            PA_GEMM_UNROLL for (j = 0; j < across; j++) {
#if PA_G_INT32
                if (other) {
                    re[i][j] += PA_G(mul_int32)(zero + x, br[j]);
                    continue;
                }
#endif
#if PA_G_HALVES
                const PA_G_V xs = zero + x;
                re[i][j] += PA_G(mul_low)(xs, br[j]);
                cross[i][j] += (PA_G(words))xs * PA_G(swap_halves)(br[j]);
#elif PA_G_PAIRS
                re[i][j] = PA_G(dot_pairs)(re[i][j], br[j], PA_G(broadcast_pair)(x));
#else
                re[i][j] = PA_G_VMAC(re[i][j], br[j], x);
#endif
#if PA_KIND == PA_GEMM_COMPLEX
                im[i][j] += bi[j] * x;
                re[i][j] -= bi[j] * y;
                im[i][j] += br[j] * y;
#endif
            }
        }
    }
    PA_GEMM_UNROLL for (i = 0; i < rows; i++) PA_GEMM_UNROLL for (j = 0; j < across; j++) {
#if PA_G_HALVES
        const PA_G_V both = (PA_G_V)cross[i][j];
        re[i][j] += (both + (both >> 32)) << 32;
#endif
        out->re[i][j] = re[i][j];
#if PA_KIND == PA_GEMM_COMPLEX
        out->im[i][j] = im[i][j];
#endif
    }
}
PA_GEMM_INLINE void PA_G(micro_kernel_of)(int64_t kc, const char *a, int64_t sai, int64_t sak, const char *b,
                                          int64_t sbk, const char *prefetched, int64_t prefetch_step,
                                          PA_G(accumulators) *out, const int rows, const int across, int other)
{
    if ((PA_G_INT32 || PA_KIND == PA_GEMM_COMPLEX) && other)
        PA_G(micro_kernel)(kc, a, sai, sak, b, sbk, prefetched, prefetch_step, out, rows, across, 1);
    else PA_G(micro_kernel)(kc, a, sai, sak, b, sbk, prefetched, prefetch_step, out, rows, across, 0);
}

#if PA_G_PAIRS
/* Adds the last product of an odd depth, where A is read in place: the next element is of another row. */
PA_GEMM_INLINE void PA_G(odd_depth)(const char *a, int64_t sai, const char *b, PA_G(accumulators) *s, const int rows,
                                    const int across)
{
    int i, j;
    PA_GEMM_UNROLL for (i = 0; i < rows; i++) {
        PA_ACC pair = 0;
        __builtin_memcpy(&pair, a + i * sai, sizeof(PA_T));
        PA_GEMM_UNROLL for (j = 0; j < across; j++)
            s->re[i][j] = PA_G(dot_pairs)(s->re[i][j], ((const PA_G_VU *)b)[j], PA_G(broadcast_pair)(pair));
    }
}
#endif

/* A memcpy of n elements, without a call for a whole row of a panel. */
PA_GEMM_INLINE void PA_G(copy_row)(void *to, const void *from, int64_t n, int64_t size)
{
    if (n == PA_G_NR) __builtin_memcpy(to, from, (size_t)(PA_G_NR * size));
    else if (n * size <= 64) pa_gemm_bytes(to, from, n * size);
    else __builtin_memcpy(to, from, (size_t)(n * size));
}

#ifdef PA_EPILOGUE
/* n elements of an addend, from (i, j) on in a row. */
PA_GEMM_HOT void PA_G(load_addend)(const pa_gemm_job *job, int which, int64_t i, int64_t j, int64_t n, PA_C *to)
{
    const int64_t step = job->cds[which];
    const char *from = job->d[which] + i * job->rds[which] + j * step;
    int64_t q;
#ifndef PA_DEBUG_CHECKS
    if (step == PA_G_CS) {
        PA_G(copy_row)(to, from, n, PA_G_CS);
        return;
    }
#endif
    for (q = 0; q < n; q++) {
        const char *at = from + q * step;
#ifdef PA_DEBUG_CHECKS
        PA_C scrap;
        __builtin_memset(&scrap, 0, sizeof scrap);
        at = (const char *)pa_gemm_at(job, PA_GEMM_SITE_D + which, i, j + q, at, PA_G_CS, &scrap);
#endif
        PA_GEMM_SCALAR();
        to[q] = *(const PA_C *)at;
    }
}

/* The epilogue on rows i .. i + rows of C, columns j .. j + cols, and the writing of them. A row of sums is `ld`
   from the next, an imaginary part `im` from its real part. */
PA_GEMM_HOT void PA_G(apply_epilogue)(const pa_gemm_job *job, const PA_ACC *sum, int64_t ld, int64_t im, int64_t i,
                                      int64_t j, int64_t rows, int64_t cols)
{
    PA_G_E acc[PA_G_MR * PA_G_NR] __attribute__((aligned(64)));
    PA_C d[PA_G_MR * PA_G_NR] __attribute__((aligned(64))), e[PA_G_MR * PA_G_NR] __attribute__((aligned(64)));
    PA_C out[PA_G_MR * PA_G_NR] __attribute__((aligned(64)));
    const PA_G_E *all = acc;
    const int64_t most = rows == 1 ? PA_G_MR * PA_G_NR : PA_G_NR;
    int64_t r, q, n = 0;
    (void)im;
    for (; cols > most; cols -= most, sum += most, j += most)
        PA_G(apply_epilogue)(job, sum, ld, im, i, j, rows, most);
    for (r = 0; r < rows; r++, n += cols) {
#if PA_KIND == PA_GEMM_REAL
        if (rows == 1 || ld == cols) all = sum;
        else PA_G(copy_row)(acc + n, sum + r * ld, cols, (int64_t)sizeof(PA_ACC));
#else
        for (q = 0; q < cols; q++) { PA_GEMM_SCALAR(); PA_G_STORE_ELEMENT(acc[n + q], sum, r * ld + q, im); }
#endif
        if (job->d[0]) PA_G(load_addend)(job, 0, i + r, j, cols, d + n);
        if (job->d[1]) PA_G(load_addend)(job, 1, i + r, j, cols, e + n);
    }
    PA_EPILOGUE(job->args, n, all, d, e, out);
    for (r = 0; r < rows; r++) {
        char *row = job->c + (i + r) * job->rcs + j * job->ccs;
#ifndef PA_DEBUG_CHECKS
        if (job->ccs == PA_G_CS) {
            PA_G(copy_row)(row, out + r * cols, cols, PA_G_CS);
            continue;
        }
#endif
        for (q = 0; q < cols; q++) {
            char *to = row + q * job->ccs;
#ifdef PA_DEBUG_CHECKS
            PA_C scrap;
            to = (char *)pa_gemm_at(job, PA_GEMM_SITE_C, i + r, j + q, to, PA_G_CS, &scrap);
#endif
            PA_GEMM_SCALAR();
            *(PA_C *)to = out[r * cols + q];
        }
    }
}
#endif

/* Writes rows r0 .. r1 and columns c0 .. c1 of the sums of the panel at (i0, j0): whatever is not a whole panel in
   plain rows. */
PA_GEMM_HOT void PA_G(store)(const pa_gemm_job *job, const PA_G(accumulators) *s, int64_t i0, int64_t j0, int r0,
                             int r1, int c0, int c1, int first)
{
    const PA_ACC *sum = (const PA_ACC *)s + r0 * PA_G_NR;
    int i, j;
#if !PA_G_PLAIN && PA_KIND != PA_GEMM_COMPLEX && !defined(PA_DEBUG_CHECKS)
    PA_C all[PA_G_MR * PA_G_NR];
#endif
    (void)first;
#ifdef PA_EPILOGUE
    if (!job->partial) {
        PA_G(apply_epilogue)(job, sum + c0, PA_G_NR, PA_G_MR * PA_G_NR, i0 + r0, j0 + c0, r1 - r0, c1 - c0);
        return;
    }
#endif
    for (i = r0; i < r1; i++, sum += PA_G_NR) {
        char *row = job->c + (i0 + i) * job->rcs + j0 * job->ccs;
        j = c0;
#ifndef PA_DEBUG_CHECKS
        if (job->ccs == PA_G_CS) {
#if PA_G_PLAIN
            for (; j + PA_G_L <= c1; j += PA_G_L) {
                PA_G_VU *to = (PA_G_VU *)((PA_T *)row + j);
                PA_G_V v = *(const PA_G_VU *)(sum + j);
                if (PA_G_SUMS_IN_C && !first) v = PA_G_ADD(v, *to);
                *to = v;
            }
#elif PA_KIND == PA_GEMM_COMPLEX
            PA_G(store_converted)(c1 - c0, sum + c0, (PA_C *)row + c0, PA_G_MR * PA_G_NR);
            continue;
#else
            /* all at once, and whole vectors: what is left of one would take longer */
            if (i == r0) PA_G(store_converted)((r1 - r0) * PA_G_NR, sum, all, PA_G_MR * PA_G_NR);
            PA_G(copy_row)((PA_C *)row + c0, all + (i - r0) * PA_G_NR + c0, c1 - c0, PA_G_CS);
            continue;
#endif
        }
#endif
        for (; j < c1; j++) {
            char *to = row + j * job->ccs;
            PA_C x;
            PA_GEMM_SCALAR();
            PA_G_STORE_ELEMENT(x, sum, j, PA_G_MR * PA_G_NR);
#ifdef PA_DEBUG_CHECKS
            PA_C scrap = x;
            to = (char *)pa_gemm_at(job, PA_GEMM_SITE_C, i0 + i, j0 + j, to, PA_G_CS, &scrap);
#endif
#if PA_G_SUMS_IN_C
            if (!first) x = (PA_C)PA_G_ADD(*(PA_C *)to, x);
#endif
            *(PA_C *)to = x;
        }
    }
}

/* The depth is 0: C is m x n zeros. */
PA_GEMM_PLAN void PA_G(store_zeros)(const pa_gemm_job *job)
{
    PA_G(accumulators) s;
    int64_t i, j;
    __builtin_memset(&s, 0, sizeof s);
    for (i = 0; i < job->m; i += PA_G_MR)
        for (j = 0; j < job->n; j += PA_G_NR)
            PA_G(store)(job, &s, i, j, 0, (int)pa_gemm_min(PA_G_MR, job->m - i), 0,
                        (int)pa_gemm_min(PA_G_NR, job->n - j), 1);
}

/* ---- tiles ------------------------------------------------------------------------------------------------------- */

#define PA_G_FIRST_SLICE 1 /* nothing is in C yet */
#define PA_G_LAST_SLICE 2
#define PA_G_INNER_ROW 4 /* not the first panel of the tile: what lies before belongs to this tile, too */
#define PA_G_INNER_COLUMN 8

/* Accumulates a slice in a workspace, if C can't hold the sums without rounding or truncation. */
PA_GEMM_INLINE void PA_G(accumulate_partial)(const pa_gemm_job *job, PA_G(accumulators) *s, int64_t i0, int64_t j0,
                                             int first, const int height, const int across)
{
    int64_t panel = (i0 - job->i0) / PA_G_MR * pa_gemm_ceil(job->nb, PA_G_NR) + (j0 - job->j0) / PA_G_NR;
    PA_G(accumulators) *partial = (PA_G(accumulators) *)job->acc + panel;
    const int64_t at = across == PA_G_NRV ? 0 : (j0 - job->j0) % PA_G_NR / PA_G_L;
    int r, q;
    PA_GEMM_UNROLL for (r = 0; r < height; r++) PA_GEMM_UNROLL for (q = 0; q < across; q++) {
        if (!first) s->re[r][q] = PA_G_ADD(partial->re[r][at + q], s->re[r][q]);
        partial->re[r][at + q] = s->re[r][q];
#if PA_KIND == PA_GEMM_COMPLEX
        if (!first) s->im[r][q] = PA_G_ADD(partial->im[r][at + q], s->im[r][q]);
        partial->im[r][at + q] = s->im[r][q];
#endif
    }
}

/* Stores `height` rows of sums to C or adds them to it, from registers. */
PA_GEMM_INLINE void PA_G(store_registers)(char *c, int64_t rcs, const PA_G(accumulators) *s, int first,
                                          const int height, const int across)
{
    int r, q;
    PA_GEMM_UNROLL for (r = 0; r < height; r++, c += rcs) PA_GEMM_UNROLL for (q = 0; q < across; q++) {
        PA_G_V v = s->re[r][q];
        if (!first) v = PA_G_ADD(v, ((PA_G_VU *)c)[q]);
        ((PA_G_VU *)c)[q] = v;
    }
}

/* Rows i0 .. i0 + height of C, columns j0 .. j0 + across vectors, in one slice. */
PA_GEMM_INLINE void PA_G(panel)(const pa_gemm_job *job, const char *a, const char *b, int64_t kc, int64_t i0,
                                int64_t j0, int flags, const char *prefetched, int64_t prefetch_step, const int height,
                                const int across)
{
    PA_G(accumulators) s, spilled;
    const int width = across * PA_G_L;
    int rows = (int)pa_gemm_min(height, job->m - i0), cols = (int)pa_gemm_min(width, job->n - j0);
    int r0 = 0, c0 = 0, first = flags & PA_G_FIRST_SLICE;
#if PA_G_INPLACE || PA_G_PAIRS
    /* An edge of a matrix that is not copied: the panel is moved back to lie inside. */
    if (job->a_direct && rows < height) r0 = height - rows, i0 -= r0, a -= r0 * job->ras;
    if (job->b_direct && cols < width) c0 = width - cols, j0 -= c0, b -= c0 * PA_G_ES;
#endif
#if PA_G_PAIRS
    const int odd = job->a_direct && flags & PA_G_LAST_SLICE && job->args->k % 2;
    PA_G(micro_kernel_of)(kc - odd, a, job->sai, job->sak, b, job->sbk, prefetched, prefetch_step, &s, height, across,
                          0);
    if (odd) PA_G(odd_depth)(a + (kc - 1) * job->sak, job->sai, b + (kc - 1) * job->sbk, &s, height, across);
#else
    PA_G(micro_kernel_of)(kc, a, job->sai, job->sak, b, job->sbk, prefetched, prefetch_step, &s, height, across,
                          PA_KIND == PA_GEMM_COMPLEX ? job->a_direct : job->fits32);
#endif
#if !PA_G_SUMS_IN_C
    if ((flags & 3) != 3) {
        PA_G(accumulate_partial)(job, &s, i0 + r0, j0 + c0, first, height, across);
        if (!(flags & PA_G_LAST_SLICE)) return;
    }
#endif
#if PA_G_SMALL
    /* A panel that was moved back computes some elements twice. They may be written twice when they are complete and of
       this tile; another thread may be computing those of another tile. */
    if (job->ccs == PA_G_ES && (rows == height || (r0 && (flags & 7) == 7)) &&
        (cols == width || (c0 && (flags & 11) == 11))) {
        PA_G(store_registers)(job->c + i0 * job->rcs + j0 * PA_G_ES, job->rcs, &s, first, height, across);
        return;
    }
#endif
    spilled = s;
    PA_G(store)(job, &spilled, i0, j0, r0, r0 + rows, c0, c0 + cols, first);
}

PA_GEMM_HOT void PA_G(panel_step)(const pa_gemm_job *job, const char *a, const char *b, int64_t kc, int64_t i0,
                                  int64_t j0, int flags, const char *prefetched, int64_t prefetch_step)
{
    const int64_t left = pa_gemm_ceil(job->n - j0, PA_G_L); /* vectors of C */
    if (2 * left <= PA_G_NRV) {
        int64_t j;
        for (j = 0; j < left; j++, b += PA_G_VBYTES, flags |= PA_G_INNER_COLUMN)
            PA_G(panel)(job, a, b, kc, i0, j0 + j * PA_G_L, flags, prefetched, prefetch_step, PA_G_MR, 1);
    } else if (job->m - i0 <= PA_G_MR_LOW)
        PA_G(panel)(job, a, b, kc, i0, j0, flags, prefetched, prefetch_step, PA_G_MR_LOW, PA_G_NRV);
    else PA_G(panel)(job, a, b, kc, i0, j0, flags, prefetched, prefetch_step, PA_G_MR, PA_G_NRV);
}

/* Each task computes one tile of C over the depth of the block: a panel of B stays in L1 while the tile's rows of A,
   which stay in L2, pass by. */
PA_GEMM_PLAN void PA_G(compute_tiles)(void *context, int64_t begin, int64_t end)
{
    const pa_gemm_job *job = (const pa_gemm_job *)context;
    int64_t pa = pa_gemm_ceil(job->mb, PA_G_MR), pb = pa_gemm_ceil(job->nb, PA_G_NR),
            across = pa_gemm_ceil(job->nb, job->nc);
    int64_t t, slice, i, j;
    PA_ACC b_panels[PA_G_SIDE_PANELS * PA_G_KC_MAX * PA_G_NR * PA_G_PLANES] __attribute__((aligned(64)));
    for (t = begin; t < end; t++) {
        int64_t i0 = t / across * job->mc, i1 = pa_gemm_min(job->mb, i0 + job->mc);
        int64_t j0 = t % across * job->nc, j1 = pa_gemm_min(job->nb, j0 + job->nc);
        for (slice = 0; slice * job->kc < job->kb; slice++) {
            int64_t p0 = slice * job->kc, kc = pa_gemm_min(job->kc, job->kb - p0), pnext = PA_G_MR * kc * PA_G_WORD;
            int flags = (job->p0 + p0 == 0 ? PA_G_FIRST_SLICE : 0) |
                        (job->p0 + p0 + kc == job->k ? PA_G_LAST_SLICE : 0);
            const char *first = job->pa + PA_G(panel_offset)(job, slice, i0 / PA_G_MR, pa, PA_G_MR);
            if (job->a_direct)
                first = job->a + (job->i0 + i0) * job->ras + (job->p0 + p0) * job->sak, pnext = PA_G_MR * job->ras;
            for (j = j0; j < j1; j += PA_G_NR) {
                const int64_t side = (j - j0) / PA_G_NR % PA_G_SIDE_PANELS;
                const char *a = first, *b = (const char *)(b_panels + side * kc * PA_G_NR * PA_G_PLANES);
                if (job->b_direct) b = job->b + (job->p0 + p0) * job->rbs + (job->j0 + j) * PA_G_ES;
                else if (!job->b_private) b = job->pb + PA_G(panel_offset)(job, slice, j / PA_G_NR, pb, PA_G_NR);
                else if (!side) PA_G(pack_panels)(job, PA_GEMM_SITE_B, j, j1, p0, kc, b_panels);
                const char *prefetched = b;
                int64_t prefetch_step = 0;
                if (!job->b_direct && !job->b_private && j + PA_G_NR < j1) {
                    prefetch_step = PA_G_NR * PA_G_WORD / pa_gemm_ceil(i1 - i0, PA_G_MR);
                    prefetched = b + kc * PA_G_NR * PA_G_WORD;
                } else if (job->b_direct) {
                    prefetch_step = job->sbk;
                    prefetched = b + PA_G_PREFETCH_ROWS * job->sbk;
                }
                for (i = i0; i < i1;
                     i += PA_G_MR, a += pnext, prefetched = job->b_direct ? b : prefetched + prefetch_step * kc)
                    PA_G(panel_step)(job, a, b, kc, job->i0 + i, job->j0 + j,
                                     flags | (i > i0 ? PA_G_INNER_ROW : 0) | (j > j0 ? PA_G_INNER_COLUMN : 0),
                                     prefetched, prefetch_step);
            }
        }
    }
}

#undef PA_G_SIDE_PANELS
#undef PA_G_PREFETCH_ROWS
#undef PA_G_FIRST_SLICE
#undef PA_G_LAST_SLICE
#undef PA_G_INNER_ROW
#undef PA_G_INNER_COLUMN
