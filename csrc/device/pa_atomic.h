/* pa_atomic.h: pa_atomic_<operation>_<suffix>(pointer, value) returns the old value. Relaxed order: a kernel's other
   accesses are ordered by the end of the launch. Signed arithmetic wraps; float min and max propagate NaN, as pa_min_
   and pa_max_ do. */
#ifndef PA_ATOMIC_H
#define PA_ATOMIC_H
#include "pa_base.h"
#include "pa_float8.h"

/* compare-and-swap on the bits, by size: what everything else can be made of; returns the old bits */
#if PA_GPU
PA_FN uint32_t pa_cas_32(uint32_t *p, uint32_t expected, uint32_t desired)
{
    return atomicCAS((unsigned int *)p, (unsigned int)expected, (unsigned int)desired);
}
PA_FN uint64_t pa_cas_64(uint64_t *p, uint64_t expected, uint64_t desired)
{
    return atomicCAS((unsigned long long *)p, (unsigned long long)expected, (unsigned long long)desired);
}
/* GPUs swap 32 bits at least: the element is replaced inside its aligned word, and a change of its neighbour is tried
   again */
#define PA_CAS_NARROW(N)                                                                                               \
    PA_FN uint##N##_t pa_cas_##N(uint##N##_t *p, uint##N##_t expected, uint##N##_t desired)                            \
    {                                                                                                                  \
        uint64_t at = (uint64_t)p;                                                                                     \
        uint32_t *word = (uint32_t *)(at & ~(uint64_t)3), shift = (uint32_t)(at & 3) * 8;                              \
        uint32_t mask = (uint32_t)((1ull << N) - 1) << shift, old = *(volatile uint32_t *)word, seen;                  \
        for (;;) {                                                                                                     \
            if ((uint##N##_t)(old >> shift) != expected) return (uint##N##_t)(old >> shift);                           \
            seen = pa_cas_32(word, old, (old & ~mask) | ((uint32_t)desired << shift));                                 \
            if (seen == old) return expected;                                                                          \
            old = seen;                                                                                                \
        }                                                                                                              \
    }
PA_CAS_NARROW(8) PA_CAS_NARROW(16)
#undef PA_CAS_NARROW
#define PA_PEEK(N, p) (*(volatile uint##N##_t *)(p))
#else
#define PA_CAS(N)                                                                                                      \
    PA_FN uint##N##_t pa_cas_##N(uint##N##_t *p, uint##N##_t expected, uint##N##_t desired)                            \
    {                                                                                                                  \
        __atomic_compare_exchange_n(p, &expected, desired, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);                     \
        return expected;                                                                                               \
    }
PA_CAS(8) PA_CAS(16) PA_CAS(32) PA_CAS(64)
#undef PA_CAS
#define PA_PEEK(N, p) __atomic_load_n((uint##N##_t *)(p), __ATOMIC_RELAXED)
#endif

/* the loop: EXPR makes the new value from `old` and `v`; TO and FROM are the bits of a value and back */
#define PA_ATOMIC_LOOP(NAME, S, T, N, TO, FROM, EXPR)                                                                  \
    PA_FN T pa_atomic_##NAME##_##S(T *p, T v)                                                                          \
    {                                                                                                                  \
        uint##N##_t bits = PA_PEEK(N, p), seen;                                                                        \
        T old;                                                                                                         \
        for (;;) {                                                                                                     \
            old = FROM(bits);                                                                                          \
            seen = pa_cas_##N((uint##N##_t *)p, bits, TO((EXPR)));                                                     \
            if (seen == bits) return old;                                                                              \
            bits = seen;                                                                                               \
        }                                                                                                              \
    }
#define PA_ATOMIC_CAS(S, T, N, TO, FROM)                                                                               \
    PA_FN T pa_atomic_cas_##S(T *p, T expected, T desired)                                                             \
    {                                                                                                                  \
        return FROM(pa_cas_##N((uint##N##_t *)p, TO(expected), TO(desired)));                                          \
    }
/* one instruction of the target: C the type that it wants */
#if PA_GPU
#define PA_ATOMIC_NATIVE(NAME, S, T, C, GPU, CPU, V) \
    PA_FN T pa_atomic_##NAME##_##S(T *p, T v) { return (T)GPU((C *)p, (C)(V)); }
#else
#define PA_ATOMIC_NATIVE(NAME, S, T, C, GPU, CPU, V)                                                                   \
    PA_FN T pa_atomic_##NAME##_##S(T *p, T v) { return (T)CPU((T *)p, (T)(V), __ATOMIC_RELAXED); }
#endif
#define PA_ATOMIC_WIDE(S, T, C, U)                                                                                     \
    PA_ATOMIC_NATIVE(add, S, T, U, atomicAdd, __atomic_fetch_add, v)                                                   \
    PA_ATOMIC_NATIVE(sub, S, T, U, atomicAdd, __atomic_fetch_add, 0 - (U)v)                                            \
    PA_ATOMIC_NATIVE(and, S, T, U, atomicAnd, __atomic_fetch_and, v)                                                   \
    PA_ATOMIC_NATIVE(or, S, T, U, atomicOr, __atomic_fetch_or, v)                                                      \
    PA_ATOMIC_NATIVE(xor, S, T, U, atomicXor, __atomic_fetch_xor, v)                                                   \
    PA_ATOMIC_NATIVE(exchange, S, T, U, atomicExch, __atomic_exchange_n, v)
#define PA_ATOMIC_LOOPS(S, T, N, U)                                                                                    \
    PA_ATOMIC_LOOP(add, S, T, N, (U), (T), (U)old + (U)v)                                                              \
    PA_ATOMIC_LOOP(sub, S, T, N, (U), (T), (U)old - (U)v)                                                              \
    PA_ATOMIC_LOOP(and, S, T, N, (U), (T), old & v)                                                                    \
    PA_ATOMIC_LOOP(or, S, T, N, (U), (T), old | v)                                                                     \
    PA_ATOMIC_LOOP(xor, S, T, N, (U), (T), old ^ v)                                                                    \
    PA_ATOMIC_LOOP(exchange, S, T, N, (U), (T), v)

#if PA_GPU
#define PA_ATOMIC_SMALL PA_ATOMIC_LOOPS
#define PA_ATOMIC_ORDER(S, T, C, N, U)                                                                                 \
    PA_ATOMIC_NATIVE(min, S, T, C, atomicMin, , v) PA_ATOMIC_NATIVE(max, S, T, C, atomicMax, , v)
#else
#define PA_ATOMIC_SMALL(S, T, N, U) PA_ATOMIC_WIDE(S, T, T, U)
#define PA_ATOMIC_ORDER(S, T, C, N, U) PA_ATOMIC_ORDER_LOOP(S, T, N, U)
#endif
#define PA_ATOMIC_ORDER_LOOP(S, T, N, U)                                                                               \
    PA_ATOMIC_LOOP(min, S, T, N, (U), (T), v < old ? v : old) PA_ATOMIC_LOOP(max, S, T, N, (U), (T), v > old ? v : old)

#define PA_ATOMIC_INT(S, T, N, U) \
    PA_ATOMIC_ORDER_LOOP(S, T, N, U) PA_ATOMIC_SMALL(S, T, N, U) PA_ATOMIC_CAS(S, T, N, (U), (T))
PA_ATOMIC_INT(i8, int8_t, 8, uint8_t) PA_ATOMIC_INT(u8, uint8_t, 8, uint8_t)
PA_ATOMIC_INT(i16, int16_t, 16, uint16_t) PA_ATOMIC_INT(u16, uint16_t, 16, uint16_t)
#undef PA_ATOMIC_INT
#define PA_ATOMIC_INT(S, T, N, U, C, D) PA_ATOMIC_WIDE(S, T, C, D) PA_ATOMIC_CAS(S, T, N, (U), (T))
PA_ATOMIC_ORDER(i32, int32_t, int, 32, uint32_t) PA_ATOMIC_ORDER(u32, uint32_t, unsigned int, 32, uint32_t)
PA_ATOMIC_ORDER(u64, uint64_t, unsigned long long, 64, uint64_t)
#if PA_CUDA
PA_ATOMIC_ORDER(i64, int64_t, long long, 64, uint64_t)
#else
PA_ATOMIC_ORDER_LOOP(i64, int64_t, 64, uint64_t) /* HIP before 6 has no atomicMin of a long long */
#endif
PA_ATOMIC_INT(i32, int32_t, 32, uint32_t, int, unsigned int)
PA_ATOMIC_INT(u32, uint32_t, 32, uint32_t, unsigned int, unsigned int)
PA_ATOMIC_INT(i64, int64_t, 64, uint64_t, long long, unsigned long long)
PA_ATOMIC_INT(u64, uint64_t, 64, uint64_t, unsigned long long, unsigned long long)

#if !PA_GPU
/* The same for memory that no other thread knows. */
#define PA_ATOMIC_OWN(S, T, U, W, N)                                                                                   \
    PA_FN void pa_atomic_own_add_##S(T *p, T v) { *p = (T)((W)*p + (W)v); }                                            \
    PA_FN void pa_atomic_own_sub_##S(T *p, T v) { *p = (T)((W)*p - (W)v); }
PA_SIGNED_TYPES(PA_ATOMIC_OWN) PA_UNSIGNED_TYPES(PA_ATOMIC_OWN)
PA_ATOMIC_OWN(f32, float, , float, ) PA_ATOMIC_OWN(f64, double, , double, )
#undef PA_ATOMIC_OWN
#endif

/* bool is stored as a byte that is 0 or 1 */
PA_ATOMIC_LOOP(and, b, bool, 8, (uint8_t), (bool), old & v)
PA_ATOMIC_LOOP(or, b, bool, 8, (uint8_t), (bool), old | v)
PA_ATOMIC_LOOP(xor, b, bool, 8, (uint8_t), (bool), old != v)
PA_ATOMIC_LOOP(exchange, b, bool, 8, (uint8_t), (bool), v)
PA_ATOMIC_CAS(b, bool, 8, (uint8_t), (bool))

/* cas on floats compares bits, as the hardware does: a NaN is found, and -0.0 is not 0.0 */
#define PA_ATOMIC_FLOAT(S, T, N)                                                                                       \
    PA_ATOMIC_LOOP(min, S, T, N, pa_bits_##S, pa_##S##_bits, ((old <= v) | (old != old)) ? old : v)                    \
    PA_ATOMIC_LOOP(max, S, T, N, pa_bits_##S, pa_##S##_bits, ((old >= v) | (old != old)) ? old : v)                    \
    PA_ATOMIC_LOOP(exchange, S, T, N, pa_bits_##S, pa_##S##_bits, v)                                                   \
    PA_ATOMIC_CAS(S, T, N, pa_bits_##S, pa_##S##_bits)
PA_ATOMIC_FLOAT(f32, float, 32) PA_ATOMIC_FLOAT(f64, double, 64)
#if PA_GPU
PA_FN float pa_atomic_add_f32(float *p, float v) { return atomicAdd(p, v); }
PA_FN float pa_atomic_sub_f32(float *p, float v) { return atomicAdd(p, -v); }
PA_FN double pa_atomic_add_f64(double *p, double v) { return atomicAdd(p, v); }
PA_FN double pa_atomic_sub_f64(double *p, double v) { return atomicAdd(p, -v); }
#else
PA_ATOMIC_LOOP(add, f32, float, 32, pa_bits_f32, pa_f32_bits, old + v)
PA_ATOMIC_LOOP(sub, f32, float, 32, pa_bits_f32, pa_f32_bits, old - v)
PA_ATOMIC_LOOP(add, f64, double, 64, pa_bits_f64, pa_f64_bits, old + v)
PA_ATOMIC_LOOP(sub, f64, double, 64, pa_bits_f64, pa_f64_bits, old - v)
#endif

#define PA_ATOMIC_NARROW(S, N)                                                                                         \
    PA_FN uint##N##_t pa_bits_##S(pa_##S x) { return x.bits; }                                                         \
    PA_FN pa_##S pa_##S##_bits(uint##N##_t x) { pa_##S h; h.bits = x; return h; }                                      \
    /* adds sign * b; b if it is less (sign 1) or more (sign -1) than a, a if that is NaN */                           \
    PA_FN pa_##S pa_atomic_sum_##S(pa_##S a, pa_##S b, float sign)                                                     \
    {                                                                                                                  \
        return pa_##S##_from_f32(pa_f32_from_##S(a) + sign * pa_f32_from_##S(b));                                      \
    }                                                                                                                  \
    PA_FN pa_##S pa_atomic_pick_##S(pa_##S a, pa_##S b, float sign)                                                    \
    {                                                                                                                  \
        float x = sign * pa_f32_from_##S(a), y = sign * pa_f32_from_##S(b);                                            \
        return ((x <= y) | (x != x)) ? a : b;                                                                          \
    }                                                                                                                  \
    PA_ATOMIC_LOOP(add, S, pa_##S, N, pa_bits_##S, pa_##S##_bits, pa_atomic_sum_##S(old, v, 1))                        \
    PA_ATOMIC_LOOP(sub, S, pa_##S, N, pa_bits_##S, pa_##S##_bits, pa_atomic_sum_##S(old, v, -1))                       \
    PA_ATOMIC_LOOP(min, S, pa_##S, N, pa_bits_##S, pa_##S##_bits, pa_atomic_pick_##S(old, v, 1))                       \
    PA_ATOMIC_LOOP(max, S, pa_##S, N, pa_bits_##S, pa_##S##_bits, pa_atomic_pick_##S(old, v, -1))                      \
    PA_ATOMIC_LOOP(exchange, S, pa_##S, N, pa_bits_##S, pa_##S##_bits, v)                                              \
    PA_ATOMIC_CAS(S, pa_##S, N, pa_bits_##S, pa_##S##_bits)
PA_ATOMIC_NARROW(f16, 16) PA_ATOMIC_NARROW(bf16, 16) PA_ATOMIC_NARROW(e4m3, 8) PA_ATOMIC_NARROW(e5m2, 8)

/* Each component by itself: a sum needs no more, but a reader in between may see one half done. */
#define PA_ATOMIC_COMPLEX(NAME, S, R)                                                                                  \
    PA_FN pa_##S pa_atomic_##NAME##_##S(pa_##S *p, pa_##S v)                                                           \
    {                                                                                                                  \
        pa_##S old;                                                                                                    \
        old.re = pa_atomic_##NAME##_##R(&p->re, v.re);                                                                 \
        old.im = pa_atomic_##NAME##_##R(&p->im, v.im);                                                                 \
        return old;                                                                                                    \
    }
PA_ATOMIC_COMPLEX(add, c64, f32) PA_ATOMIC_COMPLEX(add, c128, f64)
PA_ATOMIC_COMPLEX(sub, c64, f32) PA_ATOMIC_COMPLEX(sub, c128, f64)

#undef PA_PEEK
#undef PA_ATOMIC_LOOP
#undef PA_ATOMIC_LOOPS
#undef PA_ATOMIC_CAS
#undef PA_ATOMIC_NATIVE
#undef PA_ATOMIC_WIDE
#undef PA_ATOMIC_SMALL
#undef PA_ATOMIC_ORDER
#undef PA_ATOMIC_ORDER_LOOP
#undef PA_ATOMIC_INT
#undef PA_ATOMIC_FLOAT
#undef PA_ATOMIC_NARROW
#undef PA_ATOMIC_COMPLEX
#endif
