/* pa_cpp.h: declarations for kernels in C++17: float16, bfloat16 and complex<T> with operators, min and max, and on
   CPUs CUDA's and HIP's keywords and atomics. Wrappers over the C headers. */
#ifndef PA_CPP_H
#define PA_CPP_H
#include "pa_base.h"
#include "pa_complex.h"
#include "pa_float8.h"

#ifdef __HIPCC_RTC__ /* which NVRTC has without a header */
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __SIZE_TYPE__ size_t;
#endif

#if !PA_GPU
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __ldg(p) (*(p))

/* The types decide, as in CUDA: floats give the number where one is a NaN. */
template <typename C> PA_FN C pa_less(C a, C b) { return b < a ? b : a; }
template <typename C> PA_FN C pa_more(C a, C b) { return b > a ? b : a; }
PA_FN float pa_less(float a, float b) { return pa_fmin_f32(a, b); }
PA_FN double pa_less(double a, double b) { return pa_fmin_f64(a, b); }
PA_FN float pa_more(float a, float b) { return pa_fmax_f32(a, b); }
PA_FN double pa_more(double a, double b) { return pa_fmax_f64(a, b); }
template <typename A, typename B> PA_FN auto min(A a, B b) -> decltype(a + b)
{
    return pa_less<>((decltype(a + b))a, (decltype(a + b))b);
}
template <typename A, typename B> PA_FN auto max(A a, B b) -> decltype(a + b)
{
    return pa_more<>((decltype(a + b))a, (decltype(a + b))b);
}
PA_FN float rsqrt(float x) { return 1 / sqrtf(x); }
PA_FN double rsqrt(double x) { return 1 / sqrt(x); }
PA_FN float rsqrtf(float x) { return 1 / sqrtf(x); }

/* What a compare-and-swap of the same size can hold. */
template <int N> struct pa_word;
template <> struct pa_word<4> { typedef uint32_t type; };
template <> struct pa_word<8> { typedef uint64_t type; };
template <typename T, typename F> PA_FN T pa_atomic_change(T *p, F change)
{
    typedef typename pa_word<sizeof(T)>::type W;
    union { W word; T value; } old, next;
    old.word = __atomic_load_n((W *)p, __ATOMIC_RELAXED);
    do next.value = change(old.value);
    while (!__atomic_compare_exchange_n((W *)p, &old.word, next.word, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return old.value;
}
#define PA_ATOMIC(name, result)                                                                                        \
    template <typename T, typename U> PA_FN T name(T *p, U v)                                                          \
    {                                                                                                                  \
        return pa_atomic_change(p, [v](T x) { return (T)(result); });                                                  \
    }
PA_ATOMIC(atomicAdd, x + v) PA_ATOMIC(atomicSub, x - v) PA_ATOMIC(atomicExch, v) PA_ATOMIC(atomicMin, v < x ? v : x)
PA_ATOMIC(atomicMax, v > x ? v : x) PA_ATOMIC(atomicAnd, x & v) PA_ATOMIC(atomicOr, x | v) PA_ATOMIC(atomicXor, x ^ v)
#undef PA_ATOMIC
template <typename T, typename U, typename V> PA_FN T atomicCAS(T *p, U expected, V v)
{
    return pa_atomic_change(p, [=](T x) { return x == (T)expected ? (T)v : x; });
}
#endif

/* Computes in float and rounds where it is stored, as the float16 of CUDA's headers does. */
#define PA_NARROW_CLASS(name, S)                                                                                       \
    struct name {                                                                                                      \
        pa_##S h;                                                                                                      \
        name() = default;                                                                                              \
        __device__ name(float x) : h(pa_##S##_from_f32(x)) {}                                                          \
        /* every other number is a double, or rounds to one as it would to this */                                     \
        template <typename T> __device__ name(T x) : h(pa_##S##_from_f64((double)x)) {}                                \
        __device__ operator float() const { return pa_f32_from_##S(h); }                                               \
        template <typename T> __device__ name &operator+=(T x) { return *this = name((float)*this + x); }              \
        template <typename T> __device__ name &operator-=(T x) { return *this = name((float)*this - x); }              \
        template <typename T> __device__ name &operator*=(T x) { return *this = name((float)*this * x); }              \
        template <typename T> __device__ name &operator/=(T x) { return *this = name((float)*this / x); }              \
    };
PA_NARROW_CLASS(float16, f16)
PA_NARROW_CLASS(bfloat16, bf16)
PA_NARROW_CLASS(float8_e4m3fn, e4m3)
PA_NARROW_CLASS(float8_e5m2, e5m2)
#undef PA_NARROW_CLASS

template <typename T> struct complex;
PA_FN complex<float> pa_cpp(pa_c64 z);
PA_FN complex<double> pa_cpp(pa_c128 z);

/* Names and alignment are those of thrust::complex. */
template <typename T> struct alignas(2 * sizeof(T)) complex {
    typedef T value_type;
    T re, im;
    complex() = default;
    __device__ complex(T x, T y) : re(x), im(y) {}
    template <typename U> __device__ complex(U x) : re((T)x), im(0) {}
    template <typename U> __device__ complex(const complex<U> &z) : re((T)z.re), im((T)z.im) {}
    __device__ T real() const { return re; }
    __device__ T imag() const { return im; }
    __device__ void real(T x) { re = x; }
    __device__ void imag(T y) { im = y; }
    template <typename U> __device__ complex &operator+=(U w) { return *this = *this + complex(w); }
    template <typename U> __device__ complex &operator-=(U w) { return *this = *this - complex(w); }
    template <typename U> __device__ complex &operator*=(U w) { return *this = *this * complex(w); }
    template <typename U> __device__ complex &operator/=(U w) { return *this = *this / complex(w); }
    __device__ complex operator-() const { return complex(-re, -im); }
    __device__ complex operator+() const { return *this; }
};
PA_FN complex<float> pa_cpp(pa_c64 z) { return complex<float>(z.re, z.im); }
PA_FN complex<double> pa_cpp(pa_c128 z) { return complex<double>(z.re, z.im); }
PA_FN pa_c64 pa_c(complex<float> z) { return pa_make_c64(z.re, z.im); }
PA_FN pa_c128 pa_c(complex<double> z) { return pa_make_c128(z.re, z.im); }
PA_FN pa_c64 pa_cpp_div(pa_c64 z, pa_c64 w) { return pa_div_c64(z, w); }
PA_FN pa_c128 pa_cpp_div(pa_c128 z, pa_c128 w) { return pa_div_c128(z, w); }

/* The wider of two complex numbers, or of one and a number. */
template <typename T, typename U> struct pa_wider { typedef complex<decltype(T() + U())> type; };
template <typename T> struct pa_is_number { static const bool value = false; };
#define PA_NUMBER(T) template <> struct pa_is_number<T> { static const bool value = true; };
PA_NUMBER(bool) PA_NUMBER(char) PA_NUMBER(signed char) PA_NUMBER(unsigned char) PA_NUMBER(short)
PA_NUMBER(unsigned short) PA_NUMBER(int) PA_NUMBER(unsigned) PA_NUMBER(long) PA_NUMBER(unsigned long)
PA_NUMBER(long long) PA_NUMBER(unsigned long long) PA_NUMBER(float) PA_NUMBER(double) PA_NUMBER(float16)
PA_NUMBER(bfloat16) PA_NUMBER(float8_e4m3fn) PA_NUMBER(float8_e5m2)
#undef PA_NUMBER
/* A number takes the width of the complex one, but for double. */
template <typename T, typename U, bool = pa_is_number<U>::value> struct pa_joined {};
template <typename T, typename U> struct pa_joined<T, U, true> { typedef complex<T> type; };
template <> struct pa_joined<float, double, true> { typedef complex<double> type; };

template <typename C> PA_FN C pa_sum(C z, C w) { return C(z.re + w.re, z.im + w.im); }
template <typename C> PA_FN C pa_difference(C z, C w) { return C(z.re - w.re, z.im - w.im); }
template <typename C> PA_FN C pa_product(C z, C w) { return C(z.re * w.re - z.im * w.im, z.re * w.im + z.im * w.re); }
template <typename C> PA_FN C pa_quotient(C z, C w) { return pa_cpp(pa_cpp_div(pa_c(z), pa_c(w))); }
#define PA_OPERATOR(op, fn)                                                                                            \
    template <typename T, typename U>                                                                                  \
    PA_FN typename pa_wider<T, U>::type operator op(const complex<T> &z, const complex<U> &w)                          \
    {                                                                                                                  \
        typedef typename pa_wider<T, U>::type C;                                                                       \
        return fn(C(z), C(w));                                                                                         \
    }                                                                                                                  \
    template <typename T, typename U> PA_FN typename pa_joined<T, U>::type operator op(const complex<T> &z, U x)       \
    {                                                                                                                  \
        typedef typename pa_joined<T, U>::type C;                                                                      \
        return fn(C(z), C(x));                                                                                         \
    }                                                                                                                  \
    template <typename T, typename U> PA_FN typename pa_joined<T, U>::type operator op(U x, const complex<T> &z)       \
    {                                                                                                                  \
        typedef typename pa_joined<T, U>::type C;                                                                      \
        return fn(C(x), C(z));                                                                                         \
    }
PA_OPERATOR(+, pa_sum) PA_OPERATOR(-, pa_difference) PA_OPERATOR(*, pa_product) PA_OPERATOR(/, pa_quotient)
#undef PA_OPERATOR
template <typename T, typename U>
PA_FN bool operator==(const complex<T> &z, const complex<U> &w) { return (z.re == w.re) & (z.im == w.im); }
template <typename T, typename U> PA_FN bool operator!=(const complex<T> &z, const complex<U> &w) { return !(z == w); }
template <typename T, typename U, typename = typename pa_joined<T, U>::type>
PA_FN bool operator==(const complex<T> &z, U x)
{
    return (z.re == x) & (z.im == 0);
}
template <typename T, typename U, typename = typename pa_joined<T, U>::type>
PA_FN bool operator!=(const complex<T> &z, U x)
{
    return !(z == x);
}

template <typename T> PA_FN T real(const complex<T> &z) { return z.re; }
template <typename T> PA_FN T imag(const complex<T> &z) { return z.im; }
template <typename T> PA_FN complex<T> conj(const complex<T> &z) { return complex<T>(z.re, -z.im); }
template <typename T> PA_FN T norm(const complex<T> &z) { return z.re * z.re + z.im * z.im; }
PA_FN float abs(const complex<float> &z) { return pa_abs_c64(pa_c(z)); }
PA_FN double abs(const complex<double> &z) { return pa_abs_c128(pa_c(z)); }
PA_FN float arg(const complex<float> &z) { return pa_angle_c64(pa_c(z)); }
PA_FN double arg(const complex<double> &z) { return pa_angle_c128(pa_c(z)); }
#define PA_FUNCTION(name)                                                                                              \
    PA_FN complex<float> name(const complex<float> &z) { return pa_cpp(pa_##name##_c64(pa_c(z))); }                    \
    PA_FN complex<double> name(const complex<double> &z) { return pa_cpp(pa_##name##_c128(pa_c(z))); }
PA_FUNCTION(exp) PA_FUNCTION(log) PA_FUNCTION(log10) PA_FUNCTION(sqrt) PA_FUNCTION(sin) PA_FUNCTION(cos)
PA_FUNCTION(tan) PA_FUNCTION(sinh) PA_FUNCTION(cosh) PA_FUNCTION(tanh) PA_FUNCTION(asin) PA_FUNCTION(acos)
PA_FUNCTION(atan) PA_FUNCTION(asinh) PA_FUNCTION(acosh) PA_FUNCTION(atanh)
#undef PA_FUNCTION
PA_FN complex<float> pow(const complex<float> &z, const complex<float> &w)
{
    return pa_cpp(pa_pow_c64(pa_c(z), pa_c(w)));
}
PA_FN complex<double> pow(const complex<double> &z, const complex<double> &w)
{
    return pa_cpp(pa_pow_c128(pa_c(z), pa_c(w)));
}
template <typename T, typename U> PA_FN typename pa_joined<T, U>::type pow(const complex<T> &z, U x)
{
    typedef typename pa_joined<T, U>::type C;
    return pow(C(z), C(x));
}
template <typename T> PA_FN complex<T> polar(T r, T angle) { return complex<T>(r * cos(angle), r * sin(angle)); }
template <typename T> using pa_complex = complex<T>;
namespace thrust { template <typename T> using complex = pa_complex<T>; }

#endif
