"""Where AMD's pseudocode isn't what the instruction does, or not in terms that can be translated.

`REPLACED` gives an instruction's pseudocode anew, with the reason; `HAND` are those that aren't computed lane by lane,
which C++ does by name. Names are without the suffixes of encodings.
"""

from __future__ import annotations

import re

# name: (pseudocode, why the published one can't be taken)
REPLACED: dict[str, tuple[str, str]] = {
    "V_EXP_F32": ("D0.f32 = exp2(S0.f32)", "pow(2.0F, x), which is computed in double here"),
    "V_EXP_F16": ("D0.f16 = exp2(S0.f16)", "as V_EXP_F32"),
    "V_SIN_F32": ("D0.f32 = sinpi(S0.f32)", "the product with 2 pi is not rounded; a whole number of turns is none"),
    "V_COS_F32": ("D0.f32 = cospi(S0.f32)", "as V_SIN_F32"),
    "S_BREV_B32": ("D0.u32 = brev32(S0.u32)", "a slice from low to high stands for the reversed bits"),
    "S_BREV_B64": ("D0.u64 = brev64(S0.u64)", "as S_BREV_B32"),
    "V_BFREV_B32": ("D0.u32 = brev32(S0.u32)", "as S_BREV_B32"),
    "V_LDEXP_F32": ("D0.f32 = ldexp(S0.f32, S1.i32)", "2.0 ** n overflows where the product doesn't"),
    "V_LDEXP_F64": ("D0.f64 = ldexp(S0.f64, S1.i32)", "as V_LDEXP_F32"),
    "V_LDEXP_F16": ("D0.f16 = ldexp(S0.f16, 32'I(S1.i16))", "as V_LDEXP_F32"),
    "V_CVT_PKRTZ_F16_F32": (
        "declare tmp : 32'B; tmp[15 : 0].f16 = f32_to_f16_rtz(S0.f32); tmp[31 : 16].f16 = f32_to_f16_rtz(S1.f32);"
        "D0 = tmp.b32",
        "it sets a rounding mode, which C can't set for one operation",
    ),
    "V_FMA_MIX_F32": ("D0.f32 = fma(S0.f32, S1.f32, S2.f32)", "operands come as OPSEL says: floats, or halves widened"),
    "V_FMA_MIXLO_F16": ("D0[15 : 0].f16 = f32_to_f16(fma(S0.f32, S1.f32, S2.f32))", "as V_FMA_MIX_F32"),
    "V_FMA_MIXHI_F16": ("D0[31 : 16].f16 = f32_to_f16(fma(S0.f32, S1.f32, S2.f32))", "as V_FMA_MIX_F32"),
    "V_PK_MOV_B32": ("D0[31 : 0] = S0.u32; D0[63 : 32] = S1.u32", "operands come as OPSEL says"),
    "V_SAD_HI_U8": ("D0.u32 = (sad(S0.u32, S1.u32, 0U) << 16U) + S2.u32", "it names another instruction's function"),
    "V_TRIG_PREOP_F64": ("D0.f64 = trig_preop(S0.f64, S1[4 : 0].u32)", "it has a number of 1201 bits"),
    "S_CVT_PK_RTZ_F16_F32": (
        "declare tmp : 32'B; tmp[15 : 0].f16 = f32_to_f16_rtz(S0.f32); tmp[31 : 16].f16 = f32_to_f16_rtz(S1.f32);"
        "D0 = tmp.b32",
        "as V_CVT_PKRTZ_F16_F32",
    ),
    "V_MAC_F16": ("D0.f16 = S0.f16 * S1.f16 + D0.f16", "it names OPSEL for what happens to the other half"),
    "V_CVT_F32_BF16": ("D0.f32 = bf16_to_f32(S0[15 : 0].bf16)", "names of halves differ between the tables"),
    "V_MAD_LEGACY_U16": ("D0.u16 = S0.u16 * S1.u16 + S2.u16", "as V_MAC_F16"),
    "V_MAD_LEGACY_I16": ("D0.i16 = S0.i16 * S1.i16 + S2.i16", "as V_MAC_F16"),
    "V_MAD_LEGACY_F16": ("D0.f16 = S0.f16 * S1.f16 + S2.f16", "as V_MAC_F16"),
    "V_FMA_LEGACY_F16": ("D0.f16 = fma(S0.f16, S1.f16, S2.f16)", "as V_MAC_F16"),
}  # fmt: skip
for _name in ("V_CVT_PK_RTZ_F16_F32",):
    REPLACED[_name] = REPLACED["V_CVT_PKRTZ_F16_F32"]
# What is scaled follows from the exponents as they are encoded, and V_DIV_FMAS scales as its addend says, with one
# rounding: probed on gfx1100 and gfx1201 by AMD (github.com/ROCm/rocm-systems/pull/11613).
_DIV_SCALE = """
D0.f{bits} = S0.f{bits}; VCC.u64[laneId] = 1'0U;
if (S2.f{bits} == 0.0) || (S1.f{bits} == 0.0) then D0.f{bits} = NAN.f{bits};
elsif exponent(S2.f{bits}) - exponent(S1.f{bits}) >= {far} then
  VCC.u64[laneId] = 1'1U; if S0.f{bits} == S1.f{bits} then D0.f{bits} = ldexp(S0.f{bits}, {by}); endif
elsif exponent(S1.f{bits}) == 0 then D0.f{bits} = ldexp(S0.f{bits}, {by});
elsif exponent(S1.f{bits}) >= {huge} then
  if exponent(S2.f{bits}) - exponent(S1.f{bits}) <= -{far} then
    VCC.u64[laneId] = 1'1U; if S0.f{bits} == S1.f{bits} then D0.f{bits} = ldexp(S0.f{bits}, -{by}); endif
  else D0.f{bits} = ldexp(S0.f{bits}, -{by}); endif
elsif exponent(S2.f{bits}) - exponent(S1.f{bits}) <= -{far} then
  VCC.u64[laneId] = 1'1U; if S0.f{bits} != S1.f{bits} then D0.f{bits} = ldexp(S0.f{bits}, {by}); endif
elsif exponent(S2.f{bits}) <= {tiny} then D0.f{bits} = ldexp(S0.f{bits}, {by}); endif
"""
_DIV_FMAS = """
if VCC.u64[laneId] then
  if exponent(S2.f{bits}) > {one} then D0.f{bits} = fma_ldexp(S0.f{bits}, S1.f{bits}, S2.f{bits}, {by});
  else D0.f{bits} = fma_ldexp(S0.f{bits}, S1.f{bits}, S2.f{bits}, -{by}); endif
else D0.f{bits} = fma(S0.f{bits}, S1.f{bits}, S2.f{bits}); endif
"""
for _numbers in (
    {"bits": 32, "by": 64, "far": 96, "huge": 253, "tiny": 24, "one": 127},
    {"bits": 64, "by": 128, "far": 768, "huge": 2045, "tiny": 53, "one": 1023},
):
    REPLACED[f"V_DIV_SCALE_F{_numbers['bits']}"] = (_DIV_SCALE.format(**_numbers), "it tests quotients, not exponents")
    REPLACED[f"V_DIV_FMAS_F{_numbers['bits']}"] = (_DIV_FMAS.format(**_numbers), "it scales all by one power")
# gfx942 has the fused ones at the numbers at which the table for CDNA has those of gfx900
for _tail in ("MIX_F32", "MIXLO_F16", "MIXHI_F16"):
    REPLACED["V_MAD_" + _tail] = (REPLACED["V_FMA_" + _tail][0], "on gfx942 the number is that of V_FMA_" + _tail)

# Edits of the published text: (name, pattern, replacement, reason)
EDITED: list[tuple[str, str, str, str]] = [
    ("V_DIV_FIXUP_F32", r"UNDERFLOW_F32", "0.0F", "the value is named, not given; rounded to nearest it is zero"),
    ("V_DIV_FIXUP_F64", r"UNDERFLOW_F64", "0.0", "as V_DIV_FIXUP_F32"),
    ("V_DIV_FIXUP_F32", r"OVERFLOW_F32", "INF.f32", "as V_DIV_FIXUP_F32, and infinity"),
    ("V_DIV_FIXUP_F64", r"OVERFLOW_F64", "INF.f64", "as V_DIV_FIXUP_F32, and infinity"),
    (
        "V_DIV_FIXUP_F(32|64)", r"else\s+(D0\.f(\d+) = sign_out \? -abs)",
        r"elsif isNAN(64'F(S0.f\2)) then D0.f\2 = sign_out ? -INF.f\2 : +INF.f\2; else \1",
        "of a quotient that overflows the steps before make NaN; found where V_DIV_FMAS is",
    ),
]  # fmt: skip

# Done by C++ (`handler_of`): they read other lanes, memory, the program counter, or more than 64 bits.
HAND = re.compile(
    r"V_READFIRSTLANE_B32|V_READLANE_B32|V_WRITELANE_B32|V_PERMLANE\w+|V_MOVREL\w+|V_SWAPREL\w+|V_(MFMA|SMFMAC|WMMA)\w+"
    r"|V_ACCVGPR_\w+|V_SWAP_B\d+|V_NOP|V_PIPEFLUSH|V_CLREXCP|S_(GETPC|SETPC|SWAPPC|CALL|RFE)\w*"
    r"|S_CBRANCH\w+|S_MOVREL\w+"
    r"|S_(GETREG|SETREG)\w*|S_SET_GPR_IDX\w+|S_WAITCNT\w*|S_SUBVECTOR\w*|S_WQM\w+|S_QUADMASK\w+|S_VERSION"
    r"|S_SENDMSG\w*|S_BARRIER\w*"
)


def plain(name: str) -> str:
    """An instruction's name without its encoding."""
    return re.sub(r"_(E32|E64)$", "", name)


def corrected(name: str, pseudocode: str) -> str:
    if name in REPLACED:
        return REPLACED[name][0]
    for pattern, old, new, _ in EDITED:
        if re.fullmatch(pattern, name):
            pseudocode = re.sub(old, new, pseudocode)
    return pseudocode
