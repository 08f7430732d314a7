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
#define PA_GPU_DEVICES 64 /* of all kinds in a process */
#define PA_GPU_RECENT 256 /* launches that are remembered */

/* A stream of a device. `work` counts what was enqueued: who remembers it can tell whether there was more since. */
typedef struct pa_gpu_stream {
    uintptr_t handle;
    uint64_t work;
} pa_gpu_stream;

/* What a launch needs of a device. Addresses of cuLaunchKernel, cuCtxGetCurrent, cuCtxSetCurrent, cuStreamSynchronize or of their
   HIP twins, which have the same parameters: there a context is a device's number. The owner is the Python driver; it lives as
   long as the process. */
typedef struct pa_gpu_device {
    uintptr_t launch;
    uintptr_t get_context;
    uintptr_t set_context;
    uintptr_t synchronize;
    uintptr_t context;  /* made current on the calling thread for the time of a call */
    uintptr_t end_mark; /* what ends the `extra` list of a launch: CU_LAUNCH_PARAM_END is 0, HIP_LAUNCH_PARAM_END is 3 */
    int64_t full_grid;  /* blocks that fill the device, for launches of which only the device knows the size */
    int32_t number;     /* below PA_GPU_DEVICES, of this device alone */
    int32_t alive;      /* 0 in a process forked from the one that opened the device */
    int32_t blocking;   /* each launch is waited for */
    int32_t usual;      /* the context is what a thread without one gets anyway */
    pa_gpu_stream main; /* the default stream */
    uint64_t launches;  /* so far */
    int64_t recent[256]; /* the function of launch n stands at n % PA_GPU_RECENT */
} pa_gpu_device;

/* One kernel of a launch. `factors` slots hold the sizes whose product is the number of iterations; -1: only the device knows,
   and the grid fills it. `threads` per block; 0: one thread in all. `width` threads share an iteration, a thread takes
   `share` of them; with `filling` the grid has no more blocks than fill the device. A block has `shared` bytes of dynamic
   memory. */
typedef struct pa_gpu_step {
    uintptr_t function;
    int32_t threads;
    int32_t width;
    int32_t share;
    int32_t filling;
    int32_t shared;
    int32_t factors;
    int32_t slot[6];
} pa_gpu_step;

/* Where the work of the calling thread goes. */
pa_gpu_stream *pa_gpu_current(pa_gpu_device *device);

/* From now on it goes there; NULL is the default stream. `stream` must outlive its use. */
void pa_gpu_use(pa_gpu_device *device, pa_gpu_stream *stream);

/* Work was enqueued there that is no launch. To be called after it was: who counts before lets another thread believe that it has
   waited for it. */
void pa_gpu_count(pa_gpu_stream *stream);

/* Makes the device's context the thread's; `before` gets the one to pa_gpu_leave to. 0, or the vendor's error code. */
int pa_gpu_enter(const pa_gpu_device *device, uintptr_t *before);
void pa_gpu_leave(const pa_gpu_device *device, uintptr_t before);

/* All of a launch but its arguments; `steps` stays the caller's. `function` is what is remembered as recent. */
typedef struct pa_gpu_plan {
    pa_gpu_device *device;
    const pa_gpu_step *steps;
    int64_t count;
    int64_t function;
} pa_gpu_plan;

/* Enqueues the steps in order on the current stream with the same packed arguments, of `nbytes` bytes, which are copied before
   the return. A step without an iteration is left out. 0, or the first error code of the vendor; -1 if the device is not
   alive. */
int pa_gpu_launch(const pa_gpu_plan *plan, const char *slots, size_t nbytes);

/* One kernel with a grid of the caller's: blocks (gx, gy, gz) of (bx, by, bz) threads, `shared` bytes of dynamic memory. */
int pa_gpu_launch_grid(pa_gpu_device *device, uintptr_t kernel, const unsigned *grid, const unsigned *block, unsigned shared,
                       const char *slots, size_t nbytes, int64_t function);

#ifndef PYARRAY_CDEF
#ifdef __cplusplus
}
#endif
#endif
