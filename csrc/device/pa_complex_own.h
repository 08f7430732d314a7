/* pa_complex_own.h: complex functions for targets without <complex.h>. Sources: the identities by parts; W. Kahan,
   "Branch cuts for complex elementary functions", 1987, for square roots and inverses; special values as in C11 Annex
   G. PA_COMPLEX_OWN puts them on the CPU, where the tests compare them with libm. complex64 goes through them in
   double. */
#ifndef PA_COMPLEX_OWN_H
#define PA_COMPLEX_OWN_H

/* exp(700): splits exponentials that overflow where their product with a sine may not */
#define PA_E700 1.0142320547350045e+304
#define PA_LN2 0.69314718055994530942
#define PA_HALF_PI 1.57079632679489661923

/* exp(x) (c + i s) for finite c, s and any x: factors in steps that cannot overflow before the product does */
PA_FN pa_c128 pa_own_polar(double x, double c, double s)
{
    double e;
    int32_t i;
    for (i = 0; i < 2 && x > 700; i++) {
        x -= 700;
        c *= PA_E700;
        s *= PA_E700;
    }
    e = exp(x);
    return pa_make_c128(e * c, e * s);
}

PA_FN pa_c128 pa_exp_c128(pa_c128 z)
{
    if (z.im == 0) return pa_make_c128(exp(z.re), z.im);
    if (!pa_isfinite_f64(z.im)) {
        if (z.re == -PA_INF_F64) return pa_make_c128(0, 0);
        return pa_make_c128(z.re == PA_INF_F64 ? z.re : PA_NAN_F64, PA_NAN_F64);
    }
    return pa_own_polar(z.re, cos(z.im), sin(z.im));
}

/* log|z|: near the unit circle by log1p of x^2 + y^2 - 1, summed with its rounding errors; a huge |z| is halved
   twice */
PA_FN double pa_own_logabs(double x, double y)
{
    double a = fabs(x), b = fabs(y), h, p, q, s, t, low;
    if (a == PA_INF_F64 || b == PA_INF_F64) return PA_INF_F64;
    if (a < b) { t = a; a = b; b = t; }
    if (a > 4e307) return log(hypot(0.25 * a, 0.25 * b)) + 2 * PA_LN2;
    h = hypot(a, b);
    if (!(h > 0.6 && h < 1.6)) return log(h);
    p = a * a;
    q = b * b;
    low = fma(a, a, -p) + fma(b, b, -q);
    s = p - 1;
    low += (p - (s + 1));
    t = s + q;
    low += (s - (t - (t - s))) + (q - (t - s));
    return 0.5 * log1p(t + low);
}
PA_FN pa_c128 pa_log_c128(pa_c128 z) { return pa_make_c128(pa_own_logabs(z.re, z.im), atan2(z.im, z.re)); }

PA_FN pa_c128 pa_sqrt_c128(pa_c128 z)
{
    double x = z.re, y = z.im, scale = 1, t;
    if ((x == 0) & (y == 0)) return pa_make_c128(0, y);
    if (pa_isinf_f64(y)) return pa_make_c128(PA_INF_F64, y);
    if (pa_isnan_f64(x)) return pa_make_c128(x, x);
    if (pa_isinf_f64(x)) {
        if (x < 0) return pa_make_c128(fabs(y - y), copysign(x, y));
        return pa_make_c128(x, copysign(y - y, y));
    }
    if (pa_isnan_f64(y)) return pa_make_c128(y, y);
    if (fabs(x) > 4e307 || fabs(y) > 4e307) {
        x *= 0.25; /* hypot would overflow */
        y *= 0.25;
        scale = 2;
    } else if (fabs(x) < 0x1p-900 && fabs(y) < 0x1p-900) {
        x *= 0x1p+108; /* subnormals would lose bits */
        y *= 0x1p+108;
        scale = 0x1p-54;
    }
    t = sqrt(0.5 * (fabs(x) + hypot(x, y)));
    if (x >= 0) return pa_make_c128(scale * t, scale * (y / (2 * t)));
    return pa_make_c128(scale * (fabs(y) / (2 * t)), copysign(scale * t, y));
}

PA_FN pa_c128 pa_sinh_c128(pa_c128 z)
{
    double x = z.re, y = z.im;
    pa_c128 w;
    if (y == 0) return pa_make_c128(sinh(x), y);
    if (x == 0) return pa_make_c128(x, sin(y));
    if (!pa_isfinite_f64(y)) return pa_make_c128(pa_isinf_f64(x) ? x : PA_NAN_F64, PA_NAN_F64);
    if (fabs(x) < 700 || x != x) return pa_make_c128(sinh(x) * cos(y), cosh(x) * sin(y));
    w = pa_own_polar(fabs(x), 0.5 * cos(y), 0.5 * sin(y));
    return pa_make_c128(x < 0 ? -w.re : w.re, w.im);
}
PA_FN pa_c128 pa_cosh_c128(pa_c128 z)
{
    double x = z.re, y = z.im;
    pa_c128 w;
    if (y == 0) return pa_make_c128(cosh(x), x != x ? y : copysign(1.0, x) * y);
    if (!pa_isfinite_f64(y)) return pa_make_c128(pa_isinf_f64(x) ? fabs(x) : PA_NAN_F64, x == 0 ? x : PA_NAN_F64);
    if (fabs(x) < 700 || x != x) return pa_make_c128(cosh(x) * cos(y), sinh(x) * sin(y));
    w = pa_own_polar(fabs(x), 0.5 * cos(y), 0.5 * sin(y));
    return pa_make_c128(w.re, x < 0 ? -w.im : w.im);
}
/* Kahan: with t = tan y, s = sinh x, both parts share the denominator 1 + (1 + t^2) s^2 */
PA_FN pa_c128 pa_tanh_c128(pa_c128 z)
{
    double x = z.re, y = z.im, t, b, s, d, e;
    if (pa_isinf_f64(x)) return pa_make_c128(copysign(1.0, x), copysign(0.0, y));
    if (x != x) return pa_make_c128(x, y == 0 ? y : PA_NAN_F64);
    if (!pa_isfinite_f64(y)) return pa_make_c128(x == 0 ? x : PA_NAN_F64, PA_NAN_F64);
    if (fabs(x) > 22) {
        e = exp(-fabs(x));
        return pa_make_c128(copysign(1.0, x), 4 * sin(y) * cos(y) * e * e);
    }
    t = tan(y);
    b = 1 + t * t;
    s = sinh(x);
    d = 1 + b * s * s;
    return pa_make_c128(b * sqrt(1 + s * s) * s / d, t / d);
}

/* f(z) = -i g(iz) */
#define PA_TURNED(f, g)                                                                                                \
    PA_FN pa_c128 pa_##f##_c128(pa_c128 z)                                                                             \
    {                                                                                                                  \
        pa_c128 w = pa_##g##_c128(pa_make_c128(-z.im, z.re));                                                          \
        return pa_make_c128(w.im, -w.re);                                                                              \
    }
PA_TURNED(sin, sinh)
PA_TURNED(tan, tanh)
PA_FN pa_c128 pa_cos_c128(pa_c128 z) { return pa_cosh_c128(pa_make_c128(-z.im, z.re)); }

/* Beyond this size asinh z = log 2z and its kin hold to the last bit, and squares are not needed. Infinities too,
   beside which a NaN still has a direction or a size; beside a finite number it leaves neither. */
PA_FN bool pa_own_far(pa_c128 z)
{
    if (pa_isnan_c128(z)) return pa_isinf_c128(z);
    return fabs(z.re) > 1e15 || fabs(z.im) > 1e15;
}

/* Kahan's inverses: with u = sqrt(1 - z), v = sqrt(1 + z) no step cancels, and the branch cuts follow the signs of
   zeros */
PA_FN pa_c128 pa_asinh_c128(pa_c128 z)
{
    pa_c128 u, v;
    double x = z.re, y = z.im;
    if (pa_own_far(z))
        return pa_make_c128(copysign(pa_own_logabs(x, y) + PA_LN2, x), copysign(atan2(fabs(y), fabs(x)), y));
    if (x != x && y == 0) return z;
    u = pa_sqrt_c128(pa_make_c128(1 + y, -x)); /* asin(w) = -i asinh(iw), w = (-y, x) */
    v = pa_sqrt_c128(pa_make_c128(1 - y, x));
    return pa_make_c128(asinh(u.re * v.im - u.im * v.re), -atan2(-y, u.re * v.re - u.im * v.im));
}
PA_TURNED(asin, asinh)
PA_FN pa_c128 pa_acos_c128(pa_c128 z)
{
    pa_c128 u, v;
    double x = z.re, y = z.im;
    if (pa_own_far(z)) return pa_make_c128(atan2(fabs(y), x), -copysign(pa_own_logabs(x, y) + PA_LN2, y));
    if (x == 0 && y != y) return pa_make_c128(PA_HALF_PI, y);
    u = pa_sqrt_c128(pa_make_c128(1 - x, -y));
    v = pa_sqrt_c128(pa_make_c128(1 + x, y));
    return pa_make_c128(2 * atan2(u.re, v.re), asinh(v.re * u.im - v.im * u.re));
}
PA_FN pa_c128 pa_acosh_c128(pa_c128 z)
{
    pa_c128 u, v;
    double x = z.re, y = z.im;
    if (pa_own_far(z)) return pa_make_c128(pa_own_logabs(x, y) + PA_LN2, copysign(atan2(fabs(y), x), y));
    if (x == 0 && y != y) return pa_make_c128(y, PA_HALF_PI);
    u = pa_sqrt_c128(pa_make_c128(x - 1, y));
    v = pa_sqrt_c128(pa_make_c128(x + 1, y));
    return pa_make_c128(asinh(u.re * v.re + u.im * v.im), 2 * atan2(u.im, v.re));
}
/* log((1 + z)/(1 - z))/2 by parts, for x >= 0; the sign of x is put back */
PA_FN pa_c128 pa_atanh_c128(pa_c128 z)
{
    double x = fabs(z.re), y = z.im, re, d;
    if (pa_own_far(z)) {
        d = hypot(x, y);
        re = pa_isinf_f64(d) ? 0 : x / d / d;
        return pa_make_c128(copysign(re, z.re), y != y ? y : copysign(PA_HALF_PI, y));
    }
    if (x == 0) return pa_make_c128(z.re, atan(y));
    d = (1 - x) * (1 - x) + y * y;
    /* at 1 the squares underflow before the logarithm is out of range */
    re = x == 1 && fabs(y) < 1e-8 ? 0.5 * (PA_LN2 - log(fabs(y))) : 0.25 * log1p(4 * x / d);
    return pa_make_c128(copysign(re, z.re), 0.5 * atan2(2 * y, (1 - x) * (1 + x) - y * y));
}
PA_TURNED(atan, atanh)

#undef PA_TURNED
#undef PA_E700
#undef PA_LN2
#undef PA_HALF_PI
#endif
