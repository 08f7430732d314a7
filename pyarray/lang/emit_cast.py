"""C text of conversions between element types."""

from __future__ import annotations

from ..dtypes import DType, float32, float64
from .printer import function_text


def cast(text: str, source: DType, target: DType) -> str:
    """Conversion between element types, as NumPy's astype does it on x86-64."""
    if source is target:
        return text
    if source.is_narrow:
        return cast(f"pa_f32_from_{source.suffix}({text})", _by_suffix("f32"), target)
    if target.kind == "b":
        return f"pa_cast_{source.suffix}_b({text})" if source.kind == "c" else f"({text} != 0)"
    if target.is_narrow:
        via = source.suffix if source.suffix in ("f32", "f64") else "f64"
        return f"pa_{target.suffix}_from_{via}({cast(text, source, _by_suffix(via))})"
    if source.kind == "c":
        part = "f32" if source.itemsize == 8 else "f64"
        if target.kind == "c":
            return f"pa_{target.suffix}_from_{source.suffix}({text})"
        return cast(f"({text}).re", _by_suffix(part), target)
    if target.kind == "c":
        part = "f32" if target.itemsize == 8 else "f64"
        return f"pa_make_{target.suffix}({cast(text, source, _by_suffix(part))}, 0)"
    if source.kind == "f" and target.kind in "iu":
        return f"pa_cast_{source.suffix}_{target.suffix}({text})"
    return f"(({target.ctype}){text})"


def saturate(function: str, source: DType, target: DType) -> tuple[str, str]:
    """(name, text) of the saturating cast of a uint64 to int64."""
    most = "0x7fffffffffffffffll"
    body = f"return n > {most} ? {most} : (int64_t)n;"
    return "saturate", function_text(f"{function} int64_t saturate(uint64_t n)", [body])


def bitcast(function: str, source: DType, target: DType) -> tuple[str, str]:
    """(name, text) of what takes the bits of one type as another."""
    name = f"bitcast_{source.suffix}_{target.suffix}"
    union = f"union {{ {source.ctype} x; {target.ctype} y; }} bits;"
    head = f"{function} {target.ctype} {name}({source.ctype} x)"
    return name, function_text(head, [union, "bits.x = x;", "return bits.y;"])


def _by_suffix(suffix: str) -> DType:
    return float32 if suffix == "f32" else float64
