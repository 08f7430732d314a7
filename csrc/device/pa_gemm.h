/* Matrix product C = A @ B for one element type per inclusion, over every stride and a batch.

   Define and include, as often as there are types:

       #define PA_NAME pa_gemm_f32         what to define: static void PA_NAME(const pa_gemm_args *, pa_runtime *)
       #define PA_T float                  element in memory; signed integers pass their unsigned twin (the bits are the
                                           same, and overflow wraps instead of being undefined)
       #define PA_ACC float                element while computing
       #define PA_KIND PA_GEMM_REAL        or _INT, _BOOL (or of ands), _COMPLEX (PA_T has .re and .im of type PA_ACC)
       #define PA_INT64                    where PA_ACC is an integer of 64 bits: faster
       #define PA_BFLOAT16                 where PA_T is a bfloat16: by pairs on some processors
       #define PA_LOAD(x), PA_STORE(x)     PA_T -> PA_ACC and back; leave both out when the types are the same
       #define PA_C uint32_t               element of C, where that isn't PA_T; PA_STORE makes it
       #define PA_EPILOGUE(args, n, acc, d, e, out)    optional: it makes n elements `out` (PA_C) from sums `acc`
                                           (PA_ACC, but what C holds where that is complex, bool or an integer) and the
                                           elements d and e of what is added (pa_gemm_args; of PA_C, undefined where it
                                           is NULL)
       #include "pa_gemm.h"

   | dtype             | PA_T       | PA_ACC   | PA_KIND         | PA_LOAD(x)                | PA_STORE(x)            |
   | float32           | float      | float    | PA_GEMM_REAL    |                           |                        |
   | float64           | double     | double   | PA_GEMM_REAL    |                           |                        |
   | (u)int16, 32, 64  | uint16_t.. | the same | PA_GEMM_INT     |                           |                        |
   | (u)int8           | uint8_t    | uint16_t | PA_GEMM_INT     | (uint16_t)(x)             | (uint8_t)(x)           |
   | bool              | uint8_t    | uint8_t  | PA_GEMM_BOOL    | (uint8_t)((x) != 0)       | (x)                    |
   | complex64, 128    | pa_c64..   | float..  | PA_GEMM_COMPLEX |                           |                        |
   | float16, bfloat16 | pa_f16..   | float    | PA_GEMM_REAL    | pa_f32_from_f16(x) ..     | pa_f16_from_f32(x) ..  |

   int8 computes in 16 bits, for there is no byte multiplication on the usual machines, and the low byte comes out the
   same. These definitions end with the inclusion. Without PA_NAME the inclusion gives the types of the arguments only.
   The blocking may be set with -D or #define and then holds for the whole text: PA_VBYTES (bytes of a vector), PA_MR
   (rows of the micro-kernel), PA_NR (its columns, in vectors), PA_KC (depth of a panel), PA_MC and PA_NC (at most so
   many rows and columns of C make one task), PA_BLOCK (rows and columns that are copied at a time). It needs -O3 and
   -ffp-contract=fast.

   The algorithm is BLIS's: A is packed into panels of PA_MR rows and B into panels of PA_NR vectors (pa_gemm_panels.h);
   then each task computes one tile of C over the whole depth (pa_gemm_core.h). Operands that are read too seldom to pay
   for packing are read in place. The order of summation depends on sizes and strides alone, never on threads. Other
   algorithms: pa_gemm_vector.h for few rows or columns, which are bound by bandwidth, pa_gemm_small.h for products of
   one thread, pa_gemm_tall_skinny.h for two dimensions of a few vectors at most, pa_gemm_splitk.h for a small C and a
   large depth. Nothing is rounded to PA_T before the epilogue. Thresholds between them: pa_gemm_thresholds.h. */
#include "pa_gemm_types.h"

#ifdef PA_NAME

/* ---- blocking defaults: the registers, then L1 (a panel of B, as it passes) and a third of L2 (a tile of A) ---- */
#ifdef PA_VBYTES
#define PA_G_VBYTES PA_VBYTES
#elif defined(__AVX512F__)
#define PA_G_VBYTES 64
#elif defined(__AVX2__)
#define PA_G_VBYTES 32
#else
#define PA_G_VBYTES 16
#endif
#if defined(PA_INT64) && defined(__AVX2__) && !defined(__AVX512F__) && !defined(PA_VBYTES)
#define PA_G_HALVES 1
#else
#define PA_G_HALVES 0
#endif
#if defined(PA_INT64) && defined(__AVX2__) && !defined(PA_VBYTES) && !defined(PA_DEBUG_CHECKS)
/* pa_gemm_narrow.h: only there is a signed product of halves, and debug mode reads nothing unchecked */
#define PA_G_INT32 1
#else
#define PA_G_INT32 0
#endif
/* On processors with AMX, a product of pairs takes twice as long as two of float32. */
#if defined(PA_BFLOAT16) && defined(__AVX512BF16__) && !defined(__AMX_BF16__) && !defined(PA_VBYTES) && \
    !defined(PA_DEBUG_CHECKS)
#define PA_G_PAIRS 1
#define PA_G_K_PER_WORD 2 /* elements along the depth in one of a panel */
#else
#define PA_G_PAIRS 0
#define PA_G_K_PER_WORD 1
#endif
#ifdef PA_NR
#define PA_G_NRV PA_NR
#elif PA_KIND == PA_GEMM_COMPLEX || PA_G_HALVES
#define PA_G_NRV 1
#elif defined(__ARM_NEON) && !defined(PA_VBYTES)
#define PA_G_NRV 3
#else
#define PA_G_NRV 2
#endif
#ifdef PA_MR
#define PA_G_MR PA_MR
#elif defined(__AVX512F__)
#define PA_G_MR 8 /* more rows of A a power of 2 apart conflict in L1 */
#elif defined(__ARM_NEON) && !defined(PA_VBYTES)
#define PA_G_MR 8
#else
#define PA_G_MR 6
#endif

#ifndef PA_C
#define PA_C PA_T
#endif
#define PA_G(name) PA_GEMM_CAT(PA_NAME, name)
/* PLAIN: an element is one PA_ACC, so that the matrices themselves may be read and added to. */
#if defined(PA_LOAD) || PA_KIND == PA_GEMM_COMPLEX
#define PA_G_PLAIN 0
#else
#define PA_G_PLAIN 1
#define PA_LOAD(x) (x)
#define PA_STORE(x) (x)
#endif
/* E: an element of the sums that an epilogue gets. */
#if PA_KIND == PA_GEMM_REAL
#define PA_G_E PA_ACC
#else
#define PA_G_E PA_C
#endif
/* HOLDS: C can hold sums that go on. */
#ifdef PA_EPILOGUE
#define PA_G_SUMS_IN_C 0
#else
#define PA_G_SUMS_IN_C PA_G_PLAIN
#endif
/* Integers are multiplied as unsigned int at least: promotion of uint16_t to int would make the overflow undefined. */
#if PA_KIND == PA_GEMM_BOOL
#define PA_G_ADD(x, y) ((x) | (y))
#define PA_G_MAC(s, x, y) ((PA_ACC)((s) | ((x) & (y))))
#define PA_G_VMAC(s, x, y) ((s) | ((x) & (y)))
#elif PA_KIND == PA_GEMM_INT
#define PA_G_ADD(x, y) ((x) + (y))
#define PA_G_MAC(s, x, y) ((PA_ACC)((s) + (PA_ACC)(1u * (x) * (y))))
#define PA_G_VMAC(s, x, y) ((s) + (x) * (y))
#else
#define PA_G_ADD(x, y) ((x) + (y))
#define PA_G_MAC(s, x, y) ((s) + (x) * (y))
#define PA_G_VMAC(s, x, y) ((s) + (x) * (y))
#endif

typedef PA_ACC PA_G(v) __attribute__((vector_size(PA_G_VBYTES)));
typedef PA_ACC PA_G(vu) __attribute__((vector_size(PA_G_VBYTES), aligned(PA_G_PAIRS ? 2 : sizeof(PA_ACC)), may_alias));
#if PA_G_HALVES
typedef uint32_t PA_G(words) __attribute__((vector_size(PA_G_VBYTES)));
#endif
#define PA_G_V PA_G(v)
#define PA_G_VU PA_G(vu)
#define PA_G_L ((int)(PA_G_VBYTES / sizeof(PA_ACC)))
#define PA_G_NR (PA_G_NRV * PA_G_L)
#define PA_G_PARALLEL_WORK (PA_GEMM_PARALLEL_WORK * PA_G_L / (PA_G_HALVES ? 4 : 1)) /* the same in products of reals */
/* rows, at most, of pa_gemm_vector.h where B lies in rows, and in columns */
#define PA_G_FEW_AXPY PA_GEMM_FEW_AXPY
#define PA_G_FEW_DOTS (PA_G_HALVES ? PA_GEMM_FEW_DOTS_HALVES : PA_GEMM_FEW_DOTS)
#ifdef PA_DEBUG_CHECKS
#define PA_G_SMALL 0
#else
#define PA_G_SMALL PA_G_SUMS_IN_C
#endif
#define PA_G_SKINNY (PA_G_SMALL && PA_KIND == PA_GEMM_REAL) /* pa_gemm_tall_skinny.h is for these */
#define PA_G_MR_LOW ((2 * PA_G_MR + 2) / 3) /* rows of the lower micro-kernel, for what is left */
#define PA_G_INPLACE (PA_G_PLAIN || PA_KIND == PA_GEMM_COMPLEX) /* products with few rows need no copy */
#define PA_G_PLANES (PA_KIND == PA_GEMM_COMPLEX ? 2 : 1)
#define PA_G_ES ((int64_t)sizeof(PA_T))
#define PA_G_CS ((int64_t)sizeof(PA_C))
#define PA_G_WORD ((int64_t)sizeof(PA_ACC) * PA_G_PLANES) /* bytes of an element in a panel */
/* the most that the depth may be, and what it is */
#ifdef PA_KC
#define PA_G_KC ((int64_t)(PA_KC))
#elif defined(__AVX512F__)
#define PA_G_KC ((int64_t)PA_GEMM_KC_AVX512)
#else
#define PA_G_PANEL_KC (PA_GEMM_PANEL_BYTES / (PA_G_NR * PA_G_WORD))
#define PA_G_KC ((int64_t)(PA_G_PANEL_KC < PA_GEMM_MIN_KC ? PA_GEMM_MIN_KC : PA_G_PANEL_KC))
#endif
#if defined(__AVX512F__) && !defined(PA_KC) && !(PA_KIND == PA_GEMM_REAL && PA_G_PLAIN)
#define PA_G_KC_DEFAULT (PA_G_KC / 2)
#else
#define PA_G_KC_DEFAULT PA_G_KC
#endif
#define PA_G_KC_MAX ((PA_G_KC + PA_G_KC / 32 + 3) / 4 * 4) /* slightly more, where that makes one panel less */
#ifdef PA_MC
#define PA_G_MC (pa_gemm_ceil(PA_MC, PA_G_MR) * PA_G_MR)
#elif defined(__AVX512F__)
#define PA_G_MC ((int64_t)(PA_G_KC_DEFAULT == PA_G_KC ? PA_GEMM_MC_AVX512 : PA_GEMM_MC_AVX512_HALF))
#else
#define PA_G_MC (PA_GEMM_TILE_BYTES / (PA_G_KC * PA_G_WORD * PA_G_MR) * PA_G_MR)
#endif
#ifdef PA_NC
#define PA_G_NC (pa_gemm_ceil(PA_NC, PA_G_NR) * PA_G_NR)
#else
#define PA_G_NC ((int64_t)(PA_GEMM_NC / PA_G_NR * PA_G_NR))
#endif
#ifdef PA_BLOCK
#define PA_G_BLOCK ((int64_t)(PA_BLOCK))
#else
#define PA_G_BLOCK ((int64_t)PA_GEMM_BLOCK)
#endif

#if PA_G_INT32
#include "pa_gemm_narrow.h"
#endif
#include "pa_gemm_panels.h"
#include "pa_gemm_core.h"
#if PA_G_SMALL
#include "pa_gemm_small.h"
#endif
#include "pa_gemm_blocks.h"
#ifndef PA_DEBUG_CHECKS
#include "pa_gemm_vector.h"
#include "pa_gemm_splitk.h"
#endif
#if PA_G_SKINNY
#include "pa_gemm_tall_skinny.h"
#endif

/* C = A @ B for one job; `parallel`: may use other threads. */
PA_GEMM_PLAN void PA_G(product)(pa_gemm_job *job, int parallel)
{
#ifndef PA_DEBUG_CHECKS
#if PA_G_SKINNY
    if (PA_G(tall_times_small)(job, parallel)) return;
#endif
    if (job->by_vector && PA_G(few_rows)(job, parallel)) return;
#if PA_G_SKINNY
    if (PA_G(tall_times_tall)(job, parallel)) return;
#endif
#if PA_G_INT32
    job->fits32 = pa_gemm_min(job->m, job->n) >= PA_GEMM_INT32_SIDE;
    PA_G(run_tasks)(job, PA_G(check_int32), 2 * PA_G_INT32_TASKS,
                    parallel && (job->m + job->n) * job->k * PA_G_ES >= PA_GEMM_PARALLEL_BYTES);
#endif
    if (parallel && PA_G(splitk)(job)) return;
#endif
    PA_G(run_blocks)(job, parallel);
}

/* Product number `index` of the batch. */
PA_GEMM_PLAN void PA_G(batch_product)(const pa_gemm_batch *all, int64_t index, int parallel)
{
    pa_gemm_job job;
    const pa_gemm_args *g = all->args;
    const int swapped = all->job->swapped;
    int64_t rest = index, a = 0, b = 0, c = 0, d;
#ifdef PA_EPILOGUE
    int64_t e[2] = {0, 0};
    int q;
#endif
    for (d = all->nb - 1; d >= 0; d--) {
        int64_t at = d ? rest % g->batch[d] : rest;
        if (d) rest /= g->batch[d];
        a += at * (swapped ? g->batch_b : g->batch_a)[d];
        b += at * (swapped ? g->batch_a : g->batch_b)[d];
        c += at * g->batch_c[d];
#ifdef PA_EPILOGUE
        for (q = 0; q < 2; q++) e[q] += g->d[q] ? at * g->batch_d[q][d] : 0;
#endif
    }
#if PA_G_SMALL
    if (all->job->small) {
        PA_G(small)(all->job, all->job->a + a, all->job->b + b, all->job->c + c);
        return;
    }
#endif
    job = *all->job;
    job.index = index, job.a += a, job.b += b, job.c += c;
#ifdef PA_EPILOGUE
    for (q = 0; q < 2; q++) job.d[q] = job.d[q] ? job.d[q] + e[q] : job.d[q];
#endif
    if (job.k <= 0) {
        PA_G(store_zeros)(&job);
        return;
    }
#if !defined(PA_EPILOGUE) && !defined(PA_DEBUG_CHECKS)
    if (pa_gemm_work(job.m, job.n, g->k, 1) <= PA_GEMM_TINY_WORK) {
        PA_G(tiny)(&job);
        return;
    }
#endif
    PA_G(product)(&job, parallel);
}

PA_GEMM_PLAN void PA_G(batch_products)(void *context, int64_t begin, int64_t end)
{
    int64_t i;
    for (i = begin; i < end; i++) PA_G(batch_product)((const pa_gemm_batch *)context, i, 0);
}

PA_GEMM_PLAN void PA_NAME(const pa_gemm_args *g, pa_runtime *rt)
{
    pa_gemm_job job;
    pa_gemm_batch all;
    int64_t rows = g->m, count = 1, few, limit, d;
    __builtin_memset(&job, 0, sizeof job);
    all.nb = g->nb;
#ifndef PA_EPILOGUE
    /* Matrices of A that lie one below the other and share their B are one tall matrix. */
    for (; all.nb > 0; all.nb--) {
        d = all.nb - 1;
        if (g->batch[d] != 1 &&
            (g->batch_b[d] != 0 || g->batch_a[d] != rows * g->ras || g->batch_c[d] != rows * g->rcs))
            break;
        rows *= g->batch[d];
    }
#endif
    for (d = 0; d < all.nb; d++) count *= g->batch[d];
    if (rows <= 0 || g->n <= 0 || count <= 0) return;
    /* The transposed problem is solved when it has the fewer rows (pa_gemm_vector.h), or else when C is written in runs
       then. */
    few = pa_gemm_min(rows, g->n);
    limit = (g->n < rows ? g->ras : g->cbs) == PA_G_ES ? PA_G_FEW_AXPY : PA_G_FEW_DOTS;
    job.by_vector = few <= limit && g->k >= 2 * PA_G_L &&
                    (few == 1 || (rows + g->n) * g->k * PA_G_ES >= PA_GEMM_FEW_BYTES);
    job.swapped = job.by_vector ? g->n < rows : g->ccs != PA_G_CS && g->rcs == PA_G_CS;
    job.k = pa_gemm_ceil(g->k, PA_G_K_PER_WORD);
    job.args = g;
    job.rt = rt;
    job.c = (char *)g->c;
    if (job.swapped) {
        job.m = g->n, job.n = rows;
        job.a = (const char *)g->b, job.ras = g->cbs, job.cas = g->rbs;
        job.b = (const char *)g->a, job.rbs = g->cas, job.cbs = g->ras;
        job.rcs = g->ccs, job.ccs = g->rcs;
    } else {
        job.m = rows, job.n = g->n;
        job.a = (const char *)g->a, job.ras = g->ras, job.cas = g->cas;
        job.b = (const char *)g->b, job.rbs = g->rbs, job.cbs = g->cbs;
        job.rcs = g->rcs, job.ccs = g->ccs;
    }
#ifdef PA_EPILOGUE
    for (d = 0; d < 2; d++) {
        job.d[d] = (const char *)g->d[d];
        job.rds[d] = job.swapped ? g->cds[d] : g->rds[d], job.cds[d] = job.swapped ? g->rds[d] : g->cds[d];
    }
#endif
    if (job.k > 0) PA_G(choose_in_place)(&job);
    if (job.k > 0 && !job.small) PA_G(plan_blocks)(&job);
    all.job = &job;
    all.args = g;
    double work = pa_gemm_work(job.m, job.n, job.k, PA_G_PLANES);
    if (count == 1 || work >= PA_GEMM_SPLIT_BATCH_WORK) {
        for (d = 0; d < count; d++) PA_G(batch_product)(&all, d, 1);
    } else {
        int64_t grain = (int64_t)(PA_G_PARALLEL_WORK / 4 / (work + 1)) + 1;
        if (work * (double)count < PA_G_PARALLEL_WORK) grain = count;
        else grain = pa_gemm_cut(count, grain, 1);
        rt->parallel_for(rt, PA_G(batch_products), &all, count, grain);
    }
}

#undef PA_NAME
#undef PA_T
#undef PA_ACC
#undef PA_KIND
#undef PA_LOAD
#undef PA_STORE
#undef PA_C
#undef PA_G_CS
#undef PA_G_E
#undef PA_EPILOGUE
#undef PA_G
#undef PA_G_VBYTES
#undef PA_G_NRV
#undef PA_G_MR
#undef PA_G_ADD
#undef PA_G_MAC
#undef PA_G_VMAC
#undef PA_G_V
#undef PA_G_VU
#undef PA_G_L
#undef PA_G_NR
#undef PA_G_PARALLEL_WORK
#undef PA_G_PLANES
#undef PA_G_ES
#undef PA_G_WORD
#undef PA_G_KC
#undef PA_G_PANEL_KC
#undef PA_G_KC_MAX
#undef PA_G_KC_DEFAULT
#undef PA_G_MC
#undef PA_G_NC
#undef PA_G_BLOCK
#undef PA_G_FEW_AXPY
#undef PA_G_FEW_DOTS
#undef PA_G_MR_LOW
#undef PA_G_LOAD_ELEMENT
#undef PA_G_CONVERTED_RUN
#undef PA_G_LOAD_RUN
#undef PA_G_STORE_ELEMENT
#undef PA_G_PLAIN
#undef PA_G_SUMS_IN_C
#undef PA_G_INPLACE
#undef PA_G_HALVES
#undef PA_G_INT32
#undef PA_G_PAIRS
#undef PA_G_K_PER_WORD
#undef PA_BFLOAT16
#undef PA_G_INT32_TASKS
#undef PA_INT64
#undef PA_G_SMALL
#undef PA_G_SKINNY
#endif /* PA_NAME */
