/* Launches on GPUs, through the vendor's functions, whose addresses the Python driver found. cffi reads this file. */
#ifndef PYARRAY_CDEF
#pragma once
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
#endif

#define PA_GPU_SIZES 6      /* size slots of a step */
#define PA_GPU_GUARDS 16    /* of a step */
#define PA_GPU_DEVICES 64   /* of all kinds in a process */
#define PA_GPU_STAGING 64   /* bytes that a read to the host may have to go through pinned memory */
#define PA_GPU_RECENT 256   /* launches that are remembered */
#define PA_GPU_STREAMS 64   /* of a device that have an index, for which streams record what they have waited for */
#define PA_GPU_COLLECT_FROM 16 /* streams; with so many, ended ones are removed when another one is entered */
#define PA_GPU_EVENTS 32    /* of a stream; they are reused, so a wait for old work may be one for later work */
#define PA_GPU_ACCESSES 256 /* of a device that are recorded one by one; others come before all work of other streams */
#define PA_GPU_OPERANDS 32  /* of a launch whose ranges are recorded one by one */
#define PA_GPU_CONSECUTIVE 1024 /* launches and copies of one stream in a row, after which it counts as the only one */

/* A stream of a device. `work_count` is how much work was enqueued. The other fields order work between streams, below:
   event k has the number event_numbers[k] of those recorded on this stream, `last_event` is the last one's; work up to
   event number `fence` comes before all later work of other streams; `waited_events` has, by a stream's `index`, up to
   which of its events this stream has waited; `recorded_work` is how much of the work has recorded accesses. */
typedef struct pa_gpu_stream {
    uintptr_t handle;
    uint64_t work_count;
    uint64_t recorded_work;
    uint64_t last_event;
    uint64_t fence;
    uint64_t event_numbers[32];
    uintptr_t events[32];
    uint64_t waited_events[64];
    int32_t index;              /* -1: there are more than PA_GPU_STREAMS */
    int32_t ended;              /* its owner may have destroyed it */
    int32_t listed;             /* it is in the device's list */
    struct pa_gpu_stream *next; /* in the device's list */
} pa_gpu_stream;

/* The bytes from `low` up to `high` of an access. */
typedef struct pa_gpu_range {
    uintptr_t low;
    uintptr_t high;
    int32_t writes;
} pa_gpu_range;

/* An access by work of a stream before its event `event_number`. */
typedef struct pa_gpu_access {
    uintptr_t low;
    uintptr_t high;
    pa_gpu_stream *stream;
    uint64_t event_number;
    int32_t writes;
} pa_gpu_access;

/* What a launch needs of a device. The addresses are those of cuLaunchKernel, cuCtxGetCurrent, cuCtxSetCurrent,
   cuStreamSynchronize, cuMemcpyDtoHAsync, cuEventCreate, cuEventRecord, cuEventQuery, cuEventDestroy,
   cuStreamWaitEvent, cuGraphCreate, cuGraphDestroy, cuGraphAddKernelNode, cuGraphInstantiateWithFlags,
   cuGraphExecKernelNodeSetParams, cuGraphLaunch, cuGraphExecDestroy, cuLaunchKernelEx,
   cuStreamIsCapturing, or of the HIP functions with the same parameters, where a context is a device's number; those of
   the last two are 0 where no step is a `dependent_launch`. The Python driver owns it, as long as the process lives. */
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
    uintptr_t graph_create;
    uintptr_t graph_destroy;
    uintptr_t graph_add_kernel;
    uintptr_t graph_instantiate;
    uintptr_t graph_set_kernel;
    uintptr_t graph_launch;
    uintptr_t graph_exec_destroy;
    uintptr_t launch_dependent;
    uintptr_t is_capturing;
    uintptr_t context;   /* made current on the calling thread during a call */
    uintptr_t param_end; /* ends the `extra` list of a launch: CU_LAUNCH_PARAM_END is 0, HIP_LAUNCH_PARAM_END is 3 */
    int64_t resident_blocks; /* blocks that fill the device, for launches of which only the device knows the size */
    int64_t l2_bytes;    /* of the second-level cache */
    int32_t id;          /* unique in the process, below PA_GPU_DEVICES */
    int32_t alive;       /* 0 in a process forked from the one that opened the device */
    int32_t blocking;    /* each launch is waited for */
    int32_t is_default_context;   /* threads without a context have this one */
    pa_gpu_stream default_stream;
    uintptr_t staging;            /* 64 blocks of PA_GPU_STAGING bytes in pinned memory; 0: there are none */
    uint64_t staging_used;        /* a bit for each block */
    uint64_t launches;            /* so far */
    int64_t recent_functions[256]; /* the function of launch n is at n % PA_GPU_RECENT */
    int32_t ordered;              /* work is ordered between streams */
    uint64_t used_indexes;        /* a bit for each index that a stream has; 0 is that of `default_stream` */
    pa_gpu_stream *only_stream;   /* the only one with work, whose accesses aren't recorded; NULL: there are several */
    pa_gpu_stream *last_stream;   /* the stream of the last work */
    int64_t consecutive;          /* launches and copies on `last_stream` since those of another one */
    uint64_t waits;               /* of a stream for another one, so far */
    uint64_t dropped_accesses;    /* no longer recorded one by one */
    int32_t access_count;         /* of `accesses` */
    pa_gpu_access accesses[256];
} pa_gpu_device;

/* An array among the packed arguments: its address is in slot `slot`, sizes and strides are from slot `sizes` on. */
typedef struct pa_gpu_operand {
    int32_t slot;
    int32_t sizes;
    int32_t ndim;
    int32_t strided;
    int32_t itemsize;
    int32_t writes;
} pa_gpu_operand;

/* A condition on an argument slot: its bits in `mask`, which is sign-extended, are a number from `low` up to `high`. */
typedef struct pa_gpu_guard {
    int32_t slot;
    int32_t mask;
    int32_t low;
    int32_t high;
} pa_gpu_guard;

/* One grid launch: KernelStep in pyarray/driver/kernel_step.py. The number of iterations is the product of the sizes in
   `size_count` slots; with a `size_count` of -1 only the device knows it, and the grid fills the device. Blocks have
   `threads`; 0: one thread in all. A thread takes `per_thread` iterations. The threads of a block share an iteration of
   a `team` step, whose grid has no more blocks than fill the device, unless slot `row_slot` (-1: none) says that an
   iteration reads a long row: then a block takes as many rows as it can keep, up to `row_elements` elements, and ends.
   A block has `shared` bytes of dynamic shared memory. A step with guards takes the place of the ones up to the next
   without if all of them hold; one with `row_bytes`, whose blocks take a row each, if iterations x row x `row_bytes`
   is more than twice the L2 cache besides. Blocks of a `dependent_launch` step may start before the kernel ahead of
   them on the stream has ended, for which they wait by themselves. */
typedef struct pa_gpu_step {
    uintptr_t function;
    int32_t threads;
    int32_t per_thread;
    int32_t team;
    int32_t row_slot;
    int32_t row_elements;
    int32_t shared;
    int32_t dependent_launch;
    int32_t size_count;
    int32_t size_slots[6];
    int32_t row_bytes;
    int32_t guard_count;
    pa_gpu_guard guards[16];
} pa_gpu_step;

/* The calling thread's current stream. */
pa_gpu_stream *pa_gpu_current_stream(pa_gpu_device *device);

/* Makes a stream the calling thread's current one. `stream` must outlive its use. */
void pa_gpu_set_current_stream(pa_gpu_device *device, pa_gpu_stream *stream);

/* Counts work other than a launch, after it was enqueued: counted before, another thread could take a wait for it as
   done. */
void pa_gpu_count_work(pa_gpu_stream *stream);

/* Makes the device's context the thread's; `before` gets the one that pa_gpu_leave_context makes current again. 0, or
   the vendor's error code. */
int pa_gpu_enter_context(const pa_gpu_device *device, uintptr_t *before);
void pa_gpu_leave_context(const pa_gpu_device *device, uintptr_t before);

/* A launch without its arguments; `steps` and `operands` stay the caller's. `function` is recorded as a recent
   launch. */
typedef struct pa_gpu_plan {
    pa_gpu_device *device;
    const pa_gpu_step *steps;
    int64_t step_count;
    int64_t function;
    const pa_gpu_operand *operands;
    int64_t operand_count;
} pa_gpu_plan;

/* Enqueues the steps in order on the current stream with the same packed arguments, of `nbytes` bytes, which are copied
   before the return. A step without an iteration is left out. 0, or the first error code of the vendor; -1 if the
   device is not alive. */
int pa_gpu_launch(const pa_gpu_plan *plan, const char *slots, size_t nbytes);

/* A grid that a launch enqueues. */
typedef struct pa_gpu_grid {
    const pa_gpu_step *step;
    uint32_t blocks;
} pa_gpu_grid;

/* The first grid that a launch with these arguments enqueues of the steps from number `k` on. Returns the number of the
   step from which to look for the next one, -1 if there is none. */
int64_t pa_gpu_next_grid(const pa_gpu_plan *plan, int64_t k, const char *slots, pa_gpu_grid *grid);

/* What a kernel without live arguments gets: its parameter is never empty. */
extern const int64_t pa_gpu_no_slots[1];

/* The ranges of a launch's arrays that have elements, PA_GPU_OPERANDS at most: those beyond join the last one. Returns
   how many there are. */
int pa_gpu_ranges(const pa_gpu_plan *plan, const char *slots, pa_gpu_range *ranges);

/* A node of a graph: a grid with the packed arguments of its launch, and the vendor's handle of it. */
typedef struct pa_gpu_node {
    uintptr_t node;
    const pa_gpu_step *step;
    uint32_t blocks;
    const char *slots;
    size_t nbytes;
} pa_gpu_node;

/* A launch of a graph. `slots` are its packed arguments; who changes them sets `changed`. Its nodes are `node_count`
   from number `node` on. */
typedef struct pa_gpu_member {
    const pa_gpu_plan *plan;
    char *slots;
    size_t nbytes;
    int64_t node;
    int64_t node_count;
    int32_t changed;
} pa_gpu_member;

/* Where the address of an array goes, with `offset` bytes added to it: a slot of a launch's arguments. */
typedef struct pa_gpu_place {
    int64_t launch;
    int64_t slot;
    int64_t offset;
} pa_gpu_place;

/* A graph of kernels, each after the one before it, with the vendor's handles: `exec` is the executable graph. `nodes`
   has room for all steps of the launches, `ranges` for all their operands: what all of them read and write, to be found
   anew while `ranges_known` is 0. `function` is recorded as a recent launch. Arrays stay the caller's; one thread at a
   time may use it. */
typedef struct pa_gpu_graph {
    pa_gpu_device *device;
    uintptr_t graph;
    uintptr_t exec;
    pa_gpu_member *launches;
    int64_t launch_count;
    pa_gpu_node *nodes;
    int64_t node_count;
    pa_gpu_range *ranges;
    int32_t range_count;
    int32_t ranges_known;
    int64_t function;
} pa_gpu_graph;

/* What pa_gpu_graph_launch returns, launching nothing, if the graph is to be destroyed and made: it isn't made, or a
   changed launch has more or fewer grids than before. No vendor has this code. */
#define PA_GPU_REMAKE -2

/* Makes the executable graph of the launches; sets an array's address in their arguments; sets the nodes of changed
   launches and launches the graph on the current stream, in order with other work; destroys it, if it was made. 0, or
   the vendor's error code; -1 if the device is not alive. */
int pa_gpu_graph_make(pa_gpu_graph *graph);
void pa_gpu_graph_move(pa_gpu_graph *graph, const pa_gpu_place *places, int64_t count, uintptr_t address);
int pa_gpu_graph_launch(pa_gpu_graph *graph);
int pa_gpu_graph_destroy(pa_gpu_graph *graph);

/* Copies to host memory after the current stream's work, and waits for the copy. 0, or the vendor's error code. */
int pa_gpu_copy_out(pa_gpu_device *device, void *host, uintptr_t ptr, size_t nbytes);

/* Launches one kernel with the caller's grid: blocks (gx, gy, gz) of (bx, by, bz) threads, `shared` bytes of dynamic
   shared memory. */
int pa_gpu_launch_grid(pa_gpu_device *device, uintptr_t kernel, const unsigned *grid, const unsigned *block,
                       unsigned shared, const char *slots, size_t nbytes, int64_t function);

/* Order between streams. A launch waits, on the device, for work of other streams that writes what it reads or writes,
   or reads what it writes. Launches record their ranges themselves; other work stands between pa_gpu_before_access and
   pa_gpu_after_access, which counts it. While only one stream has work nothing is recorded, and the first work of
   another comes after all of it. Nothing is recorded where `ordered` is 0. Any thread may call these functions. 0, or
   the vendor's error code. */
int pa_gpu_before_access(pa_gpu_device *device, uintptr_t ptr, size_t nbytes, int writes);
int pa_gpu_after_access(pa_gpu_device *device, uintptr_t ptr, size_t nbytes, int writes);

/* A thread enters a stream, which must live as long as the device; and a stream's owner may destroy its handle now. */
int pa_gpu_enter_stream(pa_gpu_device *device, pa_gpu_stream *stream);
int pa_gpu_leave_stream(pa_gpu_device *device, pa_gpu_stream *stream);

#ifndef PYARRAY_CDEF
#define PA_GPU_ORDERED(device, stream) ((stream) != (device)->only_stream && (device)->ordered)
/* Both around a launch on `stream`, in the device's context: the second gets the launch's error, which it returns. */
int pa_gpu_order_begin(pa_gpu_device *device, pa_gpu_stream *stream, const pa_gpu_range *ranges, int count);
int pa_gpu_order_end(pa_gpu_device *device, pa_gpu_stream *stream, const pa_gpu_range *ranges, int count, int error);
/* After each launch on `stream`. */
void pa_gpu_record_launch(pa_gpu_device *device, pa_gpu_stream *stream, int64_t function);
#ifdef __cplusplus
}
#endif
#endif
