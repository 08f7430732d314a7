"""A fusion group: the nodes that one kernel computes, and the index of each in an iteration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import sympy
import torch
from torch.fx import Node

from .index import Digits, Index, Shape

_HOSTS = {"cpu"}


def is_gpu(device: torch.device) -> bool:
    """Whether a device runs kernels on a grid."""
    return device.type not in _HOSTS


@dataclass(eq=False)
class FusionGroup:
    """The nodes of one kernel. `index` has the element that an iteration computes of each, `source` that
    which a reduction reads; `inner` are the digits of reductions. `canonical` is the index into an array of
    `shape`."""

    number: int
    digits: Digits
    shape: Shape
    canonical: Index
    device: torch.device
    nodes: list[Node] = field(default_factory=list)
    index: dict[Node, Index] = field(default_factory=dict)
    source: dict[Node, Index] = field(default_factory=dict)
    level: dict[Node, int] = field(default_factory=dict)  # of reductions: how many follow each other
    rows: set[Node] = field(default_factory=set)  # nodes with an element per row
    inner: tuple[sympy.Symbol, ...] | None = None
    columns: bool = False  # the reduced axes aren't the nearest ones

    @classmethod
    def over(cls, number: int, shape: Shape, device: torch.device, nodes: Sequence[Node] = ()) -> Self:
        """A group whose iterations are the elements of an array of `shape`: those of `nodes`."""
        digits = Digits()
        canonical = tuple(digits.add(n) for n in shape)
        return cls(number, digits, shape, canonical, device, list(nodes), dict.fromkeys(nodes, canonical))

    def current(self) -> None:
        """Rewrites all indices by the current digits, after splits."""
        self.canonical = self.digits.current(self.canonical)
        for table in (self.index, self.source):
            for node, index in table.items():
                table[node] = self.digits.current(index)
        if self.inner is not None:
            free = set().union(*(self.digits.current((d,))[0].free_symbols for d in self.inner))
            self.inner = tuple(d for d in self.digits.sizes if d in free)

    def state(self) -> tuple[Any, ...]:
        """A copy of everything that a split of digits changes, for `restore`."""
        sizes, replaced = dict(self.digits.sizes), dict(self.digits.replaced)
        return sizes, replaced, self.canonical, dict(self.index), dict(self.source), self.inner

    def restore(self, state: tuple[Any, ...]) -> None:
        """Restores a `state`, after an attempt to fuse that failed."""
        self.digits.sizes, self.digits.replaced, self.canonical, self.index, self.source, self.inner = state

    def reductions(self) -> list[Node]:
        """The reductions among the group's nodes."""
        return [n for n in self.nodes if n in self.source]


@dataclass(eq=False)
class ProductGroup(FusionGroup):
    """A matrix product, the first of the nodes, and the pointwise nodes of its epilogue; only the last one has
    other users. `reads` are the nodes whose memory is read, `why` is the reason of the choice."""

    reads: tuple[Node, ...] = ()
    why: str = ""
