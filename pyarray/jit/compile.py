"""Text → loaded entry point: memory, then disk, then the compiler."""

from __future__ import annotations

import functools
import hashlib
import os
import threading
import weakref
from collections import Counter, OrderedDict
from dataclasses import dataclass

from .. import config
from ..driver import cc
from ..driver.base import Device, Driver
from . import cache

KEPT = (
    256  # artifacts that stay loaded though nothing uses them: of kernels that are made anew again and again
)


class Module:
    """A loaded binary. It is unloaded when nothing is left that could run it."""

    __slots__ = ("__weakref__", "handle")

    def __init__(self, driver: Driver, binary: bytes):
        self.handle = driver.load(binary)
        # At the end of the process nobody can say what still runs.
        weakref.finalize(self, driver.unload, self.handle).atexit = False


class Function(int):
    """The driver's handle of a kernel. A launcher needs nothing else to run it, so it is what holds the
    module."""

    module: Module


@dataclass(frozen=True, eq=False)
class Artifact:
    """A loaded kernel. `function` is the driver's handle, `key` the name of its disk entry, `binary` what was
    loaded."""

    key: str
    function: Function
    binary: bytes


_loaded: weakref.WeakValueDictionary[str, Artifact] = weakref.WeakValueDictionary()
_recent: OrderedDict[str, Artifact] = OrderedDict()  # the last used at the end
_locks: weakref.WeakValueDictionary[str, threading.Lock] = weakref.WeakValueDictionary()
_guard = threading.Lock()


def _after_fork() -> None:
    """Another thread may have held a lock at the fork, and in the child nobody will give it back."""
    global _guard
    _guard = threading.Lock()
    _locks.clear()


os.register_at_fork(after_in_child=_after_fork)


def settings() -> tuple[tuple[str, str], ...]:
    """The settings that change compiled code, as they are now: the one reader, and part of every key."""
    return tuple((name, str(config.get(name))) for name, row in config.SETTINGS.items() if row.code)


def key_of(text: str, entry: str, device: Device, flags: tuple[str, ...]) -> str:
    """Name of the artifact of `text`: a hash of all that decides the binary."""
    facts = [f"{name}={value}" for name, value in settings()]
    return cache.key_of(text, entry, device.driver.compiler().fingerprint, headers(), *facts, *flags)


def load(
    name: str, text: str, entry: str, device: Device, flags: tuple[str, ...], counts: Counter[str]
) -> Artifact:
    """The artifact of `text` for `device`; `counts` gets `compiles` or `disk_hits`. One compile per text,
    however many threads ask.

    Raises `DeviceError` without a compiler, `CompileError` when it refuses the text, `RuntimeError` in run-
    only mode.
    """
    key = key_of(text, entry, device, flags)
    place = f"{key}@{device}"  # a module belongs to one device, its binary to all of a target
    with _guard:
        lock = _locks.setdefault(key, threading.Lock())
    with lock:
        found = _loaded.get(place)
        if found is None:
            found = _open(device, _binary(name, text, entry, device, flags, counts, key), entry, key)
            _loaded[place] = found
    with _guard:
        _recent[place] = found
        _recent.move_to_end(place)
        while len(_recent) > KEPT:
            _recent.popitem(last=False)
    return found


def _binary(
    name: str, text: str, entry: str, device: Device, flags: tuple[str, ...], counts: Counter[str], key: str
) -> bytes:
    binary = cache.find(key)
    if binary is not None:
        counts["disk_hits"] += 1
        return binary
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
    return binary


def _open(device: Device, binary: bytes, entry: str, key: str) -> Artifact:
    module = Module(device.driver, binary)
    function = Function(device.driver.function(module.handle, entry))
    function.module = module
    return Artifact(key, function, binary)


def open_binary(device: Device, binary: bytes, entry: str, key: str) -> Artifact:
    """An artifact from a binary that somebody kept. Raises `DeviceError` when the device can't load it."""
    return _open(device, binary, entry, key)


@functools.cache
def interface() -> str:
    """Digest of what a binary and the runtime agree on."""
    (path,) = [path for path in cc.headers() if path.name == "pyarray.h"]
    return hashlib.sha256(path.read_bytes()).hexdigest()


@functools.cache
def headers() -> str:
    """Digest of the headers that generated text includes: another release's artifacts must not be found."""
    digest = hashlib.sha256()
    for path in cc.headers():
        digest.update(path.read_bytes())
    return digest.hexdigest()
