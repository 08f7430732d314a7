/* A launch on a GPU: grids from the packed sizes, then the vendor's own call. */
#include "pyarray_gpu.h"

typedef int (*launch_fn)(uintptr_t function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                         unsigned shared, uintptr_t stream, void **params, void **extra);
typedef int (*get_fn)(uintptr_t *context);
typedef int (*set_fn)(uintptr_t context);

/* cffi needs the numbers themselves in the header */
_Static_assert(sizeof((pa_gpu_device *)0)->recent / sizeof(int64_t) == PA_GPU_RECENT, "recent has PA_GPU_RECENT elements");
_Static_assert(sizeof((pa_gpu_step *)0)->slot / sizeof(int32_t) == PA_GPU_FACTORS, "slot has PA_GPU_FACTORS elements");

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

/* Blocks of a step, 0 if it has no iteration. Without a bound each thread has its share and ends: blocks that come in order read
   memory in order, faster than those of a full grid that stride. */
static unsigned blocks_of(const pa_gpu_device *device, const pa_gpu_step *step, const char *slots)
{
    if (step->threads == 0) return 1;
    int64_t most = step->filling ? device->full_grid : INT32_MAX, count = step->width;
    if (step->factors < 0) return (unsigned)device->full_grid;
    const int64_t *values = (const int64_t *)slots;
    for (int k = 0; k < step->factors; ++k)
        if (values[step->slot[k]] <= 0) return 0;
    for (int k = 0; k < step->factors; ++k)
        if (__builtin_mul_overflow(count, values[step->slot[k]], &count)) return (unsigned)most;
    int64_t blocks = (count - 1) / ((int64_t)step->threads * step->share) + 1;
    return (unsigned)(blocks < most ? blocks : most);
}

void pa_gpu_count(pa_gpu_stream *stream) { __atomic_fetch_add(&stream->work, 1, __ATOMIC_RELAXED); }

static void remember(pa_gpu_device *device, pa_gpu_stream *stream, int64_t function)
{
    uint64_t place = __atomic_fetch_add(&device->launches, 1, __ATOMIC_RELAXED);
    device->recent[place % PA_GPU_RECENT] = function;
    pa_gpu_count(stream);
}

/* CU_LAUNCH_PARAM_BUFFER_POINTER and _SIZE are 1 and 2 in both worlds */
#define EXTRA(device, slots, nbytes) {(void *)1, (void *)slots, (void *)2, &nbytes, (void *)device->end_mark}

int pa_gpu_launch(const pa_gpu_plan *plan, const char *slots, size_t nbytes)
{
    uintptr_t before;
    pa_gpu_device *device = plan->device;
    const pa_gpu_step *steps = plan->steps;
    pa_gpu_stream *stream = pa_gpu_current(device);
    int error = pa_gpu_enter(device, &before);
    if (error) return error;
    void *extra[] = EXTRA(device, slots, nbytes);
    for (int64_t k = 0; k < plan->count && !error; ++k) {
        unsigned blocks = blocks_of(device, &steps[k], slots), threads = steps[k].threads ? (unsigned)steps[k].threads : 1;
        if (blocks)
            error = ((launch_fn)device->launch)(steps[k].function, blocks, 1, 1, threads, 1, 1, (unsigned)steps[k].shared,
                                                stream->handle, 0, extra);
    }
    remember(device, stream, plan->function);
    if (device->blocking && !error) error = ((set_fn)device->synchronize)(stream->handle);
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
    void *extra[] = EXTRA(device, slots, nbytes);
    error = ((launch_fn)device->launch)(kernel, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared, stream->handle, 0,
                                        extra);
    remember(device, stream, function);
    if (device->blocking && !error) error = ((set_fn)device->synchronize)(stream->handle);
    pa_gpu_leave(device, before);
    return error;
}
