"""C text of the struct of argument slots, for kernels that are written as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import lang


def slot_fields(params: Sequence[tuple[str, Any]], debug: bool) -> str:
    """The fields of the struct, in the order of the parameters."""
    text = ""
    for name, kind in params:
        if isinstance(kind, lang.ir.ArrayType):
            text += "".join(
                f"    {ctype}{name}_{field};\n" for ctype, field in lang.emit_views.struct_fields(kind, debug)
            )
        elif kind.dtype.kind == "c":
            text += f"    double {name}_re, {name}_im;\n"
        else:
            text += f"    {kind.dtype.ctype} {name};\n"
    return text
