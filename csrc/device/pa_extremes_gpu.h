/* pa_extremes_gpu.h: max and min of a thread's vector of float16 or bfloat16, NaN if there is one, by packed
   instructions for two elements. Those of float32 would take a conversion for each. */
#ifndef PA_EXTREMES_GPU_H
#define PA_EXTREMES_GPU_H
#include "pa_half.h"
#include "pa_real.h"

#if PA_CUDA && __CUDA_ARCH__ >= 800
#define PA_EXTREME(op, kind, packed)                                                                                   \
    template <typename V> PA_FN pa_##kind pa_vector_##op##_##kind(const V &x)                                          \
    {                                                                                                                  \
        enum { WORDS = sizeof(V) / 4 };                                                                                \
        union { V value; unsigned words[WORDS]; } u;                                                                   \
        u.value = x;                                                                                                   \
        _Pragma("unroll") for (int n = WORDS / 2; n > 0; n /= 2)                                                       \
            _Pragma("unroll") for (int k = 0; k < n; ++k)                                                              \
                asm(#op ".NaN." packed " %0, %0, %1;" : "+r"(u.words[k]) : "r"(u.words[k + n]));                       \
        const unsigned swapped = u.words[0] >> 16 | u.words[0] << 16;                                                  \
        asm(#op ".NaN." packed " %0, %0, %1;" : "+r"(u.words[0]) : "r"(swapped));                                      \
        return u.value.v[0];                                                                                           \
    }
#else
#define PA_EXTREME(op, kind, packed)                                                                                   \
    template <typename V> PA_FN pa_##kind pa_vector_##op##_##kind(const V &x)                                          \
    {                                                                                                                  \
        float found = pa_f32_from_##kind(x.v[0]);                                                                      \
        _Pragma("unroll") for (int j = 1; j < (int)(sizeof(V) / sizeof(pa_##kind)); ++j)                               \
            found = pa_##op##_f32(found, pa_f32_from_##kind(x.v[j]));                                                  \
        return pa_##kind##_from_f32(found);                                                                            \
    }
#endif
PA_EXTREME(max, f16, "f16x2") PA_EXTREME(min, f16, "f16x2")
PA_EXTREME(max, bf16, "bf16x2") PA_EXTREME(min, bf16, "bf16x2")
#undef PA_EXTREME
#endif
