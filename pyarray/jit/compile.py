"""Text → loaded entry point: memory, then disk, then the compiler."""

from __future__ import annotations

import functools
import hashlib
import threading
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import config
from ..driver.base import Device
from ..driver.cc import include_dirs
from . import cache


@dataclass(frozen=True)
class Artifact:
    """A loaded kernel. `function` is the driver's handle, `key` the name of its disk entry."""

    key: str
    module: Any
    function: Any


_loaded: dict[str, Artifact] = {}
_locks: dict[str, threading.Lock] = {}
_guard = threading.Lock()


def load(
    name: str, text: str, entry: str, device: Device, flags: tuple[str, ...], counts: Counter[str]
) -> Artifact:
    """The artifact of `text` for `device`; `counts` gets `compiles` or `disk_hits`. One compile per text,
    however many threads ask.

    Raises `DeviceError` without a compiler, `CompileError` when it refuses the text, `RuntimeError` in run-
    only mode.
    """
    compiler = device.driver.compiler()
    key = cache.key_of(text, entry, compiler.fingerprint, _headers(), *flags)
    with _guard:
        lock = _locks.setdefault(key, threading.Lock())
    with lock:
        found = _loaded.get(key)
        if found is None:
            found = _loaded[key] = _load(name, text, entry, device, flags, counts, key)
        return found


def _load(
    name: str, text: str, entry: str, device: Device, flags: tuple[str, ...], counts: Counter[str], key: str
) -> Artifact:
    binary = cache.find(key)
    if binary is not None:
        counts["disk_hits"] += 1
    else:
        if config.get("PYARRAY_RUN_ONLY"):
            raise RuntimeError(
                f"kernel {name!r} is not in the cache ({cache.directory()}, entry {key[:16]}) and "
                "PYARRAY_RUN_ONLY=1 forbids compiling; "
                "run once without it"
            )
        compiler = device.driver.compiler()
        binary = compiler.compile(text, flags)
        counts["compiles"] += 1
        cache.publish(key, binary, {"kernel": name, "entry": entry, "target": compiler.fingerprint})
    module = device.driver.load(binary)
    return Artifact(key, module, device.driver.function(module, entry))


@functools.cache
def _headers() -> str:
    """Digest of the headers that generated text includes: another release's artifacts must not be found."""
    digest = hashlib.sha256()
    for folder in include_dirs():
        for path in sorted(Path(folder).glob("*.h")):
            digest.update(path.read_bytes())
    return digest.hexdigest()
