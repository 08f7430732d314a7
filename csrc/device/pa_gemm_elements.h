/* pa_gemm_elements.h: elements of matrix products on grids without tensor cores: how they are loaded, multiplied and
   added. With the macros PA_T (in memory), PA_ACC (while computing), PA_KIND, and PA_LOAD and PA_STORE where these
   types differ. */
#ifndef PA_GEMM_ELEMENTS_H
#define PA_GEMM_ELEMENTS_H
#include "pa_complex.h"
#include "pa_half.h"
#include "pa_gemm_tiles.h"

#define PA_GEMM_REAL 0
#define PA_GEMM_INT 1
#define PA_GEMM_BOOL 2
#define PA_GEMM_COMPLEX 3

PA_FN float pa_fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
PA_FN double pa_fma(double a, double b, double c) { return __fma_rn(a, b, c); }

/* An element while computing, how it is set to zero, and how a product of two is added to it. */
#if PA_KIND == PA_GEMM_COMPLEX
#define PA_G_ELEMENT PA_T
#define PA_G_ZERO(x) ((x).re = 0, (x).im = 0)
#define PA_G_MAC(c, a, b)                                                                                              \
    ((c).re = pa_fma(-(a).im, (b).im, pa_fma((a).re, (b).re, (c).re)),                                             \
     (c).im = pa_fma((a).im, (b).re, pa_fma((a).re, (b).im, (c).im)))
#else
#define PA_G_ELEMENT PA_ACC
#define PA_G_ZERO(x) ((x) = 0)
#if PA_KIND == PA_GEMM_REAL
#define PA_G_MAC(c, a, b) ((c) = pa_fma(a, b, c))
#elif PA_KIND == PA_GEMM_INT
#define PA_G_MAC(c, a, b) ((c) = (PA_ACC)((c) + (a) * (b)))
#else
#define PA_G_MAC(c, a, b) ((c) = (PA_ACC)((c) | ((a) & (b))))
#endif
#endif

#ifdef PA_LOAD
#define PA_G_CONVERTS 1
#else
#define PA_G_CONVERTS 0
#define PA_LOAD(x) (x)
#define PA_STORE(x) (x)
#endif

#endif
