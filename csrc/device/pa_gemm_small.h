/* Matrix products on CPUs by one thread that reads its operands in place: no panels, no plan. */

/* Columns j .. j + across * PA_G_L of a product whose operands are read in place, all at once. Rows are covered by
   steps of both heights; the last of each may be moved back and compute some rows again. */
PA_GEMM_INLINE void PA_G(strip)(const pa_gemm_job *job, const char *a, const char *b, char *c, int fits32,
                                const int across)
{
    const int64_t m = job->m, k = job->k, ras = job->ras, cas = job->cas, rbs = job->rbs, rcs = job->rcs;
    PA_G(accumulators) s;
    int64_t i, at, left;
    for (i = 0, left = job->high_steps; left > 0; left--, i += PA_G_MR) {
        at = pa_gemm_min(i, m - PA_G_MR);
        PA_G(micro_kernel_of)(k, a + at * ras, ras, cas, b, rbs, b, 0, &s, PA_G_MR, across, fits32);
        PA_G(store_registers)(c + at * rcs, rcs, &s, 1, PA_G_MR, across);
    }
    for (; i < m; i += PA_G_MR_LOW) {
        at = pa_gemm_min(i, m - PA_G_MR_LOW);
        PA_G(micro_kernel_of)(k, a + at * ras, ras, cas, b, rbs, b, 0, &s, PA_G_MR_LOW, across, fits32);
        PA_G(store_registers)(c + at * rcs, rcs, &s, 1, PA_G_MR_LOW, across);
    }
}

/* The n elements at p, fewer than a vector has. */
PA_GEMM_INLINE PA_G_V PA_G(load_partial)(const char *p, int64_t n)
{
    PA_G_V v = {0};
#if defined(__AVX512BW__) && PA_G_VBYTES == 64
    /* stores to half of a vector would stall the load of all of it */
    __asm__("vmovdqu8 %1, %0%{%2%}%{z%}" : "=v"(v) : "m"(*(const char(*)[64])p),
                                                          "Yk"(((uint64_t)1 << n * PA_G_ES) - 1));
#else
    pa_gemm_bytes(&v, p, n * PA_G_ES);
#endif
    return v;
}

/* A product lower than the lower micro-kernel or narrower than a vector: operands are padded. */
PA_GEMM_HOT void PA_G(small_edge)(const pa_gemm_job *job, const char *a, const char *b, char *c)
{
    PA_ACC rows[PA_G_MR_LOW * PA_G_KC] __attribute__((aligned(64))),
        columns[PA_G_KC * PA_G_L] __attribute__((aligned(64)));
    const int64_t m = pa_gemm_min(job->m, PA_G_MR_LOW), n = pa_gemm_min(job->n, PA_G_L), k = job->k;
    int64_t ras = job->ras, cas = job->cas, rbs = job->rbs, i, j, p;
    PA_G(accumulators) s, spilled;
    if (m < PA_G_MR_LOW) {
        __builtin_memset(rows + m * k, 0, (size_t)((PA_G_MR_LOW - m) * k * PA_G_ES));
        for (i = 0; i < m; i++) {
            if (cas == PA_G_ES && k * PA_G_ES <= 64) pa_gemm_bytes(rows + i * k, a + i * ras, k * PA_G_ES);
            else if (cas == PA_G_ES) __builtin_memcpy(rows + i * k, a + i * ras, (size_t)(k * PA_G_ES));
            else
                for (p = 0; p < k; p++) {
                    PA_GEMM_SCALAR();
                    rows[i * k + p] = *(const PA_ACC *)(a + i * ras + p * cas);
                }
        }
        a = (const char *)rows, cas = PA_G_ES, ras = k * PA_G_ES;
    }
    if (n < PA_G_L) {
        for (p = 0; p < k; p++) ((PA_G_VU *)columns)[p] = PA_G(load_partial)(b + p * rbs, n);
        b = (const char *)columns, rbs = PA_G_VBYTES;
    }
    for (j = 0; j < job->n; j += PA_G_L)
        for (i = 0; i < job->m; i += PA_G_MR_LOW) {
            const int64_t left = pa_gemm_min(j, job->n - n) * PA_G_ES, top = pa_gemm_min(i, job->m - m);
            PA_G(micro_kernel)(k, a + top * ras, ras, cas, b + left, rbs, b, 0, &s, PA_G_MR_LOW, 1, 0);
            spilled = s;
            for (p = 0; p < m; p++) pa_gemm_bytes(c + (top + p) * job->rcs + left, &spilled.re[p], n * PA_G_ES);
        }
}

/* The whole product: pa_gemm_job's `small` says that it may be. */
PA_GEMM_HOT void PA_G(small)(const pa_gemm_job *job, const char *a, const char *b, char *c)
{
    int64_t j, to;
    int fits32 = 0;
    if (job->m < PA_G_MR_LOW || job->n < PA_G_L) {
        PA_G(small_edge)(job, a, b, c);
        return;
    }
#if PA_G_INT32
    fits32 = PA_G(fits_int32)(a, job->m, job->k, job->ras, job->cas) &&
             PA_G(fits_int32)(b, job->k, job->n, job->rbs, job->cbs);
#endif
    for (j = 0; job->n - j > PA_G_L && job->n >= PA_G_NR; j += PA_G_NR) {
        to = pa_gemm_min(j, job->n - PA_G_NR) * PA_G_ES;
        PA_G(strip)(job, a, b + to, c + to, fits32, PA_G_NRV);
    }
    for (; j < job->n; j += PA_G_L) {
        to = pa_gemm_min(j, job->n - PA_G_L) * PA_G_ES;
        PA_G(strip)(job, a, b + to, c + to, fits32, 1);
    }
}
