"""Captured Python values of functions for `fuse`: they are compiled in, so each call compares them with what they
were."""

from __future__ import annotations

import dis
import inspect
import operator
import types
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from .._core import PlannedFunction
from ..array import ndarray
from ..lang.ir import static_key
from ..lang.parse import Capture
from ..memory.buffer import Buffer

_PLAIN = (bool, int, float, complex, str, bytes, type(None))  # compared by value
_ARRAYS = (ndarray, np.ndarray)  # whose elements are read at each launch
_LOADS = frozenset(("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF"))
_ATTRIBUTES = frozenset(("LOAD_ATTR", "LOAD_METHOD"))
_CONSTANTS = frozenset(("LOAD_CONST", "LOAD_SMALL_INT"))

ABSENT: Any = Capture  # what `read` gives for a name that isn't there

Step = tuple[str, Any]  # "." and an attribute, or "[" and an index


class Contents:
    """The items of a list, tuple, dict or set: `value` are those when the function was traced."""

    def __init__(self, owner: Any):
        self.owner = owner
        self.value = _items(owner)

    def current_value(self) -> tuple[Any, ...]:
        """The items now: `value` itself where nothing has changed."""
        now, then = _items(self.owner), self.value
        return then if len(now) == len(then) and all(map(operator.is_, now, then)) else now


def _items(owner: Any) -> tuple[Any, ...]:
    return (*owner, *owner.values()) if isinstance(owner, dict) else tuple(owner)


def captures(function: Any, decorated: tuple[Any, ...]) -> Iterator[Capture | Contents]:
    """What a function reads from globals and closures (also through attributes and constant indices), with
    what lists and dicts there hold, and so for other functions of its package that it calls. `decorated`:
    types of objects around a function."""
    stack, visited = [function], {function.__code__}
    guarded: set[Any] = set()
    while stack:
        one = stack.pop()
        cells = dict(zip(one.__code__.co_freevars, one.__closure__ or (), strict=True))
        for name, steps in _paths(one.__code__):
            owner: Any = cells.get(name, one.__globals__)
            if owner is one.__globals__ and name not in owner:
                continue  # a built-in, or a variable of the function itself
            for capture in _path_values(owner, name, steps):
                if (key := _key(capture)) in guarded or _is_constant(capture, function):
                    continue
                guarded.add(key)
                yield capture
                value: Any = capture.value
                value = value.__wrapped__ if isinstance(value, decorated) else value
                if isinstance(value, types.FunctionType) and value.__code__ not in visited:
                    visited.add(value.__code__)
                    stack.append(value)


def _key(capture: Capture | Contents) -> Any:
    return id(capture.owner), capture.name if isinstance(capture, Capture) else Contents


def _is_constant(capture: Capture | Contents, function: Any) -> bool:
    """Whether a value is taken as constant, since guards cost every call: modules, and functions and classes of
    other packages."""
    value = capture.value
    if isinstance(value, (types.ModuleType, types.BuiltinFunctionType, np.ufunc)):
        return True
    home = capture.owner if isinstance(capture.owner, types.ModuleType) else None
    if home is not None and _package(home.__name__) in ("pyarray", "numpy", "math"):
        return True
    functions = isinstance(value, (types.FunctionType, PlannedFunction, type))
    return functions and _package(value.__module__) != _package(function.__module__)


def _path_values(owner: Any, name: Any, steps: Iterable[Step]) -> Iterator[Capture | Contents]:
    """The values of one expression `name.attribute[index]...`, up to where following it would run code."""
    value: Any = Capture(owner, name, None).current_value()
    yield Capture(owner, name, value)
    for kind, part in steps:
        if kind == "[" and type(value) in (list, tuple, dict):  # another class may do anything in its `[]`
            try:
                owner, value = value, value[part]
            except (LookupError, TypeError):
                break
        elif kind == "." and not isinstance(value, _ARRAYS) and _is_stored(value, part):
            owner = value
            value = getattr(owner, part, ABSENT)
        else:
            break
        if not isinstance(owner, tuple):
            yield Capture(owner, part, value)
        if value is ABSENT:
            return
    yield from _contents(value, set())


def _is_stored(owner: Any, name: str) -> bool:
    """Whether the attribute is stored in the object, so that reading it runs no code."""
    try:
        attribute = inspect.getattr_static(owner, name)
    except AttributeError:
        return False
    if isinstance(attribute, types.MemberDescriptorType) or not hasattr(type(attribute), "__get__"):
        return True
    # a function: of a class it would be bound, in a module or an object itself it is a value
    attributes: Any = {} if isinstance(owner, type) else getattr(owner, "__dict__", {})
    return attributes.get(name) is attribute


def _contents(value: Any, visited: set[int]) -> Iterator[Contents]:
    """The guards of a container and of those in it."""
    if isinstance(value, (list, tuple, dict, set)) and id(value) not in visited:
        visited.add(id(value))
        contents = Contents(value)
        if not isinstance(value, tuple):
            yield contents
        for item in contents.value:
            yield from _contents(item, visited)


def _paths(code: types.CodeType) -> Iterator[tuple[str, tuple[Step, ...]]]:
    """Names that the code, or a function inside, loads from elsewhere, with what is read of them at once."""
    name, steps, index = "", list[Step](), list[Any]()
    for one in dis.get_instructions(code):  # the last one returns or jumps, and so ends a path
        op = one.opname
        if op == "EXTENDED_ARG":  # a part of the next one
            continue
        if op in _ATTRIBUTES and name and not index:
            steps.append((".", one.argval))
        elif op in _CONSTANTS and name and not index:
            index = [one.argval]
        elif name and index and (op == "BINARY_SUBSCR" or (op == "BINARY_OP" and one.argrepr == "[]")):
            steps.append(("[", index.pop()))
        else:
            if name:
                yield name, tuple(steps)
            name, steps, index = (one.argval if op in _LOADS else ""), [], []
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _paths(inner)


def memory(captured: Iterable[Capture | Contents], module: str) -> dict[Buffer, str]:
    """The memory of arrays among the values, and how a function of `module` calls them."""
    names: dict[Buffer, str] = {}
    for c in captured:
        stack = [c.value]
        while stack:
            x = stack.pop()
            if isinstance(x, tuple):
                stack += x
            elif isinstance(x, ndarray):
                name = repr(c.name_in(module)) if isinstance(c, Capture) and x is c.value else None
                names[x._buffer] = name or "a captured array"
    return names


def same_constant(now: Any, then: Any) -> bool:
    """Whether two captured values compile to the same code."""
    if now is then:
        return True
    if isinstance(now, tuple) and isinstance(then, tuple):
        return len(now) == len(then) and all(map(same_constant, now, then))
    plain = isinstance(now, _PLAIN) and isinstance(then, _PLAIN)
    return plain and bool(static_key(now) == static_key(then))


def _package(module: Any) -> str:
    return str(module).partition(".")[0]
