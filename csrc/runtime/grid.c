/* Blocks of a grid as tasks of the worker threads. */
#include "pyarray_grid.h"
#include "../device/pa_grid_launch.h"

typedef int (*grid_entry)(pa_grid_launch *launch);

typedef struct grid_run {
    grid_entry entry;
    pa_grid_launch launch;
    const char *error; /* of one of the blocks that failed */
} grid_run;

static void run_blocks(void *context, int64_t begin, int64_t end)
{
    grid_run *run = context;
    pa_grid_launch part = run->launch;
    part.first = begin;
    part.count = end - begin;
    if (__atomic_load_n(&run->error, __ATOMIC_RELAXED)) return;
    if (run->entry(&part)) __atomic_store_n(&run->error, part.error, __ATOMIC_RELAXED);
}

const char *pa_grid_run(uintptr_t entry, const unsigned *grid, const unsigned *block, unsigned shared, const char *args,
                        size_t nbytes, pa_pool *pool)
{
    grid_run run = {.entry = (grid_entry)entry};
    const int64_t blocks = (int64_t)grid[0] * grid[1] * grid[2];
    for (int axis = 0; axis < 3; ++axis) run.launch.grid[axis] = grid[axis], run.launch.block[axis] = block[axis];
    run.launch.shared = shared;
    run.launch.warp = 32;
    run.launch.buffer = args;
    run.launch.size = nbytes;
    pa_parallel_for(pool, run_blocks, &run, blocks, blocks / (4 * pa_pool_threads(pool)) + 1);
    return run.error;
}
