"""Atomic file replacement: a file is written under another name and renamed."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

UNFINISHED = r"\.new-\w+"  # names of files that a killed process leaves


@contextlib.contextmanager
def replacing(path: Path, mode: int = 0o600) -> Iterator[BinaryIO]:
    """A new file to write, which takes the place of `path` at the end of the block, with what `mode` permits
    less the process's umask. After an error, also `OSError` of writing or renaming, `path` is as before."""
    temporary = path.with_name(f".new-{secrets.token_hex(8)}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def replace_file(path: Path, data: bytes, mode: int = 0o600) -> None:
    """`data` as the whole of the file `path`; see `replacing`."""
    with replacing(path, mode) as file:
        file.write(data)
