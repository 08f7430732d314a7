/* pyarray's C runtime: memory, worker threads, launches, modules. This file is the whole C API, and cffi reads it too,
   so it holds plain declarations only; what cffi cannot parse stands between `#ifndef PYARRAY_CDEF` and its `#endif`.
   Types marked ABI are shared with compiled kernels, which are kept on disk: append to them, never reorder. */
#ifndef PYARRAY_CDEF
#pragma once
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
#endif

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* A block of at least nbytes, 64-byte aligned; blocks of 4 MiB and more are 2 MiB aligned and ask for huge pages. The
   caller owns it. NULL when there is no memory. A size of 0 gives a valid block. The contents are indeterminate below
   pa_memory_zeroed_from bytes. */
void *pa_memory_alloc(size_t nbytes);

/* Bytes from which the blocks of pa_memory_alloc hold zeros: they are new pages. */
size_t pa_memory_zeroed_from(void);
/* Frees a block of pa_memory_alloc. `nbytes` must be the number that it was allocated with. NULL is ignored. */
void pa_memory_free(void *block, size_t nbytes);

/* ---- threads ----------------------------------------------------------------------------------------------------- */

/* Worker threads. Every function that takes a pool accepts NULL: "no other threads, run here". */
typedef struct pa_pool pa_pool;

/* One piece of a loop: the iterations begin <= i < end. ABI. */
typedef void (*pa_block)(void *context, int64_t begin, int64_t end);

/* A pool of `threads` workers, of which the caller of pa_parallel_for is always worker 0: a pool of 1 starts no thread.
   Workers start lazily, when a loop first needs them. The caller owns the pool. NULL when there is no memory. */
pa_pool *pa_pool_create(int threads);

/* Stops and joins the workers. Nobody may be inside pa_parallel_for on this pool. NULL is ignored. */
void pa_pool_destroy(pa_pool *pool);

/* A team of threads of another runtime: fn(data) runs once on each, the caller among them; it returns when all have
   returned. `threads` 0 means as many as the team has, `flags` are 0: GOMP_parallel of an OpenMP runtime. */
typedef void (*pa_team)(void (*fn)(void *data), void *data, unsigned threads, unsigned flags);

/* Loops of this pool run on the team at that address, on at most as many threads as the pool has, while its workers
   sleep; 0: on its workers. Meant for programs with an OpenMP runtime, whose waiting threads would occupy the
   workers' processors. A team doesn't survive fork(): a child uses workers again. */
void pa_pool_use(pa_pool *pool, uintptr_t team);

/* Workers, the caller included; 1 for NULL. */
int pa_pool_threads(const pa_pool *pool);

/* The same as
       for (int64_t i = 0; i < count; i += grain) block(context, i, min(i + grain, count));
   in any order and on any worker. A grain below 1 counts as 1.
   Each thread takes the blocks of a part of its own first, by an atomic counter, several at a time while there are
   many, then those of the other parts. The caller takes blocks until none is left, then waits for those that workers
   *took*, and for nothing else: a worker that has not woken yet is never waited for, and never touches `context` later.
   It all runs here, in order, when: the pool is NULL or has one worker, there is one block, another thread is using the
   pool, or the call comes from inside a block (nested). After fork() a child has no workers and starts its own. Forking
   from inside a block is not supported. `context` stays the caller's, and is not used after the return. */
void pa_parallel_for(pa_pool *pool, pa_block block, void *context, int64_t count, int64_t grain);

/* memcpy by all workers: one core doesn't fill the memory's bandwidth, nor that of a bus to a GPU. */
void pa_memory_copy(pa_pool *pool, void *to, const void *from, size_t nbytes);

/* ---- the first failure of a launch ------------------------------------------------------------------------------- */

#define PA_MAX_FRAMES 64

/* The chain of calls inside a kernel (debug mode only). It lives on the stack of the kernel. `up` is NULL in the
   outermost function; `site` is the call's number in the host's site table. ABI. */
typedef struct pa_frame {
    const struct pa_frame *up;
    int32_t site;
} pa_frame;

/* What went wrong, in numbers: names and source lines live in a table of the host. ABI. */
typedef struct pa_failure {
    int32_t set;     /* 0: nothing failed */
    int32_t kind;    /* PA_FAIL_...: csrc/device/pa_check.h */
    int32_t loop;    /* number of the top-level loop */
    int32_t site;    /* number of the access in the host's site table */
    int64_t tid;     /* linear iteration of that loop */
    int64_t index;   /* the requested index */
    int64_t extent;  /* the valid ones are 0 <= index < extent */
    int64_t offset;  /* of the view from its base, in elements */
    int64_t size;    /* second number of a sub-view (its size); unused otherwise */
    int32_t depth;   /* frames that follow, innermost first; beyond PA_MAX_FRAMES they are counted, not kept */
    int32_t frames[64];
} pa_failure;

/* ---- launches ---------------------------------------------------------------------------------------------------- */

/* The functions that a kernel may call. It belongs to one launch and is invalid after it. ABI. */
typedef struct pa_runtime {
    /* pa_parallel_for on this launch's pool */
    void (*parallel_for)(struct pa_runtime *rt, pa_block block, void *context, int64_t count, int64_t grain);
    /* This thread's scratch: 64-byte aligned, valid until the next call on this thread, owned by the thread. NULL when
       there is no memory. */
    void *(*scratch)(struct pa_runtime *rt, size_t nbytes);
    /* Keeps a copy of the candidate if its (loop, tid) is the lowest so far; of equals the first stays. Thread-safe. */
    void (*fail)(struct pa_runtime *rt, const pa_failure *candidate);
    pa_pool *pool;       /* NULL: run here */
    pa_failure *failure; /* NULL: failures are dropped */
    int32_t threads;     /* the most that parallel_for uses: for the sizes of tasks, never for what comes out */
} pa_runtime;

/* A compiled kernel. `slots` are its packed arguments, 8 bytes each. ABI. */
typedef void (*pa_entry)(const void *slots, pa_runtime *rt);

/* Runs the kernel at address `entry` to its end. `slots` (8-byte aligned) and `failure` stay the caller's. `failure`
   may be NULL; otherwise it is cleared first. Returns failure ? failure->set : 0. */
int pa_launch(uintptr_t entry, const char *slots, pa_pool *pool, pa_failure *failure);

/* ---- modules: shared objects of compiled kernels ----------------------------------------------------------------- */

/* Opens a shared object. A path that was opened before gives that same module, so different contents need different
   paths. 0 on failure, and pa_module_error() says why. */
uintptr_t pa_module_open(const char *path);

/* Closes a module. Its functions must not run any more: a worker runs one only until the launch that gave it a block
   returns. */
void pa_module_close(uintptr_t module);

/* Address of a function of the module. 0 when it has none of that name, and pa_module_error() says so. */
uintptr_t pa_module_symbol(uintptr_t module, const char *name);

/* Reason of this thread's last failure, "" if none; valid until this thread's next failure. Never NULL. */
const char *pa_module_error(void);

#ifndef PYARRAY_CDEF
#ifdef __cplusplus
}
#endif
#endif
