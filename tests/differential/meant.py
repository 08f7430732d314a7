"""Intended differences: those that a row of `docs/deviations.py` names."""

from __future__ import annotations

import importlib.util
import sys
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from .compare import Difference
from .operands import Case

_PATH = Path(__file__).resolve().parents[2] / "docs" / "deviations.py"


def _table() -> Any:
    spec = importlib.util.spec_from_file_location("deviations", _PATH)
    assert spec is not None
    assert spec.loader is not None
    made = sys.modules["deviations"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made.DEVIATIONS


DEVIATIONS = _table()


def _has(kinds: str) -> Any:
    return lambda case: any(np.dtype(_numpy(d)).kind in kinds for d in case.dtypes)


def _numpy(dtype: str) -> str:
    return "float32" if dtype == "bfloat16" else dtype


def _only(kinds: str) -> Any:
    return lambda case: all(np.dtype(_numpy(d)).kind in kinds for d in case.dtypes)


# what a row's `when` says, of a case
CONDITIONS: dict[str, Any] = {
    "": lambda case: True,
    "bool": _has("b"),
    "integers": _has("biu"),
    "all integers": _only("biu"),
    "floats": _has("f"),
    "complex": _has("c"),
    "half": lambda case: "float16" in case.dtypes or "bfloat16" in case.dtypes,
    "bfloat16": lambda case: "bfloat16" in case.dtypes,
    "NaN": lambda case: any(m.values in ("any", "specials") for m in case.memories),
    "empty": lambda case: any(0 in x.shape for x in case.operands()),
    "repeats": lambda case: any(x.repeats for x in case.operands()),
    "uint64": lambda case: "uint64" in case.dtypes,
    "shared": lambda case: len({x.memory for x in case.operands()}) < len(case.operands()),
    "mixed": lambda case: len(set(case.dtypes)) > 1,
    "Python integers": lambda case: any(type(x) is int for x in (*case.args, *case.kwargs.values())),
}


def by(case: Case, difference: Difference) -> str:
    """What the table calls this difference; "" for one that is not meant."""
    for row in DEVIATIONS:
        for function, aspect, when in row.checks:
            if aspect == difference.aspect and fnmatchcase(case.row.name, function) and CONDITIONS[when](case):
                return str(row.what)
    return ""
