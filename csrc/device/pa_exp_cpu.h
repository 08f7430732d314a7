/* pa_exp_cpu.h: the exponential of float32 for CPUs with fused multiply-add, within 2 ULP, which compilers vectorise
   where it stands. libm's scalar function takes eight times as long as a loop of these, and libmvec's, where there is
   one, are calls: all vector registers are saved around them. A number gives the same bits in vectors and alone.

   With h the integer next to x / (2 log 2) and r = x - 2 h log 2, exp(x) = exp(r) 2^h 2^h: each factor is a normal
   number, and the last product rounds to subnormal numbers, to 0 and to infinity. 2 log 2 is taken in two parts
   (W. J. Cody and W. Waite, "Software Manual for the Elementary Functions", 1980), of which the first is so short that
   its product with h is exact. exp(r) is a polynomial 1 + r + r^2 q(r), with the coefficients of q that have the least
   relative error where |r| <= log 2, 1.5e-8. */
#ifndef PA_EXP_CPU_H
#define PA_EXP_CPU_H
#include "pa_base.h"

PA_FN float pa_exp_f32(float x)
{
    /* Beyond these, results are infinite or 0. In this order NaN passes, and compilers have instructions for it. */
    const float below = 89.0f < x ? 89.0f : x, inside = below < -104.0f ? -104.0f : below;
    const float shifted = __builtin_fmaf(inside, 0x1.715476p-1f, 0x1.8p23f); /* h in its last bits */
    const float h = shifted - 0x1.8p23f;
    const float r = __builtin_fmaf(h, 0x1.bd0106p-12f, __builtin_fmaf(h, -0x1.63p0f, inside));
    float p = __builtin_fmaf(0x1.9b479ap-13f, r, 0x1.71bee2p-10f);
    p = __builtin_fmaf(p, r, 0x1.11285ap-7f);
    p = __builtin_fmaf(p, r, 0x1.5549fep-5f);
    p = __builtin_fmaf(p, r, 0x1.55550ep-3f);
    p = __builtin_fmaf(p, r, 0x1.00000cp-1f);
    p = __builtin_fmaf(p, r, 1.0f);
    p = __builtin_fmaf(p, r, 1.0f);
    const float power = pa_f32_bits((pa_bits_f32(shifted) << 23) + 0x3f800000u); /* 2^h */
    return p * power * power;
}
#endif
