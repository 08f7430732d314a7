"""Functions, constants and operators of the pseudocode, by their types in C."""

from __future__ import annotations

from .pcode_types import BF16, F16, F32, F64, I32, U1, U32, U64, Type

# Functions of the pseudocode that C has: arguments (None: as they come), result (None: as the first argument).
ARITHMETIC = {"abs", "floor", "trunc", "sqrt", "fract", "sin", "cos", "log2"}
CONVERSIONS = {
    f"{a}_to_{b}": (kind_a, kind_b)
    for a, kind_a in {
        "f16": F16, "f32": F32, "f64": F64, "bf16": BF16, "i32": I32, "u32": U32, "i16": ("i", 16), "u16": ("u", 16),
        "i8": ("i", 8), "u8": ("u", 8), "i4": ("i", 4), "u4": ("u", 4), "fp8": ("u", 8), "bf8": ("u", 8),
    }.items()
    for b, kind_b in {
        "f16": F16, "f32": F32, "f64": F64, "bf16": BF16, "i32": I32, "u32": U32, "i16": ("i", 16), "u16": ("u", 16),
        "u8": ("u", 8), "snorm": ("i", 16), "unorm": ("u", 16), "fp8": ("u", 8), "bf8": ("u", 8),
    }.items()
}  # fmt: skip
CALLS = {
    "fma": (None, None, None), "fma_ldexp": (None, None, None, I32), "ldexp": (None, I32),
    "v_min_f16": (F16, F16), "v_max_f16": (F16, F16),
    "v_min_f32": (F32, F32), "v_max_f32": (F32, F32), "v_min3_f32": (F32,) * 3, "v_max3_f32": (F32,) * 3,
    "v_min3_f16": (F16,) * 3, "v_max3_f16": (F16,) * 3,
    "v_min_u32": (U32, U32), "v_max_u32": (U32, U32), "v_min_i32": (I32, I32), "v_max_i32": (I32, I32),
    "v_min_u16": (("u", 16),) * 2, "v_max_u16": (("u", 16),) * 2, "v_min_i16": (("i", 16),) * 2,
    "v_max_i16": (("i", 16),) * 2, "v_max3_u32": (U32,) * 3, "v_max3_i32": (I32,) * 3,
    "v_max3_u16": (("u", 16),) * 3, "v_max3_i16": (("i", 16),) * 3,
}  # fmt: skip
PREDICATES = {"isNAN", "isSignalNAN", "isQuietNAN", "isEven", "sign"}
OPERATORS = {"&&": "&&", "||": "||"}
COMPARISONS = {"==", "!=", "<>", "<", ">", "<=", ">="}
OWN = {  # of the corrections: result, C name
    "exp2": (None, "isa_exp2"), "sinpi": (F32, "isa_sinpi32"), "cospi": (F32, "isa_cospi32"),
    "brev32": (U32, "isa_brev32"), "brev64": (U64, "isa_brev64"), "f32_to_f16_rtz": (F16, "isa_f32_to_f16_rtz"),
    "trig_preop": (F64, "isa_two_over_pi"),
}  # fmt: skip
CONSTANTS = {"PI": ("3.14159265358979323846", F64), "INF": ("(double)INFINITY", F64), "SCC": ("SCC", U1)}


def typed(name: str, kind: Type) -> str:
    """The C function for operands of a type."""
    if name.startswith("v_"):
        return "isa_" + name
    return f"isa_{name}{'b' if kind == BF16 else ''}{kind[1]}"
