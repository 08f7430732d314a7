"""C++ of all instructions of a target: a function for each that computes lanes or scalars, and a table of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from .corrections import HAND, corrected, plain
from .pcode_c import Lane
from .pcode_syntax import PcodeError
from .tables import Tables

_SOURCES = {
    "src0": 0, "vsrc0": 0, "ssrc0": 0, "src1": 1, "vsrc1": 1, "ssrc1": 1, "src2": 2, "vsrc2": 2, "addr": 0, "data0": 1,
    "data": 1, "data1": 2,
}  # fmt: skip
_TARGETS = ("vdst", "sdst", "vdata", "sdata")
_LETTERS = {
    "FMT_NUM_F16": "Float16", "FMT_NUM_F32": "Float32", "FMT_NUM_F64": "Float64", "FMT_NUM_PK2_F16": "Packed16",
    "FMT_NUM_PK2_F32": "Packed32", "FMT_NUM_PK2_B32": "Packed32", "FMT_NUM_PK2_U16": "Pair", "FMT_NUM_PK2_I16": "Pair",
    "FMT_NUM_PK2_B16": "Pair", "FMT_NUM_BF16": "Float16", "FMT_NUM_PK2_BF16": "Packed16",
}  # fmt: skip
_SCALAR = ("SOP1", "SOP2", "SOPC", "SOPK")
_VECTOR = ("VOP1", "VOP2", "VOPC", "VOP3", "VOP3P", "VOP3SD")
DUAL = "V_DUAL_"
_HIGH_HALF = 0xFFFF0000  # where v_fma_mixhi writes: such a target is not half a register by its name


@dataclass
class Row:
    """An instruction: `kind` and `flags` are names of `isa.h`."""

    name: str
    kind: str
    bits: list[int]  # of the sources and of the target
    letters: list[str]
    flags: list[str]
    function: str  # '': none
    unknown: str = ""  # why there is no translation


def rows(tables: Tables) -> tuple[list[Row], dict[Any, int], list[str]]:
    """All instructions, their number by the package's member, and the C++ functions."""
    found: list[Row] = []
    numbers: dict[Any, int] = {}
    functions: dict[str, str] = {}  # name by body
    members = dict.fromkeys(op for encoding in tables.encodings for op in tables.opcodes(encoding).values())
    for member in members:
        numbers[_key(member)] = len(found)
        found.append(_row(tables, member, functions))
    return found, numbers, [f"static void {name}(void *given)\n{body}" for body, name in functions.items()]


def _key(member: Any) -> tuple[str, int]:
    return type(member).__name__, member.value


def number_of(numbers: dict[Any, int], member: Any) -> int:
    return numbers[_key(member)]


def _family(member: Any) -> str:
    return type(member).__name__.removesuffix("Op")


def _row(tables: Tables, member: Any, functions: dict[str, str]) -> Row:
    name, family = plain(member.name), _family(member)
    bits, letters = [0, 0, 0, 0], ["Bits"] * 4
    for field, (form, width, _) in tables.operands.get(member, {}).items():
        at = 3 if field in _TARGETS else _SOURCES.get(field)
        if at is not None:
            bits[at] = width
            letters[at] = _LETTERS.get(form.name, "Bits")
    row = Row(name, "Hand", bits, letters, [], "")
    if family not in _SCALAR + _VECTOR or HAND.fullmatch(name):
        return row
    text = corrected(name, tables.pseudocode_of(member, name))
    if not text:
        row.unknown = "there is no pseudocode"
        return row
    row.kind = "Scalar" if family in _SCALAR else "Vector"
    try:
        body = (_scalar if family in _SCALAR else _vector)(row, text)
    except (PcodeError, KeyError) as error:
        row.kind, row.unknown = "Hand", str(error)
        return row
    row.function = functions.setdefault(body, f"operation{len(functions)}")
    return row


def _wide(bits: int) -> int:
    return 64 if bits > 32 else 32


def _vector(row: Row, text: str) -> str:
    bits = [width or 32 for width in row.bits]
    places = {f"S{n}": _wide(bits[n]) for n in range(3)} | {
        "D0": _wide(row.bits[3] or 64), "D1": 1, "VCC": 64, "EXEC": 64, "SIMM32": 32, "NEG": 32,
    }  # fmt: skip
    if row.bits[3] == 0:  # a comparison, whose target is a mask
        places["D0"] = 64
    lane = Lane(places)
    c = lane.translate(text)
    if "D1" in lane.written:
        lane.masks.add("VCC")
        c += "\nVCC_bit = D1;"
    whole = (1 << max(16, row.bits[3])) - 1
    partial = "D0" in lane.written and lane.covered and lane.covered & whole != whole
    row.flags = [
        flag
        for flag, has in {
            "ReadsTarget": "D0" in lane.read or bool(partial), "WritesTarget": "D0" in lane.written,
            "WritesBits": "VCC" in lane.masks, "Compares": "D0" in lane.masks, "ComparesToExec": "EXEC" in lane.masks,
            "ReadsBits": "VCC" in lane.read, "HalfTarget": row.bits[3] == 16 and lane.covered != _HIGH_HALF,
        }.items()
        if has
    ]  # fmt: skip
    lines = ["{", "Lanes &a = *(Lanes *)given;", "uint64_t bits = 0;", "for (int lane = 0; lane < a.count; ++lane) {"]
    lines += [_fetched(name, places[name]) for name in ("S0", "S1", "S2") if name in lane.read]
    d_type = f"uint{places['D0']}_t"
    if "D0" in lane.written or "D0" in lane.read:
        old = "ReadsTarget" in row.flags
        high = " | (uint64_t)a.to_high[lane] << 32" if places["D0"] == 64 else ""
        lines.append(f"{d_type} D0 = {f'a.to_low[lane]{high}' if old else '0'};")
    lines += ["uint32_t D1 = 0;"] if "D1" in lane.written else []
    lines += ["const uint32_t SIMM32 = a.literal;"] if "SIMM32" in lane.read else []
    lines += ["const uint32_t NEG = a.negations;"] if "NEG" in lane.read else []
    lines += ["const uint32_t VCC_in = a.bits_in >> lane & 1;"] if "VCC" in lane.read else []
    masks = [f"{name}_bit" for name in ("D0", "VCC", "EXEC") if name in lane.masks]
    if "EXEC_bit = (" not in c:
        masks = [name for name in masks if name != "EXEC_bit"] or masks
    lines += [f"uint32_t {name} = 0;" for name in masks]
    lines.append(c)
    if "D0" in lane.written:
        lines.append("a.to_low[lane] = (uint32_t)D0;")
        lines += ["a.to_high[lane] = D0 >> 32;"] if places["D0"] == 64 else []
    lines += [f"bits |= (uint64_t){masks[0]} << lane;"] if masks else []
    return "\n".join([*lines, "}", "a.bits_out = bits;", "}"])


def _fetched(name: str, bits: int) -> str:
    at = name[1]
    high = f" | (uint64_t)a.high[{at}][lane] << 32" if bits == 64 else ""
    return f"const uint{bits}_t {name} = a.low[{at}][lane]{high};"


def _scalar(row: Row, text: str) -> str:
    places = {"S0": 64, "S1": 64, "D0": 64, "VCC": 64, "EXEC": 64, "PC": 64, "SCC": 1, "SIMM16": 16, "SIMM32": 32}
    lane = Lane(places)
    c = lane.translate(text)
    row.flags = [
        flag
        for flag, has in {
            "ReadsTarget": "D0" in lane.read, "WritesTarget": "D0" in lane.written, "WritesScc": "SCC" in lane.written,
            "WritesExec": "EXEC" in lane.written, "WritesVcc": "VCC" in lane.written,
        }.items()
        if has
    ]  # fmt: skip
    lines = ["{", "Scalars &a = *(Scalars *)given;"]
    lines += [
        f"uint64_t {name} = {source};"
        for name, source in {
            "S0": "a.source[0]", "S1": "a.source[1]", "D0": "a.target", "VCC": "a.vcc", "EXEC": "a.exec", "PC": "a.pc",
        }.items()
        if re.search(rf"\b{name}\b", c)
    ]  # fmt: skip
    lines += ["uint32_t SCC = a.scc;", "const uint32_t SIMM16 = a.immediate, SIMM32 = a.literal;", "(void)SIMM32;"]
    lines += ["(void)SIMM16;", c, "a.scc = SCC;"]
    lines += [f"a.{to} = {name};" for name, to in {"D0": "target", "EXEC": "exec", "VCC": "vcc"}.items()
              if name in lane.written]  # fmt: skip
    return "\n".join([*lines, "}"])


def table(found: list[Row]) -> str:
    """The C++ table `operations`."""
    lines = ["const Operation operations[] = {"]
    for row in found:
        words = [max(1, width // 32) if width else 0 for width in row.bits]
        letters = [letter if row.bits[n] != 16 or letter != "Bits" else "Half" for n, letter in enumerate(row.letters)]
        flags = "|".join(row.flags) or "0"
        lines.append(
            f'{{"{row.name}", {row.kind}, {{{", ".join(map(str, words[:3]))}}}, {words[3]}, '
            f"{{{', '.join(letters[:3])}}}, {letters[3]}, {flags}, {row.function or 'nullptr'}}},"
        )
    return "\n".join([*lines, "};"])
