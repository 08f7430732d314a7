/* A launch on a GPU: grids from the packed sizes, then the vendor's own call. */
#include "pyarray_gpu.h"
#include <string.h>

typedef int (*launch_fn)(uintptr_t function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                         unsigned shared, uintptr_t stream, void **params, void **extra);
typedef int (*copy_fn)(void *host, uintptr_t ptr, size_t nbytes, uintptr_t stream);
typedef int (*get_fn)(uintptr_t *context);
typedef int (*set_fn)(uintptr_t context);

/* cffi needs literal sizes in the header */
_Static_assert(sizeof((pa_gpu_device *)0)->recent / sizeof(int64_t) == PA_GPU_RECENT, "recent has PA_GPU_RECENT elements");
_Static_assert(sizeof((pa_gpu_step *)0)->slot / sizeof(int32_t) == PA_GPU_FACTORS, "slot has PA_GPU_FACTORS elements");

enum { PA_GPU_OPERANDS = 32 }; /* of a launch that are looked at one by one */

static _Thread_local pa_gpu_stream *current[PA_GPU_DEVICES];

pa_gpu_stream *pa_gpu_current(pa_gpu_device *device)
{
    pa_gpu_stream *stream = current[device->number];
    return stream ? stream : &device->main;
}

void pa_gpu_use(pa_gpu_device *device, pa_gpu_stream *stream) { current[device->number] = stream; }

int pa_gpu_enter(const pa_gpu_device *device, uintptr_t *before)
{
    if (!device->alive) return -1;
    *before = 0; /* HIP writes an int */
    int error = ((get_fn)device->get_context)(before);
    return error || *before == device->context ? error : ((set_fn)device->set_context)(device->context);
}

void pa_gpu_leave(const pa_gpu_device *device, uintptr_t before)
{
    if (before != device->context && !(before == 0 && device->usual)) ((set_fn)device->set_context)(before);
}

/* Elements of a row from which a block per row is faster than a full grid that strides over the rows: with shorter rows a
   block's start takes longer. */
#define LONG_ROW 1024

/* Rows of a block, of which `few` have one each: its teams are as lang/emit_cached_rows.py makes them. */
static int64_t rows_of(const pa_gpu_step *step, int64_t size, int64_t count)
{
    enum { FEW = 512, WARPS = 8 };
    int64_t rows = count <= FEW ? 1 : WARPS;
    while (rows > 1 && size > step->kept / rows) rows /= 2;
    return rows;
}

/* Blocks of a step, 0 if it has no iteration. Where the number of blocks has no bound, each thread takes its share and ends:
   such blocks read memory in order, which is faster than a full grid that strides. */
static unsigned blocks_of(const pa_gpu_device *device, const pa_gpu_step *step, const char *slots)
{
    if (step->threads == 0) return 1;
    if (step->factors < 0) return (unsigned)device->full_grid;
    const int64_t *values = (const int64_t *)slots;
    const int64_t row = step->filling && step->row >= 0 ? values[step->row] : 0;
    int64_t most = step->filling && row <= LONG_ROW ? device->full_grid : INT32_MAX, count = step->width;
    for (int k = 0; k < step->factors; ++k)
        if (values[step->slot[k]] <= 0) return 0;
    for (int k = 0; k < step->factors; ++k)
        if (__builtin_mul_overflow(count, values[step->slot[k]], &count)) return (unsigned)most;
    int64_t blocks = (count - 1) / ((int64_t)step->threads * step->share) + 1;
    if (row > LONG_ROW) blocks = (blocks - 1) / rows_of(step, row, blocks) + 1;
    return (unsigned)(blocks < most ? blocks : most);
}

void pa_gpu_count(pa_gpu_stream *stream) { __atomic_fetch_add(&stream->work, 1, __ATOMIC_RELAXED); }

static void record_launch(pa_gpu_device *device, pa_gpu_stream *stream, int64_t function)
{
    uint64_t number = __atomic_fetch_add(&device->launches, 1, __ATOMIC_RELAXED);
    device->recent[number % PA_GPU_RECENT] = function;
    pa_gpu_count(stream);
}

/* CU_LAUNCH_PARAM_BUFFER_POINTER and _SIZE are 1 and 2 in both worlds */
#define EXTRA(device, slots, nbytes) {(void *)1, (void *)slots, (void *)2, &nbytes, (void *)device->end_mark}

/* The ranges of a launch's arrays that have elements; those beyond PA_GPU_OPERANDS join the last one. */
static int ranges_of(const pa_gpu_plan *plan, const char *packed, pa_gpu_range *ranges)
{
    const int64_t *slots = (const int64_t *)packed;
    int count = 0;
    for (int64_t k = 0; k < plan->operand_count; ++k) {
        const pa_gpu_operand *array = &plan->operands[k];
        const int64_t *sizes = slots + array->sizes, *strides = sizes + array->ndim;
        uintptr_t low = (uintptr_t)slots[array->slot], high = low;
        int64_t elements = 1, extent;
        for (int axis = 0; axis < array->ndim; ++axis) {
            elements *= sizes[axis] > 0 ? 1 : 0;
            if (!array->strided || sizes[axis] <= 0) continue;
            extent = (sizes[axis] - 1) * strides[axis];
            if (extent < 0) low += (uintptr_t)extent;
            else high += (uintptr_t)extent;
        }
        if (!elements) continue;
        extent = array->itemsize;
        for (int axis = 0; axis < array->ndim && !array->strided; ++axis) extent *= sizes[axis];
        const pa_gpu_range range = {low, high + (uintptr_t)extent, array->writes};
        if (count < PA_GPU_OPERANDS) {
            ranges[count++] = range;
            continue;
        }
        pa_gpu_range *last = &ranges[count - 1];
        if (range.low < last->low) last->low = range.low;
        if (range.high > last->high) last->high = range.high;
        last->writes |= range.writes;
    }
    return count;
}

int pa_gpu_launch(const pa_gpu_plan *plan, const char *slots, size_t nbytes)
{
    uintptr_t before;
    pa_gpu_device *device = plan->device;
    const pa_gpu_step *steps = plan->steps;
    pa_gpu_stream *stream = pa_gpu_current(device);
    int error = pa_gpu_enter(device, &before), count = 0;
    if (error) return error;
    pa_gpu_range ranges[PA_GPU_OPERANDS];
    const int ordered = PA_GPU_ORDERED(device, stream);
    if (ordered) {
        count = ranges_of(plan, slots, ranges);
        error = pa_gpu_order_begin(device, stream, ranges, count);
    }
    void *extra[] = EXTRA(device, slots, nbytes);
    for (int64_t k = 0; k < plan->count && !error; ++k) {
        unsigned blocks = blocks_of(device, &steps[k], slots), threads = steps[k].threads ? (unsigned)steps[k].threads : 1;
        if (blocks)
            error = ((launch_fn)device->launch)(steps[k].function, blocks, 1, 1, threads, 1, 1, (unsigned)steps[k].shared,
                                                stream->handle, 0, extra);
    }
    record_launch(device, stream, plan->function);
    if (ordered) error = pa_gpu_order_end(device, stream, ranges, count, error);
    if (device->blocking && !error) error = ((set_fn)device->synchronize)(stream->handle);
    pa_gpu_leave(device, before);
    return error;
}

/* A free piece of the device's pinned memory, -1 if there is none. */
static int take_cell(pa_gpu_device *device)
{
    uint64_t used = __atomic_load_n(&device->cells_used, __ATOMIC_RELAXED);
    while (device->cells && ~used) {
        const int cell = __builtin_ctzll(~used);
        if (__atomic_compare_exchange_n(&device->cells_used, &used, used | (uint64_t)1 << cell, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return cell;
    }
    return -1;
}

int pa_gpu_read(pa_gpu_device *device, void *host, uintptr_t ptr, size_t nbytes)
{
    uintptr_t before;
    pa_gpu_stream *stream = pa_gpu_current(device);
    int error = pa_gpu_before(device, ptr, nbytes, 0); /* no pa_gpu_after: the copy is done at the return */
    if (!error) error = pa_gpu_enter(device, &before);
    if (error) return error;
    const int cell = nbytes <= PA_GPU_CELL ? take_cell(device) : -1; /* a copy to other memory is staged by the driver */
    char *buffer = cell < 0 ? (char *)host : (char *)device->cells + cell * PA_GPU_CELL;
    error = ((copy_fn)device->copy_out)(buffer, ptr, nbytes, stream->handle);
    if (!error) error = ((set_fn)device->synchronize)(stream->handle);
    if (cell >= 0 && !error) { /* after a failure it may still be written */
        memcpy(host, buffer, nbytes);
        __atomic_fetch_and(&device->cells_used, ~((uint64_t)1 << cell), __ATOMIC_RELEASE);
    }
    pa_gpu_leave(device, before);
    return error;
}

int pa_gpu_launch_grid(pa_gpu_device *device, uintptr_t kernel, const unsigned *grid, const unsigned *block, unsigned shared,
                       const char *slots, size_t nbytes, int64_t function)
{
    uintptr_t before;
    pa_gpu_stream *stream = pa_gpu_current(device);
    int error = pa_gpu_enter(device, &before);
    if (error) return error;
    const pa_gpu_range all = {0, UINTPTR_MAX, 1}; /* its accesses are unknown */
    const int ordered = PA_GPU_ORDERED(device, stream);
    if (ordered) error = pa_gpu_order_begin(device, stream, &all, 1);
    void *extra[] = EXTRA(device, slots, nbytes);
    if (!error)
        error = ((launch_fn)device->launch)(kernel, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared, stream->handle,
                                            0, extra);
    record_launch(device, stream, function);
    if (ordered) error = pa_gpu_order_end(device, stream, &all, 1, error);
    if (device->blocking && !error) error = ((set_fn)device->synchronize)(stream->handle);
    pa_gpu_leave(device, before);
    return error;
}
