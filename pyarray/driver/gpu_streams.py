"""Streams and events of a GPU, and the order between them: the part of `GpuDriver` that CUDA and HIP share."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from typing import ClassVar

from .._runtime import ffi, lib
from ..locks import new_lock
from .gpu_calls import GpuCalls

DISABLE_TIMING = 2  # flag of an event that only orders: it is cheaper
NON_BLOCKING = 1  # flag of a stream without order between it and the default one


class GpuStreams(GpuCalls):
    """Streams are handles, ints; 0 is the default stream, which other libraries in the process use, too."""

    NOT_READY: ClassVar[int]

    def __init__(self, index: int):
        super().__init__(index)
        self._streams = {0: ffi.addressof(self._gpu, "default_stream")}
        self._threads_in: Counter[int] = Counter()  # by stream
        self._order_events: dict[int, int] = {}  # by stream, for others to wait for
        self._ended_streams: set[int] = set()  # may be destroyed; their last events stand for them
        self._waited_work: dict[int, int] = {}  # by stream: the `work_count` that it has waited for
        self._waited_streams: dict[tuple[int, int], int] = {}  # by stream and other stream: the other's part
        self._lock = new_lock()

    def current_stream(self) -> int:
        return int(lib.pa_gpu_current_stream(self._gpu).handle)

    @contextlib.contextmanager
    def _enqueuing(self, ptr: int, nbytes: int, writes: bool) -> Iterator[int]:
        """The current stream, for work on these bytes inside the block."""
        self.before_access(ptr, nbytes, writes)
        try:
            yield self.current_stream()
        finally:
            self.after_access(ptr, nbytes, writes)

    def before_access(self, ptr: int, nbytes: int, writes: bool) -> None:
        if code := lib.pa_gpu_before_access(self._gpu, ptr, nbytes, writes):
            self.fail("a wait for another stream", code)

    def after_access(self, ptr: int, nbytes: int, writes: bool) -> None:
        if code := lib.pa_gpu_after_access(self._gpu, ptr, nbytes, writes):
            self.fail("an event of a stream", code)

    @property
    def stream_waits(self) -> int:
        return int(self._gpu.waits)

    def enter_stream(self, stream: int) -> None:
        for hook in self.on_streams:
            hook()
        with self._lock:
            if stream in self._ended_streams:  # or a new one with the handle of a destroyed one
                self.stream_wait_event(stream, self._order_events[stream])
                self._ended_streams.discard(stream)
            if stream not in self._streams:
                self._streams[stream] = ffi.new("pa_gpu_stream *", {"handle": stream})
            if code := lib.pa_gpu_enter_stream(self._gpu, self._streams[stream]):
                self.fail("entering a stream", code)
            self._threads_in[stream] += 1
            lib.pa_gpu_set_current_stream(self._gpu, self._streams[stream])

    def leave_stream(self, stream: int, before: int) -> None:
        with self._lock:
            self._threads_in[stream] -= 1
            try:
                if stream and not self._threads_in[stream]:
                    self.order_event(stream)
                    self._ended_streams.add(stream)
                    if code := lib.pa_gpu_leave_stream(self._gpu, self._streams[stream]):
                        self.fail("an event of a stream", code)
            finally:  # also after an error: the stream may be destroyed
                lib.pa_gpu_set_current_stream(self._gpu, self._streams[before])

    def stream_create(self, non_blocking: bool) -> int:
        return int(self.call("stream_create", NON_BLOCKING if non_blocking else 0))

    def stream_destroy(self, stream: int) -> None:
        if self._gpu.alive:
            self.call("stream_destroy", stream)

    def stream_synchronize(self, stream: int) -> None:
        self.call("stream_synchronize", stream)

    def stream_done(self, stream: int) -> bool:
        return self._done("stream_query", stream)

    def stream_wait_event(self, stream: int, event: int) -> None:
        self.call("stream_wait_event", stream, event, 0)

    def order_event(self, stream: int) -> int:
        """An event after the work of `stream` so far, valid until the next call for that stream."""
        if stream not in self._order_events:
            self._order_events[stream] = self.event_create(timing=False)
        self.event_record(self._order_events[stream], stream)
        return self._order_events[stream]

    def stream_wait(self, waiting: int, other: int) -> None:
        if waiting != other:
            self.stream_wait_event(waiting, self.order_event(other))

    def event_create(self, timing: bool) -> int:
        return int(self.call("event_create", 0 if timing else DISABLE_TIMING))

    def event_destroy(self, event: int) -> None:
        if self._gpu.alive:
            self.call("event_destroy", event)

    def event_record(self, event: int, stream: int) -> None:
        self.call("event_record", event, stream)

    def event_synchronize(self, event: int) -> None:
        self.call("event_synchronize", event)

    def event_done(self, event: int) -> bool:
        return self._done("event_query", event)

    def event_elapsed(self, start: int, end: int) -> float:
        return float(self.call("event_elapsed", start, end))

    def _done(self, query: str, handle: int) -> bool:
        code, _ = self.try_call(query, handle)
        if code not in (0, self.NOT_READY):
            self.fail(self.CALLS[query], code)
        return code == 0

    def synchronize(self) -> None:
        launched = self._launched()
        self.call("stream_synchronize", self.current_stream())
        self._succeeded = max(self._succeeded, launched)

    def _launched(self) -> int:
        """How many launches have succeeded once the current stream is done: all, if it is the only one."""
        return int(self._gpu.launches) if len(self._streams) == 1 else self._succeeded

    def synchronize_all(self) -> None:
        """Returns when everything on this device is done, on all streams."""
        launched = int(self._gpu.launches)
        self.call("synchronize_all")
        self._succeeded = max(self._succeeded, launched)

    def work_count(self) -> int:
        return sum(stream.work_count for stream in list(self._streams.values()))

    def wait_for(self, work: int) -> None:
        current = self.current_stream()
        if len(self._streams) == 1 or self._waited_work.get(current, 0) >= work:
            return
        with self._lock:
            now = self.work_count()
            for other, stream in list(self._streams.items()):
                enqueued = int(stream.work_count)
                if other != current and self._waited_streams.get((current, other)) != enqueued:
                    self.wait_for_stream(other)
                    self._waited_streams[current, other] = enqueued
            self._waited_work[current] = now

    def wait_for_stream(self, other: int) -> None:
        """Makes later work of the current stream wait for the work of `other`, a stream that may have ended."""
        with self._lock:
            if other in self._ended_streams:
                self.stream_wait_event(self.current_stream(), self._order_events[other])
            else:
                self.stream_wait(self.current_stream(), other)
