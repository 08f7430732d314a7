/* Launches on GPUs, through the vendor's own entry points, whose addresses the Python driver found. cffi reads this file. */
#ifndef PYARRAY_CDEF
#pragma once
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
#endif

#define PA_GPU_FACTORS 6

/* What a launch needs of a device. Addresses of cuLaunchKernel, cuCtxGetCurrent, cuCtxSetCurrent or of their HIP twins, which
   have the same parameters. The owner is the Python driver; it lives as long as the process. */
typedef struct pa_gpu_device {
    uintptr_t launch;
    uintptr_t get_context;
    uintptr_t set_context;
    uintptr_t context;  /* made current on the calling thread where it isn't */
    uintptr_t end_mark; /* what ends the `extra` list of a launch: CU_LAUNCH_PARAM_END is 0, HIP_LAUNCH_PARAM_END is 3 */
    int64_t full_grid;  /* blocks that fill the device; more would only queue */
} pa_gpu_device;

/* One kernel of a launch. `factors` slots hold the sizes whose product is the number of iterations; -1: only the device knows,
   and the grid fills it. `threads` per block; 0: one thread in all. `width` threads share an iteration. */
typedef struct pa_gpu_step {
    uintptr_t function;
    int32_t threads;
    int32_t width;
    int32_t factors;
    int32_t slot[6];
} pa_gpu_step;

/* Enqueues the steps in order with the same packed arguments, of `nbytes` bytes, which are copied before the return. A step
   without an iteration is left out. 0, or the first error code of the vendor. */
int pa_gpu_launch(const pa_gpu_device *device, const pa_gpu_step *steps, int count, const char *slots, size_t nbytes,
                  uintptr_t stream);

#ifndef PYARRAY_CDEF
#ifdef __cplusplus
}
#endif
#endif
