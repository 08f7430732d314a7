"""`python -m pyarray info`: what this machine has for pyarray, what is missing, and the command that mends
it. `python -m pyarray cache info` and `cache clear`: the compiled kernels on disk."""

from __future__ import annotations

import argparse

from pyarray.debug.environment import cache_rows, print_rows, report
from pyarray.jit import cache


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m pyarray", description=__doc__)
    commands = parser.add_subparsers(dest="command")
    commands.add_parser("info", help="versions, devices, compilers and what is missing (also without a word)")
    of_cache = commands.add_parser("cache", help="compiled kernels on disk")
    of_cache.add_argument("action", choices=("info", "clear"))
    options = parser.parse_args(arguments)
    if options.command == "cache" and options.action == "clear":
        print(f"{cache.clear()} files deleted from {cache.directory()}")
        return
    print_rows(cache_rows() if options.command == "cache" else report())


if __name__ == "__main__":
    main()
