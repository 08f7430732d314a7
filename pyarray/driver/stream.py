"""Streams and events: the order of asynchronous work on a device."""

from __future__ import annotations

import threading
import weakref
from typing import Any

from .base import Device, get_device

__all__ = ["Event", "Stream", "current_stream", "synchronize"]

PER_THREAD = 2  # CU_STREAM_PER_THREAD, hipStreamPerThread
_entered = threading.local()
_kept: list[Stream] = []  # that an error came in the leaving of: the driver still records events in them


class Stream:
    """A queue of work on a device. What is computed inside `with stream:` goes there, in order; work on
    different streams may overlap. The setting is the calling thread's.

    `device` is a name, a `Device` or None for the default one. A stream and the device's default stream wait
    for each other, unless it is `non_blocking`. Work that uses the same memory is kept in order: what reads
    what another stream writes, or writes what another uses, waits for that, on the device
    (`Device.stream_waits` counts it; PYARRAY_STREAM_ORDER=0 turns it off). So is memory that is freed.

    On the CPU everything is done when a call returns, so streams have nothing to do there. Raises
    `DeviceError` when the device can't make one.

    >>> stream = Stream("cpu")
    >>> with stream:
    ...     pass  # what is computed here goes to it
    >>> stream.synchronize()
    >>> stream.done
    True
    """

    __slots__ = ("__weakref__", "device", "handle")

    device: Device
    handle: int

    def __init__(self, device: Device | str | None = None, *, non_blocking: bool = False):
        self.device = get_device(device)
        driver = self.device.driver
        self.handle = driver.stream_create(non_blocking)
        weakref.finalize(self, driver.stream_destroy, self.handle).atexit = False

    @staticmethod
    def of(handle: int, device: Device | str | None = None) -> Stream:
        """The stream of another library by its handle (`torch.cuda.Stream.cuda_stream`, CuPy's `ptr`), which
        stays that library's; 0 is the default stream. Raises `ValueError` for 2, which is another stream in each
        thread, so that the work of one thread isn't in order with another's.

        >>> Stream.of(0, "cpu").handle
        0
        """
        self = Stream.__new__(Stream)
        self.device, self.handle = get_device(device), int(handle)
        if self.handle == PER_THREAD:
            what = "handle 2 is the per-thread default stream, of which each thread has its own"
            raise ValueError(f"{what}; make a stream for each thread, pa.Stream(), or take the default one, 0")
        return self

    def __enter__(self) -> Stream:
        driver = self.device.driver
        before = driver.current_stream()
        driver.enter_stream(self.handle)
        _stack().append((driver, before, self))
        return self

    def __exit__(self, *exception: object) -> None:
        driver, before, stream = _stack().pop()
        try:
            driver.leave_stream(stream.handle, before)
        except BaseException:
            _kept.append(stream)
            raise

    def synchronize(self) -> None:
        """Returns when the work so far is done. Raises `DeviceError` if any of it failed."""
        self.device.driver.stream_synchronize(self.handle)

    @property
    def done(self) -> bool:
        """Whether the work so far is done; doesn't wait."""
        return self.device.driver.stream_done(self.handle)

    def wait(self, other: Stream | Event) -> None:
        """Later work of this stream runs after the event, or after the work of the other stream so far.
        The host doesn't wait. `other` is of the same device, or of another of the same kind."""
        if self.device.kind != other.device.kind:
            raise ValueError(
                f"a stream of {self.device} can't wait for work on {other.device}; synchronize that instead"
            )
        event = other if isinstance(other, Event) else other.record()
        self.device.driver.stream_wait_event(self.handle, event.handle)

    def record(self, event: Event | None = None) -> Event:
        """The event, or a new one, happens when the work so far is done."""
        event = Event(self.device) if event is None else event
        event.record(self)
        return event

    def __repr__(self) -> str:
        return f"Stream({str(self.device)!r}, handle={self.handle:#x})"


class Event:
    """A point in a stream's work.

    `timing=False` makes it cheaper, without `elapsed`. Raises `DeviceError` when the device can't make one.

    >>> start, end = Event("cpu"), Event("cpu")
    >>> start.record()
    >>> end.record()
    >>> start.elapsed(end) >= 0
    True
    """

    __slots__ = ("__weakref__", "device", "handle")

    def __init__(self, device: Device | str | None = None, *, timing: bool = True):
        self.device = get_device(device)
        driver = self.device.driver
        self.handle = driver.event_create(timing)
        weakref.finalize(self, driver.event_destroy, self.handle).atexit = False

    def record(self, stream: Stream | None = None) -> None:
        """It happens when what `stream`, by default the current one, got so far is done. Raises `ValueError`
        for a stream of another device."""
        if stream is not None and stream.device is not self.device:
            raise ValueError(f"an event of {self.device} is recorded on its own streams, got one of {stream.device}")
        driver = self.device.driver
        driver.event_record(self.handle, driver.current_stream() if stream is None else stream.handle)

    def synchronize(self) -> None:
        """Returns when it has happened; at once if it was never recorded."""
        self.device.driver.event_synchronize(self.handle)

    @property
    def done(self) -> bool:
        """Whether it has happened; doesn't wait."""
        return self.device.driver.event_done(self.handle)

    def elapsed(self, end: Event) -> float:
        """Milliseconds from this event to `end`, both of one device, recorded and done."""
        if end.device is not self.device:
            raise ValueError(f"events of {self.device} and {end.device} have no time between them")
        return self.device.driver.event_elapsed(self.handle, end.handle)


def current_stream(device: Device | str | None = None) -> Stream:
    """The stream that the calling thread's work on `device` goes to.

    >>> current_stream("cpu").handle
    0
    """
    where = get_device(device)
    return Stream.of(where.driver.current_stream(), where)


def synchronize(device: Device | str | None = None) -> None:
    """Returns when the current stream's work on `device` is done. Raises `DeviceError` if any of it failed.

    >>> synchronize("cpu")
    """
    get_device(device).driver.synchronize()


def _stack() -> list[tuple[Any, int, Stream]]:
    """Of this thread's `with` blocks: the streams that were current before, and the entered streams, which must
    stay alive while they are current."""
    try:
        stack: list[tuple[Any, int, Stream]] = _entered.stack
    except AttributeError:
        stack = _entered.stack = []
    return stack
