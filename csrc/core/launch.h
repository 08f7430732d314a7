/* One launch of a compiled kernel: what plans end in. */
#pragma once
#include "core.h"

/* Code on the CPU at `entry` with the pool that runs it; or, where `function` isn't None, the plan of a GPU's launch at
   `entry`, and `function` is called with the code of an error; or, where `entry` is 0, a function of the packed
   arguments. `holder` keeps the code loaded. */
typedef struct {
    uintptr_t entry;
    void *pool;
    PyObject *function, *holder;
} pac_launch;

/* Reads (entry, pool, function, holder), as `Driver.native_launch` gives it, with references of its own. 0 with an
   exception. */
int pac_launch_read(PyObject *described, pac_launch *launch);

void pac_launch_clear(pac_launch *launch);

#define PAC_LAUNCH_VISIT(launch) \
    do { \
        Py_VISIT((launch).function); \
        Py_VISIT((launch).holder); \
    } while (0)

/* Launches with `count` slots; `size` elements, by which it decides whether other threads may run Python meanwhile. 0
   with an exception. */
int pac_launch_run(const pac_launch *launch, const int64_t *slots, Py_ssize_t count, int64_t size);

/* The same, and gives what its function returned: None where `entry` isn't 0. NULL with an exception. */
PyObject *pac_launch_result(const pac_launch *launch, const int64_t *slots, Py_ssize_t count, int64_t size);

/* Packs a Python number as one of the dtype with that code. The slots used, 1 or 2; 0: it is none in its range, or an
   object of another class than Python's numbers; the general way says what is wrong. */
int pac_pack_number(PyObject *x, int code, int64_t *slots);

/* A tuple of Python integers, 2 * PAC_MAX_NDIM at most. NULL with an exception. */
PyObject *pac_tuple_of(const int64_t *numbers, int count);

/* Room for one more element of a growing table. 0 with an exception. */
int pac_grow(void **table, int count, int *capacity, size_t size);
