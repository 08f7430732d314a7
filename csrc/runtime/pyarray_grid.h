/* Grids on a CPU: kernels that were compiled with csrc/device/pa_grid_cpu.h. cffi reads this file. */
#ifndef PYARRAY_CDEF
#pragma once
#include "pyarray.h"
#ifdef __cplusplus
extern "C" {
#endif
#endif

/* Runs the kernel whose entry (PA_GRID_ENTRY) is at `entry`: grid[0..2] blocks of block[0..2] threads, with `shared`
   bytes of dynamic shared memory and packed arguments, each at its natural alignment. Blocks are shared out among the
   pool's workers. NULL, or an error message that is valid as long as the module. */
const char *pa_grid_run(uintptr_t entry, const unsigned *grid, const unsigned *block, unsigned shared, const char *args,
                        size_t nbytes, pa_pool *pool);

#ifndef PYARRAY_CDEF
#ifdef __cplusplus
}
#endif
#endif
