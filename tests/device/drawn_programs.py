"""Random programs of the kernel language whose meaning depends on the order in which Python does things:
functions that leave traces in an array, called by keyword and within tuples, views that are rebound while a
loop runs over them, `break`, `continue`, structures with operators of their own."""

from __future__ import annotations

from typing import NamedTuple

import pyarray as pa

MODULUS = 1009


@pa.func
def note(log, k):
    """`k`, once the log knows that it was asked for."""
    log[0] = (log[0] * 31 + k) % MODULUS
    return k % MODULUS


@pa.func
def mix(a, b=2, c=5):
    return (a + 3 * b - c) % MODULUS


@pa.func
def both(log, x):
    return note(log, x + 1), note(log, x)


@pa.func
def halves(log, view):
    """The view, once the log knows."""
    note(log, len(view))
    return view[len(view) // 2 :] if len(view) > 1 else view[0:]


class Pair(NamedTuple):
    x: int
    y: int = 4

    @pa.func
    def __add__(self, other):
        return Pair((self.x + 2 * other.x) % MODULUS, (self.y - other.y) % MODULUS)

    @pa.func
    def __radd__(self, other):
        return Pair(self.y, other % MODULUS)

    @pa.func
    def __getitem__(self, k):
        return (self.x * k + self.y) % MODULUS

    @pa.func
    def __len__(self):
        return self.x % 5

    @pa.func
    def __lt__(self, other):
        return self.y < other.x


NAMES = {
    "note": note, "mix": mix, "both": both, "halves": halves, "Pair": Pair, "M": MODULUS,
    "ndrange": pa.ndrange, "atomic_add": pa.atomic_add,
}  # fmt: skip


class _Writer:
    def __init__(self, draw):
        self.draw, self.lines, self.loops = draw, [], 0

    def line(self, depth, text):
        self.lines.append("    " * depth + text)

    def number(self, depth=0):
        """Text of an integer."""
        draw, inner = self.draw, lambda: self.number(depth + 1)
        simple = ["x", "y", "z", str(draw.randint(0, 9)), "p.x", "q.y", "len(w)", "t[0]", "t[1]"]
        if depth > 1:
            return draw.choice(simple)
        kind = draw.choice("vvvnnnmmwwupttgalkibh")
        forms = {
            "v": lambda: draw.choice(simple),
            "n": lambda: f"note(log, {inner()})",
            "m": lambda: f"mix({', '.join(draw.sample([f'a={inner()}', f'b={inner()}', f'c={inner()}'], 3))})",
            "w": lambda: f"{draw.choice('wu')}[{inner()} % len(w) % len(u)]",
            "u": lambda: f"({inner()} {draw.choice(['+', '-', '*'])} {inner()}) % M",
            "p": lambda: f"Pair(y={inner()}, x={inner()}).{draw.choice('xy')}",
            "t": lambda: f"({inner()}, {inner()}, {inner()})[{draw.randint(0, 2)}]",
            "g": lambda: f"({draw.choice('pq')} + {draw.choice('pq')})[{inner()}]",
            "a": lambda: f"(atomic_add(log, 1, {inner()}) % M)",
            "l": lambda: f"len({draw.choice('pq')})",
            "k": lambda: f"({inner()} if {self.condition(depth + 1)} else {inner()})",
            "i": lambda: f"{draw.choice(['min', 'max'])}({inner()}, {inner()}, {inner()})",
            "b": lambda: f"both(log, {inner()})[{draw.randint(0, 1)}]",
            "h": lambda: f"halves(log, {draw.choice('wu')})[-1]",
        }
        return forms[kind]()

    def condition(self, depth=1):
        a, b, c = (self.number(depth + 1) for _ in range(3))
        forms = [
            f"{a} < {b}",
            f"{a} <= {b} != {c}",
            f"{a} % 2 == 0 and {b} > {c}",
            f"{a} % 3 or not {b}",
            "p < q",
        ]
        return self.draw.choice(forms)

    def view(self):
        n = self.number(1)
        return self.draw.choice(
            [
                f"m[{n} % 3]",
                f"m[:, {n} % 5]",
                f"m[{n} % 3][1:4]",
                f"m[{n} % 3, ::-2]",
                "w",
                "u",
                "halves(log, w)",
            ]
        )

    def statement(self, depth, looped):
        draw, number = self.draw, self.number
        name = draw.choice("xyz")
        forms = {
            "a": lambda: [f"{name} = {number()}"],
            "A": lambda: [f"{name} {draw.choice(['+=', '-='])} {number()}", f"{name} %= M"],
            "t": lambda: [f"x, y = {number()}, {number()}"],
            "s": lambda: [f"out[{number()} % 6] {draw.choice(['=', '+='])} {number()}"],
            "S": lambda: [f"out[note(log, 1) % 6], z = {number()}, {number()}"],
            "v": lambda: [f"{draw.choice('wu')} = {self.view()}"],
            "V": lambda: ["w, u = u, w"],
            "p": lambda: [f"{draw.choice('pq')} = Pair({number(1)}, {number(1)}) + q"],
            "P": lambda: [f"p += Pair(y={number(1)}, x={number(1)})"],
            "r": lambda: [f"q = {draw.randint(0, 9)} + p"],
            "T": lambda: [f"t = {draw.choice(['both(log, x)', '(t[1], t[0])', '(y, note(log, z))'])}"],
            "b": lambda: [f"if {self.condition()}: {draw.choice(['break', 'continue'])}"] if looped else ["pass"],
        }
        for text in forms[draw.choice("aaaAtsssSvvVpPrTb")]():
            self.line(depth, text)

    def block(self, depth, looped=False):
        for _ in range(self.draw.randint(2, 4)):
            kind = self.draw.choice("sssfwi") if depth < 4 else "s"
            if kind == "s":
                self.statement(depth, looped)
            elif kind == "i":
                self.line(depth, f"if {self.condition()}:")
                self.block(depth + 1, looped)
                self.line(depth, "else:")
                self.statement(depth + 1, looped)
            elif kind == "w":
                self.loops += 1
                counter = f"n{self.loops}"
                self.line(depth, f"{counter} = 0")
                self.line(depth, f"while {counter} < {self.number(2)} % 4:")
                self.line(depth + 1, f"{counter} += 1")
                self.block(depth + 1, True)
            else:
                self.loop(depth)

    def loop(self, depth):
        self.loops += 1
        i, number = f"i{self.loops}", self.number
        nested = self.draw.random() < 0.25
        headers = [
            "for z in w:", "for x in u:", "for z in (w, u)[1]:",
            f"for {i} in range(len(w)):", f"for {i} in range({number(1)} % 3, {number(1)} % 5):",
            f"for {i} in range({number(1)} % 9, {number(1)} % 3, -({number(1)} % 3 + 1)):",
        ]  # fmt: skip
        if nested:  # no break leaves it
            self.line(depth, f"for {i}, y in ndrange({number(1)} % 3, ({number(1)} % 2, {number(1)} % 4)):")
        else:
            self.line(depth, self.draw.choice(headers))
        self.block(depth + 1, not nested)


def random_program(draw):
    """Text of a kernel `drawn(m, out, log, x0)` of int64: a 3 x 5 matrix, 6 results, 2 traces, a number."""
    writer = _Writer(draw)
    writer.line(0, "def drawn(m, out, log, x0):")
    writer.line(1, "for once in range(1):")
    for text in (
        "x = x0",
        "y = 1",
        "z = 2",
        "w = m[0]",
        "u = m[:, 1]",
        "p = Pair(x0, 3)",
        "q = Pair(2)",
        "t = (x, y)",
    ):
        writer.line(2, text)
    writer.block(2)
    for k, value in enumerate(("x", "y", "z", "p.x + q.y", "len(w) + len(u)", "t[0] + t[1]")):
        writer.line(2, f"out[{k}] += {value}")
    return "\n".join(writer.lines) + "\n"
