"""Signatures of recorded launches.

A replay compiles and runs what is in a dump, without bounds checks. So it must be what this user recorded, and not
what another user wrote into the files.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..jit import cache
from ..jit.trust import read_trusted

NAME = "dump.key"  # in the folder of the kernel cache: 32 random bytes that only this user can read
_SIZE = 32
# known only after the launch has begun; no replay relies on them
_UNSIGNED_FIELDS = ("byte_offset", "size", "whole_size", "lost", "signature", "status", "error")
_process_key = secrets.token_bytes(_SIZE)  # of a process that has no such folder


def key_path() -> Path | None:
    """The file of the key; None where there is no folder, so that the key is this process's own."""
    root = cache.directory()
    return None if root is None else root / NAME


def sign(launch: Mapping[str, Any], program: str, inputs: Iterable[Mapping[str, Any]]) -> str:
    """The signature of all that a replay needs: the launch's metadata, the digest of its program, and the
    records of its inputs, which have the digests of arrays' elements."""
    text = json.dumps([_signed(launch), program, [_signed(row) for row in inputs]], sort_keys=True)
    return hmac.new(_key(key_path()), text.encode(), hashlib.sha256).hexdigest()


def is_signed(launch: Mapping[str, Any], program: str, inputs: Iterable[Mapping[str, Any]]) -> bool:
    """Whether this user's key has signed it, as it is."""
    signature = str(launch.get("signature"))
    return hmac.compare_digest(signature.encode(), sign(launch, program, inputs).encode())


def program_digest(program: Mapping[str, Any]) -> str:
    """The digest of a program's metadata."""
    return hashlib.sha256(json.dumps(program, sort_keys=True).encode()).hexdigest()


def elements_digest(elements: np.ndarray[Any, Any]) -> str:
    """The digest of an array's elements in C order."""
    return hashlib.sha256(np.ascontiguousarray(elements).reshape(-1).view(np.uint8).data).hexdigest()


def _signed(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in _UNSIGNED_FIELDS}


@functools.lru_cache(16)
def _key(path: Path | None) -> bytes:
    """The key, created by the first process that needs it."""
    if path is None:
        return _process_key
    try:
        _make(path)
        key = read_trusted(path, os.getuid())
    except OSError:
        return _process_key
    return key if len(key) == _SIZE else _process_key


def _make(path: Path) -> None:
    """Creates the key unless there is one. The file is linked when it is complete, since others may read it at once."""
    if path.exists():
        return
    new = path.with_name(f".new-{secrets.token_hex(8)}")
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(_SIZE))
        with contextlib.suppress(FileExistsError):
            os.link(new, path)
    finally:
        new.unlink()
