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


class _ChildrenOf(dict[type, Any]):
    """A function of a class that lists the sub-nodes of a node; None of a class whose nodes have none. It is made from
    text, as the `__init__` of a dataclass is: most of what passes do begins here."""

    def __missing__(self, kind: type) -> Callable[[Any], list[Any]] | None:
        types = {f.name: str(f.type) for f in fields(kind)}
        names, function = _child_fields[kind] or (), None
        if names:
            items = ", ".join(f"{'*' * types[name].startswith('tuple')}node.{name}" for name in names)
            optional = any(types[name].endswith("None") for name in names)
            function = eval(f"lambda node: [{'x for x in (' * optional}{items}{',) if x is not None' * optional}]")
        return self.setdefault(kind, function)


_child_fields, _children_of = _ChildFields(), _ChildrenOf()


def children(node: Any) -> list[Any]:
    """Direct sub-nodes, in source order."""
    function = _children_of[type(node)]
    return function(node) if function is not None else []


def walk(*nodes: Any) -> Iterator[Any]:
    """These nodes and everything below them, parents first."""
    stack, functions = list(nodes[::-1]), _children_of
    while stack:
        node = stack.pop()
        yield node
        function = functions[type(node)]
        if function is not None:
            stack += function(node)[::-1]


def rewrite(node: Any, change: Callable[[Any], Any], skips: Callable[[Any], bool] | None = None) -> Any:
    """A copy of the tree in which `change` has been applied to every node, children first, but for those in nodes that
    `skips` holds of."""
    if skips is not None and skips(node):
        return node
    updates = {}
    for name in _child_fields[type(node)] or ():
        old = getattr(node, name)
        if type(old) is tuple:
            new: Any = tuple([x if _child_fields[type(x)] is None else rewrite(x, change, skips) for x in old])
            if not all(map(operator.is_, new, old)):
                updates[name] = new
        elif _child_fields[type(old)] is not None and (new := rewrite(old, change, skips)) is not old:
            updates[name] = new
    return change(replace(node, **updates) if updates else node)
