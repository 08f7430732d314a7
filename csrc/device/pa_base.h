/* pa_base.h: what every generated kernel includes. Tiny, because each kernel pays for parsing it.
   One text for C11, C++17, CUDA (nvcc, NVRTC) and HIP (hipcc, hiprtc). */
#ifndef PA_BASE_H
#define PA_BASE_H

/* gcc makes a vector of the first two of three floats, fills its other half with what the stack holds (which may be
   slow to divide), and moves it through memory: the text of vectors of three asks for none in straight-line code.
   Before everything else, since functions with other settings are not inlined. */
#if defined(PA_NO_SLP) && defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)
#pragma GCC optimize("no-tree-slp-vectorize")
#endif

/* gcc takes the copy of a row out of the loop that reduces it, and calls memcpy: texts with tiles want one pass. */
#if defined(PA_NO_PATTERNS) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-loop-distribute-patterns")
#endif

#if defined(__CUDACC__) || defined(__CUDACC_RTC__) || defined(__HIPCC__) || defined(__HIPCC_RTC__)
#define PA_GPU 1
#else
#define PA_GPU 0
#endif
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define PA_CUDA 1
#else
#define PA_CUDA 0
#endif

/* Kernels are linked without libraries, and so "memcpy" is the oldest of glibc's, which has no vectors but SSE2's. */
#if !PA_GPU && defined(__ELF__) && defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
__asm__(".set memcpy, memmove");
#endif

#if defined(__CUDACC_RTC__) || defined(__HIPCC_RTC__)
/* The run-time compilers have no system headers. The types are spelt as the 64-bit ABIs spell them, and as hiprtc,
   which has its own, spells them: to define the same type again is no error. */
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
#if defined(_WIN32) || defined(__HIPCC_RTC__)
typedef long long int64_t;
typedef unsigned long long uint64_t;
#else
typedef long int64_t;
typedef unsigned long uint64_t;
#endif
#else
#include <stdbool.h>
#include <stdint.h>
#if PA_GPU || defined(PA_SYSTEM_MATH)
#include <math.h>
#else
#include "pa_math.h"
#endif
#endif

#if PA_GPU
#define PA_FN __device__ static inline
#define PA_COLD __device__ static __noinline__
/* Inlined however large it is: a kernel whose arguments went by memory would read them again and again. */
#define PA_ALWAYS __device__ static __forceinline__
/* The same failure record as on the CPU, in memory of the host. The gate is in memory of the device, so that many
   failures are cheap: the lowest (loop, tid) that failed so far, and a lock. */
typedef struct pa_frame { const struct pa_frame *up; int32_t site; } pa_frame;
typedef struct pa_failure {
    int32_t set, kind, loop, site;
    int64_t tid, index, extent, offset, size;
    int32_t depth, frames[64];
} pa_failure;
typedef struct pa_gate { unsigned long long lowest; int locked; } pa_gate;
typedef struct pa_runtime { pa_failure *failure; pa_gate *gate; } pa_runtime;
#ifndef PA_MAX_FRAMES
#define PA_MAX_FRAMES 64
#endif
#else
#define PA_FN static inline
#define PA_COLD __attribute__((noinline, cold, unused)) static
/* Keeps the loop that it stands in from becoming vectors: where iterations are few, those only take long to compile. */
#define PA_NOVECTOR __asm__ volatile("")
#include "pyarray.h"
#endif

/* Whether this unit of the text has its function with that number: all functions, unless PA_UNIT is a set of bits. */
#ifdef PA_UNIT
#define PA_IN_UNIT(number, weight) (PA_UNIT >> (number) & 1)
#define PA_SHARED __attribute__((visibility("hidden")))
#else
#define PA_IN_UNIT(number, weight) 1
#define PA_SHARED static
#endif

#ifndef PA_NO_ALIAS
#define PA_NO_ALIAS 0 /* 1: the launch guarantees that written arrays share no memory with others */
#endif

/* Storage of the dtypes that C lacks; their functions are in headers of their own. */
typedef struct pa_f16 { uint16_t bits; } pa_f16;
typedef struct pa_bf16 { uint16_t bits; } pa_bf16;
typedef struct pa_e4m3 { uint8_t bits; } pa_e4m3;
typedef struct pa_e5m2 { uint8_t bits; } pa_e5m2;
typedef struct pa_c64 { float re, im; } pa_c64;
typedef struct pa_c128 { double re, im; } pa_c128;

/* X(suffix, type, unsigned type, type to compute in without signed overflow or promotion to int, bits) */
#define PA_SIGNED_TYPES(X)                                                                                             \
    X(i8, int8_t, uint8_t, uint32_t, 8) X(i16, int16_t, uint16_t, uint32_t, 16)                                        \
    X(i32, int32_t, uint32_t, uint32_t, 32) X(i64, int64_t, uint64_t, uint64_t, 64)
#define PA_UNSIGNED_TYPES(X)                                                                                           \
    X(u8, uint8_t, uint8_t, uint32_t, 8) X(u16, uint16_t, uint16_t, uint32_t, 16)                                      \
    X(u32, uint32_t, uint32_t, uint32_t, 32) X(u64, uint64_t, uint64_t, uint64_t, 64)

/* Bits of a float and back. A union, since memcpy is not declared by every run-time compiler and no target reads it as
   aliasing. */
PA_FN uint32_t pa_bits_f32(float x) { union { float f; uint32_t u; } v; v.f = x; return v.u; }
PA_FN uint64_t pa_bits_f64(double x) { union { double f; uint64_t u; } v; v.f = x; return v.u; }
PA_FN float pa_f32_bits(uint32_t x) { union { float f; uint32_t u; } v; v.u = x; return v.f; }
PA_FN double pa_f64_bits(uint64_t x) { union { double f; uint64_t u; } v; v.u = x; return v.f; }

/* Of the bits on a CPU: gcc doesn't vectorise the negation of a _Bool. */
#if PA_GPU
PA_FN bool pa_not(bool a) { return !a; }
#else
PA_FN bool pa_not(bool a) { union { bool b; uint8_t u; } v; v.b = a; return v.u == 0; }
#endif

/* Constants, by bits: INFINITY and NAN are macros of headers that the run-time compilers lack. */
#define PA_INF_F32 pa_f32_bits(0x7f800000u)
#define PA_NAN_F32 pa_f32_bits(0x7fc00000u)
#define PA_INF_F64 pa_f64_bits(0x7ff0000000000000ull)
#define PA_NAN_F64 pa_f64_bits(0x7ff8000000000000ull)

/* len(range(start, stop, step)) for every int64. Differences are taken unsigned, where they cannot overflow; the one
   length that does not fit (more than INT64_MAX) saturates, where Python raises OverflowError. Step 0 gives 0, and the
   host has refused it. */
PA_FN int64_t pa_range_len(int64_t start, int64_t stop, int64_t step)
{
    uint64_t span, stride, count;
    if (step > 0 && start < stop) {
        span = (uint64_t)stop - (uint64_t)start;
        stride = (uint64_t)step;
    } else if (step < 0 && start > stop) {
        span = (uint64_t)start - (uint64_t)stop;
        stride = 0 - (uint64_t)step;
    } else {
        return 0;
    }
    count = (span - 1) / stride;
    return count >= 0x7fffffffffffffffull ? 0x7fffffffffffffffll : (int64_t)(count + 1);
}

#endif
