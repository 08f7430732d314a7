"""The one traversal of the typed tree: which fields of a node hold nodes is found from its class."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from .loc import Loc
from .types import TYPES


class _ChildFields(dict[type, Any]):
    """Names of the fields of a class that hold nodes; None for what is no node. Looking takes long."""

    atoms = re.compile(r"(?:\W|\b(?:Loc|str|int|bool|None|tuple|Any|DType)\b)+")

    def __missing__(self, kind: type) -> tuple[str, ...] | None:
        names = None
        if is_dataclass(kind) and not issubclass(kind, (Loc, *TYPES)):
            names = tuple(f.name for f in fields(kind) if not self.atoms.fullmatch(str(f.type)))
        return self.setdefault(kind, names)


_child_fields = _ChildFields()


def children(node: Any) -> list[Any]:
    """Direct sub-nodes, in source order."""
    nodes, parts = [], _child_fields
    for name in parts[type(node)] or ():
        value = getattr(node, name)
        if type(value) is tuple:
            nodes += [item for item in value if parts[type(item)] is not None]
        elif parts[type(value)] is not None:
            nodes.append(value)
    return nodes


def walk(*nodes: Any) -> Iterator[Any]:
    """These nodes and everything below them, parents first."""
    stack, fields_of = list(nodes[::-1]), _child_fields
    while stack:
        node = stack.pop()
        yield node
        for name in reversed(fields_of[type(node)] or ()):  # most passes begin here: as `children`, without its lists
            value = getattr(node, name)
            if type(value) is tuple:
                for item in reversed(value):
                    if fields_of[type(item)] is not None:
                        stack.append(item)
            elif fields_of[type(value)] is not None:
                stack.append(value)


def rewrite(node: Any, change: Callable[[Any], Any]) -> Any:
    """A copy of the tree in which `change` has been applied to every node, children first."""

    def visit(value: Any) -> Any:
        if isinstance(value, tuple):
            changed = tuple([visit(item) for item in value])
            return value if all(map(operator.is_, changed, value)) else changed
        return value if _child_fields[type(value)] is None else rewrite(value, change)

    updates = {}
    for name in _child_fields[type(node)] or ():
        if (new := visit(old := getattr(node, name))) is not old and new != old:
            updates[name] = new
    return change(replace(node, **updates) if updates else node)
