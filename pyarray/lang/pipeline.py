"""The passes, in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .check import Site, check
from .dialect import DIALECTS
from .directions import directions
from .emit import emit
from .infer import infer
from .parse import Capture, FunctionSource
from .sequence import sequence
from .verify import verify


@dataclass(frozen=True)
class Program:
    """A lowered kernel: `text`, the `entry` symbol in it, live parameters in slot order with their types,
    `directions` by parameter, the `sites` that failure records point into (empty without debug), and the
    Python values compiled in."""

    name: str
    text: str
    entry: str
    params: tuple[tuple[str, Any], ...]
    directions: dict[str, str]
    sites: tuple[Site, ...]
    captures: tuple[Capture, ...] = ()


def lower(
    source: FunctionSource,
    params: Sequence[tuple[str, Any]],
    target: str,
    debug: bool = False,
    wraparound: bool = False,
) -> Program:
    """Kernel + parameter types → text for `target`. Raises `CompileError` for what is outside the
    language."""
    tree, captures = infer(source, params, wraparound)
    verify(tree)
    facts = directions(tree)
    sites: tuple[Site, ...] = ()
    if debug:
        tree, sites = check(tree)
    tree = verify(sequence(tree))
    text, entry = emit(tree, DIALECTS[target], debug)
    return Program(source.name, text, entry, tree.kernel.params, facts, sites, captures)
