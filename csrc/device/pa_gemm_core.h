/* pa_gemm.h's part for matrices: panels, micro-kernel, tiles, blocks. Only pa_gemm.h includes it. */

/* ---- copying into panels ------------------------------------------------------------------------------------------------ */

/* Writes a panel: `width` rows of A (or columns of B) from w0 on, depth p0 .. p0 + kc, as kc groups of `width` elements; complex
   numbers as kc groups of real parts and of imaginary parts. There are only `there` rows left: zeros stand for the others. */
PA_GEMM_INLINE void PA_G(panel)(const pa_gemm_job *job, int which, PA_ACC *dst, int width, int64_t w0, int64_t there, int64_t p0, int64_t kc)
{
    int64_t sw = which == PA_GEMM_SITE_A ? job->ras : job->cbs, sk = which == PA_GEMM_SITE_A ? job->cas : job->rbs;
    const char *src = (which == PA_GEMM_SITE_A ? job->a : job->b) + w0 * sw + p0 * sk;
    const int step = width * PA_G_PLANES;
    int64_t p;
    int i;
#ifndef PA_DEBUG_CHECKS
    if (there >= width && sw == PA_G_ES) {
        for (p = 0; p < kc; p++, src += sk, dst += step) {
            const PA_T *s = (const PA_T *)src;
#if PA_KIND == PA_GEMM_COMPLEX
            for (i = 0; i < width; i++) dst[i] = s[i].re, dst[width + i] = s[i].im;
#else
            for (i = 0; i < width; i++) dst[i] = (PA_ACC)PA_LOAD(s[i]);
#endif
        }
        return;
    }
#endif
    for (p = 0; p < kc; p++, src += sk, dst += step) {
        for (i = 0; i < width && i < there; i++) {
#ifdef PA_DEBUG_CHECKS
            PA_T scrap;
            __builtin_memset(&scrap, 0, sizeof scrap);
#endif
            const PA_T *s = (const PA_T *)PA_GEMM_CHECK(which, which == PA_GEMM_SITE_A ? w0 + i : p0 + p, which == PA_GEMM_SITE_A ? p0 + p : w0 + i, src + i * sw);
#if PA_KIND == PA_GEMM_COMPLEX
            dst[i] = s->re, dst[width + i] = s->im;
#else
            dst[i] = (PA_ACC)PA_LOAD(*s);
#endif
        }
        for (; i < width; i++) {
            dst[i] = 0;
            if (PA_G_PLANES == 2) dst[width + i] = 0;
        }
    }
}

/* Where a panel of the block starts: slices of kc after each other, `panels` panels in each. */
PA_GEMM_INLINE int64_t PA_G(place)(const pa_gemm_job *job, int64_t slice, int64_t panel, int64_t panels, int width)
{
    int64_t depth = pa_gemm_min(job->kc, job->kb - slice * job->kc);
    return (slice * job->kc * panels + panel * depth) * width * PA_G_WORD;
}

/* Each task copies the panels of one tile's rows (or columns) in one slice. */
static void PA_G(copy)(void *context, int64_t begin, int64_t end)
{
    const pa_gemm_job *job = (const pa_gemm_job *)context;
    int64_t slices = pa_gemm_ceil(job->kb, job->kc), t, i;
    int64_t pa = pa_gemm_ceil(job->mb, PA_G_MR), pb = pa_gemm_ceil(job->nb, PA_G_NR);
    for (t = begin; t < end; t++) {
        int is_a = t < job->pack_a;
        int64_t at = is_a ? t : t - job->pack_a, slice = at % slices, p0 = slice * job->kc, kc = pa_gemm_min(job->kc, job->kb - p0);
        if (is_a) {
            int64_t first = at / slices * (job->mc / PA_G_MR), last = pa_gemm_min(pa, first + job->mc / PA_G_MR);
            for (i = first; i < last; i++)
                PA_G(panel)(job, PA_GEMM_SITE_A, (PA_ACC *)(job->pa + PA_G(place)(job, slice, i, pa, PA_G_MR)), PA_G_MR,
                             job->i0 + i * PA_G_MR, job->mb - i * PA_G_MR, job->p0 + p0, kc);
        } else {
            int64_t first = at / slices * (job->nc / PA_G_NR), last = pa_gemm_min(pb, first + job->nc / PA_G_NR);
            for (i = first; i < last; i++)
                PA_G(panel)(job, PA_GEMM_SITE_B, (PA_ACC *)(job->pb + PA_G(place)(job, slice, i, pb, PA_G_NR)), PA_G_NR,
                             job->j0 + i * PA_G_NR, job->nb - i * PA_G_NR, job->p0 + p0, kc);
        }
    }
}

/* ---- the micro-kernel --------------------------------------------------------------------------------------------------- */

typedef struct PA_G(sums) {
    PA_G_V re[PA_G_MR][PA_G_NRV];
#if PA_KIND == PA_GEMM_COMPLEX
    PA_G_V im[PA_G_MR][PA_G_NRV];
#endif
} PA_G(sums);

/* sums = PA_MR rows of A times PA_NR vectors of columns of B. Rows of A are `sai` bytes apart and columns `sak`, rows of B `sbk`:
   a panel or the matrix itself. In complex panels the imaginary parts follow at a distance of one group. */
PA_GEMM_INLINE void PA_G(kernel)(int64_t kc, const char *a, int64_t sai, int64_t sak, const char *b, int64_t sbk, PA_G(sums) *out)
{
    PA_G_V re[PA_G_MR][PA_G_NRV], zero = {0};
    int64_t p;
    int i, j;
#if PA_KIND == PA_GEMM_COMPLEX
    PA_G_V im[PA_G_MR][PA_G_NRV];
#endif
    PA_GEMM_UNROLL for (i = 0; i < PA_G_MR; i++) PA_GEMM_UNROLL for (j = 0; j < PA_G_NRV; j++) {
        re[i][j] = zero;
#if PA_KIND == PA_GEMM_COMPLEX
        im[i][j] = zero;
#endif
    }
    for (p = 0; p < kc; p++, a += sak, b += sbk) {
        PA_G_V br[PA_G_NRV];
        PA_GEMM_UNROLL for (j = 0; j < PA_G_NRV; j++) br[j] = ((const PA_G_VU *)b)[j];
#if PA_KIND == PA_GEMM_COMPLEX
        PA_G_V bi[PA_G_NRV];
        PA_GEMM_UNROLL for (j = 0; j < PA_G_NRV; j++) bi[j] = ((const PA_G_VU *)b)[PA_G_NRV + j];
#endif
        PA_GEMM_UNROLL for (i = 0; i < PA_G_MR; i++) {
            const PA_ACC x = *(const PA_ACC *)(a + i * sai);
#if PA_KIND == PA_GEMM_COMPLEX
            const PA_ACC y = *(const PA_ACC *)(a + i * sai + PA_G_MR * (int64_t)sizeof(PA_ACC));
#endif
            PA_GEMM_UNROLL for (j = 0; j < PA_G_NRV; j++) {
                re[i][j] = PA_G_VMAC(re[i][j], br[j], x);
#if PA_KIND == PA_GEMM_COMPLEX
                im[i][j] += bi[j] * x;
                re[i][j] -= bi[j] * y;
                im[i][j] += br[j] * y;
#endif
            }
        }
    }
    PA_GEMM_UNROLL for (i = 0; i < PA_G_MR; i++) PA_GEMM_UNROLL for (j = 0; j < PA_G_NRV; j++) {
        out->re[i][j] = re[i][j];
#if PA_KIND == PA_GEMM_COMPLEX
        out->im[i][j] = im[i][j];
#endif
    }
}

/* Writes rows r0 .. PA_MR and columns c0 .. of the sums to C at (i0, j0) element by element: edges, types that C cannot add up,
   and strided C. */
static __attribute__((noinline)) void PA_G(store)(const pa_gemm_job *job, const PA_G(sums) *s, int64_t i0, int64_t j0, int r0, int r1, int c0, int c1, int first, int last)
{
    const PA_ACC *re = (const PA_ACC *)s->re;
    int i, j;
#if PA_KIND == PA_GEMM_COMPLEX
    const PA_ACC *im = (const PA_ACC *)s->im;
#endif
    (void)first, (void)last;
    for (i = r0; i < r1; i++) {
        char *row = job->c + (i0 + i) * job->rcs + j0 * job->ccs;
        for (j = c0; j < c1; j++) {
#ifdef PA_DEBUG_CHECKS
            PA_T scrap;
            __builtin_memset(&scrap, 0, sizeof scrap);
#endif
            PA_T *c = (PA_T *)PA_GEMM_CHECK(PA_GEMM_SITE_C, i0 + i, j0 + j, row + j * job->ccs);
#if PA_KIND == PA_GEMM_COMPLEX
            PA_T x;
            x.re = re[i * PA_G_NR + j], x.im = im[i * PA_G_NR + j];
            if (!first) x.re += c->re, x.im += c->im;
#else
            PA_ACC x = re[i * PA_G_NR + j];
            if (PA_G_SAME && !first) x = (PA_ACC)PA_G_ADD(PA_LOAD(*c), x);
#endif
#ifdef PA_EPILOGUE
            if (last) x = PA_EPILOGUE(x, (job->swapped ? j0 + j : i0 + i), (job->swapped ? i0 + i : j0 + j));
#endif
#if PA_KIND == PA_GEMM_COMPLEX
            *c = x;
#else
            *c = (PA_T)PA_STORE(x);
#endif
        }
    }
}

/* C is m x n zeros: there is nothing to add up. */
static void PA_G(nothing)(const pa_gemm_job *job)
{
    PA_G(sums) s;
    int64_t i, j;
    __builtin_memset(&s, 0, sizeof s);
    for (i = 0; i < job->m; i += PA_G_MR)
        for (j = 0; j < job->n; j += PA_G_NR)
            PA_G(store)(job, &s, i, j, 0, (int)pa_gemm_min(PA_G_MR, job->m - i), 0, (int)pa_gemm_min(PA_G_NR, job->n - j), 1, 1);
}

/* ---- tiles -------------------------------------------------------------------------------------------------------------- */

/* One panel of A by one panel of B in one slice. */
PA_GEMM_INLINE void PA_G(step)(const pa_gemm_job *job, const char *a, int64_t sai, int64_t sak, const char *b, int64_t sbk, int64_t kc,
                                int64_t i, int64_t j, int inner_i, int inner_j, char *acc, int first, int last)
{
    PA_G(sums) s;
    int64_t i0 = job->i0 + i, j0 = job->j0 + j;
    int rows = (int)pa_gemm_min(PA_G_MR, job->m - i0), cols = (int)pa_gemm_min(PA_G_NR, job->n - j0), r0 = 0, c0 = 0, r, q;
    if (job->a_direct && rows < PA_G_MR) r0 = PA_G_MR - rows, i0 = job->m - PA_G_MR, a += (i0 - job->i0 - i) * sai;
    if (job->b_direct && cols < PA_G_NR) c0 = PA_G_NR - cols, j0 = job->n - PA_G_NR, b += (j0 - job->j0 - j) * PA_G_ES;
    PA_G(kernel)(kc, a, sai, sak, b, sbk, &s);
#if !PA_G_SAME
    /* C cannot hold a sum that goes on without rounding it (or cutting it off). */
    if (!(first && last)) {
        PA_G_V *sum = (PA_G_V *)acc, *own = (PA_G_V *)&s;
        PA_GEMM_UNROLL for (r = 0; r < PA_G_MR * PA_G_NRV; r++) {
            if (!first) own[r] = PA_G_ADD(sum[r], own[r]);
            if (!last) sum[r] = own[r];
        }
        if (!last) return;
    }
    (void)q, (void)inner_i, (void)inner_j;
#else
    (void)acc;
#if PA_KIND != PA_GEMM_COMPLEX && !defined(PA_EPILOGUE) && !defined(PA_DEBUG_CHECKS)
    /* A panel that was moved back from an edge computes some elements twice. They may be written twice when they are complete
       and of this tile; those of another tile may be in the making on another thread. */
    if (job->ccs == PA_G_ES && (rows == PA_G_MR || (r0 && inner_i && first && last)) && (cols == PA_G_NR || (c0 && inner_j && first && last))) {
        char *c = job->c + i0 * job->rcs + j0 * PA_G_ES;
        PA_GEMM_UNROLL for (r = 0; r < PA_G_MR; r++, c += job->rcs) PA_GEMM_UNROLL for (q = 0; q < PA_G_NRV; q++) {
            if (!first) s.re[r][q] = PA_G_ADD(s.re[r][q], ((PA_G_VU *)c)[q]);
            ((PA_G_VU *)c)[q] = s.re[r][q];
        }
        return;
    }
#else
    (void)r, (void)q, (void)inner_i, (void)inner_j;
#endif
#endif
    PA_G(store)(job, &s, i0, j0, r0, r0 + rows, c0, c0 + cols, first, last);
}

/* Each task computes one tile of C over the depth of the block: a panel of B stays in L1 while the tile's rows of A, which
   stay in L2, pass by. */
static void PA_G(tiles)(void *context, int64_t begin, int64_t end)
{
    const pa_gemm_job *job = (const pa_gemm_job *)context;
    int64_t pa = pa_gemm_ceil(job->mb, PA_G_MR), pb = pa_gemm_ceil(job->nb, PA_G_NR);
    int64_t across = pa_gemm_ceil(job->nb, job->nc), sai = sizeof(PA_ACC), sak = PA_G_MR * PA_G_WORD, sbk = PA_G_NR * PA_G_WORD;
    int64_t t, slice, i, j;
    if (job->a_direct) sai = job->ras, sak = job->cas;
    if (job->b_direct) sbk = job->rbs;
    for (t = begin; t < end; t++) {
        int64_t ifirst = t / across * (job->mc / PA_G_MR), ilast = pa_gemm_min(pa, ifirst + job->mc / PA_G_MR);
        int64_t jfirst = t % across * (job->nc / PA_G_NR), jlast = pa_gemm_min(pb, jfirst + job->nc / PA_G_NR);
        for (slice = 0; slice * job->kc < job->kb; slice++) {
            int64_t p0 = slice * job->kc, kc = pa_gemm_min(job->kc, job->kb - p0);
            int first = job->p0 + p0 == 0, last = job->p0 + p0 + kc == job->k;
            for (j = jfirst; j < jlast; j++) {
                const char *b = job->b_direct ? job->b + (job->p0 + p0) * job->rbs + (job->j0 + j * PA_G_NR) * PA_G_ES
                                              : job->pb + PA_G(place)(job, slice, j, pb, PA_G_NR);
                for (i = ifirst; i < ilast; i++) {
                    const char *a = job->a_direct ? job->a + (job->i0 + i * PA_G_MR) * job->ras + (job->p0 + p0) * job->cas
                                                  : job->pa + PA_G(place)(job, slice, i, pa, PA_G_MR);
                    PA_G(step)(job, a, sai, sak, b, sbk, kc, i * PA_G_MR, j * PA_G_NR, i > ifirst, j > jfirst,
                                job->acc + (i * pb + j) * PA_G_MR * PA_G_NR * (int64_t)sizeof(PA_ACC), first, last);
                }
            }
        }
    }
}

/* ---- blocks ------------------------------------------------------------------------------------------------------------- */

static void PA_G(run)(pa_gemm_job *job, pa_block body, int64_t count, int wide)
{
    if (wide && count > 1) job->rt->parallel_for(job->rt, body, job, count, 1);
    else if (count > 0) body(job, 0, count);
}

/* Without memory for panels: slow, but it is the product. */
static void PA_G(plain)(pa_gemm_job *job)
{
    PA_ACC a[PA_G_MR * PA_G_PLANES], b[PA_G_NR * PA_G_PLANES];
    int64_t i, j, p;
    for (i = 0; i < job->m; i += PA_G_MR)
        for (j = 0; j < job->n; j += PA_G_NR) {
            PA_G(sums) s, t;
            __builtin_memset(&s, 0, sizeof s);
            for (p = 0; p < job->k; p++) {
                PA_G_V *x = (PA_G_V *)&s, *y = (PA_G_V *)&t;
                size_t q;
                PA_G(panel)(job, PA_GEMM_SITE_A, a, PA_G_MR, i, job->m - i, p, 1);
                PA_G(panel)(job, PA_GEMM_SITE_B, b, PA_G_NR, j, job->n - j, p, 1);
                PA_G(kernel)(1, (const char *)a, sizeof(PA_ACC), 0, (const char *)b, 0, &t);
                for (q = 0; q < sizeof s / sizeof(PA_G_V); q++) x[q] = PA_G_ADD(x[q], y[q]);
            }
            PA_G(store)(job, &s, i, j, 0, (int)pa_gemm_min(PA_G_MR, job->m - i), 0, (int)pa_gemm_min(PA_G_NR, job->n - j), 1, 1);
        }
}

/* Blocks bound the scratch memory: PA_BLOCK rows and columns, 4 * PA_BLOCK bytes of depth. */
static void PA_G(blocked)(pa_gemm_job *job, int wide)
{
    const int64_t deep = pa_gemm_ceil(4 * PA_G_BLOCK / PA_G_WORD, PA_G_KC) * PA_G_KC;
    int64_t rows = pa_gemm_min(pa_gemm_ceil(job->m, PA_G_MR) * PA_G_MR, pa_gemm_ceil(PA_G_BLOCK, PA_G_MC) * PA_G_MC);
    int64_t cols = pa_gemm_min(pa_gemm_ceil(job->n, PA_G_NR) * PA_G_NR, pa_gemm_ceil(PA_G_BLOCK, PA_G_NC) * PA_G_NC);
    int64_t depth = pa_gemm_cut(job->k, deep, 4), na, nb, nacc = 0;
    char *memory = 0;
    if ((double)job->m * (double)job->n * (double)job->k < PA_GEMM_WIDE) wide = 0;
    job->kc = pa_gemm_cut(pa_gemm_min(depth, job->k), PA_G_KC, 4);
    job->mc = pa_gemm_cut(rows, PA_G_MC, PA_G_MR);
    job->nc = pa_gemm_cut(cols, PA_G_NC, PA_G_NR);
#if PA_G_SAME && PA_KIND != PA_GEMM_COMPLEX && !defined(PA_DEBUG_CHECKS)
    /* Copying pays by the number of times that a panel is read. */
    job->a_direct = job->m >= PA_G_MR && job->n <= 4 * PA_G_NR;
    job->b_direct = job->n >= PA_G_NR && job->cbs == PA_G_ES && job->m <= 8 * PA_G_MR;
#endif
    depth = pa_gemm_ceil(depth, job->kc) * job->kc;
    na = job->a_direct ? 0 : rows * depth * PA_G_WORD;
    nb = job->b_direct ? 0 : cols * depth * PA_G_WORD;
    if (!PA_G_SAME && job->k > job->kc) nacc = rows * cols * (int64_t)sizeof(PA_ACC);
    na = pa_gemm_ceil(na, 64) * 64, nb = pa_gemm_ceil(nb, 64) * 64;
    if (na + nb + nacc > 0) {
        memory = (char *)job->rt->scratch(job->rt, (size_t)(na + nb + nacc));
        if (!memory) {
            PA_G(plain)(job);
            return;
        }
    }
    job->pa = memory, job->pb = memory + na, job->acc = memory + na + nb;
    for (job->i0 = 0; job->i0 < job->m; job->i0 += rows) {
        job->mb = pa_gemm_min(rows, job->m - job->i0);
        for (job->j0 = 0; job->j0 < job->n; job->j0 += cols) {
            job->nb = pa_gemm_min(cols, job->n - job->j0);
            for (job->p0 = 0; job->p0 < job->k; job->p0 += depth) {
                int64_t slices;
                job->kb = pa_gemm_min(depth, job->k - job->p0);
                slices = pa_gemm_ceil(job->kb, job->kc);
                job->pack_a = job->a_direct || (job->j0 > 0 && depth >= job->k) ? 0 : pa_gemm_ceil(job->mb, job->mc) * slices;
                PA_G(run)(job, PA_G(copy), job->pack_a + (job->b_direct ? 0 : pa_gemm_ceil(job->nb, job->nc) * slices), wide);
                PA_G(run)(job, PA_G(tiles), pa_gemm_ceil(job->mb, job->mc) * pa_gemm_ceil(job->nb, job->nc), wide);
            }
        }
    }
}
