/* pa_complex.h: complex64 and complex128. pa_<function>_<c64|c128>. Special values are those of the Array API standard,
   which are C99 Annex G's but for the few noted. The CPU calls libm's complex functions; GPUs, which have none,
   pa_complex_own.h. Not constructed from I: (re + im * I) turns an infinite im into a NaN re. */
#ifndef PA_COMPLEX_H
#define PA_COMPLEX_H
#include "pa_real.h"

/* S suffix, T type, R suffix of a component, F libm suffix */
#define PA_COMPLEX(S, R, T, F, INF, NAN_)                                                                              \
    PA_FN pa_##S pa_make_##S(T re, T im) { pa_##S z; z.re = re; z.im = im; return z; }                                 \
    PA_FN T pa_real_##S(pa_##S z) { return z.re; }                                                                     \
    PA_FN T pa_imag_##S(pa_##S z) { return z.im; }                                                                     \
    PA_FN pa_##S pa_conj_##S(pa_##S z) { return pa_make_##S(z.re, -z.im); }                                            \
    PA_FN pa_##S pa_neg_##S(pa_##S z) { return pa_make_##S(-z.re, -z.im); }                                            \
    PA_FN pa_##S pa_add_##S(pa_##S a, pa_##S b) { return pa_make_##S(a.re + b.re, a.im + b.im); }                      \
    PA_FN pa_##S pa_sub_##S(pa_##S a, pa_##S b) { return pa_make_##S(a.re - b.re, a.im - b.im); }                      \
    /* the plain formula, as NumPy: Annex G's recovery of infinities from NaN would cost every product two tests */    \
    PA_FN pa_##S pa_mul_##S(pa_##S a, pa_##S b)                                                                        \
    {                                                                                                                  \
        return pa_make_##S(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);                                      \
    }                                                                                                                  \
    PA_FN pa_##S pa_square_##S(pa_##S z) { return pa_mul_##S(z, z); }                                                  \
    /* R. L. Smith, "Algorithm 116", 1962, as in NumPy; selects instead of its branch, for vectors */                  \
    PA_FN pa_##S pa_div_##S(pa_##S a, pa_##S b)                                                                        \
    {                                                                                                                  \
        bool wide = fabs##F(b.re) >= fabs##F(b.im), zero = (b.re == 0) & (b.im == 0);                                  \
        T p = wide ? b.re : b.im, q = wide ? b.im : b.re, m = wide ? a.re : a.im, n = wide ? a.im : a.re;              \
        T ratio = q / p, scale = 1 / (p + q * ratio);                                                                  \
        T re = (m + n * ratio) * scale, im = (n - m * ratio) * scale;                                                  \
        re = zero ? a.re / fabs##F(p) : re;                                                                            \
        im = zero ? a.im / fabs##F(p) : wide ? im : -im;                                                               \
        return pa_make_##S(re, im);                                                                                    \
    }                                                                                                                  \
    PA_FN pa_##S pa_recip_##S(pa_##S z) { return pa_div_##S(pa_make_##S(1, 0), z); }                                   \
    PA_FN bool pa_eq_##S(pa_##S a, pa_##S b) { return (a.re == b.re) & (a.im == b.im); }                               \
    PA_FN bool pa_ne_##S(pa_##S a, pa_##S b) { return (a.re != b.re) | (a.im != b.im); }                               \
    PA_FN bool pa_isnan_##S(pa_##S z) { return (z.re != z.re) | (z.im != z.im); }                                      \
    PA_FN bool pa_isinf_##S(pa_##S z) { return (fabs##F(z.re) == INF) | (fabs##F(z.im) == INF); }                      \
    PA_FN bool pa_isfinite_##S(pa_##S z) { return (fabs##F(z.re) < INF) & (fabs##F(z.im) < INF); }                     \
    PA_FN T pa_abs_##S(pa_##S z) { return hypot##F(z.re, z.im); }                                                      \
    PA_FN T pa_angle_##S(pa_##S z) { return atan2##F(z.im, z.re); }                                                    \
    PA_FN pa_##S pa_round_##S(pa_##S z) { return pa_make_##S(rint##F(z.re), rint##F(z.im)); }                          \
    PA_FN bool pa_cast_##S##_b(pa_##S z) { return (z.re != 0) | (z.im != 0); }                                         \
    /* z/|z|, and 0 for 0; a direction where |z| is infinite, as NumPy: +-1 or +-i, NaN where there is none. z is      \
       first scaled, by a power of two, so that |z| neither overflows nor loses its subnormal bits. */                 \
    PA_FN pa_##S pa_sign_##S(pa_##S z)                                                                                 \
    {                                                                                                                  \
        T x = fabs##F(z.re), y = fabs##F(z.im), big = x > y ? x : y, scale, r;                                         \
        bool a = x == INF, b = y == INF;                                                                               \
        if ((z.re != z.re) | (z.im != z.im) | (a & b)) return pa_make_##S(NAN_, NAN_);                                 \
        if (a | b) return pa_make_##S(a ? copysign##F((T)1, z.re) : 0, b ? copysign##F((T)1, z.im) : 0);               \
        if (big == 0) return pa_make_##S(0, 0);                                                                        \
        scale = big > 2 ? (T)0x1p-64 : big < (T)0x1p-60 ? (T)0x1p+64 : (T)1;                                           \
        r = hypot##F(z.re * scale, z.im * scale);                                                                      \
        return pa_make_##S(z.re * scale / r, z.im * scale / r);                                                        \
    }
PA_COMPLEX(c64, f32, float, f, PA_INF_F32, PA_NAN_F32)
PA_COMPLEX(c128, f64, double, , PA_INF_F64, PA_NAN_F64)
#undef PA_COMPLEX
PA_FN pa_c128 pa_c128_from_c64(pa_c64 z) { return pa_make_c128(z.re, z.im); }
PA_FN pa_c64 pa_c64_from_c128(pa_c128 z) { return pa_make_c64((float)z.re, (float)z.im); }

#if PA_GPU || defined(PA_COMPLEX_OWN)
#include "pa_complex_own.h"
#else
/* <complex.h> is not C++'s; the type and its parts are GNU extensions that GCC and Clang know in both languages */
#ifdef __cplusplus
#define PA_EXTERN extern "C"
#define PA_THROWS noexcept
#else
#define PA_EXTERN extern
#define PA_THROWS
#endif
#define PA_LIBM(name, fn)                                                                                              \
    PA_EXTERN float _Complex fn##f(float _Complex) PA_THROWS;                                                          \
    PA_EXTERN double _Complex fn(double _Complex) PA_THROWS;                                                           \
    PA_FN pa_c64 name##_c64(pa_c64 z)                                                                                  \
    {                                                                                                                  \
        float _Complex w;                                                                                              \
        __real__ w = z.re;                                                                                             \
        __imag__ w = z.im;                                                                                             \
        w = fn##f(w);                                                                                                  \
        return pa_make_c64(__real__ w, __imag__ w);                                                                    \
    }                                                                                                                  \
    PA_FN pa_c128 name##_c128(pa_c128 z)                                                                               \
    {                                                                                                                  \
        double _Complex w;                                                                                             \
        __real__ w = z.re;                                                                                             \
        __imag__ w = z.im;                                                                                             \
        w = fn(w);                                                                                                     \
        return pa_make_c128(__real__ w, __imag__ w);                                                                   \
    }
PA_LIBM(pa_exp, cexp) PA_LIBM(pa_log, clog) PA_LIBM(pa_sqrt, csqrt)
PA_LIBM(pa_sin, csin) PA_LIBM(pa_cos, ccos) PA_LIBM(pa_libm_tan, ctan) PA_LIBM(pa_sinh, csinh)
PA_LIBM(pa_cosh, ccosh) PA_LIBM(pa_libm_tanh, ctanh)
PA_LIBM(pa_asin, casin) PA_LIBM(pa_acos, cacos) PA_LIBM(pa_atan, catan)
PA_LIBM(pa_asinh, casinh) PA_LIBM(pa_acosh, cacosh) PA_LIBM(pa_atanh, catanh)
#undef PA_LIBM
#undef PA_EXTERN
#undef PA_THROWS

/* tanh(+inf + yj) is 1 + 0j for every y > 0 in the standard; C99 gives the zero the sign of sin(2y).
   tan(z) = -i tanh(iz) follows. */
#define PA_TANH(S, R, F)                                                                                               \
    PA_FN pa_##S pa_tanh_##S(pa_##S z)                                                                                 \
    {                                                                                                                  \
        if (pa_isinf_##R(z.re)) return pa_make_##S(copysign##F(1, z.re), copysign##F(0, z.im));                        \
        return pa_libm_tanh_##S(z);                                                                                    \
    }                                                                                                                  \
    PA_FN pa_##S pa_tan_##S(pa_##S z)                                                                                  \
    {                                                                                                                  \
        if (pa_isinf_##R(z.im)) return pa_make_##S(copysign##F(0, z.re), copysign##F(1, z.im));                        \
        return pa_libm_tan_##S(z);                                                                                     \
    }
PA_TANH(c64, f32, f) PA_TANH(c128, f64, )
#undef PA_TANH
#endif

/* exp(z) - 1 = expm1(x) cos y - 2 sin^2(y/2) + i exp(x) sin y: nothing cancels near 0. */
PA_FN pa_c128 pa_expm1_c128(pa_c128 z)
{
    double s;
    pa_c128 e;
    if (z.im == 0) return pa_make_c128(expm1(z.re) + 0.0, z.im); /* the standard wants no -0 here */
    if (!pa_isfinite_c128(z) || z.re > 700) {
        e = pa_exp_c128(z);
        return pa_make_c128(e.re - 1, e.im);
    }
    s = sin(0.5 * z.im);
    return pa_make_c128(expm1(z.re) * cos(z.im) - 2 * s * s, exp(z.re) * sin(z.im));
}

/* log(1 + z). The real part is log1p(2x + x^2 + y^2)/2, whose argument cancels along the circle |1 + z| = 1, so it
   is summed with the rounding errors of its parts: products by fma, sums by Knuth's two-sum. Far from the origin
   nothing cancels. */
PA_FN pa_c128 pa_log1p_c128(pa_c128 z)
{
    double x = z.re, y = z.im, p, q, s, t, b, low;
    if (!pa_isfinite_c128(z) || fabs(x) > 3 || fabs(y) > 3)
        return pa_log_c128(pa_make_c128(1 + x, y));
    p = x * x;
    q = y * y;
    low = fma(x, x, -p) + fma(y, y, -q);
    s = 2 * x + p;
    b = s - 2 * x;
    low += (2 * x - (s - b)) + (p - b);
    t = s + q;
    b = t - s;
    low += (s - (t - b)) + (q - b);
    return pa_make_c128(0.5 * log1p(t + low), atan2(y, 1 + x));
}

PA_FN pa_c128 pa_log2_c128(pa_c128 z)
{
    pa_c128 w = pa_log_c128(z);
    return pa_make_c128(w.re * 1.44269504088896340736, w.im * 1.44269504088896340736);
}
PA_FN pa_c128 pa_log10_c128(pa_c128 z)
{
    pa_c128 w = pa_log_c128(z);
    return pa_make_c128(w.re * 0.43429448190325182765, w.im * 0.43429448190325182765);
}

/* npy_cpow: z**0 = 1; 0**w is 0 for Re w > 0 and NaN otherwise; small integer powers by multiplication, which is exact
   where exp(w log z) is not: (1j)**2 = -1. */
PA_FN pa_c128 pa_pow_c128(pa_c128 z, pa_c128 w)
{
    pa_c128 r = pa_make_c128(1, 0), p = z;
    if ((w.re == 0) & (w.im == 0)) return r;
    if ((z.re == 0) & (z.im == 0)) return w.re > 0 ? pa_make_c128(0, 0) : pa_make_c128(PA_NAN_F64, PA_NAN_F64);
    if ((w.im == 0) & (fabs(w.re) < 100) && w.re == trunc(w.re)) {
        int32_t n = (int32_t)fabs(w.re);
        if (w.re == 1) return z;
        for (;;) {
            if (n & 1) r = pa_mul_c128(r, p);
            n >>= 1;
            if (!n) break;
            p = pa_mul_c128(p, p);
        }
        return w.re < 0 ? pa_recip_c128(r) : r;
    }
    return pa_exp_c128(pa_mul_c128(w, pa_log_c128(z)));
}

/* in double: the digits that these formulas lose are then not among those that remain */
#define PA_VIA_C128(fn) \
    PA_FN pa_c64 pa_##fn##_c64(pa_c64 z) { return pa_c64_from_c128(pa_##fn##_c128(pa_c128_from_c64(z))); }
PA_VIA_C128(expm1) PA_VIA_C128(log1p) PA_VIA_C128(log2) PA_VIA_C128(log10)
PA_FN pa_c64 pa_pow_c64(pa_c64 z, pa_c64 w)
{
    return pa_c64_from_c128(pa_pow_c128(pa_c128_from_c64(z), pa_c128_from_c64(w)));
}
#if PA_GPU || defined(PA_COMPLEX_OWN)
PA_VIA_C128(exp) PA_VIA_C128(log) PA_VIA_C128(sqrt) PA_VIA_C128(sin) PA_VIA_C128(cos) PA_VIA_C128(tan)
PA_VIA_C128(sinh) PA_VIA_C128(cosh) PA_VIA_C128(tanh) PA_VIA_C128(asin) PA_VIA_C128(acos) PA_VIA_C128(atan)
PA_VIA_C128(asinh) PA_VIA_C128(acosh) PA_VIA_C128(atanh)
#endif
#undef PA_VIA_C128
#endif
