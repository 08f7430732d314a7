/* Types and helpers of the matrix product on CPUs, shared by all element types. */
#ifndef PA_GEMM_TYPES
#define PA_GEMM_TYPES
#include "pa_base.h"
#include "pa_gemm_thresholds.h"

#define PA_GEMM_REAL 0
#define PA_GEMM_INT 1
#define PA_GEMM_BOOL 2
#define PA_GEMM_COMPLEX 3

#define PA_GEMM_SITE_A 0
#define PA_GEMM_SITE_B 1
#define PA_GEMM_SITE_C 2
#define PA_GEMM_SITE_D 3

/* A is m x k, B is k x n, C is m x n. Strides are bytes and may be anything for A and B; C must not overlap itself, A
   or B. The batch has nb dimensions; the strides of A and B may be 0 there. Elements are aligned to their own size. */
typedef struct pa_gemm_args {
    int64_t m, n, k;
    const void *a, *b;
    void *c;
    int64_t ras, cas, rbs, cbs, rcs, ccs; /* of rows and columns */
    int64_t nb;
    const int64_t *batch, *batch_a, *batch_b, *batch_c; /* shape and strides, nb each */
    /* Only debug builds read these: the memory A, B and C may touch, [0] first byte, [1] one past the last. NULL:
       unknown. Behind these three d[0] and d[1]. */
    const void *range[5][2];
    /* What an epilogue takes besides: up to two matrices like C (of any strides), with their batches; NULL: none. */
    const void *d[2];
    int64_t rds[2], cds[2];
    const int64_t *batch_d[2];
    const void *more; /* its other parameters */
    int64_t kc, mc, nc; /* the blocks PA_KC (at most what that is), PA_MC and PA_NC for this product; 0: as defined */
} pa_gemm_args;

/* One product of the batch and how it is cut. */
typedef struct pa_gemm_job {
    int64_t m, n, k;
    const char *a, *b;
    char *c;
    int64_t ras, cas, rbs, cbs, rcs, ccs;
    const char *d[2];           /* of the epilogue */
    int64_t rds[2], cds[2];
    /* this is the transposed problem: a is the B of the caller, and C is written transposed */
    int swapped;
    int a_direct, b_direct;     /* read in place by the micro-kernel, not packed */
    int b_private;              /* each task packs its own panels of B, which no other task reads */
    int64_t index;              /* in the batch */
    /* the block at hand: rows i0 .. i0 + mb of C, columns j0 .. j0 + nb, depth p0 .. p0 + kb */
    int64_t i0, j0, p0;
    int64_t mb, nb, kb;
    int64_t mc, nc, kc;         /* of a tile; mc and nc are whole panels */
    int64_t ma;                 /* rows of A that one task copies, whole panels */
    int64_t sai, sak, sbk;      /* the micro-kernel's strides: of rows and columns of A, of rows of B */
    int64_t pack_a;             /* tasks that copy A, the others copy B */
    int64_t rows, cols, depth;  /* of a block */
    int64_t bytes_a, bytes_b, bytes; /* of memory for copied panels, and in all */
    char *workspace;            /* NULL: allocated by run_blocks */
    int partial;                /* a slice of split-k: no epilogue yet */
    int by_vector;              /* few rows, without panels */
    int fits32;                 /* all 64-bit integers fit 32 bits */
    int small;                  /* in place, in one go: PA_G(small) */
    int64_t high_steps;         /* the steps of PA_MR rows; the others have PA_G_MR_LOW */
    char *pa, *pb, *acc;        /* packed panels; sums between two slices if C can't hold them */
    int64_t cchunk, kchunk;     /* columns and depth of a task, for few rows */
    int by_rows;
    const pa_gemm_args *args;
    pa_runtime *rt;
} pa_gemm_job;

typedef struct pa_gemm_batch {
    const pa_gemm_job *job;
    const pa_gemm_args *args;
    int64_t nb;
} pa_gemm_batch;

#define PA_GEMM_CAT2(a, b) a##_##b
#define PA_GEMM_CAT(a, b) PA_GEMM_CAT2(a, b)
/* Attributes that save compile time. PLAN: control code, cold. HOT: computes with explicit vectors; without `hot`,
   functions that only cold ones call would count as cold. LOOP: left to the compiler's vectoriser. Nothing is optimised
   where the compiler isn't asked to. */
#if defined(__clang__) || !defined(__OPTIMIZE__)
#define PA_GEMM_PLAN __attribute__((unused, cold, noinline)) static
#define PA_GEMM_HOT __attribute__((unused, hot, noinline)) static
#else
#define PA_GEMM_PLAN __attribute__((unused, cold, noinline, optimize("O1"))) static
#define PA_GEMM_HOT __attribute__((unused, hot, noinline, optimize("O2"))) static
#endif
#define PA_GEMM_LOOP __attribute__((unused, hot, noinline)) static
#define PA_GEMM_INLINE static inline __attribute__((always_inline))
#if defined(__clang__)
#define PA_GEMM_UNROLL _Pragma("clang loop unroll(full)")
#define PA_GEMM_UNROLL2 _Pragma("clang loop unroll_count(2)")
#else
#define PA_GEMM_UNROLL2 _Pragma("GCC unroll 2")
#define PA_GEMM_UNROLL _Pragma("GCC unroll 32")
#endif

/* In loops over edges: keeps the compiler from vectorising them, which takes compile time only. */
#define PA_GEMM_SCALAR() __asm__ volatile("")

PA_GEMM_INLINE int64_t pa_gemm_min(int64_t a, int64_t b) { return a < b ? a : b; }
PA_GEMM_INLINE int64_t pa_gemm_ceil(int64_t a, int64_t b) { return (a + b - 1) / b; }
/* Products of reals; `planes` is 2 for complex numbers. It may be more than an int64_t holds. */
PA_GEMM_INLINE double pa_gemm_work(int64_t m, int64_t n, int64_t k, int planes)
{
    return (double)m * (double)n * (double)k * planes * planes;
}
/* A memcpy of at most 64 bytes without a call: two copies may overlap. */
PA_GEMM_INLINE void pa_gemm_bytes(void *into, const void *of, int64_t n)
{
    char *to = (char *)into;
    const char *from = (const char *)of;
    if (n >= 32) __builtin_memcpy(to, from, 32), to += n - 32, from += n - 32, n = 32;
    else if (n >= 16) __builtin_memcpy(to, from, 16), to += n - 16, from += n - 16, n = 16;
    else if (n >= 8) __builtin_memcpy(to, from, 8), to += n - 8, from += n - 8, n = 8;
    if (n == 32) __builtin_memcpy(to, from, 32);
    else if (n == 16) __builtin_memcpy(to, from, 16);
    else if (n == 8) __builtin_memcpy(to, from, 8);
    else
        for (; n > 0; n--) { PA_GEMM_SCALAR(); *to++ = *from++; }
}
/* Size of the parts when `all` is cut into as few equal parts as a limit allows, each a multiple of `step`. */
PA_GEMM_INLINE int64_t pa_gemm_cut(int64_t all, int64_t limit, int64_t step)
{
    int64_t part = pa_gemm_ceil(all, pa_gemm_ceil(all, limit));
    return pa_gemm_ceil(part, step) * step;
}

#ifdef PA_DEBUG_CHECKS
static int pa_gemm_fail(const pa_gemm_job *job, int which, int64_t index, int64_t extent)
{
    pa_failure failure;
    __builtin_memset(&failure, 0, sizeof failure);
    failure.set = 1;
    failure.kind = 1;
    failure.site = which;
    failure.tid = job->index;
    failure.index = index;
    failure.extent = extent;
    job->rt->fail(job->rt, &failure);
    return 0;
}

/* The element's address, or that of `scrap` when (row, col) is not of the matrix or its bytes are not of the memory. */
static void *pa_gemm_at(const pa_gemm_job *job, int which, int64_t row, int64_t col, const char *p, int64_t size,
                        void *scrap)
{
    int64_t rows = which == PA_GEMM_SITE_B ? job->k : job->m, cols = which == PA_GEMM_SITE_A ? job->k : job->n;
    int site = job->swapped && which < PA_GEMM_SITE_C ? 1 - which : which;
    const char *lo = (const char *)job->args->range[site][0], *hi = (const char *)job->args->range[site][1];
    int ok = 1;
    if (row < 0 || row >= rows) ok = pa_gemm_fail(job, site, row, rows);
    else if (col < 0 || col >= cols) ok = pa_gemm_fail(job, site, col, cols);
    else if (hi && ((uintptr_t)p < (uintptr_t)lo || (uintptr_t)p + (uintptr_t)size > (uintptr_t)hi))
        ok = pa_gemm_fail(job, site, (int64_t)((uintptr_t)p - (uintptr_t)lo), hi - lo);
    return ok ? (void *)p : scrap;
}
#endif
#endif /* PA_GEMM_TYPES */
