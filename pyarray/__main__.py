"""`python -m pyarray info`: what this machine has for pyarray, what is missing, and the command that fixes
it. `python -m pyarray cache info` and `cache clear`: the compiled kernels on disk, and what the tuner knows;
`cache warm` compiles those of common calls ahead. `python -m pyarray tune`: search for the best constants of
tuned kernels ahead; `tune show`: what is known of them. `python -m pyarray compile`: compile the kernels of a program
for devices that need not be here."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pyarray import config, warm
from pyarray.debug.compiling import compile_program
from pyarray.debug.environment import cache_rows, print_rows, report
from pyarray.debug.tuning import show, tune, unusable
from pyarray.driver.targets import find_target
from pyarray.errors import DeviceError
from pyarray.jit import cache
from pyarray.tune import store


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m pyarray", description=__doc__)
    commands = parser.add_subparsers(dest="command")
    commands.add_parser("info", help="versions, devices, compilers and what is missing (also without a word)")
    of_cache = commands.add_parser("cache", help="compiled kernels on disk")
    of_cache.add_argument("action", choices=("info", "clear", "warm"))
    of_cache.add_argument("directory", nargs="?", type=Path, help="for warm, instead of the user's cache")
    of_tune, of_compile = _add_tune(commands), _add_compile(commands)
    options = parser.parse_args(arguments)
    if options.command == "compile":
        sys.exit(_compile(options, of_compile))
    if options.command == "tune":
        wrong = _wrong(options)
        if wrong is not None:
            of_tune.exit(2, f"{of_tune.prog}: {wrong}\n")
        if options.target == "show":
            sys.exit(show(options.arguments[0] if options.arguments else None, options.plot))
        out = None if options.out is None else Path(options.out)
        sys.exit(tune(options.target, out, options.fresh, options.arguments))
    if options.command == "cache" and options.directory and options.action != "warm":
        of_cache.error("a directory is for warm alone")
    if options.command == "cache" and options.action == "clear":
        counts = f"{cache.clear()} files of kernels and {store.clear()} of the tuner"
        print(f"{counts} deleted from {cache.directory()}")
        return
    if options.command == "cache" and options.action == "warm":
        _warm(options.directory)
        return
    print_rows(cache_rows() if options.command == "cache" else report())


def _add_tune(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    of_tune = commands.add_parser("tune", help="search for the constants of tuned kernels, or show what is known")
    of_tune.add_argument("--out", help="folder for artifacts to ship with the application")
    of_tune.add_argument("--fresh", action="store_true", help="search again for what is known")
    of_tune.add_argument("--plot", type=Path, help="with show: a picture of the times (needs matplotlib)")
    of_tune.add_argument("target", help="a script (file.py), a module, or the word show")
    more = "of the script, after -- where they begin with -; with show: a part of the kernel's name"
    of_tune.add_argument("arguments", nargs="*", default=[], help=more)
    return of_tune


def _add_compile(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    what = "Imports a program and compiles each of its kernels that declares its types, by annotations or by types="
    ends = "Exit status: 0, 1 if a kernel failed or nothing was written, 2 for a wrong command line."
    summary, description = "compile a program's kernels for devices that aren't here", f"{what}, into files."
    of_compile = commands.add_parser("compile", help=summary, description=description, epilog=ends)
    of_compile.add_argument("program", help="a script (app.py) or a module (package.module)")
    how = "sm_90, gfx942, cpu and the like; several times for several, which one file has"
    of_compile.add_argument("--target", action="append", required=True, metavar="NAME", help=how)
    of_compile.add_argument("--out", type=Path, default=Path("kernels"), help="folder for the files (kernels)")
    of_compile.add_argument("--kernel", action="append", default=[], metavar="NAME", help="this kernel alone")
    of_compile.add_argument("--debug", action="store_true", default=None, help="with bounds checks")
    return of_compile


def _compile(options: argparse.Namespace, of_compile: argparse.ArgumentParser) -> int:
    try:
        targets = [find_target(name) for name in dict.fromkeys(options.target)]
    except ValueError as error:
        of_compile.exit(2, f"{of_compile.prog}: {error}\n")
    if not options.program.endswith(".py") and not all(options.program.split(".")):
        wrong = f"expected a script (app.py) or a module (package.module), got {options.program!r}"
        of_compile.exit(2, f"{of_compile.prog}: {wrong}\n")
    return compile_program(options.program, targets, options.out, options.kernel, options.debug)


def _wrong(options: argparse.Namespace) -> str | None:
    """The error in the options of `tune`, and what to write instead; None if there is none."""
    for name in config.SETTINGS:
        try:
            config.get(name)
        except ValueError as error:
            return f"{error}; correct or unset {name}"
    if options.target == "show":
        if options.out is not None or options.fresh:
            return "show searches nothing, so it takes no --out and no --fresh; name a script or a module"
        if len(options.arguments) > 1:
            got = " ".join(options.arguments)
            return f"show takes one part of a kernel's name, got {got}; leave out the rest"
        return None
    if options.plot is not None:
        return "--plot is for show; what is meant for the script goes after --"
    if not options.target.endswith(".py") and not all(options.target.split(".")):
        return f"expected a script (app.py) or a module (package.module), got {options.target!r}"
    return None if options.out is None else unusable(options.out)


def _warm(directory: Path | None) -> None:
    try:
        result = warm.warm(directory)
    except (DeviceError, ValueError) as error:
        raise SystemExit(str(error)) from None
    for failure in result.failures:
        print(failure, file=sys.stderr)
    print(f"{result.entries} entries in {result.directory}")


if __name__ == "__main__":
    main()
