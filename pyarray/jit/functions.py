"""`@func`: device functions, which kernels call; and pickling of functions and kernels."""

from __future__ import annotations

import operator
import pickle
import sys
import types
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar, cast

from ..lang.parse import FunctionSource, source_of

P = ParamSpec("P")
R = TypeVar("R")


class Importable:
    """Binds as a method, copies to itself, pickles by qualified name."""

    _what = "function"
    __name__: str

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """As a method: `obj.function(x)` passes `obj` as the first argument."""
        return self if instance is None else types.MethodType(self, instance)  # type: ignore[arg-type]

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __reduce__(self) -> str:
        return import_path(self, self._what)


class Func(Importable, Generic[P, R]):
    """A function that kernels can call; made by `func`. On the host it is the plain Python function."""

    def __init__(self, source: FunctionSource):
        self.__pyarray_func__ = source
        self.__wrapped__ = source.function
        self.__name__, self.__doc__ = source.name, source.function.__doc__
        self.__module__, self.__qualname__ = source.function.__module__, source.function.__qualname__

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return cast(R, self.__wrapped__(*args, **kwargs))

    def __repr__(self) -> str:
        return f"<func {self.__name__}>"


def func(function: Callable[P, R]) -> Func[P, R]:
    """Make a Python function callable from kernels. It is compiled with each kernel, for the types of each
    call. Raises `TypeError` for what is no Python function.

    >>> @pa.func
    ... def half(x):
    ...     return x / 2
    >>> half(3)
    1.5
    """
    if isinstance(function, Func):
        return function
    target: Any = function
    plain = target.__wrapped__ if hasattr(target, "__pyarray_kernel__") else target
    return Func(source_of(plain, sys._getframe(1).f_locals))


def import_path(function: Any, what: str) -> str:
    """Where a kernel or function is found by another process, for pickle. Raises `PicklingError` where it
    isn't."""
    name = str(function.__qualname__)
    try:
        importable = operator.attrgetter(name)(sys.modules[function.__module__])
    except (KeyError, AttributeError):
        importable = None
    if importable is not function:
        raise pickle.PicklingError(
            f"{what} {function.__name__!r} can't be pickled: it goes by its import path, and "
            f"{function.__module__}.{name} is not it; define it at the top level of a module"
        )
    return name
