"""Ownership checks: files that hold code to run must be written by this user or root only."""

from __future__ import annotations

import os
import stat
from pathlib import Path


class Untrusted(PermissionError):
    """Somebody else can have written a file."""


def trusted(status: os.stat_result, *owners: int) -> bool:
    """Whether one of `owners` has the file or folder, and nobody else can write to it."""
    return status.st_uid in owners and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def read_trusted(path: Path, *owners: int) -> bytes:
    """The bytes of a file. Raises `Untrusted` where others can have written them, else `OSError`."""
    with path.open("rb") as file:
        if not trusted(os.fstat(file.fileno()), *owners):  # of what is read, whatever the name means next
            raise Untrusted(f"{path} belongs to or can be written by others")
        return file.read()
