/* pa_half.h: float16 and bfloat16. Arithmetic is done in float32 and rounded after each operation, so there are only
   conversions: round to nearest even, NaN stays NaN, subnormals are kept. */
#ifndef PA_HALF_H
#define PA_HALF_H
#include "pa_base.h"

/* The formulas below are branch-free integer code that vectorises. They follow F. Giesen, "half <-> float conversion"
   (gist 2156668, half_to_float_fast and float_to_half_fast3_rtne). Used where the compiler has no better, and tested
   everywhere. */
PA_FN float pa_soft_f32_from_f16(pa_f16 x)
{
    uint32_t h = x.bits, m = (h & 0x7fffu) << 13, e = m & 0x0f800000u, sign = (h & 0x8000u) << 16;
    uint32_t bits = m + 0x38000000u;                                            /* exponent bias 15 -> 127 */
    uint32_t sub = pa_bits_f32(pa_f32_bits(m + 0x38800000u) - 6.103515625e-05f);/* 2^-14 + subnormal - 2^-14, exact */
    bits = e == 0x0f800000u ? m + 0x70000000u : bits;                           /* inf, NaN */
    return pa_f32_bits((e == 0 ? sub : bits) | sign);
}
PA_FN pa_f16 pa_soft_f16_from_f32(float x)
{
    uint32_t f = pa_bits_f32(x), sign = f & 0x80000000u, a = f ^ sign, normal, tiny, big;
    pa_f16 h;
    /* rebias; half a last place less one, plus odd */
    normal = (a + 0xc8000fffu + ((a >> 13) & 1)) >> 13;
    /* the adder rounds to a multiple of 2^-24 */
    tiny = pa_bits_f32(pa_f32_bits(a < 0x38800000u ? a : 0) + 0.5f) - 0x3f000000u;
    /* a quiet NaN keeps its upper payload */
    big = a > 0x7f800000u ? 0x7e00u | ((a >> 13) & 0x3ffu) : 0x7c00u;
    h.bits = (uint16_t)((a >= 0x47800000u ? big : a < 0x38800000u ? tiny : normal) | (sign >> 16));
    return h;
}

/* float64 -> float32 rounded to odd: the last bit is set when anything was lost, so that a second rounding to at least
   two bits fewer is as good as one (Boldo & Melquiond, "Emulation of FMA and correctly rounded sums", 2008). */
PA_FN float pa_f32_odd_f64(double x)
{
    float f = (float)x;
    double back = (double)f;
    uint32_t bits = pa_bits_f32(f);
    /* towards zero; infinity becomes the largest */
    bits -= (back < 0 ? -back : back) > (x < 0 ? -x : x) ? 1u : 0u;
    return pa_f32_bits(bits | (((back != x) & (x == x)) ? 1u : 0u));
}

#if PA_CUDA
PA_FN float pa_f32_from_f16(pa_f16 x) { float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(x.bits)); return f; }
PA_FN pa_f16 pa_f16_from_f32(float x) { pa_f16 h; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h.bits) : "f"(x)); return h; }
#elif PA_GPU
PA_FN float pa_f32_from_f16(pa_f16 x) { union { _Float16 f; uint16_t u; } v; v.u = x.bits; return (float)v.f; }
PA_FN pa_f16 pa_f16_from_f32(float x)
{
    union { _Float16 f; uint16_t u; } v; pa_f16 h; v.f = (_Float16)x; h.bits = v.u; return h;
}
#else
PA_FN float pa_f32_from_f16(pa_f16 x) { return pa_soft_f32_from_f16(x); }
PA_FN pa_f16 pa_f16_from_f32(float x) { return pa_soft_f16_from_f32(x); }
#endif
PA_FN double pa_f64_from_f16(pa_f16 x) { return (double)pa_f32_from_f16(x); }
PA_FN pa_f16 pa_f16_from_f64(double x) { return pa_f16_from_f32(pa_f32_odd_f64(x)); }

/* bfloat16 is the upper half of a float32 */
PA_FN float pa_f32_from_bf16(pa_bf16 x) { return pa_f32_bits((uint32_t)x.bits << 16); }
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800 /* where NaNs lose their sign and payload */
PA_FN pa_bf16 pa_bf16_from_f32(float x) { pa_bf16 h; asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h.bits) : "f"(x)); return h; }
#else
PA_FN pa_bf16 pa_bf16_from_f32(float x)
{
    uint32_t f = pa_bits_f32(x), rounded = f + 0x7fffu + ((f >> 16) & 1);
    pa_bf16 h;
    h.bits = (uint16_t)((f & 0x7fffffffu) > 0x7f800000u ? (f >> 16) | 0x40u : rounded >> 16);
    return h;
}
#endif
PA_FN double pa_f64_from_bf16(pa_bf16 x) { return (double)pa_f32_from_bf16(x); }
PA_FN pa_bf16 pa_bf16_from_f64(double x) { return pa_bf16_from_f32(pa_f32_odd_f64(x)); }

/* Neighbours differ by one in their bits, read as a sign and a magnitude; only zero has two (IEEE 754, nextUp and
   nextDown). U is the type of the bits, SIGN the sign's. */
#define PA_NARROW_NEXTAFTER(S, U, SIGN)                                                                                \
    PA_FN pa_##S pa_nextafter_##S(pa_##S a, pa_##S b)                                                                  \
    {                                                                                                                  \
        float x = pa_f32_from_##S(a), y = pa_f32_from_##S(b);                                                          \
        pa_##S r = a;                                                                                                  \
        if (x != x || y != y) return pa_##S##_from_f32(x + y);                                                         \
        if (x == y) return b;                                                                                          \
        if (x == 0) r.bits = (U)((y < 0 ? SIGN : 0u) | 1u);                                                            \
        else r.bits = (U)((x < y) == (x > 0) ? a.bits + 1u : a.bits - 1u);                                             \
        return r;                                                                                                      \
    }

/* What is a matter of the sign bit, or of the exponent: without their sign, of WIDTH bits, NaNs are above GREATEST, and
   infinity is INF, which no magnitude is where there is none. */
#define PA_NARROW_BITS(S, U, WIDTH, GREATEST, INF)                                                                     \
    PA_FN pa_##S pa_abs_##S(pa_##S x) { x.bits &= (U)~(1u << WIDTH); return x; }                                       \
    PA_FN pa_##S pa_neg_##S(pa_##S x) { x.bits ^= (U)(1u << WIDTH); return x; }                                        \
    PA_FN pa_##S pa_copysign_##S(pa_##S x, pa_##S y)                                                                   \
    {                                                                                                                  \
        x.bits = (U)((x.bits & ~(1u << WIDTH)) | (y.bits & 1u << WIDTH));                                              \
        return x;                                                                                                      \
    }                                                                                                                  \
    PA_FN bool pa_isnan_##S(pa_##S x) { return (x.bits & ~(1u << WIDTH)) > GREATEST; }                                 \
    PA_FN bool pa_isinf_##S(pa_##S x) { return (x.bits & ~(1u << WIDTH)) == INF; }                                     \
    PA_FN bool pa_isfinite_##S(pa_##S x)                                                                               \
    {                                                                                                                  \
        return (x.bits & ~(1u << WIDTH)) <= (GREATEST == INF ? GREATEST - 1u : GREATEST);                              \
    }                                                                                                                  \
    PA_FN bool pa_signbit_##S(pa_##S x) { return (bool)(x.bits >> WIDTH); }

PA_NARROW_NEXTAFTER(f16, uint16_t, 0x8000u)
PA_NARROW_NEXTAFTER(bf16, uint16_t, 0x8000u)
PA_NARROW_BITS(f16, uint16_t, 15, 0x7c00u, 0x7c00u)
PA_NARROW_BITS(bf16, uint16_t, 15, 0x7f80u, 0x7f80u)

#endif
