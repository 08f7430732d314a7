"""The settings: one row each, one reader.

A setting is an environment variable that `set` can override for this process. Both are read by the one parser
of their row. `get` reads the live value, so that a change in mid-process is seen at the next compile (a
memoised read would serve stale code).
"""

from __future__ import annotations

import math
import operator
import os
import re
import sys
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

# ---- what values are: each reader takes a text as in the environment, or a Python value, and gives None for
# what is none of its kind

_WORDS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
_UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def _flag(value: Any) -> bool | None:
    if isinstance(value, str):
        return _WORDS.get(value.strip().lower())
    number = _integer(value)
    return bool(value) if _is_bool(value) or number in (0, 1) else None


def _integer(value: Any) -> int | None:
    """A whole number; a bool is none."""
    try:
        return int(value) if isinstance(value, str) else None if _is_bool(value) else operator.index(value)
    except (TypeError, ValueError):
        return None


def _is_bool(value: Any) -> bool:
    return type(value).__name__ in ("bool", "bool_")  # NumPy's, too


def _positive(value: Any) -> int | None:
    number = _integer(value)
    return number if number is not None and 1 <= number < 1 << 31 else None


def _bytes(value: Any) -> int | None:
    scale = 1
    if isinstance(value, str):
        value = value.strip()
        scale = _UNITS.get(value[-1:].lower(), 1)
        value = value[:-1] if scale > 1 else value
    number = _integer(value)
    return number * scale if number is not None and 0 <= number < (1 << 63) // scale else None


def _level(value: Any) -> int | None:
    number = _integer(value)
    if number in (2, 3):
        return number
    flag = _flag(value)
    return None if flag is None else int(flag)


def _seconds(value: Any) -> float | None:
    try:
        number = math.nan if _is_bool(value) or isinstance(value, bytes) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if number >= 0 else None  # NaN is not


def _one_of(*words: str) -> Callable[[Any], str | None]:
    def read(value: Any) -> str | None:
        word = value.strip().lower() if isinstance(value, str) else None
        return word if word in words else None

    return read


PRECISIONS = ("float32", "tf32")


def _path(value: Any) -> Path | None:
    import pathlib  # which takes long to import, and few settings are paths

    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    return pathlib.Path(text) if isinstance(text, str) and text.strip() and "\0" not in text else None


def _path_or_none(value: Any) -> Path | bool | None:
    flag = None if isinstance(value, os.PathLike) else _flag(value)
    return _path(value) if flag is None else None if flag else False


def _device(value: Any) -> str | None:
    return value if isinstance(value, str) and re.fullmatch(r"[a-z]+(:[0-9]+)?", value) else None


def _words(value: Any) -> str | None:
    """A command line in shell syntax; None for a value that is none."""
    import shlex  # which takes long to import, and few settings are commands

    if not isinstance(value, str) or "\0" in value:
        return None
    try:
        shlex.split(value)
    except ValueError:
        return None
    return value


def _command(value: Any) -> str | None:
    text = _words(value)
    return text if text is not None and text.strip() else None


class Kind(NamedTuple):
    """A kind of setting: its description in the reference and in errors, and the function that parses it."""

    words: str
    expected: str
    read: Callable[[Any], Any]


FLAG = Kind("flag", "one of 1, true, yes, on, 0, false, no, off", _flag)
POSITIVE = Kind("integer ≥ 1", "a whole number of 1 or more, below 2**31, for example 4", _positive)
BYTES = Kind("bytes", "a number of bytes below 2**63, for example 1048576, 512M or 2G", _bytes)
LEVEL = Kind("0, 1, 2 or 3", "0 (off), 1 (marked arrays), 2 (all) or 3 (metadata)", _level)
SECONDS = Kind("seconds, 0 or more", "seconds, 0 or more, for example 2.5", _seconds)
TUNING = Kind(
    "search, use, force or off",
    "search, use (never search), force (search anew) or off",
    _one_of("search", "use", "force", "off"),
)
PRECISION = Kind(
    "float32 or tf32",
    "float32 (as accurate as its arithmetic) or tf32 (faster, where a GPU has it)",
    _one_of(*PRECISIONS),
)
PATH = Kind("path", "a path, for example /tmp/pyarray", _path)
DIRECTORY = Kind("path, or 0", "a directory, or 0 for none", _path_or_none)
DEVICE = Kind("text", "the name of a device, for example cpu or cuda:0", _device)
WORDS = Kind("text", "words as in a shell, with all quotes closed, for example -O2 -g", _words)
COMMAND = Kind("text", "a command as in a shell, with all quotes closed, for example gcc or ccache gcc", _command)


class Setting(NamedTuple):
    """One row: environment variable `name`, the `kind` of its values, `default` when unset, whether it
    changes compiled code."""

    name: str
    kind: Kind
    doc: str
    default: Any = None
    code: bool = False

    def parse(self, value: Any) -> Any:
        """The value of a text as in the environment, or of a Python value; an empty text is the default.
        Raises `ValueError` that says what was expected and what came."""
        if isinstance(value, str) and not value.strip():
            return self.default
        parsed = self.kind.read(value)
        if parsed is None:
            raise ValueError(f"{self.name}={value!r}: expected {self.kind.expected}")
        return parsed


SETTINGS = {
    row.name: row
    for row in (
        Setting("PYARRAY_DEVICE", DEVICE, "device of new arrays when none is named", "cpu"),
        Setting("PYARRAY_DEBUG", FLAG, "bounds checks in every kernel", False, code=True),
        Setting(
            "PYARRAY_DEBUG_TURNS",
            POSITIVE,
            "in debug mode, turns of a while loop that count as endless; read when a kernel is compiled",
            1 << 30,
            code=True,
        ),
        Setting(
            "PYARRAY_FLOAT32_MATMUL_PRECISION",
            PRECISION,
            "products of float32: float32, or tf32, which rounds operands to 11 bits on NVIDIA GPUs of sm_90; read "
            "when a product is first called with operands of its type and sizes",
            "float32",
        ),
        Setting("PYARRAY_NUM_THREADS", POSITIVE, "threads of the CPU device; unset: the cores this process may use"),
        Setting(
            "PYARRAY_POOL_LIMIT", BYTES, "bytes of freed memory kept for reuse; unset: half of the physical memory"
        ),
        Setting(
            "PYARRAY_CC",
            COMMAND,
            "C compiler for CPU kernels; unset: cc, gcc, clang, then the ziglang wheel",
            code=True,
        ),
        Setting("PYARRAY_CFLAGS", WORDS, "further flags for the C compiler, after pyarray's own", "", code=True),
        Setting("PYARRAY_FAILED_DIR", PATH, "where texts are kept that the C compiler refused; unset: nowhere"),
        Setting(
            "PYARRAY_LAUNCH_BLOCKING",
            FLAG,
            "wait for each launch on a GPU, so that an error names it; read when the device is first used",
            False,
        ),
        Setting(
            "PYARRAY_STREAM_ORDER",
            FLAG,
            "work on a GPU waits for other streams that use its memory; read when the device is first used",
            True,
        ),
        Setting("PYARRAY_CACHE", FLAG, "keep compiled kernels on disk", True),
        Setting("PYARRAY_CACHE_DIR", PATH, "where; unset: the user's cache directory"),
        Setting(
            "PYARRAY_WARMED",
            DIRECTORY,
            "kernels compiled with the package; unset: those in it; 0: none, and its build compiles none",
        ),
        Setting(
            "PYARRAY_CACHE_MAX_BYTES",
            BYTES,
            "most bytes of compiled kernels on disk; those used longest ago are deleted first",
            512 << 20,
        ),
        Setting("PYARRAY_RUN_ONLY", FLAG, "refuse to compile: a kernel that is not on disk is a RuntimeError", False),
        Setting(
            "PYARRAY_AUTOTUNE",
            TUNING,
            "tuned kernels: search for what is not known, use (never search), force (search anew), off",
            "search",
        ),
        Setting("PYARRAY_AUTOTUNE_CONFIG_DIR", PATH, "where tuned choices are that were shipped"),
        Setting("PYARRAY_AUTOTUNE_BUDGET", SECONDS, "most seconds of one search", 30.0),
        Setting("PYARRAY_AUTOTUNE_VERBOSE", FLAG, "say on stderr what a search does", False),
        Setting(
            "PYARRAY_DUMP_ARGS",
            LEVEL,
            "arguments of launches on disk: 0 none, 1 marked arrays, 2 all, 3 metadata; read at import",
            0,
        ),
        Setting("PYARRAY_DUMP_DIR", PATH, "where; there is no default"),
        Setting("PYARRAY_DUMP_MAX_BYTES", BYTES, "most bytes of elements; unset: all"),
        Setting("PYARRAY_DUMP_EVERY", POSITIVE, "dump each k-th launch", 1),
        Setting("PYARRAY_DUMP_STOP_AT_NAN", FLAG, "end the dump after the launch with a NaN", False),
    )
}

overrides: dict[str, Any] = {}  # what `set` said, by the setting's name; csrc/core/foreign.c reads it
watchers: list[Callable[[str], None]] = []  # called with the name of a setting that `set` has changed


def get(name: str) -> Any:
    """Value of the setting `name` now: what `set` said, else the environment variable, else the default.

    A variable that is empty counts as unset. Raises `KeyError` for an unknown name and `ValueError` when the
    variable's text can't be read.

    >>> get("PYARRAY_RUN_ONLY")
    False
    """
    if name in overrides:
        return overrides[name]
    row, text = SETTINGS[name], os.environ.get(name)
    return row.default if text is None else row.parse(text)


def set(name: str, value: Any) -> None:
    """Override a setting for this process: with a text as in the environment, or with a Python value (a
    bool, a number, a path). `None` goes back to the environment. What was compiled with the old value of one
    that changes code is not used any more. Raises `KeyError` for an unknown name, and `ValueError` for a
    value that the setting can't have; it is then as before.

    >>> set("PYARRAY_CACHE_MAX_BYTES", "2G")
    >>> get("PYARRAY_CACHE_MAX_BYTES")
    2147483648
    >>> set("PYARRAY_CACHE_MAX_BYTES", None)
    """
    if name not in SETTINGS:
        raise KeyError(f"no setting {name!r}; there are {', '.join(SETTINGS)}")
    if value is None:
        overrides.pop(name, None)
    else:
        overrides[name] = SETTINGS[name].parse(value)
    for changed in watchers:
        changed(name)


class _Settings(ModuleType):
    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse new attributes: `pyarray.config.debug = True` would change nothing, and not say so."""
        if name not in self.__dict__ and not name.startswith("__"):
            setting = f"PYARRAY_{name.upper()}"
            which = f"pyarray.config.set({setting if setting in SETTINGS else 'PYARRAY_…'!r}, value)"
            raise AttributeError(f"pyarray.config has no attribute {name!r}; settings are changed by {which}")
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Settings
