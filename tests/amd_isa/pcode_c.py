"""Pseudocode to C: what an instruction computes in one lane, or once for a wave, with the types of the pseudocode."""

from __future__ import annotations

from typing import Any

from .pcode_functions import ARITHMETIC, CALLS, COMPARISONS, CONSTANTS, CONVERSIONS, OPERATORS, OWN, PREDICATES, typed
from .pcode_syntax import PcodeError, parse
from .pcode_types import (
    F32,
    F64,
    I32,
    I64,
    U1,
    U32,
    U64,
    Type,
    Value,
    bits_of,
    c_type,
    common,
    convert,
    is_float,
    mask,
    normal,
    reinterpret,
    shifted,
)  # fmt: skip


class Lane:
    """C statements of one instruction. `places` are the registers that it may name, with their bits."""

    def __init__(self, places: dict[str, int]) -> None:
        self.places = places
        self.variables: dict[str, Type] = {}
        self.arrays: dict[str, Type] = {}
        self.functions: dict[str, Any] = {}
        self.constants: dict[str, int] = {}  # of loops that are unrolled here
        self.written: set[str] = set()
        self.read: set[str] = set()
        self.masks: set[str] = set()  # of which one bit is the lane's
        self.depth = 0
        self.covered = 0  # bits of D0 that are stored whatever it was

    def translate(self, text: str) -> str:
        body = self.block(parse(text))
        declared = [f"{c_type(kind)} {name} = 0;" for name, kind in self.variables.items()]
        return "\n".join([*declared, *body])

    def block(self, statements: list[Any]) -> list[str]:
        return [line for statement in statements for line in self.statement(statement)]

    def statement(self, tree: Any) -> list[str]:
        return getattr(self, "do_" + tree[0])(*tree[1:])

    def do_both(self, inner: Any, outer: Any) -> list[str]:
        if outer[1][0] == "index" and outer[1][1] == ("type", ("name", "EXEC"), U64):
            self.masks.add("EXEC")  # the same bits as the other mask
            return self.statement(inner)
        return [*self.statement(inner), *self.statement(outer)]

    def do_declare(self, name: str, kind: Type, length: int | None) -> list[str]:
        kind = ("u", kind[1]) if kind[0] == "b" else kind
        if length is None:
            self.variables[name] = kind
            return []
        self.arrays[name] = kind
        return [f"{c_type(kind)} {name}[{length}] = {{0}};"]

    def do_lambda(self, name: str, parameters: list[str], body: list[Any]) -> list[str]:
        self.functions[name] = (parameters, body)
        return []

    def do_break(self) -> list[str]:
        return ["break;"]

    def do_call(self, tree: Any) -> list[str]:
        if tree[0] == "call" and tree[1] in ("nop", "s_nop"):
            return []
        raise PcodeError(f"the statement {tree}")

    def do_if(self, branches: list[Any]) -> list[str]:
        lines = []
        for number, (test, body) in enumerate(branches):
            head = "else" if test is None else f"{'else ' if number else ''}if ({self.value(test)[0]})"
            lines += [head + " {", *self.block(body), "}"]
        return lines

    def do_for(self, name: str, first: Any, last: Any, body: list[Any]) -> list[str]:
        low, high = self.constant(first), self.constant(last)
        if low is None or high is None:
            raise PcodeError("a loop of unknown length")
        had = self.variables.get(name)
        self.variables[name] = I32
        lines = [f"for ({name} = {low}; {name} <= {high}; ++{name}) {{", *self.block(body), "}"]
        self.variables[name] = had or I32
        return lines

    def do_assign(self, place: Any, operator: str, value: Any) -> list[str]:
        if operator != "=":
            value = ("binary", operator[:-1], place, value)
        if place[0] == "join":
            return self.assign_joined(place[1], value)
        return self.store(place, self.value(value))

    def assign_joined(self, parts: list[Any], tree: Any) -> list[str]:
        whole = bits_of(self.value(tree))
        name, lines, at = f"joined{len(self.variables)}", [], 0
        self.variables[name] = ("u", 128)
        lines.append(f"{name} = {whole[0]};")
        for part in reversed(parts):
            bits = self.place_type(part)[1]
            kind = ("u", bits)
            lines += self.store(part, (normal(f"{name} >> {at}", kind), kind))
            at += bits
        return lines

    def place_type(self, place: Any) -> Type:
        if place[0] == "type":
            return place[2]
        if place[0] == "name":
            return self.variables.get(place[1]) or ("u", self.places[place[1]])
        raise PcodeError(f"the width of {place}")

    def store(self, place: Any, value: Value) -> list[str]:
        kind: Type | None = None
        if place[0] == "type":
            place, kind = place[1], place[2]
        if place[0] == "name":
            return self.store_name(place[1], kind, value)
        if place[0] == "slice":
            return self.store_bits(place[1], place[2], place[3], kind, value)
        if place[0] == "index":
            return self.store_element(place[1], place[2], kind, value)
        raise PcodeError(f"a value for {place}")

    def store_name(self, name: str, kind: Type | None, value: Value) -> list[str]:
        if name in ("ROUND_MODE", "prev_mode"):
            raise PcodeError("a change of the rounding mode")
        if name in self.places:
            self.written.add(name)
            width = ("u", self.places[name])
            if kind is None:
                return [f"{name} = {reinterpret(value, width)[0]};"]
            typed = (convert(value, kind), ("u", kind[1]) if kind[0] == "b" else kind)
            bits = bits_of(typed)
            return [f"{name} = {convert(bits, width)};"]
        if name not in self.variables:
            self.variables[name] = kind or value[1] or I32
            if self.variables[name][0] == "b":
                self.variables[name] = ("u", self.variables[name][1])
        own = self.variables[name]
        if kind is not None and kind != own:
            return [f"{name} = {reinterpret((convert(value, kind), kind), own)[0]};"]
        return [f"{name} = {convert(value, own)};"]

    def store_bits(self, place: Any, high: Any, low: Any, kind: Type | None, value: Value) -> list[str]:
        low_c, bits = self.range(high, low)
        first = self.constant(low)
        name, own = self.whole(place, covers=0 if first is None else ((1 << bits) - 1) << first)
        kind = kind or ("u", bits)
        part = bits_of((convert(value, kind), ("u", kind[1]) if kind[0] == "b" else kind))
        wide = c_type(("u", max(own[1], 32)))
        place_c = f"(({wide}){mask(bits)} << {low_c})"
        return [f"{name} = ({name} & ~{place_c}) | ((({wide}){convert(part, ('u', bits))} << {low_c}) & {place_c});"]

    def store_element(self, place: Any, index: Any, kind: Type | None, value: Value) -> list[str]:
        if place[0] == "name" and place[1] in self.arrays:
            own = self.arrays[place[1]]
            return [f"{place[1]}[{self.value(index)[0]}] = {convert(value, own)};"]
        if index == ("name", "laneId"):
            name = place[1][1] if place[0] == "type" else place[1]
            if name not in ("D0", "VCC", "EXEC"):
                raise PcodeError(f"a bit of {name}")
            self.masks.add(name)
            return [f"{name}_bit = ({self.test(value)});"]
        name, own = self.whole(place)
        wide, at = c_type(own), self.value(index)[0]
        return [f"{name} = ({name} & ~(({wide})1 << ({at}))) | (({wide})({self.test(value)}) << ({at}));"]

    def test(self, value: Value) -> str:
        c, kind = value
        return f"({c}) != 0" if kind != U1 else c

    def whole(self, place: Any, covers: int = 0) -> tuple[str, Type]:
        """A register or a variable of integers, of which a part is stored."""
        if place[0] == "type":
            place = place[1]
        if place[0] == "name" and place[1] in self.places:
            self.written.add(place[1])
            self.covered |= covers
            if not covers:
                self.read.add(place[1])
            return place[1], ("u", self.places[place[1]])
        if place[0] == "name":
            return place[1], self.variables.setdefault(place[1], U32)
        raise PcodeError(f"a part of {place}")

    def range(self, high: Any, low: Any) -> tuple[str, int]:
        """The lowest bit of a slice, and the number of its bits."""
        names = [*self.variables]
        widths = set()
        for trial in (0, 1):
            self.constants = dict.fromkeys(names, trial)
            top, bottom = self.constant(high), self.constant(low)
            self.constants = {}
            if top is None or bottom is None:
                raise PcodeError(f"the width of a slice {high} : {low}")
            widths.add(top - bottom + 1)
        if len(widths) != 1 or min(widths) < 1:
            raise PcodeError(f"a slice of several widths {high} : {low}")
        return self.value(low)[0], widths.pop()

    def constant(self, tree: Any) -> int | None:
        if tree[0] == "number" and isinstance(tree[2], int):
            return tree[2]
        if tree[0] == "name":
            return self.constants.get(tree[1])
        if tree[0] in ("type", "cast"):
            return self.constant(tree[1] if tree[0] == "type" else tree[2])
        if tree[0] == "binary":
            x, y = self.constant(tree[2]), self.constant(tree[3])
            if x is None or y is None:
                return None
            return {"+": x + y, "-": x - y, "*": x * y}.get(tree[1])
        return None

    # ---- expressions

    def value(self, tree: Any) -> Value:
        return getattr(self, "of_" + tree[0])(*tree[1:])

    def of_number(self, kind: Type | None, number: Any) -> Value:
        if isinstance(number, float):
            return f"{number!r}{'f' if kind != F64 else ''}", kind
        if kind is None:
            return (str(number), None) if number < 1 << 31 else (f"{number:#x}ull", U64 if number >> 32 else U32)
        suffix = {True: "ull" if kind[0] == "u" else "ll", False: "u" if kind[0] == "u" else ""}[kind[1] > 32]
        return f"{number:#x}{suffix}" if kind[1] > 8 else f"{number}{suffix}", kind

    def of_name(self, name: str) -> Value:
        if name == "laneId":
            return "lane", U32
        if name in self.places:
            self.read.add(name)
            return name, ("u", self.places[name])
        if name in self.variables:
            return name, self.variables[name]
        if name in CONSTANTS:
            return CONSTANTS[name]
        raise PcodeError(f"the name {name}")

    def of_member(self, tree: Any, name: str) -> Value:
        if tree == ("name", "WAVE_MODE") and name == "IEEE":
            return "1", U1
        raise PcodeError(f"the member {name}")

    def of_type(self, tree: Any, kind: Type) -> Value:
        if tree == ("name", "INF"):
            return ("(double)INFINITY" if kind[1] == 64 else "INFINITY"), kind
        if tree == ("name", "NAN"):
            return ("(double)NAN" if kind[1] == 64 else "NAN"), kind
        if tree[0] == "name" and tree[1].startswith(("OVERFLOW_F", "UNDERFLOW_F")):
            return self.of_name(tree[1])
        if tree[0] == "index" and tree[2] == ("name", "laneId"):
            return reinterpret(self.value(tree), kind)
        if kind[0] not in ("u", "i", "b", "f", "bf") or kind[1] > 128:
            raise PcodeError(f"the type {kind}")
        return reinterpret(self.value(tree), kind)

    def of_index(self, tree: Any, index: Any) -> Value:
        if tree[0] == "name" and tree[1] in self.arrays:
            return f"{tree[1]}[{self.value(index)[0]}]", self.arrays[tree[1]]
        name = tree[1][1] if tree[0] == "type" else tree[1]
        if index == ("name", "laneId"):
            if name not in ("VCC", "EXEC"):
                raise PcodeError(f"the lane's bit of {name}")
            self.read.add(name)
            return f"{name}_in", U1
        c, _ = bits_of(self.value(tree))
        return f"(uint32_t)(({c} >> ({self.value(index)[0]})) & 1)", U1

    def of_slice(self, tree: Any, high: Any, low: Any) -> Value:
        c, kind = bits_of(self.value(tree))
        low_c, bits = self.range(high, low)
        part = ("u", bits)
        if low_c == "0" and bits == kind[1]:
            return c, part
        return normal(f"({c}) >> ({low_c})", part), part

    def of_join(self, parts: list[Any]) -> Value:
        values = [bits_of(self.value(part)) for part in parts]
        total = sum(kind[1] for _, kind in values)
        wide = c_type(("u", total))
        terms, at = [], total
        for c, kind in values:
            at -= kind[1]
            terms.append(f"(({wide})({c}) << {at})")
        return f"({' | '.join(terms)})", ("u", total)

    def of_cast(self, kind: Type, tree: Any) -> Value:
        value = self.value(tree)
        if is_float(kind) and not is_float(value[1]):
            if tree[0] == "number":
                return reinterpret((value[0], ("u", kind[1])), kind)
            return normal(value[0], kind), kind
        if kind[0] == "b":
            kind = ("u", kind[1])
        return convert(value, kind), kind

    def of_unary(self, operator: str, tree: Any) -> Value:
        c, kind = self.value(tree)
        if operator == "!":
            return f"!({c})", U1
        if kind is None:
            return f"({operator}({c}))", None
        if operator == "-" and is_float(kind):
            return f"(-({c}))", kind
        if operator == "-" and kind[0] == "u":
            return normal(f"-({c})", kind), kind
        if operator == "-":
            return normal(f"0u - (uint{max(32, kind[1])}_t)({c})", kind), kind
        return normal(f"~({c})", kind), kind

    def of_choose(self, test: Any, yes: Any, no: Any) -> Value:
        x, y = self.value(yes), self.value(no)
        kind = common(x[1], y[1])
        if kind is None:
            return f"(({self.value(test)[0]}) ? {x[0]} : {y[0]})", None
        return f"(({self.value(test)[0]}) ? {convert(x, kind)} : {convert(y, kind)})", kind

    def of_binary(self, operator: str, left: Any, right: Any) -> Value:
        denormal = right[0] == "type" and right[1] == ("name", "DENORM")
        if operator == "==" and denormal:
            return f"isa_denormal{right[2][1]}({self.value(left)[0]})", U1
        x, y = self.value(left), self.value(right)
        if operator in ("<<", ">>"):
            return shifted(operator, x, y, self.constant(right))
        if operator == "**":
            return f"ldexpf({x[0]}, ({y[0]}) - 1)", F32
        kind = common(x[1], y[1])
        if operator in ("&&", "||"):
            return f"(({x[0]}) {operator} ({y[0]}))", U1
        if kind is not None:
            x, y = (convert(x, kind), kind), (convert(y, kind), kind)
        c_operator = OPERATORS.get(operator, operator)
        if operator == "<>":  # less or greater, which NaN isn't
            return f"(({x[0]}) < ({y[0]}) || ({x[0]}) > ({y[0]}))", U1
        if operator in COMPARISONS:
            return f"({x[0]} {c_operator} {y[0]})", U1
        if kind is None:
            return f"({x[0]} {c_operator} {y[0]})", None
        if kind[0] == "i" and kind[1] >= 32 and operator in "+-*":  # wraps
            word = f"({c_type(('u', kind[1]))})"
            return normal(f"{word}({x[0]}) {c_operator} {word}({y[0]})", kind), kind
        return normal(f"({x[0]}) {c_operator} ({y[0]})", kind), kind

    def of_call(self, name: str, arguments: list[Any]) -> Value:
        if name in self.functions:
            return self.inlined(name, arguments)
        values = [self.value(argument) for argument in arguments]
        if name in CONVERSIONS:
            kind, result = CONVERSIONS[name]
            if name in ("f32_to_unorm", "f32_to_snorm"):
                result = (result[0], 16)
            return f"isa_{name}({convert(values[0], kind)})", result
        if name in ("v_cvt_i16_f32", "v_cvt_u16_f32"):
            return f"isa_f32_to_{name[6]}16({convert(values[0], F32)})", (name[6], 16)
        if name == "signext":
            c, kind = values[0]
            return f"(int64_t)({normal(c, ('i', (kind or I32)[1]))})", I64
        if name == "signext_from_bit":
            return f"isa_signext({values[0][0]}, {values[1][0]})", values[0][1]
        if name in ("countbits", "bitCount", "count_ones"):
            return f"(int32_t)__builtin_popcountll({bits_of(values[0])[0]})", I32
        if name in ("sad", "v_sad_u8", "v_msad_u8"):
            given = ", ".join(convert(value, U32) for value in values)
            return f"isa_sad({given}, {'true' if name == 'v_msad_u8' else 'false'})", U32
        if name in OWN:
            result, own = OWN[name]
            result = result or values[0][1]
            tail = "" if OWN[name][0] else str(result[1])
            return f"{own}{tail}({', '.join(c for c, _ in values)})", result
        if name in CALLS:
            kinds = [kind or values[0][1] for kind in CALLS[name]]
            given = ", ".join(convert(value, kind) for value, kind in zip(values, kinds, strict=True))
            return f"{typed(name, kinds[0])}({given})", kinds[0]
        kind = values[0][1] or F64
        if name == "exponent":
            return f"isa_exponent{kind[1]}({values[0][0]})", I32
        if name in ("mantissa", "cvtToQuietNAN"):
            return f"isa_{name}{kind[1]}({values[0][0]})", kind
        if name == "isSignalNAN":  # a conversion to double, as the pseudocode has it, would make it quiet
            inner = self.value(arguments[0][2]) if arguments[0][0] == "cast" else values[0]
            return f"isa_isSignalNAN{inner[1][1]}({inner[0]})", U1
        if name == "isQuietNAN":
            inner = self.value(arguments[0][2]) if arguments[0][0] == "cast" else values[0]
            return f"(isnan({inner[0]}) && !isa_isSignalNAN{inner[1][1]}({inner[0]}))", U1
        if name in PREDICATES:
            return {"isNAN": "isnan", "isEven": "isa_even", "sign": "isa_sign"}[name] + f"({values[0][0]})", U1
        if name in ARITHMETIC:
            return f"{typed(name, kind)}({values[0][0]})", kind
        raise PcodeError(f"the function {name}")

    def inlined(self, name: str, arguments: list[Any]) -> Value:
        """A call of a function that the pseudocode defines: a block that ends with its value."""
        parameters, body = self.functions[name]
        self.depth += 1
        values = [self.value(argument) for argument in arguments]
        outer = dict(self.variables)
        own = {p: value[1] or I32 for p, value in zip(parameters, values, strict=True)}
        self.variables = {**self.variables, **own}
        lines = [f"{c_type(own[p])} {p} = {value[0]};" for p, value in zip(parameters, values, strict=True)]
        result, lines_of_body = self.returning(body)
        made = {k: v for k, v in self.variables.items() if k not in outer and k not in own}
        lines += [f"{c_type(kind)} {k} = 0;" for k, kind in made.items()]
        self.variables = outer
        self.depth -= 1
        given = "".join(lines) + f"{c_type(result)} value{self.depth} = 0;" + "".join(lines_of_body)
        return f"({{ {given} value{self.depth}; }})", result

    def returning(self, body: list[Any]) -> tuple[Type, list[str]]:
        kinds: list[Type] = []

        def walk(statements: list[Any]) -> list[str]:
            lines = []
            for tree in statements:
                if tree[0] == "return":
                    value = self.value(tree[1])
                    kinds.append(value[1] or I32)
                    lines.append(f"value{self.depth - 1} = {value[0]};")
                elif tree[0] == "if":
                    for number, (test, inner) in enumerate(tree[1]):
                        head = "else" if test is None else f"{'else ' if number else ''}if ({self.value(test)[0]})"
                        lines += [head + " {", *walk(inner), "}"]
                else:
                    lines += self.statement(tree)
            return lines

        lines = walk(body)
        return kinds[0], lines
