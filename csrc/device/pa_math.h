/* pa_math.h: the functions of math.h on a CPU. Declared here, since compilers take longer to parse the system's header
   than to compile a small kernel. In C++ they have their float overloads, and take integers and mixed types as doubles.
   A text that includes system headers would declare them again: with PA_SYSTEM_MATH the system's header is included
   instead. */
#ifndef PA_MATH_H
#define PA_MATH_H

#ifdef __cplusplus
#define PA_MATH_C(...) extern "C" __VA_ARGS__ noexcept;
template <typename T> struct pa_math_integer {};
#define PA_MATH_INTEGER(T) template <> struct pa_math_integer<T> { typedef double real; };
PA_MATH_INTEGER(bool) PA_MATH_INTEGER(char) PA_MATH_INTEGER(signed char) PA_MATH_INTEGER(unsigned char)
PA_MATH_INTEGER(short) PA_MATH_INTEGER(unsigned short) PA_MATH_INTEGER(int) PA_MATH_INTEGER(unsigned)
PA_MATH_INTEGER(long) PA_MATH_INTEGER(unsigned long) PA_MATH_INTEGER(long long) PA_MATH_INTEGER(unsigned long long)
#define PA_MATH_OVERLOADS1(name)                                                                                       \
    static inline float name(float x) { return name##f(x); }                                                           \
    template <typename T> static inline typename pa_math_integer<T>::real name(T x) { return name((double)x); }
#define PA_MATH_OVERLOADS2(name)                                                                                       \
    static inline float name(float x, float y) { return name##f(x, y); }                                               \
    template <typename A, typename B> static inline auto name(A x, B y) -> decltype((double)(x + y))                   \
    {                                                                                                                  \
        return name((double)x, (double)y);                                                                             \
    }
#else
#define PA_MATH_C(...) __VA_ARGS__;
#define PA_MATH_OVERLOADS1(name)
#define PA_MATH_OVERLOADS2(name)
#endif
#define PA_MATH1(name) PA_MATH_C(double name(double)) PA_MATH_C(float name##f(float)) PA_MATH_OVERLOADS1(name)
#define PA_MATH2(name)                                                                                                 \
    PA_MATH_C(double name(double, double)) PA_MATH_C(float name##f(float, float)) PA_MATH_OVERLOADS2(name)

PA_MATH1(sin) PA_MATH1(cos) PA_MATH1(tan) PA_MATH1(asin) PA_MATH1(acos) PA_MATH1(atan) PA_MATH1(sinh) PA_MATH1(cosh)
PA_MATH1(tanh) PA_MATH1(asinh) PA_MATH1(acosh) PA_MATH1(atanh) PA_MATH1(exp) PA_MATH1(exp2) PA_MATH1(expm1)
PA_MATH1(log) PA_MATH1(log2) PA_MATH1(log10) PA_MATH1(log1p) PA_MATH1(logb) PA_MATH1(sqrt) PA_MATH1(cbrt)
PA_MATH1(floor) PA_MATH1(ceil) PA_MATH1(trunc) PA_MATH1(rint) PA_MATH1(nearbyint) PA_MATH1(round) PA_MATH1(fabs)
PA_MATH1(erf) PA_MATH1(erfc) PA_MATH1(lgamma) PA_MATH1(tgamma) PA_MATH1(j0) PA_MATH1(j1) PA_MATH1(y0) PA_MATH1(y1)
PA_MATH2(pow) PA_MATH2(atan2) PA_MATH2(hypot) PA_MATH2(fmod) PA_MATH2(remainder) PA_MATH2(fmax) PA_MATH2(fmin)
PA_MATH2(fdim) PA_MATH2(copysign) PA_MATH2(nextafter)
PA_MATH_C(double fma(double, double, double)) PA_MATH_C(float fmaf(float, float, float))
PA_MATH_C(double ldexp(double, int)) PA_MATH_C(float ldexpf(float, int))
PA_MATH_C(double scalbn(double, int)) PA_MATH_C(float scalbnf(float, int))
PA_MATH_C(double frexp(double, int *)) PA_MATH_C(float frexpf(float, int *))
PA_MATH_C(double modf(double, double *)) PA_MATH_C(float modff(float, float *))
PA_MATH_C(int ilogb(double)) PA_MATH_C(int ilogbf(float))
PA_MATH_C(int abs(int)) PA_MATH_C(long labs(long)) PA_MATH_C(long long llabs(long long))
PA_MATH_C(long lrint(double)) PA_MATH_C(long lrintf(float)) PA_MATH_C(long long llrint(double))
PA_MATH_C(long long llrintf(float))
PA_MATH_C(long lround(double)) PA_MATH_C(long lroundf(float))
PA_MATH_C(long long llround(double)) PA_MATH_C(long long llroundf(float))

#ifdef __cplusplus
static inline float pow(float x, int n) { return powf(x, (float)n); }
static inline float fma(float x, float y, float z) { return fmaf(x, y, z); }
static inline float ldexp(float x, int n) { return ldexpf(x, n); }
static inline float scalbn(float x, int n) { return scalbnf(x, n); }
static inline float frexp(float x, int *n) { return frexpf(x, n); }
static inline float modf(float x, float *n) { return modff(x, n); }
static inline int ilogb(float x) { return ilogbf(x); }
static inline float abs(float x) { return fabsf(x); }
static inline double abs(double x) { return fabs(x); }
static inline long abs(long x) { return x < 0 ? -x : x; }
static inline long long abs(long long x) { return x < 0 ? -x : x; }
#define PA_MATH_CLASS(name)                                                                                            \
    static inline bool name(float x) { return __builtin_##name(x); }                                                   \
    static inline bool name(double x) { return __builtin_##name(x); }
PA_MATH_CLASS(isnan) PA_MATH_CLASS(isinf) PA_MATH_CLASS(isfinite) PA_MATH_CLASS(signbit)
#undef PA_MATH_CLASS
#ifndef PA_GRID_CPU /* the run-time compilers of GPUs have no such words */
#define INFINITY (__builtin_inff())
#define NAN (__builtin_nanf(""))
#define M_E 2.7182818284590452354
#define M_PI 3.14159265358979323846
#define M_LN2 0.69314718055994530942
#define M_SQRT2 1.41421356237309504880
#endif
#endif
#undef PA_MATH1
#undef PA_MATH2
#undef PA_MATH_C
#undef PA_MATH_INTEGER
#undef PA_MATH_OVERLOADS1
#undef PA_MATH_OVERLOADS2
#endif
