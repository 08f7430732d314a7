"""Autotuning of the library's own kernels: the same key, store, search and shipped configs, for a function
from `Config` to a launch. A call never waits for a search: that is for `PYARRAY_AUTOTUNE=force` and
`python -m pyarray tune`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import config as settings
from ..array import ndarray
from ..driver.base import Device
from ..weak_set import ThreadSafeWeakSet
from . import shipped
from .choice import Chooser, offline, searching, with_default
from .config import Config
from .dispatcher import setting_texts
from .search import CompiledCandidate, Options, Result, Task
from .tuning_key import TuningKey, device_properties, digest_of, plain_data, toolchain_properties


class LibraryTuner:
    """`configs` are the candidates of the kernel `name`; `source()` is a hash of all texts that they are
    compiled from."""

    def __init__(self, name: str, configs: Sequence[Config], source: Callable[[], str], **options: Any):
        self.name, self.configs, self._source = f"pyarray.{name}", tuple(configs), source
        self.options, self._artifact_name = Options(**options), self.name[:64]
        self._chooser = Chooser(self.name, digest_of(self.name), self.options)
        # By device, live settings and `key`, which the caller answers for; `config.set` empties it.
        self._table: dict[Any, Config] = {}
        _all.add(self)

    def choose(
        self,
        device: Device,
        key: Mapping[str, Any],
        default: Config,
        prepare: Callable[[Config], Callable[[], Any]],
        outputs: Sequence[ndarray],
        inputs: Sequence[ndarray] = (),
    ) -> Config:
        """The config for `key`: plain data, all that the choice may depend on besides the device and the
        settings. After the first call it is a look-up.

        `prepare(config)` compiles, in any thread, and gives what launches on the live arguments; what it
        raises drops the candidate. `outputs` are written only (pass them as inputs, too, if they are read).
        """
        lookup_key = (device.code, *setting_texts(), *key.values())
        config = self._table.get(lookup_key)
        if config is None:
            arrays = {f"out{k}": a for k, a in enumerate(outputs)} | {f"in{k}": a for k, a in enumerate(inputs)}
            config = self._find(device, key, default, prepare, arrays)
            if not searching.on:
                self._table[lookup_key] = config
        return config

    def _find(
        self, device: Device, key: Mapping[str, Any], default: Config, prepare: Any, arrays: Mapping[str, ndarray]
    ) -> Config:
        how = settings.get("PYARRAY_AUTOTUNE")
        directions = {n: "OUT" if n.startswith("out") else "IN" for n in arrays}
        if how == "off" or searching.on or not any(a.size for n, a in arrays.items() if directions[n] == "OUT"):
            return default
        candidates = with_default(self.configs, default)
        tuning_key = self.key(device, key)
        stored = lambda: self._chooser.winner(tuning_key, candidates, default, _no_text, prepare)  # noqa: E731
        winner = None if how == "force" else stored()
        if winner is not None:
            return self._decided(tuning_key, winner.config)
        if how != "force" and not offline.on:
            return self._artifact(tuning_key, candidates) or default

        def prepared(config: Config) -> CompiledCandidate:
            return CompiledCandidate(prepare(config), None, directions)

        task = Task(self.name, device, candidates, prepared, arrays, arrays)
        choice = self._chooser.search(tuning_key, task, default, force=how == "force", stored=stored)
        return self._decided(tuning_key, choice.config)

    def key(self, device: Device, key: Mapping[str, Any]) -> TuningKey:
        """As a tuned kernel's: the device's model, what compiles, and `key`."""
        group = {
            "kernel": self.name,
            "source": self._source(),
            "arrays": {},
            "device": device_properties(device),
            "toolchain": toolchain_properties(device),
        }
        return TuningKey(group, {name: plain_data(value) for name, value in key.items()})

    def results(self, device: Device, key: Mapping[str, Any]) -> list[Result]:
        """What is known of the candidates."""
        return list(self._chooser.results(self.key(device, key), self.configs, _no_text).values())

    def cache_info(self) -> dict[str, int]:
        """`searches`, `timed` candidates, `disk_hits`."""
        return {name: self._chooser.counts[name] for name in ("searches", "timed", "disk_hits")}

    def forget(self) -> None:
        """Ask the disk and the settings again."""
        self._table.clear()

    def _artifact(self, key: TuningKey, candidates: Sequence[Config]) -> Config | None:
        folder = settings.get("PYARRAY_AUTOTUNE_CONFIG_DIR")
        if folder is None:
            return None
        names = {name for c in candidates for name in c.values}
        identity = shipped.identity_of(self._artifact_name, key)
        return shipped.find(Path(folder), identity, sorted(names), candidates, {})

    def _decided(self, key: TuningKey, config: Config) -> Config:
        if offline.on:
            result = self._chooser.results(key, [config], _no_text).get(config)
            identity = shipped.identity_of(self._artifact_name, key)
            offline.decided.append((identity, config, None if result is None else result.median))
        return config


def _no_text(config: Config) -> str:
    return ""  # the source is in the key


_all = ThreadSafeWeakSet[LibraryTuner]()


def _forget(setting: str) -> None:
    for tuner in _all:
        tuner.forget()


settings.watchers.append(_forget)
