/* pa_grid_launch.h: the launch of a CUDA or HIP kernel on a CPU. Plain C. */
#ifndef PA_GRID_LAUNCH_H
#define PA_GRID_LAUNCH_H
#ifndef PA_GRID_CPU
#include <stddef.h>
#include <stdint.h>
#endif

/* A launch. Arguments: `params`, an address per argument, or NULL and `buffer` with `size` bytes, each argument at its
   natural alignment. `stacks`: a variable of the calling thread, NULL at first, that keeps the stacks for its next
   launch, of any module; a NULL pointer: stacks are allocated and freed here. They stay usable after a longjmp out of a
   launch. */
typedef struct pa_grid_launch {
    uint32_t grid[3], block[3];
    uint32_t shared;    /* bytes of dynamic shared memory */
    uint32_t warp;      /* lanes: 32 or 64 */
    uint32_t backwards; /* a block's threads run from the last to the first */
    int64_t first, count;
    void **params;
    const void *buffer;
    size_t size;
    void **stacks;
    const char *error; /* out */
} pa_grid_launch;

#endif
