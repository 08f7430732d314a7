/* Order between streams by what launches and copies read and write; pyarray_gpu.h has the contract. */
#include "pyarray_gpu.h"
#include <pthread.h>

typedef int (*create_fn)(uintptr_t *event, unsigned flags);
typedef int (*record_fn)(uintptr_t event, uintptr_t stream);
typedef int (*wait_fn)(uintptr_t stream, uintptr_t event, unsigned flags);
typedef int (*event_fn)(uintptr_t event);

enum { NO_TIMES = 2 }; /* of an event that only orders: CU_EVENT_DISABLE_TIMING and hipEventDisableTiming */

_Static_assert(sizeof((pa_gpu_stream *)0)->waited / sizeof(uint64_t) == PA_GPU_STREAMS, "waited has PA_GPU_STREAMS elements");
_Static_assert(sizeof((pa_gpu_stream *)0)->events / sizeof(uintptr_t) == PA_GPU_EVENTS, "events has PA_GPU_EVENTS elements");
_Static_assert(sizeof((pa_gpu_stream *)0)->marks / sizeof(uint64_t) == PA_GPU_EVENTS, "marks has PA_GPU_EVENTS elements");
_Static_assert(sizeof((pa_gpu_device *)0)->accesses / sizeof(pa_gpu_access) == PA_GPU_ACCESSES, "accesses has PA_GPU_ACCESSES elements");

/* One lock for all devices: it is taken only where several streams have work. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Records an event after the work of `stream` so far, under the next number. It takes the oldest one's place. */
static int mark(pa_gpu_device *device, pa_gpu_stream *stream)
{
    const int slot = (int)((stream->marked + 1) % PA_GPU_EVENTS);
    int error = 0;
    if (!stream->events[slot]) error = ((create_fn)device->event_create)(&stream->events[slot], NO_TIMES);
    if (!error) error = ((record_fn)device->event_record)(stream->events[slot], stream->handle);
    if (!error) stream->marks[slot] = ++stream->marked;
    return error;
}

/* Later work of `stream` runs after the work of `other` up to mark `number`: by that event, or the earliest later one. */
static int wait_for(pa_gpu_device *device, pa_gpu_stream *stream, pa_gpu_stream *other, uint64_t number)
{
    const int known = other->index >= 0;
    int best = -1;
    if (known && stream->waited[other->index] >= number) return 0;
    for (int k = 0; k < PA_GPU_EVENTS; ++k)
        if (other->marks[k] >= number && (best < 0 || other->marks[k] < other->marks[best])) best = k;
    if (best < 0) return 0;
    const int error = ((wait_fn)device->stream_wait)(stream->handle, other->events[best], 0);
    if (error) return error;
    if (known) stream->waited[other->index] = other->marks[best];
    ++device->waits;
    return 0;
}

/* All work of `stream` so far comes before later work of other streams. */
static int mark_all(pa_gpu_device *device, pa_gpu_stream *stream)
{
    const uint64_t work = __atomic_load_n(&stream->work, __ATOMIC_RELAXED);
    const int error = mark(device, stream);
    if (error) return error;
    stream->before = stream->marked;
    stream->seen = work;
    return 0;
}

static int wait_for_accesses(pa_gpu_device *device, pa_gpu_stream *stream, const pa_gpu_range *ranges, int count)
{
    int error = 0;
    device->alone = 0;
    for (pa_gpu_stream *other = &device->main; other && !error; other = other->next) {
        if (other == stream) continue;
        /* unrecorded work: from when it was the only stream, or other than launches and copies */
        if (!other->left && other->seen != __atomic_load_n(&other->work, __ATOMIC_RELAXED)) error = mark_all(device, other);
        if (!error && other->before) error = wait_for(device, stream, other, other->before);
    }
    for (int k = 0; k < device->held && !error; ++k) {
        const pa_gpu_access *past = &device->accesses[k];
        if (past->stream == stream) continue;
        for (int r = 0; r < count && !error; ++r)
            if ((ranges[r].writes || past->writes) && ranges[r].low < past->high && past->low < ranges[r].high)
                error = wait_for(device, stream, past->stream, past->number);
    }
    return error;
}

/* A write comes after all recorded accesses of its range, and takes their place. */
static void record_access(pa_gpu_device *device, pa_gpu_stream *stream, pa_gpu_range range)
{
    for (int k = 0; k < device->held;) {
        const pa_gpu_access *past = &device->accesses[k];
        const int inside = range.low <= past->low && past->high <= range.high;
        if (inside && (range.writes || (past->stream == stream && !past->writes))) {
            device->accesses[k] = device->accesses[--device->held];
            continue;
        }
        ++k;
    }
    int slot = device->held;
    if (slot == PA_GPU_ACCESSES) { /* the one that is dropped comes before all work of other streams */
        slot = (int)(device->given_up++ % PA_GPU_ACCESSES);
        const pa_gpu_access *past = &device->accesses[slot];
        if (past->stream->before < past->number) past->stream->before = past->number;
    } else
        ++device->held;
    const pa_gpu_access access = {range.low, range.high, stream, stream->marked, range.writes};
    device->accesses[slot] = access;
}

/* A stream that got all work for a while waits for the others, once, and is the only one from then on. */
static int record_accesses(pa_gpu_device *device, pa_gpu_stream *stream, const pa_gpu_range *ranges, int count)
{
    int error = mark(device, stream);
    if (error) return error;
    ++stream->seen;
    for (int r = 0; r < count; ++r) record_access(device, stream, ranges[r]);
    device->streak = device->last == stream ? device->streak + 1 : 1;
    device->last = stream;
    if (device->streak < PA_GPU_ALONE) return 0;
    for (pa_gpu_stream *other = &device->main; other && !error; other = other->next)
        if (other != stream && other->marked) error = wait_for(device, stream, other, other->marked);
    if (error) return error;
    device->held = 0;
    device->streak = 0;
    device->alone = stream;
    return 0;
}

int pa_gpu_order_begin(pa_gpu_device *device, pa_gpu_stream *stream, const pa_gpu_range *ranges, int count)
{
    pthread_mutex_lock(&lock);
    return wait_for_accesses(device, stream, ranges, count);
}

int pa_gpu_order_end(pa_gpu_device *device, pa_gpu_stream *stream, const pa_gpu_range *ranges, int count, int error)
{
    if (!error) error = record_accesses(device, stream, ranges, count);
    pthread_mutex_unlock(&lock);
    return error;
}

int pa_gpu_before(pa_gpu_device *device, uintptr_t ptr, size_t nbytes, int writes)
{
    const pa_gpu_range range = {ptr, ptr + nbytes, writes};
    uintptr_t context;
    pa_gpu_stream *stream = pa_gpu_current(device);
    if (!PA_GPU_ORDERED(device, stream)) return 0;
    int error = pa_gpu_enter(device, &context);
    if (error) return error;
    pthread_mutex_lock(&lock);
    error = wait_for_accesses(device, stream, &range, 1);
    pthread_mutex_unlock(&lock);
    pa_gpu_leave(device, context);
    return error;
}

int pa_gpu_after(pa_gpu_device *device, uintptr_t ptr, size_t nbytes, int writes)
{
    const pa_gpu_range range = {ptr, ptr + nbytes, writes};
    uintptr_t context;
    pa_gpu_stream *stream = pa_gpu_current(device);
    pa_gpu_count(stream);
    if (!PA_GPU_ORDERED(device, stream)) return 0;
    int error = pa_gpu_enter(device, &context);
    if (error) return error;
    pthread_mutex_lock(&lock);
    error = record_accesses(device, stream, &range, 1);
    pthread_mutex_unlock(&lock);
    pa_gpu_leave(device, context);
    return error;
}

/* Removes a stream that was left and whose work is done. */
static void unlist(pa_gpu_device *device, pa_gpu_stream *stream)
{
    for (int k = 0; k < device->held;)
        if (device->accesses[k].stream == stream) device->accesses[k] = device->accesses[--device->held];
        else ++k;
    for (int k = 0; k < PA_GPU_EVENTS; ++k) {
        if (stream->events[k]) ((event_fn)device->event_destroy)(stream->events[k]);
        stream->events[k] = stream->marks[k] = 0;
    }
    if (stream->index >= 0) device->indexes &= ~(UINT64_C(1) << stream->index);
    if (device->last == stream) device->last = 0;
    stream->before = 0;
    stream->listed = 0;
}

static void unlist_done(pa_gpu_device *device)
{
    for (pa_gpu_stream **link = &device->main.next; *link;) {
        pa_gpu_stream *stream = *link;
        const uintptr_t event = stream->events[stream->marked % PA_GPU_EVENTS];
        if (stream->left && (!event || ((event_fn)device->event_query)(event) == 0)) {
            *link = stream->next;
            unlist(device, stream);
        } else
            link = &stream->next;
    }
}

static void list_stream(pa_gpu_device *device, pa_gpu_stream *stream)
{
    stream->index = -1;
    for (int k = 1; k < PA_GPU_STREAMS && stream->index < 0; ++k)
        if (!(device->indexes >> k & 1)) stream->index = k;
    for (pa_gpu_stream *other = &device->main; other && stream->index >= 0; other = other->next) other->waited[stream->index] = 0;
    for (int k = 0; k < PA_GPU_STREAMS; ++k) stream->waited[k] = 0;
    if (stream->index >= 0) device->indexes |= UINT64_C(1) << stream->index;
    stream->next = device->main.next;
    device->main.next = stream;
    stream->seen = stream->work;
    stream->listed = 1;
}

int pa_gpu_entered(pa_gpu_device *device, pa_gpu_stream *stream)
{
    uintptr_t context;
    int error = pa_gpu_enter(device, &context);
    if (error) return error;
    pthread_mutex_lock(&lock);
    stream->left = 0;
    if (stream != &device->main && !stream->listed) {
        if (__builtin_popcountll(device->indexes) >= PA_GPU_LISTED) unlist_done(device);
        list_stream(device, stream);
    }
    pthread_mutex_unlock(&lock);
    pa_gpu_leave(device, context);
    return 0;
}

int pa_gpu_left(pa_gpu_device *device, pa_gpu_stream *stream)
{
    uintptr_t context;
    if (!stream->listed) return 0;
    int error = pa_gpu_enter(device, &context);
    if (error) return error;
    pthread_mutex_lock(&lock);
    if (device->ordered && stream->seen != __atomic_load_n(&stream->work, __ATOMIC_RELAXED)) error = mark_all(device, stream);
    stream->left = 1;
    if (device->alone == stream) device->alone = 0;
    pthread_mutex_unlock(&lock);
    pa_gpu_leave(device, context);
    return error;
}
