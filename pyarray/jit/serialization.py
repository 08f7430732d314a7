"""Types of parameters and sites of checks as JSON takes them, and back: in saved kernels and in dumps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ..dtypes import BY_NAME
from ..lang.bounds_checks import Site
from ..lang.ir import ArrayType, Loc, ScalarType
from ..lang.loop_extents import LoopExtents
from ..lang.print_lowering import Line
from ..lang.specializations import Specialization


def _loc(row: dict[str, Any]) -> Loc:
    caller = row.get("caller")
    return Loc(**{**row, "caller": None if caller is None else (caller[0], _loc(caller[1]))})


def type_to_json(kind: ArrayType | ScalarType) -> dict[str, Any]:
    """A parameter's type."""
    if isinstance(kind, ScalarType):
        return {"kind": "number", "dtype": kind.dtype.name, "weak": kind.weak}
    layout = "strided" if kind.strided else "contiguous"
    specs = [asdict(x) for x in kind.specializations]
    return {"kind": "array", "dtype": kind.dtype.name, "ndim": kind.ndim, "layout": layout, "pins": specs}


def type_from_json(row: Mapping[str, Any]) -> ArrayType | ScalarType:
    """The type of which `type_to_json` gave the row."""
    dtype = BY_NAME[row["dtype"]]
    if row["kind"] == "number":
        return ScalarType(dtype, row["weak"])
    specs = tuple(Specialization(**x) for x in row["pins"])
    return ArrayType(dtype, row["ndim"], row["layout"] == "strided", specs)


def site_to_json(site: Site) -> dict[str, Any]:
    """A number of the failure record."""
    return asdict(site)


def site_from_json(row: Mapping[str, Any]) -> Site:
    """The site of which `site_to_json` gave the row, which may have been through JSON."""
    fields = {name: _tuples(value) for name, value in row.items() if name != "loc"}
    return Site(loc=_loc(row["loc"]), **fields)


def extents_from_json(row: Mapping[str, Any]) -> LoopExtents:
    """The extents of which `asdict` gave the row, which may have been through JSON."""
    return LoopExtents(_loc(row["loc"]), row["loop"], _tuples(row["sizes"]))


def line_from_json(row: Mapping[str, Any]) -> Line:
    """The line of which `asdict` gave the row, which may have been through JSON."""
    return Line(_tuples(row["template"]), row["words"])


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
