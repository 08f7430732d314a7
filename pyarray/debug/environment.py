"""Reports devices, compilers, settings and caches of this machine: `show_config()`, `python -m pyarray info`."""

from __future__ import annotations

import os
import platform
import shlex
import sys
from collections.abc import Callable
from functools import partial

from .. import config
from ..driver import diagnosis
from ..driver.base import KINDS, Device, devices, get_device
from ..driver.cc import toolchain
from ..errors import DeviceError
from ..jit import cache

Rows = list[tuple[str, str]]  # name and value of each line
_HIDDEN = ("null",)  # kinds for tests


def show_config() -> None:
    """Print what pyarray finds on this machine: versions, devices, compilers, the cache; and for each kind of
    device what is missing, with the command that fixes it. The same as `python -m pyarray info`.

    >>> show_config()  # doctest: +ELLIPSIS
    pyarray ...
    """
    print_rows(report())


def report() -> Rows:
    """Name and value of each line. Nothing that is missing or broken raises."""
    rows = [
        ("pyarray", str(sys.modules[__name__.partition(".")[0]].__version__)),
        ("python", f"{platform.python_version()} on {platform.platform()}"),
        ("default device", _or_error(lambda: str(get_device(None)))),
    ]
    for kind in KINDS:
        if kind not in _HIDDEN:
            rows += _of_kind(kind)
    named = [f"{name}={os.environ[name]}" for name in config.SETTINGS if name in os.environ]
    return [*rows, ("settings", shlex.join(named) or "none in the environment"), *cache_rows()]


def _of_kind(kind: str) -> Rows:
    listed: list[Device] = []
    problem = _or_error(lambda: listed.extend(devices(kind)))
    rows = [(f"device {device}", _or_error(partial(_about, device))) for device in listed]
    if kind not in diagnosis.NEEDS:
        return [*rows, ("  C compiler", _or_error(_c_compiler))]
    if not listed:
        rows = [(kind, f"no device{problem and f': {problem}'}")]
    return rows + [(f"  {part.name}", str(part)) for part in diagnosis.parts(kind, works=bool(listed))]


def _about(device: Device) -> str:
    driver = device.driver
    free, total = (n / (1 << 30) for n in driver.memory_info())
    properties = ", ".join(f"{name} {value}" for name, value in driver.properties().items())
    return f"{driver.name()}, {driver.target()}, {free:.1f} of {total:.1f} GiB free ({properties})"


def _c_compiler() -> str:
    compiler = toolchain()
    return f"{shlex.join(compiler.command)}: {compiler.fingerprint.partition(' [')[0]}"


def _or_error(function: Callable[[], str | None]) -> str:
    """The answer, or the error as text."""
    try:
        return function() or ""
    except DeviceError as error:
        return f"none ({error})"
    except Exception as error:  # of a binding or a system library: a report says it and goes on
        return f"none ({type(error).__name__}: {error})"


def cache_rows() -> Rows:
    """The lines about the kernel cache."""
    info = cache.info()
    if info.directory is None:
        return [("kernel cache", "off")]
    size = f"{info.entries} entries, {info.bytes} bytes of at most {info.cap}"
    rows = [("kernel cache", str(info.directory)), ("", size)]
    return [*rows, ("  compiled ahead", _or_error(partial(_compiled_ahead, info)))]


def _compiled_ahead(info: cache.Info) -> str:
    if not info.warmed:
        return "nothing with this package"
    count = info.warmed[toolchain().fingerprint]
    other = info.warmed.total() - count
    return f"{count} entries in {cache.warmed()}" + (
        f", and {other} for another compiler or processor" if other else ""
    )


def print_rows(rows: Rows) -> None:
    """Names in a column, values beside them."""
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name:{width}}  {value}")
