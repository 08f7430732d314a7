"""pa_parallel_for under stress: prime sizes, two callers, nesting, fork, on workers and on another's team.
Blocks are C: they run at once."""

import contextlib
import ctypes
import os
import signal
import struct
import threading
import time
from pathlib import Path

import pytest
from pyarray._runtime import ffi, lib

from pyarray.driver import cc, get_device

BLOCKS = """
#include "pyarray.h"
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct { int64_t count, grain, *seen, *nested, micros; } job;

/* seen[i] counts the visits of i; a wrong range would miss or repeat one, or exceed the grain. */
static void visit(void *context, int64_t begin, int64_t end)
{
    job *j = (job *)context;
    if (begin < 0 || end > j->count || end - begin > j->grain || end <= begin) {
        __atomic_fetch_add(&j->seen[0], 1000, __ATOMIC_RELAXED);
        return;
    }
    if (j->micros) usleep((unsigned)j->micros);
    for (int64_t i = begin; i < end; i++) j->seen[i]++;
}
/* seen[i]: another iteration began while i ran. Each waits for one, some minutes at most. */
static void meet(void *context, int64_t begin, int64_t end)
{
    job *j = (job *)context;
    __atomic_fetch_add(j->nested, end - begin, __ATOMIC_SEQ_CST);
    for (int k = 0; k < 1000000 && __atomic_load_n(j->nested, __ATOMIC_SEQ_CST) < 2; k++) usleep(100);
    for (int64_t i = begin; i < end; i++) j->seen[i] = __atomic_load_n(j->nested, __ATOMIC_SEQ_CST) > 1;
}
void meetings(const void *slots, pa_runtime *rt)
{
    job j = *(const job *)slots;
    rt->parallel_for(rt, meet, &j, j.count, j.grain);
}
/* seen[k]: where the kth thread began; each waits in its first block until all `micros` of them have one. */
static void start(void *context, int64_t begin, int64_t end)
{
    job *j = (job *)context;
    const int64_t k = __atomic_fetch_add(j->nested, 1, __ATOMIC_SEQ_CST);
    if (k < j->micros) j->seen[k] = begin;
    for (int w = 0; w < 1000000 && __atomic_load_n(j->nested, __ATOMIC_SEQ_CST) < j->micros; w++) usleep(100);
}
void starts(const void *slots, pa_runtime *rt)
{
    job j = *(const job *)slots;
    rt->parallel_for(rt, start, &j, j.count, j.grain);
}
/* Two blocks, of which the one on a worker runs until nested[1] is set. */
static _Thread_local int is_caller;
static void hold(void *context, int64_t begin, int64_t end)
{
    job *j = (job *)context;
    meet(context, begin, end);
    while (!is_caller && !__atomic_load_n(&j->nested[1], __ATOMIC_SEQ_CST)) usleep(100);
}
void held(const void *slots, pa_runtime *rt)
{
    job j = *(const job *)slots;
    is_caller = 1;
    rt->parallel_for(rt, hold, &j, j.count, j.grain);
    is_caller = 0;
}
void run(const void *slots, pa_runtime *rt)
{
    job j = *(const job *)slots;
    rt->parallel_for(rt, visit, &j, j.count, j.grain);
    /* The caller's stack is reused at once: a late worker that still used the job would destroy something. */
    j.count = -1;
    j.seen = 0;
}

static void inner(void *context, int64_t begin, int64_t end)
{
    __atomic_fetch_add((int64_t *)context, end - begin, __ATOMIC_RELAXED);
}
typedef struct { pa_runtime *rt; int64_t *total; } outer_context;
static void outer(void *context, int64_t begin, int64_t end)
{
    outer_context *c = (outer_context *)context;
    for (int64_t i = begin; i < end; i++) c->rt->parallel_for(c->rt, inner, c->total, 101, 3);
}
void nest(const void *slots, pa_runtime *rt)
{
    job j = *(const job *)slots;
    outer_context c = {rt, j.nested};
    rt->parallel_for(rt, outer, &c, j.count, j.grain);
}

/* A pa_team of three threads. */
typedef struct { void (*fn)(void *); void *data; } part;
static void *take(void *context)
{
    part *p = (part *)context;
    p->fn(p->data);
    return 0;
}
void team(void (*fn)(void *), void *data, unsigned threads, unsigned flags)
{
    pthread_t others[2];
    part p = {fn, data};
    if (threads || flags) abort();
    for (int k = 0; k < 2; k++)
        if (pthread_create(&others[k], 0, take, &p)) abort();
    take(&p);
    for (int k = 0; k < 2; k++) pthread_join(others[k], 0);
}
"""


@pytest.fixture(scope="module")
def entry():
    driver = get_device("cpu").driver
    module = driver.load(cc.toolchain().compile(BLOCKS))
    return {name: driver.symbol(module, name) for name in ("run", "nest", "meetings", "starts", "held", "team")}


@pytest.fixture(params=[(1, False), (2, False), (5, False), (16, False), (1, True), (2, True), (5, True)])
def pool(request, entry):
    threads, team = request.param
    made = lib.pa_pool_create(threads)
    if team:
        lib.pa_pool_use(made, entry["team"])
    yield made
    lib.pa_pool_destroy(made)


def visits(entry, pool, count, grain, micros=0):
    """Runs one job and returns how often each iteration was visited."""
    seen = (ctypes.c_int64 * max(count, 1))()
    slots = struct.pack("5q", count, grain, ctypes.addressof(seen), 0, micros)
    lib.pa_launch(entry["run"], slots, pool, ffi.NULL)
    return list(seen)[: max(count, 0)]


def state_of(thread):
    """R while it runs, S while it sleeps."""
    return Path(f"/proc/self/task/{thread.native_id}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.parametrize("count", [0, 1, 2, 13, 997, 10007])
@pytest.mark.parametrize("grain", [1, 7, 997, 20011])
def test_each_iteration_once(entry, pool, count, grain):
    for _ in range(20):
        assert visits(entry, pool, count, grain) == [1] * count


def test_no_pool_runs_here(entry):
    assert visits(entry, ffi.NULL, 997, 13) == [1] * 997
    assert lib.pa_pool_threads(ffi.NULL) == 1
    lib.pa_pool_destroy(ffi.NULL)


def test_threads_of_a_pool(pool):
    assert lib.pa_pool_threads(pool) in (1, 2, 5, 16)


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="not a Linux")
def test_a_caller_that_fell_asleep_is_woken(entry):
    """By the worker with the last block."""
    pool = lib.pa_pool_create(2)
    seen, begun = (ctypes.c_int64 * 2)(), (ctypes.c_int64 * 2)()
    slots = struct.pack("5q", 2, 1, ctypes.addressof(seen), ctypes.addressof(begun), 0)
    caller = threading.Thread(target=lib.pa_launch, args=(entry["held"], slots, pool, ffi.NULL), daemon=True)
    caller.start()
    end = time.monotonic() + 60
    while begun[0] < 2 or state_of(caller) != "S":
        assert time.monotonic() < end
        time.sleep(0.01)
    begun[1] = 1
    caller.join(20)
    assert not caller.is_alive()
    lib.pa_pool_destroy(pool)
    assert list(seen) == [1, 1]


def test_work_after_the_workers_fell_asleep(entry, pool):
    for pause in (0.0, 0.001, 0.02):
        for _ in range(5):
            assert visits(entry, pool, 101, 1) == [1] * 101
            time.sleep(pause)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="not a Linux")
def test_workers_keep_to_the_processors_of_their_caller(entry):
    """They keep off the one where it is, of those that it may use, and heed what is chosen for all."""
    before, everywhere = set(os.listdir("/proc/self/task")), os.sched_getaffinity(0)
    pool = lib.pa_pool_create(2)
    try:
        visits(entry, pool, 2, 1, micros=50_000)
        workers = [int(tid) for tid in set(os.listdir("/proc/self/task")) - before]
        assert workers  # another library may have started some meanwhile
        for chosen in (everywhere, {max(everywhere)}, everywhere):
            for tid in (0, *workers):
                with contextlib.suppress(ProcessLookupError):
                    os.sched_setaffinity(tid, chosen)
            for pause in (0.0, 0.001, 0.01) * 20:
                assert visits(entry, pool, 30, 1, micros=10) == [1] * 30
                time.sleep(pause)
            masks = []
            for tid in workers:
                with contextlib.suppress(ProcessLookupError):
                    masks.append(os.sched_getaffinity(tid))
            assert masks
            assert all(mask and mask <= chosen and len(chosen - mask) <= 1 for mask in masks)
    finally:
        os.sched_setaffinity(0, everywhere)
        lib.pa_pool_destroy(pool)


@pytest.mark.parametrize("team", [False, True])
def test_blocks_run_at_the_same_time(entry, team):
    pool = lib.pa_pool_create(8)
    lib.pa_pool_use(pool, entry["team"] if team else 0)
    seen, begun = (ctypes.c_int64 * 2)(), ctypes.c_int64()
    slots = struct.pack("5q", 2, 1, ctypes.addressof(seen), ctypes.addressof(begun), 0)
    lib.pa_launch(entry["meetings"], slots, pool, ffi.NULL)
    lib.pa_pool_destroy(pool)
    assert list(seen) == [1, 1]


@pytest.mark.parametrize("team", [False, True])
@pytest.mark.parametrize("count", [3, 4, 30, 301])
def test_each_thread_begins_with_a_part_of_its_own(entry, team, count):
    """Unless a worker finds the first part open before its own is, which is rare."""
    pool = lib.pa_pool_create(3)
    lib.pa_pool_use(pool, entry["team"] if team else 0)
    for grain in (1, 7):
        wanted, found = [grain * (count // 3 * k + min(k, count % 3)) for k in range(3)], []
        while wanted not in found:
            assert len(found) < 20, found
            seen, begun = (ctypes.c_int64 * 3)(), ctypes.c_int64()
            slots = struct.pack("5q", count * grain, grain, ctypes.addressof(seen), ctypes.addressof(begun), 3)
            lib.pa_launch(entry["starts"], slots, pool, ffi.NULL)
            assert begun.value == count
            found.append(sorted(seen))
    lib.pa_pool_destroy(pool)


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="not a Linux")
@pytest.mark.parametrize("threads", [2, 3, 8])
def test_a_team_works_instead_of_workers(entry, threads):
    """Whose threads are none of the pool's; and the pool's own may be awake when a team takes over."""
    pool = lib.pa_pool_create(threads)
    before = len(os.listdir("/proc/self/task"))
    lib.pa_pool_use(pool, entry["team"])
    assert visits(entry, pool, 101, 1, micros=100) == [1] * 101
    assert len(os.listdir("/proc/self/task")) <= before
    lib.pa_pool_use(pool, 0)
    assert visits(entry, pool, 101, 1, micros=100) == [1] * 101
    assert len(os.listdir("/proc/self/task")) > before
    lib.pa_pool_use(pool, entry["team"])
    for _ in range(200):
        assert visits(entry, pool, 101, 1) == [1] * 101
    lib.pa_pool_destroy(pool)


def test_many_short_jobs(entry, pool):
    """The caller leaves each job while workers are still waking for it."""
    seen = (ctypes.c_int64 * 3)()
    slots = struct.pack("5q", 3, 1, ctypes.addressof(seen), 0, 0)
    for _ in range(5000):
        lib.pa_launch(entry["run"], slots, pool, ffi.NULL)
    assert list(seen) == [5000] * 3


def test_nested_calls(entry, pool):
    total = ctypes.c_int64()
    slots = struct.pack("5q", 97, 2, 0, ctypes.addressof(total), 0)
    for _ in range(10):
        lib.pa_launch(entry["nest"], slots, pool, ffi.NULL)
    assert total.value == 10 * 97 * 101


def test_two_python_threads_launch_at_once(entry, pool):
    wrong = []

    def work():
        for _ in range(200):
            if visits(entry, pool, 499, 7) != [1] * 499:
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert not wrong


def wait_for(child, seconds=300):
    """Exit status of a child; one that hangs is killed and gives None."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_fork_while_another_thread_launches(entry):
    pool = lib.pa_pool_create(4)
    stop = threading.Event()

    def work():
        while not stop.is_set():
            visits(entry, pool, 101, 1, micros=10)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(5):
            child = os.fork()
            if child == 0:
                good = all(visits(entry, pool, 997, 7) == [1] * 997 for _ in range(50))
                os._exit(0 if good else 1)
            assert visits(entry, pool, 97, 1) == [1] * 97
            assert wait_for(child) == 0
    finally:
        stop.set()
        thread.join()
        lib.pa_pool_destroy(pool)


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="not a Linux")
@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_forked_child_goes_back_to_workers_of_its_own(entry):
    """A team's threads don't exist there."""
    pool = lib.pa_pool_create(2)
    lib.pa_pool_use(pool, entry["team"])
    child = os.fork()
    if child == 0:
        good = visits(entry, pool, 101, 1, micros=100) == [1] * 101
        os._exit(0 if good and len(os.listdir("/proc/self/task")) == 2 else 1)
    status = wait_for(child)
    lib.pa_pool_destroy(pool)
    assert status == 0


@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_a_forked_child_destroys_its_pool(entry):
    pool = lib.pa_pool_create(4)
    visits(entry, pool, 101, 1)
    child = os.fork()
    if child == 0:
        visits(entry, pool, 101, 1)
        lib.pa_pool_destroy(pool)
        os._exit(0)
    status = wait_for(child)
    lib.pa_pool_destroy(pool)
    assert status == 0
