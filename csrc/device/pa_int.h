/* pa_int.h: integer arithmetic with NumPy's meaning and without undefined behaviour. pa_<operation>_<suffix>.
   Everything wraps modulo 2^bits, as NumPy's does. Selects rather than branches, so that loops vectorise. */
#ifndef PA_INT_H
#define PA_INT_H
#include "pa_base.h"

/* Truncating quotients for a divisor that is neither 0 nor -1. No CPU divides integer vectors, but the float quotient
   truncates to the exact answer: when a, b are exact in the float type, a/b below an integer n is at most n - 1/b, and
   that rounds up to n only if n*b exceeds 2^(precision), which a does not. A constant divisor stays an integer
   division, which compilers turn into a multiplication. GPUs divide integers directly. */
#if PA_GPU
#define PA_QUOTIENT(a, d, T, F) ((T)((a) / (d)))
#else
#define PA_QUOTIENT(a, d, T, F) (__builtin_constant_p(d) ? (T)((a) / (d)) : (T)(int32_t)((F)(a) / (F)(d)))
#endif
PA_FN int8_t pa_quotient_i8(int8_t a, int8_t d) { return PA_QUOTIENT(a, d, int8_t, float); }
PA_FN int16_t pa_quotient_i16(int16_t a, int16_t d) { return PA_QUOTIENT(a, d, int16_t, float); }
PA_FN int32_t pa_quotient_i32(int32_t a, int32_t d) { return PA_QUOTIENT(a, d, int32_t, double); }
PA_FN int64_t pa_quotient_i64(int64_t a, int64_t d) { return a / d; }
PA_FN uint8_t pa_quotient_u8(uint8_t a, uint8_t d) { return PA_QUOTIENT(a, d, uint8_t, float); }
PA_FN uint16_t pa_quotient_u16(uint16_t a, uint16_t d) { return PA_QUOTIENT(a, d, uint16_t, float); }
PA_FN uint64_t pa_quotient_u64(uint64_t a, uint64_t d) { return a / d; }
PA_FN uint32_t pa_quotient_u32(uint32_t a, uint32_t d)
{
#if PA_GPU
    return a / d;
#else
    /* Vectors convert only signed 32-bit integers before AVX-512, so both are moved by 2^31; only d == 1 leaves
       int32. */
    double x, y;
    if (__builtin_constant_p(d)) return a / d;
    x = (double)(int32_t)(a ^ 0x80000000u) + 2147483648.0;
    y = (double)(int32_t)((d == 1 ? 2u : d) ^ 0x80000000u) + 2147483648.0;
    return d == 1 ? a : (uint32_t)(int32_t)(x / y);
#endif
}

/* The whole product of two words: one instruction of NVIDIA's, which their compiler doesn't find where only a half of
   the product is used further on. */
PA_FN uint64_t pa_mul_wide_u32(uint32_t a, uint32_t b)
{
#ifdef __CUDA_ARCH__
    uint64_t product;
    asm("mul.wide.u32 %0, %1, %2;" : "=l"(product) : "r"(a), "r"(b));
    return product;
#else
    return (uint64_t)a * b;
#endif
}

#define PA_INT_COMMON(S, T, U, W, N)                                                                                   \
    PA_FN T pa_add_##S(T a, T b) { return (T)((W)a + (W)b); }                                                          \
    PA_FN T pa_sub_##S(T a, T b) { return (T)((W)a - (W)b); }                                                          \
    PA_FN T pa_mul_##S(T a, T b) { return (T)((W)a * (W)b); }                                                          \
    PA_FN T pa_neg_##S(T a) { return (T)(0 - (W)a); }                                                                  \
    PA_FN T pa_square_##S(T a) { return (T)((W)a * (W)a); }                                                            \
    PA_FN T pa_min_##S(T a, T b) { return b < a ? b : a; }                                                             \
    PA_FN T pa_max_##S(T a, T b) { return b > a ? b : a; }                                                             \
    /* a count outside [0, bits) shifts everything out (npy_lshift, npy_rshift); a negative one is a huge unsigned */  \
    PA_FN T pa_shl_##S(T a, T b) { return (T)((U)b < N ? (W)a << ((W)(U)b & (N - 1)) : 0); }                           \
    /* square and multiply, exponent read as unsigned */                                                               \
    PA_FN T pa_power_##S(T a, U e)                                                                                     \
    {                                                                                                                  \
        W base = (W)a, r = 1;                                                                                          \
        while (e) {                                                                                                    \
            r *= e & 1 ? base : 1;                                                                                     \
            base *= base;                                                                                              \
            e = (U)(e >> 1);                                                                                           \
        }                                                                                                              \
        return (T)r;                                                                                                   \
    }

/* Python's floor division: the quotient goes down by one where the remainder is not zero and has not the divisor's
   sign. Divisors 0 and -1 are replaced by 1, so nothing traps; x // 0 is then 0 and x // -1 the wrapping -x, and both
   remainders are 0. */
#define PA_INT_SIGNED(S, T, U, W, N)                                                                                   \
    PA_FN T pa_floordiv_##S(T a, T b)                                                                                  \
    {                                                                                                                  \
        T d = ((b == 0) | (b == -1)) ? (T)1 : b;                                                                       \
        T q = pa_quotient_##S(a, d);                                                                                   \
        T r = (T)((W)a - (W)q * (W)d);                                                                                 \
        q = (T)(q - (T)((r != 0) & ((r ^ d) < 0)));                                                                    \
        q = b == -1 ? (T)(0 - (W)a) : q;                                                                               \
        return b == 0 ? (T)0 : q;                                                                                      \
    }                                                                                                                  \
    PA_FN T pa_mod_##S(T a, T b)                                                                                       \
    {                                                                                                                  \
        T d = ((b == 0) | (b == -1)) ? (T)1 : b;                                                                       \
        T r = (T)((W)a - (W)pa_quotient_##S(a, d) * (W)d);                                                             \
        /* masks, as the signs of remainders are hard to predict for a branch; only r = 0 can reach d */               \
        r = (T)((W)r + ((W)d & (W)(T)((r ^ d) >> (N - 1))));                                                           \
        return r == d ? (T)0 : r;                                                                                      \
    }                                                                                                                  \
    /* the remainder has the sign of a, as in C; fmod(x, 0) is 0 (npy_fmod) */                                         \
    PA_FN T pa_fmod_##S(T a, T b)                                                                                      \
    {                                                                                                                  \
        T d = ((b == 0) | (b == -1)) ? (T)1 : b;                                                                       \
        return (T)((W)a - (W)pa_quotient_##S(a, d) * (W)d);                                                            \
    }                                                                                                                  \
    /* GCC vectorises no arithmetic shift of 8 or 16 bits by a vector; those are made of logical ones, moved up by half\
       the range and back */                                                                                           \
    PA_FN T pa_shr_##S(T a, T b)                                                                                       \
    {                                                                                                                  \
        W half = (W)1 << (sizeof(W) * 8 - 1), count = (U)b < N ? (W)(U)b : N - 1;                                      \
        return N < 32 ? (T)((((W)a ^ half) >> count) - (half >> count)) : (T)(a >> count);                             \
    }                                                                                                                  \
    PA_FN T pa_abs_##S(T a) { return (T)(a < 0 ? 0 - (W)a : (W)a); }                                                   \
    PA_FN T pa_sign_##S(T a) { return (T)((a > 0) - (a < 0)); }                                                        \
    /* a negative power is 1/a**n truncated: 0, but for a = 1 and a = -1 (NumPy refuses it on the host) */             \
    PA_FN T pa_pow_##S(T a, T b)                                                                                       \
    {                                                                                                                  \
        if (b < 0) return (T)(a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0);                                            \
        return pa_power_##S(a, (U)b);                                                                                  \
    }

#define PA_INT_UNSIGNED(S, T, U, W, N)                                                                                 \
    PA_FN T pa_floordiv_##S(T a, T b)                                                                                  \
    {                                                                                                                  \
        T q = pa_quotient_##S(a, (T)(b == 0 ? 1 : b));                                                                 \
        return b == 0 ? (T)0 : q;                                                                                      \
    }                                                                                                                  \
    PA_FN T pa_mod_##S(T a, T b)                                                                                       \
    {                                                                                                                  \
        T d = b == 0 ? (T)1 : b;                                                                                       \
        return (T)((W)a - (W)pa_quotient_##S(a, d) * (W)d);                                                            \
    }                                                                                                                  \
    PA_FN T pa_fmod_##S(T a, T b) { return pa_mod_##S(a, b); }                                                         \
    PA_FN T pa_shr_##S(T a, T b) { return (T)(b < N ? (W)a >> (b & (N - 1)) : 0); }                                    \
    PA_FN T pa_abs_##S(T a) { return a; }                                                                              \
    PA_FN T pa_sign_##S(T a) { return (T)(a != 0); }                                                                   \
    PA_FN T pa_pow_##S(T a, T b) { return pa_power_##S(a, b); }

PA_SIGNED_TYPES(PA_INT_COMMON)
PA_UNSIGNED_TYPES(PA_INT_COMMON)
PA_SIGNED_TYPES(PA_INT_SIGNED)
PA_UNSIGNED_TYPES(PA_INT_UNSIGNED)

#undef PA_QUOTIENT
#undef PA_INT_COMMON
#undef PA_INT_SIGNED
#undef PA_INT_UNSIGNED
#endif
