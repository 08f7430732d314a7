/* The pool of worker threads, and pa_parallel_for.

   The blocks of a job lie in as many parts as threads may work on it. A thread takes those of its own part first, which
   keeps the same data in its processor's cache from job to job, then those of the others, from the first part on.
   A part is open while `left` is above zero. Taking blocks is one subtraction, which owns as many as it found, up to
   those it took; the fields of the job stay as they are until every block is counted in `done`, so they are read after
   taking. A worker that comes late finds nothing left, owns nothing, and so need not be waited for. Waking is only a
   hint: a worker that sleeps through a job costs speed, never the result. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* A thread that waits polls: SPINS times in a loop, then YIELDS times with sched_yield() between, then it sleeps.
   Waking a sleeper takes long, above all on virtual machines, and it often wakes on its waker's processor. */
#define SPINS 1000
#define YIELDS 1000
#define MAX_TAKEN 4 /* blocks that a thread takes at a time */
#define WORKER_STACK ((size_t)8 << 20)
#define LINE 64
#define BUSY (-1)
#define ASLEEP (-2)

typedef struct worker {
    pa_pool *pool;
    int number; /* the caller is 0 */
    pthread_t thread;
#ifdef __linux__
    atomic_int cpu; /* the processor where it polls for work, or ASLEEP, or BUSY */
    int excluded;   /* the processor that it may not run on, or -1; written by the caller that owns the pool */
#endif
} worker;

typedef struct part {
    _Alignas(LINE) _Atomic int64_t left; /* blocks not taken yet; below zero means none, too */
} part;

/* The first five are written by the caller while no part is open. */
typedef struct job {
    pa_block block;
    void *context;
    int64_t count, grain, blocks;
    int threads; /* the most that work on it */
    part *parts; /* one for each of them; if there are fewer blocks, the last are empty */
} job;

struct pa_pool {
    job job, team_job;                   /* the workers', that of a team */
    _Alignas(LINE) _Atomic int64_t done; /* blocks finished */
    _Alignas(LINE) atomic_int busy;           /* a caller is inside */
    atomic_int sleeping;                      /* workers in wait_for_work */
    atomic_int waiting;                       /* the caller is in wait_for_blocks */
    atomic_int stop;
    atomic_int joined; /* threads of a team, which may have more than the pool */
    pthread_mutex_t mutex;
    pthread_cond_t work, finished;
    worker *workers;
    _Atomic(uintptr_t) team; /* a pa_team that works instead, or 0 */
    int threads, started;
    pa_pool *previous, *next; /* the list of pools, for fork */
};

static _Thread_local int inside_block;
static pa_pool *pools;
static pthread_mutex_t pools_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
    __asm__ volatile("yield");
#endif
}

/* ---- fork ---- */

static void reset(pa_pool *pool)
{
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->work, NULL);
    pthread_cond_init(&pool->finished, NULL);
    pool->started = 0;
    for (int i = 0; i < 2 * pool->threads; i++) atomic_store(&pool->job.parts[i].left, 0); /* the team's, too */
    atomic_store(&pool->busy, 0);
    atomic_store(&pool->sleeping, 0);
    atomic_store(&pool->waiting, 0);
    atomic_store(&pool->team, 0);
}

static void before_fork(void) { pthread_mutex_lock(&pools_mutex); }

static void in_parent(void) { pthread_mutex_unlock(&pools_mutex); }

/* Only the forking thread exists here: no worker, and no other caller whose job could be cut short. */
static void in_child(void)
{
    pthread_mutex_init(&pools_mutex, NULL);
    for (pa_pool *pool = pools; pool; pool = pool->next) reset(pool);
    pa_launch_after_fork();
}

static void watch_forks(void) { pthread_atfork(before_fork, in_parent, in_child); }

static void list_pool(pa_pool *pool)
{
    pthread_mutex_lock(&pools_mutex);
    pool->next = pools;
    if (pools) pools->previous = pool;
    pools = pool;
    pthread_mutex_unlock(&pools_mutex);
}

static void unlist_pool(pa_pool *pool)
{
    pthread_mutex_lock(&pools_mutex);
    if (pool->previous)
        pool->previous->next = pool->next;
    else
        pools = pool->next;
    if (pool->next) pool->next->previous = pool->previous;
    pthread_mutex_unlock(&pools_mutex);
}

/* ---- workers ---- */

static int64_t blocks_before(const job *job, int part)
{
    int64_t parts = job->blocks < job->threads ? job->blocks : job->threads;
    int64_t more = job->blocks % parts;
    return part < parts ? job->blocks / parts * part + (part < more ? part : more) : job->blocks;
}

/* The blocks that the fields tell. A worker may take the first of them before the last part is open. */
static void open_job(job *job)
{
    for (int i = 0; i < job->threads && i < job->blocks; i++)
        atomic_store(&job->parts[i].left, blocks_before(job, i + 1) - blocks_before(job, i));
}

static int is_open(job *job)
{
    for (int i = 0; i < job->threads; i++)
        if (atomic_load_explicit(&job->parts[i].left, memory_order_relaxed) > 0) return 1;
    return 0;
}

static int64_t run_part(job *job, int number)
{
    part *part = &job->parts[number];
    int64_t ran = 0, left;
    while ((left = atomic_load_explicit(&part->left, memory_order_relaxed)) > 0) {
        /* Several while there are many: the processors pass `left` around, which may take longer than a small block. */
        int64_t taken = left / 2;
        taken = taken < 1 ? 1 : taken > MAX_TAKEN ? MAX_TAKEN : taken;
        left = atomic_fetch_sub(&part->left, taken);
        if (left <= 0) break;
        int64_t past = blocks_before(job, number + 1);
        for (; left > 0 && taken > 0; left--, taken--, ran++) {
            int64_t at = past - left, begin = at * job->grain;
            job->block(job->context, begin, at + 1 == job->blocks ? job->count : begin + job->grain);
        }
    }
    return ran;
}

/* Takes and runs blocks until none is left; returns how many it ran. Workers count them in `done`, all at once: the job
   cannot end before that, so the next block one takes is of the same job. The caller finds parts that nobody works on
   in their order, so that blocks may wait for those before them. */
static int64_t run_blocks(job *job, int number)
{
    int64_t ran = 0;
    for (int i = 0; i < job->threads; i++) ran += run_part(job, i ? (i <= number ? i - 1 : i) : number);
    return ran;
}

static void work_once(worker *self)
{
    pa_pool *pool = self->pool;
    int64_t ran = run_blocks(&pool->job, self->number);
    if (!ran) return;
    int64_t blocks = pool->job.blocks; /* read before counting: the caller may open the next job right after */
    if (atomic_fetch_add(&pool->done, ran) + ran == blocks && atomic_load(&pool->waiting)) {
        pthread_mutex_lock(&pool->mutex);
        pthread_cond_signal(&pool->finished);
        pthread_mutex_unlock(&pool->mutex);
    }
}

static int has_work(pa_pool *pool) { return is_open(&pool->job) || atomic_load(&pool->stop); }

static int is_done(pa_pool *pool) { return atomic_load(&pool->done) == pool->job.blocks; }

/* Spins until `ready`; 0 when it is time to sleep. */
static int spin_until(pa_pool *pool, int (*ready)(pa_pool *))
{
    for (int i = 0; i < SPINS + YIELDS; i++) {
        if (ready(pool)) return 1;
        if (i < SPINS) relax();
        else sched_yield();
    }
    return 0;
}

/* Linux may wake a thread on its waker's processor though another is idle, and the two share it for milliseconds. So a
   worker that sleeps, or polls on its caller's processor, gets the caller's affinity mask without that processor, and
   keeps it. If there are fewer processors than threads, scheduling is left to Linux. */
#ifdef __linux__
static void move_off_caller(pa_pool *pool)
{
    int here = sched_getcpu(), checked = 0, enough = 0;
    cpu_set_t others;
    for (int i = 0; i < pool->started; i++) {
        worker *w = &pool->workers[i];
        int cpu = atomic_load_explicit(&w->cpu, memory_order_relaxed);
        if (w->excluded == here || (cpu != here && cpu != ASLEEP)) continue;
        if (!checked) {
            checked = 1;
            enough = !pthread_getaffinity_np(pthread_self(), sizeof others, &others) &&
                     CPU_COUNT(&others) >= pool->threads;
            if (enough) CPU_CLR(here, &others);
        }
        if (enough) pthread_setaffinity_np(w->thread, sizeof others, &others);
        w->excluded = here; /* not tried again before the caller has moved, if it failed */
    }
}

static void set_processor(worker *self, int cpu) { atomic_store_explicit(&self->cpu, cpu, memory_order_relaxed); }
static void mark_spinning(worker *self) { set_processor(self, sched_getcpu()); }
static void mark_asleep(worker *self) { set_processor(self, ASLEEP); }
static void mark_busy(worker *self) { set_processor(self, BUSY); }
#else
static void move_off_caller(pa_pool *pool) { (void)pool; }
static void mark_spinning(worker *self) { (void)self; }
static void mark_asleep(worker *self) { (void)self; }
static void mark_busy(worker *self) { (void)self; }
#endif

/* A worker that is woken too late for a job polls again: if jobs are shorter than a wake-up it would miss each of them
   otherwise. */
static void wait_for_work(worker *self)
{
    pa_pool *pool = self->pool;
    for (;;) {
        mark_spinning(self);
        if (spin_until(pool, has_work)) return;
        pthread_mutex_lock(&pool->mutex);
        mark_asleep(self);
        atomic_fetch_add(&pool->sleeping, 1);
        if (!has_work(pool)) pthread_cond_wait(&pool->work, &pool->mutex);
        atomic_fetch_sub(&pool->sleeping, 1);
        pthread_mutex_unlock(&pool->mutex);
    }
}

/* Wakes two sleepers, each of which wakes two more: the caller gets to its own blocks at once. */
static void wake_two(pa_pool *pool)
{
    int sleeping = atomic_load(&pool->sleeping);
    if (!sleeping || !is_open(&pool->job)) return;
    pthread_mutex_lock(&pool->mutex);
    pthread_cond_signal(&pool->work);
    if (sleeping > 1) pthread_cond_signal(&pool->work);
    pthread_mutex_unlock(&pool->mutex);
}

static void *worker_main(void *argument)
{
    worker *self = argument;
    pa_pool *pool = self->pool;
    inside_block = 1; /* whatever a worker runs is inside a block */
    for (;;) {
        wait_for_work(self);
        if (atomic_load(&pool->stop)) return NULL;
        mark_busy(self);
        wake_two(pool);
        work_once(self);
    }
}

/* Starts workers up to `wanted`. Without more threads from the system the loop runs on those there are. */
static void start_workers(pa_pool *pool, int wanted)
{
    sigset_t all, before;
    pthread_attr_t attributes;
    if (pool->started >= wanted) return;
    /* Signals belong to the application's threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, WORKER_STACK);
    while (pool->started < wanted) {
        worker *next = &pool->workers[pool->started];
        *next = (worker){.pool = pool, .number = pool->started + 1};
#ifdef __linux__
        next->cpu = BUSY;
        next->excluded = -1;
#endif
        if (pthread_create(&next->thread, &attributes, worker_main, next)) break;
        pool->started++;
    }
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- callers ---- */

static void wait_for_blocks(pa_pool *pool)
{
    if (spin_until(pool, is_done)) return;
    pthread_mutex_lock(&pool->mutex);
    atomic_store(&pool->waiting, 1);
    while (!is_done(pool)) pthread_cond_wait(&pool->finished, &pool->mutex);
    atomic_store(&pool->waiting, 0);
    pthread_mutex_unlock(&pool->mutex);
}

static void run_here(pa_block block, void *context, int64_t count, int64_t grain)
{
    for (int64_t begin = 0; begin < count;) {
        int64_t end = count - begin > grain ? begin + grain : count;
        block(context, begin, end);
        begin = end;
    }
}

static void run_on_workers(pa_pool *pool)
{
    int64_t blocks = pool->job.blocks;
    atomic_store(&pool->done, 0);
    start_workers(pool, (int)(blocks < pool->threads ? blocks : pool->threads) - 1);
    open_job(&pool->job);
    move_off_caller(pool);
    wake_two(pool);
    inside_block = 1;
    atomic_fetch_add(&pool->done, run_blocks(&pool->job, 0));
    inside_block = 0;
    wait_for_blocks(pool);
}

static void run_in_team(void *data)
{
    pa_pool *pool = data;
    int number = atomic_fetch_add(&pool->joined, 1);
    if (number >= pool->threads) return;
    inside_block = 1;
    run_blocks(&pool->team_job, number);
    inside_block = 0;
}

void pa_parallel_for(pa_pool *pool, pa_block block, void *context, int64_t count, int64_t grain)
{
    if (count <= 0) return;
    if (grain < 1) grain = 1;
    int64_t blocks = count / grain + (count % grain != 0);
    if (!pool || pool->threads == 1 || blocks == 1 || inside_block || atomic_exchange(&pool->busy, 1)) {
        run_here(block, context, count, grain);
        return;
    }
    uintptr_t team = atomic_load(&pool->team);
    job *job = team ? &pool->team_job : &pool->job;
    job->block = block;
    job->context = context;
    job->count = count;
    job->grain = grain;
    job->blocks = blocks;
    if (team) {
        atomic_store(&pool->joined, 0);
        open_job(job);
        ((pa_team)team)(run_in_team, pool, 0, 0); /* waits for all of its threads */
    } else
        run_on_workers(pool);
    atomic_store(&pool->busy, 0);
}

static size_t parts_bytes(const pa_pool *pool) { return 2 * (size_t)pool->threads * sizeof(part); }

static void free_pool(pa_pool *pool)
{
    pa_memory_free(pool->job.parts, parts_bytes(pool));
    free(pool->workers);
    pa_memory_free(pool, sizeof *pool);
}

pa_pool *pa_pool_create(int threads)
{
    if (threads < 1) threads = 1;
    pa_pool *pool = pa_memory_alloc(sizeof *pool);
    if (!pool) return NULL;
    *pool = (pa_pool){.threads = threads, .job.threads = threads, .team_job.threads = threads};
    part *parts = pa_memory_alloc(parts_bytes(pool));
    pool->workers = calloc((size_t)threads, sizeof *pool->workers);
    pool->job.parts = parts;
    if (!parts || !pool->workers) {
        free_pool(pool);
        return NULL;
    }
    pool->team_job.parts = parts + threads;
    memset(parts, 0, parts_bytes(pool));
    reset(pool);
    pthread_once(&fork_once, watch_forks);
    list_pool(pool);
    return pool;
}

void pa_pool_destroy(pa_pool *pool)
{
    if (!pool) return;
    unlist_pool(pool);
    pthread_mutex_lock(&pool->mutex);
    atomic_store(&pool->stop, 1);
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->mutex);
    for (int i = 0; i < pool->started; i++) pthread_join(pool->workers[i].thread, NULL);
    pthread_cond_destroy(&pool->work);
    pthread_cond_destroy(&pool->finished);
    pthread_mutex_destroy(&pool->mutex);
    free_pool(pool);
}

void pa_pool_use(pa_pool *pool, uintptr_t team)
{
    if (pool) atomic_store(&pool->team, team);
}

int pa_pool_threads(const pa_pool *pool) { return pool ? pool->threads : 1; }
