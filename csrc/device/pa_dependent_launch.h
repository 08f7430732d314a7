/* pa_dependent_launch.h: kernels whose blocks may start before the kernel ahead of them on the stream has ended
   (programmatic dependent launch; KernelStep's `dependent_launch`). */
#ifndef PA_DEPENDENT_LAUNCH_H
#define PA_DEPENDENT_LAUNCH_H
#include "pa_base.h"

/* Waits until the kernels ahead have ended and what they wrote can be read. Each thread calls it before it accesses
   memory that they may access: a kernel that ended without it could end before them. */
PA_FN void pa_griddep_wait(void)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
/* Lets blocks of the kernel behind start, as far as there is room for them, when each block has called it or ended.
   Near a block's end: blocks that start while others have long to go aren't spread evenly over the processors. */
PA_FN void pa_griddep_launch_dependents(void)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

#endif
