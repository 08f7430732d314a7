/* pa_quotients_gpu.h: quotients of several float32 by one divisor, rounded as `/` rounds them, for kernels of GPUs.

   With the correctly rounded reciprocal y of d, two fused multiply-adds correct the product q = x y: its error x - d q
   is exact, and q + (x - d q) y rounds to x / d (P. Markstein, "Computation of elementary functions on the IBM RISC
   System/6000 processor", 1990; N. Brisebarre, J.-M. Muller and S. K. Raina, "Accelerating correctly rounded
   floating-point division when the divisor is known in advance", 2004). That takes no branch, while `/` takes one for
   each element. It needs an error that is no subnormal, so small quotients are left to `/`, with infinities, which give
   NaN here. */
#ifndef PA_QUOTIENTS_GPU_H
#define PA_QUOTIENTS_GPU_H
#include "pa_base.h"

typedef struct { float value, reciprocal, least; } pa_divisor; /* quotients below `least`, or all if NaN, need `/` */
PA_FN pa_divisor pa_divisor_of(float d)
{
    const float size = fabsf(d);
    pa_divisor divisor = {d, 1.0f / d, PA_NAN_F32};
    if (size >= 0x1p-60f && size <= 0x1p60f) { /* the reciprocal is normal, and x at least 2**-101 */
        const float least = 0x1p-101f / size;
        divisor.least = least > 0x1p-125f ? least : 0x1p-125f;
    }
    return divisor;
}
template <int N> PA_FN void pa_quotients(float *quotients, const float *x, pa_divisor d)
{
    bool right = true, zeros = d.value > 0 && d.least > 0; /* zeros keep their sign if the divisor is positive */
    #pragma unroll
    for (int j = 0; j < N; ++j) {
        const float product = x[j] * d.reciprocal;
        quotients[j] = fmaf(-fmaf(d.value, product, -x[j]), d.reciprocal, product);
        right = right && fabsf(quotients[j]) >= d.least;
    }
    if (right) return;
    #pragma unroll
    for (int j = 0; j < N; ++j) zeros = zeros && (x[j] == 0 || fabsf(quotients[j]) >= d.least);
    if (zeros) return;
    float rest[N]; /* moved on in turn, since registers have no index; unrolled, it would be long */
    #pragma unroll
    for (int j = 0; j < N; ++j) rest[j] = x[j];
    #pragma unroll 1
    for (int k = 0; k < N; ++k) {
        const float quotient = rest[0] / d.value;
        #pragma unroll
        for (int j = 1; j < N; ++j) {
            rest[j - 1] = rest[j];
            quotients[j - 1] = quotients[j];
        }
        quotients[N - 1] = quotient;
    }
}
#endif
