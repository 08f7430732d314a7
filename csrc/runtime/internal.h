/* Declarations that only the runtime's own files use. */
#pragma once
#include "pyarray.h"

/* memory.c: this thread's scratch buffer, see pa_runtime.scratch. */
void *pa_thread_scratch(size_t nbytes);

/* launch.c: makes the lock of the failure record free again, in the child of a fork. */
void pa_launch_after_fork(void);
