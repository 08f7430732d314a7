/* pa_products.h: products of tiles of a CPU kernel, onto sums in memory. Each sum is in order of the depth, with fused
   steps, as the loops over elements would have it: blocks and vectors decide no bit. */
#ifndef PA_PRODUCTS_H
#define PA_PRODUCTS_H
#include "pa_base.h"
#include "pa_prefetch.h"
#include "pa_real.h"

/* Rows of a block, whose columns are two vectors: the sums are in registers, and as many chains as hide a step. Rows
   that are left over are in blocks of fewer. */
#if defined(__AVX512F__)
#define PA_PRODUCTS_BYTES 64
#define PA_PRODUCTS_ROWS 8
#define PA_PRODUCTS_FEWER 4
#elif defined(__AVX__)
#define PA_PRODUCTS_BYTES 32
#define PA_PRODUCTS_ROWS 6
#define PA_PRODUCTS_FEWER 2
#elif defined(__ARM_NEON)
#define PA_PRODUCTS_BYTES 16
#define PA_PRODUCTS_ROWS 8
#define PA_PRODUCTS_FEWER 4
#else
#define PA_PRODUCTS_BYTES 16
#define PA_PRODUCTS_ROWS 4
#define PA_PRODUCTS_FEWER 2
#endif
#define PA_PRODUCTS_DEPTH 128 /* of a panel of columns that aren't neighbours in memory */
#define PA_PRODUCTS_INLINE static inline __attribute__((always_inline))
/* not in each version of a loop: the blocks take long to compile */
#define PA_PRODUCTS_APART static __attribute__((noinline, unused))
#ifdef __clang__
#define PA_PRODUCTS_UNROLL _Pragma("clang loop unroll(full)")
#else
#define PA_PRODUCTS_UNROLL _Pragma("GCC unroll 16")
#endif

#define PA_P(name) pa_products_##name##_f32
#define PA_P_T float
#if defined(__AVX512F__) && !defined(__clang__)
#define PA_P_FMA(x, y, sum) __builtin_ia32_vfmaddps512_mask(x, y, sum, (unsigned short)-1, 4)
#elif defined(__FMA__) && !defined(__clang__)
#define PA_P_FMA(x, y, sum) __builtin_ia32_vfmaddps256(x, y, sum)
#endif
#include "pa_products_of.h"

#define PA_P(name) pa_products_##name##_f64
#define PA_P_T double
#if defined(__AVX512F__) && !defined(__clang__)
#define PA_P_FMA(x, y, sum) __builtin_ia32_vfmaddpd512_mask(x, y, sum, (unsigned char)-1, 4)
#elif defined(__FMA__) && !defined(__clang__)
#define PA_P_FMA(x, y, sum) __builtin_ia32_vfmaddpd256(x, y, sum)
#endif
#include "pa_products_of.h"

#endif
