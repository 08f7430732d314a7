/* pa_float8.h: float8_e4m3fn and float8_e5m2 (Micikevicius et al., "FP8 formats for deep learning", arXiv:2209.05433;
   names and rounding are those of ml_dtypes). As of halves there are conversions, and arithmetic is done in float32:
   round to nearest even, NaN stays NaN, subnormals are kept. e4m3fn has no infinity: what rounds to more than 448 is
   NaN. */
#ifndef PA_FLOAT8_H
#define PA_FLOAT8_H
#include "pa_half.h"

/* Branch-free, as of halves: see pa_half.h. */
PA_FN float pa_soft_f32_from_e4m3(pa_e4m3 x)
{
    uint32_t m = (x.bits & 0x7fu) << 20, sign = (x.bits & 0x80u) << 24;
    uint32_t sub = pa_bits_f32(pa_f32_bits(m + 0x3c800000u) - 0.015625f); /* 2^-6 + subnormal - 2^-6, exact */
    uint32_t bits = m == 0x07f00000u ? 0x7fc00000u : m + 0x3c000000u;     /* NaN; exponent bias 7 -> 127 */
    return pa_f32_bits((m < 0x00800000u ? sub : bits) | sign);
}
PA_FN pa_e4m3 pa_soft_e4m3_from_f32(float x)
{
    uint32_t f = pa_bits_f32(x), sign = f & 0x80000000u, a = f ^ sign, normal, tiny;
    pa_e4m3 r;
    /* rebias; half a last place less one, plus odd */
    normal = (a + 0xc407ffffu + ((a >> 20) & 1)) >> 20;
    /* the adder rounds to a multiple of 2^-9 */
    tiny = pa_bits_f32(pa_f32_bits(a < 0x3c800000u ? a : 0) + 16384.0f) - 0x46800000u;
    r.bits = (uint8_t)((a > 0x43e80000u ? 0x7fu : a < 0x3c800000u ? tiny : normal) | (sign >> 24)); /* 464 is the tie */
    return r;
}
PA_FN pa_e5m2 pa_soft_e5m2_from_f32(float x)
{
    uint32_t f = pa_bits_f32(x), sign = f & 0x80000000u, a = f ^ sign, normal, tiny, big;
    pa_e5m2 r;
    normal = (a + 0xc80fffffu + ((a >> 21) & 1)) >> 21;
    tiny = pa_bits_f32(pa_f32_bits(a < 0x38800000u ? a : 0) + 128.0f) - 0x43000000u; /* a multiple of 2^-16 */
    big = a > 0x7f800000u ? 0x7eu : 0x7cu;
    r.bits = (uint8_t)((a >= 0x47800000u ? big : a < 0x38800000u ? tiny : normal) | (sign >> 24));
    return r;
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
/* Instructions convert pairs. Those to float8 saturate, so what is too large is put right afterwards. */
PA_FN float pa_f32_from_e4m3(pa_e4m3 x)
{
    uint32_t pair;
    pa_f16 h;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"((uint16_t)x.bits));
    h.bits = (uint16_t)pair;
    return pa_f32_from_f16(h);
}
PA_FN pa_e4m3 pa_e4m3_from_f32(float x)
{
    uint16_t pair;
    pa_e4m3 r;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
    r.bits = (uint8_t)((pa_bits_f32(x) & 0x7fffffffu) > 0x43e80000u ? pair | 0x7fu : pair);
    return r;
}
PA_FN pa_e5m2 pa_e5m2_from_f32(float x)
{
    uint16_t pair;
    uint32_t a = pa_bits_f32(x) & 0x7fffffffu;
    pa_e5m2 r;
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
    r.bits = (uint8_t)(a >= 0x47700000u && a <= 0x7f800000u ? (pair & 0x80u) | 0x7cu : pair); /* 61440 is the tie */
    return r;
}
#else
PA_FN float pa_f32_from_e4m3(pa_e4m3 x) { return pa_soft_f32_from_e4m3(x); }
PA_FN pa_e4m3 pa_e4m3_from_f32(float x) { return pa_soft_e4m3_from_f32(x); }
PA_FN pa_e5m2 pa_e5m2_from_f32(float x) { return pa_soft_e5m2_from_f32(x); }
#endif
/* the upper byte of a float16 */
PA_FN float pa_f32_from_e5m2(pa_e5m2 x)
{
    pa_f16 h;
    h.bits = (uint16_t)(x.bits << 8);
    return pa_f32_from_f16(h);
}
PA_FN double pa_f64_from_e4m3(pa_e4m3 x) { return (double)pa_f32_from_e4m3(x); }
PA_FN double pa_f64_from_e5m2(pa_e5m2 x) { return (double)pa_f32_from_e5m2(x); }
PA_FN pa_e4m3 pa_e4m3_from_f64(double x) { return pa_e4m3_from_f32(pa_f32_odd_f64(x)); }
PA_FN pa_e5m2 pa_e5m2_from_f64(double x) { return pa_e5m2_from_f32(pa_f32_odd_f64(x)); }

PA_NARROW_NEXTAFTER(e4m3, uint8_t, 0x80u)
PA_NARROW_NEXTAFTER(e5m2, uint8_t, 0x80u)
PA_NARROW_BITS(e4m3, uint8_t, 7, 0x7eu, 0xffu)
PA_NARROW_BITS(e5m2, uint8_t, 7, 0x7cu, 0x7cu)

#endif
