"""Errors for unknown keywords: they name the nearest known one, or what to write for NumPy's.

Python refuses an unknown keyword before the function runs, in its own words; so what is public is called by
way of `checked`, or takes `**unknown` itself (`api/core/ufunc_functions.py`), and `refuse` is asked only when
something is wrong.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

from ._core import PlannedFunction, QuickFunction

_F = TypeVar("_F", bound=Callable[..., Any])

# NumPy's keywords that functions here may lack, and what to write
INSTEAD = {
    "where": "choose with pyarray.where(mask, result, other)",
    "dtype": "cast the operands or the result with astype",
    "initial": "combine the result with the initial value",
    "order": "a copy has it, a.copy(order)",
    "casting": "cast with astype, which casts everything",
    "subok": "there are no subclasses of arrays",
    "like": "name the place with device=",
    "out": "assign the result, out[...] = result",
    "ndmin": "add axes of size 1 by an index, a[None]",
    "axes": "move the axes first, with moveaxis",
    "allow_pickle": "objects are no elements of these arrays",
    "kind": "all sorts are stable",
}

# of functions along an axis
_LEFT_OUT = "replace what is to be left out first, with pyarray.where(mask, x, neutral)"

CHECKED = "__pyarray_keywords__"  # marks what refuses unknown keywords already
_MADE = "__pyarray_checked__"  # on a function, what `checked` gave for it: both go together
_signatures: dict[types.CodeType, inspect.Signature] = {}  # of functions that differ in closures only
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_ORDERED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def refuse(function: Callable[..., Any], options: Iterable[str], skip: int = 0) -> None:
    """Raises `TypeError` when one of the keywords `options` is none of `function`'s, whose first `skip`
    parameters have no names for callers."""
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return
    names = [p.name for p in list(parameters)[skip:] if p.kind in _NAMED]
    for option in options:
        if option not in names:
            raise TypeError(_message(function.__name__, option, names, parameters)) from None


def _message(name: str, option: str, keywords: list[str], parameters: Iterable[inspect.Parameter]) -> str:
    what = f"{name}() has no keyword {option!r}"
    operands = [p.name for p in parameters if p.kind is p.POSITIONAL_ONLY and p.name not in keywords]
    taken = f"it takes {', '.join(keywords)}" if keywords else "it takes none"
    if option in operands:
        return f"{what}: give {', '.join(operands)} by position; {taken}"
    import difflib  # which takes long to import, and is needed for errors alone

    near = difflib.get_close_matches(option, keywords, 1)
    if option in INSTEAD and not near:
        along = option == "where" and "axis" in keywords
        instead = _LEFT_OUT if along else INSTEAD[option]
        return f"{what}; {instead}; {taken}"
    if near or len(keywords) > 1:
        nearest = difflib.get_close_matches(option, keywords, 1, 0.0)[0]
        return f"{what}; did you mean {nearest!r}? {taken[0].upper()}{taken[1:]}"
    return f"{what}; {taken}"


def translate_arguments(
    ours: Callable[..., Any], theirs: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments of NumPy's function as those of ours, whose parameters have other names, or none for callers.

    >>> import numpy
    >>> translate_arguments(lambda x, q, /: None, numpy.quantile, ([1, 2],), {"q": 0.5})
    (([1, 2], 0.5), {})
    """
    args, options = (*args,), dict(options)
    for position, (name, keyword) in enumerate(_names(ours, theirs)):
        if name in options and keyword is not None:
            options[keyword] = options.pop(name)
        elif name in options and position == len(args):
            args += (options.pop(name),)
    return args, options


@functools.cache
def _names(ours: Callable[..., Any], theirs: Callable[..., Any]) -> tuple[tuple[str, str | None], ...]:
    """For each place NumPy's name of the parameter, and what we call it: None where it is given by
    position."""
    try:
        both = [list(inspect.signature(f).parameters.values()) for f in (theirs, ours)]
    except ValueError:  # a function in C without a signature
        return ()
    keywords = {p.name for p in both[1] if p.kind in _NAMED}
    ordered = [[p for p in listed if p.kind in _ORDERED] for listed in both]
    return tuple(
        (a.name, a.name if a.name in keywords else b.name if b.kind in _NAMED else None)
        for a, b in zip(*ordered, strict=False)
    )


def checked(function: Callable[..., Any], skip: int = 0) -> Callable[..., Any]:
    """The function with errors for unknown keywords that name the nearest one; calls with the same function return
    the same one. One that takes `**unknown` refuses them by itself, and gets the signature of its other
    parameters; what is checked already, or another library's, stays as it is. The first `skip` parameters have no
    names for callers."""
    if not isinstance(function, types.FunctionType) or CHECKED in function.__dict__:
        return function
    if not _within("pyarray", function):
        return function
    if function.__code__.co_flags & inspect.CO_VARKEYWORDS and _refuses_itself(function.__code__):
        return _declared(function)
    checker = vars(function).get(_MADE)
    # another's, if functools.wraps copied it here
    if checker is None or checker.__wrapped__ is not function:
        checker = wrapped(function, skip)
        setattr(function, _MADE, checker)
    return checker


def _within(package: str, function: types.FunctionType) -> bool:
    return f"{function.__module__}.".startswith(f"{package}.")


def _refuses_itself(code: types.CodeType) -> bool:
    names = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & inspect.CO_VARARGS)
    return code.co_varnames[names] == "unknown"  # what follows the others is `**`


def _declared(function: types.FunctionType) -> types.FunctionType:
    if (signature := _signatures.get(function.__code__)) is None:
        declared = inspect.signature(function)
        signature = declared.replace(parameters=list(declared.parameters.values())[:-1])
        _signatures[function.__code__] = signature
    setattr(function, CHECKED, True)
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


def wrapped(function: Callable[..., Any], skip: int = 0) -> Callable[..., Any]:
    """A new function that calls `function` and refuses unknown keywords: the one wrapper, for a method with a name and
    docstring of its own, too. One with plans shares them."""
    if isinstance(function, PlannedFunction):
        return functools.update_wrapper(PlannedFunction(function.plan_table), function)

    def call(*args: Any, **options: Any) -> Any:
        if not options:
            return function(*args)
        try:
            return function(*args, **options)
        except TypeError:
            refuse(function, options, skip)
            raise

    # What `functools.wraps` does in a third of the time: importing the package makes 400 of them.
    call.__module__, call.__name__, call.__qualname__ = function.__module__, function.__name__, function.__qualname__
    call.__doc__, call.__annotations__ = function.__doc__, function.__annotations__
    call.__dict__.update(function.__dict__)
    call.__dict__.update({"__wrapped__": function, CHECKED: True})
    return call


def quick(name: str, skip: int = 0) -> Callable[[_F], _F]:
    """Decorator: C does what the function does where it can, by the way of that name in `csrc/core/function.c`. The
    rest, and what is wrong, is left to the function, whose first `skip` parameters have no names for callers."""

    def decorate(function: _F) -> _F:
        return cast(_F, QuickFunction(name, checked(function, skip)))

    return decorate


def install(public: dict[str, Any] | type, names: Iterable[str] | None = None) -> None:
    """Replaces the public functions of a module's namespace or of a class, or those of these `names`, by checked ones.
    Kernels know the functions of the language by themselves."""
    is_class = isinstance(public, type)
    namespace: Any = vars(public) if is_class else public
    for name in names or namespace.get("__all__") or list(namespace):
        function = namespace[name]
        if name[0] == "_" or not isinstance(function, types.FunctionType):
            continue
        if CHECKED in function.__dict__ or _within("pyarray.lang", function):
            continue
        made = checked(function, int(is_class)) if not is_class or _has_keywords(function) else function
        if made is function:
            continue
        if is_class:
            setattr(public, name, made)
        else:
            made.__module__ = namespace["__name__"]  # under which pickles find it
            namespace[name] = made


def _has_keywords(method: types.FunctionType) -> bool:
    code = method.__code__
    first = 1 if code.co_posonlyargcount == 0 else code.co_posonlyargcount
    return code.co_argcount + code.co_kwonlyargcount > first
