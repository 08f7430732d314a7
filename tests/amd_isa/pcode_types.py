"""Types of the pseudocode, and C expressions that turn values of one into another.

A value is (C expression, type). Integers of up to 32 bits are in `uint32_t` and `int32_t`, normalised to their
width; halves and bfloat16 are in `float`, rounded after each operation.
"""

from __future__ import annotations

Type = tuple[str, int]
U1, U32, U64, I32, I64 = ("u", 1), ("u", 32), ("u", 64), ("i", 32), ("i", 64)
F16, F32, F64, BF16 = ("f", 16), ("f", 32), ("f", 64), ("bf", 16)
Value = tuple[str, Type | None]  # None: an integer literal, of whatever type the other operand has


def c_type(kind: Type) -> str:
    letter, bits = kind
    if letter in ("f", "bf"):
        return "double" if bits == 64 else "float"
    sign = "u" if letter != "i" else ""
    if bits > 64:
        return "unsigned __int128" if sign else "__int128"
    return f"{sign}int{32 if bits <= 32 else 64}_t"


def is_float(kind: Type | None) -> bool:
    return kind is not None and kind[0] in ("f", "bf")


def normal(c: str, kind: Type) -> str:
    """A C value of the right C type, with the bits that `kind` has."""
    letter, bits = kind
    if kind == F16:
        return f"isa_h({c})"
    if kind == BF16:
        return f"isa_b({c})"
    if is_float(kind):
        return f"({c_type(kind)})({c})"
    if bits in (32, 64, 128):
        return f"({c_type(kind)})({c})"
    if letter == "i" and bits > 64:  # wide enough for what is computed with it
        return f"(__int128)({c})"
    if letter == "i":
        if bits in (8, 16):
            return f"(int32_t)(int{bits}_t)({c})"
        word = 32 if bits < 32 else 64
        return f"((int{word}_t)((uint{word}_t)({c}) << {word - bits}) >> {word - bits})"
    return f"(({c_type(kind)})({c}) & {mask(bits)})"


def mask(bits: int) -> str:
    if bits > 64:
        return f"(((unsigned __int128)1 << {bits}) - 1)"
    return f"{(1 << bits) - 1:#x}{'u' if bits <= 32 else 'ull'}"


def bits_of(value: Value) -> Value:
    """The bits of a value, as an unsigned integer of its width."""
    c, kind = value
    if kind is None:
        return f"(uint32_t)({c})", U32
    letter, bits = kind
    if is_float(kind):
        name = {F16: "isa_h_bits", BF16: "isa_b_bits", F32: "isa_f_bits", F64: "isa_d_bits"}[kind]
        return f"{name}({c})", ("u", bits)
    return (c, kind) if letter != "i" else (normal(c, ("u", bits)), ("u", bits))


def reinterpret(value: Value, kind: Type) -> Value:
    """The low bits of a value as another type."""
    if value[1] == kind:
        return value
    if kind[0] == "b":
        kind = ("u", kind[1])
    c, had = bits_of(value)
    if is_float(kind):
        name = {F16: "isa_h_from", BF16: "isa_b_from", F32: "isa_f_from", F64: "isa_d_from"}[kind]
        return f"{name}({c})", kind
    if had[1] <= kind[1] and kind[0] == "u":
        return f"({c_type(kind)})({c})", kind
    if had[1] < kind[1] and value[1] and value[1][0] == "i":  # widened by its sign
        return normal(value[0], kind), kind
    return normal(c, kind), kind


def convert(value: Value, kind: Type) -> str:
    """The C expression of a value in a type: the same number where both are integers or both are floats."""
    c, had = value
    if kind[0] == "b":
        kind = ("u", kind[1])
    if had == kind:
        return c
    if is_float(kind) and had is None:
        return normal(c, kind)
    if is_float(kind) != is_float(had):
        return reinterpret(value, kind)[0] if had is not None else normal(c, kind)
    if not is_float(kind) and had is not None and had[0] == "u" and kind[0] == "u" and had[1] <= kind[1]:
        return f"({c_type(kind)})({c})"
    return normal(c, kind)


def common(x: Type | None, y: Type | None) -> Type | None:
    """The type in which two operands meet."""
    if x is None or y is None:
        return x or y
    if is_float(x) or is_float(y):
        floats = [kind for kind in (x, y) if is_float(kind)]
        return max(floats, key=lambda kind: kind[1])
    if x[1] != y[1]:
        return max(x, y, key=lambda kind: kind[1])
    return x if x[0] == "u" else y


def shifted(operator: str, x: Value, y: Value, constant: int | None) -> Value:
    """A shift by `y`, whose value is `constant` if it is one: 0, or the sign, from the width of the word on."""
    kind = x[1] or I32
    word, at = max(32, kind[1]), y[0]
    if word > 64:
        return normal(f"({x[0]}) {operator} ({at})", kind), kind
    known = constant is not None and constant < word
    value = f"({c_type(kind)})({x[0]})" if operator == ">>" else f"(uint{word}_t)({x[0]})"
    if known or (y[1] is not None and 1 << y[1][1] <= word):
        return normal(f"{value} {operator} ({at})", kind), kind
    past = "0" if operator == "<<" or kind[0] != "i" else f"(({x[0]}) < 0 ? -1 : 0)"
    return normal(f"((uint32_t)({at}) >= {word} ? {past} : {value} {operator} ({at}))", kind), kind
