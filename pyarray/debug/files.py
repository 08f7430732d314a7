"""The files of a dump. `data.bin` holds elements, `manifest.json` says what they are.

While a dump runs, events are appended to `manifest.jsonl`, a line each, after their data: after a crash, the lines so
far can be read. At the end they become one `manifest.json`, by a rename.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..jit.atomic_file import replace_file, replacing
from ..locks import new_lock

FORMAT, SCHEMA = "pyarray dump", 2
SECTIONS = ("programs", "launches", "records")
MANIFEST, LINES, DATA = "manifest.json", "manifest.jsonl", "data.bin"
PERMITTED = 0o666  # of files, less the umask: others may read dumps
PIECE = 1 << 30  # bytes of one write: more than 2 GiB are refused by some systems


class Busy(FileExistsError):
    """Another dump is being written to the folder."""


class Writer:
    """Takes a directory for one dump and appends to it; any thread may. Raises `FileExistsError` when the
    directory holds something else or another dump is being written there; a finished dump is replaced."""

    def __init__(self, directory: Path, header: dict[str, Any], max_bytes: int | None):
        self.directory, self.header, self.max_bytes = directory, header, max_bytes
        names = ("launches", "recorded", "bytes", "truncated", "overwritten", "dropped")
        self.counters: dict[str, int] = dict.fromkeys(names, 0)
        self._lock = new_lock()
        self._closed = False
        directory.mkdir(parents=True, exist_ok=True)
        _refuse_others(directory)
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
        self._data = os.open(directory / DATA, flags, PERMITTED)
        try:
            fcntl.flock(self._data, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._data)
            raise Busy(f"another dump is being written to {directory}; name another folder") from None
        # in this order, so that the files are consistent at any moment
        (directory / LINES).unlink(missing_ok=True)
        head = json.dumps(self._head(complete=False)) + "\n"
        replace_file(directory / MANIFEST, head.encode(), PERMITTED)
        os.ftruncate(self._data, 0)
        self._lines = os.open(directory / LINES, flags, PERMITTED)
        self._lines_end = 0

    def append(self, event: dict[str, Any], elements: list[tuple[dict[str, Any], Any]]) -> None:
        """Appends an event. `elements` are its records with their elements; each record gets the position of its
        elements in the data."""
        with self._lock:
            if self._closed:
                return  # a launch that was under way when the dump ended
            for record, words in elements:
                record.update(self._append_data(words))
            if "launch" in event:
                self.counters["recorded"] += 1
                self.counters["launches"] = max(self.counters["launches"], event["launch"]["number"] + 1)
            event["counters"] = self.counters
            self._lines_end = _write(self._lines, _compact(event) + b"\n", self._lines_end)

    def _append_data(self, words: Any) -> dict[str, Any]:
        at, size = self.counters["bytes"], words.nbytes
        if self.max_bytes is not None and at + size > self.max_bytes:
            size = (self.max_bytes - at) // words.itemsize * words.itemsize
        stored = {"byte_offset": at, "size": size, "whole_size": words.nbytes}
        if size < words.nbytes:
            stored["lost"] = "truncated" if size else "dropped"
            self.counters[stored["lost"]] += 1
        self.counters["bytes"] = _write(self._data, words.reshape(-1).view(np.uint8)[:size].data, at)
        return stored

    def _head(self, complete: bool) -> dict[str, Any]:
        head = {"format": FORMAT, "schema": SCHEMA, "complete": complete, "byteorder": "little"}
        return head | self.header | {"counters": self.counters}

    def close(self) -> None:
        """Merges the lines into `manifest.json`. Where that fails they stay, and can be read as well."""
        with self._lock:
            self._closed = True
            os.close(self._lines)
            try:
                self._merge()
            finally:
                os.close(self._data)

    def _merge(self) -> None:
        lines = self.directory / LINES
        with replacing(self.directory / MANIFEST, PERMITTED) as out:
            out.write(json.dumps(self._head(complete=True))[:-1].encode())
            for section in SECTIONS:
                out.write(f', "{section}": ['.encode())
                for n, row in enumerate(rows(section, lines)):
                    out.write((",\n" if n else "\n").encode() + _compact(row))
                out.write(b"]")
            out.write(b"}\n")
        lines.unlink()

    def abandon(self) -> None:
        """Close the files as they are: in the child of a fork they are the parent's."""
        self._closed = True
        os.close(self._lines)
        os.close(self._data)


def _refuse_others(directory: Path) -> None:
    manifest, data = directory / MANIFEST, directory / DATA
    if not manifest.exists() and not data.exists():
        return
    try:
        with open(manifest, encoding="utf-8") as file:
            is_dump = f'"format": "{FORMAT}"' in file.read(200)
    except (OSError, ValueError):
        is_dump = False
    if not is_dump:
        raise FileExistsError(f"{directory} holds files that are no dump; name a folder that is new or empty")


def _compact(row: dict[str, Any]) -> bytes:
    return json.dumps(row, separators=(",", ":")).encode()


def _write(file: int, data: Any, at: int) -> int:
    """The end of `data` in the file. The next write overwrites what a failed one has left."""
    view = memoryview(data)
    while view.nbytes:
        written = os.pwrite(file, view[:PIECE], at)
        view, at = view[written:], at + written
    return at


# ---- reading


def rows(section: str, lines: Path) -> Iterator[dict[str, Any]]:
    """The rows of a section of the manifest, from the lines."""
    ends = {}
    if section == "launches":
        ends = {event["end"]: event for event in _events(lines) if "end" in event}
    for event in _events(lines):
        if section == "programs" and "program" in event:
            yield event["program"]
        elif section == "launches" and "launch" in event:
            launch = event["launch"]
            end = ends.get(launch["number"], {"status": "unfinished"})
            yield launch | {key: end[key] for key in ("status", "error") if key in end}
        elif section == "records":
            yield from event.get("records", ())


def counted(lines: Path) -> dict[str, int]:
    """The counters as of the last event."""
    last: dict[str, int] = {}
    for event in _events(lines):
        last = event.get("counters", last)
    return last


def _events(lines: Path) -> Iterator[dict[str, Any]]:
    with open(lines, "rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                return  # the process died while it wrote this line
            yield json.loads(line)


def read_manifest(directory: Path) -> dict[str, Any]:
    """The whole manifest, of a running or crashed dump as far as it got. Raises `FileNotFoundError` where
    there is none and `ValueError` for another format or schema."""
    path = directory / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no manifest of a pyarray dump ({error}); record it anew") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ValueError(f"{path} is no manifest of a pyarray dump")
    if manifest["schema"] != SCHEMA:
        raise ValueError(f"{path} has schema {manifest['schema']}, this pyarray reads {SCHEMA}; load it there")
    if not manifest["complete"]:
        try:
            manifest |= {section: list(rows(section, directory / LINES)) for section in SECTIONS}
            manifest["counters"] |= counted(directory / LINES)
        except FileNotFoundError:  # the dump has ended meanwhile, or died before its first line
            manifest = {section: [] for section in SECTIONS} | json.loads(path.read_text(encoding="utf-8"))
    return manifest
