/* pa_quad.h: four neighbouring lanes, which have a row of fragments of sums (PTX ISA, "Matrix fragments for
   mma.m16n8k16"). */
#ifndef PA_QUAD_H
#define PA_QUAD_H
#include "pa_base.h"

PA_FN unsigned pa_quad_shuffle(unsigned mask, unsigned x, int d)
{
#if defined(__HIPCC__) || defined(__HIPCC_RTC__)
    (void)mask;
    return (unsigned)__shfl_xor((int)x, d);
#else
    return __shfl_xor_sync(mask, x, d);
#endif
}

/* Of four lanes' pairs of halves in four tiles of 8 columns, each lane gets those of its tile: 16 bytes of a row.
   `mask` are the lanes that call this, whole quads. */
PA_FN uint4 pa_quad_exchange(unsigned mask, const unsigned (&x)[4])
{
    const bool odd = threadIdx.x & 1, high = threadIdx.x & 2;
    const unsigned a = pa_quad_shuffle(mask, odd ? x[0] : x[1], 1), b = pa_quad_shuffle(mask, odd ? x[2] : x[3], 1);
    /* tiles odd and odd + 2 of two lanes */
    const unsigned first = odd ? a : x[0], second = odd ? x[1] : a, third = odd ? b : x[2], fourth = odd ? x[3] : b;
    const unsigned c = pa_quad_shuffle(mask, high ? first : third, 2);
    const unsigned d = pa_quad_shuffle(mask, high ? second : fourth, 2);
    return high ? make_uint4(c, d, third, fourth) : make_uint4(first, second, c, d);
}
#endif
