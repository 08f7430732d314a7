/* pa_real.h: float32 and float64 functions. pa_<function>_<f32|f64>, one name for each on every target, and float ->
   int casts. Link with -lm. (glibc's libm.so is a linker script that brings libmvec in where it is needed; nothing else
   is to be added.) */
#ifndef PA_REAL_H
#define PA_REAL_H
#include "pa_base.h"
#if !PA_GPU && (defined(__FMA__) || defined(__ARM_FEATURE_FMA))
#include "pa_exp_cpu.h"
#endif

/* libmvec: glibc's vector versions of libm functions. The attribute tells GCC's vectoriser that they exist; the
   declarations of math.h say so only under -ffast-math, which would take inf and NaN away from everything else. On are
   those whose special values were found right and whose error stays below 4 ULP (tests/unit/test_device_headers.py). */
#if !PA_GPU && defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) &&                \
    !defined(PA_NO_LIBMVEC)
#define PA_SIMD __attribute__((simd("notinbranch")))
#ifdef __cplusplus
#define PA_LIBM1(fn) extern "C" PA_SIMD float fn##f(float) noexcept; extern "C" PA_SIMD double fn(double) noexcept;
#define PA_LIBM2(fn) \
    extern "C" PA_SIMD float fn##f(float, float) noexcept; extern "C" PA_SIMD double fn(double, double) noexcept;
#else
#define PA_LIBM1(fn) PA_SIMD extern float fn##f(float); PA_SIMD extern double fn(double);
#define PA_LIBM2(fn) PA_SIMD extern float fn##f(float, float); PA_SIMD extern double fn(double, double);
#endif
#if __GLIBC_PREREQ(2, 22)
PA_LIBM1(sin) PA_LIBM1(cos) PA_LIBM1(exp) PA_LIBM1(log) PA_LIBM2(pow)
#endif
#if __GLIBC_PREREQ(2, 35)
PA_LIBM1(tan) PA_LIBM1(asin) PA_LIBM1(acos) PA_LIBM1(atan) PA_LIBM1(sinh) PA_LIBM1(cosh) PA_LIBM1(tanh)
PA_LIBM1(asinh) PA_LIBM1(acosh) PA_LIBM1(atanh) PA_LIBM1(exp2) PA_LIBM1(expm1) PA_LIBM1(log2) PA_LIBM1(log10)
PA_LIBM1(log1p) PA_LIBM1(cbrt) PA_LIBM1(erf) PA_LIBM1(erfc) PA_LIBM2(atan2) PA_LIBM2(hypot)
#endif
#undef PA_LIBM1
#undef PA_LIBM2
#undef PA_SIMD
#endif

#define PA_REAL1(name, fn)                                                                                             \
    PA_FN float pa_##name##_f32(float x) { return fn##f(x); }                                                          \
    PA_FN double pa_##name##_f64(double x) { return fn(x); }
#define PA_REAL2(name, fn)                                                                                             \
    PA_FN float pa_##name##_f32(float x, float y) { return fn##f(x, y); }                                              \
    PA_FN double pa_##name##_f64(double x, double y) { return fn(x, y); }
PA_REAL1(sin, sin) PA_REAL1(cos, cos) PA_REAL1(tan, tan) PA_REAL1(asin, asin) PA_REAL1(acos, acos) PA_REAL1(atan, atan)
PA_REAL1(sinh, sinh) PA_REAL1(cosh, cosh) PA_REAL1(tanh, tanh) PA_REAL1(asinh, asinh) PA_REAL1(acosh, acosh)
PA_REAL1(atanh, atanh) PA_REAL1(exp2, exp2) PA_REAL1(expm1, expm1)
#if PA_GPU
PA_REAL1(exp, exp)
#else
/* libmvec takes what becomes 0 one by one, several times slower, and masked scores (-inf) are such. By bits: of choices
   gcc makes branches, and then the exponential of x again. */
#define PA_EXP(S, exp, T, LEAST)                                                                                       \
    const T keep = (T)(x < LEAST) - 1;                                                                                 \
    return pa_##S##_bits(pa_bits_##S(exp(pa_##S##_bits(pa_bits_##S(x) & keep))) & keep);
#ifndef PA_EXP_CPU_H
PA_FN float pa_exp_f32(float x) { PA_EXP(f32, expf, uint32_t, -104.0f) }
#endif
PA_FN double pa_exp_f64(double x) { PA_EXP(f64, exp, uint64_t, -746.0) }
#undef PA_EXP
#endif
/* As the hardware of GPUs has them: within 2^-21 of the result, and 0 for a subnormal one. */
#if PA_CUDA
PA_FN float pa_approx_exp2_f32(float x) { float y; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
PA_FN float pa_approx_recip_f32(float x) { float y; asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
#elif PA_GPU && defined(__AMDGCN__)
PA_FN float pa_approx_exp2_f32(float x) { return exp2f(x); } /* old compilers have no builtin for the instruction */
PA_FN float pa_approx_recip_f32(float x) { return __builtin_amdgcn_rcpf(x); }
#else
PA_FN float pa_approx_exp2_f32(float x) { return exp2f(x); }
PA_FN float pa_approx_recip_f32(float x) { return 1 / x; }
#endif
PA_FN double pa_approx_exp2_f64(double x) { return exp2(x); }
PA_FN double pa_approx_recip_f64(double x) { return 1 / x; }
PA_REAL1(log, log) PA_REAL1(log2, log2) PA_REAL1(log10, log10) PA_REAL1(log1p, log1p)
#if PA_GPU && !PA_CUDA
/* hiprtc takes the hardware's root, which may be off by one place; the double one, rounded, is not. */
PA_FN float pa_sqrt_f32(float x) { return (float)sqrt((double)x); }
PA_FN double pa_sqrt_f64(double x) { return sqrt(x); }
#else
PA_REAL1(sqrt, sqrt)
#endif
PA_REAL1(cbrt, cbrt) PA_REAL1(floor, floor) PA_REAL1(ceil, ceil) PA_REAL1(trunc, trunc)
PA_REAL1(rint, rint) PA_REAL1(round, rint) PA_REAL1(fabs, fabs) PA_REAL1(abs, fabs)
PA_REAL1(erf, erf) PA_REAL1(erfc, erfc) PA_REAL1(lgamma, lgamma) PA_REAL1(tgamma, tgamma)
PA_REAL2(pow, pow) PA_REAL2(atan2, atan2) PA_REAL2(hypot, hypot) PA_REAL2(copysign, copysign)
PA_REAL2(nextafter, nextafter)
PA_FN float pa_fma_f32(float a, float b, float c) { return fmaf(a, b, c); }
PA_FN double pa_fma_f64(double a, double b, double c) { return fma(a, b, c); }

/* Remainder of truncating division, exact. Below 2^mantissa the float quotient truncates to the right integer or, by
   rounding up, to one more, and a - q*b is exact in one fused step: it is a multiple of the smaller last place and no
   larger than b. libm's fmod, one bit of quotient at a time, is left for the rest (huge or non-finite quotients, no
   FMA). */
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define PA_FMOD(a, b, fmod, fma, trunc, fabs, copysign, limit)                                                         \
    q = a / b;                                                                                                         \
    if (!(fabs(q) < limit) | (b - b != 0)) return fmod(a, b); /* b - b: 0 * infinity would make a NaN below */         \
    r = fma(-trunc(q), b, a);                                                                                          \
    /* one too many: the remainder has crossed zero */                                                                 \
    r = (a < 0 ? r > 0 : r < 0) ? r + copysign(b, a) : r;                                                              \
    return copysign(r, a);
#else
#define PA_FMOD(a, b, fmod, fma, trunc, fabs, copysign, limit) (void)q; (void)r; return fmod(a, b);
#endif
PA_FN float pa_fmod_f32(float a, float b)
{
    float q, r; PA_FMOD(a, b, fmodf, fmaf, truncf, fabsf, copysignf, 8388608.0f)
}
PA_FN double pa_fmod_f64(double a, double b)
{
    double q, r; PA_FMOD(a, b, fmod, fma, trunc, fabs, copysign, 4503599627370496.0)
}

/* Truncation of floats. What is out of range, and NaN, becomes the least integer, as x86-64 has it, and with it NumPy;
   other CPUs do what they do. GPUs saturate by themselves, and to their compilers such a conversion is undefined. */
#if PA_GPU
#define PA_TO_I32(x, F) (fabs##F(x) < 2147483648.0##F ? (int32_t)(x) : (int32_t)0x80000000u)
#define PA_TO_I64(x, F) (fabs##F(x) < 9223372036854775808.0##F ? (int64_t)(x) : (int64_t)0x8000000000000000ull)
#else
#define PA_TO_I32(x, F) ((int32_t)(x))
#define PA_TO_I64(x, F) ((int64_t)(x))
#endif

/* A NaN in either argument is the answer (numpy.maximum). One choice behind the other: so chains of them vectorise. A
   GPU may have an instruction, whose NaN has no payload and for which -0 is less than 0. */
#define PA_EXTREMES(S, T)                                                                                              \
    PA_FN T pa_max_##S(T a, T b) { T r = b > a ? b : a; return b != b ? b : r; }                                       \
    PA_FN T pa_min_##S(T a, T b) { T r = b < a ? b : a; return b != b ? b : r; }
#if PA_CUDA && __CUDA_ARCH__ >= 800
PA_FN float pa_max_f32(float a, float b)
{
    float r;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
    return r;
}
PA_FN float pa_min_f32(float a, float b)
{
    float r;
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
    return r;
}
#else
PA_EXTREMES(f32, float)
#endif
PA_EXTREMES(f64, double)

/* S suffix, T type, F libm suffix, SHIFT place of the sign bit */
#define PA_REAL(S, T, F, SHIFT, INF, LN2)                                                                              \
    PA_FN bool pa_isnan_##S(T x) { return x != x; }                                                                    \
    PA_FN bool pa_isinf_##S(T x) { return fabs##F(x) == INF; }                                                         \
    PA_FN bool pa_isfinite_##S(T x) { return fabs##F(x) < INF; }                                                       \
    PA_FN bool pa_signbit_##S(T x) { return (bool)(pa_bits_##S(x) >> SHIFT); }                                         \
    /* +-0 -> 0, NaN -> NaN (numpy.sign) */                                                                            \
    PA_FN T pa_sign_##S(T x) { return x > 0 ? (T)1 : x < 0 ? (T)-1 : x == 0 ? (T)0 : x; }                              \
    PA_FN T pa_square_##S(T x) { return x * x; }                                                                       \
    PA_FN T pa_recip_##S(T x) { return 1 / x; }                                                                        \
    PA_FN T pa_rsqrt_##S(T x) { return 1 / pa_sqrt_##S(x); }                                                           \
    PA_FN T pa_neg_##S(T x) { return -x; }                                                                             \
    /* a NaN loses (numpy.fmax) */                                                                                     \
    PA_FN T pa_fmax_##S(T a, T b) { T r = b > a ? b : a; return a != a ? b : r; }                                      \
    PA_FN T pa_fmin_##S(T a, T b) { T r = b < a ? b : a; return a != a ? b : r; }                                      \
    /* npy_remainder: the divisor's sign, also on a zero; fmod makes b = 0 a NaN */                                    \
    PA_FN T pa_mod_##S(T a, T b)                                                                                       \
    {                                                                                                                  \
        T m = pa_fmod_##S(a, b);                                                                                       \
        return copysign##F(((m != 0) & ((b < 0) != (m < 0))) ? m + b : m, b);                                          \
    }                                                                                                                  \
    /* npy_floor_divide: the quotient of what the remainder leaves, snapped to the nearest integer, a zero with the    \
       sign of a/b (which every other result has anyway); b = 0 gives a/b */                                           \
    PA_FN T pa_floordiv_##S(T a, T b)                                                                                  \
    {                                                                                                                  \
        T m = pa_fmod_##S(a, b), q = (a - m) / b, f;                                                                   \
        q = ((m != 0) & ((b < 0) != (m < 0))) ? q - 1 : q;                                                             \
        f = floor##F(q);                                                                                               \
        f = q - f > (T)0.5 ? f + 1 : f;                                                                                \
        return b == 0 ? a / b : copysign##F(f, a / b);                                                                 \
    }                                                                                                                  \
    /* log(exp(a) + exp(b)) = max + log1p(exp(-|a - b|)); equal infinities have no difference (npy_logaddexp) */       \
    PA_FN T pa_logaddexp_##S(T a, T b)                                                                                 \
    {                                                                                                                  \
        T r = pa_max_##S(a, b) + log1p##F(exp##F(-fabs##F(a - b)));                                                    \
        return a == b ? a + (T)LN2 : r;                                                                                \
    }                                                                                                                  \
    PA_FN T pa_logaddexp2_##S(T a, T b)                                                                                \
    {                                                                                                                  \
        T r = pa_max_##S(a, b) + log1p##F(exp2##F(-fabs##F(a - b))) * (T)1.4426950408889634074;                        \
        return a == b ? a + 1 : r;                                                                                     \
    }                                                                                                                  \
    PA_FN T pa_heaviside_##S(T x, T h) { return x > 0 ? (T)1 : x < 0 ? (T)0 : x == 0 ? h : x; }                        \
    /* Casts as NumPy's on x86-64. Narrow types go through int32, so that they vectorise and -1.0 -> 255. */           \
    PA_FN bool pa_cast_##S##_b(T x) { return x != 0; }                                                                 \
    PA_FN int8_t pa_cast_##S##_i8(T x) { return (int8_t)PA_TO_I32(x, F); }                                             \
    PA_FN int16_t pa_cast_##S##_i16(T x) { return (int16_t)PA_TO_I32(x, F); }                                          \
    PA_FN int32_t pa_cast_##S##_i32(T x) { return PA_TO_I32(x, F); }                                                   \
    PA_FN int64_t pa_cast_##S##_i64(T x) { return PA_TO_I64(x, F); }                                                   \
    PA_FN uint8_t pa_cast_##S##_u8(T x) { return (uint8_t)PA_TO_I32(x, F); }                                           \
    PA_FN uint16_t pa_cast_##S##_u16(T x) { return (uint16_t)PA_TO_I32(x, F); }                                        \
    /* the upper half is moved down by half the range, as x86 without AVX-512 has signed conversions only */           \
    PA_FN uint32_t pa_cast_##S##_u32(T x)                                                                              \
    {                                                                                                                  \
        bool high = x >= (T)2147483648.0;                                                                              \
        T low = high ? x - (T)2147483648.0 : x;                                                                        \
        return (uint32_t)PA_TO_I32(low, F) ^ (high ? 0x80000000u : 0u);                                                \
    }                                                                                                                  \
    PA_FN uint64_t pa_cast_##S##_u64(T x)                                                                              \
    {                                                                                                                  \
        bool high = x >= (T)9223372036854775808.0;                                                                     \
        T low = high ? x - (T)9223372036854775808.0 : x;                                                               \
        return (uint64_t)PA_TO_I64(low, F) ^ (high ? 0x8000000000000000ull : 0ull);                                    \
    }
PA_REAL(f32, float, f, 31, PA_INF_F32, 0.69314718055994530942)
PA_REAL(f64, double, , 63, PA_INF_F64, 0.69314718055994530942)

#undef PA_REAL1
#undef PA_REAL2
#undef PA_FMOD
#undef PA_REAL
#undef PA_EXTREMES
#undef PA_TO_I32
#undef PA_TO_I64
#endif
