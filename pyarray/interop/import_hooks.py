"""Import hooks: calls that run when another library is imported, so that `import pyarray` imports none.

An entry point of the other library would do where it has one, and would cost all who import that library the
import of pyarray, too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec
from types import ModuleType


def when_imported(name: str, call: Callable[[ModuleType], object]) -> None:
    """`call(module)` as soon as the module `name` has been imported: now, where it is already."""
    module = sys.modules.get(name)
    if module is None:
        sys.meta_path.insert(0, _ImportHook(name, call))
    else:
        call(module)


class _ImportHook:
    """An import hook for one module: removes itself, and finds the module as the import system does."""

    def __init__(self, name: str, call: Callable[[ModuleType], object]):
        self.name, self._call = name, call

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self.name:
            return None
        with suppress(ValueError):  # another thread was faster
            sys.meta_path.remove(self)
        specs = (finder.find_spec(fullname, path, target) for finder in list(sys.meta_path))
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def run_and_call(module: ModuleType) -> None:
                run(module)
                self._call(module)

            spec.loader.exec_module = run_and_call  # type: ignore[method-assign]
        return spec
