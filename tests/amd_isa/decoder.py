"""C++ tables of a target's encodings, from the package's classes: which bits are fixed, which are fields."""

from __future__ import annotations

from typing import Any

from .operations import DUAL, number_of
from .tables import Tables

# Fields by the names of `isa.h`, in an order of their own: src0 is `Src0` there.
_SKIPPED = ("encoding", "seg", "x2encoding", "literal", "gds", "nv")
_FAMILIES = ("SOP1", "SOP2", "SOPC", "SOPK", "SOPP", "SMEM", "VOP1", "VOP2", "VOPC", "VOP3SD", "VOP3P", "VOP3",
             "VOPD", "DS", "FLAT", "GLOBAL", "SCRATCH", "MUBUF")  # fmt: skip
_VARIANTS = {"_SDWA_SDST": 249, "_SDWA": 249, "_DPP16": 250, "_DPP8": 233}


def _package() -> Any:
    from tinygrad.renderer.amd import dsl

    return dsl


def classes(tables: Tables) -> list[Any]:
    """All encodings: those that are tried, and those that follow from one of them."""
    found = list(tables.encodings)
    module = tables.module("ins")
    for encoding in list(found):
        for suffix in ("_LIT", "_DPP16", "_DPP8", "_SDWA", "_SDWA_SDST"):
            longer = getattr(module, encoding.__name__ + suffix, None)
            if longer is not None and longer not in found:
                found.append(longer)
    return found


def _family(name: str) -> str:
    if "MFMA" in name:
        return "MFMA"
    return next((family for family in _FAMILIES if name.startswith(family)), "OTHER")


def field_names(both: list[Tables]) -> list[str]:
    """Of all targets, so that they share C++ files."""
    names = {name for tables in both for encoding in classes(tables) for name, _ in encoding._fields}
    return sorted(names - set(_SKIPPED) - {"op", "opx", "opy"}) + ["opx", "opy"]


def c_name(field: str) -> str:
    return "F_" + field


def fields_header(both: list[Tables]) -> str:
    names = field_names(both)
    return f"enum Field {{ {', '.join(map(c_name, names))}, FIELDS = {len(names)} }};\n"


def _field_row(name: str, field: Any) -> str:
    """Name, lowest bit, width, and what is added or multiplied: registers are numbered as sources are."""
    dsl = _package()
    scale = 0
    if isinstance(field, dsl.VGPRField):
        scale = 1  # plus 256
    elif isinstance(field, dsl.AlignedSGPRField):
        scale = field._align
    elif isinstance(field, dsl.VDSTYField):
        scale = 255
    return f"{{{c_name(name)}, {field.lo}, {field.hi - field.lo + 1}, {scale}}}"


def _encoding(tables: Tables, encoding: Any, numbers: dict[Any, int], opcodes: dict[str, str]) -> str:
    dsl = _package()
    name = encoding.__name__
    fixed = [
        f"{{{field.lo // 32}, {field.lo % 32}, {field.mask:#x}, {field.default:#x}}}"
        for _, field in encoding._fields
        if isinstance(field, dsl.FixedBitField)
    ]
    fields = [
        _field_row(n, f) for n, f in encoding._fields
        if n not in (*_SKIPPED, "op") and not isinstance(f, dsl.FixedBitField)
    ]  # fmt: skip
    op = next(field for n, field in encoding._fields if n in ("op", "opx"))
    wide = next((field for n, field in encoding._fields if n == "opy"), op)
    known = {wide._enum(v).value: wide._enum(v) for v in [m.value for m in wide._enum]} if wide is not op else (
        tables.opcodes(encoding))  # fmt: skip
    values = [-1] * (1 << (wide.hi - wide.lo + 1))
    for value, member in known.items():
        values[value] = _dual(tables, member, numbers) if name.startswith("VOPD") else number_of(numbers, member)
    listed = ", ".join(map(str, values))
    array = opcodes.setdefault(listed, f"opcodes{len(opcodes)}")
    variant = next((value for suffix, value in _VARIANTS.items() if name.endswith(suffix)), 0)
    longer = [next((f'"{c.__name__}"' for c in classes(tables) if c.__name__ in names), "nullptr") for names in (
        (name + "_LIT",), (name + "_DPP16",), (name + "_SDWA", name + "_SDWA_SDST"))]  # fmt: skip
    return (
        f'{{"{name}", {_family(name)}, {encoding._base_size}, {variant}, {{{", ".join(fixed)}}}, {op.lo}, '
        f"{op.hi - op.lo + 1}, {array}, {{{', '.join(fields)}}}, {{{', '.join(longer)}}}}},"
    )


def _dual(tables: Tables, member: Any, numbers: dict[Any, int]) -> int:
    """The instruction that half of a VOPD is."""
    wanted = "V_" + member.name.removeprefix(DUAL)
    for encoding in tables.encodings:
        if encoding.__name__.startswith(("VOP1", "VOP2")):
            for op in encoding.op._enum:
                if op.name in (wanted, wanted + "_E32"):
                    return number_of(numbers, op)
    return -1


def tables_source(tables: Tables, numbers: dict[Any, int]) -> str:
    """The C++ table `encodings`."""
    opcodes: dict[str, str] = {}
    rows = [_encoding(tables, encoding, numbers, opcodes) for encoding in classes(tables)]
    arrays = [f"static const int16_t {name}[] = {{{values}}};" for values, name in opcodes.items()]
    tried = f"extern const size_t tried = {len(tables.encodings)};"
    return "\n".join([*arrays, "const std::vector<Encoding> encodings = {", *rows, "};", tried])
