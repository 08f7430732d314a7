/* pa_mbarrier.h: barriers in shared memory of sm_90 (PTX ISA, "mbarrier"), by their addresses. */
#ifndef PA_MBARRIER_H
#define PA_MBARRIER_H
#include "pa_base.h"

PA_FN void pa_mbarrier_init(unsigned barrier, int count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}
/* Whether the phase of this parity has ended; it may be waited for. */
PA_FN bool pa_mbarrier_test(unsigned barrier, unsigned parity)
{
    unsigned done;
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
    return done;
}
PA_FN void pa_mbarrier_wait(unsigned barrier, unsigned parity)
{
    while (!pa_mbarrier_test(barrier, parity)) {}
}
PA_FN void pa_mbarrier_arrive(unsigned barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
/* Arrives; the phase ends when so many bytes more have been copied. */
PA_FN void pa_mbarrier_expect(unsigned barrier, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

#endif
