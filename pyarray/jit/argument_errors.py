"""Errors of calls that don't match a kernel's signature. C binds the arguments of calls that do."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from ..keywords import refuse
from .signature import Parameter


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
        return bound

    def for_c(self) -> tuple[tuple[str, ...], int, tuple[Any, ...]]:
        """Names, number of those by position, and defaults (NotImplemented: required), as `Dispatcher` takes them."""
        required = inspect.Parameter.empty
        defaults = tuple(NotImplemented if q.default is required else q.default for q in self.params)
        return tuple(q.name for q in self.params), sum(not q.keyword_only for q in self.params), defaults

    def wrong(self, args: Sequence[Any], options: Mapping[str, Any]) -> NoReturn:
        """Raises the `TypeError` of a call that doesn't fit."""
        self(args, options)
        raise AssertionError(f"{self.name}: this call fits")


def signature(params: Sequence[Parameter], p: str, scope: dict[str, Any]) -> str:
    """The parameters of a generated function; their defaults go into `scope`."""
    parts: list[str] = []
    for q in params:
        if q.keyword_only and "*" not in parts:
            parts.append("*")
        if q.default is not inspect.Parameter.empty:
            scope[f"default_{q.name}"] = q.default
            parts.append(f"{q.name}={p}default_{q.name}")
        else:
            parts.append(q.name)
    return ", ".join(parts)


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
