"""`Driver`, the interface of every device, and `Device`, which names one for all code above."""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

from .. import config
from ..errors import DeviceError
from . import diagnosis
from .failure import Failure
from .graph import GraphLaunch, LaunchSequence
from .kernel_step import KernelStep


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Kind:
    """A device kind: a row of `KINDS`, with the module of its driver."""

    name: str
    code: int  # part of every array's type key
    module: str
    driver: str  # name of the Driver class in it
    numbered: bool  # whether str() of a device shows its index


KINDS = {
    row.name: row
    for row in (
        Kind("cpu", 0, "pyarray.driver.cpu", "CpuDriver", numbered=False),
        Kind("cuda", 1, "pyarray.driver.cuda", "CudaDriver", numbered=True),
        Kind("hip", 2, "pyarray.driver.hip", "HipDriver", numbered=True),
        Kind("null", 3, "pyarray.driver.null", "NullDriver", numbered=True),
    )
}


class Compiler(Protocol):
    """Text to binary, for one device. Text, flags and `fingerprint` decide the binary."""

    @property
    def fingerprint(self) -> str: ...

    def compile(self, text: str, extra_flags: tuple[str, ...] = ()) -> bytes: ...


Launcher = Callable[[bytes], None]
# What csrc/core/launch.h says: the addresses of code and of the pool that runs it, and None; or the address of a GPU's
# plan, 0, and what is called with an error's code; or 0, 0, and a `Launcher`. Then what keeps the code loaded.
NativeLaunch = tuple[int, int, Any, Any]
CheckedLauncher = Callable[[bytes], "Failure | None"]
# blocks and threads of a block by axis, bytes of dynamic shared memory, packed arguments
GridLauncher = Callable[[tuple[int, int, int], tuple[int, int, int], int, bytes], None]


class Operand(NamedTuple):
    """An array among packed slots: the slot of its address, the first of its sizes, behind which its strides
    are, if it has any; `ndim` axes of elements of `itemsize` bytes, which the kernel `writes`, or only
    reads."""

    slot: int
    sizes: int
    ndim: int
    strided: bool
    itemsize: int
    writes: bool


class Driver(ABC):
    """One device. Addresses are ints, sizes are bytes. All methods raise `DeviceError` when the device fails.

    A driver never keeps the caller's memory alive and never looks into `slots`.
    """

    kind: ClassVar[str]
    grid: ClassVar[bool] = False  # iterations are threads of a grid: many more run at once
    computes: ClassVar[bool] = True  # whether memory holds what was computed
    zeroed_from: ClassVar[int] = 1 << 63  # bytes from which what `allocate` gives holds zeros

    def __init__(self, index: int):
        self.index = index
        self.on_streams: list[Callable[[], None]] = []  # called before work goes to another stream

    @classmethod
    @abstractmethod
    def count(cls) -> int:
        """How many devices of this kind there are. 0, not an error, when the system library is absent."""

    @abstractmethod
    def name(self) -> str:
        """The model, as the vendor writes it."""

    @abstractmethod
    def properties(self) -> Mapping[str, Any]:
        """Properties of the device, for `show_config` and heuristics; always `threads`, how many run at once."""

    @abstractmethod
    def target(self) -> str:
        """The instruction set that binaries are made for, like `x86_64` or `sm_90`."""

    def machine(self) -> str:
        """What a binary depends on besides `target`: a binary of another machine runs where it is the same."""
        return self.target()

    def runs(self, target: str, machine: str) -> bool:
        """Whether a binary that was made for this `target` and `machine` runs here."""
        return (target, machine) == (self.target(), self.machine())

    @abstractmethod
    def memory_info(self) -> tuple[int, int]:
        """Bytes free and bytes in total."""

    @abstractmethod
    def allocate(self, nbytes: int) -> int:
        """Address of `nbytes` > 0 of fresh memory, aligned to 64 at least; 0 when there is no memory."""

    @abstractmethod
    def free(self, ptr: int, nbytes: int) -> None:
        """Gives back what `allocate(nbytes)` returned."""

    @abstractmethod
    def fill(self, ptr: int, byte: int, nbytes: int) -> None:
        """Sets every byte, in order with launches."""

    @abstractmethod
    def copy_in(self, ptr: int, host: int, nbytes: int) -> None:
        """Host to device, in order with launches; the host memory may be reused after the return."""

    @abstractmethod
    def copy_out(self, host: int, ptr: int, nbytes: int) -> None:
        """Device to host, after all launches so far; the data is there at the return."""

    def copy_peer(self, ptr: int, other: Driver, source: int, nbytes: int) -> bool:
        """Copies from another device, in order with both streams. False, and nothing is done, without a direct path."""
        return False

    def device_of_pointer(self, ptr: int) -> int | None:
        """Index of the device of this kind that has the address, whoever allocated it; None if none has."""
        return None

    def current(self) -> AbstractContextManager[None]:
        """Inside the block, the device is this thread's current one for other libraries, too."""
        return nullcontext()

    def trim(self) -> None:  # noqa: B027  (most have none)
        """Returns to the system the free memory of the driver's own pool."""

    @abstractmethod
    def compiler(self) -> Compiler:
        """The compiler of binaries for this device. Raises `DeviceError` when there is none."""

    @abstractmethod
    def load(self, artifact: bytes) -> int:
        """A module from what the compiler returned, loaded until `unload`."""

    def unload(self, module: int) -> None:  # noqa: B027  (keeping all is right, too)
        """Frees a module of which nothing runs and nothing will."""

    @abstractmethod
    def function(self, module: int, steps: Sequence[KernelStep]) -> int:
        """Handle of a kernel of the module, by what it launches."""

    @abstractmethod
    def launcher(self, function: int, operands: Sequence[Operand] = ()) -> Launcher:
        """A callable that runs the kernel on packed slots. It is the hot path and checks nothing. `operands`
        are what the kernel reads and writes."""

    def native_launch(self, function: int, operands: Sequence[Operand] = ()) -> NativeLaunch:
        """The same for calls from C."""
        return 0, 0, self.launcher(function, operands), function

    @abstractmethod
    def checked_launcher(
        self, function: int, operands: Sequence[Operand] = (), inside: Callable[[Any], bool] | None = None
    ) -> CheckedLauncher:
        """As `launcher`, and returns the launch's first `Failure` or None. It waits for the kernel, unless `inside` of
        the argument slots, as integers of 64 bits, says that no access can fail."""

    def grid_launcher(self, module: int, name: str) -> GridLauncher:
        """A callable that runs one kernel of the module, with a grid that the caller chooses."""
        raise DeviceError(f"{self.kind}:{self.index} has no grids")

    def graph(self, launches: Sequence[GraphLaunch]) -> LaunchSequence:
        """Launches that are repeated together, in this order."""
        return LaunchSequence(launches, [self.launcher(x.function, x.operands) for x in launches])

    @abstractmethod
    def synchronize(self) -> None:
        """Returns when all launches and copies on the current stream are done."""

    @abstractmethod
    def stream(self) -> int:
        """The stream that work goes to, as DLPack writes it for this kind; 0 where devices have none."""

    # Streams and events are handles. Where work is done when a call returns, there is one stream, 0, and an
    # event is a time.

    def current_stream(self) -> int:
        """The stream that the calling thread's work goes to; 0 is the default."""
        return 0

    def enter_stream(self, stream: int) -> None:  # noqa: B027
        """Makes `stream` the calling thread's current one."""

    def leave_stream(self, stream: int, before: int) -> None:  # noqa: B027
        """Makes `before` the current one again. The owner may destroy `stream` then."""

    def work_count(self) -> int:
        """How many launches and copies were enqueued so far, on all streams."""
        return 0

    def wait_for(self, work: int) -> None:  # noqa: B027
        """Later work of the current stream runs after what was enqueued when `work_count` was `work`."""

    def before_access(self, ptr: int, nbytes: int, writes: bool) -> None:  # noqa: B027
        """Later work of the current stream runs after the work of other streams on these bytes."""

    def after_access(self, ptr: int, nbytes: int, writes: bool) -> None:  # noqa: B027
        """Records that the current stream got work on these bytes other than this driver's launches and copies."""

    @property
    def stream_waits(self) -> int:
        """How many waits between streams there were, to keep the order of reads and writes."""
        return 0

    def stream_create(self, non_blocking: bool) -> int:
        """A new stream. `non_blocking`: without order between it and the default stream."""
        return 0

    def stream_destroy(self, stream: int) -> None:  # noqa: B027
        """Frees a stream when its work is done, without waiting."""

    def stream_synchronize(self, stream: int) -> None:  # noqa: B027
        """Returns when the work of `stream` is done."""

    def stream_done(self, stream: int) -> bool:
        """Whether the work of `stream` is done."""
        return True

    def stream_wait(self, waiting: int, other: int) -> None:  # noqa: B027
        """Later work of `waiting` runs after the work of `other` so far. The host doesn't wait."""

    def stream_wait_event(self, stream: int, event: int) -> None:  # noqa: B027
        """Later work of `stream` runs after the event."""

    def event_create(self, timing: bool) -> int:
        """A new event, which counts as done until it is recorded. `timing`: it records the time."""
        number = next(_event_numbers)
        _event_times[number] = time.perf_counter()
        return number

    def event_destroy(self, event: int) -> None:
        """Frees an event."""
        _event_times.pop(event, None)

    def event_record(self, event: int, stream: int) -> None:
        """The event is done when the work of `stream` so far is."""
        _event_times[event] = time.perf_counter()

    def event_synchronize(self, event: int) -> None:  # noqa: B027
        """Returns when the event is done."""

    def event_done(self, event: int) -> bool:
        """Whether the event is done."""
        return True

    def event_elapsed(self, start: int, end: int) -> float:
        """Milliseconds between two events."""
        return 1e3 * (_event_times[end] - _event_times[start])


_event_numbers = itertools.count(1)
_event_times: dict[int, float] = {}


class Device:
    """A device, for example `cpu` or `cuda:0`. There is one object per device: `is` and `==` agree.

    `kind` is its name in `KINDS`, `index` its ordinal, `code` a number for both: the kind's for index 0. It
    equals `str` of it, and no other spelling: hashes agree as well. `get_device` knows all spellings, and is
    where `Device` objects come from.

    >>> get_device("cpu:0") == "cpu", get_device("cpu:0") in {"cpu"}
    (True, True)
    """

    # `pool` is set by pyarray.memory at the first allocation: an attribute is the fastest look-up.
    __slots__ = ("_driver", "_text", "code", "index", "kind", "pool")

    kind: str
    code: int
    index: int
    pool: Any

    def __init__(self, kind: Kind, index: int):
        self.kind, self.index = kind.name, index
        self.code = kind.code | index << 4
        self._text = f"{kind.name}:{index}" if kind.numbered else kind.name
        self._driver: Driver | None = None

    @property
    def driver(self) -> Driver:
        """The driver that operates the device."""
        if self._driver is None:
            # Two threads may both create one, and setdefault keeps one: no lock, which a fork could leave taken.
            driver = _driver_class(KINDS[self.kind])(self.index)
            self._driver = _drivers.setdefault(self, driver)
        return self._driver

    @property
    def stream_waits(self) -> int:
        """How many times work in one stream had to wait for work in another so far: it read what that wrote,
        or wrote what that used. The device waits, not the host.

        >>> get_device("cpu").stream_waits
        0
        """
        return self.driver.stream_waits

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"pyarray.Device({self._text!r})"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return other == self._text
        return self is other

    def __hash__(self) -> int:
        return hash(self._text)

    def __reduce__(self) -> tuple[Any, ...]:
        return get_device, (self._text,)

    def __copy__(self) -> Device:
        return self

    def __deepcopy__(self, memo: object) -> Device:
        return self


_devices: dict[tuple[str, int], Device] = {}
_by_text: dict[str, Device] = {}
_drivers: dict[Device, Driver] = {}
# what `default_device` says
scoped_default: ContextVar[Device | None] = ContextVar("scoped_default", default=None)


def get_device(spec: str | Device | None = None) -> Device:
    """The device that `spec` names: "cpu", "cuda:1", a `Device`, or None for the default device: that of
    `default_device`, else of `set_default_device`, else of PYARRAY_DEVICE, else the CPU.

    Raises `ValueError` for a name that no device can have, `DeviceError` when that device is not there, and
    `TypeError` for anything else.

    >>> str(get_device("cpu:0"))
    'cpu'
    """
    if spec.__class__ is Device:
        return spec  # pyright: ignore[reportReturnType]
    if spec is None:
        return scoped_default.get() or _from_settings()
    if not isinstance(spec, str):
        what, kind = "a device is a string like 'cpu' or 'cuda:0', a Device or None", type(spec)
        if kind.__module__ == "torch":
            raise TypeError(f"{what}, not torch.{kind.__name__}; pass {str(spec)!r}")
        raise TypeError(f"{what}, not {kind.__name__}")
    return _by_text.get(spec) or _open(spec)


def _from_settings() -> Device:
    text = config.get("PYARRAY_DEVICE")
    try:
        return _by_text.get(text) or _open(text)
    except (ValueError, DeviceError) as error:
        raise type(error)(f"PYARRAY_DEVICE={text!r}: {error}") from error


def devices(kind: str) -> list[Device]:
    """All devices of a kind that are there now; [] when its driver or its system library is absent."""
    if importlib.util.find_spec(KINDS[kind].module) is None:
        return []
    return [get_device(f"{kind}:{index}") for index in range(_driver_class(KINDS[kind]).count())]


def _parse(text: str) -> tuple[str, int] | None:
    """("cuda", 1) for "cuda:1", ("cuda", 0) for "cuda"; None for what is no device name."""
    kind, colon, number = text.partition(":")
    if kind not in KINDS or (colon and not (number.isascii() and number.isdigit())):
        return None
    return kind, int(number or 0)


def _open(text: str) -> Device:
    key = _parse(text)
    if key is None:
        legal = ", ".join(repr(f"{row.name}:0" if row.numbered else row.name) for row in KINDS.values())
        raise ValueError(f"unknown device {text!r}: expected one of {legal} (the number is the device's index)")
    name, index = key
    count = _driver_class(KINDS[name]).count()
    if index >= count:
        # The CPU is one device whatever the machine, so another index is a wrong name rather than an absent
        # device.
        error = DeviceError if KINDS[name].numbered else ValueError
        has_diagnosis = not count and name in diagnosis.NEEDS
        why = f"{diagnosis.missing(name)}; python -m pyarray info says more" if has_diagnosis else ""
        raise error(f"no device {text!r}: {why or f'this machine has {count} of kind {name!r}'}")
    device = _by_text[text] = _devices.setdefault(key, Device(KINDS[name], index))
    return device


def _driver_class(kind: Kind) -> type[Driver]:
    try:
        module = importlib.import_module(kind.module)
    except ModuleNotFoundError as error:
        if error.name != kind.module:
            raise DeviceError(f"the {kind.name} driver needs the package {error.name!r}") from error
        raise DeviceError(f"this version of pyarray has no driver for {kind.name!r} devices") from None
    driver: type[Driver] = getattr(module, kind.driver)
    return driver
