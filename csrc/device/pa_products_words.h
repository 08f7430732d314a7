/* pa_products_words.h: products of tiles of integers of 8 and 16 bits onto sums of 32. Two elements that are adjacent
   along the depth are a pair of 16-bit words, whose products with those of another pair an instruction adds. Sums wrap
   around, so the order decides no bit. */
#ifndef PA_PRODUCTS_WORDS_H
#define PA_PRODUCTS_WORDS_H
#include "pa_products.h"

typedef uint16_t pa_products_word __attribute__((may_alias));
typedef uint32_t pa_products_two_words __attribute__((may_alias)); /* a pair, the first one below, or a sum */
typedef uint32_t pa_products_words_vector __attribute__((vector_size(PA_PRODUCTS_BYTES)));

PA_PRODUCTS_INLINE pa_products_words_vector pa_products_dot_words(pa_products_words_vector x,
                                                                  pa_products_words_vector y,
                                                                  pa_products_words_vector sum)
{
#if defined(__AVX512VNNI__) && PA_PRODUCTS_BYTES == 64
    __asm__("vpdpwssd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y));
    return sum;
#elif (defined(__AVX2__) && PA_PRODUCTS_BYTES == 32) || (defined(__AVX512BW__) && PA_PRODUCTS_BYTES == 64)
    pa_products_words_vector products;
    __asm__("vpmaddwd %2, %1, %0" : "=v"(products) : "v"(x), "v"(y));
    return sum + products;
#elif defined(__SSE2__) && PA_PRODUCTS_BYTES == 16
    __asm__("pmaddwd %1, %0" : "+x"(x) : "x"(y));
    return sum + x;
#else
    typedef int32_t vector __attribute__((vector_size(PA_PRODUCTS_BYTES)));
    const vector low = ((vector)(x << 16) >> 16) * ((vector)(y << 16) >> 16);
    const vector high = ((vector)x >> 16) * ((vector)y >> 16);
    return sum + (pa_products_words_vector)low + (pa_products_words_vector)high;
#endif
}
#define PA_P(name) pa_products_##name##_words
#define PA_P_T pa_products_two_words
#define PA_P_FMA(x, y, sum) pa_products_dot_words(x, y, sum)
#include "pa_products_of.h"

/* For elements of T: pa_products_name, an operand by address and strides in elements, of its lines and along the depth;
   and a function that makes pairs of `lines` lines, `step` apart, of which those of a line are `next` apart. The last
   element of an odd depth has 0 for a partner. */
#define PA_PRODUCTS_WORDS(T, name)                                                                                     \
    typedef struct { const T *at; int64_t line, along; } pa_products_##name;                                          \
    PA_PRODUCTS_APART void pa_products_words_of_##name(pa_products_two_words *to, int64_t step, int64_t next,          \
                                                       pa_products_##name x, int64_t lines, int64_t depth)             \
    {                                                                                                                  \
        if (next == 1 && x.along == 1) { /* rows of A */                                                               \
            for (int64_t i = 0; i < lines; ++i) {                                                                      \
                pa_products_word *const words = (pa_products_word *)(to + i * step);                                   \
                const T *const from = x.at + i * x.line;                                                               \
                for (int64_t p = 0; p < depth; ++p) words[p] = (uint16_t)from[p];                                      \
                if (depth % 2) words[depth] = 0;                                                                       \
            }                                                                                                          \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t p = 0; p < depth; p += 2, to += next) {                                                           \
            const T *const first = x.at + p * x.along, *const second = first + x.along;                                \
            if (p + 1 < depth && step == 1 && x.line == 1) /* columns of B */                                          \
                for (int64_t i = 0; i < lines; ++i) to[i] = (uint16_t)first[i] | (uint32_t)(uint16_t)second[i] << 16;  \
            else                                                                                                       \
                for (int64_t i = 0; i < lines; ++i) {                                                                  \
                    PA_NOVECTOR;                                                                                       \
                    const uint32_t above = p + 1 < depth ? (uint16_t)second[i * x.line] : 0;                           \
                    to[i * step] = (uint16_t)first[i * x.line] | above << 16;                                          \
                }                                                                                                      \
        }                                                                                                              \
    }
PA_PRODUCTS_WORDS(int8_t, i8)
PA_PRODUCTS_WORDS(uint8_t, u8)
PA_PRODUCTS_WORDS(int16_t, i16)

#endif
