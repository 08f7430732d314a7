/* The pool of workers under a sanitizer: callers that share a pool, jobs shorter than a wake, jobs after a sleep,
   nested loops,
   failures from several threads, a child of a fork. Ends with 1 where a loop missed an iteration or ran one twice. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pyarray.h"

#define MOST 5000

typedef struct { int64_t count; int32_t *seen; pa_pool *pool; int64_t inside; } job;

static void visit(void *context, int64_t begin, int64_t end)
{
    job *j = context;
    for (int64_t i = begin; i < end; i++) j->seen[i]++; /* plain: each iteration is one thread's */
}

static void count_inner(void *context, int64_t begin, int64_t end) {
    __atomic_fetch_add((int64_t *)context, end - begin, __ATOMIC_RELAXED);
}

static void nest(void *context, int64_t begin, int64_t end)
{
    job *j = context;
    visit(context, begin, end);
    pa_parallel_for(j->pool, count_inner, &j->inside, end - begin, 1);
}

/* `seen` is read without atomics after the return: that needs every block to have happened before it. */
static int loop(pa_pool *pool, pa_block block, int64_t count, int64_t grain)
{
    static _Thread_local int32_t seen[MOST];
    memset(seen, 0, sizeof seen);
    job j = {count, seen, pool, 0};
    pa_parallel_for(pool, block, &j, count, grain);
    int wrong = block == nest && j.inside != count;
    for (int64_t i = 0; i < MOST; i++) wrong |= seen[i] != (i < count);
    memset(&j, 0xff, sizeof j); /* a worker that is late would go astray */
    return wrong;
}

static const int64_t COUNTS[] = {1, 2, 3, 17, 64, 997, 4999}, GRAINS[] = {1, 3, 64, 4999};

static int rounds(pa_pool *pool, int times)
{
    int wrong = 0;
    for (int t = 0; t < times; t++)
        for (size_t c = 0; c < sizeof COUNTS / sizeof *COUNTS; c++)
            for (size_t g = 0; g < sizeof GRAINS / sizeof *GRAINS; g++) {
                wrong |= loop(pool, (t + c) % 3 ? visit : nest, COUNTS[c], GRAINS[g]);
                if (t % 8 == 7 && g == 0 && c == 0) usleep(3000); /* workers fall asleep */
            }
    return wrong;
}

static void *caller(void *pool) { return rounds(pool, 12) ? pool : NULL; }

static void fails(void *context, int64_t begin, int64_t end)
{
    pa_runtime *rt = context;
    for (int64_t i = begin; i < end; i++)
        if (i % 7 == 3) rt->fail(rt, &(pa_failure){.set = 1, .loop = 2, .tid = i, .index = i * 10});
}

static void failing_kernel(const void *slots, pa_runtime *rt)
{
    (void)slots;
    rt->parallel_for(rt, fails, rt, 1000, 5);
}

static int failure_of_the_first(pa_pool *pool)
{
    pa_failure failure;
    int64_t slot = 0;
    return !pa_launch((uintptr_t)failing_kernel, (const char *)&slot, pool, &failure) || failure.tid != 3
        || failure.index != 30;
}

static int copies(pa_pool *pool)
{
    const size_t n = (5u << 20) + 3;
    char *a = pa_memory_alloc(n), *b = pa_memory_alloc(n);
    for (size_t i = 0; i < n; i++) a[i] = (char)(i * 31);
    pa_memory_copy(pool, b, a, n);
    int wrong = memcmp(a, b, n) != 0;
    pa_memory_free(a, n);
    pa_memory_free(b, n);
    return wrong;
}

int main(int argc, char **argv)
{
    int wrong = 0, forks = argc > 1 && !strcmp(argv[1], "forks");
    for (int threads = 1; threads <= 8; threads += threads < 3 ? 1 : 5) {
        pa_pool *pool = pa_pool_create(threads);
        pthread_t others[2];
        wrong |= rounds(pool, 8);
        for (int k = 0; k < 2; k++) pthread_create(&others[k], NULL, caller, pool);
        wrong |= rounds(pool, 12);
        for (int k = 0; k < 2; k++) {
            void *said;
            pthread_join(others[k], &said);
            wrong |= said != NULL;
        }
        for (int k = 0; k < 50; k++) wrong |= failure_of_the_first(pool);
        wrong |= copies(pool);
        if (forks) {
            int status = 0;
            pid_t child = fork();
            if (child == 0) _exit(rounds(pool, 2));
            waitpid(child, &status, 0);
            wrong |= status != 0 || rounds(pool, 2);
        }
        pa_pool_destroy(pool);
    }
    pa_pool *never = pa_pool_create(4);
    pa_pool_destroy(never);
    if (wrong) fprintf(stderr, "an iteration ran twice or not at all, or a failure was lost\n");
    return wrong;
}
