/* pa_grid_cpu_math.h: the atomics, numeric functions and intrinsics that CUDA and HIP kernels have without an include,
   on a CPU. Functions named as in C are those of pa_math.h; fast-math versions are the plain ones. */
#ifndef PA_GRID_CPU_MATH_H
#define PA_GRID_CPU_MATH_H

/* ---- atomics: relaxed, for the types that CUDA has, with the scopes that it names ---- */

#define PA_GRID_ATOMIC(name, T, ...)                                                                                   \
    static inline T name(T *p, T v) { __VA_ARGS__ }                                                                    \
    static inline T name##_block(T *p, T v) { return name(p, v); }                                                     \
    static inline T name##_system(T *p, T v) { return name(p, v); }
#define PA_GRID_ATOMIC_NATIVE(name, T, operation) PA_GRID_ATOMIC(name, T, return operation(p, v, __ATOMIC_RELAXED);)
/* `new_value` is made of `old` and `v`; U holds the bits */
#define PA_GRID_ATOMIC_LOOP(name, T, U, new_value)                                                                     \
    PA_GRID_ATOMIC(name, T, U bits = __atomic_load_n((U *)p, __ATOMIC_RELAXED), next; T old, made; do {                \
        memcpy(&old, &bits, sizeof old);                                                                               \
        made = (new_value);                                                                                            \
        memcpy(&next, &made, sizeof next);                                                                             \
    } while (!__atomic_compare_exchange_n((U *)p, &bits, next, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)); return old;)
#define PA_GRID_ATOMIC_INT(T)                                                                                          \
    PA_GRID_ATOMIC_NATIVE(atomicAdd, T, __atomic_fetch_add) PA_GRID_ATOMIC_NATIVE(atomicSub, T, __atomic_fetch_sub)    \
    PA_GRID_ATOMIC_BITS(T)
#define PA_GRID_ATOMIC_BITS(T)                                                                                         \
    PA_GRID_ATOMIC_NATIVE(atomicAnd, T, __atomic_fetch_and) PA_GRID_ATOMIC_NATIVE(atomicOr, T, __atomic_fetch_or)      \
    PA_GRID_ATOMIC_NATIVE(atomicXor, T, __atomic_fetch_xor) PA_GRID_ATOMIC_NATIVE(atomicExch, T, __atomic_exchange_n)  \
    PA_GRID_ATOMIC_ORDER(T) PA_GRID_ATOMIC_CAS(T)
#define PA_GRID_ATOMIC_ORDER(T)                                                                                        \
    PA_GRID_ATOMIC_LOOP(atomicMin, T, T, v < old ? v : old) PA_GRID_ATOMIC_LOOP(atomicMax, T, T, v > old ? v : old)
#define PA_GRID_ATOMIC_CAS(T)                                                                                          \
    static inline T atomicCAS(T *p, T expected, T desired)                                                             \
    {                                                                                                                  \
        __atomic_compare_exchange_n(p, &expected, desired, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);                     \
        return expected;                                                                                               \
    }                                                                                                                  \
    static inline T atomicCAS_block(T *p, T expected, T desired) { return atomicCAS(p, expected, desired); }           \
    static inline T atomicCAS_system(T *p, T expected, T desired) { return atomicCAS(p, expected, desired); }
PA_GRID_ATOMIC_INT(int)
PA_GRID_ATOMIC_INT(unsigned)
PA_GRID_ATOMIC_INT(unsigned long long)
PA_GRID_ATOMIC_ORDER(long long)
PA_GRID_ATOMIC_CAS(unsigned short)
PA_GRID_ATOMIC_LOOP(atomicAdd, float, uint32_t, old + v)
PA_GRID_ATOMIC_LOOP(atomicAdd, double, uint64_t, old + v)
PA_GRID_ATOMIC_LOOP(atomicExch, float, uint32_t, v)
PA_GRID_ATOMIC_LOOP(atomicInc, unsigned, unsigned, old >= v ? 0 : old + 1)
PA_GRID_ATOMIC_LOOP(atomicDec, unsigned, unsigned, (old == 0 || old > v) ? v : old - 1)

/* ---- numeric functions ---- */

#include "pa_math.h"
static inline float rsqrtf(float x) { return 1 / sqrtf(x); }
static inline double rsqrt(double x) { return 1 / sqrt(x); }
static inline float rsqrt(float x) { return 1 / sqrtf(x); }
static inline float exp10f(float x) { return powf(10, x); }
static inline double exp10(double x) { return pow(10.0, x); }
static inline void sincosf(float x, float *s, float *c) { *s = sinf(x), *c = cosf(x); }
static inline void sincos(double x, double *s, double *c) { *s = sin(x), *c = cos(x); }
static inline void sincos(float x, float *s, float *c) { *s = sinf(x), *c = cosf(x); }
/* of floats as fmin and fmax: a NaN loses */
static inline float min(float a, float b) { return fminf(a, b); }
static inline float max(float a, float b) { return fmaxf(a, b); }
static inline double min(double a, double b) { return fmin(a, b); }
static inline double max(double a, double b) { return fmax(a, b); }
static inline double min(float a, double b) { return fmin(a, b); }
static inline double max(float a, double b) { return fmax(a, b); }
static inline double min(double a, float b) { return fmin(a, b); }
static inline double max(double a, float b) { return fmax(a, b); }
template <typename A, typename B> static inline auto min(A a, B b) -> decltype(a + b)
{
    return b < a ? (decltype(a + b))b : a;
}
template <typename A, typename B> static inline auto max(A a, B b) -> decltype(a + b)
{
    return b > a ? (decltype(a + b))b : a;
}

/* ---- intrinsics ---- */

static inline float __fmaf_rn(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
static inline double __fma_rn(double x, double y, double z) { return __builtin_fma(x, y, z); }
#define PA_GRID_ROUNDED(T, f, d)                                                                                       \
    static inline T __##f##add_rn(T x, T y) { return x + y; }                                                          \
    static inline T __##f##sub_rn(T x, T y) { return x - y; }                                                          \
    static inline T __##f##mul_rn(T x, T y) { return x * y; }                                                          \
    static inline T __##d##div_rn(T x, T y) { return x / y; }                                                          \
    static inline T __##d##rcp_rn(T x) { return 1 / x; }                                                               \
    static inline T __##d##sqrt_rn(T x) { return sqrt(x); }
PA_GRID_ROUNDED(float, f, f) PA_GRID_ROUNDED(double, d, d)
static inline float __frsqrt_rn(float x) { return 1 / sqrtf(x); }
static inline float __fdividef(float x, float y) { return x / y; }
static inline float __expf(float x) { return expf(x); }
static inline float __exp10f(float x) { return exp10f(x); }
static inline float __logf(float x) { return logf(x); }
static inline float __log2f(float x) { return log2f(x); }
static inline float __log10f(float x) { return log10f(x); }
static inline float __sinf(float x) { return sinf(x); }
static inline float __cosf(float x) { return cosf(x); }
static inline float __tanf(float x) { return tanf(x); }
static inline float __powf(float x, float y) { return powf(x, y); }
static inline void __sincosf(float x, float *s, float *c) { sincosf(x, s, c); }
static inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1) : 0; }
#define PA_GRID_BITS(name, T, F)                                                                                       \
    static inline T name(F x) { T y; memcpy(&y, &x, sizeof y); return y; }
PA_GRID_BITS(__float_as_int, int, float) PA_GRID_BITS(__int_as_float, float, int)
PA_GRID_BITS(__float_as_uint, unsigned, float) PA_GRID_BITS(__uint_as_float, float, unsigned)
PA_GRID_BITS(__double_as_longlong, long long, double) PA_GRID_BITS(__longlong_as_double, double, long long)
static inline int __float2int_rn(float x) { return (int)lrintf(x); }
static inline int __float2int_rz(float x) { return (int)x; }
static inline int __float2int_rd(float x) { return (int)floorf(x); }
static inline int __float2int_ru(float x) { return (int)ceilf(x); }
static inline float __int2float_rn(int x) { return (float)x; }
static inline float __uint2float_rn(unsigned x) { return (float)x; }
static inline int __double2int_rn(double x) { return (int)lrint(x); }
static inline float __double2float_rn(double x) { return (float)x; }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline unsigned __brev(unsigned x)
{
    unsigned y = 0;
    for (int k = 0; k < 32; ++k, x >>= 1) y = y << 1 | (x & 1);
    return y;
}
static inline unsigned long long __brevll(unsigned long long x)
{
    return (unsigned long long)__brev((unsigned)x) << 32 | __brev((unsigned)(x >> 32));
}
static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned s)
{
    const uint64_t all = (uint64_t)y << 32 | x;
    unsigned r = 0;
    for (int k = 0; k < 4; ++k) r |= (unsigned)(all >> 8 * (s >> 4 * k & 7) & 255) << 8 * k;
    return r;
}
static inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned n)
{
    return (unsigned)(((uint64_t)high << 32 | low) << (n & 31) >> 32);
}
static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned n)
{
    return (unsigned)(((uint64_t)high << 32 | low) >> (n & 31));
}
static inline int __mulhi(int x, int y) { return (int)((int64_t)x * y >> 32); }
static inline unsigned __umulhi(unsigned x, unsigned y) { return (unsigned)((uint64_t)x * y >> 32); }
static inline long long __mul64hi(long long x, long long y) { return (long long)((__int128)x * y >> 64); }
static inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y)
{
    return (unsigned long long)((unsigned __int128)x * y >> 64);
}
static inline int __mul24(int x, int y) { return (x << 8 >> 8) * (y << 8 >> 8); }
static inline unsigned __umul24(unsigned x, unsigned y) { return (x & 0xffffff) * (y & 0xffffff); }
static inline unsigned __sad(int x, int y, unsigned z)
{
    return z + (x > y ? (unsigned)x - (unsigned)y : (unsigned)y - (unsigned)x);
}
#define PA_GRID_ACCESS(load, store)                                                                                    \
    template <typename T> static inline T load(const T *p) { return *p; }                                              \
    template <typename T> static inline void store(T *p, T v) { *p = v; }
PA_GRID_ACCESS(__ldg, __stwb) PA_GRID_ACCESS(__ldcg, __stcg) PA_GRID_ACCESS(__ldca, __stwt)
PA_GRID_ACCESS(__ldcs, __stcs)
static inline long long clock64() { static thread_local long long ticks; return ++ticks; }
static inline void __nanosleep(unsigned) {}

#endif
