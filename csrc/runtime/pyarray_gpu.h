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
#define PA_GPU_CELL 64 /* bytes that a read to the host may have to go through pinned memory */
#define PA_GPU_RECENT 256 /* launches that are remembered */
#define PA_GPU_STREAMS 64 /* of a device, of which a stream remembers for how much of their work it has waited */
#define PA_GPU_LISTED 16  /* from so many on, those that were left and are done are forgotten when another comes */
#define PA_GPU_EVENTS 32 /* of a stream, to wait for; where they are used up, who waits for old work waits for some more */
#define PA_GPU_ACCESSES 256 /* of a device that are known one by one; others are ordered with all work of other streams */
#define PA_GPU_ALONE 1024 /* launches and copies of one stream in a row, after which it counts as the only one again */

/* A stream of a device. `work` counts what was enqueued: who remembers it can tell whether there was more since. The rest is the
   order between streams, below: event k stands behind mark number marks[k], `marked` is the last number, up to `before` the work
   comes before all that other streams get, `waited` is how far this one has waited for the others by their `index`, and `seen`
   counts the work of which the order knows. */
typedef struct pa_gpu_stream {
    uintptr_t handle;
    uint64_t work;
    uint64_t seen;
    uint64_t marked;
    uint64_t before;
    uint64_t marks[32];
    uintptr_t events[32];
    uint64_t waited[64];
    int32_t index;              /* -1: one of too many */
    int32_t left;               /* its owner may have destroyed it */
    int32_t listed;             /* it may order something */
    struct pa_gpu_stream *next; /* of the device */
} pa_gpu_stream;

/* Bytes from `low` up to `high` that somebody reads, or writes. */
typedef struct pa_gpu_range {
    uintptr_t low;
    uintptr_t high;
    int32_t writes;
} pa_gpu_range;

/* The same, with what did so: the work of a stream up to a mark. */
typedef struct pa_gpu_access {
    uintptr_t low;
    uintptr_t high;
    pa_gpu_stream *stream;
    uint64_t number;
    int32_t writes;
} pa_gpu_access;

/* What a launch needs of a device. Addresses of cuLaunchKernel, cuCtxGetCurrent, cuCtxSetCurrent, cuStreamSynchronize,
   cuMemcpyDtoHAsync, cuEventCreate, cuEventRecord, cuEventQuery, cuEventDestroy, cuStreamWaitEvent or of their HIP twins, which have the same parameters: there a context is a device's number. The owner is the Python driver; it lives as
   long as the process. */
typedef struct pa_gpu_device {
    uintptr_t launch;
    uintptr_t get_context;
    uintptr_t set_context;
    uintptr_t synchronize;
    uintptr_t copy_out;
    uintptr_t event_create;
    uintptr_t event_record;
    uintptr_t event_query;
    uintptr_t event_destroy;
    uintptr_t stream_wait;
    uintptr_t context;  /* made current on the calling thread for the time of a call */
    uintptr_t end_mark; /* what ends the `extra` list of a launch: CU_LAUNCH_PARAM_END is 0, HIP_LAUNCH_PARAM_END is 3 */
    int64_t full_grid;  /* blocks that fill the device, for launches of which only the device knows the size */
    int32_t number;     /* below PA_GPU_DEVICES, of this device alone */
    int32_t alive;      /* 0 in a process forked from the one that opened the device */
    int32_t blocking;   /* each launch is waited for */
    int32_t usual;      /* the context is what a thread without one gets anyway */
    pa_gpu_stream main; /* the default stream */
    uintptr_t cells;    /* 64 pinned pieces of PA_GPU_CELL bytes, through which small reads go; 0: there are none */
    uint64_t cells_used; /* a bit for each */
    uint64_t launches;  /* so far */
    int64_t recent[256]; /* the function of launch n stands at n % PA_GPU_RECENT */
    int32_t ordered;      /* order between streams is kept */
    uint64_t indexes;     /* bits of those that streams have; 0 is that of `main` */
    pa_gpu_stream *alone; /* the one stream with work, of which nothing is noted; NULL: there are several */
    pa_gpu_stream *last;  /* the one that had work last, and so often in a row */
    int64_t streak;
    uint64_t waits;       /* that were put between streams so far */
    uint64_t given_up;    /* accesses that are no longer known one by one */
    int32_t held;         /* of `accesses` */
    pa_gpu_access accesses[256];
} pa_gpu_device;

/* An array among the packed arguments: its address stands in slot `slot`, sizes and strides from slot `sizes` on. */
typedef struct pa_gpu_operand {
    int32_t slot;
    int32_t sizes;
    int32_t ndim;
    int32_t strided;
    int32_t itemsize;
    int32_t writes;
} pa_gpu_operand;

/* One kernel of a launch. `factors` slots hold the sizes whose product is the number of iterations; -1: only the device knows,
   and the grid fills it. `threads` per block; 0: one thread in all. `width` threads share an iteration, a thread takes
   `share` of them; with `filling` the grid has no more blocks than fill the device, unless the slot `row` (-1: none) says that
   an iteration reads a long row: then blocks take what they keep, up to `kept` elements, and end. A block has `shared` bytes of
   dynamic memory. */
typedef struct pa_gpu_step {
    uintptr_t function;
    int32_t threads;
    int32_t width;
    int32_t share;
    int32_t filling;
    int32_t row;
    int32_t kept;
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

/* All of a launch but its arguments; `steps` and `operands` stay the caller's. `function` is what is remembered as recent. */
typedef struct pa_gpu_plan {
    pa_gpu_device *device;
    const pa_gpu_step *steps;
    int64_t count;
    int64_t function;
    const pa_gpu_operand *operands;
    int64_t operand_count;
} pa_gpu_plan;

/* Enqueues the steps in order on the current stream with the same packed arguments, of `nbytes` bytes, which are copied before
   the return. A step without an iteration is left out. 0, or the first error code of the vendor; -1 if the device is not
   alive. */
int pa_gpu_launch(const pa_gpu_plan *plan, const char *slots, size_t nbytes);

/* Copies to host memory behind the current stream's work, and waits for it. 0, or the vendor's error code. */
int pa_gpu_read(pa_gpu_device *device, void *host, uintptr_t ptr, size_t nbytes);

/* One kernel with a grid of the caller's: blocks (gx, gy, gz) of (bx, by, bz) threads, `shared` bytes of dynamic memory. */
int pa_gpu_launch_grid(pa_gpu_device *device, uintptr_t kernel, const unsigned *grid, const unsigned *block, unsigned shared,
                       const char *slots, size_t nbytes, int64_t function);

/* Order between streams. A launch waits, on the device, for the work of other streams that writes what it reads or writes, or reads
   what it writes; launches note their ranges themselves, other work is between pa_gpu_before and pa_gpu_after, which counts it.
   While one stream alone has work nothing is noted; the first work of another comes after all of it. Where `ordered` is 0 nothing
   is kept. All of them may be called by several threads. 0, or the vendor's error code. */
int pa_gpu_entered(pa_gpu_device *device, pa_gpu_stream *stream); /* it exists, and gets work; it must live as long as the device */
int pa_gpu_left(pa_gpu_device *device, pa_gpu_stream *stream);    /* from now on its handle may be gone */
int pa_gpu_before(pa_gpu_device *device, uintptr_t ptr, size_t nbytes, int writes);
int pa_gpu_after(pa_gpu_device *device, uintptr_t ptr, size_t nbytes, int writes);

#ifndef PYARRAY_CDEF
#define PA_GPU_ORDERED(device, stream) ((stream) != (device)->alone && (device)->ordered)
/* Both around a launch on `stream`, in the device's context: the second gets the launch's error, which it returns. */
int pa_gpu_order_begin(pa_gpu_device *device, pa_gpu_stream *stream, const pa_gpu_range *ranges, int count);
int pa_gpu_order_end(pa_gpu_device *device, pa_gpu_stream *stream, const pa_gpu_range *ranges, int count, int error);
#ifdef __cplusplus
}
#endif
#endif
