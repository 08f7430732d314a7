"""Values by way of variables that the source doesn't have: what is evaluated once, and before what."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .aggregates import leaves, transform
from .ir import (
    ArrayType,
    Assign,
    Atomic,
    Const,
    Expr,
    Invoke,
    Let,
    Loc,
    Local,
    ScalarType,
    Static,
    Stmt,
    walk,
)


class Temporaries:
    """`types` are those of all variables, `assigned` the names that have a value here."""

    types: dict[str, Any]
    assigned: set[str]
    temporaries: int

    def fresh(self, kind: Any) -> str:
        """A variable that the source doesn't have."""
        name = f".{self.temporaries}"
        self.temporaries += 1
        self.types[name] = kind
        self.assigned.add(name)
        return name

    def held(self, value: Expr, into: list[Stmt]) -> Expr:
        """`value` by way of a variable that is set in a statement before."""
        if isinstance(value, Const):
            return value
        name = self.fresh(value.type)
        into.append(Assign(value.loc, name, value))
        return Local(value.loc, value.type, name)

    def kept(self, value: Expr) -> tuple[Expr, Expr]:
        """`value` for its first use, and what stands for it in later ones."""
        if isinstance(value, (Const, Local)):
            return value, value
        local = Local(value.loc, value.type, self.fresh(value.type))
        return Let(value.loc, value.type, local.name, value, local), local

    def evaluated(self, values: list[Any], build: Callable[..., Any]) -> Any:
        """`build(*values)` where all of the values are evaluated once, in order, whatever `build` makes of
        them. Those without an effect are left where they stand."""
        lets: list[tuple[str, Expr]] = []
        given = list(values)
        for k, value in enumerate(values):
            if has_effect(value):
                given[k] = Local(value.loc, value.type, self.fresh(value.type))
                lets.append((given[k].name, value))
        return wrapped(build(*given), lets)

    def in_order(self, called: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
        """Arguments of a call by name, in the order of the call, as they are used in the order of `names`:
        the one that is used first evaluates all of them."""
        rank = {name: k for k, name in enumerate(names)}
        parts = {name: [x for _, x in leaves(name, v) if not isinstance(x, (Static, Const, Local))]
                 for name, v in called.items()}  # fmt: skip
        heavy = [part for name in called for part in parts[name]]
        first = [part for name in sorted(called, key=rank.__getitem__) for part in parts[name]]
        if heavy == first or not all(isinstance(part.type, (ScalarType, ArrayType)) for part in heavy):
            return called
        locals_ = {id(x): Local(x.loc, x.type, self.fresh(x.type)) for x in heavy}
        instead: dict[int, Expr] = {**locals_}
        lets = [(locals_[id(x)].name, x) for x in heavy]
        instead[id(first[0])] = wrapped(locals_[id(first[0])], lets)
        return {
            name: transform(name, value, lambda _, x: instead.get(id(x), x)) for name, value in called.items()
        }

    def picked(self, loc: Loc, group: Any, chosen: Any) -> Any:
        """`chosen`, a part of a group, where the other parts are evaluated for their effect. None where that
        can't be said."""
        values = [x for _, x in leaves("", group) if not isinstance(x, Static)]
        if not any(has_effect(x) and x is not chosen for x in values):
            return chosen
        if isinstance(chosen, Static) or not any(x is chosen for x in values):
            return None
        kept = Local(loc, chosen.type, self.fresh(chosen.type))
        lets = [
            (kept.name if x is chosen else self.fresh(x.type), x)
            for x in values
            if x is chosen or has_effect(x)
        ]
        return wrapped(kept, lets)


def wrapped(body: Any, lets: list[tuple[str, Expr]]) -> Any:
    """`body` after its variables."""
    for name, value in reversed(lets):
        body = Let(body.loc, body.type, name, value, body)
    return body


def has_effect(value: Any) -> bool:
    """Whether evaluating it may change something: it calls a function, is an atomic, or sets a variable."""
    return not isinstance(value, Static) and any(isinstance(n, (Atomic, Invoke, Let)) for n in walk(value))
