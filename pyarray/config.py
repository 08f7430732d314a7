"""The settings: one row each, one reader.

A setting is an environment variable that `set` can override for this process. `get` reads the live value, so
that a change in mid-process is seen at the next compile (a memoised read would serve stale code).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


def _flag(text: str) -> bool:
    values = {
        "1": True,
        "true": True,
        "yes": True,
        "on": True,
        "0": False,
        "false": False,
        "no": False,
        "off": False,
    }
    if text.strip().lower() not in values:
        raise ValueError("expected one of 1, true, yes, on, 0, false, no, off")
    return values[text.strip().lower()]


def _positive(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise ValueError("expected a whole number of 1 or more, for example 4")
    return number


def _bytes(text: str) -> int:
    units = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
    scale = units.get(text.strip()[-1:].lower(), 1)
    try:
        number = int(text.strip()[:-1] if scale > 1 else text)
    except ValueError:
        number = -1
    if number < 0:
        raise ValueError("expected a number of bytes, for example 1048576, 512M or 2G")
    return number * scale


def _place(text: str) -> Path | bool:
    """A directory, or False for none."""
    try:
        if not _flag(text):
            return False
    except ValueError:
        return Path(text)
    raise ValueError("expected a directory, or 0 for none")


def _level(text: str) -> int:
    if text.strip() in ("2", "3"):
        return int(text)
    try:
        return int(_flag(text))
    except ValueError:
        raise ValueError("expected 0 (off), 1 (marked arrays), 2 (all) or 3 (metadata)") from None


def _tuning(text: str) -> str:
    word = text.strip().lower()
    if word not in ("search", "use", "force", "off"):
        raise ValueError("expected search, use (never search), force (search anew) or off")
    return word


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not number >= 0:  # or NaN
        raise ValueError("expected seconds, 0 or more, for example 2.5")
    return number


@dataclass(frozen=True)
class Setting:
    """One row: environment variable `name`, `parse` from its text, `default` when unset, whether it changes
    compiled code."""

    name: str
    parse: Callable[[str], Any]
    default: Any
    code: bool
    doc: str


SETTINGS = {
    row.name: row
    for row in (
        Setting("PYARRAY_DEVICE", str, "cpu", False, "device of new arrays when none is named"),
        Setting("PYARRAY_DEBUG", _flag, False, True, "bounds checks in every kernel"),
        Setting(
            "PYARRAY_NUM_THREADS",
            _positive,
            None,
            False,
            "threads of the CPU device; unset: the cores this process may use",
        ),
        Setting(
            "PYARRAY_POOL_LIMIT",
            _bytes,
            None,
            False,
            "bytes of freed memory kept for reuse; unset: half of the physical memory",
        ),
        Setting(
            "PYARRAY_CC",
            str,
            None,
            True,
            "C compiler for CPU kernels; unset: cc, gcc, clang, then the ziglang wheel",
        ),
        Setting("PYARRAY_CFLAGS", str, "", True, "further flags for the C compiler, after pyarray's own"),
        Setting(
            "PYARRAY_LAUNCH_BLOCKING",
            _flag,
            False,
            False,
            "wait for each launch on a GPU, so that an error names it; read when the device is first used",
        ),
        Setting("PYARRAY_CACHE", _flag, True, False, "keep compiled kernels on disk"),
        Setting("PYARRAY_CACHE_DIR", Path, None, False, "where; unset: the user's cache directory"),
        Setting(
            "PYARRAY_WARMED",
            _place,
            None,
            False,
            "kernels compiled with the package; unset: those in it; 0: none, and its build compiles none",
        ),
        Setting(
            "PYARRAY_CACHE_MAX_BYTES",
            _bytes,
            512 << 20,
            False,
            "most bytes of compiled kernels on disk; those used longest ago are deleted first",
        ),
        Setting(
            "PYARRAY_RUN_ONLY",
            _flag,
            False,
            False,
            "refuse to compile: a kernel that is not on disk is a RuntimeError",
        ),
        Setting(
            "PYARRAY_AUTOTUNE",
            _tuning,
            "search",
            False,
            "tuned kernels: search for what is not known, use (never search), force (search anew), off",
        ),
        Setting(
            "PYARRAY_AUTOTUNE_CONFIG_DIR", Path, None, False, "where tuned choices are that were shipped"
        ),
        Setting("PYARRAY_AUTOTUNE_BUDGET", _seconds, 30.0, False, "most seconds of one search"),
        Setting("PYARRAY_AUTOTUNE_VERBOSE", _flag, False, False, "say on stderr what a search does"),
        Setting(
            "PYARRAY_DUMP_ARGS",
            _level,
            0,
            False,
            "arguments of launches on disk: 0 none, 1 marked arrays, 2 all, 3 metadata; read at import",
        ),
        Setting("PYARRAY_DUMP_DIR", Path, None, False, "where; there is no default"),
        Setting("PYARRAY_DUMP_MAX_BYTES", _bytes, None, False, "most bytes of elements; unset: all"),
        Setting("PYARRAY_DUMP_EVERY", _positive, 1, False, "dump each k-th launch"),
        Setting("PYARRAY_DUMP_STOP_AT_NAN", _flag, False, False, "end the dump after the launch with a NaN"),
    )
}

_overrides: dict[str, Any] = {}
watchers: list[Callable[[str], None]] = []  # called with the name of a setting that `set` has changed


def get(name: str) -> Any:
    """Value of the setting `name` now: what `set` said, else the environment variable, else the default.

    A variable that is empty counts as unset. Raises `KeyError` for an unknown name and `ValueError` when the
    variable's text can't be read.

    >>> get("PYARRAY_RUN_ONLY")
    False
    """
    row = SETTINGS[name]
    if name in _overrides:
        return _overrides[name]
    text = os.environ.get(name)
    if text is None or not text.strip():
        return row.default
    try:
        return row.parse(text)
    except ValueError as error:
        raise ValueError(f"{name}={text!r}: {error}") from None


def set(name: str, value: Any) -> None:
    """Override a setting for this process; `None` goes back to the environment. What was compiled with the
    old value of one that changes code is not used any more. Raises `KeyError` for an unknown name."""
    if name not in SETTINGS:
        raise KeyError(f"no setting {name!r}; there are {', '.join(SETTINGS)}")
    if value is None:
        _overrides.pop(name, None)
    else:
        _overrides[name] = value
    for changed in watchers:
        changed(name)
