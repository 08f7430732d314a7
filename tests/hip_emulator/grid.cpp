// The scheduler of blocks, once for all kernels: it is most of what each would have to be compiled with.
#define PA_GRID_STATE __attribute__((visibility("default")))
#define PA_GRID_FN extern "C" __attribute__((visibility("default")))
#include "pa_grid_cpu.h"
