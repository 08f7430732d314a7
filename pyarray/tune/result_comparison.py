"""Compares the results of candidates, within a tolerance of the element type; where they differ, the
largest group that agrees is right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..array import ndarray
from ..array_convert import asnumpy
from ..dtypes import DType

Results = dict[str, "np.ndarray[Any, Any]"]


def copies_of(arrays: Mapping[str, ndarray], names: Sequence[str]) -> Results:
    """Copies of the arrays that were written."""
    return {name: np.array(asnumpy(arrays[name])) for name in names}


_MANTISSA_BITS = {
    "float8_e5m2": 2, "float8_e4m3fn": 3, "bfloat16": 7, "float16": 10, "float32": 23, "complex64": 23,
}  # fmt: skip


def tolerance(dtype: DType) -> float:
    """How much two orders of summation may differ, relative to the largest magnitude: the root of eps, 0 for
    integers."""
    if dtype.kind not in "fc":
        return 0.0
    return float(2.0 ** (-_MANTISSA_BITS.get(dtype.name, 52) / 2))


def difference(expected: Results, got: Results, arrays: Mapping[str, ndarray]) -> str | None:
    """None if they agree, else a message that says where they don't."""
    for name, reference in expected.items():
        if np.array_equal(reference, got[name]):  # which is quick
            continue
        rtol = tolerance(arrays[name]._dtype)
        wrong = _wrong(reference, got[name], rtol)
        count = int(np.count_nonzero(wrong))
        if count:
            index = tuple(int(k) for k in np.argwhere(wrong)[0])
            where = f"{name}[{', '.join(map(str, index))}]" if index else name
            more = f" ({count} of {reference.size} elements differ)" if count > 1 else ""
            return f"wrong result: {where} is {got[name][index]}, expected {reference[index]}{more}"
    return None


def _wrong(reference: Any, got: Any, rtol: float) -> Any:
    if reference.dtype.kind in "biu":
        return reference != got
    kind = np.complex128 if reference.dtype.kind == "c" else np.float64
    x, y = reference.astype(kind), got.astype(kind)
    with np.errstate(invalid="ignore", over="ignore"):
        finite = np.isfinite(x)
        scale = float(np.max(np.abs(x[finite]), initial=0.0))
        close = np.abs(x - y) <= rtol * scale
        same = (x == y) | (np.isnan(x) & np.isnan(y))
    return ~(same | (finite & close))


class MajorityVote:
    """Groups of candidates whose results agree. With a reference, its group is right from the start."""

    def __init__(self, arrays: Mapping[str, ndarray], reference: Results | None):
        self._arrays, self._reference = arrays, reference
        self._groups: list[tuple[Results, list[int]]] = []

    def add(self, number: int, results: Results) -> None:
        """The results of candidate `number`."""
        for group, members in self._groups:
            if difference(group, results, self._arrays) is None:
                members.append(number)
                return
        self._groups.append((results, [number]))

    def wrong(self) -> dict[int, str]:
        """Candidate → what is wrong with it."""
        if self._reference is not None:
            right = self._reference
        elif self._groups:
            right = max(self._groups, key=lambda group: (len(group[1]), -min(group[1])))[0]
        else:
            return {}
        mismatches: dict[int, str] = {}
        for results, members in self._groups:
            what = difference(right, results, self._arrays)
            if what is not None:
                against = "the reference" if self._reference is not None else "most candidates"
                mismatches |= dict.fromkeys(members, f"{what}, by {against}")
        return mismatches
