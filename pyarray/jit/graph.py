"""`capture`: the launches of a block, recorded and repeated as one graph of the driver, with other arrays too.

docs/design/graphs.md says what is refused, and why what is left is never stale.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import shapes
from ..array import READONLY, STRIDED, WATCHED, ndarray
from ..buffer_view import BufferView
from ..driver.base import Device
from ..driver.graph import LaunchSequence, Place
from ..errors import with_article
from ..locks import new_lock
from ..memory.host_access import host_access
from .graph_exchange import Exchange, addresses
from .graph_launch import RecordedLaunch, bounds, handle
from .launch_state import Launch, launch_state, observed, observing

_MADE_ONCE = (
    "read or wrote array memory other than by launches (elements on the host, transfers, zeros, tests of indices, "
    "random numbers, a search of the tuner)"
)
_NONE_MOVED: Mapping[str, int] = {}  # no cache: all arrays are the block's


def capture(**arrays: ndarray) -> Graph:
    """Record the launches of this thread in the block, which run as usual, to repeat them as one graph.

    `g.launch()` repeats them on the current stream: one call of the driver on a GPU, one launch after the other
    elsewhere. Results are written into the same arrays as in the block. The keywords name arrays that the block uses:
    `g.launch(a=b)` repeats it with `b` in the place of `a`. Numbers stay as they were.

    Raises `RuntimeError` for a block that does more than launch kernels on one device and stream, and in debug mode;
    `TypeError` for what is no array, `ValueError` for named arrays that overlap or are used in part.

    >>> x, y = pa.ones(3), pa.full(3, 5.0)
    >>> with pa.capture(x=x) as g:
    ...     z = x * 2 + 1
    >>> x += 1
    >>> g.launch()
    >>> z.tolist()
    [5.0, 5.0, 5.0]
    >>> g.launch(x=y)
    >>> z.tolist()
    [11.0, 11.0, 11.0]
    """
    for name, a in arrays.items():
        if not isinstance(a, ndarray):
            what = f"{name!r} is no pyarray array but {with_article(type(a).__name__)}"
            raise TypeError(f"capture(): {what}; see pyarray.asarray")
        if not a._size:
            raise ValueError(f"capture(): {name!r} has no elements, so that nothing tells where it is used")
    for name, a in arrays.items():
        for other, b in arrays.items():
            if name < other and a.device is b.device and shapes.may_overlap(bounds(a), bounds(b)):
                raise ValueError(f"capture(): {name!r} and {other!r} overlap; name one array of all of it")
    return Graph(arrays)


class Graph:
    """The recorded launches of a block; made by `capture`. It keeps the memory alive that they use.

    `device` is where they are, None without any; `launches` are the names of the kernels.
    """

    device: Device | None

    def __init__(self, arrays: Mapping[str, ndarray]):
        self._arrays = {name: handle(a) for name, a in arrays.items()}
        self._keys = {name: a._key for name, a in arrays.items()}
        self.device = None
        self._recorded: list[RecordedLaunch] = []
        self._uses: list[dict[str, tuple[str, int]]] = []  # of each launch: parameter -> name, offset
        self._fixed: list[tuple[tuple[int, int], bool]] = []  # other memory: range, whether it is written
        self._written: dict[str, bool] = {}  # of the named arrays that are used
        self._graph: LaunchSequence | None = None
        self._block: list[bytes] = []  # the packed arguments of the block
        self._exchanges: dict[str, Exchange] = {}  # of this graph's named arrays, by their names
        self._moved: Mapping[str, int] | None = _NONE_MOVED  # addresses by name; None: all arguments may differ
        self._plain = False  # whether a launch with arrays as in the block needs to tell nobody
        self._state = "new"
        self._lock = new_lock()
        self._busy = False
        self._stream = 0
        self._before = False

    @property
    def launches(self) -> tuple[str, ...]:
        return tuple(x.kernel for x in self._recorded)

    def __repr__(self) -> str:
        return f"<pyarray.Graph of {len(self._recorded)} launches on {self.device}, {self._state}>"

    # ---- the block

    def __enter__(self) -> Graph:
        if self._state != "new":
            raise RuntimeError(f"a graph is captured once, and this one is {self._state}; call capture() again")
        if launch_state.observer is not None:
            raise RuntimeError("capture() inside another capture or a traced function: captures don't nest")
        self._before, host_access.occurred = host_access.occurred, False
        self._observing = observing(self._observe)
        self._observing.__enter__()
        self._state = "being captured"
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self._observing.__exit__(None, None, None)
        accessed, host_access.occurred = host_access.occurred, host_access.occurred or self._before
        failed, self._state = self._state == "failed", "failed"
        if kind is not None:
            return
        if failed:
            raise RuntimeError("capture(): a launch in the block was refused or has failed, so there is no graph")
        if accessed:
            self._refuse_access("the end of the block")
        for launch in self._recorded:
            self._uses.append({name: use for name, a, writes in launch.arrays if (use := self._use(launch, a, writes))})
        if self.device is not None:
            self._prepare(self.device)
        self._state = "captured"

    def _prepare(self, device: Device) -> None:
        """Makes the graph, and finds what launches with other arrays of the same layouts change and check."""
        launches = [x.for_driver() for x in self._recorded]
        self._block = [x.slots for x in launches]
        self._graph = device.driver.graph(launches)
        places: dict[str, list[Place]] = {name: [] for name in self._arrays}
        alignments = dict.fromkeys(self._arrays, 1)
        for k, (launch, uses) in enumerate(zip(self._recorded, self._uses, strict=True)):
            slots = launch.slots
            for parameter, (name, offset) in uses.items():
                places[name].append(Place(k, slots[parameter], offset))
                alignments[name] = max(alignments[name], launch.alignment)
        for name, a in self._arrays.items():
            used, written = name in self._written, self._written.get(name, False)
            avoided = [window for window, writes in self._fixed if used and (writes or written)]
            at = self._graph.places(places[name])
            self._exchanges[name] = Exchange(a, self._keys[name], written, avoided, at, alignments[name])
        for name, written in self._written.items():
            self._exchanges[name].rivals = {
                n: self._exchanges[n] for n, writes in self._written.items() if n != name and (writes or written)
            }
        self._plain = not any(x.watched for x in self._recorded)

    def _observe(self, launch: Launch) -> None:
        """Records and runs a launch in the block."""
        before, self._state = self._state, "failed"
        if host_access.occurred:
            self._refuse_access(f"the launch of {launch.kernel!r}")
        device = launch.variant.device
        stream = device.driver.current_stream()
        if self.device is None:
            self.device, self._stream = device, stream
        if device is not self.device:
            what = f"a graph is of one device: {launch.kernel!r} is launched on {device}"
            raise RuntimeError(f"capture(): {what}, launches before it on {self.device}")
        if stream != self._stream:
            raise RuntimeError(f"capture(): a graph is of one stream: {launch.kernel!r} is launched on another one")
        recorded = RecordedLaunch.of(launch)
        launch.run()
        self._recorded.append(recorded)
        self._state = before

    def _refuse_access(self, until: str) -> None:
        last = f"the launch of {self._recorded[-1].kernel!r}" if self._recorded else "the start of the block"
        raise RuntimeError(f"capture(): between {last} and {until} the program {_MADE_ONCE}; do that outside the block")

    def _use(self, launch: RecordedLaunch, a: ndarray, writes: bool) -> tuple[str, int] | None:
        """The named array whose memory `a` is in, and how many bytes behind its first element it begins."""
        window = bounds(a)
        for name, whole in self._arrays.items():
            if whole.device is not a.device or not shapes.may_overlap(window, outer := bounds(whole)):
                continue
            inside = outer[0] <= window[0] and window[1] <= outer[1]
            if not (inside and (_is_dense(whole) or _same_layout(a, whole))):
                what = f"the launch of {launch.kernel!r} uses memory in part inside {name!r} and in part beside it"
                raise ValueError(f"capture(): {what}; name an array of all of it, or none")
            self._written[name] = self._written.get(name, False) or writes
            return name, a._ptr - whole._ptr
        self._fixed.append((window, writes))
        return None

    # ---- launches

    def launch(self, /, **arrays: ndarray) -> None:
        """Repeat the launches, with other arrays in the place of named ones; the others are those of the block.

        An array has the dtype, rank, device, marks and contiguity of the one that it replaces, and overlaps nothing
        of the graph that is written. Another shape, or other strides, is taken if all launches are the user's own calls
        of kernels, with named arrays as they are and without whole numbers. Raises `TypeError` for an
        unknown name or no array, `ValueError` for an array that doesn't fit, `RuntimeError` for a graph that wasn't
        captured to the end and in debug mode, `DeviceError` when the device fails.
        """
        if self._plain and launch_state.key is False:  # captured, and neither in debug mode nor observed
            moved = addresses(self._exchanges, arrays) if arrays else _NONE_MOVED
            if moved is not None and self._run(self._move, moved):
                return
        self._launch_checked(arrays)

    def _run(self, change: Callable[[Any], None], arguments: Any) -> bool:
        """Changes the graph's arguments and launches it. False, and nothing done, if this thread is doing so already:
        signal handlers and collections of garbage may come in between, and launch."""
        graph = self._graph
        assert graph is not None
        with self._lock:
            if self._busy:
                return False
            self._busy = True
            try:
                change(arguments)
                graph.launch()
            finally:
                self._busy = False
        return True

    def _move(self, addresses: Mapping[str, int]) -> None:
        """Named arrays are at these addresses, and all else is as in the block."""
        graph, exchanges, before = self._graph, self._exchanges, self._moved
        assert graph is not None
        if before == addresses:
            return
        self._moved = None
        if before is None:
            graph.update(self._block)
            before = _NONE_MOVED
        for name in before.keys() - addresses.keys():
            graph.move(exchanges[name].places, exchanges[name].address)
        for name, address in addresses.items():
            if before.get(name) != address:
                graph.move(exchanges[name].places, address)
        self._moved = addresses

    def _pack(self, bound: Sequence[RecordedLaunch]) -> None:
        assert self._graph is not None
        self._moved = None
        self._graph.update([launch.packed() for launch in bound])

    def _launch_checked(self, arrays: Mapping[str, Any]) -> None:
        """As `launch`, with every check, and arguments that are packed anew."""
        if self._state != "captured":
            raise RuntimeError(f"this graph is {self._state}; a graph is launched after the end of its block")
        if launch_state.debug:
            raise RuntimeError("a graph's launches check no bounds: in debug mode run the block, not the graph")
        now = self._arrays
        if arrays:
            now = {**now, **{name: self._checked(name, a) for name, a in arrays.items()}}
            self._check_overlaps(arrays, now)
        bound = [self._bound(launch, uses, now) for launch, uses in zip(self._recorded, self._uses, strict=True)]
        if self._graph is None:
            return
        for launch in bound:
            launch.before()
        if observed() or not self._run(self._pack, bound):
            for launch in bound:
                launch.run_observed()

    def _checked(self, name: str, a: Any) -> ndarray:
        if name not in self._arrays:
            near = difflib.get_close_matches(name, self._arrays, 1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            known = ", ".join(map(repr, self._arrays)) or "none; name arrays in capture(name=array)"
            raise TypeError(f"launch(): no array {name!r} was named; {hint}It has {known}")
        if not isinstance(a, ndarray):
            what = f"{name!r} is no pyarray array but {with_article(type(a).__name__)}"
            raise TypeError(f"launch(): {what}; see pyarray.asarray")
        was, key = self._arrays[name], self._keys[name]
        for what, old, new in (
            ("is on", was.device, a.device),
            ("has dtype", was.dtype, a.dtype),
            ("has a rank of", was.ndim, a.ndim),
            ("has strides, contiguous:", not key & STRIDED, not a._key & STRIDED),
            ("has promises about its sizes, as", key & ~(READONLY | WATCHED), a._key & ~(READONLY | WATCHED)),
        ):
            if old != new:
                raise ValueError(f"launch(): {name!r} {what} {new}, and in the block it was {old}; capture it anew")
        if self._written.get(name) and not a._writeable:
            raise ValueError(f"launch(): {name!r} is written, and this array is read-only; pass a copy")
        if name in self._exchanges and (a._ptr - was._ptr) % (alignment := self._exchanges[name].alignment):
            what = f"launch(): {name!r} is {a._ptr % alignment} bytes behind a multiple of {alignment}"
            raise ValueError(f"{what}, and in the block {was._ptr % alignment}, on which a launch relies; pass a copy")
        if not _same_layout(a, was):
            self._check_layout(name, was, a)
        return a

    def _check_layout(self, name: str, was: ndarray, a: ndarray) -> None:
        """Raises `ValueError` where another shape might have led to other launches, those on other arrays too:
        these may have been made for that shape."""
        what = f"launch(): {name!r} has shape {a._shape} and strides {a._strides}, in the block {was._shape} and "
        what += f"{was._strides}"
        for launch, uses in zip(self._recorded, self._uses, strict=True):
            where = f"the launch of {launch.kernel!r}"
            if not launch.direct:
                raise ValueError(f"{what}, and {where} is a function's that may depend on it; capture it anew")
            for parameter, x, _ in launch.arrays:
                used = uses.get(parameter)
                if used is None or not self._is_whole(launch, parameter, x, used[0]):
                    of = f"its {parameter!r} is no named array as it is, and may have been made for that shape"
                    raise ValueError(f"{what}, and of {where}, {of}; name it, or capture it anew")
            for parameter, kind in launch.numbers:
                if kind.dtype.kind in "iu":
                    of = f"its {parameter!r} is a whole number that may be a size"
                    raise ValueError(f"{what}, and of {where}, {of}; read sizes in the kernel, or capture it anew")

    def _is_whole(self, launch: RecordedLaunch, parameter: str, x: ndarray, name: str) -> bool:
        """Whether a launch was given the array of that name as it is."""
        whole = self._arrays[name]
        return x._ptr == whole._ptr and _same_layout(x, whole) and launch.keys[parameter] == self._keys[name]

    def _check_overlaps(self, new: Mapping[str, ndarray], now: Mapping[str, ndarray]) -> None:
        """Raises `ValueError` where memory overlaps, some of it written, that didn't overlap in the block."""
        used = [(name, bounds(now[name]), writes) for name, writes in self._written.items()]
        for name, window, writes in used:
            if name not in new:
                continue
            others = [(repr(n), w, written) for n, w, written in used if n != name]
            others += [("another array of the block", w, written) for w, written in self._fixed]
            for other, w, written in others:
                if (writes or written) and shapes.may_overlap(window, w):
                    what = f"launch(): {name!r} overlaps {other}, which it didn't in the block, and one is written"
                    raise ValueError(f"{what}; pass a copy, or capture it anew")

    def _bound(
        self, launch: RecordedLaunch, uses: Mapping[str, tuple[str, int]], now: Mapping[str, ndarray]
    ) -> RecordedLaunch:
        arrays = {}
        for parameter, (name, offset) in uses.items():
            a, was, x = now[name], self._arrays[name], launch.values[parameter]
            if a is not was:
                shape, strides = (x._shape, x._strides) if _same_layout(a, was) else (a._shape, a._strides)
                run = True if type(x) is BufferView else None
                arrays[parameter] = a._view(offset, shape, strides, run, x._dtype)
        return launch.with_arrays(arrays)


def _same_layout(a: ndarray, b: ndarray) -> bool:
    """Of one shape, with the same strides along axes of several elements."""
    pairs = zip(a._shape, a._strides, b._strides, strict=True)
    return a._shape == b._shape and a._dtype is b._dtype and all(n == 1 or s == t for n, s, t in pairs)


def _is_dense(a: ndarray) -> bool:
    """Whether the elements fill the range of their addresses."""
    low, high = bounds(a)
    return a._size * a._dtype.itemsize == high - low and not shapes.repeats(a._shape, a._strides)


__all__ = ["Graph", "capture"]
