"""Functions under `torch.compile`: Dynamo, which traces Python into graphs, ends its graph where pyarray is
called, and runs the call as it is.

A mark on functions wouldn't do: Dynamo would still trace what they call. It has a table of files that it
doesn't trace, in a module that is loaded with the first compile. Where that comes later, a finder of imports
waits for it, so that `import pyarray` imports nothing of torch.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

_RULES = "torch._dynamo.trace_rules"
_GENERATED = "<pyarray "  # what file names of generated code begin with


def leave_untraced() -> None:
    """Dynamo doesn't trace the package, from its first compile on."""
    rules = sys.modules.get(_RULES)
    if rules is None:
        sys.meta_path.insert(0, _Waiting())
    else:
        _add(rules)


def _add(rules: Any) -> None:
    with suppress(AttributeError):  # a torch whose table is elsewhere: it traces, as it does with others
        rules.SKIP_DIRS.append(_GENERATED)
        rules.add(__name__.partition(".")[0])


class _Waiting(MetaPathFinder):
    """Finds one module as it would be found without it, and is gone."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != _RULES:
            return None
        with suppress(ValueError):  # another thread was faster
            sys.meta_path.remove(self)
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def run_and_add(module: ModuleType) -> None:
                run(module)
                _add(module)

            spec.loader.exec_module = run_and_add  # type: ignore[method-assign]
        return spec
