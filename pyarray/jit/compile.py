"""Artifacts of kernel text: found in memory, else on disk, else compiled, and loaded."""

from __future__ import annotations

import functools
import hashlib
import threading
import warnings
import weakref
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import config
from ..driver import cc
from ..driver.base import Device, Driver
from ..driver.kernel_step import KernelStep, format_steps
from ..errors import DeviceError
from ..locks import new_lock
from . import cache

MAX_LOADED = 256  # unused artifacts that stay loaded, for kernels that are defined again and again


class Module:
    """A loaded binary. It is unloaded when no launcher is left that could run it."""

    __slots__ = ("__weakref__", "handle")

    def __init__(self, driver: Driver, binary: bytes):
        self.handle = driver.load(binary)
        # not at exit: a thread may still run it
        weakref.finalize(self, driver.unload, self.handle).atexit = False


class Function(int):
    """The driver's handle of a kernel. It keeps the module loaded, since launchers hold nothing else."""

    module: Module


@dataclass(frozen=True, eq=False)
class Artifact:
    """A loaded kernel. `function` is the driver's handle, `key` the name of its disk entry, `binary` what was
    loaded."""

    key: str
    function: Function
    binary: bytes


# By the artifact's key, a hash of all that decides the binary (`key_of`), and the device.
_loaded: weakref.WeakValueDictionary[str, Artifact] = weakref.WeakValueDictionary()
_recent: OrderedDict[str, Artifact] = OrderedDict()  # the last used at the end
_locks: weakref.WeakValueDictionary[str, threading.RLock] = weakref.WeakValueDictionary()
_guard = new_lock()


def settings() -> tuple[tuple[str, str], ...]:
    """The settings that change compiled code, as they are now. They are part of every key."""
    return tuple((name, str(config.get(name))) for name, row in config.SETTINGS.items() if row.code)


def checked_flags(what: str, flags: Any) -> tuple[str, ...]:
    """The compiler flags that a user gave `what`; a text by itself is one. Raises `TypeError` for what is no
    text."""
    listed = isinstance(flags, Iterable) and not isinstance(flags, (str, Mapping))
    sequence: tuple[Any, ...] = tuple(flags) if listed else (flags,)
    if not all(isinstance(flag, str) for flag in sequence):
        raise TypeError(
            f'the flags of {what} are texts for the compiler, got {flags!r}; write for example flags=("-O1", "-g")'
        )
    return sequence


def key_of(text: str, steps: Sequence[KernelStep], device: Device, flags: tuple[str, ...]) -> str:
    """Name of the artifact of `text`: a hash of all that decides the binary."""
    return key_for(text, steps, device.driver.compiler().fingerprint, flags)


def key_for(text: str, steps: Sequence[KernelStep], fingerprint: str, flags: tuple[str, ...]) -> str:
    """The same by the fingerprint of the compiler."""
    parts = [f"{name}={value}" for name, value in settings()]
    return cache.key_of(text, format_steps(steps), fingerprint, headers(), *parts, *flags)


def load(
    name: str,
    text: str,
    steps: Sequence[KernelStep],
    device: Device,
    flags: tuple[str, ...],
    counts: Counter[str],
) -> Artifact:
    """The artifact of `text` for `device`; `counts` gets `compiles` or `disk_hits`. One compile per text,
    however many threads ask.

    Raises `DeviceError` without a compiler, or one that couldn't work, `CompileError` when it refuses the
    text, `RuntimeError` in run-only mode.
    """
    key = key_of(text, steps, device, flags)
    key_on_device = f"{key}@{device}"  # a module belongs to one device, its binary to all of a target
    with _guard:
        lock = _locks.setdefault(key, new_lock())
    with lock:
        loaded = _loaded.get(key_on_device)
        if loaded is None:
            loaded = _from_disk(device, steps, key, counts) or _compiled(name, text, steps, device, flags, counts, key)
            _loaded[key_on_device] = loaded
    with _guard:
        _recent[key_on_device] = loaded
        _recent.move_to_end(key_on_device)
        while len(_recent) > MAX_LOADED:
            _recent.popitem(last=False)
    return loaded


def _from_disk(device: Device, steps: Sequence[KernelStep], key: str, counts: Counter[str]) -> Artifact | None:
    """The artifact from the disk cache. None if there is none, or, with a warning, if it can't be loaded: it is
    compiled again then, and replaced."""
    binary = cache.find(key)
    if binary is None:
        return None
    try:
        artifact = open_binary(device, binary, steps, key)
    except DeviceError as error:
        if config.get("PYARRAY_RUN_ONLY"):
            raise
        what = f"the kernel cache entry {key[:16]} in {cache.directory()} can't be loaded ({error})"
        warnings.warn(f"{what}; it is compiled again", RuntimeWarning, stacklevel=4)
        return None
    counts["disk_hits"] += 1
    return artifact


def _compiled(
    name: str,
    text: str,
    steps: Sequence[KernelStep],
    device: Device,
    flags: tuple[str, ...],
    counts: Counter[str],
    key: str,
) -> Artifact:
    """Compiles the text. The binary is loaded before it is published: a compiler may write a broken one."""
    if config.get("PYARRAY_RUN_ONLY"):
        raise RuntimeError(
            f"kernel {name!r} is not in the cache ({cache.directory()}, entry {key[:16]}) and "
            "PYARRAY_RUN_ONLY=1 forbids compiling; "
            "run once without it"
        )
    compiler = device.driver.compiler()
    binary = compiler.compile(text, flags)
    counts["compiles"] += 1
    try:
        artifact = open_binary(device, binary, steps, key)
    except DeviceError as error:
        raise DeviceError(f"{error}; the compiler that made it: {compiler.fingerprint}") from None
    cache.publish(key, binary, {"kernel": name, "entry": format_steps(steps), "target": compiler.fingerprint})
    return artifact


def open_binary(device: Device, binary: bytes, steps: Sequence[KernelStep], key: str) -> Artifact:
    """An artifact from its binary. Raises `DeviceError` when the device can't load it."""
    module = Module(device.driver, binary)
    function = Function(device.driver.function(module.handle, steps))
    function.module = module
    return Artifact(key, function, binary)


# Installed headers don't change while a process runs.
@functools.cache
def interface() -> str:
    """Digest of the ABI between binaries and the runtime."""
    (path,) = [path for path in cc.headers() if path.name == "pyarray.h"]
    return hashlib.sha256(path.read_bytes()).hexdigest()


# Installed headers don't change while a process runs.
@functools.cache
def headers() -> str:
    """Digest of the headers that generated text includes: another release's artifacts must not be found."""
    digest = hashlib.sha256()
    for path in cc.headers():
        digest.update(path.read_bytes())
    return digest.hexdigest()
