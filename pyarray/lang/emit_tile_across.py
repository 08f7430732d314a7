"""C text that tests strides: whether neighbours in an array's memory are across the rows of a tile copied from it."""

from __future__ import annotations

from typing import Any, NamedTuple

from . import emit_views as views
from . import ir
from .summaries import names_in
from .tile_nests import nest_of


class Across(NamedTuple):
    """Whether an array has its neighbours in memory across the rows of a tile, and its stride along these; C text. With
    test "" it has."""

    test: str
    step: str


def find_across(code: Any, s: ir.For, load: Any) -> Across | None:
    """Of the array that a nest copies to a tile; None where it has no such neighbours."""
    kind, variables = load.array.type, [loop.variables[0] for loop in nest_of(s)[0]]
    places = [[k for k, i in enumerate(load.index) if variable in names_in(i)] for variable in variables]
    plain = all(len(found) == 1 and isinstance(load.index[found[0]], ir.Local) for found in places)
    if kind.reshape_of is not None or not isinstance(load.array, ir.Local) or not plain:
        return None
    array, size = code.expr(load.array), kind.dtype.itemsize
    along, step = (views.stride(kind, array, found[0]) for found in places)
    if kind.strided:
        return Across(f"{along} == {size} && {step} != {size}", step)
    return Across("", step) if places[0][0] == len(load.index) - 1 else None
