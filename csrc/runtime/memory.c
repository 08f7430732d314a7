/* Aligned memory, and each thread's scratch buffer. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "internal.h"

#ifndef MAP_ANONYMOUS
#define MAP_ANONYMOUS MAP_ANON
#endif

#define ALIGNMENT ((size_t)64)
#define HUGE_PAGE ((size_t)2 << 20)
#define HUGE_BLOCK ((size_t)4 << 20)
/* Leaves room for rounding up without overflow. */
#define LARGEST (SIZE_MAX / 2)

static size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

/* By mmap rather than malloc, whose heap large aligned blocks would fragment. */
static void *map_huge(size_t nbytes)
{
    size_t want = round_up(nbytes, HUGE_PAGE), span = want + HUGE_PAGE;
    char *start = mmap(NULL, span, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) return NULL;
    size_t before = round_up((uintptr_t)start, HUGE_PAGE) - (uintptr_t)start;
    size_t after = span - before - want;
    if (before) munmap(start, before);
    if (after) munmap(start + before + want, after);
#ifdef MADV_HUGEPAGE
    madvise(start + before, want, MADV_HUGEPAGE); /* a hint: without it the block is only slower */
#endif
    return start + before;
}

void *pa_memory_alloc(size_t nbytes)
{
    void *block = NULL;
    if (nbytes > LARGEST) return NULL;
    if (nbytes >= HUGE_BLOCK) return map_huge(nbytes);
    /* Whole lines, so that a vector load of the last elements stays inside the block. */
    size_t want = nbytes ? round_up(nbytes, ALIGNMENT) : ALIGNMENT;
    return posix_memalign(&block, ALIGNMENT, want) ? NULL : block;
}

size_t pa_memory_zeroed_from(void) { return HUGE_BLOCK; }

void pa_memory_free(void *block, size_t nbytes)
{
    if (!block) return;
    if (nbytes >= HUGE_BLOCK)
        munmap(block, round_up(nbytes, HUGE_PAGE));
    else
        free(block);
}

/* ---- copies ---- */

#define COPY_BLOCK ((size_t)256 << 10) /* bytes that are worth waking a worker */

typedef struct {
    char *to;
    const char *from;
    size_t nbytes;
} copy;

static void copy_blocks(void *context, int64_t begin, int64_t end)
{
    const copy *c = context;
    size_t start = (size_t)begin * COPY_BLOCK, stop = (size_t)end * COPY_BLOCK;
    memcpy(c->to + start, c->from + start, (stop < c->nbytes ? stop : c->nbytes) - start);
}

void pa_memory_copy(pa_pool *pool, void *to, const void *from, size_t nbytes)
{
    copy c = {to, from, nbytes};
    pa_parallel_for(pool, copy_blocks, &c, (int64_t)((nbytes + COPY_BLOCK - 1) / COPY_BLOCK), 1);
}

/* ---- scratch ---- */

typedef struct {
    void *block;
    size_t nbytes;
} scratch_buffer;

static _Thread_local scratch_buffer scratch;
static pthread_key_t scratch_key;
static pthread_once_t scratch_once = PTHREAD_ONCE_INIT;
static int scratch_has_key;

/* Gets a copy of the thread-local variable, which may be gone when destructors run. */
static void scratch_destroy(void *value)
{
    scratch_buffer *saved = value;
    pa_memory_free(saved->block, saved->nbytes);
    free(saved);
}

static void scratch_make_key(void) { scratch_has_key = pthread_key_create(&scratch_key, scratch_destroy) == 0; }

/* Saves the block under the key, so that it is freed when the thread exits. */
static void scratch_save(void)
{
    pthread_once(&scratch_once, scratch_make_key);
    if (!scratch_has_key) return;
    scratch_buffer *saved = pthread_getspecific(scratch_key);
    if (!saved) {
        saved = malloc(sizeof *saved);
        if (!saved) return;
        pthread_setspecific(scratch_key, saved);
    }
    *saved = scratch;
}

void *pa_thread_scratch(size_t nbytes)
{
    if (scratch.block && nbytes <= scratch.nbytes) return scratch.block;
    if (nbytes > LARGEST) return NULL;
    /* Doubled: a kernel that needs a little more each time doesn't allocate at each launch. */
    size_t want = scratch.nbytes * 2 > nbytes ? scratch.nbytes * 2 : nbytes;
    void *block = pa_memory_alloc(want);
    if (!block) return NULL;
    pa_memory_free(scratch.block, scratch.nbytes);
    scratch.block = block;
    scratch.nbytes = want;
    scratch_save();
    return block;
}
