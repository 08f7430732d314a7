/* Products of 64-bit integers whose values fit 32 bits, as most do: int64 is NumPy's default. Such a product is one
   instruction instead of three or four, so checking the operands pays. */

/* The products of the low halves, as signed numbers. */
PA_GEMM_INLINE PA_G_V PA_G(mul_int32)(PA_G_V x, PA_G_V y)
{
#if defined(__clang__)
    typedef int64_t wide __attribute__((vector_size(PA_G_VBYTES)));
    return (PA_G_V)(((wide)x << 32 >> 32) * ((wide)y << 32 >> 32));
#elif defined(__AVX512F__)
    typedef int halves __attribute__((vector_size(64)));
    typedef long long wide __attribute__((vector_size(64)));
    return (PA_G_V)__builtin_ia32_pmuldq512_mask((halves)x, (halves)y, (wide){0}, 255);
#else
    typedef int halves __attribute__((vector_size(32)));
    return (PA_G_V)__builtin_ia32_pmuldq256((halves)x, (halves)y);
#endif
}

/* Whether every element of these `rows` rows is at least -2^31 and less than 2^31. False where neither rows nor columns
   are contiguous: the check would take too long. */
PA_GEMM_HOT int PA_G(fits_int32)(const char *x, int64_t rows, int64_t cols, int64_t rs, int64_t cs)
{
    const PA_ACC bias = (PA_ACC)1 << 31;
    const PA_G_V biases = bias - (PA_G_V){0};
    PA_G_V bits = {0};
    PA_ACC all = 0;
    int64_t i, j, across = cols, down = rows, stride = rs;
    if (cs != PA_G_ES) across = rows, down = cols, stride = cs, cs = rs;
    if (cs != PA_G_ES) return 0;
    for (i = 0; i < down; i++, x += stride) {
        const PA_ACC *row = (const PA_ACC *)x;
        for (j = 0; j + PA_G_L <= across; j += PA_G_L) bits |= *(const PA_G_VU *)(row + j) + biases;
        for (; j < across; j++) { PA_GEMM_SCALAR(); all |= row[j] + bias; }
        if (i % 8 && i + 1 < down) continue;
        for (j = 0; j < PA_G_L; j++) { PA_GEMM_SCALAR(); all |= bits[j]; }
        if (all >> 32) return 0;
    }
    return 1;
}

/* Each task checks a part of the rows of A or of B, until one has found an element that doesn't fit. */
#define PA_G_INT32_TASKS 8
PA_GEMM_PLAN void PA_G(check_int32)(void *context, int64_t begin, int64_t end)
{
    pa_gemm_job *job = (pa_gemm_job *)context;
    int64_t t;
    for (t = begin; t < end && __atomic_load_n(&job->fits32, __ATOMIC_RELAXED); t++) {
        const int of_a = t < PA_G_INT32_TASKS;
        const int64_t all = of_a ? job->m : job->k, from = all * (t % PA_G_INT32_TASKS) / PA_G_INT32_TASKS;
        const int64_t count = all * (t % PA_G_INT32_TASKS + 1) / PA_G_INT32_TASKS - from;
        if (of_a ? PA_G(fits_int32)(job->a + from * job->ras, count, job->k, job->ras, job->cas)
                 : PA_G(fits_int32)(job->b + from * job->rbs, count, job->n, job->rbs, job->cbs))
            continue;
        __atomic_store_n(&job->fits32, 0, __ATOMIC_RELAXED);
    }
}
