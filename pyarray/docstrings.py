"""Docstrings of public functions, whose sections in NumPy's style are made when they are read: `docstring_sections`.

Importing the package makes none of them.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from typing import Any

from ._core import PlannedFunction, QuickFunction
from .lazy import import_now

_FUNCTIONS = (types.FunctionType, PlannedFunction, QuickFunction)

# What asks a text for its elements in C, as regular expressions do, sees the prose alone.
_READ = [name for name in vars(str) if name[0] != "_" and name != "maketrans"]
_READ += ["__str__", "__repr__", "__format__", "__contains__", "__len__", "__iter__", "__getitem__"]
_READ += ["__eq__", "__ne__", "__hash__", "__add__"]


def _reader(name: str) -> Callable[..., Any]:
    read = getattr(str, name)

    def method(self: Docstring, *args: Any, **options: Any) -> Any:
        return read(self.text, *args, **options)

    return method


class Docstring(str):
    """The docstring of `function`, whose sections are added when it is read. The first `skip` parameters are not
    among them: the array of a method.

    >>> def double(x: ArrayLike, /) -> ndarray:
    ...     "Twice `x`. Raises `TypeError` for text."
    >>> _set(double, 0)
    >>> print(double.__doc__)
    Twice `x`.
    <BLANKLINE>
    Parameters
    ----------
    x : ArrayLike
        The operand: an array of any shape, or what `asarray` takes.
    <BLANKLINE>
    Returns
    -------
    ndarray
    <BLANKLINE>
    Raises
    ------
    TypeError
        For text.
    """

    _function: Any
    _skip = 0
    _text: str | None = None

    @property
    def text(self) -> str:
        """The prose and the sections."""
        if self._text is None:
            sections = import_now(f"{__package__}.docstring_sections")
            self._text = str(sections.assembled(str.__str__(self), self._function, self._skip))
        return self._text

    for _name in _READ:
        locals()[_name] = _reader(_name)


def install(namespace: dict[str, Any], names: Iterable[str] | None = None) -> None:
    """Gives the public functions of a module, or those of these `names`, docstrings with sections, and so the
    methods of its classes."""
    for name in names or namespace.get("__all__") or list(namespace):
        if name[0] == "_":
            continue
        member = namespace[name]
        if isinstance(member, _FUNCTIONS) or hasattr(member, "__pyarray_func__"):
            if member.__module__.startswith("pyarray"):
                _set(member, 0)
        elif isinstance(member, type) and member.__module__.startswith("pyarray"):
            for attribute, method in vars(member).items():
                inner = getattr(method, "__func__", method)
                if isinstance(inner, _FUNCTIONS) and attribute[0] != "_":
                    _set(inner, int(not isinstance(method, staticmethod)))


def _set(function: Any, skip: int) -> None:
    doc = function.__doc__
    if type(doc) is not str:
        return
    function.__doc__ = made = Docstring(doc)
    made._function = function
    if skip:
        made._skip = skip
    while (function := function.__dict__.get("__wrapped__")) and function.__doc__ is doc:
        function.__doc__ = made  # what it wraps, too, which mkdocs reads
