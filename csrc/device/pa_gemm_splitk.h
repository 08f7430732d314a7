/* Matrix products on CPUs with a small C: split-k, and plain loops for a handful of elements. */

/* Split-k: slices of the depth are tasks, and their sums are added up. Not for half floats, because the slices' sums
   are elements of C. Sizes alone decide, since this is another order of sums. */
PA_GEMM_PLAN void PA_G(splitk_slice)(void *context, int64_t begin, int64_t end)
{
    const pa_gemm_job *product = (const pa_gemm_job *)context;
    int64_t i;
    for (i = begin; i < end; i++) {
        pa_gemm_job job = *product;
        job.a += i * job.kchunk * job.cas, job.b += i * job.kchunk * job.rbs, job.c = job.acc + i * job.cchunk;
        job.k = pa_gemm_min(job.kchunk, job.k - i * job.kchunk);
        job.rcs = job.n * PA_G_ES, job.ccs = PA_G_ES;
        job.workspace += i * job.bytes;
        PA_G(run_blocks)(&job, 0);
    }
}

/* Adds slices of so many bytes, whole vectors, to the first one. */
PA_GEMM_PLAN void PA_G(add_slices)(char *first, int64_t count, int64_t bytes)
{
    int64_t i, j;
    for (i = 1; i < count; i++)
        for (j = 0; j < bytes; j += PA_G_VBYTES) {
            PA_G_V *sum = (PA_G_V *)(first + j);
            *sum = PA_G_ADD(*sum, *(const PA_G_V *)(first + i * bytes + j));
        }
}

PA_GEMM_PLAN int PA_G(splitk)(const pa_gemm_job *job)
{
    pa_gemm_job part = *job;
    int64_t count = pa_gemm_min(PA_GEMM_SPLITK_SLICES, job->k / (PA_GEMM_SPLITK_DEPTHS * PA_G_KC_DEFAULT)),
            rows = pa_gemm_ceil(job->m, PA_G_MR), i, j;
    if (!job->b_direct && rows < PA_GEMM_SPLITK_ROWS) rows = PA_GEMM_SPLITK_ROWS;
    if (!PA_G_INPLACE || count < 2 || rows * pa_gemm_ceil(job->n, PA_G_NR) >= PA_GEMM_SPLITK_PANELS) return 0;
    part.kchunk = part.k = pa_gemm_ceil(pa_gemm_ceil(job->k, count), PA_G_KC_DEFAULT) * PA_G_KC_DEFAULT;
    count = pa_gemm_ceil(job->k, part.kchunk);
    PA_G(plan_blocks)(&part);
    part.bytes = pa_gemm_ceil(part.bytes, 64) * 64;
    part.cchunk = pa_gemm_ceil(job->m * job->n * PA_G_ES, 64) * 64;
    part.workspace = (char *)job->rt->scratch(job->rt, (size_t)(count * (part.bytes + part.cchunk)));
    if (!part.workspace) return 0;
    part.acc = part.workspace + count * part.bytes;
    part.k = job->k;
    part.partial = 1;
    PA_G(run_tasks)(&part, PA_G(splitk_slice), count, 1);
    PA_G(add_slices)(part.acc, count, part.cchunk);
    for (i = 0; i < job->m; i++)
        for (j = 0; j < job->n; j++) {
            PA_T x = ((const PA_T *)part.acc)[i * job->n + j];
            PA_GEMM_SCALAR();
#if defined(PA_EPILOGUE) && PA_KIND == PA_GEMM_COMPLEX
            PA_G(apply_epilogue)(job, &x.re, 0, 1, i, j, 1, 1);
#elif defined(PA_EPILOGUE)
            PA_G(apply_epilogue)(job, (const PA_ACC *)&x, 0, 0, i, j, 1, 1);
#else
            *(PA_T *)(job->c + i * job->rcs + j * job->ccs) = x;
#endif
        }
    return 1;
}

#ifndef PA_EPILOGUE
/* A handful of elements, by plain loops: any set-up takes longer. */
PA_GEMM_HOT void PA_G(tiny)(const pa_gemm_job *job)
{
    const int64_t k = job->args->k;
    int64_t i, j, p;
    for (i = 0; i < job->m; i++)
        for (j = 0; j < job->n; j++) {
            const char *a = job->a + i * job->ras, *b = job->b + j * job->cbs;
            PA_ACC s[2] = {0, 0}, x[2], y[2];
            for (p = 0; p < k; p++, a += job->cas, b += job->rbs) {
                PA_GEMM_SCALAR();
                PA_G_LOAD_ELEMENT(x, 0, 1, *(const PA_T *)a);
                PA_G_LOAD_ELEMENT(y, 0, 1, *(const PA_T *)b);
                s[0] = PA_G_MAC(s[0], x[0], y[0]);
#if PA_KIND == PA_GEMM_COMPLEX
                s[0] -= x[1] * y[1];
                s[1] += x[0] * y[1] + x[1] * y[0];
#endif
            }
            PA_G_STORE_ELEMENT(*(PA_C *)(job->c + i * job->rcs + j * job->ccs), s, 0, 1);
        }
}
#endif
