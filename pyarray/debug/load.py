"""Loads dumps: launches with their recorded arguments, which can be replayed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..driver.base import get_device
from ..dtypes import EXTENSIONS
from .argument import DumpedArgument, Elements
from .files import DATA, read_manifest
from .replay import UNSIGNED, replay
from .signature import is_signed, key_path, program_digest


def load_dump(dir: Any) -> LoadedDump:
    """The launches of a dump, by number; of one that still runs or has crashed, as far as it got.

    A launch has `kernel`, `number`, `key`, `device`, `thread`, `at` (path and line of the call), `status`
    ("ok", "error", "unfinished" or "not dumped"), `error`, `args` (name → argument) and `replay()`. Arguments
    have their metadata, `before` and `after`: NumPy arrays in C order, None for what wasn't recorded. Raises
    `FileNotFoundError` where there is no dump and `ValueError` for another schema.

    >>> import pyarray as pa, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with pa.dump(folder):
    ...         doubled = pa.ones(2) * 2
    ...     launch = pa.load_dump(folder)[-1]
    ...     launch.args["out"].after.tolist(), launch.replay()["out"].tolist()
    ([2.0, 2.0], [2.0, 2.0])
    """
    directory = Path(dir)
    manifest = read_manifest(directory)
    programs = {row["number"]: row for row in manifest.pop("programs")}
    data = directory / DATA
    records: dict[int, dict[str, DumpedArgument]] = {}
    for row in manifest.pop("records"):
        args = records.setdefault(row["launch"], {})
        if row["parameter"] not in args:
            args[row["parameter"]] = DumpedArgument(row, data)
        args[row["parameter"]].stages[row["stage"]] = row
    launches = LoadedDump()
    launches.directory, launches.manifest = directory, manifest
    for row in sorted(manifest.pop("launches"), key=lambda row: row["number"]):
        args = dict(sorted(records.get(row["number"], {}).items(), key=lambda item: item[1].index))
        launches.append(DumpedLaunch(row, programs.get(row.get("program")), args))
    return launches


class LoadedDump(list["DumpedLaunch"]):
    """The launches. `manifest` has the rest: level, options, `counters`, `hint`, where it `stopped`."""

    directory: Path
    manifest: dict[str, Any]


class DumpedLaunch:
    """A launch as it was recorded; see `load_dump`."""

    def __init__(self, row: dict[str, Any], program: dict[str, Any] | None, args: dict[str, DumpedArgument]):
        self.facts, self.program, self.args = row, program, args
        self.number: int = row["number"]
        self.kernel: str = row["kernel"]
        self.key: str = row["key"]
        self.device: str = row["device"]
        self.status: str = row["status"]
        self.error: str | None = row.get("error")
        self.thread: str | None = row.get("thread")
        self.at: tuple[str, int] | None = tuple(row["at"]) if row.get("at") else None

    def __repr__(self) -> str:
        return f"<launch {self.number}: {self.kernel}({', '.join(self.args)}), {self.status}>"

    def save(self, path: Any) -> None:
        """All recorded arrays and numbers as a NumPy `.npz`, named `parameter.before` and `parameter.after`;
        bfloat16 and float8 as unsigned integers, which NumPy's files know."""
        arrays: dict[str, Any] = {}
        for name, argument in self.args.items():
            for stage, value in (("before", argument.before), ("after", argument.after)):
                if value is not None:
                    bits = argument._dtype in EXTENSIONS and argument.kind == "array"
                    arrays[f"{name}.{stage}"] = value.view(f"u{value.dtype.itemsize}") if bits else value
        np.savez(path, **arrays)

    def replay(self, device: Any = None, *, trusted: bool = False) -> dict[str, Elements]:
        """Launch it again on what was recorded, and return what has come out: parameter → array, of those
        that the kernel writes. The program comes from the dump, not from Python source.

        Arguments that overlapped overlap again. The results are those of the recorded launch to the bit where
        compiler and processor are the same. `trusted` runs what another user or machine has recorded: it is a
        program, like any other that you get from somebody. Raises `ValueError` without it for what this
        user's key hasn't signed as it is, when an input wasn't recorded as a whole, and what the launch
        itself raises, a `BoundsError` for instance.
        """
        if self.program is None and self.status != "not dumped":
            what = f"launch {self.number} is a call of {self.kernel}, which is no kernel of pyarray's"
            raise ValueError(f"{what}, so it can't be replayed; call it with what was recorded in .args")
        if self.program is None:
            raise ValueError(f"launch {self.number} of {self.kernel!r} was not dumped: {self.error}")
        inputs = [row for a in self.args.values() for stage, row in a.stages.items() if stage != "after"]
        if not trusted and not is_signed(self.facts, program_digest(self.program), inputs):
            key = key_path() or "this process's own, without a kernel cache"
            what = f"launch {self.number} of {self.kernel!r} can't be replayed: your key ({key})"
            raise ValueError(f"{what} hasn't signed it, or it was changed since; {UNSIGNED}")
        where = get_device(self.device if device is None else device)
        return replay(self.program, self.args, self.number, where, trusted)
