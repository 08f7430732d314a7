// Arithmetic of the pseudocode's types, for the generated operations. A half and a bfloat16 are floats that were
// rounded.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#ifdef __F16C__
#include <immintrin.h>
#endif

static inline uint32_t isa_f_bits(float x) { uint32_t b; memcpy(&b, &x, 4); return b; }
static inline float isa_f_from(uint32_t b) { float x; memcpy(&x, &b, 4); return x; }
static inline uint64_t isa_d_bits(double x) { uint64_t b; memcpy(&b, &x, 8); return b; }
static inline double isa_d_from(uint64_t b) { double x; memcpy(&x, &b, 8); return x; }

static inline float isa_h_from(uint32_t b)
{
    const uint32_t sign = (b & 0x8000) << 16, exponent = b >> 10 & 31, fraction = b & 1023;
    if (exponent == 31) return isa_f_from(sign | 0x7f800000 | fraction << 13);
    if (exponent) return isa_f_from(sign | (exponent + 112) << 23 | fraction << 13);
    const float x = (float)fraction * 0x1p-24f;
    return sign ? -x : x;
}
// The bits of a half; `away`: what is added to the half of a last place decides (0: towards zero).
static inline uint32_t isa_round_half(float x, bool nearest)
{
    const uint32_t b = isa_f_bits(x), sign = b >> 16 & 0x8000, a = b & 0x7fffffff;
    if (a > 0x7f800000) return sign | 0x7e00 | (a >> 13 & 0x3ff);
    if (a == 0x7f800000) return sign | 0x7c00;
    if (a >= 0x47800000) return sign | (nearest ? 0x7c00 : 0x7bff);
    if (a < 0x38800000) { // denormal: in units of 2^-24
        const float scaled = isa_f_from(a) * 0x1p24f, whole = nearest ? nearbyintf(scaled) : truncf(scaled);
        return sign | (uint32_t)whole;
    }
    const uint32_t up = nearest ? 0xfff + (a >> 13 & 1) : 0;
    return sign | ((a + up - 0x38000000) >> 13);
}
static inline uint32_t isa_h_bits(float x)
{
#ifdef __F16C__
    return _cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT) & 0xffff;
#else
    return isa_round_half(x, true);
#endif
}
static inline float isa_h(float x) { return isa_h_from(isa_h_bits(x)); }
// From a double: rounded once.
static inline float isa_h(double x)
{
    float f = (float)x;
    if (std::isfinite(f) && (double)f != x) { // rounded to odd, so that the second rounding is right
        uint32_t b = isa_f_bits(f);
        const bool larger = std::fabs((double)f) > std::fabs(x);
        if (!(b & 1)) b = larger ? b - 1 : b + 1;
        f = isa_f_from(b);
    }
    return isa_h(f);
}
static inline float isa_b_from(uint32_t b) { return isa_f_from(b << 16); }
static inline uint32_t isa_b_bits(float x)
{
    const uint32_t b = isa_f_bits(x);
    if ((b & 0x7fffffff) > 0x7f800000) return (b >> 16) | 0x40;
    return (b + 0x7fff + (b >> 16 & 1)) >> 16;
}
static inline float isa_b(float x) { return isa_b_from(isa_b_bits(x)); }
template <typename T> static inline float isa_h(T x) { return isa_h((double)x); }
template <typename T> static inline float isa_b(T x) { return isa_b((float)x); }

static inline bool isa_denormal32(float x) { return x != 0 && std::fabs(x) < 0x1p-126f; }
static inline bool isa_denormal64(double x) { return x != 0 && std::fabs(x) < 0x1p-1022; }
static inline int32_t isa_exponent16(float x) { return isa_h_bits(x) >> 10 & 31; }
static inline int32_t isa_exponent32(float x) { return isa_f_bits(x) >> 23 & 255; }
static inline int32_t isa_exponent64(double x) { return isa_d_bits(x) >> 52 & 2047; }
static inline float isa_mantissa16(float x) { int e; return frexpf(x, &e); }
static inline float isa_mantissa32(float x) { int e; return frexpf(x, &e); }
static inline double isa_mantissa64(double x) { int e; return frexp(x, &e); }
static inline float isa_cvtToQuietNAN16(float x) { return x + 0.0f; }
static inline float isa_cvtToQuietNAN32(float x) { return x + 0.0f; }
static inline double isa_cvtToQuietNAN64(double x) { return x + 0.0; }
static inline bool isa_isSignalNAN16(float x) { return std::isnan(x) && !(isa_f_bits(x) & 0x400000); }
static inline bool isa_isSignalNAN32(float x) { return std::isnan(x) && !(isa_f_bits(x) & 0x400000); }
static inline bool isa_isSignalNAN64(double x) { return std::isnan(x) && !(isa_d_bits(x) >> 51 & 1); }
static inline bool isa_sign(float x) { return std::signbit(x); }
static inline bool isa_sign(double x) { return std::signbit(x); }
static inline bool isa_even(double x) { return fmod(x, 2) == 0; }
using std::isnan;

#define ISA_SAME(name, f)                                                                                              \
    static inline float isa_##name##32(float x) { return std::f(x); }                                               \
    static inline float isa_##name##16(float x) { return isa_h(std::f((double)x)); }                                \
    static inline double isa_##name##64(double x) { return std::f(x); }
ISA_SAME(floor, floor)
ISA_SAME(trunc, trunc)
ISA_SAME(sqrt, sqrt)
ISA_SAME(abs, fabs)
#undef ISA_SAME
// What the hardware approximates is computed in double and rounded once.
static inline float isa_sin32(float x) { return (float)sin((double)x); }
static inline float isa_cos32(float x) { return (float)cos((double)x); }
static inline float isa_log232(float x) { return (float)log2((double)x); }
static inline float isa_exp232(float x) { return (float)exp2((double)x); }
static inline float isa_sin16(float x) { return isa_h(sin((double)x)); }
static inline float isa_cos16(float x) { return isa_h(cos((double)x)); }
static inline float isa_log216(float x) { return isa_h(log2((double)x)); }
static inline float isa_exp216(float x) { return isa_h(exp2((double)x)); }
// sin and cos take revolutions
static inline float isa_sinpi32(float x) { x -= floorf(x); return (float)sin(6.283185307179586 * x); }
static inline float isa_cospi32(float x) { x -= floorf(x); return (float)cos(6.283185307179586 * x); }
static inline float isa_fract32(float x) { return x - floorf(x); }
static inline double isa_fract64(double x) { return x - floor(x); }
static inline float isa_fract16(float x) { return isa_h(x - floorf(x)); }
static inline float isa_fma32(float a, float b, float c) { return fmaf(a, b, c); }
static inline double isa_fma64(double a, double b, double c) { return fma(a, b, c); }
static inline float isa_fma16(float a, float b, float c) { return isa_h(fma((double)a, (double)b, (double)c)); }
/* with one rounding: the product is exact, and the power of two is normal */
static inline float isa_fma_ldexp32(float a, float b, float c, int32_t n)
{
    return (float)(((__float128)a * b + c) * (__float128)ldexp(1.0, n));
}
static inline double isa_fma_ldexp64(double a, double b, double c, int32_t n)
{
    return (double)(((__float128)a * b + c) * (__float128)ldexp(1.0, n));
}
static inline float isa_ldexp32(float x, int32_t n) { return ldexpf(x, n); }
static inline double isa_ldexp64(double x, int32_t n) { return ldexp(x, n); }
static inline float isa_ldexp16(float x, int32_t n) { return isa_h(ldexp((double)x, n)); }

// Like the instructions v_min and v_max: a number before a NaN, -0 before +0.
template <typename T> static inline T isa_least(T a, T b)
{
    if (isnan(a)) return b;
    if (isnan(b)) return a;
    return a < b || (a == b && std::signbit(a)) ? a : b;
}
template <typename T> static inline T isa_most(T a, T b)
{
    if (isnan(a)) return b;
    if (isnan(b)) return a;
    return a > b || (a == b && !std::signbit(a)) ? a : b;
}
#define ISA_ORDER(bits)                                                                                                \
    static inline float isa_v_min_f##bits(float a, float b) { return isa_least(a, b); }                                \
    static inline float isa_v_max_f##bits(float a, float b) { return isa_most(a, b); }                                 \
    static inline float isa_v_min3_f##bits(float a, float b, float c) { return isa_least(isa_least(a, b), c); }        \
    static inline float isa_v_max3_f##bits(float a, float b, float c) { return isa_most(isa_most(a, b), c); }
ISA_ORDER(16)
ISA_ORDER(32)
#undef ISA_ORDER
#define ISA_INTEGERS(name, type)                                                                                       \
    static inline type isa_v_min_##name(type a, type b) { return a < b ? a : b; }                                      \
    static inline type isa_v_max_##name(type a, type b) { return a > b ? a : b; }                                      \
    static inline type isa_v_max3_##name(type a, type b, type c) { return isa_v_max_##name(isa_v_max_##name(a, b), c); }
ISA_INTEGERS(u32, uint32_t)
ISA_INTEGERS(i32, int32_t)
ISA_INTEGERS(u16, uint32_t)
ISA_INTEGERS(i16, int32_t)
#undef ISA_INTEGERS

// Conversions to integers saturate; a NaN becomes 0.
template <typename T> static inline T isa_clip(double x, double low, double high)
{
    return isnan(x) ? (T)0 : x <= low ? (T)low : x >= high ? (T)high : (T)x;
}
static inline int32_t isa_f32_to_i32(float x) { return isa_clip<int32_t>(x, -2147483648.0, 2147483647.0); }
static inline uint32_t isa_f32_to_u32(float x) { return isa_clip<uint32_t>(x, 0, 4294967295.0); }
static inline int32_t isa_f64_to_i32(double x) { return isa_clip<int32_t>(x, -2147483648.0, 2147483647.0); }
static inline uint32_t isa_f64_to_u32(double x) { return isa_clip<uint32_t>(x, 0, 4294967295.0); }
static inline int32_t isa_f16_to_i16(float x) { return isa_clip<int32_t>(x, -32768, 32767); }
static inline uint32_t isa_f16_to_u16(float x) { return isa_clip<uint32_t>(x, 0, 65535); }
static inline int32_t isa_f32_to_i16(float x) { return isa_clip<int32_t>(x, -32768, 32767); }
static inline uint32_t isa_f32_to_u16(float x) { return isa_clip<uint32_t>(x, 0, 65535); }
static inline uint32_t isa_f32_to_u8(float x) { return isa_clip<uint32_t>(nearbyint(x), 0, 255); }
static inline int32_t isa_f32_to_snorm(float x) { return isa_clip<int32_t>(nearbyint(x * 32767.0), -32767, 32767); }
static inline uint32_t isa_f32_to_unorm(float x) { return isa_clip<uint32_t>(nearbyint(x * 65535.0), 0, 65535); }
static inline int32_t isa_f16_to_snorm(float x) { return isa_f32_to_snorm(x); }
static inline uint32_t isa_f16_to_unorm(float x) { return isa_f32_to_unorm(x); }
#define ISA_CONVERT(name, from, to) static inline to isa_##name(from x) { return (to)x; }
ISA_CONVERT(f16_to_f32, float, float)
ISA_CONVERT(bf16_to_f32, float, float)
ISA_CONVERT(f32_to_f64, float, double)
ISA_CONVERT(f64_to_f32, double, float)
ISA_CONVERT(i32_to_f32, int32_t, float)
ISA_CONVERT(u32_to_f32, uint32_t, float)
ISA_CONVERT(i32_to_f64, int32_t, double)
ISA_CONVERT(u32_to_f64, uint32_t, double)
ISA_CONVERT(i16_to_i32, int32_t, int32_t)
ISA_CONVERT(u16_to_u32, uint32_t, uint32_t)
ISA_CONVERT(i8_to_i32, int32_t, int32_t)
ISA_CONVERT(u8_to_u32, uint32_t, uint32_t)
ISA_CONVERT(i4_to_i32, int32_t, int32_t)
ISA_CONVERT(u4_to_u32, uint32_t, uint32_t)
#undef ISA_CONVERT
static inline float isa_f32_to_f16(float x) { return isa_h(x); }
static inline float isa_f32_to_f16_rtz(float x) { return isa_h_from(isa_round_half(x, false)); }
static inline float isa_f32_to_bf16(float x) { return isa_b(x); }
static inline float isa_i16_to_f16(int32_t x) { return isa_h((float)x); }
static inline float isa_u16_to_f16(uint32_t x) { return isa_h((float)x); }
static inline int32_t isa_i32_to_i16(int32_t x) { return x < -32768 ? -32768 : x > 32767 ? 32767 : x; }
static inline uint32_t isa_u32_to_u16(uint32_t x) { return x > 65535 ? 65535 : x; }
static inline int32_t isa_signext(int32_t x, uint32_t bits)
{
    return !bits ? 0 : bits >= 32 ? x : (int32_t)((uint32_t)x << (32 - bits)) >> (32 - bits);
}
static inline int64_t isa_signext(int64_t x, uint32_t bits)
{
    return !bits ? 0 : bits >= 64 ? x : (int64_t)((uint64_t)x << (64 - bits)) >> (64 - bits);
}
static inline uint32_t isa_brev32(uint32_t x)
{
    uint32_t r = 0;
    for (int k = 0; k < 32; ++k) r |= (x >> k & 1) << (31 - k);
    return r;
}
static inline uint64_t isa_brev64(uint64_t x) { return (uint64_t)isa_brev32(x) << 32 | isa_brev32(x >> 32); }
static inline uint32_t isa_sad(uint32_t a, uint32_t b, uint32_t sum, bool masked)
{
    for (int k = 0; k < 32; k += 8) {
        const int x = a >> k & 255, y = b >> k & 255;
        if (!masked || y) sum += x > y ? x - y : y - x;
    }
    return sum;
}
// 2/pi, its first 1201 bits behind the point, from the highest
double isa_two_over_pi(double x, uint32_t segment);
