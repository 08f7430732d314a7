"""Prints pyarray/array_operators.pyi: what the tables of `pyarray.api` add to `ndarray`, for type checkers.

`python docs/make_stubs.py` rewrites the file; with `--check` it changes nothing, and fails if it is stale.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import pyarray as pa
from pyarray.api.methods.operators import BINARY, COMPARISON, UNARY

ROOT = Path(__file__).resolve().parents[1]
STUB = ROOT / "pyarray" / "array_operators.pyi"
HEAD = '''"""What the tables of `pyarray.api` add to `ndarray`: printed by docs/make_stubs.py."""
# ruff: noqa: E501
# fmt: off

from collections.abc import Sequence
from typing import Any, Self

from numpy import generic
from numpy.typing import NDArray

from pyarray.array import ndarray
from pyarray.typing import ArrayLike, AxisLike, DTypeLike

Operand = ndarray | NDArray[Any] | generic | complex | Sequence[Any]

class Operators:
'''
KNOWN = {"Any", "None", "bool", "int", "float", "complex", "str", "tuple", "ndarray", "Sequence"}
KNOWN |= {"ArrayLike", "AxisLike", "DTypeLike"}


def operators() -> list[str]:
    """The lines of operators."""
    lines = []
    for name in [*BINARY, "matmul"]:
        lines.append(f"def __{name}__(self, other: Operand, /) -> ndarray: ...")
        lines.append(f"def __r{name}__(self, other: Operand, /) -> ndarray: ...")
        lines.append(f"def __i{name}__(self, other: Operand, /) -> Self: ...")
    for name in COMPARISON:
        ignored = "  # type: ignore[override]" if name in ("eq", "ne") else ""
        lines.append(f"def __{name}__(self, other: Operand, /) -> ndarray: ...{ignored}")
    lines += [f"def __{name}__(self) -> ndarray: ..." for name in UNARY]
    for name in ("divmod", "rdivmod"):
        lines.append(f"def __{name}__(self, other: Operand, /) -> tuple[ndarray, ndarray]: ...")
    lines.append("def __round__(self, ndigits: int | None = ..., /) -> Any: ...")
    lines += [f"def __{name}__(self) -> int: ..." for name in ("trunc", "floor", "ceil")]
    return lines


def annotation(text: Any) -> str:
    """An annotation of a function as a stub has it: Any where it names what the stub doesn't know."""
    words = set(re.findall(r"\w+", text)) if isinstance(text, str) else {"?"}
    return text if words <= KNOWN else "Any"


def method(name: str, function: Any) -> str:
    """The line of a method: the parameters of a function of the namespace after the array."""
    items, keywords = ["self"], False
    for p in list(inspect.signature(function).parameters.values())[1:]:
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            items.append(f"{'*' if p.kind is p.VAR_POSITIONAL else '**'}{p.name}: Any")
            keywords = True
            continue
        if p.kind is p.KEYWORD_ONLY and not keywords:
            items.append("*")
            keywords = True
        items.append(f"{p.name}: {annotation(p.annotation)}{'' if p.default is p.empty else ' = ...'}")
    result = annotation(inspect.signature(function).return_annotation)
    return f"def {name}({', '.join(items)}) -> {result}: ..."


def added() -> dict[str, Any]:
    """What `ndarray` has that its class statement doesn't define."""
    tree = ast.parse((ROOT / "pyarray" / "array.py").read_text(encoding="utf-8"))
    body = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "ndarray").body
    own = {n.name for n in body if isinstance(n, ast.FunctionDef)} | {"__slots__"}
    own |= {t.id for n in body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)}
    return {
        name: value
        for name, value in vars(pa.ndarray).items()
        if name not in own and not name.startswith("_") and not inspect.ismemberdescriptor(value)
    }


def text() -> str:
    """The file."""
    lines = operators()
    for name, value in sorted(added().items()):
        if isinstance(value, property):
            kind = annotation(inspect.signature(value.fget).return_annotation)
            lines += ["@property", f"def {name}(self) -> {kind}: ..."]
            if value.fset is not None:
                lines += [f"@{name}.setter", f"def {name}(self, value: Any) -> None: ..."]
        else:
            lines.append(method(name, value))
    return HEAD + "".join(f"    {line}\n" for line in lines)


def main() -> int:
    """The command line."""
    made = text()
    if "--check" in sys.argv:
        stale = STUB.read_text(encoding="utf-8") != made
        print("pyarray/array_operators.pyi is stale: run python docs/make_stubs.py" if stale else "current")
        return int(stale)
    STUB.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
