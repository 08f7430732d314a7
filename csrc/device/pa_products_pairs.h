/* pa_products_pairs.h: products of tiles of bfloat16 onto float32 by AVX-512's vdpbf16ps, which adds two products to a
   sum, each by a fused step, first that of the upper halves. So the upper half of a pair is the one that comes first
   along the depth. Sums are those of pa_products_add_f32, but for numbers below 1.2e-38, which it takes for 0. */
#ifndef PA_PRODUCTS_PAIRS_H
#define PA_PRODUCTS_PAIRS_H
#include "pa_products.h"

/* On processors with AMX, a product of pairs takes twice as long as two of float32. */
#if defined(__AVX512F__) && defined(__AVX512BF16__) && !defined(__AMX_BF16__)
#define PA_PRODUCTS_PAIRS 1

typedef uint32_t pa_products_pair __attribute__((may_alias)); /* or a sum */
typedef uint32_t pa_products_pair_vector __attribute__((vector_size(PA_PRODUCTS_BYTES)));
typedef uint32_t pa_products_eight __attribute__((vector_size(32), aligned(2), may_alias));
PA_PRODUCTS_INLINE pa_products_pair_vector pa_products_dot_pairs(pa_products_pair_vector x, pa_products_pair_vector y,
                                                                 pa_products_pair_vector sum)
{
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y));
    return sum;
}
#define PA_P(name) pa_products_##name##_pairs
#define PA_P_T pa_products_pair
#define PA_P_FMA(x, y, sum) pa_products_dot_pairs(x, y, sum)
#include "pa_products_of.h"

/* An operand by address and strides in elements: of its lines, and along the depth. */
typedef struct { const pa_bf16 *at; int64_t line, along; } pa_products_bf16;

/* Pairs of `lines` lines, `step` apart, of which those of a line are `next` apart. The last element of an odd depth has
   -0 for a partner, or 0 in the other operand (`odd`: the bits): their product changes no sum. */
PA_PRODUCTS_APART void pa_products_make_pairs(pa_products_pair *to, int64_t step, int64_t next, pa_products_bf16 x,
                                              int64_t lines, int64_t depth, uint32_t odd)
{
    const uint16_t *from = &x.at->bits;
    if (next == 1 && x.along == 1) { /* rows of A */
        for (int64_t i = 0; i < lines; ++i, from += x.line, to += step) {
            int64_t p = 0;
            for (; p + 8 <= depth / 2; p += 8) {
                const pa_products_eight pairs = *(const pa_products_eight *)(from + 2 * p);
                *(pa_products_eight *)(to + p) = pairs << 16 | pairs >> 16;
            }
            for (; p < depth / 2; ++p) {
                PA_NOVECTOR;
                to[p] = (uint32_t)from[2 * p] << 16 | from[2 * p + 1];
            }
            if (depth % 2) to[depth / 2] = (uint32_t)from[depth - 1] << 16 | odd;
        }
        return;
    }
    for (int64_t p = 0; p < depth / 2; ++p, to += next, from += 2 * x.along) {
        const uint16_t *const second = from + x.along;
        if (step == 1 && x.line == 1) /* columns of B */
            for (int64_t i = 0; i < lines; ++i) to[i] = (uint32_t)from[i] << 16 | second[i];
        else
            for (int64_t i = 0; i < lines; ++i) {
                PA_NOVECTOR;
                to[i * step] = (uint32_t)from[i * x.line] << 16 | second[i * x.line];
            }
    }
    for (int64_t i = 0; i < lines && depth % 2; ++i) {
        PA_NOVECTOR;
        to[i * step] = (uint32_t)from[i * x.line] << 16 | odd;
    }
}

/* C += A @ B as pa_products_add_f32, by pairs, for which there are workspaces. */
PA_PRODUCTS_APART void pa_products_add_bf16(float *c, int64_t pitch, pa_products_bf16 a, pa_products_bf16 b,
                                            float *work_a, float *work_b, int64_t rows, int64_t columns, int64_t depth,
                                            pa_prefetch_next *next)
{
    const int64_t pairs = (depth + 1) / 2;
    pa_products_pair *const left = (pa_products_pair *)work_a, *const right = (pa_products_pair *)work_b;
    if (rows <= 0 || columns <= 0 || depth <= 0) return;
    pa_products_make_pairs(left, pairs, 1, a, rows, depth, 0x8000u);
    pa_products_make_pairs(right, 1, columns, b, columns, depth, 0);
    const pa_products_matrix_pairs of_left = {left, pairs, 1}, of_right = {right, columns, 1};
    pa_products_add_pairs((pa_products_pair *)c, pitch, of_left, of_right, rows, columns, pairs, next);
}
#else
#define PA_PRODUCTS_PAIRS 0
#endif

#endif
