/* pa_quad.h: four neighbouring lanes, which have a row of fragments of sums (PTX ISA, "Matrix fragments for
   mma.m16n8k16"). */
#ifndef PA_QUAD_H
#define PA_QUAD_H
#include "pa_base.h"

/* Of four lanes' pairs of halves in four tiles of 8 columns, each lane gets those of its tile: 16 bytes of a row.
   `mask` are the lanes that call this, whole quads. */
PA_FN uint4 pa_quad_exchange(unsigned mask, const unsigned (&x)[4])
{
    const bool odd = threadIdx.x & 1, high = threadIdx.x & 2;
    const unsigned a = __shfl_xor_sync(mask, odd ? x[0] : x[1], 1), b = __shfl_xor_sync(mask, odd ? x[2] : x[3], 1);
    /* tiles odd and odd + 2 of two lanes */
    const unsigned first = odd ? a : x[0], second = odd ? x[1] : a, third = odd ? b : x[2], fourth = odd ? x[3] : b;
    const unsigned c = __shfl_xor_sync(mask, high ? first : third, 2);
    const unsigned d = __shfl_xor_sync(mask, high ? second : fourth, 2);
    return high ? make_uint4(c, d, third, fourth) : make_uint4(first, second, c, d);
}
#endif
