/* A launch on a GPU: grids from the packed sizes, then the vendor's launch function. */
#include "pyarray_gpu.h"
#include <string.h>

typedef int (*launch_fn)(uintptr_t function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                         unsigned bz, unsigned shared, uintptr_t stream, void **params, void **extra);
typedef int (*copy_fn)(void *host, uintptr_t ptr, size_t nbytes, uintptr_t stream);
typedef int (*get_fn)(uintptr_t *context);
typedef int (*set_fn)(uintptr_t context);

/* cffi needs literal sizes in the header */
_Static_assert(sizeof((pa_gpu_device *)0)->recent_functions / sizeof(int64_t) == PA_GPU_RECENT,
               "recent_functions has PA_GPU_RECENT elements");
_Static_assert(sizeof((pa_gpu_step *)0)->guards / sizeof(pa_gpu_guard) == PA_GPU_GUARDS,
               "guards has PA_GPU_GUARDS elements");
_Static_assert(sizeof((pa_gpu_step *)0)->size_slots / sizeof(int32_t) == PA_GPU_SIZES,
               "size_slots has PA_GPU_SIZES elements");

static _Thread_local pa_gpu_stream *current[PA_GPU_DEVICES];

pa_gpu_stream *pa_gpu_current_stream(pa_gpu_device *device)
{
    pa_gpu_stream *stream = current[device->id];
    return stream ? stream : &device->default_stream;
}

void pa_gpu_set_current_stream(pa_gpu_device *device, pa_gpu_stream *stream) { current[device->id] = stream; }

int pa_gpu_enter_context(const pa_gpu_device *device, uintptr_t *before)
{
    if (!device->alive) return -1;
    *before = 0; /* HIP writes an int */
    int error = ((get_fn)device->get_context)(before);
    return error || *before == device->context ? error : ((set_fn)device->set_context)(device->context);
}

void pa_gpu_leave_context(const pa_gpu_device *device, uintptr_t before)
{
    if (before != device->context && !(before == 0 && device->is_default_context))
        ((set_fn)device->set_context)(before);
}

/* Elements of a row from which a block per row is faster than a full grid that strides over the rows: with shorter rows
   a block's start takes longer. */
#define LONG_ROW 1024

/* Rows that a block takes at a time, by the rule of lang/emit_cached_rows.py: a few rows have a block each. */
static int64_t rows_of(const pa_gpu_step *step, int64_t size, int64_t count)
{
    enum { FEW_ROWS = 512, WARPS = 8 };
    int64_t rows = count <= FEW_ROWS ? 1 : WARPS;
    while (rows > 1 && size > step->row_elements / rows) rows /= 2;
    return rows;
}

/* Blocks of a step, 0 if it has no iteration. Where their number has no bound, a thread takes `per_thread` iterations
   and ends: such blocks read memory in order, which is faster than a full grid that strides. */
static unsigned blocks_of(const pa_gpu_device *device, const pa_gpu_step *step, const char *slots)
{
    if (step->threads == 0) return 1;
    if (step->size_count < 0) return (unsigned)device->resident_blocks;
    const int64_t *values = (const int64_t *)slots;
    const int64_t row = step->team && step->row_slot >= 0 ? values[step->row_slot] : 0;
    const int one_row = step->row_bytes > 0; /* of a block */
    /* HIP takes less than 2^32 threads; those that there are stride */
    const int64_t largest = UINT32_MAX / step->threads < INT32_MAX ? UINT32_MAX / step->threads : INT32_MAX;
    int64_t most = step->team && row <= LONG_ROW && !one_row ? device->resident_blocks : largest,
            count = step->team ? step->threads : 1;
    for (int k = 0; k < step->size_count; ++k)
        if (values[step->size_slots[k]] <= 0) return 0;
    for (int k = 0; k < step->size_count; ++k)
        if (__builtin_mul_overflow(count, values[step->size_slots[k]], &count)) return (unsigned)most;
    int64_t blocks = (count - 1) / ((int64_t)step->threads * step->per_thread) + 1;
    if (row > LONG_ROW && !one_row) blocks = (blocks - 1) / rows_of(step, row, blocks) + 1;
    return (unsigned)(blocks < most ? blocks : most);
}

/* Whether a step with guards takes the place of the ones up to the next without. */
static int guards_hold(const pa_gpu_device *device, const pa_gpu_step *step, const char *slots)
{
    const int64_t *values = (const int64_t *)slots;
    int64_t count = 1;
    for (int k = 0; k < step->guard_count; ++k) {
        const pa_gpu_guard *guard = &step->guards[k];
        const int64_t bits = values[guard->slot] & (int64_t)guard->mask;
        if (bits < guard->low || bits > guard->high) return 0;
    }
    for (int k = 0; k < step->size_count; ++k)
        if (__builtin_mul_overflow(count, values[step->size_slots[k]], &count)) return 0;
    if (!step->row_bytes) return 1;
    return count <= INT32_MAX && count * values[step->row_slot] > 2 * device->l2_bytes / step->row_bytes;
}

void pa_gpu_count_work(pa_gpu_stream *stream) { __atomic_fetch_add(&stream->work_count, 1, __ATOMIC_RELAXED); }

void pa_gpu_record_launch(pa_gpu_device *device, pa_gpu_stream *stream, int64_t function)
{
    uint64_t number = __atomic_fetch_add(&device->launches, 1, __ATOMIC_RELAXED);
    device->recent_functions[number % PA_GPU_RECENT] = function;
    pa_gpu_count_work(stream);
}

/* CU_LAUNCH_PARAM_BUFFER_POINTER and _SIZE are 1 and 2, and so are HIP's */
#define EXTRA(device, slots, nbytes) {(void *)1, (void *)slots, (void *)2, &nbytes, (void *)device->param_end}

int pa_gpu_ranges(const pa_gpu_plan *plan, const char *packed, pa_gpu_range *ranges)
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

int64_t pa_gpu_next_grid(const pa_gpu_plan *plan, int64_t k, const char *slots, pa_gpu_grid *grid)
{
    for (; k < plan->step_count; ++k) {
        const pa_gpu_step *step = &plan->steps[k];
        if (step->guard_count && !guards_hold(plan->device, step, slots)) continue;
        while (plan->steps[k].guard_count) ++k; /* up to the step that runs otherwise */
        grid->step = step;
        grid->blocks = blocks_of(plan->device, step, slots);
        if (grid->blocks) return k + 1;
    }
    return -1;
}

const int64_t pa_gpu_no_slots[1] = {0};

/* As cuda.h declares them: CUlaunchConfig, and a CUlaunchAttribute that allows programmatic stream serialization. */
typedef struct launch_attribute {
    _Alignas(8) int id;
    _Alignas(8) int allowed; /* of a value of 64 bytes */
    int rest[15];
} launch_attribute;
typedef struct launch_config {
    unsigned gx, gy, gz, bx, by, bz, shared;
    uintptr_t stream;
    launch_attribute *attributes;
    unsigned attribute_count;
} launch_config;
typedef int (*is_capturing_fn)(uintptr_t stream, int *status);
typedef int (*launch_config_fn)(const launch_config *config, uintptr_t function, void **params, void **extra);
_Static_assert(sizeof(launch_attribute) == 72, "an identifier of 8 bytes and a value of 64");
_Static_assert(offsetof(launch_config, stream) == 32 && sizeof(launch_config) == 56, "as a CUlaunchConfig");

/* Whether launches on the stream become nodes of a graph, which not all versions of CUDA take with an attribute. An
   error means that another stream does. */
static int is_capturing(const pa_gpu_device *device, uintptr_t stream)
{
    int status = 0;
    return ((is_capturing_fn)device->is_capturing)(stream, &status) || status;
}

static int enqueue(const pa_gpu_device *device, const pa_gpu_grid *grid, uintptr_t stream, void **extra)
{
    enum { PROGRAMMATIC_STREAM_SERIALIZATION = 6 };
    const pa_gpu_step *step = grid->step;
    const unsigned threads = step->threads ? (unsigned)step->threads : 1, shared = (unsigned)step->shared;
    if (!step->dependent_launch || is_capturing(device, stream))
        return ((launch_fn)device->launch)(step->function, grid->blocks, 1, 1, threads, 1, 1, shared, stream, 0, extra);
    launch_attribute attribute = {.id = PROGRAMMATIC_STREAM_SERIALIZATION, .allowed = 1};
    const launch_config config = {grid->blocks, 1, 1, threads, 1, 1, shared, stream, &attribute, 1};
    return ((launch_config_fn)device->launch_dependent)(&config, step->function, 0, extra);
}

int pa_gpu_launch(const pa_gpu_plan *plan, const char *slots, size_t nbytes)
{
    uintptr_t before;
    if (!nbytes) slots = (const char *)pa_gpu_no_slots, nbytes = sizeof pa_gpu_no_slots;
    pa_gpu_device *device = plan->device;
    pa_gpu_stream *stream = pa_gpu_current_stream(device);
    int error = pa_gpu_enter_context(device, &before), count = 0;
    if (error) return error;
    pa_gpu_range ranges[PA_GPU_OPERANDS];
    const int ordered = PA_GPU_ORDERED(device, stream);
    if (ordered) {
        count = pa_gpu_ranges(plan, slots, ranges);
        error = pa_gpu_order_begin(device, stream, ranges, count);
    }
    void *extra[] = EXTRA(device, slots, nbytes);
    pa_gpu_grid grid;
    for (int64_t k = 0; !error && (k = pa_gpu_next_grid(plan, k, slots, &grid)) >= 0;)
        error = enqueue(device, &grid, stream->handle, extra);
    pa_gpu_record_launch(device, stream, plan->function);
    if (ordered) error = pa_gpu_order_end(device, stream, ranges, count, error);
    if (device->blocking && !error) error = ((set_fn)device->synchronize)(stream->handle);
    pa_gpu_leave_context(device, before);
    return error;
}

/* A free block of the device's pinned memory, -1 if there is none. */
static int take_staging(pa_gpu_device *device)
{
    uint64_t used = __atomic_load_n(&device->staging_used, __ATOMIC_RELAXED);
    while (device->staging && ~used) {
        const int block = __builtin_ctzll(~used);
        if (__atomic_compare_exchange_n(&device->staging_used, &used, used | (uint64_t)1 << block, 0, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED))
            return block;
    }
    return -1;
}

int pa_gpu_copy_out(pa_gpu_device *device, void *host, uintptr_t ptr, size_t nbytes)
{
    uintptr_t before;
    pa_gpu_stream *stream = pa_gpu_current_stream(device);
    int error = pa_gpu_before_access(device, ptr, nbytes, 0); /* no pa_gpu_after_access: the copy is done at return */
    if (!error) error = pa_gpu_enter_context(device, &before);
    if (error) return error;
    /* a copy to other memory is staged by the driver */
    const int block = nbytes <= PA_GPU_STAGING ? take_staging(device) : -1;
    char *buffer = block < 0 ? (char *)host : (char *)device->staging + block * PA_GPU_STAGING;
    error = ((copy_fn)device->copy_out)(buffer, ptr, nbytes, stream->handle);
    if (!error) error = ((set_fn)device->synchronize)(stream->handle);
    if (block >= 0 && !error) { /* after a failure it may still be written */
        memcpy(host, buffer, nbytes);
        __atomic_fetch_and(&device->staging_used, ~((uint64_t)1 << block), __ATOMIC_RELEASE);
    }
    pa_gpu_leave_context(device, before);
    return error;
}

int pa_gpu_launch_grid(pa_gpu_device *device, uintptr_t kernel, const unsigned *grid, const unsigned *block,
                       unsigned shared, const char *slots, size_t nbytes, int64_t function)
{
    uintptr_t before;
    pa_gpu_stream *stream = pa_gpu_current_stream(device);
    int error = pa_gpu_enter_context(device, &before);
    if (error) return error;
    const pa_gpu_range all = {0, UINTPTR_MAX, 1}; /* its accesses are unknown */
    const int ordered = PA_GPU_ORDERED(device, stream);
    if (ordered) error = pa_gpu_order_begin(device, stream, &all, 1);
    void *extra[] = EXTRA(device, slots, nbytes);
    if (!error)
        error = ((launch_fn)device->launch)(kernel, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared,
                                            stream->handle, 0, extra);
    pa_gpu_record_launch(device, stream, function);
    if (ordered) error = pa_gpu_order_end(device, stream, &all, 1, error);
    if (device->blocking && !error) error = ((set_fn)device->synchronize)(stream->handle);
    pa_gpu_leave_context(device, before);
    return error;
}
