"""Tuned configs that ship with an application: one file per name, tuning key and device model.

A file says which of the candidates to take and nothing else: flags and values that no candidate has are
refused, so that a file never brings anything to a compiler's command line.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..jit.atomic_file import replace_file
from ..jit.trust import Untrusted, read_trusted, trusted
from .config import Config
from .tuning_key import MISSING, TuningKey, digest_of

FORMAT = "pyarray tuned choice"
VERSION = 1
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")


def check_name(name: Any) -> None:
    """Raises `TypeError` for what is no text, `ValueError` for a text that is no name of a file."""
    if not isinstance(name, str):
        raise TypeError(f"artifact_name is a text, got {name!r}")
    if not _NAME.fullmatch(name):
        raise ValueError(f"artifact_name is 1 to 64 letters, digits, '.', '_' or '-', got {name!r}")


def identity_of(name: str, key: TuningKey) -> dict[str, Any]:
    """What a choice is for: the name, the declared key, types and layouts, the model of the device."""
    device = key.group["device"]
    properties = {n: device[n] for n in ("kind", "model", "target", "threads")}
    arrays = {n: a["dtype"] for n, a in key.group["arrays"].items()}
    return {"name": name, "key": dict(key.sizes), "arrays": arrays, "device": properties}


def path_of(folder: Path, identity: Mapping[str, Any]) -> Path:
    return folder / f"{identity['name']}-{digest_of(identity)[:16]}.json"


def shown_sizes(sizes: Mapping[str, Any]) -> str:
    """The values of a tuner's key: `n=1000, a=(3, 4)`."""
    parts = []
    for name, value in sizes.items():
        kind, *rest = value if isinstance(value, list) else [None, value]
        shown = f"({', '.join(map(str, rest))})" if kind == "shape" else ", ".join(map(str, rest))
        parts.append(f"{name}={shown}")
    return ", ".join(parts)


def emit(folder: Any, identity: Mapping[str, Any], config: Config, median: float | None) -> Path:
    """Write a choice; where. Raises `ValueError` for a config that JSON would change, or an unknown device,
    before anything is written."""
    data = {"config": config.to_dict(), "identity": identity, "median_ms": median}
    if MISSING in identity["device"].values():
        raise ValueError("the device doesn't say its model, so that a choice for it would be found by others")
    path = path_of(Path(folder), identity)
    make_folder(path.parent)
    text = json.dumps({"format": FORMAT, "version": VERSION, **data}, indent=1, sort_keys=True)
    replace_file(path, text.encode() + b"\n", 0o644)
    return path


def make_folder(folder: Path) -> None:
    """A folder for artifacts that nobody else can write to, whatever the umask: only there are they used."""
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)


def find(
    folder: Path,
    identity: Mapping[str, Any],
    tuned: Sequence[str],
    candidates: Sequence[Config],
    overrides: Mapping[str, Any],
    missing: bool = False,
) -> Config | None:
    """The shipped choice, one of the `candidates`; None without one, which is a warning if it is `missing`.
    One that can't be used is a warning, and None: so is a file or folder that others can write to. `tuned`
    are the parameters that candidates set, `overrides` those that the caller has set."""
    path, owners = path_of(folder, identity), (os.getuid(), 0)
    try:
        text = read_trusted(path, *owners)
        if not trusted(folder.stat(), *owners):
            raise Untrusted(f"its folder {folder} belongs to or can be written by others")
    except FileNotFoundError:
        if missing:
            shown = f"{identity['name']!r} {shown_sizes(identity['key'])}".rstrip()
            what = f"no tuned choice was shipped for {shown} on {identity['device']['model']}"
            warnings.warn(f"{what}: {folder} has no {path.name}", RuntimeWarning, stacklevel=3)
        return None
    except Untrusted as error:
        _refuse(path, f"can't be trusted: {error} (chmod go-w makes it yours)")
        return None
    except OSError as error:
        _refuse(path, f"can't be read ({error})")
        return None
    try:
        return _accepted(json.loads(text), identity, tuned, candidates, overrides)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        _refuse(path, str(error) if isinstance(error, _Refused) else "is damaged or not pyarray's")
        return None


class _Refused(ValueError):
    pass


def _accepted(
    data: Any,
    identity: Mapping[str, Any],
    tuned: Sequence[str],
    candidates: Sequence[Config],
    overrides: Mapping[str, Any],
) -> Config:
    if data["format"] != FORMAT:
        raise _Refused("is not pyarray's")
    if data["version"] != VERSION:
        raise _Refused(f"has version {data['version']!r}, this is {VERSION}")
    if data["identity"] != json.loads(json.dumps(identity)):
        raise _Refused("is for another kernel, key or device")
    config = Config.from_dict(data["config"])
    for name, value in config.values.items():
        if name not in tuned:
            raise _Refused(f"sets {name!r}, which is no tuned parameter")
        if name in overrides and (type(overrides[name]) is not type(value) or overrides[name] != value):
            raise _Refused(f"sets {name}={value!r}, and the caller {overrides[name]!r}")
    candidate = next((c for c in candidates if c == config), None)
    if candidate is None:
        what = f"names {config!r}, which is none of the {len(candidates)} candidates"
        raise _Refused(f"{what}; add it to configs")
    return candidate


def _refuse(path: Path, why: str) -> None:
    warnings.warn(f"the tuned choice {path} {why}; it is not used", RuntimeWarning, stacklevel=4)
