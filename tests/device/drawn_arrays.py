"""Random programs with arrays of constant shape: elements, slices, rows of a parameter, operators, functions, and
names that share memory in Python."""

from __future__ import annotations

import pyarray as pa

MODULUS = 1009


@pa.func
def same(p):
    return p


@pa.func
def raised(p, k=1):
    return (p + k) % MODULUS


@pa.func
def with_item(p, k, value):
    q = p.copy()
    q[k % 3] = value
    return q


@pa.func
def row_of(x, k):
    return x[k % 4]


@pa.func
def stored(x, k, p):
    x[k % 4] = p
    return k + 1


@pa.func
def either(p, q, k):
    if k % 2:
        return p
    return q


NAMES = {
    "same": same, "raised": raised, "with_item": with_item, "row_of": row_of, "stored": stored, "either": either,
    "M": MODULUS, "pa": pa, "X": pa.ndarray[pa.int64, (4, 3)],
}  # fmt: skip


class Writer:
    def __init__(self, draw):
        self.draw, self.lines, self.loops = draw, [], 0

    def line(self, depth, text):
        self.lines.append("    " * depth + text)

    def number(self, depth=0):
        draw = self.draw
        simple = ["k", "n", str(draw.randint(0, 9)), f"{self.name()}[{draw.randint(-3, 2)}]"]
        if depth > 1:
            return draw.choice(simple)
        forms = [
            *simple,
            f"{self.name()}[{self.index(depth)}]",
            f"m[{self.index(depth)}, {self.index(depth)}]",
            f"m[{self.index(depth)}][{draw.randint(0, 2)}]",
            f"x[{self.index(depth)}, 1]",
            f"({self.number(depth + 1)} {draw.choice('+-*')} {self.number(depth + 1)}) % M",
            f"pa.{draw.choice(['sum', 'min', 'max', 'argmax'])}({self.array(depth + 1)}) % M",
            f"pa.dot({self.array(depth + 1)}, {self.array(depth + 1)}) % M",
            f"(pa.any({self.array(depth + 1)} > {self.number(depth + 1)}) + 1)",
            f"big[{self.number(depth + 1)} % 40]",
            f"len({self.name()})",
        ]
        return draw.choice(forms)

    def index(self, depth=0):
        return self.draw.choice([str(self.draw.randint(-3, 2)), f"{self.number(depth + 1)} % 3"])

    def name(self):
        return self.draw.choice("abr")

    def array(self, depth=0):
        """Text of 3 integers."""
        draw = self.draw
        simple = [self.name(), self.name(), "x[k % 4]", f"m[{draw.randint(0, 2)}]", f"m[:, {draw.randint(0, 2)}]"]
        if depth > 1:
            return draw.choice(simple)
        inner = lambda: self.array(depth + 1)  # noqa: E731
        forms = [
            *simple,
            f"(({inner()} {draw.choice(['+', '-', '*'])} {inner()}) % M)",
            f"(({inner()} * {self.number(depth + 1)} + 3) % M)",
            f"(m @ {inner()} % M)",
            f"pa.array([{self.number(depth + 1)}, k, {self.number(depth + 1)}])",
            f"{inner()}.copy()",
            f"{self.name()}[::-1]",
            f"same({inner()})",
            f"raised({inner()}, k={self.number(depth + 1)})",
            f"with_item({inner()}, {self.number(depth + 1)}, {self.number(depth + 1)})",
            f"row_of(x, {self.number(depth + 1)})",
            f"either({inner()}, {inner()}, {self.number(depth + 1)})",
            f"({inner()} if {self.number(depth + 1)} % 2 else {inner()})",
            f"pa.where({inner()} > {self.number(depth + 1)}, {inner()}, {inner()})",
            f"(pa.cross({inner()}, {inner()}) % M)",
            f"m.T[{draw.randint(0, 2)}]",
            f"big.reshape(8, 5)[{draw.randint(0, 7)}, 1:4]",
            f"pa.abs(-{inner()})",
        ]
        return draw.choice(forms)

    def statement(self, depth):
        draw, name = self.draw, self.name()
        forms = [
            f"{name} = {self.array()}",
            f"{name} = {self.array()}",
            f"{name}[{self.index()}] {draw.choice(['=', '+=', '-='])} {self.number()}",
            f"{name}[{draw.choice(['1:', ':2', '::2'])}] = {self.number()}",
            f"{name} {draw.choice(['+=', '-='])} {self.array()}",
            f"{name} %= M",
            "a, b = b, a",
            f"m[{self.index()}] = {self.array()}",
            f"m[:, {draw.randint(0, 2)}] += {self.array()}",
            f"m[{self.index()}][{draw.randint(0, 2)}] = {self.number()}",
            "m = m @ m % 7",
            "m = m.T",
            f"m = m + {self.array()}",
            f"k, n, _ = {self.array()}",
            f"k = {self.number()} % M",
            f"n = stored(x, {self.number()}, {self.array()}) % M",
            f"x[{self.number()} % 4] = {self.array()}",
            f"x[{self.number()} % 4] += {self.array()}",
            f"x[k % 4, {draw.randint(0, 2)}] -= {self.number()}",
            f"big[{self.number()} % 40] = {self.number()}",
            f"big = (big * {self.number()} + 1) % M",
            f"big[{draw.randint(0, 37)}:][:3] = {self.array()}",
        ]
        self.line(depth, draw.choice(forms))

    def block(self, depth):
        for _ in range(self.draw.randint(2, 4)):
            kind = self.draw.choice("sssssif") if depth < 4 else "s"
            if kind == "s":
                self.statement(depth)
            elif kind == "i":
                self.line(depth, f"if {self.number()} % 2 {self.draw.choice(['==', '!='])} 0:")
                self.block(depth + 1)
                self.line(depth, "else:")
                self.statement(depth + 1)
            else:
                self.loops += 1
                ranges = [f"i{self.loops} in range({self.number()} % 4)", f"e{self.loops} in {self.array()}"]
                header = self.draw.choice(ranges)
                self.line(depth, f"for {header}:")
                self.block(depth + 1)


def random_program(draw):
    """Text of a kernel `drawn(x, out, k0)` of int64: a 4 x 3 matrix, 48 results, a number."""
    writer = Writer(draw)
    writer.line(0, "def drawn(x: X, out, k0):")
    writer.line(1, "for once in range(1):")
    rows = draw.choice(["x[1]", "x[k % 4]", "b * 2"])
    for text in (
        "k = k0 % M", "n = 1", "a = pa.array([k, 2, 3])", "b = a + 1", f"r = {rows}",
        "m = pa.array([[1, 2, 0], [k, 1, 3], [0, 5, 1]])", "big = pa.zeros(40, dtype=pa.int64)",
    ):  # fmt: skip
        writer.line(2, text)
    writer.block(2)
    for line in (
        "for j in range(3):", "    out[j] += a[j]", "    out[3 + j] += b[j]", "    out[6 + j] += r[j]",
        "    for i in range(3):", "        out[9 + j] += m[i, j] * (i + 1)",
        "for j in range(40):", "    out[12] += big[j] * (j + 1)", "out[13] = k + 2 * n",
    ):  # fmt: skip
        writer.line(2, line)
    return "\n".join(writer.lines) + "\n"
