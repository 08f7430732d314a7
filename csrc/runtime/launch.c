/* Launches: the functions that kernels may call, and the record of the first failure. */
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "internal.h"

/* One lock for every launch: it is taken only by a failure that may become the lowest so far. */
static atomic_flag failure_lock = ATOMIC_FLAG_INIT;

void pa_launch_after_fork(void) { atomic_flag_clear(&failure_lock); }

static int comes_before(const pa_failure *candidate, int32_t loop, int64_t tid)
{
    return candidate->loop != loop ? candidate->loop < loop : candidate->tid < tid;
}

/* True if the candidate cannot win, found without the lock: a kernel that is wrong everywhere fails in each iteration,
   on all threads. `tid` is stored before `loop` (and both before `set`), so a pair read in this order is never lower
   than what the record will hold. */
static int is_late(const pa_failure *record, const pa_failure *candidate)
{
    if (!__atomic_load_n(&record->set, __ATOMIC_ACQUIRE)) return 0;
    int32_t loop = __atomic_load_n(&record->loop, __ATOMIC_ACQUIRE);
    int64_t tid = __atomic_load_n(&record->tid, __ATOMIC_ACQUIRE);
    return !comes_before(candidate, loop, tid);
}

static void store(pa_failure *record, const pa_failure *candidate)
{
    record->kind = candidate->kind;
    record->site = candidate->site;
    record->index = candidate->index;
    record->extent = candidate->extent;
    record->offset = candidate->offset;
    record->size = candidate->size;
    record->depth = candidate->depth;
    int depth = candidate->depth < PA_MAX_FRAMES ? candidate->depth : PA_MAX_FRAMES;
    if (depth > 0) memcpy(record->frames, candidate->frames, (size_t)depth * sizeof *record->frames);
    __atomic_store_n(&record->tid, candidate->tid, __ATOMIC_RELEASE);
    __atomic_store_n(&record->loop, candidate->loop, __ATOMIC_RELEASE);
    __atomic_store_n(&record->set, 1, __ATOMIC_RELEASE);
}

static void runtime_fail(pa_runtime *rt, const pa_failure *candidate)
{
    pa_failure *record = rt->failure;
    if (!record || is_late(record, candidate)) return;
    while (atomic_flag_test_and_set_explicit(&failure_lock, memory_order_acquire)) sched_yield();
    if (!record->set || comes_before(candidate, record->loop, record->tid)) store(record, candidate);
    atomic_flag_clear_explicit(&failure_lock, memory_order_release);
}

static void runtime_parallel_for(pa_runtime *rt, pa_block block, void *context, int64_t count, int64_t grain)
{
    pa_parallel_for(rt->pool, block, context, count, grain);
}

static void *runtime_scratch(pa_runtime *rt, size_t nbytes)
{
    (void)rt;
    return pa_thread_scratch(nbytes);
}

int pa_launch(uintptr_t entry, const char *slots, pa_pool *pool, pa_failure *failure)
{
    pa_runtime rt = {runtime_parallel_for, runtime_scratch, runtime_fail, pool, failure, pa_pool_threads(pool)};
    if (failure) memset(failure, 0, sizeof *failure);
    ((pa_entry)entry)(slots, &rt);
    return failure ? failure->set : 0;
}
