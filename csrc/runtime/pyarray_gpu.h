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
#define PA_GPU_STREAMS 64 /* of a device whose work a stream's waits are recorded for */
#define PA_GPU_LISTED 16  /* from so many on, streams that were left and are done are unlisted when another is entered */
#define PA_GPU_EVENTS 32 /* of a stream, to wait for; they are reused, so a wait for old work may wait for later work, too */
#define PA_GPU_ACCESSES 256 /* of a device that are recorded one by one; others come before all work of other streams */
#define PA_GPU_ALONE 1024 /* launches and copies in a row after which a stream counts as the only one again */

/* A stream of a device. `work` counts what was enqueued. The other fields keep the order between streams, below: event k was
   recorded at mark number marks[k], `marked` is the last number, work up to mark `before` comes before all later work of other
   streams, `waited` has the marks of other streams, by `index`, that this one has waited for, and `seen` counts the work that
   is recorded. */
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
    int32_t listed;             /* it is in the device's list */
    struct pa_gpu_stream *next; /* in the device's list */
} pa_gpu_stream;

/* The bytes from `low` up to `high` of an access. */
typedef struct pa_gpu_range {
    uintptr_t low;
    uintptr_t high;
    int32_t writes;
} pa_gpu_range;

/* An access of a stream, whose work up to a mark contains it. */
typedef struct pa_gpu_access {
    uintptr_t low;
    uintptr_t high;
    pa_gpu_stream *stream;
    uint64_t number;
    int32_t writes;
} pa_gpu_access;

/* What a launch needs of a device. Addresses of cuLaunchKernel, cuCtxGetCurrent, cuCtxSetCurrent, cuStreamSynchronize,
   cuMemcpyDtoHAsync, cuEventCreate, cuEventRecord, cuEventQuery, cuEventDestroy, cuStreamWaitEvent, or of the HIP functions with the same parameters, where
   a context is a device's number. The Python driver owns it, as long as the process lives. */
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
    uintptr_t context;  /* made current on the calling thread during a call */
    uintptr_t end_mark; /* what ends the `extra` list of a launch: CU_LAUNCH_PARAM_END is 0, HIP_LAUNCH_PARAM_END is 3 */
    int64_t full_grid;  /* blocks that fill the device, for launches of which only the device knows the size */
    int32_t number;     /* below PA_GPU_DEVICES, of this device alone */
    int32_t alive;      /* 0 in a process forked from the one that opened the device */
    int32_t blocking;   /* each launch is waited for */
    int32_t usual;      /* the context is that of threads without one */
    pa_gpu_stream main; /* the default stream */
    uintptr_t cells;    /* 64 pinned pieces of PA_GPU_CELL bytes, through which small reads go; 0: there are none */
    uint64_t cells_used; /* a bit for each */
    uint64_t launches;  /* so far */
    int64_t recent[256]; /* the function of launch n stands at n % PA_GPU_RECENT */
    int32_t ordered;      /* order between streams is kept */
    uint64_t indexes;     /* bits of those that streams have; 0 is that of `main` */
    pa_gpu_stream *alone; /* the only stream with work, whose accesses aren't recorded; NULL: there are several */
    pa_gpu_stream *last;  /* the stream of the last work, */
    int64_t streak;       /* and how much of it there was in a row */
    uint64_t waits;       /* that were put between streams so far */
    uint64_t given_up;    /* accesses that are no longer recorded one by one */
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

/* The calling thread's current stream. */
pa_gpu_stream *pa_gpu_current(pa_gpu_device *device);

/* Makes a stream current; NULL is the default stream. `stream` must outlive its use. */
void pa_gpu_use(pa_gpu_device *device, pa_gpu_stream *stream);

/* Counts work other than a launch, after it was enqueued: counted before, another thread could take a wait for it as done. */
void pa_gpu_count(pa_gpu_stream *stream);

/* Makes the device's context the thread's; `before` gets the one to pa_gpu_leave to. 0, or the vendor's error code. */
int pa_gpu_enter(const pa_gpu_device *device, uintptr_t *before);
void pa_gpu_leave(const pa_gpu_device *device, uintptr_t before);

/* All of a launch but its arguments; `steps` and `operands` stay the caller's. `function` is recorded as a recent launch. */
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

/* Copies to host memory after the current stream's work, and waits for the copy. 0, or the vendor's error code. */
int pa_gpu_read(pa_gpu_device *device, void *host, uintptr_t ptr, size_t nbytes);

/* Launches one kernel with the caller's grid: blocks (gx, gy, gz) of (bx, by, bz) threads, `shared` bytes of dynamic memory. */
int pa_gpu_launch_grid(pa_gpu_device *device, uintptr_t kernel, const unsigned *grid, const unsigned *block, unsigned shared,
                       const char *slots, size_t nbytes, int64_t function);

/* Order between streams. A launch waits, on the device, for work of other streams that writes what it reads or writes, or reads
   what it writes. Launches record their ranges themselves; other work stands between pa_gpu_before and pa_gpu_after, which counts
   it. While only one stream has work nothing is recorded, and the first work of another comes after all of it. Nothing is recorded
   where `ordered` is 0. Any thread may call these functions. 0, or the vendor's error code. */
int pa_gpu_entered(pa_gpu_device *device, pa_gpu_stream *stream); /* a thread enters it; it must live as long as the device */
int pa_gpu_left(pa_gpu_device *device, pa_gpu_stream *stream);    /* its owner may destroy the handle now */
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
