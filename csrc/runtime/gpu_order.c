/* Order between streams by what launches and copies read and write; pyarray_gpu.h has the contract. */
#include "pyarray_gpu.h"
#include <pthread.h>

typedef int (*create_fn)(uintptr_t *event, unsigned flags);
typedef int (*record_fn)(uintptr_t event, uintptr_t stream);
typedef int (*wait_fn)(uintptr_t stream, uintptr_t event, unsigned flags);
typedef int (*event_fn)(uintptr_t event);

enum { NO_TIMES = 2 }; /* of an event that only orders: CU_EVENT_DISABLE_TIMING and hipEventDisableTiming */

_Static_assert(sizeof((pa_gpu_stream *)0)->waited_events / sizeof(uint64_t) == PA_GPU_STREAMS,
               "waited_events has PA_GPU_STREAMS elements");
_Static_assert(sizeof((pa_gpu_stream *)0)->events / sizeof(uintptr_t) == PA_GPU_EVENTS,
               "events has PA_GPU_EVENTS elements");
_Static_assert(sizeof((pa_gpu_stream *)0)->event_numbers / sizeof(uint64_t) == PA_GPU_EVENTS,
               "event_numbers has PA_GPU_EVENTS elements");
_Static_assert(sizeof((pa_gpu_device *)0)->accesses / sizeof(pa_gpu_access) == PA_GPU_ACCESSES,
               "accesses has PA_GPU_ACCESSES elements");

/* One lock for all devices: it is taken only where several streams have work. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Records an event after the work of `stream` so far, under the next number. It replaces the oldest one. */
static int record_event(pa_gpu_device *device, pa_gpu_stream *stream)
{
    const int slot = (int)((stream->last_event + 1) % PA_GPU_EVENTS);
    int error = 0;
    if (!stream->events[slot]) error = ((create_fn)device->event_create)(&stream->events[slot], NO_TIMES);
    if (!error) error = ((record_fn)device->event_record)(stream->events[slot], stream->handle);
    if (!error) stream->event_numbers[slot] = ++stream->last_event;
    return error;
}

/* Later work of `stream` runs after the work of `other` up to event `number`: it waits for that event, or the earliest
   later one. */
static int wait_for(pa_gpu_device *device, pa_gpu_stream *stream, pa_gpu_stream *other, uint64_t number)
{
    const int has_index = other->index >= 0;
    int best = -1;
    if (has_index && stream->waited_events[other->index] >= number) return 0;
    for (int k = 0; k < PA_GPU_EVENTS; ++k)
        if (other->event_numbers[k] >= number && (best < 0 || other->event_numbers[k] < other->event_numbers[best]))
            best = k;
    if (best < 0) return 0;
    const int error = ((wait_fn)device->stream_wait)(stream->handle, other->events[best], 0);
    if (error) return error;
    if (has_index) stream->waited_events[other->index] = other->event_numbers[best];
    ++device->waits;
    return 0;
}

static int has_unrecorded_work(const pa_gpu_stream *stream)
{
    return stream->recorded_work != __atomic_load_n(&stream->work_count, __ATOMIC_RELAXED);
}

/* All work of `stream` so far comes before later work of other streams. */
static int fence(pa_gpu_device *device, pa_gpu_stream *stream)
{
    const uint64_t work = __atomic_load_n(&stream->work_count, __ATOMIC_RELAXED);
    const int error = record_event(device, stream);
    if (error) return error;
    stream->fence = stream->last_event;
    stream->recorded_work = work;
    return 0;
}

static int wait_for_accesses(pa_gpu_device *device, pa_gpu_stream *stream, const pa_gpu_range *ranges, int count)
{
    int error = 0;
    device->only_stream = 0;
    for (pa_gpu_stream *other = &device->default_stream; other && !error; other = other->next) {
        if (other == stream) continue;
        /* unrecorded work: enqueued while it was the only stream, or not by a launch or copy of pyarray */
        if (!other->ended && has_unrecorded_work(other)) error = fence(device, other);
        if (!error && other->fence) error = wait_for(device, stream, other, other->fence);
    }
    for (int k = 0; k < device->access_count && !error; ++k) {
        const pa_gpu_access *old = &device->accesses[k];
        if (old->stream == stream) continue;
        for (int r = 0; r < count && !error; ++r)
            if ((ranges[r].writes || old->writes) && ranges[r].low < old->high && old->low < ranges[r].high)
                error = wait_for(device, stream, old->stream, old->event_number);
    }
    return error;
}

/* A write comes after all recorded accesses inside its range, so it replaces them. */
static void record_access(pa_gpu_device *device, pa_gpu_stream *stream, pa_gpu_range range)
{
    for (int k = 0; k < device->access_count;) {
        const pa_gpu_access *old = &device->accesses[k];
        const int inside = range.low <= old->low && old->high <= range.high;
        if (inside && (range.writes || (old->stream == stream && !old->writes))) {
            device->accesses[k] = device->accesses[--device->access_count];
            continue;
        }
        ++k;
    }
    int slot = device->access_count;
    if (slot == PA_GPU_ACCESSES) { /* the one that is dropped comes before all work of other streams */
        slot = (int)(device->dropped_accesses++ % PA_GPU_ACCESSES);
        const pa_gpu_access *old = &device->accesses[slot];
        if (old->stream->fence < old->event_number) old->stream->fence = old->event_number;
    } else {
        ++device->access_count;
    }
    const pa_gpu_access access = {range.low, range.high, stream, stream->last_event, range.writes};
    device->accesses[slot] = access;
}

/* A stream that got all of the last work waits for the others, once; from then on it counts as the only one. */
static int record_accesses(pa_gpu_device *device, pa_gpu_stream *stream, const pa_gpu_range *ranges, int count)
{
    /* between the start of this work and its record another stream may have become the only one */
    if (device->only_stream != stream) device->only_stream = 0;
    int error = record_event(device, stream);
    if (error) return error;
    ++stream->recorded_work;
    for (int r = 0; r < count; ++r) record_access(device, stream, ranges[r]);
    device->consecutive = device->last_stream == stream ? device->consecutive + 1 : 1;
    device->last_stream = stream;
    if (device->consecutive < PA_GPU_CONSECUTIVE) return 0;
    for (pa_gpu_stream *other = &device->default_stream; other && !error; other = other->next)
        if (other != stream && other->last_event) error = wait_for(device, stream, other, other->last_event);
    if (error) return error;
    device->access_count = 0;
    device->consecutive = 0;
    device->only_stream = stream;
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

int pa_gpu_before_access(pa_gpu_device *device, uintptr_t ptr, size_t nbytes, int writes)
{
    const pa_gpu_range range = {ptr, ptr + nbytes, writes};
    uintptr_t context;
    pa_gpu_stream *stream = pa_gpu_current_stream(device);
    if (!PA_GPU_ORDERED(device, stream)) return 0;
    int error = pa_gpu_enter_context(device, &context);
    if (error) return error;
    pthread_mutex_lock(&lock);
    error = wait_for_accesses(device, stream, &range, 1);
    pthread_mutex_unlock(&lock);
    pa_gpu_leave_context(device, context);
    return error;
}

int pa_gpu_after_access(pa_gpu_device *device, uintptr_t ptr, size_t nbytes, int writes)
{
    const pa_gpu_range range = {ptr, ptr + nbytes, writes};
    uintptr_t context;
    pa_gpu_stream *stream = pa_gpu_current_stream(device);
    const int error_of_context = PA_GPU_ORDERED(device, stream) ? pa_gpu_enter_context(device, &context) : 0;
    if (error_of_context || !PA_GPU_ORDERED(device, stream)) {
        pa_gpu_count_work(stream);
        return error_of_context;
    }
    pthread_mutex_lock(&lock); /* counted and recorded at once: a fence of another thread comes before both or after */
    pa_gpu_count_work(stream);
    int error = record_accesses(device, stream, &range, 1);
    pthread_mutex_unlock(&lock);
    pa_gpu_leave_context(device, context);
    return error;
}

/* Frees what an ended stream holds in the device's records; its work is done. */
static void remove_stream(pa_gpu_device *device, pa_gpu_stream *stream)
{
    for (int k = 0; k < device->access_count;)
        if (device->accesses[k].stream == stream) device->accesses[k] = device->accesses[--device->access_count];
        else ++k;
    for (int k = 0; k < PA_GPU_EVENTS; ++k) {
        if (stream->events[k]) ((event_fn)device->event_destroy)(stream->events[k]);
        stream->events[k] = stream->event_numbers[k] = 0;
    }
    if (stream->index >= 0) device->used_indexes &= ~(UINT64_C(1) << stream->index);
    if (device->last_stream == stream) device->last_stream = 0;
    stream->fence = 0;
    stream->listed = 0;
}

static void remove_ended(pa_gpu_device *device)
{
    for (pa_gpu_stream **link = &device->default_stream.next; *link;) {
        pa_gpu_stream *stream = *link;
        const uintptr_t event = stream->events[stream->last_event % PA_GPU_EVENTS];
        if (stream->ended && (!event || ((event_fn)device->event_query)(event) == 0)) {
            *link = stream->next;
            remove_stream(device, stream);
        } else
            link = &stream->next;
    }
}

static void add_stream(pa_gpu_device *device, pa_gpu_stream *stream)
{
    stream->index = -1;
    for (int k = 1; k < PA_GPU_STREAMS && stream->index < 0; ++k)
        if (!(device->used_indexes >> k & 1)) stream->index = k;
    for (pa_gpu_stream *other = &device->default_stream; other && stream->index >= 0; other = other->next)
        other->waited_events[stream->index] = 0;
    for (int k = 0; k < PA_GPU_STREAMS; ++k) stream->waited_events[k] = 0;
    if (stream->index >= 0) device->used_indexes |= UINT64_C(1) << stream->index;
    stream->next = device->default_stream.next;
    device->default_stream.next = stream;
    stream->recorded_work = stream->work_count;
    stream->listed = 1;
}

int pa_gpu_enter_stream(pa_gpu_device *device, pa_gpu_stream *stream)
{
    uintptr_t context;
    int error = pa_gpu_enter_context(device, &context);
    if (error) return error;
    pthread_mutex_lock(&lock);
    stream->ended = 0;
    if (stream != &device->default_stream && !stream->listed) {
        if (__builtin_popcountll(device->used_indexes) >= PA_GPU_COLLECT_FROM) remove_ended(device);
        add_stream(device, stream);
    }
    pthread_mutex_unlock(&lock);
    pa_gpu_leave_context(device, context);
    return 0;
}

int pa_gpu_leave_stream(pa_gpu_device *device, pa_gpu_stream *stream)
{
    uintptr_t context;
    if (!stream->listed) return 0;
    int error = pa_gpu_enter_context(device, &context);
    if (error) return error;
    pthread_mutex_lock(&lock);
    if (device->ordered && has_unrecorded_work(stream)) error = fence(device, stream);
    stream->ended = 1;
    if (device->only_stream == stream) device->only_stream = 0;
    pthread_mutex_unlock(&lock);
    pa_gpu_leave_context(device, context);
    return error;
}
