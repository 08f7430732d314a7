"""Timings and winners on disk: one JSON file per kernel, merged under a lock, replaced by one rename.

    {"format": ..., "kernel": ..., "entries": {key digest: {"group": digest, "key": {...}, "timings":
    {identity: {"config": text, "median": ms, ...} or {"config": text, "reason": text}}, "winners":
    {set of candidates: identity}, "used": seconds}}}

Candidates are found again by their identity: nothing in a file is executed. A file of another format, or a
damaged one, is moved aside with one warning.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import time
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..jit import cache
from ..jit.atomic_file import replace_file
from ..jit.trust import trusted

FORMAT = "pyarray tuner 1"
WAIT = 600.0  # seconds for another process's search; then both search
MAX_STORED_KEYS = 1024  # keys of one kernel on disk; those used longest ago go first
Entry = dict[str, Any]

_held: set[int] = set()  # descriptors of locks, which a child of a fork would hold on to


def folder() -> Path | None:
    """Where the files are, beside the compiled kernels; None where nothing is kept on disk, or others can
    write to it."""
    root = cache.directory()
    if root is None:
        return None
    path = root / "tune"
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        return path if trusted(path.stat(), os.getuid()) else None
    except OSError:
        return None


@contextlib.contextmanager
def locked(name: str, wait: float = WAIT) -> Iterator[bool]:
    """The lock `name` of all processes that share the folder. It ends with the process that holds it. False
    where there is none to have: no folder, or `wait` seconds are over."""
    root = folder()
    try:
        handle = None if root is None else os.open(root / f"{name}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        handle = None
    if handle is None:
        yield False
        return
    _held.add(handle)
    try:
        yield _take(handle, wait)
    finally:
        if handle in _held:
            _held.discard(handle)
            os.close(handle)


def _take(handle: int, wait: float) -> bool:
    end, pause = time.monotonic() + wait, 0.001
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= end:
                return False
        except OSError:  # of a file system without locks
            return False
        time.sleep(pause)
        pause = min(2 * pause, 0.05)


def _after_fork() -> None:
    """The locks are the parent's."""
    for handle in _held:
        with contextlib.suppress(OSError):
            os.close(handle)
    _held.clear()


os.register_at_fork(after_in_child=_after_fork)


class Store:
    """What is known on disk of one kernel, by its module and qualified name."""

    def __init__(self, kernel: str, digest: str):
        self.kernel = kernel
        readable = re.sub(r"[^\w.-]", "_", kernel)[-80:]
        self.name = f"{readable}-{digest[:12]}.json"

    @property
    def path(self) -> Path | None:
        root = folder()
        return None if root is None else root / self.name

    def entry(self, key: str) -> Entry:
        """A copy of a key's entry: `timings` and `winners`, both empty if there is none."""
        entry_of_key = self.entries().get(key)
        return entry_of_key if entry_of_key is not None else {"timings": {}, "winners": {}}

    def entries(self) -> dict[str, Entry]:
        """The entries of all keys; none if the file can't be read."""
        try:
            return self._read()
        except OSError:
            return {}

    def merge(self, key: str, change: Mapping[str, Any]) -> None:
        """Add to a key: timings and winners one by one, other fields as a whole. A file that can't be read or
        written is left alone."""
        path = self.path
        if path is None:
            return
        with contextlib.suppress(OSError), locked(f"{self.name}.write", 10.0):
            entries = self._read()
            entry = entries.setdefault(key, {"timings": {}, "winners": {}})
            for name, value in change.items():
                if name in ("timings", "winners"):
                    entry[name] |= value
                else:
                    entry[name] = value
            entry["used"] = time.time()
            self._write(path, entries)

    def forget(self, key: str, identity: str) -> None:
        """Drop a candidate of a key, and what it has won."""
        path = self.path
        if path is None:
            return
        with contextlib.suppress(OSError), locked(f"{self.name}.write", 10.0):
            entries = self._read()
            entry = entries.get(key)
            if entry is not None:
                entry["timings"].pop(identity, None)
                entry["winners"] = {s: i for s, i in entry["winners"].items() if i != identity}
                self._write(path, entries)

    def _write(self, path: Path, entries: dict[str, Entry]) -> None:
        kept = sorted(entries.items(), key=lambda item: -float(item[1].get("used", 0)))[:MAX_STORED_KEYS]
        data = {"format": FORMAT, "kernel": self.kernel, "entries": dict(kept)}
        replace_file(path, json.dumps(data, indent=1, sort_keys=True).encode() + b"\n")

    def _read(self) -> dict[str, Entry]:
        path = self.path
        if path is None:
            return {}
        data = read(path)
        if data is None or data["kernel"] != self.kernel:
            return {}
        return data["entries"]


def read(path: Path) -> dict[str, Any] | None:
    """The data of a file; None without one. A file of another format, or a damaged one, is moved aside. Raises
    `OSError` for a file that can't be read."""
    data: Any = None
    try:
        data = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except IsADirectoryError:
        pass
    except (ValueError, RecursionError):
        pass
    if isinstance(data, dict) and _sound(data):
        return data
    aside = path.with_name(f"{path.name}.aside-{time.time_ns()}")
    try:
        os.replace(path, aside)
        how = f"moved to {aside.name} and made anew"
    except FileNotFoundError:  # another process has moved it
        return None
    except OSError:
        how = "left there and not used, since it can't be moved"
    warnings.warn(f"the tuner's file {path} is damaged or not pyarray's; it is {how}", RuntimeWarning, stacklevel=2)
    return None


_OURS = re.compile(r"\.new-\w+|.+-[0-9a-f]{12}\.json(\.aside-\d+)?")


def clear() -> int:
    """Delete the results of all kernels, and what damaged files and killed processes left; nothing else. Lock
    files stay: a process may hold them. Returns the number of files."""
    root, done = folder(), 0
    if root is None:
        return 0
    for path in list(root.iterdir()):
        if _OURS.fullmatch(path.name):
            with contextlib.suppress(OSError):
                path.unlink()
                done += 1
    return done


def _sound(data: Any) -> bool:
    """Whether all that is read of a file has its type."""
    if not isinstance(data, dict) or data.get("format") != FORMAT or not isinstance(data.get("kernel"), str):
        return False
    entries = data.get("entries")
    return isinstance(entries, dict) and all(map(_sound_entry, entries.values()))


def _sound_entry(entry: Any) -> bool:
    if not isinstance(entry, dict) or not _sound_number(entry.get("used", 0), -1e18):
        return False
    if not _sound_key(entry.get("key", {})):
        return False
    timings, winners, work = entry.get("timings"), entry.get("winners"), entry.get("work", {})
    if not (isinstance(timings, dict) and isinstance(winners, dict) and isinstance(work, dict)):
        return False
    # a number of tiles has no end
    if not all(_sound_number(n) or (isinstance(n, float) and n >= 0) for n in work.values()):
        return False
    return all(map(_sound_timing, timings.values())) and all(isinstance(w, str) for w in winners.values())


def _sound_key(key: Any) -> bool:
    """Whether it can be shown; a search compares digests."""
    if not isinstance(key, dict):
        return False
    group, sizes = key.get("group", {}), key.get("sizes", {})
    if not (isinstance(group, dict) and isinstance(sizes, dict)) or [] in sizes.values():
        return False
    device, arrays = group.get("device", {}), group.get("arrays", {})
    return isinstance(device, dict) and isinstance(arrays, dict) and all(isinstance(a, dict) for a in arrays.values())


def _sound_timing(row: Any) -> bool:
    if not isinstance(row, dict) or not isinstance(row.get("config"), str):
        return False
    if isinstance(row.get("reason"), str):
        return "median" not in row
    return all(_sound_number(row.get(name)) for name in ("median", "least", "spread", "runs"))


def _sound_number(n: Any, least: float = 0.0) -> bool:
    return isinstance(n, (int, float)) and not isinstance(n, bool) and least <= n < 1e18
