// Streams and events. An operation runs when somebody waits for what comes behind it, and what it depends on just
// before.
#include "emulator.h"
#include <ctime>

bool Place::reached() const { return !stream || stream->done >= count; }

uint64_t random_number()
{
    emulator.seed = emulator.seed * 6364136223846793005u + 1442695040888963407u;
    return emulator.seed >> 33;
}

std::shared_ptr<Stream> stream_of(const void *handle)
{
    if (!handle) return emulator.devices[current_device].main;
    return emulator.stream_handles.find(handle);
}

static void run_one(Stream &stream)
{
    for (const Place &place : stream.waiting.front().after) run_until(place);
    Operation now = std::move(stream.waiting.front());
    stream.waiting.pop_front();
    ++stream.done;
    if (!emulator.devices[stream.device].broken) now.run();
}

void run_until(const Place &place)
{
    while (!place.reached()) run_one(*place.stream);
}

// Any that are not done may run before those that are waited for.
static void shuffle()
{
    if (emulator.order != Emulator::Shuffled) return;
    for (uint64_t k = random_number() % 8; k > 0; --k) {
        const auto stream = emulator.streams[random_number() % emulator.streams.size()];
        if (!stream->waiting.empty()) run_one(*stream);
    }
}

static void forget_done_streams()
{
    auto &all = emulator.streams;
    for (size_t k = all.size(); k-- > 0;)
        if (all[k]->waiting.empty() && all[k].use_count() == 1) all.erase(all.begin() + (long)k);
}

void run_device(int device)
{
    shuffle();
    for (const auto &stream : std::vector<std::shared_ptr<Stream>>(emulator.streams))
        if (stream->device == device) run_until({stream, stream->tail()});
    forget_done_streams();
}

void enqueue(const std::shared_ptr<Stream> &stream, std::function<int()> run, std::vector<Place> after)
{
    for (const auto &other : emulator.streams)
        if (other != stream && other->device == stream->device && stream->blocking && other->blocking &&
            (stream->is_default || other->is_default) && !other->waiting.empty())
            after.push_back({other, other->tail()});
    stream->waiting.push_back({std::move(run), std::move(after)});
    if (emulator.order == Emulator::Early) run_until({stream, stream->tail()});
    if (stream->waiting.size() > 1000) run_until({stream, stream->tail() - 500});
    shuffle();
}

static int synchronize(const Place &place, int device)
{
    shuffle();
    run_until(place);
    return emulator.devices[device].broken;
}

#define EVENT(name, handle)                                                                                            \
    const std::shared_ptr<Event> name = emulator.events.find(handle);                                                  \
    if (!name) return InvalidHandle

EXPORT int hipStreamCreateWithFlags(void **out, unsigned flags)
{
    BEGIN;
    auto stream = std::make_shared<Stream>();
    stream->device = current_device;
    stream->blocking = !(flags & 1);
    emulator.streams.push_back(stream);
    *out = (void *)emulator.stream_handles.add(stream);
    return Success;
}

// Its work goes on.
EXPORT int hipStreamDestroy(void *handle)
{
    BEGIN;
    return emulator.stream_handles.live.erase((uintptr_t)handle) ? Success : InvalidHandle;
}

EXPORT int hipStreamSynchronize(void *handle)
{
    BEGIN;
    STREAM(stream, handle);
    std::vector<Place> all = {{stream, stream->tail()}};
    if (stream->is_default)
        for (const auto &other : emulator.streams)
            if (other->device == stream->device && other->blocking) all.push_back({other, other->tail()});
    for (const Place &place : all) synchronize(place, stream->device);
    return emulator.devices[stream->device].broken;
}

// Asking is waiting a little, so that a loop that asks comes to an end.
static int query(const Place &place, int device)
{
    if (place.reached()) return emulator.devices[device].broken;
    run_one(*place.stream);
    return emulator.devices[device].broken ? emulator.devices[device].broken : NotReady;
}

EXPORT int hipStreamQuery(void *handle)
{
    BEGIN;
    STREAM(stream, handle);
    return query({stream, stream->tail()}, stream->device);
}

EXPORT int hipStreamWaitEvent(void *handle, void *event_handle, unsigned)
{
    BEGIN;
    STREAM(stream, handle);
    EVENT(event, event_handle);
    if (!event->place.reached()) enqueue(stream, [] { return Success; }, {event->place});
    return Success;
}

EXPORT int hipEventCreateWithFlags(void **out, unsigned flags)
{
    BEGIN;
    auto event = std::make_shared<Event>();
    event->device = current_device;
    event->timed = !(flags & 2);
    *out = (void *)emulator.events.add(event);
    return Success;
}

EXPORT int hipEventCreate(void **out) { return hipEventCreateWithFlags(out, 0); }

EXPORT int hipEventDestroy(void *handle)
{
    BEGIN;
    return emulator.events.live.erase((uintptr_t)handle) ? Success : InvalidHandle;
}

EXPORT int hipEventRecord(void *handle, void *stream_handle)
{
    BEGIN;
    EVENT(event, handle);
    STREAM(stream, stream_handle);
    if (event->device != stream->device) return InvalidHandle;
    auto moment = event->moment = std::make_shared<Moment>();
    event->place = {stream, stream->tail() + 1};
    enqueue(stream, [moment] {
        timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        moment->nanoseconds = now.tv_sec * 1000000000ll + now.tv_nsec;
        return Success;
    });
    return Success;
}

EXPORT int hipEventSynchronize(void *handle)
{
    BEGIN;
    EVENT(event, handle);
    return synchronize(event->place, event->device);
}

EXPORT int hipEventQuery(void *handle)
{
    BEGIN;
    EVENT(event, handle);
    return query(event->place, event->device);
}

EXPORT int hipEventElapsedTime(float *milliseconds, void *start_handle, void *end_handle)
{
    BEGIN;
    EVENT(start, start_handle);
    EVENT(end, end_handle);
    if (!start->moment || !end->moment || !start->timed || !end->timed || start->device != end->device)
        return InvalidHandle;
    if (!start->place.reached() || !end->place.reached()) return NotReady;
    *milliseconds = (float)(end->moment->nanoseconds - start->moment->nanoseconds) * 1e-6f;
    return Success;
}

EXPORT int hipDeviceSynchronize()
{
    BEGIN;
    run_device(current_device);
    return emulator.devices[current_device].broken;
}
