/* Packs matrices into the panels that the micro-kernel reads. */

#define PA_G_PREFETCH_ROWS PA_GEMM_PREFETCH_ROWS

/* An element into runs of PA_ACC and back. `plane`: from a real part to its imaginary part. */
#if PA_KIND == PA_GEMM_COMPLEX
#define PA_G_LOAD_ELEMENT(to, i, plane, from) ((to)[i] = (from).re, (to)[(plane) + (i)] = (from).im)
#define PA_G_STORE_ELEMENT(to, from, i, plane) ((to).re = (from)[i], (to).im = (from)[(plane) + (i)])
#else
#define PA_G_LOAD_ELEMENT(to, i, plane, from) ((to)[i] = (PA_ACC)PA_LOAD(from))
#define PA_G_STORE_ELEMENT(to, from, i, plane) ((to) = (PA_C)PA_STORE((from)[i]))
#endif

#if PA_G_PLAIN
#define PA_G_LOAD_RUN(n, from, to, plane) __builtin_memcpy(to, from, (size_t)(n) * sizeof(PA_ACC))
#else
#define PA_G_LOAD_RUN(n, from, to, plane) PA_G(load_converted)(n, (const PA_T *)(from), to, plane)
PA_GEMM_LOOP void PA_G(load_converted)(int64_t n, const PA_T *__restrict__ from, PA_ACC *__restrict__ to, int64_t plane)
{
    int64_t i;
    (void)plane;
    for (i = 0; i < n; i++) PA_G_LOAD_ELEMENT(to, i, plane, from[i]);
}
PA_GEMM_LOOP void PA_G(store_converted)(int64_t n, const PA_ACC *__restrict__ from, PA_C *__restrict__ to,
                                        int64_t plane)
{
    int64_t i;
    (void)plane;
    for (i = 0; i < n; i++) PA_G_STORE_ELEMENT(to[i], from, i, plane);
}
#endif

#define PA_G_CONVERTED_RUN PA_GEMM_CONVERTED_RUN
typedef PA_ACC PA_G(four) __attribute__((vector_size(4 * sizeof(PA_ACC))));
typedef PA_ACC PA_G(fouru) __attribute__((vector_size(4 * sizeof(PA_ACC)), aligned(PA_G_PAIRS ? 2 : sizeof(PA_ACC))));
#if defined(__clang__) || __GNUC__ >= 12
#define PA_G_SHUFFLE __builtin_shufflevector
#endif

/* `width` rows of n elements, `rs` bytes from one to the next, into n groups of `width`, `group` elements apart: by
   4 x 4 transposes (where the compiler has shuffles); the last one of a `width` overlaps the one before. */
PA_GEMM_INLINE void PA_G(transpose)(int64_t n, const char *from, int64_t rs, PA_ACC *to, int64_t group,
                                    const int width)
{
    int64_t most = 0, q;
    int i;
#ifdef PA_G_SHUFFLE
    int64_t p;
    most = width >= 4 ? n / 4 * 4 : 0;
    for (p = 0; p < most; p += 16) /* a line of a row at a time: rows may conflict in the cache */
        PA_GEMM_UNROLL for (i = 0; i < width; i += 4) {
            const int at = i + 4 <= width ? i : width - 4;
            for (q = p; q < p + 16 && q < most; q += 4) {
                const char *x = from + at * rs + q * (int64_t)sizeof(PA_ACC);
                PA_ACC *y = to + q * group + at;
                const PA_G(four) r0 = *(const PA_G(fouru) *)x, r1 = *(const PA_G(fouru) *)(x + rs);
                const PA_G(four) r2 = *(const PA_G(fouru) *)(x + 2 * rs), r3 = *(const PA_G(fouru) *)(x + 3 * rs);
                const PA_G(four) s0 = PA_G_SHUFFLE(r0, r1, 0, 4, 1, 5), s1 = PA_G_SHUFFLE(r2, r3, 0, 4, 1, 5);
                const PA_G(four) s2 = PA_G_SHUFFLE(r0, r1, 2, 6, 3, 7), s3 = PA_G_SHUFFLE(r2, r3, 2, 6, 3, 7);
                *(PA_G(fouru) *)y = PA_G_SHUFFLE(s0, s1, 0, 1, 4, 5);
                *(PA_G(fouru) *)(y + group) = PA_G_SHUFFLE(s0, s1, 2, 3, 6, 7);
                *(PA_G(fouru) *)(y + 2 * group) = PA_G_SHUFFLE(s2, s3, 0, 1, 4, 5);
                *(PA_G(fouru) *)(y + 3 * group) = PA_G_SHUFFLE(s2, s3, 2, 3, 6, 7);
            }
        }
#endif
    for (q = most; q < n; q++) {
        PA_GEMM_SCALAR();
        for (i = 0; i < width; i++)
            to[q * group + i] = *(const PA_ACC *)(from + i * rs + q * (int64_t)sizeof(PA_ACC));
    }
}

#undef PA_G_SHUFFLE

#if PA_G_PAIRS
#include "pa_gemm_pairs.h"
#else
/* Writes a panel: `width` rows of A (or columns of B) from w0 on, depth p0 .. p0 + kc, as kc groups of `width`
   elements; complex numbers as kc groups of real parts and of imaginary parts. Rows beyond `left` are zeros. */
PA_GEMM_PLAN void PA_G(pack_edge)(const pa_gemm_job *job, int which, PA_ACC *dst, int width, int64_t w0, int64_t left,
                                  int64_t p0, int64_t kc)
{
    int64_t p;
    int i;
    if (left > width) left = width;
    __builtin_memset(dst, 0, (size_t)(kc * width * PA_G_WORD));
    for (p = p0; p < p0 + kc; p++, dst += width * PA_G_PLANES)
        for (i = 0; i < left; i++) {
            PA_GEMM_SCALAR();
            const char *at = which == PA_GEMM_SITE_A ? job->a + (w0 + i) * job->ras + p * job->cas
                                                     : job->b + p * job->rbs + (w0 + i) * job->cbs;
#ifdef PA_DEBUG_CHECKS
            PA_T scrap;
            __builtin_memset(&scrap, 0, sizeof scrap);
            at = (const char *)(which == PA_GEMM_SITE_A ? pa_gemm_at(job, which, w0 + i, p, at, PA_G_ES, &scrap)
                                                        : pa_gemm_at(job, which, p, w0 + i, at, PA_G_ES, &scrap));
#endif
            PA_G_LOAD_ELEMENT(dst, i, width, *(const PA_T *)at);
        }
}

/* The same for `count` full panels, quickly. Strides in bytes: `sw` along the width, `sk` along the depth. Adjacent
   panels are read together, since longer runs come faster from memory. Elements that need widening are contiguous in
   one direction. */
PA_GEMM_INLINE void PA_G(pack_full)(const char *src, int64_t sw, int64_t sk, int64_t kc, int64_t k_left, PA_ACC *dst,
                                     const int width, int count)
{
    const int64_t group = width * PA_G_PLANES;
    int64_t p;
    int i, g;
    (void)k_left;
    if (sw == PA_G_ES) {
        for (p = 0; p < kc; p++, src += sk, dst += group)
            for (g = 0; g < count; g++) {
                /* The hardware doesn't prefetch distant rows; into L2, since in L1 they may conflict. */
                __builtin_prefetch(src + PA_G_PREFETCH_ROWS * sk + g * width * PA_G_ES, 0, 2);
                PA_G_LOAD_RUN(width, src + g * width * PA_G_ES, dst + g * kc * group, width);
            }
        return;
    }
    for (g = 0; g < count; g++, src += width * sw, dst += kc * group) {
#if PA_G_PLAIN
        if (sk == PA_G_ES) {
            PA_G(transpose)(kc, src, sw, dst, width, width);
            continue;
        }
        for (p = 0; p < kc; p++) {
            const char *at = src + p * sk;
            PA_GEMM_UNROLL2 for (i = 0; i < width; i++, at += sw) dst[p * width + i] = *(const PA_ACC *)at;
        }
#else
        PA_ACC scratch[(PA_G_MR > PA_G_NR ? PA_G_MR : PA_G_NR) * PA_G_CONVERTED_RUN * PA_G_PLANES];
        for (p = 0; p < kc; p += PA_G_CONVERTED_RUN) {
            int64_t n = pa_gemm_min(PA_G_CONVERTED_RUN, kc - p);
            for (i = 0; i < width; i++)
                PA_G(load_converted)(n, (const PA_T *)(src + i * sw) + p, scratch + i * PA_G_CONVERTED_RUN,
                                     width * PA_G_CONVERTED_RUN);
            for (i = 0; i < PA_G_PLANES; i++)
                PA_G(transpose)(n, (const char *)(scratch + i * width * PA_G_CONVERTED_RUN),
                                PA_G_CONVERTED_RUN * (int64_t)sizeof(PA_ACC), dst + p * group + i * width, group,
                                width);
        }
#endif
    }
}

/* A panel of the last `left` rows (or columns), each contiguous: zeros stand for the others. */
PA_GEMM_HOT void PA_G(pack_partial)(const char *src, int64_t sk, int64_t kc, int64_t k_left, PA_ACC *dst, int width,
                                    int left)
{
    int64_t p;
    (void)k_left;
    __builtin_memset(dst, 0, (size_t)(kc * width * PA_G_WORD));
    for (p = 0; p < kc; p++, src += sk, dst += width * PA_G_PLANES) PA_G_LOAD_RUN(left, src, dst, width);
}
#endif /* PA_G_PAIRS */

/* Where a panel of the block starts: slices of kc after each other, `panels` panels in each. */
PA_GEMM_INLINE int64_t PA_G(panel_offset)(const pa_gemm_job *job, int64_t slice, int64_t panel, int64_t panels,
                                          int width)
{
    int64_t depth = pa_gemm_min(job->kc, job->kb - slice * job->kc);
    return (slice * job->kc * panels + panel * depth) * width * PA_G_WORD;
}

/* The panels of rows (or columns) w to `end` of the block, PA_G_SIDE_PANELS at most, in the slice that starts at depth
   p of it. */
#define PA_G_SIDE_PANELS 4
PA_GEMM_HOT void PA_G(pack_panels)(const pa_gemm_job *job, int which, int64_t w, int64_t end, int64_t p, int64_t kc,
                                   PA_ACC *dst)
{
    const int width = which == PA_GEMM_SITE_A ? PA_G_MR : PA_G_NR;
    int64_t w0 = w + (which == PA_GEMM_SITE_A ? job->i0 : job->j0),
            left = pa_gemm_min(end - w, PA_G_SIDE_PANELS * width);
#ifndef PA_DEBUG_CHECKS
    int64_t sw = which == PA_GEMM_SITE_A ? job->ras : job->cbs, sk = which == PA_GEMM_SITE_A ? job->cas : job->rbs;
    const char *src = (which == PA_GEMM_SITE_A ? job->a : job->b) + w0 * sw + (job->p0 + p) * PA_G_K_PER_WORD * sk;
    const int64_t k_left = job->args->k - (job->p0 + p) * PA_G_K_PER_WORD;
    int full = PA_G_PLAIN || sw == PA_G_ES || sk == PA_G_ES ? (int)(left / width) : 0;
    if (which == PA_GEMM_SITE_A) PA_G(pack_full)(src, sw, sk, kc, k_left, dst, PA_G_MR, full);
    else PA_G(pack_full)(src, sw, sk, kc, k_left, dst, PA_G_NR, full);
    w0 += full * width, left -= full * width, dst += kc * full * width * PA_G_PLANES;
    if (left > 0 && sw == PA_G_ES) {
        PA_G(pack_partial)(src + full * width * sw, sk, kc, k_left, dst, width, (int)pa_gemm_min(left, width));
        return;
    }
#endif
    for (; left > 0; w0 += width, left -= width, dst += kc * width * PA_G_PLANES)
        PA_G(pack_edge)(job, which, dst, width, w0, left, job->p0 + p, kc);
}

/* Each task copies the panels of some rows (or of one tile's columns) in one slice. */
PA_GEMM_PLAN void PA_G(pack)(void *context, int64_t begin, int64_t end)
{
    const pa_gemm_job *job = (const pa_gemm_job *)context;
    int64_t slices = pa_gemm_ceil(job->kb, job->kc), t, w;
    for (t = begin; t < end; t++) {
        int which = t < job->pack_a ? PA_GEMM_SITE_A : PA_GEMM_SITE_B,
            width = which == PA_GEMM_SITE_A ? PA_G_MR : PA_G_NR;
        int64_t at = which == PA_GEMM_SITE_A ? t : t - job->pack_a, p = at % slices * job->kc;
        int64_t kc = pa_gemm_min(job->kc, job->kb - p);
        int64_t all = which == PA_GEMM_SITE_A ? job->mb : job->nb, step = which == PA_GEMM_SITE_A ? job->ma : job->nc;
        int64_t first = at / slices * step, last = pa_gemm_min(all, first + step);
        char *to = which == PA_GEMM_SITE_A ? job->pa : job->pb;
        to += PA_G(panel_offset)(job, at % slices, first / width, pa_gemm_ceil(all, width), width);
        for (w = first; w < last; w += PA_G_SIDE_PANELS * width)
            PA_G(pack_panels)(job, which, w, last, p, kc, (PA_ACC *)(to + (w - first) * kc * PA_G_WORD));
    }
}
