/* A launch on a GPU: grids from the packed sizes, then the vendor's own call. */
#include "pyarray_gpu.h"

typedef int (*launch_fn)(uintptr_t function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                         unsigned shared, uintptr_t stream, void **params, void **extra);
typedef int (*get_fn)(uintptr_t *context);
typedef int (*set_fn)(uintptr_t context);

/* Blocks of a step, 0 if it has no iteration. The product may overflow: then the grid fills the device, as for any large one. */
static unsigned blocks_of(const pa_gpu_device *device, const pa_gpu_step *step, const char *slots)
{
    if (step->threads == 0) return 1;
    int64_t most = device->full_grid, count = step->width;
    if (step->factors < 0) return (unsigned)most;
    const int64_t *values = (const int64_t *)slots;
    for (int k = 0; k < step->factors; ++k)
        if (values[step->slot[k]] <= 0) return 0;
    for (int k = 0; k < step->factors; ++k)
        if (__builtin_mul_overflow(count, values[step->slot[k]], &count)) return (unsigned)most;
    int64_t blocks = (count - 1) / step->threads + 1;
    return (unsigned)(blocks < most ? blocks : most);
}

int pa_gpu_launch(const pa_gpu_device *device, const pa_gpu_step *steps, int count, const char *slots, size_t nbytes,
                  uintptr_t stream)
{
    uintptr_t current = 0;
    int error = ((get_fn)device->get_context)(&current);
    if (!error && current != device->context) error = ((set_fn)device->set_context)(device->context);
    /* CU_LAUNCH_PARAM_BUFFER_POINTER and _SIZE are 1 and 2 in both worlds */
    void *extra[] = {(void *)1, (void *)slots, (void *)2, &nbytes, (void *)device->end_mark};
    for (int k = 0; k < count && !error; ++k) {
        unsigned blocks = blocks_of(device, &steps[k], slots), threads = steps[k].threads ? (unsigned)steps[k].threads : 1;
        if (blocks)
            error = ((launch_fn)device->launch)(steps[k].function, blocks, 1, 1, threads, 1, 1, 0, stream, 0, extra);
    }
    return error;
}
