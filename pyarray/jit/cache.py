"""Compiled artifacts on disk, one file per entry, named by the hash of everything that made it.

An entry appears by one rename and is never changed, so readers need no lock. One whose digest doesn't match
is removed with a warning and counts as a miss.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import sys
import tempfile
import warnings
from pathlib import Path

from .. import config

VERSION = 1


def key_of(*parts: str) -> str:
    """Name of an entry: SHA-256 over the parts, with their lengths, so that no two lists run together."""
    digest = hashlib.sha256()
    for part in (f"pyarray {VERSION}", *parts):
        data = part.encode()
        digest.update(str(len(data)).encode() + b":" + data)
    return digest.hexdigest()


def directory() -> Path | None:
    """The cache's directory, made if need be; None when the cache is off or the place can't be trusted.

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
    if status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
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


def find(key: str) -> bytes | None:
    """The binary of a sound entry, or None."""
    root = directory()
    if root is None:
        return None
    path = root / f"{key}.kernel"
    try:
        head, _, binary = path.read_bytes().partition(b"\n")
        if json.loads(head)["sha256"] == hashlib.sha256(binary).hexdigest():
            return binary
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        pass
    warnings.warn(f"the kernel cache entry {path} is damaged; it is rebuilt", RuntimeWarning, stacklevel=3)
    with contextlib.suppress(OSError):
        path.unlink()
    return None


def publish(key: str, binary: bytes, facts: dict[str, str]) -> None:
    """Store a binary behind one line of JSON that says what it is. A cache that can't be written to is left
    alone."""
    root = directory()
    if root is None:
        return
    head = json.dumps({"version": VERSION, "sha256": hashlib.sha256(binary).hexdigest(), **facts})
    try:
        handle, temporary = tempfile.mkstemp(prefix=".new-", dir=root)
        with os.fdopen(handle, "wb") as file:
            file.write(head.encode() + b"\n" + binary)
        os.replace(temporary, root / f"{key}.kernel")
    except OSError as error:
        _warn_once(
            f"the kernel cache {root} can't be written to ({error}); new kernels are compiled in each process"
        )
