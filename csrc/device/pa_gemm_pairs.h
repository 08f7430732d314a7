/* pa_gemm.h's part for bfloat16 where one instruction adds two products to a sum (AVX-512's BF16): an element of a panel is a pair
   of elements that follow each other along the depth, so that a job's depth counts pairs. What is smaller than the smallest normal
   float32 counts as 0 there. Only pa_gemm.h includes it. */

/* s + b * x: each pair of b with the pair x. */
PA_GEMM_INLINE PA_G_V PA_G(pairs)(PA_G_V s, PA_G_V b, PA_ACC x)
{
    typedef uint32_t words __attribute__((vector_size(PA_G_VBYTES)));
    uint32_t pair;
    __builtin_memcpy(&pair, &x, sizeof pair);
    const words all = (words){0} + pair;
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(s) : "v"(b), "v"(all));
    return s;
}

/* n pairs of the elements of two rows. */
PA_GEMM_INLINE void PA_G(zip)(int64_t n, const uint16_t *x, const uint16_t *y, uint32_t *to)
{
    typedef uint16_t halves __attribute__((vector_size(PA_G_VBYTES / 2), aligned(2), may_alias));
    typedef uint32_t words __attribute__((vector_size(PA_G_VBYTES), aligned(4), may_alias));
    int64_t i;
    for (i = 0; i + PA_G_L <= n; i += PA_G_L)
        *(words *)(to + i) = __builtin_convertvector(*(const halves *)(x + i), words) |
                             __builtin_convertvector(*(const halves *)(y + i), words) << 16;
    if (i < n) {
        const uint32_t mask = (1u << (n - i)) - 1;
        halves low, high;
        __asm__("vmovdqu16 %1, %0%{%2%}%{z%}" : "=v"(low) : "m"(*(const halves *)(x + i)), "Yk"(mask));
        __asm__("vmovdqu16 %1, %0%{%2%}%{z%}" : "=v"(high) : "m"(*(const halves *)(y + i)), "Yk"(mask));
        const words both = __builtin_convertvector(low, words) | __builtin_convertvector(high, words) << 16;
        __asm__("vmovdqu32 %1, %0%{%2%}" : "+m"(*(words *)(to + i)) : "v"(both), "Yk"(mask));
    }
}

/* As pa_gemm_panels.h has it, for any strides. */
PA_GEMM_PLAN void PA_G(edge)(const pa_gemm_job *job, int which, PA_ACC *dst, int width, int64_t w0, int64_t there, int64_t p0,
                             int64_t kc)
{
    const int of_a = which == PA_GEMM_SITE_A;
    const int64_t sw = of_a ? job->ras : job->cbs, sk = of_a ? job->cas : job->rbs, deep = job->args->k - 2 * p0;
    const char *src = (of_a ? job->a : job->b) + w0 * sw + 2 * p0 * sk;
    uint16_t *to = (uint16_t *)dst;
    int64_t p, i;
    if (there > width) there = width;
    __builtin_memset(dst, 0, (size_t)(kc * width * PA_G_WORD));
    for (p = 0; p < pa_gemm_min(2 * kc, deep); p++, src += sk)
        for (i = 0; i < there; i++) {
            PA_GEMM_SCALAR();
            to[p / 2 * 2 * width + 2 * i + p % 2] = *(const uint16_t *)(src + i * sw);
        }
}

/* The groups of `there` neighbours in rows `sk` apart, of which `deep` are left, `group` pairs from one to the next. */
PA_GEMM_INLINE void PA_G(groups)(const char *src, int64_t sk, int64_t kc, int64_t deep, PA_ACC *dst, int64_t there, int64_t group)
{
    static const uint16_t none[PA_G_MR > PA_G_NR ? PA_G_MR : PA_G_NR];
    int64_t p;
    for (p = 0; p < kc; p++, src += 2 * sk, dst += group) {
        __builtin_prefetch(src + PA_G_AHEAD * sk, 0, 2);
        __builtin_prefetch(src + (PA_G_AHEAD + 1) * sk, 0, 2);
        PA_G(zip)(there, (const uint16_t *)src, 2 * p + 1 < deep ? (const uint16_t *)(src + sk) : none, (uint32_t *)dst);
    }
}

PA_GEMM_HOT void PA_G(part)(const char *src, int64_t sk, int64_t kc, int64_t deep, PA_ACC *dst, int width, int there)
{
    __builtin_memset(dst, 0, (size_t)(kc * width * PA_G_WORD));
    PA_G(groups)(src, sk, kc, deep, dst, there, width);
}

PA_GEMM_INLINE void PA_G(panels)(const char *src, int64_t sw, int64_t sk, int64_t kc, int64_t deep, PA_ACC *dst, const int width,
                                 int count)
{
    PA_ACC room[(PA_G_MR > PA_G_NR ? PA_G_MR : PA_G_NR) * PA_G_PART];
    int64_t p, n, i;
    for (; count > 0; count--, src += width * sw, dst += kc * width) {
        if (sw == PA_G_ES) {
            PA_G(groups)(src, sk, kc, deep, dst, width, width);
            continue;
        }
        p = pa_gemm_min(kc, deep / 2) / 4 * 4;
        PA_G(turn)(p, src, sw, dst, width, width);
        for (; p < kc; p += PA_G_PART) {
            n = pa_gemm_min(PA_G_PART, kc - p);
            for (i = 0; i < width; i++) {
                if (2 * (p + n) > deep) room[i * PA_G_PART + n - 1] = 0;
                __builtin_memcpy(room + i * PA_G_PART, src + i * sw + 2 * p * sk, (size_t)(pa_gemm_min(2 * n, deep - 2 * p) * PA_G_ES));
            }
            PA_G(turn)(n, (const char *)room, PA_G_PART * (int64_t)sizeof(PA_ACC), dst + p * width, width, width);
        }
    }
}
