"""`python -m pyarray compile`: compiles the kernels of a program ahead of its run, for devices that need not be
here."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from ..driver.targets import Target
from ..errors import CompileError, DeviceError
from ..jit.ahead_of_time import examples
from ..jit.kernel import Kernel
from ..jit.kernel_registry import all_kernels
from ..tune.tuned import all_tuned
from .tuning import failure_text

_HEAD = ("kernel", "target", "arguments", "bytes", "file")


class _Row(NamedTuple):
    """A binary that was written."""

    kernel: str
    target: str
    arguments: str
    size: str
    file: str


def compile_program(
    program: str, targets: Sequence[Target], out: Path, names: Sequence[str], debug: bool | None
) -> int:
    """Import a script or module, compile its kernels that declare their types, all targets into one file each, and
    print what was written. `names`: these kernels alone. 0; 1 if the program or a kernel failed, a kernel of
    `names` isn't there, or nothing was written."""
    rows, failures = list[_Row](), list[str]()
    try:
        module = _imported(program)
    except _ImportFailedError as error:
        print(error, file=sys.stderr)
        return 1
    kernels = dict(_kernels(module))
    unknown = [name for name in names if name not in kernels]
    failures += [f"{program} has no kernel {name!r}; it has {', '.join(kernels) or 'none'}" for name in unknown]
    for name, kernel in kernels.items():
        if names and name not in names:
            continue
        reason = _undeclared(kernel)
        if reason is not None:
            if names:
                failures.append(reason)
            else:
                print(f"{name} is left out: {reason}")
            continue
        try:
            rows += _written(name, kernel, targets, out, debug)
        except (CompileError, DeviceError, OSError, RuntimeError, TypeError, ValueError) as error:
            failures.append(f"{name}: {error}")
    _print_table(rows)
    for text in failures:
        print(text, file=sys.stderr)
    if not kernels:
        print(f"{program} has no kernel; they are made by pa.kernel", file=sys.stderr)
    files = {row.file for row in rows}
    print(f"{len(files)} file{'' if len(files) == 1 else 's'} in {out}")
    return 1 if failures or not rows else 0


class _ImportFailedError(Exception):
    pass


def _imported(program: str) -> ModuleType:
    """The module of a script, whose name isn't `__main__`, so that what it does when it is run isn't done; or a module
    by its name."""
    script = program.endswith(".py")
    sys.path.insert(0, str(Path(program).resolve().parent) if script else "")
    try:
        if not script:
            return importlib.import_module(program)
        name = Path(program).stem
        name = f"{name}_program" if name in sys.modules else name
        spec = importlib.util.spec_from_file_location(name, program)
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    except SystemExit as error:
        what = f"{program} ended with {error.code!r} while it was imported"
        raise _ImportFailedError(f"{what}; put what it runs under if __name__ == '__main__'") from None
    except Exception as error:
        raise _ImportFailedError(failure_text(program, script, error, __file__)) from None


def _kernels(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """The kernels that a module has defined, tuned ones in the place of their own, in the order of the source."""

    def is_own(kernel: Any) -> bool:
        return getattr(kernel.__wrapped__, "__globals__", None) is vars(module)

    tuned = {t.kernel: t for t in all_tuned() if is_own(t)}
    sources = {id(kernel.source_text) for kernel in tuned}  # of candidates, too; the kernels keep them alive
    found = [k for k in all_kernels() if isinstance(k, Kernel) and is_own(k)]
    plain = [k for k in found if id(k.source_text) not in sources]
    for kernel in sorted([*plain, *tuned], key=lambda k: (k.source_text.first_line, k.__qualname__)):
        yield kernel.__qualname__.replace("<locals>.", ""), tuned.get(kernel, kernel)


def _undeclared(kernel: Any) -> str | None:
    """Why a kernel can't be compiled without types in the call; None if it can."""
    plain = getattr(kernel, "kernel", kernel)
    if plain.declared_types:
        return None
    try:
        examples(plain, (), {} if plain is kernel else kernel.first())
    except TypeError as error:
        return str(error)
    return None


def _written(name: str, kernel: Any, targets: Sequence[Target], out: Path, debug: bool | None) -> list[_Row]:
    compiled = kernel.compile(target=[target.name for target in targets], debug=debug)
    path = out / f"{re.sub(r'[^A-Za-z0-9_.-]', '_', name)}.kernel"
    out.mkdir(parents=True, exist_ok=True)
    compiled.save(path)
    named = {(target.kind, target.machine): target.name for target in targets}
    return [
        _Row(name, named[v.row["device"], v.row["machine"]], v.describe(), str(len(v.binary)), path.name)
        for v in compiled.saved_variants
    ]


def _print_table(rows: Sequence[_Row]) -> None:
    if not rows:
        return
    lines = [_HEAD, *rows]
    widths = [max(len(line[k]) for line in lines) for k in range(len(_HEAD))]
    for line in lines:
        print("  ".join(f"{cell:{width}}" for cell, width in zip(line, widths, strict=True)).rstrip())
