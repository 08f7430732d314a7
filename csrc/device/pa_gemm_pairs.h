/* Products of bfloat16 by AVX-512's vdpbf16ps, which adds two products to a sum: an element of a panel is a pair of
   elements adjacent along the depth, so a job's depth counts pairs. The instruction takes subnormal float32 for 0. */

/* A vector of the pair x. */
PA_GEMM_INLINE PA_G_V PA_G(broadcast_pair)(PA_ACC x)
{
    typedef uint32_t words __attribute__((vector_size(PA_G_VBYTES)));
    uint32_t pair;
    __builtin_memcpy(&pair, &x, sizeof pair);
    return (PA_G_V)((words){0} + pair);
}

/* s + b * x: each pair of b with its pair of x. */
PA_GEMM_INLINE PA_G_V PA_G(dot_pairs)(PA_G_V s, PA_G_V b, PA_G_V x)
{
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(s) : "v"(b), "v"(x));
    return s;
}

/* The same for one pair. */
PA_GEMM_INLINE PA_ACC PA_G(dot_pair)(PA_ACC s, PA_ACC b, PA_ACC x)
{
    PA_T of_b[2], of_x[2];
    __builtin_memcpy(of_b, &b, sizeof b);
    __builtin_memcpy(of_x, &x, sizeof x);
    return s + PA_LOAD(of_b[0]) * PA_LOAD(of_x[0]) + PA_LOAD(of_b[1]) * PA_LOAD(of_x[1]);
}

/* n pairs of the elements of two rows. */
PA_GEMM_INLINE void PA_G(interleave)(int64_t n, const uint16_t *x, const uint16_t *y, uint32_t *to)
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

/* A panel from any strides. */
PA_GEMM_PLAN void PA_G(pack_edge)(const pa_gemm_job *job, int which, PA_ACC *dst, int width, int64_t w0, int64_t left,
                                  int64_t p0, int64_t kc)
{
    const int of_a = which == PA_GEMM_SITE_A;
    const int64_t sw = of_a ? job->ras : job->cbs, sk = of_a ? job->cas : job->rbs, k_left = job->args->k - 2 * p0;
    const char *src = (of_a ? job->a : job->b) + w0 * sw + 2 * p0 * sk;
    uint16_t *to = (uint16_t *)dst;
    int64_t p, i;
    if (left > width) left = width;
    __builtin_memset(dst, 0, (size_t)(kc * width * PA_G_WORD));
    for (p = 0; p < pa_gemm_min(2 * kc, k_left); p++, src += sk)
        for (i = 0; i < left; i++) {
            PA_GEMM_SCALAR();
            to[p / 2 * 2 * width + 2 * i + p % 2] = *(const uint16_t *)(src + i * sw);
        }
}

/* Groups of n adjacent elements of rows `sk` apart, of which `k_left` are left, `group` pairs from one to the next. */
PA_GEMM_INLINE void PA_G(pack_groups)(const char *src, int64_t sk, int64_t kc, int64_t k_left, PA_ACC *dst, int64_t n,
                                      int64_t group)
{
    static const uint16_t none[PA_G_MR > PA_G_NR ? PA_G_MR : PA_G_NR];
    int64_t p;
    for (p = 0; p < kc; p++, src += 2 * sk, dst += group) {
        __builtin_prefetch(src + PA_G_PREFETCH_ROWS * sk, 0, 2);
        __builtin_prefetch(src + (PA_G_PREFETCH_ROWS + 1) * sk, 0, 2);
        PA_G(interleave)(n, (const uint16_t *)src, 2 * p + 1 < k_left ? (const uint16_t *)(src + sk) : none,
                         (uint32_t *)dst);
    }
}

PA_GEMM_HOT void PA_G(pack_partial)(const char *src, int64_t sk, int64_t kc, int64_t k_left, PA_ACC *dst, int width,
                                    int left)
{
    __builtin_memset(dst, 0, (size_t)(kc * width * PA_G_WORD));
    PA_G(pack_groups)(src, sk, kc, k_left, dst, left, width);
}

PA_GEMM_INLINE void PA_G(pack_full)(const char *src, int64_t sw, int64_t sk, int64_t kc, int64_t k_left, PA_ACC *dst,
                                     const int width, int count)
{
    PA_ACC scratch[(PA_G_MR > PA_G_NR ? PA_G_MR : PA_G_NR) * PA_G_CONVERTED_RUN];
    int64_t p, n, i;
    for (; count > 0; count--, src += width * sw, dst += kc * width) {
        if (sw == PA_G_ES) {
            PA_G(pack_groups)(src, sk, kc, k_left, dst, width, width);
            continue;
        }
        p = pa_gemm_min(kc, k_left / 2) / 4 * 4;
        PA_G(transpose)(p, src, sw, dst, width, width);
        for (; p < kc; p += PA_G_CONVERTED_RUN) {
            n = pa_gemm_min(PA_G_CONVERTED_RUN, kc - p);
            for (i = 0; i < width; i++) {
                if (2 * (p + n) > k_left) scratch[i * PA_G_CONVERTED_RUN + n - 1] = 0;
                __builtin_memcpy(scratch + i * PA_G_CONVERTED_RUN, src + i * sw + 2 * p * sk,
                                 (size_t)(pa_gemm_min(2 * n, k_left - 2 * p) * PA_G_ES));
            }
            PA_G(transpose)(n, (const char *)scratch, PA_G_CONVERTED_RUN * (int64_t)sizeof(PA_ACC), dst + p * width,
                            width, width);
        }
    }
}

/* Few rows, where B lies in rows: of 2 * PA_G_PAIR_ROWS rows PA_G_PAIR_COLUMNS columns at a time, all of them in
   registers. */
#define PA_G_PAIR_ROWS 4
#define PA_G_PAIR_COLUMNS (2 * PA_G_L)
typedef uint16_t PA_G(halves) __attribute__((vector_size(PA_G_VBYTES), aligned(2), may_alias));

/* The first n elements at p and then zeros. */
PA_GEMM_INLINE PA_G(halves) PA_G(load_masked)(const char *p, int64_t n)
{
    PA_G(halves) v;
    if (n >= PA_G_PAIR_COLUMNS) return *(const PA_G(halves) *)p;
    __asm__("vmovdqu16 %1, %0%{%2%}%{z%}" : "=v"(v) : "m"(*(const PA_G(halves) *)p), "Yk"((1u << n) - 1));
    return v;
}

/* sums[r][j] += the pairs x[r][q] times the pairs that B has in its columns j .. j + n from pair p on, where zeros
   stand for rows that B has not. Sums are in an order that PA_G(restore_order) undoes. */
PA_GEMM_HOT void PA_G(axpy_pairs)(const pa_gemm_job *job, int64_t n, int64_t j, int64_t p, PA_ACC *sums,
                                  const PA_ACC *x)
{
    const int64_t k_left = job->args->k - 2 * p, all = job->rbs, nx = job->sai / (int64_t)sizeof(PA_ACC);
    const char *b = job->b + 2 * p * all + j * PA_G_ES;
    PA_G_V low[PA_G_PAIR_ROWS], high[PA_G_PAIR_ROWS];
    int64_t r;
    int q;
    n = pa_gemm_min(n, job->n - j);
    for (j = 0; j < n; j += PA_G_PAIR_COLUMNS, b += PA_G_VBYTES, sums += PA_G_PAIR_COLUMNS) {
        PA_GEMM_UNROLL for (q = 0; q < PA_G_PAIR_ROWS; q++) {
            PA_G(halves) x0 = {0}, x1 = {0};
            if (2 * q < k_left) x0 = PA_G(load_masked)(b + 2 * q * all, n - j);
            if (2 * q + 1 < k_left) x1 = PA_G(load_masked)(b + (2 * q + 1) * all, n - j);
            __asm__("vpunpcklwd %2, %1, %0" : "=v"(low[q]) : "v"(x0), "v"(x1));
            __asm__("vpunpckhwd %2, %1, %0" : "=v"(high[q]) : "v"(x0), "v"(x1));
        }
        for (r = 0; r < job->m; r++) {
            PA_ACC *to = sums + r * job->nb;
            PA_G_V s = ((PA_G_VU *)to)[0], t = ((PA_G_VU *)to)[1];
            PA_GEMM_UNROLL for (q = 0; q < PA_G_PAIR_ROWS; q++) {
                const PA_G_V v = PA_G(broadcast_pair)(x[r * nx + q]);
                s = PA_G(dot_pairs)(s, low[q], v);
                t = PA_G(dot_pairs)(t, high[q], v);
            }
            ((PA_G_VU *)to)[0] = s, ((PA_G_VU *)to)[1] = t;
        }
    }
}

/* Unpacking takes four elements of the one half of a run and four of the other in turn. */
PA_GEMM_HOT void PA_G(restore_order)(int64_t n, PA_ACC *sums)
{
    typedef uint32_t words __attribute__((vector_size(PA_G_VBYTES)));
    const words first = {0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23}, second = first + 8;
    for (; n > 0; n -= PA_G_PAIR_COLUMNS, sums += PA_G_PAIR_COLUMNS) {
        const PA_G_V s = ((PA_G_VU *)sums)[0], t = ((PA_G_VU *)sums)[1];
        PA_G_V x = s, y = s;
        __asm__("vpermt2ps %2, %1, %0" : "+v"(x) : "v"(first), "v"(t));
        __asm__("vpermt2ps %2, %1, %0" : "+v"(y) : "v"(second), "v"(t));
        ((PA_G_VU *)sums)[0] = x, ((PA_G_VU *)sums)[1] = y;
    }
}

/* Adds to columns j0 .. j1 what the last elements of an odd depth give, which are in no pair where columns are read in
   place. */
PA_GEMM_HOT void PA_G(add_odd_depth)(const pa_gemm_job *job, int64_t j0, int64_t j1, PA_ACC *sums)
{
    const int64_t k = job->args->k - 1;
    const char *b = job->b + k * job->rbs;
    int64_t r, j;
    for (r = 0; r < job->m; r++, sums += job->nb) {
        const PA_ACC x = PA_LOAD(*(const PA_T *)(job->a + r * job->ras + k * job->cas));
        for (j = j0; j < j1; j++) {
            PA_GEMM_SCALAR();
            sums[j] = PA_G_MAC(sums[j], PA_LOAD(*(const PA_T *)(b + j * job->cbs)), x);
        }
    }
}
