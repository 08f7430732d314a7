"""`python -m pyarray`: what a bug report should say. `python -m pyarray cache info` and `cache clear`: the
compiled kernels on disk."""

from __future__ import annotations

import argparse
import platform
import shlex

import pyarray
from pyarray.driver.base import KINDS, devices, get_device
from pyarray.driver.cc import toolchain
from pyarray.errors import DeviceError
from pyarray.jit import cache


def report() -> list[tuple[str, str]]:
    """Name and value of each line of `python -m pyarray`."""
    rows = [
        ("pyarray", pyarray.__version__),
        ("python", f"{platform.python_version()} on {platform.platform()}"),
    ]
    for kind in KINDS:
        for device in devices(kind) if kind != "null" else ():
            facts = ", ".join(f"{name} {value}" for name, value in device.driver.properties().items())
            rows.append((f"device {device}", f"{device.driver.name()} ({facts})"))
    rows.append(("default device", str(get_device())))
    try:
        found = toolchain()
        version = found.fingerprint.partition(" [")[0]
        rows.append(("C compiler", f"{shlex.join(found.command)}: {version}"))
    except DeviceError as error:
        rows.append(("C compiler", f"none ({error})"))
    return [*rows, *cache_rows()]


def cache_rows() -> list[tuple[str, str]]:
    """The same for the cache."""
    info = cache.info()
    if info.directory is None:
        return [("kernel cache", "off")]
    size = f"{info.entries} entries, {info.bytes} bytes of at most {info.cap}"
    return [("kernel cache", str(info.directory)), ("", size)]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m pyarray", description=__doc__)
    commands = parser.add_subparsers(dest="command")
    of_cache = commands.add_parser("cache", help="compiled kernels on disk")
    of_cache.add_argument("action", choices=("info", "clear"))
    options = parser.parse_args(arguments)
    if options.command == "cache" and options.action == "clear":
        print(f"{cache.clear()} files deleted from {cache.directory()}")
        return
    rows = cache_rows() if options.command == "cache" else report()
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name:{width}}  {value}")


if __name__ == "__main__":
    main()
