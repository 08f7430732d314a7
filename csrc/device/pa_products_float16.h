/* pa_products_float16.h: operands of products of tiles of float16, which are cast to float32 first: by the processor's
   instructions where it has them, one for a vector. They give what pa_f32_from_f16 gives, but for signaling NaNs. */
#ifndef PA_PRODUCTS_FLOAT16_H
#define PA_PRODUCTS_FLOAT16_H
#include "pa_half.h"
#include "pa_products.h"

#if defined(__AVX512F__)
typedef short pa_products_16_halves __attribute__((vector_size(32), aligned(2), may_alias));
typedef float pa_products_16_floats __attribute__((vector_size(64), aligned(4), may_alias));
#elif defined(__F16C__)
typedef short pa_products_8_halves __attribute__((vector_size(16), aligned(2), may_alias));
typedef float pa_products_8_floats __attribute__((vector_size(32), aligned(4), may_alias));
#endif

/* Casts so many neighbours. */
PA_PRODUCTS_INLINE void pa_products_cast_f16(float *to, const pa_f16 *from, int64_t count)
{
    int64_t i = 0;
#if defined(__AVX512F__)
    for (; i + 16 <= count; i += 16)
        *(pa_products_16_floats *)(to + i) = __builtin_ia32_vcvtph2ps512_mask(
            *(const pa_products_16_halves *)(from + i), (pa_products_16_floats){0}, (unsigned short)-1, 4);
#elif defined(__F16C__)
    for (; i + 8 <= count; i += 8)
        *(pa_products_8_floats *)(to + i) = __builtin_ia32_vcvtph2ps256(*(const pa_products_8_halves *)(from + i));
#endif
    for (; i < count; ++i) to[i] = pa_f32_from_f16(from[i]);
}
#endif
