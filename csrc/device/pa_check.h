/* pa_check.h: bounds checks of debug kernels and Python's slice rules. A check stands inside the access it guards: on
   failure it records and the access takes a scrap element, so that no thread leaves early, misses a barrier, or touches
   memory outside the view. All arithmetic is 64-bit and free of overflow. */
#ifndef PA_CHECK_H
#define PA_CHECK_H
#include "pa_base.h"

#define PA_FAIL_INDEX 1   /* index, extent; offset and size of the view for the report */
#define PA_FAIL_SUBVIEW 2 /* index: requested offset, size: requested size, extent: of the parent */
#define PA_FAIL_VIEW 3    /* as PA_FAIL_SUBVIEW, for BufferView(array, offset, size) */
#define PA_FAIL_STEP0 4   /* slice or range with step 0 */
#define PA_FAIL_SHAPE 5   /* index: elements of the requested shape, -1 if no array can have it; extent: of the view */
#define PA_FAIL_TURNS 6   /* index and extent: turns of a while loop, the most that it may take */
#define PA_FAIL_ASSERT 7  /* index, extent, offset, size: the bits of the numbers that the assertion shows */

/* The target of a failed access, as large as the largest row that keeps its constant shape after a failure: types.py.
   On a GPU it is global memory: an address that may be local or global would make each access a generic one, which is
   slower. On a CPU it is no member of pa_at: a store through an address that may be of it would seem to change where
   the thread is. */
#define PA_SCRAP_LEN 16
#if PA_GPU
__device__ static pa_c128 pa_scrap[PA_SCRAP_LEN];
#define PA_SCRAP(at) (pa_scrap)
#define PA_SCRAP_ROOM pa_c128 *const scrap = 0
#else
#define PA_SCRAP(at) ((at)->scrap)
#define PA_SCRAP_ROOM pa_c128 scrap[PA_SCRAP_LEN] = {{0, 0}}
#endif

/* 0 <= i < n for n >= 0, in one comparison: a negative i is a huge unsigned number */
PA_FN bool pa_in_range(int64_t i, int64_t n) { return (uint64_t)i < (uint64_t)n; }

/* [offset, offset + size) lies in [0, extent); the sum is not formed, since it may overflow */
PA_FN bool pa_in_view(int64_t offset, int64_t size, int64_t extent)
{
    return (offset >= 0) & (size >= 0) & (offset <= extent) & (size <= (int64_t)((uint64_t)extent - (uint64_t)offset));
}

/* Reports one failure to the runtime. Cold, and out of line, so that a check costs its caller a compare and a jump. */
PA_COLD void pa_fail(pa_runtime *rt, const pa_frame *up, int32_t kind, int32_t site, int32_t loop, int64_t tid,
                     int64_t index, int64_t extent, int64_t offset, int64_t size)
{
    const pa_frame *f;
    int32_t depth = 0;
#if PA_GPU
    pa_gate *gate = rt->gate;
    /* statements before a loop have tid -1 */
    const unsigned long long key = ((unsigned long long)(uint32_t)loop << 48) |
                                   ((unsigned long long)(tid + 1) & 0xffffffffffffull);
    /* of one thread's failures the first is recorded */
    int busy = gate != 0 && atomicMin(&gate->lowest, key) > key;
    /* The lock is released inside the branch that took it, which is what lets a warp without independent thread
       scheduling make progress. A thread that is no longer the lowest leaves the record alone. */
    while (busy) {
        if (atomicCAS(&gate->locked, 0, 1) == 0) {
            __threadfence();
            if (*(volatile unsigned long long *)&gate->lowest == key) {
                volatile pa_failure *v = rt->failure;
                v->kind = kind;
                v->loop = loop;
                v->site = site;
                v->tid = tid;
                v->index = index;
                v->extent = extent;
                v->offset = offset;
                v->size = size;
                for (f = up; f; f = f->up, depth++)
                    if (depth < PA_MAX_FRAMES) v->frames[depth] = f->site;
                v->depth = depth;
                v->set = 1;
            }
            __threadfence_system();
            atomicExch(&gate->locked, 0);
            busy = 0;
        }
    }
#else
    pa_failure c;
    c.set = 1;
    c.kind = kind;
    c.loop = loop;
    c.site = site;
    c.tid = tid;
    c.index = index;
    c.extent = extent;
    c.offset = offset;
    c.size = size;
    for (f = up; f; f = f->up, depth++)
        if (depth < PA_MAX_FRAMES) c.frames[depth] = f->site;
    c.depth = depth;
    for (; depth < PA_MAX_FRAMES; depth++) c.frames[depth] = -1;
    rt->fail(rt, &c);
#endif
}

PA_COLD void pa_fail_index(pa_runtime *rt, const pa_frame *up, int32_t site, int32_t loop, int64_t tid, int64_t index,
                           int64_t extent, int64_t offset, int64_t size)
{
    pa_fail(rt, up, PA_FAIL_INDEX, site, loop, tid, index, extent, offset, size);
}

/* The checks return true if the access is in range; the emitter writes `*(pa_check_index(...) ? address : &scrap)`. */
PA_FN bool pa_check_index(pa_runtime *rt, const pa_frame *up, int32_t site, int32_t loop, int64_t tid, int64_t index,
                          int64_t extent, int64_t offset, int64_t size)
{
    if (pa_in_range(index, extent)) return true;
    pa_fail_index(rt, up, site, loop, tid, index, extent, offset, size);
    return false;
}

/* kind is PA_FAIL_SUBVIEW or PA_FAIL_VIEW; base is the parent's own offset */
PA_FN bool pa_check_view(pa_runtime *rt, const pa_frame *up, int32_t kind, int32_t site, int32_t loop, int64_t tid,
                         int64_t offset, int64_t size, int64_t extent, int64_t base)
{
    if (pa_in_view(offset, size, extent)) return true;
    pa_fail(rt, up, kind, site, loop, tid, offset, extent, base, size);
    return false;
}

PA_FN bool pa_check_step(pa_runtime *rt, const pa_frame *up, int32_t site, int32_t loop, int64_t tid, int64_t step)
{
    if (step != 0) return true;
    pa_fail(rt, up, PA_FAIL_STEP0, site, loop, tid, step, 0, 0, 0);
    return false;
}

/* slice(i, ...).indices(n) for n >= 0 and any i (CPython: PySlice_AdjustIndices). i + n cannot overflow, since i < 0 <=
   n there. With a negative step a slice starts at n - 1 at most and may stop before 0, at -1. */
PA_FN int64_t pa_slice_clamp(int64_t i, int64_t n, int64_t step)
{
    int64_t low = step < 0 ? -1 : 0, high = step < 0 ? n - 1 : n;
    i = i < 0 ? i + n : i;
    return i < low ? low : i > high ? high : i;
}
/* start and stop follow one rule in CPython too */
PA_FN int64_t pa_slice_start(int64_t i, int64_t n) { return pa_slice_clamp(i, n, 1); }
PA_FN int64_t pa_slice_stop(int64_t i, int64_t n) { return pa_slice_clamp(i, n, 1); }
PA_FN int64_t pa_slice_start_step(int64_t i, int64_t n, int64_t step) { return pa_slice_clamp(i, n, step); }
PA_FN int64_t pa_slice_stop_step(int64_t i, int64_t n, int64_t step) { return pa_slice_clamp(i, n, step); }
/* the bounds left out: v[::step] */
PA_FN int64_t pa_slice_start_none(int64_t n, int64_t step) { return step < 0 ? n - 1 : 0; }
PA_FN int64_t pa_slice_stop_none(int64_t n, int64_t step) { return step < 0 ? -1 : n; }
/* elements of a clamped slice; step 0 gives 0 */
PA_FN int64_t pa_slice_len(int64_t start, int64_t stop, int64_t step) { return pa_range_len(start, stop, step); }

/* Interval arithmetic for the values of a block of iterations, before it runs. If a bound overflows, the iterations
   may wrap, so nothing is known: `fits` is cleared. */
PA_FN int64_t pa_bound_add(int64_t a, int64_t b, bool *fits)
{
    int64_t r = (int64_t)((uint64_t)a + (uint64_t)b);
    if (((a ^ r) & (b ^ r)) < 0) *fits = false;
    return r;
}
PA_FN int64_t pa_bound_sub(int64_t a, int64_t b, bool *fits)
{
    int64_t r = (int64_t)((uint64_t)a - (uint64_t)b);
    if (((a ^ b) & (a ^ r)) < 0) *fits = false;
    return r;
}
PA_FN int64_t pa_bound_mul(int64_t a, int64_t b, bool *fits)
{
    int64_t r = (int64_t)((uint64_t)a * (uint64_t)b);
    bool small = (a == (int32_t)a) & (b == (int32_t)b);
    /* only the least number is its own negative here */
    if (!small && a != 0 && (a == -1 ? b == r : r / a != b)) *fits = false;
    return r;
}
/* unknown for divisors that are not positive */
PA_FN int64_t pa_bound_floordiv(int64_t a, int64_t d, bool *fits)
{
    if (d <= 0) {
        *fits = false;
        return 0;
    }
    return a / d - (a % d < 0);
}
/* the largest remainder of any number */
PA_FN int64_t pa_bound_mod(int64_t any, int64_t d, bool *fits)
{
    (void)any;
    if (d <= 0) *fits = false;
    return d <= 0 ? 0 : d - 1;
}
PA_FN int64_t pa_bound_min(int64_t a, int64_t b) { return b < a ? b : a; }
PA_FN int64_t pa_bound_max(int64_t a, int64_t b) { return b > a ? b : a; }
/* the end of an interval without the value `at`; `by` is 1 or -1, inwards */
PA_FN int64_t pa_bound_exclude(int64_t end, int64_t at, int64_t by)
{
    return end == at ? (int64_t)((uint64_t)end + (uint64_t)by) : end;
}
/* the last number of range(start, stop, step); of an empty one, the start */
PA_FN int64_t pa_bound_end(int64_t start, int64_t stop, int64_t step)
{
    int64_t n = pa_range_len(start, stop, step);
    return n > 0 ? (int64_t)((uint64_t)start + (uint64_t)(n - 1) * (uint64_t)step) : start;
}

#endif
