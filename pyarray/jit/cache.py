"""Compiled artifacts on disk, one file per entry, named by the hash of everything that made it.

An entry appears by one rename and is never changed, so readers need no lock. One whose digest doesn't match
is removed with a warning and counts as a miss. An entry's time of modification is that of its last use: the
directory is kept below a size by deleting what was used longest ago.

After the user's directory, another one may be looked at, with entries that were compiled with the package
(pyarray/warm.py). It is only read.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from .. import config
from .atomic_file import UNFINISHED, replace_file
from .trust import Untrusted, read_trusted, trusted

VERSION = 1
STALE = 3600  # seconds after which a file that was never renamed is a dead process's
BUILT = Path(__file__).resolve().parent.parent / "_warmed"  # made by setup.py
MAX_HEAD_BYTES = 1 << 16  # bytes of an entry's first line, which has a compiler's version and flags in it
MAX_FIELD_CHARS = 2000  # characters of each of these: flags may have any length
CLEANED_PART = 0.9  # of the cap, what is left after a clean-up: not every new kernel begins one
_ENTRY, _UNFINISHED = re.compile(r"[0-9a-f]{64}\.kernel"), re.compile(UNFINISHED)


def key_of(*parts: str) -> str:
    """Name of an entry: SHA-256 over the parts, with their lengths, so that no two lists run together."""
    digest = hashlib.sha256()
    for part in (f"pyarray {VERSION}", *parts):
        data = part.encode()
        digest.update(str(len(data)).encode() + b":" + data)
    return digest.hexdigest()


def directory() -> Path | None:
    """The cache's directory, made if need be; None when the cache is off or the directory can't be trusted.

    A directory that belongs to somebody else, or that others can write to, would let them run code here: it
    is refused with a warning.
    """
    if not config.get("PYARRAY_CACHE"):
        return None
    base = Path(
        os.environ.get("XDG_CACHE_HOME") or ("~/Library/Caches" if sys.platform == "darwin" else "~/.cache")
    ).expanduser()
    path: Path = config.get("PYARRAY_CACHE_DIR") or base / "pyarray"
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = path.stat()
    except OSError as error:
        _warn_once(
            f"the kernel cache {path} can't be used ({error}); kernels are compiled in each process. "
            "Set PYARRAY_CACHE_DIR"
        )
        return None
    if not trusted(status, os.getuid()):
        _warn_once(
            f"the kernel cache {path} is not used: it belongs to or can be written by others. "
            "chmod 700 it, or set PYARRAY_CACHE_DIR"
        )
        return None
    return path


_warned: set[str] = set()


def _warn_once(message: str) -> None:
    if message not in _warned:
        _warned.add(message)
        warnings.warn(message, RuntimeWarning, stacklevel=3)


def warmed() -> Path | None:
    """The directory of what was compiled with the package; None if there is none, or the cache is off.

    One that PYARRAY_WARMED names is refused, with a warning, where others can write to it: it is the user's
    or the administrator's. That of the package is trusted as its code is.
    """
    if not config.get("PYARRAY_CACHE"):
        return None
    setting = config.get("PYARRAY_WARMED")
    path: Path = BUILT if setting is None else setting
    if not path or not path.is_dir():
        return None
    if setting is not None and not trusted(path.stat(), os.getuid(), 0):
        _warn_once(
            f"the compiled kernels in {path} are not used: it belongs to or can be written by others. "
            "chmod go-w it, or set PYARRAY_WARMED to another directory or to 0"
        )
        return None
    return path


def find(key: str) -> bytes | None:
    """The binary of a sound entry, the user's or one compiled with the package; None if there is neither."""
    name, root, built = f"{key}.kernel", directory(), warmed()
    if root is not None:
        binary = _read(root / name, True, os.getuid())
        if binary is not None:
            with contextlib.suppress(OSError):
                os.utime(root / name)
            return binary
    owners = () if built == BUILT else (os.getuid(), 0)
    return None if built is None else _read(built / name, False, *owners)


def _read(path: Path, remove: bool, *owners: int) -> bytes | None:
    """The binary of an entry; None, with a warning, where it is damaged, or where not one of `owners` alone
    can have written it (none named: whoever has the package). `remove`: it is then deleted."""
    why = "is damaged"
    try:
        head, _, binary = (read_trusted(path, *owners) if owners else path.read_bytes()).partition(b"\n")
        if _header(head).get("sha256") == hashlib.sha256(binary).hexdigest():
            return binary
    except FileNotFoundError:
        return None
    except Untrusted:
        why = "belongs to or can be written by others"
    except (OSError, ValueError):
        pass
    if remove:
        _remove(path)
        then = "it is rebuilt"
    else:
        then = f"it is not used; make its directory anew: python -m pyarray cache warm {path.parent}"
    warnings.warn(f"the kernel cache entry {path} {why}; {then}", RuntimeWarning, stacklevel=4)
    return None


def _header(head: bytes) -> dict[str, Any]:
    """What the first line of an entry says. Raises `ValueError` for what `publish` doesn't write."""
    if len(head) > MAX_HEAD_BYTES:
        raise ValueError(f"the first line of an entry has {len(head)} bytes, of at most {MAX_HEAD_BYTES}")
    try:
        header = json.loads(head)
    except RecursionError:
        raise ValueError("the first line of an entry is nested too deeply") from None
    if not isinstance(header, dict):
        raise ValueError(f"the first line of an entry is no JSON object, but {type(header).__name__}")
    return header


def publish(key: str, binary: bytes, metadata: dict[str, str]) -> None:
    """Store a binary after one line of JSON that says what it is. A cache that can't be written to is left
    alone."""
    root, cap = directory(), config.get("PYARRAY_CACHE_MAX_BYTES")
    if root is None or len(binary) > cap:
        return
    fields = {name: text[:MAX_FIELD_CHARS] for name, text in metadata.items()}
    head = json.dumps({"version": VERSION, "sha256": hashlib.sha256(binary).hexdigest(), **fields})
    try:
        replace_file(root / f"{key}.kernel", head.encode() + b"\n" + binary)
        _make_room(root, len(head) + 1 + len(binary), cap)
    except OSError as error:
        _warn_once(f"the kernel cache {root} can't be written to ({error}); new kernels are compiled in each process")


# ---- size

_sizes: dict[Path, int] = {}  # of directories, as seen at the last look, and what this process added since


def _make_room(root: Path, added: int, cap: int) -> None:
    """Look at the directory when this process adds to it for the first time, and whenever it may be full."""
    size = _sizes.get(root)
    _sizes[root] = (size or 0) + added
    if size is not None and size + added <= cap:
        return
    now = time.time()
    for path, status in _files(root, _UNFINISHED):
        if now - status.st_mtime > STALE:
            _remove(path)
    entries = sorted(_files(root, _ENTRY), key=lambda entry: entry[1].st_mtime)
    total = sum(status.st_size for _, status in entries)
    if total > cap:
        for path, status in entries:
            if total <= cap * CLEANED_PART:
                break
            _remove(path)
            total -= status.st_size
    _sizes[root] = total


def _files(root: Path, pattern: re.Pattern[str]) -> Iterator[tuple[Path, os.stat_result]]:
    """Files of ours; what another process deletes meanwhile is left out."""
    with os.scandir(root) as entries:
        for file in entries:
            with contextlib.suppress(OSError):
                if pattern.fullmatch(file.name) and file.is_file(follow_symlinks=False):
                    yield Path(file.path), file.stat(follow_symlinks=False)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


class Info(NamedTuple):
    """The disk cache: where (None: it is off, or can't be trusted), how many entries, their bytes, and the
    most there may be; how many entries were compiled with the package, by the compiler and processor they are
    for."""

    directory: Path | None
    entries: int
    bytes: int
    cap: int
    warmed: Counter[str]


def info() -> Info:
    """What is on disk now."""
    root, built, cap = directory(), warmed(), config.get("PYARRAY_CACHE_MAX_BYTES")
    sizes = [status.st_size for _, status in _files(root, _ENTRY)] if root else []
    targets = [_target(path) for path, _ in _files(built, _ENTRY)] if built else []
    return Info(root, len(sizes), sum(sizes), cap, Counter(targets))


def _target(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return str(_header(file.readline(MAX_HEAD_BYTES + 1))["target"])
    except (OSError, ValueError, KeyError):
        return "damaged"


def clear() -> int:
    """Delete all entries, and what killed processes left; nothing else. How many files that were."""
    root = directory()
    if root is None:
        return 0
    paths = [path for pattern in (_ENTRY, _UNFINISHED) for path, _ in _files(root, pattern)]
    for path in paths:
        _remove(path)
    _sizes.pop(root, None)
    return len(paths)
