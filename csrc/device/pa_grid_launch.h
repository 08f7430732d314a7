/* pa_grid_launch.h: the launch of a CUDA or HIP kernel on a CPU. Plain C. */
#ifndef PA_GRID_LAUNCH_H
#define PA_GRID_LAUNCH_H
#ifndef PA_GRID_CPU
#include <stddef.h>
#include <stdint.h>
#endif

/* What a caller passes. Arguments: `params`, an address per argument, or NULL and `buffer` with `size` bytes, each
   argument at its natural alignment. `stacks`: a word that belongs to the calling thread, NULL at first, where stacks
   are kept for its next launch, of any module; a NULL pointer: they are made and freed here. Those of a caller that
   jumps out of a launch stay usable. */
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
