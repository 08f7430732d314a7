"""Dumps: records arguments of launches on disk, inputs before and outputs after each."""

from __future__ import annotations

import atexit
import itertools
import logging
import os
import re
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import config
from ..array import ndarray
from ..errors import DeviceError
from ..jit.launch_state import Launch, add_observer, remove_observer
from ..jit.report import caller
from ..lang.ir import ArrayType
from ..locks import new_lock
from ..memory.buffer import Buffer
from . import record, signature
from .files import Busy, Writer
from .record import LaunchArgument
from .tags import tagged

MARKED, ALL, METADATA = 1, 2, 3  # levels; 0 is off
HINT = (
    "a dump of level 1 recorded nothing, for no launch had a marked argument: mark arrays with "
    "pa.dump_tag(a) or parameters with kernel.dump('name'), or ask for level=2"
)
log = logging.getLogger("pyarray")
Row = tuple[LaunchArgument, dict[str, Any]]  # an argument and its metadata
RecordedElements = tuple[dict[str, Any], np.ndarray[Any, Any]]  # a record and its elements


def dump(
    dir: Any = None,
    level: int = ALL,
    max_bytes: int | None = None,
    *,
    every: int = 1,
    stop_at_nan: bool = False,
) -> Dump:
    """Record the arguments of every launch inside the block, of all threads, in the folder `dir`: inputs and
    numbers before it, outputs after it.

    `level` 0 is off, 1 records arrays marked with `dump_tag`, 2 everything, 3 metadata without elements. At
    most `max_bytes` bytes of elements are kept. `every=k` records each k-th launch; `stop_at_nan` makes the
    launch with the first NaN the last one recorded. `dir` and `max_bytes` default to PYARRAY_DUMP_DIR and
    PYARRAY_DUMP_MAX_BYTES. Raises `ValueError` without a folder and for a level that isn't there,
    `FileExistsError` when the folder holds something else. `load_dump(dir)` reads it.

    >>> import pyarray as pa, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with pa.dump(folder):
    ...         total = pa.sum(pa.ones(4))
    ...     float(pa.load_dump(folder)[-1].args["out"].after[0])
    4.0
    """
    return Dump(dir, level, max_bytes, every, stop_at_nan)


class Dump:
    """A dump that runs inside its `with` block, once. `directory` is where, `counters` says how much: the
    launches seen and recorded, the bytes kept, the records truncated or dropped."""

    def __init__(self, dir: Any, level: int, max_bytes: int | None, every: int, stop_at_nan: bool):
        if not isinstance(level, int) or level not in range(4):
            raise ValueError(f"the level of a dump is 0 (off), 1, 2 or 3, got {level!r}")
        if not isinstance(every, int) or every < 1:
            raise ValueError(f"every=k records each k-th launch, k is 1 or more; got {every!r}")
        if max_bytes is not None and max_bytes < 0:
            raise ValueError(f"max_bytes is 0 or more, got {max_bytes!r}")
        folder = config.get("PYARRAY_DUMP_DIR") if dir is None else dir
        if folder is None and level:
            raise ValueError("a dump needs a folder: pa.dump(dir), or set PYARRAY_DUMP_DIR")
        self.level, self.every, self.stop_at_nan = int(level), every, stop_at_nan
        self.max_bytes = config.get("PYARRAY_DUMP_MAX_BYTES") if max_bytes is None else max_bytes
        self.directory = None if folder is None else Path(folder).absolute()
        self._writer: Writer | None = None
        self._entered = self._stopped = False
        self._numbers = itertools.count()
        self._buffers: weakref.WeakKeyDictionary[Buffer, int] = weakref.WeakKeyDictionary()
        self._programs: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._texts: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._object_numbers = itertools.count()
        self._lock = new_lock()

    @property
    def counters(self) -> dict[str, int]:
        return dict(self._writer.counters) if self._writer is not None else {}

    def __enter__(self) -> Dump:
        if self._entered:
            raise RuntimeError("a dump is entered once; make another with pa.dump(dir)")
        self._entered = True
        if self.level and self.directory is not None:
            header = {
                "level": self.level, "every": self.every, "max_bytes": self.max_bytes,
                "stop_at_nan": self.stop_at_nan, "stopped": None, "hint": None, "process": os.getpid(),
            }  # fmt: skip
            self._writer = Writer(self.directory, header, self.max_bytes)
            _running.add(self)
            add_observer(self._observe)
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the dump: completes the manifest."""
        with self._lock:
            if self not in _running:
                return
            _running.discard(self)
        remove_observer(self._observe)
        writer = self._open
        writer.counters["launches"] = next(self._numbers)
        if self.level == MARKED and not writer.counters["recorded"]:
            writer.header["hint"] = HINT
            log.warning("%s (%s)", HINT, self.directory)
        writer.close()

    @property
    def _open(self) -> Writer:
        assert self._writer is not None
        return self._writer

    def _abandon(self) -> None:
        """In the child of a fork: the files are the parent's."""
        remove_observer(self._observe)
        if self._writer is not None:
            self._writer.abandon()

    # ---- one launch

    def _observe(self, launch: Launch) -> None:
        number = next(self._numbers)
        if self._stopped or number % self.every:
            launch.run()
            return
        try:
            arguments = list(record.arguments(launch))
        except KeyError as error:
            self._record_refusal(launch, number, error)
            launch.run()
            return
        chosen = [g for g in arguments if self._chosen(launch, g)]
        if self.level == MARKED and not any(isinstance(g.type, ArrayType) for g in chosen):
            launch.run()
            return
        rows = self._rows(launch, number, arguments, chosen)
        self._begin(launch, number, rows)
        end: dict[str, Any] = {"end": number, "status": "ok"}
        try:
            launch.run()
        except BaseException as error:
            end |= {"status": "error", "error": f"{type(error).__name__}: {error}"}
            raise
        finally:
            self._end(launch, end, rows)

    def _chosen(self, launch: Launch, g: LaunchArgument) -> bool:
        if self.level != MARKED or not isinstance(g.type, ArrayType):
            return True
        parameter = re.split(r"[.\[]", g.name)[0]  # of a field: `p.v`, `t[0]`
        return not launch.marked.isdisjoint((g.name, parameter)) or tagged(g.value)

    def _rows(
        self,
        launch: Launch,
        number: int,
        arguments: Sequence[LaunchArgument],
        chosen: Sequence[LaunchArgument],
    ) -> list[Row]:
        """Metadata of each chosen argument."""
        arrays = {g.name: g.value for g in arguments if isinstance(g.type, ArrayType)}
        runs, run_of = record.blocks(list(arrays.values()))
        run = dict(zip(arrays, run_of, strict=True))
        key, device = launch.variant.artifact.key, str(launch.variant.device)
        rows = []
        for g in chosen:
            row = {
                "launch": number, "kernel": launch.kernel, "key": key, "device": device,
                "parameter": g.name, "index": g.index, "direction": g.direction,
            }  # fmt: skip
            if g.type is None:
                row |= record.constant_metadata(g.value)
            elif isinstance(g.type, ArrayType):
                buffer = self._number(self._buffers, g.value._buffer)
                row |= record.array_metadata(g.value, run[g.name], runs[run[g.name]], buffer)
            else:
                row |= record.scalar_metadata(g.type, g.value, arrays)
            rows.append((g, row))
        return rows

    def _begin(self, launch: Launch, number: int, rows: Sequence[Row]) -> None:
        writer, records, elements = self._open, [], []
        for g, row in rows:
            if isinstance(g.type, ArrayType) and (self.level == METADATA or g.direction not in ("IN", "INOUT")):
                records.append(row | {"stage": "metadata"})
                continue
            records.append(row | {"stage": "before"})
            if isinstance(g.type, ArrayType):
                elements.append(_record_elements(records[-1], g.value))
        thread = threading.current_thread()
        program, text = self._program(launch)
        about = self._identity(launch, number) | {
            "program": program, "checked": launch.variant.checked, "at": caller(),
            "thread": thread.name, "thread_id": thread.ident,
        }  # fmt: skip
        if program is not None:
            about["signature"] = signature.sign(about, text, records)
        writer.append({"launch": about, "records": records}, elements)
        self._stop_at_nan(elements)

    def _end(self, launch: Launch, end: dict[str, Any], rows: Sequence[Row]) -> None:
        elements: list[RecordedElements] = []
        results = self._results(launch, end["end"], len(rows))
        if self.level == METADATA:
            end |= {"records": [metadata | {"stage": "metadata"} for _, metadata in results]}
        else:
            try:
                launch.variant.device.driver.synchronize()
                for g, metadata in (*rows, *results):
                    if g.direction in ("OUT", "INOUT"):
                        elements.append(_record_elements(metadata | {"stage": "after"}, g.value))
            except DeviceError as error:  # what broke the launch may have broken the device: keep the inputs
                end |= {"status": "error", "error": end.get("error", f"DeviceError: {error}")}
            end |= {"records": [row for row, _ in elements]}
        self._open.append(end, elements)
        self._stop_at_nan(elements)

    def _results(self, launch: Launch, number: int, first: int) -> list[Row]:
        """Metadata of the results of another library's function, which can't be tagged."""
        results = list(record.results(launch, first))
        return self._rows(launch, number, results, results) if results and self.level != MARKED else []

    def _record_refusal(self, launch: Launch, number: int, error: Exception) -> None:
        """Puts a launch that can't be recorded into the manifest, with the reason."""
        self._open.append({"launch": self._identity(launch, number)}, [])
        text = f"its arguments can't be told from its parameters ({type(error).__name__}: {error})"
        self._open.append({"end": number, "status": "not dumped", "error": text}, [])

    def _identity(self, launch: Launch, number: int) -> dict[str, Any]:
        key, device = launch.variant.artifact.key, str(launch.variant.device)
        return {"number": number, "kernel": launch.kernel, "key": key, "device": device}

    def _stop_at_nan(self, elements: Sequence[RecordedElements]) -> None:
        """Ends the recording after the first launch with a NaN, if `stop_at_nan` is set."""
        with_nan = next((row for row, _ in elements if row["summary"]["nan"]), None)
        if not self.stop_at_nan or with_nan is None or self._stopped:
            return
        self._stopped = True
        remove_observer(self._observe)
        details = {key: with_nan[key] for key in ("launch", "kernel", "parameter", "stage")}
        self._open.header["stopped"] = details
        log.warning("the dump in %s stops at its first NaN: %s", self.directory, details)

    def _number(self, numbers: weakref.WeakKeyDictionary[Any, int], thing: Any) -> int:
        """The number of a live object, by identity and not by address."""
        with self._lock:
            if thing not in numbers:
                numbers[thing] = next(self._object_numbers)
            return numbers[thing]

    def _program(self, launch: Launch) -> tuple[int | None, str]:
        """Its number, and the digest of what is recorded of it; None for what is no kernel."""
        if launch.variant.program is None:
            return None, ""
        number_known = self._texts.get(launch.variant)
        number = self._number(self._programs, launch.variant)
        if number_known is None:  # two threads may append it twice, which is harmless
            metadata = record.program_metadata(launch, number)
            number_known = signature.program_digest(metadata)
            self._open.append({"program": metadata}, [])
            self._texts[launch.variant] = number_known
        return number, number_known


def _record_elements(row: dict[str, Any], a: ndarray) -> RecordedElements:
    words = record.read(a)
    row |= {"stored_shape": list(words.shape), "summary": record.summary(words, a._dtype)}
    if row["stage"] == "before":
        row["sha256"] = signature.elements_digest(words)
    return row, words


# ---- the dump that the settings ask for

_running: set[Dump] = set()
_start_lock = new_lock()
_started: Dump | None = None
_forked = False


def _from_settings(launch: Launch) -> None:
    """The first launch of the process starts the dump. Wrong settings raise then, and nothing is launched."""
    global _started
    with _start_lock:
        if _started is None:
            _started = _start()
            remove_observer(_from_settings)
            atexit.register(_started.close)
    _started._observe(launch)


def _start() -> Dump:
    level, every = config.get("PYARRAY_DUMP_ARGS"), config.get("PYARRAY_DUMP_EVERY")
    options = {"level": level, "every": every, "stop_at_nan": config.get("PYARRAY_DUMP_STOP_AT_NAN")}
    folder = f"process-{os.getpid()}"
    if not _forked:
        block = dump(**options)
        try:
            return block.__enter__()
        except Busy:
            pass
    return dump(Path(config.get("PYARRAY_DUMP_DIR"), folder), **options).__enter__()


def _observe_if_set() -> None:
    try:
        is_set = config.get("PYARRAY_DUMP_ARGS") != 0
    except ValueError:
        is_set = True  # the first launch says what is wrong with it
    if is_set:
        add_observer(_from_settings)


def _after_fork() -> None:
    """The files belong to the parent. A dump that the settings ask for starts anew, in a folder of the child."""
    global _started, _forked
    _forked = True
    for running in list(_running):
        running._abandon()
    _running.clear()
    if _started is not None:
        _started = None
        add_observer(_from_settings)


_observe_if_set()
os.register_at_fork(after_in_child=_after_fork)
