"""Errors of calls that don't match a kernel's signature.

Python would raise its own error before a generated function runs. So these functions accept any call, with
`MISSING` for arguments that aren't given, and `Binder` raises the error where no variant is found.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from ..keywords import refuse
from .signature import Parameter


class Missing:
    """What a required parameter is set to that the call doesn't give."""

    def __repr__(self) -> str:
        return "missing"


MISSING = Missing()


class Binder:
    """Matches calls with a kernel's signature. `params` are in positional order."""

    def __init__(self, name: str, params: Sequence[Parameter]):
        self.name, self.params = name, params

    @functools.cached_property
    def function(self) -> Callable[..., dict[str, Any]]:
        """Arguments by parameter: its signature is that of the kernel."""
        p, scope = unused_prefix([q.name for q in self.params]), dict[str, Any]()
        items = ", ".join(f"{q.name!r}: {q.name}" for q in self.params)
        text = f"def {p}f({signature(self.params, p, scope)}):\n    return {{{items}}}\n"
        return compile_function(text, p, scope, self.name)

    def __call__(self, args: Sequence[Any], options: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments by parameter, defaults too. Raises `TypeError` for a call that doesn't fit."""
        try:
            bound = self.function(*args, **options)
        except TypeError:
            refuse(self.function, options)
            raise
        if any(value is MISSING for value in bound.values()):
            self.wrong(tuple(bound.values()))
        return bound

    def wrong(
        self, args: Sequence[Any], extra: Sequence[Any] = (), unknown: Mapping[str, Any] | None = None
    ) -> NoReturn:
        """Raises the `TypeError` of a call that has given `args`, one for each parameter, and beside them
        `extra` by position and `unknown` by keyword."""
        pairs = list(zip(self.params, args, strict=True))
        first = [a for q, a in pairs if not q.keyword_only] if extra else []  # then all of them were given
        named = {q.name: a for q, a in pairs[len(first) :] if a is not MISSING and a is not q.default}
        refuse(self.function, unknown or {})
        self.function(*first, *extra, **named, **(unknown or {}))
        raise AssertionError(f"{self.name}: this call fits")


def signature(
    params: Sequence[Parameter], p: str, scope: dict[str, Any], extra: str = "", missing: bool = False
) -> str:
    """The parameters of a generated function; their defaults go into `scope`. `missing`: none of them is
    required. More arguments by position than there are go into `extra`, where it is given."""
    parts: list[str] = []
    star = f"*{extra}"
    if missing:
        scope["missing"] = MISSING
    for q in params:
        if q.keyword_only and star not in parts:
            parts.append(star)
        if q.default is not inspect.Parameter.empty:
            scope[f"default_{q.name}"] = q.default
            parts.append(f"{q.name}={p}default_{q.name}")
        else:
            parts.append(f"{q.name}={p}missing" if missing else q.name)
    return ", ".join([*parts, *([star] if extra and star not in parts else [])])


def unused_prefix(names: Sequence[str]) -> str:
    """A prefix for names in generated code that no parameter's name begins with."""
    prefix = "_pa_"
    while any(name.startswith(prefix) for name in names):
        prefix = "_" + prefix
    return prefix


def compile_function(text: str, p: str, scope: Mapping[str, Any], name: str) -> Callable[..., Any]:
    """The function of a text, whose names other than the parameters begin with `p`."""
    space = {p + key: value for key, value in scope.items()}
    exec(compile(text, f"<pyarray {name}>", "exec"), space)
    function: Callable[..., Any] = space[f"{p}f"]
    function.__name__ = function.__qualname__ = name  # a wrong count of arguments is reported under it
    return function
